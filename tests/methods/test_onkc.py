"""ONKC: the goldens, exact steps, descent, and kernels of too low a rank."""

import numpy as np
import pytest

from helpers.kernels import gaussian_kernels
from helpers.problems import projector, raw, row_normalized_gram, symmetrized
from mkclust.methods.onkc import ONKC, find_nearby_kernel, solve_onkc
from mkclust.stack import as_stack

RAW = {"center": False, "normalize": False}


def learned_kernel(stack, solution, proximity=1.0):
    """Return G, which partition and weights determine."""
    return find_nearby_kernel(
        stack, solution.weights, solution.partition, proximity
    ).kernel


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
def test_the_authors_code_is_reproduced(golden, setting):
    rho, reg = golden["onkc_rho_lambda"][setting - 1]
    stack = raw(golden["K"])
    solution = solve_onkc(stack, 4, reg=reg, proximity=rho)
    G, name = learned_kernel(stack, solution, rho), f"onkc_{setting}"
    assert solution.converged
    np.testing.assert_allclose(solution.history, golden[f"{name}_obj"], rtol=1e-10)
    np.testing.assert_allclose(solution.weights, golden[f"{name}_gamma"], atol=1e-10)
    cosines = projector(golden[f"{name}_Hrownorm"])
    np.testing.assert_allclose(
        row_normalized_gram(solution.partition), cosines, atol=1e-10
    )
    values = np.sort(golden[f"{name}_G_eigs"])
    np.testing.assert_allclose(np.linalg.eigvalsh(G), values, atol=1e-11)
    assert solution.learned["kernel_rank_"] == (values > 1e-8).sum()
    if setting == 1:
        np.testing.assert_allclose(G, golden["onkc_1_G"], atol=1e-12)


@pytest.mark.parametrize(
    ("reg", "proximity"), [(0, 1), (0.5, 1e-4), (20, 0.1), (0.5, 300)]
)
def test_the_reported_objective_is_that_of_the_returned_triple(reg, proximity):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(0), n=60, k=3, strengths=(2, 1, 0)
    )
    stack = as_stack(kernels)
    solution = solve_onkc(stack, 3, reg=reg, proximity=proximity)
    G, H, gamma = (
        learned_kernel(stack, solution, proximity),
        solution.partition,
        solution.weights,
    )
    distance = np.linalg.norm(G - np.tensordot(gamma, stack.among().entries, 1)) ** 2
    overlap = gamma @ stack.gram() @ gamma
    expected = (
        np.trace(G)
        - np.trace(H.T @ G @ H)
        + proximity / 2 * distance
        + reg / 2 * overlap
    )
    assert solution.objective == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("proximity", [0.05, 1, 50])
def test_each_step_is_the_exact_minimizer_for_the_other_two_fixed(proximity):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(1), n=70, k=3, strengths=(2, 1, 0, 0)
    )
    stack, reg = as_stack(kernels), 0.7
    entries, M = stack.among().entries, stack.gram()
    # Which never stops it early.
    run = {"reg": reg, "proximity": proximity, "tol": 1e-300}
    before, after = (solve_onkc(stack, 3, max_iter=count, **run) for count in (4, 5))
    G = learned_kernel(stack, before, proximity)
    leading = np.linalg.eigh(G)[1][:, -3:]
    np.testing.assert_allclose(
        projector(after.partition), projector(leading), atol=1e-9
    )
    # No kernel would lower the objective by more weight, and those that have some are
    # level.
    gradient = (reg + proximity) * M @ after.weights
    gradient -= proximity * np.einsum("pij,ij->p", entries, G)
    scale = np.abs(M).max() * (reg + proximity)
    np.testing.assert_allclose(
        gradient[after.weights > 0], gradient.min(), atol=1e-9 * scale
    )
    mixed = np.tensordot(after.weights, entries, 1)
    B = mixed - (np.eye(70) - projector(after.partition)) / proximity
    found = learned_kernel(stack, after, proximity)
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(found, expected, atol=1e-12 / proximity + 1e-11)


def test_a_direction_that_lost_its_kernel_stays_in_the_partition_with_a_warning():
    # The second kernel is the first and something orthogonal: a large regularization
    # drops it.
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 3)))[0]
    first = (Q[:, :2] * [5.0, 4.0]) @ Q[:, :2].T
    kernels = symmetrized([first, first + 6 * np.outer(Q[:, 2], Q[:, 2])])
    with pytest.warns(
        UserWarning, match=r"rank 2, too low for n_clusters=3.*proximity"
    ):
        model = ONKC(3, reg=100, proximity=0.1, random_state=0, **RAW).fit(kernels)
    np.testing.assert_allclose(model.weights_, [1, 0], atol=1e-12)
    assert model.kernel_rank_ == 2
    np.testing.assert_allclose(projector(model.embedding_), projector(Q), atol=1e-9)
