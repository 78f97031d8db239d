"""How much memory there is, as far as the operating system tells."""

import os
from collections.abc import Iterator
from pathlib import Path

# Where Linux tells; elsewhere these are not there.
MEMINFO = Path("/proc/meminfo")
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
# Limits from here on stand for none.
NO_LIMIT = 2**60


def available_bytes() -> int | None:
    """Return how much memory can be allocated, as far as the operating system tells.

    What is free, or can be freed, within the limits of the control groups of this process; all
    memory there is if only that is known; None if nothing is.
    """
    limits = [_free_in_system(), *_free_in_groups()]
    return min((n_bytes for n_bytes in limits if n_bytes is not None), default=None)


def in_units(n_bytes: int) -> str:
    """Return a number of bytes as people say it."""
    if n_bytes < 0.05 * 2**30:
        return f"{n_bytes / 2**20:.1f} MiB"
    return f"{n_bytes / 2**30:,.1f} GiB"


def _free_in_system() -> int | None:
    """Return the free memory of the machine, or all of it, or None."""
    for line in _lines(MEMINFO):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return total if total > 0 else None


def _free_in_groups() -> Iterator[int]:
    """Yield what the limits of the control groups leave to this process."""
    for line in _lines(OWN_GROUPS):
        _, controllers, name = line.split(":", 2)
        if not controllers:
            root, files = GROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = GROUPS / "memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # Limits of the groups around it hold too; within a container only the root may be there.
        folder = str(root)
        yield from _free_in_group(folder, *files)
        for part in filter(None, name.split("/")):
            folder = f"{folder}/{part}"
            yield from _free_in_group(folder, *files)


def _free_in_group(folder: str, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield what one control group's limit leaves, where it has one."""
    most = _number(f"{folder}/{limit}")
    if most is None or most >= NO_LIMIT or (used := _number(f"{folder}/{usage}")) is None:
        return
    # Pages of files that nobody uses count as used, and go when they are in the way.
    for line in _lines(f"{folder}/memory.stat"):
        if line.split()[0] == cache:
            used -= int(line.split()[1])
    yield max(most - used, 0)


def _number(path: str) -> int | None:
    """Return the number that a file holds, None where it cannot be read or says "max"."""
    text = next(_lines(path), "")
    return int(text) if text.strip().isdigit() else None


def _lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a file, none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode()
    except OSError:
        return
    yield from text.splitlines()


def fits(n_bytes: int, *, available: int | None = None) -> bool:
    """Return whether so much memory is available, on a device or, by default, on the host."""
    available = available_bytes() if available is None else available
    return available is None or n_bytes <= available


def require_memory(
    n_bytes: int, purpose: str, advice: str, *, available: int | None = None
) -> None:
    """Raise a MemoryError if less than so many bytes are available; if nothing is known, nothing.

    The purpose is the subject of a sentence, and the advice what to do; ``available`` is what a
    device has, None the host's memory.
    """
    memory = "memory" if available is None else "the device's memory"
    available = available_bytes() if available is None else available
    if available is not None and not fits(n_bytes, available=available):
        raise MemoryError(
            f"{purpose} takes {in_units(n_bytes)} of {memory}, and {in_units(available)} are "
            f"there: {advice}"
        )
