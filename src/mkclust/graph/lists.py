"""The neighborhoods of anchors, as lists of samples.

An anchor's list of size s reaches as far as its s-th nearest anchor: a sample is in it
if it is at least as similar. So lists tell what is near by the same rule for anchors,
for other samples of a fit and for new ones. Only anchors have lists; an anchor that has
one is in it. Fits find the lists of anchors in `Search`, and `Lists.memberships` says
by the same limits in which lists any samples are: change both alike.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mkclust.kernels.neighbors import LARGEST_WITH_ALL_TIES, LONGEST_TIMES
from mkclust.linalg import namespace, select, set_diagonal, to_device, to_host
from mkclust.linalg.nearest import entries_at, lower_bounds, places_of, true_at
from mkclust.linalg.threads import in_threads
from mkclust.types import Array, Float

# Numbers of nearest anchors that lists reach to (benchmarks/neighborhoods.py).
SIZES = (5, 10, 20)
# No list is longer than the average cluster, but for those of this size.
SMALLEST = 5
# Returns the similarities of anchors, given by their numbers, to all anchors, by
# several kernels.
Compare = Callable[[Any], Sequence[Array]]


@dataclass(frozen=True)
class Lists:
    """How far the lists of anchors reach, by one kernel."""

    # The least similarity, (n_sizes, n_anchors); infinite if there is no list:
    # nobody is alike, or ties made it too long.
    limits: Float
    tie: float  # similarities that are smaller by less are as large
    # Whether a sample that is in no list joins that of the nearest anchor.
    for_all: bool

    def memberships(self, similarities: Array) -> list[Any]:
        """Return by size which samples are in which anchors' lists, sparse, of bool."""
        low = to_device(self.limits.min(axis=0) - self.tie, similarities)
        rows, anchors = places_of(similarities >= low)
        values = entries_at(similarities, rows, anchors)
        return [
            self._of_size(limits, similarities, rows, anchors, values)
            for limits in self.limits
        ]

    def _of_size(
        self, limits: Float, similarities: Array, rows: Any, anchors: Any, values: Any
    ) -> Any:
        is_in = values >= limits[anchors] - self.tie
        rows = rows[is_in]
        anchors = anchors[is_in]
        shape = (similarities.shape[0], len(limits))
        counts = np.bincount(rows, minlength=shape[0])
        alone = np.flatnonzero(counts == 0)
        if not self.for_all or not len(alone):
            return true_at(rows, anchors, shape)

        nearest, is_near = nearest_list(select(similarities, alone), limits)
        rows = np.append(rows, alone[is_near])
        anchors = np.append(anchors, nearest[is_near])
        return _matrix(rows, anchors, shape)


def nearest_list(similarities: Array, limits: Float) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row the nearest anchor with a list, and whether there is one."""
    to_lists = np.where(np.isfinite(limits), to_host(similarities), -np.inf)
    return to_lists.argmax(axis=1), to_lists.max(axis=1, initial=-np.inf) > -np.inf


def list_sizes(neighbors: Any, n_anchors: int, n_clusters: int) -> tuple[int, ...]:
    """Return the sizes of lists, rising: as asked for, or by the number of anchors."""
    most = max(1, n_anchors - 3)
    if neighbors != "auto":
        asked = {max(1, neighbors // 4), max(1, neighbors // 2), neighbors}
        return tuple(sorted({min(size, most) for size in asked}))
    limit = max(SMALLEST, n_anchors / n_clusters)
    sizes = [size for size in SIZES if size <= min(limit, most)]
    return tuple(sizes) or (max(1, min(SMALLEST, most)),)


class Nearest(NamedTuple):
    """The anchors nearest to some anchors, these included, and their similarities."""

    rows: np.ndarray
    columns: np.ndarray
    values: Float
    ordered: Float  # the similarities to the nearest others, falling, (n, n_nearest)


class Search:
    """The search for the lists of anchors by one kernel, block after block."""

    def __init__(self, sizes: Sequence[int], n_anchors: int, tie: float, for_all: bool):
        self.sizes = tuple(sizes)
        self.n_anchors = n_anchors
        self.tie = tie
        self.for_all = for_all
        self.limits: list[Float] = []
        self.members: list[list[Any]] = [[] for _ in sizes]
        # How many lists of a size were too long.
        self.n_long = np.zeros(len(sizes), int)

    def add(self, nearest: Nearest) -> None:
        """Find the lists of the following anchors."""
        limits = [self._find(number, nearest) for number in range(len(self.sizes))]
        self.limits.append(np.array(limits))

    def _find(self, number: int, nearest: Nearest) -> Float:
        """Return the limits of lists of one size, and keep who is in them."""
        size = self.sizes[number]
        (rows, columns, values, ordered) = nearest
        n = len(ordered)
        limits = ordered[:, size - 1]
        lengths = _lengths(values >= limits[rows] - self.tie, rows, n)
        # A list of a view that ties make longer than this multiple of its size is
        # vague: it ends before.
        vague = 2
        if not self.for_all:
            is_vague = lengths > vague * size + 1
            limits = np.where(is_vague, limits + 2 * self.tie, limits)
            lengths = _lengths(values >= limits[rows] - self.tie, rows, n)

        longest = max(
            LONGEST_TIMES * (size + 1), LARGEST_WITH_ALL_TIES**2 // self.n_anchors
        )
        is_long = lengths > longest
        ranks = self.n_long[number] + np.cumsum(is_long)
        self.n_long[number] += is_long.sum()
        is_left_out = is_long & (ranks % np.maximum(-(-lengths // longest), 1) != 0)
        # Nobody is alike, or nobody but the anchor itself.
        is_empty = ~np.isfinite(limits) | (lengths <= 1)
        limits = np.where(is_left_out | is_empty, np.inf, limits)

        is_in = values >= limits[rows] - self.tie
        self.members[number].append(
            _matrix(rows[is_in], columns[is_in], (n, self.n_anchors))
        )
        return limits

    def lists(self) -> Lists:
        """Return the lists of all anchors."""
        return Lists(np.concatenate(self.limits, axis=1), self.tie, self.for_all)

    def memberships(self) -> list[Any]:
        """Return by size if anchor i is in the list of j, (n_anchors, n_anchors)."""
        return [scipy.sparse.vstack(blocks, "csr").T.tocsr() for blocks in self.members]


def find_lists(
    compare: Compare,
    n_anchors: int,
    parts: Iterable[slice],
    sizes: Sequence[int],
    ties: Sequence[float],
    like: Array,
) -> tuple[list[Lists], list[list[Any]]]:
    """Return the lists of anchors by kernel, and their members by kernel and size.

    The first kernel is the mix: by it every sample is in a list.
    """
    searches = [Search(sizes, n_anchors, tie, not p) for p, tie in enumerate(ties)]

    def find(part: slice) -> list[Nearest]:
        compared = zip(compare(part), ties, strict=True)
        return [find_nearest(each, part, max(sizes), tie) for each, tie in compared]

    for found in in_threads(find, parts, like):
        for search, nearest in zip(searches, found, strict=True):
            search.add(nearest)

    lists = [search.lists() for search in searches]
    members = [search.memberships() for search in searches]
    members[0] = _without_lonely(members[0], lists[0], compare)
    return lists, members


def _without_lonely(members: list[Any], lists: Lists, compare: Compare) -> list[Any]:
    """Return memberships with those in no list added to that of the nearest anchor."""
    lonely = [np.flatnonzero(np.diff(each.indptr) == 0) for each in members]
    anyone = np.unique(np.concatenate(lonely))
    if not len(anyone):
        return members
    joined = lists.memberships(compare(anyone)[0])
    completed = []
    for each, rows, new in zip(members, lonely, joined, strict=True):
        places = np.searchsorted(anyone, rows)
        spread = scipy.sparse.csr_array(
            (np.ones(len(rows), bool), (rows, places)), (each.shape[0], len(anyone))
        )
        completed.append(scipy.sparse.csr_array(each + spread @ new, dtype=bool))
    return completed


def find_nearest(similarities: Array, own: slice, count: int, tie: float) -> Nearest:
    """Return the nearest anchors of some anchors, given their similarities to all."""
    xp = namespace(similarities)
    square = similarities[:, own]
    to_themselves = xp.linalg.diagonal(square) + 0.0
    set_diagonal(square, -np.inf)
    bounds = lower_bounds(similarities, count)
    is_near = (similarities >= bounds - tie) & (similarities > -np.inf)
    rows, columns = places_of(is_near)
    values = to_host(entries_at(similarities, rows, columns))
    set_diagonal(square, to_themselves)

    n = own.stop - own.start
    counts = np.bincount(rows, minlength=n)
    starts = np.cumsum(counts) - counts
    falling = np.append(values[np.lexsort((-values, rows))], -np.inf)
    ranks = np.arange(count)
    ordered = falling[np.minimum(starts[:, None] + ranks, len(values))]
    ordered = np.where(ranks < counts[:, None], ordered, -np.inf)

    anchors = np.arange(n)
    return Nearest(
        np.append(rows, anchors),
        np.append(columns, anchors + own.start),
        np.append(values, to_host(to_themselves)),
        ordered,
    )


def _lengths(is_in: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    return np.bincount(rows[is_in], minlength=n)


def _matrix(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape)
