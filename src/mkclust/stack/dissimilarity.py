"""Distances taken for similarities: how they are told apart, and what to do with them."""

from functools import lru_cache

import numpy as np

from mkclust.linalg import eigvalsh, namespace, to_host
from mkclust.stack.kernel import Kernel
from mkclust.types import Float

# Samples among which entries are looked at.
LOOKED_AT = 128
# Self-distances are zero but for rounding, which squares and differences make large.
SELF_DISTANCE = 1e-2
# Of a graph most entries are zero; among distances only those of samples that are alike.
MOST_ZEROS = 0.5
# A matrix of independent noise has eigenvalues as far up as down, but for a skewness (the sum of
# cubes by that of squares to the power 1.5) with a standard deviation of sqrt(6) n^-1.5.
CHANCE = 8.0
# Some dissimilarities of practice are almost metrics.
MOST_VIOLATIONS = 0.01


def refuse_distances(kernel: Kernel, who: str) -> None:
    """Raise if a symmetric matrix holds distances, plain or squared, rather than similarities.

    Both hypotheses have signs. Distances are positive with a zero diagonal, and they, or their
    square roots, keep the triangle inequality; so may similarities with their diagonal taken out.
    But the leading directions of centered similarities have positive eigenvalues, those of
    centered distances negative ones, whatever the diagonal.
    """
    n, diagonal = kernel.n_samples, kernel.diagonal()
    if n < 3:
        return
    rows = _looked_at(n)
    # Most kernels have a diagonal, which two rows tell: more of them need not come to the host.
    largest, xp = float(np.abs(to_host(kernel.rows(rows[:2]))).max()), namespace(diagonal)
    if float(xp.max(xp.abs(diagonal))) > 2 * SELF_DISTANCE * largest:
        return
    D = to_host(kernel.rows(rows))[:, rows]
    apart = D[~np.eye(len(D), dtype=bool)]
    typical = float(np.median(apart))
    rounding = SELF_DISTANCE * typical
    if typical <= 0 or apart.min() < -rounding or float(xp.max(xp.abs(diagonal))) > rounding:
        return
    D = np.maximum(D - np.diag(D.diagonal()), 0)
    if np.mean(apart <= 0) >= MOST_ZEROS or _violations(np.sqrt(D)) > MOST_VIOLATIONS:
        return
    if not _leads_downward(D):
        return
    squared = _violations(D) > MOST_VIOLATIONS
    distances = "np.sqrt(D)" if squared else "these distances"
    power, width = ("", "np.median(D)") if squared else ("**2", "np.median(D)**2")
    raise ValueError(
        f"{who} looks like {'squared ' * squared}distances, not similarities: its diagonal "
        "is zero, and its other entries are positive and larger for samples that are "
        f"further apart; pass a kernel, such as np.exp(-D{power} / (2 * {width})), or with "
        f"center=True, for Euclidean distances, -D{power} / 2; "
        f"or have the kernel made of {distances}: kernels='from_distances' for "
        f"all matrices, kernels={{NAME: 'from_distances'}} for one among views"
    )


@lru_cache(maxsize=1)
def _looked_at(n: int) -> np.ndarray:
    """Return the numbers of the samples that are looked at, rising, the same for all kernels."""
    return np.sort(np.random.default_rng(0).choice(n, min(n, LOOKED_AT), replace=False))


def _violations(D: Float) -> float:
    """Return the share of triples of samples in which the way by the third one is shorter."""
    slack = 1e-6 * D.max()
    return float(np.mean([np.mean(via[:, None] + via + slack < D) for via in D]))


def _leads_downward(D: Float) -> bool:
    """Return whether the leading eigenvalues are negative, the mean and the diagonal aside."""
    centered = D - D.mean(axis=0) - D.mean(axis=1)[:, None] + D.mean()
    values = eigvalsh(centered)
    # Centering has one eigenvalue of zero; a change of the diagonal moves the others alike.
    values = np.delete(values, np.argmin(np.abs(values)))
    values = values - values.mean()
    skewness = np.sum(values**3) / max(np.sum(values**2), np.finfo(float).tiny) ** 1.5
    return bool(skewness < -CHANCE * len(D) ** -1.5)
