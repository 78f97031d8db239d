"""The nearest of known rows by scikit-learn, with all that are as near as the last of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from mkclust.linalg import is_foreign, is_sparse, namespace, ranges, to_host
from mkclust.linalg.sparse_rows import row_width, rows_from
from mkclust.samples.distances import middle, squared_distances, squared_norms
from mkclust.types import Array, Float

# Entries of a block of similarities on the host.
BLOCK_ENTRIES = 2**21
# The same on a device.
BLOCK_ENTRIES_ON_DEVICE = 2**25
# Similarities of new samples equal those of training samples up to so many roundings, and so do
# distances between the same rows in another order.
ROUNDINGS = 64
# Relative rounding of distances.
EPS = float(np.finfo(np.float64).eps)
# Candidates beyond the neighbors asked for, among which most ties are found.
SPARE = 10


def block_ranges(n_rows: int, n_columns: int, like: Any) -> Iterator[slice]:
    """Cut rows into blocks of as many entries as are worked on at a time."""
    entries = BLOCK_ENTRIES_ON_DEVICE if is_foreign(like) else BLOCK_ENTRIES
    return ranges(n_rows, max(1, entries // n_columns))


def nearest_lists(rows: Array, known: Array, wanted: int, farthest: float) -> tuple[Any, Float]:
    """Return the nearest known rows of each row, with ties, and the last squared distance.

    Distances of candidates are computed from differences of rows. If more rows than the candidates
    may be as near as the last neighbor, all known rows are compared.
    """
    n, m = rows.shape[0], known.shape[0]
    origin, near = middle(known), _candidates(rows, known, min(wanted + SPARE, m))
    z_rows, z_known = (to_host(rows_from(origin, each)) for each in (rows, known))
    raw, raw_known = to_host(rows), to_host(known)
    squared = _pair_distances(raw, raw_known, near)
    last = np.partition(squared, wanted - 1, axis=1)[:, wanted - 1]
    norms = np.sqrt(squared_norms(raw))

    def limits(last: Float, norms: Float) -> Float:
        """Return up to which squared distance rows are as near as the last neighbor."""
        roots = np.sqrt(last)
        return np.minimum((roots + ROUNDINGS * EPS * (norms + roots)) ** 2, farthest)

    limit = limits(last, norms)
    # Candidates were ranked by inner products, which are rounded relative to squared norms.
    rounding = ROUNDINGS * EPS * row_width(known) * squared_norms(z_rows)
    is_open = (squared.max(axis=1) <= limit + rounding) & (near.shape[1] < m)
    owners, places = np.nonzero((squared <= limit[:, None]) & ~is_open[:, None])
    found, some_open = [(owners, near[owners, places])], np.flatnonzero(is_open)
    for part in block_ranges(len(some_open), m, known):
        some = some_open[part]
        all_squared = squared_distances(z_rows[some], z_known)
        last[some] = np.partition(all_squared, wanted - 1, axis=1)[:, wanted - 1]
        owners, members = np.nonzero(all_squared <= limits(last[some], norms[some])[:, None])
        found.append((some[owners], members))
    owners, members = (np.concatenate(part) for part in zip(*found, strict=True))
    return scipy.sparse.csr_array((np.ones(len(owners), bool), (owners, members)), (n, m)), last


def _candidates(rows: Array, known: Array, count: int) -> np.ndarray:
    """Return the indices of the known rows that are the nearest but for rounding, (n, count)."""
    if count == known.shape[0]:
        return np.broadcast_to(np.arange(count), (rows.shape[0], count))
    origin = middle(known)
    rows, known = rows_from(origin, rows), rows_from(origin, known)
    if not is_foreign(known):
        search = NearestNeighbors(n_neighbors=count).fit(known)
        return search.kneighbors(rows, return_distance=False)
    xp, norms, near = namespace(known), squared_norms(known), []
    for part in block_ranges(rows.shape[0], known.shape[0], known):
        # The norms of the rows themselves do not change the order.
        squared = norms - 2.0 * (rows[part, :] @ known.T)
        if hasattr(xp, "topk"):  # torch: the standard only sorts
            nearest = xp.topk(squared, count, dim=1, largest=False, sorted=False).indices
        else:
            nearest = xp.argsort(squared, axis=1)[:, :count]
        near.append(to_host(nearest, np.int64))
    return np.concatenate(near)


def _pair_distances(rows: Any, known: Any, near: np.ndarray) -> Float:
    """Return the squared distances of rows to the known ones with given indices, (n, count)."""
    squared = np.empty(near.shape)
    for part in ranges(len(near), max(1, BLOCK_ENTRIES // (near.shape[1] * row_width(known)))):
        some = near[part]
        if is_sparse(rows):
            repeated = rows[np.repeat(np.arange(part.start, part.stop), some.shape[1])]
            squared[part] = squared_norms(known[some.ravel()] - repeated).reshape(some.shape)
        else:
            differences = known[some] - rows[part, None, :]
            squared[part] = np.einsum("ijk,ijk->ij", differences, differences)
    return squared
