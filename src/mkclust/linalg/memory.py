"""How much memory is free, as far as the operating system says."""

import os
from collections.abc import Iterator
from pathlib import Path

# Files and folders in which Linux says how much memory is free, and for which control
# groups.
MEMINFO, OWN_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
# The folder of all control groups.
GROUPS = Path("/sys/fs/cgroup")
# Larger limits mean that there is no limit.
NO_LIMIT = 2**60
# Less than this is taken without asking, which takes a millisecond.
LITTLE = 16 * 2**20


def available_bytes() -> int | None:
    """Return how much memory is free within the limits of control groups, None if not known."""
    limits = [_free_in_system(), *_free_in_groups()]
    return min((n_bytes for n_bytes in limits if n_bytes is not None), default=None)


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
    return total if total > 0 else None


def _free_in_groups() -> Iterator[int]:
    """Yield the free memory within the control groups of this process, in either version."""
    for line in _lines(OWN_GROUPS):
        _, controllers, name = line.split(":", 2)
        if not controllers:
            root, limit, usage, cache = (
                GROUPS,
                "memory.max",
                "memory.current",
                "inactive_file",
            )
        elif "memory" in controllers.split(","):
            root, limit, usage = (
                GROUPS / "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
            cache = "total_inactive_file"
        else:
            continue
        # Limits of the groups around it hold too; within a container only the root may
        # exist.
        group = root / name.strip("/")
        for folder in (
            each for each in (group, *group.parents) if each.is_relative_to(root)
        ):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is None or used is None or most >= NO_LIMIT:
                continue
            # Cached pages of files count as used, and are freed if memory is short.
            fields = [line.split() for line in _lines(folder / "memory.stat")]
            cached = sum(int(value) for name, value in fields if name == cache)
            yield max(most - used + cached, 0)


def _number(path: Path) -> int | None:
    """Return the number in a file, None if it cannot be read or says "max"."""
    text = "".join(_lines(path)[:1]).strip()
    return int(text) if text.isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def fits(n_bytes: int, *, available: int | None = None) -> bool:
    """Return whether that much memory is available, on a device or, by default, on the host."""
    if n_bytes < LITTLE and available is None:
        return True
    available = available_bytes() if available is None else available
    return available is None or n_bytes <= available


def require_memory(
    n_bytes: int, purpose: str, advice: str, *, available: int | None = None
) -> None:
    """Raise a MemoryError if fewer bytes are available, on a device or, by default, on the host."""
    memory = "memory" if available is None else "the device's memory"
    if not fits(n_bytes, available=available):
        available = (available_bytes() if available is None else available) or 0
        raise MemoryError(
            f"{purpose} takes {in_units(n_bytes)} of {memory}, and "
            f"{in_units(available)} are there: {advice}"
        )
