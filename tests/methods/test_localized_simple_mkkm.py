"""LocalizedSimpleMKKM: the masks, the certificate, and who is whose neighbor."""

import numpy as np
import pytest

from helpers.cases import first_quick
from helpers.problems import (
    FAMILIES,
    random_kernels,
    random_weights,
    raw,
    top_eigenvalue_sum,
)
from mkclust import LocalizedSimpleMKKM, SimpleMKKM
from mkclust.methods import solve_localized_simple_mkkm
from mkclust.methods.localized_simple_mkkm import neighborhood_size
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

over_masks = pytest.mark.parametrize("mask", ["counts", "published"])


def mask_by_a_loop(kernels, size, mask):
    """Return the mask, neighborhood by neighborhood as the paper defines it."""
    n, average = kernels.shape[1], kernels.mean(axis=0)
    counts = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(-average[i], kind="stable") if j != i][:size]
        members = others if mask == "published" else [*others, i]
        counts[np.ix_(members, members)] += 1
    return counts / n


def with_duplicates(rng, n, m, k=4):
    """Return kernels of samples that are all there twice, with many equal
    similarities."""
    places = np.repeat(rng.integers(0, 4, size=((n + 1) // 2, m)), 2, axis=0)[:n]
    return np.stack([(places[:, [p]] == places[:, p]).astype(float) for p in range(m)])


@over_masks
def test_if_all_samples_are_neighbors_it_is_simplemkkm(mask):
    kernels = random_kernels(90, 3)
    model = LocalizedSimpleMKKM(3, neighbors=1.0, mask=mask, random_state=0).fit(
        kernels
    )
    expected = SimpleMKKM(3, random_state=0).fit(kernels)
    np.testing.assert_allclose(model.weights_, expected.weights_, rtol=1e-12)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.baseline_labels_, expected.baseline_labels_)


@pytest.mark.filterwarnings("ignore:samples in no neighborhood")
@pytest.mark.parametrize(
    "family", [*FAMILIES, with_duplicates], ids=lambda family: family.__name__
)
@pytest.mark.parametrize("seed", first_quick(4, range(10)))
def test_a_dense_eigensolver_confirms_the_certificate(family, seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 60)), int(rng.integers(1, 8))
    k = int(rng.integers(1, n)) if seed % 2 else int(rng.integers(1, 7))
    size, mask = int(rng.integers(2, n)), "published" if seed % 3 == 1 else "counts"
    kernels = family(rng, n, m, k)
    local = kernels * mask_by_a_loop(kernels, size, mask)
    solution = solve_localized_simple_mkkm(raw(kernels), k, neighbors=size, mask=mask)
    assert solution.converged
    assert 0 <= solution.gap <= 1e-6
    J = top_eigenvalue_sum(local, solution.weights, k)
    assert solution.objective == pytest.approx(J, rel=1e-9)
    assert -1e-12 * J <= J - solution.lower_bound <= 2e-6 * J
    for _ in range(10):  # weak duality: no weights go below the certified bound
        value = top_eigenvalue_sum(local, random_weights(rng, m), k)
        assert value >= solution.lower_bound * (1 - 1e-12)


@over_masks
def test_the_mixed_kernel_is_the_mix_among_neighbors(mask):
    kernels = random_kernels(60, 3)
    model = LocalizedSimpleMKKM(3, neighbors=9, mask=mask, random_state=0).fit(kernels)
    entries = as_stack(kernels).among().entries
    expected = np.tensordot(model.coefficients_, entries, 1) * mask_by_a_loop(
        entries, 9, mask
    )
    np.testing.assert_allclose(model.mixed_kernel(kernels), expected, atol=1e-13)


def test_isolated_samples_and_kernels_that_are_zero_among_neighbors_are_named():
    rng, n = np.random.default_rng(0), 50
    X = rng.normal(size=(n, 3)) + 10 * np.eye(3)[np.arange(n) % 3]
    X[0] = [-40, -40, -40]
    kernels = np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1) / 50)])
    options = {"neighbors": 12, "mask": "published", "center": False, "random_state": 0}
    with pytest.warns(UserWarning, match="in no neighborhood: 0"):
        model = LocalizedSimpleMKKM(3, **options).fit(kernels)
    np.testing.assert_allclose(model.embedding_[0], 0, atol=1e-12)
    assert set(model.labels_) == {0, 1, 2}
    kernels[1] = 0
    kernels[1, 0, 0] = 1e-9
    model.set_params(normalize=False)
    with (
        pytest.warns(UserWarning, match="in no"),
        pytest.raises(ValueError, match="kernel 1"),
    ):
        model.fit(kernels)


@pytest.mark.parametrize(
    ("neighbors", "n", "k", "size"),
    [
        *[
            (0.1, 200, 3, 20),
            (0.05, 50, 3, 3),
            (1.0, 40, 3, 40),
            (1e-6, 20, 3, 1),
            (7, 40, 3, 7),
        ],
        *[
            ("auto", 2000, 10, 133),
            ("auto", 210, 7, 20),
            ("auto", 90, 2, 30),
            ("auto", 4, 2, 1),
        ],
    ],
)
def test_neighborhoods_have_the_size_asked_for(neighbors, n, k, size):
    assert neighborhood_size(neighbors, n, k) == size


@pytest.mark.parametrize(
    "neighbors", [1, 0, 0.0, 1.01, -3, True, None, float("nan"), 30]
)
def test_impossible_sizes_of_neighborhoods_are_refused(neighbors):
    with pytest.raises(ValueError, match=f"neighbors={neighbors}"):
        LocalizedSimpleMKKM(3, neighbors=neighbors).fit(random_kernels(30, 2))
