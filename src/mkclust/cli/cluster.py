"""The command ``mkclust cluster``: check what was asked for, read, fit, write, print.

The labels are those that the estimator gives in Python for the same data with its own defaults;
where the command decides otherwise (one view alone is a table, a known data set brings its
kernels, landmarks stand for kernels of many samples), it prints so and records it.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from mkclust import plots
from mkclust.cli.annotation import NOTHING_TESTED, compare_variables, read_variables
from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    recorded_warnings,
    say_last,
    show_warnings,
    warning_lines,
)
from mkclust.cli.fitting import connection, fit_model, new_model, read_data
from mkclust.cli.options import (
    Address,
    Anchor,
    AnnotationFile,
    ApproximationChoice,
    Center,
    Drop,
    Id,
    Impute,
    Inputs,
    Join,
    Json,
    Kernels,
    LabelsFile,
    Landmarks,
    MaxIter,
    Method,
    MissingViews,
    ModelFile,
    NClusters,
    NInit,
    Normalize,
    PlotFile,
    Psd,
    Quiet,
    ReportFile,
    RunFile,
    SamplesIn,
    Seed,
    Settings,
    Solver,
    Tol,
    Verbose,
)
from mkclust.cli.outputs import (
    FinishedRun,
    all_scores,
    check_model_file,
    check_outputs,
    check_plot,
    check_report,
    labels_csv,
    noted_failure,
    run_record,
    strict_json,
)
from mkclust.cli.printing import MAX_ROWS, Progress, count, fit_summary, phase_lines, score_table
from mkclust.cli.request import LABELS, Request
from mkclust.data import Samples
from mkclust.explain.describe import describe, views_of_features
from mkclust.explain.description import Description
from mkclust.explain.report import write_report
from mkclust.files import write_atomically
from mkclust.methods import RECOMMENDED
from mkclust.methods.persistence import save_model
from mkclust.text import join_words, printable

# Features of each cluster and view in the record of a run.
DESCRIBED = 5


def run(
    inputs: Inputs,
    n_clusters: NClusters,
    method: Method = RECOMMENDED,
    kernels: Kernels = None,
    id: Id = None,
    samples_in: SamplesIn = None,
    join: Join = "exact",
    impute: Impute = None,
    missing_views: MissingViews = None,
    drop: Drop = None,
    approximation: ApproximationChoice = "auto",
    landmarks: Landmarks = None,
    address: Address = None,
    solver: Solver = None,
    anchor: Anchor = None,
    labels: LabelsFile = Path(LABELS),
    annotate: AnnotationFile = None,
    run: RunFile = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    save: ModelFile = None,
    seed: Seed = 0,
    n_init: NInit = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    psd: Psd = None,
    settings: Settings = None,
    center: Center = None,
    normalize: Normalize = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Cluster samples that are described by several views or kernels."""
    # At this point the local variables are the options, which a request has by the same names.
    _execute(Request(**locals()))


def _execute(request: Request) -> None:
    """Do what was asked for, one step after another."""
    start = time.perf_counter()
    model = new_model(request)
    _check_outputs(request)
    with (
        Progress(quiet=request.quiet) as progress,
        recorded_warnings() as log,
        expected_failures(),
        connection(request.address, progress),
    ):
        variables = None if request.annotate is None else read_variables(request.annotate)
        data = read_data(request, progress)
        kernel_choice, suggestion = fit_model(request, model, data, progress)
        finished_run = FinishedRun(
            model=model,
            method=request.method,
            data=data,
            kernel_choice=kernel_choice,
            scores=all_scores(model, data.y),
            description=_describe(model, kernel_choice.samples),
            annotation=None if variables is None else compare_variables(model, variables, progress),
            warnings=warning_lines(log),
            seconds=time.perf_counter() - start,
            suggestion=suggestion,
        )
        record = run_record(finished_run) | {"command": command_record(request)}
        failures = _write(request, finished_run, record, progress)
    files = [path for path in request.outputs if path not in failures]
    if not request.quiet:
        show_warnings(log)
    if request.as_json:
        say_last(strict_json(record).rstrip("\n"), files)
    elif not request.quiet:
        say_last(_summary(request, finished_run, progress.seconds, files), files)
    if failures:
        names = join_words(map(str, files))
        raise CommandError(f"{'; '.join(failures.values())}; these were written: {names}")


def _check_outputs(request: Request) -> None:
    """Refuse what cannot be written, before anything is read."""
    check_plot(request.plot)
    check_report(request.report)
    check_model_file(request.save)
    if request.save is not None and request.address is not None:
        raise CommandError(
            "--save with --cluster: the embedding of the samples stays on the cluster, and a model "
            "is saved whole; leave one of them out"
        )
    others = [] if request.annotate is None else [request.annotate]
    check_outputs(request.outputs, [*request.inputs, *others])


def command_record(request: Request) -> dict[str, Any]:
    """Return the options of a command, so that it can be run again."""
    options = {field.name: getattr(request, field.name) for field in fields(request)}
    paths = {name: str(value) for name, value in options.items() if isinstance(value, Path)}
    return {"name": "cluster", "folder": os.getcwd(), "options": options | paths}


def _describe(model: Any, samples: Samples) -> Description | None:
    """Describe the clusters by columns that have names, where there are such."""
    names = [name for name in views_of_features(model, samples) if name in samples.columns]
    return describe(model, samples.only(names), n_features=DESCRIBED) if names else None


def _write(
    request: Request, finished_run: FinishedRun, record: dict[str, Any], progress: Progress
) -> dict[Path, str]:
    """Write labels and record together, then what was asked for beside them; return failures.

    What cannot be written costs nothing else, so that the model, which can fail most, is the last.
    """
    model, data = finished_run.model, finished_run.data
    write_atomically(
        {
            request.labels: labels_csv(model),
            request.record: strict_json(record).encode(),
        }
    )
    failures: dict[Path, str] = {}
    if request.plot is not None:
        progress.phase("drawing")
        with noted_failure(request.plot, "drawn", failures):
            write_atomically(
                {request.plot: lambda path: plots.plot_fit(model, data.y).savefig(path, dpi=150)}
            )
    if request.report is not None:
        progress.phase("writing the report")
        samples, y = finished_run.kernel_choice.samples, data.y if finished_run.scores else None
        options: dict[str, Any] = {"warned": finished_run.warnings}
        options["annotation"] = finished_run.annotation
        # With -k auto other numbers of clusters have been compared.
        alternatives = finished_run.suggestion or False
        with noted_failure(request.report, "written", failures):
            write_report(model, samples, request.report, y, alternatives=alternatives, **options)
    if request.save is not None:
        progress.phase("saving the model")
        with noted_failure(request.save, "saved", failures):
            save_model(model, request.save)
    return failures


def _summary(
    request: Request,
    finished_run: FinishedRun,
    phases: dict[str, float],
    files: Sequence[Path],
) -> str:
    """Return what the command prints in the end."""
    model, data = finished_run.model, finished_run.data
    kernels, clusters = count(len(model.weights_), "kernel"), count(model.n_clusters, "cluster")
    lines = [
        *map(printable, data.notes),
        f"{type(model).__name__}: {data.samples.n_samples} samples, {kernels}, {clusters}, "
        f"{finished_run.seconds:.2f} s",
    ]
    kernel_choice = finished_run.kernel_choice
    if kernel_choice.sentence:
        lines.append(kernel_choice.sentence)
    if finished_run.suggestion is not None:
        lines.append(f"-k auto: {finished_run.suggestion.verdict()}")
    if hasattr(model, "bank_") and (request.verbose or model.bank_.rules is not None):
        most = None if request.verbose else MAX_ROWS
        lines += map(printable, model.bank_.explain().splitlines()[:most])
    if request.landmarks is not None and kernel_choice.landmarks is None:
        lines.append("The kernels are exact, for they fit: no landmarks were needed.")
    lines += ["", fit_summary(model)]
    if finished_run.description is not None:
        lines += ["", finished_run.description.summary()]
    if finished_run.scores:
        lines += ["", score_table(finished_run.scores)]
    if request.annotate is not None:
        title = f"Clusters against the variables of {printable(request.annotate)}:"
        reasons = [line for line in finished_run.warnings if line.startswith(NOTHING_TESTED)]
        lines += [
            "",
            title,
            *(map(printable, reasons) if reasons else [str(finished_run.annotation)]),
        ]
    if request.verbose:
        lines += ["", *phase_lines(phases)]
    return "\n".join([*lines, "", *(f"Wrote {path}" for path in files)])
