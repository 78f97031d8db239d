"""Displays: what they draw is what a model has learned, for few and for many of
everything."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors

from helpers.views import blob_views
from mkclust import AgreementKKM, SimpleMKKM
from mkclust.kernels import Nystroem
from mkclust.plots import (
    AgreementDisplay,
    ClassesDisplay,
    ClusterTreeDisplay,
    ConvergenceDisplay,
    DescriptionDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    NumberOfClustersDisplay,
    SortedKernelDisplay,
    SurvivalDisplay,
    plot_fit,
)
from mkclust.plots.style import sample_clusters
from mkclust.plots.survival import NAME_HEIGHT, set_apart

SUGGESTION = SimpleNamespace(
    k_values=np.arange(2, 7),
    eigengaps=np.array([0.1, 0.7, 0.2, 0.1, 0.1]),
    tightness=np.array([0.5, 0.8, 0.6, np.nan, np.nan]),
    agreements=np.full(5, np.nan),
    n_clusters=3,
)


@pytest.fixture
def ax():
    return Figure(figsize=(7, 6), layout="constrained").subplots()


@pytest.fixture(scope="module")
def views():
    found, _ = blob_views(np.random.default_rng(0), n=60, k=3)
    return dict(zip(("shape", "color", "text"), found, strict=True))


@pytest.fixture(scope="module")
def model(views):
    return SimpleMKKM(3, random_state=0).fit(views)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def title(ax):
    return ax.get_title(loc="left")


def is_within_figure(figure):
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.02


def test_displays_show_what_a_model_has_learned(model, ax):
    weights, convergence, embedding = (
        display.from_estimator(model, ax=ax)
        for display in (KernelWeightsDisplay, ConvergenceDisplay, EmbeddingDisplay)
    )
    np.testing.assert_array_equal(weights.weights, model.weights_)
    np.testing.assert_array_equal(weights.alignments, model.alignments_)
    assert weights.note == model.WEIGHT_MEANING
    np.testing.assert_array_equal(convergence.history, model.history_)
    np.testing.assert_array_equal(embedding.labels, model.labels_)


def test_models_that_are_not_fitted_or_of_other_libraries_are_refused():
    with pytest.raises(NotFittedError):
        EmbeddingDisplay.from_estimator(SimpleMKKM(3))
    with pytest.raises(TypeError, match="KMeans"):
        EmbeddingDisplay.from_estimator(KMeans(2, n_init=1).fit(np.eye(4)))


def test_weights_are_drawn_beside_alignments_from_top_to_bottom(ax):
    bars = {"weights": [0.25, 0.75], "alignments": [0.9, 0.4]}
    KernelWeightsDisplay(
        kernel_names=["$\\frac$", "x" * 80], note="Read me.", **bars
    ).plot(ax)
    assert texts(ax) == ["0.250", "0.750", "0.90", "0.40"]
    assert ticks(ax.xaxis) == ["weight", "alignment"]
    assert ax.get_xlabel() == "Read me."
    assert is_within_figure(ax.figure)  # a name with a dollar is not a formula
    names = ax.get_yticklabels()
    assert len(names[1].get_text()) < 30
    assert names[0].get_window_extent().y0 > names[1].get_window_extent().y1


@pytest.mark.parametrize(
    "bounds", [None, [-np.inf, 9.0, 9.5], [np.nan, np.nan, np.nan]]
)
def test_only_a_certified_gap_is_claimed_and_unknown_bounds_are_not_drawn(ax, bounds):
    ConvergenceDisplay(history=[12.0, 11.0, 10.0], lower_bounds=bounds).plot(ax)
    ax.figure.draw_without_rendering()
    assert np.isfinite(ax.get_ylim()).all()
    assert "gap" not in title(ax)
    lower = [line.get_ydata() for line in ax.lines[1:]]
    assert len(lower) == (bounds is not None)
    for found in lower:
        np.testing.assert_array_equal(
            found, np.where(np.isfinite(bounds), bounds, np.nan)
        )


def test_nothing_is_to_be_added_to_the_numbers_of_an_axis(ax):
    ConvergenceDisplay(history=[1288.95, 1288.62, 1288.60]).plot(ax)
    ax.figure.draw_without_rendering()
    assert ax.yaxis.get_offset_text().get_text() == ""


def directions(n=200, k=8, seed=0):
    """Return rows around k directions that are far from each other, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return np.eye(k)[labels] + 0.3 / k**0.5 * rng.normal(size=(n, k)), labels


def points_of(embedding):
    labels = np.zeros(len(embedding), dtype=int)
    return EmbeddingDisplay(embedding=embedding, labels=labels).points


def test_separated_clusters_stay_separated_on_the_map():
    embedding, labels = directions()
    nearest = NearestNeighbors(n_neighbors=1).fit(points_of(embedding))
    assert (labels[nearest.kneighbors(return_distance=False)[:, 0]] == labels).all()


@pytest.mark.parametrize("n", [10, 50])
def test_the_map_depends_neither_on_a_rotation_nor_on_the_lengths_of_rows(n):
    rng = np.random.default_rng(0)
    H, _ = np.linalg.qr(rng.normal(size=(n, 4)))
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    points = points_of(H)
    np.testing.assert_allclose(points_of(H @ Q), points, atol=1e-10)
    scaled = H * 2.0 ** rng.integers(-3, 4, size=(n, 1))
    np.testing.assert_allclose(points_of(scaled), points, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 10, 11])
def test_few_samples_are_drawn_on_the_plane(n, ax):
    H = np.random.default_rng(0).normal(size=(n, 3))
    shown = EmbeddingDisplay(embedding=H, labels=np.zeros(n, dtype=int)).plot(ax)
    assert shown.is_map == (n > 10)
    assert np.isfinite(ax.collections[0].get_offsets()).all()


def test_a_random_subset_of_many_samples_is_drawn_and_said(ax):
    embedding, labels = directions(n=600, k=4)
    labels[:50] = -1
    shown = EmbeddingDisplay(embedding=embedding, labels=labels, max_samples=60).plot(
        ax
    )
    assert 56 <= len(shown.samples) <= 60
    np.testing.assert_array_equal(shown.embedding, embedding[shown.samples])
    assert (
        f"{len(shown.samples)} of 550 samples drawn, clusters in proportion"
        in shown.caption
    )
    sizes = np.bincount(labels[50:])
    assert texts(ax) == [f"{cluster} ({size})" for cluster, size in enumerate(sizes)]


def test_a_subset_holds_clusters_in_proportion_and_none_is_left_out():
    labels = np.repeat([0, 1, 2, 7, -1], [5000, 4000, 999, 1, 100])
    some = sample_clusters(labels, 2000)
    assert np.bincount(labels[some])[[0, 1, 2, 7]] == pytest.approx(
        [1000, 800, 200, 1], abs=1
    )


@pytest.mark.slow
def test_results_on_a_cluster_are_drawn_from_a_subset(views, ax):
    da = pytest.importorskip("dask.array")
    lazy = {name: da.from_array(view, chunks=(25, -1)) for name, view in views.items()}
    model = SimpleMKKM(3, approximation=Nystroem(20), random_state=0).fit(lazy)
    shown = EmbeddingDisplay.from_estimator(model, max_samples=20, ax=ax)
    assert isinstance(shown.embedding, np.ndarray)
    again = Figure().subplots()
    kernel = SortedKernelDisplay.from_estimator(
        model, lazy, max_samples=30, ax=again
    ).kernel
    assert len(kernel) <= 30
    assert "approximated by features" in again.get_xlabel()


def test_views_that_were_set_aside_are_in_brackets(ax):
    alignments = np.array([[1, 0.8, -0.001], [0.8, 1, 0], [-0.001, 0, 1]])
    names = ["$\\left$", "right", "a coin that was tossed very many times"]
    AgreementDisplay(
        kernel_names=names, alignments=alignments, weights=[0.5, 0.5, 0]
    ).plot(ax)
    assert ticks(ax.xaxis)[:2] == names[:2]
    assert ticks(ax.xaxis)[2].startswith("(a coin")
    assert "-0.00" not in texts(ax)
    assert is_within_figure(ax.figure)


def test_classes_are_ordered_so_that_a_perfect_clustering_is_a_diagonal(ax):
    y = np.array([*("c" * 5), *("a" * 4), *("b" * 3), "z"], dtype=object)
    labels = np.repeat([0, 1, 2, -1], [5, 4, 3, 1])
    shown = ClassesDisplay(labels=labels, y=y).plot(ax)
    np.testing.assert_array_equal(shown.counts, np.diag([5, 4, 3]))
    assert ticks(ax.xaxis) == ["c", "a", "b"]
    mixed = ClassesDisplay(labels=[0, 1, 1], y=np.array(["a", 3, None], dtype=object))
    assert mixed.counts.to_numpy().sum() == 3


def test_features_are_drawn_with_their_differences(ax):
    shown = DescriptionDisplay(
        features=["age", "$ash"],
        differences=[[2.5, -1.0], [np.nan, 0.01]],
        sizes=[3, 4],
    ).plot(ax)
    assert texts(ax) == ["+2.5", "-1.0", "", "0"]
    assert "+2.5 standard deviations, is that of cluster 0 in age" in shown.caption
    empty = DescriptionDisplay(features=[], differences=[], sizes=[3, 4])
    assert empty.plot(Figure().subplots()).caption == "No feature stands out."


def test_similarities_are_sorted_by_cluster_and_by_how_similar_samples_are_to_it(
    model, views, ax
):
    shown = SortedKernelDisplay.from_estimator(model, views, ax=ax)
    assert sorted(shown.samples) == list(range(60))
    np.testing.assert_array_equal(shown.labels, np.sort(model.labels_))
    np.testing.assert_allclose(shown.kernel, model.mixed_kernel(views, shown.samples))
    for cluster in range(3):
        here = shown.labels == cluster
        assert (np.diff(shown.kernel[np.ix_(here, here)].sum(axis=1)) <= 1e-12).all()
    sizes = np.bincount(model.labels_)
    assert ticks(ax.yaxis) == [
        f"{cluster} ({size})" for cluster, size in enumerate(sizes)
    ]
    borders = [line.get_ydata()[0] for line in ax.lines[::2]]
    assert borders == np.cumsum(sizes)[:2].tolist()


def test_survival_curves_have_the_numbers_at_risk_below(ax):
    times, events = (
        np.array([1.0, 2, 3, 4, 2, 4, 6, np.nan]),
        np.array([1, 1, 0, 1, 0, 1, 0, 1]),
    )
    shown = SurvivalDisplay(
        times=times, events=events, labels=[0, 0, 0, 0, 1, 1, 1, 1]
    ).plot(ax)
    # The product-limit estimate.
    np.testing.assert_allclose(shown.curves[0][1], [0.75, 0.5, 0])
    np.testing.assert_allclose(shown.curves[1][1], [0.5])
    assert shown.medians == {0: 2, 1: 4}
    at_risk = [np.sum(times[:4] >= tick) for tick in ax.get_xticks()]
    start = texts(ax).index("0") + 1
    shown_counts = texts(ax)[start : start + len(at_risk)]
    assert shown_counts == [str(count) for count in at_risk]
    ax.figure.set_size_inches(shown.figsize)
    assert is_within_figure(ax.figure)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 5.0, 10.0]), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_names_at_the_ends_of_curves_are_set_apart(ends):
    x, y = np.array(ends).T
    widths = np.full(len(ends), 6.0)
    heights = set_apart(x, y, widths)
    for one, other in combinations(range(len(ends)), 2):
        if abs(x[one] - x[other]) < 6:
            assert abs(heights[one] - heights[other]) >= NAME_HEIGHT - 1e-9
    assert heights.max() <= 1
    # Names that are far from all others stay at their curves.
    lonely = [sum(np.abs(x - each) < 6) == 1 for each in x]
    np.testing.assert_allclose(heights[lonely], y[lonely])


def test_a_censored_sample_is_at_risk_at_its_own_time():
    display = SurvivalDisplay(
        times=[1, 2, 2, 2, 3, 3], events=[0, 1, 0, 1, 0, 1], labels=[0] * 6
    )
    steps, shares = display.curves[0]
    np.testing.assert_array_equal(steps, [2, 3])
    # Two of five events at time 2, and one of two at time 3.
    np.testing.assert_allclose(shares, [3 / 5, 3 / 5 / 2])


def test_a_cluster_without_events_has_no_steps():
    display = SurvivalDisplay(times=[1, 2, 3], events=[0, 0, 1], labels=[0, 0, 1])
    assert [len(steps) for steps, _ in display.curves.values()] == [0, 1]
    assert np.isnan(display.medians[0])


def test_each_criterion_has_a_panel_with_its_value_at_the_recommended_number(ax):
    shown = NumberOfClustersDisplay.from_suggestion(SUGGESTION, ax=ax)
    gap, tightness, _ = shown.axes_
    assert title(gap) == "Number of clusters: 3 fit best"
    np.testing.assert_array_equal(gap.lines[0].get_ydata(), SUGGESTION.eigengaps)
    assert [texts(panel) for panel in shown.axes_] == [["0.700"], ["0.800"], []]
    assert tightness.get_ylabel() == "tightness"
    assert is_within_figure(ax.figure)


def test_a_tree_shows_where_samples_go(ax):
    labels = [[0, 0, 0, 0, 1, 1, -1], [2, 2, 0, 0, 1, 1, 1], [2, 2, 0, 3, 1, 1, 1]]
    shown = ClusterTreeDisplay(labels=labels, k_values=[2, 3, 4], n_clusters=3).plot(ax)
    assert [each.tolist() for each in shown.sizes()] == [
        [4, 2],
        [2, 3, 2],
        [1, 3, 2, 1],
    ]
    assert shown.flows()[0].tolist() == [[2, 0, 2], [0, 2, 0]]
    # From two clusters to three, and from three to four.
    assert len(ax.lines) == 3 + 4
    assert {"k = 2", "k = 3", "k = 4"} <= set(texts(ax))
    levels = zip(
        shown.positions_[:-1], shown.positions_[1:], shown.flows(), strict=True
    )
    for above, below, flow in levels:
        # No edges cross: parts of a cluster that is to the left are to the left.
        order = np.argsort(below)
        parents = above[flow.argmax(axis=0)][order]
        assert (np.diff(parents) >= 0).all()
    ax.figure.set_size_inches(shown.figsize)
    assert is_within_figure(ax.figure)


def test_a_fit_is_drawn_in_one_figure(model, views):
    titles = [title(ax) for ax in plot_fit(model, model.labels_).axes]
    assert f"Convergence: certified relative gap {model.duality_gap_:.1e}" in titles
    assert any(words.startswith("Shares of the classes") for words in titles)
    one_step = [
        title(ax) for ax in plot_fit(AgreementKKM(3, random_state=0).fit(views)).axes
    ]
    assert "What every two views share" in one_step
