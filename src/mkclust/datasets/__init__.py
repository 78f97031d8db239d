"""Read views or kernels, and labels, from files, or known data sets by name."""

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.catalog import CATALOG, SPELLINGS, spelling
from mkclust.datasets.entry import VARIABLE, Entry, Way, data_folder
from mkclust.datasets.layout import TableLayout, near
from mkclust.datasets.readers import SUFFIXES, is_readable, read_dataset, suffix_advice

__all__ = ["AVAILABLE", "CATALOG", "Dataset", "DatasetError", "Entry", "Way", "load"]

AVAILABLE: tuple[str, ...] = tuple(CATALOG)


def load(
    name_or_path: str | os.PathLike[str],
    *,
    kernels: bool = False,
    on_disk: bool | None = None,
    follow_links: bool = False,
    id: str | None = None,
    samples_in: str = "rows",
    drop: Sequence[str] = (),
) -> Dataset:
    """Load a data set by name, or read one from a file.

    A data set that is known by name, see ``CATALOG``, is read from its files in the folder that
    the environment variable ``MKCLUST_DATA`` names, or one folder deeper. Where the kernels of
    the paper are not there, a substitute or a truncated version stands in for them, if there is
    one; its name and `Dataset.caveat` say so.

    In a file every numeric 2-D array, or cell of a cell array, with the common number of rows
    is a view, in file order. The labels ``y``, ``Y``, ``gnd`` or ``labels`` decide that number;
    without them it is the most frequent one. A view stored features x samples is turned around.
    A lone row or column is a view only where it is selected: it may well be further labels.
    A 3-D array is a stack of kernels, ``(m, n, n)`` or MATLAB's ``(n, n, m)``.

    A table (text, Excel, Feather, parquet) is one view, a data frame whose index are the ids of the
    samples: the column `id`, or the first one if it has no name, is called id, sample, patient,
    barcode, index, name, key or the like, or holds text that is different in every row. Labels are
    the column of one of the names above. A parquet file of numbers only stays on disk. A file of
    AnnData is one view, one of MuData one a modality; a sparse matrix of SciPy stays sparse.

    Parameters
    ----------
    name_or_path : str or path-like
        A name of ``AVAILABLE`` (case, ``-``, ``_`` and blanks do not matter, and common further
        names are understood), or a path to a ``.csv``, ``.tsv`` or ``.txt`` file (also packed:
        ``.csv.gz``, ``.bz2``, ``.xz``), ``.xlsx``, ``.parquet``, ``.feather``, ``.arrow``,
        ``.npz`` (also of ``scipy.sparse.save_npz``), ``.npy``, ``.mat`` (any version), ``.h5``,
        ``.hdf5``, ``.h5ad`` or ``.h5mu``. ``"file.npz::K"`` or ``"file.mat::X1,X2"`` reads only
        these variables, columns of a table, sheets of a workbook, layers or modalities, and the
        labels.
    kernels : bool, default=False
        Take square 2-D arrays as precomputed kernels rather than as views.
    on_disk : bool or None, default=None
        Whether views and kernels of an HDF5 file stay there, to be read some rows at a time. None
        leaves there what takes more than 1 GiB. A ``.npy`` file is always mapped, and the view of
        a parquet file always stays on disk; ``.npz`` and ``.mat`` files are always loaded.
    follow_links : bool, default=False
        Whether an HDF5 file may lead to other files, by external links, external storage or virtual
        data sets. What it then reads is listed in `Dataset.linked_files`. By default such a file is
        refused: it can present any file that you may read as its own numbers.
    id : str or None, default=None
        Column of a table that holds the ids of the samples.
    samples_in : {"rows", "columns"}, default="rows"
        Where the samples of a table are. "columns" for features x samples: the ids are then the
        header, and the first column names the features.
    drop : sequence of str, default=()
        Columns of a table that are left aside.

    Returns
    -------
    Dataset
        Views are dense, but for those of SciPy's own files; sparse kernels stay sparse, and a
        ``.npy`` file stays on disk as a memory map. Single precision is kept; integers become
        float64, those of a memory map and of kernels on disk when they are read. A view on disk is
        not an array, but has a shape, gives rows (``view[:1000]``), and ``numpy.asarray(view)``
        loads it.

    Raises
    ------
    DatasetError
        If there is no such data set or file, or its content cannot be read or understood.

    Examples
    --------
    >>> from mkclust.datasets import load
    >>> data = load("digits")
    >>> data
    Dataset('digits': 4 views, 1797 samples, 10 classes)
    >>> data.views["fourier"].shape
    (1797, 40)
    """
    layout = TableLayout(id, samples_in, (drop,) if isinstance(drop, str) else tuple(drop))
    data = load_with(
        name_or_path, layout, kernels=kernels, on_disk=on_disk, follow_links=follow_links
    )
    if absent := [column for column in layout.drop if column not in data.dropped]:
        raise DatasetError(f"{data.name}: no column {absent[0]} to drop; {near(absent[0], data)}")
    return data


def load_with(
    name_or_path: str | os.PathLike[str],
    layout: TableLayout,
    *,
    kernels: bool = False,
    on_disk: bool | None = None,
    follow_links: bool = False,
) -> Dataset:
    """Load as :func:`load` does; columns that are to be dropped need not be there.

    Parameters
    ----------
    name_or_path, kernels, on_disk, follow_links
        As of :func:`load`.
    layout : TableLayout
        How tables are to be read.

    Returns
    -------
    Dataset
    """
    text = os.fsdecode(name_or_path)
    if (name := SPELLINGS.get(spelling(text))) is not None:
        data = _load_entry(CATALOG[name])
        if kernels and not data.precomputed:
            raise DatasetError(f"{text}: holds views, not kernels; load it without kernels=True")
        return data
    path, selection = _split(text)
    return read_dataset(
        path, selection, layout, kernels=kernels, on_disk=on_disk, follow_links=follow_links
    )


def _load_entry(entry: Entry) -> Dataset:
    """Read a known data set, or what stands in for it."""
    if (source := entry.find()) is not None:
        return entry.read(*source)
    stand_ins = [CATALOG[name] for name in entry.stand_ins]
    for other in stand_ins:
        if (source := other.find()) is not None:
            return other.read(*source)
    if (folder := data_folder()) is not None:
        where = f"not found in {folder} or one folder deeper; put there"
    elif named := os.environ.get(VARIABLE):
        where = f"not found, for {VARIABLE} names {named}, not a folder; make it one and put there"
    else:
        where = f"not found, for {VARIABLE} is not set; set it to a folder and put there"
    files = " or ".join(" and ".join(way.files) for way in entry.ways)
    rest = [f"or, as a {e.caveat} version, {' or '.join(e.ways[0].files)}" for e in stand_ins]
    advice = ", ".join([f"{where} {files}", *rest])
    raise DatasetError(f"{entry.name}: {advice}. The data come from {entry.origin}.")


def _split(text: str) -> tuple[Path, frozenset[str]]:
    """Split ``path::A,B`` into the path of a file and the selected names (none: everything)."""
    name, separator, names = text.rpartition("::")
    if not separator or os.path.exists(text):
        name, names = text, ""
    selection = frozenset(part.strip() for part in names.split(",")) - {""}
    path, suffixes = Path(os.path.expanduser(name)), ", ".join(SUFFIXES)
    if not name:
        raise DatasetError(f"{text!r}: names no file; give the path of one ({suffixes})")
    if os.path.isdir(path):
        raise DatasetError(f"{path}: is a directory; give a file in it ({suffixes})")
    if not os.path.exists(path):
        raise DatasetError(f"{path}: no such file or data set; {_near_file(path, name)}")
    if not os.path.isfile(path):
        raise DatasetError(f"{path}: is not a regular file; give one ({suffixes})")
    if not is_readable(path):
        raise DatasetError(f"{path}: unknown suffix {path.suffix!r}; {suffix_advice(path)}")
    if separator and name != text and not selection:
        raise DatasetError(f"{text}: no variable after '::'; write for example {path}::X")
    return path, selection


def _near_file(path: Path, name: str) -> str:
    """Say which file or data set may be meant by a name that is none."""
    close = difflib.get_close_matches(spelling(name), SPELLINGS, n=3)
    near = list(dict.fromkeys(repr(SPELLINGS[match]) for match in close))
    if path.parent.is_dir():
        files = sorted(each.name for each in path.parent.iterdir() if is_readable(each))
        matches = difflib.get_close_matches(path.name, files, n=1, cutoff=0.75)
        near = [*(str(path.with_name(match)) for match in matches), *near]
    if near:
        return f"did you mean {' or '.join(near)}?"
    if path.suffix or path.parent != Path():
        return "check the path"
    return f"check the path (data sets: {', '.join(AVAILABLE)})"
