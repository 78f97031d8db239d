"""Which reader takes which file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkclust.datasets.anndata_files import read_anndata
from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.files import READERS, read_file
from mkclust.datasets.interpret import as_dataset
from mkclust.datasets.layout import COMPRESSIONS, TableLayout, stem_of, suffix_of, table_dataset
from mkclust.datasets.parquet import needs_frame, read_parquet_table
from mkclust.datasets.spreadsheets import read_arrow, read_sheets
from mkclust.datasets.text_tables import read_text_table

TEXT = (".csv", ".tsv", ".txt", ".tab")
SHEETS = (".xlsx", ".xlsm")
ARROW = (".feather", ".arrow")
ANNDATA = (".h5ad", ".h5mu")
SUFFIXES = (
    ".csv, .tsv or .txt (also .gz, .bz2, .xz)",
    ".xlsx",
    ".feather",
    ".arrow",
    ".h5ad",
    ".h5mu",
    *READERS,
)
# Formats that are not read, and what they are to be stored as.
_ADVICE = {
    ".xls": "save it as .xlsx or .csv",
    ".ods": "save it as .xlsx or .csv",
    ".rds": "write it from R by write.csv(x, 'FILE.csv')",
    ".rdata": "write what it holds from R by write.csv(x, 'FILE.csv')",
    ".pkl": "pickles can run code and are never loaded; store the table by frame.to_csv",
    ".pickle": "pickles can run code and are never loaded; store the table by frame.to_csv",
    ".zip": "unpack it first",
    ".json": "store the table as .csv, such as by pandas.read_json(...).to_csv",
}


def is_readable(path: Path) -> bool:
    """Return whether there is a reader for a file of this name."""
    if path.suffix.lower() in COMPRESSIONS:
        return suffix_of(path) in TEXT
    return suffix_of(path) in (*TEXT, *SHEETS, *ARROW, *ANNDATA, *READERS)


def suffix_advice(path: Path) -> str:
    """Say what to do about a file that there is no reader for."""
    if path.suffix.lower() in COMPRESSIONS:
        return f"packed files are read of {', '.join(TEXT)}; unpack it first"
    advice = _ADVICE.get(path.suffix.lower())
    return advice or f"give a file of {', '.join(SUFFIXES)}"


def read_dataset(
    path: Path,
    selection: frozenset[str],
    layout: TableLayout,
    *,
    kernels: bool,
    on_disk: bool | None,
    follow_links: bool,
) -> Dataset:
    """Read a file by the reader of its suffix.

    Parameters
    ----------
    path : Path
        The file.
    selection : frozenset of str
        What to read of it; empty: everything.
    layout : TableLayout
        How tables are to be read.
    kernels : bool
        Whether square arrays are kernels.
    on_disk : bool or None
        Whether it stays on disk, where it can.
    follow_links : bool
        Whether it may lead to other files.

    Returns
    -------
    Dataset
    """
    suffix = suffix_of(path)
    if suffix in ANNDATA:
        return read_anndata(path, selection, follow_links)
    if suffix in READERS:
        said = not layout.is_default
        if suffix != ".parquet" or not (said or _guarded(path, needs_frame, selection, on_disk)):
            content = read_file(path, selection, on_disk, follow_links)
            return as_dataset(path, content, selected=bool(selection), square=kernels)
    notes: list[str] = []
    if suffix in SHEETS:
        tables, notes = _guarded(path, read_sheets, selection)
        selection = frozenset()
    elif suffix in TEXT:
        tables = {stem_of(path): _guarded(path, read_text_table, layout.id)}
    else:
        reader = read_arrow if suffix in ARROW else read_parquet_table
        tables = {stem_of(path): _guarded(path, reader)}
    return table_dataset(path, tables, layout, selection=selection, square=kernels, notes=notes)


def _guarded(path: Path, reader: Callable[..., Any], *arguments: Any) -> Any:
    """Call a reader; what a damaged file has it raise becomes one line."""
    try:
        return reader(path, *arguments)
    except DatasetError:
        raise
    except Exception as error:
        # Damaged files raise nearly anything: EOFError, BadZipFile, MemoryError, KeyError.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "check that it is complete, and of the format of its suffix"
        raise DatasetError(f"{path}: cannot be read ({reason}); {advice}") from error
