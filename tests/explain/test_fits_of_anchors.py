"""What is said of fits of more samples than anchors: of all samples, kernels of anchors
alone."""

import numpy as np
import pandas as pd
import pytest

from mkclust import AgreementKKM, annotate, describe, diagnose, sample_scores, stability
from mkclust.data import as_dask, read_samples
from mkclust.exceptions import UncoveredSamplesWarning
from mkclust.explain.report import report_html
from mkclust.plots import EmbeddingDisplay, SortedKernelDisplay

N, ANCHORS = 300, 90
IDS = np.array([f"cell {i:03}" for i in range(N)])
LEARNED = {"anchors": ANCHORS, "learn_from": 150, "random_state": 0}


def make_views(n):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    views = {
        name: 5 * rng.normal(size=(3, 4))[y] + rng.normal(size=(n, 4)) for name in "ab"
    }
    return views | {"noise": rng.normal(size=(n, 3))}, y


@pytest.fixture(scope="module")
def views():
    return make_views(N)[0]


@pytest.fixture(scope="module")
def frames(views):
    return {
        name: pd.DataFrame(view, IDS).add_prefix(name) for name, view in views.items()
    }


@pytest.fixture(scope="module")
def model(views):
    return AgreementKKM(3, **LEARNED).fit(views)


@pytest.fixture(scope="module")
def incomplete(views):
    observed = np.random.default_rng(1).random((N, 3)) > 0.15
    observed[:4] = False, False, True
    observed[4:, 0] |= ~observed[4:, 1]
    with pytest.warns(UncoveredSamplesWarning):
        model = AgreementKKM(3, **LEARNED).fit(views, observed=observed)
    return model, read_samples(views, observed=observed)


def test_features_are_compared_on_all_samples(views, model):
    found = describe(model, views)
    assert found.sizes == tuple(np.bincount(model.labels_))
    for row in found.effects[:10]:
        column = views[row.view][:, int(row.feature.split()[1])]
        is_in = model.labels_ == row.cluster
        assert row.mean_in == pytest.approx(column[is_in].mean())
        assert row.mean_out == pytest.approx(column[~is_in].mean())


def test_variables_are_tested_on_all_samples_but_not_those_clustered_on(views, model):
    rng = np.random.default_rng(2)
    found = annotate(model, {"age": rng.normal(size=N), "same": views["a"][:, 1]})
    by_name = {row.variable: row for row in found.tests}
    assert by_name["age"].n_samples == N
    assert "make the clusters" in by_name["same"].reason


def test_every_sample_has_a_score(model):
    scores = sample_scores(model)
    assert np.isfinite(scores.silhouette).all()
    assert np.isfinite(scores.margin).all()


@pytest.mark.parametrize("max_samples", [200, 2000])
def test_kernels_are_diagnosed_on_samples_of_all(views, model, max_samples):
    found = diagnose(model, views, max_samples=max_samples)
    assert found.n_samples == N
    assert found.n_diagnosed == pytest.approx(min(max_samples, N), abs=3)
    assert found.refit_agreement > 0.9
    assert found.table["agreement"][["a", "b"]].min() > 0.9
    assert abs(found.table["agreement"]["noise"]) < 0.2
    assert found.noise == ("noise",)


def test_refits_are_on_parts_of_all_samples(frames, views, model):
    found = stability(model, views, n_resamples=4)
    assert found.size == 240
    assert found.mean > 0.95
    assert np.isfinite(found.samples).mean() > 0.95
    assert np.isfinite(found.clusters).all()
    turned = {name: frame.iloc[::-1] for name, frame in frames.items()}
    again = stability(AgreementKKM(3, **LEARNED).fit(frames), turned, n_resamples=4)
    assert again.samples.shape == (N,)


def test_only_anchors_have_kernels(views, model):
    rows = model.anchors_[[5, 60, 7]]
    found = model.mixed_kernel(views, rows)
    alone = {name: view[model.anchors_] for name, view in views.items()}
    own = AgreementKKM(3, random_state=0).fit(alone)
    np.testing.assert_allclose(found, own.mixed_kernel(alone, [5, 60, 7]), atol=1e-9)
    others = np.setdiff1d(np.arange(N), model.anchors_)
    for samples in (None, [*rows, others[0]]):
        with pytest.raises(
            ValueError, match=r"90 anchors .* 300 samples.*model\.anchors_"
        ):
            model.mixed_kernel(views, samples)
    with pytest.raises(ValueError, match=f"and not of {others[0]}"):
        model.mixed_kernel(views, [*rows, others[0]])


def test_similarities_are_drawn_of_anchors_and_the_map_of_all(views, model):
    drawn = SortedKernelDisplay.from_estimator(model, views, max_samples=60)
    assert np.isin(drawn.samples, model.anchors_).all()
    assert sum(drawn.sizes.values()) == N
    assert "from the anchors" in drawn.note
    np.testing.assert_array_equal(drawn.labels, model.labels_[drawn.samples])
    of_all = EmbeddingDisplay.from_estimator(model)
    assert len(of_all.samples) == N
    # The rows of the graph, which the nearest centers give their labels.
    np.testing.assert_array_equal(model._assign(of_all.embedding), model.labels_)


def test_samples_of_which_nothing_is_known_have_no_scores(incomplete):
    model, X = incomplete
    unknown = np.flatnonzero(model.labels_ < 0)
    assert {0, 1, 2, 3} <= set(unknown)
    found = stability(model, X, n_resamples=2)
    assert np.isnan(found.samples[unknown]).all()
    assert np.isnan(sample_scores(model).silhouette[unknown]).all()
    assert sum(describe(model, X).sizes) == N - len(unknown)
    assert diagnose(model, X, leave_one_out=False).n_samples == N


@pytest.mark.slow
def test_the_report_counts_all_samples(frames, incomplete):
    model = AgreementKKM(3, **LEARNED).fit(frames)
    page = report_html(model, frames, n_resamples=2)
    assert "<h1>3 groups of" in page
    assert f"We clustered {N} samples into 3 clusters" in page
    assert "2 refits on 240 samples" in page
    assert "Features of the clusters" in page
    assert "0.0 % of" not in page
    few, X = incomplete
    page = report_html(few, X, n_resamples=2)
    assert "two samples were compared by the views that have both" in page
    assert f"We clustered {np.sum(few.labels_ >= 0)} samples" in page


def test_the_report_says_neighborhoods_of_anchors(frames):
    model = AgreementKKM(3, **LEARNED).fit(frames)
    page = " ".join(report_html(model, frames, n_resamples=0).split())
    assert "<h1>3 groups of" in page
    assert f"We clustered {N} samples into 3 clusters" in page
    assert "Features of the clusters" in page
    assert "into 3 clusters by their neighborhoods in several views" in page
    nearest = (
        "5, 10 and 20 nearest samples, those of 90 anchors that were drawn by their ids"
    )
    assert nearest in page
    assert "150 samples made up the graph, and the others were assigned" in page
    assert "rows of the leading eigenvectors of the graph" in page
    for words in ("mixed kernel", "relaxed partition", "multiple kernel clustering"):
        assert words not in page


def test_lazy_views_are_computed_where_kernels_are_needed(views):
    pytest.importorskip("dask")
    for options in (LEARNED, {"random_state": 0}):
        held, lazy = (
            AgreementKKM(3, **options).fit(X) for X in (views, as_dask(views))
        )
        np.testing.assert_array_equal(lazy.labels_, held.labels_)
        rows = getattr(held, "anchors_", np.arange(N))[:4]
        K = lazy.mixed_kernel(as_dask(views), rows)
        np.testing.assert_allclose(K, held.mixed_kernel(views, rows))
        found = diagnose(lazy, as_dask(views), leave_one_out=False)
        assert found.table["agreement"][["a", "b"]].min() > 0.9


@pytest.mark.slow
def test_twelve_thousand_samples_are_reported_with_the_defaults():
    views, _ = make_views(12_000)
    model = AgreementKKM(3, random_state=0).fit(views)
    assert len(model.anchors_) == 10_000
    page = report_html(model, views, n_resamples=2)
    assert "We clustered 12,000 samples" in page
    assert diagnose(model, views, leave_one_out=False).noise == ("noise",)
