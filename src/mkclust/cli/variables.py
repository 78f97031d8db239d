"""The file of ``--annotate``: variables of the samples, which are not clustered."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import Data, file_name, layout_of, row_ids
from mkclust.cli.options import Request
from mkclust.datasets.layout import TableLayout
from mkclust.datasets.read import load_with
from mkclust.exceptions import InputError
from mkclust.explain.id_of_rows import with_ids
from mkclust.index import index_of, match_rows
from mkclust.text import did_you_mean

# Options that a file of variables takes only if they name it.
OWN = ("id", "samples_in", "drop")


def read_variables(request: Request) -> dict[str, Any] | None:
    """Return the tables of variables by name, None without ``--annotate``."""
    text = request.annotate
    if text is None:
        return None
    data = load_with(text, _layout(text, request))
    if data.views is None:
        raise CommandError(
            f"--annotate {text}: holds kernels; give variables of the samples"
        )
    first = next(iter(data.views.values()))
    # AnnData, whose labels are among its variables.
    if data.y is None or hasattr(first, "obs"):
        return dict(data.views)
    return dict(data.views) | {
        "labels": pd.DataFrame({"labels": data.y}, row_ids(first))
    }


def _layout(text: str, request: Request) -> TableLayout:
    """Return how a file of variables is read: by options of its own, and of all."""
    name = file_name(text)
    own: dict[str, Any] = {
        option: [v for v in getattr(request, option) if v.startswith(f"{name}=")]
        for option in OWN
    }
    # A column of a table that is clustered may be dropped there to be tested here.
    if name in map(file_name, request.inputs):
        own["drop"] = []
    return layout_of(text, replace(request, **own), {})


def refuse_unmatched(
    request: Request, variables: Mapping[str, Any] | None, data: Data
) -> None:
    """Refuse variables whose rows are not those of the samples, before a fit."""
    index = data.n_samples if data.ids is None else data.ids
    for table in (variables or {}).values():
        reason = why_unmatched(table, index)
        if reason:
            raise InputError(f"--annotate {request.annotate}: {reason}")


def why_unmatched(table: Any, index: Any) -> str:
    """Return why rows cannot be matched with samples; empty if they can."""
    who = "the table"
    frame = getattr(table, "obs", table)
    rows = index_of(frame)
    try:
        if isinstance(frame, pd.DataFrame):
            rows = with_ids(frame, index, who)[0].index
        if rows is None:
            rows = len(frame)
        match_rows(rows, index, who, "the samples")
    except ValueError as error:
        return str(error)
    return ""


def check_survival(
    variables: dict[str, Any] | None, time: str | None, event: str | None
) -> None:
    """Refuse times and events that the table of variables does not have."""
    if variables is None and (time or event):
        raise CommandError(
            "--time and --event name columns of --annotate FILE: give the file, too"
        )
    if (time is None) != (event is None):
        raise CommandError("--time and --event belong together: give both columns")
    columns = _columns(variables)
    for option, name in (("--time", time), ("--event", event)):
        if name is not None and name not in columns:
            near = did_you_mean(name, columns)
            raise CommandError(
                f"{option} {name}: the file of --annotate has no such column{near}"
            )


def adjusted_for(variables: dict[str, Any] | None, adjust: str | None) -> list[str]:
    """Return the columns that hazard ratios are adjusted for; refuse unknown ones."""
    names = [name.strip() for name in (adjust or "").split(",") if name.strip()]
    if names and variables is None:
        raise CommandError("--adjust names columns of --annotate FILE: give the file")
    columns = _columns(variables)
    for name in names:
        if name not in columns:
            near = did_you_mean(name, columns)
            raise CommandError(
                f"--adjust {name}: the file of --annotate has no such column{near}"
            )
    return names


def _columns(variables: dict[str, Any] | None) -> list[str]:
    """Return the names of the columns of the tables of variables."""
    tables = [getattr(table, "obs", table) for table in (variables or {}).values()]
    return [str(name) for table in tables for name in getattr(table, "columns", ())]
