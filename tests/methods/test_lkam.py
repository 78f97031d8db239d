import numpy as np
import pytest

from helpers.problems import projector, random_kernels, raw
from mkclust.methods import solve_lkam
from mkclust.methods.localized_simple_mkkm import neighborhood_mask, neighborhood_size


def local_quantities(kernels, neighbors):
    """Return masked kernels and their correlations, sample by sample as the paper
    defines them."""
    m, n, _ = kernels.shape
    average = kernels.mean(axis=0)
    masked, M = np.zeros_like(kernels), np.zeros((m, m))
    for i in range(n):
        others = [j for j in np.argsort(-average[:, i], kind="stable") if j != i]
        others = others[: int(np.floor(neighbors * n + 0.5))]
        members = np.ix_(range(m), others, others)
        masked[members] += kernels[members] / n
        M += np.einsum("pij,qij->pq", kernels[members], kernels[members]) / n
    return masked, M


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
def test_the_golden_neighborhoods_are_reproduced(golden, setting):
    stack, tau = raw(golden["K"]), golden["lkam_tau_lambda"][setting - 1, 0]
    n = stack.n_samples
    found = n * neighborhood_mask(stack, neighborhood_size(tau, n, 4))
    np.testing.assert_allclose(found, golden[f"lkam_{setting}_mask"], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [40, 260])
def test_partition_and_weights_are_best_for_each_other_among_neighbors(n, neighbors):
    kernels = random_kernels(n, 3)
    solution = solve_lkam(
        raw(kernels), 3, reg=0.5, neighbors=neighbors, tol=1e-12, max_iter=200
    )
    masked, M = local_quantities(kernels, neighbors)
    H = solution.partition
    z = np.einsum("pij,ij->p", masked, np.eye(n) - projector(H))
    gradient = (0.5 * M + 2 * np.diag(z)) @ solution.weights
    assert solution.objective == pytest.approx(
        gradient @ solution.weights / 2, rel=1e-8
    )
    assert gradient @ solution.weights - gradient.min() <= 1e-5 * gradient.max()
    K = np.tensordot(solution.weights**2, masked, 1)
    top = np.linalg.eigvalsh(K)[-3:].sum()
    assert np.trace(H.T @ K @ H) == pytest.approx(top, rel=1e-9)
    assert np.all(np.diff(solution.history) <= 1e-9 * solution.history[0])
