"""Displays in scikit-learn's manner: for every method, for few and for many of everything."""

import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from conftest import blob_views
from mkclust import METHODS, AverageKKM, SimpleMKKM, plots
from mkclust.kernels import Nystroem
from mkclust.plots import (
    AgreementDisplay,
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    NumberOfClustersDisplay,
    SortedKernelDisplay,
)
from mkclust.plots.sorted_kernel import draw_sorted_kernel

pytestmark = pytest.mark.slow

PLAIN = (KernelWeightsDisplay, ConvergenceDisplay, EmbeddingDisplay)
SUGGESTION = SimpleNamespace(
    k_values=np.arange(2, 7),
    eigengaps=np.array([0.1, 0.7, 0.2, 0.1, 0.1]),
    silhouettes=np.array([0.5, 0.8, 0.6, np.nan, np.nan]),
    stabilities=np.full(5, np.nan),
    n_clusters=3,
    null_silhouettes=np.array([[0.1] * 5, [0.3] * 5]),
    null_eigengaps=np.full(5, 0.25),
)


@pytest.fixture(autouse=True)
def no_open_figures():
    before = plt.get_fignums()
    yield
    assert plt.get_fignums() == before
    plt.close("all")


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


def fitted(method, X, k=3, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(k, random_state=0, **options).fit(X)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def on_the_page(figure):
    """Return whether all that is drawn is within the figure."""
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0, width - box.x1, height - box.y1) > -0.02


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_looked_at(name, views):
    model = fitted(METHODS[name], views)
    figure = Figure(figsize=(14, 11), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    shown = [display.from_estimator(model, ax=ax) for display, ax in zip(PLAIN, axes, strict=False)]
    shown.append(SortedKernelDisplay.from_estimator(model, views, ax=axes[3]))
    assert [display.ax_ for display in shown] == list(axes)
    assert all(display.figure_ is figure for display in shown)
    np.testing.assert_array_equal(shown[0].weights, model.weights_)
    np.testing.assert_array_equal(shown[0].alignments, model.alignments_)
    np.testing.assert_array_equal(shown[1].history, model.history_)
    np.testing.assert_array_equal(shown[2].labels, model.labels_)
    samples = shown[3].samples
    np.testing.assert_allclose(shown[3].kernel, model.mixed_kernel(views, samples))
    assert model.SIMILARITIES in axes[3].get_xlabel()
    assert on_the_page(figure)


@pytest.mark.parametrize("display", PLAIN)
def test_without_axes_a_figure_of_pyplot_is_made_and_with_axes_none(display, model, ax):
    before = plt.get_fignums()
    shown = display.from_estimator(model, ax=ax)
    assert plt.get_fignums() == before
    assert shown.ax_ is ax
    assert shown.plot() is shown
    (number,) = set(plt.get_fignums()) - set(before)
    assert plt.figure(number) is shown.figure_
    assert shown.ax_ in shown.figure_.axes
    plt.close(shown.figure_)


def test_axes_that_are_given_are_drawn_on_without_pyplot():
    code = """
import sys, numpy as np
from matplotlib.figure import Figure
from mkclust import AverageKKM, plots
X = {"a": np.random.default_rng(0).normal(size=(20, 2))}
model, axes = AverageKKM(2, random_state=0).fit(X), iter(Figure().subplots(5))
plots.KernelWeightsDisplay.from_estimator(model, ax=next(axes))
plots.ConvergenceDisplay.from_estimator(model, ax=next(axes))
plots.EmbeddingDisplay.from_estimator(model, ax=next(axes))
plots.SortedKernelDisplay.from_estimator(model, X, ax=next(axes))
criteria = {"eigengaps": [0.5], "silhouettes": [0.5], "stabilities": [0.5]}
plots.NumberOfClustersDisplay(k_values=[2], n_clusters=2, **criteria).plot(next(axes))
sys.exit("matplotlib.pyplot" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_sorted_kernel_and_the_number_of_clusters_make_figures_too(model, views):
    for shown in (
        SortedKernelDisplay.from_estimator(model, views),
        NumberOfClustersDisplay.from_suggestion(SUGGESTION),
    ):
        assert plt.figure(shown.figure_.number) is shown.figure_
        assert on_the_page(shown.figure_)
        plt.close(shown.figure_)


@pytest.mark.parametrize("display", PLAIN)
def test_models_that_are_not_fitted_or_of_others_are_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(SimpleMKKM(3))
    other = KMeans(2, n_init=1).fit(np.eye(4))
    with pytest.raises(TypeError, match="KMeans has no .*_: pass a fitted clusterer of mkclust"):
        display.from_estimator(other)
    with pytest.raises(TypeError, match="KMeans has no mixed_kernel"):
        SortedKernelDisplay.from_estimator(other, np.eye(4))


def test_weights_come_with_alignments_and_the_sentence_for_the_method(views, ax):
    shown = KernelWeightsDisplay.from_estimator(fitted(AverageKKM, views), ax=ax)
    assert len(ax.patches) == 2 * 3
    assert shown.note == plots.MIXING_WEIGHT
    assert ticks(ax.xaxis) == ["weight", "alignment"]


def test_all_words_can_be_read_on_white(model, views):
    figure = Figure(figsize=(14, 11), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for display, ax in zip(PLAIN, axes, strict=False):
        display.from_estimator(model, ax=ax)
    SortedKernelDisplay.from_estimator(model, views, ax=axes[3])
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        # Numbers of clusters are on patches of their own.
        if text.get_text() and text.get_bbox_patch() is None:
            linear = [
                c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                for c in to_rgb(text.get_color())
            ]
            luminance = np.dot([0.2126, 0.7152, 0.0722], linear)
            assert 1.05 / (luminance + 0.05) >= 4.5, text.get_text()


def test_the_note_of_simplemkkm_warns_of_large_weights(model, ax):
    assert KernelWeightsDisplay.from_estimator(model, ax=ax).note == plots.LARGE_WEIGHT


def test_a_certificate_without_a_curve_is_said_in_the_title(views, ax):
    model = fitted(METHODS["mkkm-mm"], views, solver="saddle")
    ConvergenceDisplay.from_estimator(model, ax=ax)
    assert ax.get_title(loc="left") == (
        f"Convergence: certified relative gap {model.duality_gap_:.1e}"
    )


def test_ticks_of_a_single_step_are_whole_numbers(views, ax):
    ConvergenceDisplay.from_estimator(fitted(AverageKKM, views), ax=ax)
    assert ticks(ax.xaxis) == ["0"]


def test_an_embedding_that_was_thinned_still_counts_all_samples(ax, model):
    shown = EmbeddingDisplay.from_estimator(model, max_samples=20, ax=ax)
    assert len(shown.embedding) == len(shown.labels) == 20
    assert ax.get_title(loc="left") == "Embedding of 60 samples, 3 clusters"
    rows = {row.tobytes() for row in model.embedding_}
    assert all(row.tobytes() in rows for row in shown.embedding)


def test_samples_are_sorted_by_cluster_and_by_how_well_they_fit(model, views, ax):
    shown = SortedKernelDisplay.from_estimator(model, views, ax=ax)
    assert (np.diff(shown.labels) >= 0).all()
    assert sorted(shown.samples) == list(range(60))
    np.testing.assert_array_equal(shown.labels, model.labels_[shown.samples])
    K = model.mixed_kernel(views)
    fits = []
    for i in shown.samples:
        others = np.arange(60) != i
        means = [K[i, others & (model.labels_ == c)].mean() for c in range(3)]
        own = means.pop(model.labels_[i])
        fits.append(own - max(means))
    for cluster in range(3):
        inside = np.array(fits)[shown.labels == cluster]
        assert (np.diff(inside) <= 1e-12).all()


def test_borders_and_sizes_of_clusters_are_drawn(ax):
    labels = np.repeat([0, 1, 2], [5, 3, 2])
    draw_sorted_kernel(ax, np.eye(10), labels)
    horizontal, vertical = ([line.get_ydata()[0] for line in ax.lines[i::2]] for i in (0, 1))
    assert horizontal == [5, 8]
    assert [line.get_xdata()[0] for line in ax.lines[1::2]] == [5, 8]
    assert len(vertical) == 2
    assert ticks(ax.yaxis) == ["0 (5)", "1 (3)", "2 (2)"]
    assert ticks(ax.xaxis) == ["0", "1", "2"]


def test_sizes_are_those_of_all_samples_where_some_are_drawn(ax):
    draw_sorted_kernel(ax, np.eye(4), [0, 0, 1, 1], sizes={0: 1200, 1: 800})
    assert ticks(ax.yaxis) == ["0 (1,200)", "1 (800)"]


@pytest.mark.parametrize("kernel", [np.zeros((3, 3)), np.ones((1, 1)), np.eye(3)])
def test_similarities_that_are_all_alike_are_drawn(kernel, ax):
    draw_sorted_kernel(ax, kernel, np.zeros(len(kernel), dtype=int))
    assert on_the_page(ax.figure)
    low, high = ax.images[0].get_clim()
    assert low < high


class Grouped(BaseEstimator):
    """Clusters of given sizes, and similarities that tell them apart."""

    def __init__(self, sizes):
        self.sizes = sizes

    def fit(self, X=None):
        self.labels_ = np.random.default_rng(0).permutation(
            np.repeat(np.arange(len(self.sizes)), self.sizes)
        )
        return self

    def mixed_kernel(self, X, samples):
        return np.equal.outer(self.labels_[samples], self.labels_[samples]).astype(float)

    def describe_mixed_kernel(self):
        return "one within a cluster (zero elsewhere)"


def test_many_samples_are_thinned_in_proportion_with_one_of_each_cluster(ax):
    model = Grouped([8000, 1500, 450, 49, 1]).fit()
    shown = SortedKernelDisplay.from_estimator(model, None, ax=ax)
    assert np.bincount(shown.labels).tolist() == [400, 75, 22, 2, 1]
    assert shown.sizes == {0: 8000, 1: 1500, 2: 450, 3: 49, 4: 1}
    assert len(np.unique(shown.samples)) == 500
    np.testing.assert_array_equal(shown.labels, model.labels_[shown.samples])
    np.testing.assert_array_equal(shown.kernel, np.equal.outer(shown.labels, shown.labels))
    assert ax.get_xlabel().endswith("500 of 10,000 samples drawn, clusters in proportion")
    again, other = (
        SortedKernelDisplay.from_estimator(model, None, random_state=seed, ax=Figure().subplots())
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(again.samples, shown.samples)
    assert (other.samples != shown.samples).any()


def test_many_small_clusters_leave_room_for_each_other(ax):
    model = Grouped([9000] + [1] * 90).fit()
    shown = SortedKernelDisplay.from_estimator(model, None, max_samples=100, ax=ax)
    assert np.bincount(shown.labels).tolist() == [10] + [1] * 90
    with pytest.raises(ValueError, match="max_samples=90 with 91 clusters: pass one for each"):
        SortedKernelDisplay.from_estimator(model, None, max_samples=90)


def test_ten_thousand_samples_are_looked_at_by_their_features(ax):
    views, _ = blob_views(np.random.default_rng(0), n=10_000, k=2, n_features=3)
    model = AverageKKM(2, approximation=Nystroem(20), n_init=1, random_state=0).fit(views)
    shown = SortedKernelDisplay.from_estimator(model, views, ax=ax)
    same = np.equal.outer(shown.labels, shown.labels)
    assert shown.kernel.shape == (500, 500)
    assert shown.kernel[same].mean() > shown.kernel[~same].mean() + 0.5
    assert on_the_page(ax.figure)


def test_a_hundred_clusters_and_forty_eight_kernels_stay_legible():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 100
    views = {
        f"some long name of a view that is number {p:02d}": 5 * rng.normal(size=(100, 4))[y]
        + rng.normal(size=(200, 4))
        for p in range(48)
    }
    model = fitted(AverageKKM, views, k=100, n_init=1)
    shown = [display.from_estimator(model) for display in PLAIN]
    shown.append(SortedKernelDisplay.from_estimator(model, views, max_samples=150))
    for display in shown:
        assert on_the_page(display.figure_)
        for axis in (display.ax_.xaxis, display.ax_.yaxis):
            boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
            assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        plt.close(display.figure_)
    assert len(ticks(shown[0].ax_.yaxis)) == 48
    assert not shown[3].ax_.lines  # a hundred borders would cover the entries


def test_each_criterion_has_a_panel_with_its_value_at_the_recommended_number(ax):
    shown = NumberOfClustersDisplay.from_suggestion(SUGGESTION, ax=ax)
    assert shown.ax_ is ax
    assert [panel.get_ylabel() for panel in shown.axes_] == ["eigengap", "silhouette", "stability"]
    gap, silhouette, stability = shown.axes_
    assert gap.get_title(loc="left") == "Number of clusters: 3 clusters recommended"
    np.testing.assert_array_equal(gap.lines[0].get_ydata(), SUGGESTION.eigengaps)
    assert texts(gap)[0] == "0.700"
    assert texts(silhouette)[0] == "0.800"
    assert texts(stability) == ["not known"]
    assert [len(panel.collections) for panel in shown.axes_] == [1, 1, 0]
    assert on_the_page(ax.figure)


def test_where_there_is_no_evidence_of_clusters_no_number_is_marked(ax):
    found = SimpleNamespace(**vars(SUGGESTION) | {"n_clusters": 1})
    shown = NumberOfClustersDisplay.from_suggestion(found, ax=ax)
    gap = shown.axes_[0]
    assert gap.get_title(loc="left") == "Number of clusters: no evidence of clusters"
    assert len(gap.lines) == 1


def test_bands_that_nobody_computed_are_left_out(ax):
    found = vars(SUGGESTION).items()
    plain = SimpleNamespace(**{name: value for name, value in found if "null" not in name})
    shown = NumberOfClustersDisplay.from_suggestion(plain, ax=ax)
    assert not any(panel.collections for panel in shown.axes_)


def test_one_number_of_clusters_is_drawn(ax):
    one = {name: np.ravel(value)[:1] for name, value in vars(SUGGESTION).items()}
    one |= {"n_clusters": 2, "null_silhouettes": None}
    shown = NumberOfClustersDisplay.from_suggestion(SimpleNamespace(**one), ax=ax)
    assert ticks(shown.axes_[-1].xaxis) == ["2"]
    assert on_the_page(ax.figure)


def test_what_is_no_suggestion_is_refused():
    with pytest.raises(TypeError, match="int has no k_values: pass what suggest_n_clusters"):
        NumberOfClustersDisplay.from_suggestion(3)


# What views share ---------------------------------------------------------------------------------


def test_the_alignments_of_views_are_written_into_the_cells(model, ax):
    shown = model.agreement_.plot(ax)
    assert shown.ax_ is ax
    m = len(model.kernel_names_)
    written = np.array(texts(ax), dtype=float).reshape(m, m)
    np.testing.assert_allclose(written, model.agreement_.alignments, atol=0.006)
    np.testing.assert_array_equal(ax.images[0].get_array(), model.agreement_.alignments)
    assert "-0.00" not in texts(ax)


def test_views_that_were_set_aside_are_in_brackets(ax):
    alignments = np.array([[1, 0.8, -0.001], [0.8, 1, 0], [-0.001, 0, 1]])
    names = ["$\\left$", "right", "a coin that was tossed very many times"]
    AgreementDisplay(kernel_names=names, alignments=alignments, weights=[0.5, 0.5, 0]).plot(ax)
    assert ticks(ax.xaxis) == ticks(ax.yaxis)
    assert ticks(ax.xaxis)[:2] == names[:2]
    assert re.fullmatch(r"\(a coin .*….* times\)", ticks(ax.xaxis)[2])
    assert "in brackets" in ax.get_xlabel()
    assert on_the_page(ax.figure)  # where a name with dollars is no formula
    ax.clear()
    AgreementDisplay(kernel_names=names, alignments=alignments, weights=[0.5, 0.3, 0.2]).plot(ax)
    assert not ax.get_xlabel()


def test_the_alignments_of_many_views_are_shades_with_a_scale():
    rng = np.random.default_rng(0)
    shown = AgreementDisplay(
        kernel_names=[f"kernel {p}" for p in range(48)],
        alignments=rng.uniform(size=(48, 48)),
        weights=np.full(48, 1 / 48),
    ).plot()
    assert not texts(shown.ax_)
    assert len(shown.figure_.axes) == 2
    assert on_the_page(shown.figure_)
    plt.close(shown.figure_)
