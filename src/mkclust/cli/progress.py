"""What every command has: progress on a terminal, and plain warnings."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from mkclust.cli.errors import one_line
from mkclust.text import printable


@contextmanager
def session(*, quiet: bool = False) -> Iterator["Progress"]:
    """Show progress, and print warnings in the end."""
    with warnings.catch_warnings(record=True) as log, Progress(log, quiet) as progress:
        warnings.simplefilter("always")
        yield progress
    for line in [] if quiet else progress.warnings:
        typer.echo(printable(f"warning: {line}"), err=True)


class Progress:
    """A line with the current phase, its steps and the time, on a terminal only."""

    def __init__(self, log: list[warnings.WarningMessage], quiet: bool = False) -> None:
        from rich import progress
        from rich.console import Console

        console = Console(stderr=True)
        self.seconds: dict[str, float] = {}
        self._log, self._task, self._phase, self._start = log, None, "", 0.0
        self._bar: Any = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=24),
            progress.TextColumn("{task.fields[steps]}", markup=False),
            progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=quiet or not console.is_terminal,
        )

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.phase("")
        self._bar.stop()

    def phase(self, text: str) -> None:
        """Begin a phase, and end the one before it."""
        now = time.perf_counter()
        if self._phase:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._start
            self._bar.remove_task(self._task)
        self._phase, self._start = printable(text), now
        if text:
            self._task = self._bar.add_task(self._phase, total=None, steps="")

    def step(self, done: int, total: int, text: str = "") -> None:
        """Show how many steps of the phase are done."""
        steps = printable(f"{done}/{total} {text}")
        self._bar.update(self._task, completed=done, total=total, steps=steps)

    @property
    def warnings(self) -> list[str]:
        """The warnings for users, each once; deprecations are for developers."""
        kinds = (UserWarning, RuntimeWarning)
        lines = [one_line(each.message) for each in self._log if issubclass(each.category, kinds)]
        return list(dict.fromkeys(lines))

    def lines(self, verbose: bool) -> list[str]:
        """Return how long each phase took, if that was asked for."""
        times = [f"{spent:8.2f} s  {text}" for text, spent in self.seconds.items()]
        return ["", *times] if verbose else []
