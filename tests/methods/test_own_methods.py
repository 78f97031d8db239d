"""A method that a user writes is one like any other: on pages, in displays, in commands."""

import html
import json
import re
import sys

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

import own_methods
from conftest import blob_views
from mkclust import cli, diagnose
from mkclust.bench import PlanError, read_plan
from mkclust.explain.report import report_html
from mkclust.plots import (
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    SortedKernelDisplay,
)

pytestmark = pytest.mark.slow

matplotlib.use("agg")
OWN = [own_methods.Powered, own_methods.FirstKernel]


@pytest.fixture(scope="module")
def problem():
    return blob_views(np.random.default_rng(0), n=60, k=3, strengths=(1.0, 0.7))


@pytest.fixture
def command(problem, tmp_path, monkeypatch):
    """Return a function that runs a command in a folder with the views."""
    monkeypatch.chdir(tmp_path)
    views, y = problem
    np.savez("d.npz", a=views[0], b=views[1], y=y)
    return lambda *args: CliRunner().invoke(cli.app, args)


def words_of(page):
    """Return the text of a page."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


@pytest.mark.parametrize("method", OWN)
def test_an_own_method_has_a_page_displays_and_a_diagnosis(method, problem):
    views, y = problem
    model = method(3, random_state=0).fit(views)
    words = words_of(report_html(model, views, y, n_resamples=2))
    assert model.WEIGHT_MEANING in words
    assert f"by {method.__name__}" in words
    assert diagnose(model, views, leave_one_out=False).names == ("view 0", "view 1")
    for display in (KernelWeightsDisplay, ConvergenceDisplay, EmbeddingDisplay):
        display.from_estimator(model)
    SortedKernelDisplay.from_estimator(model, views)
    matplotlib.pyplot.close("all")


def test_without_coefficients_the_similarities_are_cosines_of_the_embedding(problem):
    model = own_methods.FirstKernel(3, random_state=0).fit(problem[0])
    rows = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    np.testing.assert_allclose(model.mixed_kernel(problem[0]), rows @ rows.T, atol=1e-12)
    assert model.describe_mixed_kernel().startswith("cosines between rows of the embedding")


def test_an_inductive_method_predicts_and_one_without_the_means_is_told_what_to_return(problem):
    model = own_methods.Powered(3, random_state=0).fit(problem[0])
    np.testing.assert_array_equal(model.predict(problem[0]), model.labels_)
    with pytest.raises(TypeError, match="Unfinished cannot embed.*derive Unfinished from Multiple"):
        own_methods.Unfinished(3).fit(problem[0])


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Powered", "FirstKernel"])
def test_the_command_clusters_by_a_class_that_is_named(name, command):
    own = ["--set", "strength=2.0"] if name == "Powered" else []
    method = f"own_methods:{name}"
    result = command("cluster", "d.npz", "-k", "3", "--method", method, "-v", *own)
    assert result.exit_code == 0, result.stderr
    assert getattr(own_methods, name).WEIGHT_MEANING in result.stdout
    with open("run.json") as file:
        record = json.load(file)
    assert record["method"] == method
    assert record["parameters"].get("strength", 2.0) == 2.0


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("nowhere.at_all:Method", "cannot be imported (ModuleNotFoundError"),
        ("own_methods:Powred", "Powered"),
        ("own_methods:Demanding", "Demanding"),
        ("sklearn.cluster:KMeans", "MultipleKernelClusterer"),
    ],
)
def test_a_class_that_cannot_cluster_is_refused_in_a_sentence(method, message, command):
    result = command("cluster", "d.npz", "-k", "3", "--method", method)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


# --- what a plan imports ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ('["marking:Powered", "mkkmm"]', "unknown method"),
        ('["marking:Powered", "marking:Powered"]', "twice"),
        ('["marking:Powered"]\nseed = 4294967296', "seed"),
    ],
)
def test_a_plan_that_is_refused_has_imported_nothing(
    methods, message, command, tmp_path, monkeypatch
):
    program = "import pathlib\nfrom own_methods import Powered\npathlib.Path('mark').touch()\n"
    (tmp_path / "marking.py").write_text(program)
    monkeypatch.delitem(sys.modules, "marking", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = tmp_path / "plan.toml"
    plan.write_text(f'datasets = [{{ path = "d.npz" }}]\nmethods = {methods}\n')
    with pytest.raises(PlanError, match=message):
        read_plan(plan)
    assert not (tmp_path / "mark").exists()
