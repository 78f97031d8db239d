"""The neighborhoods of anchors, as lists of samples.

An anchor's list of size s reaches as far as its s-th nearest anchor: a sample is in it
if it is at least as similar. So lists tell what is near by the same rule for anchors,
for other samples of a fit and for new ones. Only anchors have lists; an anchor that has
one is in it. Fits find the lists of anchors in `Search`, and `Lists.memberships` says
by the same limits in which lists any samples are: change both alike.

Samples of the fit come back as rows of similarities that do not say which anchor they
are. So a rule for the list of a sample itself has to count the sample, too, which is
not always the most similar to itself.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from mkclust.kernels.neighbors import LARGEST_WITH_ALL_TIES, LONGEST_TIMES
from mkclust.linalg import namespace, select, set_diagonal, to_device, to_host
from mkclust.linalg.nearest import entries_at, lower_bounds, places_of
from mkclust.linalg.threads import in_threads
from mkclust.types import Array, Float

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
    # Whether the kernel is the mix, by which a sample that is in no list joins that of
    # the nearest anchor.
    of_mix: bool

    def memberships(self, similarities: Array) -> list[Any]:
        """Return by size which samples are in which anchors' lists, sparse, of bool."""
        least = self.limits.min(axis=0) - self.tie
        rows, anchors = places_of(similarities >= to_device(least, similarities))
        values = entries_at(similarities, rows, anchors)
        shape = tuple(similarities.shape)

        found = []
        for limits in self.limits:
            is_in = values >= limits[anchors] - self.tie
            members = _matrix(rows[is_in], anchors[is_in], shape)
            alone = np.flatnonzero(np.diff(members.indptr) == 0)
            if self.of_mix and len(alone):
                of_alone = select(similarities, alone)
                nearest, is_near = nearest_list(of_alone, limits, self.tie)
                members += _matrix(alone[is_near], nearest[is_near], shape)
            found.append(members)
        return found


def nearest_list(
    similarities: Array,
    limits: Float,
    tie: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row the nearest anchor with a list, and whether there is one.

    Of anchors that are as near, it is the first.
    """
    to_lists = np.where(np.isfinite(limits), to_host(similarities), -np.inf)
    highest = to_lists.max(axis=1, initial=-np.inf)
    is_nearest = to_lists >= highest[:, None] - tie
    return is_nearest.argmax(axis=1), highest > -np.inf


def list_sizes(
    neighbors: int | Literal["auto"],
    n_anchors: int,
    n_clusters: int,
    *,
    sizes: Sequence[int] = (5, 10, 20),
    smallest: int = 5,
) -> tuple[int, ...]:
    """Return the sizes of lists, rising: as asked for, or by the number of anchors.

    No list is longer than the average cluster, but for those of the smallest size
    (benchmarks/neighborhoods.py).
    """
    most = max(1, n_anchors - 3)
    if neighbors != "auto":
        asked = [neighbors // 4, neighbors // 2, neighbors]
        used = np.unique(np.clip(asked, 1, most))
        return tuple(used.tolist())

    limit = min(max(smallest, n_anchors / n_clusters), most)
    found = [size for size in sizes if size <= limit]
    return tuple(found or [min(smallest, most)])


class Nearest(NamedTuple):
    """The anchors nearest to some anchors, these included, and their similarities."""

    rows: np.ndarray
    columns: np.ndarray
    values: Float
    ordered: Float  # the similarities to the nearest others, falling, (n, n_nearest)

    def reached(self, least: Float) -> np.ndarray:
        """Return which pairs are as similar as the least that each anchor asks for."""
        return self.values >= least[self.rows]

    def lengths(self, least: Float) -> np.ndarray:
        """Return how many are as similar to each anchor as its least, (n,)."""
        rows = self.rows[self.reached(least)]
        return np.bincount(rows, minlength=len(least))


class Search:
    """The search for the lists of anchors by one kernel, block after block."""

    def __init__(
        self,
        sizes: Sequence[int],
        n_anchors: int,
        tie: float,
        of_mix: bool,
    ):
        self.sizes = tuple(sizes)
        self.n_anchors = n_anchors
        self.tie = tie
        self.of_mix = of_mix
        self.limits: list[Float] = []
        self.members: list[list[Any]] = [[] for _ in sizes]
        # How many lists of a size were too long.
        self.n_long = [0] * len(sizes)

    def add(self, nearest: Nearest) -> None:
        """Find the lists of the following anchors."""
        sizes = range(len(self.sizes))
        limits = np.array([self._find(number, nearest) for number in sizes])
        self.limits.append(limits)
        shape = (limits.shape[1], self.n_anchors)
        for members, least in zip(self.members, limits - self.tie, strict=True):
            is_in = nearest.reached(least)
            found = _matrix(nearest.rows[is_in], nearest.columns[is_in], shape)
            members.append(found)

    def _find(
        self,
        number: int,
        nearest: Nearest,
    ) -> Float:
        """Return the limits of lists of one size."""
        size = self.sizes[number]
        limits = nearest.ordered[:, size - 1]
        lengths = nearest.lengths(limits - self.tie)
        # A list of a view that ties make longer than this multiple of its size is
        # vague: it ends before.
        vague = 2
        if not self.of_mix:
            is_vague = lengths > vague * size + 1
            limits = limits + 2 * self.tie * is_vague
            lengths = nearest.lengths(limits - self.tie)

        # Of lists that are some times too long, one in so many is kept.
        all_ties = LARGEST_WITH_ALL_TIES**2 // self.n_anchors
        longest = max(LONGEST_TIMES * (size + 1), all_ties)
        is_long = lengths > longest
        ranks = self.n_long[number] + np.cumsum(is_long)
        self.n_long[number] += int(is_long.sum())
        times_too_long = np.maximum(-(-lengths // longest), 1)
        is_kept = ~is_long | (ranks % times_too_long == 0)

        # Nobody is alike, or nobody but the anchor itself.
        has_others = np.isfinite(limits) & (lengths > 1)
        return np.where(has_others & is_kept, limits, np.inf)

    def lists(self) -> Lists:
        """Return the lists of all anchors."""
        limits = np.concatenate(self.limits, axis=1)
        return Lists(limits, self.tie, self.of_mix)

    def by_anchor(self) -> list[Any]:
        """Return by size if anchor i is in the list of j, (n_anchors, n_anchors)."""
        by_list = [scipy.sparse.vstack(blocks) for blocks in self.members]
        return [each.T.tocsr() for each in by_list]


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
    searches = [Search(sizes, n_anchors, tie, of_mix=False) for tie in ties]
    searches[0].of_mix = True

    def find(part: slice) -> list[Nearest]:
        """Return the nearest anchors of some anchors, by kernel."""
        pairs = zip(compare(part), ties, strict=True)
        return [find_nearest(K, part, max(sizes), tie) for K, tie in pairs]

    for found in in_threads(find, parts, like):
        for search, nearest in zip(searches, found, strict=True):
            search.add(nearest)

    lists = [each.lists() for each in searches]
    members = [each.by_anchor() for each in searches]
    members[0] = _without_lonely(members[0], lists[0], compare)
    return lists, members


def _without_lonely(
    members: list[Any],
    lists: Lists,
    compare: Compare,
) -> list[Any]:
    """Return memberships with those in no list added to that of the nearest anchor."""
    is_lonely = [np.diff(each.indptr) == 0 for each in members]
    anyone = np.flatnonzero(np.any(is_lonely, axis=0))
    if not len(anyone):
        return members

    # The others of them are in the same lists again.
    joined = lists.memberships(compare(anyone)[0])
    shape = (members[0].shape[0], len(anyone))
    spread = _matrix(anyone, np.arange(len(anyone)), shape)
    return [each + spread @ new for each, new in zip(members, joined, strict=True)]


def find_nearest(
    similarities: Array,
    own: slice,
    count: int,
    tie: float,
) -> Nearest:
    """Return the nearest anchors of some anchors, given their similarities to all."""
    xp = namespace(similarities)
    square = similarities[:, own]
    to_themselves = xp.linalg.diagonal(square) + 0.0
    set_diagonal(square, -np.inf)
    least = lower_bounds(similarities, count) - tie
    is_near = similarities >= least
    is_near &= similarities > -np.inf
    rows, columns = places_of(is_near)
    values = entries_at(similarities, rows, columns)
    set_diagonal(square, to_themselves)

    # The first of every row if they fall; -inf if there are fewer.
    n = own.stop - own.start
    by_row = np.lexsort((-values, rows))
    sorted_rows = rows[by_row]
    first = np.searchsorted(sorted_rows, np.arange(n))
    ranks = np.arange(len(rows)) - first[sorted_rows]
    is_first = ranks < count
    ordered = np.full((n, count), -np.inf)
    places = sorted_rows[is_first], ranks[is_first]
    ordered[places] = values[by_row[is_first]]

    anchors = np.arange(n)
    return Nearest(
        rows=np.append(rows, anchors),
        columns=np.append(columns, anchors + own.start),
        values=np.append(values, to_host(to_themselves)),
        ordered=ordered,
    )


def _matrix(
    rows: np.ndarray,
    columns: np.ndarray,
    shape: tuple[int, int],
) -> Any:
    """Return a sparse array that is true in places in any order."""
    is_true = np.ones(len(rows), bool)
    return scipy.sparse.csr_array((is_true, (rows, columns)), shape)
