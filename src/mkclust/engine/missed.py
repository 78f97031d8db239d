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
from sklearn.utils import check_random_state

from mkclust.engine.relaxation import (
    Relaxation,
    improve,
    precision_of_products,
    rayleigh_ritz,
    relax,
)
from mkclust.linalg import (
    MOST_DOUBT,
    astype,
    empty,
    gaussian_noise,
    is_on_accelerator,
    orthonormalize,
    orthonormalize_ahead,
    precision_of,
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
# Where a device computes ahead, a search is looked at from this share of its likely steps on.
LIKELY_SHARE = 0.95
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


def search_key(random_state: Any) -> int:
    """Return the key of the random vectors of searches, that of None always the same.

    A kernel made against the vectors that a search starts from can hide an eigenvector from it, so
    the probability of a search is that of kernels that do not depend on its key. A generator is
    looked at, not drawn from.
    """
    if random_state is None:
        return 0
    state: Any = check_random_state(random_state).get_state(legacy=False)["state"]
    entropy = [*state["key"].tolist(), state["pos"]]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)


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
    key: int = 0,
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
    key : int, default=0
        Of the random vectors, too: `search_key` of the random state of a solve.
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
    probes = orthonormalize(astype(gaussian_noise((n, n_probes), seed, V, key=key), precision), V)
    n_probes, n_outside = probes.shape[1], n - n_leading
    n_likely = _steps_likely(n_outside, float(values[-1]), harmless, n_probes)
    space = _Outside(operator, V, probes, max_steps)
    for step in range(1, max_steps + 1):
        if not space.expand():
            # All that can be reached was seen.
            is_harmless = _is_below(space.band, harmless)
            return MissedSearch(None, PROBABILITY if is_harmless else 1.0, step - 1)
        if space.is_ahead and not _is_time_to_look(step, n_likely, max_steps):
            continue
        space.look()
        share = share_known(n_outside, step, probability, n_probes)
        if _is_below(space.band, (1 - share) * harmless):
            return MissedSearch(None, probability, step)
        if not _is_below(space.band, level):
            found, S = top_eigenpairs(space.seen, min(n_probes, space.size), V)
            if found[0] > level:
                missed = astype(space.vectors(S[:, found > level]), "float64")
                if precision != "float64":
                    missed = orthonormalize(missed, relaxation.vectors)
                return MissedSearch(missed, 1.0, step)
    largest = float(top_eigenpairs(space.seen, 1, V)[0][0])
    share = 1 - largest / harmless if harmless > 0 else 0.0
    return MissedSearch(None, miss_probability(n_outside, max_steps, share, n_probes), max_steps)


class _Outside:
    """What block Lanczos steps from random vectors see of a matrix outside of known vectors.

    Attributes
    ----------
    size : int
        How many vectors the space has.
    is_ahead : bool
        Whether the last block was taken in before it was known to be orthonormal.
    """

    def __init__(self, operator: Operator, V: Array, probes: Array, max_steps: int):
        (n, self._n_known), size = V.shape, probes.shape[1] * max_steps
        self._operator, self._probes = operator, probes
        self._rows = empty((self._n_known + size, n), V, precision_of(V))
        self._rows[: self._n_known, :] = V.T
        self._T, self._band = np.zeros((size, size)), np.zeros((2 * probes.shape[1], size))
        self._is_careful, self._n_steps = False, 0
        self._begin()

    def _begin(self) -> None:
        """Forget all steps."""
        self.size, self.is_ahead = 0, False
        self._image: Any = None
        self._shares: Any = None
        self._before, self._band[:] = 0, 0.0
        self._unseen: list[tuple[Array, Array | None]] = []

    @property
    def seen(self) -> Float:
        """The matrix as seen from the space, (r, r)."""
        T = self._T[: self.size, : self.size]
        return (T + T.T) / 2

    @property
    def band(self) -> Float:
        """The diagonals of the same, from the main one down, that are more than rounding."""
        return self._band[:, : self.size]

    def vectors(self, S: Float) -> Array:
        """Return vectors over the samples, given as combinations of those of the space."""
        turn = to_device(S.T, self._rows, precision_of(self._rows))
        return (turn @ self._rows[self._n_known : self._n_known + self.size, :]).T

    def expand(self) -> bool:
        """Take in another block, by one product; return whether there was anything new."""
        new, doubts = self._next_block()
        if not new.shape[1]:
            return False
        start, self.size = self.size, self.size + new.shape[1]
        known = self._rows[: self._n_known + self.size, :]
        known[self._n_known + start :, :] = new.T
        self._image = self._operator @ new
        self._shares = known @ self._image
        self._unseen.append((self._shares[self._n_known :, :], doubts))
        self.is_ahead = doubts is not None
        self._n_steps += 1
        return True

    def _next_block(self) -> tuple[Array, Array | None]:
        """Return what the last product has outside of all that is known, and doubts about it."""
        if self._shares is None:
            return self._probes, None
        known = self._rows[: self._n_known + self.size, :].T
        rest = self._image - known @ self._shares
        ahead = None if self._is_careful else orthonormalize_ahead(rest, known)
        return (orthonormalize(rest, known), None) if ahead is None else ahead

    def look(self) -> None:
        """Bring what was seen since the last look to the host."""
        together = [to_host(part) for pair in self._unseen for part in pair if part is not None]
        if any(part.ndim == 1 and not np.all(part <= MOST_DOUBT) for part in together):
            self._repeat()
            return
        for shares in together:
            if shares.ndim == 2:
                self._take_note(shares)
        self._unseen = []

    def _repeat(self) -> None:
        """Take all steps once more: a block lost directions, and from now on each is looked at."""
        n_steps, self._n_steps, self._is_careful = self._n_steps, 0, True
        self._begin()
        while self._n_steps < n_steps and self.expand():
            pass
        self.look()

    def _take_note(self, block: Float) -> None:
        """Fill in what the matrix is as seen from the space, the last vectors of which are new."""
        end, start = block.shape[0], block.shape[0] - block.shape[1]
        self._T[:end, start:end] = block
        self._T[start:end, :start] = block[:start].T
        # But for rounding, only neighbors of the blocks of vectors have anything in common.
        for column in range(self._before, end):
            self._band[: end - column, column] = self._T[column:end, column]
        self._before = start


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
    return _steps_likely(V.shape[0] - V.shape[1], outside, harmless, default_probes(V))


def _is_time_to_look(step: int, n_likely: float, max_steps: int) -> bool:
    """Return whether a step is among those that a device is made to wait for."""
    if step == max_steps or step >= LIKELY_SHARE * n_likely:
        return True
    # What was missed shows early, and it may take fewer steps than what is likely.
    return step == n_likely // 2 if n_likely <= max_steps else not step & (step - 1)


def _steps_likely(n: int, outside: float, harmless: float, n_probes: int) -> float:
    """Return after how many steps it is known that an eigenvalue is harmless."""
    share = 1 - max(outside, 0.0) / harmless if harmless > 0 else 0.0
    if share <= 0:
        return np.inf
    if share == 1:
        return 1.0
    return float((_angle(n, PROBABILITY, n_probes) / np.arctanh(np.sqrt(share)) + 1) / 2)


def default_probes(like: Array) -> int:
    """Return how many random vectors a search starts from."""
    return N_PROBES_ON_ACCELERATOR if is_on_accelerator(like) else N_PROBES


def largest_outside(relaxation: Relaxation, room: float) -> float:
    """Return up to where eigenvalues outside the known vectors leave the sum within the room."""
    k, values = relaxation.n_clusters, relaxation.eigenvalues
    if room <= 0:
        return 0.0
    tau = float(values[k - 1]) + room / (2 * k)
    distances = tau * DISTANCES
    levels = np.full((len(distances), len(values) + k), tau)
    levels[:, k:] = values + relaxation.rises / distances[:, None]
    sums = np.partition(levels, -k, axis=1)[:, -k:].sum(axis=1)
    fitting = np.flatnonzero(sums - relaxation.value <= room)
    return tau - float(distances[fitting[0]]) if fitting.size else 0.0
