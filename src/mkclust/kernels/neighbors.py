r"""Shared neighborhoods: two samples are as similar as the share of neighborhoods that hold both.

The neighborhood N(i) of a sample consists of itself and the samples most similar to it by some
kernel: as many as are asked for, and all others that are as similar as the last of them. Two
samples a and b have the similarity (number of i with a and b in N(i)) / sqrt(c_a c_b), c_a being
the number of i with a in N(i): positive semidefinite for every kernel, with a unit diagonal, and
the product of a sparse factor with its transpose.

Similarities are compared as by a kernel of unit diagonal. For Gaussian kernels the most similar
samples are the nearest, for inner products those with the largest cosines: scikit-learn finds both
without computing kernels. A new sample joins the neighborhoods of those to which it is as similar
as their last neighbor, and has one of its own.

`Links` are the graph of neighbors instead. With :math:`W_{ab}` one if both are neighbors of each
other and one half if one is, and degrees :math:`d_a = \sum_b W_{ab}`, the kernel is
:math:`(I + D^{-1/2} W D^{-1/2}) / 2`. The eigenvalues of the normalized graph lie between -1 and 1,
so that the kernel is positive semidefinite; its leading eigenvectors are those of spectral
clustering.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from mkclust.kernels.nearest import EPS, ROUNDINGS, block_ranges, nearest_lists
from mkclust.linalg import (
    FactoredMatrix,
    astype,
    is_foreign,
    is_sparse,
    namespace,
    rounding_of,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import dense_rows, over_rows, rows_from
from mkclust.samples.distances import middle, safe_norms, squared_distances, squared_norms
from mkclust.types import Array, Float

# How many neighbors "auto" takes: with 10 to 50, clusters of the data sets that were tried hardly
# differ.
AUTO_NEIGHBORS = 20
# For few samples it takes this share of them, or neighborhoods would be larger than clusters.
AUTO_SHARE = 1 / 3
# Similarities of a training sample are equal up to so many: they are rounded alike.
TIE_ROUNDINGS = 8
# Rows of unit length at a larger squared distance have a cosine of zero, up to rounding.
FARTHEST = 2 * (1 - ROUNDINGS * EPS)
# Neighborhoods hold all ties if all of them together are no larger than those of so many samples
# may be at most.
LARGEST_WITH_ALL_TIES = 5000
# Beyond that, they hold on average at most so many times the neighbors asked for.
LONGEST_TIMES = 16


@dataclass(frozen=True)
class NeighborCount:
    """None, "auto", a number of neighbors, or a share of the samples."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of these."""
        if value is None or (isinstance(value, str) and value == "auto"):
            return True
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return False
        number = float(value)
        return number >= 2 if isinstance(value, Integral) else 0 < number < 1

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

    members: Any = field(repr=False)
    kth_similarity: Float = field(repr=False)

    @classmethod
    def of_lists(cls, lists: Any, kth_similarity: Float) -> Any:
        """Return the neighborhoods N(i) in row i of a sparse array."""
        return cls(scipy.sparse.csr_array(lists.T), kth_similarity)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.members.shape[0]

    @property
    def _memberships(self) -> Any:
        """The sparse factor A of the kernel: memberships, rows of unit length."""
        counts = np.diff(self.members.indptr)
        return scipy.sparse.csr_array(scipy.sparse.diags_array(counts**-0.5) @ self.members)

    def self_similarity(self) -> float:
        """Return the similarity of every sample with itself, new or not."""
        return 1.0

    def kernel(self) -> Any:
        """Return the similarities of all samples, (n_samples, n_samples)."""
        return FactoredMatrix.symmetric(self._memberships)

    def cross(self, joined: Any, own: Any, samples: np.ndarray) -> Any:
        """Return the similarities of new samples to the training samples.

        Parameters
        ----------
        joined : sparse array of bool of shape (n_new, n_samples)
            Whose neighborhoods they join.
        own : sparse array of bool of shape (n_new, n_samples)
            Who is in their own neighborhoods.
        samples : ndarray of int of shape (n_new,)
            Which training samples they are, -1 for none: those keep their similarities.

        Returns
        -------
        FactoredMatrix of shape (n_new, n_samples)
        """
        factor, choice, is_new = self._memberships, _choice(samples, self.n_samples), samples < 0
        counts = np.asarray(joined.sum(axis=1, dtype=np.float64)).reshape(-1) + 1
        scale = scipy.sparse.diags_array(is_new / np.sqrt(counts))
        left = scipy.sparse.hstack([scale @ joined + choice @ factor, scale @ own], "csr")
        shares = scipy.sparse.diags_array(np.diff(self.members.indptr) ** -0.5)
        return FactoredMatrix(left, scipy.sparse.vstack([factor.T, shares], "csr"))

    def isolated(self) -> np.ndarray:
        """Return which samples are in no neighborhood but their own, and alone in that."""
        in_lists = np.bincount(self.members.indices, minlength=self.n_samples)
        return (np.diff(self.members.indptr) == 1) & (in_lists == 1)


class Links(Neighborhoods):
    """The neighborhoods of all samples by one kernel, used as a graph of links."""

    @property
    def _links(self) -> Any:
        """The links of all samples, a sparse array of shape (n_samples, n_samples)."""
        links = (self.members.astype(np.float64) + self.members.T.astype(np.float64)) / 2
        links.setdiag(0)
        return scipy.sparse.csr_array(links)

    def self_similarity(self) -> float:
        """Return the similarity of every sample with itself, new or not."""
        return 0.5

    def kernel(self) -> Any:
        """Return the similarities of all samples, sparse, (n_samples, n_samples)."""
        roots, identity = _inverse_roots(self._links), scipy.sparse.eye_array(self.n_samples)
        return scipy.sparse.csr_array((identity + roots @ self._links @ roots) / 2)

    def cross(self, joined: Any, own: Any, samples: np.ndarray) -> Any:
        """Return the similarities of new samples to the training samples, as `Neighborhoods` does.

        A new sample is linked with those whose neighborhoods it joins and with those in its own.
        """
        links = (joined.astype(np.float64) + own.astype(np.float64)) / 2
        similarities = _inverse_roots(links) @ links @ _inverse_roots(self._links) / 2
        is_new = scipy.sparse.diags_array((samples < 0).astype(np.float64))
        known = _choice(samples, self.n_samples) @ self.kernel()
        return scipy.sparse.csr_array(is_new @ similarities + known)


def _inverse_roots(links: Any) -> Any:
    """Return the diagonal matrix of 1 / sqrt(degree), zero for rows without links."""
    degrees = np.asarray(links.sum(axis=1)).reshape(-1)
    roots = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
    return scipy.sparse.diags_array(roots)


def _choice(samples: np.ndarray, n_samples: int) -> Any:
    """Return the sparse matrix that selects rows of samples by index, zero rows for -1."""
    known = np.flatnonzero(samples >= 0)
    places = (np.ones(len(known)), (known, samples[known]))
    return scipy.sparse.csr_array(places, (len(samples), n_samples))


def count_components(
    neighborhoods: Sequence[tuple[Neighborhoods, np.ndarray]], n_samples: int
) -> int:
    """Return into how many groups samples fall that no neighborhood of any kernel connects.

    Parameters
    ----------
    neighborhoods : sequence of (Neighborhoods, ndarray of int)
        Those by each kernel, and the indices of the samples that it has.
    n_samples : int
        How many samples there are.
    """
    every = {id(each): (each.members, samples) for each, samples in neighborhoods}.values()
    edges = [[samples[ends] for ends in members.nonzero()] for members, samples in every]
    rows, columns = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    shape = (n_samples, n_samples)
    graph = scipy.sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape)
    return int(scipy.sparse.csgraph.connected_components(graph, directed=False)[0])


# By similarities ------------------------------------------------------------------------------


class SimilarityLists:
    """Neighborhoods by a kernel whose rows come in blocks, each read once.

    Parameters
    ----------
    size : int
        Number of neighbors.
    lengths : ndarray of shape (n_samples,) or None
        What similarities are divided by, the roots of the self-similarities; None leaves them.
    """

    def __init__(self, size: int, lengths: Float | None):
        self.size, self._lengths = size, lengths
        self._lists: list[Any] = []
        self._kth: list[Float] = []

    def add(self, rows: Any) -> None:
        """Read some more rows of the kernel, in their order."""
        for part in block_ranges(rows.shape[0], rows.shape[1], rows):
            start = sum(map(len, self._kth))
            own = np.arange(start, start + part.stop - part.start)
            row_lengths = None if self._lengths is None else self._lengths[own]
            similarities = _scaled(select(rows, part), row_lengths, self._lengths)
            columns = to_device(np.arange(similarities.shape[1]), similarities)
            is_own = to_device(own, similarities)[:, None] == columns
            others = namespace(similarities).where(is_own, -float("inf"), similarities)
            lists, kth = _most_similar(others, self.size, TIE_ROUNDINGS * rounding_of(rows))
            self._lists.append(lists)
            self._kth.append(kth)

    def result(self) -> Neighborhoods:
        """Return the neighborhoods of all rows that were read."""
        others = scipy.sparse.vstack(self._lists, "csr")
        lists, is_kept = _thinned(others, self.size)
        kth = np.where(is_kept, np.concatenate(self._kth), np.inf)
        return Neighborhoods.of_lists(lists + _identity(others.shape[0]), kth)


def join_by_similarity(
    neighborhoods: Neighborhoods,
    size: int,
    blocks: Iterable[Any],
    row_lengths: Float | None = None,
    lengths: Float | None = None,
) -> tuple[Any, Any]:
    """Return whose neighborhoods new samples join, and who is in their own, by similarities.

    Parameters
    ----------
    neighborhoods : Neighborhoods
        Those of the training samples.
    size : int
        Number of neighbors.
    blocks : iterable of array or sparse matrix of shape (n_rows, n_samples)
        Similarities of new samples to the training samples, block after block.
    row_lengths, lengths : ndarray or None
        Roots of the self-similarities of new and of training samples, if similarities are to be
        scaled.

    Returns
    -------
    joined, own : CSR array of bool of shape (n_new, n_samples)
    """
    nothing = scipy.sparse.csr_array((0, neighborhoods.n_samples), dtype=bool)
    joined, own, start = [nothing], [nothing], 0
    for rows in blocks:
        rounding = rounding_of(rows)
        for part in block_ranges(rows.shape[0], rows.shape[1], rows):
            here = slice(start, start := start + part.stop - part.start)
            some = None if row_lengths is None else row_lengths[here]
            similarities = _scaled(select(rows, part), some, lengths)
            own.append(_most_similar(similarities, size, TIE_ROUNDINGS * rounding)[0])
            kth = neighborhoods.kth_similarity
            reached = _reach(to_host(similarities), kth, ROUNDINGS * rounding)
            joined.append(scipy.sparse.csr_array(reached))
    return scipy.sparse.vstack(joined, "csr"), scipy.sparse.vstack(own, "csr")


def lengths_of(diagonal: Float) -> Float:
    """Return the roots of self-similarities; infinite if there is none: similar to nothing."""
    return np.sqrt(np.where(diagonal > 0, diagonal, np.inf))


def _scaled(block: Any, row_lengths: Float | None, lengths: Float | None) -> Array:
    """Return similarities divided by the lengths of both samples, if there are lengths."""
    block = astype(block.toarray() if is_sparse(block) else block, "float64")
    if lengths is None or row_lengths is None:
        return block
    return block / to_device(row_lengths, block)[:, None] / to_device(lengths, block)


def _most_similar(similarities: Array, size: int, rounding: float) -> tuple[Any, Float]:
    """Return the most similar columns of each row, with ties, and the last of these similarities.

    Only similarities above zero count; the last is zero if there are fewer than wanted.
    """
    rest = similarities.shape[1] - size
    if is_foreign(similarities):
        kth = namespace(similarities).sort(similarities, axis=1)[:, rest : rest + 1]
    else:
        kth = np.partition(similarities, rest, axis=1)[:, rest : rest + 1]
    lists = scipy.sparse.csr_array(to_host(_reach(similarities, kth, rounding), bool))
    return lists, np.maximum(to_host(kth)[:, 0], 0.0)


def _reach(similarities: Array, kth: Array, rounding: float) -> Array:
    """Return which similarities are above zero and, up to rounding, as large as the last ones."""
    xp = namespace(similarities)
    return (similarities >= kth - rounding * xp.abs(kth)) & (similarities > 0)


def _thinned(lists: Any, size: int) -> tuple[Any, np.ndarray]:
    """Return lists without some of those that ties make too long, and which are kept.

    They are left out as wholes, at regular intervals, so that equal samples stay in the same lists.
    """
    n, lengths = lists.shape[1], np.diff(lists.indptr)
    longest = max(LONGEST_TIMES * (size + 1), LARGEST_WITH_ALL_TIES**2 // max(n, 1))
    times, ranks = -(-lengths // longest), np.cumsum(lengths > longest)
    is_kept = (lengths <= longest) | (ranks % np.maximum(times, 1) == 0)
    if is_kept.all():
        return lists, is_kept
    keep = scipy.sparse.diags_array(is_kept.astype(np.float64))
    return scipy.sparse.csr_array(keep @ lists, dtype=bool), is_kept


def _identity(n: int) -> Any:
    """Return the sparse identity: every sample is in its own neighborhood."""
    return scipy.sparse.eye_array(n, dtype=bool, format="csr")


# By distances of rows -------------------------------------------------------------------------


def nearest_neighborhoods(rows: Array, size: int, *, cosine: bool = False) -> Neighborhoods:
    """Return the neighborhoods of the nearest rows: those of every Gaussian kernel.

    By cosines, those of the nearest rows of unit length with a cosine above zero; rows of zeros
    have no neighbors.
    """
    n = rows.shape[0]
    rows, used, farthest = _compared(rows, cosine)
    kth, lists = np.full(n, -farthest), scipy.sparse.csr_array((n, n), dtype=bool)
    if (count := min(size, len(used) - 1)) > 0:
        some = rows if len(used) == n else select(rows, used)
        near, last = nearest_lists(some, some, count + 1, farthest)
        near, is_kept = _thinned(near, size)
        if count == size:
            kth[used] = -np.minimum(last, farthest)
        kth[used[~is_kept]] = np.inf
        lists = _spread(near, used, used, (n, n))
    return Neighborhoods.of_lists(lists + _identity(n), kth)


def join_nearest(
    neighborhoods: Neighborhoods, size: int, new_rows: Array, rows: Array, *, cosine: bool = False
) -> tuple[Any, Any]:
    """Return whose neighborhoods new rows join, and who is in their own, by distance."""
    n_new, n = new_rows.shape[0], rows.shape[0]
    (rows, used, farthest), (new_rows, new_used, _) = (
        _compared(each, cosine) for each in (rows, new_rows)
    )
    joined = own = scipy.sparse.csr_array((n_new, n), dtype=bool)
    if not len(used) or not len(new_used):
        return joined, own
    known, new, places = select(rows, used), select(new_rows, new_used), (new_used, used)
    near, _ = nearest_lists(new, known, min(size, len(used)), farthest)
    origin, reached = middle(to_host(known)), []
    known, new = (rows_from(origin, to_host(each)) for each in (known, new))
    norms, limits = squared_norms(known), -neighborhoods.kth_similarity[used]
    for part in block_ranges(len(new_used), len(used), known):
        both = squared_norms(new[part])[:, None] + norms
        squared = squared_distances(new[part], known)
        limit = np.minimum(limits + ROUNDINGS * EPS * both, farthest)
        reached.append(scipy.sparse.csr_array(squared <= limit))
    joined = _spread(scipy.sparse.vstack(reached), *places, (n_new, n))
    return joined, _spread(near, *places, (n_new, n))


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


# By links of a graph, or distances, that a view consists of -----------------------------------


def linked_neighborhoods(view: Array) -> Neighborhoods:
    """Return the neighborhoods of samples whose rows are their links to all samples."""
    parts = block_ranges(view.shape[0], view.shape[1], view)
    links = [scipy.sparse.csr_array(to_host(select(view, part)) > 0) for part in parts]
    lists = scipy.sparse.vstack(links, "csr") + _identity(view.shape[0])
    return Neighborhoods.of_lists(lists, np.zeros(lists.shape[0]))


def closeness(distances: Array, unit: float) -> Iterator[Array]:
    """Yield similarities above zero that fall with given distances, block after block."""
    for part in block_ranges(distances.shape[0], distances.shape[1], distances):
        yield 1 / (1 + astype(dense_rows(select(distances, part)), "float64") / unit)


def find_training_samples(
    new_views: Mapping[str, Array], training_views: Mapping[str, Array]
) -> np.ndarray:
    """Return which training samples new ones are, having the same rows in all views; else -1."""
    indices: dict[bytes, int] = {}
    for index, digest in enumerate(_digests(training_views)):
        indices.setdefault(digest, index)
    return np.fromiter((indices.get(each, -1) for each in _digests(new_views)), np.int64)


def _digests(views: Mapping[str, Array]) -> Iterator[bytes]:
    """Yield a digest of every sample's rows, the same for equal numbers."""
    for rows in zip(*map(_row_contents, views.values()), strict=True):
        yield hashlib.blake2b(b"".join(rows), digest_size=16).digest()


def _row_contents(view: Array) -> Iterator[bytes]:
    """Yield the entries of every row as bytes, in float64."""
    for part in block_ranges(view.shape[0], max(1, view.shape[1]), view):
        rows = to_host(select(view, part))
        if is_sparse(rows):
            for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False):
                columns = rows.indices[start:stop].astype(np.int64)
                yield columns.tobytes() + rows.data[start:stop].tobytes()
        else:
            yield from (row.tobytes() for row in rows + 0.0)  # -0 becomes 0
