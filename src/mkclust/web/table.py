"""Tables that the reader can sort, by mouse or keyboard."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mkclust.web.words import escape


class Column(NamedTuple):
    """The head of a column: its title, and what it means in a few words."""

    title: str
    meaning: str = ""


class Cell(NamedTuple):
    """One entry: what is shown, what it is sorted by, and a bar behind it, 0 to 1."""

    shown: str
    value: float | str
    share: float | None = None


def number(value: float, form: str = ".3f", share: float | None = None) -> Cell:
    """Return a number as a cell; what is no number is a dash, and sorted last.

    Parameters
    ----------
    value : float
    form : str, default=".3f"
        How it is written, as Python's ``format`` takes it.
    share : float, default=None
        Length of the bar drawn behind it, 0 to 1.

    Returns
    -------
    Cell
    """
    if value is None or not math.isfinite(value):
        return Cell("-", math.nan)
    shown = format(value, form)
    if shown.startswith("-") and not shown.strip("-0."):
        shown = shown[1:]  # a small negative number, rounded, is no negative zero
    return Cell(shown, float(value), share)


def text(value: Any) -> Cell:
    """Return a text as a cell."""
    return Cell(str(value), str(value))


def table(columns: Sequence[Column | str], rows: Sequence[Sequence[Cell]], caption: str) -> str:
    """Return a table; each column's title is a button that sorts by it.

    Parameters
    ----------
    columns : sequence of Column or str
        The first names the rows.
    rows : sequence of sequence of Cell
        As they are shown before anybody sorts them.
    caption : str
        What the table is, in a few words.

    Returns
    -------
    str
    """
    heads = [Column(column) if isinstance(column, str) else column for column in columns]
    # A column is to the right where all that it holds are numbers.
    numeric = [all(not isinstance(row[at].value, str) for row in rows) for at in range(len(heads))]
    head = "".join(map(_head, heads, numeric))
    body = "".join(
        "<tr>" + "".join(_cell(cell, at == 0) for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    legend = [f"{column.title}: {column.meaning}." for column in heads if column.meaning]
    below = f'<p class="legend">{escape(" ".join(legend))}</p>' if legend else ""
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{below}"
    )


def _head(column: Column, numeric: bool) -> str:
    """Return the head of one column."""
    kind = ' class="number"' if numeric else ""
    button = f'<button type="button">{escape(column.title)}</button>'
    return f'<th scope="col" aria-sort="none"{kind}>{button}</th>'


def _cell(cell: Cell, names_row: bool) -> str:
    """Return one cell, with what the script sorts by."""
    tag, scope = ("th", ' scope="row"') if names_row else ("td", "")
    if isinstance(cell.value, str):
        return f"<{tag}{scope}>{escape(cell.shown)}</{tag}>"
    value = "" if math.isnan(cell.value) else f"{cell.value:.10g}"
    bar = ""
    if cell.share is not None:
        bar = f' style="--share:{min(max(cell.share, 0), 1):.3f}"'
    kind = "number bar" if bar else "number"
    return f'<{tag}{scope} class="{kind}" data-value="{value}"{bar}>{escape(cell.shown)}</{tag}>'
