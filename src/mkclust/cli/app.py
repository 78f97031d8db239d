"""The commands of the program ``mkclust``."""

import io
import sys
from typing import Annotated

import typer

from mkclust.cli import commands
from mkclust.cli.errors import Command, Commands
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
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
) -> None:
    """Cluster samples that are described by several tables, or several kernels."""
    if version:
        typer.echo(f"mkclust {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (
    commands.inspect,
    commands.cluster,
    commands.predict,
    commands.suggest,
    commands.diagnose,
    commands.compare,
    commands.rerun,
    commands.demo,
):
    app.command(name=command.__name__, cls=Command)(command)
for command in (commands.bench, commands.report):
    app.command(name=command.__name__, cls=Command, rich_help_panel="For benchmarks")(
        command
    )
