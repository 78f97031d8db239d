"""Variables of the samples that are not clustered: the tables of ``--annotate``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import Data, column_names, file_name, layout_of, row_ids
from mkclust.cli.options import Request
from mkclust.datasets.layout import TableLayout
from mkclust.datasets.read import load_with
from mkclust.exceptions import InputError
from mkclust.explain.id_of_rows import with_ids
from mkclust.index import index_of, match_rows
from mkclust.text import did_you_mean


def read_variables(request: Request) -> dict[str, Any]:
    """Return the tables of variables by name, none without ``--annotate``."""
    text = request.annotate
    if text is None:
        return {}
    data = load_with(text, _layout_of_variables(text, request))
    if data.views is None:
        raise CommandError(
            f"--annotate {text}: holds kernels; give variables of the samples"
        )
    tables = dict(data.views)
    first = next(iter(tables.values()))
    # The labels of AnnData are among its variables.
    if data.y is not None and not hasattr(first, "obs"):
        tables["labels"] = pd.DataFrame({"labels": data.y}, row_ids(first))
    return tables


def _layout_of_variables(text: str, request: Request) -> TableLayout:
    """Return how a file of variables is read: by options of its own, and of all."""
    name = file_name(text)
    own: dict[str, Any] = {
        option: [v for v in getattr(request, option) if v.startswith(f"{name}=")]
        for option in ("id", "samples_in", "drop")
    }
    # A column of a table that is clustered may be dropped there to be tested here.
    if name in map(file_name, request.inputs):
        own["drop"] = []
    return layout_of(text, replace(request, **own), {})


def refuse_unmatched(
    request: Request, variables: Mapping[str, Any], data: Data
) -> None:
    """Refuse variables whose rows are not those of the samples, before a fit."""
    index = data.n_samples if data.ids is None else data.ids
    for table in variables.values():
        reason = why_unmatched(table, index)
        if reason:
            raise InputError(f"--annotate {request.annotate}: {reason}")


def why_unmatched(table: Any, index: Any) -> str:
    """Return why rows cannot be matched with samples; empty if they can."""
    who = "the table"
    frame = getattr(table, "obs", table)
    try:
        if isinstance(frame, pd.DataFrame):
            frame = with_ids(frame, index, who)[0]
        rows = index_of(frame)
        match_rows(len(frame) if rows is None else rows, index, who, "the samples")
    except ValueError as error:
        return str(error)
    return ""


def check_columns(
    variables: Mapping[str, Any], time: str | None, event: str | None, adjust: list[str]
) -> None:
    """Refuse options that name columns which the table of variables does not have."""
    if (time is None) != (event is None):
        raise CommandError("--time and --event belong together: give both columns")
    columns = column_names(variables.values())
    asked = [("--time", time), ("--event", event)]
    asked += [("--adjust", name) for name in adjust]
    for option, name in asked:
        if name is not None and name not in columns:
            raise CommandError(
                f"{option} {name}: no such column in --annotate FILE"
                f"{did_you_mean(name, columns)}; check its name, or give the file"
            )
