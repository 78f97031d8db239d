"""Heat maps: the rows are what sets clusters apart, the columns samples by cluster."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

pytest.importorskip("matplotlib")

from mkclust import AgreementKKM, AverageKKM, annotate, describe
from mkclust.plots import HeatmapDisplay
from mkclust.plots.heatmap import _differences

IDS = [f"p{place:02d}" for place in range(60)]


@pytest.fixture(scope="module")
def views():
    """Return two views of three clusters, each of which has a feature of its own."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    found = {}
    for name, place in (("rna", 0), ("protein", 5)):
        values = rng.normal(size=(60, 12))
        values[:, place : place + 3] += 6 * np.eye(3)[y]
        found[name] = pd.DataFrame(values, IDS).add_prefix(name)
    found["protein"] = found["protein"].iloc[4:]
    return found


@pytest.fixture(scope="module")
def model(views):
    return AgreementKKM(3, join="outer", random_state=0).fit(views)


def test_the_features_are_those_that_set_clusters_apart(model, views):
    display = HeatmapDisplay.from_estimator(model, views, n_features=6)
    assert set(display.features["rna"]) == {"rna0", "rna1", "rna2"}
    assert set(display.features["protein"]) == {"protein5", "protein6", "protein7"}
    table = describe(model, views).table
    strongest = table.groupby(["cluster", "view"]).first()["feature"]
    assert set(strongest) <= {*display.features["rna"], *display.features["protein"]}
    missing = np.isnan(display.values["protein"]).all(axis=1)
    assert [IDS[place] for place in np.flatnonzero(missing)] == IDS[:4]
    known = display.values["rna"]
    assert known.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    assert known.std(axis=0) == pytest.approx(np.ones(3))


def test_views_that_are_not_used_are_not_drawn(views):
    noise = np.random.default_rng(1).normal(size=(60, 4))
    more = views | {"noise": pd.DataFrame(noise, IDS)}
    model = AgreementKKM(3, join="outer", random_state=0).fit(more)
    assert model.set_aside_ == ("noise",)
    display = HeatmapDisplay.from_estimator(model, more)
    assert list(display.features) == ["rna", "protein"]


def test_samples_are_ordered_by_cluster_and_each_is_drawn_once(model, views):
    display = HeatmapDisplay.from_estimator(model, views)
    assert sorted(display.samples.tolist()) == list(range(60))
    assert (np.diff(model.labels_[display.samples]) >= 0).all()
    some = HeatmapDisplay.from_estimator(model, views, max_samples=30)
    assert len(set(some.samples.tolist())) == 30
    assert "30 samples of 60" in some.caption


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_differences_are_those_between_a_cluster_and_the_rest(kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 7)) * (rng.uniform(size=(50, 7)) < 0.7) * 3
    labels = rng.integers(-1, 3, size=50)
    found = _differences(kind(values), labels)
    known = labels >= 0
    for cluster in range(3):
        inside = values[known & (labels == cluster)]
        outside = values[known & (labels != cluster)]
        squares = len(inside) * inside.var(axis=0) + len(outside) * outside.var(axis=0)
        expected = (inside.mean(axis=0) - outside.mean(axis=0)) / np.sqrt(
            squares / known.sum()
        )
        assert found[cluster] == pytest.approx(expected)


def test_variables_are_matched_by_id_and_drawn_above(model, views):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(60, 9, 60), "sex": rng.choice(["f", "m"], 60)}, IDS
    )
    table.loc["p07", "age"] = np.nan
    shuffled = table.sample(frac=1, random_state=1)
    display = HeatmapDisplay.from_estimator(model, views, annotation=shuffled)
    assert display.annotation["sex"].tolist() == table["sex"].tolist()
    words = {label.get_text() for label in display.ax_.get_yticklabels()}
    assert {"age", "sex"} <= words
    legend = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert {"age", "sex", "f", "m"} <= legend
    tested = HeatmapDisplay.from_estimator(
        model, views, annotation=annotate(model, table)
    )
    assert list(tested.annotation) == ["age", "sex"]
    with pytest.raises(ValueError, match="annotation has 3 rows"):
        HeatmapDisplay.from_estimator(model, views, annotation={"age": [1, 2, 3]})


def test_kernels_hold_no_features_to_draw():
    kernels = np.stack([np.eye(12) + 0.1] * 2)
    model = AverageKKM(3, random_state=0).fit(kernels)
    with pytest.raises(ValueError, match="no features in memory"):
        HeatmapDisplay.from_estimator(model, kernels)
