"""Memory: how much there is, how much a fit takes, and the sentence that refuses one."""

from mkclust.memory.roads import (
    OVERHEAD,
    MemoryEstimate,
    compressed_bytes,
    estimate_memory,
    exact_terms,
    kernel_bytes,
)
from mkclust.memory.system import available_bytes, in_units
from mkclust.memory.terms import total

__all__ = [
    "OVERHEAD",
    "MemoryEstimate",
    "available_bytes",
    "compressed_bytes",
    "estimate_memory",
    "exact_terms",
    "fits",
    "kernel_bytes",
    "require_memory",
    "total",
]


def fits(n_bytes: int, *, there: int | None = None) -> bool:
    """Return whether so much memory is available, on a device or, by default, on the host."""
    there = available_bytes() if there is None else there
    return there is None or n_bytes <= there


def require_memory(n_bytes: int, purpose: str, advice: str, *, there: int | None = None) -> None:
    """Refuse to start what cannot fit into memory.

    Parameters
    ----------
    n_bytes : int
        What is needed.
    purpose : str
        What it is needed for, as the subject of a sentence.
    advice : str
        What to do about it.
    there : int, default=None
        What is available on the device that it is needed on; None asks for the host's memory.

    Raises
    ------
    MemoryError
        Where less than that is available. Where nothing is known, nothing is refused.
    """
    memory = "memory" if there is None else "the device's memory"
    there = available_bytes() if there is None else there
    if there is not None and not fits(n_bytes, there=there):
        raise MemoryError(
            f"{purpose} takes {in_units(n_bytes)} of {memory}, and {in_units(there)} are there: "
            f"{advice}"
        )
