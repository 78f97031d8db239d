"""SimpleMKKM drawn towards the average kernel."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from conftest import blob_views, gaussian_kernels
from mkclust import AverageKKM, SimpleMKKM, WeightsWarning
from mkclust.engine.simplex import best_mixture, best_response
from mkclust.linalg.operators import Anchor, AnchoredOperator
from mkclust.methods import solve_simple_mkkm
from mkclust.methods.simple_mkkm import structure_kept
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from problems import FAMILIES, leading, projector, random_weights


def raw(kernels):
    return as_stack(kernels, center=False, normalize=False)


def anchored_matrix(kernels, weights, k, anchor):
    """Return the matrix whose eigenvalues the anchored problem is about, written out."""
    mix = np.tensordot(weights**2, kernels, 1)
    uniform = kernels.mean(axis=0)
    H_0 = leading(uniform, k)
    c = anchor * np.linalg.eigvalsh(uniform)[-k:].mean() / len(kernels)
    return mix + c * projector(H_0)


# The certificate -------------------------------------------------------------------------------


@pytest.mark.parametrize("anchor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_of_an_anchored_problem_is_true(family, seed, anchor):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 40)), int(rng.integers(2, 7))
    k = int(rng.integers(1, min(6, n)))
    kernels = family(rng, n, m, k)
    solution = solve_simple_mkkm(raw(kernels), k, anchor=anchor)
    assert solution.converged
    # Where the average kernel ties, its partition is one of many: take the one that anchors.
    H_0 = solution.baseline.vectors[:, :k]
    c = anchor * np.linalg.eigvalsh(kernels.mean(axis=0))[-k:].mean() / m

    def J(gamma):
        K = np.tensordot(gamma**2, kernels, 1) + c * projector(H_0)
        return np.linalg.eigvalsh(K)[-k:].sum()

    value = J(solution.weights)
    assert value == pytest.approx(solution.objective, rel=1e-9)
    assert value - solution.lower_bound <= 2e-6 * value
    for _ in range(20):
        assert J(random_weights(rng, m)) >= solution.lower_bound * (1 - 1e-9)


@pytest.mark.parametrize("anchor", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("strengths", [(2, 2, 0, 0, 0), (1, 1, 1)])
def test_the_certificate_is_true_in_the_subspace_too(strengths, anchor):
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=400, strengths=strengths)
    stack = as_stack(kernels)
    solution = solve_simple_mkkm(stack, 4, anchor=anchor)
    K = anchored_matrix(stack.entries(), solution.weights, 4, anchor)
    value = np.linalg.eigvalsh(K)[-4:].sum()
    assert solution.converged
    assert solution.gap <= 1e-6
    assert value - solution.lower_bound <= 2e-6 * value
    np.testing.assert_allclose(projector(solution.partition), projector(leading(K, 4)), atol=2e-3)


@pytest.mark.parametrize("n", [60, 400])
def test_no_anchor_is_the_papers_problem_to_the_last_digit(n):
    kernels, _ = gaussian_kernels(np.random.default_rng(1), n=n, strengths=(2, 1, 1))
    plain, zero = (solve_simple_mkkm(as_stack(kernels), 4, **o) for o in ({}, {"anchor": 0.0}))
    np.testing.assert_array_equal(plain.weights, zero.weights)
    np.testing.assert_array_equal(plain.history, zero.history)
    assert plain.projections is None
    models = [SimpleMKKM(4, random_state=0, **o).fit(kernels) for o in ({}, {"anchor": 0})]
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    assert models[0].anchor_ == 0


@pytest.mark.parametrize("n", [60, 400])
def test_a_large_anchor_gives_the_average_kernels_partition(n):
    kernels, _ = gaussian_kernels(np.random.default_rng(1), n=n, strengths=(2, 2, 0, 0, 0))
    average = AverageKKM(4, random_state=0).fit(kernels)
    model = SimpleMKKM(4, anchor=1e3, random_state=0).fit(kernels)
    np.testing.assert_allclose(
        projector(model.embedding_), projector(average.embedding_), atol=1e-3
    )
    assert model.structure_kept_ == pytest.approx(1, abs=1e-6)
    assert model.duality_gap_ <= 1e-6


def test_more_anchor_keeps_more_structure():
    kernels, _ = gaussian_kernels(np.random.default_rng(2), n=240, strengths=(2, 2, 0, 0, 0))
    kept = [
        structure_kept(found.partition, found.baseline)
        for found in (solve_simple_mkkm(as_stack(kernels), 4, anchor=a) for a in (0.1, 1, 10))
    ]
    assert kept[0] < kept[1] < kept[2]
    assert kept[2] > 0.99


@pytest.mark.parametrize("seed", range(30))
def test_a_mixture_with_offsets_is_as_good_as_that_of_another_solver(seed):
    rng = np.random.default_rng(seed)
    J, m = int(rng.integers(2, 10)), int(rng.integers(1, 8))
    A, b = rng.random((J, m)) + 1e-3, rng.random(J) * 10 ** rng.uniform(-3, 1)
    value = lambda q: best_response(q @ A)[1] + q @ b  # noqa: E731
    q = best_mixture(A, np.full(J, 1 / J), b)
    assert np.all(q >= 0)
    assert q.sum() == pytest.approx(1)
    gamma, _ = best_response(q @ A)
    assert np.max(A @ gamma**2 + b) <= value(q) * (1 + 1e-7)  # no mixture reaches beyond this
    other = minimize(
        lambda q: -value(np.maximum(q, 0)),
        np.full(J, 1 / J),
        bounds=[(0, 1)] * J,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        method="SLSQP",
    )
    assert value(q) >= -other.fun * (1 - 1e-6)


def test_an_anchored_operator_is_the_sum_written_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 30))
    stack = raw((X @ X.T)[None])
    H = np.linalg.qr(rng.normal(size=(30, 3)))[0]
    operator = AnchoredOperator(stack.kernel(0), Anchor(H, 2.5))
    V = rng.normal(size=(30, 4))
    np.testing.assert_allclose(operator @ V, operator.dense() @ V, atol=1e-10)
    np.testing.assert_allclose(operator.dense(), X @ X.T + 2.5 * projector(H), atol=1e-10)


# The estimator ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [90, 300])
@pytest.mark.parametrize("anchor", [4.0, "auto"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_samples_are_embedded_by_an_anchored_model_too(n, anchor, dtype):
    views, y = blob_views(np.random.default_rng(0), n=2 * n, strengths=(2, 2, 0, 0))
    train, new = ([x[part].astype(dtype) for x in views] for part in (slice(n), slice(n, None)))
    model = SimpleMKKM(4, anchor=anchor, random_state=0).fit(train)
    np.testing.assert_array_equal(model.predict(train), model.labels_)
    np.testing.assert_allclose(model.transform(train), model.embedding_, atol=5e-3)
    assert adjusted_rand_index(y[n:], model.predict(new)) > 0.9


@pytest.mark.parametrize("strengths", [(2, 2, 0, 0, 0), (2, 0.7, 0), (2, 0, 0, 0)])
@pytest.mark.parametrize("seed", range(3))
def test_the_anchor_chosen_protects_against_noise_views(strengths, seed):
    views, y = blob_views(np.random.default_rng(seed), strengths=strengths)
    model = SimpleMKKM(4, anchor="auto", random_state=0).fit(views)  # and warns of nothing
    average = AverageKKM(4, random_state=0).fit(views)
    truth = adjusted_rand_index(y, average.labels_)
    assert adjusted_rand_index(y, model.labels_) >= truth - 0.05
    assert model.anchor_ > 0
    assert model.duality_gap_ <= 1e-6
    with pytest.warns(WeightsWarning, match="anchor='auto'"):
        plain = SimpleMKKM(4, random_state=0).fit(views)
    assert adjusted_rand_index(y, plain.labels_) < truth - 0.2


@pytest.mark.parametrize("seed", range(3))
def test_no_anchor_is_chosen_where_nothing_needs_protection(seed):
    views, _ = blob_views(np.random.default_rng(seed), strengths=(2, 2, 2))
    model = SimpleMKKM(4, anchor="auto", random_state=0).fit(views)
    plain = SimpleMKKM(4, random_state=0).fit(views)
    assert model.anchor_ == 0
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


@pytest.mark.data
def test_on_uci_digit_the_anchor_chosen_costs_nothing(uci_digit):
    views, y = uci_digit
    model = SimpleMKKM(10, anchor="auto", random_state=0).fit(views)
    plain = SimpleMKKM(10, random_state=0).fit(views)
    found, paper = (adjusted_rand_index(y, m.labels_) for m in (model, plain))
    assert found >= paper - 0.02


@pytest.mark.parametrize("anchor", [2.0, "auto"])
def test_the_certificate_is_that_of_the_average_kernels_true_partition(anchor):
    kernels, _ = gaussian_kernels(np.random.default_rng(1), n=800, strengths=(2, 2, 0, 0, 0))
    model = SimpleMKKM(4, anchor=anchor, random_state=0).fit(kernels)
    K = anchored_matrix(as_stack(kernels).entries(), model.weights_, 4, model.anchor_)
    value = np.linalg.eigvalsh(K)[-4:].sum()
    assert model.objective_ == pytest.approx(value, rel=model.tol)
    assert -1e-7 * value <= value - model.lower_bounds_[-1] <= 1.1e-6 * value


def test_the_anchor_chosen_does_not_depend_on_the_seed():
    views, _ = blob_views(np.random.default_rng(3), n=90, k=5, strengths=(0.7, 0.7, 0, 0))
    found = [SimpleMKKM(5, anchor="auto", random_state=s).fit(views) for s in (None, 0, 1, 2)]
    assert len({model.anchor_ for model in found}) == 1
    for model in found:
        np.testing.assert_array_equal(model.weights_, found[0].weights_)


def test_one_cluster_needs_no_anchor():
    views, _ = blob_views(np.random.default_rng(0), n=60, strengths=(2, 0))
    model = SimpleMKKM(1, anchor="auto", random_state=0).fit(views)
    assert model.anchor_ == 0
    assert not model.labels_.any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"anchor": -1}, "anchor=-1: pass a number between 0 and 1000, or pass 'auto'"),
        ({"anchor": 1e6}, "anchor=1000000.0: pass a number between 0 and 1000"),
        ({"anchor": float("inf")}, "anchor=inf"),
        ({"anchor": "automatic"}, "anchor='automatic'"),
        ({"anchor": None}, "anchor=None"),
        ({"anchor": 1, "solver": "reduced-gradient"}, "anchor=1: the reduced gradient.*no anchor"),
    ],
)
def test_an_anchor_that_cannot_be_is_refused(parameters, message):
    views, _ = blob_views(np.random.default_rng(0), n=60)
    with pytest.raises(ValueError, match=message):
        SimpleMKKM(3, **parameters).fit(views)


@pytest.mark.parametrize("anchor", [1.0, "auto"])
def test_an_anchor_with_one_kernel_is_refused(anchor):
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=60, strengths=(2,))
    with pytest.raises(ValueError, match="one kernel.*at least two kernels, or anchor=0"):
        SimpleMKKM(3, anchor=anchor).fit(kernels)


# The command line ------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that clusters five views, three of them noise, from the command line."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from mkclust.cli import app

    monkeypatch.chdir(tmp_path)
    views, y = blob_views(np.random.default_rng(0), strengths=(2, 2, 0, 0, 0))
    np.savez("views.npz", **{f"v{i}": view for i, view in enumerate(views)}, y=y)
    return lambda *options: CliRunner().invoke(app, ["cluster", "views.npz", "-k", "4", *options])


def record():
    return json.loads(Path("run.json").read_text())


@pytest.mark.parametrize("options", [["--anchor", "auto"], ["--set", "anchor=auto"]])
def test_the_command_line_chooses_the_anchor_where_asked_and_says_so(run, options):
    result = run(*options)
    assert result.exit_code == 0, result.stderr
    assert "--anchor 0 is the paper's method" in result.stdout
    assert record()["parameters"]["anchor"] == "auto"
    assert record()["scores"]["ari"] > 0.9


@pytest.mark.parametrize("options", [[], ["--anchor", "0"]])
def test_the_papers_method_is_the_default_and_warns(run, options):
    result = run(*options)
    assert "Anchor: 0, the paper's method." in result.stdout
    assert "suppress structure" in result.stderr
    assert record()["parameters"]["anchor"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--anchor", "-1"], "anchor=-1"),
        (["--anchor", "much"], "anchor='much'"),
        (["--anchor", "1", "--method", "mkkm"], "mkkm has no such option: anchor"),
        (["--anchor", "1", "--solver", "reduced-gradient"], "no anchor"),
    ],
)
def test_an_anchor_that_cannot_be_is_one_line(run, options, words):
    result = run(*options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_other_methods_and_solvers_run_without_an_anchor(run):
    assert run("--method", "mkkm").exit_code == 0
    assert "anchor" not in record()["parameters"]
    assert run("--solver", "reduced-gradient").exit_code == 0
    assert record()["parameters"]["anchor"] == 0
