"""Samples that are missing from kernels: each kernel becomes the block of those that it has."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.linalg import is_foreign, namespace, select, to_host
from mkclust.linalg.sparse_rows import zero_rows
from mkclust.samples.checks import memory_map
from mkclust.samples.forms import depth
from mkclust.samples.frames import is_frame
from mkclust.samples.missing import (
    absent_entries,
    empty_rows,
    is_looked_at,
    masked,
    refuse_empty,
    refuse_unseen,
    shape_of,
    without_empty,
)
from mkclust.samples.observed_block import single_kernels, take_block, take_table
from mkclust.samples.row_source import RowSource


def observed_kernels(
    names: Sequence[str],
    kernels: Any,
    absent: np.ndarray | None,
    observed: Any,
    index: Any,
    cross: bool,
) -> tuple[list[Any], np.ndarray] | None:
    """Return kernels of just the samples that they have, None where they have all.

    Parameters
    ----------
    names : sequence of str
        Names of the kernels.
    kernels : sequence of matrix, array or dataset of shape (m, n, n), or RowSource
        The kernels.
    absent : ndarray of bool of shape (n_samples, m) or None
        Which samples they do not hold since they were joined; None where they hold all.
    observed : array-like, mapping or None
        What a user says of the samples that each kernel has.
    index : pandas.Index or None
        The index of the samples.
    cross : bool
        Whether the kernels are those of new samples (rows) with training samples (columns), which
        all stay.

    Returns
    -------
    kernels : list of matrix
        A block each; what is in a file stays there.
    missing : ndarray of bool of shape (n_samples, m)
        Which samples are missing from which kernel.
    """
    whole = kernels if isinstance(kernels, RowSource) or hasattr(kernels, "shape") else None
    if whole is not None and observed is None and not _may_lack_samples(whole, cross):
        return None
    parts = list(kernels) if whole is None else single_kernels(whole)
    look, take = (empty_rows, take_table) if cross else (empty_samples, take_block)
    missing = absent
    if observed is not None:
        titles = [f"Kernel {name!r}" for name in names]
        parts, missing = masked(parts, titles, names, absent, observed, index, take)
    if len(parts) > 1:
        parts, missing = without_empty(parts, missing, look, take)
    if missing is None or not missing.any():
        return None
    refuse_unseen(missing, index, "kernel")
    if not cross:
        refuse_empty(missing, names, "kernel")
    return parts, missing


def _may_lack_samples(whole: Any, cross: bool) -> bool:
    """Return whether a stack of kernels in memory, or in a memory map, lacks samples."""
    if isinstance(whole, RowSource) or len(whole.shape) != 3 or 0 in whole.shape:
        return False
    if not (isinstance(whole, np.ndarray) or is_foreign(whole)):
        return False
    look = empty_rows if cross else empty_samples
    return any(look(kernel) is not None for kernel in single_kernels(whole))


def empty_samples(kernel: Any) -> np.ndarray | None:
    """Return of which samples a kernel has no entry at all, None where there is none.

    Samples are missing whose rows and columns are all NaN, or masked. They are told by the
    diagonal; of a memory map, nothing else is looked at.

    Parameters
    ----------
    kernel : matrix of shape (n, n)
        What is in no memory, and no memory map, is not looked at.

    Returns
    -------
    ndarray of bool of shape (n,) or None
    """
    on_disk = isinstance(kernel, np.ndarray) and memory_map(kernel) is not None
    if not (on_disk or issparse(kernel) or is_looked_at(kernel)) or depth(kernel) != 2:
        return None
    rows, columns = shape_of(kernel)
    if rows != columns or not rows:
        return None
    absent = _absent_diagonal(kernel)
    if not absent.any() or on_disk:
        return absent if absent.any() else None
    candidates = np.flatnonzero(absent)
    absent[candidates] = _absent_in_full(kernel, candidates)
    return absent if absent.any() else None


def zero_samples(kernel: Any, cross: bool) -> np.ndarray | None:
    """Return which samples are similar to none, themselves included, None if there is none.

    Parameters
    ----------
    kernel : matrix of shape (n, n), or (n_new, n)
        What is not in memory is not looked at.
    cross : bool
        Whether it is one of new samples (rows) with training samples (columns).

    Returns
    -------
    ndarray of bool of shape (n_rows,) or None
    """
    if isinstance(kernel, list | tuple) and len(set(map(np.size, kernel))) > 1:
        return None  # rows of different lengths, which are refused elsewhere
    if is_frame(kernel) or isinstance(kernel, list | tuple):
        kernel = np.asarray(kernel)
    if (not issparse(kernel) and not is_looked_at(kernel)) or depth(kernel) != 2:
        return None
    if not cross and kernel.shape[0] == kernel.shape[1] and not issparse(kernel):
        xp = namespace(kernel)
        if not bool(xp.any(xp.linalg.diagonal(kernel) == 0)):  # spares the rows
            return None
    zero = zero_rows(kernel.tocsr() if issparse(kernel) else kernel)
    return zero if zero.any() else None


def _absent_diagonal(kernel: Any) -> np.ndarray:
    """Return which self-similarities are not there."""
    if isinstance(kernel, np.ndarray) and kernel.dtype.kind in "biu":
        return np.zeros(len(kernel), dtype=bool)
    if is_foreign(kernel):
        xp = namespace(kernel)
        return to_host(xp.isnan(xp.linalg.diagonal(kernel)), None)
    if is_frame(kernel) or isinstance(kernel, list | tuple):
        kernel = np.asarray(kernel)
    if np.ma.isMaskedArray(kernel):
        masked = np.ma.getmaskarray(kernel).diagonal()
        return masked | absent_entries(np.ma.getdata(kernel).diagonal())
    return absent_entries(kernel.diagonal())


def _absent_in_full(kernel: Any, candidates: np.ndarray) -> np.ndarray:
    """Return which of some samples have neither a row nor a column in a kernel."""
    if issparse(kernel):
        rows, columns = (
            kernel.tocsr()[candidates].toarray(),
            kernel.tocsc()[:, candidates].toarray(),
        )
        return np.isnan(rows).all(axis=1) & np.isnan(columns).all(axis=0)
    if is_foreign(kernel):
        xp = namespace(kernel)
        rows, columns = select(kernel, candidates), select(kernel, candidates, axis=1)
        whole = xp.all(xp.isnan(rows), axis=1) & xp.all(xp.isnan(columns), axis=0)
        return to_host(whole, None)
    if is_frame(kernel) or isinstance(kernel, list | tuple):
        kernel = np.asarray(kernel)
    rows, columns = _absent_or_masked(kernel[candidates]), _absent_or_masked(kernel[:, candidates])
    return np.asarray(rows.all(axis=1) & columns.all(axis=0))


def _absent_or_masked(rows: np.ndarray) -> np.ndarray:
    """Return which entries are masked or NaN."""
    absent = absent_entries(np.ma.getdata(rows))
    return absent | np.ma.getmaskarray(rows) if np.ma.isMaskedArray(rows) else absent
