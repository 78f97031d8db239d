"""Whether what kernels share may come from the order of their rows alone.

The p-values of `mkclust.engine.agreement` hold for rows that can be exchanged. Rows in time order
are not of that kind: in two independent series neighbors are alike, and so are the kernels of both.
Rows sorted by group have similar neighbors, too, but what kernels then share is lost if the rows of
one of them are shifted against those of the other. Shifted series are as much alike as before.

References
----------
.. [1] K. Chwialkowski, A. Gretton. A Kernel Independence Test for Random Processes. ICML 2014.
"""

import numpy as np

from mkclust.engine.agreement import (
    FEWEST_SAMPLES,
    chances,
    leading_shares,
    permutation_scores,
    u_centered,
)
from mkclust.types import Float

# Neighbors are compared within windows of so many rows, of which there are so many at most, and
# kernels with their rows shifted by up to so many.
WINDOW, WINDOWS, SHIFTS = 64, 4, 16


def neighboring_rows(n_rows: int) -> np.ndarray:
    """Return the indices of rows, rising: all, or of many those of a few windows."""
    if n_rows <= WINDOW * WINDOWS:
        return np.arange(n_rows)
    starts = np.linspace(0, n_rows - WINDOW, WINDOWS).astype(int)
    return (starts[:, None] + np.arange(WINDOW)).reshape(-1)


def neighbor_chances(entries: Float) -> Float:
    """Return how likely chance makes neighboring rows as alike as they are, (m,).

    Parameters
    ----------
    entries : ndarray of shape (m, s, s)
        The kernels, among the rows of `neighboring_rows`.

    Returns
    -------
    ndarray of shape (m,)
        The alignment of each kernel with one that links neighbors, within windows: groups of more
        rows than a window has do not count.
    """
    s = entries.shape[1]
    windows = np.array_split(np.arange(s), max(s // WINDOW, 1))
    scores, shares = np.zeros(len(entries)), np.zeros(len(entries) + 1)
    for rows in windows:
        links = np.eye(len(rows), k=1) + np.eye(len(rows), k=-1)
        kernels = np.stack([*entries[:, rows[:, None], rows], links])
        centered = np.stack([u_centered(kernel) for kernel in kernels])
        norms = np.linalg.norm(centered, axis=(1, 2))
        products = np.tensordot(centered[:-1], centered[-1])
        alignments = np.divide(
            products, norms[:-1] * norms[-1], out=np.zeros_like(products), where=norms[:-1] > 0
        )
        scores += permutation_scores(alignments, len(rows)) / np.sqrt(len(windows))
        shares = np.maximum(shares, leading_shares(centered))
    return chances(scores[:, None], shares[:-1], shares[-1:])[:, 0]


def alike_if_shifted(entries: Float, rows: np.ndarray) -> np.ndarray:
    """Return which kernels are as much alike if the rows of one are shifted, (m, m) of bool.

    Parameters
    ----------
    entries : ndarray of shape (m, s, s)
        The kernels.
    rows : ndarray of int of shape (s,)
        The indices of their rows, from `neighboring_rows`.
    """
    m, s = entries.shape[:2]
    most = min(SHIFTS, s // 4)
    middle = np.arange(most, s - most)
    middle = middle[rows[middle + most] - rows[middle - most] == 2 * most]
    if len(middle) < FEWEST_SAMPLES:
        return np.zeros((m, m), bool)

    def part(shift: int) -> Float:
        """Return the entries among rows that are shifted by so many."""
        return entries[:, (middle + shift)[:, None], middle + shift]

    # The inner product with a U-centered kernel does not depend on whether the other is one.
    fixed = np.stack([u_centered(kernel) for kernel in part(0)]).reshape(m, -1)
    products = [fixed @ part(shift).reshape(m, -1).T for shift in range(-most, most + 1)]
    is_exceeded = np.max(products, axis=0) > products[most]
    return is_exceeded | is_exceeded.T
