"""How new samples compare with those of a fit: by the nearest of these, and in ranges.

Samples are compared by their cosines in the mixed kernel, and how near the nearest ones
are is compared with how near samples of the fit are to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.data.blocks import Block
from mkclust.data.samples import Samples, as_blocks
from mkclust.exceptions import OtherRangeWarning, warn
from mkclust.fit.embedding import numbers_of, observed_part
from mkclust.fit.from_features import FromFeatures
from mkclust.fit.neighborhoods import MixAndViews, NewSamples, kernel_blocks
from mkclust.linalg import namespace, ranges, select, to_device, to_host
from mkclust.linalg.nearest import largest
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.stack import Observed, Stack, Standardization
from mkclust.stack.compare import draw
from mkclust.stack.discretize import normalize_rows
from mkclust.text import count, join_words
from mkclust.types import Array, Float

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer

# The last of so many nearest samples counts: one alone may be near by chance.
NEAREST = 5
# Samples are doubtful if no larger share of the samples of the fit is covered as badly.
DOUBTFUL = 0.01
# Columns of fewer values other than zero have no range: single ones are often outside.
FEWEST_VALUES = 10


def references_of(stack: Stack, coefficients: Float) -> Float | None:
    """Return how near samples of a fit are to the nearest others; None of features."""
    if stack.features is not None:
        return None
    n = stack.n_samples
    how = [observed_part(kernel).standardization for kernel in stack.kernels]
    compared = mix_of_cosines(how, coefficients)
    most_references = 256
    numbers = draw(n, most_references)

    blocks = kernel_blocks(stack, compared.included, numbers)
    for p, block in blocks.items():
        kernel = stack.kernels[p]
        scale = unit_scale(how[p])
        if scale is None:
            continue
        own = numbers[numbers_of(block.rows, len(numbers))]
        if isinstance(kernel, Observed):
            own = kernel.map.positions[own]
        scaled = block.entries * to_device(scale, block.entries)
        blocks[p] = block._replace(entries=scaled * select(scale, own)[:, None])
    like = stack.kernels[0].like
    (similarities,) = compared.compare(blocks, (len(numbers), n), like)
    return np.sort(nearness(similarities, n_own=1))


def nearness_of_new(
    model: MultipleKernelClusterer,
    samples: Samples,
    coefficients: Float,
    self_similarity: Any = None,
) -> Float:
    """Return how near the nearest samples of the fit are to new ones, (n_new,)."""
    source = model._source
    extension = source.extension
    for p in source.given_kernels if self_similarity is None else ():
        how = extension.standardizations[p]
        if how.scale is None and how.constant_self_similarity() is None:
            raise ValueError(
                f"{extension.names[p]}: comparing new samples by cosines needs their "
                "similarity to themselves, and it is not constant for this kernel: "
                "pass self_similarity, an array of k(x, x) with a row for each kernel "
                "and a column for each new sample"
            )
    n = len(numbers_of(model._covered, len(model.labels_)))
    compared = mix_of_cosines(extension.standardizations, coefficients)
    scales = [(how, unit_scale(how)) for how in extension.standardizations]
    to_unit_length = [
        how if scale is None else replace(how, scale=scale) for how, scale in scales
    ]
    extension = replace(extension, standardizations=to_unit_length)

    parts: Iterable[Samples] = [samples]
    if samples.kind != "kernels" and self_similarity is None:
        parts = some_at_a_time(samples)
    found = []
    for part in parts:
        similarities = source.similarities(model, part, self_similarity)
        new = NewSamples(extension, compared, similarities, part.n_samples, n)
        found += new.map(lambda by_mix: nearness(by_mix[0]))
    return np.concatenate([np.zeros(0), *found])


def nearness_by_features(
    model: MultipleKernelClusterer, samples: Samples, coefficients: Float
) -> tuple[Float, Float]:
    """Return how near samples of a fit are to new ones, and to each other."""
    source = model._source
    assert isinstance(source, FromFeatures)
    known = _features(source, kept_block(source), coefficients)
    references = np.sort(nearness(known @ known.T, n_own=1))

    def of_block(block: Block, start: int) -> Float:
        return nearness(_features(source, block, coefficients) @ known.T)

    return as_blocks(samples).map(of_block), references


def kept_block(source: FromFeatures) -> Block:
    """Return samples that a model of features has kept, those that all views have."""
    rows = source.rows
    names = source.given.names
    lost = [name for name in names if name not in rows]
    if lost:
        raise ValueError(
            f"the model has kept no samples of {join_words(map(repr, lost))} to "
            "compare new ones with, because these are dask arrays or have too many "
            "columns: fit AgreementKKM, which needs no approximation, or an array in "
            "memory"
        )
    common = reduce(np.intersect1d, (numbers for numbers, _ in rows.values()))
    if len(common) <= NEAREST:
        raise ValueError(
            f"the model has kept {len(common)} samples that all views have, too few to "
            "compare new ones with: fit AgreementKKM, which needs no approximation"
        )
    kept = {
        name: select(rows[name][1], np.searchsorted(rows[name][0], common))
        for name in names
    }
    return Block(kept, len(common))


def mix_of_cosines(how: Sequence[Standardization], coefficients: Float) -> MixAndViews:
    """Return a mix as one of kernels with unit diagonals."""
    sizes = np.ones(len(how))
    for p, each in enumerate(how):
        if each.scale is None:
            sizes[p] = np.mean(to_host(each.centered_diagonal()))
    return MixAndViews(np.abs(coefficients) * sizes, (0,) * len(sizes))


def unit_scale(how: Standardization) -> Array | None:
    """Return what scales the samples of a kernel to unit length; None if they are."""
    if how.scale is not None:
        return None
    lengths = how.centered_diagonal()
    xp = namespace(lengths)
    # Samples whose squared length is below this share of the average have no direction.
    has_length = lengths > 1e-10 * float(xp.mean(xp.abs(lengths)))
    return xp.where(has_length, 1 / xp.sqrt(xp.where(has_length, lengths, 1.0)), 0.0)


def nearness(similarities: Array, n_own: int = 0) -> Float:
    """Return the similarity to the last of the nearest samples, without own ones."""
    n = min(NEAREST + n_own, similarities.shape[1])
    return np.asarray(to_host(largest(similarities, n)[:, -1]))


def some_at_a_time(samples: Samples, block_samples: int = 1024) -> Iterator[Samples]:
    """Yield views of some samples after the other, in memory."""
    blocks = as_blocks(samples)
    everyone = np.arange(samples.n_samples)
    for some in ranges(samples.n_samples, block_samples):
        yield samples.held(blocks.take(everyone[some]), some)


def _features(source: FromFeatures, block: Block, coefficients: Float) -> Float:
    """Return the features of the mix, of unit length."""
    features = source.features.of(block)
    weights = np.sqrt(np.abs(coefficients))
    mixed = np.hstack([w * to_host(F) for w, F in zip(weights, features, strict=True)])
    return normalize_rows(mixed)


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
        view = fitted[name]
        n_rows, width = map(int, view.shape)
        rows = select(view, draw(n_rows, _n_compared(width)))
        pair = [dense_rows(rows), dense_rows(new[name])]
        share, number, old_range, new_range = find_outside(
            *(np.asarray(to_host(each), float) for each in pair)
        )
        if share <= 0.5:
            continue
        column = f"column {number}"
        if name in columns:
            column = repr(columns[name][number])
        warn(
            f"in {name}, {share:.0%} of the values of "
            f"{count(samples.n_samples, 'sample')} lie outside the ranges of the fit, "
            f"such as {new_range} in {column}, which was {old_range}: if they "
            "are in another unit, or were prepared differently, their clusters mean "
            "nothing",
            OtherRangeWarning,
        )


def find_outside(fitted: Float, new: Float) -> tuple[float, int, str, str]:
    """Return which share of the values other than zero is outside, and where most are.

    That is the column with the largest share of such values, with its ranges in the fit
    and among the new samples in words. Columns without a range do not count.

    >>> shares = np.random.default_rng(0).uniform(size=(50, 3))
    >>> find_outside(shares, shares)[0], find_outside(shares, 1 + shares)[0]
    (0.0, 1.0)
    """
    is_value = np.isfinite(fitted) & (fitted != 0)
    low = np.where(is_value, fitted, np.inf).min(axis=0, initial=np.inf)
    high = np.where(is_value, fitted, -np.inf).max(axis=0, initial=-np.inf)
    has_range = is_value.sum(axis=0) >= FEWEST_VALUES

    is_compared = np.isfinite(new) & (new != 0) & has_range
    n_compared = is_compared.sum(axis=0)
    if not n_compared.any():
        return 0.0, 0, "", ""
    slack = 1e-6 * (np.abs(low) + np.abs(high))  # for rounding
    with np.errstate(invalid="ignore"):  # of columns without a range
        is_outside = is_compared & ((new < low - slack) | (new > high + slack))
    n_outside = is_outside.sum(axis=0)

    shares = np.where(n_compared > 0, n_outside / np.maximum(n_compared, 1), -1)
    column = int(shares.argmax())
    values = new[is_compared[:, column], column]
    share = float(n_outside.sum() / n_compared.sum())
    old_range = _between(low[column], high[column])
    return share, column, old_range, _between(values.min(), values.max())


def _n_compared(width: int) -> int:
    """Return how many samples of a number of columns are compared."""
    most_entries = 1 << 22
    return max(FEWEST_VALUES, min(1024, most_entries // max(width, 1)))


def _between(*bounds: float) -> str:
    """Return a range in words."""
    return " to ".join(dict.fromkeys(f"{bound:.4g}" for bound in bounds))
