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
from mkclust.linalg.nearest import entries_at, lower_bounds, places_of, true_at
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
        is_near = similarities >= to_device(least, similarities)
        rows, anchors = places_of(is_near)
        values = entries_at(similarities, rows, anchors)

        found = []
        for limits in self.limits:
            is_in = values >= limits[anchors] - self.tie
            members = self._of_size(
                limits,
                similarities,
                rows[is_in],
                anchors[is_in],
            )
            found.append(members)
        return found

    def _of_size(
        self,
        limits: Float,
        similarities: Array,
        rows: np.ndarray,
        anchors: np.ndarray,
    ) -> Any:
        """Return the memberships of one size, given who is near enough to whom."""
        n = similarities.shape[0]
        shape = (n, len(limits))
        counts = np.bincount(rows, minlength=n)
        alone = np.flatnonzero(counts == 0)
        if not self.of_mix or not len(alone):
            return true_at(rows, anchors, shape)

        of_alone = select(similarities, alone)
        nearest, is_near = nearest_list(of_alone, limits, self.tie)
        rows = np.append(rows, alone[is_near])
        anchors = np.append(anchors, nearest[is_near])
        return _matrix(rows, anchors, shape)


def nearest_list(
    similarities: Array,
    limits: Float,
    tie: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for every row the nearest anchor with a list, and whether there is one.

    Of anchors that are as near, it is the first.
    """
    on_host = to_host(similarities)
    to_lists = np.where(np.isfinite(limits), on_host, -np.inf)
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

    limit = max(smallest, n_anchors / n_clusters)
    limit = min(limit, most)
    found = [size for size in sizes if size <= limit]
    if found:
        return tuple(found)
    return (min(smallest, most),)


class Nearest(NamedTuple):
    """The anchors nearest to some anchors, these included, and their similarities."""

    rows: np.ndarray
    columns: np.ndarray
    values: Float
    ordered: Float  # the similarities to the nearest others, falling, (n, n_nearest)

    def lengths(self, least: Float) -> np.ndarray:
        """Return how many are as similar to each anchor as its least, (n,)."""
        is_in = self.values >= least[self.rows]
        rows = self.rows[is_in]
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
        limits = []
        for number in range(len(self.sizes)):
            found = self._find(number, nearest)
            limits.append(found)
            least = found - self.tie
            is_in = nearest.values >= least[nearest.rows]
            rows = nearest.rows[is_in]
            columns = nearest.columns[is_in]
            shape = (len(found), self.n_anchors)
            self.members[number].append(_matrix(rows, columns, shape))
        self.limits.append(np.array(limits))

    def _find(self, number: int, nearest: Nearest) -> Float:
        """Return the limits of lists of one size."""
        size = self.sizes[number]
        limits = nearest.ordered[:, size - 1]
        lengths = nearest.lengths(limits - self.tie)
        # A list of a view that ties make longer than this multiple of its size is
        # vague: it ends before.
        vague = 2
        if not self.of_mix:
            is_vague = lengths > vague * size + 1
            nearer = limits + 2 * self.tie
            limits = np.where(is_vague, nearer, limits)
            lengths = nearest.lengths(limits - self.tie)

        # Of lists that are some times too long, one in so many is kept.
        all_ties = LARGEST_WITH_ALL_TIES**2 // self.n_anchors
        longest = max(LONGEST_TIMES * (size + 1), all_ties)
        is_long = lengths > longest
        ranks = self.n_long[number] + np.cumsum(is_long)
        self.n_long[number] += int(is_long.sum())
        times_too_long = np.maximum(-(-lengths // longest), 1)
        is_kept = ranks % times_too_long == 0
        is_left_out = is_long & ~is_kept

        # Nobody is alike, or nobody but the anchor itself.
        has_others = np.isfinite(limits) & (lengths > 1)
        has_list = has_others & ~is_left_out
        return np.where(has_list, limits, np.inf)

    def found(self) -> tuple[Lists, list[Any]]:
        """Return the lists of all anchors, and by size who is in which of them.

        That is, if anchor i is in the list of j, (n_anchors, n_anchors).
        """
        limits = np.concatenate(self.limits, axis=1)
        members = []
        for blocks in self.members:
            by_list = scipy.sparse.vstack(blocks, "csr")
            members.append(by_list.T.tocsr())
        return Lists(limits, self.tie, self.of_mix), members


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
    longest = max(sizes)
    searches = [Search(sizes, n_anchors, tie, of_mix=False) for tie in ties]
    searches[0].of_mix = True

    def find(part: slice) -> list[Nearest]:
        """Return the nearest anchors of some anchors, by kernel."""
        found = []
        for similarities, tie in zip(compare(part), ties, strict=True):
            nearest = find_nearest(similarities, part, longest, tie)
            found.append(nearest)
        return found

    for found in in_threads(find, parts, like):
        for search, nearest in zip(searches, found, strict=True):
            search.add(nearest)

    lists = []
    members = []
    for search in searches:
        own, own_members = search.found()
        lists.append(own)
        members.append(own_members)
    by_mix = members[0]
    members[0] = _without_lonely(by_mix, lists[0], compare)
    return lists, members


def _without_lonely(
    members: list[Any],
    lists: Lists,
    compare: Compare,
) -> list[Any]:
    """Return memberships with those in no list added to that of the nearest anchor."""
    lonely = []
    for each in members:
        counts = np.diff(each.indptr)
        lonely.append(np.flatnonzero(counts == 0))
    anyone = np.unique(np.concatenate(lonely))
    if not len(anyone):
        return members

    similarities = compare(anyone)[0]
    joined = lists.memberships(similarities)
    completed = []
    for each, rows, new in zip(members, lonely, joined, strict=True):
        places = np.searchsorted(anyone, rows)
        shape = (each.shape[0], len(anyone))
        of_all = _matrix(rows, places, shape) @ new
        whole = each + of_all
        completed.append(scipy.sparse.csr_array(whole, dtype=bool))
    return completed


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
    counts = np.bincount(rows, minlength=n)
    ends = np.cumsum(counts)
    starts = ends - counts
    by_row = np.lexsort((-values, rows))
    falling = np.append(values[by_row], -np.inf)
    ranks = np.arange(count)
    places = starts[:, None] + ranks
    places = np.minimum(places, len(values))
    has_so_many = ranks < counts[:, None]
    ordered = np.where(has_so_many, falling[places], -np.inf)

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
