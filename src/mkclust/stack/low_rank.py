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
    is_foreign,
    namespace,
    ranges,
    side_by_side,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.blocks import Blocks, add, check_finite, observed_samples
from mkclust.samples.local import LocalBlocks
from mkclust.stack.base import Standardization
from mkclust.stack.common_samples import compare_features
from mkclust.stack.dense import DenseStack
from mkclust.stack.mapped import (
    ERROR_SAMPLES,
    Features,
    LearnPreparations,
    cut,
    draw,
    draw_rows,
    factors_of,
    floor_of,
    learn_maps,
    missed_trace_share,
    rows_at_once,
    spread_features,
    sum_of_squares,
    to_same_device,
)
from mkclust.stack.off_diagonal import Comparison
from mkclust.stack.sample_map import FillRule, rescaling
from mkclust.stack.standardized import StandardizedKernel
from mkclust.types import Array, Float

# Samples that stand for all where clusters are only compared.
COMPARED_SAMPLES = 10_000
# Features that take no more than this are computed once and kept, not anew in every pass.
KEPT_BYTES, KEPT_ROWS = 128 << 20, 2048
# On a device they are kept where they take no more than this share of its free memory.
KEPT_SHARE = 0.25
# Features whose variance is more than this share of the squared length of their mean do vary.
VARIES = 1e-6
# Directions of the features below this share of the largest of their view are rounding.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True, kw_only=True)
class LowRankStack(DenseStack):
    """Kernels of features, in coordinates: ``n_samples`` is the number of these.

    The small matrices are NumPy's wherever the samples live; what is lifted lives beside these.

    Attributes
    ----------
    features : Features
        The standardized features of any samples.
    training : Features
        Those of `blocks`.
    blocks : Blocks
        The samples, or their features where these were kept.
    coordinate_map : ndarray of shape (n_columns, n_coordinates)
        ``T^(-1)``: features times this are the samples' coordinates.
    trace_errors : ndarray of shape (n_kernels,)
        The share of each kernel's trace that its features miss, on a sample; NaN where the
        feature map does not tell what it approximates.
    sums : _SampleSums
        What the diagonals of the kernels are, summed over the samples.
    observed_in_views : ndarray of bool of shape (number of samples, n_views) or None
        Which samples each of the views of `blocks` has; None where none is missing.
    scales : ndarray of shape (number of samples, n_views) or None
        What the centered features of `blocks` were multiplied by; None where nobody needs it.
    """

    features: Features = field(repr=False)
    training: Features = field(repr=False)
    blocks: Blocks = field(repr=False)
    coordinate_map: Float = field(repr=False)
    trace_errors: Float
    sums: "_SampleSums" = field(repr=False)
    observed_in_views: np.ndarray | None = field(default=None, repr=False)
    scales: Float | None = field(default=None, repr=False)

    @cached_property
    def sample(self) -> dict[str, Array]:
        """Some samples that stand for all where clusters are only compared."""
        return self.blocks.take(draw(self.blocks.n_samples, COMPARED_SAMPLES))

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""
        return True

    @property
    def approximation_error(self) -> Float:
        """The share of each kernel's trace that its features miss, (m,)."""
        return self.trace_errors

    def subset(self, indices: Sequence[int]) -> "LowRankStack":
        """Return some of the kernels, in the coordinates of all."""
        some = super().subset(indices)
        assert isinstance(some, LowRankStack)
        errors, sums = self.trace_errors[list(indices)], self.sums.subset(indices)
        return replace(some, trace_errors=errors, sums=sums)

    @property
    def observed(self) -> np.ndarray | None:
        """Which samples each kernel has, bool of shape (number of samples, m); None where all."""
        if self.observed_in_views is None:
            return None
        return self.observed_in_views[:, [self.blocks.names.index(name) for name in self.names]]

    def comparisons(self) -> Sequence[Comparison]:
        """Return what every two kernels share off their diagonals, on the samples both have."""
        if self.observed is None:
            return super().comparisons()
        return compare_features(self.observed, self._features_as_seen)

    def off_diagonal_products(self) -> OffDiagonalProducts:
        """Return what pairs of kernels share off their diagonals: all of it is known."""
        sums, images = self.sums, self.apply(self.sums.ones[:, None])[:, :, 0]  # K_p 1
        mixed = sums.diagonals.T @ images.T  # of a diagonal with the row sums of a kernel
        return OffDiagonalProducts(
            self.blocks.n_samples,
            self.gram() - sums.products,
            images @ images.T - mixed - mixed.T + sums.products,
            images @ sums.ones - sums.totals,
        )

    def compared_entries(self, indices: np.ndarray) -> Array:
        """Write the kernels out among some samples, (m, s, s); on the host."""
        return np.stack([F @ F.T for F in self._features_of(indices)])

    def _features_as_seen(self, samples: np.ndarray) -> list[Float]:
        """Return the features of some samples, not scaled up for views that lack them."""
        features = self._features_of(samples)
        if self.observed_in_views is None or self.features.fill != "rescale":
            return features
        scales = rescaling(self.observed_in_views[samples])
        return [F / scales[:, None] for F in features]

    def _features_of(self, samples: np.ndarray) -> list[Float]:
        """Return the features of some samples on the host, kernel by kernel."""
        parts = self.training.of(self.blocks.take(samples))
        features = dict(zip(self.blocks.names, parts, strict=True))
        return [to_host(features[name]) for name in self.names]

    def embedding_map(self, rows: Float) -> tuple[Features, Float]:
        """Return features, and what takes them to rows: the same for old and new samples."""
        return self.features, self.coordinate_map @ rows

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors in coordinates; one pass for all."""
        widths = np.cumsum([0, *(V.shape[1] for V in vectors)])
        matrix = self.coordinate_map @ np.hstack([to_host(V) for V in vectors])
        features, scales = self.training, self.scales  # all of the stack that workers have use for

        def project(block: dict[str, Array], start: int) -> Array:
            return features.project(block, matrix, None if scales is None else scales[start:])

        lifted = self.blocks.map(project)
        return tuple(lifted[:, a:b] for a, b in pairwise(widths))

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for the samples that stand for all."""
        return self.training.project(self.sample, self.coordinate_map @ to_host(vectors))


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
    error_samples: int | None = None,
    kept_bytes: int | None = None,
) -> LowRankStack:
    """Learn feature maps, and compress the kernels of their features.

    Parameters
    ----------
    blocks : Blocks
        The samples.
    approximation : transformer
        A feature map in scikit-learn's manner, cloned for each view.
    n_clusters : int, default=1
        How many clusters will be asked for.
    center, normalize : bool
        Center the kernels in their feature spaces; scale them to a unit diagonal. Both are learned
        from the samples that a view has.
    fill : {"zero", "rescale"}, default="rescale"
        How samples count that are missing from some views, rows that are all NaN there: see
        `Features`.
    random_state : int or None
        Seed of feature maps that have none of their own.
    learn_preparations : callable, default=None
        Takes some rows of every view, by name, and returns what is to be done to the rows of each
        before they are mapped, objects with ``apply(rows)``; None for nothing.
    fit_samples, error_samples : int, default=None
        From how many samples the maps are learned, and on how many the trace of a kernel is
        compared with that of its features; None means 20,000, or ten times as many as landmarks
        where these are more, and 2,000.
    kept_bytes : int, default=None
        Features that take no more than this are computed once and kept; None means 128 MiB, or a
        quarter of a device's free memory.

    Returns
    -------
    LowRankStack
        Two passes over the samples were made, for the means and for the products; or one where
        there is room to keep the features. A third, that computes nothing, finds out which samples
        are missing where some are.
    """
    maps, widths = learn_maps(blocks, approximation, random_state, fit_samples, learn_preparations)
    ends = np.cumsum([0, *widths]).tolist()
    require_products(ends[-1], len(maps), "pass a feature map with fewer columns")
    mapped = Features(maps, widths=widths)
    preview = _preview(blocks, mapped, error_samples or ERROR_SAMPLES)
    raw = _compute_if_small(blocks, mapped, ends, preview.features[0], kept_bytes)
    means, variances, counts = _means_and_variances(raw, maps, preview)
    observed = observed_samples(raw.blocks) if min(counts) < raw.blocks.n_samples else None
    pairs = zip(blocks.names, variances, means, strict=True)
    floors = [floor_of(*each, center) for each in pairs]
    # Where features are kept, they are there to be projected.
    by_factors = raw.array is None and all(factors_of(map_)[1] is not None for map_ in maps)
    features = Features(
        maps, means if center else None, floors if normalize else None, fill, widths, by_factors
    )
    training = features if raw.array is None else _standardize_in_place(raw, features)
    scales = _room_for_scales(raw, by_factors, preview.features[0])
    multiply = partial(_multiply_block, features=training, n_columns=ends[-1], scales=scales)
    products = to_host(raw.blocks.total(multiply))
    T, coordinate_map = _factor(products[: ends[-1], : ends[-1]], ends)
    if len(T) == n_clusters - 1:
        # As many as centered clusters span; the last direction is one that no kernel has.
        T = np.pad(T, ((0, 1), (0, 0)))
        coordinate_map = np.pad(coordinate_map, ((0, 0), (0, 1)))
    small = [_square(T[:, a:b]) for a, b in pairwise(ends)]
    standardizations = [Standardization(np.diag(S).copy()) for S in small]
    return LowRankStack(
        tuple(StandardizedKernel(S, s) for S, s in zip(small, standardizations, strict=True)),
        blocks.names,
        tuple(standardizations),
        tuple(small),
        features=features,
        training=training,
        blocks=raw.blocks,
        coordinate_map=coordinate_map,
        trace_errors=preview.trace_errors,
        sums=_SampleSums.of(products, coordinate_map),
        observed_in_views=observed,
        scales=scales,
    )


@dataclass(frozen=True)
class _SampleSums:
    """Products of the diagonals of kernels with vectors over the samples.

    Attributes
    ----------
    ones : ndarray of shape (n_coordinates,)
        The vector of ones, in coordinates.
    diagonals : ndarray of shape (n_coordinates, m)
        The diagonals, in coordinates.
    products : ndarray of shape (m, m)
        Their products with each other.
    totals : ndarray of shape (m,)
        Their sums.
    """

    ones: Float
    diagonals: Float
    products: Float
    totals: Float

    @classmethod
    def of(cls, products: Float, coordinate_map: Float) -> "_SampleSums":
        """Return the sums that stand beside the products of features."""
        c = len(coordinate_map)
        beside = coordinate_map.T @ products[:c, c:]
        return cls(beside[:, -1], beside[:, :-1], products[c:-1, c:-1], products[c:-1, -1])

    def subset(self, indices: Sequence[int]) -> "_SampleSums":
        """Return the sums of some kernels."""
        some = list(indices)
        return _SampleSums(
            self.ones, self.diagonals[:, some], self.products[np.ix_(some, some)], self.totals[some]
        )


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


@dataclass(frozen=True)
class _Preview:
    """What some samples show of the features of all.

    Attributes
    ----------
    features : list of arrays of shape (n_drawn, n_columns)
        Their features, view by view, not standardized; of those that the view has.
    rows : dict of str to array of shape (n_drawn, n_features)
        Of what the features were made.
    trace_errors : ndarray of shape (n_kernels,)
        The share of each kernel's trace that the features miss.
    """

    features: list[Array]
    rows: dict[str, Array]
    trace_errors: Float


def _preview(blocks: Blocks, features: Features, count: int) -> _Preview:
    """Make features of some samples, having made sure that these are finite."""
    sample = draw_rows(blocks, count, seed=1)
    parts = features.of(sample)
    views = zip(features.maps, sample.values(), parts, strict=True)
    errors = np.array([missed_trace_share(*each) for each in views])
    return _Preview(parts, sample, errors)


@dataclass(frozen=True)
class _RawFeatures:
    """Features that are not standardized: of all samples computed once, or anew in every pass.

    Attributes
    ----------
    blocks : Blocks
        The samples; their features where these are computed once.
    features : Features
        What makes features of the blocks.
    ends : sequence of int
        Where the columns of each view begin and end, side by side.
    array : array of shape (n_samples, n_columns) or None
        All features side by side, where they are computed once.
    block_rows : int
        How many rows of the array are worked on at a time.
    """

    blocks: Blocks
    features: Features
    ends: Sequence[int]
    block_rows: int
    array: Array | None = None


def _compute_if_small(
    blocks: Blocks, features: Features, ends: Sequence[int], like: Array, kept_bytes: int | None
) -> _RawFeatures:
    """Compute the features of all samples where there is room for them, beside `like`."""
    most_bytes, block_rows = float(KEPT_BYTES), KEPT_ROWS
    if isinstance(blocks, LocalBlocks) and (free := free_bytes(like)) is not None:
        most_bytes, block_rows = KEPT_SHARE * free, rows_at_once(ends[-1], like)
        blocks = blocks.lower(block_rows)
    most_bytes = most_bytes if kept_bytes is None else kept_bytes
    if not isinstance(blocks, LocalBlocks) or 8 * blocks.n_samples * ends[-1] > most_bytes:
        return _RawFeatures(blocks, features, ends, block_rows)
    array = blocks.map(lambda block, start: side_by_side(*_marked(block, start, features)))
    views = _by_view(array, blocks.names, ends)
    unchanged = Features([FunctionTransformer()] * len(views), widths=features.widths)
    return _RawFeatures(LocalBlocks(views, block_rows), unchanged, ends, block_rows, array)


def _by_view(array: Array, names: Sequence[str], ends: Sequence[int]) -> dict[str, Array]:
    """Return the columns of each view, where features of all views stand side by side."""
    return {name: array[:, a:b] for name, (a, b) in zip(names, pairwise(ends), strict=True)}


def _marked(block: dict[str, Array], start: int, features: Features) -> list[Array]:
    """Make features of a block, all NaN where a view lacks the sample, as in the block itself."""
    check_finite(block, start)
    parts, seen = features.of_seen(block)
    for name, map_, F in zip(block, features.maps, parts, strict=True):
        # Or NaN that a map makes would be taken for a sample that is missing.
        _require_finite(name, map_, float(namespace(F).sum(_column_sums(F))))
    return spread_features(parts, seen, block, np.nan)


def _require_finite(name: str, map_: Any, total: float) -> None:
    """Refuse features of a view that are not finite, which their sum, or another, tells."""
    if not np.isfinite(total):
        raise ValueError(
            f"View {name!r}: {type(map_).__name__} makes features of it that are not finite, "
            "or too large to square and sum; rescale the view, or take another feature map"
        )


def _means_and_variances(
    raw: _RawFeatures, maps: Sequence[Any], preview: _Preview
) -> tuple[list[Float], list[float], Float]:
    """Return the column means of every view's features, and their total variances, in one pass.

    And how many samples each view has, over which they are means. The means of products are
    products of means; then the variances are those of the preview, about the means of all samples.
    """
    factors = [_factors_to_sum(*each) for each in zip(maps, preview.features, strict=True)]
    if raw.array is not None:
        factors = [(map_, None) for map_ in raw.features.maps]
    views = zip(preview.features, factors, preview.rows.values(), strict=True)
    shown = [F if mixing is None else f.transform(rows) for F, (f, mixing), rows in views]
    widths = [F.shape[1] for F in shown]
    features = replace(raw.features, maps=[factor for factor, _ in factors], widths=widths)
    # Sums of squares lose their digits far from the mean; that of the preview is near.
    origins = [_column_means(F) for F in shown]
    sum_up = partial(_sum_block, features=features, origins=origins, n_columns=raw.ends[-1])
    *totals, squares, counts = map(to_host, raw.blocks.total(sum_up))
    for name, map_, square in zip(raw.blocks.names, maps, squares, strict=True):
        _require_finite(name, map_, square)
    shifts = [total / n for total, n in zip(totals, counts, strict=True)]
    means, variances = [], []
    for p, (F, (_, mixing)) in enumerate(zip(shown, factors, strict=True)):
        mean = to_host(to_same_device(origins[p], F)) + shifts[p]
        if mixing is None:
            means.append(mean)
            variances.append(squares[p] / counts[p] - float(shifts[p] @ shifts[p]))
        else:
            means.append(mean @ to_host(to_same_device(mixing, F)))
            difference = preview.features[p] - to_same_device(means[p], F)
            variances.append(float(sum_of_squares(difference)) / F.shape[0])
    return means, variances, counts


def _factors_to_sum(map_: Any, F: Array) -> tuple[Any, Float | None]:
    """Return what to sum up for the mean of features, and what takes that sum to theirs.

    The features themselves, and None, where some of them do not show that they vary.
    """
    factor, mixing = factors_of(map_)
    mean = _column_means(F)
    variance = float(sum_of_squares(F - to_same_device(mean, F))) / F.shape[0]
    if mixing is None or not variance > VARIES * float(mean @ mean):
        return map_, None
    return factor, mixing


def _sum_block(
    block: dict[str, Array],
    start: int,
    *,
    features: Features,
    origins: Sequence[Float],
    n_columns: int,
) -> Any:
    """Sum up the features of a block, from an origin each, and the squares of every view.

    And count the samples that each view has.
    """
    total = None
    for part, first in cut(block, start, n_columns):
        check_finite(part, first)
        views = zip(features.of_seen(part)[0], origins, strict=True)
        shifted = [F - to_same_device(origin, F) for F, origin in views]
        squares = namespace(*shifted).stack([sum_of_squares(F) for F in shifted])
        counts = np.array([float(F.shape[0]) for F in shifted])
        total = add(total, (*map(_column_sums, shifted), squares, counts))
    return total


def _standardize_in_place(raw: _RawFeatures, features: Features) -> Features:
    """Standardize features that are computed once, and return what makes features of them now."""
    assert raw.array is not None
    in_place = replace(features, maps=raw.features.maps)
    for rows in ranges(raw.blocks.n_samples, raw.block_rows):
        block = _by_view(raw.array[rows, :], raw.blocks.names, raw.ends)
        raw.array[rows, :] = side_by_side(*in_place.of(block))
    return raw.features


def _room_for_scales(raw: _RawFeatures, by_factors: bool, like: Array) -> Float | None:
    """Return room for the scales of all samples, where these are of use and on this machine."""
    if not by_factors or is_foreign(like) or not isinstance(raw.blocks, LocalBlocks):
        return None
    return np.empty((raw.blocks.n_samples, len(raw.blocks.names)))


def _multiply_block(
    block: dict[str, Array],
    start: int,
    *,
    features: Features,
    n_columns: int,
    scales: Float | None,
) -> Any:
    """Multiply the features of a block, the diagonals of their kernels and ones with each other.

    And write down what centered features are multiplied by, where there is room for that.
    """
    total = None
    for part, first in cut(block, start, n_columns):
        standardized, scales_of_part = features.of_with_scales(part)
        if scales is not None:
            scales[first : first + len(scales_of_part[0])] = np.stack(scales_of_part, axis=1)
        parts = [astype(F, "float64") for F in standardized]
        xp = namespace(*parts)
        diagonals = [xp.sum(F * F, axis=1)[:, None] for F in parts]
        beside = side_by_side(*parts, *diagonals, zeros((parts[0].shape[0], 1), parts[0]) + 1.0)
        total = add(total, beside.T @ beside)
    return total


def _column_sums(F: Array) -> Array:
    """Return the sum of every column, in float64 and where the features live."""
    xp = namespace(F)
    return xp.sum(F, axis=0, dtype=xp.float64)


def _column_means(F: Array) -> Float:
    """Return the mean of every column, on the host."""
    return to_host(_column_sums(F)) / F.shape[0]


def _factor(gram: Float, ends: Sequence[int]) -> tuple[Float, Float]:
    """Return T with ``gram = T^T T``, and what takes features to coordinates, ``T^-1``.

    Each view is measured in its own unit, or the columns of a small one would drown. Columns that
    depend on others are left out of the inverse: with pivoting, their part of T says how.
    """
    largest = np.array([gram.diagonal()[a:b].max() for a, b in pairwise(ends)])
    # Now the largest columns of all views are equal, and rounding must not choose among them.
    distinct = np.sqrt(largest) * (1 + 0.01 * np.arange(len(largest)))
    units = np.repeat(distinct, np.diff(ends))
    upper, order, rank, _ = pstrf(gram / units / units[:, None], tol=RANK_TOLERANCE)
    order, upper = order - 1, np.triu(upper[:rank])
    T, coordinate_map = np.empty_like(upper), np.zeros((len(gram), rank))
    T[:, order] = upper
    coordinate_map[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return T * units, coordinate_map / units[:, None]


def _square(T: Float) -> Float:
    """Return ``T T^T``, exactly symmetric."""
    S = T @ T.T
    return (S + S.T) / 2
