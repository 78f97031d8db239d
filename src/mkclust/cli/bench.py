"""The commands ``mkclust bench``, which runs a plan, and ``mkclust report``, which shows it."""

import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from mkclust import bench
from mkclust.bench.journal import check_room
from mkclust.bench.report.report import write_benchmark_report
from mkclust.cli.failures import CommandError, expected_failures
from mkclust.cli.printing import Progress, count
from mkclust.text import printable

# Where nobody looks at a bar, a line this often, in seconds.
LINE_EVERY = 60
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
    typer.Option(metavar="DIR", help="Folder for the report; by default report within DIR."),
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
            check_room(archive)
        with Bar() as bar:
            summary = bench.run_plan(contents, folder, n_processes=jobs, retry=retry, watcher=bar)
        if archive is not None:
            bench.archive(folder, archive)
    _print_failures(summary)
    if summary.n_rows == len(summary.failures):
        raise CommandError(f"nothing was scored; see the messages in {summary.rows}")
    rows = f"{count(summary.n_rows, 'row')} in {summary.rows}"
    seconds = time.perf_counter() - start
    typer.echo(printable(f"{count(summary.n_new, 'new row')} in {seconds:.0f} s, {rows}"))
    typer.echo(printable(f"Tables and figures: mkclust report {folder}"))


def report(source: Source, out: ReportFolder = None) -> None:
    """Write the tables and figures of a benchmark, beside the paper's own figures."""
    with Progress() as progress, expected_failures():
        progress.phase("writing tables and drawing figures")
        files = write_benchmark_report(source, out)
    typer.echo(printable(f"Wrote {count(len(files), 'file')}; begin with {files[0]}"))


def _print_failures(summary: bench.Summary) -> None:
    """Say what was left out, and why settings have no result."""
    for name in summary.missing:
        typer.echo(printable(f"Not there, left out: {name}"))
    reasons = _by_reason(summary.failures)
    for reason, number in reasons[:MAX_FAILURES]:
        typer.echo(printable(f"No result ({count(number, 'setting')}): {reason}"))
    if len(reasons) > MAX_FAILURES:
        more = f"... and {len(reasons) - MAX_FAILURES} more reasons, in {summary.rows}"
        typer.echo(printable(more))


def _by_reason(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return failures in words, and how many settings each concerns."""
    reasons = (f"{r['dataset']} {r['method']}: {r['status']}: {r['message']}" for r in rows)
    return list(Counter(reasons).items())


class Bar:
    """A bar with the remaining time on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._live = self._stream.isatty()
        self._last = time.monotonic()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._write("", "\r")

    def update(self, done: int, left: int, seconds_left: float, what: str) -> None:
        """Show how far the run is."""
        total = max(done + left, 1)
        text = printable(f"{done}/{total} tasks, about {duration(seconds_left)} left, {what}")
        if self._live:
            cells = 20 * done // total
            self._write(f"[{'#' * cells}{'.' * (20 - cells)}] {text}", "\r")
        elif time.monotonic() - self._last >= LINE_EVERY:
            self._last = time.monotonic()
            self._write(text, "\n")

    def _write(self, text: str, end: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        clear = "\r" + " " * width + "\r" if self._live else ""
        self._stream.write(clear + text[:width] + ("" if end == "\r" else end))
        self._stream.flush()


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
