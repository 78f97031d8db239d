r"""Kernels known by features: compressed once, exactly, to matrices as small as the features.

With standardized features :math:`F = [F_1 \dots F_m]` and :math:`F^\top F = T^\top T`, the columns
of :math:`Q = F T^{-1}` are orthonormal, and :math:`F_p F_p^\top = Q\, T_p T_p^\top Q^\top`. So the
small matrices :math:`T_p T_p^\top` stand in for the kernels of all samples, without any loss, and a
vector over the samples is ``Q`` times a vector in these coordinates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf as pstrf
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer

from mkclust.blocks import Blocks, LocalBlocks
from mkclust.blocks.base import add, check_finite
from mkclust.linalg import to_host
from mkclust.stack.base import Standard
from mkclust.stack.dense import DenseStack, StandardizedKernel
from mkclust.types import Array, Float

# Feature maps learn from at most so many samples, drawn with a fixed seed.
FIT_SAMPLES = 20_000
# Samples that stand for all where clusters are only compared, and where a trace is.
COMPARED_SAMPLES, ERROR_SAMPLES = 10_000, 2_000
# Features that take no more than this are computed once and kept, not anew in every pass.
KEPT_BYTES, KEPT_ROWS = 128 << 20, 2048
# Of wide features few rows are computed at a time: what they take, and how many at least.
WORK_BYTES, FEWEST_ROWS = 32 << 20, 256
# Directions of the features below this share of the largest are rounding.
RANK_TOLERANCE = 1e-13
# Kernels of scikit-learn's own Nystroem that are one between a sample and itself.
UNIT_DIAGONAL = ("rbf", "laplacian")


@dataclass(frozen=True)
class Features:
    """Standardized features of several views: what approximates, or is, their kernels.

    Attributes
    ----------
    maps : sequence of transformers
        One fitted feature map a view.
    means : sequence of ndarray of shape (n_columns,), or None
        Column means of each view's features; None where they are not centered.
    floors : sequence of float, or None
        The squared length of a sample's features below which it is rounding, for each view; None
        where features are not scaled to unit length.
    """

    maps: Sequence[Any]
    means: Sequence[Float] | None = None
    floors: Sequence[float] | None = None

    def of(self, block: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return the standardized features of some samples, view by view."""
        found = [map_.transform(rows) for map_, rows in zip(self.maps, block.values(), strict=True)]
        found = [np.asarray(F) for F in found]
        if self.means is not None:
            found = [F - mean.astype(F.dtype) for F, mean in zip(found, self.means, strict=True)]
        if self.floors is not None:
            found = [_unit_rows(F, floor) for F, floor in zip(found, self.floors, strict=True)]
        return found

    def project(self, block: dict[str, np.ndarray], matrix: Float) -> Float:
        """Multiply the standardized features of some samples, side by side, with a matrix."""
        return np.concatenate(
            [_multiply(self.of(part), matrix) for part, _ in _cut(block, 0, len(matrix))]
        )


@dataclass(frozen=True, kw_only=True)
class LowRankStack(DenseStack):
    """Kernels of features, in coordinates: ``n_samples`` is the number of these.

    Attributes
    ----------
    features : Features
        The standardized features of any samples.
    training : Features
        Those of `blocks`.
    blocks : Blocks
        The samples, or their features where these were kept.
    lifting : ndarray of shape (n_columns, n_coordinates)
        ``T^(-1)``: features times this are the samples' coordinates.
    approximation_error : ndarray of shape (n_kernels,)
        The share of each kernel's trace that its features miss, on a sample; NaN where the
        feature map does not tell what it approximates.
    """

    features: Features = field(repr=False)
    training: Features = field(repr=False)
    blocks: Blocks = field(repr=False)
    lifting: Float = field(repr=False)
    approximation_error: Float

    @cached_property
    def sample(self) -> dict[str, np.ndarray]:
        """Some samples that stand for all where clusters are only compared."""
        return self.blocks.take(_draw(self.blocks.n_samples, COMPARED_SAMPLES))

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""
        return True

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors in coordinates; one pass for all."""
        widths = np.cumsum([0, *(V.shape[1] for V in vectors)])
        matrix = self.lifting @ np.hstack([to_host(V) for V in vectors])
        features = self.training  # not the stack itself, which workers have no use for
        lifted = self.blocks.map(lambda block, _: features.project(block, matrix))
        return tuple(lifted[:, a:b] for a, b in pairwise(widths))

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for the samples that stand for all."""
        return self.training.project(self.sample, self.lifting @ to_host(vectors))


def compress(
    blocks: Blocks,
    approximation: Any,
    *,
    center: bool,
    normalize: bool,
    random_state: Any = None,
) -> LowRankStack:
    """Learn feature maps, and compress the kernels of their features.

    Parameters
    ----------
    blocks : Blocks
        The samples.
    approximation : transformer
        A feature map in scikit-learn's manner, cloned for each view.
    center, normalize : bool
        Center the kernels in their feature spaces; scale them to a unit diagonal.
    random_state : int or None
        Seed of feature maps that have none of their own.

    Returns
    -------
    LowRankStack
        Two passes over the samples were made, for the means and for the products; or one where
        there is room to keep the features.
    """
    n = blocks.n_samples
    # Whoever asks for more landmarks than that gets to choose among more samples.
    drawn = _draw(n, max(FIT_SAMPLES, getattr(approximation, "n_components", None) or 0))
    some = blocks.take(drawn)
    check_finite(some, drawn)
    maps = _learn_maps(approximation, some, random_state)
    one = {name: rows[:1] for name, rows in some.items()}
    firsts = Features(maps).of(one)
    ends = np.cumsum([0, *(F.shape[1] for F in firsts)])
    plain, names = Features(maps), blocks.names
    kept = None

    def transformed(block: dict[str, np.ndarray], start: int) -> list[np.ndarray]:
        check_finite(block, start)
        return plain.of(block)

    if isinstance(blocks, LocalBlocks) and n * sum(F.nbytes for F in firsts) <= KEPT_BYTES:
        kept = blocks.map(lambda block, start: np.hstack(transformed(block, start)))
        parts = {name: kept[:, a:b] for name, (a, b) in zip(names, pairwise(ends), strict=True)}
        blocks = LocalBlocks(parts, block_rows=KEPT_ROWS)
        plain = Features([FunctionTransformer()] * len(maps))

    def sums(block: dict[str, np.ndarray], start: int) -> Any:
        total = None
        for part, first in _cut(block, start, ends[-1]):
            found = transformed(part, first)
            squares = [np.einsum("ij,ij->", F, F, dtype=np.float64) for F in found]
            columns = (F.sum(axis=0, dtype=np.float64) for F in found)
            total = add(total, (*columns, np.array(squares)))
        return total

    *totals, squares = blocks.total(sums)
    means = [total / n for total in totals]
    floors = [_floor(*pair, center) for pair in zip(squares / n, means, strict=True)]
    features = training = Features(maps, means if center else None, floors if normalize else None)
    if kept is not None:
        in_place = replace(features, maps=plain.maps)
        for start in range(0, n, KEPT_ROWS):
            rows = {name: F[start : start + KEPT_ROWS] for name, F in parts.items()}
            kept[start : start + KEPT_ROWS] = np.hstack(in_place.of(rows))
        training = plain

    def products(block: dict[str, np.ndarray], _: int) -> Any:
        total = None
        for part, _ in _cut(block, 0, ends[-1]):
            F = np.hstack(training.of(part)).astype(np.float64, copy=False)
            total = add(total, F.T @ F)
        return total

    T, lifting = _factor(blocks.total(products))
    small = [_square(T[:, a:b]) for a, b in pairwise(ends)]
    standards = [Standard(np.diag(S).copy()) for S in small]
    return LowRankStack(
        tuple(StandardizedKernel(S, s) for S, s in zip(small, standards, strict=True)),
        names,
        tuple(standards),
        tuple(small),
        features=features,
        training=training,
        blocks=blocks,
        lifting=lifting,
        approximation_error=np.array(
            [_missed(m, rows) for m, rows in zip(maps, some.values(), strict=True)]
        ),
    )


def _learn_maps(approximation: Any, some: dict[str, np.ndarray], random_state: Any) -> list[Any]:
    """Return one feature map a view, learned from some samples."""
    maps = []
    for p, (name, rows) in enumerate(some.items()):
        map_ = clone(approximation)
        if "random_state" in map_.get_params() and map_.get_params()["random_state"] is None:
            map_.set_params(random_state=_seed(random_state, p))
        try:
            maps.append(map_.fit(rows))
        except ValueError as error:
            raise ValueError(f"View {name!r}: {error}") from error
    return maps


def _factor(gram: Float) -> tuple[Float, Float]:
    """Return T with ``gram = T^T T``, and what takes features to coordinates, ``T^-1``.

    Columns of features that depend on the others are left out of the inverse: with pivoting, their
    part of T says how.
    """
    upper, order, rank, _ = pstrf(gram, tol=RANK_TOLERANCE * gram.diagonal().max())
    order, upper = order - 1, np.triu(upper[:rank])
    T, lifting = np.empty_like(upper), np.zeros((len(gram), rank))
    T[:, order] = upper
    lifting[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return T, lifting


def _square(T: Float) -> Float:
    """Return ``T T^T``, exactly symmetric."""
    S = T @ T.T
    return (S + S.T) / 2


def _missed(map_: Any, rows: np.ndarray) -> float:
    """Return the share of a kernel's trace that its features miss, NaN where nobody knows."""
    rows = rows[:: -(-len(rows) // ERROR_SAMPLES)]
    if hasattr(map_, "self_similarity"):
        trace = float(map_.self_similarity(rows).sum())
    elif isinstance(map_, RBFSampler) or getattr(map_, "kernel", None) in UNIT_DIAGONAL:
        trace = len(rows)
    else:
        return float("nan")
    F = np.asarray(map_.transform(rows))
    return 1 - float(np.einsum("ij,ij->", F, F, dtype=np.float64)) / trace


def _cut(
    block: dict[str, np.ndarray], start: int, n_columns: int
) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Cut a block into parts whose features are not too large, with their first samples."""
    height = max(FEWEST_ROWS, WORK_BYTES // (8 * n_columns))
    for first in range(0, len(next(iter(block.values()))), height):
        yield {name: rows[first : first + height] for name, rows in block.items()}, start + first


def _multiply(features: Sequence[np.ndarray], matrix: Float) -> Float:
    """Multiply features, side by side, with a matrix, in their precision."""
    ends = np.cumsum([0, *(F.shape[1] for F in features)])
    return sum(
        F @ matrix[a:b].astype(F.dtype, copy=False)
        for F, (a, b) in zip(features, pairwise(ends), strict=True)
    )


def _draw(n_samples: int, count: int) -> np.ndarray:
    """Return the numbers of some samples, rising; of all where there are no more."""
    if n_samples <= count:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, count, replace=False))


def _seed(random_state: Any, index: int) -> int:
    """Return the seed of one view's feature map."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(np.random.SeedSequence([int(random_state or 0), index]).generate_state(1)[0])
    return int(random_state.randint(2**31))


def _floor(mean_square: float, mean: Float, center: bool) -> float:
    """Return the squared length below which a sample's features are rounding."""
    spread = mean_square - float(mean @ mean) if center else mean_square
    return max(1e-10 * spread, 1e-24 * mean_square, np.finfo(np.float64).tiny)


def _unit_rows(F: np.ndarray, floor: float) -> np.ndarray:
    """Return rows of unit length; what is at the very mean has no direction and becomes zero."""
    squared = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    seen = squared > floor
    scale = seen / np.sqrt(np.where(seen, squared, 1))
    return F * scale.astype(F.dtype)[:, None]
