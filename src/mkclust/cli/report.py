"""The command ``mkclust report``: the tables and figures of a benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from mkclust.bench.report.report import write_benchmark_report
from mkclust.cli.failures import expected_failures
from mkclust.cli.printing import count
from mkclust.cli.progress import Progress
from mkclust.text import printable

Source = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of rows, as mkclust bench leaves it.")
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for the report; by default report within DIR."),
]


def run(source: Source, out: Out = None) -> None:
    """Write the tables and figures of a benchmark, beside the paper's own figures."""
    with Progress() as progress, expected_failures():
        progress.phase("writing tables and drawing figures")
        files = write_benchmark_report(source, out)
    typer.echo(printable(f"Wrote {count(len(files), 'file')}; begin with {files[0]}"))
