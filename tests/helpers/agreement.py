"""What kernels agree on, by the definitions."""

import numpy as np


def written_out_agreement(entries):
    """Return C and d of kernels by the formula, trace by trace."""
    m, n = len(entries), len(entries[0])
    hollow, ones, u = (
        [K - np.diag(np.diag(K)) for K in entries],
        np.ones(n),
        np.zeros((m, m)),
    )
    for p, A in enumerate(hollow):
        for q, B in enumerate(hollow):
            totals = (ones @ A @ ones) * (ones @ B @ ones) / ((n - 1) * (n - 2))
            u[p, q] = np.trace(A @ B) + totals - 2 / (n - 2) * (ones @ A @ B @ ones)
    u /= n * (n - 3)
    norms = np.sqrt(np.diag(u))
    return u / np.outer(norms, norms), norms


def written_out_compromise(entries):
    """Return the compromise of kernels that all agree, no two of them copies, and its
    weights.

    Equal weights, but less for one that agrees less than 0.6 times as much as the
    median one, and for one of less than twelve effective directions.
    """
    alignments, norms = written_out_agreement(entries)
    sums = np.maximum(alignments - np.diag(np.diag(alignments)), 0).sum(axis=1)
    relative = sums / np.median(sums)
    n = len(entries[0])
    sizes = np.array(
        [np.trace(K) / n - (K.sum() - np.trace(K)) / n / (n - 1) for K in entries]
    )
    weights = np.where(relative < 0.6, relative, 1) * np.minimum(
        sizes**2 / norms**2 / 3, 1
    )
    coefficients = weights / norms
    coefficients = coefficients / coefficients.sum()
    return np.tensordot(coefficients, entries, 1), weights / weights.sum(), coefficients
