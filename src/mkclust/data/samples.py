"""Input understood once: whatever a user passes becomes one frozen object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from mkclust.data.blocks import Block, Blocks, opposite, some_of
from mkclust.data.check import check_entries, check_together, is_dask, n_rows
from mkclust.data.dask import DaskBlocks
from mkclust.data.encode import TableEncoder, encode_tables, fit_encoders
from mkclust.data.findings import find_obstacles, list_findings
from mkclust.data.groups import read_groups
from mkclust.data.join import (
    align_tables,
    columns_are_ids,
    looks_like_kernel,
    training_columns,
)
from mkclust.data.missing import cut_missing, single_kernels, take
from mkclust.data.no_features import only_features
from mkclust.data.options import AS_THEY_ARE, TableOptions
from mkclust.data.row_source import RowSource
from mkclust.data.tables import TABLE, as_table, by_name, split_columns
from mkclust.exceptions import InputError
from mkclust.index import FITTED, make_index, match_rows
from mkclust.text import join_words
from mkclust.types import Array

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


@dataclass(frozen=True, eq=False)
class Samples:
    """What a user passed, understood: views or kernels in one order of samples.

    `parts` are arrays of NumPy or another library, CSR arrays, or rows in a file; a
    `RowSource` is one part for all of its kernels, without names. If samples are
    missing, each part has the rows of its own samples, in their order, and a kernel
    their columns.
    """

    kind: Kind  # "table" is one view without a name
    names: tuple[str, ...]  # of the views or kernels; ("table",) for one table
    parts: tuple[Any, ...]
    ids: np.ndarray | None = None  # of the samples, if data frames have any
    # Names of levels; None for arrays.
    index_names: tuple[str | None, ...] | None = None
    # Which samples a part lacks, (n_samples, n_parts) of bool.
    missing: np.ndarray | None = None
    # Of views with named columns.
    columns: dict[str, list[str]] = field(default_factory=dict)
    # By the names of tables.
    encodings: dict[str, TableEncoder] = field(default_factory=dict)
    # What each view is made of, and what a join keeps.
    table_notes: tuple[str, ...] = ()
    # The number of the group of each sample, (n_samples,).
    groups: np.ndarray | None = None
    # The numbers of covariates that views are adjusted for, (n_samples, q), and how.
    covariates: np.ndarray | None = None
    adjustment: Any = None  # an `Adjustment`

    def __post_init__(self) -> None:
        if self.missing is not None and not self.missing.any():
            object.__setattr__(self, "missing", None)

    @property
    def by_name(self) -> dict[str, Any]:
        """The parts by their names."""
        return dict(zip(self.names, self.parts, strict=True))

    @property
    def index(self) -> Any:
        """The index of the samples; 0, 1, ... for frames without ids, else None."""
        return make_index(self.ids, self.index_names, self.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        if self.missing is not None:
            return len(self.missing)
        part = self.parts[0]
        return int(part.n_samples if isinstance(part, RowSource) else part.shape[0])

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The samples that each part has, sorted indices by the names of the parts."""
        missing = self.missing
        if missing is None:
            missing = np.zeros((self.n_samples, len(self.names)), bool)
        columns = zip(self.names, missing.T, strict=True)
        return {name: np.flatnonzero(~lacks) for name, lacks in columns}

    @property
    def notes(self) -> tuple[str, ...]:
        """How many samples views lack, what they are made of, what a join keeps."""
        if self.missing is None:
            return self.table_notes
        counts = self.missing.sum(axis=0).tolist()
        lacks = zip(self.names, counts, strict=True)
        words = join_words(f"{name} lacks {n:,}" for name, n in lacks if n)
        return (f"{len(self.missing):,} samples; {words}", *self.table_notes)

    @property
    def sources(self) -> dict[str, str]:
        """The table that each view, by its name, is a part of; most are a table."""
        tables = {
            view: table
            for table, encoder in self.encodings.items()
            for view in encoder.parts(table)
        }
        return {name: tables.get(name, name) for name in self.names}

    @property
    def source_numbers(self) -> tuple[int, ...]:
        """One number per view; views with the same number are parts of one table."""
        sources = list(self.sources.values())
        return tuple(sources.index(source) for source in sources)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""
        return tuple(int(part.shape[1]) for part in self.parts)

    @property
    def is_lazy(self) -> bool:
        """Whether any view is a dask array."""
        return any(map(is_dask, self.parts))

    @cached_property
    def views(self) -> dict[str, Array]:
        """The views by name, in memory: finite arrays of floats, all on one device."""
        titles = _titles(self.names, is_table=self.kind == "table")
        return check_entries(self.by_name, titles, self.columns)

    def held(self, block: Block, numbers: np.ndarray | slice) -> "Samples":
        """Return some samples in memory, given their rows and numbers."""
        return replace(
            self,
            parts=tuple(block[name] for name in self.names),
            missing=opposite(block.observed),
            ids=some_of(self.ids, numbers),
            groups=some_of(self.groups, numbers),
        )

    @property
    def frame(self) -> "Samples":
        """What is known of the views, without any sample."""
        return replace(self, parts=(), missing=None, ids=None, groups=None)

    def only(self, names: Sequence[str]) -> "Samples":
        """Return the parts of these names, in this order."""
        if tuple(names) == self.names:
            return self
        places = [self.names.index(name) for name in names]
        return replace(
            self,
            names=tuple(names),
            parts=tuple(self.parts[place] for place in places),
            missing=some_of(self.missing, (slice(None), places)),
        )

    def take(self, numbers: np.ndarray) -> "Samples":
        """Return some samples by their indices; kernels lose rows and columns."""
        numbers = np.asarray(numbers)
        places = [numbers] * len(self.parts)
        missing = some_of(self.missing, numbers)
        if self.missing is not None:
            ranks = (~self.missing).cumsum(axis=0) - 1
            pairs = zip(ranks[numbers].T, missing.T, strict=True)
            places = [rank[~lacks] for rank, lacks in pairs]
        is_kernels = self.kind == "kernels"
        return replace(
            self,
            parts=tuple(
                take(part, rows, is_kernels)
                for part, rows in zip(self.parts, places, strict=True)
            ),
            missing=missing,
            ids=some_of(self.ids, numbers),
            groups=some_of(self.groups, numbers),
            covariates=some_of(self.covariates, numbers),
        )

    def computed(self) -> "Samples":
        """Return the same samples in memory, if any view is a dask array."""
        if not self.is_lazy:
            return self
        everyone = np.arange(self.n_samples)
        return self.held(as_blocks(self).take(everyone), everyone)

    def with_groups(self, groups: Any) -> "Samples":
        """Return the same samples in groups, as `read_groups` takes them."""
        index = self.n_samples if self.index is None else self.index
        return replace(self, groups=read_groups(groups, index, whose="the samples"))


def read_samples(
    X: Any,
    *,
    expected: Expected = "auto",
    ids: Any = None,
    cross: bool = False,
    options: TableOptions = AS_THEY_ARE,
    observed: Any = None,
) -> Samples:
    """Recognize X, given the expected kind, or refuse it if it is ambiguous.

    Parameters
    ----------
    X : object
        What a user passed; samples that have been read are returned as they are.
    expected : {"auto", "precomputed", "views"}, default="auto"
        Kernels or views as X shows, kernels only, or what a bank makes kernels of.
    ids : pandas.Index or array-like of shape (n_samples,), default=None
        Ids whose order data frames are to have; None takes that of the first frame with
        ids.
    cross : bool, default=False
        Whether kernels are those of new samples (rows) with the samples of these ids
        (columns).
    options : TableOptions, default=TableOptions()
        How tables become views.
    observed : array-like of bool of shape (n_samples, n_views), frame or mapping
        True if a view, or kernel, has a sample, in the order of the samples or by id;
        or such a column by the name of each. Samples that it marks as missing may be
        left out; others without an entry are also missing.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.data import read_samples
    >>> samples = read_samples({"shape": np.ones((4, 2)), "color": np.ones((4, 3))})
    >>> samples.kind, samples.names, samples.n_samples
    ('views', ('shape', 'color'), 4)
    """
    if isinstance(X, Samples):
        return _read_again(X, expected, ids, observed)
    if options.views is not None and expected == "precomputed":
        raise ValueError(
            "views= takes a table apart, and kernels='precomputed' expects kernels"
        )
    is_one = _is_table(X)
    if options.views is None:
        is_source = isinstance(X, RowSource)
        is_stack = is_one and (is_source or getattr(X, "ndim", 2) == 3)
        if expected == "views" and is_stack:
            raise ValueError("X holds kernels: pass views, or kernels='precomputed'")
        if expected == "auto" and is_one and looks_like_kernel(X):
            raise ValueError(
                f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a "
                "kernel, pass [K] and kernels='precomputed'; if it is a table of "
                "features, pass kernels=KernelBank()"
            )
        if is_stack or expected == "precomputed":
            return read_kernels(
                X, ids=ids, cross=cross, options=options, observed=observed
            )
    samples = read_views(X, ids=ids, options=options, observed=observed)
    if (
        options.views is None
        and not is_one
        and expected == "auto"
        and _may_be_kernels(X, samples)
    ):
        raise ValueError(
            f"X holds only square matrices, {samples.n_samples} x {samples.n_samples}, "
            "that are symmetric or have their ids as columns: pass "
            "kernels='precomputed' if they are kernels, kernels='from_distances' for "
            "distances, or kernels=KernelBank() for views of features"
        )
    return samples


def _may_be_kernels(views: Any, samples: Samples) -> bool:
    """Return whether several views look like kernels of the same samples."""
    shapes = [np.shape(part) for part in samples.parts]
    if any(width not in (height, samples.n_samples) for height, width in shapes):
        return False
    named = by_name(views).items()
    return all(
        looks_like_kernel(as_table(view, f"View {name!r}").values)
        for name, view in named
    )


def _is_table(X: Any) -> bool:
    return by_name(X).get(TABLE) is X


def read_kernels(
    X: Any,
    *,
    ids: Any = None,
    cross: bool = False,
    options: TableOptions = AS_THEY_ARE,
    observed: Any = None,
) -> Samples:
    """Take X for kernels, square or not; the parameters are those of `read_samples`.

    A sample whose rows and columns are all NaN in a kernel is missing from it; so is
    one of new samples by its row alone.
    """
    if isinstance(X, Samples):
        return _read_again(X, "precomputed", None if cross else ids, observed)
    if isinstance(X, RowSource):
        return _cut(Samples("kernels", (), (X,)), observed, cross)
    if isinstance(X, Mapping):
        named = by_name(X)
        labels = [f"kernel {place} ({name!r})" for place, name in enumerate(named)]
    else:
        named = {
            f"kernel {place}": kernel for place, kernel in enumerate(_listed(X, cross))
        }
        labels = list(named)

    tables = [
        as_table(kernel, label)
        for kernel, label in zip(named.values(), labels, strict=True)
    ]
    are_square = [
        not cross and t.is_frame and len(set(t.values.shape)) == 1 for t in tables
    ]
    aligned, found = align_tables(
        tables, labels, are_square, options.join, is_new=cross
    )
    parts = [table.values for table in aligned]
    if cross:
        parts = training_columns(parts, labels, make_index(ids, None, 0), options.join)
    samples = Samples(
        "kernels",
        tuple(named),
        tuple(K.to_numpy() if isinstance(K, pd.DataFrame) else K for K in parts),
        ids=found.ids,
        index_names=found.names,
        missing=found.missing,
    )
    samples = _cut(samples, observed, cross)
    if cross:
        return replace(samples, ids=None, index_names=None)
    return _ordered_by_ids(samples, ids, options.join, found.without_ids)


def _listed(X: Any, cross: bool) -> Sequence[Any]:
    """Return the kernels in an array or list, or say how to pass them."""
    if isinstance(X, list | tuple) and len(X):
        return X
    shape = tuple(getattr(X, "shape", ()))
    is_stack = len(shape) == 3 and shape[0] > 0
    is_last = is_stack and shape[0] == shape[1] != shape[2] and not cross
    if is_stack and not is_last:
        return single_kernels(X)
    raise ValueError(
        f"no kernels in {type(X).__name__}{list(shape) or ''}: pass K[None] for one "
        "kernel K, np.moveaxis(K, 2, 0) if kernels come last, as in MATLAB, an array "
        "of shape (m, n, n), or a list or dict of n x n matrices"
    )


def _cut(samples: Samples, observed: Any, is_new: bool) -> Samples:
    """Return samples without what the mask `observed` says is missing."""
    if any(isinstance(part, RowSource) for part in samples.parts):
        if observed is None:
            return samples
        raise TypeError(
            "observed= needs kernels as arrays, and X is known by its rows alone"
        )
    cut, missing = cut_missing(
        samples.by_name,
        samples.missing,
        observed,
        samples.index,
        is_kernels=samples.kind == "kernels",
        is_new=is_new,
    )
    return replace(samples, parts=tuple(cut.values()), missing=missing)


def read_views(
    X: Any,
    *,
    ids: Any = None,
    options: TableOptions = AS_THEY_ARE,
    encodings: Mapping[str, TableEncoder] | None = None,
    observed: Any = None,
) -> Samples:
    """Take X for views, or for one table; parameters are those of `read_samples`.

    Encodings are those learned from the tables of a fit, by name; None learns them from
    these.
    """
    if isinstance(X, Samples):
        is_new = encodings is not None and ids is None
        return _read_again(X, "views", ids, observed, is_new)
    try:
        return _read_tables(X, ids, options, encodings, observed)
    except ValueError as error:
        if encodings is not None or options.views is not None:
            raise
        found = _with_findings(error, X, options)
        if found is None:
            raise
        raise found from error


def _with_findings(
    error: ValueError, X: Any, options: TableOptions
) -> InputError | None:
    """Return an error with all that is in the way of a fit, not only the first."""
    named = by_name(X)
    titles = _titles(named, _is_table(X))
    try:
        tables = {name: as_table(view, titles[name]) for name, view in named.items()}
        square = {
            name for name, table in tables.items() if columns_are_ids(table.values)
        }
        found = find_obstacles(tables, options, square)
    except (ValueError, TypeError):
        return None
    findings = [each for each in found if each.stops]
    if not findings:
        return None
    # Where the samples are explains an error that says something else.
    cures = {cure.parameter for each in findings for cure in each.cures}
    if len(findings) == 1 and cures.isdisjoint(("samples_in", "id")):
        return InputError(str(error), findings)
    return InputError(list_findings(findings, titles), findings)


def _read_tables(
    X: Any,
    ids: Any,
    options: TableOptions,
    encodings: Mapping[str, TableEncoder] | None,
    observed: Any,
) -> Samples:
    """Return views of several tables, or of one."""
    is_new = encodings is not None and ids is None
    is_table = _is_table(X)
    if options.views is not None and not is_table:
        raise TypeError(
            f"views={list(options.views)} takes one table apart, and X is a "
            f"{type(X).__name__}: pass one data frame or 2-D array, or views=None"
        )
    named = by_name(X)
    titles = _titles(named, is_table)
    tables = list(map(as_table, named.values(), titles.values()))
    labels = [title.replace("View", "view", 1) for title in titles.values()]
    # Columns that are the ids of the rows, as those of distances, keep the order of the
    # rows.
    are_square = [not is_new and columns_are_ids(table.values) for table in tables]
    aligned, found = align_tables(tables, labels, are_square, options.join, is_new)
    notes = []
    before = [n_rows(table.values) for table in tables]
    after = [n_rows(table.values) for table in aligned]
    if before != after:
        sizes = join_words(f"{n:,}" for n in before)
        notes = [f"join keeps {after[0]:,} of {sizes} samples"]

    features = dict(zip(named, aligned, strict=True))
    if options.views is not None:
        features, unused = split_columns(features[TABLE], options.views)
        titles = _titles(features)
        is_table = False
        notes += unused

    if encodings is None:
        pairs = zip(named, are_square, strict=True)
        square = {name for name, is_square in pairs if is_square}
        are_chosen = options.views is not None
        features = only_features(features, titles, square, are_chosen=are_chosen)
    else:
        for name in encodings.keys() & features.keys():
            features[name] = encodings[name].in_order(features[name], titles[name])

    values, missing = cut_missing(
        {name: table.values for name, table in features.items()},
        found.missing,
        observed,
        found.index,
        is_new=is_new,
    )
    for name, table in features.items():
        features[name] = replace(table, values=values[name])
    is_fit = encodings is None
    if encodings is None:
        encodings = fit_encoders(features, titles, options.impute)

    encoded, missing = encode_tables(features, titles, encodings, missing, not is_fit)
    names = tuple(view.name for view in encoded)
    samples = Samples(
        "table" if is_table and names == (TABLE,) else "views",
        names,
        tuple(view.array for view in encoded),
        ids=found.ids,
        index_names=found.names,
        missing=missing,
        columns={view.name: view.columns for view in encoded if view.columns},
        encodings=dict(encodings),
        table_notes=(*notes, *(view.note for view in encoded)),
    )
    check_together(samples.by_name, same_length=missing is None)
    return _ordered_by_ids(samples, ids, options.join, found.without_ids)


def _read_again(
    samples: Samples, expected: Expected, ids: Any, observed: Any, is_new: bool = False
) -> Samples:
    """Return samples that were read before, checked against what is expected now."""
    wanted = {"precomputed": "kernels", "views": "views"}.get(expected)
    if wanted and (samples.kind == "kernels") != (wanted == "kernels"):
        raise ValueError(
            f"X holds {samples.kind}, and kernels={expected!r} expects {wanted}"
        )
    if observed is not None:
        samples = _cut(samples, observed, is_new)
    return _ordered_by_ids(samples, ids, "exact", ["X"])


def as_blocks(X: Any, *, block_rows: int | None = None) -> Blocks:
    """Return views in any accepted form as blocks of samples.

    >>> import numpy as np
    >>> blocks = as_blocks({"a": np.ones((5, 2)), "b": np.ones((5, 3))}, block_rows=2)
    >>> blocks.total(lambda block, start: block["a"].T @ block["b"]).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    samples = read_views(X)
    observed = opposite(samples.missing)
    if samples.is_lazy:
        return DaskBlocks(samples.by_name, observed, block_rows)
    return Blocks(samples.by_name, observed, block_rows)


def _ordered_by_ids(
    samples: Samples, ids: Any, join: str, fixed: Sequence[str]
) -> Samples:
    """Return samples in the order of given ids, if these are known."""
    if ids is None or samples.index is None:
        return samples
    wanted = make_index(ids, None, 0)
    order = match_rows(samples.index, wanted, "X", every=True)
    if len(order) < samples.n_samples and join != "inner":
        raise ValueError(
            f"X has {samples.n_samples - len(order)} samples that are not among "
            f"{FITTED}: leave them out"
        )
    if np.array_equal(order, np.arange(samples.n_samples)):
        return samples
    if fixed:
        raise ValueError(
            f"{fixed[0]} has no ids, or was read before, and the order of {FITTED} is "
            "another: pass all tables in this order, or with ids"
        )
    return replace(samples.take(order), ids=samples.index[order].to_numpy())


def _titles(names: Any, is_table: bool = False) -> dict[str, str]:
    return {name: "X" if is_table else f"View {name!r}" for name in names}
