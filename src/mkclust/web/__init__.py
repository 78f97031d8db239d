"""Pages in one file: sections, sortable tables and plots, without a request to anywhere."""

from mkclust.web.document import Section, document
from mkclust.web.plot import plot, plotting_script
from mkclust.web.table import Column, number, table, text
from mkclust.web.words import (
    beside,
    bullets,
    cautions,
    definitions,
    download,
    escape,
    paragraph,
    quotation,
    subheading,
)

__all__ = [
    "Column",
    "Section",
    "beside",
    "bullets",
    "cautions",
    "definitions",
    "document",
    "download",
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
