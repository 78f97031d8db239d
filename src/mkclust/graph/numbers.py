"""Clusters for several numbers of them, from one set of eigenvectors.

The leading eigenvectors of a graph do not depend on how many of them are taken. They
are found once, for the largest number, and k-means for each number starts from the
clusters of the number before, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from mkclust.graph.partition import (
    SETTINGS,
    Embedded,
    Graph,
    Memberships,
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
    lloyd,
    normalize_rows,
    order_by_size,
)
from mkclust.types import Float, Labels

# The graph whose eigenvalues say how many clusters there are: all lists of the mix.
OF_MIX = Setting(with_longest=True, mix=1.0, views=0.0)


class Way(NamedTuple):
    """Which lists make a graph: how many sizes, smallest first, and the setting."""

    n_sizes: int
    setting: Setting

    def embed(
        self,
        memberships: Memberships,
        n_vectors: int,
    ) -> Embedded:
        """Return the embedding by some leading eigenvectors of this graph."""
        used = [several[: self.n_sizes] for several in memberships]
        scales = list_scales(used, self.setting)
        # Eigenvalues after a gap are nearly equal, and any of their directions are as
        # good.
        return embed(
            used,
            scales,
            n_vectors,
            tolerance=1e-3,
        )


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


def cut_for_all(
    memberships: Memberships,
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
        for place, *pair in zip(places, *found, strict=True):
            modularities = [judge.modularity(each.labels) for each in pair]
            # The same clusters, numbered in another way, are better by rounding alone.
            best = int(np.argmax(np.round(modularities, 9)))
            labels[place] = pair[best].labels
            tightness[place] = 1 - pair[best].spread
            agreements[place] = agreement_of_labels(*(each.labels for each in pair))
            chosen[place] = ways[best]

    graph = Graph(rows_of_unit_length(memberships[0][-1]))
    shares = np.array([graph.shares_within(each) for each in labels])
    return Cuts(
        labels=labels,
        ways=[chosen[place] for place in range(len(k_values))],
        tightness=tightness,
        agreements=agreements,
        eigengaps=_gaps(memberships, k_values),
        within=shares[:, 0],
        by_chance=shares[:, 1],
    )


def cut_alike(
    memberships: Memberships,
    k_values: Sequence[int],
    ways: Sequence[Way],
) -> np.ndarray:
    """Return the clusters for several rising numbers, each by its own graph, (s, n)."""
    n = memberships[0][0].shape[0]
    labels = np.full((len(k_values), n), -1)
    for way in set(ways):
        places = [place for place, each in enumerate(ways) if each == way]
        numbers = [k_values[place] for place in places]
        found = _cut_in_way(memberships, way, numbers)
        labels[places] = [each.labels for each in found]
    return labels


def _gaps(
    memberships: Memberships,
    k_values: Sequence[int],
) -> Float:
    """Return the gaps after k eigenvalues of the graph of the mix."""
    n = memberships[0][0].shape[0]
    n_vectors = min(max(k_values) + 1, n - 1)
    way = Way(len(memberships[0]), OF_MIX)
    relaxation = way.embed(memberships, n_vectors).relaxation
    values = np.append(relaxation.eigenvalues[:n_vectors], 0.0)
    numbers = np.array(k_values)
    return values[numbers - 1] - values[numbers]


def _cut_in_way(
    memberships: Memberships,
    way: Way,
    k_values: Sequence[int],
) -> "list[Tight]":
    """Return the clusters for several rising numbers in one graph, of all samples."""
    embedded = way.embed(memberships, max(k_values))
    order = embedded.graph.order
    rows = embedded.rows[order]
    directions = [normalize_rows(rows[:, :k]) for k in k_values]
    points = [each.astype(np.float32) for each in directions]
    with one_thread_if_small(len(order) * max(k_values), MANY_DISTANCES):
        of_linked = k_means_for_all(points, k_values)

    found = []
    for each in of_linked:
        labels = np.full(len(embedded.rows), -1)
        labels[order] = _by_size(each.labels, embedded.graph.mass[order])
        found.append(each._replace(labels=labels))
    return found


class Tight(NamedTuple):
    """Clusters of points, as k-means finds them."""

    labels: Labels
    centers: Float
    spread: float  # mean squared distance of points from their centers


def k_means_for_all(
    points: Sequence[Float],
    k_values: Sequence[int],
) -> list[Tight]:
    """Return clusters for rising numbers, each of points of its own.

    k-means starts from drawn centers for the first number, and from the clusters of the
    number before for every other one.
    """
    rng = np.random.RandomState(0)
    found = list[Tight]()
    for several, k in zip(points, k_values, strict=True):
        middle = several.mean(axis=0)
        rows = several - middle
        if found:
            starts = _with_more_centers(rows, found[-1].labels, k, rng)[None]
        else:
            starts = first_centers(
                rows,
                k,
                rng,
                n_starts=4,
            )
        centers, distances = lloyd(rows, starts)
        spreads = distances.min(axis=1).mean(axis=1)
        best = int(spreads.argmin())
        labels = distances[best].argmin(axis=0)
        spread = max(float(spreads[best]), 0.0)
        found.append(
            Tight(
                labels=labels,
                centers=centers[best] + middle,
                spread=spread,
            )
        )
    return found


def _with_more_centers(
    points: Float,
    labels: Labels,
    n_clusters: int,
    rng: np.random.RandomState,
) -> Float:
    """Return the centers of clusters, and points that are distant from all of them.

    Of some points, drawn by their squared distances, the one is taken that brings most
    points nearer to a center. There are fewer centers if no others are left.
    """
    centers = [points[labels == c].mean(axis=0) for c in np.unique(labels)]
    to_centers = cdist(points, centers, "sqeuclidean")
    nearest = to_centers.min(axis=1)
    # Points that are drawn for every further center, of which the best is taken.
    trials = 16
    while len(centers) < n_clusters and nearest.max() > CLOSE:
        shares = nearest / nearest.sum()
        drawn = points[rng.choice(len(points), trials, p=shares)]
        to_drawn = cdist(drawn, points, "sqeuclidean")
        reached = np.minimum(nearest, to_drawn)
        best = reached.sum(axis=1).argmin()
        centers.append(drawn[best])
        nearest = reached[best]
    return np.array(centers)


def _by_size(
    labels: Labels,
    mass: Float,
) -> Labels:
    """Return labels numbered by falling size, and for one size by mass."""
    order = order_by_size(labels, int(labels.max()) + 1, mass)
    return np.argsort(order)[labels]
