"""The cells of a table of a page: text, tag and attributes."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from mkclust.explain.report.blocks import Column, Table


class Cell(NamedTuple):
    """A cell as the template writes it."""

    tag: str
    text: str
    attributes: dict[str, str]


def cells_of(table: Table) -> Iterator[list[Cell]]:
    """Yield the cells of every row."""
    columns = [list(column.values) for column in table.columns]
    for number, row in enumerate(zip(*columns, strict=True)):
        yield [
            _cell(value, column, number, is_first=place == 0)
            for place, (value, column) in enumerate(
                zip(row, table.columns, strict=True)
            )
        ]


def _cell(value: object, column: Column, number: int, *, is_first: bool) -> Cell:
    """Return a cell; numbers are sorted by their value, and may have a bar."""
    tag = "td"
    attributes = {}
    if is_first:
        tag = "th"
        attributes["scope"] = "row"
    if column.form == "":
        return Cell(tag, str(value), attributes)

    amount = float(value)  # type: ignore[arg-type]
    attributes["class"] = "number"
    if not math.isfinite(amount):
        return Cell(tag, "-", attributes | {"data-value": ""})
    if callable(column.form):
        shown = column.form(value)
    else:
        shown = format(value, column.form)
    if not shown.strip("-0."):  # minus zero
        shown = shown.lstrip("-")

    attributes["data-value"] = f"{amount:.10g}"
    if column.bars is not None:
        attributes["class"] = "number bar"
        attributes["style"] = f"--share: {float(list(column.bars)[number]):.3f}"
    return Cell(tag, shown, attributes)
