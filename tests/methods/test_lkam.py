import numpy as np
import pytest

from mkclust import LKAM
from mkclust.methods import solve_lkam
from mkclust.methods.localize import neighborhood_mask, neighborhood_size
from mkclust.stack import as_stack
from problems import projector, random_kernels


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False)


def shared_neighborhoods(stack, neighbors):
    """Return in how many neighborhoods every two samples are."""
    return neighborhood_mask(stack, neighborhood_size(neighbors, stack.n_samples, 3)).counts


def local_quantities(kernels, neighbors):
    """Return masked kernels and their correlations, sample by sample as the paper defines them."""
    m, n, _ = kernels.shape
    size = int(np.floor(neighbors * n + 0.5))
    average = kernels.mean(axis=0)
    masked, M = np.zeros_like(kernels), np.zeros((m, m))
    for i in range(n):
        others = [j for j in np.argsort(-average[:, i], kind="stable") if j != i]
        members = np.ix_(range(m), others[:size], others[:size])
        part = kernels[members]
        masked[members] += part / n
        M += np.einsum("pij,qij->pq", part, part) / n
    return masked, M


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
def test_the_golden_neighborhoods_are_reproduced(golden, setting):
    tau = golden["lkam_tau_lambda"][setting - 1, 0]
    found = shared_neighborhoods(raw(golden["K"]), tau)
    np.testing.assert_array_equal(found, golden[f"lkam_{setting}_mask"])


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [40, 260])
def test_the_masks_equal_the_sums_over_samples(n, neighbors):
    kernels = random_kernels(n, 3)
    solution = solve_lkam(raw(kernels), 3, reg=0.5, neighbors=neighbors, tol=1e-12, max_iter=200)
    masked, M = local_quantities(kernels, neighbors)
    rest = np.eye(n) - projector(solution.partition)
    z = np.einsum("pij,ij->p", masked, rest)
    gradient = (0.5 * M + 2 * np.diag(z)) @ solution.weights
    assert solution.objective == pytest.approx(gradient @ solution.weights / 2, rel=1e-8)
    assert gradient @ solution.weights - gradient.min() <= 1e-5 * gradient.max()
    captured = np.trace(
        solution.partition.T @ np.tensordot(solution.weights**2, masked, 1) @ solution.partition
    )
    values = np.linalg.eigvalsh(np.tensordot(solution.weights**2, masked, 1))
    assert captured == pytest.approx(values[-3:].sum(), rel=1e-9)
    assert np.all(np.diff(solution.history) <= 1e-9 * solution.history[0])


def test_a_sample_is_its_own_neighbor_only_where_all_are():
    stack = raw(random_kernels(20, 2))
    np.testing.assert_array_equal(shared_neighborhoods(stack, 1.0), 20)
    almost = shared_neighborhoods(stack, 0.95)  # the nineteen others
    np.testing.assert_array_equal(np.diag(almost), 19)
    np.testing.assert_array_equal(almost[~np.eye(20, dtype=bool)], 18)


@pytest.mark.parametrize("n", [50, 260])
def test_a_sample_in_no_neighborhood_is_at_the_origin_and_still_gets_a_label(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + 10 * np.eye(3)[np.arange(n) % 3]
    X[0] = [-40, -40, -40]
    kernels = np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1) / 50)])
    model = LKAM(3, neighbors=3 / n, center=False, random_state=0).fit(kernels)
    assert shared_neighborhoods(as_stack(kernels, center=False), 3 / n)[0].sum() == 0
    np.testing.assert_allclose(model.embedding_[0], 0, atol=1e-12)
    assert np.all(np.isfinite(model.embedding_))
    assert set(model.labels_) == {0, 1, 2}


def test_a_tiny_neighborhood_still_has_one_neighbor():
    shared = shared_neighborhoods(raw(random_kernels(20, 2)), 1e-6)
    assert np.trace(shared) == 20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neighbors": 0}, r"neighbors=0: pass a share .* between 0 and 1 \(0 excluded"),
        ({"neighbors": 1.5}, "neighbors=1.5"),
        ({"neighbors": 1}, "neighbors=1: .* a count, an integer of at least 2"),
        ({"neighbors": 30}, "neighbors=30 with n_samples=30: a sample has 29 others"),
        ({"reg": -1}, "reg=-1: pass a number of at least 0"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        LKAM(3, **parameters).fit(random_kernels(30, 2))
