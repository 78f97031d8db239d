"""What is wrong with a view, a table of samples by features: its form first, then its entries."""

import mmap
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array

from mkclust.datasets.parquet import ParquetTable
from mkclust.linalg import as_floats as as_foreign_floats
from mkclust.linalg import check_one_place, is_foreign, namespace, place, to_host
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.linalg.sparse_rows import as_csr, stored_entries
from mkclust.samples.forms import check_masks, depth
from mkclust.samples.frames import has_columns
from mkclust.text import join_words
from mkclust.types import Array

# Of columns to be dropped, so many are named.
MAX_DROPPED = 10
# A view is warned of that has fewer samples than this, and than this share of all.
FEW_OBSERVED, FEW_SHARE = 10, 0.2


def is_dask(array: Any) -> bool:
    """Whether something is a dask array, found out without importing dask."""
    return type(array).__module__.startswith("dask.array")


def check_dask(views: Mapping[str, Any]) -> None:
    """Refuse dask views beside others, and those whose samples cannot be counted or read as rows.

    Parameters
    ----------
    views : mapping of str to array-like
        The views, as they came.
    """
    for name, view in views.items():
        if type(view).__module__.startswith(("dask.dataframe", "dask_expr")):
            raise TypeError(
                f"View {name!r} is a dask data frame: pass the array that its "
                "to_dask_array(lengths=True) returns"
            )
    others = [name for name, view in views.items() if not is_dask(view)]
    if others and len(others) < len(views):
        lazy = [name for name in views if name not in others]
        if foreign := [name for name in others if is_foreign(views[name])]:
            raise TypeError(
                f"The views {lazy} are dask arrays, but {foreign[0]!r} is an array of "
                f"{place(views[foreign[0]])}: turn the dask arrays into such arrays, by way of "
                "compute(), or the others into dask arrays of NumPy's"
            )
        raise TypeError(
            f"The views {lazy} are dask arrays, but {others} are not: turn these into dask arrays "
            "with dask.array.from_array, or the others into NumPy arrays with compute()"
        )
    for name, view in views.items():
        if not is_dask(view):
            continue
        if np.isnan([size for sizes in view.chunks for size in sizes]).any():
            raise ValueError(
                f"View {name!r} has chunks of unknown size, so its samples cannot be "
                "counted: call compute_chunk_sizes() on it first"
            )
        if isinstance(view._meta, np.ma.MaskedArray):
            raise TypeError(
                f"View {name!r} has chunks that are masked arrays: fill them in with "
                "dask.array.ma.filled"
            )
        if not isinstance(view._meta, np.ndarray):
            kind = type(view._meta)
            raise TypeError(
                f"View {name!r} has chunks of the type {kind.__module__}.{kind.__name__}: turn "
                "them into dense NumPy arrays with map_blocks, such as by lambda chunk: "
                "chunk.toarray()"
            )


def check_view(view: Any, title: str, *, may_lack_rows: bool = False) -> Any:
    """Return a view of numbers that can be sliced by rows; arrays and files are not read.

    Parameters
    ----------
    view : object
        What should be a table of samples by features.
    title : str
        How messages call it.
    may_lack_rows : bool, default=False
        Whether it may have no row at all, as a view that all new samples are missing from.

    Returns
    -------
    array, memory map or data set
        Lists and data frames become arrays, and SciPy's sparse matrices CSR arrays of floats; what
        has rows to slice stays as it is.
    """
    if is_sparse_tensor(view):
        raise TypeError(
            f"{title} is a sparse tensor, and sparse views are computed with by SciPy: pass a "
            "scipy.sparse.csr_array of it, beside NumPy arrays, or its .to_dense()."
        )
    if depth(view) != 2:
        raise ValueError(
            f"{title} has {depth(view)} dimensions, but a view has 2, samples by features; "
            "turn a single feature into a column with reshape(-1, 1)."
        )
    is_empty = 0 in getattr(view, "shape", ())[int(may_lack_rows) :]
    is_frame = hasattr(view, "columns") and not isinstance(view, ParquetTable)
    if not is_empty and (isinstance(view, np.ndarray) or is_frame or not hasattr(view, "shape")):
        view = _as_numbers(view, title)
    if 0 in view.shape[int(may_lack_rows) :]:
        raise ValueError(f"{title} is empty, of shape {tuple(view.shape)}; leave it out.")
    if issparse(view):
        return _as_sparse_rows(view, title)
    if is_foreign(view):
        as_floats(view[:0, :], title)  # refuses what is no number
    elif hasattr(view, "dtype"):
        _check_type(view.dtype, title)
    return view


def check_observed(missing: np.ndarray | None, names: Sequence[str]) -> None:
    """Refuse a view or kernel that has a single sample, and warn of one that has very few.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_samples, n_views) or None
        Which samples are missing from which views.
    names : sequence of str
        The views.
    """
    if missing is None:
        return
    for name, n_observed in zip(names, (~missing).sum(axis=0), strict=True):
        has = f"View {name!r} is observed for {n_observed} of {len(missing)} samples"
        advice = "leave it out, or check that its ids are those of the other views"
        if n_observed == 1:
            raise ValueError(f"{has}, and nothing can be compared with a single one; {advice}.")
        if 1 < n_observed < min(FEW_OBSERVED, FEW_SHARE * len(missing)):
            warnings.warn(
                f"{has}: so few say little of the clusters, and may get a large weight; {advice}.",
                UserWarning,
                stacklevel=2,
            )


def check_entries(
    views: Mapping[str, Any],
    titles: Mapping[str, str],
    columns: Mapping[str, Sequence[str]] | None = None,
    missing: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Array]:
    """Return checked views as arrays of floats in memory, or name all entries that are not finite.

    Parameters
    ----------
    views : mapping of str to array of shape (n_samples, n_features)
        The views.
    titles : mapping of str to str
        How messages call them.
    columns : mapping of str to sequence of str, default=None
        The names of their columns, where they have any.
    missing : mapping of str to mapping of str to int, default=None
        How many categories are missing, by view and column.
    """
    arrays = {name: as_floats(view, titles[name]) for name, view in views.items()}
    findings, incomplete = [], list(missing or ())
    empty_columns: list[str] = []
    infinite_columns: list[str] | None = None
    for name, array in arrays.items():
        xp = namespace(array)
        if missing and name in missing:
            counts = missing[name]
            named = [f"{column!r}: {count}" for column, count in counts.items()]
            total = sum(counts.values())
            what = f"{total} missing cell{'s' * (total > 1)} (NaN)"
            findings.append(f"{titles[name]} has {what} among its categories ({join_words(named)})")
        if bool(xp.all(xp.isfinite(stored_entries(array)))):
            continue
        nan, infinite = (_count_by_column(array, f) for f in (xp.isnan, xp.isinf))
        places = np.flatnonzero(nan + infinite).tolist()
        names = (columns or {}).get(name)
        empty = (nan == array.shape[0]) & (names is not None)
        empty_columns += [names[p] for p in np.flatnonzero(empty).tolist()] if names else []
        incomplete += [name] * bool(nan[~empty].any())
        if infinite.any():
            infinite_columns = infinite_columns or []
            infinite_columns += (
                [names[p] for p in np.flatnonzero(infinite).tolist()] if names else []
            )
        named = [
            f"{repr(names[place]) if names else f'column {place}'}: {nan[place] + infinite[place]}"
            for place in places
        ]
        # One table is refused in scikit-learn's words first.
        alone = titles[name] == "X" and not is_foreign(array)
        lead = f"Input X contains {'NaN' if nan.any() else 'infinity'}: " if alone else ""
        findings.append(
            f"{lead}{titles[name]} has entries that are not finite: {nan.sum()} NaN and "
            f"{infinite.sum()} infinity, in {len(places)} of its {array.shape[1]} columns "
            f"({join_words(named)})"
        )
    if findings:
        incomplete_views = {name: views[name] for name in incomplete}
        fill = _advice_on_missing(incomplete_views, titles)
        advice = _advice_on_entries(fill, empty_columns, infinite_columns)
        raise ValueError(f"{'; '.join(findings)}; {advice}.")
    return arrays


def _advice_on_missing(views: Mapping[str, Any], titles: Mapping[str, str]) -> list[str]:
    """Say how views with missing entries are filled: those in the memory of the host, or others."""
    elsewhere = [
        titles[name]
        for name, view in views.items()
        if not is_in_memory(view) or memory_map(view) is not None
    ]
    ways = []
    if len(elsewhere) < len(views):
        ways.append("pass impute='median' to fill what is missing with the median of its column")
    if elsewhere:
        ways.append(
            f"fill {join_words(elsewhere)} beforehand, for impute is for tables in the memory of "
            "the host, such as numpy.array(view)"
        )
    return ways


def _advice_on_entries(
    fill: list[str], empty_columns: list[str], infinite_columns: list[str] | None
) -> str:
    """Say what to do about missing cells, columns of nothing else, and infinity."""
    empty = f"drop the columns without any value by {dropping(empty_columns)}"
    if empty_columns and not fill and infinite_columns is None:
        return empty
    ways = list(fill)
    if infinite_columns is not None:
        ways.append("impute infinity yourself")
    if infinite_columns and len(infinite_columns) <= MAX_DROPPED:
        ways.append(f"leave its columns out by {dropping(infinite_columns)}")
    rest = ", or ".join([*ways, "drop these rows from every view"])
    return f"{empty}, and {rest}" if empty_columns else rest


def dropping(names: Sequence[str]) -> str:
    """Return how columns are dropped in Python, of many the first.

    Parameters
    ----------
    names : sequence of str
        The columns.
    """
    return f"frame.drop(columns={list(map(str, names[:MAX_DROPPED]))!r})"


def is_in_memory(table: Any) -> bool:
    """Return whether all entries of a table are in the memory of the host."""
    on_host = issparse(table) or has_columns(table) or isinstance(table, list | tuple | np.ndarray)
    elsewhere = memory_map(table) is not None or is_foreign(table) or is_dask(table)
    return on_host and not elsewhere


def memory_map(view: Any) -> np.memmap | None:
    """Return the memory map that a view is, or is a part of."""
    while isinstance(view, np.ndarray):
        if isinstance(view, np.memmap) and isinstance(view.base, mmap.mmap):
            return view
        view = view.base
    return None


def _count_by_column(array: Array, holds: Callable[[Any], Any]) -> np.ndarray:
    """Return for how many entries of each column something holds, which it does not for zeros."""
    if issparse(array):
        return np.bincount(array.indices[holds(array.data)], minlength=array.shape[1])
    xp = namespace(array)
    return to_host(xp.sum(xp.astype(holds(array), xp.int64), axis=0), None)


def check_table(X: Any, columns: Sequence[str] | None = None) -> Array:
    """Return one table as floats; what is no table is worded as scikit-learn does."""
    if not (issparse(X) or is_foreign(X)):
        if depth(X) > 2:
            raise ValueError(
                f"X has {depth(X)} dimensions, but a table of samples by features has 2; "
                "pass several views as a list or a dict of 2-D arrays."
            )
        X = check_array(X, input_name="X", ensure_all_finite=False)
    names = {} if columns is None else {"X": columns}
    return check_entries({"X": check_view(X, "X")}, {"X": "X"}, names)["X"]


def check_together(views: Mapping[str, Any], *, same_length: bool = True) -> None:
    """Refuse views of different numbers of samples, libraries or devices."""
    (first, reference), *others = views.items()
    for name, view in others:
        if same_length and view.shape[0] != reference.shape[0]:
            raise ValueError(
                f"View {first!r} has {reference.shape[0]} rows but view {name!r} has "
                f"{view.shape[0]}; every view must describe the same samples, in the same order. "
                "Data frames of pandas are joined by id: set_index makes a column of ids the index."
            )
    sparse = [name for name, view in views.items() if issparse(view)]
    foreign = [name for name, view in views.items() if is_foreign(view)]
    if sparse and foreign:
        raise TypeError(
            f"View {sparse[0]!r} is a sparse matrix, which stays on the host, and view "
            f"{foreign[0]!r} an array of {place(views[foreign[0]])}: pass the others as NumPy "
            "arrays, or a few dense columns of the sparse one, such as those of TruncatedSVD, "
            "beside them."
        )
    titles = [f"View {first!r}", *(f"view {name!r}" for name, _ in others)]
    check_one_place(list(views.values()), titles)


def as_floats(rows: Any, title: str) -> Array:
    """Return rows as float32 or float64, not copied where they are; others become float64."""
    if issparse(rows):
        return rows  # as `check_view` made them
    if is_foreign(rows):
        return as_foreign_floats(rows, title)
    check_masks(rows, title)
    array = np.asarray(rows)
    _check_type(array.dtype, title)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _as_numbers(view: Any, title: str) -> np.ndarray:
    """Return a list, a data frame or an array as an array of numbers, objects converted."""
    try:
        array = check_array(
            view, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
        )
        # Decimals of polars are left as they are.
        return array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{title} is not a table of real numbers. {error}") from error


def _as_sparse_rows(view: Any, title: str) -> Any:
    """Return a sparse matrix of any format and number type as CSR rows of floats."""
    _check_type(view.dtype, title)
    try:
        return as_csr(view)
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{title} is a sparse matrix whose indices do not fit its shape {view.shape} "
            f"({error}); build it anew."
        ) from error


def _check_type(dtype: Any, title: str) -> None:
    """Refuse entries that are no real numbers."""
    if np.dtype(dtype).kind not in "biuf":
        raise ValueError(
            f"{title} has entries of type {dtype}, which are not real numbers; convert or drop "
            "those columns."
        )
