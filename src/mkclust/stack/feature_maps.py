"""Feature maps of views: learned from some samples, applied to the rows of blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from mkclust.data.blocks import Block, Blocks, check_finite, device_bytes
from mkclust.data.distances import squared_norms
from mkclust.linalg import (
    copy_array,
    is_foreign,
    library_and_device,
    namespace,
    precision_of,
    ranges,
    spread_rows,
    to_device,
    zeros,
)
from mkclust.stack.compare import draw
from mkclust.stack.observed import FillRule, rescaling
from mkclust.types import Array, Float

# Feature maps learn from at most this many samples.
FIT_SAMPLES = 20_000

# Learns from some rows of every view the preparation of rows before they are mapped.
Preparer = Callable[[dict[str, Array]], Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedMap:
    """A feature map of rows that are prepared first."""

    preparation: Any
    map_: Any

    def transform(self, rows: Array) -> Array:
        """Return the features of prepared rows."""
        return self.map_.transform(self.preparation.apply(rows))


@dataclass(frozen=True)
class Features:
    """Standardized features of several views, whose products are about the kernels.

    A sample that a view lacks has features of zeros: after centering, zero is the
    average similarity. With ``fill="rescale"`` its other features are also multiplied
    with ``sqrt(V / V_i)``, V_i of the V active views having it, to keep its total
    self-similarity.
    """

    maps: Sequence[Any]  # one fitted feature map per view
    widths: Sequence[int]  # number of columns of each view's features
    # Of their columns; None if they are not centered.
    means: Sequence[Float] | None = None
    # For each view, squared lengths of features below this are rounding; None if
    # features are not scaled to unit length.
    floors: Sequence[float] | None = None
    fill: FillRule = "rescale"
    # The numbers of the views that count when samples are scaled up; None for all.
    active: tuple[int, ...] | None = None

    def explain(self, names: Sequence[str]) -> list[str]:
        """Say in a line per view what is done to rows, and what maps them."""
        lines = []
        for name, map_ in zip(names, self.maps, strict=True):
            rows = getattr(map_, "preparation", "rows as they are")
            own = getattr(map_, "map_", map_)
            lines.append(f"{name}: {rows}; {type(own).__name__}")
        return lines

    def of(self, block: Block) -> list[Array]:
        """Return the features of some samples, view by view, on their device."""
        features = self.of_observed(block)
        if block.observed is None:
            return features
        for p, name in enumerate(block):
            rows = block.index(name)
            if rows is not None:
                features[p] = spread_rows(features[p], rows, block.n_rows, 0.0)
        if self.fill == "zero":
            return features
        active = slice(None) if self.active is None else list(self.active)
        scale = rescaling(block.observed[:, active])
        # The other views stay as they are for samples that only they have.
        scale[scale == 0] = 1
        return [F * to_device(scale, F, precision_of(F))[:, None] for F in features]

    def of_observed(self, block: Mapping[str, Array]) -> list[Array]:
        """Return features of the rows that each view has."""
        features = []
        for p, rows in enumerate(block.values()):
            if not rows.shape[0]:
                shape = (0, self.widths[p])
                features.append(zeros(shape, rows, precision_of(rows)))
                continue
            F = _transform(self.maps[p], rows)
            if self.means is not None:
                F = F - to_device(self.means[p], F, precision_of(F))
            if self.floors is not None:
                F = F * _unit_scale(F, self.floors[p])[:, None]
            features.append(F)
        return features

    def parts(self, block: Block, start: int) -> Iterator[tuple[Block, int]]:
        """Yield parts of a block with features of some MB, and their first samples."""
        n_bytes = device_bytes(next(iter(block.values()))) or 4 * 2**20
        # The features of at least 256 samples are computed together.
        height = max(256, n_bytes // (8 * sum(self.widths)))
        for rows in ranges(block.n_rows, height):
            yield block.part(rows), start + rows.start

    def project(self, block: Block, matrix: Float) -> Array:
        """Multiply the features of some samples with a matrix, (n_columns, b)."""
        ends = np.cumsum([0, *self.widths]).tolist()
        projections = []
        for part, _ in self.parts(block, 0):
            columns = zip(self.of(part), pairwise(ends), strict=True)
            products = [
                F @ to_device(matrix[a:b], F, precision_of(F)) for F, (a, b) in columns
            ]
            projections.append(sum(products))
        xp = namespace(*projections)
        projected = xp.concat(projections)
        if not bool(xp.all(xp.isfinite(projected))):
            raise ValueError(
                "the feature maps make features of these samples that are not finite, "
                "or too large to square; rescale the samples, or drop them"
            )
        return projected


def learn_maps(
    blocks: Blocks,
    approximation: Any,
    random_state: Any,
    fit_samples: int | None = None,
    learn_preparations: Preparer | None = None,
) -> Features:
    """Return a feature map per view, learned from some samples, not standardized."""
    most_landmarks = max([1, *n_components(approximation)])
    # If all samples were landmarks, nothing would seem to be missed.
    count = fit_samples or max(FIT_SAMPLES, 10 * most_landmarks)
    count = min(count, blocks.n_samples)
    sample = draw_rows(blocks, count, fewest=most_landmarks)
    preparations: Mapping[str, Any] = {}
    if learn_preparations is not None:
        preparations = learn_preparations(sample)
    if hasattr(random_state, "randint"):
        random_state = random_state.randint(2**31)
    seed = int(random_state or 0)
    maps = []
    widths = []
    for name, rows in sample.items():
        if name in preparations:
            rows = preparations[name].apply(rows)
        map_ = clone(approximation)
        unset = [seed for seed in seeds_of(map_) if map_.get_params()[seed] is None]
        # The seed of a view is the same whichever other views there are.
        sequence = np.random.SeedSequence([seed, crc32(name.encode())])
        own = sequence.generate_state(1)[0]
        map_.set_params(**dict.fromkeys(unset, int(own)))
        try:
            first = _transform(map_, rows[:1, :], learned_from=rows)
        except ValueError as error:
            n = rows.shape[0]
            lacks = f", observed in {n} of {count} samples" if n < count else ""
            raise ValueError(f"View {name!r}{lacks}: {error}") from error
        if issparse(first):
            raise ValueError(
                f"View {name!r}: {type(map_).__name__} gives sparse features, and "
                "their products are dense; pass a feature map with few, dense columns, "
                "such as Nystroem"
            )
        if name in preparations:
            map_ = PreparedMap(preparations[name], map_)
        maps.append(map_)
        widths.append(int(first.shape[1]))
    return Features(maps, widths)


def draw_rows(
    blocks: Blocks,
    count: int,
    *,
    fewest: int = 1,
    seed: int = 0,
) -> dict[str, Array]:
    """Return finite rows of every view: those that it has of samples drawn from all.

    If a view has fewer of these than `fewest`, or a small share, its own samples are
    drawn.
    """
    numbers = draw(blocks.n_samples, count, seed)
    block = blocks.take(numbers)
    check_finite(block, numbers)
    found = dict(block)
    few = min(len(numbers), max(fewest, 0.1 * count))
    for place, (name, rows) in enumerate(block.items()):
        if rows.shape[0] < few and len(numbers) < blocks.n_samples:
            own = np.flatnonzero(blocks.observed[:, place])
            own = own[draw(len(own), count, seed)]
            more = blocks.take(own)
            check_finite(more, own)
            found[name] = more[name]
        if not found[name].shape[0]:
            raise ValueError(
                f"View {name!r} has no sample: all of its rows are NaN; leave it out."
            )
    return found


def seeds_of(map_: Any) -> list[str]:
    """Return the parameters of a feature map, or of a pipeline, that are seeds."""
    return [
        name for name in map_.get_params() if name.split("__")[-1] == "random_state"
    ]


def n_components(map_: Any) -> list[int]:
    """Return the numbers of features that a map, or steps of a pipeline, shall make."""
    return [
        int(value)
        for name, value in map_.get_params().items()
        if name.split("__")[-1] == "n_components"
        and isinstance(value, int | np.integer)
    ]


def trace_error(map_: Any, rows: Array, F: Array) -> float:
    """Return the share of a kernel's trace that features miss, NaN if not known."""
    if isinstance(map_, PreparedMap):
        return trace_error(map_.map_, map_.preparation.apply(rows), F)
    if not hasattr(map_, "self_similarity"):
        return float("nan")
    lengths = map_.self_similarity(rows)
    trace = float(namespace(lengths).sum(lengths))
    if not trace:
        return 0.0
    return 1 - float(namespace(F).sum(squared_norms(F))) / trace


def _transform(map_: Any, rows: Array, learned_from: Array | None = None) -> Array:
    """Return the features of rows, on their device, after the map has learned."""
    F = None
    try:
        if learned_from is not None:
            # A copy, for a map may keep its training rows, and these may be the
            # caller's array.
            map_.fit(copy_array(learned_from))
        F = map_.transform(rows)
    except TypeError as error:
        if not (is_foreign(rows) or issparse(rows)):
            raise ValueError(str(error)) from error
    given = library_and_device(rows)
    if F is None or (is_foreign(rows) and library_and_device(F) != given):
        given = "sparse" if issparse(rows) else f"one of {given}"
        raise ValueError(
            f"{type(getattr(map_, 'map_', map_)).__name__} computes with dense NumPy "
            f"arrays only, and this is {given}: pass Nystroem of mkclust.kernels, or "
            "the views as dense NumPy arrays"
        )
    if is_foreign(F) or issparse(F):
        return F
    return np.asarray(F)


def _unit_scale(F: Array, floor: float) -> Array:
    """Return factors that scale rows to unit length, zero for samples at the mean."""
    xp = namespace(F)
    squared = squared_norms(F)
    is_long = squared > floor
    scale = xp.where(is_long, 1 / xp.sqrt(xp.where(is_long, squared, 1.0)), 0.0)
    # Features too large to square must not be scaled to zero.
    known = xp.where(xp.isfinite(squared), scale, np.nan)
    return xp.astype(known, F.dtype)
