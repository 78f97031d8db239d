"""Distances passed as similarities: how they are recognized, and what to do with them."""

import numpy as np

from mkclust.linalg import eigvalsh, namespace, to_host
from mkclust.stack.kernel import Kernel
from mkclust.types import Float

# Samples among which entries are examined.
EXAMINED = 128
# The largest self-distance by rounding, which squares and differences make large, as a share of the
# other distances.
SELF_DISTANCE = 1e-2
# A matrix with this share of zeros is a graph; only duplicates are at distance zero.
MOST_ZEROS = 0.5
# Some dissimilarities used in practice violate the triangle inequality for this share of triples.
MOST_VIOLATIONS = 0.01
# Skewness of eigenvalues (their cubes over their squares to the power 1.5) beyond chance, in
# units of n^-1.5: for a matrix of independent noise its standard deviation is sqrt(6).
CHANCE = 8.0


def refuse_distances(kernel: Kernel, who: str) -> None:
    """Raise if a kernel holds distances, plain or squared, rather than similarities.

    Distances are positive with a zero diagonal, and they, or their square roots, satisfy the
    triangle inequality; so may similarities without their diagonal. But the leading directions of
    centered similarities have positive eigenvalues, those of centered distances negative ones,
    whatever the diagonal.
    """
    n, diagonal = kernel.n_samples, kernel.diagonal()
    if n < 3:
        return
    samples = np.sort(np.random.default_rng(0).choice(n, min(n, EXAMINED), replace=False))
    xp = namespace(diagonal)
    largest_self = float(xp.max(xp.abs(diagonal)))
    # Most kernels have a diagonal, which two rows are enough to see.
    if largest_self > 2 * SELF_DISTANCE * float(np.abs(to_host(kernel.rows(samples[:2]))).max()):
        return
    D = to_host(kernel.rows(samples))[:, samples]
    apart = D[~np.eye(len(D), dtype=bool)]
    rounding = SELF_DISTANCE * float(np.median(apart))
    if rounding <= 0 or apart.min() < -rounding or largest_self > rounding:
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


def _violations(D: Float) -> float:
    """Return the share of triples of samples in which the way through the third is shorter."""
    slack = 1e-6 * D.max()
    return float(np.mean([np.mean(via[:, None] + via + slack < D) for via in D]))


def _leads_downward(D: Float) -> bool:
    """Return whether the leading eigenvalues are negative, the mean and the diagonal aside."""
    values = eigvalsh(D - D.mean(axis=0) - D.mean(axis=1)[:, None] + D.mean())
    # Centering has one eigenvalue of zero; a change of the diagonal moves the others alike.
    values = np.delete(values, np.argmin(np.abs(values)))
    values = values - values.mean()
    skewness = np.sum(values**3) / max(np.sum(values**2), np.finfo(float).tiny) ** 1.5
    return bool(skewness < -CHANCE * len(D) ** -1.5)
