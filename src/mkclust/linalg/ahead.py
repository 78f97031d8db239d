"""Orthonormal bases on a device before it is known that there are any, so that nothing waits."""

from mkclust.linalg.in_triton import written_in_triton
from mkclust.types import Array

# By how much inner products may differ from those of orthonormal vectors for these to be repaired.
MOST_DOUBT = 0.1


def runs_ahead(X: Array) -> bool:
    """Return whether a device orthonormalizes columns like those of X without the host's help."""
    fused = written_in_triton("fused_bases", X)
    return fused is not None and 0 < X.shape[1] <= fused.MOST_COLUMNS


def orthonormalize_ahead(
    X: Array, against: Array, gram: Array | None = None
) -> tuple[Array, Array] | None:
    """Return an orthonormal basis of the columns of X before it is known that they have one.

    Parameters
    ----------
    X : array of shape (n, b)
        Orthogonal to ``against`` but for rounding.
    against : array of shape (n, r)
        An orthonormal basis.
    gram : array of shape (b, b), default=None
        Inner products of the columns of X, where they are known.

    Returns
    -------
    basis : array of shape (n, b)
    doubts : array of shape (b,)
        Where one exceeds `MOST_DOUBT`, the basis is none, and `mkclust.linalg.orthonormalize` finds
        one. To look at these takes as long as everything that a device has still to do before.

    None where the host is asked first: `runs_ahead` says where.
    """
    if not runs_ahead(X):
        return None
    fused = written_in_triton("fused_bases", X)
    return fused.orthonormalize_ahead(X, against, X.T @ X if gram is None else gram)
