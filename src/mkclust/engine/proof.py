"""Certificates: whether a sum of leading eigenvalues is known, by a factorization or a search.

A proof rests on the inequality that a search rests on, too (`mkclust.engine.missed`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg

from mkclust.engine.missed import (
    DOUBLE,
    PROBABILITY,
    MissedSearch,
    find_missed_eigenvectors,
    n_steps_expected,
)
from mkclust.engine.relaxation import Relaxation
from mkclust.linalg import is_foreign, namespace, ranges, set_diagonal, to_device, to_host
from mkclust.linalg.operators import Operator
from mkclust.linalg.threads import threads_for_decomposition
from mkclust.types import Array, Float

# Rows of a matrix that are changed at a time.
ROWS = 512
# Of the room for error, the part that follows the residuals, and those for all directions alike.
RESIDUAL_SHARE, DIRECTION_SHARE, OUTSIDE_SHARE = 0.5, 0.25, 0.25
# A proof claims this share of the room there is, since one that fails costs as much as one that
# succeeds. A search claims so many times the error that the residuals suggest, at least this share,
# as long as it takes no more than so many times the steps.
PROOF_CLAIM = 0.9
# Both claim less than the room there is, so that no rounding takes a gap above its tolerance.
MOST_CLAIMED = 0.99
CLAIM_FACTOR, LEAST_CLAIM, CLAIM_STEPS = 10.0, 0.05, 1.25
# By so many roundings a sum of eigenvalues may be too small.
SUM_ROUNDINGS = 2


@dataclass(frozen=True)
class Certificate:
    """How the eigenvalue sum behind an upper bound is known.

    Attributes
    ----------
    kind : {"proved", "searched", "open"}
        Proved by a factorization or a dense eigendecomposition, searched for missed eigenvectors,
        or neither: the solver stopped before.
    error : float
        By how much the sum of eigenvalues found may be too small at most.
    probability : float or None
        Of a search that missed an eigenvalue that matters, at most; None where it was too short for
        a statement.
    """

    kind: Literal["proved", "searched", "open"]
    error: float
    probability: float | None = None

    def __str__(self) -> str:
        if self.kind == "searched" and self.probability is not None:
            return f"searched (missed with probability at most {self.probability:.0e})"
        return self.kind


def certify(
    relaxation: Relaxation,
    room: float,
    *,
    operator: Operator,
    entries: Callable[[], Array],
    proof: Literal["first", "last", "never"],
    seed: int = 1,
    key: int = 0,
    rounding: float = DOUBLE,
) -> tuple[Certificate | None, MissedSearch | None]:
    """Prove that no leading eigenvector was missed, or search for those that were.

    Parameters
    ----------
    relaxation : Relaxation
        The leading eigenvectors known.
    room : float
        By how much the sum of their eigenvalues may be too small.
    operator : Operator
        The kernel, to search with.
    entries : callable
        Returns the kernel written out in double precision, to prove with.
    proof : {"first", "last", "never"}
        Whether to prove at once, only where a search does not tell, or not at all.
    seed, key : int
        Of the search.
    rounding : float, default=eps
        Relative rounding of products with the kernel.

    Returns
    -------
    certificate : Certificate or None
        None where neither told.
    missed : MissedSearch or None
        What a search found, where there was one.
    """
    if room <= 0:
        return None, None
    room *= MOST_CLAIMED
    if proof == "first":
        error = prove(entries(), relaxation, PROOF_CLAIM * room)
        if error is not None:
            return Certificate("proved", error), None
    # Eigenvalues found by products in single precision may be too small for that alone.
    rounded = SUM_ROUNDINGS * rounding * relaxation.value
    claim = _claim(relaxation, room, rounded)
    missed = find_missed_eigenvectors(
        operator, relaxation, claim - rounded, seed=seed, key=key, rounding=rounding
    )
    if missed.vectors is not None:
        return None, missed
    if missed.probability <= PROBABILITY:
        return Certificate("searched", claim, missed.probability), missed
    if proof == "last" and (error := prove(entries(), relaxation, PROOF_CLAIM * room)) is not None:
        return Certificate("proved", error), missed
    return None, missed


def _claim(relaxation: Relaxation, room: float, rounded: float) -> float:
    """Return what to claim by a search: little, unless that takes many steps more than the room."""
    least = max(CLAIM_FACTOR * relaxation.error, LEAST_CLAIM * room)
    n_steps = n_steps_expected(relaxation, room - rounded)
    for claim in (least + rounded, float(np.sqrt(least * room)) + rounded):
        if n_steps_expected(relaxation, claim - rounded) <= CLAIM_STEPS * n_steps:
            return min(room, claim)
    return room


def prove(M: Array, relaxation: Relaxation, room: float) -> float | None:
    r"""Prove that the eigenvalue sum is too small by no more than there is room for.

    A Cholesky factorization of

    .. math:: \tau I + V \mathrm{diag}(t_i + d_i - \tau) V^\top - K

    over the k leading vectors that succeeds shows that this matrix is positive semidefinite, and so
    that the k largest eigenvalues of K sum to at most :math:`\sum_{i \le k} t_i + d_i`. What the
    rounding of the factorization may hide [1]_ is taken from tau beforehand.

    Parameters
    ----------
    M : array of shape (n, n)
        The kernel in double precision; its memory is made use of and its entries are lost.
    relaxation : Relaxation
        Its leading eigenvectors.
    room : float
        What may be missing.

    Returns
    -------
    float or None
        What is missing at most, None where it could not be proved.

    References
    ----------
    .. [1] S. M. Rump. Verification of positive definiteness. BIT 46 (2006), Theorem 2.3.
    """
    k, n, xp = relaxation.n_clusters, M.shape[0], namespace(M)
    V, R = relaxation.vectors[:, :k], relaxation.residuals
    # As M has them: those known may have been rounded to single precision.
    values = to_host(xp.sum(V * (M @ V), axis=0))
    underestimate = float(values.sum()) - relaxation.value
    # V is orthonormal but for rounding, which can lengthen what is added by so much.
    stretch = float(np.linalg.norm(to_host(V.T @ V) - np.eye(k)))
    free = room - underestimate - stretch * float((values - values.min()).sum() + room)
    squares = np.zeros(k) if R is None else to_host(xp.sum(R * R, axis=0))[:k]
    following = squares / squares.sum() if squares.sum() > 0 else np.full(k, 1 / k)
    outside = free * OUTSIDE_SHARE / k
    gains = values - values.min() + free * (RESIDUAL_SHARE * following + DIRECTION_SHARE / k)
    tau = float(values.min()) + outside
    # Of the factorization and of what it begins with.
    trace = float(gains.sum()) + n * tau + float(xp.sum(xp.linalg.diagonal(M)))
    rounding = (n + k + 8) * DOUBLE / 2 * trace
    if not rounding < outside:
        return None
    M *= -1.0
    weighted = V * to_device(gains, V)
    for some in ranges(n, ROWS):
        M[some, :] += weighted[some, :] @ V.T
    set_diagonal(M, xp.linalg.diagonal(M) + (tau - rounding))
    return room if _is_positive_definite(M) else None


def _is_positive_definite(M: Array) -> bool:
    """Return whether a Cholesky factorization of a symmetric matrix succeeds; M is lost."""
    try:
        if is_foreign(M):
            xp = namespace(M)
            # Some libraries return what is no number instead of raising.
            return bool(xp.all(xp.isfinite(xp.linalg.diagonal(xp.linalg.cholesky(M)))))
        # The transpose is the same matrix in the order of memory that LAPACK works on in place.
        with threads_for_decomposition():
            scipy.linalg.cholesky(M.T, lower=True, overwrite_a=True, check_finite=False)
    except (np.linalg.LinAlgError, RuntimeError):
        return False
    return True


def entries_of_combination(stack: Any, coefficients: Float, operator: Operator) -> Array:
    """Write a combination out in double precision, even of kernels in single precision."""
    if stack.precision <= DOUBLE:
        return operator.dense()
    mixed = float(coefficients[0]) * stack.kernel(0).dense()
    for index, c in enumerate(coefficients[1:], start=1):
        mixed += float(c) * stack.kernel(index).dense()
    return mixed
