"""Certificates: whether a sum of leading eigenvalues is known, by a search or by a proof.

Residuals cannot tell: an invariant subspace has none, whatever lies outside of it. Let
V hold orthonormal vectors with Ritz values t_i and residuals R, and let no eigenvalue
of the kernel K in the complement of V exceed s. Then, for all tau > s, by the Schur
complement,

    K <= V (diag(t) + R^T R / (tau - s)) V^T + tau (I - V V^T),

so the k largest eigenvalues of K sum to no more than the k largest of the matrix in
parentheses and of copies of tau. A search bounds s but for a stated probability; a
proof shows by a Cholesky factorization that a right side of this kind minus K is
positive semidefinite.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.special
from sklearn.utils import check_random_state

from mkclust.engine.eigen import EPS, Krylov, Relaxation, improve, rayleigh_ritz, relax
from mkclust.linalg import (
    astype,
    eigh,
    eigvalsh,
    free_bytes,
    has_cholesky,
    is_on_accelerator,
    namespace,
    orthonormalize,
    precision_of,
    random_normal,
    set_diagonal,
    side_by_side,
    to_device,
    to_host,
)
from mkclust.linalg.memory import fits
from mkclust.types import Array, Float

# The probability of having missed an eigenvalue that matters at which a search stops.
PROBABILITY = 1e-9
# The highest probability at which a search still counts as one.
HIGHEST_PROBABILITY = 1e-3
# Random vectors that a search starts from, and how many times each is multiplied at
# most.
PROBES, MAX_STEPS = 16, 24
# Random vectors if each product reads all kernels anew: more vectors take little
# longer.
STREAMED_PROBES = 32
# Steps after which a search stops that will not be conclusive, if each reads all
# kernels anew.
STREAMED_STEPS = 6
# Steps of a search between two iterations of a method; the last iteration is certified.
PASSING_STEPS = 8
# Most samples with which a proof takes less time than a search, on a host and on an
# accelerator.
PROVED_FIRST, PROVED_FIRST_ON_ACCELERATOR = 480, 12_000
# Most samples of streamed kernels whose mix is held, after one pass over them.
MOST_HELD = 2000
# The share of the allowed error that is claimed: a safety factor against rounding.
CLAIMED = 0.99
# Ritz values this many roundings above an eigenvalue are equal to it.
ROUNDINGS = 16
# A sum of eigenvalues may be too small by this many roundings of the kernels' entries.
SUM_ROUNDINGS = 2


@dataclass(frozen=True)
class Certificate:
    """How the eigenvalue sum behind an upper bound is known; "open" if the solver stopped early."""

    kind: Literal["proved", "searched", "open"]
    error: float  # by how much the sum of eigenvalues found may be too small at most
    # Upper bound on the probability that a search missed a relevant eigenvalue: zero if
    # proved.
    probability: float = 0.0

    def __str__(self) -> str:
        if self.kind == "searched":
            return f"searched (missed with probability at most {self.probability:.0e})"
        return self.kind

    def is_within(self, allowed_error: float) -> bool:
        """Return whether the sum is known, but for an error that is allowed at most."""
        return self.kind != "open" and self.error <= allowed_error


class MissedSearch(NamedTuple):
    """The result of a search outside the known eigenvectors."""

    # Orthonormal ones that were missed, orthogonal to those known.
    vectors: Array | None
    # If there are none: of having missed a relevant eigenvalue, at most.
    probability: float
    n_products: int  # the number of blocks of vectors that were multiplied
    largest: float = np.inf  # the largest Ritz value outside of the known vectors


class Verdict(NamedTuple):
    """A certificate, if there is one, vectors that were missed, and how often kernels were read."""

    certificate: Certificate | None
    missed: Array | None
    n_passes: int
    # What is certain of a larger error, if there is no certificate of the one allowed.
    weaker: Certificate | None = None


def rounding_of_entries(stack: Any) -> float:
    """Return the relative rounding of the entries of the kernels."""
    return max(EPS, *(K.precision for K in stack.kernels))


def certify(
    stack: Any,
    coefficients: Float,
    relaxation: Relaxation,
    allowed_error: float,
    *,
    prove: bool | Literal["auto"] = "auto",
    key: int = 0,
    seed: int = 1,
    mix: Any = None,
    mix_error: float = 0.0,
) -> Verdict:
    """Prove that no leading eigenvector of a mix was missed, or search for those that were.

    By default a proof comes first if it is faster, and last if a search is inconclusive
    and the mix is in memory; ``prove=True`` proves in any case, False only searches.
    The search has the other options of `search_missed`. If neither is conclusive, a
    weaker certificate states the error that the search does exclude.
    """
    if relaxation.residuals is None:  # of a dense eigendecomposition
        return Verdict(Certificate("proved", relaxation.error), None, 0)
    n, rounding = stack.n_samples, rounding_of_entries(stack)
    # Eigenvalues found by products in single precision may be too small for that alone.
    rounded = SUM_ROUNDINGS * rounding * relaxation.value if rounding > EPS else 0.0
    claimed, V = CLAIMED * allowed_error, relaxation.vectors
    if claimed <= rounded:
        return Verdict(None, None, 0)
    has_room = fits(16 * n**2, available=free_bytes(V))
    in_memory = stack.in_memory or (n <= MOST_HELD and has_room)
    can_prove = prove == "auto" and in_memory and has_room
    # A search in streamed kernels takes several passes over them, a proof one.
    is_fast = n <= (
        PROVED_FIRST_ON_ACCELERATOR if is_on_accelerator(V) else PROVED_FIRST
    )
    is_fast |= not stack.in_memory
    proves_first = prove is True or (can_prove and is_fast)

    def has_proof() -> bool:
        return is_proved(stack.mix(coefficients).dense(), relaxation, claimed)

    proved, n_passes = Certificate("proved", claimed), int(proves_first)
    if proves_first and has_proof():
        return Verdict(proved, None, n_passes)
    if mix is None:
        mix, n_passes = stack.mix(coefficients), n_passes + in_memory
        mix = mix.dense() if in_memory and not stack.in_memory else mix
    n_probes = PROBES if in_memory else STREAMED_PROBES
    found = search_missed(
        mix,
        relaxation,
        claimed - rounded,
        seed=seed,
        key=key,
        rounding=rounding,
        n_probes=n_probes,
        sure_steps=MAX_STEPS if in_memory else STREAMED_STEPS,
        mix_error=mix_error,
    )
    n_passes += 0 if in_memory else found.n_products

    if found.vectors is not None:
        return Verdict(None, found.vectors, n_passes)

    if found.probability > PROBABILITY and can_prove and not proves_first:
        n_passes += 1
        if has_proof():
            return Verdict(proved, None, n_passes)

    if found.probability <= HIGHEST_PROBABILITY:
        searched = Certificate("searched", claimed, found.probability)
        return Verdict(searched, None, n_passes)

    highest = highest_missed(found, n - V.shape[1], n_probes) + mix_error
    error = error_if_below(relaxation, highest) + rounded
    weaker = Certificate("searched", error, HIGHEST_PROBABILITY)
    return Verdict(None, None, n_passes, weaker)


def is_proved(M: Array, relaxation: Relaxation, allowed_error: float) -> bool:
    r"""Return whether the eigenvalue sum is proved to be too small by the allowed error at most.

    A Cholesky factorization of

    .. math:: \tau I + V \mathrm{diag}(t_i + d_i - \tau) V^\top - K

    over the k leading vectors that succeeds shows that this matrix is positive
    semidefinite, and so that the k largest eigenvalues of K sum to at most
    :math:`\sum_{i \le k} t_i + d_i`. What the rounding of the factorization may hide
    [1]_ is taken from tau beforehand. M holds K in double precision, and is
    overwritten.

    References
    ----------
    .. [1] S. M. Rump. Verification of positive definiteness. BIT 46 (2006), Theorem 2.3.
    """
    k, n, xp = relaxation.n_clusters, M.shape[0], namespace(M)
    V, R = relaxation.vectors[:, :k], relaxation.residuals[:, :k]
    # As M has them: those known may have been rounded to single precision.
    values = to_host(xp.sum(V * (M @ V), axis=0))
    underestimate = float(values.sum()) - relaxation.value
    # V is orthonormal up to rounding, which can lengthen the added part by this share.
    stretch = float(np.linalg.norm(to_host(V.T @ V) - np.eye(k)))
    free = allowed_error - underestimate
    free -= stretch * float((values - values.min()).sum() + allowed_error)
    squares = to_host(xp.sum(R * R, axis=0))
    shares = squares / squares.sum() if squares.sum() > 0 else np.full(k, 1 / k)
    # Half of the error follows the residuals, a quarter is for all directions of the
    # partition alike, and a quarter for those outside.
    outside = free / (4 * k)
    gains = values - values.min() + free * (shares / 2 + 1 / (4 * k))
    tau = float(values.min()) + outside
    # Rounding of the factorization and of its input.
    trace = float(gains.sum()) + n * tau + float(xp.sum(xp.linalg.diagonal(M)))
    rounding = (n + k + 8) * EPS / 2 * trace
    if not rounding < outside:
        return False
    M *= -1.0
    M += (V * to_device(gains, V)) @ V.T
    set_diagonal(M, xp.linalg.diagonal(M) + (tau - rounding))
    return has_cholesky(M)


def search_missed(
    K: Any,
    relaxation: Relaxation,
    allowed_error: float,
    *,
    seed: int = 1,
    key: int = 0,
    probability: float = PROBABILITY,
    max_steps: int = MAX_STEPS,
    sure_steps: int | None = None,
    n_probes: int = PROBES,
    rounding: float = EPS,
    mix_error: float = 0.0,
) -> MissedSearch:
    """Search the complement of known vectors for eigenvalues that belong to the k largest.

    Block Lanczos steps from Gaussian vectors, orthogonal to all that is known,
    underestimate the largest eigenvalue there with `miss_probability`. The search stops
    when an eigenvalue that is not harmless was missed with at most the given
    ``probability``, or after ``max_steps``, or after ``sure_steps`` (all, by default)
    if it is clear that these would not be enough. Products have a relative
    ``rounding``, and eigenvalues of K may be off by ``mix_error``: then the search is
    in single precision. The random vectors depend on ``seed``, the number of the search
    in a solve, and on its `search_key`.
    """
    values, (n, n_known) = relaxation.eigenvalues, relaxation.vectors.shape
    harmless = largest_harmless(relaxation, allowed_error) - mix_error
    smallest = float(values[relaxation.n_clusters - 1])
    missing = smallest + ROUNDINGS * rounding * float(values[0]) + mix_error
    V = astype(relaxation.vectors, "float32" if mix_error > 0 else "float64")
    probes = random_normal((n, n_probes), V, [seed, key], precision_of(V))
    most_vectors = n_known + max_steps * n_probes
    space = Krylov(K, replace(relaxation, vectors=V), most_vectors, probes)
    sure_steps = max_steps if sure_steps is None else sure_steps
    for step in range(1, max_steps + 1):
        is_larger, seen = space.expand(), space.restricted(n_known)
        largest = float(eigvalsh(seen)[-1]) if len(seen) else 0.0
        if not is_larger:  # all that can be reached was seen
            reached = probability if largest < harmless else 1.0
            return MissedSearch(None, reached, step - 1, largest)
        share = 1 - largest / harmless if harmless > 0 else 0.0
        reached = miss_probability(n - n_known, step, share, n_probes)
        # Failures are nested over the steps, so that the search may stop after any
        # step.
        if reached <= probability:
            return MissedSearch(None, probability, step, largest)
        if largest > missing:
            found, S = eigh(seen)
            turn = to_device(S[:, found > missing], V, space.dtype)
            missed = astype(space.rows[n_known : space.size, :].T @ turn, "float64")
            return MissedSearch(orthonormalize(missed, relaxation.vectors), 1.0, step)
        # The share never rises again.
        best = miss_probability(n - n_known, max_steps, share, n_probes)
        if step >= sure_steps and best > HIGHEST_PROBABILITY:
            break
    return MissedSearch(None, reached, step, largest)


def largest_harmless(relaxation: Relaxation, allowed_error: float) -> float:
    """Return the largest eigenvalue outside the known vectors with which the error is allowed."""
    k, values, R = relaxation.n_clusters, relaxation.eigenvalues, relaxation.residuals
    if allowed_error <= 0:
        return 0.0
    tau = float(values[k - 1]) + allowed_error / (2 * k)
    gram = to_host(R.T @ R)

    def is_allowed(distance: float) -> bool:
        """Return whether a distance between tau and the outside eigenvalues is enough."""
        raised = eigvalsh(np.diag(values) + gram / distance)
        levels = np.sort(np.append(raised, np.full(k, tau)))
        return float(levels[-k:].sum()) - relaxation.value <= allowed_error

    low, high = -50.0, 0.0  # exponents of the distance as a share of tau
    if not is_allowed(tau):
        return 0.0
    # To a tenth, or until little is left of the distance to the eigenvalues that are
    # known.
    little = 0.02 * max(1 - float(values[-1]) / tau, 0.0)
    while high - low > 0.1 and 2**high > little:
        middle = (low + high) / 2
        low, high = (low, middle) if is_allowed(tau * 2**middle) else (middle, high)
    return tau * (1 - 2**high)


def highest_missed(found: MissedSearch, n: int, n_probes: int) -> float:
    """Return the eigenvalue that an inconclusive search excludes but for `HIGHEST_PROBABILITY`.

    This is `miss_probability`, solved for the share. Whether the random vectors are
    unlucky does not depend on the number of steps, so that the search may have stopped
    after any.
    """
    if found.n_products < 1:
        return np.inf
    share_of_one = scipy.special.betaincinv(
        n_probes / 2, (n - 1) / 2, HIGHEST_PROBABILITY
    )
    exponent = np.arccosh(share_of_one**-0.5)
    share = np.tanh(exponent / (2 * found.n_products - 1)) ** 2
    return float(max(found.largest, 0.0) / (1 - share))


def error_if_below(relaxation: Relaxation, outside: float) -> float:
    """Return how much the sum is too small at most, if eigenvalues outside are below a bound."""
    k, R = relaxation.n_clusters, relaxation.residuals
    gram, values = to_host(R.T @ R), relaxation.eigenvalues
    if not np.isfinite(outside):
        return np.inf

    def error_at(distance: float) -> float:
        raised = eigvalsh(np.diag(values) + gram / distance)
        levels = np.sort(np.append(raised, np.full(k, outside + distance)))
        return float(levels[-k:].sum()) - relaxation.value

    size = max(outside, float(values[0]), np.finfo(np.float64).tiny)
    return min(error_at(size * 2.0**-exponent) for exponent in range(0, 50, 2))


def miss_probability(n: int, n_steps: int, share: float, n_probes: int) -> float:
    r"""Return how likely block Lanczos steps underestimate the largest eigenvalue by over a share.

    Let A be positive semidefinite of size n with the largest eigenvalue one, u its
    eigenvector, X a Gaussian matrix of b columns (probes), and x = X X^T u / |X^T u|.
    All :math:`p(A) x` with polynomials p of degree q - 1 are in the space that q steps
    reach. Let e be the share, :math:`1 - e = \cosh^{-2} \varphi`, and :math:`p(t) =
    U_{2 q - 2}(\sqrt{t / (1 - e)})` (Chebyshev), for which :math:`(1 - e - t) p(t)^2
    \le 1 - e` below 1 - e and :math:`e\, p(1)^2 = (1 - e) \sinh^2((2 q - 1) \varphi)`.
    Then the Rayleigh quotient of :math:`p(A) x` is at least 1 - e, whatever the
    spectrum is, unless

    .. math:: |x - u u^T x|^2 > \sinh^2((2 q - 1) \varphi)\, (u^T x)^2 .

    The left side has a chi-squared distribution with n - 1 degrees of freedom,
    :math:`(u^T x)^2` an independent one with b. For b = 1 that is, but for a constant,
    Theorem 4.2 of [1]_.

    References
    ----------
    .. [1] J. Kuczynski, H. Wozniakowski. Estimating the largest eigenvalue by the power and Lanczos
       algorithms with a random start. SIAM J. Matrix Anal. Appl. 13 (1992).
    """
    if share <= 0:
        return 1.0
    with np.errstate(divide="ignore"):
        exponent = (2 * n_steps - 1) * np.arctanh(np.sqrt(min(share, 1.0)))
    share_of_one = (
        (2 / (np.exp(exponent) + np.exp(-exponent))) ** 2 if exponent < 300 else 0.0
    )
    return float(scipy.special.betainc(n_probes / 2, (n - 1) / 2, share_of_one))


def search_key(random_state: Any) -> int:
    """Return the key of the random vectors of searches; the state of a generator is not changed.

    A kernel made against these vectors can hide an eigenvector from a search, so that
    its probability holds for kernels that do not depend on its key.
    """
    if random_state is None:
        return 0
    state: Any = check_random_state(random_state).get_state(legacy=False)["state"]
    entropy = [*state["key"].tolist(), state["pos"]]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)


def relax_from(
    K: Any, n_clusters: int, *, tol: float, start: Array | None
) -> Relaxation:
    """Solve the relaxed problem of one kernel, from the vectors of a similar one if known.

    These may be orthogonal to some eigenvectors, which are searched for.
    """
    relaxation = relax(K, n_clusters, tol=tol, start=start)
    if start is None or relaxation.residuals is None:
        return relaxation  # solved from random vectors, or on the whole space
    for seed in range(1, K.n_samples):
        missed = search_missed(
            K,
            relaxation,
            max(tol * relaxation.value, 2 * relaxation.error),
            seed=seed,
            probability=HIGHEST_PROBABILITY,
            max_steps=PASSING_STEPS,
        ).vectors
        if missed is None:
            break
        vectors, previous = side_by_side(relaxation.vectors, missed), relaxation
        relaxation = improve(K, rayleigh_ritz(K, vectors, n_clusters), tol)
        if relaxation.value <= previous.value + tol * abs(previous.value):
            break  # only rounding was found: in single precision it never ends
    return relaxation
