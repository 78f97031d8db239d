"""The map of neighbors: clusters stay together on it, and it is the same in every run."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from sklearn.neighbors import NearestNeighbors

from mkclust import plots
from mkclust.explain.page import fit_page
from mkclust.methods import AverageKKM
from mkclust.plots.neighbor_map import LEAST_MAPPED, MAX_MAPPED, map_samples
from mkclust.plots.sampling import sample_clusters

pytestmark = pytest.mark.slow


def blobs(n=200, k=8, spread=0.3, seed=0):
    """Return rows around k directions that are far from each other, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return np.eye(k)[labels] + spread / k**0.5 * rng.normal(size=(n, k)), labels


def neighbor_agreement(points, labels):
    """Return the share of points whose nearest other point has the same label."""
    nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)
    return np.mean(labels[nearest[:, 0]] == labels)


def test_separated_clusters_stay_separated_on_the_map_but_not_on_the_plane():
    embedding, labels = blobs()
    assert neighbor_agreement(map_samples(embedding).points, labels) == 1
    assert neighbor_agreement(map_samples(embedding, "plane").points, labels) < 0.9


def test_small_clusters_stay_separated():
    embedding, labels = blobs(n=60, k=12, seed=1)
    assert neighbor_agreement(map_samples(embedding).points, labels) > 0.95


def test_the_map_is_the_same_every_time_whatever_the_random_state_of_numpy():
    embedding, _ = blobs(n=80)
    once = map_samples(embedding).points
    np.random.seed(7)  # noqa: NPY002 - the global state is what must not matter
    np.testing.assert_allclose(map_samples(embedding).points, once, atol=1e-6)


def test_the_map_sees_directions_of_the_rows_and_not_their_lengths():
    embedding, _ = blobs(n=60)
    scaled = embedding * 2.0 ** np.random.default_rng(0).integers(-3, 4, size=(60, 1))
    np.testing.assert_allclose(map_samples(scaled).points, map_samples(embedding).points, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, LEAST_MAPPED - 1, LEAST_MAPPED])
def test_few_samples_are_drawn_on_the_plane(n):
    placed = map_samples(np.random.default_rng(0).normal(size=(n, 3)))
    assert placed.method == ("plane" if n < LEAST_MAPPED else "neighbors")
    assert placed.points.shape == (n, 2)
    assert np.isfinite(placed.points).all()


@pytest.mark.parametrize(
    "embedding", [np.ones((30, 1)), np.zeros((30, 4)), np.ones((30, 4)), np.full((12, 2), 1e-300)]
)
def test_identical_rows_and_a_single_cluster_are_drawn_in_one_place(embedding):
    placed = map_samples(embedding)
    assert placed.method == "plane"
    np.testing.assert_allclose(placed.points, 0, atol=1e-12)


def test_copies_of_samples_are_drawn_together():
    labels = np.repeat(np.arange(3), 10)
    points = map_samples(np.eye(3)[labels]).points
    assert np.isfinite(points).all()
    assert neighbor_agreement(points, labels) == 1


def test_rows_on_a_line_are_mapped():
    angles = np.linspace(0, 1e-9, 40)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    assert np.isfinite(map_samples(rows).points).all()


def test_an_unknown_way_to_draw_is_refused():
    with pytest.raises(ValueError, match="method='umap': pass 'neighbors' or 'plane'"):
        plots.draw_embedding(Figure().subplots(), np.eye(3), [0, 1, 2], method="umap")


def test_of_many_samples_some_are_mapped_and_the_picture_says_so(monkeypatch):
    monkeypatch.setattr("mkclust.plots.embedding.MAX_MAPPED", 60)
    embedding, labels = blobs(n=600, k=4)
    ax = Figure().subplots()
    plots.draw_embedding(ax, embedding, labels)
    assert len(ax.collections[0].get_offsets()) == 60
    assert "60 of 600 samples drawn, clusters in proportion" in ax.get_xlabel()
    assert "distances between far\nclusters mean little" in ax.get_xlabel()
    assert "not used to cluster" in ax.get_xlabel()
    sizes = np.bincount(labels).tolist()
    assert [t.get_text() for t in ax.texts] == [f"{c} ({size})" for c, size in enumerate(sizes)]


def test_a_sample_holds_clusters_in_proportion_and_none_is_left_out():
    labels = np.repeat([0, 1, 2, 7], [5000, 4000, 999, 1])
    some = sample_clusters(labels, MAX_MAPPED)
    assert len(some) == MAX_MAPPED
    assert np.all(np.diff(some) > 0)
    assert np.bincount(labels[some])[[0, 1, 2, 7]] == pytest.approx([1000, 800, 200, 1], abs=1)
    assert len(sample_clusters(np.arange(100), 10)) == 10


def test_the_page_of_a_fit_draws_the_same_map_with_numbers_and_sizes():
    pytest.importorskip("plotly")
    view, _ = blobs(n=60, k=3)
    model = AverageKKM(3, random_state=0).fit([view, view[:, ::-1] ** 3])
    page = fit_page(model, [view, view[:, ::-1] ** 3], n_resamples=0, leave_one_out=False)
    (spec,) = re.findall(r'<figure id="embedding-plot">.*?json">(.*?)</script>', page, re.DOTALL)
    drawn = json.loads(spec)
    points = map_samples(model.embedding_).points[model.labels_ == 0]
    np.testing.assert_allclose(drawn["data"][0]["x"], points[:, 0], rtol=1e-3)
    names = [note["text"] for note in drawn["layout"]["annotations"]]
    sizes = np.bincount(model.labels_).tolist()
    assert names == [f"<b>{cluster}</b> ({size})" for cluster, size in enumerate(sizes)]
    assert "distances between far clusters mean little" in page
    assert "Positions are not used to cluster" in page


# Colors as people without red or without green cones see them (Machado et al. 2009), linear sRGB.
SIGHTS = {
    "all cones": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
) / np.array([[0.9505], [1.0], [1.089]])


def lab(color, sight):
    """Return a color in CIELAB, as it is seen."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(sight @ linear, 0, 1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_colors_of_twelve_clusters_are_told_apart_without_red_or_green_cones(sight):
    assert len(plots.PALETTE) == 12
    seen = [lab(color, SIGHTS[sight]) for color in plots.PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15
