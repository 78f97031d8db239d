"""Whether what kernels share may come from the order of their rows alone.

The p-values of `mkclust.agreements.alignments` hold for exchangeable rows. Rows in time
order are not: two independent series, trends or periods are alike, because both follow
their rows. Two questions tell such an order from groups that rows are sorted by.

**Does a kernel follow its rows?** It is compared with a kernel that links neighboring
rows, and with cosines along the rows, of which the slowest is a trend. Exchangeable
rows follow none. In groups that take turns, rows at some distance are more alike than
neighbors.

**Does it matter which rows are paired?** Kernels of rows sorted by group agree less if
the rows of one are shifted against those of the other; shifted series are as much alike
as before (K. Chwialkowski, A. Gretton. A Kernel Independence Test for Random Processes.
ICML 2014).

Both are asked on two scales if there are many rows: for means of rows that are spread
over all of them, and for neighbors within a few windows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct

from mkclust.agreements.alignments import (
    divided,
    leading_shares,
    p_values,
    permutation_scores,
    u_centered,
)
from mkclust.types import Float

# Of many rows those of a few windows are compared: rows per window, and windows.
WINDOW = 64
WINDOWS = 4


@dataclass(frozen=True)
class Rows:
    """Kernels among rows in their order, in windows."""

    entries: Float  # (m, s, s)
    n_windows: int = 1

    @property
    def length(self) -> int:
        """Rows per window."""
        return int(self.entries.shape[1]) // self.n_windows

    def centered(self) -> list[Float]:
        """Return the U-centered kernels of every window, (m, l, l), of norm one."""
        starts = range(0, self.n_windows * self.length, self.length)
        parts = [slice(start, start + self.length) for start in starts]
        return [
            np.stack([_as_much_of_every_row(K[part, part]) for K in self.entries])
            for part in parts
        ]


def _as_much_of_every_row(K: Float) -> Float:
    """Return a U-centered kernel of norm one, of about equally long rows, (l, l)."""
    # Some outliers that happen to be neighbors are no order.
    K = u_centered(K.copy())
    lengths = np.sqrt(np.linalg.norm(K, axis=1))
    scale = divided(np.ones_like(lengths), lengths)
    K = u_centered(K * scale * scale[:, None])
    return K / (np.linalg.norm(K) or 1.0)


def neighboring_rows(n_rows: int) -> np.ndarray:
    """Return the indices of the rows of a few windows, rising, (w, l)."""
    starts = np.linspace(0, n_rows - WINDOW, WINDOWS).astype(int)
    return starts[:, None] + np.arange(WINDOW)


def spread_rows(n_rows: int) -> np.ndarray:
    """Return the indices of all rows, (n, 1), or of neighbors to average, (g, t)."""
    most = WINDOW * WINDOWS
    n_averaged = min(-(-n_rows // most), 4)
    n_means = min(n_rows // n_averaged, most)
    starts = np.arange(n_means) * n_rows // n_means
    return starts[:, None] + np.arange(n_averaged)


def order_p_values(rows: Rows) -> Float:
    """Return the p-values of how much each kernel follows its rows, (m,).

    The smaller one for neighbors, and for all cosines along the rows of a window, with
    regard to the number of these tests; one if groups take turns. A kernel is taken to
    have one direction only, which makes a p-value larger.
    """
    m = len(rows.entries)
    length = rows.length
    next_rows = np.eye(length, k=1)
    links = u_centered(next_rows + next_rows.T)
    cosines = dct(np.eye(length), axis=0, norm="ortho")[1:]
    # The norm of the U-centered c c^T: its diagonal is c^2, and its row sums are zero.
    of_diagonals = np.sum(cosines**4, axis=1) * length / (length - 2)
    n_others = (length - 1) * (length - 2)
    norms = np.sqrt(1 - of_diagonals + 1 / n_others)

    # Neighbors, and the distances of rows that are more alike if groups take turns.
    distances = range(1, 17)
    norm_of_links = np.linalg.norm(links)
    at_distance = np.zeros((m, len(distances)))
    along = np.zeros((m, length - 1))
    for K in rows.centered():
        for place, distance in enumerate(distances):
            sums = np.trace(
                K,
                offset=distance,
                axis1=1,
                axis2=2,
            )
            at_distance[:, place] += 2 * sums / norm_of_links
        turned = K @ cosines.T
        along += np.einsum("ki,pik->pk", cosines, turned) / norms
    deviation = np.sqrt(rows.n_windows)
    at_distance = permutation_scores(at_distance, length) / deviation
    along = permutation_scores(along, length) / deviation

    ones = np.ones(m)
    of_neighbors = p_values(at_distance[:, :1], ones, leading_shares(links[None]))
    # Of several windows, as many equal directions.
    shares = np.full(length - 1, rows.n_windows**-0.5)
    least = (length - 1) * p_values(along, ones, shares).min(axis=1)
    smaller = np.minimum(of_neighbors[:, 0], least)

    # Neighbors are alike at the level of 5 %, and rows at no distance clearly more: by
    # twice the score of neighbors and two deviations.
    neighbors = at_distance[:, 0]
    others = at_distance[:, 1:].max(axis=1)
    are_most_alike = others < 2 * neighbors + 2
    follows = (neighbors > 1.64) & are_most_alike
    return np.where(follows, np.minimum(2 * smaller, 1), 1)


def alike_if_shifted(
    rows: Rows,
    share: float = 0.95,
    n_accidents: int = 2,
) -> np.ndarray:
    """Return which kernels are as much alike if the rows of one are shifted, (m, m).

    That is, if their inner product is this share of the given one, for more shifts than
    may do as well by accident.
    """
    n_windows = rows.n_windows
    length = rows.length
    m = len(rows.entries)
    shifts = range(4, min(16, length // 4) + 1, 2)
    if not shifts:
        return np.zeros((m, m), bool)
    whole = rows.entries.reshape(
        m,
        n_windows,
        length,
        n_windows,
        length,
    )
    most = shifts[-1]

    def part(shift: int) -> Float:
        """Return the entries without the first and last rows of windows, (m, n^2)."""
        kept = slice(most + shift, length - most + shift)
        return whole[:, :, kept, :, kept].reshape(m, -1)

    unshifted = part(0)
    n = n_windows * (length - 2 * most)
    kernels = unshifted.reshape(m, n, n)
    # Whether the other kernel is U-centered, too, does not change the inner product.
    centered = [u_centered(K.copy()) for K in kernels]
    fixed = np.stack(centered).reshape(m, -1)
    least = share * (fixed @ unshifted.T)
    both_ways = [*shifts, *(-shift for shift in shifts)]
    alike = [fixed @ part(shift).T > least for shift in both_ways]
    are_alike = np.sum(alike, axis=0) > n_accidents
    return are_alike | are_alike.T


def may_be_by_order(
    at_large: Rows,
    in_windows: Rows | None = None,
) -> np.ndarray:
    """Return which kernels may be alike by the order of their rows alone, (m, m).

    On one of the scales, both follow their rows, and are as much alike if shifted.
    """
    n_scales = 1 if in_windows is None else 2

    def are_ordered(rows: Rows) -> np.ndarray:
        """Return for which pairs both kernels follow their rows, (m, m)."""
        # Kernels of exchangeable rows seem to with this probability at most.
        ordered = order_p_values(rows) * n_scales < 1e-5
        return np.outer(ordered, ordered)

    at_large_ordered = are_ordered(at_large)
    found = at_large_ordered
    if found.any():
        found = found & alike_if_shifted(at_large)
    if in_windows is None:
        return found

    ordered = are_ordered(in_windows)
    if ordered.any():
        # If rows that are ordered at large are sorted by groups, most windows lie
        # within a group, and a few borders between groups decide.
        clearly = alike_if_shifted(in_windows, share=1.1, n_accidents=4)
        alike = alike_if_shifted(in_windows)
        found = found | (ordered & np.where(at_large_ordered, clearly, alike))
    return found
