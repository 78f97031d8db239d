r"""Kernels known by features: compressed once, exactly, to matrices as small as the features.

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
    free_bytes,
    hstack,
    namespace,
    precision_of,
    to_device,
    to_host,
)
from mkclust.linalg.memory import available_bytes, require_memory
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

# Samples on which the trace of a kernel is compared with that of its features.
ERROR_SAMPLES = 2_000
# Samples that stand for all if clusters are only compared.
COMPARED_SAMPLES = 10_000
# If two kernels have fewer of the drawn samples in common, this many of their own are
# drawn.
FEW_COMMON = 256
# Features that take no more than this share of the free memory are computed once, and
# not anew in every pass.
KEPT_SHARE = 0.125
# A view whose features vary by less than this share of their squared length is
# constant: roots of a singular kernel round to a hundredth of it.
CONSTANT = 1e-17
# A sample whose squared features are below this share of their mean is at the mean.
AT_THE_MEAN = 1e-10
# Directions of the features below this share of the largest of their view are rounding.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True)
class SampleFeatures:
    """The samples behind compressed kernels, and the map from coordinates to samples."""

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
        some, observed = list(indices), self.observed
        return replace(
            self,
            trace_errors=self.trace_errors[some],
            observed=None if observed is None else observed[:, some],
            kernels=tuple(self.kernels[p] for p in some),
        )

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors in coordinates; one pass for all."""
        ends = np.cumsum([0, *(V.shape[1] for V in vectors)]).tolist()
        matrix = self.coordinate_map @ np.hstack([to_host(V) for V in vectors])
        training = self.training  # all that workers need of this object
        lifted = self.blocks.map(lambda block, _: training.project(block, matrix))
        return tuple(lifted[:, a:b] for a, b in pairwise(ends))

    def sum_clusters(self, labels: np.ndarray, n_clusters: int) -> Float:
        """Return the sums of the coordinates of clusters, (n_coordinates, s * n_clusters).

        They are those of s partitions, with labels of shape (s, n_samples), -1 for
        none.
        """
        options: Any = {
            "training": self.training,
            "labels": labels,
            "n_clusters": n_clusters,
        }
        sums = self.blocks.total(partial(_sum_clusters, **options))
        return self.coordinate_map.T @ to_host(sums)

    @cached_property
    def _some_samples(self) -> Block:
        return self.blocks.take(draw(self.n_samples, COMPARED_SAMPLES))

    def lift_some(self, vectors: Array) -> Array:
        """Return vectors over some samples that stand for all, the same in every call."""
        return self.training.project(
            self._some_samples, self.coordinate_map @ to_host(vectors)
        )

    def compared_kernels(self) -> tuple[list[Kernel], np.ndarray]:
        """Return the kernels of some samples, on the host, and the numbers of these samples."""
        drawn = [compared_samples(self.n_samples)]
        observed = (
            np.ones((self.n_samples, 1), bool)
            if self.observed is None
            else self.observed
        )
        for p, q in combinations_with_replacement(range(observed.shape[1]), 2):
            have = observed[:, p] & observed[:, q]
            if have[drawn[0]].sum() < FEW_COMMON:
                common = np.flatnonzero(have)
                drawn.append(common[draw(len(common), FEW_COMMON)])
        samples = np.unique(np.concatenate(drawn))
        # Not scaled up for views that are missing.
        features = replace(self.training, fill="zero").of(self.blocks.take(samples))
        rows = [to_host(features[p]) for p in self.kernels]
        if self.observed is None:
            return [Factored(F) for F in rows], samples
        index = [np.flatnonzero(has) for has in observed[samples].T]
        kernels: list[Kernel] = [
            Observed(Factored(F[has]), SampleMap(has, len(samples)))
            for F, has in zip(rows, index, strict=True)
        ]
        return kernels, samples


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
    ends = np.cumsum([0, *raw.widths]).tolist()
    require_products(ends[-1], len(raw.maps), "pass a feature map with fewer columns")
    sample = draw_rows(blocks, min(fit_samples or ERROR_SAMPLES, ERROR_SAMPLES), seed=1)
    drawn = raw.of_observed(sample)
    errors = [
        trace_error(*each)
        for each in zip(raw.maps, sample.values(), drawn, strict=True)
    ]
    of_blocks = raw
    if keep is None:
        n_bytes = (
            blocks.n_samples * np.dtype(precision_of(drawn[0])).itemsize * ends[-1]
        )
        free = free_bytes(drawn[0])
        keep = n_bytes <= KEPT_SHARE * (
            (available_bytes() if free is None else free) or 0
        )
    if keep and not isinstance(blocks, DaskBlocks):
        kept = blocks.map(partial(_raw_block, raw=replace(raw, fill="zero")))
        blocks = blocks.with_features(
            kept, dict(zip(blocks.names, raw.widths, strict=True))
        )
        of_blocks = replace(raw, maps=[FunctionTransformer()] * len(raw.maps))
    # Sums of squares lose their digits far from the mean; that of the sample is near.
    origins = [to_host(_column_sums(F)) / F.shape[0] for F in drawn]
    sum_block = partial(
        _sum_block,
        shifted=replace(of_blocks, means=origins),
        are_views=of_blocks is raw,
    )
    *sums, squares, counts = map(to_host, blocks.total(sum_block))
    means, floors = [], []
    for p, name in enumerate(blocks.names):
        where = f"View {name!r}: {type(raw.maps[p]).__name__}"
        shift, square = sums[p] / counts[p], float(squares[p] / counts[p])
        mean, floor = _center(origins[p], shift, square, center, where)
        means.append(mean)
        floors.append(floor)
    standard: Any = {
        "means": means if center else None,
        "floors": floors if normalize else None,
    }
    standard["fill"] = fill
    training = replace(of_blocks, **standard)
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


def with_active_views(stack: Stack, active: Sequence[int]) -> Stack:
    """Return compressed kernels with samples rescaled for active kernels alone that lack them.

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
    blocks: Blocks, training: Features, n_clusters: int
) -> tuple[tuple[DenseKernel, ...], Float]:
    """Return the kernels of all views in coordinates, and the map from features to these."""
    ends = np.cumsum([0, *training.widths]).tolist()
    products = to_host(blocks.total(partial(_multiply_block, training=training)))
    T, coordinate_map = _factor(products, ends)
    if len(T) == n_clusters - 1:
        # As many as centered clusters span; the last direction is one that no kernel
        # has.
        T = np.pad(T, ((0, 1), (0, 0)))
        coordinate_map = np.pad(coordinate_map, ((0, 0), (0, 1)))
    small = [T[:, a:b] @ T[:, a:b].T for a, b in pairwise(ends)]
    return tuple(DenseKernel((S + S.T) / 2) for S in small), coordinate_map


def _center(
    origin: Float, shift: Float, square: float, center: bool, where: str
) -> tuple[Float, float]:
    """Return the mean of a view's features, and the squared length below which one is rounding."""
    if not np.isfinite(square):
        raise ValueError(
            f"{where} makes features of it that are not finite, or too large to square "
            "and sum; rescale the view, or take another feature map"
        )
    mean = origin + shift
    variance = square - float(shift @ shift)
    length = variance + float(mean @ mean)
    left = variance if center else length
    if not left > CONSTANT * length:
        raise ValueError(f"{where} makes a kernel that is {nothing_left(length)}")
    return mean, float(max(AT_THE_MEAN * left, CONSTANT * length))


def product_bytes(n_columns: int, n_views: int) -> int:
    """Return the bytes of products of features: two matrices per view, and three temporary ones."""
    return (2 * n_views + 3) * 8 * n_columns**2


def require_products(n_columns: int, n_views: int, advice: str) -> None:
    """Refuse features whose products with each other do not fit into memory."""
    require_memory(
        product_bytes(n_columns, n_views),
        f"multiplying the {n_columns} features of {n_views} views with each other",
        f"{advice}, or fewer views",
    )


def _raw_block(block: Block, start: int, *, raw: Features) -> Array:
    """Return the features of a block side by side, zeros if a view lacks the sample."""
    rows = []
    for part, first in raw.parts(block, start):
        check_finite(part, first)
        rows.append(hstack(*raw.of(part)))
    return namespace(*rows).concat(rows)


def _sum_block(block: Block, start: int, *, shifted: Features, are_views: bool) -> Any:
    """Return the sums of a block's features, the sums of squares, and the counts of every view."""
    total = None
    for part, first in shifted.parts(block, start):
        if are_views:
            check_finite(part, first)
        features = shifted.of_observed(part)
        xp = namespace(*features)
        squares = xp.stack([xp.sum(F * F, dtype=xp.float64) for F in features])
        counts = np.array([float(F.shape[0]) for F in features])
        total = add(total, (*map(_column_sums, features), squares, counts))
    return total


def _multiply_block(block: Block, start: int, *, training: Features) -> Array:
    total = None
    for part, _ in training.parts(block, start):
        columns = hstack(*(astype(F, "float64") for F in training.of(part)))
        total = add(total, columns.T @ columns)
    return total


def _sum_clusters(
    block: Block, start: int, *, training: Features, labels: np.ndarray, n_clusters: int
) -> Array:
    """Return the sums of a block's features over the clusters of several partitions."""
    total = None
    for part, first in training.parts(block, start):
        columns = hstack(*(astype(F, "float64") for F in training.of(part)))
        own = labels[:, first : first + part.n_rows]
        total = add(
            total, columns.T @ to_device(count_members(own, n_clusters), columns)
        )
    return total


def _column_sums(F: Array) -> Array:
    xp = namespace(F)
    return xp.sum(F, axis=0, dtype=xp.float64)


def _factor(gram: Float, ends: Sequence[int]) -> tuple[Float, Float]:
    """Return T with ``gram = T^T T``, and its inverse without columns that depend on others."""
    # Each view is measured in its own unit, or the columns of a small one would be
    # lost.
    largest = np.array([gram.diagonal()[a:b].max() for a, b in pairwise(ends)])
    # The largest columns of all views would be equal, and rounding must not choose
    # among them.
    distinct = np.sqrt(largest) * (1 + 0.01 * np.arange(len(largest)))
    units = np.repeat(distinct, np.diff(ends))
    upper, order, rank, _ = pstrf(gram / units / units[:, None], tol=RANK_TOLERANCE)
    order, upper = order - 1, np.triu(upper[:rank])
    T, coordinate_map = np.empty_like(upper), np.zeros((len(gram), rank))
    T[:, order] = upper
    coordinate_map[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return T * units, coordinate_map / units[:, None]
