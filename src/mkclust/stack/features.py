r"""Kernels known by features: compressed once, exactly, to matrices as small as the features.

With standardized features :math:`F = [F_1 \dots F_m]` and :math:`F^\top F = T^\top T`, the columns
of :math:`Q = F T^{-1}` are orthonormal, and :math:`F_p F_p^\top = Q\, T_p T_p^\top Q^\top`. So the
small matrices :math:`T_p T_p^\top` stand in for the kernels of all samples, without any loss, and a
vector over the samples is ``Q`` times a vector in these coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf as pstrf
from sklearn.preprocessing import FunctionTransformer

from mkclust.engine.agreement import OffDiagonalProducts
from mkclust.linalg import (
    astype,
    free_bytes,
    namespace,
    precision_of,
    side_by_side,
    to_host,
    zeros,
)
from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.samples.blocks import Block, Blocks, add, check_finite
from mkclust.samples.dask import DaskBlocks
from mkclust.samples.distances import squared_norms
from mkclust.stack.checks import nothing_left
from mkclust.stack.compare import Comparison, compare_features, draw
from mkclust.stack.feature_maps import (
    Features,
    LearnPreparations,
    draw_rows,
    learn_maps,
    trace_error,
)
from mkclust.stack.kernel import Array as HeldKernel
from mkclust.stack.observed import FillRule
from mkclust.stack.stack import Stack
from mkclust.types import Array, Float

# Samples on which the trace of a kernel is compared with that of its features.
ERROR_SAMPLES = 2_000
# Samples that stand for all if clusters are only compared.
COMPARED_SAMPLES = 10_000
# Features that take no more than this share of the free memory are computed once, and not anew in
# every pass.
KEPT_SHARE = 0.125
# A view whose features vary by less than this share of their squared length is constant.
CONSTANT = 1e-26
# A sample whose squared features are below this share of their mean is at the mean.
AT_THE_MEAN = 1e-10
# Directions of the features below this share of the largest of their view are rounding.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True)
class SampleFeatures:
    """The samples behind compressed kernels, and how vectors in coordinates become theirs.

    Attributes
    ----------
    learned, training : Features
        The standardized features of any samples, given as views, and those of `blocks`.
    blocks : Blocks
        The training samples, or their features if these were kept.
    coordinate_map : ndarray of shape (n_columns, n_coordinates)
        ``T^(-1)``: features times this are the samples' coordinates.
    trace_errors : ndarray of shape (n_kernels,)
        The share of each kernel's trace that its features miss, on a sample; NaN if not known.
    diagonals, diagonal_products : ndarray of shape (n_coordinates, n_views + 1), and the products
        The diagonals of the kernels of all views, and ones, in coordinates; and the products of
        these vectors with each other, over the samples.
    observed : ndarray of bool of shape (n_samples, n_kernels) or None
        Which samples each kernel has; None if none is missing.
    kernels : tuple of int
        The numbers of the views whose kernels are in the stack.
    """

    learned: Features = field(repr=False)
    training: Features = field(repr=False)
    blocks: Blocks = field(repr=False)
    coordinate_map: Float = field(repr=False)
    trace_errors: Float
    diagonals: Float = field(repr=False)
    diagonal_products: Float = field(repr=False)
    observed: np.ndarray | None = field(repr=False)
    kernels: tuple[int, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples that the coordinates stand for."""
        return self.blocks.n_samples

    def subset(self, indices: Sequence[int]) -> "SampleFeatures":
        """Return what belongs to some of the kernels, in the coordinates of all."""
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

    @cached_property
    def _some_samples(self) -> Block:
        """Some samples that stand for all if clusters are only compared."""
        return self.blocks.take(draw(self.n_samples, COMPARED_SAMPLES))

    def lift_some(self, vectors: Array) -> Array:
        """Return vectors over some samples that stand for all, the same in every call."""
        return self.training.project(self._some_samples, self.coordinate_map @ to_host(vectors))

    def embedding_map(self, rows: Array) -> tuple[Features, Float]:
        """Return features, and what takes them to rows: the same for old and new samples."""
        return self.learned, self.coordinate_map @ to_host(rows)

    def compare(self, stack: Stack) -> list[Comparison]:
        """Return what every two kernels share off their diagonals, on the samples both have."""
        if self.observed is not None:
            return compare_features(self.observed, self._features_of)
        kernels = tuple(range(stack.n_kernels))
        return [Comparison(kernels, kernels, self._off_diagonal_products(stack), self._entries)]

    def _features_of(self, samples: np.ndarray) -> list[Float]:
        """Return the features of some samples on the host, not scaled up for missing views."""
        features = replace(self.training, fill="zero").of(self.blocks.take(samples))
        return [to_host(features[p]) for p in self.kernels]

    def _entries(self, samples: np.ndarray) -> Float:
        """Write the kernels out among some samples, (m, s, s), on the host."""
        return np.stack([F @ F.T for F in self._features_of(samples)])

    def _off_diagonal_products(self, stack: Stack) -> OffDiagonalProducts:
        """Return what pairs of kernels share off their diagonals, over all samples."""
        some = list(self.kernels)
        ones, diagonals = self.diagonals[:, -1], self.diagonals[:, some]
        products = self.diagonal_products[np.ix_(some, some)]
        images = stack.apply(ones[:, None])[:, :, 0]  # K_p 1
        mixed = diagonals.T @ images.T  # of a diagonal with the row sums of a kernel
        return OffDiagonalProducts(
            self.n_samples,
            stack.gram() - products,
            images @ images.T - mixed - mixed.T + products,
            images @ ones - stack.traces(),
        )


def compress(
    blocks: Blocks,
    approximation: Any,
    *,
    n_clusters: int = 1,
    center: bool,
    normalize: bool,
    fill: FillRule = "rescale",
    random_state: Any = None,
    learn_preparations: LearnPreparations | None = None,
    fit_samples: int | None = None,
    keep: bool | None = None,
) -> Stack:
    """Learn feature maps, and compress the kernels of their features.

    Two passes over the samples are made, for the means and for the products; a third finds out
    which samples are missing, if some are.

    The `approximation`, a transformer in scikit-learn's manner, is cloned for each view and learns
    from `fit_samples` samples (20,000 by default, or ten per landmark if these are more), with what
    `learn_preparations` makes of rows of every view done to them first. Kernels are centered and
    scaled as the samples that a view has tell; `fill` says how those count that it lacks (see
    `Features`). If `keep`, which is so by default for features that take up to an eighth of the
    free memory, features are computed once and not anew in every pass; never for dask arrays.

    Returns a stack of small matrices, on the host, with the `SampleFeatures` behind them.
    """
    raw = learn_maps(blocks, approximation, random_state, fit_samples, learn_preparations)
    ends = np.cumsum([0, *raw.widths]).tolist()
    require_products(ends[-1], len(raw.maps), "pass a feature map with fewer columns")
    sample = draw_rows(blocks, min(fit_samples or ERROR_SAMPLES, ERROR_SAMPLES), seed=1)
    drawn = [raw._of_rows(p, rows) for p, rows in enumerate(sample.values())]
    errors = [trace_error(*each) for each in zip(raw.maps, sample.values(), drawn, strict=True)]
    of_blocks = raw
    is_local = not isinstance(blocks, DaskBlocks)
    if is_local and (_are_small(blocks, drawn) if keep is None else keep):
        kept = blocks.map(partial(_raw_block, raw=replace(raw, fill="zero")))
        blocks = blocks.with_features(kept, dict(zip(blocks.names, raw.widths, strict=True)))
        of_blocks = replace(raw, maps=[FunctionTransformer()] * len(raw.maps))
    # Sums of squares lose their digits far from the mean; that of the sample is near.
    origins = [to_host(_column_sums(F)) / F.shape[0] for F in drawn]
    for name, map_, origin in zip(blocks.names, raw.maps, origins, strict=True):
        _require_finite(name, map_, bool(np.isfinite(origin).all()))
    shifted = replace(of_blocks, means=origins)
    *sums, squares, counts = map(to_host, blocks.total(partial(_sum_block, shifted=shifted)))
    means, floors = [], []
    for p, name in enumerate(blocks.names):
        _require_finite(name, raw.maps[p], bool(np.isfinite(squares[p])))
        shift = sums[p] / counts[p]
        means.append(origins[p] + shift)
        variance = squares[p] / counts[p] - float(shift @ shift)
        floors.append(_floor(name, variance, float(means[p] @ means[p]), center))
    standard: dict[str, Any] = {"fill": fill, "means": means if center else None}
    standard["floors"] = floors if normalize else None
    training = replace(of_blocks, **standard)
    products = to_host(blocks.total(partial(_multiply_block, training=training)))
    T, coordinate_map = _factor(products[: ends[-1], : ends[-1]], ends)
    if len(T) == n_clusters - 1:
        # As many as centered clusters span; the last direction is one that no kernel has.
        T = np.pad(T, ((0, 1), (0, 0)))
        coordinate_map = np.pad(coordinate_map, ((0, 0), (0, 1)))
    features = SampleFeatures(
        learned=replace(raw, **standard),
        training=training,
        blocks=blocks,
        coordinate_map=coordinate_map,
        trace_errors=np.array(errors),
        diagonals=coordinate_map.T @ products[: ends[-1], ends[-1] :],
        diagonal_products=products[ends[-1] :, ends[-1] :],
        observed=blocks.observed() if min(counts) < blocks.n_samples else None,
        kernels=tuple(range(len(means))),
    )
    small = [T[:, a:b] @ T[:, a:b].T for a, b in pairwise(ends)]
    kernels = tuple(HeldKernel((S + S.T) / 2) for S in small)
    return Stack(kernels, blocks.names, features.kernels, features)


def product_bytes(n_columns: int, n_views: int) -> int:
    """Return what products of features take: two matrices for every view, and three on the way."""
    return (2 * n_views + 3) * 8 * n_columns**2


def require_products(n_columns: int, n_views: int, advice: str) -> None:
    """Refuse features whose products with each other do not fit into memory."""
    require_memory(
        product_bytes(n_columns, n_views),
        f"multiplying the {n_columns} features of {n_views} views with each other",
        f"{advice}, or fewer views",
    )


def _are_small(blocks: Blocks, drawn: Sequence[Array]) -> bool:
    """Return whether the features of all samples take little memory, given those of some."""
    size = np.dtype(precision_of(drawn[0])).itemsize * sum(F.shape[1] for F in drawn)
    free = free_bytes(drawn[0])
    free = available_bytes() if free is None else free
    return free is not None and size * blocks.n_samples <= KEPT_SHARE * free


def _raw_block(block: Block, start: int, *, raw: Features) -> Array:
    """Return the features of a block side by side, zeros if a view lacks the sample."""
    rows = []
    for part, first in raw.parts(block, start):
        check_finite(part, first)
        features = raw.of(part)
        for name, map_, F in zip(part, raw.maps, features, strict=True):
            _require_finite(name, map_, bool(namespace(F).all(namespace(F).isfinite(F))))
        rows.append(side_by_side(*features))
    return namespace(*rows).concat(rows)


def _require_finite(name: str, map_: Any, is_finite: bool) -> None:
    """Refuse features of a view that are not finite."""
    if not is_finite:
        raise ValueError(
            f"View {name!r}: {type(map_).__name__} makes features of it that are not finite, "
            "or too large to square and sum; rescale the view, or take another feature map"
        )


def _sum_block(block: Block, start: int, *, shifted: Features) -> Any:
    """Return the sums of a block's features, the sums of squares, and the counts of every view."""
    total = None
    for part, first in shifted.parts(block, start):
        check_finite(part, first)
        features, _ = shifted.of_observed(part)
        squares = [squared_norms(F) if F.shape[0] else zeros((1,), F) for F in features]
        xp = namespace(*features)
        counts = np.array([float(F.shape[0]) for F in features])
        sums = (*map(_column_sums, features), xp.stack([xp.sum(each) for each in squares]), counts)
        total = add(total, sums)
    return total


def _multiply_block(block: Block, start: int, *, training: Features) -> Array:
    """Multiply a block's features, the diagonals of their kernels and ones with each other."""
    total = None
    for part, _ in training.parts(block, start):
        features = [astype(F, "float64") for F in training.of(part)]
        diagonals = [squared_norms(F)[:, None] for F in features]
        ones = zeros((features[0].shape[0], 1), features[0]) + 1.0
        columns = side_by_side(*features, *diagonals, ones)
        total = add(total, columns.T @ columns)
    return total


def _column_sums(F: Array) -> Array:
    """Return the sum of every column, in float64 and where the features live."""
    xp = namespace(F)
    return xp.sum(F, axis=0, dtype=xp.float64)


def _floor(name: str, variance: float, mean_length: float, center: bool) -> float:
    """Return the squared length below which a sample's features are rounding.

    A view whose features are nothing but rounding is refused.
    """
    length = variance + mean_length
    left = variance if center else length
    if not left > CONSTANT * length:
        raise ValueError(f"View {name!r} has a kernel that is {nothing_left(length)} leave it out")
    return float(max(AT_THE_MEAN * left, CONSTANT * length))


def _factor(gram: Float, ends: Sequence[int]) -> tuple[Float, Float]:
    """Return T with ``gram = T^T T``, and what takes features to coordinates, ``T^-1``.

    Each view is measured in its own unit, or the columns of a small one would be lost. Columns that
    depend on others are left out of the inverse: with pivoting, their part of T says how.
    """
    largest = np.array([gram.diagonal()[a:b].max() for a, b in pairwise(ends)])
    # The largest columns of all views would be equal, and rounding must not choose among them.
    distinct = np.sqrt(largest) * (1 + 0.01 * np.arange(len(largest)))
    units = np.repeat(distinct, np.diff(ends))
    upper, order, rank, _ = pstrf(gram / units / units[:, None], tol=RANK_TOLERANCE)
    order, upper = order - 1, np.triu(upper[:rank])
    T, coordinate_map = np.empty_like(upper), np.zeros((len(gram), rank))
    T[:, order] = upper
    coordinate_map[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return T * units, coordinate_map / units[:, None]
