"""The command ``mkclust cluster``: check what was asked for, read, fit, write, print.

The labels are those of the estimator in Python with its own defaults. What the command
decides by itself (one view alone is a table, landmarks for many samples if a method
needs them) is printed and recorded.
"""

import os
import warnings
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from mkclust import plots
from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import describe_groups, read_inputs
from mkclust.cli.models import Fit, fit, forgiving, measure_stability, new_model
from mkclust.cli.obstacles import SAID_OF_FILES, advice_on
from mkclust.cli.options import Request
from mkclust.cli.outputs import (
    Outcome,
    all_scores,
    check_outputs,
    fitted_labels,
    run_record,
    save_figure,
    show,
    strict_json,
)
from mkclust.cli.printing import (
    cluster_sizes,
    details,
    how_clear,
    score_table,
    views_used,
)
from mkclust.cli.progress import Progress, session
from mkclust.cli.variables import check_columns, read_variables, refuse_unmatched
from mkclust.explain.annotate import annotate
from mkclust.explain.cluster_names import name_clusters
from mkclust.explain.describe import Description, describe
from mkclust.explain.report import write_report
from mkclust.explain.sample_scores import sample_scores
from mkclust.files import write_atomically
from mkclust.fit.persistence import save_model
from mkclust.kernels.kinds import RULES
from mkclust.plots.style import names_of
from mkclust.text import count, join_words


def run(
    request: Request,
    *,
    labels: Path,
    record: Path | None,
    report: Path | None,
    plot: Path | None,
    save: Path | None,
    time: str | None,
    event: str | None,
    adjust: str | None,
    names: str | None,
) -> None:
    """Check, read, fit, write and print, as ``mkclust cluster`` does."""
    start = perf_counter()
    if record is None:
        name = "run.json"
        if labels.name != "labels.csv":
            name = f"{labels.stem}.run.json"

        record = labels.parent / name
    more = {"plot": plot, "report": report, "save": save}
    with session(quiet=request.quiet, unsaid=SAID_OF_FILES) as progress:
        titles = _names(names, request.n_clusters)
        new_model(request)  # parameters are refused before anything is read
        outputs = check_outputs(
            {"labels": labels, "record": record, **more}, request.files
        )
        variables = read_variables(request)
        adjusted = [each.strip() for each in (adjust or "").split(",") if each]
        check_columns(variables, time, event, adjusted)
        data = read_inputs(request, progress, variables)
        refuse_unmatched(request, variables, data)
        for line in advice_on(request, data.inputs, variables):
            warnings.warn(line, stacklevel=2)
        fitted = fit(request, data, progress)
        model = fitted.model
        if titles:
            forgiving(
                "the clusters have no names", lambda: name_clusters(model, titles)
            )
        progress.phase("measuring stability")
        y = data.labels_for(model)
        stability = measure_stability(fitted, n_resamples=10)
        annotation = None
        if variables:
            annotation = forgiving(
                f"the variables of {request.annotate} were not tested",
                lambda: annotate(
                    model,
                    variables,
                    groups=data.groups,
                    time=time,
                    event=event,
                    adjust=adjusted,
                ),
            )
        outcome = Outcome(
            fit=fitted,
            method=request.method,
            sample_scores=sample_scores(model),
            stability=stability,
            scores=all_scores(model, y),
            description=_describe(fitted),
            annotation=annotation,
            warnings=progress.warnings,
            seconds=perf_counter() - start,
        )
        command = {"name": "cluster", "folder": os.getcwd(), "options": asdict(request)}
        result = run_record(outcome) | {"command": command}
        contents = {labels: fitted_labels(model, outcome.sample_scores)}
        text = f"{strict_json(result)}\n"
        write_atomically(contents | {record: text.encode()})
        failures = _write_more(more, outcome, y, progress)
        lines = _summary(outcome, request.verbose, request.annotate)
    written = [path for path in outputs if path not in failures]
    lines += [
        *progress.lines(request.verbose),
        "",
        *(f"Wrote {path}" for path in written),
    ]
    show(result, lines, request)
    if failures:
        raise CommandError(
            f"{'; '.join(failures.values())}; these were written: {join_words(written)}"
        )


def _names(text: str | None, k: Any) -> dict[int, str]:
    """Return the names of clusters by their numbers, from "0=basal,1=luminal"."""
    found = {}
    for pair in filter(None, (text or "").split(",")):
        number, _, name = pair.partition("=")
        if not number.strip().isdigit() or not name.strip():
            raise CommandError(
                f'--names {pair}: give numbers and names, such as "0=basal,1=luminal"'
            )
        found[int(number)] = name.strip()
    if isinstance(k, int) and max(found, default=0) >= k:
        raise CommandError(
            f"--names {max(found)}: clusters have the numbers 0 to {k - 1}"
        )
    return found


def _describe(fitted: Fit) -> Description | None:
    """Describe the clusters by the features that they were made of, if any."""
    model = fitted.model
    if fitted.landmarks or model.n_clusters_ == 1 or not hasattr(model, "bank_"):
        return None
    # The columns of distances and links are samples.
    of_pairs = {key for key, rule in RULES.items() if rule.of_pairs}
    tables = {
        name: view
        for name, view in fitted.data.views.items()
        if isinstance(view, pd.DataFrame) or hasattr(view, "var_names")
        if model.bank_.rules_.get(name) not in of_pairs
    }
    if tables:
        return describe(model, tables, n_features=5)
    return None


def _write_more(
    more: dict[str, Path | None], outcome: Outcome, y: Any, progress: Progress
) -> dict[Path, str]:
    """Write plot, report and model; return why some of them were not written."""
    model = outcome.fit.model
    failures = dict[Path, str]()
    for kind, path in more.items():
        if path is None:
            continue

        progress.phase(f"writing {path}")
        try:
            if kind == "plot":
                save_figure(plots.plot_fit(model, y), path)
            elif kind == "report":
                write_report(
                    model,
                    outcome.fit.X,
                    path,
                    y if outcome.scores else None,
                    alternatives=outcome.fit.suggestion or False,
                    warned=outcome.warnings,
                    annotation=outcome.annotation,
                    n_resamples=outcome.stability,
                )
            else:
                # New files are read in the same way.
                records = [each.record for each in outcome.fit.data.inputs]
                model.files_ = [{n: r[n] for n in ("input", "layout")} for r in records]
                save_model(model, path)
        except Exception as error:  # drawing may raise nearly anything
            named = f"{type(error).__name__}: {error}"
            reason = getattr(error, "strerror", None) or named
            failures[path] = f"{path}: cannot be written ({reason})"
    return failures


def _summary(outcome: Outcome, verbose: bool, annotate: str | None) -> list[str]:
    """Return the lines that are printed after a fit."""
    fitted = outcome.fit
    model = fitted.model
    lines = list(fitted.data.lines)
    if fitted.data.groups is not None:
        lines.append(describe_groups(fitted.data.groups))
    adjustment = model._source.given.adjustment
    if adjustment is not None:
        lines += adjustment.notes()
    lines += views_used(model)
    if fitted.landmarks:
        lines.append(fitted.decision)
    if fitted.suggestion is not None:
        lines.append(f"-k auto: {fitted.suggestion.verdict()}")

    samples = count(len(model.labels_), "sample")
    lines += ["", f"{samples}, {count(model.n_clusters_, 'cluster')}"]
    if outcome.description is None:
        lines.append(cluster_sizes(model.labels_, names=names_of(model)))
    else:
        lines.append(outcome.description.summary())
    lines += how_clear(outcome.clarity, outcome.stability)
    if hasattr(model, "missingness_"):
        lines.append(model.missingness_.verdict())

    if outcome.scores:
        lines += ["", score_table(outcome.scores)]
    if outcome.annotation is not None:
        title = f"Clusters against the variables of {annotate}:"
        lines += ["", title, str(outcome.annotation)]
    if verbose:
        lines += ["", *details(model, outcome.seconds, fitted.decision)]
    return lines
