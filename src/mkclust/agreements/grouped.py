r"""What kernels share if samples come in groups: families, patients, batches, plates.

Samples of a group are alike in everything, so only two kinds of shuffling leave
independent views as they are: of the samples within their groups, and of whole groups.

**Within.** Let :math:`K_{gh}` be the entries between two groups, without the means of
its rows and columns, and U-centered for one group. Over all permutations of the samples
of each group, the sum of the inner products of all these blocks has mean zero and
exactly the variance

.. math:: 2 \sum_{gh} \|K_{gh}\|^2 \|L_{gh}\|^2 / d_{gh}, \qquad
    d_{gh} = (n_g - 1) (n_h - 1), \; d_{gg} = n_g (n_g - 3)

**Between.** Groups are compared by the means of equally many of their samples, which
makes them exchangeable whatever their sizes are.
"""

from dataclasses import dataclass

import numpy as np

from mkclust.agreements.alignments import FEWEST_SAMPLES, u_centered
from mkclust.types import Float


@dataclass(frozen=True)
class WithinGroups:
    """Inner products of kernels without the differences between groups."""

    groups: np.ndarray  # of the rows, (s,), rising
    entries: Float  # of the centered blocks, (m, s, s)
    products: Float  # (m, m)
    # Over all permutations within groups, (m, m); zero if nothing varies.
    deviations: Float

    @property
    def scores(self) -> Float:
        """Return the inner products in standard deviations, (m, m)."""
        return self._over_deviations(self.products)

    @property
    def largest_scores(self) -> Float:
        """Return the scores that the inner products have at most, (m, m)."""
        norms = np.sqrt(np.diag(self.products))
        return self._over_deviations(np.outer(norms, norms))

    def _over_deviations(self, products: Float) -> Float:
        """Return products in standard deviations, zero if nothing varies."""
        out = np.zeros_like(products)
        return np.divide(products, self.deviations, out=out, where=self.deviations > 0)


def compare_within_groups(entries: Float, groups: np.ndarray) -> WithinGroups:
    """Compare kernels by the differences within groups, by entries, (m, s, s)."""
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    blocks = np.stack(
        [_centered_blocks(K[np.ix_(order, order)], starts, sizes) for K in entries]
    )

    flat = blocks.reshape(len(blocks), -1)
    squares = np.stack([_sum_blocks(K * K, starts).reshape(-1) for K in blocks])
    pairs = np.outer(sizes - 1, sizes - 1)
    np.fill_diagonal(pairs, sizes * (sizes - 3))
    # Blocks that leave nothing to permute are zero.
    divisors = np.maximum(pairs, 1).reshape(-1)
    deviations = np.sqrt(2 * (squares / divisors) @ squares.T)
    return WithinGroups(groups[order], blocks, flat @ flat.T, deviations)


def _centered_blocks(K: Float, starts: np.ndarray, sizes: np.ndarray) -> Float:
    """Return a kernel without the means of its blocks; rows are sorted by group."""
    column_means = np.add.reduceat(K, starts, axis=0) / sizes[:, None]
    K = K - np.repeat(column_means, sizes, axis=0)
    row_means = np.add.reduceat(K, starts, axis=1) / sizes
    K -= np.repeat(row_means, sizes, axis=1)
    for start, size in zip(starts, sizes, strict=True):
        own = slice(start, start + size)
        if size >= FEWEST_SAMPLES:
            K[own, own] = u_centered(K[own, own].copy())
        else:
            K[own, own] = 0.0
    return K


def _sum_blocks(values: Float, starts: np.ndarray) -> Float:
    """Return the sums of the entries of all blocks, (g, g)."""
    return np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1)


def orders_within_groups(
    groups: np.ndarray, n_orders: int, rng: np.random.Generator
) -> np.ndarray:
    """Return random orders within groups of samples sorted by group, (n_orders, s)."""
    keys = rng.random((n_orders, len(groups)))
    return np.argsort(groups + keys, axis=1)


def draw_members(
    groups: np.ndarray, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return rising numbers of samples of whole groups, or parts of large groups."""
    numbers, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    # Less than eight samples say little of a group.
    most = max(n_samples // len(numbers), 8)
    places = rng.permutation(len(numbers))
    is_drawn = np.cumsum(np.minimum(sizes, most)[places]) <= n_samples
    drawn = np.isin(codes, places[is_drawn])
    return np.flatnonzero(drawn & (_places_in_group(codes, rng) < most))


def draw_equally(
    groups: np.ndarray, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Return equally many random samples of every group, a row per group, (g, t).

    As many as the smallest group has, or as one can take of ``n_samples``; of some of
    the groups if there are more than these.
    """
    numbers, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_each = max(min(int(sizes.min()), n_samples // len(numbers)), 1)
    chosen = np.flatnonzero(_places_in_group(codes, rng) < n_each)
    by_group = chosen[np.argsort(codes[chosen], kind="stable")].reshape(-1, n_each)
    if len(by_group) <= n_samples:
        return by_group
    return by_group[np.sort(rng.choice(len(by_group), n_samples, replace=False))]


def _places_in_group(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the place of every sample in a random order of its group, from zero."""
    order = np.lexsort([rng.random(len(codes)), codes])
    sizes = np.bincount(codes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(len(codes), dtype=np.intp)
    places[order] = np.arange(len(codes)) - starts
    return places
