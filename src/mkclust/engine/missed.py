"""Leading eigenvectors that were missed, searched for by random vectors.

Residuals cannot tell: a subspace that a matrix maps into itself has none, whatever lies outside
of it. A search ends in a bound on by how much a sum of eigenvalues may be too small. Let V hold
orthonormal vectors with Ritz values t_i and residuals R, and let no eigenvalue of the kernel K in
the complement of V exceed s. Then, for all tau > s and d_i > 0 with
``|R diag(d)^(-1/2)|^2 <= tau - s``,

    K <= V diag(t + d) V^T + tau (I - V V^T),

so the k largest eigenvalues of K sum to no more than the k largest of ``t_i + d_i`` and of tau as
often as there are further dimensions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from mkclust.engine.relaxation import (
    Relaxation,
    improve,
    precision_of_products,
    rayleigh_ritz,
    relax,
)
from mkclust.linalg import (
    astype,
    empty,
    gaussian_noise,
    is_on_accelerator,
    orthonormalize,
    side_by_side,
    to_device,
    to_host,
    top_eigenpairs,
)
from mkclust.linalg.operators import Operator
from mkclust.types import Array, Float

DOUBLE = float(np.finfo(np.float64).eps)
# Random vectors that a search starts from, and how many times each is multiplied at most. Where a
# product takes as long as the matrix takes to be read, more of them need fewer steps.
N_PROBES, N_PROBES_ON_ACCELERATOR, MAX_STEPS = 8, 32, 32
# The probability of having missed something at which a search may stop.
PROBABILITY = 1e-9
# The highest at which a search still counts as one.
HIGHEST_PROBABILITY = 1e-3
# The same between two steps of a method, where the last step is looked at more closely, and how
# many steps a search takes there.
PASSING_PROBABILITY, PASSING_STEPS = 1e-3, 8
# Ritz values this many roundings above an eigenvalue are equal to it.
ROUNDINGS = 16
# Distances, as shares of the k-th eigenvalue, at which what lies outside is tried: rising.
DISTANCES = 2.0 ** np.arange(-60, 0, 0.125)


def relax_from(
    operator: Operator, n_clusters: int, *, tol: float, start: Array | None
) -> Relaxation:
    """Solve the relaxed problem of one kernel, from the vectors of a similar one where known.

    Random vectors meet every eigenvector; those of another kernel may have missed some, which are
    searched for.

    Parameters
    ----------
    operator : Operator
        The kernel.
    n_clusters : int
        Number of eigenvectors wanted, k.
    tol : float
        Relative error allowed in the sum of the k largest eigenvalues.
    start : array of shape (n_samples, b) or None
        Orthonormal vectors to start from.

    Returns
    -------
    Relaxation
    """
    relaxation = relax(operator, n_clusters, tol=tol, start=start)
    if start is None or relaxation.residuals is None:
        return relaxation  # solved from random vectors, or on the whole space
    for seed in range(1, relaxation.vectors.shape[0]):
        room = max(tol * relaxation.value, 2 * relaxation.error)
        missed = find_missed_eigenvectors(
            operator,
            relaxation,
            room,
            seed=seed,
            probability=PASSING_PROBABILITY,
            max_steps=PASSING_STEPS,
        )
        if missed.vectors is None:
            break
        vectors = side_by_side(relaxation.vectors, missed.vectors)
        previous, relaxation = (
            relaxation,
            improve(operator, rayleigh_ritz(operator, vectors, n_clusters), tol),
        )
        if relaxation.value <= previous.value + tol * abs(previous.value):
            break  # what was found is rounding: in single precision it never ends
    return relaxation


@dataclass(frozen=True)
class MissedSearch:
    """What a search outside the eigenvectors known came to.

    Attributes
    ----------
    vectors : array of shape (n_samples, b) or None
        Orthonormal vectors that were missed, orthogonal to those known; None where there are none.
    probability : float
        If there are none: of having missed an eigenvalue that matters, at most.
    n_products : int
        How many blocks of vectors were multiplied.
    """

    vectors: Array | None
    probability: float
    n_products: int


def find_missed_eigenvectors(
    operator: Operator,
    relaxation: Relaxation,
    room: float,
    *,
    seed: int,
    probability: float = PROBABILITY,
    max_steps: int = MAX_STEPS,
    n_probes: int | None = None,
    rounding: float = DOUBLE,
) -> MissedSearch:
    r"""Search the complement of known vectors for eigenvalues that belong to the k largest.

    Block Lanczos steps from Gaussian vectors, orthogonal to all that is known: `miss_probability`
    says how likely they underestimate the largest eigenvalue that there is.

    Parameters
    ----------
    operator : Operator
        The kernel, positive semidefinite.
    relaxation : Relaxation
        What is known of its leading eigenvectors, guard vectors included.
    room : float
        By how much the eigenvalue sum may be too small. An eigenvalue matters if with it the sum
        may be too small by more.
    seed : int
        Of the random vectors: another one for every search of a solve.
    probability : float, default=PROBABILITY
        Of missing such an eigenvalue; the search stops below that.
    max_steps : int, default=MAX_STEPS
        When to give up.
    n_probes : int, default=None
        How many random vectors there are; None takes as many as are cheap where the vectors live.
    rounding : float, default=eps
        Relative rounding of the products.

    Returns
    -------
    MissedSearch
    """
    values, precision = relaxation.eigenvalues, precision_of_products(operator)
    V = astype(relaxation.vectors, precision)
    (n, n_leading), kth = V.shape, float(values[relaxation.n_clusters - 1])
    changed = operator.rounding_error()
    harmless = largest_outside(relaxation, room) - changed
    level = kth + ROUNDINGS * rounding * float(values[0]) + changed
    n_probes = n_probes or default_probes(V)
    new = orthonormalize(astype(gaussian_noise((n, n_probes), seed, V), precision), V)
    n_probes, n_outside = new.shape[1], n - n_leading
    rows = empty((n_leading + n_probes * max_steps, n), V, precision)
    rows[:n_leading, :], size = V.T, 0
    T = np.zeros((n_probes * max_steps, n_probes * max_steps))
    band, before = np.zeros((2 * n_probes, n_probes * max_steps)), 0
    for step in range(1, max_steps + 1):
        if not new.shape[1]:
            # All that can be reached was seen.
            is_harmless = _is_below(band[:, :size], harmless)
            return MissedSearch(None, PROBABILITY if is_harmless else 1.0, step - 1)
        image = operator @ new
        start, end = size, size + new.shape[1]
        seen, size = T[:end, :end], end
        known = rows[: n_leading + size, :]
        known[n_leading + start :, :] = new.T
        coefficients = known @ image
        seen[:, start:] = to_host(coefficients[n_leading:, :])
        seen[start:, :start] = seen[:start, start:].T
        # But for rounding, only neighbors of the blocks of vectors have anything in common.
        for column in range(before, end):
            band[: end - column, column] = seen[column:, column]
        before = start
        share = share_known(n_outside, step, probability, n_probes)
        if _is_below(band[:, :size], (1 - share) * harmless):
            return MissedSearch(None, probability, step)
        if not _is_below(band[:, :size], level):
            found, S = top_eigenpairs((seen + seen.T) / 2, min(n_probes, size), V)
            if found[0] > level:
                turn = to_device(S[:, found > level].T, V, precision)
                missed = astype((turn @ known[n_leading:, :]).T, "float64")
                if precision != "float64":
                    missed = orthonormalize(missed, relaxation.vectors)
                return MissedSearch(missed, 1.0, step)
        new = orthonormalize(image - known.T @ coefficients, known.T)
    largest = float(top_eigenpairs((seen + seen.T) / 2, 1, V)[0][0])
    share = 1 - largest / harmless if harmless > 0 else 0.0
    return MissedSearch(None, miss_probability(n_outside, max_steps, share, n_probes), max_steps)


def miss_probability(n: int, n_steps: int, share: float, n_probes: int) -> float:
    r"""Return how likely block Lanczos steps underestimate the largest eigenvalue by over a share.

    Let A be positive semidefinite with the largest eigenvalue one, u its eigenvector, X a Gaussian
    n x b matrix, and x = X X^T u / |X^T u|, of which all :math:`p(A) x` with polynomials p of
    degree q - 1 are in the space that q steps reach. With :math:`1 - e = \cosh^{-2} \varphi` and
    Chebyshev's :math:`p(t) = U_{2 q - 2}(\sqrt{t / (1 - e)})`, for which
    :math:`(1 - e - t) p(t)^2 \le 1 - e` below 1 - e and
    :math:`e\, p(1)^2 = (1 - e) \sinh^2((2 q - 1) \varphi)`, the Rayleigh quotient of
    :math:`p(A) x` is at least 1 - e, whatever the spectrum is, unless

    .. math:: |x - u u^T x|^2 > \sinh^2((2 q - 1) \varphi)\, (u^T x)^2 .

    The left side has a chi-squared distribution with n - 1 degrees of freedom, :math:`(u^T x)^2` an
    independent one with b. For b = 1 that is, but for a constant, a theorem of Kuczynski and
    Wozniakowski [1]_.

    Parameters
    ----------
    n : int
        Number of dimensions.
    n_steps : int
        Number of steps, q.
    share : float
        The share, e.
    n_probes : int
        Number of random vectors, b.

    Returns
    -------
    float

    References
    ----------
    .. [1] J. Kuczynski, H. Wozniakowski. Estimating the largest eigenvalue by the power and Lanczos
       algorithms with a random start. SIAM J. Matrix Anal. Appl. 13 (1992), Theorem 4.2.
    """
    if share <= 0:
        return 1.0
    with np.errstate(divide="ignore"):
        exponent = (2 * n_steps - 1) * np.arctanh(np.sqrt(min(share, 1.0)))
    share_of_one = (2 / (np.exp(exponent) + np.exp(-exponent))) ** 2 if exponent < 300 else 0.0
    return float(scipy.special.betainc(n_probes / 2, (n - 1) / 2, share_of_one))


def share_known(n: int, n_steps: int, probability: float, n_probes: int) -> float:
    """Return by which share of itself the largest eigenvalue is underestimated at most.

    That is the inverse of `miss_probability`. The starts that fail are the same whatever the number
    of steps, so a search may look after each of them, and stop at any.
    """
    return float(np.tanh(_angle(n, probability, n_probes) / (2 * n_steps - 1)) ** 2)


def _angle(n: int, probability: float, n_probes: int) -> float:
    """Return the hyperbolic angle, all steps together, that starts fall short of so seldom."""
    share_of_one = scipy.special.betaincinv(n_probes / 2, (n - 1) / 2, probability)
    return float(np.arccosh(share_of_one**-0.5))


def _is_below(band: Float, bound: float) -> bool:
    """Return whether no eigenvalue of a symmetric band matrix, its lower part, exceeds a bound."""
    if not band.shape[1] or not bound > 0:
        return not band.shape[1]
    shifted = -band[: band.shape[1]]
    shifted[0] += bound
    try:
        scipy.linalg.cholesky_banded(shifted, overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True


def n_steps_expected(relaxation: Relaxation, room: float) -> float:
    """Return about how many steps a search takes that finds nothing, infinity where it never tells.

    What lies outside the known vectors is taken to begin where they end.
    """
    V, outside = relaxation.vectors, float(relaxation.eigenvalues[-1])
    harmless = largest_outside(relaxation, room)
    if harmless <= max(outside, 0.0):
        return np.inf
    share = 1 - max(outside, 0.0) / harmless
    if share == 1:
        return 1.0
    angle = _angle(V.shape[0] - V.shape[1], PROBABILITY, default_probes(V))
    return float((angle / np.arctanh(np.sqrt(share)) + 1) / 2)


def default_probes(like: Array) -> int:
    """Return how many random vectors a search starts from."""
    return N_PROBES_ON_ACCELERATOR if is_on_accelerator(like) else N_PROBES


def largest_outside(relaxation: Relaxation, room: float) -> float:
    """Return up to where eigenvalues outside the known vectors leave the sum within the room."""
    k, values = relaxation.n_clusters, relaxation.eigenvalues
    R: Any = relaxation.residuals
    gram = to_host(R.T @ R)
    lengths = np.sqrt(np.maximum(np.diag(gram), 0))
    used = lengths > 0
    cosines = gram[np.ix_(used, used)] / np.outer(lengths[used], lengths[used])
    # Rises in proportion to squared residuals, since these are all but orthogonal.
    rises = lengths**2 * (float(np.linalg.eigvalsh(cosines)[-1]) if used.any() else 0.0)
    if room <= 0:
        return 0.0
    tau = float(values[k - 1]) + room / (2 * k)
    distances = tau * DISTANCES
    levels = np.full((len(distances), len(values) + k), tau)
    levels[:, k:] = values + rises / distances[:, None]
    sums = np.partition(levels, -k, axis=1)[:, -k:].sum(axis=1)
    fitting = np.flatnonzero(sums - relaxation.value <= room)
    return tau - float(distances[fitting[0]]) if fitting.size else 0.0
