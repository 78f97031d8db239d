"""Certificates: a sum of leading eigenvalues is known, by a search or by a proof.

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.special
from sklearn.utils import check_random_state

from mkclust.engine.eigen import Krylov, Relaxation, improve, rayleigh_ritz, relax
from mkclust.engine.protocol import KernelLike, Operator, StackLike
from mkclust.linalg import (
    EPS,
    astype,
    eigh,
    eigvalsh,
    fits,
    free_bytes,
    has_cholesky,
    hstack,
    is_on_accelerator,
    namespace,
    orthonormalize,
    precision_of,
    random_normal,
    set_diagonal,
    to_device,
    to_host,
)
from mkclust.types import Array, Float

# The probability of having missed an eigenvalue that matters at which a search stops.
PROBABILITY = 1e-9
# The highest probability at which a search still counts as one.
HIGHEST_PROBABILITY = 1e-3
# Random vectors that a search starts from.
PROBES = 16
# How often each of them is multiplied at most.
MAX_STEPS = 24
# Most samples of streamed kernels whose mix is held, after one pass over them.
MOST_HELD = 2000


@dataclass(frozen=True)
class Certificate:
    """How an eigenvalue sum is known; "open" if the solver stopped early."""

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


class SearchResult(NamedTuple):
    """The result of a search outside the known eigenvectors."""

    # Orthonormal ones that were missed, orthogonal to those known.
    vectors: Array | None
    # If there are none: of having missed a relevant eigenvalue, at most.
    probability: float
    n_products: int  # the number of blocks of vectors that were multiplied
    largest: float = np.inf  # the largest Ritz value outside of the known vectors


class CertificateCheck(NamedTuple):
    """A certificate, or what stands in its way."""

    certificate: Certificate | None = None
    missed: Array | None = None  # leading eigenvectors that were missed
    n_passes: int = 0  # how often all kernels were read
    # What is certain of a larger error, if there is no certificate of the one allowed.
    weaker: Certificate | None = None


def rounding_of_entries(stack: StackLike) -> float:
    """Return the relative rounding of the entries of the kernels."""
    return max(EPS, *(K.precision for K in stack.kernels))


def certify(
    stack: StackLike,
    coefficients: Float,
    relaxation: Relaxation,
    allowed_error: float,
    *,
    prove: bool | Literal["auto"] = "auto",
    key: int = 0,
    seed: int = 1,
    mix: KernelLike | None = None,
    mix_error: float = 0.0,
) -> CertificateCheck:
    """Prove that no leading eigenvector of a mix was missed, or search for them.

    By default a proof comes first if it is faster, and last if a search is inconclusive
    and the mix is in memory; ``prove=True`` proves in any case, False only searches.
    The search has the other options of `search_missed`. If neither is conclusive, a
    weaker certificate states the error that the search does exclude.
    """
    if relaxation.residuals is None:  # of a dense eigendecomposition
        return CertificateCheck(Certificate("proved", relaxation.error))

    rounding = rounding_of_entries(stack)
    # Rounding of entries may make a sum of eigenvalues too small: in single precision
    # by two roundings.
    rounded = 2 * rounding * relaxation.value if rounding > EPS else 0.0
    # A little less than allowed, for the rounding of this very computation.
    claimed = 0.99 * allowed_error
    if claimed <= rounded:
        return CertificateCheck()

    n = stack.n_samples
    V = relaxation.vectors
    has_room = fits(16 * n**2, available=free_bytes(V))
    # Written out, products with the mix read no kernel.
    holds_mix = stack.in_memory or (n <= MOST_HELD and has_room)
    can_prove = prove == "auto" and holds_mix and has_room
    # Up to so many samples a proof takes less time than a search; of streamed kernels a
    # search reads all several times, and a proof once.
    most_proved_first = 12_000 if is_on_accelerator(V) else 480
    is_fast = n <= most_proved_first or not stack.in_memory
    proves_first = prove is True or (can_prove and is_fast)
    proved = Certificate("proved", claimed)
    n_passes = 0

    def has_proof() -> bool:
        """Return whether the mix, written out, can be proved."""
        return is_proved(stack.mix(coefficients).dense(), relaxation, claimed)

    if proves_first:
        n_passes += 1
        if has_proof():
            return CertificateCheck(proved, None, n_passes)

    operator: Operator | Array = mix
    if mix is None:
        mixed = stack.mix(coefficients)
        operator = mixed.dense() if holds_mix and not stack.in_memory else mixed
        n_passes += int(holds_mix)

    # If each product reads all kernels anew, more vectors take little longer, and a
    # search that will not be conclusive stops early.
    n_probes, sure_steps = (PROBES, MAX_STEPS) if holds_mix else (32, 6)
    found = search_missed(
        operator,
        relaxation,
        claimed - rounded,
        seed=seed,
        key=key,
        rounding=rounding,
        n_probes=n_probes,
        sure_steps=sure_steps,
        mix_error=mix_error,
    )
    if not holds_mix:
        n_passes += found.n_products

    if found.vectors is not None:
        return CertificateCheck(None, found.vectors, n_passes)

    if found.probability > PROBABILITY and can_prove and not proves_first:
        n_passes += 1
        if has_proof():
            return CertificateCheck(proved, None, n_passes)

    if found.probability <= HIGHEST_PROBABILITY:
        searched = Certificate("searched", claimed, found.probability)
        return CertificateCheck(searched, None, n_passes)

    n_outside = n - V.shape[1]
    highest = highest_missed(found, n_outside, n_probes) + mix_error
    error = error_if_below(relaxation, highest) + rounded
    weaker = Certificate("searched", error, HIGHEST_PROBABILITY)
    return CertificateCheck(None, None, n_passes, weaker)


def is_proved(M: Array, relaxation: Relaxation, allowed_error: float) -> bool:
    r"""Return whether an eigenvalue sum is proved to be too small by at most an error.

    A Cholesky factorization of

    .. math:: \tau I + V \mathrm{diag}(t_i + d_i - \tau) V^\top - K

    over the k leading vectors that succeeds shows that this matrix is positive
    semidefinite, and so that the k largest eigenvalues of K sum to at most
    :math:`\sum_{i \le k} t_i + d_i`. What the rounding of the factorization may hide
    [1]_ is taken from tau beforehand. M holds K in double precision, and is
    overwritten.

    References
    ----------
    .. [1] S. M. Rump. Verification of positive definiteness. BIT 46 (2006), Thm. 2.3.
    """
    k = relaxation.n_clusters
    n = M.shape[0]
    xp = namespace(M)
    V = relaxation.vectors[:, :k]
    R = relaxation.residuals[:, :k]

    # As M has them: those known may have been rounded to single precision.
    products = V * (M @ V)
    values = to_host(xp.sum(products, axis=0))
    smallest = float(values.min())
    underestimate = float(values.sum()) - relaxation.value
    # V is orthonormal up to rounding, which can lengthen the added part by this share.
    gram = to_host(V.T @ V)
    stretch = float(np.linalg.norm(gram - np.eye(k)))
    free = allowed_error - underestimate
    total = float((values - smallest).sum() + allowed_error)
    free -= stretch * total

    # Half of the error follows the residuals, a quarter is for all directions of the
    # partition alike, and a quarter for those outside.
    squares = to_host(xp.sum(R * R, axis=0))
    shares = np.full(k, 1 / k)
    if squares.sum() > 0:
        shares = squares / squares.sum()
    outside = free / (4 * k)
    of_free = shares / 2 + 1 / (4 * k)
    gains = values - smallest + free * of_free
    tau = smallest + outside

    # Rounding of the factorization and of its input.
    diagonal = float(xp.sum(xp.linalg.diagonal(M)))
    trace = float(gains.sum()) + n * tau + diagonal
    size = n + k + 8
    rounding = size * EPS / 2 * trace
    if not rounding < outside:
        return False

    M *= -1.0
    M += (V * to_device(gains, V)) @ V.T
    set_diagonal(M, xp.linalg.diagonal(M) + (tau - rounding))
    return has_cholesky(M)


def search_missed(
    K: Operator | Array,
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
) -> SearchResult:
    """Search outside of known vectors for eigenvalues that belong to the k largest.

    Block Lanczos steps from Gaussian vectors, orthogonal to all that is known,
    underestimate the largest eigenvalue there with `miss_probability`. The search stops
    when an eigenvalue that is not harmless was missed with at most the given
    ``probability``, or after ``max_steps``, or after ``sure_steps`` (all, by default)
    if it is clear that these would not be enough. Products have a relative
    ``rounding``, and eigenvalues of K may be off by ``mix_error``: then the search is
    in single precision. The random vectors depend on ``seed``, the number of the search
    in a solve, and on its `search_key`.
    """
    values = relaxation.eigenvalues
    n, n_known = relaxation.vectors.shape
    harmless = largest_tolerated_eigenvalue(relaxation, allowed_error) - mix_error
    # Ritz values less than 16 roundings above an eigenvalue are equal to it.
    smallest = float(values[relaxation.n_clusters - 1])
    of_largest = 16 * rounding * float(values[0])
    missing = smallest + of_largest + mix_error

    V = astype(relaxation.vectors, "float32" if mix_error > 0 else "float64")
    shape = (n, n_probes)
    probes = random_normal(shape, V, [seed, key], precision_of(V))
    most_vectors = n_known + max_steps * n_probes
    space = Krylov(K, replace(relaxation, vectors=V), most_vectors, probes)
    if sure_steps is None:
        sure_steps = max_steps

    for step in range(1, max_steps + 1):
        is_larger = space.expand()
        seen = space.restricted(n_known)
        largest = float(eigvalsh(seen)[-1]) if len(seen) else 0.0
        if not is_larger:  # all that can be reached was seen
            reached = probability if largest < harmless else 1.0
            return SearchResult(None, reached, step - 1, largest)

        share = 0.0
        if harmless > 0:
            share = 1 - largest / harmless
        reached = miss_probability(n - n_known, step, share, n_probes)
        # Failures are nested over the steps, so that the search may stop after any.
        if reached <= probability:
            return SearchResult(None, probability, step, largest)

        if largest > missing:
            ritz_values, S = eigh(seen)
            found = S[:, ritz_values > missing]
            rotation = to_device(found, V, space.dtype)
            new = space.rows[n_known : space.size, :]
            missed = new.T @ rotation
            missed = orthonormalize(astype(missed, "float64"), relaxation.vectors)
            return SearchResult(missed, 1.0, step)

        # The share never rises again.
        best = miss_probability(n - n_known, max_steps, share, n_probes)
        if step >= sure_steps and best > HIGHEST_PROBABILITY:
            break
    return SearchResult(None, reached, step, largest)


def largest_tolerated_eigenvalue(relaxation: Relaxation, allowed_error: float) -> float:
    """Return the largest eigenvalue outside the known vectors that an error allows."""
    if allowed_error <= 0:
        return 0.0
    k = relaxation.n_clusters
    values = relaxation.eigenvalues
    spread = allowed_error / (2 * k)
    tau = float(values[k - 1]) + spread
    raised_sum = _raised_sum(relaxation)

    def is_allowed(distance: float) -> bool:
        """Return whether this distance of outside eigenvalues from tau is enough."""
        return raised_sum(tau, distance) - relaxation.value <= allowed_error

    if not is_allowed(tau):
        return 0.0

    # Exponents of the distance as a share of tau: to a tenth, or until little is left
    # of the distance to the eigenvalues that are known.
    low = -50.0
    high = 0.0
    largest_share = float(values[-1]) / tau
    little = 0.02 * max(1 - largest_share, 0.0)
    while high - low > 0.1 and 2**high > little:
        middle = (low + high) / 2
        if is_allowed(tau * 2**middle):
            high = middle
        else:
            low = middle
    return tau * (1 - 2**high)


def _raised_sum(relaxation: Relaxation) -> Callable[[float, float], float]:
    """Return an upper bound of a sum of eigenvalues, by the Schur complement.

    It is a function of tau and of how far eigenvalues outside are below tau.
    """
    k = relaxation.n_clusters
    values = np.diag(relaxation.eigenvalues)
    gram = to_host(relaxation.residuals.T @ relaxation.residuals)

    def bound(tau: float, distance: float) -> float:
        raised = eigvalsh(values + gram / distance)
        levels = np.sort(np.append(raised, np.full(k, tau)))
        return float(levels[-k:].sum())

    return bound


def highest_missed(found: SearchResult, n: int, n_probes: int) -> float:
    """Return the eigenvalue that an inconclusive search excludes all but surely.

    This is `miss_probability`, solved for the share at `HIGHEST_PROBABILITY`. Whether
    the random vectors are unlucky does not depend on the number of steps, so that the
    search may have stopped after any.
    """
    if found.n_products < 1:
        return np.inf
    share_of_one = scipy.special.betaincinv(
        n_probes / 2, (n - 1) / 2, HIGHEST_PROBABILITY
    )
    exponent = np.arccosh(share_of_one**-0.5)
    n_steps = 2 * found.n_products - 1
    share = np.tanh(exponent / n_steps) ** 2
    largest = max(found.largest, 0.0)
    return float(largest / (1 - share))


def error_if_below(relaxation: Relaxation, outside: float) -> float:
    """Return how much a sum is too small at most, by a bound of those outside."""
    if not np.isfinite(outside):
        return np.inf
    raised_sum = _raised_sum(relaxation)
    largest = float(relaxation.eigenvalues[0])
    size = max(outside, largest, np.finfo(np.float64).tiny)
    distances = [size * 2.0**-exponent for exponent in range(0, 50, 2)]
    least = min(raised_sum(outside + distance, distance) for distance in distances)
    return least - relaxation.value


def miss_probability(n: int, n_steps: int, share: float, n_probes: int) -> float:
    r"""Return how likely Lanczos steps underestimate the largest eigenvalue by a share.

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
    .. [1] J. Kuczynski, H. Wozniakowski. Estimating the largest eigenvalue by the power
       and Lanczos algorithms with a random start. SIAM J. Matrix Anal. Appl. 13 (1992).
    """
    if share <= 0:
        return 1.0
    with np.errstate(divide="ignore"):
        n_powers = 2 * n_steps - 1
        exponent = n_powers * np.arctanh(np.sqrt(min(share, 1.0)))
    share_of_one = 0.0
    if exponent < 300:
        share_of_one = np.cosh(exponent) ** -2.0
    half = (n - 1) / 2
    return float(scipy.special.betainc(n_probes / 2, half, share_of_one))


def search_key(random_state: Any) -> int:
    """Return the key of the random vectors of searches, by a state that is only read.

    A kernel made against these vectors can hide an eigenvector from a search, so that
    its probability holds for kernels that do not depend on its key.
    """
    if random_state is None:
        return 0
    state: Any = check_random_state(random_state).get_state(legacy=False)["state"]
    sequence = np.random.SeedSequence([*state["key"].tolist(), state["pos"]])
    return int(sequence.generate_state(1, np.uint64)[0]) >> 1


def relax_from(
    K: KernelLike,
    n_clusters: int,
    *,
    tol: float,
    start: Array | None,
) -> Relaxation:
    """Solve the relaxed problem of one kernel, from vectors of a similar one if known.

    These may be orthogonal to some eigenvectors, which are searched for: in a few steps
    only, as the last iteration of a method is certified.
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
            max_steps=8,
        ).vectors
        if missed is None:
            break
        previous = relaxation.value
        vectors = hstack(relaxation.vectors, missed)
        relaxation = improve(K, rayleigh_ritz(K, vectors, n_clusters), tol)
        allowed = tol * abs(previous)
        if relaxation.value <= previous + allowed:
            break  # only rounding was found: in single precision it never ends
    return relaxation
