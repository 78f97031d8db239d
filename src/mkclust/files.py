"""Files that are written completely or not at all."""

import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_atomically(contents: Mapping[Path, bytes | Callable[[Path], Any]]) -> list[Path]:
    """Write files so that each appears complete, and none before all are written; return them.

    A content is bytes, or a function that writes to the path that it is given: a temporary file in
    the same folder, with the same suffix. Missing folders are created; existing files are replaced,
    also behind symbolic links.
    """
    drafts: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            if target.parent.is_file():
                raise ValueError(f"{path.parent}: is a file; name a folder, or a new one")
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
            drafts.append((draft, target))
            if isinstance(content, bytes):
                draft.write_bytes(content)
            else:
                content(draft)
        with _interrupted_afterwards():
            for draft, target in drafts:
                os.replace(draft, target)
    finally:
        with _interrupted_afterwards():
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)
    return list(contents)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Delay Ctrl-C until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread is interrupted.
        yield
        return
    signals: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    try:
        yield
    finally:
        # None: a handler that was not set from Python, which cannot be put back from here.
        signal.signal(signal.SIGINT, signal.default_int_handler if handler is None else handler)
    if signals and handler is not signal.SIG_IGN:
        raise KeyboardInterrupt
