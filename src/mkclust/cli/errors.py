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
        words = args[0] if args else options.get("args")
        if words is None:
            words = sys.argv[1:]

        typed.set(tuple(words))
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
            code = echo_error(_message_of(error), getattr(error, "lines", ()))
        if code == 130:
            typer.echo("mkclust: interrupted", err=True)
        _flush()
        sys.exit(code if isinstance(code, int) else 0)


class Command(TyperCommand):
    """A command that refuses an option given twice, of which one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the name of the command."""
        for option in self.params:
            is_flag = getattr(option, "is_flag", False)
            if is_flag or getattr(option, "multiple", True):
                continue
            given = [word for word in args if word.partition("=")[0] in option.opts]
            if len(given) > 1:
                name = given[0].partition("=")[0]
                raise CommandError(
                    f"{name} is given {len(given)} times, and takes one value: pass "
                    "it once"
                )
        return super().parse_args(ctx, args)


def _message_of(error: Any) -> str:
    """Return what an error of a command tells the user."""
    if isinstance(error, UsageError):
        message = error.format_message().rstrip(".")
        if "'-k'" in message and "Missing" in message:
            message += "; mkclust suggest INPUT finds a number"
        context = getattr(error, "ctx", None)
        path = "mkclust"
        if context is not None:
            path = context.command_path
        return f"{message} (see: {path} --help)"
    if isinstance(error, MemoryError):
        return (
            f"not enough memory ({error or 'no details'}); use fewer samples or "
            "kernels, --method agreement-kkm, or --landmarks 200"
        )
    if isinstance(error, OSError):
        reason = str(error.strerror or error)
        if error.filename:
            return f"{error.filename}: {reason}"
        return reason
    return str(error) or type(error).__name__


def _flush() -> None:
    """Write out what was printed, unless nobody reads it any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # it has no reader any more, and drops the rest
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
        except (AttributeError, ValueError):
            pass  # there is no such stream, or it is closed


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


def echo(text: str) -> None:
    """Print lines; names from files cannot steer the terminal."""
    try:
        lines = map(printable, text.split("\n"))
        typer.echo("\n".join(lines))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def echo_error(message: str, more: Sequence[str] = ()) -> int:
    """Print an error on one line, and what explains it; return the exit code."""
    with suppress(OSError):
        for line in (f"mkclust: error: {one_line(message)}", *more):
            typer.echo(printable(line), err=True)
    return 2
