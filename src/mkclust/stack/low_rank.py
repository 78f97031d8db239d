r"""Kernels known by features: compressed once, exactly, to matrices as small as the features.

With standardized features :math:`F = [F_1 \dots F_m]` and :math:`F^\top F = U \Lambda U^\top`, the
columns of :math:`Q = F U \Lambda^{-1/2}` are orthonormal, and
:math:`F_p F_p^\top = Q\, T_p T_p^\top Q^\top` with :math:`T = \Lambda^{1/2} U^\top`. So the
small matrices :math:`T_p T_p^\top` stand in for the kernels of all samples, without any loss, and a
vector over the samples is ``Q`` times a vector in these coordinates.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from mkclust.blocks import Blocks
from mkclust.blocks.base import check_finite
from mkclust.linalg import to_host
from mkclust.stack.base import Standard
from mkclust.stack.dense import DenseStack, StandardizedKernel
from mkclust.types import Array, Float

# Feature maps learn from at most so many samples, drawn with a fixed seed.
FIT_SAMPLES = 20_000
# Samples that stand for all where clusters are only compared.
COMPARED_SAMPLES = 10_000
# Directions of the features below this share of the largest are rounding.
RANK_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Features:
    """Standardized features of several views: what approximates, or is, their kernels.

    Attributes
    ----------
    maps : sequence of transformers
        One fitted feature map a view.
    means : sequence of ndarray of shape (n_columns,), or None
        Column means of each view's features; None where they are not centered.
    normalize : bool
        Whether every sample's features are scaled to unit length.
    """

    maps: Sequence[Any]
    means: Sequence[Float] | None
    normalize: bool

    def of(self, block: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return the standardized features of some samples, view by view."""
        found = [map_.transform(rows) for map_, rows in zip(self.maps, block.values(), strict=True)]
        found = [np.asarray(F) for F in found]
        if self.means is not None:
            found = [F - mean.astype(F.dtype) for F, mean in zip(found, self.means, strict=True)]
        return [_unit_rows(F) for F in found] if self.normalize else found

    def project(self, block: dict[str, np.ndarray], matrix: Float) -> Float:
        """Multiply the standardized features of some samples, side by side, with a matrix."""
        beside, total, start = self.of(block), None, 0
        for F in beside:
            part = F @ matrix[start : start + F.shape[1]].astype(F.dtype, copy=False)
            total = part if total is None else total + part
            start += F.shape[1]
        assert total is not None
        return total


@dataclass(frozen=True, kw_only=True)
class LowRankStack(DenseStack):
    """Kernels of features, in coordinates: ``n_samples`` is the number of these.

    Attributes
    ----------
    features : Features
        The standardized features.
    blocks : Blocks
        The samples.
    lifting : ndarray of shape (n_columns, n_coordinates)
        ``U Lambda^(-1/2)``: features times this are the samples' coordinates.
    sample : dict of str to ndarray
        Some samples that stand for all where clusters are only compared.
    approximation_error : ndarray of shape (n_kernels,)
        The share of each kernel's trace that its features miss, on a sample; NaN where the
        feature map does not tell what it approximates.
    """

    features: Features = field(repr=False)
    blocks: Blocks = field(repr=False)
    lifting: Float = field(repr=False)
    sample: dict[str, np.ndarray] = field(repr=False)
    approximation_error: Float

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""
        return True

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors in coordinates; one pass for all."""
        widths = np.cumsum([0, *(V.shape[1] for V in vectors)])
        matrix = self.lifting @ np.hstack([to_host(V) for V in vectors])
        lifted = self.blocks.map(lambda block, _: self.features.project(block, matrix))
        return tuple(lifted[:, a:b] for a, b in itertools.pairwise(widths))

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for the samples that stand for all."""
        return self.features.project(self.sample, self.lifting @ to_host(vectors))


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
        Two passes over the samples were made: for the means, and for the products.
    """
    n = blocks.n_samples
    some = blocks.take(_draw(n, FIT_SAMPLES))
    check_finite(some, 0)
    maps = []
    for p, (name, rows) in enumerate(some.items()):
        map_ = clone(approximation)
        if "random_state" in map_.get_params() and map_.get_params()["random_state"] is None:
            map_.set_params(random_state=_seed(random_state, p))
        try:
            maps.append(map_.fit(rows))
        except ValueError as error:
            raise ValueError(f"View {name!r}: {error}") from error
    plain = Features(maps, None, False)

    def sums(block: dict[str, np.ndarray], start: int) -> tuple:
        check_finite(block, start)
        return tuple(F.sum(axis=0, dtype=np.float64) for F in plain.of(block))

    means = [total / n for total in blocks.total(sums)]
    features = Features(maps, means if center else None, normalize)

    def products(block: dict[str, np.ndarray], _: int) -> Float:
        F = np.hstack(features.of(block)).astype(np.float64, copy=False)
        return F.T @ F

    gram = blocks.total(products)
    values, U = np.linalg.eigh((gram + gram.T) / 2)
    kept = values > RANK_TOLERANCE * max(values[-1], 0)
    values, U = values[kept][::-1], U[:, kept][:, ::-1]
    T = np.sqrt(values)[:, None] * U.T
    ends = np.cumsum([0, *(len(mean) for mean in means)])
    small = [T[:, a:b] @ T[:, a:b].T for a, b in itertools.pairwise(ends)]
    small = [(S + S.T) / 2 for S in small]
    standards = [Standard(np.diag(S).copy()) for S in small]
    return LowRankStack(
        tuple(StandardizedKernel(S, s) for S, s in zip(small, standards, strict=True)),
        blocks.names,
        tuple(standards),
        tuple(small),
        features=features,
        blocks=blocks,
        lifting=U / np.sqrt(values),
        sample=blocks.take(_draw(n, COMPARED_SAMPLES)),
        approximation_error=np.array(
            [_missed(m, rows) for m, rows in zip(maps, some.values(), strict=True)]
        ),
    )


def _missed(map_: Any, rows: np.ndarray) -> float:
    """Return the share of a kernel's trace that its features miss, NaN where nobody knows."""
    if not hasattr(map_, "self_similarity"):
        return float("nan")
    F = np.asarray(map_.transform(rows[:COMPARED_SAMPLES]))
    captured = np.einsum("ij,ij->", F, F, dtype=np.float64)
    return float(1 - captured / map_.self_similarity(rows[:COMPARED_SAMPLES]).sum())


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


def _unit_rows(F: np.ndarray) -> np.ndarray:
    """Return rows of unit length; what is at the very mean has no direction and becomes zero."""
    squared = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    seen = squared > 1e-10 * max(float(squared.mean()), 1e-300)
    scale = seen / np.sqrt(np.where(seen, squared, 1))
    return F * scale.astype(F.dtype)[:, None]
