"""Input understood once: what a user passed becomes one frozen object, which all else takes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mkclust.index import make_index
from mkclust.linalg import is_foreign
from mkclust.samples.blocks import Blocks
from mkclust.samples.checks import (
    check_dask,
    check_entries,
    check_table,
    check_together,
    check_view,
    is_dask,
)
from mkclust.samples.dask import DaskBlocks
from mkclust.samples.encoding import EncodedViews, Encoding, encode_views
from mkclust.samples.forms import TABLE, check_form, depth, looks_like_kernel, named_parts
from mkclust.samples.frames import opened, take_rows
from mkclust.samples.ids import (
    Joined,
    aligned_to_training,
    is_kernel,
    joined,
    order_of,
)
from mkclust.samples.imputing import unmasked
from mkclust.samples.missing import missing_notes, observed_tables
from mkclust.samples.missing_kernels import observed_kernels
from mkclust.samples.observed_block import take_block, take_stack, take_table
from mkclust.samples.options import AS_THEY_ARE, TableOptions
from mkclust.samples.row_source import RowSource
from mkclust.samples.selection import split_columns
from mkclust.text import join_words
from mkclust.types import Array

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


@dataclass(frozen=True, eq=False)
class Samples:
    """What a user passed, understood: its form is known, its entries are checked once when asked.

    Parameters
    ----------
    kind : {"kernels", "views", "table"}
        What it is.
    names : tuple of str
        Names of the views or of the kernels; ``("table",)`` of one table. Empty where kernels are
        one whole.
    parts : tuple of array-like
        The views or kernels as they came, data frames in one order of samples; the one table.
        Where samples are missing, each holds just the rows of the samples that it has, in their
        order, and a kernel just their columns. Empty where kernels are one whole.
    whole : array of shape (m, n, n), dataset or RowSource, default=None
        Kernels that are one thing: to take it apart may be to read a file.
    names_given : bool, default=False
        Whether the names are the user's, and tell which part is which.
    ids : ndarray of shape (n_samples,) or None, default=None
        Ids of the samples, if data frames have any.
    index_names : tuple of str or None, default=None
        Names of the levels of the index of data frames; None for arrays, which have no index.
    missing : ndarray of bool of shape (n_samples, n_parts) or None, default=None
        Which samples a part lacks; None where it lacks none.
    is_checked : bool, default=False
        Whether the parts are known to be finite arrays of floats.
    columns : dict of str to list of str, default={}
        The columns of those views whose columns have names.
    encodings : dict of str to Encoding, default={}
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
    encodings: dict[str, Encoding] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, Any]:
        """The parts by their names, as they came."""
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
        if self.whole is not None:
            return int(self.whole.shape[-2])  # of new samples the rows
        first = self.parts[0]
        return int(first.shape[0]) if hasattr(first, "shape") else len(first)

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The numbers of the samples that each part has, rising, by the names of the parts."""
        if self.missing is None:
            return {name: np.arange(self.n_samples) for name in self.names}
        columns = zip(self.names, self.missing.T, strict=True)
        return {name: np.flatnonzero(~lacks) for name, lacks in columns}

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(int(table.shape[1]) for table in self.tables.values())

    @property
    def like(self) -> Any:
        """An array that says on which device the samples are, None on the host."""
        first = self.whole if self.whole is not None else self.parts[0]
        return first if is_foreign(first) else None

    @property
    def is_lazy(self) -> bool:
        """Whether some of it are dask arrays."""
        return any(map(is_dask, self.parts))

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The views by name, of one length and sliceable by rows; none of their rows is read."""
        views = self.by_name
        check_dask(views)
        if self.kind == "table":
            return {TABLE: check_view(self.parts[0], "X")}
        complete = self.missing is None
        views = {
            name: check_view(view, f"View {name!r}", may_lack_rows=not complete)
            for name, view in views.items()
        }
        check_together(views, same_length=complete)
        return views

    @cached_property
    def views(self) -> dict[str, Array]:
        """The views by name, in memory: finite arrays of floats, all on one device."""
        if self.is_checked:
            return self.by_name
        if self.kind == "table":
            return {TABLE: check_table(self.parts[0], self.columns.get(TABLE))}
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
        """Return some samples.

        Parameters
        ----------
        numbers : ndarray of int
            Their numbers, rising.

        Returns
        -------
        Samples
            Views have the rows, and kernels the columns, too, of those samples that they have.
        """
        numbers = np.asarray(numbers)
        ids = None if self.ids is None else self.ids[numbers]
        if self.whole is not None:
            return replace(self, whole=take_stack(self.whole, numbers), ids=ids)
        places, missing = _places(self, numbers)
        parts = tuple(map(self._taking, self.parts, places))
        return replace(self, parts=parts, ids=ids, missing=missing)

    @property
    def _taking(self) -> Callable[[Any, np.ndarray], Any]:
        """What takes some samples of a part."""
        return take_block if self.kind == "kernels" else take_table

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
    observed : array-like of bool of shape (n_samples, n_views) or mapping, default=None
        True where a view, or kernel, has a sample, in the order of the samples; or such a column
        by the name of each. What it says is missing is not looked at, and may be left out; what
        else has no entry is missing all the same.

    Returns
    -------
    Samples

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.samples.samples import read_samples
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
    if options.views is not None:
        if expected == "precomputed":
            raise ValueError(
                f"views={list(options.views)} takes a table apart, and kernels='precomputed' "
                "expects kernels: pass one of them"
            )
        return read_views(X, ids=ids, options=options, observed=observed)
    X = opened(X)
    kind = _kind(X, expected)
    if kind == "kernels":
        return read_kernels(X, ids=ids, cross=cross, options=options, observed=observed)
    samples = read_views(X, ids=ids, options=options, observed=observed)
    # A list of what has other than two dimensions.
    if kind == "table" != samples.kind and isinstance(X, list | tuple):
        return replace(samples, kind=kind, names=(TABLE,), parts=(list(samples.parts),))
    if kind == "views":
        _refuse_square(samples, expected)
    return samples


def read_kernels(
    X: Any,
    *,
    ids: Any = None,
    cross: bool = False,
    options: TableOptions = AS_THEY_ARE,
    observed: Any = None,
) -> Samples:
    """Take X for kernels, square or not, and bring data frames to one order of samples.

    A sample whose rows and columns are all NaN in a kernel is missing from it; so is one of new
    samples by its row alone.

    Parameters
    ----------
    X : object
        What a user passed for kernels; samples that have been read are returned as they are.
    ids : pandas.Index or array-like of shape (n_samples,), default=None
        Ids whose order data frames are to have; None takes that of the first frame with ids.
    cross : bool, default=False
        Whether they are kernels of new samples (rows) with the samples of these ids (columns).
    options : TableOptions, default=TableOptions()
        How data frames are joined.
    observed : array-like of bool of shape (n_samples, n_views) or mapping, default=None
        True where a view, or kernel, has a sample, in the order of the samples; or such a column
        by the name of each. What it says is missing is not looked at, and may be left out; what
        else has no entry is missing all the same.

    Returns
    -------
    Samples
    """
    if isinstance(X, Samples):
        ids = None if cross else ids
        return read_samples(X, expected="precomputed", ids=ids, observed=observed)
    if cross:
        found = aligned_to_training(X, make_index(ids, None, 0), options.join)
    else:  # a mask has the order of what it came with
        expected = make_index(ids, None, 0) if observed is None else None
        found = joined(X, expected, kernels=True, join=options.join)
    named = _named_kernels(found.X, found.ids, found.index_names)
    samples = _only_observed(named, found.missing, observed, found.index, cross)
    return samples if cross or observed is None else _in_order(samples, ids)


def _only_observed(
    samples: Samples, absent: np.ndarray | None, observed: Any, index: Any, cross: bool
) -> Samples:
    """Return kernels of just the samples that they have, the same where they have all."""
    names, kernels = samples.names, samples.parts if samples.whole is None else samples.whole
    if samples.whole is not None:
        whole = samples.whole
        m = whole.n_kernels if isinstance(whole, RowSource) else whole.shape[0]
        names = tuple(_kernel_names(m))
    found = observed_kernels(names, kernels, absent, observed, index, cross)
    if found is None:
        return samples
    parts, missing = found
    notes = missing_notes(missing, names, absent is not None)
    return replace(
        samples, names=names, parts=tuple(parts), whole=None, missing=missing, notes=tuple(notes)
    )


def _kernel_names(count: int) -> list[str]:
    """Return the names of kernels that have none of their own."""
    return [f"kernel {place}" for place in range(count)]


def _named_kernels(X: Any, ids: np.ndarray | None, index_names: Any) -> Samples:
    """Return kernels with their names."""
    if isinstance(X, Mapping) and not issparse(X):
        names = list(X)
        if len(set(map(str, names))) < len(names):
            raise ValueError(f"two kernels have the same name, among {names}: rename one of them")
        return Samples(
            "kernels", tuple(map(str, names)), tuple(X.values()), None, True, ids, index_names
        )
    if isinstance(X, list | tuple):
        return Samples(
            "kernels", tuple(_kernel_names(len(X))), tuple(X), ids=ids, index_names=index_names
        )
    if not isinstance(X, RowSource) and getattr(X, "ndim", 0) not in (2, 3):
        raise TypeError(
            f"kernels of type {type(X).__name__}: pass an array of shape (m, n, n), or a "
            "list or dict of n x n matrices"
        )
    return Samples("kernels", (), (), whole=X, ids=ids)


def read_views(
    X: Any,
    *,
    ids: Any = None,
    options: TableOptions = AS_THEY_ARE,
    encodings: Mapping[str, Encoding] | None = None,
    observed: Any = None,
    compact: bool = True,
) -> Samples:
    """Take X for views, or else for one table, whatever else it may look like.

    Parameters
    ----------
    X : mapping, list, tuple, array-like, data frame, AnnData or MuData
        What :func:`as_views` takes; samples that have been read are returned as they are.
    ids : pandas.Index or array-like of shape (n_samples,), default=None
        Ids whose order data frames are to have; None takes that of the first frame with ids.
    options : TableOptions, default=TableOptions()
        How tables become views.
    encodings : mapping of str to Encoding or None, default=None
        What was learned of the tables in a fit; None learns it of these.
    observed : array-like of bool of shape (n_samples, n_views) or mapping, default=None
        True where a view, or kernel, has a sample, in the order of the samples; or such a column
        by the name of each. What it says is missing is not looked at, and may be left out; what
        else has no entry is missing all the same.
    compact : bool, default=True
        Whether samples are missing from a view that has nothing but NaN in their rows, which the
        view then loses; False takes these rows for any others.

    Returns
    -------
    Samples
        Of the kind "views" or "table". What is no table is refused; of columns that are no
        categories and need not be filled, entries have not been read.
    """
    if isinstance(X, Samples):
        if X.kind == "kernels":
            raise ValueError("X holds kernels where views belong: pass views, samples x features")
        return _in_order(_masked(X, observed, encodings is not None and ids is None), ids)
    X, is_new = opened(X), encodings is not None and ids is None
    found, notes = Joined(X), list[str]()
    if options.views is None or hasattr(X, "shape"):  # views takes nothing else apart
        # A mask has the order of what it came with.
        expected = make_index(ids, None, 0) if observed is None else None
        found, notes = _joined(X, expected, options, is_new)
    X = found.X
    if options.views is not None:
        X, unused = split_columns(X, options.views)
        notes += unused
    named = named_parts(X)
    if not named:
        raise ValueError(f"There are no views in an empty {type(X).__name__}; pass at least one.")
    is_table = list(named) == [TABLE] and named[TABLE] is X
    titles = {TABLE: "X"} if is_table else _titles(named)
    named = {name: unmasked(view) for name, view in named.items()}
    for name, view in named.items():
        check_form(view, titles[name])
        if encodings is not None and name in encodings:  # further columns say nothing of a sample
            named[name] = encodings[name].in_order(view, titles[name])
    missing = found.missing
    if compact:
        named, missing = observed_tables(named, missing, observed, found.index, is_new)
    notes += missing_notes(missing, list(named), found.missing is not None)
    encoded = encode_views(named, titles, impute=options.impute, learned=encodings)
    _check_categories(encoded, titles)
    samples = Samples(
        "table" if is_table and list(encoded.parts) == [TABLE] else "views",
        tuple(encoded.parts),
        tuple(encoded.parts.values()),
        names_given=(isinstance(X, Mapping) and not is_table) or len(encoded.parts) > len(named),
        ids=found.ids,
        index_names=found.index_names,
        missing=encoded.by_view(missing),
        columns=encoded.columns,
        encodings=encoded.encodings,
        notes=(*notes, *encoded.notes),
    )
    return samples if observed is None else _in_order(samples, ids)


def _check_categories(encoded: EncodedViews, titles: Mapping[str, str]) -> None:
    """Refuse missing categories, beside what else is missing."""
    if not encoded.missing:
        return
    titles, views = _titles(encoded.parts) | dict(titles), {}
    for name, view in encoded.parts.items():
        views[name] = check_view(view, titles[name], may_lack_rows=True)
    check_entries(views, titles, encoded.columns, encoded.missing)


def _joined(X: Any, ids: Any, options: TableOptions, is_new: bool) -> tuple[Joined, list[str]]:
    """Bring data frames to one order of samples, and say how many a join keeps."""
    lengths = _lengths(X)
    found = joined(X, ids, of_pairs=not is_new, join=options.join, is_new=is_new)
    return found, _join_notes(lengths, _lengths(found.X))


def _lengths(X: Any) -> list[int]:
    """Return the numbers of rows of the tables of X, of those that know it."""
    several = isinstance(X, Mapping | list | tuple) and not issparse(X)
    parts = list(X.values() if isinstance(X, Mapping) else X) if several else [X]
    shapes = [tuple(getattr(part, "shape", ())) for part in parts]
    # The rows of a lazy table may not have been counted.
    return [shape[0] for shape in shapes if len(shape) == 2 and isinstance(shape[0], int)]


def _join_notes(before: Sequence[int], after: Sequence[int]) -> list[str]:
    """Say how many samples of each view a join keeps, where it keeps fewer than all."""
    if before == after:
        return []
    return [f"join keeps {after[0]:,} of {join_words(f'{count:,}' for count in before)} samples"]


def _titles(names: Iterable[str]) -> dict[str, str]:
    """Return how messages call views."""
    return {name: f"View {name!r}" for name in names}


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

        SciPy's sparse matrices, of any format, stay sparse. Arrays of torch,
        CuPy and other libraries of the array API standard stay with their
        library and on their device, which all views share.

    Returns
    -------
    dict of str to array, or CSR array, of shape (n_samples, n_features)
        The views in their order, not copied where they are float32 or float64
        arrays already. Other types of numbers become float64, but the half
        precision of other libraries than NumPy float32.

    Raises
    ------
    ValueError, TypeError
        Where a view is not a finite table of real numbers, or the views
        differ in their number of rows, their library or their device. The
        message names the view.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.samples.samples import as_views
    >>> views = as_views([np.ones((4, 2), dtype=int), np.ones((4, 3), dtype="float32")])
    >>> {name: (view.shape, str(view.dtype)) for name, view in views.items()}
    {'view 0': ((4, 2), 'float64'), 'view 1': ((4, 3), 'float32')}
    >>> list(as_views([[1, 2], [3, 4], [5, 6]]))
    ['table']
    """
    return read_views(X, compact=False).views


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
    >>> from mkclust.samples import as_blocks
    >>> blocks = as_blocks({"a": np.ones((5, 2)), "b": np.ones((5, 3))}, block_rows=2)
    >>> blocks.total(lambda block, start: block["a"].T @ block["b"]).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    samples = read_views(X)
    observed = None if samples.missing is None else ~samples.missing
    return (DaskBlocks if samples.is_lazy else Blocks)(samples.tables, observed, block_rows)


def _kind(X: Any, expected: Expected) -> Kind:
    """Return what X is by its form, given what is expected."""
    precomputed, auto = expected == "precomputed", expected == "auto"
    if isinstance(X, RowSource):
        if expected != "views":
            return "kernels"
        raise ValueError(
            f"X is a source of rows of kernels, a {type(X).__name__}: a KernelBank makes kernels "
            "from views; pass the views, or kernels='precomputed'"
        )
    several = _several_matrices(X)
    dimensions = 2 if issparse(X) or several else getattr(X, "ndim", 2)
    if precomputed:
        if several or dimensions == 3:
            return "kernels"
        form = f"an array of shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        advice = ": pass K[None], or [K], if it is the only kernel" if hasattr(X, "shape") else ""
        if isinstance(X, Iterator):
            advice = ": pass list(X)"
        raise ValueError(
            "kernels='precomputed' expects an array of shape (m, n, n) or a list or dict of n x n "
            f"matrices, got {form}{advice}"
        )
    if dimensions == 3:
        if auto:
            return "kernels"
        raise ValueError(
            f"X has the shape {X.shape}: a KernelBank makes kernels from views, samples x "
            "features; pass kernels='precomputed' if these are kernels already"
        )
    if not several and auto and looks_like_kernel(X):
        form = "[K]" if issparse(X) else "K[None], or [K]"
        raise ValueError(
            f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a kernel, pass "
            f"{form} and kernels='precomputed'; if it is a table of features, pass "
            "kernels=KernelBank()"
        )
    return "views" if several else "table"


def _several_matrices(X: Any) -> bool:
    """Return whether X is a list or dict of two-dimensional things."""
    if issparse(X):  # one format of SciPy's is a dict, too
        return False
    if not isinstance(X, Mapping | list | tuple):
        return False
    if not X:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    return isinstance(X, Mapping) or any(depth(item) == 2 for item in X)


def _in_order(samples: Samples, ids: Any) -> Samples:
    """Return samples in the order of ids, if these are given and the samples have some."""
    order = None if ids is None else order_of(samples.index, make_index(ids, None, 0))
    if order is None:
        return samples
    if samples.missing is not None:
        places, missing = _places(samples, order)
        parts = tuple(map(samples._taking, samples.parts, places))
        return replace(samples, parts=parts, missing=missing, ids=samples.index[order].to_numpy())
    if samples.kind == "kernels":
        found = joined(samples.by_name, ids, kernels=True)
        return replace(samples, parts=tuple(found.X.values()), ids=found.ids)
    parts = tuple(
        part.iloc[order, order] if is_kernel(part) else take_rows(part, order)
        for part in samples.parts
    )
    return replace(samples, parts=parts, ids=samples.index[order].to_numpy())


def _places(samples: Samples, numbers: np.ndarray) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return where some samples are in each part, of those that it has, and who lacks which."""
    if samples.missing is None:
        return [numbers] * len(samples.parts), None
    ranks, missing = (~samples.missing).cumsum(axis=0) - 1, samples.missing[numbers]
    places = [rank[numbers][~lacks] for rank, lacks in zip(ranks.T, missing.T, strict=True)]
    return places, _if_any(missing)


def _if_any(missing: np.ndarray) -> np.ndarray | None:
    """Return which samples are missing, None where none is."""
    return missing if missing.any() else None


def _masked(samples: Samples, observed: Any, is_new: bool = False) -> Samples:
    """Return samples that have been read without those that a mask says are missing."""
    if observed is None:
        return samples
    if samples.kind == "kernels":
        return _only_observed(samples, samples.missing, observed, samples.index, cross=False)
    named, missing = observed_tables(
        samples.by_name, samples.missing, observed, samples.index, is_new=is_new
    )
    return replace(samples, parts=tuple(named.values()), missing=missing)


def _refuse_square(samples: Samples, expected: Expected) -> None:
    """Refuse square matrices of one size, which could be kernels or views, unless it was said."""
    shapes = {tuple(np.shape(view)) for view in samples.parts}
    n = max(max(shapes), default=0)
    # Rows that a mask takes out are gone, and the columns of these samples may be there.
    are_square = shapes == {(n, n)} or (
        samples.missing is not None
        and all(shape[1:] in ((samples.n_samples,), shape[:1]) for shape in shapes)
    )
    if expected == "auto" and are_square:
        sizes = f"{n} x {n}" if len(shapes) == 1 else f"up to {n} x {n}"
        raise ValueError(
            f"X holds square matrices only, all {sizes}: they could be kernels or views with as "
            "many features as samples; pass kernels='precomputed' for kernels or "
            "kernels=KernelBank() for views, or kernels='from_distances' for distances"
        )


def kernel_shapes(kernels: Any, count: int) -> list[tuple[int, ...]]:
    """Return the shapes of kernels in any form; what is one whole is not taken apart."""
    if isinstance(kernels, RowSource):
        return [(kernels.n_samples, kernels.n_samples)] * count
    if hasattr(kernels, "shape"):  # to take a file apart is to read it
        return [tuple(kernels.shape[1:])] * count
    return [np.shape(K) for K in kernels]


def single_kernels(kernels: Any) -> list[Any]:
    """Return the single matrices of an array of shape (m, n_new, n), or those of a list."""
    if hasattr(kernels, "shape"):
        return [kernels[p, ...] for p in range(kernels.shape[0])]
    return list(kernels)
