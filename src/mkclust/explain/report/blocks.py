"""What a page consists of: blocks, which the macros of its template write down."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Block:
    """A part of a page: `kind` is the macro that writes its content.

    Sections, folds and rows hold blocks; a row has a list of them for each place.
    """

    kind: str
    content: Any
    title: str = ""
    name: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: title, values, format, meaning, and bars from 0 to 1."""

    title: str
    values: Any
    form: Any = ""  # or a function; empty for text
    meaning: str = ""
    bars: Any = None

    @property
    def cells(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The cells as text and attributes: numbers are sorted by their values."""
        for place, value in enumerate(self.values):
            attributes = {}
            text = "-"
            if self.form == "":
                text = str(value)
            elif not math.isfinite(value):
                attributes = {"class": "number", "data-value": ""}
            else:
                attributes = {"class": "number", "data-value": f"{value:.10g}"}
                write = self.form
                if not callable(write):
                    write = f"{{:{write}}}".format
                text = re.sub(r"^-(?=[0.]*$)", "", write(value))  # minus zero
                if self.bars is not None:
                    share = np.asarray(self.bars)[place]
                    attributes["class"] = "number bar"
                    attributes["style"] = f"--share: {share:.3f}"
            yield text, attributes
