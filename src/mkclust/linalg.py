"""Linear algebra on sample-sized arrays, whichever array library they belong to.

What is small (as wide as a block of vectors) is computed by NumPy on the host in float64;
what is as long as the samples stays with its own library.
"""

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array

from mkclust.types import Array, Float

# Directions whose share of a block falls below this are rounding noise, not directions.
RANK_TOLERANCE = 1e-12
# Up to this share of positive eigenvalues, finding them alone is faster than a full decomposition;
# from about a quarter on it is slower, several times in the end.
FEW_POSITIVE = 0.125
# A cosine between two subspaces below this is zero but for rounding.
NULL_TOLERANCE = 1e-10


def to_host(array: Array) -> Float:
    """Return an array as NumPy float64, copying it from its device where it lives on one."""
    if is_torch_array(array):
        array = array.detach().cpu()
    elif hasattr(array, "get"):  # CuPy
        array = array.get()
    return np.asarray(array, dtype=np.float64)


def to_device(small: Float, like: Array) -> Array:
    """Return a small host matrix beside ``like``: same library, device and float type."""
    if is_numpy_array(like):
        return small
    return array_namespace(like).asarray(small, dtype=like.dtype, device=device(like))


def inner(X: Array, Y: Array) -> Float:
    """Return ``X^T Y`` on the host."""
    return to_host(X.T @ Y)


def top_eigenpairs(M: Float, count: int) -> tuple[Float, Float]:
    """Return the largest eigenvalues of a symmetric matrix, falling, and their vectors."""
    # NumPy's full solver rather than SciPy's selective one: the two bring their own BLAS threads,
    # which stand in each other's way when calls alternate.
    values, vectors = np.linalg.eigh(M)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def psd_part(
    M: Float, *, count: int = 0, likely_rank: int | None = None
) -> tuple[Float, Float, Float]:
    """Return the nearest positive semidefinite matrix to a symmetric one, and eigenpairs.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Symmetric; its memory is made use of and its entries are lost.
    count : int, default=0
        How many of the largest eigenvalues to return, be they negative.
    likely_rank : int, default=None
        About how many eigenvalues are positive, where that is known. If they are few, only they
        are computed.

    Returns
    -------
    part : ndarray of shape (n, n)
        Exactly symmetric.
    values : ndarray of shape (b,)
        The positive eigenvalues of M and the ``count`` largest, falling.
    vectors : ndarray of shape (n, b)
        Their eigenvectors.
    """
    n = len(M)
    few = likely_rank is not None and count <= likely_rank <= FEW_POSITIVE * n
    if few:
        values, vectors = scipy.linalg.eigh(M, subset_by_value=(0, np.inf), check_finite=False)
        few = len(values) >= count
    if not few:
        # SciPy's solver works in place, where NumPy's takes three matrices more; the transpose is
        # the same matrix in the order of memory that it asks for.
        values, vectors = scipy.linalg.eigh(M.T, driver="evd", overwrite_a=True, check_finite=False)
    b = max(count, int((values > 0).sum()))
    values, vectors = values[::-1][:b], vectors[:, ::-1][:, :b]
    root = vectors * np.sqrt(np.maximum(values, 0))
    return root @ root.T, values, vectors


def orthonormalize(X: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the columns of X, orthogonal to the basis ``against``.

    Works by eigendecompositions of Gram matrices, which cost matrix products only; columns that
    depend on others are dropped, so the result may be narrower than X. Twice is enough.
    """
    if against is None:
        return _whiten(_whiten(X, RANK_TOLERANCE), 0.0)
    lengths = np.sqrt(np.maximum(np.diag(inner(X, X)), 0))
    for tolerance in (RANK_TOLERANCE, 0.0):
        X = X - against @ to_device(inner(against, X), X)
        if tolerance:
            # What is left of a vector after the projection must exceed its rounding error.
            rest = np.sqrt(np.maximum(np.diag(inner(X, X)), 0))
            kept = np.flatnonzero(rest > 1e-13 * lengths)
            X = X[:, kept] if len(kept) < len(rest) else X
        X = _whiten(X, tolerance)
    return X


def _whiten(X: Array, tolerance: float) -> Array:
    """Return X times the inverse square root of its Gram matrix, null directions dropped."""
    gram = inner(X, X)
    lengths = np.sqrt(np.maximum(np.diag(gram), 0))
    lengths[lengths == 0] = 1
    values, vectors = np.linalg.eigh(gram / lengths / lengths[:, None])
    kept = values > tolerance * max(values[-1], 0) if len(values) else slice(None)
    mixing = vectors[:, kept] / np.sqrt(values[kept]) / lengths[:, None]
    return X @ to_device(mixing, X)


def polar_factor(X: Float, ties: Float | None = None) -> Float:
    """Return the orthonormal matrix nearest to X: ``U V^T`` of its thin SVD.

    Where X, of order one, lacks rank, several are equally near: of these, if X is square, the one
    nearest to ``ties`` in the directions that X leaves open.
    """
    U, lengths, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(lengths > NULL_TOLERANCE))
    if ties is None or rank == len(lengths):
        return U @ Vt
    # Within what X leaves open on either side, so that the whole stays orthonormal.
    rest = polar_factor(U[:, rank:].T @ ties @ Vt[rank:].T)
    return U[:, :rank] @ Vt[:rank] + U[:, rank:] @ rest @ Vt[rank:]
