"""Samples that are missing from views or kernels: their rows are cut out once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mkclust.data.blocks import Blocks
from mkclust.data.check import (
    in_memory,
    is_dask,
    is_symmetric,
    memory_map,
    n_dims,
    n_rows,
)
from mkclust.data.dask import DaskBlocks
from mkclust.data.row_source import RowSubset
from mkclust.index import has_ids, index_of, match_rows
from mkclust.linalg import (
    arrays_to_host,
    is_foreign,
    is_sparse,
    namespace,
    select,
    to_host,
)
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.linalg.sparse_rows import zero_rows
from mkclust.text import count, join_words


def take(table: Any, rows: np.ndarray, is_kernel: bool = False) -> Any:
    """Return some rows of a table, or rows and columns of a kernel."""
    if isinstance(table, RowSubset):
        return table.take(rows)
    if isinstance(table, pd.DataFrame):
        return table.iloc[rows, rows if is_kernel else slice(None)]
    if is_sparse(table):
        if hasattr(table, "tocsr"):  # not if it is known by sparse factors
            table = table.tocsr()
        part = table[rows, :]
        if is_kernel:
            return part[:, rows]
        return part
    if in_memory(table) or is_foreign(table) or is_dask(table):
        part = select(table, rows)
        if is_kernel:
            return select(part, rows, axis=1)
        return part
    if not hasattr(table, "shape"):
        raise TypeError(
            "X is known by its rows alone: pass kernels as arrays to use some samples"
        )
    return RowSubset(table, rows, is_kernel)


def take_columns(table: Any, places: np.ndarray) -> Any:
    """Return some columns of a table, in the given order."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, places]
    return select(table, places, axis=1)


def single_kernels(whole: Any) -> list[Any]:
    """Return the kernels of an array or dataset of shape (m, n, n), one by one."""
    if isinstance(whole, np.ndarray) or is_foreign(whole):
        return [whole[p, ...] for p in range(whole.shape[0])]
    n_kernels, n, n_columns = whole.shape
    return [
        RowSubset(whole, np.arange(n), n == n_columns, place)
        for place in range(n_kernels)
    ]


def cut_missing(
    parts: Mapping[str, Any],
    absent: np.ndarray | None,
    observed: Any,
    index: Any,
    *,
    is_kernels: bool = False,
    is_new: bool = False,
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return views or kernels of the samples they have, and the mask of the others.

    They hold all samples, those that are not `absent` after a join, or those that
    `observed` says. New samples (`is_new`) may all lack a view, and the columns of
    their kernels are not samples.
    """
    who = "view"
    if is_kernels:
        who = "kernel"
    lengths = {n_rows(part) for part in parts.values()}
    if observed is None and absent is None and len(lengths) > 1:
        return dict(parts), None  # refused elsewhere

    absent, missing = _masks(parts, absent, observed, index)
    are_samples = is_kernels and not is_new
    found = dict(parts)
    for place, (name, part) in enumerate(parts.items()):
        samples = _samples_of(
            part,
            ~absent[:, place],
            ~missing[:, place],
            f"{who.capitalize()} {name!r}",
        )
        if len(parts) > 1:
            if are_samples:
                is_empty = _empty_samples(part)
            else:
                is_empty = _empty_rows(part, name)
            missing[samples[is_empty], place] = True

        lacks = missing[samples, place]
        if lacks.any():
            rows = np.flatnonzero(~lacks)
            found[name] = take(part, rows, are_samples)
            if not is_kernels and _has_pairs(part, lacks, observed is not None):
                found[name] = take_columns(found[name], rows)

    if not missing.any():
        return found, None
    _refuse_gaps(list(parts), missing, index, who, is_new)
    return found, missing


def _masks(
    parts: Mapping[str, Any], absent: np.ndarray | None, observed: Any, index: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples each part lacks after a join, and which are missing."""
    missing = absent
    if observed is not None:
        missing = read_mask(observed, list(parts), index)
    if missing is None:
        n_samples = n_rows(next(iter(parts.values())))
        missing = np.zeros((n_samples, len(parts)), bool)
    if absent is None:
        absent = np.zeros_like(missing)
    if len(absent) != len(missing):
        raise ValueError(
            f"observed has {len(missing):,} rows for {len(absent):,} samples"
        )
    return absent, missing | absent


def _refuse_gaps(
    names: list[str], missing: np.ndarray, index: Any, who: str, is_new: bool
) -> None:
    """Refuse samples of no view or kernel, and these without samples in a fit."""
    ids = np.arange(len(missing))
    if has_ids(index):
        ids = index
    unseen = ids[missing.all(axis=1)].tolist()
    if unseen:
        raise ValueError(
            f"{count(len(unseen), 'sample')} missing from every {who}: "
            f"{join_words(map(repr, unseen))}. Drop them."
        )
    empty = [
        name
        for name, is_missing in zip(names, missing.T, strict=True)
        if is_missing.all()
    ]
    if empty and not is_new:
        raise ValueError(
            f"{who.capitalize()} {join_words(map(repr, empty))} has no sample: leave "
            "it out."
        )


def _samples_of(
    part: Any, held: np.ndarray, kept: np.ndarray, title: str
) -> np.ndarray:
    """Return the samples in the rows of a part: all of a join, or those observed."""
    n = n_rows(part)
    for mask in (held, kept):
        if mask.sum() == n:
            return np.flatnonzero(mask)

    raise ValueError(
        f"{title} has {count(n, 'row')}, and observed says that {kept.sum():,} of "
        f"{len(kept):,} samples are in it: pass all, or these."
    )


def _has_pairs(table: Any, lacks: np.ndarray, is_masked: bool) -> bool:
    """Return whether columns are samples: empty for missing ones, or symmetric."""
    square = (len(lacks), len(lacks))
    if tuple(table.shape) != square or lacks.all():
        return False
    if not in_memory(table) and not is_foreign(table):
        return False
    if is_masked and is_symmetric(table):
        return True
    if is_sparse(table):
        return False
    others = take(table, np.flatnonzero(~lacks))
    return bool(_nan_rows(take_columns(others, np.flatnonzero(lacks))).all())


def _empty_rows(table: Any, name: str) -> np.ndarray:
    """Return which rows of a view hold no entry; a file is not read."""
    none = np.zeros(n_rows(table), bool)
    if n_dims(table) != 2 or 0 in table.shape or is_sparse_tensor(table):
        return none
    if is_sparse(table):
        entries = table.tocoo()
        rows = entries.coords[0][np.isnan(entries.data)]
        counts = np.bincount(rows, minlength=len(none))
        return counts >= table.shape[1]
    if in_memory(table) or is_foreign(table):
        return _nan_rows(table)
    blocks = (DaskBlocks if is_dask(table) else Blocks)({name: table})
    return blocks.map(lambda block, _: _nan_rows(block[name]))


def _empty_samples(kernel: Any) -> np.ndarray:
    """Return which samples of a kernel are all NaN, by the diagonal for files."""
    is_square = n_dims(kernel) == 2 and len(set(kernel.shape)) == 1
    if is_square and memory_map(kernel) is not None:
        return np.isnan(kernel.diagonal())
    if not is_square or not (in_memory(kernel) or is_foreign(kernel)):
        return np.zeros(n_rows(kernel), bool)
    empty = _empty_rows(kernel, "")
    if empty.any():
        return empty & _empty_rows(kernel.T, "")
    return empty


def _nan_rows(values: Any) -> np.ndarray:
    """Return which rows are NaN alone, in NumPy; the first column decides for most."""
    empty = _is_nan(take_columns(values, np.arange(1)))[:, 0]
    rows = np.flatnonzero(empty)
    if len(rows):
        empty[rows] = _is_nan(take(values, rows)).all(axis=1)
    return empty


def _is_nan(values: Any) -> np.ndarray:
    """Return which values are NaN, in NumPy; integers never are."""
    if not is_foreign(values):
        return np.array(pd.isna(values))
    xp = namespace(values)
    if xp.isdtype(values.dtype, "real floating"):
        return to_host(xp.isnan(values), None)
    return np.zeros(values.shape, bool)


def zero_samples(kernel: Any) -> np.ndarray | None:
    """Return which samples have similarity zero to all, or None if none has."""
    if not (in_memory(kernel) or is_foreign(kernel)) or n_dims(kernel) != 2:
        return None
    if not is_foreign(kernel) and kernel.dtype.kind not in "fiub":
        return None
    if is_sparse(kernel):
        kernel = kernel.tocsr()
    elif kernel.shape[0] == kernel.shape[1]:
        xp = namespace(kernel)
        # A row of zeros has one on the diagonal, which is read faster.
        if not bool(xp.any(xp.linalg.diagonal(kernel) == 0)):
            return None
    zero = zero_rows(kernel)
    if zero.any():
        return zero
    return None


def read_mask(observed: Any, names: Sequence[str], index: Any) -> np.ndarray:
    """Return which samples are missing; views without a mask have all of them."""
    given = getattr(observed, "columns", observed)
    if not isinstance(observed, Mapping) and given is observed:
        mask = _as_truth(observed)
        if mask.ndim != 2 or mask.shape[1] != len(names):
            raise ValueError(
                f"observed has the shape {mask.shape}, and there are {len(names)} "
                f"views or kernels ({join_words(names)}): pass a column for each of "
                "these, or a dict by name."
            )
        return ~mask
    columns = {
        str(n): _mask_by_ids(observed[n], index, f"observed of {n!r}") for n in given
    }
    shapes = {column.shape for column in columns.values()}
    if not columns.keys() <= set(names) or len(shapes) != 1 or len(max(shapes)) != 1:
        raise ValueError(
            f"observed has columns for {join_words(map(repr, columns)) or 'nothing'}, "
            f"of the shapes {join_words(sorted(map(str, shapes)))}: pass one value per "
            f"sample for each view that it names, of {join_words(map(repr, names))}."
        )
    everyone = np.ones(max(shapes)[0], dtype=bool)
    masks = [columns.get(name, everyone) for name in names]
    return ~np.column_stack(masks)


def _mask_by_ids(column: Any, index: Any, label: str) -> np.ndarray:
    """Return a column of the mask in the order of the samples."""
    own = index_of(column)
    mask = _as_truth(column)
    if own is None or not (has_ids(own) or has_ids(index)):
        return mask
    if index is None:
        index = len(own)
    return mask[match_rows(own, index, label, "the samples", every=True)]


def _as_truth(values: Any) -> np.ndarray:
    """Return a mask as booleans, refusing anything but truth values."""
    array = np.asarray(arrays_to_host(values))
    if array.dtype == object and all(
        isinstance(x, bool | np.bool_) for x in array.ravel()
    ):
        array = array.astype(bool)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"observed holds {array.dtype}: pass True if a view has a sample."
        )
    return array.astype(bool)
