"""Tables with types of their own: sheets of Excel, and the columns of Feather and parquet files."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

from mkclust.datasets.base import DatasetError, check_room
from mkclust.datasets.layout import MISSING, RawTable, import_pandas, stem_of, unique_names

# What a cell takes, in Python's objects and then in a data frame.
BYTES_PER_CELL, ROWS_PER_CHECK = 50, 1000


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
    import_pandas(path)
    try:
        import openpyxl
    except ImportError as error:
        advice = 'reading it needs openpyxl: pip install "mkclust[excel]"; or save it as .csv'
        raise DatasetError(f"{path}: is an Excel workbook; {advice}") from error
    with ZipFile(path) as archive:
        # All texts of a workbook are read at once.
        texts = [each.file_size for each in archive.infolist() if "sharedStrings" in each.filename]
        check_room(f"{path}: its texts", 2 * sum(texts))
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheets = [sheet.title for sheet in book.worksheets]
        if missing := sorted(selection - set(sheets)):
            held = ", ".join(sheets)
            raise DatasetError(f"{path}: no sheet {missing[0]} in it; select among {held}")
        names = [name for name in sheets if name in selection] or sheets[:1]
        read = {name: _read_sheet(path, book[name]) for name in names}
    finally:
        book.close()
    tables = {name if selection else stem_of(path): table for name, table in read.items()}
    aside = [name for name in sheets if name not in names]
    return tables, [f"Left aside: the sheets {', '.join(aside)}."] if aside else []


def _read_sheet(path: Path, sheet: Any) -> RawTable:
    """Return a sheet whose first row names its columns, these of the types that they hold.

    Rows and columns without any cell are skipped, however far the sheet says that it reaches. A
    cell outside the table is named: what it is meant for cannot be told.
    """
    import pandas as pd
    from openpyxl.utils import get_column_letter

    sheet.reset_dimensions()  # rows end with their last cell
    rows: list[tuple[Any, ...]] = []
    first = width = last = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        filled = [i for i, cell in enumerate(row) if cell is not None]
        if not filled:
            continue
        if not rows:
            # The ids may have no name.
            first, width = max(filled[0] - 1, 0), filled[-1] + 1
        outside = [i for i in filled if not first <= i < width]
        if number > last + 1 and rows and len(filled) == 1 and width - first > 2:
            outside = filled
        if outside:
            cell = f"{get_column_letter(outside[0] + 1)}{number}"
            raise DatasetError(
                f"{path}: the sheet {sheet.title} has the cell {cell} apart from its table, whose "
                f"names end in the column {get_column_letter(width)}; empty that cell, or name its "
                "column"
            )
        rows.append((*row[first:width], *[None] * (width - len(row))))
        last = number
        if len(rows) % ROWS_PER_CHECK == 0:
            n_bytes = BYTES_PER_CELL * (width - first) * len(rows)
            check_room(f"{path}: the sheet {sheet.title}", n_bytes, held=n_bytes)
    if len(rows) < 2:
        advice = "it should hold a header, and one row a sample"
        raise DatasetError(f"{path}: the sheet {sheet.title} has {len(rows)} rows; {advice}")
    header, *body = rows
    columns = list(zip(*body, strict=True))
    kept = [
        i
        for i, cells in enumerate(columns)
        if header[i] is not None or any(c is not None for c in cells)
    ]
    names = unique_names(path, [header[i] for i in kept])
    as_text = {names[0], *(names[1:2] if names[0] == "" else ())}
    as_text = {n for n in as_text if any(isinstance(c, str) for c in columns[kept[names.index(n)]])}
    frame = pd.DataFrame(
        {n: _column(columns[i], n in as_text) for n, i in zip(names, kept, strict=True)}
    )
    return RawTable(frame, frozenset(as_text))


def _column(cells: tuple[Any, ...], as_text: bool) -> Any:
    """Return cells as floats, dates, truth values or text; those that may be ids as written."""
    import pandas as pd
    from openpyxl.cell.cell import ERROR_CODES

    if as_text:
        whole = [int(c) if isinstance(c, float) and c.is_integer() else c for c in cells]
        return pd.Series([None if c in ERROR_CODES else c for c in whole], dtype=object)
    texts = MISSING | set(ERROR_CODES)
    present = [None if isinstance(c, str) and c in texts else c for c in cells]
    if all(c is None or type(c) in (int, float) for c in present):
        return pd.Series(present, dtype=float)
    return pd.Series(present, dtype=object).infer_objects()


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
