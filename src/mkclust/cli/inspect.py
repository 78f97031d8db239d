"""The command ``mkclust inspect``: what files hold and what would be made of it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import typer
from scipy.sparse import issparse

from mkclust.cli.errors import CommandError, one_line
from mkclust.cli.inputs import Data, describe_groups, read_inputs, row_ids
from mkclust.cli.obstacles import (
    SAID_OF_FILES,
    command_with,
    cures_of,
    find_all,
    with_cures,
)
from mkclust.cli.options import Request
from mkclust.cli.outputs import show
from mkclust.cli.progress import session
from mkclust.data import read_samples
from mkclust.data.options import TableOptions
from mkclust.kernels import default_bank
from mkclust.kernels.kinds import with_components
from mkclust.stack import as_stack
from mkclust.text import count, join_words, printable

# Samples that decide on the kinds of views, at most.
MOST_SAMPLES = 2000


def run(request: Request) -> None:
    """Show what the files contain, how they are joined, and which kernels are used."""
    names = ("views", "join", "notes", "patterns", "problems", "advice")
    report: dict[str, Any] = {name: [] for name in names}
    with session(quiet=True, unsaid=SAID_OF_FILES) as progress:
        obstacles = find_all(request)
        for each in obstacles:
            report["problems" if each.stops else "advice"].append(each.describe())
        cures = cures_of(obstacles)
        report["command"] = command_with(cures)
        cured = with_cures(request, cures)
        try:
            data = read_inputs(cured, progress)
            progress.phase("looking at views")
            report["join"] = data.lines[-1:] or [
                f"Rows are paired by order: {data.describe()}."
            ]
            if data.groups is not None:
                report["join"].append(describe_groups(data.groups))
            report["views"] = [
                _measure(name, view) for name, view in data.views.items()
            ]
            if data.precomputed:
                report["problems"] += _fault(data)
            else:
                _understand(cured, data, report)
            report["notes"] += [
                f"{each.label_name} holds the true classes ({each.n_classes}), which "
                "are used for scores only."
                for each in [given.data for given in data.inputs]
                if each.y is not None
            ][:1]
        except (ValueError, TypeError, CommandError) as error:
            if not any(each.text in one_line(error) for each in obstacles):
                report["problems"].append(one_line(error))
    report["warnings"] = progress.warnings
    show(report, _as_lines(report), request)
    if report["problems"]:
        raise typer.Exit(1)


def _measure(name: str, view: Any) -> dict[str, Any]:
    """Return what a view contains, as a record."""
    ids = row_ids(view)
    matrix = getattr(view, "X", view)
    missing = 0.0
    if not issparse(matrix):
        missing = float(np.mean(pd.isna(matrix[:MOST_SAMPLES])))
    return {
        "name": name,
        "shape": [int(n) for n in view.shape],
        "missing": missing,
        "ids": None if ids is None else str(ids[0]),
        "kernels": [],
    }


def _fault(data: Data) -> list[str]:
    """Return why a fit would refuse a kernel; samples that some lack are its matter."""
    if len({kernel.shape for kernel in data.views.values()}) == 1:
        try:
            as_stack(dict(data.views))
        except ValueError as error:
            return [one_line(error)]
    return []


def _understand(request: Request, data: Data, report: dict[str, Any]) -> None:
    """Add what joining and the rules for kernels make of the views."""
    options = TableOptions(join=request.join or "exact", impute=request.impute)
    samples = read_samples(dict(data.views), expected="views", options=options)
    report["notes"] += samples.notes
    if samples.missing is not None:
        report["patterns"] = [
            {
                "lacks": [
                    n for n, gone in zip(samples.names, row, strict=True) if gone
                ],
                "samples": k,
            }
            for row, k in Counter(map(tuple, samples.missing.tolist())).most_common()
        ]
    several = len(data.views) > 1 or isinstance(request.asked_kernels, Mapping)
    bank = default_bank(several, request.asked_kernels, request.asked_scale)
    asked = bank.rules
    bank.set_params(rules=with_components(asked, samples.by_name))
    if samples.n_samples > MOST_SAMPLES:
        samples = samples.take(
            np.linspace(0, samples.n_samples - 1, MOST_SAMPLES).astype(int)
        )
    # What was asked for is what the explanation says.
    lines = bank.fit(samples).set_params(rules=asked).explain().splitlines()
    for facts in report["views"]:
        name = printable(facts["name"])
        starts = (f"{name}: ", f"{name} (")
        facts["kernels"] = [line for line in lines if line.startswith(starts)]


def _as_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a record of inputs as lines to read."""
    lines: list[str] = []
    for view in report["views"]:
        ids = "no ids"
        if view["ids"] is not None:
            ids = f"ids such as {view['ids']!r}"

        lines += [
            view["name"],
            f"  {' x '.join(map(str, view['shape']))}, {ids}",
            f"  missing: {view['missing']:.2%} of the cells",
            *(f"  kernel: {line}" for line in view["kernels"]),
        ]
    lines += [*report["join"], *report["notes"]]
    for each in report["patterns"]:
        lacks = join_words(each["lacks"])
        what = f"without {lacks}" if lacks else "in all views"
        lines.append(f"  {count(each['samples'], 'sample')} {what}")
    for kind in ("warnings", "problems", "advice"):
        lines += [f"{kind.removesuffix('s')}: {line}" for line in report[kind]]
    return [*lines, "", report["command"]]
