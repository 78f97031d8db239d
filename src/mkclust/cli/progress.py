"""What a terminal sees while a command works; elsewhere, in files and pipes, nothing."""

import shutil
import sys
import threading
import time
from typing import Any

from mkclust.text import printable


class Progress:
    """Say on a terminal what is going on, for how long, and how far it is; elsewhere nothing.

    ``seconds`` has the phases that have ended, or begun, with the time that each took.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet
        self._text = ""
        self._start = time.perf_counter()
        self._line: Any = None

    def __enter__(self) -> "Progress":
        # There is no such stream where it was closed.
        if not self._quiet and sys.stderr is not None and sys.stderr.isatty():
            self._line = _open_line()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_phase()
        if self._line is not None:
            self._line.close()

    def phase(self, text: str) -> None:
        """Say what begins now."""
        self._end_phase()
        self._text, self._start = printable(text), time.perf_counter()
        if self._line is not None:
            self._line.begin(self._text)

    def step(self, done: int, total: int, text: str = "") -> None:
        """Say how far the phase is: so many of so many steps, and which begins now."""
        if self._line is not None:
            self._line.update(done, total, printable(text))

    def _end_phase(self) -> None:
        """Note how long a phase took; two of one name are one."""
        if self._text:
            spent = time.perf_counter() - self._start
            self.seconds[self._text] = self.seconds.get(self._text, 0.0) + spent
            self._text = ""


def _open_line() -> "RichLine | PlainLine":
    """Return a live bar where rich is there and the terminal can draw it, else a plain line."""
    try:
        from rich.console import Console
    except ImportError:
        return PlainLine()
    console = Console(stderr=True)
    return PlainLine() if console.is_dumb_terminal or not console.is_terminal else RichLine(console)


class RichLine:
    """A spinner, what is going on, a bar where steps are counted, and the time."""

    def __init__(self, console: Any) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            # Names from files are no markup.
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=24),
            progress.TextColumn("{task.fields[steps]}", markup=False),
            progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: Any = None
        self._bar.start()

    def begin(self, text: str) -> None:
        """Show what begins now, in place of what was shown."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(text, total=None, steps="")

    def update(self, done: int, total: int, text: str) -> None:
        """Show how far it is."""
        steps = f"{done}/{total}" + (f" {text}" if text else "")
        self._bar.update(self._task, completed=done, total=total, steps=steps)

    def close(self) -> None:
        """Erase what was shown."""
        self._bar.stop()


class PlainLine:
    """A line of plain text that is written anew every second."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._text, self._steps = "", ""
        self._start = time.perf_counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        self._thread.start()

    def begin(self, text: str) -> None:
        """Show what begins now, in place of what was shown."""
        self._text, self._steps, self._start = text, "", time.perf_counter()

    def update(self, done: int, total: int, text: str) -> None:
        """Show how far it is."""
        self._steps = f" {done}/{total}" + (f" {text}" if text else "")

    def close(self) -> None:
        """Erase what was shown."""
        self._stop.set()
        self._thread.join()
        self._show("")

    def _refresh(self) -> None:
        """Write the line again whenever it has changed."""
        last_text = ""
        while not self._stop.wait(0.2):
            seconds = time.perf_counter() - self._start
            text = f"{self._text}{self._steps} ... {seconds:.0f} s"
            if self._text and text != last_text:
                self._show(text)
                last_text = text

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r" + " " * width + "\r" + text[:width])
        self._stream.flush()
