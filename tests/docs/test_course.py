"""The lessons of the course run, and what they say of their results is so."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

COURSE = Path(__file__).parents[2] / "docs" / "course"


def quick_start(names):
    assert names["model"].agreement_.set_aside == ()
    accuracies = names["accuracies"]
    assert (
        sum(accuracies["all four views"] > accuracy for accuracy in accuracies.values())
        == 2
    )


def your_own_tables(names):
    assert names["model"].view_names_in_ == ("blood", "visit", "visit (categories)")
    p_values = {
        test.variable: test.p_value
        for test in names["annotate"](names["model"], names["other"]).tests
    }
    assert p_values["ill"] < 0.05 < p_values["birthday"]


def kernels(names):
    assert names["plain"].set_aside_ == ("measured",)
    assert names["auto"].set_aside_ == names["chosen"].set_aside_ == ()
    assert [str(w.message).split(":")[0] for w in names["caught"]] == [
        "View 'measured'"
    ]


def which_method(names):
    fitted, scores = names["fitted"], names["scores"]
    for name in ("agreement-kkm", "anchored-mkkm"):
        assert scores[name, "all"] == scores[name, "good"]
    for name in ("avg-kkm", "simplemkkm"):
        assert scores[name, "all"] < scores[name, "good"]
    model = fitted["simplemkkm", "all"]
    assert model.kernel_names_[np.argmax(model.weights_)] == "static"
    assert names["caught"][0].category.__name__ == "WeightsWarning"


def reading_a_result(names):
    assert names["careful"].set_aside_ == ("shuffled",)
    model = names["model"]
    assert np.argmax(model.weights_) == np.argmin(model.alignments_) == 4
    assert model.duality_gap_ <= 1e-6


def new_samples(names):
    np.testing.assert_array_equal(names["again"].predict(names["new"]), names["labels"])


def number_of_clusters(names):
    assert names["found"].n_clusters == 4
    assert names["nothing"].evidence == "none"
    assert names["continuum"].evidence == "weak"


def missing_views(names):
    assert [w.category.__name__ for w in names["caught"]] == ["NoAgreementWarning"]
    assert len(names["few"].labels_) < 30 < 200 < len(names["all_"].labels_)
    assert names["all_"].missingness_.followed_views == ()


def large_data(names):
    assert names["estimate"].strategy(available=16 * 2**30) == "features"
    np.testing.assert_array_equal(names["by_chunks"].labels_, names["model"].labels_)


def reproducing_the_paper(names):
    assert all(row["status"] == "ok" for row in names["rows"])
    assert {row["method"] for row in names["rows"]} == set(names["names"])


def adding_a_method(names):
    np.testing.assert_allclose(names["fitted"].weights_.sum(), 1)
    assert names["Powered"](strength=0.0).fit(names["views"]).weights_.std() < 1e-12


def cells(names):
    assert names["model"].n_clusters_ == 6
    score = names["adjusted_rand_index"]
    assert score(names["types"], names["model"].labels_) > 0.95
    assert score(names["types"], names["alone"].labels_) < 0.8


CLAIMS = (
    quick_start,
    your_own_tables,
    kernels,
    which_method,
    reading_a_result,
    new_samples,
)
CLAIMS += (
    number_of_clusters,
    missing_views,
    large_data,
    reproducing_the_paper,
    adding_a_method,
    cells,
)
# What each lesson claims, by the name of its file.
LESSONS = {
    f"{number:02}_{claim.__name__}": claim
    for number, claim in enumerate(CLAIMS, start=1)
}


def test_every_lesson_is_tested():
    assert sorted(path.stem for path in COURSE.glob("*.py")) == list(LESSONS)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_and_what_it_says_is_so(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("mudata")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    try:
        LESSONS[name](runpy.run_path(str(COURSE / f"{name}.py")))
    finally:
        matplotlib.pyplot.close("all")
    assert not list(tmp_path.iterdir())  # a lesson leaves nothing behind
