"""Input understood once: what a user passed becomes one frozen object, which all else takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import check_array

from mkclust.data.blocks import Blocks
from mkclust.data.check import check_entries, check_together, check_view, is_dask, n_dims
from mkclust.data.dask import DaskBlocks
from mkclust.data.join import (
    Alignment,
    align,
    columns_are_ids,
    columns_like_rows,
    looks_like_kernel,
)
from mkclust.data.missing import (
    cut_missing,
    empty_rows,
    empty_samples,
    lacking_words,
    single_kernels,
    take_block,
    take_rows,
)
from mkclust.data.options import AS_THEY_ARE, TableOptions
from mkclust.data.row_source import RowSource, take_source
from mkclust.data.tables import (
    CATEGORIES,
    TABLE,
    Table,
    TableEncoder,
    as_table,
    by_name,
    fit_encoders,
    numeric_columns,
    split_columns,
    text_names,
)
from mkclust.index import key_of, make_index
from mkclust.linalg import is_foreign, select
from mkclust.text import count, join_words
from mkclust.types import Array

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


@dataclass(frozen=True, eq=False)
class Samples:
    """What a user passed, understood: views or kernels as arrays, in one order of samples.

    Parameters
    ----------
    kind : {"kernels", "views", "table"}
        What it is; "table" is one view without a name.
    names : tuple of str
        Names of the views or of the kernels; ``("table",)`` of one table. Empty if kernels are
        one whole.
    parts : tuple of array
        The views or kernels: arrays of NumPy or another library, CSR arrays, or rows in a file. If
        samples are missing, each has the rows of its own samples, in their order, and a kernel
        their columns. Empty if kernels are one whole.
    whole : array of shape (m, n, n), dataset or RowSource, default=None
        Kernels that are one thing: to take it apart may be to read a file.
    names_given : bool, default=False
        Whether the names are the user's, and tell which part is which.
    ids : ndarray of shape (n_samples,) or None, default=None
        Ids of the samples, if data frames have any.
    index_names : tuple of str or None, default=None
        Names of the levels of the index of data frames; None for arrays, which have no index.
    missing : ndarray of bool of shape (n_samples, n_parts) or None, default=None
        Which samples a part lacks; None if it lacks none.
    is_checked : bool, default=False
        Whether the parts are known to be finite arrays of floats.
    columns : dict of str to list of str, default={}
        The columns of those views whose columns have names.
    encodings : dict of str to TableEncoder, default={}
        What was learned of the columns of tables, by the names of the tables.
    notes : tuple of str, default=()
        What each view is made of, and what a join keeps.
    """

    kind: Kind
    names: tuple[str, ...]
    parts: tuple[Any, ...]
    whole: Any = None
    names_given: bool = False
    ids: np.ndarray | None = None
    index_names: tuple[str | None, ...] | None = None
    missing: np.ndarray | None = None
    is_checked: bool = False
    columns: dict[str, list[str]] = field(default_factory=dict)
    encodings: dict[str, TableEncoder] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, Any]:
        """The parts by their names."""
        return dict(zip(self.names, self.parts, strict=True))

    @property
    def index(self) -> Any:
        """The index of the samples, 0, 1, ... for frames without ids; None for arrays."""
        return make_index(self.ids, self.index_names, self.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        if self.missing is not None:
            return len(self.missing)
        if isinstance(self.whole, RowSource):
            return self.whole.n_samples
        # Of kernels of new samples the rows.
        return int(self.parts[0].shape[0] if self.whole is None else self.whole.shape[-2])

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The samples that each part has, sorted indices by the names of the parts."""
        if self.missing is None:
            return {name: np.arange(self.n_samples) for name in self.names}
        columns = zip(self.names, self.missing.T, strict=True)
        return {name: np.flatnonzero(~lacks) for name, lacks in columns}

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(int(table.shape[1]) for table in self.tables.values())

    @property
    def is_lazy(self) -> bool:
        """Whether any view is a dask array."""
        return any(map(is_dask, self.parts))

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The views by name, sliceable by rows; none of their rows is read."""
        return {TABLE: check_view(self.parts[0], "X")} if self.kind == "table" else self.by_name

    @cached_property
    def views(self) -> dict[str, Array]:
        """The views by name, in memory: finite arrays of floats, all on one device."""
        if self.is_checked:
            return self.by_name
        if self.kind == "table":
            columns = {"X": self.columns[TABLE]} if TABLE in self.columns else {}
            X = _check_as_sklearn(self.parts[0])
            return {TABLE: check_entries({"X": X}, {"X": "X"}, columns)["X"]}
        return check_entries(self.tables, _titles(self.names), self.columns)

    def only(self, names: Sequence[str]) -> "Samples":
        """Return the parts of these names, in this order."""
        if tuple(names) == self.names:
            return self
        parts, missing = self.by_name, self.missing
        if missing is not None:
            missing = _if_any(missing[:, [self.names.index(name) for name in names]])
        chosen = tuple(parts[name] for name in names)
        return replace(self, names=tuple(names), parts=chosen, missing=missing)

    def take(self, numbers: np.ndarray) -> "Samples":
        """Return some samples, given by sorted indices: their rows, of kernels their columns, too.

        Parameters
        ----------
        numbers : ndarray of int
            Which samples.

        Returns
        -------
        Samples
        """
        numbers = np.asarray(numbers)
        ids = None if self.ids is None else self.ids[numbers]
        if self.whole is not None:
            return replace(self, whole=_take_stack(self.whole, numbers), ids=ids)
        take = take_block if self.kind == "kernels" else take_rows
        return replace(self._taken(numbers, take), ids=ids)

    def _taken(self, numbers: np.ndarray, take: Callable[[Any, np.ndarray], Any]) -> "Samples":
        """Return the parts of some samples."""
        if self.missing is None:
            return replace(self, parts=tuple(take(part, numbers) for part in self.parts))
        ranks, missing = (~self.missing).cumsum(axis=0) - 1, self.missing[numbers]
        places = [rank[numbers][~lacks] for rank, lacks in zip(ranks.T, missing.T, strict=True)]
        return replace(self, parts=tuple(map(take, self.parts, places)), missing=_if_any(missing))

    def as_table(self) -> "Samples":
        """Return the only view as one table, whatever its name."""
        [name] = self.names
        return replace(
            self,
            kind="table",
            names=(TABLE,),
            names_given=False,
            columns={TABLE: self.columns[name]} if name in self.columns else {},
            encodings={TABLE: self.encodings[name]} if name in self.encodings else {},
        )

    def check_columns(self, fitted: Mapping[str, list[str]], who: str) -> None:
        """Refuse data frames whose columns are not those that somebody was fitted on, in order."""
        for name, columns in self.columns.items():
            expected = fitted.get(name, columns)
            if columns != expected and len(columns) == len(expected):
                raise ValueError(
                    f"View {name!r} has the columns {columns[:5]}, but {expected[:5]} when the "
                    f"{who} was fitted; pass the same columns in the same order."
                )


def read_samples(
    X: Any,
    *,
    expected: Expected = "auto",
    ids: Any = None,
    cross: bool = False,
    options: TableOptions = AS_THEY_ARE,
    observed: Any = None,
) -> Samples:
    """Tell what X is, given what is expected, or refuse what could be two things.

    Parameters
    ----------
    X : object
        What a user passed; samples that have been read are returned as they are.
    expected : {"auto", "precomputed", "views"}, default="auto"
        Kernels or views as X shows, kernels only, or what a bank makes kernels of.
    ids : pandas.Index or array-like of shape (n_samples,), default=None
        Ids whose order data frames are to have; None takes that of the first frame with ids.
    cross : bool, default=False
        Whether kernels are those of new samples (rows) with the samples of these ids (columns).
    options : TableOptions, default=TableOptions()
        How tables become views.
    observed : array-like of bool of shape (n_samples, n_views), data frame or mapping, default=None
        True if a view, or kernel, has a sample, in the order of the samples or by id; or such a
        column by the name of each. What it says is missing is not read, and may be left out; what
        else has no entry is missing, too.

    Returns
    -------
    Samples

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.data.samples import read_samples
    >>> samples = read_samples({"shape": np.ones((4, 2)), "color": np.ones((4, 3))})
    >>> samples.kind, samples.names, samples.n_samples
    ('views', ('shape', 'color'), 4)
    >>> read_samples(samples) is samples
    True
    """
    if isinstance(X, Samples):
        if expected == "precomputed" and X.kind != "kernels":
            raise ValueError(f"kernels='precomputed' expects kernels, got {X.kind}")
        if expected == "views":
            return read_views(X, ids=ids, observed=observed)
        return _in_order(_masked(X, observed), ids)
    if options.views is not None and expected == "precomputed":
        raise ValueError("views= takes a table apart, and kernels='precomputed' expects kernels")
    kind = "table" if options.views is not None else _kind(X, expected)
    if kind == "kernels":
        return read_kernels(X, ids=ids, cross=cross, options=options, observed=observed)
    samples = read_views(X, ids=ids, options=options, observed=observed)
    if kind == "views" and expected == "auto":
        _refuse_square(samples)
    return samples


def read_kernels(
    X: Any,
    *,
    ids: Any = None,
    cross: bool = False,
    options: TableOptions = AS_THEY_ARE,
    observed: Any = None,
) -> Samples:
    """Take X for kernels, square or not; the parameters are those of `read_samples`.

    A sample whose rows and columns are all NaN in a kernel is missing from it; so is one of new
    samples by its row alone.
    """
    if isinstance(X, Samples):
        ids = None if cross else ids
        return read_samples(X, expected="precomputed", ids=ids, observed=observed)
    if isinstance(X, RowSource) or not isinstance(X, Mapping | list | tuple) or issparse(X):
        if not isinstance(X, RowSource) and getattr(X, "ndim", 0) not in (2, 3):
            raise TypeError(
                f"kernels of type {type(X).__name__}: pass an array of shape (m, n, n), or a list "
                "or dict of n x n matrices"
            )
        samples = Samples("kernels", (), (), whole=X)
        if observed is None and not _may_lack_samples(X, cross):
            return samples
        named = {f"kernel {p}": K for p, K in enumerate(single_kernels(X))}
        return _observed_kernels(replace(samples, whole=None), named, None, observed, cross)
    names = list(X) if isinstance(X, Mapping) else [f"kernel {p}" for p in range(len(X))]
    if len(set(map(str, names))) < len(names):
        raise ValueError(f"two kernels have the same name, among {names}: rename one of them")
    parts = list(X.values() if isinstance(X, Mapping) else X)
    labels = [f"kernel {p}" for p in range(len(parts))]
    if isinstance(X, Mapping):
        labels = [f"{label} ({str(name)!r})" for label, name in zip(labels, names, strict=True)]
    frames = [isinstance(part, pd.DataFrame) for part in parts]
    expected = make_index(ids, None, 0)
    found = Alignment([None] * len(parts))
    if any(frames) and cross:
        parts, found = _align_cross(parts, labels, expected, options.join)
    elif any(frames):
        indexes: list[Any] = [None] * len(parts)
        for p, part in enumerate(parts):
            # What should be square and is not is refused elsewhere.
            if frames[p] and part.shape[0] == part.shape[1]:
                parts[p], indexes[p] = columns_like_rows(part, labels[p])
        # A mask has the order of what it came with.
        expected = expected if observed is None else None
        found = align(indexes, labels, join=options.join, expected=expected)
        for p, rows in enumerate(found.rows):
            parts[p] = parts[p] if rows is None else parts[p].iloc[rows, rows]
    parts = [_as_matrix(part) for part in parts]
    samples = Samples(
        "kernels",
        tuple(map(str, names)),
        tuple(parts),
        names_given=isinstance(X, Mapping),
        ids=None if cross else found.ids,
        index_names=None if cross else found.names,
    )
    samples = _observed_kernels(samples, samples.by_name, found, observed, cross)
    return samples if cross or observed is None else _in_order(samples, ids)


def _as_matrix(part: Any) -> Any:
    """Return a kernel as an array; what cannot be one is refused by the stack."""
    if isinstance(part, np.ma.MaskedArray) and part.dtype.kind == "f":
        return part.filled(np.nan)
    if isinstance(part, pd.DataFrame):
        return part.to_numpy()
    is_matrix = isinstance(part, list | tuple) and len(set(map(np.size, part))) == 1
    return np.asarray(part) if is_matrix else part


def _may_lack_samples(whole: Any, cross: bool) -> bool:
    """Return whether a stack of kernels in memory, or in a memory map, lacks samples."""
    if isinstance(whole, RowSource) or len(whole.shape) != 3 or 0 in whole.shape:
        return False
    if not (isinstance(whole, np.ndarray) or is_foreign(whole)) or whole.shape[0] == 1:
        return False
    empty_of = empty_rows if cross else empty_samples
    return any(empty_of(kernel) is not None for kernel in single_kernels(whole))


def _observed_kernels(
    samples: Samples, named: dict[str, Any], found: Any, observed: Any, cross: bool
) -> Samples:
    """Return kernels of those samples that they have; the same if they have all."""
    absent, index = (None, None) if found is None else (found.missing, found.index)
    matrices = [K for K in named.values() if not isinstance(K, RowSource)]
    if not all(len(getattr(K, "shape", ())) == 2 for K in matrices):
        return samples  # refused elsewhere
    parts, missing = cut_missing(named, absent, observed, index, is_kernels=True, is_new=cross)
    notes = () if missing is None else (_missing_note(missing, list(parts), absent is not None),)
    return replace(
        samples, names=tuple(parts), parts=tuple(parts.values()), missing=missing, notes=notes
    )


def _align_cross(
    parts: list[Any], labels: list[str], expected: Any, join: str
) -> tuple[list[Any], Alignment]:
    """Bring kernels of new samples to one order: rows of the first frame, columns of the fit."""
    frames = [isinstance(part, pd.DataFrame) for part in parts]
    indexes = [p.index if is_frame else None for p, is_frame in zip(parts, frames, strict=True)]
    found = align(indexes, labels, join=join, is_new=True)
    columns = [p.columns if is_frame else None for p, is_frame in zip(parts, frames, strict=True)]
    titles = [f"the columns of {label}" for label in labels]
    some = "some" if join == "outer" and expected is not None else "exact"
    training = align(columns, titles, join=some, expected=expected)
    reordered = [p for p, order in enumerate(training.rows) if order is not None]
    if reordered and training.index is not expected:
        raise ValueError(
            f"the columns of {labels[reordered[0]]} are in another order than those of other "
            "kernels, and the model was fitted on samples without ids: pass the columns of all "
            "kernels in the order of the training samples"
        )
    for axis, orders in enumerate((found.rows, training.rows)):
        for p, order in enumerate(orders):
            parts[p] = parts[p] if order is None else parts[p].take(order, axis=axis)
    return parts, found


def read_views(
    X: Any,
    *,
    ids: Any = None,
    options: TableOptions = AS_THEY_ARE,
    encodings: Mapping[str, TableEncoder] | None = None,
    observed: Any = None,
) -> Samples:
    """Take X for views, or else for one table; other parameters are those of `read_samples`.

    Parameters
    ----------
    X : mapping, list, tuple, array-like, data frame, AnnData or MuData
        What `as_views` takes; samples that have been read are returned as they are.
    encodings : mapping of str to TableEncoder or None, default=None
        What was learned of the tables in a fit; None learns it of these.

    Returns
    -------
    Samples
        Of the kind "views" or "table".
    """
    is_new = encodings is not None and ids is None
    if isinstance(X, Samples):
        if X.kind == "kernels":
            raise ValueError("X holds kernels instead of views: pass views, samples x features")
        return _in_order(_masked(X, observed, is_new), ids)
    named = by_name(X)
    if not named:
        raise ValueError(f"there are no views in an empty {type(X).__name__}: pass at least one")
    is_table = list(named) == [TABLE] and named[TABLE] is X
    if options.views is not None and not is_table:
        raise TypeError(
            f"views={list(options.views)} takes one table apart, and X is a {type(X).__name__}: "
            "pass one data frame or 2-D array, or views=None"
        )
    titles = {TABLE: "X"} if is_table else _titles(named)
    tables = {name: as_table(view, titles[name]) for name, view in named.items()}
    # A mask has the order of what it came with.
    expected = make_index(ids, None, 0) if observed is None else None
    tables, found, notes = _align_tables(tables, is_table, options.join, expected, is_new)
    if options.views is not None:
        tables, unused = split_columns(tables[TABLE], options.views)
        titles, is_table, notes = _titles(tables), False, [*notes, *unused]
    for name, table in tables.items():
        if encodings is not None and name in encodings:  # further columns say nothing of a sample
            tables[name] = encodings[name].in_order(table, titles[name])
    values, missing = cut_missing(
        {name: table.values for name, table in tables.items()},
        found.missing,
        observed,
        found.index,
        is_new=is_new,
    )
    if missing is not None:
        notes.append(_missing_note(missing, list(tables), found.missing is not None))
    for name, each in values.items():
        columns = tables[name].columns
        if each is not tables[name].values and isinstance(each, pd.DataFrame):
            columns = list(each.columns)
        tables[name] = Table(each, tables[name].index, columns)
    encoded = _encode(tables, titles, options.impute, encodings, missing is not None, is_table)
    if is_table and list(encoded.arrays) != [TABLE]:  # with categories
        is_table = False
        numbers = check_view(encoded.arrays[TABLE], "X") if TABLE in encoded.arrays else None
        encoded.arrays |= {} if numbers is None else {TABLE: numbers}
    several = len(encoded.arrays) > len(tables)
    places = [list(tables).index(source) for source in encoded.sources]
    samples = Samples(
        "table" if is_table else "views",
        tuple(encoded.arrays),
        tuple(encoded.arrays.values()),
        names_given=(not is_table and isinstance(X, Mapping)) or several or bool(options.views),
        ids=found.ids,
        index_names=found.names,
        missing=None if missing is None else missing[:, places],
        columns=encoded.columns,
        encodings=encoded.encoders,
        notes=(*notes, *encoded.notes),
    )
    if not is_table:
        check_together(samples.by_name, same_length=missing is None)
    if encoded.missing:
        check_entries(
            samples.tables, _titles(samples.names) | titles, encoded.columns, encoded.missing
        )
    return samples if observed is None else _in_order(samples, ids)


def _align_tables(
    tables: dict[str, Table], is_table: bool, join: str, expected: Any, is_new: bool
) -> tuple[dict[str, Table], Alignment, list[str]]:
    """Bring tables to one order of samples, and say how many samples a join keeps."""
    labels = ["X"] if is_table else [f"view {name!r}" for name in tables]
    # A frame whose columns are the ids of its rows, as one of distances, keeps these alike; new
    # samples have the columns of a fit instead.
    square = [not is_new and columns_are_ids(table.values) for table in tables.values()]
    aligned = dict(tables)
    for name, label, is_square in zip(tables, labels, square, strict=True):
        if is_square:
            values, index = columns_like_rows(tables[name].values, label)
            aligned[name] = Table(values, index, list(values.columns))
    indexes = [table.index for table in aligned.values()]
    found = align(indexes, labels, join=join, expected=expected, is_new=is_new)
    for (name, table), rows, is_square in zip(aligned.items(), found.rows, square, strict=True):
        if rows is not None:
            values = table.values
            values = values.iloc[rows, rows] if is_square else take_rows(values, rows)
            columns = list(values.columns) if is_square else table.columns
            aligned[name] = Table(values, table.index[rows], columns)
    before, after = (
        [_height(table.values) for table in each.values()] for each in (tables, aligned)
    )
    if before == after:
        return aligned, found, []
    kept = f"join keeps {after[0]:,} of {join_words(f'{n:,}' for n in before)} samples"
    return aligned, found, [kept]


def _height(values: Any) -> int:
    """Return the number of rows of a table, zero if it is none."""
    shape: tuple[Any, ...] = getattr(values, "shape", ())
    return int(shape[0]) if len(shape) == 2 and shape[0] == shape[0] else 0


@dataclass(eq=False)
class _Encoded:
    """Tables as views of numbers: by view its array, and the table that it comes from."""

    encoders: dict[str, TableEncoder]
    arrays: dict[str, Any] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    columns: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, view: str, source: str, array: Any, columns: Any, note: str = "") -> None:
        """Add a view."""
        self.arrays[view] = array
        self.sources.append(source)
        if columns is not None:
            self.columns[view] = columns
        if n_dims(array) == 2:
            note = note or count(int(array.shape[1]), "column")
            self.notes.append(f"{view}: {_height(array):,} samples, {note}")


def _encode(
    tables: Mapping[str, Table],
    titles: Mapping[str, str],
    impute: str | None,
    learned: Mapping[str, TableEncoder] | None,
    may_lack_rows: bool,
    is_table: bool,
) -> _Encoded:
    """Turn tables into arrays, by what is learned from them or was learned before."""
    if learned is None:
        encoders = fit_encoders(tables, titles, impute)
    else:
        encoders = {name: learned[name] for name in tables if name in learned}
    found = _Encoded(encoders)

    def check(array: Any, title: str) -> Any:
        # One table is checked by scikit-learn's functions later, in its words.
        if is_table and not isinstance(array, pd.DataFrame | np.ndarray):
            return array
        return array if is_table else check_view(array, title, may_lack_rows=may_lack_rows)

    for name, table in tables.items():
        encoder, title = encoders.get(name), titles[name]
        if encoder is None:
            found.add(name, name, check(table.values, title), text_names(table.columns))
            continue
        if alike := encoder.columns_of_one_value():
            some = join_words(map(repr, alike))
            found.notes.append(f"{name}: left out {some}, with fewer than two values")
        if encoder.numbers is None or encoder.numbers:
            if learned is not None:
                encoder.check_numbers(table, title)
            numbers = numeric_columns(table, encoder.numbers)
            if encoder.medians is not None:
                numbers = check_view(numbers, title, may_lack_rows=True)
                numbers = _filled(numbers, encoder.medians)
            found.add(name, name, check(numbers, title), encoder.columns_of_numbers())
        if encoder.levels:
            view = CATEGORIES.format(name) if encoder.numbers else name
            if view in tables and view != name:
                raise ValueError(f"{title} has categories, which make the view {view!r}: rename it")
            one_hot, missing = encoder.one_hot(table.values, title, is_new=learned is not None)
            n_levels = one_hot.shape[1]
            note = f"{count(len(encoder.levels), 'column')} of categories with {n_levels} values"
            found.add(view, name, one_hot, encoder.columns_of_categories(), note)
            if missing:
                found.missing[view] = missing
    return found


def _filled(numbers: Any, medians: np.ndarray) -> Any:
    """Return numbers with medians for those that are missing, if the columns are those learned."""
    entries = numbers.data if issparse(numbers) else numbers
    if numbers.shape[1] != len(medians) or entries.dtype.kind != "f" or not np.isnan(entries).any():
        return numbers
    if not issparse(numbers):
        return np.where(np.isnan(numbers), medians.astype(numbers.dtype), numbers)
    filled = numbers.copy()
    absent = np.isnan(filled.data)
    filled.data[absent] = medians[filled.indices[absent]]
    return filled


def as_views(X: Any) -> dict[str, Array]:
    """Return every accepted form of input as named 2-D arrays of floats.

    Parameters
    ----------
    X : mapping, list, tuple, array-like or data frame
        - a mapping of names to views, each of shape (n_samples, n_features);
        - a list or tuple of views, which are named ``"view 0"``, ``"view 1"``
          and so on. A list holds views only if its items are 2-D;
        - one table of shape (n_samples, n_features), also as a list of rows,
          which is named ``"table"``.

        Data frames with the same ids (the index of pandas) are brought to the order of the first
        one with ids; other ids are refused.

    Returns
    -------
    dict of str to array, or CSR array, of shape (n_samples, n_features)
        The views in their order, not copied if they are float32 or float64 arrays. Other types of
        numbers become float64, but the half precision of other libraries than NumPy float32.
        Arrays of torch, CuPy and other libraries stay with their library and on their device.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.data.samples import as_views
    >>> views = as_views([np.ones((4, 2), dtype=int), np.ones((4, 3), dtype="float32")])
    >>> {name: (view.shape, str(view.dtype)) for name, view in views.items()}
    {'view 0': ((4, 2), 'float64'), 'view 1': ((4, 3), 'float32')}
    >>> list(as_views([[1, 2], [3, 4], [5, 6]]))
    ['table']
    """
    samples = read_views(X)
    if samples.missing is not None:
        raise ValueError(f"samples are missing: {lacking_words(samples.missing, samples.names)}")
    return samples.views


def as_blocks(X: Any, *, block_rows: int | None = None) -> Blocks:
    """Return views in any accepted form as blocks of samples, without reading them.

    Parameters
    ----------
    X : mapping, list, tuple or table
        Views of shape (n_samples, n_features): arrays, sparse matrices, data frames, memory maps,
        HDF5 data sets, whatever has a shape and can be sliced by rows; or dask arrays, all of them;
        or arrays of another library such as torch or CuPy, all on one device, where their blocks
        stay.
    block_rows : int or None, default=None
        Samples of a block; None chooses, on a device large ones.

    Returns
    -------
    Blocks

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.data import as_blocks
    >>> blocks = as_blocks({"a": np.ones((5, 2)), "b": np.ones((5, 3))}, block_rows=2)
    >>> blocks.total(lambda block, start: block["a"].T @ block["b"]).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    samples = read_views(X)
    observed = None if samples.missing is None else ~samples.missing
    return (DaskBlocks if samples.is_lazy else Blocks)(samples.tables, observed, block_rows)


def _kind(X: Any, expected: Expected) -> Kind:
    """Return what X is by its form, given what is expected."""
    if isinstance(X, RowSource):
        if expected != "views":
            return "kernels"
        raise ValueError(
            f"X is a source of rows of kernels, a {type(X).__name__}: pass the views, or "
            "kernels='precomputed'"
        )
    several = isinstance(X, Mapping | list | tuple) and not issparse(X)
    if several and not X:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    several = several and (isinstance(X, Mapping) or any(n_dims(item) == 2 for item in X))
    several = several or hasattr(X, "mod")  # MuData
    dimensions = 2 if issparse(X) or several else getattr(X, "ndim", 2)
    if expected == "precomputed":
        if several or dimensions == 3:
            return "kernels"
        form = f"an array of shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        advice = ": pass K[None], or [K], if it is the only kernel" if hasattr(X, "shape") else ""
        advice = ": pass list(X)" if isinstance(X, Iterator) else advice
        raise ValueError(
            "kernels='precomputed' expects an array of shape (m, n, n) or a list or dict of n x n "
            f"matrices, got {form}{advice}"
        )
    if dimensions == 3 and expected == "views":
        raise ValueError(
            f"X has the shape {X.shape}: a KernelBank makes kernels from views, samples x "
            "features; pass kernels='precomputed' if these are kernels already"
        )
    if dimensions == 3:
        return "kernels"
    if not several and expected == "auto" and looks_like_kernel(X):
        raise ValueError(
            f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a kernel, pass "
            f"{'[K]' if issparse(X) else 'K[None], or [K]'} and kernels='precomputed'; if it is a "
            "table of features, pass kernels=KernelBank()"
        )
    return "views" if several else "table"


def _check_as_sklearn(X: Any) -> Any:
    """Return one table; what is none is worded as scikit-learn does."""
    if not (issparse(X) or is_foreign(X)):
        if n_dims(X) > 2:
            raise ValueError(
                f"X has {n_dims(X)} dimensions, but a table of samples by features has 2; pass "
                "several views as a list or a dict of 2-D arrays."
            )
        X = check_array(X, input_name="X", ensure_all_finite=False)
    return check_view(X, "X")


def _in_order(samples: Samples, ids: Any) -> Samples:
    """Return samples in the order of ids, if these are given and the samples have some."""
    if ids is None or samples.index is None:
        return samples
    order = align([samples.index], ["X"], expected=make_index(ids, None, 0)).rows[0]
    if order is None:
        return samples
    found = samples._taken(order, take_block if samples.kind == "kernels" else take_rows)
    parts = found.by_name
    for name, part in samples.by_name.items():
        encoder = samples.encodings.get(name)
        labels = [] if encoder is None or samples.missing is not None else encoder.labels
        # Columns that are the ids of the rows stay in their order.
        if labels and list(map(key_of, labels)) == list(map(key_of, samples.index.tolist())):
            parts[name] = select(select(part, order), order, axis=1)
    return replace(found, parts=tuple(parts.values()), ids=samples.index[order].to_numpy())


def _if_any(missing: np.ndarray) -> np.ndarray | None:
    """Return which samples are missing, None if none is."""
    return missing if missing.any() else None


def _masked(samples: Samples, observed: Any, is_new: bool = False) -> Samples:
    """Return samples that have been read without those that a mask says are missing."""
    if observed is None:
        return samples
    is_kernels, named = samples.kind == "kernels", samples.by_name
    if samples.whole is not None:
        named = {f"kernel {p}": K for p, K in enumerate(single_kernels(samples.whole))}
    index = samples.index
    parts, missing = cut_missing(
        named, samples.missing, observed, index, is_kernels=is_kernels, is_new=is_new
    )
    if missing is None:
        return samples
    return replace(
        samples, names=tuple(parts), parts=tuple(parts.values()), whole=None, missing=missing
    )


def _refuse_square(samples: Samples) -> None:
    """Refuse square matrices of one size, which could be kernels or views."""
    shapes = {tuple(np.shape(view)) for view in samples.parts}
    n = max(max(shapes), default=0)
    # Rows that a mask takes out are gone, and the columns of these samples may be there.
    if shapes == {(n, n)} or (
        samples.missing is not None
        and all(shape[1:] in ((samples.n_samples,), shape[:1]) for shape in shapes)
    ):
        sizes = f"{n} x {n}" if len(shapes) == 1 else f"up to {n} x {n}"
        raise ValueError(
            f"X holds square matrices only, all {sizes}: they could be kernels or views with as "
            "many features as samples; pass kernels='precomputed' for kernels or "
            "kernels=KernelBank() for views, or kernels='from_distances' for distances"
        )


def _take_stack(whole: Any, samples: np.ndarray) -> Any:
    """Return the kernels of some samples out of a stack of all, as a stack."""
    if isinstance(whole, RowSource):
        return take_source(whole, samples)
    if is_foreign(whole):
        return select(select(whole, samples, axis=1), samples, axis=2)
    return np.stack([np.asarray(take_block(K, samples)) for K in single_kernels(whole)])


def _titles(names: Any) -> dict[str, str]:
    """Return what messages call views."""
    return {name: f"View {name!r}" for name in names}


def _missing_note(missing: np.ndarray, names: Sequence[str], is_joined: bool) -> str:
    """Say how many samples each view lacks."""
    words = lacking_words(missing, names)
    return f"{'outer join: ' * is_joined}{len(missing):,} samples; {words}"
