"""Views that share something or nothing, and what they agree on, by the definitions."""

import numpy as np

from conftest import blob_views


def one_hot(rng, n, levels):
    return np.eye(levels)[rng.integers(levels, size=n)]


def strangers(rng, n):
    """Return views that share nothing with anything: noise, and columns of 2 to 10
    levels."""
    noise = {"noise": rng.normal(size=(n, 8))}
    return noise | {
        f"{levels} levels": one_hot(rng, n, levels) for levels in (2, 3, 5, 10)
    }


def two_camps(rng, n=120, sizes=(2, 2)):
    """Return views of two structures that have nothing to do with each other."""
    camps = [rng.integers(3, size=n) for _ in sizes]
    views = {}
    for name, y, size in zip("ab", camps, sizes, strict=True):
        for i in range(size):
            views[f"{name}{i}"] = 3 * rng.normal(size=(3, 6))[y] + rng.normal(
                size=(n, 6)
            )
    return views, camps


def named_blobs(rng, n=60, k=3, strengths=(2, 2, 1.5)):
    """Return views of the same clusters in a dict, and the clusters."""
    views, y = blob_views(rng, n=n, k=k, strengths=strengths)
    return {f"real {i}": view for i, view in enumerate(views)}, y


def inserted(rng, views, others):
    """Return views with others at random places among them, the order of neither
    changed."""
    names = list(views)
    for name in others:
        names.insert(int(rng.integers(len(names) + 1)), name)
    return {name: (views | others)[name] for name in names}


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
