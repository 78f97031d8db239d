"""Kernels that count similarities between neighbors only: what the localized methods share."""

import numbers
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    is_foreign,
    namespace,
    ranges,
    select,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.parameters import Number
from mkclust.stack import KernelStack, as_stack
from mkclust.types import Array, Float

# Rows worked on at a time: enough for BLAS, few enough to add little memory. On a device, as many
# as have so many entries.
BLOCK_ROWS, BLOCK_ENTRIES_ON_DEVICE = 256, 2**25
# The neighborhoods of neighbors="auto" have this part of the samples that a cluster has on average,
# but not fewer than so many, and not more than a part of all samples. Measured on seven data sets
# with two kinds of kernels: above a cluster's size the gain fades, below half of it good clusters
# may fall apart, and fewer than about ten neighbors are harmful.
AUTO_PART_OF_CLUSTER, AUTO_LEAST, AUTO_PART_OF_ALL = 2 / 3, 20, 1 / 3

Neighbors = float | int | Literal["auto"]
MaskKind = Literal["counts", "published", "cosine"]


@dataclass(frozen=True)
class NeighborhoodSize:
    """A count of samples, a share of them, or "auto"."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is a size: integers are counts, other numbers shares."""
        if isinstance(value, str):
            return value == "auto"
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return int(value) >= 2
        return Number(0, 1, open_low=True).holds(value)

    def advice(self) -> str:
        """Return what to pass, in words."""
        return (
            "pass a share of the samples, a float between 0 and 1 (0 excluded; 1.0 is all of "
            "them), a count, an integer of at least 2, or 'auto'"
        )


def neighborhood_size(neighbors: Neighbors, n_samples: int, n_clusters: int) -> int:
    """Return how many samples a neighborhood has.

    Parameters
    ----------
    neighbors : float, int or "auto"
        A share of the samples, a count, or "auto": two thirds of the samples that a cluster has on
        average, but at least 20, and at most a third of all samples.
    n_samples, n_clusters : int
        Number of samples, and of clusters.

    Returns
    -------
    int

    Examples
    --------
    >>> from mkclust.methods.localize import neighborhood_size
    >>> [neighborhood_size("auto", n, 10) for n in (30, 200, 2000)], neighborhood_size(0.1, 200, 10)
    ([10, 20, 133], 20)
    """
    if neighbors == "auto":
        wanted = max(AUTO_LEAST, AUTO_PART_OF_CLUSTER * n_samples / n_clusters)
        return max(1, int(min(wanted, AUTO_PART_OF_ALL * n_samples) + 0.5))
    if isinstance(neighbors, numbers.Integral):
        if neighbors >= n_samples:
            raise ValueError(
                f"neighbors={neighbors} with n_samples={n_samples}: a sample has "
                f"{n_samples - 1} others; pass a count of at most that, a share of the samples, "
                "or 'auto'"
            )
        return int(neighbors)
    return max(1, int(np.floor(neighbors * n_samples + 0.5)))


@dataclass(frozen=True)
class Mask:
    """What the similarities of every two samples are multiplied with.

    Attributes
    ----------
    counts : array of shape (n, n)
        In how many neighborhoods both samples are.
    is_cosine : bool
        Whether these are divided by the roots of the numbers of neighborhoods that the one and the
        other are in, rather than by the number of samples.
    """

    counts: Array
    is_cosine: bool

    def rows(self, rows: slice) -> Array:
        """Return some rows of the mask, in double precision."""
        return self._scaled(self.counts[rows, :], self.n_neighborhoods[rows], self.n_neighborhoods)

    def among(self, samples: np.ndarray | None) -> Array:
        """Return the mask among some samples, or all."""
        counts, sizes = self.counts, self.n_neighborhoods
        if samples is not None:
            counts = select(select(counts, samples), samples, axis=1)
            sizes = select(sizes, samples)
        return self._scaled(counts, sizes, sizes)

    @property
    def n_neighborhoods(self) -> Array:
        """In how many neighborhoods each sample is."""
        return astype(namespace(self.counts).linalg.diagonal(self.counts), "float64")

    def _scaled(self, counts: Array, left: Array, right: Array) -> Array:
        """Return counts as shares; symmetric to the last bit where they are."""
        if not self.is_cosine:
            return astype(counts, "float64") / self.counts.shape[0]
        # Every sample is in its own neighborhood, if in no other.
        roots = namespace(counts).sqrt(left[:, None] * right[None, :])
        return astype(counts, "float64") / roots


def neighborhood_mask(stack: KernelStack, size: int, kind: MaskKind = "published") -> Mask:
    """Return by how much the neighborhoods of the average kernel count two samples' similarity.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    size : int
        How many samples a neighborhood has, see `neighborhood_size`.
    kind : {"published", "counts", "cosine"}, default="published"
        "published": the share of the neighborhoods that both samples are in, a sample itself left
        out of its own unless all are wanted. "counts": the same with every sample in its own.
        "cosine": the cosine of two samples' memberships, every sample in its own neighborhood.

    Returns
    -------
    Mask
    """
    n, m = stack.n_samples, stack.n_kernels
    average = stack.combine(np.full(m, 1 / m)).dense()
    set_diagonal(average, -np.inf if kind == "published" else np.inf)
    if kind != "published":
        size = min(size + 1, n)
    # Counts are exact in single precision up to 2^24 samples.
    members = empty((n, n), average, "float32")
    for rows in ranges(n, _height(average, n)):
        members[rows, :] = astype(_nearest(average[rows, :], size), "float32")
    return Mask(members.T @ members, kind == "cosine")


def localize(stack: KernelStack, mask: Mask) -> tuple[KernelStack, Float]:
    """Return the kernels that count similarities of neighbors only, and their correlations M."""
    entries, correlations = _localize_entries(stack.entries(), mask)
    for name, correlation in zip(stack.names, correlations.diagonal(), strict=True):
        if correlation == 0:
            raise ValueError(
                f"{name} is zero between all samples that share a neighborhood: raise neighbors, "
                "or leave it out"
            )
    local = as_stack(entries, center=False, normalize=False, validate=False, names=stack.names)
    return local, correlations


def _nearest(similarities: Array, size: int) -> Array:
    """Return which entries are among the largest of their row, so many of each."""
    xp, rest = namespace(similarities), similarities.shape[1] - size
    if is_foreign(similarities):
        least = xp.sort(similarities, axis=1)[:, rest : rest + 1]
    else:
        least = np.partition(similarities, rest, axis=1)[:, rest : rest + 1]
    inside, border = similarities > least, similarities == least
    # Among equals at the border the first are taken, as by a stable sort.
    room = size - xp.sum(astype(inside, "int32"), axis=1, keepdims=True)
    return inside | (border & (xp.cumulative_sum(astype(border, "int32"), axis=1) <= room))


def _height(like: Array, width: int) -> int:
    """Return how many rows to work on at a time."""
    return max(1, BLOCK_ENTRIES_ON_DEVICE // width) if is_foreign(like) else BLOCK_ROWS


def _localize_entries(entries: Array, mask: Mask) -> tuple[Array, Float]:
    """Weigh the entries by shared neighborhoods, in place; return them and their correlations."""
    (m, n, _), xp = entries.shape, namespace(entries)
    total = zeros((m, m), entries)
    for rows in ranges(n, _height(entries, m * n)):
        block = entries[:, rows, :]
        local = block * mask.rows(rows)
        total += xp.reshape(local, (m, -1)) @ xp.reshape(block, (m, -1)).T
        entries[:, rows, :] = local
    correlations = to_host(total)
    return entries, (correlations + correlations.T) / 2


def mix_among_neighbors(
    stack: KernelStack, coefficients: Float, mask: Mask, samples: np.ndarray | None
) -> Float:
    """Return the mix of kernels times a mask, all of it or among some samples."""
    return stack.mixed_entries(coefficients, samples) * to_host(mask.among(samples))
