"""How much memory is free, as far as the operating system says."""

import os
from collections.abc import Iterator
from pathlib import Path

# Where Linux says how much memory is free.
MEMINFO = Path("/proc/meminfo")
# Where it names the control group of this process, and the folder of all of them.
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
# Less than this is taken without asking, which takes a millisecond.
LITTLE = 16 * 2**20


def available_bytes() -> int | None:
    """Return how much memory is free within control groups, None if not known."""
    limits = [_free_in_system(), *_free_in_groups()]
    return min((limit for limit in limits if limit is not None), default=None)


def in_units(n_bytes: int) -> str:
    """Return a number of bytes in MiB or GiB."""
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
    if total > 0:
        return total
    return None


def _free_in_groups() -> Iterator[int]:
    """Yield the free memory within the control groups of this process (version 2)."""
    for line in _lines(OWN_GROUPS):
        _, controllers, name = line.split(":", 2)
        if controllers:
            continue  # of version 1
        # Limits of the groups around it hold too; within a container only the root may
        # exist.
        group = GROUPS / name.strip("/")
        for folder in (group, *group.parents):
            most = _number(folder / "memory.max")
            used = _number(folder / "memory.current")
            if most is None or used is None:
                continue
            # Cached pages of files count as used, and are freed if memory is short.
            stat = dict(line.split() for line in _lines(folder / "memory.stat"))
            yield max(most - used + int(stat.get("inactive_file", 0)), 0)


def _number(path: Path) -> int | None:
    """Return the number in a file, None if it cannot be read or says "max"."""
    text = "".join(_lines(path)[:1]).strip()
    if text.isdigit():
        return int(text)
    return None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def fits(n_bytes: int, *, available: int | None = None) -> bool:
    """Return whether memory is available, on a device or, by default, on the host."""
    if n_bytes < LITTLE and available is None:
        return True
    if available is None:
        available = available_bytes()
    return available is None or n_bytes <= available


def require_memory(
    n_bytes: int, purpose: str, advice: str, *, available: int | None = None
) -> None:
    """Raise a MemoryError if fewer bytes are available on a device, or on the host."""
    if fits(n_bytes, available=available):
        return
    memory = "the device's memory"
    if available is None:
        memory = "memory"
        available = available_bytes() or 0
    raise MemoryError(
        f"{purpose} takes {in_units(n_bytes)} of {memory}, and {in_units(available)} "
        f"are there: {advice}"
    )
