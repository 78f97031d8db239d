"""Linear algebra on sample-sized arrays, whichever array library they belong to.

What is small (as wide as a block of vectors) is computed by NumPy on the host in float64;
what is as long as the samples stays with its own library.
"""

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array

from mkclust.types import Array, Float

# Directions whose share of a block falls below this are rounding noise, not directions.
RANK_TOLERANCE = 1e-12
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

    Where X, of order one, lacks rank, several are equally near: of these, the one nearest to
    ``ties``, of the shape of X, in the directions that X leaves open.
    """
    U, lengths, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(lengths > NULL_TOLERANCE))
    if ties is None or rank == len(lengths):
        return U @ Vt
    rest = ties @ Vt[rank:].T
    for _ in range(2):  # twice is enough to be orthogonal to what X settles
        rest = polar_factor(rest - U[:, :rank] @ (U[:, :rank].T @ rest))
    return U[:, :rank] @ Vt[:rank] + rest @ Vt[rank:]
