"""Tables with types of their own: sheets of Excel, and the columns of Feather and parquet files."""

from pathlib import Path
from typing import Any

from mkclust.datasets.base import DatasetError, check_room
from mkclust.datasets.layout import RawTable, import_pandas, stem_of, unique_names


def read_sheets(path: Path, selection: frozenset[str]) -> tuple[dict[str, RawTable], list[str]]:
    """Return the selected sheets of a workbook, or its first one, and what was left aside.

    Parameters
    ----------
    path : Path
        The workbook.
    selection : frozenset of str
        Names of sheets.

    Returns
    -------
    tables : dict of str to RawTable
        By the names of the sheets; a lone first sheet by that of the file.
    notes : list of str
        Names of sheets that were not read.
    """
    pd = import_pandas(path)
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        advice = 'reading it needs openpyxl: pip install "mkclust[excel]"; or save it as .csv'
        raise DatasetError(f"{path}: is an Excel workbook; {advice}") from error
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        if missing := sorted(selection - set(sheets)):
            held = ", ".join(sheets)
            raise DatasetError(f"{path}: no sheet {missing[0]} in it; select among {held}")
        names = [name for name in sheets if name in selection] or sheets[:1]
        frames = {name: book.parse(name, header=None) for name in names}
    tables = {}
    for name, frame in frames.items():
        key = name if selection else stem_of(path)
        tables[key] = RawTable(_with_header(path, name, frame))
    aside = [name for name in sheets if name not in names]
    return tables, [f"Left aside: the sheets {', '.join(aside)}."] if aside else []


def _with_header(path: Path, sheet: str, frame: Any) -> Any:
    """Return a sheet whose first row names its columns, these of the types that they hold."""
    frame = frame.dropna(how="all").dropna(how="all", axis=1)
    if len(frame) < 2:
        advice = "it should hold a header, and one row a sample"
        raise DatasetError(f"{path}: the sheet {sheet} has {len(frame)} rows; {advice}")
    first = frame.iloc[0]
    header = [None if missing else cell for cell, missing in zip(first, first.isna(), strict=True)]
    body = frame.iloc[1:].reset_index(drop=True)
    body.columns = unique_names(path, header)
    return body.infer_objects().apply(_as_floats)


def _as_floats(values: Any) -> Any:
    """Return a column of numbers as floats, and any other as it is."""
    numbers = values.dtype.kind in "iuf" or all(type(v) in (int, float) for v in values.dropna())
    return values.astype(float) if numbers else values


def read_arrow(path: Path) -> RawTable:
    """Read a Feather or Arrow file, of any version, into memory.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    RawTable
    """
    try:
        import pyarrow
        from pyarrow import feather
    except ImportError as error:
        advice = 'reading it needs pyarrow: pip install "mkclust[parquet]"'
        raise DatasetError(f"{path}: is a Feather file; {advice}") from error
    try:
        table = feather.read_table(str(path))
    except pyarrow.ArrowInvalid:
        # Arrow's other form, a stream, has no table of contents.
        with pyarrow.memory_map(str(path)) as source:
            table = pyarrow.ipc.open_stream(source).read_all()
    return as_raw_table(path, table)


def as_raw_table(path: Path, table: Any) -> RawTable:
    """Return a table of pyarrow as a data frame; what pandas had as an index is one again.

    Parameters
    ----------
    path : Path
        Where it comes from.
    table : pyarrow.Table
        The table.

    Returns
    -------
    RawTable
    """
    import_pandas(path)
    unique_names(path, table.column_names)
    check_room(f"{path}: its table", table.nbytes)
    frame = table.to_pandas()
    frame.columns = unique_names(path, list(frame.columns))
    if type(frame.index).__name__ == "MultiIndex":
        advice = "store one column of ids, such as by frame.reset_index()"
        raise DatasetError(f"{path}: its index has {frame.index.nlevels} levels; {advice}")
    return RawTable(frame)
