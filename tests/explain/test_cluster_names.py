"""Names of clusters: given once, kept in the model, and shown wherever clusters are."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from mkclust import (
    AgreementKKM,
    AverageKKM,
    annotate,
    describe,
    load_model,
    name_clusters,
    save_model,
    stability,
    view_separation,
)
from mkclust.explain.cluster_names import align_clusters
from mkclust.plots import (
    ClassesDisplay,
    EmbeddingDisplay,
    HeatmapDisplay,
    SortedKernelDisplay,
)

NAMES = ("basal", "luminal", "2")


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [24, 20, 16])
    return {
        name: 5 * np.eye(3)[y] + rng.normal(size=(60, 3)) for name in ("rna", "protein")
    }


@pytest.fixture
def named(views):
    model = AverageKKM(3, random_state=0).fit(views)
    return name_clusters(model, {0: "basal", 1: "luminal"})


def words_of(display):
    """Return all words of a picture."""
    texts = [each.get_text() for each in display.ax_.texts]
    for labels in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        texts += [label.get_text() for label in labels]
    return " ".join(texts)


@pytest.mark.filterwarnings("ignore:The clusters follow")
@pytest.mark.parametrize("has_ids", [True, False])
def test_clusters_take_the_numbers_of_earlier_ones_also_for_new_samples(views, has_ids):
    ids = [f"p{place:02}" for place in range(60)]
    if has_ids:
        views = {name: pd.DataFrame(view, ids) for name, view in views.items()}
        views["rna"] = views["rna"][:50]
    options = {"random_state": 0, "join": "outer" if has_ids else "exact"}
    model = AgreementKKM(3, **options).fit(views)
    numbers = np.array([2, 0, 1])
    earlier = pd.Series(numbers[model.labels_], ids if has_ids else range(60))
    found = align_clusters(AgreementKKM(3, **options).fit(views), earlier.iloc[::-3])
    np.testing.assert_array_equal(found.labels_, earlier)
    np.testing.assert_array_equal(found.predict(views), earlier)
    if has_ids:
        counts = found.missingness_.counts[:, numbers]
        np.testing.assert_array_equal(counts, model.missingness_.counts)


def test_clusters_without_an_earlier_one_get_the_numbers_that_are_left(views):
    model = AverageKKM(3, random_state=0).fit(views)
    # The largest cluster was 1, and the smallest had a number that there is not now.
    earlier = pd.Series([1, 7], [0, 59])
    np.testing.assert_array_equal(
        align_clusters(model, earlier).labels_, np.repeat([1, 0, 2], [24, 20, 16])
    )


def test_names_are_kept_until_the_next_fit_and_in_files(named, views, tmp_path):
    assert named.cluster_names_ == NAMES
    pytest.importorskip("skops")
    again = load_model(save_model(named, tmp_path / "named.skops"))
    assert again.cluster_names_ == NAMES
    assert name_clusters(named, "abc").cluster_names_ == ("a", "b", "c")
    assert not hasattr(named.fit(views), "cluster_names_")


def test_names_are_in_every_display_and_summary(named, views):
    y = np.arange(60) % 2
    displays = [
        EmbeddingDisplay.from_estimator(named),
        SortedKernelDisplay.from_estimator(named, views),
        HeatmapDisplay.from_estimator(named, views),
        ClassesDisplay(labels=named.labels_, y=y, names=named.cluster_names_).plot(),
        describe(named, views).plot(),
        view_separation(named, views).plot(),
    ]
    for display in displays:
        assert "basal" in words_of(display)
        assert "luminal" in words_of(display)
    table = pd.DataFrame({"score": named.labels_ + 0.0})
    for found in (
        describe(named, views),
        annotate(named, table),
        view_separation(named, views),
        stability(named, views, n_resamples=2),
    ):
        assert "basal" in found.summary()
        assert "luminal" in found.summary()
    assert list(annotate(named, table).by_cluster)[2:] == list(NAMES)


def test_names_that_do_not_fit_are_refused(named):
    for names, words in (
        ({3: "other"}, "no cluster 3"),
        (["a", "b"], "2 names, and the model has 3 clusters"),
        (["a", "b", "a"], "a is the name, or the number, of several"),
        ({0: "1"}, "1 is the name, or the number, of several"),
        ({0: " "}, "that of cluster 0 is empty"),
    ):
        with pytest.raises(ValueError, match=words):
            name_clusters(named, names)
