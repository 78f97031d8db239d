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
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.linalg import is_on_accelerator, ranges, to_host
from mkclust.linalg.sparse_rows import as_csr
from mkclust.samples.row_search import (
    BLOCK_ENTRIES,
    SPARE,
    TREE_COLUMNS,
    RowSearch,
    width,
)
from mkclust.types import Array, Float

# From so many rows on an index is worth its misses.
LARGEST_EXACT = 50_000
# Lists with ties are as long as these make them, as long as all lists together are no longer than
# those of so many rows may be at most; beyond that, up to so many times the length asked for.
LARGEST_WITH_ALL_TIES, LONGEST_TIMES = 5000, 16


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
        Finite numbers, float32 or float64, of NumPy or another library, which then proposes the
        candidates where the array lives. Sparse rows stay sparse.
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
    by_index = _takes_index(rows, n)
    host = _on_host(rows)
    copies = _find_copies(host)
    search = RowSearch(host[copies.first], rows, by_index, 0)
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
    new_rows, rows : array or SciPy CSR matrix
        As for `tied_nearest_rows`; new rows are sparse if the known ones are.
    n_neighbors : int
        How many, from 1 to n_rows. A known row that equals a new one is its neighbor.
    farthest : float, default=inf
        The largest squared distance of a neighbor.

    Returns
    -------
    NeighborLists
    """
    n = rows.shape[0]
    _check(n_neighbors, n, f"there are {n} known rows")
    by_index = _takes_index(rows, new_rows.shape[0])
    host = _on_host(rows)
    copies = _find_copies(host)
    search = RowSearch(host[copies.first], rows, by_index, 0)
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


def _takes_index(rows: Array, n_new: int) -> bool:
    """Return whether to search by an index: among many dense rows on the host, with faiss."""
    n_pairs = rows.shape[0] * n_new
    if n_pairs <= LARGEST_EXACT**2 or rows.shape[1] <= TREE_COLUMNS or scipy.sparse.issparse(rows):
        return False
    return importlib.util.find_spec("faiss") is not None and not is_on_accelerator(rows)


def _on_host(rows: Array) -> Any:
    """Return rows as a C-contiguous NumPy array or a canonical CSR array, in their type."""
    if scipy.sparse.issparse(rows):
        return as_csr(rows)
    return np.ascontiguousarray(to_host(rows, None))


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
    numbers = (groups.setdefault(digest, len(groups)) for digest in row_digests(host))
    group_of = np.fromiter(numbers, np.int64, host.shape[0])
    _, first, sizes = np.unique(group_of, return_index=True, return_counts=True)
    members = np.argsort(group_of, kind="stable")
    return _Copies(first, group_of, members, np.cumsum(sizes) - sizes, sizes)


def row_digests(host: Any) -> Iterator[bytes]:
    """Yield a digest of every row, the same for equal rows."""
    for block in ranges(host.shape[0], max(1, BLOCK_ENTRIES // width(host))):
        part = host[block]
        if scipy.sparse.issparse(part):
            columns = part.indices.astype(np.int64)  # whatever type they have in this matrix
            contents = (
                columns[start:stop].tobytes() + part.data[start:stop].tobytes()
                for start, stop in zip(part.indptr, part.indptr[1:], strict=False)
            )
        else:
            contents = (row.tobytes() for row in part + part.dtype.type(0))  # -0 becomes 0
        for content in contents:
            yield hashlib.blake2b(content, digest_size=16).digest()


def _tied(
    search: RowSearch, copies: _Copies, new: Any, wanted: int, farthest: float, longest: int
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
