"""Clusters for several numbers of them, from one set of eigenvectors.

The leading eigenvectors of a graph do not depend on how many of them are taken. They
are found once, for the largest number, and k-means for each number starts from the
clusters of the number before, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from mkclust.graph.partition import (
    SETTINGS,
    Embedded,
    Graph,
    Setting,
    embed,
    list_scales,
    rows_of_unit_length,
)
from mkclust.linalg.threads import one_thread_if_small
from mkclust.metrics import agreement_of_labels
from mkclust.stack.discretize import (
    CLOSE,
    MANY_DISTANCES,
    first_centers,
    normalize_rows,
)
from mkclust.types import Float, Labels

# Relative error of the sum of all leading eigenvalues: those after a gap are nearly
# equal, and any of their directions are as good.
TOLERANCE = 1e-3
# The graph whose eigenvalues say how many clusters there are: all lists of the mix.
OF_MIX = Setting(True, 1.0, 0.0)


class Way(NamedTuple):
    """Which lists make a graph: how many sizes, smallest first, and the setting."""

    n_sizes: int
    setting: Setting

    def embed(self, memberships: Sequence[Sequence[Any]], n_vectors: int) -> Embedded:
        """Return the embedding by some leading eigenvectors of this graph."""
        used = [several[: self.n_sizes] for several in memberships]
        scales = list_scales(used, self.setting)
        return embed(used, scales, n_vectors, TOLERANCE)


@dataclass(frozen=True, eq=False)
class Cuts:
    """The clusters for s numbers of them, and three criteria, the larger the better."""

    labels: np.ndarray  # (s, n), numbered by falling size; -1 for samples without links
    ways: list[Way]  # by which graph they were found
    # Share of the squared length of the samples' directions that centers explain.
    tightness: Float
    agreements: Float  # adjusted Rand index of the clusters in the two settings
    eigengaps: Float  # between eigenvalues k and k + 1 of the graph of the mix
    # Share of the links of the mix that are within clusters, and that by chance.
    within: Float
    by_chance: Float


class _Clusters(NamedTuple):
    """The clusters for one number in one setting."""

    labels: Labels
    spread: float  # mean squared distance of directions from their centers


def cut_for_all(
    memberships: Sequence[Sequence[Any]],
    k_values: Sequence[int],
    n_sizes: Sequence[int],
) -> Cuts:
    """Cut the graph of neighborhoods into several rising numbers of clusters.

    `n_sizes` says how many sizes of lists each number uses, the smallest first. As in
    `cut`, clusters are those of the setting with the higher modularity.
    """
    n = memberships[0][0].shape[0]
    labels = np.full((len(k_values), n), -1)
    tightness, agreements = np.zeros((2, len(k_values)))
    chosen: dict[int, Way] = {}
    for count in np.unique(n_sizes).tolist():
        places = np.flatnonzero(np.equal(n_sizes, count)).tolist()
        numbers = [k_values[place] for place in places]
        judge = Graph(rows_of_unit_length(memberships[0][count - 1]))
        ways = [Way(count, setting) for setting in SETTINGS]
        found = [_cut_in_way(memberships, way, numbers) for way in ways]
        for place, *several in zip(places, *found, strict=True):
            values = [judge.modularity(each.labels) for each in several]
            best = int(np.argmax(values))
            labels[place] = several[best].labels
            tightness[place] = 1 - several[best].spread
            agreements[place] = agreement_of_labels(*(each.labels for each in several))
            chosen[place] = ways[best]

    ordered = [chosen[place] for place in range(len(k_values))]
    eigengaps = _gaps(memberships, k_values)
    graph = Graph(rows_of_unit_length(memberships[0][-1]))
    shares = np.array([graph.shares_within(each) for each in labels])
    return Cuts(labels, ordered, tightness, agreements, eigengaps, *shares.T)


def cut_alike(
    memberships: Sequence[Sequence[Any]], k_values: Sequence[int], ways: Sequence[Way]
) -> np.ndarray:
    """Return the clusters for several rising numbers, each by its own graph, (s, n)."""
    labels = np.full((len(k_values), memberships[0][0].shape[0]), -1)
    for way in set(ways):
        places = [place for place, each in enumerate(ways) if each == way]
        numbers = [k_values[place] for place in places]
        found = _cut_in_way(memberships, way, numbers)
        labels[places] = [each.labels for each in found]
    return labels


def _gaps(memberships: Sequence[Sequence[Any]], k_values: Sequence[int]) -> Float:
    """Return the gaps after k eigenvalues of the graph of the mix."""
    n_vectors = min(max(k_values) + 1, memberships[0][0].shape[0] - 1)
    embedded = Way(len(memberships[0]), OF_MIX).embed(memberships, n_vectors)
    values = np.append(embedded.relaxation.eigenvalues[:n_vectors], 0.0)
    numbers = np.array(k_values)
    return values[numbers - 1] - values[numbers]


def _cut_in_way(
    memberships: Sequence[Sequence[Any]], way: Way, k_values: Sequence[int]
) -> list[_Clusters]:
    """Return the clusters for several rising numbers in one graph."""
    embedded = way.embed(memberships, max(k_values))
    order = embedded.graph.order
    n = len(embedded.rows)
    rows = embedded.rows[order]
    points = [normalize_rows(rows[:, :k]).astype(np.float32) for k in k_values]
    with one_thread_if_small(len(order) * max(k_values), MANY_DISTANCES):
        tight = k_means_for_all(points, k_values)

    found = list[_Clusters]()
    for each in tight:
        labels = np.full(n, -1)
        labels[order] = _by_size(each.labels)
        found.append(_Clusters(labels, each.spread))
    return found


class Tight(NamedTuple):
    """Clusters of points, as k-means finds them."""

    labels: Labels
    centers: Float
    spread: float  # mean squared distance of points from their centers


def k_means_for_all(points: Sequence[Float], k_values: Sequence[int]) -> list[Tight]:
    """Return clusters for rising numbers, each of points of its own.

    k-means starts from drawn centers for the first number, and from the clusters of the
    number before for every other one.
    """
    rng = np.random.RandomState(0)
    found = list[Tight]()
    # Starts for the first number; those for every other one are the clusters of the
    # number before, and one more center.
    drawn_starts = 4
    for several, k in zip(points, k_values, strict=True):
        if found:
            starts = [_with_more_centers(several, found[-1].labels, k, rng)]
        else:
            starts = list(first_centers(several, k, rng, drawn_starts))
        fits = [_lloyd(several, start) for start in starts]
        found.append(min(fits, key=lambda each: each.spread))
    return found


def _lloyd(points: Float, centers: Float) -> Tight:
    """Return clusters by Lloyd's algorithm; one without points keeps its center."""
    # It stops when the squared shifts of all centers sum to less than this share of the
    # mean variance of a column, or after so many iterations.
    least_shift = 1e-4
    max_iter = 100
    tolerance = least_shift * float(np.mean(np.var(points, axis=0)))
    lengths = np.einsum("ij,ij->i", points, points)
    clusters = np.arange(len(centers))
    for _ in range(max_iter):
        squares = np.einsum("ij,ij->i", centers, centers)
        distances = squares - 2 * (points @ centers.T)
        labels = distances.argmin(axis=1)
        members = (labels[:, None] == clusters).astype(points.dtype)
        sizes = members.sum(axis=0)[:, None]
        means = (members.T @ points) / np.maximum(sizes, 1)
        means = np.where(sizes > 0, means, centers)
        shift = float(np.sum((means - centers) ** 2))
        centers = means
        if shift <= tolerance:
            break
    own = distances[np.arange(len(points)), labels] + lengths
    return Tight(labels, centers, max(float(own.mean()), 0.0))


def _with_more_centers(
    points: Float, labels: Labels, n_clusters: int, rng: np.random.RandomState
) -> Float:
    """Return the centers of clusters, and points that are distant from all of them.

    Of some points, drawn by their squared distances, the one is taken that brings most
    points nearer to a center. There are fewer centers if no others are left.
    """
    centers = [points[labels == c].mean(axis=0) for c in np.unique(labels)]
    nearest = cdist(points, centers, "sqeuclidean").min(axis=1)
    # Points that are drawn for every further center, of which the best is taken.
    trials = 16
    while len(centers) < n_clusters and nearest.max() > CLOSE:
        shares = nearest / nearest.sum()
        drawn = points[rng.choice(len(points), trials, p=shares)]
        reached = np.minimum(nearest, cdist(drawn, points, "sqeuclidean"))
        best = reached.sum(axis=1).argmin()
        centers.append(drawn[best])
        nearest = reached[best]
    return np.array(centers)


def _by_size(labels: Labels) -> Labels:
    """Return labels numbered by the falling sizes of clusters."""
    sizes = np.bincount(labels)
    places = np.empty(len(sizes), int)
    places[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return places[labels]
