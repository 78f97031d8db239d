"""Warn of new samples outside the ranges of the fit, as those in another unit are."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mkclust.data.samples import Samples, as_blocks
from mkclust.exceptions import OtherRangeWarning, warn
from mkclust.linalg import select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.stack.compare import draw
from mkclust.text import count
from mkclust.types import Array, Float

# Columns of fewer values other than zero have no range: single ones are often outside.
FEWEST_VALUES = 10


class Outside(NamedTuple):
    """How many values of a view are outside the ranges of their columns."""

    share: float
    column: int  # the one with the largest share of such values
    range: tuple[float, float]  # of its values in the fit
    new_range: tuple[float, float]


def warn_of_other_ranges(
    samples: Samples, fitted: Mapping[str, Array], columns: Mapping[str, Any]
) -> None:
    """Warn of views if most values of new samples are outside the ranges of the fit.

    `fitted` holds rows of the samples of the fit by view, `columns` names of columns.
    """
    views = [name for name in samples.names if name in fitted]
    if samples.is_lazy or not samples.n_samples or not views:
        return

    blocks = as_blocks(samples.only(views))
    widest = max(int(fitted[name].shape[1]) for name in views)
    new = blocks.take(draw(samples.n_samples, _n_compared(widest)))
    for name in views:
        rows = _some_rows(fitted[name])
        found = find_outside(rows, np.asarray(to_host(dense_rows(new[name])), float))
        if found is None or found.share <= 0.5:
            continue
        names = columns.get(name)
        number = found.column
        size = count(samples.n_samples, "sample")
        column = f"column {number}"
        if names is not None:
            column = repr(names[number])
        warn(
            f"in {name}, {found.share:.0%} of the values of {size} lie outside the "
            f"ranges of the fit, such as {_between(found.new_range)} in {column}, "
            f"which was {_between(found.range)}: if they are in another unit, or were "
            "prepared differently, their clusters mean nothing",
            OtherRangeWarning,
        )


def find_outside(fitted: Float, new: Float) -> Outside | None:
    """Return how many values other than zero are outside; None if there are no ranges.

    >>> shares = np.random.default_rng(0).uniform(size=(50, 3))
    >>> find_outside(shares, shares).share, find_outside(shares, 1 + shares).share
    (0.0, 1.0)
    """
    is_value = np.isfinite(fitted) & (fitted != 0)
    low = np.where(is_value, fitted, np.inf).min(axis=0, initial=np.inf)
    high = np.where(is_value, fitted, -np.inf).max(axis=0, initial=-np.inf)
    has_range = is_value.sum(axis=0) >= FEWEST_VALUES

    is_compared = np.isfinite(new) & (new != 0) & has_range
    n_compared = is_compared.sum(axis=0)
    if not n_compared.any():
        return None
    slack = 1e-6 * (np.abs(low) + np.abs(high))  # for rounding
    with np.errstate(invalid="ignore"):  # of columns without a range
        is_outside = is_compared & ((new < low - slack) | (new > high + slack))
    n_outside = is_outside.sum(axis=0)

    shares = np.where(n_compared > 0, n_outside / np.maximum(n_compared, 1), -1)
    column = int(shares.argmax())
    values = new[is_compared[:, column], column]
    return Outside(
        float(n_outside.sum() / n_compared.sum()),
        column,
        (float(low[column]), float(high[column])),
        (float(values.min()), float(values.max())),
    )


def _some_rows(view: Array) -> Float:
    """Return some rows of a view, on the host."""
    n_rows, width = map(int, view.shape)
    numbers = draw(n_rows, _n_compared(width))
    return np.asarray(to_host(dense_rows(select(view, numbers))), float)


def _n_compared(width: int) -> int:
    """Return how many samples of a number of columns are compared."""
    most_entries = 1 << 22
    return max(FEWEST_VALUES, min(1024, most_entries // max(width, 1)))


def _between(bounds: tuple[float, float]) -> str:
    """Return a range in words."""
    low, high = (f"{bound:.4g}" for bound in bounds)
    if low == high:
        return low
    return f"{low} to {high}"
