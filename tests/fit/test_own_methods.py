"""Methods of users, outside the package: in reports, displays, commands and plans."""

import html
import sys

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import methods as own_methods
from helpers.kernels import ONE_GAUSSIAN, standardized
from helpers.views import blob_views
from mkclust import KernelBank, cli, diagnose
from mkclust.bench import PlanError, read_plan
from mkclust.explain.report import report_html
from mkclust.plots import (
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    SortedKernelDisplay,
)
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

matplotlib.use("agg")
OWN = [own_methods.Powered, own_methods.FirstKernel, own_methods.MedianKernel]


@pytest.fixture(scope="module")
def problem():
    return blob_views(np.random.default_rng(0), n=60, k=3, strengths=(1.0, 0.7))


@pytest.mark.parametrize("method", OWN)
def test_an_own_method_has_a_page_displays_and_a_diagnosis(method, problem):
    views, y = problem
    model = method(3, random_state=0).fit(views)
    page = html.unescape(report_html(model, views, y, n_resamples=2))
    used = model.weights_[model.weights_ > 0]
    # Equal weights mean nothing, and the page speaks of views.
    meaning = model.WEIGHT_MEANING.replace("kernel", "view")
    assert (meaning in page) == (np.ptp(used) > 0)
    assert method.__name__ in page
    assert diagnose(model, views, leave_one_out=False).names == ("view 0", "view 1")
    for display in (KernelWeightsDisplay, ConvergenceDisplay, EmbeddingDisplay):
        display.from_estimator(model)
    SortedKernelDisplay.from_estimator(model, views)
    matplotlib.pyplot.close("all")


def test_without_coefficients_the_similarities_are_cosines_of_the_embedding(problem):
    model = own_methods.FirstKernel(3, random_state=0).fit(problem[0])
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    np.testing.assert_allclose(
        model.mixed_kernel(problem[0]), rows @ rows.T, atol=1e-12
    )
    assert model.describe_mixed_kernel().startswith(
        "cosines between rows of the embedding"
    )


def test_the_similarities_of_a_kernel_of_its_own_are_those_that_were_relaxed():
    views, _ = blob_views(np.random.default_rng(0), n=60, k=3, strengths=(1, 0.7, 0.5))
    kernels = np.array(KernelBank(**ONE_GAUSSIAN).fit_transform(views))
    model = own_methods.MedianKernel(3, random_state=0).fit(kernels)
    relaxed = model.solve(as_stack(kernels)).kernel.dense()
    median = np.median(standardized(kernels), axis=0)
    np.testing.assert_allclose(relaxed, median, atol=1e-12)
    # An indefinite kernel is relaxed as it is, by its largest eigenvalues.
    values = np.linalg.eigvalsh(median)
    assert values[0] < -1e-3
    np.testing.assert_allclose(model.objective_, values[-3:].sum())

    np.testing.assert_allclose(model.mixed_kernel(kernels), median, atol=1e-12)
    some = [41, 3, 17, 3]
    np.testing.assert_allclose(
        model.mixed_kernel(kernels, some), median[np.ix_(some, some)], atol=1e-12
    )
    assert model.describe_mixed_kernel().startswith("the median of the kernels")


def test_an_inductive_method_predicts_and_one_without_the_means_is_told_what_to_return(
    problem,
):
    model = own_methods.Powered(3, random_state=0).fit(problem[0])
    np.testing.assert_array_equal(model.predict(problem[0]), model.labels_)
    with pytest.raises(
        TypeError, match="Unfinished cannot embed.*derive Unfinished from Multiple"
    ):
        own_methods.Unfinished(3).fit(problem[0])


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("nowhere.at_all:Method", "cannot be imported (ModuleNotFoundError"),
        ("helpers.methods:Powred", "Powered"),
        ("helpers.methods:Demanding", "Demanding"),
        ("sklearn.cluster:KMeans", "MultipleKernelClusterer"),
    ],
)
def test_a_class_that_cannot_cluster_is_refused_in_a_sentence(method, message):
    result = CliRunner().invoke(
        cli.app, ["cluster", "d.npz", "-k", "3", "--method", method]
    )
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_plan_that_is_refused_has_imported_nothing(tmp_path, monkeypatch):
    program = "import pathlib\nfrom helpers.methods import Powered\n"
    program += "pathlib.Path('mark').touch()\n"
    (tmp_path / "marking.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "marking", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "d.npz").touch()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'datasets = [{ path = "d.npz" }]\nmethods = ["marking:Powered", "mkkmm"]\n'
    )
    with pytest.raises(PlanError, match="unknown method"):
        read_plan(plan)
    assert not (tmp_path / "mark").exists()
