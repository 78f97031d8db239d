"""Files of JSON lines that survive a kill at any moment."""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mkclust.bench.rows import Row, as_lines, parse_lines
from mkclust.files import errors_of, write_atomically


class Journal:
    """A file of objects, one per line, each key once, without a line cut by a kill."""

    def __init__(self, path: Path, key: Callable[[Row], Hashable]):
        self.path = path
        self._key = key
        with errors_of(path), path.open("a+b") as file:
            file.seek(0)
            objects, complete = parse_lines(path, file.read())
            file.truncate(complete)
        self.objects = {key(each): each for each in objects}

    def append(self, objects: Iterable[Row]) -> None:
        """Write the objects with new keys; they are on the disk when this returns."""
        new = {self._key(each): each for each in objects}
        new = {key: each for key, each in new.items() if key not in self.objects}
        text = as_lines(new.values())
        # Unbuffered: a buffer would be written on closing, after a failure.
        with errors_of(self.path), self.path.open("ab", buffering=0) as file:
            start = file.tell()
            try:
                while text:
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
            except OSError:  # a full disk must not leave half a line
                file.truncate(start)
                raise
        self.objects |= new

    def drop(self, unwanted: Callable[[Row], bool]) -> None:
        """Remove objects, all at once."""
        kept = {key: each for key, each in self.objects.items() if not unwanted(each)}
        if len(kept) < len(self.objects):
            write_atomically({self.path: as_lines(kept.values())})
            self.objects = kept


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder into which one run at a time may write."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        if os.name == "posix":  # other systems have no such locks
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"{folder}: another run writes into this folder; wait for it, or "
                    "choose another folder"
                ) from None
        yield
