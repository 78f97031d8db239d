"""Kernels that count similarities between neighbors only: what the localized methods share."""

import numbers
from typing import Any, Literal

import numpy as np

from mkclust.kernels.neighbors import kth_smallest
from mkclust.linalg import (
    astype,
    empty,
    namespace,
    select,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.parameters import Allowed, Choice, Number, Rule
from mkclust.stack import Mix, Stack
from mkclust.stack.kernel import row_blocks
from mkclust.stack.stack import HeldStack
from mkclust.types import Array, Float

# neighbors="auto" takes this part of the samples that a cluster has on average. Measured on seven
# data sets: above a cluster's size the gain fades, below half of it good clusters may fall apart.
AUTO_PART_OF_CLUSTER = 2 / 3
# But not fewer samples: less than about ten neighbors are harmful.
AUTO_FEWEST = 20
# And not more than this part of all samples.
AUTO_PART_OF_ALL = 1 / 3

Neighbors = float | int | Literal["auto"]
MaskKind = Literal["counts", "published", "cosine"]


def NeighborhoodSize() -> Allowed:
    """Allow a count of samples, a share of them, or "auto"."""

    def test(value: Any) -> bool:
        """Return whether a value is a size: integers are counts, other numbers shares."""
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return int(value) >= 2
        return Choice(("auto",)).holds(value) or Number(0, 1, open_low=True).holds(value)

    return Rule(
        test,
        "pass a share of the samples, a float between 0 and 1 (0 excluded; 1.0 is all of them), a "
        "count, an integer of at least 2, or 'auto'",
    )


def neighborhood_size(neighbors: Neighbors, n_samples: int, n_clusters: int) -> int:
    """Return how many samples a neighborhood has, for a share of them, a count, or "auto".

    Examples
    --------
    >>> from mkclust.methods.localize import neighborhood_size
    >>> [neighborhood_size("auto", n, 10) for n in (30, 200, 2000)], neighborhood_size(0.1, 200, 10)
    ([10, 20, 133], 20)
    """
    if neighbors == "auto":
        wanted = max(AUTO_FEWEST, AUTO_PART_OF_CLUSTER * n_samples / n_clusters)
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


def neighborhood_mask(stack: Stack, size: int, kind: MaskKind = "published") -> Array:
    """Return what the similarities of every two samples are multiplied with, (n, n).

    The kinds are those of `LocalizedSimpleMKKM`, by the neighborhoods of the average kernel.
    """
    n, m = stack.n_samples, stack.n_kernels
    average = Mix(np.full(m, 1 / m), stack.kernels).dense()
    set_diagonal(average, -np.inf if kind == "published" else np.inf)
    if kind != "published":
        size = min(size + 1, n)
    # Counts are exact in single precision up to 2^24 samples.
    members = empty((n, n), average, "float32")
    for part in row_blocks(stack.kernels):
        members[part, :] = astype(_nearest(average[part, :], size), "float32")
    mask = astype(members.T @ members, "float64")
    if kind != "cosine":
        return mask / n
    xp = namespace(mask)
    roots = xp.sqrt(xp.linalg.diagonal(mask))
    return mask / roots / roots[:, None]


def _nearest(similarities: Array, size: int) -> Array:
    """Return which entries are among the largest of their row, ``size`` of each."""
    xp, smallest = namespace(similarities), -kth_smallest(-similarities, size)
    is_above, is_equal = similarities > smallest, similarities == smallest
    # Among equal similarities the first are taken, as by a stable sort.
    n_left = size - xp.sum(astype(is_above, "int32"), axis=1, keepdims=True)
    return is_above | (is_equal & (xp.cumulative_sum(astype(is_equal, "int32"), axis=1) <= n_left))


def localize(stack: Stack, mask: Array) -> tuple[Stack, Float]:
    """Return the kernels times a mask B, written out, and ``sum_ab B_ab K_p,ab K_q,ab``."""
    entries, m = stack.among().entries, stack.n_kernels
    xp, total = namespace(entries), zeros((m, m), entries)
    for part in row_blocks(stack.kernels):
        block = entries[:, part, :]
        local = block * mask[part, :]
        total += xp.reshape(local, (m, -1)) @ xp.reshape(block, (m, -1)).T
        entries[:, part, :] = local
    correlations = to_host(total)
    for name, correlation in zip(stack.names, correlations.diagonal(), strict=True):
        if correlation == 0:
            raise ValueError(
                f"{name} is zero between all samples that share a neighborhood: raise neighbors, "
                "or leave it out"
            )
    return HeldStack(entries, stack.names, stack.views), (correlations + correlations.T) / 2


def mix_among_neighbors(
    stack: Stack,
    coefficients: Float,
    samples: np.ndarray | None,
    size: int,
    kind: MaskKind = "published",
) -> Array:
    """Return the mix of kernels times a mask, all of it or among some samples."""
    mask = neighborhood_mask(stack, size, kind)
    index = np.arange(stack.n_samples) if samples is None else samples
    mixed = Mix(coefficients, stack.kernels).rows(index) * select(mask, index)
    return mixed if samples is None else select(mixed, samples, axis=1)
