import csv
import hashlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import mkclust

pytest.importorskip("typer")

from typer.testing import CliRunner

from mkclust import cli, metrics
from mkclust.cli import approximation, cluster, fitting, inputs, outputs, printing
from mkclust.cli.failures import CommandError
from mkclust.datasets.digits import Table
from mkclust.kernels import Nystroem
from mkclust.samples import dask

PYTHON = [sys.executable, "-m", "mkclust.cli"]
Recommended = mkclust.METHODS[mkclust.RECOMMENDED]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, which holds only what the test puts there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [25, 20, 15])
    centers = 4 * rng.normal(size=(3, 6))
    X = centers[y] + rng.normal(size=(60, 6))
    views = {"left": X[:, :3], "right": X[:, 3:]}
    kernels = np.array([gaussian(X[:, :2]), gaussian(X[:, 2:4]), gaussian(X[:, 4:])])
    return {"y": y, "views": views, "kernels": kernels}


def gaussian(X):
    distances = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-distances / distances.mean())


def invoke(*args):
    return CliRunner().invoke(cli.app, [str(arg) for arg in args])


def succeed(*args):
    result = invoke(*args)
    assert result.exit_code == 0, result.stderr
    return result


def fail(*args):
    """Run a command that must fail as promised: one line, exit code 2, and no new file."""
    before = sorted(os.listdir())
    result = invoke(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("mkclust: error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir()) == before
    return result.stderr


def read_labels(path="labels.csv"):
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "cluster", "silhouette", "margin"]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    return np.array([int(row[1]) for row in rows])


def read_run(path="run.json"):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


def save_npz(path, data):
    np.savez(path, **data["views"], y=data["y"])


def save_mat(path, data):
    scipy.io.savemat(path, {**data["views"], "gnd": data["y"][:, None]})


def save_h5(path, data):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, value in {**data["views"], "labels": data["y"]}.items():
            file[name] = value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "save"), [("d.npz", save_npz), ("d.mat", save_mat), ("d.h5", save_h5)]
)
def test_every_format_of_views_gives_the_labels_that_the_estimator_gives(name, save, data):
    save(name, data)
    result = succeed("cluster", name, "-k", 3)
    model = Recommended(3, random_state=0).fit(data["views"])
    np.testing.assert_array_equal(read_labels(), model.labels_)
    record = read_run()
    assert dict(zip(record["kernel_names"], record["weights"], strict=True)) == pytest.approx(
        dict(zip(data["views"], model.weights_, strict=True))
    )
    assert record["scores"] == metrics.scores(data["y"], model.labels_)
    for word in ("left", "right", "weight", "alignment", "labels.csv", "run.json"):
        assert word in result.stdout
    assert result.stderr == ""


def test_a_stack_of_kernels_in_a_npy_file_is_taken_as_kernels(data):
    np.save("K.npy", data["kernels"])
    succeed("cluster", "K.npy", "-k", 3)
    model = Recommended(3, kernels="precomputed", random_state=0).fit(data["kernels"])
    np.testing.assert_array_equal(read_labels(), model.labels_)
    np.testing.assert_allclose(read_run()["weights"], model.weights_, rtol=1e-12)
    assert read_run()["scores"] is None


@pytest.mark.slow
@pytest.mark.parametrize("method", mkclust.METHODS)
def test_every_method_is_run_and_recorded_by_its_name(method, data):
    np.savez("views.npz", **data["views"], y=data["y"])
    result = succeed("cluster", "views.npz", "-k", 3, "--method", method)
    record = json.loads(Path("run.json").read_text())
    assert record["method"] == method
    assert len(record["weights"]) == len(record["alignments"]) == 2
    assert "alignment" in result.stdout
    assert metrics.clustering_accuracy(data["y"], read_labels()) > 0.9


# One that predicts with a certificate, weights of samples, no mix, and what is recommended; the
# displays themselves are drawn of every method in tests/plots.
@pytest.mark.slow
@pytest.mark.parametrize("method", ["simplemkkm", "lmkkm", "lf-mvc", mkclust.RECOMMENDED])
def test_a_method_is_drawn_by_its_name(method, data):
    np.savez("views.npz", **data["views"], y=data["y"])
    succeed("cluster", "views.npz", "-k", 3, "--method", method, "--plot", "fit.png")
    assert Path("fit.png").stat().st_size > 10_000


def noisy_views():
    """Return two views of four clusters beside two of noise: defaults that differ would show."""
    rng, y = np.random.default_rng(1), np.arange(80) % 4
    views = {f"v{i}": 1.5 * rng.normal(size=(4, 5))[y] + rng.normal(size=(80, 5)) for i in (0, 1)}
    return views | {f"v{i}": rng.normal(size=(80, 5)) for i in (2, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kernels", "views", "table"])
@pytest.mark.parametrize("method", mkclust.METHODS)
def test_the_command_gives_the_labels_of_the_estimator_with_its_defaults(method, kind):
    views = noisy_views()
    if kind == "kernels":
        np.save("d.npy", np.array([gaussian(view) for view in views.values()]))
        X = mkclust.datasets.load("d.npy").kernels
    elif kind == "views":
        np.savez("d.npz", **views)
        X = list(mkclust.datasets.load("d.npz").views.values())
    else:
        np.save("d.npy", np.hstack(list(views.values())))
        (X,) = mkclust.datasets.load("d.npy").views.values()
    name = "d.npz" if kind == "views" else "d.npy"
    result = succeed("cluster", name, "-k", 4, "--method", method, "--seed", 2)
    estimator = mkclust.METHODS[method](n_clusters=4, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(X)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    record = read_run()
    assert record["weights"] == pytest.approx(model.weights_, abs=1e-12)
    # All that the command decides by itself is printed.
    assert (record["kernel_choice"] or "") in result.stdout
    assert (record["kernel_choice"] is not None) == (kind == "table")
    expected = json.loads(outputs.strict_json(estimator.get_params()))
    if kind == "kernels":
        expected["kernels"] = "precomputed"
    assert record["parameters"] == expected


def test_the_defaults_of_an_own_method_stay_as_they_are(data, monkeypatch):
    bank = mkclust.KernelBank(widths=(), polynomials=(), linear="linear")

    class Linear(mkclust.AverageKKM):
        def __init__(
            self,
            n_clusters=8,
            *,
            kernels=bank,
            center=False,
            n_init=3,
            random_state=None,
        ):
            super().__init__(
                n_clusters, kernels=kernels, center=center, n_init=n_init, random_state=random_state
            )

    monkeypatch.setitem(mkclust.METHODS, "linear", Linear)
    save_npz("d.npz", data)
    succeed("cluster", "d.npz", "-k", 3, "--method", "linear")
    model = Linear(3, random_state=0).fit(data["views"])
    np.testing.assert_array_equal(read_labels(), model.labels_)
    parameters = read_run()["parameters"]
    assert (parameters["n_init"], parameters["center"]) == (3, False)
    assert parameters["kernels"] == repr(model.kernels)
    succeed("cluster", "d.npz", "-k", 3, "--method", "linear", "--center", "--n-init", 2)
    parameters = read_run()["parameters"]
    assert (parameters["n_init"], parameters["center"]) == (2, True)


def test_the_kernels_of_a_known_data_set_are_said_and_recorded(data, monkeypatch):
    bank = {"widths": (0.5, 1.0), "polynomials": (), "linear": None}
    small = mkclust.datasets.Dataset(
        "digits", data["views"], None, data["y"], tuple(data["views"]), bank=bank
    )
    monkeypatch.setattr(mkclust.datasets, "load", lambda *_, **__: small)
    result = succeed("cluster", "digits", "-k", 3)
    model = Recommended(3, kernels=mkclust.KernelBank(**bank), random_state=0)
    np.testing.assert_array_equal(read_labels(), model.fit(data["views"]).labels_)
    assert read_run()["kernel_choice"] in result.stdout
    assert "Kernels: as the data set digits has them, KernelBank(" in result.stdout


def test_parameters_of_a_method_can_be_set(data):
    np.savez("views.npz", **data["views"])
    settings = ("--set", "reg=0.25", "--set", "neighbors=0.4", "--set", "max_iter=7")
    succeed("cluster", "views.npz", "-k", 3, "--method", "lkam", *settings)
    record = json.loads(Path("run.json").read_text())
    parameters = record["parameters"]
    assert (parameters["reg"], parameters["neighbors"], parameters["max_iter"]) == (0.25, 0.4, 7)
    switches = ("--set", "normalize=false", "--set", "center=True")
    succeed("cluster", "views.npz", "-k", 3, "--method", "avg-kkm", *switches)
    parameters = json.loads(Path("run.json").read_text())["parameters"]
    assert (parameters["normalize"], parameters["center"]) == (False, True)


@pytest.mark.parametrize(
    ("method", "setting", "words"),
    [
        ("mkkm-mir", "reg=-1", ["reg=-1", "at least 0"]),
        ("mkkm-mir", "reg=much", ["reg='much'"]),
        ("lkam", "neighbors=1.5", ["neighbors=1.5", "between 0 and 1"]),
        ("onkc", "proximity=0", ["proximity=0", "greater than 0"]),
        ("mkkm", "reg=1", ["mkkm has no such option: reg", "max_iter"]),
        ("lkam", "reg", ["NAME=VALUE"]),
        ("lkam", "=1", ["NAME=VALUE"]),
        ("lkam", "n_clusters=4", ["own option, -k"]),
        ("simplemkkm", "normalize=no", ["normalize='no'", "True or False"]),
        ("mkkm", "center=0", ["center=0", "True or False"]),
    ],
)
def test_a_setting_that_cannot_be_is_refused(method, setting, words, data):
    np.savez("views.npz", **data["views"])
    message = fail("cluster", "views.npz", "-k", 3, "--method", method, "--set", setting)
    assert all(word in message for word in words), message


def test_a_setting_given_twice_is_refused(data):
    np.savez("views.npz", **data["views"])
    twice = ("--set", "reg=1", "--set", "reg=2")
    assert "twice" in fail("cluster", "views.npz", "-k", 3, "--method", "lkam", *twice)


def test_one_table_becomes_a_bank_of_kernels(data):
    X = np.hstack(list(data["views"].values()))
    np.save("X.npy", X)
    succeed("cluster", "X.npy", "-k", 3)
    model = Recommended(3, random_state=0).fit(X)
    assert len(model.weights_) > 1
    np.testing.assert_array_equal(read_labels(), model.labels_)
    assert read_run()["kernel_names"] == list(model.kernel_names_)


def test_kernels_on_the_fly_give_the_labels_of_the_estimator(data):
    save_npz("d.npz", data)
    succeed("cluster", "d.npz", "-k", 3, "--kernels", "on-the-fly")
    model = Recommended(3, kernels="on-the-fly", random_state=0).fit(data["views"])
    np.testing.assert_array_equal(read_labels(), model.labels_)
    assert read_run()["parameters"]["kernels"] == "on-the-fly"
    np.save("K.npy", data["kernels"])
    message = fail("cluster", "K.npy", "-k", 3, "--kernels", "on-the-fly")
    assert "--kernels on-the-fly needs views" in message


def test_the_command_says_what_was_made_of_each_view(data):
    words = np.random.default_rng(0).poisson(0.06, size=(60, 80)).astype(float)
    data = data | {"views": data["views"] | {"words": words}}
    save_npz("d.npz", data)
    output = succeed("cluster", "d.npz", "-k", 3).output
    model = Recommended(3, random_state=0).fit(data["views"])
    assert model.bank_.explain() in output
    assert read_run()["rules"] == model.bank_.rules_
    assert read_run()["rules"]["words"] == "sparse"
    output = succeed("cluster", "d.npz", "-k", 3, "--kernels", "gaussian").output
    assert "median distance" not in output
    plain = Recommended(3, kernels="gaussian", random_state=0).fit(data["views"])
    np.testing.assert_array_equal(read_labels(), plain.labels_)
    assert set(read_run()["rules"].values()) == {"gaussian"}
    np.save("K.npy", data["kernels"])
    message = fail("cluster", "K.npy", "-k", 3, "--kernels", "gaussian")
    assert "--kernels gaussian needs views" in message


def test_square_matrices_are_kernels_where_the_user_says_so(data):
    first, second, _ = data["kernels"]
    np.savez("K.npz", first=first, second=second)
    message = fail("cluster", "K.npz", "-k", 3)
    assert "--kernels precomputed" in message
    succeed("cluster", "K.npz", "-k", 3, "--kernels", "precomputed")
    assert read_run()["kernel_names"] == ["first", "second"]
    assert read_run()["parameters"]["kernels"] == "precomputed"


def test_square_matrices_that_are_not_symmetric_are_views_where_the_user_says_so(data):
    rng = np.random.default_rng(0)
    views = {
        name: np.hstack([view, rng.normal(size=(60, 57))]) for name, view in data["views"].items()
    }
    np.savez("square.npz", **views)
    message = fail("cluster", "square.npz", "-k", 3)
    assert "square: holds square matrices only, all 60 x 60" in message
    assert "--kernels on-the-fly" in message
    succeed("cluster", "square.npz", "-k", 3, "--kernels", "on-the-fly")
    model = Recommended(3, kernels="on-the-fly", random_state=0).fit(views)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    # A method whose kernels are those of a bank takes views only, and nothing is to be asked.
    read = inputs.read_inputs(["square.npz"], precomputed=False)
    options = approximation.LandmarkOptions("none", None, on_workers=False)
    model = Recommended(3, kernels=mkclust.KernelBank())
    choice = approximation.choose_kernels(model, read, options, on_the_fly=False)
    assert choice.samples is read.samples


def test_sparse_kernels_of_a_mat_file_are_clustered(data):
    kernels = {
        name: scipy.sparse.csc_matrix(K) for name, K in zip("abc", data["kernels"], strict=True)
    }
    scipy.io.savemat("K.mat", kernels)
    succeed("cluster", "K.mat", "-k", 3, "--kernels", "precomputed")
    assert len(read_labels()) == 60


def test_one_variable_of_a_file_can_be_selected(data):
    np.savez("d.npz", K=data["kernels"], other=data["views"]["left"])
    succeed("cluster", "d.npz::K", "-k", 3)
    (entry,) = read_run()["inputs"]
    assert entry["input"] == "d.npz::K"
    assert entry["sha256"] == hashlib.sha256(Path("d.npz").read_bytes()).hexdigest()


def test_several_files_are_joined_in_order_and_clashing_names_tell_their_file(data):
    left, right = data["views"].values()
    np.savez("one.npz", X=left, only=right)
    np.savez("two.npz", X=right)
    succeed("cluster", "one.npz", "two.npz", "-k", 3)
    assert read_run()["kernel_names"] == ["one/X", "only", "two/X"]
    model = Recommended(3, random_state=0).fit([left, right, right])
    np.testing.assert_allclose(read_run()["weights"], model.weights_, rtol=1e-12)


def test_a_file_given_twice_counts_twice(data):
    save_npz("d.npz", data)
    succeed("cluster", "d.npz", "d.npz", "-k", 3)
    assert len(set(read_run()["kernel_names"])) == 4


def test_inputs_with_different_labels_are_clustered_with_a_warning(data):
    np.savez("one.npz", X=data["views"]["left"], y=data["y"])
    np.savez("two.npz", Z=data["views"]["right"], y=data["y"][::-1])
    result = succeed("cluster", "one.npz", "two.npz", "-k", 3)
    assert result.stderr.startswith("warning: the inputs hold different labels")
    assert read_run()["scores"]["acc"] > 0.9


def test_the_record_of_a_run_is_complete(data):
    save_npz("d.npz", data)
    options = ("--method", "simplemkkm", "--seed", 5, "--tol", "1e-5", "--no-normalize")
    succeed("cluster", "d.npz", "-k", 3, *options)
    record = read_run()
    assert sum(record["weights"]) == pytest.approx(1, abs=1e-12)
    assert all(0 <= share <= 1 + 1e-9 for share in record["alignments"])
    assert 0 <= record["gap"] <= 1e-5
    assert record["converged"] is True
    assert record["seed"] == record["parameters"]["random_state"] == 5
    assert record["parameters"]["tol"] == 1e-5
    assert record["parameters"]["normalize"] is False
    assert record["parameters"]["center"] is True
    assert sum(record["cluster_sizes"]) == record["n_samples"] == 60
    assert set(record["versions"]) == {"mkclust", "numpy", "scipy", "scikit-learn", "python"}
    assert record["seconds"]["total"] >= record["seconds"]["solve"] >= 0
    assert record["seconds"]["check"] >= 0
    content = Path("d.npz").read_bytes()
    (entry,) = record["inputs"]
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert entry["bytes"] == len(content)
    keys = ("objective", "cluster_gap", "eigengap", "baseline_agreement", "n_iter", "n_passes")
    assert all(key in record for key in keys)
    assert record["warnings"] == []


@pytest.mark.slow
def test_one_seed_gives_the_same_output_to_the_last_digit(data):
    save_npz("d.npz", data)
    outputs = []
    for _ in range(2):
        succeed("cluster", "d.npz", "-k", 4, "--seed", 3, "--plot", "fit.png")
        record = read_run()
        record.pop("seconds")
        outputs.append((Path("labels.csv").read_text(), record, Path("fit.png").read_bytes()))
    assert outputs[0] == outputs[1]


def test_a_data_set_is_clustered_by_name_and_has_no_file(monkeypatch, data):
    small = mkclust.datasets.Dataset(
        "digits", data["views"], None, data["y"], tuple(data["views"]), "Small."
    )
    monkeypatch.setattr(mkclust.datasets, "load", lambda *_, **__: small)
    succeed("cluster", "digits", "-k", 3)
    (entry,) = read_run()["inputs"]
    assert entry["sha256"] is None
    assert entry["bytes"] is None


def test_outputs_go_where_they_are_told(data, folder):
    save_npz("d.npz", data)
    (folder / "out").mkdir()
    names = {"--labels": "out/l.csv", "--run": "out/r.json", "--plot": "out/p.svg"}
    succeed("cluster", "d.npz", "-k", 3, *(part for pair in names.items() for part in pair))
    assert sorted(os.listdir("out")) == ["l.csv", "p.svg", "r.json"]
    assert sorted(os.listdir()) == ["d.npz", "out"]
    assert Path("out/p.svg").read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize(
    ("labels", "record"),
    [
        ("out/labels.csv", "out/run.json"),
        ("out/clusters.csv", "out/clusters.run.json"),
        ("out/two.dots.csv", "out/two.dots.run.json"),
        ("out/plain", "out/plain.run.json"),
        ("run.json", "run.run.json"),
        ("./labels.csv", "run.json"),
    ],
)
def test_the_record_of_a_run_stands_beside_the_labels_and_nothing_else_is_written(
    labels, record, data, folder
):
    save_npz("d.npz", data)
    (folder / "out").mkdir()
    result = succeed("cluster", "d.npz", "-k", 3, "--labels", labels)
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert files == {Path("d.npz"), Path(labels), Path(record)}
    assert result.stdout.endswith(f"Wrote {Path(labels)}\nWrote {Path(record)}\n")
    assert len(read_labels(labels)) == read_run(record)["n_samples"]


@pytest.mark.parametrize(
    "options",
    [
        ("--labels", "a.csv", "--report", "a.html", "--run", "a.csv"),
        ("--labels", "fit.run.json", "--run", "./fit.run.json"),
        ("--plot", "fit.svg", "--run", "fit.svg"),
    ],
)
def test_outputs_that_clash_are_refused(options, data):
    save_npz("d.npz", data)
    assert "another output" in fail("cluster", "d.npz", "-k", 3, *options)


def test_a_record_beside_the_labels_does_not_replace_an_input(data):
    save_npz("d.npz", data)
    os.symlink("d.npz", "a.run.json")
    message = fail("cluster", "d.npz", "-k", 3, "--labels", "a.csv")
    assert "a.run.json: is an input" in message


def test_an_output_behind_a_link_is_written_through_it(data, folder):
    save_npz("d.npz", data)
    (folder / "real").mkdir()
    (folder / "labels.csv").symlink_to(folder / "real" / "kept.csv")
    succeed("cluster", "d.npz", "-k", 3)
    assert os.path.islink("labels.csv")
    assert len(read_labels("real/kept.csv")) == 60


def test_outputs_are_readable_as_any_other_new_file(data):
    save_npz("d.npz", data)
    Path("plain").touch()
    succeed("cluster", "d.npz", "-k", 3)
    assert os.stat("labels.csv").st_mode == os.stat("plain").st_mode


def test_warnings_are_plain_lines_and_are_kept_in_the_record(data, monkeypatch):
    fit = Recommended.fit

    def noisy(self, X, y=None):
        for _ in range(2):
            warnings.warn("the weights\nare odd", mkclust.exceptions.WeightsWarning, stacklevel=2)
        warnings.warn("old name", DeprecationWarning, stacklevel=2)
        return fit(self, X)

    monkeypatch.setattr(Recommended, "fit", noisy)
    save_npz("d.npz", data)
    result = succeed("cluster", "d.npz", "-k", 3)
    assert result.stderr == "warning: the weights are odd\n"
    assert read_run()["warnings"] == ["the weights are odd"]


def test_a_run_stopped_early_says_so(data):
    save_npz("d.npz", data)
    options = ("--solver", "reduced-gradient", "--max-iter", 1, "--tol", "1e-12")
    result = succeed("cluster", "d.npz", "-k", 3, "--method", "simplemkkm", *options)
    assert read_run()["converged"] is False
    assert "stopped early" in result.stdout
    assert "global optimality" not in result.stdout
    assert result.stderr == f"warning: {read_run()['warnings'][0]}\n"


# --- what the views agree on ---------------------------------------------------------------------


def shared_views():
    """Return two views of three clusters, and one of noise."""
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    views = {name: 3 * rng.normal(size=(3, 5))[y] + rng.normal(size=(90, 5)) for name in "ab"}
    return views | {"noise": rng.normal(size=(90, 5))}


def test_a_view_that_shares_nothing_is_named_and_changes_nothing():
    views = shared_views()
    np.savez("three.npz", **views)
    np.savez("two.npz", a=views["a"], b=views["b"])
    succeed("cluster", "two.npz", "-k", 3)
    labels, weights = read_labels(), read_run()["weights"]
    result = succeed("cluster", "three.npz", "-k", 3)
    assert "2 of 3 views agree beyond chance: a and b." in result.stdout
    assert "Set aside, sharing nothing with any other view: noise." in result.stdout
    np.testing.assert_array_equal(read_labels(), labels)
    assert read_run()["weights"] == pytest.approx([*weights, 0], abs=1e-12)


def test_what_the_views_share_is_recorded():
    np.savez("d.npz", **shared_views())
    succeed("cluster", "d.npz", "-k", 3)
    record, model = read_run()["agreement"], Recommended(3, random_state=0).fit(shared_views())
    np.testing.assert_allclose(record["alignments"], model.agreement_.alignments, atol=1e-12)
    np.testing.assert_allclose(record["chances"], model.agreement_.chances, rtol=1e-9)
    assert (record["groups"], record["set_aside"]) == ([["a", "b"]], ["noise"])
    assert record["verdict"] == model.agreement_.verdict()
    succeed("cluster", "d.npz", "-k", 3, "--method", "avg-kkm")
    assert read_run()["agreement"] == record | {"set_aside": []}
    np.save("K.npy", gaussian(shared_views()["a"])[None])
    for method in ("agreement-kkm", "simplemkkm"):
        result = succeed("cluster", "K.npy", "-k", 3, "--method", method)
        assert "One view alone: there is nothing to compare it with." in result.stdout
    assert read_run()["agreement"] is None


@pytest.mark.parametrize("method", ["simplemkkm", "anchored-mkkm"])
def test_the_verdict_on_the_views_comes_before_all_figures_and_the_certificate_last(method):
    np.savez("d.npz", **shared_views())
    text = succeed("cluster", "d.npz", "-k", 3, "--method", method).stdout
    words = ["2 of 3 views agree", "those that the views agree on", "kernel ", "A large weight"]
    words += ["Cluster sizes", "Certificate: "]
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert "structure" not in text


def test_a_method_that_uses_views_which_share_nothing_says_so():
    np.savez("d.npz", **shared_views())
    sentence = "sets nothing aside and uses noise, too; agreement-kkm does not."
    for method in ("simplemkkm", "avg-kkm", "lkam"):
        assert sentence in succeed("cluster", "d.npz", "-k", 3, "--method", method).stdout
    for method in ("agreement-kkm", "anchored-mkkm"):
        assert sentence not in succeed("cluster", "d.npz", "-k", 3, "--method", method).stdout


def test_kernels_of_a_stack_on_disk_are_set_aside_by_the_names_they_are_shown_with(monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File("K.h5", "w") as file:
        file["K"] = np.array([gaussian(view) for view in shared_views().values()])
    succeed("cluster", "K.h5", "-k", 3)
    expected = read_run()
    little = partial(inputs.read_inputs, free_bytes=lambda: 3000)
    monkeypatch.setattr(fitting, "read_inputs", little)
    result = succeed("cluster", "K.h5", "-k", 3)
    name = expected["kernel_names"][2]
    assert read_run()["agreement"]["set_aside"] == expected["agreement"]["set_aside"] == [name]
    assert f"sharing nothing with any other view: {name}." in result.stdout


def test_an_anchor_is_for_the_method_that_has_one():
    np.savez("d.npz", **shared_views())
    for options in (["--anchor", "1"], ["--anchor", "auto", "--method", "simplemkkm"]):
        message = fail("cluster", "d.npz", "-k", 3, *options)
        assert (
            "has no such option: anchor; leave it out, or choose --method anchored-mkkm" in message
        )
    for anchor, used in (("auto", "the smallest that keeps"), ("0.5", "Anchor: 0.5;")):
        options = ("--method", "anchored-mkkm", "--anchor", anchor)
        assert used in succeed("cluster", "d.npz", "-k", 3, *options).stdout
    assert (read_run()["anchor"], read_run()["parameters"]["anchor"]) == (0.5, 0.5)


def test_labels_of_a_file_do_not_change_the_fit(data):
    save_npz("d.npz", data)
    succeed("cluster", "d.npz", "-k", 3)
    labels = read_labels()
    np.savez("d.npz", **data["views"], y=np.roll(data["y"], 7))
    succeed("cluster", "d.npz", "-k", 3)
    np.testing.assert_array_equal(read_labels(), labels)


# --- approximation -------------------------------------------------------------------------------


def save_parquet(data, row_group_size=20):
    """Write each view to a file of its own, the first with the labels."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, view in data["views"].items():
        columns = {f"c{i}": column for i, column in enumerate(view.T)}
        more = {"y": data["y"]} if name == "left" else {}
        table = pyarrow.table(columns | more)
        parquet.write_table(table, f"{name}.parquet", row_group_size=row_group_size)
    return [f"{name}.parquet" for name in data["views"]]


@pytest.mark.slow
def test_landmarks_stand_for_the_kernels_where_they_are_asked_for(data):
    save_npz("d.npz", data)
    options = ("--approximation", "nystroem", "--landmarks", 20)
    result = succeed("cluster", "d.npz", "-k", 3, *options, "--plot", "fit.png")
    model = Recommended(3, approximation=mkclust.kernels.Nystroem(20), random_state=0)
    model.fit(data["views"])
    np.testing.assert_array_equal(read_labels(), model.labels_)
    record = read_run()
    assert record["weights"] == pytest.approx(model.weights_, abs=1e-12)
    assert (record["approximation"], record["landmarks"]) == ("nystroem", 20)
    assert record["approximation_error"] == model.approximation_error_.tolist()
    assert "20 landmarks stand for the Gaussian kernel, one a view, of 60 samples" in result.stdout
    assert "asked for by --approximation nystroem" in result.stdout
    assert "missed" in result.stdout
    assert f"{model.approximation_error_[1]:.4f}" in result.stdout
    certified = succeed("cluster", "d.npz", "-k", 3, "--method", "simplemkkm", *options)
    assert "The certificate holds for the approximated kernels" in certified.stdout


def test_small_data_have_exact_kernels_unless_told_otherwise(data):
    save_npz("d.npz", data)
    result = succeed("cluster", "d.npz", "-k", 3)
    assert "landmarks" not in result.stdout
    assert "missed" not in result.stdout
    record = read_run()
    assert [record[key] for key in ("approximation", "landmarks", "approximation_error")] == [
        None,
        None,
        None,
    ]
    result = succeed("cluster", "d.npz", "-k", 3, "--landmarks", 20)
    assert "exact, for they fit: no landmarks were needed" in result.stdout
    assert read_run()["landmarks"] is None


def choose(*files, method="simplemkkm", choice="auto", **limits):
    """Return what the command decides about the kernels of files, and the model it is for."""
    model = mkclust.METHODS[method](3, random_state=0)
    options = approximation.LandmarkOptions(choice, None, on_workers=False)
    read = inputs.read_inputs(files, precomputed=False)
    return approximation.choose_kernels(model, read, options, on_the_fly=False, **limits), model


def test_many_samples_are_approximated_and_none_asks_for_exact_kernels(data):
    save_npz("d.npz", data)
    assert choose("d.npz", most_exact_samples=60)[0].landmarks is None
    decision, model = choose("d.npz", most_exact_samples=59)
    assert "more than 59, whose exact kernels would take " in decision.sentence
    # There are fewer samples than landmarks by default.
    assert "60 landmarks stand for" in decision.sentence
    assert decision.landmarks == 60
    assert max(model.fit(decision.samples).approximation_error_) < 1e-6
    assert model.kernel_names_ == tuple(data["views"])
    decision, model = choose("d.npz", choice="none", most_exact_samples=59)
    assert decision.landmarks is model.approximation is None


@pytest.mark.parametrize(("n_views", "n_kernels"), [(2, 2), (1, 12)])
def test_kernels_that_do_not_fit_are_approximated(data, n_views, n_kernels):
    np.savez("d.npz", **dict(list(data["views"].items())[:n_views]))
    needed = (n_kernels + 1) * 60 * 60 * 8  # and a mix of them
    for free in (None, 2 * needed):
        decision, model = choose("d.npz", free_bytes=lambda free=free: free)
        assert len(model.fit(decision.samples).weights_) == n_kernels
    decision, model = choose("d.npz", free_bytes=lambda: 2 * needed - 2)
    assert len(model.fit(decision.samples).weights_) == n_views
    assert "of memory are there" in decision.sentence


def test_methods_and_kernels_that_cannot_be_approximated_stay_exact(data):
    save_npz("d.npz", data)
    np.save("K.npy", data["kernels"])
    for name, method in (("d.npz", "lmkkm"), ("K.npy", "simplemkkm")):
        assert choose(name, method=method, most_exact_samples=10)[0].landmarks is None


@pytest.mark.parametrize("method", ["lmkkm", "onkc", "lkam", "localized-simplemkkm"])
def test_a_method_that_needs_entries_says_so_before_anything_is_read(method):
    options = ("-k", 3, "--method", method, "--approximation", "nystroem")
    message = fail("cluster", "missing.npz", *options)
    assert f"{method} needs the entries of the kernels" in message
    able = "simplemkkm, avg-kkm, mkkm, mkkm-mir, lf-mvc, mkkm-mm, kamm-r, kamm-a, "
    able += "agreement-kkm, anchored-mkkm"
    assert f"choose among {able}\n" in message


@pytest.mark.parametrize("method", ["avg-kkm", "lf-mvc"])
def test_a_method_without_a_certificate_can_be_approximated(method, data):
    save_npz("d.npz", data)
    options = ("--method", method, "--approximation", "nystroem", "--landmarks", 20)
    result = succeed("cluster", "d.npz", "-k", 3, *options)
    assert len(read_run()["approximation_error"]) == 2
    assert "missed" in result.stdout
    assert "ertificate" not in result.stdout


def test_one_view_is_approximated_by_one_kernel(data):
    np.save("X.npy", data["views"]["left"])
    succeed("cluster", "X.npy", "-k", 3, "--approximation", "nystroem")
    assert read_run()["kernel_names"] == ["X"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--approximation", "nystrom"], ["did you mean --approximation nystroem?"]),
        (["--approximation", "none", "--landmarks", 9], ["--landmarks 9", "--approximation none"]),
        (["--landmarks", 0], ["--landmarks"]),
        (["--approximation", "nystroem", "--kernels", "precomputed"], ["needs views"]),
        (["--landmarks", 9, "--kernels", "precomputed"], ["--landmarks 9 needs views"]),
        (["--landmarks", 9, "--method", "lkam"], ["--landmarks 9: lkam"]),
        (["--cluster", "tcp://x:1", "--approximation", "none"], ["--cluster needs an approx"]),
        (["--cluster", "tcp://x:1", "--kernels", "precomputed"], ["--cluster needs views"]),
        (["--cluster", "tcp://x:1", "--method", "onkc"], ["--cluster: onkc needs"]),
        (["--cluster", "tcp://x:1"], ["missing.npz", ".parquet"]),
        (["--set", "approximation=1"], ["its own option, --approximation"]),
        (["--landmarks", 9, "--kernels", "on-the-fly"], ["--landmarks 9 asks", "on-the-fly"]),
        (["--cluster", "tcp://x:1", "--kernels", "on-the-fly"], ["--cluster asks", "on-the-fly"]),
    ],
)
def test_an_approximation_that_cannot_be_is_refused_before_anything_is_read(args, words):
    message = fail("cluster", "missing.npz", "-k", 3, *args)
    assert all(word in message for word in words), message


def test_an_approximation_that_the_data_do_not_allow_is_refused(data):
    np.save("K.npy", data["kernels"])
    save_npz("d.npz", data)
    for options in (["--approximation", "nystroem"], ["--landmarks", 9]):
        assert "needs views" in fail("cluster", "K.npy", "-k", 3, *options)
    asked = ("--approximation", "nystroem", "--landmarks", 61)
    assert "there are only 60" in fail("cluster", "d.npz", "-k", 3, *asked)


# --- data on disk --------------------------------------------------------------------------------


def test_parquet_files_are_clustered_without_being_loaded(data):
    files = save_parquet(data)
    options = ("-k", 3, "--approximation", "nystroem", "--landmarks", 20)
    succeed("cluster", *files, *options)
    labels, record = read_labels(), read_run()
    assert record["kernel_names"] == ["left", "right"]
    assert record["scores"]["acc"] > 0.9
    save_npz("d.npz", data)
    succeed("cluster", "d.npz", *options)
    np.testing.assert_array_equal(read_labels(), labels)
    assert read_run()["weights"] == pytest.approx(record["weights"], abs=1e-12)


def test_a_missing_entry_of_a_parquet_file_is_named(data):
    broken = {name: view.copy() for name, view in data["views"].items()}
    broken["right"][41, 2] = np.nan
    files = save_parquet(data | {"views": broken})
    message = fail("cluster", *files, "-k", 3, "--approximation", "nystroem")
    assert "'right'" in message
    assert "41" in message


def test_files_larger_than_memory_stay_on_disk(data, monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File("K.h5", "w") as file:
        file["K"] = data["kernels"]
    with h5py.File("one.h5", "w") as file:
        file["first"], file["second"] = data["kernels"][:2]
    save_h5("d.h5", data)
    methods = {"K.h5": {}, "one.h5": {}, "d.h5": {"approximation": Nystroem(n_components=20)}}
    for name, parameters in methods.items():
        fits = []
        for memory in (None, 3000):
            read = inputs.read_inputs(
                [name], precomputed=name == "one.h5", free_bytes=lambda memory=memory: memory
            )
            fits.append(mkclust.SimpleMKKM(3, random_state=0, **parameters))
            if read.samples.kind == "kernels":
                fits[-1].set_params(kernels="precomputed")
            fits[-1].fit(read.samples)
        np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
        assert fits[0].weights_ == pytest.approx(fits[1].weights_, abs=1e-6)
        parts = read.samples.parts or [read.samples.whole]
        assert not any(isinstance(part, np.ndarray) for part in parts)
        assert len(read.names) == len(fits[1].weights_)
    with pytest.raises(CommandError, match="K: a stack of kernels too large to load"):
        inputs.read_inputs(["K.h5", "one.h5::first"], precomputed=True, free_bytes=lambda: 3000)
    succeed("cluster", "K.h5", "-k", 3)
    record, little = read_run(), partial(inputs.read_inputs, free_bytes=lambda: 3000)
    monkeypatch.setattr(fitting, "read_inputs", little)
    succeed("cluster", "K.h5", "-k", 3)
    assert read_run()["kernel_names"] == record["kernel_names"]


def read_table(text):
    header, *rows = csv.reader(text.decode().splitlines(keepends=True))
    assert header == ["id", "cluster", "silhouette", "margin"]
    return rows


def test_labels_are_written_with_ids_and_scores_clusters_numbered_by_falling_size(data):
    pd = pytest.importorskip("pandas")
    ids = [f'patient "{i}", ward\r\n{i % 7}' for i in range(len(data["y"]))]
    views = {name: pd.DataFrame(view, index=ids) for name, view in data["views"].items()}
    model = Recommended(3, random_state=0).fit(views)
    scores = mkclust.sample_scores(model)
    rows = read_table(outputs.labels_csv(model))
    assert [row[0] for row in rows] == ids
    assert [int(row[1]) for row in rows] == model.labels_.tolist()
    assert [float(row[2]) for row in rows] == pytest.approx(scores.silhouette, abs=6e-5)
    assert [float(row[3]) for row in rows] == pytest.approx(scores.margin, abs=6e-5)
    sizes = np.bincount([int(row[1]) for row in rows])
    assert (np.diff(sizes) <= 0).all()


def test_what_is_not_known_of_a_sample_is_an_empty_cell(data):
    model = Recommended(1, random_state=0).fit(data["views"])
    assert {tuple(row[1:]) for row in read_table(outputs.labels_csv(model))} == {("0", "", "")}


def test_an_id_that_ends_a_line_stays_in_its_row(data):
    model = Recommended(3, random_state=0).fit(data["views"])
    model.sample_ids_ = np.array([f"a\r{i}" for i in range(len(model.labels_))])
    rows = list(csv.reader(io.StringIO(outputs.labels_csv(model).decode(), newline="")))
    assert [row[0] for row in rows[1:]] == model.sample_ids_.tolist()


@pytest.mark.slow
def test_clusters_are_tested_against_variables_of_another_file(data):
    save_npz("d.npz", data)
    rng = np.random.default_rng(0)
    n = len(data["y"])
    columns = [data["y"] + rng.normal(size=n), rng.normal(size=n), np.ones(n)]
    columns = np.column_stack([*columns, data["views"]["left"][:, 1]])
    np.savez("other.npz", clinic=columns, y=data["y"])
    arguments = ["-k", 3, "--annotate", "other.npz"]
    result = succeed("cluster", "d.npz", *arguments)
    assert "Clusters against the variables of other.npz:" in result.stdout
    assert "not tested: it is constant" in result.stdout
    tests = {test["variable"]: test for test in read_run()["annotation"]["tests"]}
    assert list(tests) == ["column 0", "column 1", "column 2", "column 3", "labels"]
    assert tests["column 0"]["p_adjusted"] < 0.05 < tests["column 1"]["p_value"]
    assert tests["column 2"]["reason"] == "it is constant"
    assert "clustered on" in tests["column 3"]["reason"]
    np.save("K.npy", data["kernels"])
    if has_jinja2 := importlib.util.find_spec("jinja2") is not None:
        arguments += ["--report", "fit.html"]
    result = succeed("cluster", "K.npy", *arguments)
    (note,) = read_run()["annotation"]["notes"]
    assert note in result.stdout
    if has_jinja2:
        page = Path("fit.html").read_text(encoding="utf-8")
        assert "Against other variables" in page
        assert note in page


def test_variables_of_other_samples_cost_no_fit_and_unreadable_ones_are_refused_before_it(data):
    save_npz("d.npz", data)
    np.savez("other.npz", clinic=np.ones((7, 2)))
    result = succeed("cluster", "d.npz", "-k", 3, "--annotate", "other.npz")
    assert "no variable was tested: table 'clinic' has 7 rows" in result.stderr
    assert read_run()["annotation"] is None
    for path in (Path("labels.csv"), Path("run.json")):
        path.unlink()
    assert "nowhere.npz: no such file" in fail(
        "cluster", "d.npz", "-k", 3, "--annotate", "nowhere.npz"
    )
    assert "own name" in fail(
        "cluster", "d.npz", "-k", 3, "--annotate", "other.npz", "--run", "other.npz"
    )


# --- a cluster -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=False, protocol="tcp", **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "npy", "npy by columns", "h5"])
def test_workers_of_a_cluster_read_the_files_and_find_the_same_clusters(
    kind, data, scheduler, monkeypatch
):
    monkeypatch.setattr(dask, "FEWEST_ROWS", 20)
    monkeypatch.setattr(dask, "CHUNK_BYTES", 8)
    if kind == "parquet":
        files = save_parquet(data)
    elif kind == "h5":
        save_h5("d.h5", data)
        files = ["d.h5"]
    else:
        files = [f"{name}.npy" for name in data["views"]]
        for name, view in data["views"].items():
            np.save(f"{name}.npy", np.asfortranarray(view) if "columns" in kind else view)
    options = ("-k", 3, "--landmarks", 20)
    succeed("cluster", *files, *options, "--approximation", "nystroem")
    labels, record = read_labels(), read_run()
    result = succeed(
        "cluster", *files, *options, "--cluster", scheduler, "--plot", "fit.png", "--run", "r.json"
    )
    np.testing.assert_array_equal(read_labels(), labels)
    remote = read_run("r.json")
    assert remote["weights"] == pytest.approx(record["weights"], abs=1e-6)
    assert remote["cluster_sizes"] == record["cluster_sizes"]
    assert remote["scores"] == record["scores"]
    assert "asked for by --cluster" in result.stdout
    assert os.path.exists("fit.png")


def test_a_cluster_that_does_not_answer_is_named_before_anything_is_read(data, monkeypatch):
    @contextmanager
    def refuse(address):
        raise ConnectionError(f"{address}: nobody answers; check the address")
        yield

    def never(*_, **__):
        raise AssertionError("something was read")

    monkeypatch.setattr(fitting, "connect", refuse)
    monkeypatch.setattr(fitting, "read_inputs", never)
    message = fail("cluster", "missing.parquet", "-k", 3, "--cluster", "tcp://nowhere:1")
    assert "tcp://nowhere:1: nobody answers" in message


def test_kernels_in_a_file_are_not_taken_to_a_cluster(data, scheduler):
    np.save("K.npy", data["kernels"])
    assert "--cluster needs views" in fail("cluster", "K.npy", "-k", 3, "--cluster", scheduler)


def test_a_file_that_workers_do_not_have_is_named(data, scheduler, monkeypatch):
    as_dask = dask.as_dask

    def elsewhere(views):
        for view in views.values():
            view.path = f"/elsewhere/{os.path.basename(view.path)}"
        return as_dask(views)

    monkeypatch.setattr(fitting, "as_dask", elsewhere)
    files = save_parquet(data)
    message = fail("cluster", *files, "-k", 3, "--cluster", scheduler)
    assert "a worker cannot open a file" in message
    assert "/elsewhere/" in message


def test_chunks_are_whole_row_groups(data, monkeypatch):
    files = save_parquet(data, row_group_size=8)
    views = {
        name: mkclust.datasets.load(path).views[name]
        for name, path in zip(data["views"], files, strict=True)
    }
    monkeypatch.setattr(dask, "CHUNK_BYTES", 8)
    monkeypatch.setattr(dask, "FEWEST_ROWS", 20)
    arrays = dask.as_dask(views)
    assert all(array.chunks[0] == (24, 24, 12) for array in arrays.values())
    np.testing.assert_array_equal(arrays["right"].compute(), data["views"]["right"])


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["d.npz", "d.npy", "d.mat", "d.h5"])
@pytest.mark.parametrize("kind", ["truncated", "wrong", "empty", "missing"])
def test_a_file_that_cannot_be_read_is_named(name, kind, data):
    if name == "d.npy":
        np.save(name, data["kernels"])
    else:
        {"d.npz": save_npz, "d.mat": save_mat, "d.h5": save_h5}[name](name, data)
    content = Path(name).read_bytes()
    os.remove(name)
    if kind != "missing":
        damaged = {
            "truncated": content[: len(content) // 2],
            "wrong": b"hello\n" * 99,
            "empty": b"",
        }
        Path(name).write_bytes(damaged[kind])
    assert name in fail("cluster", name, "-k", 3)


def test_more_clusters_than_samples_are_refused(data):
    save_npz("d.npz", data)
    assert "61" in fail("cluster", "d.npz", "-k", 61)


def test_a_kernel_with_nan_is_refused_by_name(data):
    bad = data["kernels"].copy()
    bad[1, 3, 3] = np.nan
    np.savez("K.npz", good=bad[0], broken=bad[1])
    assert "broken" in fail("cluster", "K.npz", "-k", 3, "--kernels", "precomputed")


def test_an_indefinite_kernel_is_refused_unless_it_is_to_be_repaired(data):
    bad = data["kernels"].copy()
    bad[0] -= 20 * np.outer(*2 * [np.sin(np.arange(60))]) / 30
    bad[0] += np.diag(1 - np.diag(bad[0]))
    np.save("K.npy", bad)
    assert "psd" in fail("cluster", "K.npy", "-k", 3)
    succeed("cluster", "K.npy", "-k", 3, "--psd", "clip")
    assert read_run()["parameters"]["psd"] == "clip"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["d.npz"], "-k"),
        (["d.npz", "-k", "0"], "-k"),
        (["d.npz", "-k", "-3"], "-k"),
        (["d.npz", "-k", "2.5"], "-k"),
        (["d.npz", "-k", "three"], "-k"),
        (["-k", "3"], "INPUT"),
        (["d.npz", "-k", "3", "--method", "simplemkm"], "did you mean --method simplemkkm?"),
        (["d.npz", "-k", "3", "--kernels", "precomputd"], "did you mean --kernels precomputed?"),
        (["d.npz", "-k", "3", "--method", "simplemkkm", "--solver", "magic"], "magic"),
        (["d.npz", "-k", "3", "--psd", "maybe"], "maybe"),
        (["d.npz", "-k", "3", "--seed", "-1"], "--seed"),
        (["d.npz", "-k", "3", "--tol", "nan"], "tol"),
        (["d.npz", "-k", "3", "--nonsense"], "--nonsense"),
        (["digits", "-k", "3", "--kernels", "precomputed"], "digits"),
        (["digitz", "-k", "3"], "'digits'"),
        (["d.npz::Z", "-k", "3"], "Z"),
        ([".", "-k", "3"], "directory"),
    ],
)
def test_a_wrong_argument_is_named(args, word, data):
    save_npz("d.npz", data)
    assert word in fail("cluster", *args)


@pytest.mark.parametrize("args", [["clster"], ["--nonsense"]])
def test_an_unknown_command_or_option_is_one_line(args):
    assert args[0] in fail(*args)


def test_an_option_that_a_method_does_not_have_is_refused(data, monkeypatch):
    class Plain(mkclust.SimpleMKKM):
        def __init__(self, n_clusters=8, *, kernels="auto", n_init=10, random_state=None):
            super().__init__(n_clusters)

    monkeypatch.setitem(mkclust.METHODS, "plain", Plain)
    save_npz("d.npz", data)
    assert "solver" in fail("cluster", "d.npz", "-k", 3, "--method", "plain", "--solver", "x")


def test_files_of_different_numbers_of_samples_are_not_joined(data):
    np.savez("one.npz", X=data["views"]["left"])
    np.savez("two.npz", X=data["views"]["left"][:50])
    message = fail("cluster", "one.npz", "two.npz", "-k", 3)
    assert "two.npz has 50 samples" in message
    assert "60" in message


@pytest.mark.parametrize("order", [["V.npz", "K.npy"], ["K.npy", "V.npz"]])
def test_views_and_kernels_are_not_joined(order, data):
    np.savez("V.npz", **data["views"])
    np.save("K.npy", data["kernels"])
    assert "K.npy holds kernels but V.npz holds views" in fail("cluster", *order, "-k", 3)


@pytest.mark.parametrize(
    ("option", "path", "word"),
    [
        ("--labels", "nowhere/labels.csv", "nowhere"),
        ("--run", "nowhere/run.json", "nowhere"),
        ("--labels", "a_file/labels.csv", "a_file"),
        ("--labels", "a_folder", "folder"),
        ("--labels", "d.npz", "input"),
        ("--run", "labels.csv", "own name"),
        ("--plot", "fit.xyz", ".xyz"),
        ("--plot", "fit", "suffix"),
        ("--labels", "/dev/null", "regular file"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_fit(
    option, path, word, data, folder, monkeypatch
):
    def never(*_):
        raise AssertionError("the fit began")

    monkeypatch.setattr(Recommended, "fit", never)
    save_npz("d.npz", data)
    (folder / "a_folder").mkdir()
    (folder / "a_file").touch()
    content = Path("d.npz").read_bytes()
    assert word in fail("cluster", "d.npz", "-k", 3, option, path)
    assert Path("d.npz").read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write there")
def test_a_folder_without_permission_is_refused_before_the_fit(data, folder):
    save_npz("d.npz", data)
    (folder / "locked").mkdir(mode=0o500)
    assert "locked" in fail("cluster", "d.npz", "-k", 3, "--labels", "locked/labels.csv")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("two\nlines"),
        TypeError("bad"),
        OSError(28, "No space left on device", "disk"),
        MemoryError(),
        ImportError("install it"),
    ],
)
def test_expected_errors_of_a_fit_become_one_line_and_old_outputs_stay(error, data, monkeypatch):
    def broken(self, X, y=None):
        raise error

    monkeypatch.setattr(Recommended, "fit", broken)
    save_npz("d.npz", data)
    Path("labels.csv").write_text("precious")
    fail("cluster", "d.npz", "-k", 3)
    assert Path("labels.csv").read_text() == "precious"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(28, "No space left on device", "disk"), "No space left on device"),
        (RuntimeError("two\nlines"), "two lines"),
    ],
)
def test_the_labels_of_a_finished_fit_stay_when_its_picture_fails(error, word, data, monkeypatch):
    def broken(figure, path, **options):
        path.write_bytes(b"half a picture")
        raise error

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    save_npz("d.npz", data)
    result = invoke("cluster", "d.npz", "-k", 3, "--plot", "fit.png")
    assert result.exit_code == 2
    assert "Cluster sizes" in result.stdout
    assert "Wrote fit.png" not in result.stdout
    assert result.stderr.startswith("mkclust: error: fit.png: ")
    assert result.stderr.count("\n") == 1
    assert word in result.stderr
    assert "written: labels.csv and run.json" in result.stderr
    assert sorted(os.listdir()) == ["d.npz", "labels.csv", "run.json"]
    assert len(read_labels()) == read_run()["n_samples"] == 60


def test_no_output_is_written_when_one_of_labels_and_record_fails(data, monkeypatch):
    def full(record):
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(cluster, "strict_json", full)
    save_npz("d.npz", data)
    assert "No space left" in fail("cluster", "d.npz", "-k", 3)


def test_an_unexpected_error_is_not_hidden(data, monkeypatch):
    def broken(self, X, y=None):
        raise AssertionError("a bug")

    monkeypatch.setattr(Recommended, "fit", broken)
    save_npz("d.npz", data)
    assert isinstance(invoke("cluster", "d.npz", "-k", 3).exception, AssertionError)


def test_labels_that_cannot_be_scored_do_not_fail_the_fit(data, monkeypatch):
    def broken(y_true, y_pred):
        raise ValueError("odd labels")

    monkeypatch.setattr(metrics, "scores", broken)
    save_npz("d.npz", data)
    result = succeed("cluster", "d.npz", "-k", 3)
    assert result.stderr == "warning: no scores: odd labels\n"
    assert read_run()["scores"] is None


def test_numbers_that_are_not_finite_become_null():
    record = {"a": np.array([1.0, np.nan]), "b": (np.inf, np.int64(3)), "c": np.bool_(True)}
    assert json.loads(outputs.strict_json(record)) == {"a": [1.0, None], "b": [None, 3], "c": True}


def test_long_tables_are_cut_and_many_cluster_sizes_are_summed_up():
    names, shares = [f"kernel {i}" for i in range(100)], np.full(100, 0.01)
    learned = {"kernel_names_": names, "weights_": shares, "alignments_": shares}
    fit = SimpleNamespace(**learned, WEIGHT_MEANING="Read them together.")
    table = printing.kernel_table(fit)
    assert "kernel 59" in table
    assert "kernel 60" not in table
    assert "40 more" in table
    sizes = printing.cluster_sizes(np.repeat(np.arange(50), np.arange(50, 0, -1)))
    assert sizes.endswith("1 to 50, median 25")


# --- as a program --------------------------------------------------------------------------------


def program(*args, **options):
    return subprocess.run(
        [*PYTHON, *args], capture_output=True, text=True, check=False, timeout=120, **options
    )


@pytest.mark.slow
def test_the_module_runs_as_a_program(data):
    save_npz("d.npz", data)
    done = program("cluster", "d.npz", "-k", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(read_labels()) == 60
    done = program("cluster", "d.npz", "-k", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("mkclust: error: ")
    assert done.stderr.count("\n") == 1


def test_the_version_and_the_help_are_shown():
    assert succeed("--version").stdout == f"mkclust {mkclust.__version__}\n"
    assert "demo" in succeed().stdout
    assert "--kernels auto|gaussian|on-the-fly|precomputed" in succeed("cluster", "--help").stdout


@pytest.mark.slow
def test_without_typer_the_program_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import mkclust.cli"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr == (
        'mkclust: the command line needs typer; install it with: pip install "mkclust[cli]"\n'
    )


def test_without_matplotlib_a_picture_is_refused_before_the_fit(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    save_npz("d.npz", data)
    assert "mkclust[plot]" in fail("cluster", "d.npz", "-k", 3, "--plot", "fit.png")
    succeed("cluster", "d.npz", "-k", 3)


@pytest.mark.slow
def test_importing_the_library_does_not_import_the_extras():
    code = "import sys, mkclust; sys.exit(any(x in sys.modules for x in %r))"
    extras = ("typer", "matplotlib", "h5py", "mkclust.cli")
    assert subprocess.run([sys.executable, "-c", code % (extras,)], check=False).returncode == 0


def test_an_interrupted_run_is_one_line_and_leaves_nothing(data, monkeypatch):
    def interrupted(self, X, y=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recommended, "fit", interrupted)
    save_npz("d.npz", data)
    result = invoke("cluster", "d.npz", "-k", 3)
    assert result.exit_code == 130
    assert result.stderr == "mkclust: interrupted\n"
    assert os.listdir() == ["d.npz"]


def progress_on_a_terminal(**environment):
    """Return what a terminal sees on standard error while a slow fit runs."""
    import pty

    slow = (
        "import os, sys, time\n"
        "sys.modules.update(dict.fromkeys(os.environ.get('MISSING', '').split()))\n"
        "import mkclust.cli, mkclust\n"
        "fit = mkclust.METHODS[mkclust.RECOMMENDED].fit\n"
        "def slow(self, X, y=None):\n"
        "    time.sleep(1.5)\n"
        "    return fit(self, X)\n"
        "mkclust.METHODS[mkclust.RECOMMENDED].fit = slow\n"
        "mkclust.cli.main()\n"
    )
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", slow, "cluster", "d.npz", "-k", "3"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env=os.environ | environment
    )
    os.close(follower)
    seen = b""
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
    except OSError:  # the other end was closed
        pass
    os.close(leader)
    assert process.wait(timeout=60) == 0
    return seen


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")
@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"MISSING": "rich rich.console"}])
def test_a_terminal_sees_progress_which_is_erased_in_the_end(environment, data):
    save_npz("d.npz", data)
    seen = progress_on_a_terminal(**environment)
    assert b"clustering 60 samples, 2 views ... 1 s" in seen
    assert seen.rpartition(b"\r")[2] == b""
    assert seen.rstrip(b"\r").endswith(b"   ")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")
def test_a_terminal_that_can_sees_a_bar_which_is_erased_in_the_end(data):
    pytest.importorskip("rich")
    save_npz("d.npz", data)
    seen = progress_on_a_terminal(TERM="xterm", COLUMNS="120")
    assert b"clustering 60 samples, 2 views" in seen
    # The cursor is shown again, and the line of the bar is cleared.
    assert b"\x1b[?25h" in seen
    assert seen.endswith(b"\x1b[2K")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_control_c_ends_a_running_program_with_one_line(data):
    save_npz("d.npz", data)
    # Whoever started the tests may ignore the signal, which a new process inherits.
    slow = (
        "import signal, time, mkclust.cli, mkclust\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def slow(self, X, y=None):\n"
        "    open('begun', 'w').close()\n"
        "    time.sleep(60)\n"
        "mkclust.METHODS[mkclust.RECOMMENDED].fit = slow\n"
        "mkclust.cli.main()\n"
    )
    command = [sys.executable, "-c", slow, "cluster", "d.npz", "-k", "3"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if os.path.exists("begun") or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "mkclust: interrupted\n")
    assert sorted(os.listdir()) == ["begun", "d.npz"]


@pytest.fixture
def small_tables(monkeypatch):
    """Have the demo start from four small tables of ten clusters, and return them."""
    rng, digits = np.random.default_rng(0), np.arange(80) % 10
    ids = np.array([f"s{i}" for i in range(80)])
    tables = {}
    for name in ("rows", "columns", "fourier", "gradients"):
        values = 2 * rng.normal(size=(10, 4))[digits] + rng.normal(size=(80, 4))
        order = rng.permutation(80)
        tables[name] = Table(ids[order].tolist(), ["a", "b, c", "d", "e"], values[order])
    truth = dict(zip(ids.tolist(), digits.tolist(), strict=True))
    monkeypatch.setattr(cli.demo, "digit_tables", lambda: (tables, truth))
    return tables


@pytest.mark.slow
def test_the_demo_joins_files_by_id_explains_its_result_and_ends_with_a_command(
    small_tables, folder
):
    pytest.importorskip("matplotlib")
    result = succeed("demo", "--out", "new/demo")
    words = ("4 views agree beyond chance", "weight", "alignment", "set aside", "Seconds")
    words += (
        "80 samples x  4 features",
        "Joined by id: all 80 samples",
        "were not used in any fit",
    )
    words += ("rows alone", "gradients alone", "all together", "mkclust cluster FIRST.csv")
    for word in words:
        assert word in result.stdout
    inputs = ["columns.tsv", "fourier.csv.gz", "gradients.csv", "rows.csv"]
    assert sorted(os.listdir("new/demo")) == sorted([*inputs, "digits.png", "labels.csv"])
    pd = pytest.importorskip("pandas")
    first = small_tables["rows"].ids
    frames = {
        name: pd.DataFrame([[float(f"{x:.6g}") for x in row] for row in table.values], table.ids)
        for name, table in small_tables.items()
    }
    expected = Recommended(10, random_state=0).fit(frames).labels_
    labels = pd.read_csv("new/demo/labels.csv", index_col="id")["cluster"]
    assert list(labels.index) == first
    np.testing.assert_array_equal(labels, expected)
    accuracy = metrics.clustering_accuracy([int(sample[1:]) % 10 for sample in first], expected)
    assert f"all files together {100 * accuracy:.0f}." in result.stdout
    # What it tells to type gives the same clusters.
    (line,) = (line for line in result.stdout.splitlines() if "new/demo/mine.csv" in line)
    succeed(*shlex.split(line)[1:])
    assert pd.read_csv("new/demo/mine.csv", index_col="id")["cluster"].equals(labels)


def test_make_demo_runs_the_demo_last():
    make = shutil.which("make") or pytest.skip("needs make")
    root = Path(__file__).parents[2]
    # A make around this one would have both tell their folders.
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    told = subprocess.run(
        [make, "-n", "demo"], cwd=root, capture_output=True, text=True, check=True, env=outside
    )
    assert told.stdout.splitlines()[-1] == ".venv/bin/mkclust demo"


@pytest.mark.slow
def test_the_demo_writes_the_same_files_every_time(small_tables, folder):
    pytest.importorskip("matplotlib")
    succeed("demo", "--out", "once")
    succeed("demo", "--out", "again")
    for name in os.listdir("once"):
        assert Path("once", name).read_bytes() == Path("again", name).read_bytes()


def test_a_demo_into_a_file_is_refused(folder):
    (folder / "demo").touch()
    assert "demo" in fail("demo")
