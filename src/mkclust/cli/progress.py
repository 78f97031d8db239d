"""What every command has: progress on a terminal, and plain warnings."""

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import typer
from rich.console import Console
from rich.text import Text

from mkclust.cli.errors import one_line
from mkclust.text import printable
from mkclust.watch import watched_by


@contextmanager
def session(
    *, quiet: bool = False, unsaid: tuple[type[Warning], ...] = ()
) -> Iterator["Progress"]:
    """Show progress, and print warnings in the end, but for some kinds."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        progress = Progress(log, quiet, unsaid)
        with progress.connections, progress.live, watched_by(progress.watch):
            yield progress
            progress.phase("")
    for line in [] if quiet else progress.warnings:
        typer.echo(printable(f"warning: {line}"), err=True)


class Progress:
    """The current phase and its steps, on a terminal, and how long each phase took."""

    def __init__(
        self,
        log: list[warnings.WarningMessage],
        quiet: bool = False,
        unsaid: tuple[type[Warning], ...] = (),
    ) -> None:
        console = Console(stderr=True)
        console.quiet = quiet or not console.is_terminal
        self.seconds = defaultdict[str, float](float)
        self.live = console.status("")
        self._log = log
        self._unsaid = unsaid
        self._phase = ""
        self._start = 0.0
        self._first_step = 0.0
        self.connections = ExitStack()  # closed when the session ends

    def phase(self, text: str) -> None:
        """Begin a phase, and end the one before it."""
        now = time.perf_counter()
        if self._phase:
            self.seconds[self._phase] += now - self._start
        self._phase = printable(text)
        self._start = now
        self.live.update(Text(self._phase))

    def step(self, done: int, left: int, text: str) -> None:
        """Show how many steps of the phase are done."""
        self.live.update(Text(printable(f"{self._phase} {done}/{done + left} {text}")))

    def watch(self, done: int, total: int) -> None:
        """Show the share of the phase that is done, and about how long it still takes.

        The time is that of the steps since the first was told of.
        """
        now = time.perf_counter()
        if done == 0:
            self._first_step = now
        text = f"{self._phase} {done}/{total}"
        if done:
            left = (now - self._first_step) / done * (total - done)
            said = f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min"
            text += f", about {said} left"
        self.live.update(Text(text))

    @property
    def warnings(self) -> list[str]:
        """The warnings for users, each once; deprecations are for developers."""
        lines = [
            one_line(each.message)
            for each in self._log
            if issubclass(each.category, (UserWarning, RuntimeWarning))
            and not issubclass(each.category, self._unsaid)
        ]
        return list(dict.fromkeys(lines))

    def lines(self, verbose: bool) -> list[str]:
        """Return how long each phase took, if that was asked for."""
        if not verbose:
            return []
        seconds = self.seconds.items()
        return ["", *(f"{spent:8.2f} s  {text}" for text, spent in seconds)]
