"""The search that proposes the nearest of known rows, computes their distances and proves them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.neighbors import NearestNeighbors

from mkclust.linalg import is_foreign, namespace, ranges, to_device, to_host
from mkclust.linalg.sparse_rows import dense_rows, longest_row
from mkclust.samples.distances import middle, squared_norms
from mkclust.types import Array, Float

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


class RowSearch:
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
        self._middle = None if issparse(known) else middle(to_host(known))
        self._centered = self._center(known)
        # Sparse rows are multiplied with rows again: columns of them would be turned every time.
        self._transposed = self._centered.T.tocsr() if issparse(known) else self._centered.T
        self._norms = squared_norms(self._centered)

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
        for block in ranges(n, max(1, BLOCK_ENTRIES // (count * width(rows)))):
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
        norms = np.sqrt(squared_norms(rows.astype(np.float64)))
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
                        for block in ranges(len(near), max(1, BLOCK_ENTRIES // width(rows)))
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
        if issparse(self._known):
            return self._nearest_sparse(centered, count)
        return self._nearest_on_host(centered, count)

    def _nearest_sparse(self, centered: Any, count: int) -> np.ndarray:
        """Return the nearest of sparse rows, by products of some rows at a time."""
        near = np.empty((centered.shape[0], count), np.int64)
        for some, squared in self._products(centered, np.arange(len(near))):
            near[some] = np.argpartition(squared, count - 1, axis=1)[:, :count]
        return near

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
        share = ROUNDINGS * np.finfo(np.float64).eps * (longest_row(centered) + 8)
        return share * (10 * squared_norms(centered) + squared)

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
            squared = dense_rows(part @ self._transposed)
            squared *= -2
            squared += self._norms + squared_norms(part)[:, None]
            yield rows[block], squared


def _first(near: np.ndarray, squared: Float, r: int) -> tuple[np.ndarray, Float]:
    """Return the first r candidates of every row and their distances, ties by number."""
    order = np.lexsort((near, squared), axis=1)[:, :r]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(squared, order, axis=1)


def width(rows: Any) -> int:
    """Return how many entries a row takes in memory, on average."""
    entries = rows.nnz if issparse(rows) else rows.size
    return max(1, entries // max(1, rows.shape[0]))


def _pair_distances(rows: Any, known: Any, near: np.ndarray) -> Float:
    """Return the squared distances of rows to the known ones that `near` numbers, (n, count)."""
    n, count = near.shape
    if issparse(rows):
        repeated = rows[np.repeat(np.arange(n), count)].astype(np.float64)
        differences = known[near.ravel()].astype(np.float64) - repeated
        return squared_norms(differences).reshape(n, count)
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
