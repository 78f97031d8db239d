"""LocalizedSimpleMKKM: the masks, the certificate, and who is whose neighbor."""

import warnings

import numpy as np
import pytest

from conftest import blob_views, gaussian_kernels
from libraries import FOREIGN, as_library
from mkclust import LocalizedSimpleMKKM, SimpleMKKM, WeightsWarning
from mkclust.linalg import to_host
from mkclust.methods import solve_localized_simple_mkkm
from mkclust.methods.localize import localize, neighborhood_mask, neighborhood_size
from mkclust.metrics import clustering_accuracy
from mkclust.stack import as_stack
from pairs import first_quick
from problems import (
    FAMILIES,
    random_kernels,
    random_weights,
    top_eigenvalue_sum,
)

pytestmark = pytest.mark.slow

MASKS = ["counts", "published", "cosine"]
over_masks = pytest.mark.parametrize("mask", MASKS)


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False, validate=False)


def mask_by_a_loop(kernels, size, mask):
    """Return the mask, neighborhood by neighborhood as the paper defines it."""
    n, average = kernels.shape[1], kernels.mean(axis=0)
    counts = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(-average[i], kind="stable") if j != i][:size]
        members = others if mask == "published" else [*others, i]
        counts[np.ix_(members, members)] += 1
    if mask != "cosine":
        return counts / n
    return counts / np.sqrt(np.outer(counts.diagonal(), counts.diagonal()))


def with_duplicates(rng, n, m, k):
    """Kernels of samples of which every one is there twice, and of equal similarities."""
    places = np.repeat(rng.integers(0, 4, size=((n + 1) // 2, m)), 2, axis=0)[:n]
    return np.stack([(places[:, [p]] == places[:, p]).astype(float) for p in range(m)])


# The masks -------------------------------------------------------------------------------------


@over_masks
@pytest.mark.parametrize("size", [2, 7, 24])
@pytest.mark.parametrize("make", [lambda: random_kernels(25, 3), lambda: random_kernels(270, 2)])
def test_a_mask_is_the_sum_over_the_neighborhoods_of_all_samples(make, size, mask):
    kernels = make()
    found = neighborhood_mask(raw(kernels), size, mask).rows(slice(None))
    np.testing.assert_allclose(found, mask_by_a_loop(kernels, size, mask), rtol=1e-14)
    np.testing.assert_array_equal(found, found.T)


@over_masks
@pytest.mark.parametrize("seed", range(4))
def test_among_equals_the_first_are_neighbors(seed, mask):
    kernels = with_duplicates(np.random.default_rng(seed), 31, 3, 4)
    found = neighborhood_mask(raw(kernels), 5, mask).rows(slice(None))
    np.testing.assert_allclose(found, mask_by_a_loop(kernels, 5, mask), rtol=1e-14)


@over_masks
def test_kernels_among_neighbors_are_kernels(mask):
    stack = as_stack(random_kernels(80, 3))
    local, _ = localize(stack, neighborhood_mask(stack, 6, mask))
    for K in local.entries:
        np.testing.assert_allclose(K, K.T, atol=1e-15)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
    if mask == "cosine":
        np.testing.assert_allclose(np.diagonal(local.entries, axis1=1, axis2=2), 1)


@over_masks
def test_where_all_samples_are_neighbors_it_is_simplemkkm(mask):
    kernels = random_kernels(90, 3)
    model = LocalizedSimpleMKKM(3, neighbors=1.0, mask=mask, random_state=0).fit(kernels)
    expected = SimpleMKKM(3, random_state=0).fit(kernels)
    np.testing.assert_allclose(model.weights_, expected.weights_, rtol=1e-12)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.baseline_labels_, expected.baseline_labels_)


# The certificate -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*FAMILIES, with_duplicates], ids=lambda family: family.__name__)
@pytest.mark.parametrize("seed", first_quick(4, range(10)))
def test_a_dense_eigensolver_confirms_the_certificate(family, seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 60)), int(rng.integers(1, 8))
    k = int(rng.integers(1, n)) if seed % 2 else int(rng.integers(1, 7))
    size, mask = int(rng.integers(2, n)), MASKS[seed % 3]
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
@pytest.mark.parametrize("n", [60, 260])
def test_no_weights_on_a_grid_beat_the_certified_minimum(n, mask):
    kernels, _ = gaussian_kernels(np.random.default_rng(3), n=n, k=3)
    stack = as_stack(kernels)
    local = stack.among().entries * mask_by_a_loop(stack.among().entries, 9, mask)
    solution = solve_localized_simple_mkkm(stack, 3, neighbors=9, mask=mask)
    steps = 40 if n == 60 else 8
    grid = [
        np.array([a, b, steps - a - b]) / steps
        for a in range(steps + 1)
        for b in range(steps + 1 - a)
    ]
    best = min(top_eigenvalue_sum(local, weights, 3) for weights in grid)
    assert solution.lower_bound <= best + 1e-12
    assert solution.objective <= best * (1 + 1e-6)


def test_both_solvers_reach_the_same_minimizer():
    kernels = random_kernels(120, 3)
    certified, descended = (
        LocalizedSimpleMKKM(3, solver=solver, tol=1e-8, random_state=0).fit(kernels)
        for solver in ("subspace", "reduced-gradient")
    )
    assert descended.objective_ == pytest.approx(certified.objective_, rel=1e-7)
    np.testing.assert_allclose(descended.weights_, certified.weights_, atol=2e-4)
    np.testing.assert_array_equal(descended.labels_, certified.labels_)


# Invariance, and awkward problems --------------------------------------------------------------


@over_masks
@pytest.mark.parametrize("library", FOREIGN)
def test_masks_are_the_same_wherever_the_kernels_are(library, mask):
    kernels = random_kernels(70, 3)
    expected = neighborhood_mask(raw(kernels), 9, mask)
    found = neighborhood_mask(raw(as_library(library, kernels)), 9, mask)
    np.testing.assert_array_equal(to_host(found.counts), expected.counts)
    np.testing.assert_allclose(
        to_host(found.rows(slice(None))), expected.rows(slice(None)), rtol=1e-15
    )
    some = np.array([3, 60, 0])
    np.testing.assert_allclose(
        to_host(found.among(some)), expected.rows(slice(None))[np.ix_(some, some)], rtol=1e-15
    )


@over_masks
def test_the_mixed_kernel_is_the_mix_among_neighbors(mask):
    kernels = random_kernels(60, 3)
    model = LocalizedSimpleMKKM(3, neighbors=9, mask=mask, random_state=0).fit(kernels)
    entries = as_stack(kernels).among().entries
    expected = np.tensordot(model.coefficients_, entries, 1) * mask_by_a_loop(entries, 9, mask)
    np.testing.assert_allclose(model.mixed_kernel(kernels), expected, atol=1e-13)
    assert "among neighbors" in model.describe_mixed_kernel()


# Samples that no one is near to ----------------------------------------------------------------


def kernels_with_an_outlier(n):
    """Return kernels of three clusters, and of one sample that is in no neighborhood."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + 10 * np.eye(3)[np.arange(n) % 3]
    X[0] = [-40, -40, -40]
    return np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1) / 50)])


@pytest.mark.parametrize("n", [50, 260])
def test_a_sample_in_no_neighborhood_is_named_and_still_gets_a_label(n):
    kernels, size = kernels_with_an_outlier(n), n // 4
    options = {"neighbors": size, "center": False, "random_state": 0}
    with pytest.warns(UserWarning, match=r"1 sample is in no neighborhood \(0\): .*mask='counts'"):
        model = LocalizedSimpleMKKM(3, mask="published", **options).fit(kernels)
    np.testing.assert_allclose(model.embedding_[0], 0, atol=1e-12)
    assert np.isfinite(model.embedding_).all()
    assert set(model.labels_) == {0, 1, 2}
    assert model.duality_gap_ <= 1e-6


def test_a_kernel_that_is_zero_among_neighbors_is_refused_by_name():
    kernels = kernels_with_an_outlier(50)
    kernels[1] = 0
    kernels[1, 0, 0] = 1e-9
    model = LocalizedSimpleMKKM(3, neighbors=12, mask="published", center=False, normalize=False)
    message = "kernel 1 is zero between all samples .* raise neighbors, or leave it out"
    with pytest.warns(UserWarning, match="in no neigh"), pytest.raises(ValueError, match=message):
        model.fit(kernels)


@pytest.mark.parametrize("mask", ["counts", "cosine"])
def test_a_sample_in_its_own_neighborhood_is_near_to_those_near_to_it(mask):
    kernels = kernels_with_an_outlier(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LocalizedSimpleMKKM(3, neighbors=3, mask=mask, center=False, random_state=0).fit(
            kernels
        )
    assert np.count_nonzero(model.mixed_kernel(kernels)[0]) >= 4


# Neighborhoods, noise, and what is refused -----------------------------------------------------


@pytest.mark.parametrize(
    ("neighbors", "n", "size"),
    [(0.1, 200, 20), (0.05, 50, 3), (1.0, 40, 40), (7, 40, 7), (39, 40, 39)],
)
def test_a_neighborhood_is_a_share_or_a_count(neighbors, n, size):
    assert neighborhood_size(neighbors, n, 3) == size
    same = np.float64(neighbors) if isinstance(neighbors, float) else np.int32(neighbors)
    assert neighborhood_size(same, n, 3) == size


@pytest.mark.parametrize(
    ("n", "k", "size"),
    [
        *[(2000, 10, 133), (1360, 17, 53), (210, 7, 20), (169, 6, 20), (90, 3, 20)],
        *[(90, 2, 30), (90, 1, 30), (30, 10, 10), (10, 5, 3), (4, 2, 1), (5000, 1000, 20)],
    ],
)
def test_neighborhoods_are_by_default_somewhat_smaller_than_clusters(n, k, size):
    assert neighborhood_size("auto", n, k) == size


@pytest.mark.data
def test_neighborhoods_raise_the_accuracy_on_handwritten_digits(uci_digit):
    views, y = uci_digit
    accuracy = {
        method: clustering_accuracy(y, method(10, n_init=3, random_state=0).fit(views).labels_)
        for method in (SimpleMKKM, LocalizedSimpleMKKM)
    }
    assert accuracy[LocalizedSimpleMKKM] >= accuracy[SimpleMKKM] + 0.03


def test_views_of_noise_are_warned_of_where_they_mislead():
    views, _ = blob_views(np.random.default_rng(0), n=150, k=4)
    views += list(np.random.default_rng(1).normal(size=(4, 150, 30)))
    with pytest.warns(WeightsWarning, match="share nothing with the other views"):
        model = LocalizedSimpleMKKM(4, random_state=0).fit(views)
    assert model.baseline_agreement_ < 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"neighbors": 1},
            "neighbors=1: pass a share .* 1.0 is all of them.* at least 2, or 'auto'",
        ),
        ({"neighbors": 0}, "neighbors=0: pass a share"),
        ({"neighbors": 0.0}, "neighbors=0.0: pass a share"),
        ({"neighbors": 1.01}, "neighbors=1.01: pass a share"),
        ({"neighbors": -3}, "neighbors=-3: pass a share"),
        ({"neighbors": True}, "neighbors=True: pass a share"),
        ({"neighbors": "all"}, "neighbors='all': pass a share"),
        ({"neighbors": None}, "neighbors=None: pass a share"),
        ({"neighbors": float("nan")}, "neighbors=nan: pass a share"),
        ({"neighbors": 30}, "neighbors=30 with n_samples=30: a sample has 29 others; pass a count"),
        ({"mask": "share"}, "mask='share': choose one of 'counts', 'published', 'cosine'"),
        ({"stopping": "step"}, "stopping='step' is the reduced gradient's rule"),
        ({"prove": 1}, "prove=1"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        LocalizedSimpleMKKM(3, **parameters).fit(random_kernels(30, 2))
