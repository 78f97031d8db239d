"""What goes wrong in an expected way is one line; warnings are one plain line each."""

import ast
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from mkclust.text import printable

ID = "--id FILE=COLUMN"
# What messages of the library advise in Python, and how that is said to a command.
TRANSLATIONS: tuple[tuple[str, str], ...] = (
    (r" \(reset_index\(drop=True\) on every frame pairs by row\)", ""),
    (r"\bkernels=\{'([^']*)': '([^']*)'\}", r"--kernels \1=\2"),
    (r",( or| pass)? view\(preprocess=\w+\([\w.]*\)\)", ""),
    (r"\bpass (smaller|larger) widths, such as KernelBank\(widths=[^ ]*\)\), or ", "choose "),
    (r"\banother kernel, such as '([\w-]+)'", r"another kernel, such as --kernels \1"),
    (r"\bkernels='precomputed'", "--kernels precomputed"),
    (r"\bkernels='(on-the-fly|gaussian|auto)'", r"--kernels \1"),
    (r" \(of your own bank, on_the_fly=True\)", ""),
    (r"\bkernels=KernelBank\([^)]*\)", "--kernels on-the-fly"),
    (r"\bon_the_fly=True", "--kernels on-the-fly"),
    (r"\b(kernels=)?from_distances=True", "--kernels from_distances"),
    (r"\bkernels='from_distances'", "--kernels from_distances"),
    (r"\bapproximation=Nystroem\(n_components=(\d+)\)", r"--approximation nystroem --landmarks \1"),
    (r"\bapproximation=Nystroem\([^)]*\)", "--approximation nystroem"),
    (r"\bapproximation=None", "--approximation none"),
    (r"\bmissing_views='([^']*)'", r"--missing-views \1"),
    (r"\b(psd|join|impute|solver|id|drop)='([^']*)'", r"--\1 \2"),
    (r"\banother value of missing_views\b", "another --missing-views"),
    (r"\bsamples_in='([^']*)'", r"--samples-in \1"),
    (r"\b(psd|join|impute|id|drop)=\[?'?([\w-]+)'?\]?", r"--\1 \2"),
    (r"\b(center|normalize)=False", r"--no-\1"),
    (r"\b(center|normalize)=True", r"--\1"),
    (r"\bmkclust\.suggest_n_clusters\(X\)", "mkclust suggest FILES"),
    (r"\bn_clusters=(\w+)", r"-k \1"),
    (r"\brandom_state=(\w+)", r"--seed \1"),
    (r"\bn_init=(\w+)", r"--n-init \1"),
    (r"\bmax_iter=(\w+)", r"--max-iter \1"),
    (r"\btol=([\w.+-]+)", r"--tol \1"),
    (r"\b(raise|a higher) max_iter\b", r"\1 --max-iter"),
    (r"(--max-iter) or tol\b", r"\1 or --tol"),
    (r"\braise tol\b", "raise --tol"),
    (r"\b(pass|or) (neighbors|reg|stopping)=('?)([\w.-]+)\3", r"\1 --set \2=\4"),
    (r"pass a kernel, such as np\.exp\(.*?; or have", "add --kernels from_distances; or have"),
    (r", or select them yourself by frame\.loc\[common\]", ""),
    (r"\bgive the same samples the same ids", f"name the columns that hold the same ids: {ID}"),
    (r", as frame\[~frame\.index\.duplicated\(\)\] does", f", or name another column: {ID}"),
    (
        r"\bBring all frames to the order that it has, .* a data frame with ids",
        "Store it with ids, as .csv with a first column of ids, or a sparse matrix as .h5ad",
    ),
    (
        r"; impute them or drop their rows from every view",
        "; add --impute median, or drop their rows from every file",
    ),
    (r"\bdrop these rows from every view", "drop these rows from every file"),
    (r"\bpass (-)", r"add \1"),
)

# Usage errors derive from this class. Where it lives differs between versions of typer.
UsageError: type[Exception] = typer.BadParameter.__mro__[2]


class CommandError(Exception):
    """Say on the one line that the user sees what went wrong, in a way that was to be expected."""


class OneLineErrors(TyperGroup):
    """Commands whose expected failures end in one line on standard error."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit: 0 done, 2 failed, 130 interrupted."""
        try:
            code = super().main(args, *rest, **(extra | {"standalone_mode": False}))
        except UsageError as error:
            code = complain(_usage(error))
        except CommandError as error:
            code = complain(str(error))
        except OSError as error:
            # Files are written where their failures are expected: what is left is the terminal.
            place = error.filename or "standard output"
            code = complain(f"{place}: {error.strerror or error}; nothing more can be shown there")
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        if code == 130:
            _show_error("mkclust: interrupted")
        for stream in (sys.stdout, sys.stderr):
            _give_up_unwritten(stream)
        sys.exit(code if isinstance(code, int) else 0)


def in_options(message: str) -> str:
    """Return a message of the library in the language of the command line."""
    message = re.sub(r"\bframe\.drop\(columns=(\[['\"].*?['\"]\])\)", _drop_options, message)
    for pattern, option in TRANSLATIONS:
        message = re.sub(pattern, option, message)
    return message


def _drop_options(match: re.Match[str]) -> str:
    """Return the options that leave out columns, which a message lists as Python does."""
    try:
        names = ast.literal_eval(match.group(1))
    except (SyntaxError, ValueError):  # names that hold brackets
        return match.group(0)
    return " ".join(f"--drop {shlex.quote(name)}" for name in names)


def complain(message: str) -> int:
    """Show an error on one line, and return the exit code."""
    _show_error(f"mkclust: error: {in_options(one_line(message))}")
    return 2


def say(text: str) -> None:
    """Print text of some lines; what comes from files cannot steer the terminal."""
    typer.echo("\n".join(map(printable, text.split("\n"))))


def say_last(text: str, files: Iterable[Any]) -> None:
    """Print the results of a run whose files are written already, which a failure says."""
    try:
        say(text)
    except BrokenPipeError:
        # Nobody reads on, as with head: nothing to complain about.
        raise
    except OSError as error:
        names, reason = " and ".join(map(str, files)), error.strerror or error
        raise CommandError(f"standard output: {reason}; these were written: {names}") from error


def _show_error(text: str) -> None:
    """Print a line on standard error, if anybody can see it."""
    with suppress(OSError):
        typer.echo(printable(text), err=True)


def _give_up_unwritten(stream: Any) -> None:
    """Drop what a stream could not write, which would fail once more when Python ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (AttributeError, ValueError):
        # No such stream, or closed already.
        return


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


def _usage(error: Any) -> str:
    """Return what is wrong with the arguments, and where the help is."""
    context = getattr(error, "ctx", None)
    path = "mkclust" if context is None else context.command_path
    if "Missing option '-k'" in error.format_message():
        given = (context.params.get("inputs") if context is not None else None) or ["FILES"]
        files = " ".join(map(str, given))
        return (
            "how many clusters? add -k N, or let the data suggest a number: "
            f"mkclust suggest {files} (see: {path} --help)"
        )
    return f"{error.format_message().rstrip('.')} (see: {path} --help)"


@contextmanager
def expected_failures() -> Iterator[None]:
    """Turn what reading, fitting and writing are known to raise into a failure of one line."""
    try:
        yield
    except MemoryError as error:
        advice = "use fewer samples or kernels, or single precision"
        raise CommandError(f"not enough memory ({error or 'no details'}); {advice}") from error
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        raise CommandError(f"{where}{error.strerror or error}") from error
    except (ValueError, TypeError, ImportError, ArithmeticError) as error:
        raise CommandError(str(error) or type(error).__name__) from error


@contextmanager
def recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings back, to be shown without the line of source that raised them."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        yield log


def warning_lines(log: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the warnings meant for users, each once; deprecations speak to developers."""
    kinds = (UserWarning, RuntimeWarning)
    lines = (in_options(one_line(w.message)) for w in log if issubclass(w.category, kinds))
    return list(dict.fromkeys(lines))


def show_warnings(log: Iterable[warnings.WarningMessage]) -> None:
    """Show warnings, one plain line each."""
    for line in warning_lines(log):
        typer.echo(printable(f"warning: {line}"), err=True)
