"""A table as data, and its renderings: Markdown, LaTeX and CSV."""

import csv
import io
from dataclasses import dataclass
from typing import Any

from mkclust.text import csv_cell, printable


@dataclass(frozen=True)
class Cell:
    """A number of a table, with what belongs to it.

    Attributes
    ----------
    mean : float or None
        The number; None where there is none, which shows as ``-``.
    std : float or None
        Its deviation.
    bold : bool
        Whether it is set in bold.
    paper : float or None
        The figure that a paper reports for the same thing: shown beside the number, with the
        difference between the two.
    mark : str
        Marks of the notes that explain the cell, separated by commas: the mark ``"1"`` belongs
        to the note that starts with ``"[1] "``.
    text : str
        Shown in place of the numbers where it is not empty; the CSV still has the numbers.
    """

    mean: float | None
    std: float | None = None
    bold: bool = False
    paper: float | None = None
    mark: str = ""
    text: str = ""

    @property
    def difference(self) -> float | None:
        """The number less the paper's, None where one of the two is missing."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    def shown(self, digits: int = 1) -> str:
        """Return the cell as plain text, without mark and bold face.

        Parameters
        ----------
        digits : int, default=1
            Digits after the decimal point.

        Returns
        -------
        str

        Examples
        --------
        >>> from mkclust.bench.tables import Cell
        >>> Cell(90.52, std=0.1, paper=90.3).shown()
        '90.5±0.1 (90.3, +0.2)'
        """
        if self.text:
            return self.text
        number = "-" if self.mean is None else f"{self.mean:.{digits}f}"
        if self.mean is not None and self.std is not None:
            number += f"±{self.std:.{digits}f}"
        if self.paper is None:
            return number
        parentheses = f"{self.paper:.{digits}f}"
        if self.difference is not None:
            # Adding zero keeps a difference that rounds to nothing from showing as "-0.0".
            parentheses += f", {round(self.difference, digits) + 0.0:+.{digits}f}"
        return f"{number} ({parentheses})"


@dataclass(frozen=True)
class Table:
    """A table: rows of cells under named columns, in blocks, with notes.

    Attributes
    ----------
    name : str
        A name for files and references: letters, digits and hyphens.
    title : str
        What the table shows, in a line.
    columns : tuple of str
        Names of the columns; the first is that of the row labels.
    rows : tuple of tuple
        Each row is its label and a cell for every further column. A row of a label alone is the
        heading of a block.
    notes : tuple of str
        What a reader must know, a sentence or two each.
    picture_notes : tuple of str
        What a reader must know of a picture of the table.
    digits : int
        Digits after the decimal point.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    picture_notes: tuple[str, ...] = ()
    digits: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) not in (1, len(self.columns)):
                raise ValueError(
                    f"Row {row[0]!r} of table {self.name!r} has {len(row) - 1} cells for "
                    f"{len(self.columns) - 1} columns: give one for each, or none for a heading."
                )

    def cells(self) -> list[tuple[str, str, str, Cell]]:
        """Return every cell with the names of its block, row and column.

        Returns
        -------
        list of (str, str, str, Cell)
        """
        cells_with_names, block = [], ""
        for label, *cells in self.rows:
            if not cells:
                block = label
            for column, cell in zip(self.columns[1:], cells, strict=bool(cells)):
                cells_with_names.append((block, label, column, cell))
        return cells_with_names


def to_markdown(table: Table) -> str:
    """Return a table as Markdown, its title above and its notes below.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str

    Examples
    --------
    >>> from mkclust.bench.tables import Cell, Table, to_markdown
    >>> table = Table("t", "Accuracy", ("data set", "mkkm"), (("Digit", Cell(47.2, bold=True)),))
    >>> print(to_markdown(table))
    **Accuracy**
    <BLANKLINE>
    | data set | mkkm |
    | :--- | ---: |
    | Digit | **47.2** |
    <BLANKLINE>
    """
    lines = [f"**{escape(table.title)}**", ""]
    lines.append(_bars(map(escape, table.columns)))
    lines.append(_bars([":---", *["---:"] * (len(table.columns) - 1)]))
    for label, *cells in table.rows:
        if cells:
            lines.append(_bars([escape(label), *(_markdown_cell(c, table) for c in cells)]))
        else:
            lines.append(_bars([f"**{escape(label)}**", *[""] * (len(table.columns) - 1)]))
    if table.notes:
        lines += ["", *(f"- {escape(note)}" for note in table.notes)]
    return "\n".join([*lines, ""])


def to_latex(table: Table) -> str:
    """Return a table as a LaTeX float, in the manner of booktabs.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str
        Needs the packages booktabs and graphicx: a table wider than the page is scaled to fit.
    """
    width = len(table.columns)
    body = [r"\toprule", _ampersands(map(_escape_latex, table.columns)), r"\midrule"]
    for number, (label, *cells) in enumerate(table.rows):
        if cells:
            # In braces: after the end of a line LaTeX takes "[" and "*" for options of it.
            first = f"{{{_escape_latex(label)}}}"
            body.append(_ampersands([first, *(_latex_cell(c, table) for c in cells)]))
        else:
            body += [r"\midrule"] * (number > 0)
            body += [rf"\multicolumn{{{width}}}{{c}}{{{_escape_latex(label)}}} \\", r"\midrule"]
    tabular = [rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", *body, r"\bottomrule"]
    tabular.append(r"\end{tabular}")
    if width > 5:
        tabular = [r"\resizebox{\linewidth}{!}{%", *tabular[:-1], tabular[-1] + "}"]
    notes = [rf"\par\noindent {_escape_latex(note)}" for note in table.notes]
    if notes:
        notes = [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize", *notes]
        notes.append(r"\end{minipage}")
    star = "*" * (width > 5)
    head = ["% packages: booktabs, graphicx", rf"\begin{{table{star}}}", r"\centering"]
    head += [rf"\caption{{{_escape_latex(table.title)}}}", rf"\label{{tab:{table.name}}}"]
    return "\n".join([*head, *tabular, *notes, rf"\end{{table{star}}}", ""])


def to_csv(table: Table) -> str:
    """Return a table as CSV for machines: a line for every cell, numbers in full.

    Parameters
    ----------
    table : Table

    Returns
    -------
    str
        Columns table, block, row, column, mean, std, paper, difference, bold, text, remark; the
        remark is what the notes say of that cell. The notes follow, as the texts of lines
        without a column: what must be said of the numbers travels with them. Texts that a
        spreadsheet would take for formulas begin with an apostrophe.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = ("mean", "std", "paper", "difference")
    writer.writerow(["table", "block", "row", "column", *names, "bold", "text", "remark"])
    for block, label, column, cell in table.cells():
        numbers = [getattr(cell, name) for name in names]
        texts = ["" if number is None else repr(float(number)) for number in numbers]
        remark = " ".join(_remarks(cell, table))
        where = map(_csv_text, (table.name, block, label, column))
        words = map(_csv_text, (cell.text, remark))
        writer.writerow([*where, *texts, int(cell.bold), *words])
    for note in table.notes:
        blank = [""] * (len(names) + 1)
        writer.writerow([_csv_text(table.name), "", "note", "", *blank, _csv_text(note), ""])
    return file.getvalue()


def _remarks(cell: Cell, table: Table) -> list[str]:
    """Return the notes that a cell's marks belong to, without the marks."""
    starts = [f"[{mark}] " for mark in cell.mark.split(",") if mark]
    return [n.removeprefix(start) for start in starts for n in table.notes if n.startswith(start)]


def _bars(parts: Any) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(parts)} |"


def _ampersands(parts: Any) -> str:
    r"""Return a line of a LaTeX table."""
    return " & ".join(parts) + r" \\"


def _markdown_cell(cell: Cell, table: Table) -> str:
    """Return a cell as Markdown, with its mark and in bold where it is."""
    text = escape(cell.shown(table.digits))
    text = f"**{text}**" if cell.bold else text
    return f"{text}<sup>[{cell.mark}]</sup>" if cell.mark else text


def _latex_cell(cell: Cell, table: Table) -> str:
    """Return a cell as LaTeX, with its mark and in bold where it is."""
    text = _escape_latex(cell.shown(table.digits))
    text = rf"\textbf{{{text}}}" if cell.bold else text
    return f"{text}$^{{[{_escape_latex(cell.mark)}]}}$" if cell.mark else text


def escape(text: str) -> str:
    """Return a text with the characters escaped that Markdown would take for markup."""
    return "".join(
        f"\\{character}" if character in r"\|*_`<[]$~#" else character
        for character in _one_line(text)
    )


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _escape_latex(text: str) -> str:
    """Return a text with the characters escaped that LaTeX would take for markup."""
    return "".join(LATEX.get(character, character) for character in _one_line(text))


def _one_line(text: str) -> str:
    """Return a text without line breaks, and without characters that cannot be seen."""
    return printable(" ".join(text.split()))


def _csv_text(text: str) -> str:
    """Return a text that is neither a formula nor more than can be seen."""
    return csv_cell(printable(text))
