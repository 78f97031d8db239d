"""Whether what kernels share may come from the order of their rows alone.

The p-values of `mkclust.engine.agreement` hold for exchangeable rows. Rows in time order are not:
neighbors are alike in two independent series, and so are the kernels of both. Kernels of rows
sorted by group no longer agree if the rows of one are shifted against those of the other; shifted
series are as much alike as before (K. Chwialkowski, A. Gretton. A Kernel Independence Test for
Random Processes. ICML 2014).
"""

import numpy as np

from mkclust.engine.agreement import leading_shares, p_values, permutation_scores, u_centered
from mkclust.types import Float

# If there are many rows, those of a few windows are compared: rows per window and windows.
WINDOW, WINDOWS = 64, 4
# By how many the rows of one kernel are shifted, forward and backward.
SHIFTS = range(4, 17, 2)


def neighboring_rows(n_rows: int) -> np.ndarray:
    """Return the indices of rows, rising: all, or those of a few windows if many, (w, l)."""
    if n_rows <= WINDOW * WINDOWS:
        return np.arange(n_rows)[None]
    starts = np.linspace(0, n_rows - WINDOW, WINDOWS).astype(int)
    return starts[:, None] + np.arange(WINDOW)


def neighbor_p_values(entries: Float) -> Float:
    """Return the p-values of how alike neighboring rows are, (m,), by (m, s, s) entries.

    Each kernel is compared with one that links neighbors, within windows: larger groups of rows do
    not count. Each is taken to have one direction only, which makes the p-value larger.
    """
    s = entries.shape[1]
    windows = np.array_split(np.arange(s), max(s // WINDOW, 1))
    scores = np.zeros(len(entries))
    for rows in windows:
        part = slice(rows[0], rows[-1] + 1)
        kernels = np.stack([u_centered(K[part, part].copy()) for K in entries])
        links = u_centered(np.eye(len(rows), k=1) + np.eye(len(rows), k=-1))
        products, norms = np.tensordot(kernels, links), np.linalg.norm(kernels, axis=(1, 2))
        norms *= np.linalg.norm(links)
        alignments = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
        scores += permutation_scores(alignments, len(rows)) / np.sqrt(len(windows))
    return p_values(scores[:, None], np.ones(len(entries)), leading_shares(links[None]))[:, 0]


def alike_if_shifted(entries: Float, n_windows: int) -> np.ndarray:
    """Return which kernels are as much alike if the rows of one are shifted, (m, m) of bool."""
    m, length = len(entries), entries.shape[1] // n_windows
    shifts = [shift for shift in SHIFTS if 4 * shift <= length]
    if not shifts:
        return np.zeros((m, m), bool)
    whole = entries.reshape(m, n_windows, length, n_windows, length)

    def part(shift: int) -> Float:
        rows = slice(shifts[-1] + shift, length - shifts[-1] + shift)
        return whole[:, :, rows, :, rows].reshape(m, -1)

    n = n_windows * (length - 2 * shifts[-1])
    # The inner product with a U-centered kernel does not depend on whether the other is one.
    fixed = np.stack([u_centered(K) for K in part(0).reshape(m, n, n)]).reshape(m, -1)
    moved = [fixed @ part(sign * shift).T for shift in shifts for sign in (-1, 1)]
    # One shift may do as well by accident.
    is_exceeded = np.sum(moved > fixed @ part(0).T, axis=0) > 1
    return is_exceeded | is_exceeded.T
