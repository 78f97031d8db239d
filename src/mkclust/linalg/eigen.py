"""Eigenvalues and eigenvectors of symmetric matrices, by another driver if one fails.

No driver of LAPACK finds those of every matrix. All eigendecompositions of dense matrices are made
here.
"""

import numpy as np
import scipy.linalg

from mkclust.linalg.arrays import is_foreign, namespace, to_device, to_host
from mkclust.types import Array, Float


def eigh(M: Array) -> tuple[Float, Array]:
    """Return the eigenvalues of a symmetric matrix, rising, on the host, and the eigenvectors.

    The eigenvectors are where the matrix lives.
    """
    if is_foreign(M):
        return _eigh_on_device(M)
    try:
        return np.linalg.eigh(M)
    except np.linalg.LinAlgError:
        return scipy.linalg.eigh(M, driver="ev")


def eigvalsh(M: Array) -> Float:
    """Return the eigenvalues of a symmetric matrix, rising, computed on the host."""
    M = to_host(M)
    try:
        return np.linalg.eigvalsh(M)
    except np.linalg.LinAlgError:
        return eigh(M)[0]


def _eigh_on_device(M: Array) -> tuple[Float, Array]:
    """Return what the library of an array finds, or what the host does if that fails."""
    try:
        values, vectors = namespace(M).linalg.eigh(M)
        if np.all(np.isfinite(values := to_host(values))):
            return values, vectors
    except Exception as error:
        # Libraries have classes of their own for that, with no base in common but this.
        if "LinAlgError" not in type(error).__name__:
            raise
    values, vectors = eigh(to_host(M))
    return values, to_device(vectors, M)
