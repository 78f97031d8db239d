"""Shared neighborhoods: samples are as similar as the share of those with both.

The neighborhood N(i) of a sample consists of itself and the samples most similar to it
by some kernel: the requested number, and all others that are as similar as the last of
them. Two samples a and b have the similarity (number of i with a and b in N(i)) /
sqrt(c_a c_b), c_a being the number of i with a in N(i): positive semidefinite for every
kernel, with a unit diagonal, and the product of a sparse factor with its transpose.

Similarities are compared as by a kernel of unit diagonal. A new sample joins the
neighborhoods of those to which it is as similar as their last neighbor, and has one of
its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from mkclust.linalg import (
    EPS,
    FactoredMatrix,
    Stored,
    dense_rows,
    entries_at,
    in_threads,
    namespace,
    places_of,
    row_ranges,
    select,
    set_diagonal,
    spread_links,
    to_device,
    to_host,
    true_at,
    upper_bounds,
)
from mkclust.parameters import Choice, Count, Either, Number
from mkclust.types import Array, Float

# Dissimilarities are equal if they differ by less than this share,
TIE = 1e-9
# or by less than this: similarities and median distances are about one.
ROUNDING = 64 * EPS
# Up to this number of samples, neighborhoods contain all ties.
LARGEST_WITH_ALL_TIES = 5000
# Beyond that, they contain on average at most this multiple of the neighbors asked for.
LONGEST_TIMES = 16
# Finite dissimilarities are below this; samples with nothing in common are infinitely
# far from each other.
FAR = 1e300
# At least this number of rows is computed at a time, or products of matrices are slow.
BLOCK_ROWS = 64


# None, "auto", a number of neighbors, or a share of the samples.
NEIGHBORS = Either(
    Either(Count(least=2), Number(0, 1, open_low=True, open_high=True)),
    Choice((None, "auto")),
)


def count_neighbors(neighbors: Any, n_samples: int) -> int:
    """Return how many neighbors every sample is to have, or raise if too many."""
    if neighbors == "auto":
        # Clusters of the data sets tried hardly differ from 10 to 50; of few samples a
        # third, or neighborhoods would be larger than clusters.
        count = max(2, min(20, n_samples // 3))
    elif isinstance(neighbors, Integral):
        count = int(neighbors)
    else:
        count = max(2, round(float(neighbors) * n_samples))
    if count > n_samples - 1:
        raise ValueError(
            f"neighbors={neighbors!r} asks for {count} neighbors, and each of "
            f"{n_samples} samples has {n_samples - 1} others: pass fewer neighbors, or "
            "more samples"
        )
    return count


@dataclass(frozen=True, eq=False)
class Neighborhoods(Stored):
    """The neighborhoods of all samples by one kernel."""

    # Sparse array of bool: row a, column i if a is in N(i).
    members: Any = field(repr=False)
    # Of every sample to its last neighbor, FAR if it has fewer: others up to it are
    # neighbors.
    last_dissimilarity: Float = field(repr=False)
    size: int  # number of neighbors that were asked for

    n_samples = property(lambda self: self.members.shape[0])

    @cached_property
    def _memberships(self) -> Any:
        """The sparse factor A of the kernel: memberships, rows of unit length."""
        scale = scipy.sparse.diags_array(np.diff(self.members.indptr) ** -0.5)
        return scipy.sparse.csr_array(scale @ self.members)

    @cached_property
    def _members_and_own(self) -> Any:
        """Who is in the neighborhoods, and in that of a new sample, by neighborhood."""
        sizes = np.diff(self.members.indptr)
        shares = scipy.sparse.diags_array(sizes**-0.5)
        return scipy.sparse.vstack([self._memberships.T, shares], "csr")

    def kernel(self) -> Any:
        """Return the similarities of all samples, (n_samples, n_samples)."""
        return FactoredMatrix.symmetric(self._memberships)

    def cross(self, dissimilarities: Array, samples: np.ndarray) -> Any:
        """Return the similarities of new to training samples, (n_new, n_samples).

        Dissimilarities are in float64, and `samples` says which training samples they
        are, -1 for none: those keep their similarities.
        """
        # Whose neighborhoods they join, and who is in their own.
        is_near = _as_near(dissimilarities, self.last_dissimilarity)
        joins = true_at(*places_of(is_near), tuple(is_near.shape))
        own, _ = _nearest(dissimilarities, self.size)

        is_new = samples < 0
        n_joins = np.diff(joins.indptr) + 1.0
        scale = scipy.sparse.diags_array(is_new / np.sqrt(n_joins))
        joins = scale @ joins
        known = np.flatnonzero(~is_new)
        if len(known):
            places = (np.ones(len(known)), (known, samples[known]))
            shape = (len(samples), self.n_samples)
            is_known = scipy.sparse.csr_array(places, shape)
            joins = joins + is_known @ self._memberships
        left = scipy.sparse.hstack([joins, scale @ own], "csr")
        return FactoredMatrix(left, self._members_and_own)

    def isolated(self) -> np.ndarray:
        """Return which samples are alone in the only neighborhood that has them."""
        in_lists = np.bincount(self.members.indices, minlength=self.n_samples)
        sizes = np.diff(self.members.indptr)
        return (sizes == 1) & (in_lists == 1)


def find_neighborhoods(
    size: int,
    compute: Callable[[slice], Array],
    parts: Iterable[slice],
    like: Any,
) -> Neighborhoods:
    """Return the neighborhoods of all samples, given dissimilarities in blocks of rows.

    Every part of the samples has a block, (n_rows, n), in float64, on the device of
    ``like``, which is overwritten. On the host this takes all threads. Of neighborhoods
    that ties make too long some are left out as wholes, at regular intervals, so that
    equal samples stay in the same ones.
    """

    def find(part: slice) -> tuple[Any, Float]:
        """Return the neighborhoods of some samples, and how far they reach."""
        dissimilarities = compute(part)
        set_diagonal(dissimilarities[:, part], float("inf"))
        return _nearest(dissimilarities, size)

    found, lasts = zip(*in_threads(find, parts, like), strict=True)
    others = scipy.sparse.vstack(found, "csr")
    n = others.shape[1]
    lengths = np.diff(others.indptr)
    by_total = LARGEST_WITH_ALL_TIES**2 // max(n, 1)
    longest = max(LONGEST_TIMES * (size + 1), by_total)
    ranks = np.cumsum(lengths > longest)
    steps = np.maximum(-(-lengths // longest), 1)
    is_kept = (lengths <= longest) | (ranks % steps == 0)
    kept = scipy.sparse.diags_array(is_kept.astype(np.float64)) @ others
    own = scipy.sparse.eye_array(n)
    lists = scipy.sparse.csr_array(kept + own, dtype=bool)
    at_most = np.minimum(np.concatenate(lasts), FAR)
    last_dissimilarity = np.where(is_kept, at_most, -FAR)
    return Neighborhoods(lists.T.tocsr(), last_dissimilarity, size)


def _nearest(dissimilarities: Array, size: int) -> tuple[Any, Float]:
    """Return who is as near as the last neighbor, sparse, and how far this is, (n,)."""
    near = _as_near(dissimilarities, upper_bounds(dissimilarities, size))
    rows, columns = places_of(near)
    values = entries_at(dissimilarities, rows, columns)

    n = near.shape[0]
    counts = np.bincount(rows, minlength=n)
    order = np.lexsort((values, rows))
    rising = np.append(values[order], np.inf)
    starts = np.cumsum(counts) - counts
    last = rising[np.where(counts >= size, starts + size - 1, -1)]

    is_in = values <= _limits(last)[rows]
    return true_at(rows[is_in], columns[is_in], tuple(near.shape)), last


def _limits(last: Float) -> Float:
    """Return up to which dissimilarities samples are as near as the last neighbor."""
    last = np.minimum(last, FAR)
    return last + TIE * np.abs(last) + ROUNDING


def _as_near(dissimilarities: Array, last: Array) -> Array:
    """Return which samples are as near as the last neighbors, (n_rows, n)."""
    limits = _limits(to_host(last))
    return dissimilarities <= to_device(limits, dissimilarities)


def dissimilarities_from(similarities: Array) -> Array:
    """Return dissimilarities, infinite for those not positive."""
    is_positive = similarities > ROUNDING
    return namespace(similarities).where(is_positive, -similarities, float("inf"))


def linked_neighborhoods(view: Array) -> Neighborhoods:
    """Return the neighborhoods of samples whose rows are their links to all samples."""
    n = view.shape[0]
    links = scipy.sparse.csr_array(to_host(view) > 0)
    lists = links + scipy.sparse.eye_array(n, dtype=bool)
    return Neighborhoods(lists.T.tocsr(), np.zeros(n), n)


def count_components(
    neighborhoods: Sequence[tuple[Neighborhoods, np.ndarray]],
    n_samples: int,
) -> int:
    """Return into how many groups samples fall, by neighborhoods and their samples."""
    links = [spread_links(each.members, own, n_samples) for each, own in neighborhoods]
    return int(connected_components(sum(links), directed=False)[0])


def find_training_samples(
    new_views: Mapping[str, Array],
    training_views: Mapping[str, Array],
) -> np.ndarray:
    """Return which training samples new ones are, by equal rows; -1 for none."""
    indices: dict[int, int] = {}
    for index, key in enumerate(_hashes(list(training_views.values()))):
        indices.setdefault(key, index)
    keys = _hashes([new_views[name] for name in training_views])
    return np.fromiter((indices.get(key, -1) for key in keys), np.int64)


def _hashes(views: Sequence[Array]) -> Iterator[int]:
    """Yield a hash of every sample's rows, the same for equal numbers."""
    n_columns = sum(view.shape[1] for view in views)
    for part in row_ranges(views[0].shape[0], n_columns, None, BLOCK_ROWS):
        blocks = [to_host(dense_rows(select(view, part))) for view in views]
        rows = np.hstack(blocks)
        yield from (hash(row.tobytes()) for row in rows + 0.0)  # -0 becomes 0
