"""Files of JSON lines that survive a kill at any moment, and what a row says of its origin."""

import json
import os
import platform
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

from mkclust.version import __version__

# Written and removed again before the first solve, to learn whether the disk has room.
PROBE_BYTES = 1 << 20


class Journal:
    """Append objects to a file, one a line, each key once.

    What a kill has torn, the end of the last line, is removed when the file is opened. Objects
    are on the disk when :meth:`append` returns.

    Parameters
    ----------
    path : Path
        The file, made where it is not there.
    key : callable
        From an object to what makes it the same as another.
    check : callable, default=None
        Told every object that is there already; it raises ValueError for one that is no such thing.
    """

    def __init__(
        self,
        path: Path,
        key: Callable[[dict[str, Any]], Hashable],
        check: Callable[[Any], None] | None = None,
    ):
        self.path, self._key = path, key
        self.objects: list[dict[str, Any]] = []
        self.keys: set[Hashable] = set()
        with path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            for number, line in enumerate(content[:whole].splitlines(), start=1):
                try:
                    each = json.loads(line)
                    if check is not None:
                        check(each)
                    self._remember(each)
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise ValueError(
                        f"{path}, line {number}: is not a row of a benchmark ({error}); give "
                        "another folder, or remove the line"
                    ) from None
            if whole < len(content):
                file.truncate(whole)

    def append(self, objects: Iterable[dict[str, Any]]) -> None:
        """Write the objects whose keys are not there yet."""
        keyed = {self._key(each): each for each in objects}
        new = [each for key, each in keyed.items() if key not in self.keys]
        if not new:
            return
        text = "".join(json.dumps(each, allow_nan=False) + "\n" for each in new).encode()
        # Without a buffer: what is left in one after a failure would be written on closing.
        with self.path.open("ab", buffering=0) as file:
            start = file.tell()
            try:
                while text:
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
            except OSError:
                # A full disk must not leave half a line to those who read meanwhile.
                file.truncate(start)
                raise
        for each in new:
            self._remember(each)

    def drop(self, unwanted: Callable[[dict[str, Any]], bool]) -> int:
        """Remove objects, all at once, and return how many they were."""
        remaining = [each for each in self.objects if not unwanted(each)]
        n_dropped = len(self.objects) - len(remaining)
        if n_dropped:
            fresh = self.path.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(each) + "\n" for each in remaining)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
            self.objects, self.keys = [], set()
            for each in remaining:
                self._remember(each)
        return n_dropped

    def _remember(self, each: dict[str, Any]) -> None:
        """Keep an object that is on the disk."""
        self.objects.append(each)
        self.keys.add(self._key(each))


def check_room(folder: Path) -> None:
    """Learn before the first solve whether the folder can be written, and has room."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".probe-{os.getpid()}"
    try:
        with probe.open("wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


class Lock:
    """Let one run at a time write into a folder; a killed run leaves nothing locked."""

    def __init__(self, folder: Path):
        self._path = folder / ".lock"

    def __enter__(self) -> "Lock":
        self._file = self._path.open("w")
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return self
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(
                f"{self._path.parent}: another run writes into this folder; wait for its end, or "
                "give another folder"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def versions() -> str:
    """Return what a result may depend on, in a line."""
    modules = [f"{module.__name__} {module.__version__}" for module in (numpy, scipy, sklearn)]
    return ", ".join([f"mkclust {__version__}", *modules, f"python {platform.python_version()}"])


def machine() -> str:
    """Return what times depend on, in a line."""
    return f"{platform.system()} {platform.machine()}, {_model()}{n_cores()} cores"


def _model() -> str:
    """Return the name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, " if names else ""


def n_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
