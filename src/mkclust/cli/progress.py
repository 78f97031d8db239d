"""The line on a terminal that says what is going on."""

import shutil
import sys
import threading
import time

from mkclust.text import printable


class Progress:
    """A line on a terminal that says what is going on and for how long; elsewhere nothing."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._text = ""
        self._since = time.perf_counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)

    def __enter__(self) -> "Progress":
        # There is no such stream where it was closed.
        if self._stream is not None and self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.ident is not None:
            self._done.set()
            self._thread.join()
            self._show("")

    def phase(self, text: str) -> None:
        """Say what begins now."""
        self._text, self._since = printable(text), time.perf_counter()

    def _refresh(self) -> None:
        shown = ""
        while not self._done.wait(0.2):
            text = f"{self._text} ... {time.perf_counter() - self._since:.0f} s"
            if text != shown:
                self._show(text)
                shown = text

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r" + " " * width + "\r" + text[:width])
        self._stream.flush()
