"""The commands ``mkclust bench``, which runs a plan, and ``mkclust report``."""

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mkclust import bench
from mkclust.bench.figures import FORMATS, write_figures
from mkclust.bench.latex import write_latex
from mkclust.bench.rows import Row
from mkclust.bench.score_table import ROWS
from mkclust.bench.tables import write_tables
from mkclust.cli.errors import CommandError, echo, one_line
from mkclust.cli.progress import session
from mkclust.text import count, join_words


def run(
    plan: Path, out: Path | None = None, jobs: int | None = None, retry: bool = False
) -> None:
    """Run a benchmark plan; a second run continues where the first one stopped."""
    folder = out or Path("bench") / plan.stem
    start = time.perf_counter()
    with session() as progress:
        contents = bench.read_plan(plan)
        progress.phase(f"running {plan}")
        summary = bench.run_plan(
            contents, folder, n_processes=jobs, retry=retry, watcher=progress.step
        )
    lines = [f"Not available, left out: {name}" for name in summary.missing]
    lines += _failures(summary.failures)
    if summary.n_rows == len(summary.failures):
        echo("\n".join(lines))
        raise CommandError(f"nothing was scored; see the messages in {summary.rows}")
    seconds = time.perf_counter() - start
    lines += [
        f"{count(summary.n_new, 'new row')} in {seconds:.0f} s, "
        f"{count(summary.n_rows, 'row')} in {summary.rows}",
        f"Tables: mkclust report {folder}",
    ]
    echo("\n".join(lines))


def _failures(rows: Sequence[Row]) -> list[str]:
    """Return why settings have no result; methods that fail alike share a line."""
    methods = defaultdict[tuple[str, str], list[str]](list)
    for row in rows:
        reason = one_line(f"{row['status']}: {row['message']}")
        methods[row["dataset"], reason].append(row["method"])
    # The rows have all reasons.
    return [
        f"No result ({count(len(names), 'setting')}): {dataset} "
        f"{join_words(dict.fromkeys(names))}: {reason}"
        for (dataset, reason), names in [*methods.items()][:20]
    ]


def report(
    source: Path,
    out: Path | None = None,
    latex: bool = False,
    figures: bool = False,
    rows: str | None = None,
) -> None:
    """Write the tables of a benchmark: scores, ranks, times and weights."""
    if rows is not None and not latex:
        raise CommandError(f"--rows {rows}: is for the tables of --latex; add --latex")
    if rows not in (*ROWS, None):
        raise CommandError(f"--rows {rows}: choose {' or '.join(ROWS)}")
    folder = out or source / "report"
    with session() as progress:
        progress.phase("writing tables")
        files = write_tables(source, folder)
        lines = [f"Wrote {count(len(files), 'file')}; begin with {files[0]}"]
        if latex:
            progress.phase("writing tables as LaTeX")
            document, *tables = write_latex(source, folder / "latex", rows)
            lines.append(
                f"Wrote {count(len(tables), 'table')} as LaTeX; {document} prints all"
            )
        if figures:
            progress.phase("drawing figures")
            drawn, notes = write_figures(source, folder / "figures")
            number = count(len(drawn) // len(FORMATS), "figure")
            lines.append(f"Drew {number} in {folder / 'figures'}, as PDF and PNG")
            lines += notes
    echo("\n".join(lines))
