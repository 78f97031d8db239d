"""Shared neighborhoods: two samples are as similar as the share of neighborhoods that hold both.

The neighborhood N(i) of a sample consists of itself and the samples most similar to it by some
kernel: as many as are asked for, and all others that are as similar as the last of them. Two
samples a and b have the similarity (number of i with a and b in N(i)) / sqrt(c_a c_b), c_a being
the number of i with a in N(i): positive semidefinite for every kernel, with a unit diagonal, and
the product of a sparse factor with its transpose.

Similarities are compared as by a kernel of unit diagonal. For Gaussian kernels the most similar
samples are the nearest, for inner products those with the largest cosines: scikit-learn finds both
without computing kernels. A new sample joins the neighborhoods of those to which it is as similar
as their last neighbor, and has one of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from mkclust.data.distances import middle, safe_norms, squared_distances, squared_norms
from mkclust.linalg import (
    FactoredMatrix,
    astype,
    is_foreign,
    is_sparse,
    namespace,
    ranges,
    rounding_of,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import dense_rows, over_rows, rows_from
from mkclust.parameters import Choice, Number
from mkclust.types import Array, Float

# How many neighbors "auto" takes: with 10 to 50, clusters of the data sets that were tried hardly
# differ.
AUTO_NEIGHBORS = 20
# For few samples it takes this share of them, or neighborhoods would be larger than clusters.
AUTO_SHARE = 1 / 3
# Dissimilarities are equal up to so many roundings: they come from sums in another order.
ROUNDINGS = 64
# Relative rounding of distances.
EPS = float(np.finfo(np.float64).eps)
# Rows of unit length at a larger squared distance have a cosine of zero, up to rounding.
FARTHEST = 2 * (1 - ROUNDINGS * EPS)
# Candidates beyond the neighbors asked for, among which most ties are found.
SPARE = 10
# Neighborhoods hold all ties if all of them together are no larger than those of so many samples
# may be at most.
LARGEST_WITH_ALL_TIES = 5000
# Beyond that, they hold on average at most so many times the neighbors asked for.
LONGEST_TIMES = 16
# Entries of a block of similarities on the host.
BLOCK_ENTRIES = 2**21
# The same on a device.
BLOCK_ENTRIES_ON_DEVICE = 2**25

# Dissimilarities of some samples to all, block after block, and the same less their rounding.
Blocks = Iterable[tuple[Array, Array]]


@dataclass(frozen=True)
class NeighborCount:
    """None, "auto", a number of neighbors, or a share of the samples."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        if isinstance(value, Integral):
            return Number(2).holds(value)
        share = Number(0, 1, open_low=True, open_high=True)
        return Choice((None, "auto")).holds(value) or share.holds(value)

    def advice(self) -> str:
        """Return what to pass, in words."""
        return (
            "pass None, 'auto', an integer of at least 2, or a share of the samples, a number "
            "between 0 and 1 (0 and 1 excluded)"
        )


def count_neighbors(neighbors: Any, n_samples: int) -> int:
    """Return how many neighbors every sample is to have, or say why it cannot have so many."""
    if neighbors == "auto":
        count = max(2, min(AUTO_NEIGHBORS, int(AUTO_SHARE * n_samples)))
    elif isinstance(neighbors, Integral):
        count = int(neighbors)
    else:
        count = max(2, round(float(neighbors) * n_samples))
    if count > n_samples - 1:
        asked = f"neighbors={neighbors!r}"
        asked += "" if isinstance(neighbors, Integral) else f", which is {count} neighbors"
        advice = f"pass at most {n_samples - 1}" if n_samples > 2 else "pass at least three samples"
        raise ValueError(f"{asked}, and each of {n_samples} samples has {n_samples - 1}: {advice}")
    return count


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The neighborhoods of all samples by one kernel."""

    members: Any = field(repr=False)  # sparse array of bool: row a, column i if a is in N(i)
    # Of every sample to its last neighbor, infinite if it has fewer: others up to it are neighbors.
    last_dissimilarity: Float = field(repr=False)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.members.shape[0]

    @property
    def _memberships(self) -> Any:
        """The sparse factor A of the kernel: memberships, rows of unit length."""
        counts = np.diff(self.members.indptr)
        return scipy.sparse.csr_array(scipy.sparse.diags_array(counts**-0.5) @ self.members)

    def kernel(self) -> Any:
        """Return the similarities of all samples, (n_samples, n_samples)."""
        return FactoredMatrix.symmetric(self._memberships)

    def cross(self, joined: Any, own: Any, samples: np.ndarray) -> Any:
        """Return the similarities of new samples to the training samples, (n_new, n_samples).

        Sparse arrays say whose neighborhoods they `joined`, and who is in their `own`; `samples`
        says which training samples they are, -1 for none: those keep their similarities.
        """
        factor, is_new = self._memberships, samples < 0
        counts = np.asarray(joined.sum(axis=1, dtype=np.float64)).reshape(-1) + 1
        scale = scipy.sparse.diags_array(is_new / np.sqrt(counts))
        known = _choice(samples, self.n_samples) @ factor
        left = scipy.sparse.hstack([scale @ joined + known, scale @ own], "csr")
        shares = scipy.sparse.diags_array(np.diff(self.members.indptr) ** -0.5)
        return FactoredMatrix(left, scipy.sparse.vstack([factor.T, shares], "csr"))

    def isolated(self) -> np.ndarray:
        """Return which samples are in no neighborhood but their own, and alone in that."""
        in_lists = np.bincount(self.members.indices, minlength=self.n_samples)
        return (np.diff(self.members.indptr) == 1) & (in_lists == 1)


def _choice(samples: np.ndarray, n_samples: int) -> Any:
    """Return the sparse matrix that selects rows of samples by index, zero rows for -1."""
    known = np.flatnonzero(samples >= 0)
    places = (np.ones(len(known)), (known, samples[known]))
    return scipy.sparse.csr_array(places, (len(samples), n_samples))


def count_components(
    neighborhoods: Sequence[tuple[Neighborhoods, np.ndarray]], n_samples: int
) -> int:
    """Return into how many groups samples fall that no neighborhood of any kernel connects.

    The neighborhoods by each kernel come with the indices of the samples that it has.
    """
    every = {id(each): (each.members, samples) for each, samples in neighborhoods}.values()
    edges = [[samples[ends] for ends in members.nonzero()] for members, samples in every]
    rows, columns = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    shape = (n_samples, n_samples)
    graph = scipy.sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape)
    return int(connected_components(graph, directed=False)[0])


def _neighborhoods(others: Any, last: Float, size: int) -> Neighborhoods:
    """Return the neighborhoods of samples with the others in row i of a sparse array.

    Of those that ties make too long some are left out as wholes, at regular intervals, so that
    equal samples stay in the same neighborhoods.
    """
    n, lengths = others.shape[1], np.diff(others.indptr)
    longest = max(LONGEST_TIMES * (size + 1), LARGEST_WITH_ALL_TIES**2 // max(n, 1))
    times, ranks = -(-lengths // longest), np.cumsum(lengths > longest)
    is_kept = (lengths <= longest) | (ranks % np.maximum(times, 1) == 0)
    kept = scipy.sparse.diags_array(is_kept.astype(np.float64)) @ others
    lists = scipy.sparse.csr_array(kept + scipy.sparse.eye_array(n), dtype=bool)
    return Neighborhoods(lists.T.tocsr(), np.where(is_kept, last, -np.inf))


def _join(last: Float, size: int, blocks: Blocks) -> tuple[Any, Any]:
    """Return whose neighborhoods new samples join, and who is in their own."""
    nothing = scipy.sparse.csr_array((0, len(last)), dtype=bool)
    joined, own = [nothing], [nothing]
    for dissimilarities, less_rounding in blocks:
        own.append(_within(less_rounding, _last(dissimilarities, size)))
        joined.append(_within(to_host(less_rounding), last))
    return scipy.sparse.vstack(joined, "csr"), scipy.sparse.vstack(own, "csr")


def _last(dissimilarities: Array, size: int) -> Array:
    """Return the dissimilarity of every sample to the last of so many neighbors, as a column."""
    if is_foreign(dissimilarities):
        return namespace(dissimilarities).sort(dissimilarities, axis=1)[:, size - 1 : size]
    return np.partition(dissimilarities, size - 1, axis=1)[:, size - 1 : size]


def _within(less_rounding: Array, last: Array) -> Any:
    """Return which samples are as near as the last neighbor, and not infinitely far."""
    near = (less_rounding <= last) & namespace(less_rounding).isfinite(less_rounding)
    return scipy.sparse.csr_array(to_host(near, bool))


def _block_ranges(n_rows: int, n_columns: int, like: Any) -> Iterator[slice]:
    """Cut rows into blocks of as many entries as are worked on at a time."""
    entries = BLOCK_ENTRIES_ON_DEVICE if is_foreign(like) else BLOCK_ENTRIES
    return ranges(n_rows, max(1, entries // max(1, n_columns)))


# By similarities ------------------------------------------------------------------------------


class SimilarityLists:
    """Neighborhoods of a size by a kernel whose rows come in blocks, each read once.

    Similarities are divided by lengths, the roots of the self-similarities, if these are given.
    """

    def __init__(self, size: int, lengths: Float | None):
        self.size, self._lengths = size, lengths
        self._lists: list[Any] = []
        self._last: list[Float] = []

    def add(self, rows: Any) -> None:
        """Read some more rows of the kernel, in their order."""
        start = sum(map(len, self._last))
        lengths = None if self._lengths is None else self._lengths[start:]
        for block in _by_similarity([rows], lengths, self._lengths):
            xp, (n_rows, n) = namespace(block[0]), block[0].shape
            samples = to_device(np.arange(n), block[0])
            is_own = samples[start : start + n_rows, None] == samples
            others, less_rounding = (xp.where(is_own, float("inf"), each) for each in block)
            last = _last(others, self.size)
            self._lists.append(_within(less_rounding, last))
            self._last.append(to_host(last)[:, 0])
            start += n_rows

    def result(self) -> Neighborhoods:
        """Return the neighborhoods of all rows that were read."""
        others = scipy.sparse.vstack(self._lists, "csr")
        return _neighborhoods(others, np.concatenate(self._last), self.size)


def join_by_similarity(
    neighborhoods: Neighborhoods,
    size: int,
    blocks: Iterable[Any],
    row_lengths: Float | None = None,
    lengths: Float | None = None,
) -> tuple[Any, Any]:
    """Return whose neighborhoods new samples join, and who is in their own, (n_new, n) of bool.

    Their similarities to the training samples come in blocks of rows. They are divided by lengths,
    the roots of the self-similarities of new and of training samples, if these are given.
    """
    last = neighborhoods.last_dissimilarity
    return _join(last, size, _by_similarity(blocks, row_lengths, lengths))


def lengths_of(diagonal: Float) -> Float:
    """Return the roots of self-similarities; infinite if there is none: similar to nothing."""
    return np.sqrt(np.where(diagonal > 0, diagonal, np.inf))


def _by_similarity(
    blocks: Iterable[Any], row_lengths: Float | None, lengths: Float | None
) -> Blocks:
    """Yield dissimilarities that fall with similarities, infinite for those not above zero."""
    start = 0
    for rows in blocks:
        for part in _block_ranges(rows.shape[0], rows.shape[1], rows):
            block = select(rows, part)
            block = astype(block.toarray() if is_sparse(block) else block, "float64")
            if lengths is not None and row_lengths is not None:
                some = row_lengths[start : start + block.shape[0]]
                block = block / to_device(some, block)[:, None] / to_device(lengths, block)
            falling = namespace(block).where(block > 0, -block, float("inf"))
            yield falling, falling * (1 + ROUNDINGS * rounding_of(rows))
            start += block.shape[0]


# By distances of rows -------------------------------------------------------------------------


def nearest_neighborhoods(rows: Array, size: int, *, cosine: bool = False) -> Neighborhoods:
    """Return the neighborhoods of the nearest rows: those of every Gaussian kernel.

    By cosines, those of the nearest rows of unit length with a cosine above zero; rows of zeros
    have no neighbors.
    """
    n = rows.shape[0]
    rows, used, farthest = _compared(rows, cosine)
    last, lists = np.full(n, np.inf), scipy.sparse.csr_array((n, n), dtype=bool)
    if (count := min(size, len(used) - 1)) > 0:
        near, found = _nearest_lists(select(rows, used), count + 1, farthest)
        if count == size:
            last[used] = found
        lists = _spread(near, used, used, (n, n))
    return _neighborhoods(lists, last, size)


def join_nearest(
    neighborhoods: Neighborhoods, size: int, new_rows: Array, rows: Array, *, cosine: bool = False
) -> tuple[Any, Any]:
    """Return whose neighborhoods new rows join, and who is in their own, by distance."""
    shape = new_rows.shape[0], rows.shape[0]
    (rows, used, farthest), (new_rows, new_used, _) = (
        _compared(to_host(each), cosine) for each in (rows, new_rows)
    )
    if not len(used):
        return (scipy.sparse.csr_array(shape, dtype=bool),) * 2
    known, new = select(rows, used), select(new_rows, new_used)
    blocks = _by_distance(new, known, middle(known), farthest)
    last = neighborhoods.last_dissimilarity[used]
    joined, own = _join(last, min(size, len(used)), blocks)
    return _spread(joined, new_used, used, shape), _spread(own, new_used, used, shape)


def _by_distance(rows: Array, known: Array, origin: Array, farthest: float) -> Blocks:
    """Yield squared distances, infinite for those that are too large."""
    rows, known = rows_from(origin, rows), rows_from(origin, known)
    norms = squared_norms(known)
    for part in _block_ranges(rows.shape[0], known.shape[0], known):
        some = select(rows, part)
        both = squared_norms(some)[:, None] + norms
        yield _less_rounding(squared_distances(some, known), both, origin, farthest)


def _less_rounding(squared: Float, norms: Float, origin: Array, farthest: float) -> Any:
    """Return squared distances, and the same less their rounding; infinite if too large.

    They are rounded like the norms from the origin, and the entries of rows like the origin.
    """
    offset = float(np.linalg.norm(to_host(origin)))
    less_rounding = squared - ROUNDINGS * EPS * (norms + np.sqrt(squared) * offset)
    squared[squared > farthest] = np.inf
    return squared, np.where(squared < np.inf, less_rounding, np.inf)


def _compared(rows: Array, cosine: bool) -> tuple[Array, np.ndarray, float]:
    """Return rows as they are compared, the indices of those that are, and the largest distance."""
    if not cosine:
        return rows, np.arange(rows.shape[0]), np.inf
    unit = over_rows(astype(rows, "float64"), safe_norms(rows))
    return unit, np.flatnonzero(to_host(squared_norms(unit)) > 0), FARTHEST


def _spread(lists: Any, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return lists of some rows and columns as those of all, with none for the others."""
    lists = lists.tocoo()
    places = (lists.data, (rows[lists.coords[0]], columns[lists.coords[1]]))
    return scipy.sparse.csr_array(places, shape)


def _nearest_lists(rows: Array, size: int, farthest: float) -> tuple[Any, Float]:
    """Return the nearest rows of each row, itself and ties included, and the last squared distance.

    If more rows than the candidates may be as near as the last neighbor, all rows are compared.
    """
    n, origin = rows.shape[0], middle(rows)
    centered = rows_from(origin, rows)
    squared, near = _candidates(centered, min(size + SPARE, n))
    norms = to_host(squared_norms(centered))
    both = norms[:, None] + norms[near]
    squared, less_rounding = _less_rounding(squared, both, origin, farthest)
    last = _last(squared, size)
    is_near = (less_rounding <= last) & np.isfinite(squared)
    is_open = is_near.all(axis=1) & (near.shape[1] < n)
    owners, places = np.nonzero(is_near & ~is_open[:, None])
    found, start, is_crowded = [(owners, near[owners, places])], 0, np.flatnonzero(is_open)
    rows, origin = to_host(rows), to_host(origin)
    for squared, less_rounding in _by_distance(rows[is_crowded], rows, origin, farthest):
        some = is_crowded[start : start + len(squared)]
        last[some] = _last(squared, size)
        owners, members = _within(less_rounding, last[some]).nonzero()
        found.append((some[owners], members))
        start += len(squared)
    owners, members = (np.concatenate(part) for part in zip(*found, strict=True))
    lists = scipy.sparse.csr_array((np.ones(len(owners), bool), (owners, members)), (n, n))
    return lists, last[:, 0]


def _candidates(rows: Array, count: int) -> tuple[Float, np.ndarray]:
    """Return the squared distances and indices of the rows that are the nearest to each row."""
    if not is_foreign(rows):
        distances, near = NearestNeighbors(n_neighbors=count).fit(rows).kneighbors(rows)
        return distances**2, near
    xp, found = namespace(rows), []
    for part in _block_ranges(rows.shape[0], rows.shape[0], rows):
        squared = squared_distances(rows[part, :], rows)
        if hasattr(xp, "topk"):  # torch: the standard only sorts
            nearest = xp.topk(squared, count, dim=1, largest=False, sorted=False).indices
        else:
            nearest = xp.argsort(squared, axis=1)[:, :count]
        squared, nearest = to_host(squared), to_host(nearest, np.int64)
        found.append((np.take_along_axis(squared, nearest, axis=1), nearest))
    distances, near = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return distances, near


# By links of a graph that a view consists of --------------------------------------------------


def linked_neighborhoods(view: Array) -> Neighborhoods:
    """Return the neighborhoods of samples whose rows are their links to all samples."""
    n, links = view.shape[0], scipy.sparse.csr_array(to_host(view) > 0)
    lists = links + scipy.sparse.eye_array(n, dtype=bool)
    return Neighborhoods(lists.T.tocsr(), np.zeros(n))


def find_training_samples(
    new_views: Mapping[str, Array], training_views: Mapping[str, Array]
) -> np.ndarray:
    """Return which training samples new ones are, having the same rows in all views; else -1."""
    indices: dict[int, int] = {}
    for index, key in enumerate(_hashes(list(training_views.values()))):
        indices.setdefault(key, index)
    keys = _hashes([new_views[name] for name in training_views])
    return np.fromiter((indices.get(key, -1) for key in keys), np.int64)


def _hashes(views: Sequence[Array]) -> Iterator[int]:
    """Yield a hash of every sample's rows, the same for equal numbers."""
    n_columns = sum(view.shape[1] for view in views)
    for part in _block_ranges(views[0].shape[0], n_columns, None):
        rows = np.hstack([to_host(dense_rows(select(view, part))) for view in views])
        yield from (hash(row.tobytes()) for row in rows + 0.0)  # -0 becomes 0
