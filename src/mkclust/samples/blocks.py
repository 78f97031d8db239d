"""What is asked of views whose samples are looked at in blocks."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mkclust.linalg import free_bytes, namespace, select, to_host
from mkclust.linalg.sparse_rows import finite_rows, missing_rows
from mkclust.text import join_words
from mkclust.types import Array

# What is done to a block: its views by name, and the number of its first sample.
BlockFunction = Callable[[dict[str, Array], int], Any]
# Some rows of a view, and the numbers of their samples.
SeenRows = tuple[Array, np.ndarray]
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

    All views have a row for every sample. One that is all NaN is a sample that the view lacks
    (:func:`mkclust.linalg.sparse_rows.missing_rows`).
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

    def take_seen(self, samples: np.ndarray) -> dict[str, SeenRows]:
        """Return the rows that each view has of some samples, given by rising numbers."""


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

    Of several views some may lack a sample, whose row is all NaN there; one must have it.

    Parameters
    ----------
    block : dict of str to array of shape (n_rows, n_features)
        Some rows of each view.
    samples : int or ndarray of shape (n_rows,)
        The number of the first sample, where they follow one another; else of every one, rising.
    """
    absences = []
    for name, rows in block.items():
        finite = finite_rows(rows)
        if bool(namespace(finite).all(finite)):
            continue
        bad = ~to_host(finite, None)
        if len(block) > 1:
            absences.append(to_host(missing_rows(rows), None))
            bad &= ~absences[-1]
        if bad.any():
            numbers, which = _numbers_of(bad, samples)
            raise ValueError(
                f"View {name!r} has entries that are not finite in {len(numbers)} of {which}, "
                f"first in sample {numbers[0]}; impute them, which impute='median' does for tables "
                "in the memory of the host, or drop these samples from every view."
            )
    if len(absences) == len(block) and (lost := np.logical_and.reduce(absences)).any():
        numbers, which = _numbers_of(lost, samples)
        raise ValueError(
            f"{len(numbers)} of {which} {'is' if len(numbers) == 1 else 'are'} missing from every "
            f"view: {join_words(map(str, numbers))}; drop what is observed in no view."
        )


def seen_rows(rows: Array) -> np.ndarray | None:
    """Return the numbers of the rows of a block that its view has, rising; None where all are."""
    missing = missing_rows(rows)
    return (
        np.flatnonzero(~to_host(missing, None)) if bool(namespace(missing).any(missing)) else None
    )


def without_missing(rows: Array, samples: np.ndarray) -> SeenRows:
    """Return the rows of those samples that a view has, and the numbers of these."""
    seen = seen_rows(rows)
    return (rows, samples) if seen is None else (select(rows, seen), samples[seen])


def observed_samples(blocks: Blocks) -> np.ndarray:
    """Return which samples each view has, bool of shape (n_samples, n_views), in one pass."""
    return to_host(blocks.map(_observed_in_block), None)


def _observed_in_block(block: dict[str, Array], _: int) -> Array:
    """Return which samples of a block each view has, (n_rows, n_views)."""
    missing = [missing_rows(rows) for rows in block.values()]
    return ~namespace(*missing).stack(missing, axis=1)


def _numbers_of(holds: np.ndarray, samples: int | np.ndarray) -> tuple[np.ndarray, str]:
    """Return the samples of those looked at for which something holds, and all of them in words."""
    numbers = samples + np.arange(len(holds)) if np.ndim(samples) == 0 else np.asarray(samples)
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        which = f"the samples {numbers[0]} to {numbers[-1]}"
    else:
        which = f"{len(numbers)} samples drawn from all"
    return numbers[holds], which
