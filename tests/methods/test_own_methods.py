"""A method that a user writes is one like any other: on pages, in displays, in commands."""

import html
import json
import re
import sys
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import own_methods
from conftest import blob_views
from mkclust import METHODS, cli, diagnose, estimate_memory, plots
from mkclust.bench import PlanError, read_plan, run_plan
from mkclust.bench.rows import read_rows, read_solves
from mkclust.cli.printing import kernel_table
from mkclust.explain.page import fit_page
from mkclust.kernels import Nystroem
from mkclust.methods import InductiveClusterer, MultipleKernelClusterer
from mkclust.plots import (
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    SortedKernelDisplay,
)

pytestmark = pytest.mark.slow

matplotlib.use("agg")
OWN = [own_methods.Powered, own_methods.FirstKernel]
QUICK = {"n_resamples": 2, "leave_one_out": False}


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


def test_the_memory_of_a_method_of_the_registry_is_that_of_its_matrices(monkeypatch):
    monkeypatch.setitem(METHODS, "powered", own_methods.Powered)
    monkeypatch.setattr(own_methods.Powered, "MATRICES", 3)
    own, known = (estimate_memory(900, 3, method=name) for name in ("powered", "simplemkkm"))
    assert own.n_bytes["dense"] - known.n_bytes["dense"] == 2 * 8 * 900**2
    with pytest.raises(ValueError, match="method='power': choose one of simplemkkm, .*, powered"):
        estimate_memory(900, 3, method="power")


@pytest.mark.parametrize("method", OWN)
def test_an_own_method_has_a_page_displays_and_a_diagnosis(method, problem):
    views, y = problem
    model = method(3, random_state=0).fit(views)
    words = words_of(fit_page(model, views, y=y, **QUICK))
    assert model.WEIGHT_MEANING in words
    assert f"by {method.__name__}" in words
    assert diagnose(model, views, leave_one_out=False).names == ("view 0", "view 1")
    for display in (KernelWeightsDisplay, ConvergenceDisplay, EmbeddingDisplay):
        display.from_estimator(model)
    SortedKernelDisplay.from_estimator(model, views)
    matplotlib.pyplot.close("all")


def test_the_paragraph_of_an_own_method_has_its_words_its_parameter_and_its_papers(problem):
    model = own_methods.Powered(3, strength=2.0, random_state=0).fit(problem[0])
    words = words_of(fit_page(model, problem[0], **QUICK))
    assert f"by Powered [1], {model.SUMMARY} (strength = 2.0)." in words
    assert "[1] A. User. Powers of Kernels. 2026." in words
    assert "[2] The mkclust developers." in words


def test_a_method_that_says_nothing_of_itself_has_a_paragraph_without_gaps(problem):
    model = own_methods.FirstKernel(3, random_state=0).fit(problem[0])
    words = words_of(fit_page(model, problem[0], **QUICK))
    assert "We combined the 2 kernels by FirstKernel. The method converged" in words
    assert "[1] The mkclust developers." in words
    assert "[2]" not in words.partition("[1] The mkclust developers.")[2][:200]


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


def test_features_are_refused_where_a_method_needs_the_entries_of_kernels(problem):
    model = own_methods.FirstKernel(3)
    model.approximation = Nystroem(10)
    for refusal in (model.check_parameters, lambda: model.fit(problem[0])):
        with pytest.raises(ValueError, match="FirstKernel needs the entries.*SimpleMKKM"):
            refusal()


def test_the_method_of_the_documentation_is_the_one_tested_here(problem):
    text = (Path(__file__).parents[2] / "docs" / "guides" / "own_method.md").read_text(
        encoding="utf-8"
    )
    [program] = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {"__name__": "powered"}
    exec(program, names)
    written = names["Powered"](3, strength=2.0, random_state=0).fit(problem[0])
    here = own_methods.Powered(3, strength=2.0, random_state=0).fit(problem[0])
    np.testing.assert_allclose(written.weights_, here.weights_, rtol=1e-6)
    np.testing.assert_array_equal(written.predict(problem[0]), here.labels_)
    with pytest.raises(ValueError, match="strength=-1"):
        written.set_params(strength=-1).fit(problem[0])


@pytest.mark.parametrize("settings", [{}, {"solver": "saddle"}])
def test_page_displays_and_command_read_a_method_s_weights_by_one_sentence(settings, problem):
    for name, method in METHODS.items():
        if settings and name != "mkkm-mm":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = method(3, random_state=0, **settings).fit(problem[0])
        against = name in ("simplemkkm", "localized-simplemkkm", "anchored-mkkm", "mkkm-mm")
        sentence = plots.LARGE_WEIGHT if against else plots.MIXING_WEIGHT
        if name == "agreement-kkm":
            sentence = plots.AGREEING_WEIGHT
        assert sentence == model.WEIGHT_MEANING
        assert kernel_table(model).endswith(sentence)
        assert KernelWeightsDisplay.from_estimator(model).note == sentence
        if name in ("mkkm-mm", "mkkm"):
            assert sentence in words_of(fit_page(model, problem[0], **QUICK))
    matplotlib.pyplot.close("all")


def test_the_bases_say_what_every_method_says_of_itself():
    assert issubclass(InductiveClusterer, MultipleKernelClusterer)
    for method in METHODS.values():
        assert method.SUMMARY
        assert method.REFERENCES


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Powered", "FirstKernel"])
def test_the_command_clusters_by_a_class_that_is_named(name, command):
    own = ["--set", "strength=2.0"] if name == "Powered" else []
    method = f"own_methods:{name}"
    result = command("cluster", "d.npz", "-k", "3", "--method", method, *own)
    assert result.exit_code == 0, result.stderr
    assert getattr(own_methods, name).WEIGHT_MEANING in result.stdout
    with open("run.json") as file:
        record = json.load(file)
    assert record["method"] == method
    assert record["parameters"].get("strength", 2.0) == 2.0


def test_an_anchor_of_an_own_method_is_left_alone(command):
    result = command("cluster", "d.npz", "-k", "3", "--method", "own_methods:Anchored",
                     "--report", "fit.html")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    with open("run.json") as file:
        assert json.load(file)["parameters"]["anchor"] == 3.0
    with open("fit.html", encoding="utf-8") as file:
        assert "(anchor = 3.0, strength = 1.0)" in words_of(file.read())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("nowhere.at_all:Method", "cannot be imported (ModuleNotFoundError"),
        ("own_methods:Powred", "did you mean own_methods:Powered?"),
        ("own_methods:Demanding", "cannot be made (TypeError"),
        ("sklearn.cluster:KMeans", "MultipleKernelClusterer"),
        ("own_methods:", "write package.module:Class"),
        ("simplemkk", "did you mean 'simplemkkm'"),
    ],
)
def test_a_class_that_cannot_cluster_is_refused_in_a_sentence(method, message, command):
    result = command("cluster", "d.npz", "-k", "3", "--method", method)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_landmarks_serve_own_methods_that_know_new_samples_only(command):
    options = ["cluster", "d.npz", "-k", "3", "--landmarks", "20"]
    result = command(*options, "--method", "own_methods:Powered")
    assert result.exit_code == 0, result.stderr
    result = command(*options, "--method", "own_methods:FirstKernel")
    assert result.exit_code == 2
    assert "own_methods:FirstKernel needs all entries" in result.stderr


def test_a_benchmark_solves_an_own_method_once_and_on_the_kernels_of_the_data(command, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'repetitions = 2\ngrid_repetitions = 1\nn_init = 1\ndatasets = [{ path = "d.npz" }]\n'
        'methods = ["avg-kkm", "own_methods:FirstKernel",\n'
        '  { method = "own_methods:Powered", grid = "authors", parameters = { strength = 0.5 } }]\n'
    )
    run_plan(read_plan("plan.toml"), "out", n_processes=1)
    rows, solves = read_rows("out"), read_solves("out")
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["method"] for row in rows} == {"avg-kkm", "firstkernel", "powered"}
    settings = {row["parameters"] for row in rows if row["method"] == "powered"}
    # The default strength, 1.0, is not written down.
    assert settings == {'{"strength": 0.5}', '{"strength": 0.0}', "{}", '{"strength": 2.0}'}
    first = [solve for solve in solves if solve["method"] == "firstkernel"]
    assert [solve["weights"] for solve in first] == [[1.0, 0.0]]
    # Of strength zero all kernels count the same: the average kernel's scores.
    alike = [
        [row["acc"] for row in rows if row["method"] == method and row["repetition"] == 0
         and row["parameters"] == parameters]
        for method, parameters in (("powered", '{"strength": 0.0}'), ("avg-kkm", "{}"))
    ]  # fmt: skip
    assert alike[0] == alike[1]


def test_an_own_method_with_an_input_is_fitted_on_it_as_any_clusterer(command, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'repetitions = 1\ngrid_repetitions = 1\ndatasets = [{ path = "d.npz" }]\n'
        'methods = [{ method = "own_methods:Powered", input = "views" }]\n'
    )
    run_plan(read_plan("plan.toml"), "out", n_processes=1)
    [row] = read_rows("out")
    assert (row["status"], row["entry"]) == ("ok", "own_methods:Powered on views")
    assert read_solves("out") == []


# --- what a plan imports ----------------------------------------------------------------------


@pytest.fixture
def marking(command, tmp_path, monkeypatch):
    """Put a module that leaves a mark when it is imported where plans find it."""
    (tmp_path / "marking.py").write_text(
        "import pathlib\n"
        "from own_methods import Demanding, Powered\n"
        f"pathlib.Path({str(tmp_path / 'mark')!r}).touch()\n"
    )
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    for name in ("marking", "leaving"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def plan_text(methods, **settings):
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join([*lines, 'datasets = [{ path = "d.npz" }]', f"methods = [{methods}]"])


@pytest.mark.parametrize(
    ("methods", "settings", "message"),
    [
        ('"marking:Powered", "mkkmm"', {}, "unknown method"),
        ('"marking:Powered", "marking:Powered"', {}, "twice"),
        ('"marking:Powered", { method = "lkam", parameters = { reg = -1 } }', {}, "reg"),
        ('"marking:Powered", "marking"', {}, "unknown method"),
        ('"marking:Powered", "mark ing:Powered"', {}, "write package.module:Class"),
        ('"marking:Powered"', {"seed": 2**32}, "seed"),
        ('"marking:Powered"', {"repetitions": 1, "grid_repetitions": 2}, "grid_repetitions"),
    ],
)
def test_a_plan_that_is_refused_has_imported_nothing(methods, settings, message, marking):
    (marking / "plan.toml").write_text(plan_text(methods, **settings))
    with pytest.raises(PlanError, match=message):
        read_plan(marking / "plan.toml")
    assert not (marking / "mark").exists()


def test_a_plan_imports_the_modules_it_names_and_no_others(marking):
    (marking / "plan.toml").write_text(plan_text('"avg-kkm", "own_methods:Powered"'))
    read_plan(marking / "plan.toml")
    assert not (marking / "mark").exists()
    (marking / "plan.toml").write_text(plan_text('"avg-kkm", "marking:Powered"'))
    assert read_plan(marking / "plan.toml").methods[1].kind == "kernel-method"
    assert (marking / "mark").exists()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"leaving:Method"', "line 3: method: 'leaving:Method' cannot be imported .SystemExit"),
        ('"nowhere:Method"', "No module named 'nowhere'.; install it, or name its folder in PYTH"),
        ('"marking:Demanding"', "line 3: method: Demanding.__init__.. missing 1 required"),
        ('{ method = "marking:Powered", grid = { power = [1] } }', "has no parameter 'power'"),
        ('{ method = "marking:Powered", parameters = { n_init = 2 } }', "is set by the benchmark"),
        ('{ method = "sklearn.cluster:KMeans", grid = "authors" }', "give lists"),
    ],
)
def test_a_class_that_a_plan_cannot_use_is_told_with_its_line(entry, message, marking):
    (marking / "plan.toml").write_text(plan_text(f'"avg-kkm",\n  {entry}'))
    with pytest.raises(PlanError, match=message):
        read_plan(marking / "plan.toml")


def test_the_help_says_that_classes_run_code(command):
    for name in ("bench", "cluster"):
        assert "runs its code" in " ".join(command(name, "--help").stdout.split())
