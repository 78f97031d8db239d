"""``mkclust cluster``: the labels of the estimator, its files, and what it refuses."""

import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkclust
from helpers.cli import fail, invoke, succeed, three_clusters
from mkclust import metrics, plots
from mkclust.cli.inputs import Data
from mkclust.cli.models import new_model, prepare
from mkclust.cli.options import Request

Recommended = mkclust.METHODS[mkclust.RECOMMENDED]
posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs POSIX permissions and limits"
)


@pytest.fixture(autouse=True)
def files(folder):
    """Write one file of two views."""
    views, y = three_clusters(60)
    np.savez("d.npz", **views, y=y)


@pytest.fixture
def views():
    return three_clusters(60)[0]


def gaussian(X):
    distances = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-distances / distances.mean())


def kernels():
    views, _ = three_clusters(60)
    return np.array(
        [gaussian(view) for view in (*views.values(), np.hstack([*views.values()]))]
    )


def read_labels(path="labels.csv"):
    table = pd.read_csv(path)
    assert list(table) == ["id", "cluster", "silhouette", "margin"]
    return table["cluster"].to_numpy()


def read_run(path="run.json"):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


def test_views_of_a_file_have_the_labels_of_the_estimator_and_its_scores(views):
    _, y = three_clusters(60)
    result = succeed("cluster", "d.npz", "-k", 3)
    model = Recommended(3, random_state=0).fit(views)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    record = read_run()
    assert record["weights"] == pytest.approx(model.weights_)
    assert record["scores"] == pytest.approx(metrics.scores(y, model.labels_))
    assert "60 samples, 3 clusters" in result.stdout
    assert "weight" not in result.stdout
    assert result.stderr == ""


def test_a_stack_of_kernels_and_square_matrices_are_clustered_as_kernels():
    np.save("K.npy", kernels())
    succeed("cluster", "K.npy", "-k", 3)
    model = Recommended(3, kernels="precomputed", random_state=0).fit(kernels())
    np.testing.assert_array_equal(read_labels(), model.labels_)
    np.testing.assert_allclose(read_run()["weights"], model.weights_, rtol=1e-12)
    np.savez("K.npz", **dict(zip("abc", kernels(), strict=True)))
    succeed("cluster", "K.npz", "-k", 3, "--kernels", "precomputed")
    assert read_run()["kernel_names"] == ["a", "b", "c"]
    np.testing.assert_array_equal(read_labels(), model.labels_)


def test_kernels_are_asked_for_by_the_name_of_a_view(views):
    succeed("cluster", "d.npz", "-k", 3, "--kernels", "cosine")
    model = Recommended(3, kernels="cosine", random_state=0).fit(views)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    succeed("cluster", "d.npz", "-k", 3, "--kernels", "left=cosine")
    assert read_run()["rules"]["left"] == "cosine"
    assert "lft" in fail("cluster", "d.npz", "-k", 3, "--kernels", "lft=cosine")
    both = ("--kernels", "cosine", "--kernels", "left=linear")
    assert "VIEW=" in fail("cluster", "d.npz", "-k", 3, *both)
    assert "'gaussian'" in fail(
        "cluster", "d.npz", "-k", 3, "--kernels", "left=gausian"
    )
    np.save("K.npy", kernels())
    assert "--kernels" in fail("cluster", "K.npy", "-k", 3, "--kernels", "cosine")
    assert "--landmarks" in fail("cluster", "K.npy", "-k", 3, "--landmarks", 9)


@pytest.mark.parametrize(
    ("method", "setting", "word"),
    [
        ("mkkm-mir", "reg=-1", "reg=-1"),
        ("simplemkkm", "solvr=subspace", "'solver'"),
        ("mkkm", "anchor=1", "anchored-mkkm"),
        ("lkam", "reg", "NAME=VALUE"),
        ("lkam", "n_clusters=4", "n_clusters"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_before_anything_is_read(
    method, setting, word
):
    assert word in fail(
        "cluster", "missing.npz", "-k", 3, "--method", method, "--set", setting
    )


def test_landmarks_approximate_the_kernels_if_asked_for(views):
    succeed(
        "cluster", "d.npz", "-k", 3, "--landmarks", 20, "--method", "simplemkkm", "-v"
    )
    model = mkclust.SimpleMKKM(
        3, approximation=mkclust.kernels.Nystroem(20), random_state=0
    )
    model.fit(views)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    record = read_run()
    assert record["landmarks"] == 20
    assert record["approximation_error"] == pytest.approx(
        model.approximation_error_.tolist()
    )


def test_the_recommended_method_refuses_landmarks_with_advice():
    error = fail("cluster", "d.npz", "-k", 3, "--landmarks", 20)
    assert "--landmarks 20: agreement-kkm needs none" in error
    assert "--method anchored-mkkm" in error


def test_the_recommended_method_learns_from_anchors_by_itself(views):
    anchors = ("--set", "anchors=40", "--set", "learn_from=50")
    for options in [(), ("--landmarks", "none")]:
        succeed("cluster", "d.npz", "-k", 3, *anchors, *options)
        assert read_run()["landmarks"] is None
    model = Recommended(3, anchors=40, learn_from=50, random_state=0).fit(views)
    np.testing.assert_array_equal(read_labels(), model.labels_)
    assert len(model.anchors_) == 40


@pytest.mark.parametrize(
    ("method", "landmarks"),
    [("agreement-kkm", None), ("simplemkkm", 200), ("lkam", None)],
)
def test_kernels_of_many_samples_are_approximated_for_methods_that_need_it(
    method, landmarks
):
    views = {name: np.zeros((20_000, 2)) for name in ("a", "b")}
    data = Data(views, precomputed=False, n_samples=20_000, inputs=[], lines=[])
    request = Request(inputs=["d.npz"], n_clusters=3, method=method)
    prepared = prepare(request, new_model(request), data)
    assert prepared.landmarks == landmarks
    assert ("20,000 samples" in prepared.decision) == (landmarks is not None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [(), ("--set", "anchors=40", "--set", "learn_from=50")]
)
@pytest.mark.parametrize(
    "landmarks", [(), ("--landmarks", 20, "--method", "simplemkkm")]
)
@pytest.mark.parametrize("n_files", [1, 2])
def test_workers_of_a_cluster_find_the_same_clusters(
    views, landmarks, settings, n_files
):
    if landmarks and settings:
        pytest.skip("methods have landmarks or anchors")
    distributed = pytest.importorskip("distributed")
    files = [f"{name}.npy" for name in views][:n_files]
    for file, view in zip(files, views.values(), strict=False):
        np.save(file, view)
    command = ("cluster", *files, "-k", 3, *landmarks, *settings)
    succeed(*command)
    labels, run = read_labels(), read_run()
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(
        processes=False, protocol="tcp", **options
    ) as cluster:
        address = cluster.scheduler_address
        succeed(*command, "--cluster", address, "--report", "page.html")
        assert (read_run()["stability"] is None) == (run["stability"] is None)
    np.testing.assert_array_equal(read_labels(), labels)
    assert "a.csv" in fail("cluster", "a.csv", "-k", 3, "--cluster", address)


def test_a_table_that_shares_nothing_is_named_with_its_p_value_and_recorded():
    views = three_clusters(90)[0] | {
        "noise": np.random.default_rng(1).normal(size=(90, 5))
    }
    np.savez("three.npz", **views)
    text = succeed("cluster", "three.npz", "-k", 3).stdout
    model = Recommended(3, random_state=0).fit(views)
    record, p_value = read_run(), model.agreement_.p_values[2, :2].min()
    assert f"Not used: noise: no clear agreement (p = {p_value:.1g} with " in text
    assert record["agreement"]["set_aside"] == ["noise"]
    np.testing.assert_allclose(
        record["agreement"]["p_values"], model.agreement_.p_values
    )
    assert record["stability"] > 0.8


def test_the_record_of_a_run_is_complete():
    settings = ("--set", "tol=1e-5", "--set", "normalize=false")
    succeed(
        "cluster", "d.npz", "-k", 3, "--method", "simplemkkm", "--seed", 5, *settings
    )
    record = read_run()
    assert sum(record["weights"]) == pytest.approx(1, abs=1e-12)
    assert 0 <= record["gap"] <= 1e-5
    assert record["seed"] == record["parameters"]["random_state"] == 5
    assert (record["parameters"]["tol"], record["parameters"]["normalize"]) == (
        1e-5,
        False,
    )
    assert sum(record["cluster_sizes"]) == record["n_samples"] == 60
    assert set(record["versions"]) == {
        "mkclust",
        "numpy",
        "scipy",
        "scikit-learn",
        "python",
    }
    assert record["seconds"]["total"] >= record["seconds"]["solve"] >= 0
    content = Path("d.npz").read_bytes()
    (entry,) = record["inputs"]
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert entry["bytes"] == len(content)
    assert record["command"]["options"]["settings"] == ["tol=1e-5", "normalize=false"]


def test_labels_have_ids_and_scores_and_clusters_are_numbered_by_falling_size(views):
    ids = [f'patient "{i}", ward {i % 7}' for i in range(60)]
    frames = {
        name: pd.DataFrame(view, ids).add_prefix("c") for name, view in views.items()
    }
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv", index_label="id")
    succeed("cluster", "left.csv", "right.csv", "-k", 3)
    table = pd.read_csv("labels.csv")
    model = Recommended(3, random_state=0).fit(frames)
    scores = mkclust.sample_scores(model)
    assert table["id"].tolist() == ids
    np.testing.assert_array_equal(table["cluster"], model.labels_)
    np.testing.assert_allclose(table["silhouette"], scores.silhouette, atol=6e-5)
    np.testing.assert_allclose(table["margin"], scores.margin, atol=6e-5)
    assert (np.diff(np.bincount(table["cluster"])) <= 0).all()


@pytest.mark.parametrize(
    ("option", "path", "word"),
    [
        ("--labels", "a_folder", "regular file"),
        ("--labels", "./d.npz", "input"),
        ("--labels", "linked.csv", "input"),
        ("--run", "labels.csv", "another output"),
        ("--plot", "fit.xyz", "suffix"),
        ("--report", "fit.pdf", ".html"),
        ("--save", "model.pkl", ".skops"),
        ("--labels", "/dev/null", "regular file"),
        ("--labels", "two\nlines.csv", "--labels"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(
    option, path, word, folder
):
    (folder / "a_folder").mkdir()
    os.symlink("d.npz", "linked.csv")
    content = Path("d.npz").read_bytes()
    np.savez("bad.npz", X=np.ones(3))
    assert word in fail("cluster", "d.npz", "bad.npz", "-k", 3, option, path)
    assert Path("d.npz").read_bytes() == content


def test_labels_of_a_finished_fit_stay_if_its_picture_fails(monkeypatch):
    pytest.importorskip("matplotlib")

    def broken(*_):
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(plots, "plot_fit", broken)
    result = invoke("cluster", "d.npz", "-k", 3, "--plot", "fit.png")
    assert result.exit_code == 2
    assert "60 samples, 3 clusters" in result.stdout
    assert result.stderr.startswith("mkclust: error: fit.png: ")
    assert "written: labels.csv and run.json" in result.stderr
    assert sorted(os.listdir()) == ["d.npz", "labels.csv", "run.json"]


@posix
def test_a_full_disk_is_told_with_the_file_and_leaves_the_old_one():
    import resource

    Path("labels.csv").write_text("precious")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        message = fail("cluster", "d.npz", "-k", 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message == "mkclust: error: labels.csv: File too large\n"
    assert Path("labels.csv").read_text() == "precious"


@posix
def test_files_that_are_replaced_stay_private():
    names = ("labels.csv", "run.json", "model.skops")
    for name in names:
        Path(name).touch(mode=0o600)
    succeed("cluster", "d.npz", "-k", 3, "--save", "model.skops")
    for name in names:
        assert Path(name).stat().st_size > 0
        assert Path(name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "error",
    [ValueError("two\nlines"), OSError(28, "No space left", "disk"), MemoryError()],
)
def test_expected_errors_of_a_fit_are_one_line_and_old_outputs_stay(error, monkeypatch):
    def broken(self, X, y=None):
        raise error

    monkeypatch.setattr(Recommended, "fit", broken)
    Path("labels.csv").write_text("precious")
    fail("cluster", "d.npz", "-k", 3)
    assert Path("labels.csv").read_text() == "precious"


def test_warnings_are_plain_lines_and_are_kept_in_the_record(monkeypatch):
    fit = Recommended.fit

    def noisy(self, X, y=None, **options):
        for _ in range(2):
            warnings.warn(
                "the weights\nare odd", mkclust.exceptions.WeightsWarning, stacklevel=2
            )
        warnings.warn("old name", DeprecationWarning, stacklevel=2)
        return fit(self, X, y, **options)

    monkeypatch.setattr(Recommended, "fit", noisy)
    result = succeed("cluster", "d.npz", "-k", 3)
    assert result.stderr == "warning: the weights are odd\n"
    assert read_run()["warnings"] == ["the weights are odd"]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["d.npz"], "mkclust suggest"),
        (["d.npz", "-k", "0"], "-k"),
        (["d.npz", "-k", "60"], "60"),
        (["d.npz", "-k", "3", "--method", "simplemkm"], "'simplemkkm'"),
        (["d.npz", "-k", "3", "--join", "iner"], "join='iner'"),
        (["d.npz", "-k", "3", "--nonsense"], "--nonsense"),
        (["digitz", "-k", "3"], "'digits'"),
    ],
)
def test_a_wrong_argument_is_named(args, word):
    assert word in fail("cluster", *args)


@pytest.mark.parametrize("earlier", ["labels.csv", "m.skops"])
def test_clusters_are_numbered_as_in_an_earlier_run_and_reruns_are_too(earlier):
    views, _ = three_clusters(60)
    ids = [f"p{place:02}" for place in range(60)]
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    for name, frame in frames.items():
        frame.add_prefix(name).to_csv(f"{name}.csv", index_label="id")
    succeed("cluster", "left.csv", "right.csv", "-k", 3, "--save", "m.skops")
    before = pd.read_csv("labels.csv", index_col="id")["cluster"]

    # Fewer samples of what was the first cluster make it the smallest one.
    rows = np.flatnonzero((before.to_numpy() != 0) | (np.arange(60) < 30))[::-1]
    for name, frame in frames.items():
        frame.iloc[rows].add_prefix(name).to_csv(f"{name}.csv", index_label="id")
    command = ("cluster", "left.csv", "right.csv", "-k", 3, "--labels", "new.csv")
    succeed(*command)
    other = pd.read_csv("new.csv", index_col="id")["cluster"]
    assert not other.equals(before[other.index])
    succeed(*command, "--align-with", earlier, "--save", "n.skops")
    found = pd.read_csv("new.csv", index_col="id")["cluster"]
    assert found.equals(before[found.index])
    succeed("predict", "n.skops", "left.csv", "right.csv")
    predicted = pd.read_csv("predicted.csv", index_col="id")["cluster"]
    assert predicted.equals(found)
    succeed("rerun", "new.run.json")
    assert "no table with the columns" in fail(*command, "--align-with", "left.csv")


def test_variables_of_other_samples_cost_no_fit_and_unreadable_ones_are_refused():
    assert "nowhere.npz" in fail(
        "cluster", "d.npz", "-k", 3, "--annotate", "nowhere.npz"
    )
    np.savez("other.npz", clinic=np.ones((7, 2)))
    message = fail("cluster", "d.npz", "-k", 3, "--annotate", "other.npz")
    assert "other.npz: the table has 7 rows" in message


def test_what_was_read_as_the_event_is_printed_and_recorded_with_counts():
    _, y = three_clusters(60)
    died = np.arange(60) % 2 == 0
    clinic = {"OS_MONTHS": 1 + 10 * y + np.arange(60) / 60}
    clinic["OS_STATUS"] = np.where(died, "1:DECEASED", "0:LIVING")
    pd.DataFrame(clinic).to_csv("clinic.csv", index=False)
    result = succeed("cluster", "d.npz", "-k", 3, "--annotate", "clinic.csv")
    sentence = "events: 30 of 60, OS_STATUS = 1:DECEASED"
    assert sentence in result.stdout
    assert any(sentence in note for note in read_run()["annotation"]["notes"])
    assert "<= 0.001" in result.stdout


def test_options_for_files_that_are_not_given_are_refused():
    assert "dd.npz" in fail("cluster", "d.npz", "-k", 3, "--missing", "dd.npz=-9999")
    assert "--event" in fail("cluster", "d.npz", "-k", 3, "--time", "months")


def test_the_fit_and_the_command_line_state_one_p_value_and_one_limit_for_a_view():
    """The views that are used have other numbers of samples in common, and so other
    limits."""
    rng = np.random.default_rng(0)
    views = {name: pd.DataFrame(view) for name, view in three_clusters(150)[0].items()}
    views["noise"] = pd.DataFrame(rng.normal(size=(150, 5)))
    views["right"] = views["right"][:120]
    views = {name: view.add_prefix(name) for name, view in views.items()}
    for name, view in views.items():
        view.index = [f"sample {i}" for i in view.index]
        view.to_csv(f"{name}.csv", index_label="id")
    files = [f"{name}.csv" for name in views]
    model = Recommended(3, join="outer", random_state=0).fit(views)
    found = model.agreement_.evidence(2)
    said = model.agreement_.verdict()
    assert f"noise (p = {found.p_value:.1g}); the limit is {found.limit:.1g}." in said
    text = succeed("cluster", *files, "-k", 3, "--join", "outer").stdout
    closest = (
        f"p = {found.p_value:.1g} with {found.partner}; the limit is {found.limit:.1g}"
    )
    assert f"Not used: noise: no clear agreement ({closest})." in text


def mixed_clinic(n, rng):
    """Return one table whose numbers and categories agree with each other."""
    is_male = rng.random(n) < 0.5
    height = 165 + 12 * is_male + rng.normal(scale=4, size=n)
    return pd.DataFrame({"sex": np.where(is_male, "m", "f"), "height": height})


def test_a_table_of_numbers_and_categories_does_not_vouch_for_itself():
    rng, y = np.random.default_rng(0), np.arange(150) % 3
    omics = pd.DataFrame(3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(150, 20)))
    omics.to_csv("omics.csv")
    mixed_clinic(150, rng).to_csv("clinical.csv")
    result = succeed("cluster", "omics.csv", "clinical.csv", "-k", 3)
    assert "The two views do not agree clearly" in result.stdout
    assert "Not used" not in result.stdout
    assert metrics.adjusted_rand_index(y, read_labels()) == pytest.approx(1)

    # What is used of a table, and what is not, are named apart.
    similar = 3 * rng.normal(size=(3, 4))[y] + rng.normal(size=(150, 4))
    table = (
        pd.DataFrame(similar).add_prefix("x").assign(sex=mixed_clinic(150, rng)["sex"])
    )
    table.to_csv("clinical.csv")
    text = succeed("cluster", "omics.csv", "clinical.csv", "-k", 3).stdout
    assert "Used: omics and clinical, which agree" in text
    assert "Not used: clinical (categories): no clear agreement" in text
