"""What is asked of views whose samples are looked at in blocks."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from mkclust.types import Array

# What is done to a block: its views by name, and the number of its first sample.
Look = Callable[[dict[str, np.ndarray], int], Any]


class Blocks(Protocol):
    """Several views of the same samples, looked at some samples at a time.

    A pass over the samples is either a sum (:meth:`total`) or a result for every sample
    (:meth:`map`); what is as long as the samples stays where the samples are.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of each view."""

    def total(self, look: Look) -> Any:
        """Return the sum over all blocks of what `look` makes of each: an array or a tuple."""

    def map(self, look: Look) -> Array:
        """Return what `look` makes of all blocks, one row a sample."""

    def take(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Return the views of some samples, given by rising numbers, in memory."""


def add(total: Any, part: Any) -> Any:
    """Add what was made of one block to the sum so far."""
    if total is None:
        return part
    if isinstance(total, tuple):
        return tuple(a + b for a, b in zip(total, part, strict=True))
    return total + part


def check_finite(block: dict[str, np.ndarray], start: int) -> None:
    """Refuse entries that are not finite, naming the view and the first such sample."""
    for name, rows in block.items():
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            first = start + int(np.argmax(bad))
            raise ValueError(
                f"View {name!r} has entries that are not finite in {int(bad.sum())} of the samples "
                f"{start} to {start + len(rows) - 1}, first in sample {first}; impute them, or "
                "drop these samples from every view."
            )
