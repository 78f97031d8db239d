"""The commands ``mkclust bench``, which runs a plan, and ``mkclust report``, which shows it."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from mkclust import bench
from mkclust.bench.journal import check_folder
from mkclust.bench.tables import write_tables
from mkclust.cli.failures import CommandError, expected_failures
from mkclust.cli.printing import count
from mkclust.text import printable

# How many different failures are printed.
MAX_FAILURES = 20

PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN.toml",
        help="What to run. A plan that names package.module:Class imports that module, which runs "
        "its code: run only plans that you trust.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder for the results; by default bench/ followed by the name of the plan.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Number of processes; by default one for each core.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Run again what failed before.")]
Archive = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Also write a compressed copy of the results, which mkclust report can read.",
    ),
]
Source = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder with the results of mkclust bench.")
]
ReportFolder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for the tables; by default report within DIR."),
]


def run(
    plan: PlanFile,
    out: Folder = None,
    jobs: Jobs = None,
    retry: Retry = False,
    archive: Archive = None,
) -> None:
    """Run a benchmark plan; a second run continues where the first one stopped."""
    folder = Path("bench") / plan.stem if out is None else out
    start = time.perf_counter()
    with expected_failures():
        contents = bench.read_plan(plan)
        if archive is not None:
            check_folder(archive)
        summary = _run_with_progress(contents, folder, jobs, retry)
        if archive is not None:
            bench.archive(folder, archive)
    for name in summary.missing:
        typer.echo(printable(f"Not available, left out: {name}"))
    reasons = Counter(
        f"{r['dataset']} {r['method']}: {r['status']}: {r['message']}" for r in summary.failures
    )
    for reason, number in reasons.most_common(MAX_FAILURES):
        typer.echo(printable(f"No result ({count(number, 'setting')}): {reason}"))
    if summary.n_rows == len(summary.failures):
        raise CommandError(f"nothing was scored; see the messages in {summary.rows}")
    rows = f"{count(summary.n_rows, 'row')} in {summary.rows}"
    seconds = time.perf_counter() - start
    typer.echo(printable(f"{count(summary.n_new, 'new row')} in {seconds:.0f} s, {rows}"))
    typer.echo(printable(f"Tables: mkclust report {folder}"))


def _run_with_progress(
    plan: bench.Plan, folder: Path, jobs: int | None, retry: bool
) -> bench.Summary:
    """Run a plan with a progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("")

        def watch(done: int, left: int, what: str) -> None:
            bar.update(task, completed=done, total=done + left, description=escape(printable(what)))

        return bench.run_plan(plan, folder, n_processes=jobs, retry=retry, watcher=watch)


def report(source: Source, out: ReportFolder = None) -> None:
    """Write the tables of a benchmark: scores, ranks, times and weights."""
    with expected_failures():
        files = write_tables(source, out)
    typer.echo(printable(f"Wrote {count(len(files), 'file')}; begin with {files[0]}"))
