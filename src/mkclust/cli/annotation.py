"""Variables of ``--annotate``: read before the fit, compared with the clusters after it."""

import warnings
from typing import Any

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.cli.printing import Progress
from mkclust.data.tables import is_frame
from mkclust.explain.annotate import annotate
from mkclust.explain.annotation import Annotation

# How the warning begins that stands in the place of a table.
NOTHING_TESTED = "no variable was tested"


def read_variables(text: str) -> dict[str, Any]:
    """Read the variables of a file, as tables by their names; its labels are a variable, too."""
    data = datasets.load(text)
    if data.views is None:
        raise CommandError(f"{text}: holds kernels; --annotate takes variables of the samples")
    tables = dict(data.views)
    if data.y is not None:
        columns = {"labels": data.y}
        frame = next((table for table in tables.values() if is_frame(table)), None)
        tables["labels"] = columns if frame is None else type(frame)(columns, index=frame.index)
    return tables


def compare_variables(model: Any, variables: Any, progress: Progress) -> Annotation | None:
    """Test variables against the clusters; what goes wrong never costs a finished fit."""
    progress.phase("testing other variables")
    try:
        return annotate(model, variables)
    except (ValueError, TypeError, ImportError) as error:
        warnings.warn(f"{NOTHING_TESTED}: {error}", stacklevel=2)
        return None
