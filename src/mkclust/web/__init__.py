"""Pages in one file: sections, sortable tables and plots, without a request to anywhere."""

from mkclust.web.document import Section, document
from mkclust.web.plot import plot, plotting_script
from mkclust.web.table import Column, number, table, text
from mkclust.web.words import (
    bullets,
    cautions,
    definitions,
    escape,
    paragraph,
    quotation,
    subheading,
)

__all__ = [
    "Column",
    "Section",
    "bullets",
    "cautions",
    "definitions",
    "document",
    "escape",
    "number",
    "paragraph",
    "plot",
    "plotting_script",
    "quotation",
    "subheading",
    "table",
    "text",
]
