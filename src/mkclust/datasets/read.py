"""Load a data set by name, or read one from a file."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mkclust.datasets import arrays
from mkclust.datasets.anndata_files import read_anndata
from mkclust.datasets.dataset import Dataset, DatasetError
from mkclust.datasets.digits import read_digits
from mkclust.datasets.interpret import as_dataset
from mkclust.datasets.layout import TableLayout, normalize_name, table_dataset
from mkclust.datasets.parquet import read_parquet
from mkclust.datasets.tables import Tables, read_frame, read_sheets, read_text, unpacked
from mkclust.text import did_you_mean, join_words

# The reader of each suffix of tables; those of arrays are in `arrays.READERS`.
TABLES: dict[str, Callable[..., Tables]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab"), read_text),
    **dict.fromkeys((".xlsx", ".xlsm"), read_sheets),
    **dict.fromkeys((".parquet", ".feather", ".arrow"), read_frame),
}
# All suffixes that can be read.
SUFFIXES = (*TABLES, *arrays.READERS, ".h5ad", ".h5mu")
# The extra of mkclust that installs what reads a suffix; "hdf5" for others.
EXTRAS = {
    **dict.fromkeys((".xlsx", ".xlsm"), "excel"),
    **dict.fromkeys((".parquet", ".feather", ".arrow"), "parquet"),
    **dict.fromkeys((".h5ad", ".h5mu"), "anndata"),
}


class Entry(NamedTuple):
    """A data set that :func:`load` knows by name."""

    name: str
    read: Callable[[], Dataset]  # raises DatasetError if its files are not there
    # The name of the version that `read` returns; None without one.
    find: Callable[[], str | None]


# Every name that `load` knows, with its entry; several names may share one. Add entries
# to extend.
CATALOG: dict[str, Entry] = {"digits": Entry("digits", read_digits, lambda: "digits")}


def find_entry(name: str) -> Entry | None:
    """Return the entry for a name; case and separators are ignored, except in paths."""
    known = {normalize_name(each): entry for each, entry in CATALOG.items()}
    if set(name) & set("./\\:"):
        return None
    return known.get(normalize_name(name))


def load(
    name_or_path: str | os.PathLike[str],
    *,
    kernels: bool = False,
    on_disk: bool | None = None,
    id: str | None = None,
    samples_in: str = "rows",
    drop: Sequence[str] = (),
    missing: Any = (),
    labels: str | None = None,
) -> Dataset:
    """Load a data set by name, or read one from a file.

    In a file every numeric 2-D array, or cell of a cell array, with the common number
    of rows is a view, in file order. The labels ``y``, ``Y``, ``gnd`` or ``labels``
    decide that number; without them it is the most frequent one. Many different values
    are no labels. A view stored features x samples is transposed. A single row or
    column is a view only if it is selected. A 3-D array is a stack of kernels, ``(m, n,
    n)`` or MATLAB's ``(n, n, m)``.

    A table (text, Excel, Feather, parquet) is one view, a data frame whose index holds
    the ids of the samples: the column `id`, or the first one if it has no name, is
    called like ids (id, sample, patient, barcode, ...), or holds text that is different
    in every row. A file of AnnData is one view, one of MuData one per modality.

    Parameters
    ----------
    name_or_path : str or path-like
        A name in ``CATALOG``, or the path of a text file (``.csv``, ``.tsv``, ``.txt``,
        also packed), ``.xlsx``, ``.parquet``, ``.feather``, ``.npz``, ``.npy``,
        ``.mat``, ``.h5``, ``.h5ad`` or ``.h5mu`` file. ``"file.mat::X1,X2"`` reads only
        these variables, columns, sheets, layers or modalities, and the labels.
    kernels : bool, default=False
        Take square 2-D arrays as precomputed kernels rather than as views.
    on_disk : bool or None, default=None
        Whether arrays of an HDF5 file, and the numbers of a parquet file, stay there,
        to be read some rows at a time; None: those of more than 1 GiB. A ``.npy`` file
        is always mapped.
    id : str or None, default=None
        Column of a table that holds the ids of the samples.
    samples_in : {"rows", "columns"}, default="rows"
        "columns" for features x samples: ids are the header, features the first column.
    drop : sequence of str, default=()
        Columns of a table to drop.
    missing : str, number or sequence of these, default=()
        Values of empty cells of a table, such as -9999 or "<0.5".
    labels : str or None, default=None
        Column, or variable, that holds the labels whatever its values; None takes those
        named above if their values repeat, and "" takes none.

    Returns
    -------
    Dataset
        Arrays keep single precision; integers become float64. A view on disk has a
        shape, gives rows (``view[:1000]``), and ``numpy.asarray(view)`` loads it. What
        cannot be read, or does not fit into memory, raises DatasetError.

    Examples
    --------
    >>> from mkclust.datasets import load
    >>> load("digits")
    Dataset('digits': 4 views, 1797 samples, 10 classes)
    """
    dropped = _as_tuple(drop)
    values = tuple(map(str, _as_tuple(missing)))
    layout = TableLayout(id, samples_in, dropped, values, labels=labels)
    data = load_with(name_or_path, layout, kernels=kernels, on_disk=on_disk)
    check_dropped(dropped, [data])
    if labels and data.label_name != labels:
        raise DatasetError(
            f"{data.name}: no column {labels} for the labels; check its name"
        )
    return data


def _as_tuple(values: Any) -> tuple[Any, ...]:
    """Return several values as a tuple, and so a single one, such as a word."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (values,)
    return tuple(values)


def check_dropped(names: Iterable[str], data_sets: Sequence[Dataset]) -> None:
    """Refuse a column to drop that no data set had."""
    absent = sorted({*names}.difference(*(data.dropped for data in data_sets)))
    if absent:
        views = [view for data in data_sets for view in (data.views or {}).values()]
        near = did_you_mean(
            absent[0], [c for view in views for c in getattr(view, "columns", ())]
        )
        raise DatasetError(f"no column {absent[0]} to drop{near}; check its name")


def load_with(
    name_or_path: str | os.PathLike[str],
    layout: TableLayout,
    *,
    kernels: bool = False,
    on_disk: bool | None = None,
) -> Dataset:
    """Load as :func:`load` does; columns to drop need not be there."""
    text = os.fsdecode(name_or_path)
    entry = find_entry(text)
    if entry is not None:
        data = entry.read()
        if kernels and not data.precomputed:
            raise DatasetError(
                f"{text}: holds views, not kernels; load it without kernels=True"
            )
        return data
    path, selection = _split(text)
    suffix = unpacked(path).suffix.lower()
    if layout.missing and suffix not in TABLES:
        given = join_words(layout.missing)
        raise DatasetError(
            f"{path}: missing={given} is for tables; replace it by NaN in the file"
        )
    try:
        if suffix in (".h5ad", ".h5mu"):
            return read_anndata(path, selection, layout.labels)
        if suffix in arrays.READERS:
            content = arrays.read_arrays(path, selection, on_disk, layout.labels)
            return as_dataset(
                path,
                content,
                selected=bool(selection),
                square=kernels,
                asked=layout.labels,
            )
        is_plain = layout == TableLayout(labels=layout.labels)
        if suffix == ".parquet" and is_plain and not kernels:
            stored = read_parquet(path, selection, on_disk, layout.labels)
            if stored is not None:
                return stored
        tables, notes = TABLES[suffix](path, selection, layout)
        if TABLES[suffix] is read_sheets:
            selection = frozenset()  # of sheets, not of columns

        return table_dataset(
            path,
            unpacked(path).stem,
            tables,
            layout,
            selection=selection,
            kernels=kernels,
            notes=notes,
        )
    except DatasetError:
        raise
    except ImportError as error:
        extra = EXTRAS.get(suffix, "hdf5")
        raise DatasetError(
            f"{path}: reading it needs {error.name or error}: pip install "
            f'"mkclust[{extra}]"'
        ) from error
    except Exception as error:  # damaged files raise nearly anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DatasetError(
            f"{path}: cannot be read ({reason}); check that it is complete, of the "
            "format of its suffix, and without objects"
        ) from error


def _is_readable(path: Path) -> bool:
    """Return whether a file has a suffix that can be read."""
    suffix = unpacked(path).suffix.lower()
    return TABLES.get(suffix) is read_text or (
        suffix in SUFFIXES and path == unpacked(path)
    )


def _split(text: str) -> tuple[Path, frozenset[str]]:
    """Split ``path::A,B`` into the path of a file and the selected names."""
    name, colons, names = text.rpartition("::")
    if not colons or os.path.exists(text):
        name = text
        names = ""
    path = Path(name).expanduser()
    if not path.exists():
        files = filter(_is_readable, path.parent.glob("*"))
        near = did_you_mean(name, [*CATALOG, *map(str, files)])
        raise DatasetError(
            f"{path}: no such file or data set{near}; check the path, or load "
            f"{join_words(CATALOG)}"
        )
    if not path.is_file() or not _is_readable(path):
        raise DatasetError(
            f"{path}: is not a file that can be read; give one of {', '.join(SUFFIXES)}"
        )
    return path, frozenset(map(str.strip, names.split(","))) - {""}
