"""Samples that are missing from views or kernels: how they are told, and who has which."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.index import has_ids, index_of, match_rows
from mkclust.linalg import is_foreign, namespace, select, to_host
from mkclust.linalg.arrays import is_sparse_tensor
from mkclust.samples.checks import memory_map
from mkclust.samples.forms import depth
from mkclust.samples.frames import AnnotatedMatrix, is_frame, is_polars, take_columns
from mkclust.samples.observed_block import take_table
from mkclust.samples.row_source import RowSource
from mkclust.text import count, join_words

# So many samples are named in a message.
MOST_NAMED = 5


def empty_rows(table: Any) -> np.ndarray | None:
    """Return which rows of a table have no entry at all, None where there is no such row.

    Parameters
    ----------
    table : table of any form, of shape (n_samples, n_features)
        What is not in memory is not looked at.

    Returns
    -------
    ndarray of bool of shape (n_samples,) or None
    """
    if isinstance(table, AnnotatedMatrix):
        return empty_rows(table.matrix)
    if issparse(table):
        return _empty_sparse_rows(table)
    if not is_looked_at(table) or 0 in shape_of(table):
        return None
    (n, width), start, stop = shape_of(table), 0, 1
    rows = np.flatnonzero(_absent(table, None, 0, 1).all(axis=1))
    while len(rows) and stop < width:  # a few columns first: most rows are told by these
        start, stop = stop, min(2 * stop, width)
        rows = rows[_absent(table, rows, start, stop).all(axis=1)]
    if not len(rows):
        return None
    empty = np.zeros(n, dtype=bool)
    empty[rows] = True
    return empty


def is_looked_at(table: Any) -> bool:
    """Return whether a table is in memory, on the host or on a device, and may lack entries."""
    if is_frame(table) or is_polars(table) or isinstance(table, list | tuple):
        return True
    if is_foreign(table):
        xp = namespace(table)
        return not is_sparse_tensor(table) and bool(xp.isdtype(table.dtype, "real floating"))
    is_array = isinstance(table, np.ndarray) and memory_map(table) is None
    return is_array and (table.dtype.kind in "fO" or np.ma.is_masked(table))


def shape_of(table: Any) -> tuple[int, int]:
    """Return the numbers of rows and columns of a table in memory."""
    return tuple(table.shape) if hasattr(table, "shape") else (len(table), len(table[0]))


def _absent(table: Any, rows: np.ndarray | None, start: int, stop: int) -> np.ndarray:
    """Return which entries of some columns, of some rows or of all, are not there."""
    if is_frame(table):
        part = table.iloc[:, start:stop]
        return (part if rows is None else part.iloc[rows]).isna().to_numpy()
    if is_polars(table):
        part = table[:, start:stop] if rows is None else table[rows.tolist(), start:stop]
        return np.column_stack([_absent_of_polars(series) for series in part.get_columns()])
    if isinstance(table, list | tuple):
        some = table if rows is None else [table[row] for row in rows]
        part = np.array([list(row[start:stop]) for row in some], dtype=object)
        return absent_entries(part.reshape(len(some), stop - start))
    part = table[:, start:stop]
    part = part if rows is None else select(part, rows)
    return to_host(namespace(part).isnan(part), None) if is_foreign(part) else absent_entries(part)


def _is_nan(value: Any) -> bool:
    """Return whether a value is a number that is none; what cannot be compared is a value."""
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _absent_of_polars(series: Any) -> np.ndarray:
    """Return which entries of a series of polars are null or NaN."""
    absent = series.is_null()
    if series.dtype.is_float():
        absent = absent | series.is_nan().fill_null(True)
    return absent.to_numpy()


def _empty_sparse_rows(table: Any) -> np.ndarray | None:
    """Return which rows of a sparse matrix are stored in full, as NaN; None where none is."""
    is_float = table.dtype.kind == "f"
    if not is_float or table.format not in ("csr", "csc", "coo") or table.nnz < table.shape[1]:
        return None
    absent = np.isnan(table.data)
    if not absent.any():
        return None
    numbers = table.tocoo().coords[0][np.isnan(table.tocoo().data)]
    empty = np.bincount(numbers, minlength=table.shape[0]) >= table.shape[1]
    return empty if empty.any() else None


def absent_entries(values: np.ndarray) -> np.ndarray:
    """Return which entries of an array of any type are NaN or None."""
    if values.dtype == object:
        absent = [x is None or _is_nan(x) for x in values.ravel().tolist()]
        return np.array(absent, dtype=bool).reshape(values.shape)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)


def without_empty_columns(table: Any, missing: np.ndarray) -> Any:
    """Return a view of pairs of samples without the columns of the samples that it lacks.

    Parameters
    ----------
    table : table of shape (n_observed, n_columns)
        The rows that are there.
    missing : ndarray of bool of shape (n_samples,)
        Which samples are missing from it.

    Returns
    -------
    table
        The same where it is no square of all samples, or one of these columns has an entry.
    """
    if depth(table) != 2 or issparse(table) or isinstance(table, AnnotatedMatrix) or missing.all():
        return table
    if not is_looked_at(table) or shape_of(table) != (int((~missing).sum()), len(missing)):
        return table
    table = np.asarray(table) if isinstance(table, list | tuple) else table
    columns = np.flatnonzero(missing).tolist()
    if not all(_absent(table, None, place, place + 1).all() for place in columns):
        return table
    others = np.flatnonzero(~missing)
    if is_foreign(table):
        return select(table, others, axis=1)
    return take_columns(table, others.tolist())


def read_mask(observed: Any, names: Sequence[str], index: Any) -> np.ndarray:
    """Return which samples are missing from views or kernels, as a user says who was observed.

    Parameters
    ----------
    observed : array-like of bool of shape (n_samples, n_views), mapping or data frame
        True if a view has a sample; by the names of views, in any order.
    names : sequence of str
        The views or kernels; those that a mapping does not name have all samples.
    index : pandas.Index or None
        The index of the samples, in whose order data frames and Series are brought.

    Returns
    -------
    ndarray of bool of shape (n_samples, n_views)
    """
    if is_frame(observed):
        observed = {name: observed[name] for name in observed.columns}
    elif is_polars(observed):
        observed = {series.name: series.to_numpy() for series in observed.get_columns()}
    if isinstance(observed, Mapping):
        if unknown := [name for name in observed if str(name) not in names]:
            raise ValueError(
                f"observed names {join_words(map(repr, unknown))}, and there are "
                f"{join_words(map(repr, names))}: name these."
            )
        columns = {
            str(name): _as_truth(_in_order(column, index, f"observed of {name!r}"))
            for name, column in observed.items()
        }
        lengths = {column.shape for column in columns.values()}
        if len(lengths) != 1 or len(next(iter(lengths))) != 1:
            raise ValueError(
                "observed has columns of the shapes "
                f"{join_words(sorted(map(str, lengths)) or ['none'])}: pass one truth value a "
                "sample for each view it names."
            )
        seen = np.ones(next(iter(lengths))[0], dtype=bool)
        return ~np.column_stack([columns.get(name, seen) for name in names])
    mask = _as_truth(observed)
    if mask.ndim != 2 or mask.shape[1] != len(names):
        raise ValueError(
            f"observed has the shape {mask.shape}, and there are {len(names)} views or kernels "
            f"({join_words(names)}): pass one row a sample and one column for each of these, or a "
            "dict by their names."
        )
    return ~mask


def _in_order(column: Any, index: Any, who: str) -> Any:
    """Return a column of a mask in the order of the samples; arrays and default indices are."""
    own = index_of(column)
    if own is None or not (has_ids(own) or has_ids(index)):
        return column
    samples = len(own) if index is None else index
    return np.asarray(column)[match_rows(own, samples, who, "the samples", every=True)]


def _as_truth(values: Any) -> np.ndarray:
    """Return truth values on the host, or refuse what are none."""
    array = to_host(values, None) if is_foreign(values) else np.asarray(values)
    if array.dtype == object and all(isinstance(x, bool | np.bool_) for x in array.ravel()):
        array = array.astype(bool)
    is_truth = array.dtype == bool or (
        array.dtype.kind in "iuf" and bool(np.isin(array, (0, 1)).all())
    )
    if not is_truth:
        raise ValueError(
            f"observed has entries of the type {array.dtype}: pass True where a view has a sample, "
            "and False where it is missing."
        )
    return array.astype(bool)


def refuse_unseen(missing: np.ndarray, index: Any, who: str) -> None:
    """Refuse samples that are in no view, by their ids or numbers.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_samples, n_views)
        Which samples are missing from which views.
    index : pandas.Index or None
        Their index.
    who : {"view", "kernel"}
        What they are missing from.
    """
    unseen = np.flatnonzero(missing.all(axis=1))
    if not len(unseen):
        return
    ids = index if has_ids(index) else np.arange(len(missing))
    named = list(map(repr, ids[unseen].tolist()))
    one = len(unseen) == 1
    raise ValueError(
        f"{count(len(unseen), 'sample')} {'is' if one else 'are'} missing from every {who}: "
        f"{join_words(named, MOST_NAMED)}. Nothing is known of {'it' if one else 'them'}: drop "
        f"{'it' if one else 'them'} from every {who}."
    )


def refuse_empty(missing: np.ndarray, names: Sequence[str], who: str) -> None:
    """Refuse views or kernels that have no sample at all."""
    empty = [repr(names[place]) for place in np.flatnonzero(missing.all(axis=0)).tolist()]
    if empty:
        several = len(empty) > 1
        raise ValueError(
            f"{who.capitalize()}{'s' * several} {join_words(empty)} {'have' if several else 'has'} "
            f"no sample, each row being empty: leave {'them' if several else 'it'} out."
        )


def missing_notes(missing: np.ndarray | None, names: Sequence[str], joined: bool) -> list[str]:
    """Say how many samples each view lacks, where one lacks any.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_samples, n_views) or None
        Which samples are missing from which views.
    names : sequence of str
        The views.
    joined : bool
        Whether they are missing because of an outer join.
    """
    if missing is None:
        return []
    words = lacking_words(missing, names)
    return [f"{'outer join: ' * joined}{len(missing):,} samples; {words}"]


def lacking_words(missing: np.ndarray, names: Sequence[str]) -> str:
    """Return how many samples are missing from each view that lacks any, in words.

    Parameters
    ----------
    missing : ndarray of bool of shape (n_samples, n_views)
        Which samples are missing from which views; one is.
    names : sequence of str
        The views.
    """
    counts = [(name, int(n)) for name, n in zip(names, missing.sum(axis=0), strict=True) if n]
    (first, n_first), *others = counts
    return ", ".join([f"{first} lacks {n_first:,}", *(f"{name} {n:,}" for name, n in others)])


def observed_tables(
    named: Mapping[str, Any],
    absent: np.ndarray | None,
    observed: Any,
    index: Any,
    is_new: bool,
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return tables of just the samples that they have, and who lacks which.

    Parameters
    ----------
    named : mapping of str to table
        The tables.
    absent : ndarray of bool of shape (n_samples, n_tables) or None
        Which samples they do not hold since they were joined; None where they hold all.
    observed : array-like, mapping or None
        What a user says of the samples that each table has.
    index : pandas.Index or None
        The index of the samples.
    is_new : bool
        Whether they are new samples of a model, which may all be missing from one of its views.

    Returns
    -------
    named : dict of str to table
        The tables; what lacks no sample is not copied.
    missing : ndarray of bool of shape (n_samples, n_tables) or None
        None where none is missing.
    """
    names, tables, missing = list(named), list(named.values()), absent
    if observed is not None:
        titles = [f"View {name!r}" for name in names]
        tables, missing = masked(tables, titles, names, absent, observed, index, take_table)
    if len(tables) > 1:
        tables, missing = without_empty(tables, missing, empty_rows, take_table)
    if missing is None or not missing.any():
        return dict(zip(names, tables, strict=True)), None
    refuse_unseen(missing, index, "view")
    if not is_new:
        refuse_empty(missing, names, "view")
    tables = [
        without_empty_columns(table, lacks) if lacks.any() else table
        for table, lacks in zip(tables, missing.T, strict=True)
    ]
    return dict(zip(names, tables, strict=True)), missing


def masked(
    parts: Sequence[Any],
    titles: Sequence[str],
    names: Sequence[str],
    absent: np.ndarray | None,
    observed: Any,
    index: Any,
    take: Callable[[Any, np.ndarray], Any],
) -> tuple[list[Any], np.ndarray]:
    """Return views or kernels of the samples that a mask says they have, and who lacks which.

    Parameters
    ----------
    parts : sequence of view or kernel
        Of all samples, of those that are not absent, or of those that the mask leaves.
    titles : sequence of str
        How messages call them.
    names : sequence of str
        Their names.
    absent : ndarray of bool of shape (n_samples, n_parts) or None
        Which samples they do not hold since they were joined; None where they hold all.
    observed : array-like or mapping
        The mask.
    index : pandas.Index or None
        The index of the samples.
    take : callable
        Returns the part of some samples, by their places in it.
    """
    missing = read_mask(observed, names, index)
    held = np.ones(missing.shape, dtype=bool) if absent is None else ~absent
    if len(held) != len(missing):
        raise ValueError(
            f"observed has {count(len(missing), 'row')}, and there are {len(held):,} samples: pass "
            "a row for each of them."
        )
    missing, results = missing | ~held, []
    for part, title, lacks, holds in zip(parts, titles, missing.T, held.T, strict=True):
        n, n_observed = number_of_rows(part), int((~lacks).sum())
        if n == holds.sum():
            places = np.flatnonzero(~lacks[holds])
            results.append(part if len(places) == n else take(part, places))
        elif n == n_observed:
            results.append(part)
        else:
            raise ValueError(
                f"{title} has {count(n, 'row')}, and observed says that {n_observed:,} of "
                f"{len(missing):,} samples are in it: pass a row for each of all samples, or for "
                "each of these."
            )
    return results, missing


def number_of_rows(part: Any) -> int:
    """Return how many samples a view or a kernel has."""
    if isinstance(part, RowSource):
        return part.n_samples
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def without_empty(
    parts: Sequence[Any],
    missing: np.ndarray | None,
    look: Callable[[Any], np.ndarray | None],
    take: Callable[[Any, np.ndarray], Any],
) -> tuple[list[Any], np.ndarray | None]:
    """Return views or kernels without the samples of which they have no entry, and who lacks which.

    Parameters
    ----------
    parts : sequence of view or kernel
        Of the samples that are not missing.
    missing : ndarray of bool of shape (n_samples, n_parts) or None
        Which samples are missing from them already; None where none is.
    look : callable
        Returns of which samples a part has no entry, None where there is none.
    take : callable
        Returns the part of some samples, by their places in it.
    """
    empties = [look(part) if depth(part) == 2 else None for part in parts]
    if all(empty is None for empty in empties):
        return list(parts), missing
    if missing is None:
        lengths = set(map(number_of_rows, parts))
        if len(lengths) > 1:  # refused elsewhere
            return list(parts), None
        missing = np.zeros((lengths.pop(), len(parts)), dtype=bool)
    missing, results = missing.copy(), []
    for place, (part, empty) in enumerate(zip(parts, empties, strict=True)):
        if empty is not None:
            missing[np.flatnonzero(~missing[:, place])[empty], place] = True
            part = take(part, np.flatnonzero(~empty))
        results.append(part)
    return results, missing
