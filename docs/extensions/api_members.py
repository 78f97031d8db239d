"""Which members of a class its page of the API shows: those that the library itself documents."""

import re
from typing import Any

from sphinx.application import Sphinx

# scikit-learn gives these to every estimator, and documents them.
FROM_SCIKIT_LEARN = re.compile(r"set_\w+_request|get_metadata_routing|get_params|set_params")


def skip(
    app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn or from Python; decide nothing of the rest."""
    if FROM_SCIKIT_LEARN.fullmatch(name):
        return True
    module = getattr(member, "__module__", None) or "mkclust"
    return None if module.startswith("mkclust") else True


def setup(app: Sphinx) -> dict[str, Any]:
    """Ask `skip` about every member."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
