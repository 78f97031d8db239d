"""The commands ``mkclust bench``, which runs a plan, and ``mkclust report``, which shows it."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from mkclust import bench
from mkclust.bench.journal import check_room
from mkclust.bench.report.report import write_benchmark_report
from mkclust.cli.errors import CommandError, echo
from mkclust.cli.progress import Progress, session
from mkclust.text import count

# How many reasons for failures are printed.
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
    typer.Option(metavar="DIR", help="Folder for the results; by default bench/NAME-OF-PLAN."),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Number of processes; by default one per core.")
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
    typer.Option(metavar="DIR", help="Folder for the report; by default report within DIR."),
]


class Watcher:
    """Passes on how far a run is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def update(self, done: int, left: int, seconds_left: float, what: str) -> None:
        """Show how far the run is."""
        minutes = f"about {seconds_left / 60:.0f} min left"
        self.progress.step(done, done + left, f"tasks, {minutes}, {what}")


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
    with session() as progress:
        contents = bench.read_plan(plan)
        if archive is not None:
            check_room(archive)
        progress.phase(f"running {plan}")
        watcher = Watcher(progress)
        summary = bench.run_plan(contents, folder, n_processes=jobs, retry=retry, watcher=watcher)
        if archive is not None:
            bench.archive(folder, archive)
    lines = [f"Not there, left out: {name}" for name in summary.missing]
    reasons = Counter(
        f"{row['dataset']} {row['method']}: {row['status']}: {row['message']}"
        for row in summary.failures
    )
    for reason, number in list(reasons.items())[:MAX_FAILURES]:
        lines.append(f"No result ({count(number, 'setting')}): {' '.join(reason.split())}")
    if len(reasons) > MAX_FAILURES:
        lines.append(f"... and {len(reasons) - MAX_FAILURES} more reasons, in {summary.rows}")
    if lines:
        echo("\n".join(lines))
    if summary.n_rows == len(summary.failures):
        raise CommandError(f"nothing was scored; see the messages in {summary.rows}")
    rows = f"{count(summary.n_rows, 'row')} in {summary.rows}"
    seconds = time.perf_counter() - start
    echo(f"{count(summary.n_new, 'new row')} in {seconds:.0f} s, {rows}")
    echo(f"Tables and figures: mkclust report {folder}")


def report(source: Source, out: ReportFolder = None) -> None:
    """Write the tables and figures of a benchmark, beside the paper's own figures."""
    with session() as progress:
        progress.phase("writing tables and drawing figures")
        files = write_benchmark_report(source, out)
    echo(f"Wrote {count(len(files), 'file')}; begin with {files[0]}")
