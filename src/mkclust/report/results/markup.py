"""The words and tables of a benchmark's report as markup: the same that its other files have."""

import math
import re
from collections.abc import Iterable, Sequence

from mkclust.report.web import bullets, escape, table, text
from mkclust.report.web.table import Cell as Shown
from mkclust.tables import Cell, Table
from mkclust.tables.formats import plain

# Blocks that are one sortable table, with a column for the block; those of other tables measure
# different things, and are a table each.
BLOCK_COLUMNS = {"reproduction": "settings", "paper": "score, settings", "settings": "data set"}
# The page shades what print sets in bold: shades are seen from afar, in tables wider than a page.
SHADED = {
    "Bold: ": "Shaded: ",
    "Nothing is bold: ": "Nothing is shaded: ",
    "bold may only mean": "shade may only mean",
}
FEW_NOTES = 3  # are not worth to be folded away


def from_markdown(words: str) -> str:
    """Return a paragraph, a list or a table of Markdown, as this report writes it, as markup.

    Parameters
    ----------
    words : str
        Markdown: paragraphs, ``- `` lists, tables, bold face, and characters after a backslash.

    Returns
    -------
    str
    """
    parts = []
    for part in words.split("\n\n"):
        lines = part.splitlines()
        if lines and lines[0].startswith("| "):
            parts.append(_table(lines))
        elif lines and all(line.startswith("- ") for line in lines):
            items = "".join(f"<li>{_inline(line[2:])}</li>" for line in lines)
            parts.append(f"<ul>{items}</ul>")
        else:
            parts.append(f"<p>{_inline(part)}</p>")
    return "".join(parts)


def _inline(words: str) -> str:
    """Return a line of Markdown as markup."""
    found, strong = [], False
    for taken, mark, letters in re.findall(r"\\(.)|(\*\*)|([^\\*]+|.)", words, re.DOTALL):
        if mark:
            strong = not strong
            found.append("<strong>" if strong else "</strong>")
        else:
            found.append(escape(taken or letters))
    return "".join(found) + "</strong>" * strong


def _table(lines: Sequence[str]) -> str:
    """Return a table of Markdown: its head, a line that puts columns to a side, and its rows."""
    head, sides, *body = (
        [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    )
    rows = [[_entry(*pair) for pair in zip(line, sides, strict=True)] for line in body]
    return table(head, rows, "The data sets")


def _entry(words: str, side: str) -> Shown:
    """Return an entry of a table of Markdown: to the right a count or a dash, else a name."""
    entry = re.sub(r"\\(.)", r"\1", words)
    if not side.endswith(":"):
        return text(entry)
    return Shown(entry, math.nan if entry == "-" else float(entry.replace(",", "")))


def tables(source: Table, *, bars: bool = False) -> list[str]:
    """Return a table as sortable ones, one for each block that measures something of its own.

    Parameters
    ----------
    source : Table
    bars : bool, default=False
        Whether each number has a bar behind it, as long as its share of the largest of its column,
        or of one where that is larger.

    Returns
    -------
    list of str
    """
    blocks = _blocks(source)
    kind = source.name.partition("-")[0]
    if kind in BLOCK_COLUMNS:
        columns = [BLOCK_COLUMNS[kind], *source.columns]
        rows = [(title, *row) for title, own in blocks for row in own]
        return [_sortable(columns, rows, source.title, source.digits, names=2, bars=bars)]
    several = len(blocks) > 1
    return [
        _sortable(
            source.columns, own, f"{source.title}: {title}" if several else source.title,
            source.digits, names=1, bars=bars,
        )
        for title, own in blocks
    ]  # fmt: skip


def _blocks(source: Table) -> list[tuple[str, list[tuple]]]:
    """Return the rows of a table under the titles of its blocks, an empty one where it has none."""
    found: list[tuple[str, list[tuple]]] = []
    for row in source.rows:
        if len(row) == 1:
            found.append((row[0], []))
        else:
            found = found or [("", [])]
            found[-1][1].append(row)
    return found


def _sortable(
    columns: Sequence[str],
    rows: Sequence[tuple],
    caption: str,
    digits: int,
    *,
    names: int,
    bars: bool,
) -> str:
    """Return rows of names and cells as a table."""
    turned = [[text(name) for name in row[:names]] for row in rows]
    for at in range(names, len(columns)):
        cells = [row[at] for row in rows]
        numeric = any(cell.mean is not None for cell in cells) or all(
            cell.shown(digits) == "-" for cell in cells
        )
        largest = max((abs(cell.mean) for cell in cells if cell.mean is not None), default=0.0)
        for line, cell in zip(turned, cells, strict=True):
            share = cell.mean / max(largest, 1e-300) if bars and cell.mean is not None else None
            line.append(_shown(cell, digits, share) if numeric else text(cell.shown(digits)))
    return table(columns, turned, caption)


def _shown(cell: Cell, digits: int, share: float | None) -> Shown:
    """Return a cell of numbers, shaded where print sets it in bold."""
    words = cell.shown(digits) + (f" [{cell.mark}]" if cell.mark else "")
    # By six digits, what is sorted takes half the room.
    value = math.nan if cell.mean is None else float(f"{cell.mean:.6g}")
    return Shown(words, value, 1.0 if cell.bold else share)


def notes_of(source: Table, caveats: Iterable[str], words: Iterable[str]) -> str:
    """Return the notes of a table; what is long and said elsewhere, too, is folded.

    Parameters
    ----------
    source : Table
    caveats : iterable of str
        Notes on data sets, which the page has at its beginning.
    words : iterable of str
        What the section says above, as Markdown; notes that say it again are left out.

    Returns
    -------
    str
    """
    known, said = set(caveats), set(words)
    notes = [note for note in source.notes if plain(note) not in said]
    folded = [note for note in notes if note in known or re.match(r"\[\d+\] ", note)]
    if len(folded) <= FEW_NOTES:
        folded = []
    open_ones = [_shaded(note) for note in notes if note not in folded]
    below = folding(f"{len(folded)} more notes: data sets and what is missing", bullets(folded))
    return f'<div class="legend">{bullets(open_ones)}{below if folded else ""}</div>'


def _shaded(note: str) -> str:
    """Return a note that speaks of shades in place of bold face."""
    for printed, shown in SHADED.items():
        note = note.replace(printed, shown)
    return note


def folding(title: str, content: str) -> str:
    """Return content that is shown when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"
