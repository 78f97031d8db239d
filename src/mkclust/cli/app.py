"""The commands of the program ``mkclust``."""

import io
import sys
from typing import Annotated

import typer

from mkclust.cli import bench, cluster, demo, explore, inspect, predict, rerun
from mkclust.cli.errors import Commands
from mkclust.version import __version__

app = typer.Typer(
    name="mkclust",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name must not end a run on a terminal that lacks one of its letters.
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


app.command(name="demo")(demo.run)
app.command(name="cluster")(cluster.run)
app.command(name="inspect")(inspect.run)
app.command(name="suggest")(explore.suggest)
app.command(name="diagnose")(explore.diagnose)
app.command(name="compare")(explore.compare)
app.command(name="predict")(predict.run)
app.command(name="rerun")(rerun.run)
app.command(name="bench")(bench.run)
app.command(name="report")(bench.report)
