"""What pages of the API show: members that the library documents, and how."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_table

# scikit-learn gives these to every estimator, and documents them.
FROM_SCIKIT_LEARN = re.compile(
    r"set_\w+_request|get_metadata_routing|get_params|set_params"
)
# A learned attribute, such as n_iter_, within the type of another one.
LEARNED = re.compile(r"\b([a-z]\w*)_(?!\w)")


def skip(
    app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: Any
) -> Any:
    """Leave out what a class has from scikit-learn or from Python."""
    if FROM_SCIKIT_LEARN.fullmatch(name):
        return True
    module = getattr(member, "__module__", None) or "mkclust"
    return None if module.startswith("mkclust") else True


def keep_underscores(
    app: Sphinx, what: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Keep underscores in types, as in ``shape (n_iter_,)``, from being links."""
    for number, line in enumerate(lines):
        names, separator, kind = line.partition(" : ")
        if separator and not line.startswith((" ", ".", ">")):
            lines[number] = names + separator + LEARNED.sub(r"\1\\_", kind)


def leave_out_references(app: Sphinx, document: nodes.document) -> None:
    """Leave references to papers out of lists of names."""
    for table in document.findall(autosummary_table):
        for reference in list(table.findall(addnodes.pending_xref)):
            if reference["refdomain"] == "citation":
                parent, place = reference.parent, reference.parent.index(reference)
                parent.remove(reference)
                if place and isinstance(before := parent[place - 1], nodes.Text):
                    parent.replace(before, nodes.Text(before.rstrip()))


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at members, at docstrings before numpydoc does, and at lists of names."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", keep_underscores, priority=400)
    app.connect("doctree-read", leave_out_references)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
