"""Labels made elsewhere: files of them, named after data sets."""

import csv
import glob
import re
from pathlib import Path


def label_files(pattern: str, folder: Path) -> list[Path]:
    """Return the files that a pattern names, relative to a folder or absolute, in order."""
    return sorted(folder / name for name in glob.glob(pattern, root_dir=folder, recursive=True))


def read_labels(pattern: str, dataset: str, folder: Path) -> list[list[str]]:
    """Return the labelings made elsewhere for a data set, one a repetition.

    Files are named after the data set: ``digit.csv`` with a column for each repetition, or
    ``digit.1.csv``, ``digit.2.csv``, ... A first line without numbers above numbers is a heading.

    Parameters
    ----------
    pattern : str
        Pattern of the files.
    dataset : str
        Name of the data set.
    folder : Path
        What the pattern is relative to.

    Returns
    -------
    list of list of str

    Raises
    ------
    ValueError
        If a file is not a table of labels, one column a repetition.
    """
    name = re.compile(rf"{re.escape(dataset)}(\.(\d+))?\.\w+$", re.IGNORECASE)
    matches = {path: name.match(path.name) for path in label_files(pattern, folder)}
    numbered = [(int(match[2] or 0), path) for path, match in matches.items() if match]
    return [column for _, path in sorted(numbered) for column in _label_columns(path)]


def _label_columns(path: Path) -> list[list[str]]:
    """Return the columns of a file of labels, refusing what can hardly be labels."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: is not a table of labels ({error})") from None
    numeric = [all(map(_is_number, line)) for line in lines]
    if len(lines) > 1 and all(numeric[1:]) and not any(map(_is_number, lines[0])):
        lines = lines[1:]
    if len({len(line) for line in lines}) > 1:
        raise ValueError(f"{path.name}: lines differ in length; write one column a repetition")
    columns = [[_one_spelling(cell) for cell in column] for column in zip(*lines, strict=True)]
    for number, column in enumerate(columns, start=1):
        where = f"{path.name}, column {number}"
        if "" in column:
            line = column.index("") + 1
            raise ValueError(f"{where}: no label in line {line}; write one for every sample")
        if len(column) > 2 and len(set(column)) == len(column):
            raise ValueError(f"{where}: no label occurs twice; leave out numbers of samples")
    return columns


def _one_spelling(text: str) -> str:
    """Return a label in one spelling: 1, 1.0 and 1e0 are the same cluster."""
    return repr(float(text)) if _is_number(text) else text


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
