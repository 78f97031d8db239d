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


def debiased_alignments(products: OffDiagonalProducts) -> tuple[Float, Float]:
    """Return alignments, (m, m), and norms ``sqrt(u_pp)``, (m,).

    The alignments are ``u_pq / sqrt(u_pp u_qq)``, and zero if a norm is.
    """
    u = products.unbiased()
    squares = np.maximum(np.diag(u), 0)
    norms = np.sqrt(squares)
    has_norm = norms > 0
    divisors = np.where(has_norm, norms, 1)
    cosines = u / divisors
    cosines = cosines / divisors[:, None]
    alignments = np.clip(cosines, -1, 1)
    np.fill_diagonal(alignments, has_norm.astype(float))
    return alignments, norms


def effective_directions(products: OffDiagonalProducts, norms: Float) -> Float:
    """Return the squared traces of centered kernels over their squared norms, (m,).

    About the number of equal eigenvalues; infinite for a kernel that is zero off its
    diagonal.
    """
    n = products.n_samples
    n_pairs = max(n * (n - 1), 1)
    traces = products.traces / n
    sizes = traces - products.totals / n_pairs
    relative = divided(sizes, norms, otherwise=np.inf)
    return relative**2


def divided(
    values: Float,
    divisors: Float,
    *,
    otherwise: float = 0.0,
) -> Float:
    """Divide values by positive divisors, and replace those whose divisor is zero."""
    out = np.full(values.shape, otherwise)
    return np.divide(values, divisors, out=out, where=divisors > 0)


def permutation_scores(alignments: Float, n_samples: int) -> Float:
    """Return alignments in standard deviations over all permutations, (m, m)."""
    if n_samples < FEWEST_SAMPLES:
        return np.zeros_like(alignments)
    per_deviation = np.sqrt(n_samples * (n_samples - 3) / 2)
    return alignments * per_deviation


def leading_shares(entries: Array) -> Float:
    """Return the largest eigenvalues of U-centered kernels over their norms, (m,).

    One for a kernel of a single direction. The entries, (m, s, s), are U-centered in
    place.
    """
    n_kernels = entries.shape[0]
    norms = np.zeros(n_kernels)
    largest = np.zeros(n_kernels)
    for p in range(n_kernels):
        centered = u_centered(entries[p, :, :])
        norms[p] = sum_of_squares(centered) ** 0.5
        eigenvalues = eigvalsh(centered)
        largest[p] = np.abs(eigenvalues).max()
    shares = divided(largest, norms, otherwise=1.0)
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
    if others is None:
        others = shares
    largest = np.outer(shares, others)  # terms
    shape = 1 / (2 * largest**2)
    deviation = np.sqrt(shape)
    quantile = shape + scores * deviation
    return gammaincc(shape, np.maximum(quantile, 0))


def row_kurtoses(entries: Array) -> Float:
    """Return the excess kurtosis of the lengths of rows of U-centered kernels, (m,).

    Zero if they are normal, large if the weight of a kernel is on few samples, infinite
    for zeros.
    """
    xp = namespace(entries)
    squared = xp.sum(entries * entries, axis=2)
    squared = to_host(squared)
    n = squared.shape[1]
    totals = squared.sum(axis=1, keepdims=True)
    totals = np.broadcast_to(totals, squared.shape)
    shares = divided(squared, totals, otherwise=np.inf)
    sums = np.sum(shares**2, axis=1)
    return n * sums - 3


def are_localized(kurtoses: Float, n_samples: int) -> np.ndarray:
    """Return which pairs of kernels have too few samples for normal terms, (m, m).

    Over all permutations the excess kurtosis of the inner product of two vectors is
    close to the product of their kurtoses over n (E. J. G. Pitman, Supplement to the
    JRSS 4, 1937). If it exceeds 0.1, it is far from normal in its tail: by Edgeworth's
    expansion p-values of 1e-5 are then too small by a factor of two and more.
    """
    positive = np.clip(kurtoses, 0, n_samples)
    of_products = np.outer(positive, positive)
    return of_products > 0.1 * n_samples


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
        repeated = np.tile(given, (2, ORDERS, 1))
        orders = rng.permuted(repeated, axis=2)
    orders[:, 0] = given

    # By orders of the first kernel, its directions, and the same of the second.
    of_orders = V[orders[0]]
    of_other_orders = W[orders[1]]
    products = np.tensordot(of_orders, of_other_orders, axes=(1, 1))
    alike = np.einsum("airj,i,j->ar", products**2, of_first, of_second)
    # Equivalent orders differ by rounding.
    of_given = alike[0, 0]
    least = of_given * (1 - 1e-6)
    if least > 0:
        is_as_much = alike >= least
        return float(is_as_much.mean())
    return 1.0


def _leading_directions(K: Float) -> tuple[Float, Float]:
    """Return three leading eigenvectors by size, and their eigenvalues."""
    centered = u_centered(K.copy())
    values, vectors = eigh(centered)
    sizes = np.abs(values)
    falling = np.argsort(-sizes)
    leading = falling[:3]
    return vectors[:, leading], values[leading]
