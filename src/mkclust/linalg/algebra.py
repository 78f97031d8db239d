"""Bases, eigenvectors and roots: thin matrices on their device, small ones on the host.

All eigendecompositions of dense matrices are made here: no driver of LAPACK finds those
of every matrix, and if one fails, another is tried.
"""

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dtrtri

from mkclust.linalg.arrays import (
    copy_array,
    is_foreign,
    is_on_accelerator,
    namespace,
    precision_of,
    rounding_of,
    select,
    to_device,
    to_host,
)
from mkclust.types import Array, Float


def hstack(*blocks: Array) -> Array:
    """Return the columns of several thin matrices as one."""
    return namespace(*blocks).concat(blocks, axis=1)


def inner_products(products: Array, H: Array) -> Float:
    """Return ``Tr(H^T K_p H)`` for every kernel, from the products K_p H, (m, n, b)."""
    return to_host(namespace(H).sum(products * H, axis=(1, 2)))


def products_of_rows(rows: Array) -> Float:
    """Return the inner products of a few long rows, (m, m)."""
    products = np.empty((rows.shape[0],) * 2)
    # One product of such matrices takes three times as long.
    for p in range(len(products)):
        others = rows[p:, :] @ rows[p, :]
        products[p, p:] = products[p:, p] = to_host(others)
    return products


def sum_of_squares(array: Array) -> float:
    """Return the sum of the squares of all entries."""
    return float(namespace(array).sum(array * array))


def row_lengths(M: Array) -> Float:
    """Return the length of each row, on the host, without an array of all squares."""
    xp = namespace(M)
    if is_foreign(M):
        return to_host(xp.linalg.vector_norm(M, axis=1))
    return np.sqrt(to_host(xp.linalg.vecdot(M, M)))


def eigh(M: Array) -> tuple[Float, Array]:
    """Return the eigenvalues of a symmetric matrix, rising, and its eigenvectors.

    Eigenvalues are on the host, eigenvectors on the device of the matrix; if its
    library fails, the host finds them.
    """
    if not is_foreign(M):
        try:
            return np.linalg.eigh(M)
        except np.linalg.LinAlgError:
            return scipy.linalg.eigh(M, driver="ev")
    try:
        values, vectors = namespace(M).linalg.eigh(M)
        on_host = to_host(values)
        if np.all(np.isfinite(on_host)):
            return on_host, vectors
    except Exception as error:
        # Libraries have classes of their own for that, with no base in common but this.
        if "LinAlgError" not in type(error).__name__:
            raise
    values, vectors = eigh(to_host(M))
    return values, to_device(vectors, M)


def eigvalsh(M: Array) -> Float:
    """Return the eigenvalues of a symmetric matrix, rising, computed on the host."""
    M = to_host(M)
    try:
        return np.linalg.eigvalsh(M)
    except np.linalg.LinAlgError:
        return eigh(M)[0]


def has_cholesky(M: Array) -> bool:
    """Return whether a symmetric matrix, overwritten here, has a Cholesky factor."""
    xp = namespace(M)
    try:
        if is_foreign(M):
            root = xp.linalg.cholesky(M)
        else:
            # The transpose is the same matrix in the order that LAPACK works on in
            # place.
            root = scipy.linalg.cholesky(
                M.T, lower=True, overwrite_a=True, check_finite=False
            )
    except (np.linalg.LinAlgError, RuntimeError):
        return False
    # Some libraries return NaN instead of raising.
    diagonal = xp.linalg.diagonal(root)
    return bool(xp.all(xp.isfinite(diagonal)))


def top_eigenpairs(
    M: Array, count: int, near: Array | None = None
) -> tuple[Float, Array]:
    """Return the largest eigenvalues of a symmetric matrix, falling, and eigenvectors.

    Eigenvalues are on the host. A matrix on the host that is not small is decomposed on
    the accelerator of ``near``.
    """
    if near is not None and len(M) >= 160 and is_on_accelerator(near):
        values, vectors = eigh(to_device(M, near))
        vectors = to_host(vectors)
    else:
        values, vectors = eigh(M)
    first = max(len(values) - count, 0)
    # Copies, for not every library takes arrays in reverse.
    flipped = namespace(vectors).flip(vectors[:, first:], axis=1)
    return values[first:][::-1].copy(), copy_array(flipped)


def orthonormalize(X: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the columns of X, orthogonal to another basis.

    Columns that depend on others are dropped, so the result may be narrower than X.
    This takes products and decompositions of Gram matrices only, repeated up to three
    times.
    """
    eps = rounding_of(X)
    squares = to_host(namespace(X).sum(X * X, axis=0))
    for _ in range(3):
        if against is not None:
            X = X - against @ (against.T @ X)
        gram = to_host(X.T @ X)
        left = np.diag(gram)

        # The rest of a column after the projection must exceed its rounding.
        least = (100 * eps) ** 2 * squares
        kept = np.flatnonzero(left > least)
        if len(kept) < len(left):
            X = select(X, kept, 1)
            gram = gram[np.ix_(kept, kept)]
            left = left[kept]
            squares = squares[kept]
        if not len(kept):
            return X

        lengths = np.sqrt(left)[:, None]
        scaled = gram / lengths / lengths.T
        mixing, largest = _inverse_root(scaled, eps)
        transform = to_device(mixing / lengths, X, precision_of(X))
        X = X @ transform
        if largest < 30 and np.all(left > 0.1 * squares):
            break  # the projection removed little, so little of the rest is rounding
        squares = np.ones(X.shape[1])
    return X


def _inverse_root(gram: Float, eps: float) -> tuple[Float, float]:
    """Return an inverse root of a Gram matrix of unit vectors, and its maximum."""
    try:
        # A tenth of the time of eigenvalues, and as good unless the inverse is large.
        root = dtrtri(np.linalg.cholesky(gram).T)[0]
        largest = float(np.abs(root).max())
    except np.linalg.LinAlgError:
        largest = np.inf
    if largest > 1e3:
        values, vectors = eigh(gram)
        some = values > 10 * len(values) * eps
        root = vectors[:, some] / np.sqrt(values[some])
    return root, largest


def polar_factor(X: Array) -> Array:
    """Return the orthonormal matrix nearest to X: ``U V^T`` of its thin SVD."""
    if is_foreign(X):
        Q, R = namespace(X).linalg.qr(X)
        return Q @ to_device(polar_factor(to_host(R)), Q)
    U, _, Vt = np.linalg.svd(X, full_matrices=False)
    return U @ Vt


def psd_part(M: Array, *, count: int = 0) -> tuple[Array, Float, Array]:
    """Return the nearest positive semidefinite matrix, and eigenpairs of the given one.

    These are the positive eigenvalues, and at least the ``count`` largest, falling, on
    the host, and their eigenvectors.
    """
    values, vectors = top_eigenpairs(M, M.shape[0])
    n_kept = max(count, int((values > 0).sum()))
    values = values[:n_kept]
    vectors = vectors[:, :n_kept]
    root = vectors * to_device(np.sqrt(np.maximum(values, 0)), vectors)
    part = root @ root.T
    if is_foreign(M):
        # NumPy knows such a product to be symmetric; others round both sides.
        part = (part + part.T) / 2
    return part, values, vectors
