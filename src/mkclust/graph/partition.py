r"""Clusters cut from the graph of neighborhoods.

Two samples are linked if they are in the same lists. With the memberships F, rows of
unit length for every kernel and size of lists, and the degrees D of :math:`W = F
F^\top` without its diagonal, the leading eigenvectors U of :math:`D^{-1/2} W D^{-1/2}`
are the embedding, and

.. math:: h(x) = F(x) P, \qquad P = F^\top D^{-1/2} U

embeds any sample. k-means of its directions gives the clusters. Nothing is centered, so
that clusters may be of any size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mkclust.engine.eigen import Relaxation, relax
from mkclust.linalg.memory import require_memory
from mkclust.stack import Kernel
from mkclust.stack.discretize import discretize
from mkclust.types import Array, Float, Labels

# Memory that a link takes while all are written out.
BYTES_PER_LINK = 48
# Which samples are in which lists, sparse, by kernel and size of lists.
Memberships = Sequence[Sequence[Any]]


class Setting(NamedTuple):
    """Which lists make up a graph, and what those of the mix and the views weigh."""

    with_longest: bool
    mix: float
    views: float


# Clusters of few samples are found with the first, clusters that one view sees best
# with the second (benchmarks/neighborhoods.py).
SETTINGS = (
    Setting(with_longest=False, mix=1.0, views=0.0),
    Setting(with_longest=True, mix=1.0, views=1.0),
)


class Graph(Kernel):
    """The graph of neighborhoods, normalized by degrees, in two sparse factors."""

    storage = "sparse"

    def __init__(self, factor: Any):
        self.factor = scipy.sparse.csr_array(factor, dtype=np.float64)
        self.transposed = self.factor.T.tocsr()
        squares = self.factor.multiply(self.factor)
        self.own = np.asarray(squares.sum(axis=1)).reshape(-1)
        n = self.factor.shape[0]
        degrees = self.linked(np.ones(n)) - self.own
        # Degrees below this share of the mean are those of samples that nothing is
        # linked to.
        isolated = 1e-9
        is_linked = degrees > isolated * degrees.mean()
        self.degrees = np.where(is_linked, degrees, 0.0)
        self.scale = is_linked / np.sqrt(np.where(is_linked, degrees, 1.0))

    @property
    def like(self) -> Array:
        """An array of the library that the links are in."""
        return self.own

    def linked(self, V: Array) -> Array:
        """Return ``F F^T V``."""
        return self.factor @ (self.transposed @ V)

    def __matmul__(self, V: Array) -> Array:
        """Return the normalized links times a thin matrix."""
        scale = self.scale[:, None]
        scaled = scale * V
        to_itself = self.own[:, None] * scaled
        return scale * (self.linked(scaled) - to_itself)

    def rows(self, index: Any) -> Array:
        """Return the links of some samples, normalized, (s, n)."""
        links = (self.factor[index] @ self.transposed).toarray()
        numbers = np.arange(self.n_samples)[index]
        links[np.arange(len(numbers)), numbers] -= self.own[numbers]
        return self.scale[numbers][:, None] * links * self.scale

    def diagonal(self) -> Array:
        """Return zeros: samples have no links to themselves."""
        return np.zeros(self.n_samples)

    def links(self, n_counted: int = 256) -> Any:
        """Return all links, normalized, as a symmetric sparse matrix.

        Those of some samples are counted, before all are written out.
        """
        n = self.factor.shape[0]
        counted = np.linspace(0, n - 1, min(n, n_counted))
        counted = counted.astype(int)
        n_links = (self.factor[counted] @ self.transposed).nnz
        require_memory(
            int(BYTES_PER_LINK * n_links * n / len(counted)),
            f"writing out the graph of {n:,} samples",
            "take the graph of fewer samples; the embedding holds its clusters",
        )
        links = self.factor @ self.transposed
        upper = scipy.sparse.triu(links, 1, "csr")
        scale = scipy.sparse.diags_array(self.scale)
        upper = scipy.sparse.csr_array(scale @ upper @ scale)
        upper.eliminate_zeros()
        return scipy.sparse.csr_array(upper + upper.T)

    @cached_property
    def mass(self) -> Float:
        """How strongly samples are linked to well linked samples, (n,)."""
        return np.asarray(self.linked(self.degrees))

    @cached_property
    def order(self) -> np.ndarray:
        """The linked samples in an order that does not depend on that of the rows."""
        rising = np.argsort(self.mass, kind="stable")
        return rising[self.degrees[rising] > 0]

    def modularity(self, labels: Labels) -> float:
        """Return the share of links within clusters, less that by chance."""
        within, by_chance = self.shares_within(labels)
        return within - by_chance

    def shares_within(self, labels: Labels) -> tuple[float, float]:
        """Return the share of links within clusters, and that expected by chance."""
        clusters = np.unique(labels)
        is_in = (labels[:, None] == clusters).astype(np.float64)
        in_lists = self.transposed @ is_in
        links = np.sum(in_lists**2, axis=0)
        within = links - is_in.T @ self.own
        total = self.degrees.sum()
        shares = is_in.T @ self.degrees / total
        return float(within.sum() / total), float(np.sum(shares**2))


@dataclass(frozen=True)
class Embedded:
    """Samples embedded by the leading eigenvectors of a graph of neighborhoods."""

    # Of the memberships, by kernel and size of lists; zero: not used.
    scales: list[list[float]]
    graph: Graph
    relaxation: Relaxation
    list_points: Float  # P, a row for every list
    rows: Float  # of the samples


@dataclass(frozen=True)
class Cut(Embedded):
    """Clusters, and the embedding that they are found in."""

    centers: Float
    labels: Labels


def rows_of_unit_length(memberships: Any) -> Any:
    """Return memberships in which every sample has the same total weight."""
    counts = np.diff(memberships.indptr)
    lengths = np.sqrt(np.maximum(counts, 1))
    entries = np.repeat(1 / lengths, counts)
    return scipy.sparse.csr_array(
        (entries, memberships.indices, memberships.indptr), memberships.shape
    )


def scaled_factor(
    memberships: Memberships,
    scales: Sequence[Sequence[float]],
) -> Any:
    """Return F: the memberships with a scale, by kernel and size, side by side."""
    parts = []
    for of_kernel, several in zip(scales, memberships, strict=True):
        for scale, each in zip(of_kernel, several, strict=True):
            if scale:
                parts.append(scale * rows_of_unit_length(each))
    return scipy.sparse.hstack(parts, "csr")


def list_scales(
    memberships: Memberships,
    setting: Setting,
) -> list[list[float]]:
    """Return by what memberships are multiplied, by kernel and size, in a setting.

    The links of memberships between different samples then sum to their weight.
    """
    n_views = len(memberships) - 1
    n_sizes = len(memberships[0])
    n_used = n_sizes if setting.with_longest else max(n_sizes - 1, 1)
    of_view = setting.views / max(n_views, 1)
    weights = [setting.mix] + [of_view] * n_views

    scales = []
    for weight, several in zip(weights, memberships, strict=True):
        of_kernel = [0.0] * n_sizes
        for number, each in enumerate(several[:n_used]):
            factor = rows_of_unit_length(each)
            n_in_lists = np.count_nonzero(np.diff(each.indptr))
            sizes = factor.sum(axis=0)
            total = float(np.sum(sizes**2) - n_in_lists)
            if total > 0:
                of_kernel[number] = float(np.sqrt(weight / total))
        scales.append(of_kernel)
    return scales


def cut(
    memberships: Memberships,
    n_clusters: int,
    *,
    n_init: int,
    random_state: Any,
) -> Cut:
    """Cut the graph of neighborhoods in two settings, and return the better clusters.

    Better are those with the higher modularity in the graph of the longest lists of the
    mix.
    """
    judge = Graph(rows_of_unit_length(memberships[0][-1]))
    best: Cut | None = None
    highest = -np.inf
    for setting in SETTINGS:
        scales = list_scales(memberships, setting)
        if best is not None and scales == best.scales:
            continue
        embedded = embed(memberships, scales, n_clusters)
        order = embedded.graph.order
        of_linked, centers = discretize(
            embedded.rows[order],
            n_clusters,
            n_init=n_init,
            random_state=random_state,
            mass=embedded.graph.mass[order],
        )
        labels = np.full(len(embedded.rows), -1)
        labels[order] = of_linked

        modularity = judge.modularity(labels)
        # The same clusters, numbered in another way, are better by rounding alone.
        if best is None or modularity > highest + 1e-9:
            highest = modularity
            best = Cut(**vars(embedded), centers=centers, labels=labels)
    assert best is not None
    return best


def embed(
    memberships: Memberships,
    scales: list[list[float]],
    n_vectors: int,
    tolerance: float = 1e-8,
) -> Embedded:
    """Return the embedding of samples by some leading eigenvectors of their graph.

    The tolerance is the relative error of the sum of their eigenvalues.
    """
    graph = Graph(scaled_factor(memberships, scales))
    relaxation = relax(graph, n_vectors, tol=tolerance)
    vectors = relaxation.vectors[:, :n_vectors]
    scaled = graph.scale[:, None] * vectors
    list_points = graph.transposed @ scaled
    rows = graph.factor @ list_points
    return Embedded(
        scales,
        graph,
        relaxation,
        list_points,
        rows,
    )
