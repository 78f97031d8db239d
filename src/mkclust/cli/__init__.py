"""The command line: ``mkclust demo``, ``cluster``, ``bench``, ``report``, ``mkclust --version``.

Results go to standard output and to files; progress, warnings and errors go to standard error.
Whatever goes wrong in an expected way is one line, exit code 2, and no file left behind; only
the labels and the record of a finished fit stay where the picture or the page of it fails.
"""

import difflib
import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ImportError:
    sys.stderr.write(
        'mkclust: the command line needs typer; install it with: pip install "mkclust[cli]"\n'
    )
    raise SystemExit(2) from None

from mkclust import datasets, plots
from mkclust.bench.entries import import_class
from mkclust.cli import bench
from mkclust.cli import report as benchmark_report
from mkclust.cli.approximation import (
    CHOICES,
    check_approximation,
    choose_approximation,
    compute_on_the_fly,
)
from mkclust.cli.failures import (
    CommandError,
    OneLineErrors,
    expected_failures,
    recorded_warnings,
    say,
    say_last,
    show_warnings,
    warning_lines,
)
from mkclust.cli.inputs import choose_anchor, parse_settings, parse_value, read_inputs
from mkclust.cli.options import (
    Address,
    Anchor,
    ApproximationChoice,
    Folder,
    FollowLinks,
    Inputs,
    Kernels,
    LabelsFile,
    Landmarks,
    MaxIter,
    Method,
    NClusters,
    NInit,
    NoCenter,
    NoNormalize,
    NoValidate,
    PlotFile,
    Psd,
    ReportFile,
    RunFile,
    Seed,
    Settings,
    Solver,
    Tol,
)
from mkclust.cli.outputs import (
    all_scores,
    check_apart,
    check_outputs,
    check_plot,
    check_report,
    draw_last,
    labels_csv,
    report_last,
    run_record,
    strict_json,
    write_files,
)
from mkclust.cli.printing import certificate, count, fit_summary, kernel_table, score_table
from mkclust.cli.progress import Progress
from mkclust.cli.remote import check_readable, connected, fit_on_workers
from mkclust.methods import METHODS, MultipleKernelClusterer, SimpleMKKM
from mkclust.text import printable
from mkclust.version import __version__

app = typer.Typer(
    name="mkclust",
    cls=OneLineErrors,
    help="Certified multiple kernel clustering.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A kernel's name must not end a run on a terminal that lacks one of its letters.
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="mkclust")


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Certified multiple kernel clustering."""
    if version:
        typer.echo(f"mkclust {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def demo(out: Folder = Path("demo"), seed: Seed = 0) -> None:
    """Cluster handwritten digits from several views, and explain the result."""
    started = time.perf_counter()
    picture, table = out / "digits.png", out / "labels.csv"
    check_plot(picture)
    check_outputs([picture, table], new_folder=True)
    data = datasets.load("digits")
    say(
        f"SimpleMKKM clusters {data.n_samples} handwritten digits from {len(data.X)} views "
        "of each image into 10 clusters."
    )
    with Progress() as progress, recorded_warnings() as log, expected_failures():
        progress.phase(f"clustering {data.n_samples} samples, {len(data.X)} kernels")
        model = SimpleMKKM(10, random_state=seed).fit(data.X)
        progress.phase("drawing")
        write_files(
            {
                picture: lambda path: plots.save(plots.plot_fit(model, data.y), path),
                table: lambda path: path.write_bytes(labels_csv(model.labels_)),
            }
        )
    show_warnings(log)
    lines = [
        "",
        score_table(all_scores(model, data.y)),
        "",
        kernel_table(model),
        "",
        certificate(model),
        f"Seconds: {model.solve_seconds_:.2f} to solve, {model.check_seconds_:.2f} to check the "
        f"kernels, {time.perf_counter() - started:.2f} in all.",
        "",
        f"Picture: {picture}",
        f"Labels: {table}",
    ]
    say_last("\n".join(lines), written=(picture, table))


@app.command()
def cluster(
    inputs: Inputs,
    n_clusters: NClusters,
    method: Method = "simplemkkm",
    kernels: Kernels = "auto",
    approximation: ApproximationChoice = "auto",
    landmarks: Landmarks = None,
    address: Address = None,
    follow_links: FollowLinks = False,
    solver: Solver = None,
    anchor: Anchor = None,
    labels: LabelsFile = Path("labels.csv"),
    run: RunFile = Path("run.json"),
    plot: PlotFile = None,
    report: ReportFile = None,
    seed: Seed = 0,
    n_init: NInit = 10,
    tol: Tol = None,
    max_iter: MaxIter = None,
    psd: Psd = None,
    settings: Settings = None,
    no_center: NoCenter = False,
    no_normalize: NoNormalize = False,
    no_validate: NoValidate = False,
) -> None:
    """Cluster samples from several views or kernels of them."""
    started = time.perf_counter()
    _choose("--kernels", kernels, ("auto", "on-the-fly", "precomputed"))
    _choose("--approximation", approximation, CHOICES)
    precomputed, remote = kernels == "precomputed", address is not None
    options = {
        "n_clusters": n_clusters,
        "n_init": n_init,
        "random_state": seed,
        "solver": solver,
        "anchor": None if anchor is None else parse_value(anchor),
        "tol": tol,
        "max_iter": max_iter,
        "psd": psd,
        "center": False if no_center else None,
        "normalize": False if no_normalize else None,
        "validate": False if no_validate else None,
    }
    model = _build(method, options | parse_settings(settings or [], options))
    if kernels == "on-the-fly" and approximation == "auto":
        approximation = "none"
    check_approximation(
        approximation, landmarks, method, type(model), kernels=kernels, cluster=remote
    )
    if remote:
        check_readable(inputs)
    check_plot(plot)
    check_report(report)
    outputs = [labels, run, *(path for path in (plot, report) if path is not None)]
    check_outputs(outputs, inputs)
    with (
        Progress() as progress,
        recorded_warnings() as log,
        expected_failures(),
        connected(address, progress),
    ):
        progress.phase("reading")
        data = read_inputs(inputs, precomputed, remote or None, follow_links)
        check_apart(outputs, data.linked_files)
        model.set_params(kernels=data.kernels)
        if kernels == "on-the-fly":
            compute_on_the_fly(model, data)
        chosen = choose_approximation(model, data, approximation, landmarks, cluster=remote)
        if anchor is None:
            choose_anchor(model, data)
        progress.phase(f"clustering {data.n_samples} samples, {data.describe()}")
        if remote:
            fit_on_workers(model, data.parts)
        else:
            model.fit(data.X if chosen is None else data.parts)
        if data.whole is not None:
            model.kernel_names_ = tuple(data.parts)
        scores = all_scores(model, data.y)
        seconds = time.perf_counter() - started
        told, number = warning_lines(log), None if chosen is None else chosen.landmarks
        record = run_record(model, method, seed, data, scores, told, seconds, number)
        write_files(
            {
                labels: lambda path: path.write_bytes(labels_csv(model.labels_)),
                run: lambda path: path.write_text(strict_json(record), encoding="utf-8"),
            }
        )
        if plot is not None:
            progress.phase("drawing")
            draw_last(plot, model, data.y, written=f"{labels} and {run}")
        if report is not None:
            progress.phase("looking closer, for the report")
            X, y = data.X if chosen is None else data.parts, data.y if scores else None
            report_last(report, model, X, y, told, written=f"{labels} and {run}")
    show_warnings(log)
    lines = [
        *map(printable, data.notes),
        f"{type(model).__name__}: {data.n_samples} samples, {count(len(model.weights_), 'kernel')}"
        f", {count(n_clusters, 'cluster')}, {seconds:.2f} s",
    ]
    if chosen is not None:
        lines.append(chosen.describe(data.n_samples))
    elif landmarks is not None:
        lines.append("The kernels are exact, for they fit: no landmarks were needed.")
    lines += ["", fit_summary(model)]
    if scores:
        lines += ["", score_table(scores)]
    lines += ["", *(f"Wrote {path}" for path in outputs)]
    say_last("\n".join(lines), written=outputs)


app.command(name="bench")(bench.run)
app.command(name="report")(benchmark_report.run)


def _choose(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices, suggesting the nearest."""
    if value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "choose another"
        raise CommandError(f"{option} {value!r}: unknown; {advice} (one of: {', '.join(choices)})")


def _method(name: str) -> Any:
    """Return an estimator by its name, or of the class that package.module:Class names."""
    if ":" not in name:
        _choose("--method", name, list(METHODS))
        return METHODS[name]()
    try:
        found = import_class(name)
    except ValueError as error:
        raise CommandError(f"--{error}") from None  # the message begins with "method"
    if not issubclass(found, MultipleKernelClusterer):
        raise CommandError(
            f"--method {name} is no method of multiple kernel clustering; derive the class from "
            "mkclust.methods.MultipleKernelClusterer"
        )
    try:
        return found()
    except Exception as error:  # other people's code
        reason = f"{type(error).__name__}: {error}"
        raise CommandError(f"--method {name} cannot be made ({reason})") from None


def _build(method: str, options: dict[str, Any]) -> Any:
    """Return an estimator with the options that were given, refusing those it does not have."""
    model = _method(method)
    given = {name: value for name, value in options.items() if value is not None}
    if extra := sorted(given.keys() - model.get_params().keys()):
        names, known = ", ".join(extra), ", ".join(model.get_params())
        raise CommandError(f"--method {method} has no such option: {names}; it has {known}")
    return model.set_params(**given)
