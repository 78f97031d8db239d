"""Numbers in sentences."""

import math
from collections.abc import Sequence
from typing import Any


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """Return a share in whole percent, the sign on the line of its number."""
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def spoken(value: float) -> str:
    """Return a number in two decimals, or that it is not known."""
    return f"{round(value, 2) + 0:.2f}" if math.isfinite(value) else "not known"


def few(value: float) -> str:
    """Return a number in three digits, a zero without sign."""
    return f"{float(f'{value:.3g}') + 0:g}"


def listed(items: Sequence[Any], most: int = 6) -> str:
    """Return "a", "a and b", or "a, b, c and 4 more"."""
    words = [str(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
