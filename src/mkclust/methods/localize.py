"""Kernels that count similarities between neighbors only, for the localized methods."""

from numbers import Integral
from typing import ClassVar, Literal

import numpy as np

from mkclust.exceptions import warn
from mkclust.fit.base import RelaxedClusterer
from mkclust.linalg import (
    astype,
    empty,
    namespace,
    select,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.linalg.nearest import kth_smallest
from mkclust.parameters import Allowed, Choice, Count, Either, Rule
from mkclust.stack import Mix, Stack
from mkclust.stack.kernel import row_blocks
from mkclust.stack.stack import HeldStack
from mkclust.text import join_words
from mkclust.types import Array, Float

Neighbors = float | int | Literal["auto"]
MaskKind = Literal["counts", "published"]


def neighborhood_size(neighbors: Neighbors, n_samples: int, n_clusters: int) -> int:
    """Return how many samples a neighborhood has, for a share, a count, or "auto"."""
    # neighbors="auto" takes this part of the samples that a cluster has on average.
    # Measured on seven data sets: above a cluster's size the gain fades, below half of
    # it good clusters may fall apart.
    auto_part_of_cluster = 2 / 3
    # But not fewer samples: less than about ten neighbors are harmful.
    auto_fewest = 20
    # And not more than this part of all samples.
    auto_part_of_all = 1 / 3
    if neighbors == "auto":
        wanted = max(auto_fewest, auto_part_of_cluster * n_samples / n_clusters)
        return max(1, int(min(wanted, auto_part_of_all * n_samples) + 0.5))
    if not isinstance(neighbors, Integral):
        return max(1, int(np.floor(neighbors * n_samples + 0.5)))
    if neighbors >= n_samples:
        raise ValueError(
            f"neighbors={neighbors} with n_samples={n_samples}: pass a count below "
            "that, a share of the samples, or 'auto'"
        )
    return int(neighbors)


def neighborhood_mask(stack: Stack, size: int, kind: MaskKind = "published") -> Array:
    """Return the mask of `LocalizedSimpleMKKM`, by the average kernel, (n, n)."""
    n = stack.n_samples
    m = stack.n_kernels
    average = Mix(np.full(m, 1 / m), stack.kernels).dense()
    set_diagonal(average, -np.inf if kind == "published" else np.inf)
    if kind == "counts":
        size = min(size + 1, n)
    # Counts are exact in single precision up to 2^24 samples.
    members = empty((n, n), average, "float32")
    for part in row_blocks(stack.kernels):
        members[part, :] = astype(_nearest(average[part, :], size), "float32")
    return astype(members.T @ members, "float64") / n


def _nearest(similarities: Array, size: int) -> Array:
    """Return which entries are among the largest of their row, ``size`` of each."""
    xp = namespace(similarities)
    smallest = -kth_smallest(-similarities, size)
    is_above = similarities > smallest
    is_equal = similarities == smallest
    # Among equal similarities the first are taken, as by a stable sort.
    n_left = size - xp.sum(astype(is_above, "int32"), axis=1, keepdims=True)
    return is_above | (
        is_equal & (xp.cumulative_sum(astype(is_equal, "int32"), axis=1) <= n_left)
    )


def localize(
    stack: Stack, n_clusters: int, neighbors: Neighbors, kind: MaskKind = "published"
) -> tuple[Stack, Float, int]:
    """Return masked kernels, their correlations, and the size of a neighborhood.

    With the mask B, the correlations are ``sum_ab B_ab K_p,ab K_q,ab``.
    """
    size = neighborhood_size(neighbors, stack.n_samples, n_clusters)
    mask = neighborhood_mask(stack, size, kind)
    isolated = np.flatnonzero(to_host(namespace(mask).linalg.diagonal(mask)) == 0)
    if len(isolated):
        warn(
            f"samples in no neighborhood: {join_words(isolated)}. They have no "
            "similarity to others, and their clusters mean nothing; raise neighbors, "
            "or use LocalizedSimpleMKKM(mask='counts')",
            UserWarning,
        )
    entries = stack.among().entries
    m = stack.n_kernels
    xp = namespace(entries)
    total = zeros((m, m), entries)
    for part in row_blocks(stack.kernels):
        block = entries[:, part, :]
        local = block * mask[part, :]
        total += xp.reshape(local, (m, -1)) @ xp.reshape(block, (m, -1)).T
        entries[:, part, :] = local
    correlations = to_host(total)
    for name, correlation in zip(stack.names, correlations.diagonal(), strict=True):
        if correlation == 0:
            raise ValueError(
                f"{name} is zero between all samples that share a neighborhood: raise "
                "neighbors, or leave it out"
            )
    local_stack = HeldStack(entries, stack.names, stack.views)
    return local_stack, (correlations + correlations.T) / 2, size


# Integers are counts, other numbers shares of the samples.
SHARE = Rule(
    lambda value: isinstance(value, float | np.floating) and bool(0 < value <= 1),
    "pass a share of the samples, a float above 0 and at most 1.0",
)


class LocalizedClusterer(RelaxedClusterer):
    """Base of the methods for kernels among neighbors."""

    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "neighbors": Either(Either(Count(least=2), SHARE), Choice(("auto",)))
    }
    SIMILARITIES = "the sum of the kernels by their coefficients, among neighbors"
    MATRICES = 2
    COPIES = 1

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        mask = neighborhood_mask(
            stack, self.n_neighbors_, getattr(self, "mask", "published")
        )
        mix = Mix(self.coefficients_, stack.kernels)
        if samples is None:
            return mix.dense() * mask
        mixed = mix.rows(samples) * select(mask, samples)
        return select(mixed, samples, axis=1)
