"""Checks of views, tables of samples by features: of their form, then of entries."""

import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import check_array

from mkclust.exceptions import InputError, warn
from mkclust.linalg import as_floats as as_foreign_floats
from mkclust.linalg import check_one_place, is_foreign, namespace, ranges, to_host
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.linalg.sparse_rows import as_csr, stored_entries
from mkclust.text import join_words
from mkclust.types import Array

# Kernels are symmetric up to this share of their largest entry, in single precision
# too.
ROUNDING = 1e-5


def is_dask(array: Any) -> bool:
    """Return whether something is a dask array, without importing dask."""
    return type(array).__module__.startswith("dask.array")


def n_dims(item: Any) -> int:
    """Return the number of dimensions of an array, a data frame or nested lists."""
    if hasattr(item, "shape"):
        return len(item.shape)
    if isinstance(item, list | tuple):
        return 1 + (n_dims(item[0]) if item else 0)
    return 0


def n_rows(table: Any) -> int:
    """Return the number of samples of a table or kernel, zero if it is unknown."""
    shape = tuple(getattr(table, "shape", ()))
    if len(shape) == 2 and shape[0] == shape[0]:
        return int(shape[0])
    return 0


def is_symmetric(X: Any) -> bool:
    """Return whether X is square, has several rows, and is symmetric but for rounding.

    Of a file, the first rows decide.
    """
    if getattr(X, "ndim", 0) != 2 or not X.shape[0] == X.shape[1] > 1:
        return False
    if issparse(X):
        X = X.astype(float)
        return bool(abs(X - X.T).max() <= ROUNDING * abs(X).max())

    # Rows that are compared at a time.
    compared_rows = 1024
    if not (in_memory(X) or is_foreign(X) or is_dask(X)):
        head = X[:compared_rows]
        X = np.asarray(head)[:, :compared_rows]
    if not is_foreign(X):
        X = np.asarray(X)
        if X.dtype.kind not in "biuf":
            return False

    # The first tells nearly all tables from kernels.
    blocks = ranges(X.shape[0], compared_rows)
    return all(_are_equal(X[rows, :], X[:, rows].T) for rows in blocks)


def _are_equal(block: Array, other: Array) -> bool:
    """Return whether two blocks are equal but for rounding, with the same gaps."""
    xp = namespace(block)
    are_nan = (block != block) & (other != other)
    is_same = (block == other) | are_nan
    if bool(xp.all(is_same)) or not xp.isdtype(block.dtype, "real floating"):
        return bool(xp.all(is_same))

    is_finite = xp.isfinite(block)
    zeros = xp.zeros_like(block)
    sizes = xp.where(is_finite, xp.abs(block), zeros)
    difference = xp.abs(block - other)
    is_near = difference <= ROUNDING * xp.max(sizes)
    return bool(xp.all(is_same | is_near))


def memory_map(view: Any) -> np.memmap | None:
    """Return the memory map that a view is, or is a part of."""
    while isinstance(view, np.ndarray):
        if isinstance(view, np.memmap) and isinstance(view.base, mmap.mmap):
            return view
        view = view.base
    return None


def in_memory(table: Any) -> bool:
    """Return whether all entries of a table are in the memory of the host."""
    is_held = issparse(table) or isinstance(table, pd.DataFrame | np.ndarray)
    return is_held and memory_map(table) is None


def check_masks(table: Any, title: str) -> None:
    """Refuse an array with masked entries: what is below them is not a number."""
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        raise ValueError(
            f"{title} has {np.ma.count_masked(table)} masked entries: fill them, or "
            "drop these samples."
        )


def check_view(view: Any, title: str, *, may_lack_rows: bool = False) -> Any:
    """Return a view as an array of numbers, sparse ones as CSR; files are not read."""
    if (
        title == "X"
        and isinstance(view, np.ndarray | pd.DataFrame)
        and n_dims(view) < 3
    ):
        # One table is refused in the words of scikit-learn.
        view = check_array(view, input_name="X", ensure_all_finite=False)
    if is_sparse_tensor(view):
        raise TypeError(
            f"{title} is a sparse tensor: pass a scipy.sparse.csr_array or a dense one"
        )
    if n_dims(view) != 2:
        raise ValueError(
            f"{title} has {n_dims(view)} dimensions, but a view has 2, samples by "
            "features: pass views as a list, kernels with kernels='precomputed', one "
            "feature as reshape(-1, 1)."
        )
    if 0 in view.shape[int(may_lack_rows) :]:
        raise ValueError(
            f"{title} is empty, of shape {tuple(view.shape)}; leave it out."
        )
    if is_dask(view) and np.isnan(np.concatenate(view.chunks)).any():
        raise ValueError(
            f"{title} has chunks of unknown size: call compute_chunk_sizes() on it."
        )
    if isinstance(view, np.ndarray | pd.DataFrame):
        view = as_numbers(view, title)
    if issparse(view):
        check_type(view.dtype, title)
        return as_csr(view)
    if is_foreign(view):
        as_floats(view[:0, :], title)  # refuses what is not a number
    elif hasattr(view, "dtype"):
        check_type(view.dtype, title)
    return view


def as_numbers(view: Any, title: str) -> Any:
    """Return a data frame or an array as an array of numbers, objects converted."""
    if isinstance(view, np.ndarray) and view.dtype.kind in "biuf":
        return view
    options: dict[str, Any] = {"ensure_min_samples": 0, "ensure_min_features": 0}
    try:
        if any(
            getattr(dtype, "fill_value", 0) != 0
            for dtype in getattr(view, "dtypes", ())
        ):
            view = view.astype(float)  # sparse columns, but not of zeros
        array = check_array(
            view, accept_sparse="csr", ensure_all_finite=False, **options
        )
        if array.dtype == object:  # decimals
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        which = ""
        if isinstance(view, pd.DataFrame):
            columns = view.select_dtypes(exclude="number")
            which = f" (columns {join_words(map(repr, columns))})"
        kind = type(error) if type(error) is TypeError else ValueError
        raise kind(f"{title} is not a table of real numbers{which}. {error}") from error
    check_type(array.dtype, title)
    return array


def check_together(views: Mapping[str, Any], *, same_length: bool = True) -> None:
    """Refuse views of different numbers of samples, libraries or devices."""
    (first, reference), *others = views.items()
    for name, view in others:
        if same_length and view.shape[0] != reference.shape[0]:
            raise ValueError(
                f"View {first!r} has {reference.shape[0]} rows but view {name!r} has "
                f"{view.shape[0]}; pass the same samples, or data frames whose index "
                "holds ids (set_index), which are joined by id."
            )
    held = [repr(name) for name, view in views.items() if not is_dask(view)]
    if 0 < len(held) < len(views):
        raise TypeError(
            f"View {held[0]} is not a dask array, but others are: pass one kind only"
        )
    words = [f"View {name!r}" for name in views]
    check_one_place(list(views.values()), words)


def check_observed(missing: np.ndarray | None, names: Sequence[str]) -> None:
    """Refuse a view or kernel of a single sample, and warn of one of very few."""
    if missing is None:
        return
    # A view is warned of that has fewer samples than this, and than this share of all.
    few_observed = 10
    few_share = 0.2
    counts = (~missing).sum(axis=0)
    for name, n_observed in zip(names, counts, strict=True):
        has = f"View {name!r} is observed for {n_observed} of {len(missing)} samples"
        advice = "leave it out, or check that its ids are those of the other views"
        if n_observed == 1:
            raise ValueError(f"{has}; {advice}.")
        if 1 < n_observed < min(few_observed, few_share * len(missing)):
            warn(f"{has}, and may get a large weight; {advice}.")


def check_entries(
    views: Mapping[str, Any],
    titles: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
) -> dict[str, Array]:
    """Return views as finite floats in memory, or name all entries that are not."""
    arrays = {name: as_floats(view, titles[name]) for name, view in views.items()}
    findings = []
    for name, array in arrays.items():
        xp = namespace(array)
        if bool(xp.all(xp.isfinite(stored_entries(array)))):
            continue
        n_nan = _count_by_column(array, xp.isnan)
        n_infinite = _count_by_column(array, xp.isinf)
        n_bad = n_nan + n_infinite
        names = columns.get(name)
        bad = np.flatnonzero(n_bad).tolist()
        named = join_words(
            f"{repr(names[p]) if names else f'column {p}'}: {n_bad[p]}" for p in bad
        )
        # One table is refused in scikit-learn's words first.
        lead = ""
        if titles[name] == "X" and not is_foreign(array):
            lead = f"Input X contains {'NaN' if n_nan.any() else 'infinity'}: "

        findings.append(
            f"{lead}{titles[name]} has entries that are not finite: {n_nan.sum()} NaN "
            f"and {n_infinite.sum()} infinity, in {len(bad)} of its {array.shape[1]} "
            f"columns ({named})"
        )
    if findings:
        raise InputError(
            f"{'; '.join(findings)}; pass impute='median' to fill NaN in tables in "
            "memory, or drop these columns or rows; replace infinity yourself."
        )
    return arrays


def _count_by_column(array: Array, holds: Callable[[Any], Any]) -> np.ndarray:
    """Count the entries of each column that satisfy a test that zeros fail."""
    if issparse(array):
        columns = array.indices[holds(array.data)]
        return np.bincount(columns, minlength=array.shape[1])
    xp = namespace(array)
    marks = xp.astype(holds(array), xp.int64)
    return to_host(xp.sum(marks, axis=0), None)


def as_floats(rows: Any, title: str) -> Array:
    """Return rows as float32 or float64, without a copy if they already are."""
    if issparse(rows):
        return rows  # as `check_view` made them
    if is_foreign(rows):
        return as_foreign_floats(rows, title)
    check_masks(rows, title)
    array = np.asarray(rows)
    check_type(array.dtype, title)
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return array.astype(dtype, copy=False)


def check_type(dtype: Any, title: str) -> None:
    """Refuse entries that are not real numbers."""
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(
            f"{title} has entries of type {dtype}, not real numbers: convert them."
        )
