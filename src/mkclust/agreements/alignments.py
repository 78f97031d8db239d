r"""What kernels share: unbiased alignments and their p-values.

The diagonal of a kernel says nothing about which samples are alike, but for kernels of
many dimensions it is most of ``Tr(K_p K_q)``, and makes noise look alike. The inner
products of kernels with zero diagonals that are centered accordingly (U-centered) are

.. math:: u_{pq} = \frac{1}{n (n - 3)} \left[ \mathrm{Tr}(\tilde K_p \tilde K_q)
    + \frac{1^\top \tilde K_p 1 \; 1^\top \tilde K_q 1}{(n - 1)(n - 2)}
    - \frac{2}{n - 2} 1^\top \tilde K_p \tilde K_q 1 \right]

whose mean over all permutations of one kernel's samples is exactly zero, and whose
variance is exactly :math:`2 u_{pp} u_{qq} / (n (n - 3))`.

References
----------
.. [1] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via
   Dependence Maximization. JMLR 13, 2012. Eq. 5.
"""

import math
from typing import Any

import numpy as np
from scipy.special import gammaincc

from mkclust.linalg import (
    eigh,
    eigvalsh,
    namespace,
    set_diagonal,
    sum_of_squares,
    to_host,
)
from mkclust.stack.compare import FEWEST_SAMPLES, OffDiagonalProducts
from mkclust.types import Array, Float

# Orders of the samples of each of two kernels, the given one included: more than
# 200,000 pairs, so that twice a p-value can be below 1e-5.
ORDERS = 448
# The p-value below which two views agree, times the square of the number of samples,
# ...
LIMIT_TIMES_SQUARE = 1.5
# ... if it is neither lower than the first of these nor higher than the second.
LIMITS = (1e-5, 1e-3)


def p_value_limit(n_samples: Any) -> Any:
    """Return the p-value below which two views agree.

    Chosen by benchmarks/agreement_limit.py. It does not depend on the number of views:
    a view that agrees with none must not exclude another.
    """
    return np.clip(LIMIT_TIMES_SQUARE / np.maximum(n_samples, 1.0) ** 2, *LIMITS)


def p_text(
    value: float,
    sign: str = "",
) -> str:
    """Return a p-value in one digit after a sign; as a bound if it is one.

    Those in the far tail are below 1e-16, and the smallest that shuffled samples give
    have "<=" as their sign.
    """
    if value < 1e-16:
        return "< 1e-16" if sign else "<1e-16"

    # The smallest p-value by shuffled samples, and twice it.
    least = 1 / ORDERS**2
    if math.isclose(value, least) or math.isclose(value, 2 * least):
        sign = "<= "
    return f"{sign}{value:.1g}"


def debiased_alignments(products: OffDiagonalProducts) -> tuple[Float, Float]:
    """Return alignments, (m, m), and norms ``sqrt(u_pp)``, (m,).

    The alignments are ``u_pq / sqrt(u_pp u_qq)``, and zero if a norm is.
    """
    u = products.unbiased()
    norms = np.sqrt(np.maximum(np.diag(u), 0))
    divisors = np.where(norms > 0, norms, 1)
    alignments = np.clip(u / divisors / divisors[:, None], -1, 1)
    np.fill_diagonal(alignments, norms > 0)
    return alignments, norms


def effective_directions(
    products: OffDiagonalProducts,
    norms: Float,
) -> Float:
    """Return the squared traces of centered kernels over their squared norms, (m,).

    About the number of equal eigenvalues; infinite for a kernel that is zero off its
    diagonal.
    """
    n = products.n_samples
    n_pairs = max(n * (n - 1), 1)
    sizes = products.traces / n - products.totals / n_pairs
    return divided(sizes, norms, otherwise=np.inf) ** 2


def divided(
    values: Float,
    divisors: Float,
    *,
    otherwise: float = 0.0,
) -> Float:
    """Divide values by positive divisors, and replace those whose divisor is zero."""
    out = np.full(values.shape, otherwise)
    return np.divide(
        values,
        divisors,
        out=out,
        where=divisors > 0,
    )


def permutation_scores(
    alignments: Float,
    n_samples: int,
) -> Float:
    """Return alignments in standard deviations over all permutations, (m, m)."""
    if n_samples < FEWEST_SAMPLES:
        return np.zeros_like(alignments)
    return alignments * np.sqrt(n_samples * (n_samples - 3) / 2)


def leading_shares(entries: Array) -> Float:
    """Return the largest eigenvalues of U-centered kernels over their norms, (m,).

    One for a kernel of a single direction. The entries, (m, s, s), are U-centered in
    place.
    """
    shares = np.ones(entries.shape[0])
    for p in range(len(shares)):
        centered = u_centered(entries[p, :, :])
        norm = sum_of_squares(centered) ** 0.5
        if norm > 0:
            shares[p] = np.abs(eigvalsh(centered)).max() / norm
    return np.minimum(shares, 1.0)


def u_centered(K: Array) -> Array:
    """U-center a kernel in place: zeros on its diagonal, row sums of zero, (s, s)."""
    xp = namespace(K)
    n = K.shape[0]
    if n < FEWEST_SAMPLES:
        return xp.zeros_like(K)
    set_diagonal(K, 0.0)
    sums = xp.sum(K, axis=1) / (n - 2)
    total = xp.sum(sums)
    K -= sums - total / (n - 1)
    K -= sums[:, None]
    set_diagonal(K, 0.0)
    return K


def p_values(
    scores: Float,
    shares: Float,
    others: Float | None = None,
) -> Float:
    r"""Return upper bounds of the p-values of alignments, (m, m).

    For many samples, an alignment of permuted kernels is a sum :math:`\sum_{ij}
    \lambda_i \mu_j (\xi_{ij}^2 - 1)` of the eigenvalues of both with standard normal
    :math:`\xi`. No such sum of unit variance has a larger moment generating function
    than one of equal terms, each as large as its largest. That sum has a gamma
    distribution. If the weight of both kernels is on few samples (`are_localized`) the
    terms are not normal: use `simulated_p_value`. Scores are those of
    `permutation_scores`, (m, m), and shares those of `leading_shares`; scores with
    other kernels, (m, o), need the shares of these.
    """
    largest = np.outer(shares, shares if others is None else others)  # terms
    shape = 1 / (2 * largest**2)
    quantile = shape + scores * np.sqrt(shape)
    return gammaincc(shape, np.maximum(quantile, 0))


def row_kurtoses(entries: Array) -> Float:
    """Return the excess kurtosis of the lengths of rows of U-centered kernels, (m,).

    Zero if they are normal, large if the weight of a kernel is on few samples, infinite
    for zeros.
    """
    xp = namespace(entries)
    squared = to_host(xp.sum(entries * entries, axis=2))
    sums = np.sum(squared**2, axis=1)
    totals = squared.sum(axis=1)
    return squared.shape[1] * divided(sums, totals**2, otherwise=np.inf) - 3


def are_localized(
    kurtoses: Float,
    n_samples: int,
) -> np.ndarray:
    """Return which pairs of kernels have too few samples for normal terms, (m, m).

    Over all permutations the excess kurtosis of the inner product of two vectors is
    close to the product of their kurtoses over n (E. J. G. Pitman, Supplement to the
    JRSS 4, 1937). If it exceeds 0.1, it is far from normal in its tail: by Edgeworth's
    expansion p-values of 1e-5 are then too small by a factor of two and more.
    """
    positive = np.clip(kurtoses, 0, n_samples)
    return np.outer(positive, positive) > 0.1 * n_samples


def simulated_p_value(
    first: Float,
    second: Float,
    orders: np.ndarray | None = None,
) -> float:
    """Return the p-value of the alignment of two kernels by permutations of samples.

    It is the share of pairs of orders, one for each kernel and the given pair included,
    in which the leading directions are at least as much alike as in the given pair.
    Permutations that are not all possible ones are given as orders, (2, ORDERS, s).
    """
    V, of_first = _leading_directions(first)
    W, of_second = _leading_directions(second)
    given = np.arange(len(V))
    if orders is None:
        rng = np.random.default_rng(0)
        orders = rng.permuted(np.tile(given, (2, ORDERS, 1)), axis=2)
    orders[:, 0] = given

    # By orders of the first kernel, its directions, and the same of the second.
    products = np.tensordot(V[orders[0]], W[orders[1]], axes=(1, 1))
    alike = np.einsum(
        "airj,i,j->ar",
        products**2,
        of_first,
        of_second,
    )
    least = alike[0, 0] * (1 - 1e-6)  # equivalent orders differ by rounding
    if least > 0:
        return float((alike >= least).mean())
    return 1.0


def _leading_directions(K: Float) -> tuple[Float, Float]:
    """Return three leading eigenvectors by size, and their eigenvalues."""
    values, vectors = eigh(u_centered(K.copy()))
    leading = np.argsort(-np.abs(values))[:3]
    return vectors[:, leading], values[leading]
