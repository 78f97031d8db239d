"""Eigenvalues and eigenvectors of symmetric matrices, by another driver where one fails.

No driver of LAPACK finds those of every matrix: asked for the largest alone, some fail on a
centered identity, or return fewer. All eigendecompositions of dense matrices are made here.
"""

from typing import Any

import numpy as np
import scipy.linalg

from mkclust.linalg.arrays import is_foreign, namespace, to_device, to_host
from mkclust.types import Array, Float


def eigh(M: Array, *, top: int | None = None) -> tuple[Float, Array]:
    """Return the eigenvalues of a symmetric matrix, rising, on the host, and the eigenvectors.

    On the host, several matrices can be given, (m, n, n), or so many of the largest eigenvalues of
    one be asked for. The eigenvectors are where the matrix lives.
    """
    if is_foreign(M):
        found = _by_its_library(M, "eigh")
        if found is not None and np.all(np.isfinite(values := to_host(found[0]))):
            return values, found[1]
        values, vectors = eigh(to_host(M))
        return values, to_device(vectors, M)
    if top is None:
        return _all_on_host(M)
    n = len(M)
    try:
        values, vectors = scipy.linalg.eigh(M, subset_by_index=(n - top, n - 1), check_finite=False)
        # Of eigenvalues that tie, LAPACK may return fewer than asked for, and say nothing.
        if len(values) == top:
            return values, vectors
    except np.linalg.LinAlgError:
        pass
    values, vectors = _all_on_host(M)
    return values[n - top :], vectors[:, n - top :]


def eigvalsh(M: Array) -> Float:
    """Return the eigenvalues of a symmetric matrix, or of several on the host, rising."""
    if is_foreign(M):
        found = _by_its_library(M, "eigvalsh")
        if found is not None and np.all(np.isfinite(values := to_host(found))):
            return values
        return eigvalsh(to_host(M))
    try:
        return np.linalg.eigvalsh(M)
    except np.linalg.LinAlgError:
        return _all_on_host(M)[0]


def _by_its_library(M: Array, name: str) -> Any:
    """Return what the library of an array answers, None where it finds nothing."""
    try:
        return getattr(namespace(M).linalg, name)(M)
    except Exception as error:
        # Libraries have classes of their own for that, with no base in common but this.
        if "LinAlgError" not in type(error).__name__:
            raise
        return None


def _all_on_host(M: np.ndarray) -> tuple[Float, Float]:
    """Return all eigenpairs of one matrix of the host, or of several."""
    try:
        return np.linalg.eigh(M)
    except np.linalg.LinAlgError:
        if M.ndim > 2:
            pairs = [_all_on_host(each) for each in M]
            return np.stack([pair[0] for pair in pairs]), np.stack([pair[1] for pair in pairs])
    try:
        return scipy.linalg.eigh(M, driver="evr")
    except np.linalg.LinAlgError:
        return scipy.linalg.eigh(M, driver="ev")
