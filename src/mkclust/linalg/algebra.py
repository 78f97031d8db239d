"""Bases, eigenvectors and roots: thin matrices stay where they live, small ones are the host's."""

from typing import Any

import numpy as np
import scipy.linalg

from mkclust.linalg.arrays import (
    is_foreign,
    is_on_accelerator,
    namespace,
    precision_of,
    to_device,
    to_host,
)
from mkclust.linalg.eigen import eigh
from mkclust.linalg.threads import FEW_SAMPLES
from mkclust.types import Array, Float

# Directions whose share of a block's squared length falls below this are rounding noise, not
# directions; in single precision there are fewer digits to tell.
RANK_TOLERANCE, SINGLE_RANK_TOLERANCE = 1e-12, 1e-6
# The same of what a projection leaves of a vector.
LEAST_LEFT, SINGLE_LEAST_LEFT = 1e-26, 1e-12
# A block of unit vectors is orthonormalized by a triangular factor where the root mean square of
# the inverse's columns is below this: twice is enough then; below the second figure, once.
WELL_CONDITIONED, VERY_WELL_CONDITIONED = 1e3, 5.0
# The share of a vector's squared length that a projection must leave, or it is done once more.
LITTLE_TAKEN = 0.1
# From this size on, eigenvalues of a matrix of the host come sooner by way of an accelerator.
FASTER_ON_ACCELERATOR = 128
# From this size on, and up to this share of all, some eigenvectors are found without the others.
FEWEST_SELECTED_FROM, FEW_SELECTED = 64, 0.125
# Up to this share of positive eigenvalues, finding them alone is faster than a full decomposition;
# from about a quarter on it is slower, several times in the end.
FEW_POSITIVE = 0.125
# By how many the positive ones may turn out to be more than is likely.
FEW_MORE = 8
# A cosine between two subspaces below this is zero but for rounding.
NULL_TOLERANCE = 1e-10


def side_by_side(*blocks: Array) -> Array:
    """Return the columns of several thin matrices as one."""
    return namespace(*blocks).concat(blocks, axis=1)


def inner_products(products: Array, H: Array) -> Float:
    """Return ``Tr(H^T K_p H)`` for every kernel, from the products K_p H, (m, n, b)."""
    return to_host(namespace(H).sum(products * H, axis=(1, 2)))


def top_eigenpairs(M: Array, count: int, like: Any = None) -> tuple[Float, Array]:
    """Return the largest eigenvalues of a symmetric matrix, falling, on the host, and vectors.

    Parameters
    ----------
    M : array of shape (b, b)
        The matrix.
    count : int
        How many.
    like : array, default=None
        What M was computed from. A larger matrix of the host is decomposed on the accelerator that
        this lives on, where that is faster in spite of the way there and back.

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : array of shape (b, count)
        Where M lives.
    """
    first = max(M.shape[0] - count, 0)
    if _is_for_selection(M, count):
        values, vectors = eigh(M, top=count)
        return values[::-1], vectors[:, ::-1]
    if not is_foreign(M) and M.shape[0] >= FASTER_ON_ACCELERATOR and is_on_accelerator(like):
        values, vectors = eigh(to_device(M, like))
        vectors = to_host(vectors[:, first:])
    else:
        values, vectors = eigh(M)
        vectors = vectors[:, first:]
    return values[first:][::-1], namespace(M).flip(vectors, axis=1)


def _is_for_selection(M: Array, count: int) -> bool:
    """Return whether some eigenvectors of a matrix come sooner alone than with all others.

    Only where one thread computes: NumPy and SciPy have threads of their own, which stand in each
    other's way when calls alternate.
    """
    size = M.shape[0]
    is_between = FEWEST_SELECTED_FROM <= size <= FEW_SAMPLES
    return is_between and count <= FEW_SELECTED * size and not is_foreign(M)


def symmetric_product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Multiply a symmetric matrix of the host with a vector, (n,): one triangle is read only."""
    symv = scipy.linalg.blas.ssymv if matrix.dtype == np.float32 else scipy.linalg.blas.dsymv
    in_order = matrix if matrix.flags.f_contiguous else matrix.T  # as BLAS has it, or it is copied
    return symv(1.0, in_order, vector)


def orthonormalize(X: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the columns of X, orthogonal to the basis ``against``.

    Works by decompositions of Gram matrices, which cost matrix products only; columns that depend
    on others are dropped, so the result may be narrower than X. Twice is enough, and once where
    little had to be taken away.
    """
    xp, precision = namespace(X), precision_of(X)
    is_single = precision == "float32"
    before = xp.sum(X * X, axis=0)[None, :]
    if against is not None:
        X = X - against @ (against.T @ X)
    both = to_host(xp.concat([X.T @ X, before]))  # one transfer for both
    gram, squares = both[:-1], both[-1]
    left = np.diag(gram)
    # What is left of a vector after the projection must exceed its rounding error.
    least = SINGLE_LEAST_LEFT if is_single else LEAST_LEFT
    significant = left > (0 if against is None else least * squares)
    tolerance = SINGLE_RANK_TOLERANCE if is_single else RANK_TOLERANCE
    mixing, well_conditioned = _inverse_root(gram, tolerance, significant)
    X = X @ to_device(mixing, X, precision)
    if well_conditioned and np.all(left >= LITTLE_TAKEN * squares):
        return X
    if against is not None:
        X = X - against @ (against.T @ X)
    mixing, _ = _inverse_root(to_host(X.T @ X), 0.0)
    return X @ to_device(mixing, X, precision)


def _inverse_root(gram: Float, tolerance: float, mask: Any = True) -> tuple[Float, bool]:
    """Return what makes columns orthonormal, given their Gram matrix: an inverse root of it.

    Parameters
    ----------
    gram : ndarray of shape (b, b)
        Inner products of the columns.
    tolerance : float
        Directions with less than this share of the largest are dropped.
    mask : ndarray of bool of shape (b,), default=True
        Which columns count; the others are dropped.

    Returns
    -------
    mixing : ndarray of shape (b, at most b)
        What to multiply the columns with.
    well_conditioned : bool
        Whether they are orthonormal then but for rounding.
    """
    used = np.flatnonzero(mask & (np.diag(gram) > 0))
    lengths = np.sqrt(np.diag(gram)[used])[:, None]
    is_all = len(used) == len(gram)
    scaled = (gram if is_all else gram[np.ix_(used, used)]) / lengths / lengths.T
    try:
        # A tenth of the time of eigenvalues, and as good where the inverse is not large.
        inverse = np.linalg.inv(np.linalg.cholesky(scaled)).T
        size = (float(np.vdot(inverse, inverse)) / max(len(used), 1)) ** 0.5
    except np.linalg.LinAlgError:
        size = np.inf
    if not size < WELL_CONDITIONED:
        values, vectors = eigh(scaled)
        some = values > tolerance * max(values[-1], 0)
        inverse = vectors[:, some] / np.sqrt(values[some])
    mixing = inverse / lengths
    if not is_all:
        mixing = np.zeros((len(gram), inverse.shape[1]))
        mixing[used] = inverse / lengths
    return mixing, size < VERY_WELL_CONDITIONED


def polar_factor(X: Array, ties: Float | None = None) -> Array:
    """Return the orthonormal matrix nearest to X: ``U V^T`` of its thin SVD.

    Where X, of order one, lacks rank, several are equally near: of these, if X is square, the one
    nearest to ``ties`` in the directions that X leaves open. What is square is on the host.
    """
    if is_foreign(X):
        Q, R = namespace(X).linalg.qr(X)
        return Q @ to_device(polar_factor(to_host(R)), Q)
    U, lengths, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(lengths > NULL_TOLERANCE))
    if ties is None or rank == len(lengths):
        return U @ Vt
    # Within what X leaves open on either side, so that the whole stays orthonormal.
    rest = polar_factor(U[:, rank:].T @ ties @ Vt[rank:].T)
    return U[:, :rank] @ Vt[:rank] + U[:, rank:] @ rest @ Vt[rank:]


def psd_part(
    M: Array, *, count: int = 0, likely_rank: int | None = None
) -> tuple[Array, Float, Array]:
    """Return the nearest positive semidefinite matrix to a symmetric one, and eigenpairs.

    Parameters
    ----------
    M : array of shape (n, n)
        Symmetric.
    count : int, default=0
        How many of the largest eigenvalues to return, be they negative.
    likely_rank : int, default=None
        About how many eigenvalues are positive, where that is known. If they are few, only they
        are computed, on the host.

    Returns
    -------
    part : array of shape (n, n)
        Exactly symmetric.
    values : ndarray of shape (b,)
        The positive eigenvalues of M and the ``count`` largest, falling, on the host.
    vectors : array of shape (n, b)
        Their eigenvectors.
    """
    xp = namespace(M)
    likely = M.shape[0] if likely_rank is None else max(count, likely_rank + FEW_MORE)
    if is_foreign(M) or likely > FEW_POSITIVE * M.shape[0]:
        values, vectors = eigh(M)
    else:
        values, vectors = eigh(M, top=likely)
        if values[0] > 0:  # others may be, too
            values, vectors = eigh(M)
    first = len(values) - max(count, int((values > 0).sum()))
    values, vectors = values[first:][::-1], xp.flip(vectors[:, first:], axis=1)
    root = vectors * to_device(np.sqrt(np.maximum(values, 0)), vectors)
    part = root @ root.T
    # NumPy knows such a product to be symmetric; other libraries round either side on its own.
    return (part + part.T) / 2 if is_foreign(M) else part, values, vectors


def sum_of_squares(array: Array) -> float:
    """Return the sum of the squares of all entries."""
    return float(namespace(array).sum(array * array))
