"""The command line: ``mkclust cluster`` and what goes with it, ``bench``, ``report``, ``demo``.

Results go to standard output and to files; progress, warnings and errors go to standard error.
Whatever goes wrong in an expected way is one line, exit code 2, and no file left behind; only
the labels and the record of a finished fit stay where the picture or the page of it fails.
"""

import io
import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.stderr.write(
        'mkclust: the command line needs typer; install it with: pip install "mkclust[cli]"\n'
    )
    raise SystemExit(2) from None

from mkclust.cli import bench, cluster, compare, demo, diagnose, inspect, predict, rerun, suggest
from mkclust.cli.failures import OneLineErrors
from mkclust.version import __version__

app = typer.Typer(
    name="mkclust",
    cls=OneLineErrors,
    help="Certified multiple kernel clustering.",
    context_settings={"help_option_names": ["-h", "--help"]},
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


app.command(name="demo")(demo.run)
app.command(name="cluster")(cluster.run)
app.command(name="inspect")(inspect.run)
app.command(name="suggest")(suggest.run)
app.command(name="diagnose")(diagnose.run)
app.command(name="compare")(compare.run)
app.command(name="predict")(predict.run)
app.command(name="rerun")(rerun.run)
app.command(name="bench")(bench.run)
app.command(name="report")(bench.report)
