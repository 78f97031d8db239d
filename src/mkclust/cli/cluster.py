"""The command ``mkclust cluster``: check what was asked for, read, fit, write, print.

The labels are those of the estimator in Python with its own defaults. What the command decides
by itself (one view alone is a table, landmarks for many samples) is printed and recorded.
"""

import os
import warnings
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import typer

from mkclust import datasets, plots
from mkclust.cli import options as opt
from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import read_inputs, row_ids
from mkclust.cli.models import Fit, connection, fit, new_model
from mkclust.cli.options import Request
from mkclust.cli.outputs import (
    Outcome,
    all_scores,
    check_output,
    check_outputs,
    fitted_labels,
    run_record,
    show,
    strict_json,
)
from mkclust.cli.printing import MAX_ROWS, fit_summary, score_table
from mkclust.cli.progress import Progress, session
from mkclust.explain.annotate import Annotation
from mkclust.explain.annotate import annotate as annotate_clusters
from mkclust.explain.describe import Description, describe
from mkclust.explain.report import write_report
from mkclust.files import write_atomically
from mkclust.kernels.kinds import RULES
from mkclust.methods import RECOMMENDED
from mkclust.methods.persistence import save_model
from mkclust.text import count, join_words

# Features of each cluster and view in the record of a run.
DESCRIBED = 5


def run(
    context: typer.Context,
    inputs: opt.Inputs,
    *,
    id: opt.Id = None,
    samples_in: opt.SamplesIn = None,
    drop: opt.Drop = None,
    missing: opt.Missing = None,
    trim_ids: opt.TrimIds = None,
    join: opt.Join = None,
    impute: opt.Impute = None,
    missing_views: opt.MissingViews = None,
    n_clusters: opt.NClusters,
    method: opt.Method = RECOMMENDED,
    kernels: opt.Kernels = None,
    scale: opt.Scale = None,
    settings: opt.Settings = None,
    seed: opt.Seed = 0,
    labels: opt.LabelsFile = Path("labels.csv"),
    record: opt.RunFile = None,
    report: opt.ReportFile = None,
    plot: opt.PlotFile = None,
    save: opt.ModelFile = None,
    annotate: opt.AnnotationFile = None,
    time: opt.Time = None,
    event: opt.Event = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
    landmarks: opt.Landmarks = opt.AUTO,
    address: opt.Address = None,
) -> None:
    """Cluster samples that are described by several tables or kernels.

    Example: mkclust cluster blood.csv visit.csv -k 3 --report fit.html
    """
    start, request = perf_counter(), Request.of(context)
    if record is None:
        name = "run.json" if labels.name == "labels.csv" else f"{labels.stem}.run.json"
        record = labels.parent / name
    more = {"plot": plot, "report": report, "save": save}
    outputs = [path for path in (labels, record, *more.values()) if path is not None]
    with session(quiet=quiet) as progress:
        new_model(request)  # parameters are refused before anything is read
        for kind, path in more.items():
            check_output(kind, path)
        check_outputs(outputs, [*inputs, *([annotate] if annotate else [])])
        variables = None if annotate is None else _read_variables(annotate)
        with connection(request, progress):
            data = read_inputs(request, progress)
            fitted = fit(request, data, progress)
            y = data.labels_for(fitted.model)
            outcome = Outcome(
                fit=fitted,
                method=method,
                scores=all_scores(fitted.model, y),
                description=_describe(fitted),
                annotation=_annotate(fitted.model, variables, time, event),
                warnings=progress.warnings,
                seconds=perf_counter() - start,
            )
            command = {"name": "cluster", "folder": os.getcwd(), "options": asdict(request)}
            result = run_record(outcome) | {"command": command}
            contents = {labels: fitted_labels(fitted.model)}
            write_atomically(contents | {record: f"{strict_json(result)}\n".encode()})
            failures = _write_more(more, outcome, y, progress)
            lines = _summary(outcome, verbose, annotate)
    written = [path for path in outputs if path not in failures]
    lines += [*progress.lines(verbose), "", *(f"Wrote {path}" for path in written)]
    show(result, lines, as_json, quiet)
    if failures:
        names = join_words(map(str, written))
        raise CommandError(f"{'; '.join(failures.values())}; these were written: {names}")


def _read_variables(text: str) -> dict[str, Any]:
    """Read the variables of a file, as tables by name; its labels are a variable, too."""
    data = datasets.load(text)
    if data.views is None:
        raise CommandError(f"--annotate {text}: holds kernels; give variables of the samples")
    if data.y is None:
        return dict(data.views)
    ids = row_ids(next(iter(data.views.values())))
    return dict(data.views) | {"labels": pd.DataFrame({"labels": data.y}, ids)}


def _annotate(model: Any, variables: Any, time: Any, event: Any) -> Annotation | None:
    """Test variables against the clusters; what goes wrong never costs a finished fit."""
    if variables is None:
        return None
    try:
        return annotate_clusters(model, variables, time=time, event=event)
    except (ValueError, TypeError, ImportError) as error:
        warnings.warn(f"no variable was tested: {error}", stacklevel=2)
        return None


def _describe(fitted: Fit) -> Description | None:
    """Describe the clusters by the columns that have names, if there are any."""
    model = fitted.model
    if fitted.landmarks or model.n_clusters == 1 or not hasattr(model, "bank_"):
        return None
    tables = {
        name: view
        for name, view in fitted.data.views.items()
        if isinstance(view, pd.DataFrame) or hasattr(view, "var_names")
        # The columns of distances and links are samples.
        if (rule := RULES.get(model.bank_.rules_.get(name, ""))) is None or not rule.of_pairs
    }
    return describe(model, tables, n_features=DESCRIBED) if tables else None


def _write_more(
    more: dict[str, Path | None], outcome: Outcome, y: Any, progress: Progress
) -> dict[Path, str]:
    """Write the picture, the page and the model that were asked for; return failures."""
    model, failures = outcome.fit.model, dict[Path, str]()
    about: dict[str, Any] = {
        "warned": outcome.warnings,
        "annotation": outcome.annotation,
        "alternatives": outcome.fit.suggestion or False,
    }

    def draw(path: Path) -> None:
        figure = plots.plot_fit(model, y)
        write_atomically({path: lambda draft: figure.savefig(draft, dpi=150)})

    def report(path: Path) -> None:
        write_report(model, outcome.fit.X, path, y if outcome.scores else None, **about)

    writers = {"plot": draw, "report": report, "save": lambda path: save_model(model, path)}
    for kind, path in more.items():
        if path is not None:
            progress.phase(f"writing {path}")
            try:
                writers[kind](path)
            except Exception as error:  # drawing may raise nearly anything
                reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
                failures[path] = f"{path}: cannot be written ({reason})"
    return failures


def _summary(outcome: Outcome, verbose: bool, annotate: str | None) -> list[str]:
    """Return the lines that the command prints in the end."""
    fitted, model = outcome.fit, outcome.fit.model
    size = count(len(model.labels_), "sample")
    kernels, clusters = count(len(model.weights_), "kernel"), count(model.n_clusters, "cluster")
    title = f"{type(model).__name__}: {size}, {kernels}, {clusters}, {outcome.seconds:.2f} s"
    lines = [*fitted.data.lines, title]
    lines += [fitted.decision] if fitted.decision else []
    if fitted.suggestion is not None:
        lines.append(f"-k auto: {fitted.suggestion.verdict()}")
    if hasattr(model, "bank_") and (verbose or model.bank_.rules is not None):
        lines += model.bank_.explain().splitlines()[: None if verbose else MAX_ROWS]
    lines += ["", fit_summary(model)]
    if outcome.description is not None:
        lines += ["", outcome.description.summary()]
    if outcome.scores:
        lines += ["", score_table(outcome.scores)]
    if outcome.annotation is not None:
        lines += ["", f"Clusters against the variables of {annotate}:", str(outcome.annotation)]
    return lines
