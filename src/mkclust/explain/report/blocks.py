"""What a page consists of: sections of blocks, which its template writes down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Block:
    """A part of a page; `kind` is the macro of the template that writes it."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Text(Block):
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str
    style: str = ""  # "quiet" for what is not the result itself


@dataclass(frozen=True)
class Items(Block):
    """A list of sentences."""

    kind: ClassVar[str] = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Column:
    """A column of a table: title, values, format, meaning, and bars from 0 to 1."""

    title: str
    values: Any
    form: Any = ""  # or a function; empty for text
    meaning: str = ""
    bars: Any = None


@dataclass(frozen=True)
class Table(Block):
    """A table that can be sorted by its columns."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]

    @property
    def legend(self) -> str:
        """What the columns mean that do not explain themselves."""
        meanings = [f"{c.title}: {c.meaning}." for c in self.columns if c.meaning]
        return " ".join(meanings)


@dataclass(frozen=True)
class Picture(Block):
    """A display as SVG, with its caption in words."""

    kind: ClassVar[str] = "picture"
    name: str
    svg: Any
    caption: str


@dataclass(frozen=True)
class Row(Block):
    """Blocks next to each other, below each other if there is no room."""

    kind: ClassVar[str] = "row"
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Stack(Block):
    """Blocks below each other, in one place of a row."""

    kind: ClassVar[str] = "stack"
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that are shown if a reader asks for them."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Definitions(Block):
    """Names with their values."""

    kind: ClassVar[str] = "definitions"
    pairs: Mapping[str, str]


@dataclass(frozen=True)
class Download(Block):
    """A link that saves a table."""

    kind: ClassVar[str] = "download"
    text: str
    name: str
    content: str  # of the file, in base64


@dataclass(frozen=True)
class Quotation(Block):
    """Paragraphs to be copied."""

    kind: ClassVar[str] = "quotation"
    title: str
    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A section with a heading; without blocks it is left out."""

    name: str
    title: str
    blocks: Sequence[Block] = field(default=())


@dataclass(frozen=True)
class Page:
    """All that the page of a fit says, in the order in which it is read."""

    headline: str
    lead: Sequence[str]
    cautions: Sequence[str]
    sections: Sequence[Section]
    written: str
