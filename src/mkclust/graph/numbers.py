"""Clusters for several numbers of them, from one set of eigenvectors, and how they compare.

The leading eigenvectors of a graph do not depend on how many of them are taken. They
are found once, for the largest number, and k-means for each number starts from the
clusters of the number before, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

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
TOLERANCE = 1e-4
# k-means starts for the first number from so many times drawn centers, for every other
# one from the clusters of the number before and the best of so many drawn points.
DRAWN_STARTS = 10
TRIALS = 16
# The graph whose eigenvalues say how many clusters there are: all lists of the mix.
OF_MIX = Setting(True, 1.0, 0.0)


class Way(NamedTuple):
    """Which lists a graph is made of: how many sizes, the smallest first, and the setting."""

    n_sizes: int
    setting: Setting

    def embed(self, memberships: Sequence[Sequence[Any]], n_vectors: int) -> Embedded:
        """Return the embedding of samples by some leading eigenvectors of this graph."""
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


class _Clusters(NamedTuple):
    """The clusters for one number in one setting."""

    labels: Labels
    spread: float  # mean squared distance of directions from their centers


def cut_for_all(
    memberships: Sequence[Sequence[Any]],
    k_values: Sequence[int],
    n_sizes: Sequence[int],
) -> Cuts:
    """Cut the graph of neighborhoods into every one of several rising numbers of clusters.

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
    return Cuts(labels, ordered, tightness, agreements, eigengaps)


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
    order, n = embedded.graph.order, len(embedded.rows)
    found = list[_Clusters]()
    before = None
    for k in k_values:
        directions = normalize_rows(embedded.rows[order, :k]).astype(np.float32)
        with one_thread_if_small(len(order) * k, MANY_DISTANCES):
            fitted = _k_means(directions, k, before)
        before = fitted.labels_
        labels = np.full(n, -1)
        labels[order] = _by_size(before)
        found.append(_Clusters(labels, float(fitted.inertia_) / len(order)))
    return found


def _k_means(points: Float, n_clusters: int, before: Labels | None) -> KMeans:
    """Return k-means from the clusters of a smaller number, or else from drawn centers."""
    rng = np.random.RandomState(0)
    if before is None:
        starts = first_centers(points, n_clusters, rng, DRAWN_STARTS)
    else:
        starts = [_with_more_centers(points, before, n_clusters, rng)]
    fits = [KMeans(len(start), init=start, n_init=1).fit(points) for start in starts]
    return min(fits, key=lambda each: each.inertia_)


def _with_more_centers(
    points: Float, labels: Labels, n_clusters: int, rng: np.random.RandomState
) -> Float:
    """Return the centers of clusters, and points that are distant from all of them.

    Of some points, drawn by their squared distances, the one is taken that brings most
    points nearer to a center. There are fewer centers if no others are left.
    """
    centers = [points[labels == c].mean(axis=0) for c in np.unique(labels)]
    nearest = cdist(points, centers, "sqeuclidean").min(axis=1)
    while len(centers) < n_clusters and nearest.max() > CLOSE:
        shares = nearest / nearest.sum()
        drawn = points[rng.choice(len(points), TRIALS, p=shares)]
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
