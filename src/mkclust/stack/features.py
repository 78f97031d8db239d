"""Features of views: one map a view, learned from some samples, and how they are standardized."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler

from mkclust.blocks import Blocks
from mkclust.blocks.base import check_finite
from mkclust.types import Float

# Feature maps learn from at most so many samples, but from so many times their landmarks: of a
# sample that is all landmarks, nothing would seem to be missed.
FIT_SAMPLES, SAMPLES_A_LANDMARK = 20_000, 10
# Samples on which the trace of a kernel is compared with that of its features.
ERROR_SAMPLES = 2_000
# Of wide features few rows are computed at a time: what they take, and how many at least.
WORK_BYTES, FEWEST_ROWS = 32 << 20, 256
# Kernels of scikit-learn's own Nystroem that are one between a sample and itself.
UNIT_DIAGONAL = ("rbf", "laplacian")
# A view whose features vary by less than this share of their squared length is constant.
CONSTANT = 1e-26


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
        found = np.concatenate(
            [_multiply(self.of(part), matrix) for part, _ in cut(block, 0, len(matrix))]
        )
        if not np.isfinite(found).all():
            raise ValueError(
                "the feature maps make features of these samples that are not finite, or too large "
                "to square; rescale the samples, or drop them"
            )
        return found


def learn_maps(blocks: Blocks, approximation: Any, random_state: Any) -> tuple[list, list[int]]:
    """Return one feature map a view, learned from some samples, and the widths of its features."""
    count = max([FIT_SAMPLES, *(SAMPLES_A_LANDMARK * n for n in n_components(approximation))])
    drawn = draw(blocks.n_samples, count)
    some = blocks.take(drawn)
    check_finite(some, drawn)
    maps, widths = [], []
    for p, (name, rows) in enumerate(some.items()):
        map_ = clone(approximation)
        unset = [seed for seed in seeds_of(map_) if map_.get_params()[seed] is None]
        map_.set_params(**dict.fromkeys(unset, _seed(random_state, p) if unset else None))
        try:
            first = map_.fit(rows).transform(rows[:1])
        except ValueError as error:
            raise ValueError(f"View {name!r}: {error}") from error
        if issparse(first):
            raise ValueError(
                f"View {name!r}: {type(map_).__name__} gives sparse features, and their products "
                "are dense; pass a feature map with few, dense columns, such as Nystroem"
            )
        maps.append(map_)
        widths.append(np.asarray(first).shape[1])
    return maps, widths


def seeds_of(map_: Any) -> list[str]:
    """Return the parameters of a feature map, and of the steps of a pipeline, that are seeds."""
    return _parameters(map_, "random_state")


def n_components(map_: Any) -> list[int]:
    """Return the numbers of features that a map, or the steps of a pipeline, are asked for."""
    values = [map_.get_params()[name] for name in _parameters(map_, "n_components")]
    return [int(value) for value in values if isinstance(value, int | np.integer)]


def missed(map_: Any, rows: np.ndarray, F: np.ndarray) -> float:
    """Return the share of a kernel's trace that features of rows miss, NaN where nobody knows."""
    if hasattr(map_, "self_similarity"):
        trace = float(map_.self_similarity(rows).sum())
    elif isinstance(map_, RBFSampler) or (
        isinstance(map_, Nystroem) and map_.kernel in UNIT_DIAGONAL
    ):
        trace = len(rows)
    else:
        return float("nan")
    return 1 - float(np.einsum("ij,ij->", F, F, dtype=np.float64)) / trace if trace else 0.0


def floor_of(name: str, variance: float, mean: Float, center: bool) -> float:
    """Return the squared length below which a sample's features are rounding.

    A view whose features are nothing but rounding is refused.
    """
    length = variance + float(mean @ mean)
    left = variance if center else length
    if not left > CONSTANT * length:
        state = "constant: nothing is left of it after centering" if length else "zero"
        raise ValueError(f"View {name!r} has a kernel that is {state}; leave it out")
    return max(1e-10 * left, CONSTANT * length)


def cut(
    block: dict[str, np.ndarray], start: int, n_columns: int
) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Cut a block into parts whose features are not too large, with their first samples."""
    height = max(FEWEST_ROWS, WORK_BYTES // (8 * n_columns))
    for first in range(0, len(next(iter(block.values()))), height):
        yield {name: rows[first : first + height] for name, rows in block.items()}, start + first


def draw(n_samples: int, count: int, seed: int = 0) -> np.ndarray:
    """Return the numbers of some samples, rising; of all where there are no more."""
    if n_samples <= count:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(seed).choice(n_samples, count, replace=False))


def _parameters(map_: Any, name: str) -> list[str]:
    """Return the parameters of a map that have a name, those of its parts included."""
    return [found for found in map_.get_params() if found.split("__")[-1] == name]


def _seed(random_state: Any, index: int) -> int:
    """Return the seed of one view's feature map."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(np.random.SeedSequence([int(random_state or 0), index]).generate_state(1)[0])
    return int(random_state.randint(2**31))


def _multiply(features: Sequence[np.ndarray], matrix: Float) -> Float:
    """Multiply features, side by side, with a matrix, in their precision."""
    ends = np.cumsum([0, *(F.shape[1] for F in features)])
    return sum(
        F @ matrix[a:b].astype(F.dtype, copy=False)
        for F, (a, b) in zip(features, pairwise(ends), strict=True)
    )


def _unit_rows(F: np.ndarray, floor: float) -> np.ndarray:
    """Return rows of unit length; what is at the very mean has no direction and becomes zero."""
    squared = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    seen = squared > floor
    # What is too large to square must not seem to be nothing.
    scale = np.where(np.isfinite(squared), seen / np.sqrt(np.where(seen, squared, 1)), np.nan)
    return F * scale.astype(F.dtype)[:, None]
