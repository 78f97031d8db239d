import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.image import imread

from mkclust import AgreementKKM, SimpleMKKM, plots

pytestmark = pytest.mark.slow


@pytest.fixture
def ax():
    return Figure(figsize=(6, 4)).subplots()


def blobs(n_clusters=3, size=20, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_clusters), size)
    return rng.normal(size=(n_clusters, 4))[y] * 4 + rng.normal(size=(len(y), 4)), y


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(artists):
    return [artist.get_window_extent() for artist in artists if artist.get_text()]


def overlaps(found):
    return [(a, b) for i, a in enumerate(found) for b in found[:i] if a.overlaps(b)]


@pytest.fixture(scope="module")
def model():
    X, _ = blobs()
    return SimpleMKKM(3, random_state=0).fit({"first": X[:, :2], "second": X[:, 2:]})


def test_weights_are_drawn_beside_alignments_with_the_sentence_how_to_read_them(ax):
    plots.draw_weights(ax, ["a", "b"], [0.25, 0.75], [0.9, 0.4])
    assert len(ax.patches) == 4
    assert texts(ax) == ["0.250", "0.90", "0.750", "0.40"]  # the digits that are known
    assert "large weight means little agreement" in ax.get_xlabel()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["weight", "alignment"]


def test_kernels_are_drawn_in_their_order_from_top_to_bottom(ax):
    plots.draw_weights(ax, ["z", "a", "m"], [0.2, 0.3, 0.5], [1, 0.5, 0.1])
    ax.figure.draw_without_rendering()
    heights = [box.y0 for box in boxes(ax.get_yticklabels())]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["z", "a", "m"]
    assert heights == sorted(heights, reverse=True)


def test_kernel_names_are_not_read_as_formulas_and_long_ones_are_shortened(ax):
    plots.draw_weights(ax, ["$\\frac$", "x" * 80], [0.5, 0.5], [0.5, 0.5])
    ax.figure.draw_without_rendering()
    assert len(ax.get_yticklabels()[1].get_text()) < 30


def test_tiny_zero_and_missing_values_leave_the_bars_drawable(ax):
    plots.draw_weights(ax, ["a", "b", "c"], [0.0, 1e-9, np.nan], [np.nan, 0, 1.0])
    ax.figure.draw_without_rendering()
    assert texts(ax)[:4] == ["0.000", "nan", "1.0e-09", "0.00"]


def test_convergence_shows_both_bounds_and_the_final_relative_gap(ax):
    plots.draw_convergence(ax, [12.0, 10.5, 10.0], [9.0, 9.9, 9.999])
    upper, lower = ax.lines
    np.testing.assert_array_equal(upper.get_ydata(), [12.0, 10.5, 10.0])
    np.testing.assert_array_equal(lower.get_ydata(), [9.0, 9.9, 9.999])
    assert ax.get_title(loc="left") == "Convergence: relative gap 1.0e-04"


def test_only_the_gap_that_counts_the_residuals_is_called_certified(ax):
    plots.draw_convergence(ax, [12.0, 10.5, 10.0], [9.0, 9.9, 9.999], gap=3e-4)
    assert ax.get_title(loc="left") == "Convergence: certified relative gap 3.0e-04"
    (inset,) = ax.child_axes
    assert inset.lines[0].get_ydata()[-1] == 3e-4


def test_convergence_without_a_certificate_claims_none(ax):
    plots.draw_convergence(ax, [12.0, 10.5, 10.0])
    assert len(ax.lines) == 1
    assert "gap" not in ax.get_title(loc="left")
    assert ax.get_legend() is None


@pytest.mark.parametrize("bounds", [[-np.inf, 9.0, 9.5], [np.nan, np.nan, np.nan]])
def test_bounds_that_are_not_finite_are_left_out(ax, bounds):
    plots.draw_convergence(ax, [12.0, 11.0, 10.0], bounds)
    ax.figure.draw_without_rendering()
    assert np.isfinite(ax.get_ylim()).all()


def test_a_single_step_is_drawn(ax):
    plots.draw_convergence(ax, [5.0], [5.0])
    ax.figure.draw_without_rendering()
    assert ax.get_title(loc="left") == "Convergence: relative gap 0"


@pytest.mark.parametrize(
    "fall", [np.linspace(1, 0, 50), np.geomspace(1, 1e-6, 9), np.array([1.0, 0.9, 0.0])]
)
def test_the_inset_of_the_gap_covers_no_part_of_the_curves(ax, fall):
    history, bounds = 10 + fall, 10 - 0.5 * fall - 1e-9
    plots.draw_convergence(ax, history, bounds)
    ax.figure.draw_without_rendering()
    (inset,) = ax.child_axes
    covered = inset.get_window_extent()
    for line in ax.lines:
        fine = np.linspace(0, len(history) - 1, 500)
        curve = np.column_stack([fine, np.interp(fine, line.get_xdata(), line.get_ydata())])
        assert not any(covered.contains(x, y) for x, y in ax.transData.transform(curve))


@pytest.mark.parametrize("method", ["neighbors", "plane"])
def test_the_embedding_does_not_depend_on_the_rotation_of_its_columns(method):
    rng = np.random.default_rng(0)
    H, _ = np.linalg.qr(rng.normal(size=(50, 4)))
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    drawn = []
    for embedding in (H, H @ Q):
        ax = Figure().subplots()
        plots.draw_embedding(ax, embedding, np.arange(50) % 4, method=method)
        drawn.append(np.asarray(ax.collections[0].get_offsets()))
    np.testing.assert_allclose(*drawn, atol=1e-10)


def test_the_plane_of_the_embedding_is_that_of_its_singular_vectors(ax):
    H = np.random.default_rng(1).normal(size=(40, 5))
    plots.draw_embedding(ax, H, np.zeros(40, dtype=int), method="plane")
    rows = H / np.linalg.norm(H, axis=1, keepdims=True)
    lengths = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    points = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(np.linalg.norm(points, axis=0), lengths[:2])


def test_clusters_are_numbered_and_counted_among_their_dots_without_a_legend(ax):
    H = np.repeat(np.eye(4), 5, axis=0)
    plots.draw_embedding(ax, H, np.repeat(np.arange(4), 5))
    assert texts(ax) == ["0 (5)", "1 (5)", "2 (5)", "3 (5)"]
    assert ax.get_legend() is None


@pytest.mark.parametrize("method", ["neighbors", "plane"])
def test_names_of_clusters_with_the_same_center_stay_apart(ax, method):
    labels, names = np.arange(60) % 12, {3: "much ink in row 3", 4: "$x_1$"}
    H = np.random.default_rng(0).normal(size=(60, 3))
    plots.draw_embedding(ax, H, labels, names=names, method=method)
    assert {"much ink in row 3 (5)", "$x_1$ (5)", "5 (5)"} < set(texts(ax))
    ax.figure.draw_without_rendering()
    assert not overlaps(boxes(ax.texts))


def test_a_hundred_clusters_have_neither_numbers_nor_a_legend(ax):
    rng = np.random.default_rng(0)
    plots.draw_embedding(ax, rng.normal(size=(300, 100)), np.arange(300) % 100)
    assert not ax.texts
    assert ax.get_legend() is None
    assert "100 clusters" in ax.get_title(loc="left")


def test_many_samples_are_thinned_out(ax):
    H = np.random.default_rng(0).normal(size=(plots.MAX_POINTS + 5_000, 3))
    plots.draw_embedding(ax, H, np.zeros(len(H), dtype=int), method="plane")
    assert len(ax.collections[0].get_offsets()) == plots.MAX_POINTS
    assert "25,000 samples" in ax.get_title(loc="left")


@pytest.mark.parametrize("H", [np.ones((6, 1)), np.zeros((6, 2))])
def test_a_flat_embedding_is_drawn(ax, H):
    plots.draw_embedding(ax, H, np.zeros(6, dtype=int))
    ax.figure.draw_without_rendering()
    assert np.isfinite(ax.collections[0].get_offsets()).all()
    assert len(ax.collections[0].get_offsets()) == 6


def test_classes_are_ordered_so_that_a_perfect_clustering_is_a_diagonal(ax):
    y = np.repeat(["c", "a", "b"], [5, 4, 3])
    plots.draw_classes(ax, np.repeat([0, 1, 2], [5, 4, 3]), y)
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(3))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["c", "a", "b"]
    assert texts(ax) == ["5", "4", "3"]


def test_shares_of_a_class_sum_to_one(ax):
    rng = np.random.default_rng(0)
    plots.draw_classes(ax, rng.integers(40, size=500), rng.integers(30, size=500))
    np.testing.assert_allclose(ax.images[0].get_array().sum(axis=0), 1)
    assert not ax.texts
    assert not ax.get_xticklabels()


def test_a_fit_is_drawn_on_one_page(model):
    figure = plots.plot_fit(model)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert len(titles) == 3
    words, gap = next(title for title in titles if "gap" in title).rsplit(" ", 1)
    assert words == "Convergence: certified relative gap"
    assert float(gap) == pytest.approx(model.duality_gap_, rel=0.05)
    assert len(plots.plot_fit(model, model.labels_).axes) == 4


@pytest.mark.parametrize("with_classes", [False, True])
def test_forty_eight_kernels_and_thirty_clusters_stay_legible(with_classes):
    X, y = blobs(30, 4)
    rng = np.random.default_rng(0)
    views = {f"a view called {i:02d}": X + rng.normal(size=X.shape) for i in range(48)}
    model = SimpleMKKM(30, random_state=0).fit(views)
    figure = plots.plot_fit(model, y if with_classes else None)
    figure.draw_without_rendering()
    weights, *others = figure.axes
    assert len(boxes(weights.get_yticklabels())) == 48
    found = boxes([*weights.get_yticklabels(), *weights.texts, *weights.get_xticklabels()])
    assert not overlaps(found)
    assert not overlaps([ax.get_tightbbox() for ax in (weights, *others)])
    page = figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in found)


def test_a_saved_picture_is_whole_and_the_same_each_time(model, tmp_path):
    for name in ("one.png", "two.png"):
        plots.save(plots.plot_fit(model), tmp_path / name)
    assert imread(tmp_path / "one.png").shape[1] == 13 * 150
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_importing_the_library_does_not_import_matplotlib():
    code = "import sys, mkclust.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_fit_of_one_step_shows_what_its_views_share_instead_of_a_curve():
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    views = {name: 3 * rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4)) for name in "ab"}
    titles = {}
    for method in (AgreementKKM, SimpleMKKM):
        figure = plots.plot_fit(method(3, random_state=0).fit(views))
        titles[method] = [ax.get_title(loc="left") for ax in figure.axes]
    assert "What every two views share" in titles[AgreementKKM]
    assert "What every two views share" not in titles[SimpleMKKM]
