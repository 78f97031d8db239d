r"""Kernels known by features: compressed once, exactly, to matrices of their size.

With standardized features :math:`F = [F_1 \dots F_m]` and :math:`F^\top F = T^\top T`,
the columns of :math:`Q = F T^{-1}` are orthonormal, and :math:`F_p F_p^\top = Q\, T_p
T_p^\top Q^\top`. So the small matrices :math:`T_p T_p^\top` stand in for the kernels of
all samples, without any loss, and a vector over the samples is ``Q`` times a vector in
these coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf as pstrf
from sklearn.preprocessing import FunctionTransformer

from mkclust.data.blocks import Block, Blocks, add, check_finite
from mkclust.data.dask import DaskBlocks
from mkclust.linalg import (
    astype,
    available_bytes,
    free_bytes,
    hstack,
    namespace,
    precision_of,
    require_memory,
    to_device,
    to_host,
)
from mkclust.stack.checks import nothing_left
from mkclust.stack.compare import compared_samples, draw
from mkclust.stack.discretize import count_members
from mkclust.stack.feature_maps import (
    Features,
    Preparer,
    draw_rows,
    learn_maps,
    trace_error,
)
from mkclust.stack.kernel import DenseKernel, Factored, Kernel
from mkclust.stack.observed import FillRule, Observed, SampleMap
from mkclust.stack.stack import Stack
from mkclust.types import Array, Float


@dataclass(frozen=True)
class SampleFeatures:
    """The samples behind compressed kernels, and their coordinates."""

    # The standardized features of any samples, given as views, and those of `blocks`.
    learned: Features = field(repr=False)
    training: Features = field(repr=False)
    # The training samples, or their features if these were kept.
    blocks: Blocks = field(repr=False)
    # ``T^(-1)``, (n_columns, n_coordinates): features times this are the samples'
    # coordinates.
    coordinate_map: Float = field(repr=False)
    # The share of each kernel's trace that its features miss, on a sample; NaN if not
    # known.
    trace_errors: Float
    # Which samples each kernel has, bool of shape (n_samples, n_kernels); None if all.
    observed: np.ndarray | None = field(repr=False)
    # The numbers of the views whose kernels are in the stack.
    kernels: tuple[int, ...]
    n_clusters: int = 1  # for which there are coordinates

    n_samples = property(lambda self: self.blocks.n_samples)

    def subset(self, indices: Sequence[int]) -> "SampleFeatures":
        """Return the same for some of the kernels, in the coordinates of all."""
        some = list(indices)
        return replace(
            self,
            trace_errors=self.trace_errors[some],
            observed=None if self.observed is None else self.observed[:, some],
            kernels=tuple(self.kernels[p] for p in some),
        )

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors in coordinates, in one pass."""
        ends = np.cumsum([0, *(V.shape[1] for V in vectors)]).tolist()
        matrix = self.coordinate_map @ np.hstack([to_host(V) for V in vectors])
        training = self.training  # all that workers need of this object
        lifted = self.blocks.map(lambda block, _: training.project(block, matrix))
        return tuple(lifted[:, a:b] for a, b in pairwise(ends))

    def sum_clusters(self, labels: np.ndarray, n_clusters: int) -> Float:
        """Return sums of coordinates over clusters, (n_coordinates, s * n_clusters).

        They are those of s partitions, with labels of shape (s, n_samples), -1 for
        none.
        """
        sum_block = partial(
            _sum_clusters,
            training=self.training,
            labels=labels,
            n_clusters=n_clusters,
        )
        return self.coordinate_map.T @ to_host(self.blocks.total(sum_block))

    @cached_property
    def _some_samples(self) -> Block:
        """Samples that stand for all if clusters are only compared."""
        return self.blocks.take(draw(self.n_samples, 10_000))

    def lift_some(self, vectors: Array) -> Array:
        """Return vectors over some samples that stand for all, always the same."""
        matrix = self.coordinate_map @ to_host(vectors)
        return self.training.project(self._some_samples, matrix)

    def compared_kernels(self) -> tuple[list[Kernel], np.ndarray]:
        """Return the kernels of some samples, on the host, and their numbers."""
        samples = self._compared_samples()
        # Not scaled up for views that are missing.
        training = replace(self.training, fill="zero")
        features = training.of(self.blocks.take(samples))
        kernels: list[Kernel] = []
        for p, number in enumerate(self.kernels):
            F = to_host(features[number])
            if self.observed is None:
                kernels.append(Factored(F))
            else:
                has = np.flatnonzero(self.observed[samples, p])
                of_observed = SampleMap(has, len(samples))
                kernels.append(Observed(Factored(F[has]), of_observed))
        return kernels, samples

    def _compared_samples(self) -> np.ndarray:
        """Return numbers of samples, enough that any two kernels have some of them."""
        drawn = compared_samples(self.n_samples)
        if self.observed is None:
            return drawn
        few = 256
        added = [drawn]
        for first, second in combinations_with_replacement(self.observed.T, 2):
            common = np.flatnonzero(first & second)
            if np.isin(drawn, common).sum() < few:
                added.append(common[draw(len(common), few)])
        return np.unique(np.concatenate(added))


def compress(
    blocks: Blocks,
    approximation: Any,
    *,
    n_clusters: int = 1,
    center: bool,
    normalize: bool,
    fill: FillRule = "rescale",
    random_state: Any = None,
    learn_preparations: Preparer | None = None,
    fit_samples: int | None = None,
    keep: bool | None = None,
) -> Stack:
    """Learn feature maps, and compress the kernels of their features, in two passes.

    The `approximation`, a transformer in scikit-learn's manner, is cloned for each view
    and learns from `fit_samples` samples (20,000 by default, or ten per landmark if
    these are more), prepared by what `learn_preparations` returns. Samples that a view
    lacks count as `fill` says (see `Features`). If `keep`, by default if they take up
    to an eighth of the free memory, features are computed once and not anew in every
    pass; never for dask arrays. The small matrices of the stack are on the host.
    """
    raw = learn_maps(
        blocks, approximation, random_state, fit_samples, learn_preparations
    )
    n_columns = sum(raw.widths)
    require_products(n_columns, len(raw.maps), "pass a feature map with fewer columns")
    # Traces of kernels and of their features are compared on some samples.
    sample = draw_rows(blocks, min(fit_samples or 2_000, 2_000), seed=1)
    drawn = raw.of_observed(sample)
    errors = list(map(trace_error, raw.maps, sample.values(), drawn))

    used = raw
    if keep is None:
        keep = _is_small(drawn[0], blocks.n_samples * n_columns)
    if keep and not isinstance(blocks, DaskBlocks):
        filled = replace(raw, fill="zero")
        kept = blocks.map(partial(_raw_block, raw=filled))
        widths = dict(zip(blocks.names, raw.widths, strict=True))
        blocks = blocks.with_features(kept, widths)
        same = [FunctionTransformer()] * len(raw.maps)
        used = replace(raw, maps=same)

    # Sums of squares lose their digits far from the mean; that of the sample is near.
    origins = [
        to_host(namespace(F).sum(astype(F, "float64"), axis=0)) / F.shape[0]
        for F in drawn
    ]
    means, floors = _means_and_floors(
        blocks, replace(used, means=origins), raw.maps, center, are_views=used is raw
    )
    standard: Any = {
        "means": means if center else None,
        "floors": floors if normalize else None,
        "fill": fill,
    }
    training = replace(used, **standard)
    small, coordinate_map = _compressed(blocks, training, n_clusters)
    features = SampleFeatures(
        learned=replace(raw, **standard),
        training=training,
        blocks=blocks,
        coordinate_map=coordinate_map,
        trace_errors=np.array(errors),
        observed=blocks.observed,
        kernels=tuple(range(len(means))),
        n_clusters=n_clusters,
    )
    return Stack(small, blocks.names, features.kernels, features)


def _is_small(F: Array, n_entries: int) -> bool:
    """Return whether features like these take up to an eighth of the free memory."""
    free = free_bytes(F)
    if free is None:
        free = available_bytes() or 0
    return n_entries * np.dtype(precision_of(F)).itemsize <= free / 8


def _means_and_floors(
    blocks: Blocks,
    shifted: Features,
    maps: Sequence[Any],
    center: bool,
    *,
    are_views: bool,
) -> tuple[list[Float], list[float]]:
    """Return the mean of each view's features, and the squared length of rounding."""
    sum_block = partial(_sum_block, shifted=shifted, are_views=are_views)
    *sums, squares, counts = map(to_host, blocks.total(sum_block))
    origins: Any = shifted.means
    found = [
        _center(
            origins[p],
            sums[p] / counts[p],
            float(squares[p] / counts[p]),
            center,
            f"View {name!r}: {type(maps[p]).__name__}",
        )
        for p, name in enumerate(blocks.names)
    ]
    return [mean for mean, _ in found], [floor for _, floor in found]


def with_active_views(stack: Stack, active: Sequence[int]) -> Stack:
    """Return compressed kernels with samples rescaled for active kernels only.

    That takes one pass over the samples, and other coordinates.
    """
    features: SampleFeatures = stack.features
    views = tuple(features.kernels[p] for p in active)
    if features.observed is None or features.training.fill == "zero":
        return stack
    learned = replace(features.learned, active=views)
    training = replace(features.training, active=views)
    small, coordinate_map = _compressed(features.blocks, training, features.n_clusters)
    changed = replace(
        features, learned=learned, training=training, coordinate_map=coordinate_map
    )
    kernels = tuple(small[number] for number in features.kernels)
    return replace(stack, kernels=kernels, features=changed)


def _compressed(
    blocks: Blocks,
    training: Features,
    n_clusters: int,
) -> tuple[tuple[DenseKernel, ...], Float]:
    """Return the kernels of views in coordinates, and the map to these."""
    ends = np.cumsum([0, *training.widths]).tolist()
    products = to_host(blocks.total(partial(_multiply_block, training=training)))
    T, coordinate_map = _factor(products, ends)
    if len(T) == n_clusters - 1:
        # As many as centered clusters span; the last direction is one that no kernel
        # has.
        T = np.pad(T, ((0, 1), (0, 0)))
        coordinate_map = np.pad(coordinate_map, ((0, 0), (0, 1)))
    kernels = []
    for a, b in pairwise(ends):
        S = T[:, a:b] @ T[:, a:b].T
        kernels.append(DenseKernel((S + S.T) / 2))
    return tuple(kernels), coordinate_map


def _center(
    origin: Float,
    shift: Float,
    square: float,
    center: bool,
    where: str,
) -> tuple[Float, float]:
    """Return the mean of a view's features, and the squared length of rounding."""
    if not np.isfinite(square):
        raise ValueError(
            f"{where} makes features of it that are not finite, or too large to square "
            "and sum; rescale the view, or take another feature map"
        )
    mean = origin + shift
    variance = square - float(shift @ shift)
    length = variance + float(mean @ mean)
    left = variance if center else length
    # A view whose features vary by less than this share of their squared length is
    # constant: roots of a singular kernel round to a hundredth of it.
    constant = 1e-17
    if not left > constant * length:
        raise ValueError(f"{where} makes a kernel that is {nothing_left(length)}")
    # A sample whose squared features are far below their mean is at the mean.
    by_length = max(1e-10 * left, constant * length)
    return mean, float(by_length)


def product_bytes(n_columns: int, n_views: int) -> int:
    """Return the bytes of products of features: two matrices per view, three more."""
    return (2 * n_views + 3) * 8 * n_columns**2


def require_products(n_columns: int, n_views: int, advice: str) -> None:
    """Refuse features whose products with each other do not fit into memory."""
    require_memory(
        product_bytes(n_columns, n_views),
        f"multiplying the {n_columns} features of {n_views} views with each other",
        f"{advice}, or fewer views",
    )


def _raw_block(block: Block, start: int, *, raw: Features) -> Array:
    """Return the features of a block in columns, zeros if a view lacks the sample."""
    rows = []
    for part, first in raw.parts(block, start):
        check_finite(part, first)
        rows.append(hstack(*raw.of(part)))
    return namespace(*rows).concat(rows)


def _sum_block(block: Block, start: int, *, shifted: Features, are_views: bool) -> Any:
    """Return sums of a block's features, of squares, and counts of the views."""
    total = None
    for part, first in shifted.parts(block, start):
        if are_views:
            check_finite(part, first)
        features = shifted.of_observed(part)
        xp = namespace(*features)
        sums = [xp.sum(F, axis=0, dtype=xp.float64) for F in features]
        squares = xp.stack([xp.sum(F * F, dtype=xp.float64) for F in features])
        counts = np.array([float(F.shape[0]) for F in features])
        total = add(total, (*sums, squares, counts))
    return total


def _multiply_block(block: Block, start: int, *, training: Features) -> Array:
    """Return the products of a block's features with each other."""
    total = None
    for part, _ in training.parts(block, start):
        parts = (astype(F, "float64") for F in training.of(part))
        columns = hstack(*parts)
        total = add(total, columns.T @ columns)
    return total


def _sum_clusters(
    block: Block,
    start: int,
    *,
    training: Features,
    labels: np.ndarray,
    n_clusters: int,
) -> Array:
    """Return the sums of a block's features over the clusters of several partitions."""
    total = None
    for part, first in training.parts(block, start):
        parts = (astype(F, "float64") for F in training.of(part))
        columns = hstack(*parts)
        own = labels[:, first : first + part.n_rows]
        members = to_device(count_members(own, n_clusters), columns)
        total = add(total, columns.T @ members)
    return total


def _factor(gram: Float, ends: Sequence[int]) -> tuple[Float, Float]:
    """Return T with ``gram = T^T T``, and its inverse without dependent columns."""
    # Each view is measured in its own unit, or the columns of a small one would be
    # lost.
    largest = np.array([gram.diagonal()[a:b].max() for a, b in pairwise(ends)])
    # The largest columns of all views would be equal, and rounding must not choose
    # among them.
    distinct = np.sqrt(largest) * (1 + 0.01 * np.arange(len(largest)))
    units = np.repeat(distinct, np.diff(ends))
    # Smaller directions are rounding.
    upper, order, rank, _ = pstrf(gram / units / units[:, None], tol=1e-13)
    order = order - 1
    upper = np.triu(upper[:rank])
    T = np.empty_like(upper)
    T[:, order] = upper
    coordinate_map = np.zeros((len(gram), rank))
    coordinate_map[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return T * units, coordinate_map / units[:, None]
