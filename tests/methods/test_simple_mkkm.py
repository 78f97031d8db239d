"""SimpleMKKM: the certificate, both solvers, the goldens, and honesty about noise."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from helpers.cases import first_quick, slow
from helpers.kernels import gaussian_kernels
from helpers.problems import FAMILIES, random_weights, top_eigenvalue_sum
from helpers.views import blob_views
from mkclust import SimpleMKKM
from mkclust.exceptions import WeightsWarning
from mkclust.methods import solve_reduced_gradient, solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index, scores
from mkclust.stack import as_stack

RAW = {"center": False, "normalize": False}
SOLVERS = {"subspace": solve_simple_mkkm, "reduced-gradient": solve_reduced_gradient}
over_solvers = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
over_families = pytest.mark.parametrize(
    "family", FAMILIES, ids=lambda family: family.__name__
)


def certified_gap(kernels, solution, k):
    """Return the relative gap between the dense objective and the certified lower
    bound."""
    J = top_eigenvalue_sum(kernels, solution.weights, k)
    return (J - solution.lower_bound) / J


def check_certificate(rng, family, n, m, k):
    kernels = family(rng, n, m, k)
    solution = solve_simple_mkkm(as_stack(kernels, **RAW), k)
    assert solution.converged
    assert solution.gap <= 1e-6
    gap = certified_gap(kernels, solution, k)
    assert -1e-12 <= gap <= 2e-6
    # The residuals' share of the reported gap is an estimate, but a fair one.
    assert solution.gap >= 0.5 * gap - 1e-9
    assert solution.weights.sum() == pytest.approx(1)
    assert solution.weights.min() > 0
    # Weak duality: no weights go below the certified bound.
    for _ in range(3 if n > 60 else 10):
        weights = random_weights(rng, m)
        assert top_eigenvalue_sum(kernels, weights, k) >= solution.lower_bound * (
            1 - 1e-12
        )


@over_families
@pytest.mark.parametrize("seed", first_quick(8, range(24)))
def test_a_dense_eigensolver_confirms_the_certificate_on_small_problems(family, seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 60)), int(rng.integers(1, 26))
    k = int(rng.integers(1, n)) if seed % 2 else int(rng.integers(1, 7))
    check_certificate(rng, family, n, m, k)


@over_families
@pytest.mark.parametrize(
    ("n", "m", "k"),
    [
        (260, 3, 1),
        (260, 2, 259),
        (300, 10, 5),
        (420, 25, 3),
        (330, 1, 4),
        *slow((640, 6, 7)),
    ],
)
def test_a_dense_eigensolver_confirms_the_certificate_in_the_subspace(family, n, m, k):
    check_certificate(np.random.default_rng(n + m), family, n, m, k)


@over_solvers
def test_no_weights_on_a_grid_beat_the_certified_minimum(solver):
    kernels, _ = gaussian_kernels(np.random.default_rng(3), n=60, k=3)
    stack = as_stack(kernels)
    entries = stack.among().entries
    solution = solver(stack, 3)
    grid = [np.array([a, b, 40 - a - b]) / 40 for a in range(41) for b in range(41 - a)]
    best = min(top_eigenvalue_sum(entries, weights, 3) for weights in grid)
    assert solution.lower_bound <= best + 1e-12
    assert solution.objective <= best * (1 + 1e-6)


@over_solvers
def test_invariant_subspaces_hide_no_eigenvectors(solver):
    """Kernels of equal categories: what one explains, the other maps to zero."""
    a, b = np.divmod(np.arange(600) // 2, 15)
    same_a, same_b = ((c[:, None] == c).astype(float) for c in (a, b))
    stack = as_stack(np.stack([same_a + 0.2 * same_b, same_b]))
    solution = solver(stack, 4)
    assert solution.converged
    assert certified_gap(stack.among().entries, solution, 4) <= 2e-6


def test_without_a_tie_weights_are_inverse_to_alignments():
    kernels, _ = gaussian_kernels(np.random.default_rng(5), n=120, k=4)
    stack = as_stack(kernels)
    solution = solve_simple_mkkm(stack, 4, tol=1e-10)
    assert solution.relaxation.eigengap > 1e-3
    H = solution.partition
    products = solution.weights * (stack.apply(H) * H).sum(axis=(1, 2))
    np.testing.assert_allclose(products, products.mean(), rtol=1e-4)


@over_solvers
@pytest.mark.parametrize("n", [90, 320])
def test_objectives_fall_and_lower_bounds_rise(solver, n):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(4), n=n, k=4, strengths=(2, 1, 0)
    )
    solution = solver(as_stack(kernels), 4)
    assert np.all(np.diff(solution.history) <= 1e-9 * solution.objective)
    assert np.all(np.diff(solution.lower_bounds) >= 0)
    assert solution.history[-1] == pytest.approx(solution.objective, rel=1e-6)
    assert solution.history[-1] >= solution.lower_bound


@pytest.mark.data
@over_solvers
def test_the_golden_problem_is_solved_within_its_certified_band(golden, solver):
    solution = solver(as_stack(golden["K"], **RAW), int(golden["k"]))
    assert (
        golden["exact_lb"] - 1e-9
        <= solution.objective
        <= golden["exact_J"] * (1 + 1e-6)
    )
    np.testing.assert_allclose(solution.weights, golden["exact_gamma"], atol=1e-3)


@pytest.mark.data
def test_the_papers_scores_on_uci_digit_are_reproduced(uci_digit):
    views, y = uci_digit
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightsWarning)
        model = SimpleMKKM(10, kernels="gaussian", random_state=0).fit(views)
    np.testing.assert_allclose(model.weights_, [0.396, 0.406, 0.198], atol=2e-3)
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    runs = [
        scores(
            y, KMeans(10, n_init=10, init="random", random_state=seed).fit_predict(rows)
        )
        for seed in range(20)
    ]
    means = {name: 100 * np.mean([run[name] for run in runs]) for name in runs[0]}
    assert means["acc"] == pytest.approx(90.3, abs=0.5)
    assert means["nmi"] == pytest.approx(83.3, abs=0.5)
    assert means["purity"] == pytest.approx(90.3, abs=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_warning_says_that_views_of_noise_hide_the_structure(seed):
    views, y = blob_views(np.random.default_rng(seed), strengths=(2, 2, 0, 0, 0))
    with pytest.warns(WeightsWarning, match="view 2, view 3 and view 4"):
        model = SimpleMKKM(4, random_state=0).fit(views)
    assert adjusted_rand_index(y, model.baseline_labels_) > 0.95
    assert adjusted_rand_index(y, model.labels_) < 0.6
    assert model.baseline_agreement_ == pytest.approx(
        adjusted_rand_index(model.labels_, model.baseline_labels_)
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_warning_disturbs_when_all_views_are_good(seed):
    views, y = blob_views(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SimpleMKKM(4, random_state=0).fit(views)
    assert adjusted_rand_index(y, model.labels_) > 0.95


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n", [120, 400])
def test_stopping_at_max_iter_warns_with_the_gap_that_is_left(solver, n):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(0), n=n, k=4, strengths=(2, 1, 0.5, 0)
    )
    model = SimpleMKKM(4, solver=solver, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"gap of .* raise max_iter"):
        model.fit(kernels)
    assert not model.converged_
    assert model.duality_gap_ > model.tol


def test_the_reduced_gradient_can_stop_as_the_paper_does():
    kernels, _ = gaussian_kernels(
        np.random.default_rng(0), n=100, k=4, strengths=(2, 1, 0.5)
    )
    paper = SimpleMKKM(4, solver="reduced-gradient", stopping="step").fit(kernels)
    certified = SimpleMKKM(4).fit(kernels)
    assert paper.converged_
    assert paper.objective_ == pytest.approx(certified.objective_, rel=1e-3)


def test_gaps_are_those_of_the_mixed_kernels_spectrum():
    kernels, _ = gaussian_kernels(np.random.default_rng(7), n=350, k=4)
    model = SimpleMKKM(4, random_state=0).fit(kernels)
    stack = as_stack(kernels)
    values = np.linalg.eigvalsh(stack.mix(model.coefficients_).dense())[::-1]
    assert model.cluster_gap_ == pytest.approx(1 - values[3] / values[2], abs=1e-3)
    assert model.eigengap_ == pytest.approx(1 - values[4] / values[3], abs=1e-2)
