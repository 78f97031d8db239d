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
import pandas as pd

from mkclust.agreements.alignments import divided, u_centered
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
        return divided(self.products, self.deviations)

    @property
    def largest_scores(self) -> Float:
        """Return the scores that the inner products have at most, (m, m)."""
        norms = np.sqrt(np.diag(self.products))
        return divided(np.outer(norms, norms), self.deviations)


def compare_within_groups(
    entries: Float,
    groups: np.ndarray,
) -> WithinGroups:
    """Compare kernels by the differences within groups, by entries, (m, s, s)."""
    order = np.argsort(groups, kind="stable")
    rising = groups[order]
    _, starts, sizes = np.unique(rising, return_index=True, return_counts=True)
    sorted_entries = entries[:, order[:, None], order]
    centered = np.stack([_centered_blocks(K, starts, sizes) for K in sorted_entries])
    of_rows = np.add.reduceat(centered**2, starts, axis=1)
    of_blocks = np.add.reduceat(of_rows, starts, axis=2)
    squares = of_blocks.reshape(len(entries), -1)
    flat = centered.reshape(len(entries), -1)

    pairs = np.outer(sizes - 1, sizes - 1)
    np.fill_diagonal(pairs, sizes * (sizes - 3))
    # Blocks that leave nothing to permute are zero.
    divisors = np.maximum(pairs, 1).reshape(-1)
    variances = 2 * (squares / divisors) @ squares.T
    return WithinGroups(
        groups=rising,
        entries=centered,
        products=flat @ flat.T,
        deviations=np.sqrt(variances),
    )


def _centered_blocks(
    K: Float,
    starts: np.ndarray,
    sizes: np.ndarray,
) -> Float:
    """Return a kernel without the means of its blocks; rows are sorted by group."""
    column_means = np.add.reduceat(K, starts, axis=0) / sizes[:, None]
    K = K - np.repeat(column_means, sizes, axis=0)
    row_means = np.add.reduceat(K, starts, axis=1) / sizes
    K -= np.repeat(row_means, sizes, axis=1)
    for start, size in zip(starts, sizes, strict=True):
        own = slice(start, start + size)
        K[own, own] = u_centered(K[own, own].copy())
    return K


def orders_within_groups(
    groups: np.ndarray,
    n_orders: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return random orders within groups of samples sorted by group, (n_orders, s)."""
    keys = rng.random((n_orders, len(groups)))
    return np.argsort(groups + keys, axis=1)


def draw_members(
    groups: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return rising numbers of samples of whole groups, or parts of large groups."""
    numbers, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    # Less than eight samples say little of a group.
    most = max(n_samples // len(numbers), 8)
    places = rng.permutation(len(numbers))
    totals = np.cumsum(np.minimum(sizes, most)[places])
    is_drawn = np.isin(codes, places[totals <= n_samples])
    return np.flatnonzero(is_drawn & (_places_in_group(codes, rng) < most))


def draw_equally(
    groups: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return equally many random samples of every group, a row per group, (g, t).

    As many as the smallest group has, or as one can take of ``n_samples``; of some of
    the groups if there are more than these.
    """
    numbers, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_each = max(min(int(sizes.min()), n_samples // len(numbers)), 1)
    chosen = np.flatnonzero(_places_in_group(codes, rng) < n_each)
    order = np.argsort(codes[chosen], kind="stable")
    by_group = chosen[order].reshape(-1, n_each)
    if len(by_group) <= n_samples:
        return by_group
    drawn = rng.choice(len(by_group), n_samples, replace=False)
    return by_group[np.sort(drawn)]


def _places_in_group(
    codes: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the place of every sample in a random order of its group, from zero."""
    keys = pd.Series(rng.random(len(codes)))
    return keys.groupby(codes).rank(method="first").to_numpy(int) - 1
