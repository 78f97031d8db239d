"""What is asked of views whose samples are looked at in blocks."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mkclust.linalg import free_bytes, namespace, to_host
from mkclust.linalg.sparse_rows import finite_rows
from mkclust.types import Array

# What is done to a block: its views by name, and the number of its first sample.
BlockFunction = Callable[[dict[str, Array], int], Any]
# Bytes of a block over all views: large enough for fast products, small enough for the cache.
# Features may be much wider than the views, so that more rows are not looked at together either.
BLOCK_BYTES, FEWEST_ROWS, MOST_ROWS = 4 << 20, 256, 8192
# On a device every call waits some microseconds to begin, and there is no cache to stay in: blocks
# are large, yet leave nearly all of the memory to others.
DEVICE_BYTES, DEVICE_SHARE, MOST_DEVICE_ROWS = 512 << 20, 0.05, 1 << 17


class Blocks(Protocol):
    """Several views of the same samples, looked at some samples at a time.

    A pass over the samples is either a sum (:meth:`total`) or a result for every sample
    (:meth:`map`); what is as long as the samples stays where the samples are. A pass that fails or
    is interrupted raises, and returns nothing.
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

    def total(self, look: BlockFunction) -> Any:
        """Return the sum over all blocks of what `look` makes of each: an array or a tuple."""

    def map(self, look: BlockFunction) -> Array:
        """Return what `look` makes of all blocks, one row a sample."""

    def take(self, samples: np.ndarray) -> dict[str, Array]:
        """Return the views of some samples, given by rising numbers, in memory."""


def block_height(widths: Sequence[int], like: Any = None) -> int:
    """Return how many samples make a block of views of so many columns, that live beside `like`."""
    size, most = device_bytes(like), MOST_DEVICE_ROWS
    if size is None:
        size, most = BLOCK_BYTES, MOST_ROWS
    return int(np.clip(size // (8 * max(sum(widths), 1)), FEWEST_ROWS, most))


def device_bytes(like: Any) -> int | None:
    """Return how many bytes to compute at a time on the device of an array, None on the host."""
    free = free_bytes(like)
    return None if free is None else min(DEVICE_BYTES, int(DEVICE_SHARE * free))


def add(total: Any, part: Any) -> Any:
    """Add what was made of one block to the sum so far, None before the first."""
    if total is None:
        return part
    if isinstance(total, tuple):
        return tuple(a + b for a, b in zip(total, part, strict=True))
    return total + part


def check_finite(block: dict[str, Array], samples: int | np.ndarray) -> None:
    """Refuse entries that are not finite, naming the view and the first such sample.

    Parameters
    ----------
    block : dict of str to array of shape (n_rows, n_features)
        Some rows of each view.
    samples : int or ndarray of shape (n_rows,)
        The number of the first sample, where they follow one another; else of every one, rising.
    """
    for name, rows in block.items():
        finite = finite_rows(rows)
        if bool(namespace(finite).all(finite)):
            continue
        bad = np.flatnonzero(~to_host(finite, None))
        positions = np.arange(rows.shape[0])
        numbers = samples + positions if np.ndim(samples) == 0 else np.asarray(samples)
        is_contiguous = numbers[-1] - numbers[0] == len(numbers) - 1
        which = (
            f"the samples {numbers[0]} to {numbers[-1]}"
            if is_contiguous
            else f"{len(numbers)} samples drawn from all"
        )
        raise ValueError(
            f"View {name!r} has entries that are not finite in {len(bad)} of {which}, first in "
            f"sample {numbers[bad[0]]}; impute them, which impute='median' does for tables in the "
            "memory of the host, or drop these samples from every view."
        )
