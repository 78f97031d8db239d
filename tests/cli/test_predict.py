"""``mkclust predict``: clusters of new samples, read as the files of the fit."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("skops")

import skops.io

import mkclust
from helpers.cli import fail, succeed, three_clusters
from mkclust.fit.persistence import FORMAT
from mkclust.stack.discretize import normalize_rows


@pytest.fixture(autouse=True)
def files(folder):
    """Write files of old samples and of new ones."""
    views, _ = three_clusters(60)
    np.savez("old.npz", **{name: view[:45] for name, view in views.items()})
    np.savez("new.npz", **{name: view[45:] for name, view in views.items()})


def clusters(path):
    return pd.read_csv(path, dtype={"id": str}, index_col="id")["cluster"]


def test_new_samples_have_the_clusters_that_the_estimator_predicts():
    succeed("cluster", "old.npz", "-k", 3, "--save", "model.skops")
    before = Path("labels.csv").read_bytes()
    assert succeed("predict", "model.skops", "new.npz", "-q").output == ""
    result = succeed("predict", "model.skops", "new.npz")
    model = mkclust.METHODS[mkclust.RECOMMENDED](3, random_state=0).fit(
        dict(np.load("old.npz"))
    )
    table, expected = (
        pd.read_csv("predicted.csv"),
        model.predict(dict(np.load("new.npz"))),
    )
    assert list(table) == ["id", "cluster", "margin", "coverage"]
    assert table["id"].tolist() == list(range(15))
    np.testing.assert_array_equal(table["cluster"], expected)
    assert table["margin"].between(0, 2).all()
    rows = normalize_rows(model._rows_of(model.transform(dict(np.load("new.npz")))))
    cosines = np.sort(rows @ normalize_rows(model._centers).T, axis=1)
    np.testing.assert_allclose(
        table["margin"], cosines[:, -1] - cosines[:, -2], atol=6e-5
    )
    assert f"{np.sum(expected == 1)} in 1" in result.stdout
    assert result.stderr == ""
    assert Path("labels.csv").read_bytes() == before


def test_samples_that_resemble_nothing_are_counted_and_have_no_coverage():
    new = dict(np.load("new.npz"))
    far = {name: np.vstack([view, -8 + 0 * view[:4]]) for name, view in new.items()}
    np.savez("far.npz", **far)
    succeed("cluster", "old.npz", "-k", 3, "--save", "model.skops")
    result = succeed("predict", "model.skops", "far.npz")
    coverage = pd.read_csv("predicted.csv")["coverage"]
    model = mkclust.load_model("model.skops")
    np.testing.assert_allclose(coverage, model.coverage(far), atol=1e-4)
    assert (coverage[15:] == 0).all()
    n_doubtful = int((coverage < 0.01).sum())
    assert f"Doubtful: {n_doubtful} of 19" in result.stdout
    result = succeed("predict", "model.skops", "far.npz", "--json", "-q")
    assert json.loads(result.stdout)["n_doubtful"] == n_doubtful


def test_the_cli_says_if_the_coverage_is_not_known():
    old, new = dict(np.load("old.npz")), dict(np.load("new.npz"))
    np.savez("K.npz", **{name: view @ view.T for name, view in old.items()})
    np.savez("cross.npz", **{name: view @ old[name].T for name, view in new.items()})
    options = (
        "--kernels",
        "precomputed",
        "--set",
        "normalize=false",
        "--save",
        "model.skops",
    )
    succeed("cluster", "K.npz", "-k", 3, *options)
    result = succeed("predict", "model.skops", "cross.npz")
    assert "unknown" in result.stdout
    assert "self_similarity" in result.stdout
    assert pd.read_csv("predicted.csv")["coverage"].isna().all()


def test_precomputed_kernels_are_predicted_from_similarities_to_the_training_samples():
    old, new = dict(np.load("old.npz")), dict(np.load("new.npz"))

    def similarities(name, rows):
        return np.exp(-np.square(rows[name][:, None] - old[name]).sum(axis=2) / 20)

    np.savez("K.npz", **{name: similarities(name, old) for name in old})
    np.savez("cross.npz", **{name: similarities(name, new) for name in old})
    succeed(
        "cluster", "K.npz", "-k", 3, "--kernels", "precomputed", "--save", "model.skops"
    )
    succeed("predict", "model.skops", "cross.npz", "--labels", "new.csv")
    model = mkclust.METHODS[mkclust.RECOMMENDED](
        3, kernels="precomputed", random_state=0
    )
    model.fit(dict(np.load("K.npz")))
    np.testing.assert_array_equal(
        clusters("new.csv"), model.predict(dict(np.load("cross.npz")))
    )


def test_views_of_other_names_are_taken_in_order_which_is_said():
    for age in ("old", "new"):
        for name, view in np.load(f"{age}.npz").items():
            np.save(f"{name}_{age}.npy", view)
    succeed(
        "cluster", "left_old.npy", "right_old.npy", "-k", 3, "--save", "model.skops"
    )
    files = ("left_new.npy", "right_new.npy")
    result = succeed("predict", "model.skops", *files, "--labels", "new.csv")
    assert "left_new as left_old and right_new as right_old" in result.stdout
    model = mkclust.METHODS[mkclust.RECOMMENDED](3, random_state=0).fit(
        dict(np.load("old.npz"))
    )
    np.testing.assert_array_equal(
        clusters("new.csv"), model.predict(dict(np.load("new.npz")))
    )


def test_inputs_that_a_model_does_not_take_are_named():
    succeed("cluster", "old.npz", "-k", 3, "--save", "model.skops")
    message = fail("predict", "model.skops", "new.npz::left", "--labels", "new.csv")
    assert "uses left and right" in message
    np.savez("wide.npz", left=np.ones((5, 9)), right=np.ones((5, 3)))
    assert "left" in fail("predict", "model.skops", "wide.npz", "--labels", "new.csv")


def test_a_method_that_does_not_predict_is_refused_with_one_that_does():
    succeed("cluster", "old.npz", "-k", 3, "--method", "lkam", "--save", "model.skops")
    message = fail("predict", "model.skops", "new.npz", "--labels", "new.csv")
    assert "LKAM" in message
    assert "--method agreement-kkm" in message


def test_a_foreign_file_is_refused_by_the_name_of_what_it_holds():
    model = mkclust.AverageKKM(3, random_state=0).fit(dict(np.load("old.npz")))
    model.agreement_ = os.system
    Path("model.skops").write_bytes(skops.io.dumps({"format": FORMAT, "model": model}))
    assert "system" in fail("predict", "model.skops", "new.npz", "--labels", "new.csv")


def test_texts_without_a_word_in_common_are_named_and_counted():
    words = np.random.default_rng(0).poisson(
        np.where(np.arange(45) // 15 == np.c_[:60] % 3, 0.8, 0.02)
    )
    words[[3, 8]] = 0
    own = np.zeros((60, 2))
    own[[3, 8], [0, 1]] = 5
    table = pd.DataFrame(
        np.hstack([words, own]), [f"text {i}" for i in range(60)]
    ).add_prefix("w")
    table.to_csv("a.csv", index_label="id")
    result = succeed(
        "cluster", "a.csv", "-k", 3, "--kernels", "sparse", "--save", "model.skops"
    )
    assert "text 3 and text 8" in result.stderr
    expected = clusters("labels.csv")
    assert expected[expected == -1].index.tolist() == ["text 3", "text 8"]
    result = succeed("predict", "model.skops", "a.csv")
    assert "2 samples of which nothing is known: -1" in result.stdout
    assert clusters("predicted.csv").equals(expected)


def write_patients(folder=".", rows=slice(None)):
    """Write tables of some patients: numbers, numbers with categories and a gap, and
    noise."""
    views, y = three_clusters(60)
    ids = pd.Index([f"P{number:02}" for number in range(60)], name="code")
    blood = pd.DataFrame(views["left"], index=ids).add_prefix("marker")
    visit = pd.DataFrame(views["right"], index=ids).add_prefix("item")
    visit["smoker"] = np.where(y == 0, "yes", "no")
    visit.iloc[3, 0] = np.nan
    noise = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 4)), ids).add_prefix(
        "q"
    )
    blood[rows].reset_index().assign(ward=1).to_csv(f"{folder}/blood.csv", index=False)
    visit[rows].sample(frac=1, random_state=0).to_csv(f"{folder}/visit.csv")
    noise[rows].T.to_csv(f"{folder}/noise.csv")
    return ids


FILES = ("blood.csv", "visit.csv", "noise.csv")
READ = (
    "--id",
    "code",
    "--samples-in",
    "noise.csv=columns",
    "--drop",
    "ward",
    "--impute",
    "median",
)


def test_new_files_are_read_as_those_of_the_fit_and_unused_tables_may_be_left_out(
    tmp_path,
):
    write_patients()
    result = succeed("cluster", *FILES, "-k", 3, *READ, "--save", "model.skops")
    assert "Not used: noise" in result.stdout
    expected = clusters("labels.csv").to_dict()
    succeed("predict", "model.skops", *reversed(FILES))
    assert clusters("predicted.csv").to_dict() == expected
    (tmp_path / "new").mkdir()
    write_patients("new", slice(10))
    succeed("predict", "model.skops", "new/blood.csv", "new/visit.csv")
    found = clusters("predicted.csv").to_dict()
    assert found == {f"P{number:02}": expected[f"P{number:02}"] for number in range(10)}


def test_a_table_may_be_left_out_if_samples_of_the_fit_may_lack_it(tmp_path):
    ids = write_patients()
    pd.read_csv("blood.csv")[4:].to_csv("blood.csv", index=False)
    succeed(
        "cluster", *FILES, "-k", 3, *READ, "--join", "outer", "--save", "model.skops"
    )
    expected = clusters("labels.csv")
    (tmp_path / "new").mkdir()
    write_patients("new", slice(10))
    result = succeed("predict", "model.skops", "new/visit.csv")
    assert "lacks 'blood', which the model uses" in result.stderr
    assert "missing from every new sample" in result.stderr
    found = clusters("predicted.csv")
    assert set(found.index) == set(ids[:10])
    assert (found == expected[found.index]).mean() >= 0.8


def test_a_table_may_be_left_out_of_a_complete_fit_only_if_asked():
    write_patients()
    succeed("cluster", *FILES, "-k", 3, *READ, "--save", "model.skops")
    expected = clusters("labels.csv")
    message = fail("predict", "model.skops", "visit.csv")
    assert "give the same tables of the new samples, or --join outer" in message
    os.rename("visit.csv", "other.csv")
    message = fail("predict", "model.skops", "other.csv", "--join", "outer")
    assert "named as in the fit" in message
    os.rename("other.csv", "visit.csv")
    succeed("predict", "model.skops", "visit.csv", "--join", "outer")
    found = clusters("predicted.csv")
    assert (found == expected[found.index]).mean() >= 0.8


def test_new_samples_may_be_missing_from_some_tables_if_asked():
    ids = write_patients()
    succeed("cluster", *FILES, "-k", 3, *READ, "--save", "model.skops")
    pd.read_csv("blood.csv").head(6).to_csv("blood.csv", index=False)
    assert "join='outer'" in fail("predict", "model.skops", *FILES[:2])
    succeed("predict", "model.skops", *FILES[:2], "--join", "inner")
    assert set(clusters("predicted.csv").index) == set(ids[:6])
    succeed("predict", "model.skops", *FILES[:2], "--join", "outer")
    assert set(clusters("predicted.csv").index) == set(ids)


def test_a_single_new_sample_is_read_with_the_labels_and_features_of_the_fit(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    places = 8 * rng.normal(size=(3, 3))[y] + rng.normal(size=(60, 3))
    frame = pd.DataFrame(places, [f"P{i:02}" for i in range(60)], ["x", "y", "z"])
    frame.to_csv("place.csv", index_label="id")
    options = ("--labels", "labels.csv", "--save", "model.skops")
    result = succeed("cluster", "place.csv", "-k", 3, *options)
    assert "y (60), taken for a feature" in result.stderr
    frame[:1].to_csv("one.csv", index_label="id")
    succeed("predict", "model.skops", "one.csv")
    assert clusters("predicted.csv")["P00"] == clusters("labels.csv")["P00"]


@pytest.mark.parametrize("is_absent", [False, True])
def test_a_column_that_new_files_lack_is_filled_with_a_warning_if_the_fit_fills_cells(
    is_absent,
):
    views, _ = three_clusters(60)
    for name, view in views.items():
        table = (
            pd.DataFrame(view).add_prefix("g").rename_axis("id").add_prefix("s", axis=0)
        )
        table.to_csv(f"{name}.csv")
        lacking = table.drop(columns="g1") if is_absent else table.assign(g1=np.nan)
        lacking.to_csv(f"new {name}.csv")
    files = ["left.csv", "right.csv"]
    new = ["new left.csv", "right.csv"]

    succeed("cluster", *files, "-k", 3, "--impute", "median", "--save", "model.skops")
    result = succeed("predict", "model.skops", *new)
    warned = "warning: View 'left' has no value in 1 of 3 columns ('g1'): "
    warned += "filled by the medians"
    assert result.stderr.startswith(warned)
    assert result.stderr.count("\n") == 1
    assert len(clusters("predicted.csv")) == 60

    succeed("cluster", *files, "-k", 3, "--save", "strict.skops")
    assert "'g1'" in fail("predict", "strict.skops", *new)

    if not is_absent:
        result = succeed("cluster", *new, "-k", 3, "--impute", "median")
        assert "1 of 3 columns ('g1') without any value" in result.stderr


def test_names_of_clusters_are_written_and_kept_for_new_samples():
    views, _ = three_clusters(60)
    for name, values in views.items():
        frame = pd.DataFrame(values).add_prefix(name)
        frame.to_csv(f"{name}.csv", index_label="id")
    files = ("left.csv", "right.csv")
    given = ("-k", 3, "--names", "0=basal, 1=luminal", "--save", "m.skops")
    result = succeed("cluster", *files, *given)
    assert "in basal" in result.stdout or "basal " in result.stdout
    table = pd.read_csv("labels.csv")
    titles = {0: "basal", 1: "luminal", 2: "2"}
    assert table["name"].astype(str).tolist() == table["cluster"].map(titles).tolist()
    result = succeed("predict", "m.skops", *files)
    assert "in basal" in result.stdout
    again = pd.read_csv("predicted.csv")
    assert again["name"].astype(str).tolist() == table["name"].astype(str).tolist()
    assert "0=basal,1=luminal" in fail("cluster", *files, "-k", 3, "--names", "basal")
    assert "0 to 2" in fail("cluster", *files, "-k", 3, "--names", "3=other")
