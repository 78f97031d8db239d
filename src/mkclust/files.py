"""Files that are written completely or not at all, and errors of the disk by file."""

import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def write_atomically(
    contents: Mapping[Path, bytes | Callable[[Path], Any]],
) -> list[Path]:
    """Write files, none of which appears before all are complete; return them.

    A content is bytes, or a function that writes to the path that it is given: a
    temporary file in the same folder, with the same suffix. Missing folders are
    created. Existing files are replaced, also behind symbolic links, and keep who may
    read them. Errors of the disk name the file, not the temporary one.
    """
    drafts: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            if target.parent.is_file():
                raise ValueError(
                    f"{path.parent}: is a file; name a folder, or a new one"
                )
            draft = target.with_name(f".{secrets.token_hex(8)}{target.suffix}")
            with errors_of(path, draft):
                target.parent.mkdir(parents=True, exist_ok=True)
                drafts.append((draft, target))
                _write(draft, content, like=target)
        with _interrupted_afterwards():
            for (draft, target), path in zip(drafts, contents, strict=True):
                with errors_of(path, draft):
                    os.replace(draft, target)
    finally:
        with _interrupted_afterwards():
            for draft, _ in drafts:
                with suppress(OSError):  # the error that led here says more
                    draft.unlink(missing_ok=True)
    return list(contents)


def _write(draft: Path, content: bytes | Callable[[Path], Any], like: Path) -> None:
    """Write a new file with the permissions of another one, or else of any new file."""
    draft.touch(exist_ok=False)
    mode = stat.S_IMODE((like if like.exists() else draft).stat().st_mode)
    # Nobody else reads a file before it is as closed as the one that it replaces.
    draft.chmod(stat.S_IRUSR | stat.S_IWUSR)
    if isinstance(content, bytes):
        draft.write_bytes(content)
    else:
        content(draft)
    draft.chmod(mode)


@contextmanager
def errors_of(path: Path, draft: Path | None = None) -> Iterator[None]:
    """Have errors of the disk name a file, not its draft or folder."""
    try:
        yield
    except OSError as error:
        own = [] if draft is None else [draft, *draft.parents]
        if error.filename is not None and Path(os.fsdecode(error.filename)) not in own:
            raise
        if error.errno is None:
            raise OSError(f"{path}: {error}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error


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
        # None: a handler that was not set from Python, which cannot be put back from
        # here.
        signal.signal(
            signal.SIGINT, signal.default_int_handler if handler is None else handler
        )
    if signals and handler is not signal.SIG_IGN:
        raise KeyboardInterrupt
