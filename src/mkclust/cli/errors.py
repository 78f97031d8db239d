"""Errors on one line, with their exit codes."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mkclust.text import printable

# The words of a command as they were typed, after the name of the program.
typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
# The class of usage errors; its module differs between versions of typer.
UsageError: Any = typer.BadParameter.__mro__[1]


class CommandError(Exception):
    """An expected error; its message is the first line that the user sees."""

    lines: Sequence[str] = ()  # further lines


class Commands(TyperGroup):
    """Commands that exit with 0 if done, 2 after an error, and 130 if interrupted."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and exit."""
        code = 0
        try:
            passed = options | {"standalone_mode": False}
            code = super().main(*args, **passed)
        except BrokenPipeError:
            pass  # the reader, such as head, wants no more
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        except (
            UsageError,
            CommandError,
            MemoryError,
            OSError,
            ValueError,
            TypeError,
            ImportError,
            ArithmeticError,
        ) as error:
            code = 2
            message = f"mkclust: error: {one_line(_message_of(error))}"
            with suppress(OSError):
                for line in (message, *getattr(error, "lines", ())):
                    typer.echo(printable(line), err=True)
        if code == 130:
            typer.echo("mkclust: interrupted", err=True)
        try:
            sys.stdout.flush()
        except OSError:  # it has no reader any more, and drops the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code)


class Command(TyperCommand):
    """A command that refuses an option given twice, of which one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the name of the command."""
        typed.set((ctx.info_name, *args))
        for option in self.params:
            n_given = sum(word.partition("=")[0] in option.opts for word in args)
            is_flag = getattr(option, "is_flag", False)
            if n_given > 1 and not is_flag and not getattr(option, "multiple", True):
                raise CommandError(
                    f"{option.opts[0]} is given {n_given} times, and takes one value: "
                    "pass it once"
                )
        return super().parse_args(ctx, args)


def _message_of(error: Any) -> str:
    """Return what an error of a command tells the user."""
    if isinstance(error, UsageError):
        message = error.format_message().rstrip(".")
        if "'-k'" in message and "Missing" in message:
            message += "; mkclust suggest INPUT finds a number"
        path = getattr(getattr(error, "ctx", None), "command_path", "mkclust")
        return f"{message} (see: {path} --help)"
    if isinstance(error, MemoryError):
        return (
            f"not enough memory ({error or 'no details'}); use fewer samples or "
            "kernels, --method agreement-kkm, or --landmarks 200"
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename else reason
    return str(error) or type(error).__name__


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


def echo(text: str) -> None:
    """Print lines; names from files cannot steer the terminal."""
    try:
        typer.echo("\n".join(map(printable, text.split("\n"))))
    except OSError as error:
        error.filename = "standard output"
        raise
