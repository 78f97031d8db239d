"""The nearest rows of every row: exactly, or by an index that may miss a few.

Either way a search only proposes candidates, and their distances are computed from differences in
float64 and sorted here. An exact search also proves that no other row is nearer, and looks at all
rows where it cannot, so that libraries, threads and devices do not change what is returned.
"""

import hashlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from mkclust.linalg import is_foreign, is_on_accelerator, namespace, ranges, to_device, to_host
from mkclust.parameters import Choice, Count, check_parameter
from mkclust.samples.distances import middle, squared_norms
from mkclust.types import Array, Float

# From so many rows on an index is worth its misses, unless the caller says otherwise.
LARGEST_EXACT = 50_000
# Candidates beyond those wanted: what proves that no other row is nearer, or refines an index.
SPARE = 10
# A k-d tree beats products of blocks up to so many columns.
TREE_COLUMNS = 4
# Entries of a block of differences, or of distances, on the host and on a device.
BLOCK_ENTRIES = 2**21
DEVICE_ENTRIES = 2**24
# An index has as many cells as the root of the number of rows, placed by some rounds of k-means.
CELL_ROUNDS = 10
# It searches so many cells around a row, and twice as many as long as it misses more neighbors of
# rows that are tried out; beyond a share of all cells, products of blocks are faster.
FEWEST_CELLS = 8
RECALL = 0.97
TRIED_ROWS = 200
MOST_CELLS_SHARE = 0.2
# Squared distances by inner products are wrong by at most this many roundings for every column,
# relative to ten times the squared norm of a row plus its squared distance: a row of more than
# three times the norm is so far away that its distance is right relative to itself.
ROUNDINGS = 8
# Distances that differ by so many roundings of a row's norm are equal: shifted, scaled or listed in
# another order, the same rows have the same neighbors.
TIE_ROUNDINGS = 64
# Lists with ties are as long as these make them, as long as all lists together are no longer than
# those of so many rows may be at most; beyond that, up to so many times the length asked for.
LARGEST_WITH_ALL_TIES, LONGEST_TIMES = 5000, 16
INSTALL = (
    "approximate=True searches with faiss, which is not installed: "
    'pip install "mkclust[neighbors]", or pass approximate=False'
)


@dataclass(frozen=True)
class Neighbors:
    """The nearest rows of every row.

    Attributes
    ----------
    indices : ndarray of shape (n_rows, n_neighbors), int64
        Numbers of the nearest rows, nearest first; of equal distances the lower number first.
    squared_distances : ndarray of shape (n_rows, n_neighbors), float64
        Their squared Euclidean distances.
    """

    indices: np.ndarray
    squared_distances: Float


def nearest_rows(
    rows: Array,
    n_neighbors: int,
    *,
    approximate: bool | Literal["auto"] = "auto",
    random_state: int = 0,
    largest_exact: int = LARGEST_EXACT,
) -> Neighbors:
    """Return the nearest other rows of every row.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features), or SciPy CSR matrix
        Finite numbers, float32 or float64, of NumPy or another library, which then proposes the
        candidates where the array lives. Sparse rows stay sparse.
    n_neighbors : int
        How many, from 1 to n_rows - 1. A row is not its own neighbor; its copies are.
    approximate : {"auto", True, False}, default="auto"
        Whether an index of faiss may miss some, about 3 % at most by rows that are tried out; data
        that no index serves are searched exactly. "auto" says so for dense rows on the host of more
        than 4 columns that are more than ``largest_exact``, where faiss is installed.
    random_state : int, default=0
        Seed of the index; an exact search has no use for it.
    largest_exact : int, default=50,000
        The most rows that "auto" searches exactly.

    Returns
    -------
    Neighbors

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.samples.nearest import nearest_rows
    >>> nearest_rows(np.array([[0.0], [1.0], [3.0]]), 1).indices.ravel()
    array([1, 0, 1])
    """
    n = rows.shape[0]
    _check(n_neighbors, n - 1, f"each of {n} rows has {n - 1} others")
    by_index = _takes_index(rows, n, n, approximate, largest_exact)
    host = _on_host(rows)
    copies = _find_copies(host)
    search = _Search(host[copies.first], rows, by_index, random_state)
    nearest = search.nearest(None, min(n_neighbors, len(copies.first) - 1))
    if len(copies.first) == n:
        return nearest
    # Copies of a row share a list, which starts with themselves; each leaves itself out.
    own = np.arange(len(copies.first))[:, None]
    groups = Neighbors(
        np.hstack([own, nearest.indices]),
        np.hstack([np.zeros(own.shape), nearest.squared_distances]),
    )
    lists = _expand(groups, copies, n_neighbors + 1)
    indices = lists.indices[copies.group_of]
    is_own = indices == np.arange(n)[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    distances = lists.squared_distances[copies.group_of]
    shape = (n, n_neighbors)
    return Neighbors(indices[~is_own].reshape(shape), distances[~is_own].reshape(shape))


def nearest_of_new(
    new_rows: Array,
    rows: Array,
    n_neighbors: int,
    *,
    approximate: bool | Literal["auto"] = "auto",
    random_state: int = 0,
    largest_exact: int = LARGEST_EXACT,
) -> Neighbors:
    """Return the nearest among known rows of every new row.

    Parameters
    ----------
    new_rows : array of shape (n_new, n_features), or SciPy CSR matrix
        Sparse where the known rows are, else an array of any library.
    rows : array of shape (n_rows, n_features), or SciPy CSR matrix
        The known rows, as for `nearest_rows`.
    n_neighbors : int
        How many, from 1 to n_rows. A known row that equals a new one is its neighbor.
    approximate, random_state, largest_exact
        As for `nearest_rows`; "auto" takes an index where there are more pairs of a new row and a
        known one than ``largest_exact`` rows have among themselves.

    Returns
    -------
    Neighbors
        One row for every new row.
    """
    n = rows.shape[0]
    _check(n_neighbors, n, f"there are {n} known rows")
    by_index = _takes_index(rows, n, new_rows.shape[0], approximate, largest_exact)
    host = _on_host(rows)
    copies = _find_copies(host)
    search = _Search(host[copies.first], rows, by_index, random_state)
    nearest = search.nearest(_on_host(new_rows), min(n_neighbors, len(copies.first)))
    return nearest if len(copies.first) == n else _expand(nearest, copies, n_neighbors)


@dataclass(frozen=True)
class NeighborLists:
    """The nearest rows of every row, with all that are as near as the last.

    Attributes
    ----------
    lists : CSR array of bool of shape (n_rows, n_known)
        Entry (i, j) is there where row j is in the list of row i.
    last : ndarray of shape (n_rows,), float64
        Squared distance of the last neighbor that was asked for; -inf without a list.
    """

    lists: Any
    last: Float


def tied_nearest_rows(
    rows: Array, n_neighbors: int, *, farthest: float = np.inf, longest: int | None = None
) -> NeighborLists:
    """Return the nearest other rows of every row, and all that are as near as the last of them.

    Equal rows have equal lists, and the order of rows changes none.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features), or SciPy CSR matrix
        As for `nearest_rows`.
    n_neighbors : int
        How many, from 1 to n_rows - 1; ties come in addition. Every list also holds its own row.
    farthest : float, default=inf
        The largest squared distance of a neighbor; lists may be shorter for it.
    longest : int, optional
        The most rows of a list, on average over equal rows; by default what `longest_list` says.
        Groups of equal rows that make a list longer are left out of it as wholes. Where a row has
        more equals than that, only the first of them have lists, so that equal rows are in the
        same lists all the same.

    Returns
    -------
    NeighborLists
    """
    n = rows.shape[0]
    _check(n_neighbors, n - 1, f"each of {n} rows has {n - 1} others")
    by_index = _takes_index(rows, n, n, "auto", LARGEST_EXACT)
    host = _on_host(rows)
    copies = _find_copies(host)
    search = _Search(host[copies.first], rows, by_index, 0)
    longest = longest_list(n_neighbors, n) if longest is None else longest
    of_groups = _tied(search, copies, None, n_neighbors + 1, farthest, longest)
    lengths = np.diff(of_groups.lists.indptr)
    kept = np.clip(copies.sizes * longest // lengths, 1, copies.sizes)
    ranks = np.empty(n, np.int64)
    ranks[copies.members] = np.arange(n) - np.repeat(copies.starts, copies.sizes)
    has_list = ranks < kept[copies.group_of]
    places = (np.ones(n, bool)[has_list], (np.flatnonzero(has_list), copies.group_of[has_list]))
    choice = scipy.sparse.csr_array(places, (n, len(kept)))
    last = np.where(has_list, of_groups.last[copies.group_of], -np.inf)
    return NeighborLists(choice @ of_groups.lists, last)


def tied_nearest_of_new(
    new_rows: Array, rows: Array, n_neighbors: int, *, farthest: float = np.inf
) -> NeighborLists:
    """Return the nearest known rows of every new row, and all that are as near as the last.

    Parameters
    ----------
    new_rows, rows, n_neighbors
        As for `nearest_of_new`.
    farthest : float, default=inf
        The largest squared distance of a neighbor.

    Returns
    -------
    NeighborLists
    """
    n = rows.shape[0]
    _check(n_neighbors, n, f"there are {n} known rows")
    by_index = _takes_index(rows, n, new_rows.shape[0], "auto", LARGEST_EXACT)
    host = _on_host(rows)
    copies = _find_copies(host)
    search = _Search(host[copies.first], rows, by_index, 0)
    longest = longest_list(n_neighbors, n)
    return _tied(search, copies, _on_host(new_rows), n_neighbors, farthest, longest)


def longest_list(n_neighbors: int, n: int) -> int:
    """Return how many rows a list with ties may have, of n that are known: all, if n is small."""
    return max(LONGEST_TIMES * (n_neighbors + 1), LARGEST_WITH_ALL_TIES**2 // max(n, 1))


def _check(n_neighbors: Any, most: int, reason: str) -> None:
    """Refuse more neighbors than there are rows."""
    is_integer = isinstance(n_neighbors, Integral) and not isinstance(n_neighbors, bool)
    if not is_integer or not 1 <= n_neighbors <= most:
        advice = f"pass an integer from 1 to {most}" if most > 0 else "pass more rows"
        raise ValueError(f"n_neighbors={n_neighbors!r}, and {reason}: {advice}")


def _takes_index(
    rows: Array, n: int, n_new: int, approximate: bool | str, largest_exact: int
) -> bool:
    """Return whether to search by an index, or say why that cannot be."""
    check_parameter("approximate", approximate, Choice(("auto", True, False)))
    check_parameter("largest_exact", largest_exact, Count())
    is_sparse, is_installed = scipy.sparse.issparse(rows), importlib.util.find_spec("faiss")
    if approximate == "auto":
        is_large = n * n_new > largest_exact**2 and rows.shape[1] > TREE_COLUMNS
        return bool(is_large and is_installed and not is_sparse and not is_on_accelerator(rows))
    if approximate and is_sparse:
        raise ValueError(
            "approximate=True, and the rows are sparse, for which there is no index: pass "
            "approximate=False, or fewer, dense columns, such as those of TruncatedSVD"
        )
    if approximate and not is_installed:
        raise ImportError(INSTALL)
    return bool(approximate)


def _on_host(rows: Array) -> Any:
    """Return rows as a C-contiguous NumPy array or a canonical CSR matrix, in their type."""
    if not scipy.sparse.issparse(rows):
        return np.ascontiguousarray(to_host(rows, None))
    rows = scipy.sparse.csr_matrix(rows, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


@dataclass(frozen=True)
class _Copies:
    """Groups of equal rows, numbered by their first members."""

    first: np.ndarray  # first member of every group
    group_of: np.ndarray  # group of every row
    members: np.ndarray  # rows in the order of their groups
    starts: np.ndarray  # where in that order a group begins
    sizes: np.ndarray


def _find_copies(host: Any) -> _Copies:
    """Return which rows are equal: they would tie with each other everywhere."""
    groups: dict[bytes, int] = {}
    numbers = (groups.setdefault(digest, len(groups)) for digest in _digests(host))
    group_of = np.fromiter(numbers, np.int64, host.shape[0])
    _, first, sizes = np.unique(group_of, return_index=True, return_counts=True)
    members = np.argsort(group_of, kind="stable")
    return _Copies(first, group_of, members, np.cumsum(sizes) - sizes, sizes)


def _digests(host: Any) -> Iterator[bytes]:
    """Yield a digest of every row, the same for equal rows."""
    for block in ranges(host.shape[0], max(1, BLOCK_ENTRIES // _width(host))):
        part = host[block]
        if scipy.sparse.issparse(part):
            contents = (
                part.indices[start:stop].tobytes() + part.data[start:stop].tobytes()
                for start, stop in zip(part.indptr, part.indptr[1:], strict=False)
            )
        else:
            contents = (row.tobytes() for row in part + part.dtype.type(0))  # -0 becomes 0
        for content in contents:
            yield hashlib.blake2b(content, digest_size=16).digest()


def _expand(groups: Neighbors, copies: _Copies, wanted: int) -> Neighbors:
    """Return the nearest rows where the nearest groups of equal rows are known."""
    n, width = groups.indices.shape
    indices, distances = np.empty((n, wanted), np.int64), np.empty((n, wanted))
    for block in ranges(n, max(1, BLOCK_ENTRIES // (width * wanted))):
        near = groups.indices[block].ravel()
        sizes = np.minimum(copies.sizes[near], wanted)
        begins = np.cumsum(sizes) - sizes
        offsets = np.arange(sizes.sum()) - np.repeat(begins, sizes)
        members = copies.members[np.repeat(copies.starts[near], sizes) + offsets]
        squared = np.repeat(groups.squared_distances[block].ravel(), sizes)
        owners = np.repeat(np.arange(len(near)) // width, sizes)
        order = np.lexsort((members, squared, owners))
        chosen = order[begins[::width, None] + np.arange(wanted)]
        indices[block], distances[block] = members[chosen], squared[chosen]
    return Neighbors(indices, distances)


def _tied(
    search: "_Search", copies: _Copies, new: Any, wanted: int, farthest: float, longest: int
) -> NeighborLists:
    """Return lists with ties of new rows, or, for None, of each group of equal rows.

    These hold the group itself, and so many rows in all as are wanted.
    """
    own, n_groups = new is None, len(copies.first)
    near = search.nearest(new, min(wanted + SPARE, n_groups - own))
    groups, squared, n_lists = near.indices, near.squared_distances, len(near.indices)
    if own:
        groups = np.hstack([np.arange(n_groups)[:, None], groups])
        squared = np.hstack([np.zeros((n_groups, 1)), squared])
    counts = np.cumsum(copies.sizes[groups], axis=1)
    last = squared[np.arange(n_lists), np.argmax(counts >= wanted, axis=1)]
    limits = np.minimum(search.limits(new, last), farthest)
    inside = squared <= limits[:, None]
    # Of these, rows that were not looked at may be as near.
    is_open = inside[:, -1] & (groups.shape[1] < n_groups)
    inside[is_open] = False
    owners, places = np.nonzero(inside)
    parts = [(owners, groups[owners, places])]
    for i, found in search.within(new, np.flatnonzero(is_open), limits, longest):
        parts.append((np.full(len(found), i), found))
    all_owners, all_groups = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(all_owners, kind="stable")
    lists = _expanded_lists(all_owners[order], all_groups[order], n_lists, copies, longest)
    return NeighborLists(lists, last)


def _expanded_lists(
    owners: np.ndarray, groups: np.ndarray, n_lists: int, copies: _Copies, longest: int
) -> Any:
    """Return lists of rows by lists of groups, nearest first, without those beyond the longest.

    The first group is always in.
    """
    sizes = copies.sizes[groups]
    before = np.cumsum(sizes) - sizes
    starts = np.searchsorted(owners, np.arange(n_lists))
    before -= np.append(before, 0)[starts][owners]
    sizes = np.where((before == 0) | (before + sizes <= longest), sizes, 0)
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = copies.members[np.repeat(copies.starts[groups], sizes) + offsets]
    places = (np.ones(len(members), bool), (np.repeat(owners, sizes), members))
    return scipy.sparse.csr_array(places, (n_lists, len(copies.group_of)))


class _Search:
    """Known rows, all of them different, and how the nearest of them are found.

    Parameters
    ----------
    known : ndarray or CSR matrix
        The known rows on the host.
    like : array
        What says by which library, and where, candidates are to be found.
    by_index : bool
        Whether they are found by an index.
    seed : int
        Seed of the index.
    """

    def __init__(self, known: Any, like: Array, by_index: bool, seed: int):
        self._known, self._like, self._by_index, self._seed = known, like, by_index, seed
        # Inner products lose the digits that all rows share; sparse rows have to stay sparse.
        is_sparse = scipy.sparse.issparse(known)
        self._middle = None if is_sparse else middle(to_host(known))
        self._centered = self._center(known)
        self._norms = _squared_norms(self._centered)

    def _center(self, rows: Any) -> Any:
        """Return rows about the middle of the known ones, in float64."""
        return rows.astype(np.float64) if self._middle is None else rows - self._middle

    def nearest(self, new_rows: Any, r: int) -> Neighbors:
        """Return the r nearest known rows of new ones, or, for None, of each known among others."""
        own = new_rows is None
        rows = self._known if own else new_rows
        centered = self._centered if own else self._center(rows)
        n, m = rows.shape[0], self._known.shape[0]
        count, farthest = min(r + own + SPARE, m), np.empty(n)
        indices, distances = np.empty((n, r), np.int64), np.empty((n, r))
        if r == 0 or n == 0:
            return Neighbors(indices, distances)
        by_index = self._propose_by_index(centered, count) if self._by_index else None
        candidates = self._propose(centered, count) if by_index is None else by_index
        for block in ranges(n, max(1, BLOCK_ENTRIES // (count * _width(rows)))):
            near = candidates[block]
            squared = _pair_distances(rows[block], self._known, near)
            farthest[block] = squared.max(axis=1)
            if own:
                squared[near == np.arange(block.start, block.stop)[:, None]] = np.inf
            indices[block], distances[block] = _first(near, squared, r)
        if count < m and by_index is None:
            doubts = distances[:, -1] >= farthest - 2 * self._tolerance(centered, farthest)
            for i, near in self._possible(centered, np.flatnonzero(doubts), r, own):
                squared = _pair_distances(rows[i : i + 1], self._known, near)
                indices[i], distances[i] = _first(near, squared, r)
        return Neighbors(indices, distances)

    def limits(self, new_rows: Any, last: Float) -> Float:
        """Return up to what squared distance rows are as near as the last neighbor of each."""
        rows, distances = self._known if new_rows is None else new_rows, np.sqrt(last)
        norms = np.sqrt(_squared_norms(rows.astype(np.float64)))
        rounding = TIE_ROUNDINGS * np.finfo(np.float64).eps
        return np.square(distances + rounding * (norms + distances))

    def within(
        self, new_rows: Any, some: np.ndarray, limits: Float, most: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the numbers of known rows within a squared distance of some rows, nearest first."""
        rows = self._known if new_rows is None else new_rows
        centered = self._centered if new_rows is None else self._center(rows)
        for numbers, squared in self._products(centered, some):
            part = centered[numbers]
            at_most = limits[numbers] + 2 * self._tolerance(part, limits[numbers])
            for i, distances, limit in zip(numbers, squared, at_most, strict=True):
                near = np.flatnonzero(distances <= limit)
                exact = np.concatenate(
                    [
                        _pair_distances(rows[i : i + 1], self._known, near[None, block])[0]
                        for block in ranges(len(near), max(1, BLOCK_ENTRIES // _width(rows)))
                    ]
                )
                order = np.lexsort((near, exact))
                yield i, near[order[exact[order] <= limits[i]]][:most]

    def _propose(self, centered: Any, count: int) -> np.ndarray:
        """Return the numbers of known rows that may be the nearest, (n, count)."""
        if count == self._known.shape[0]:
            return np.broadcast_to(np.arange(count), (centered.shape[0], count))
        if is_foreign(self._like):
            known = to_device(self._centered, self._like)
            return _nearest_on_device(to_device(centered, self._like), known, count)
        return self._nearest_on_host(centered, count)

    def _nearest_on_host(self, centered: Any, count: int) -> np.ndarray:
        """Return the nearest rows by scikit-learn."""
        is_low = self._middle is not None and centered.shape[1] <= TREE_COLUMNS
        algorithm = "kd_tree" if is_low else "brute"
        model = NearestNeighbors(n_neighbors=count, algorithm=algorithm).fit(self._centered)
        return model.kneighbors(centered, return_distance=False)

    def _propose_by_index(self, centered: Float, count: int) -> np.ndarray | None:
        """Return rows near each by an index of faiss, None where that is of no use.

        The index has cells, and searches those around a row.
        """
        import faiss

        m, d = self._centered.shape
        # Single precision is what the index knows; it holds numbers of any unit so.
        scale = max(np.abs(self._centered).max(), np.finfo(np.float64).tiny)
        known, rows = ((part / scale).astype(np.float32) for part in (self._centered, centered))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, round(m**0.5))
        index.cp.seed, index.cp.niter = self._seed % 2**31, CELL_ROUNDS
        index.cp.min_points_per_centroid = 1  # for it to be silent
        index.train(known)
        index.add(known)
        if not self._search_enough_cells(index, rows, centered, count):
            return None
        _, near = index.search(rows, count)
        # The cells around a row may hold fewer.
        short = np.flatnonzero(near[:, -1] < 0)
        if len(short):
            near[short] = self._nearest_on_host(centered[short], count)
        return near

    def _search_enough_cells(self, index: Any, rows: Any, centered: Float, count: int) -> bool:
        """Have an index search as many cells as it has to; return whether these are few enough."""
        rng = np.random.default_rng(self._seed)
        some = rng.choice(len(rows), min(len(rows), TRIED_ROWS), replace=False)
        truth = self._nearest_on_host(centered[some], count)
        index.nprobe = FEWEST_CELLS
        while index.nprobe <= MOST_CELLS_SHARE * index.nlist:
            _, near = index.search(rows[some], count)
            pairs = zip(truth, near, strict=True)
            if sum(len(np.intersect1d(*pair)) for pair in pairs) >= RECALL * truth.size:
                return True
            index.nprobe *= 2
        return False

    def _tolerance(self, centered: Any, squared: Float) -> Float:
        """Return how wrong squared distances by inner products may be, for rows and distances."""
        share = ROUNDINGS * np.finfo(np.float64).eps * (centered.shape[1] + 8)
        return share * (10 * _squared_norms(centered) + squared)

    def _possible(
        self, centered: Any, rows: np.ndarray, r: int, own: bool
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the numbers of all known rows that may be among the r nearest of some, (1, ...)."""
        for some, squared in self._products(centered, rows):
            part = centered[some]
            if own:
                squared[np.arange(len(some)), some] = np.inf
            last = np.partition(squared, r - 1, axis=1)[:, r - 1]
            most = last + 2 * self._tolerance(part, np.abs(last))
            for i, distances, limit in zip(some, squared, most, strict=True):
                yield i, np.flatnonzero(distances <= limit)[None]

    def _products(self, centered: Any, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Float]]:
        """Yield numbers of some rows with their squared distances, by products, to all known."""
        for block in ranges(len(rows), max(1, BLOCK_ENTRIES // self._centered.shape[0])):
            part = centered[rows[block]]
            products = part @ self._centered.T
            squared = products.toarray() if scipy.sparse.issparse(products) else products
            squared *= -2
            squared += self._norms + _squared_norms(part)[:, None]
            yield rows[block], squared


def _first(near: np.ndarray, squared: Float, r: int) -> tuple[np.ndarray, Float]:
    """Return the first r candidates of every row and their distances, ties by number."""
    order = np.lexsort((near, squared), axis=1)[:, :r]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(squared, order, axis=1)


def _width(rows: Any) -> int:
    """Return how many entries a row takes in memory, on average."""
    entries = rows.nnz if scipy.sparse.issparse(rows) else rows.size
    return max(1, entries // max(1, rows.shape[0]))


def _squared_norms(rows: Any) -> Float:
    """Return the squared norm of every row on the host, (n_rows,)."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return squared_norms(rows)


def _pair_distances(rows: Any, known: Any, near: np.ndarray) -> Float:
    """Return the squared distances of rows to the known ones that `near` numbers, (n, count)."""
    n, count = near.shape
    if scipy.sparse.issparse(rows):
        repeated = rows[np.repeat(np.arange(n), count)].astype(np.float64)
        differences = known[near.ravel()].astype(np.float64) - repeated
        return _squared_norms(differences).reshape(n, count)
    differences = known[near].astype(np.float64, copy=False) - rows[:, None, :]
    return np.einsum("ijk,ijk->ij", differences, differences)


def _nearest_on_device(rows: Array, known: Array, count: int) -> np.ndarray:
    """Return the numbers of the nearest known rows, found where the arrays live."""
    xp = namespace(known)
    norms, transposed = squared_norms(known), xp.matrix_transpose(known)
    near = np.empty((rows.shape[0], count), np.int64)
    for block in ranges(rows.shape[0], max(1, DEVICE_ENTRIES // known.shape[0])):
        # Without the norms of the rows themselves, which change no order.
        squared = norms - 2.0 * (rows[block, :] @ transposed)
        if hasattr(xp, "topk"):  # torch: the standard only sorts
            nearest = xp.topk(squared, count, dim=1, largest=False, sorted=False).indices
        else:
            nearest = xp.argsort(squared, axis=1)[:, :count]
        near[block] = to_host(nearest, np.int64)
    return near
