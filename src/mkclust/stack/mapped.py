"""Features of views: one map a view, learned from some samples, and how they are standardized."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler

from mkclust.linalg import (
    copy_array,
    is_foreign,
    namespace,
    place,
    precision_of,
    ranges,
    select,
    to_device,
    zeros,
)
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.samples.blocks import (
    Blocks,
    check_finite,
    device_bytes,
    observed_samples,
    seen_rows,
)
from mkclust.samples.distances import squared_norms
from mkclust.stack.sample_map import FillRule, rescaling
from mkclust.types import Array, Float

# Feature maps learn from at most so many samples, but from so many times their landmarks: of a
# sample that is all landmarks, nothing would seem to be missed.
FIT_SAMPLES, SAMPLES_A_LANDMARK = 20_000, 10
# Samples on which the trace of a kernel is compared with that of its features.
ERROR_SAMPLES = 2_000
# Of wide features few rows are computed at a time: what they take on the host, and how many at
# least.
WORK_BYTES, FEWEST_ROWS = 4 << 20, 256
# Kernels of scikit-learn's own Nystroem that are one between a sample and itself.
UNIT_DIAGONAL = ("rbf", "laplacian")
# A view whose features vary by less than this share of their squared length is constant.
CONSTANT = 1e-26
# Of a view that has fewer than this share of the samples drawn, others are drawn that it has.
SCARCE = 0.1
# What learns from some rows of every view what is done to rows before they are mapped.
LearnPreparations = Callable[[dict[str, Array]], Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedMap:
    """A feature map of rows to which something is done first.

    Attributes
    ----------
    preparation : object
        Its ``apply`` takes rows to prepared ones, where they live.
    map_ : transformer
        The feature map of these.
    """

    preparation: Any
    map_: Any

    def transform(self, rows: Array) -> Array:
        """Return the features of rows."""
        return self.map_.transform(self.preparation.apply(rows))


@dataclass(frozen=True)
class Features:
    """Standardized features of several views: what approximates, or is, their kernels.

    A sample that a view lacks, whose row there is all NaN, has features of zeros: similarities that
    are missing count as zero, which after centering is the average one.

    Attributes
    ----------
    maps : sequence of transformers
        One fitted feature map a view.
    means : sequence of ndarray of shape (n_columns,), or None
        Column means of each view's features; None where they are not centered.
    floors : sequence of float, or None
        The squared length of a sample's features below which it is rounding, for each view; None
        where features are not scaled to unit length.
    fill : {"zero", "rescale"}
        What becomes of a sample that some of the V views lack: features of zeros there ("zero"), or
        its other features times ``sqrt(V / V_i)`` besides, with V_i the views that have it, so that
        its similarity to itself, summed over the views, is that of a complete one ("rescale").
    widths : sequence of int or None
        Number of columns of each view's features; asked for where a view has no row of a block.
    by_factors : bool
        Whether features that are products themselves are projected without being made first, which
        rounds otherwise: old and new samples are to be projected by the same rule.
    """

    maps: Sequence[Any]
    means: Sequence[Float] | None = None
    floors: Sequence[float] | None = None
    fill: FillRule = "rescale"
    widths: Sequence[int] | None = None
    by_factors: bool = False

    def of(self, block: dict[str, Array]) -> list[Array]:
        """Return the standardized features of some samples, view by view, where these live."""
        return self.of_with_scales(block)[0]

    def of_with_scales(self, block: dict[str, Array]) -> tuple[list[Array], list[Array]]:
        """Return the same, and what centered features of every sample were multiplied by."""
        features, scales, seen = self._standardized(block)
        if all(rows is None for rows in seen):
            return features, scales
        features = spread_features(features, seen, block, 0.0)
        columns = spread_features([scale[:, None] for scale in scales], seen, block, 0.0)
        scales = [column[:, 0] for column in columns]
        factors = self._factors(seen, features[0].shape[0])
        if factors is None:
            return features, scales
        features = [F * to_same_device(factors, F)[:, None] for F in features]
        return features, [scale * to_same_device(factors, scale) for scale in scales]

    def of_seen(self, block: dict[str, Array]) -> tuple[list[Array], list[np.ndarray | None]]:
        """Return the standardized features of those rows that each view has, and their numbers.

        Numbers are None where a view has all rows of the block.
        """
        features, _, seen = self._standardized(block)
        return features, seen

    def _standardized(
        self, block: dict[str, Array]
    ) -> tuple[list[Array], list[Array], list[np.ndarray | None]]:
        """Return the same, with what centered features of these rows were multiplied by between."""
        seen = [seen_rows(rows) for rows in block.values()]
        views = zip(self.maps, block.values(), seen, strict=True)
        parts = [
            self._of_rows(p, map_, rows if numbers is None else select(rows, numbers))
            for p, (map_, rows, numbers) in enumerate(views)
        ]
        return [F for F, _ in parts], [scale for _, scale in parts], seen

    def subset(self, indices: Sequence[int]) -> "Features":
        """Return the features of some of the views."""
        names = ("maps", "means", "floors", "widths")
        of_all: dict[str, Any] = {name: getattr(self, name) for name in names}
        some: dict[str, Any] = {
            name: None if parts is None else [parts[p] for p in indices]
            for name, parts in of_all.items()
        }
        return replace(self, **some)

    def _of_rows(self, p: int, map_: Any, rows: Array) -> tuple[Array, Array]:
        """Return the standardized features of rows that a view has, which may be none.

        And what they were multiplied by once they were centered.
        """
        if not rows.shape[0] and self.widths is not None:
            empty = zeros((0, self.widths[p]), rows, precision_of(rows))
            return empty, zeros((0,), empty, precision_of(rows))
        return self._standardize(p, _transform(map_, rows))

    def _standardize(self, p: int, F: Array) -> tuple[Array, Array]:
        """Return features of a view that are centered and scaled, and by what."""
        if self.means is not None:
            F = F - to_same_device(self.means[p], F)
        if self.floors is None:
            return F, zeros((F.shape[0],), F, precision_of(F)) + 1.0
        scale = _unit_scale(F, self.floors[p])
        return F * scale[:, None], scale

    def project(self, block: dict[str, Array], matrix: Float, scales: Float | None = None) -> Array:
        """Multiply the standardized features of some samples, side by side, with a matrix.

        Parameters
        ----------
        block : dict of str to array of shape (n_rows, n_features)
            The samples.
        matrix : ndarray of shape (n_columns, n_vectors)
            What their features are multiplied with.
        scales : ndarray of shape (at least n_rows, n_views), default=None
            What `of_with_scales` says of these samples, where it was asked before.

        Returns
        -------
        array of shape (n_rows, n_vectors)
            Where the samples live.
        """
        projections = []
        for part, start in cut(block, 0, len(matrix)):
            if self.by_factors:
                known = None if scales is None else scales[start:]
                projections.append(self._project_factors(part, matrix, known))
            else:
                projections.append(_multiply(self.of(part), matrix))
        return _finite_projections(projections)

    def _project_factors(
        self, part: dict[str, Array], matrix: Float, scales: Float | None
    ) -> Array:
        """Do so for features that are products, of which none is made where scales are known."""
        seen, first = [seen_rows(rows) for rows in part.values()], 0
        factors = self._factors(seen, next(iter(part.values())).shape[0])
        projections: list[Array] = []
        for p, (rows, numbers) in enumerate(zip(part.values(), seen, strict=True)):
            factor, mixing = factors_of(self.maps[p])
            assert mixing is not None
            columns = matrix[first : first + mixing.shape[1]]
            first += mixing.shape[1]
            own = rows if numbers is None else select(rows, numbers)
            if not own.shape[0]:
                projections.append(zeros((0, matrix.shape[1]), own, precision_of(own)))
                continue
            S = _transform(factor, own)
            if scales is None:
                scale = self._standardize(p, S @ to_same_device(mixing, S))[1]
                if factors is not None:
                    scale = scale * to_same_device(factors[all_rows(numbers, len(factors))], S)
            else:
                scale = to_same_device(scales[all_rows(numbers, rows.shape[0]), p], S)
            projection = S @ to_same_device(mixing @ columns, S)
            if self.means is not None:
                projection = projection - to_same_device(self.means[p] @ columns, S)
            projections.append(projection * scale[:, None])
        return sum(spread_features(projections, seen, part, 0.0))

    def _factors(self, seen: Sequence[np.ndarray | None], n_rows: int) -> Float | None:
        """Return what makes up for views that lack samples; None where nothing does."""
        if self.fill == "zero" or all(numbers is None for numbers in seen):
            return None
        observed = [np.isin(np.arange(n_rows), all_rows(rows, n_rows)) for rows in seen]
        return rescaling(np.stack(observed, axis=1))


@dataclass(frozen=True)
class Factor:
    """The map of which the features of another are the products with a matrix.

    Attributes
    ----------
    map_ : transformer
        The map whose features are products.
    """

    map_: Any

    def transform(self, rows: Array) -> Array:
        """Return what is multiplied with the matrix."""
        return self.map_.similarities(rows)


def factors_of(map_: Any) -> tuple[Any, Float | None]:
    """Return a map, and the matrix whose products with what it makes are features of another.

    None, and the map itself, where there is no such matrix.
    """
    if isinstance(map_, PreparedMap):
        factor, mixing = factors_of(map_.map_)
        return (map_ if mixing is None else PreparedMap(map_.preparation, factor)), mixing
    # Whoever inherits these, and has a transform of its own, makes other features of them.
    owners = [_owner(type(map_), name) for name in ("transform", "similarities", "mixing")]
    if owners[1] is None or owners.count(owners[0]) < len(owners):
        return map_, None
    return Factor(map_), map_.mixing


def _owner(cls: type, name: str) -> type | None:
    """Return the class that a member is inherited from."""
    return next((each for each in cls.__mro__ if name in vars(each)), None)


def _finite_projections(parts: Sequence[Array]) -> Array:
    """Return projections below each other, having made sure that they are finite."""
    xp = namespace(*parts)
    projections = xp.concat(list(parts))
    if not bool(xp.all(xp.isfinite(projections))):
        raise ValueError(
            "the feature maps make features of these samples that are not finite, or too large "
            "to square; rescale the samples, or drop them"
        )
    return projections


def learn_maps(
    blocks: Blocks,
    approximation: Any,
    random_state: Any,
    fit_samples: int | None = None,
    learn_preparations: LearnPreparations | None = None,
) -> tuple[list, list[int]]:
    """Return one feature map a view, learned from some samples, and the widths of its features."""
    count = n_fit_samples(approximation) if fit_samples is None else fit_samples
    sample = draw_rows(blocks, count, fewest=max([1, *n_components(approximation)]))
    preparations = {} if learn_preparations is None else learn_preparations(sample)
    maps, widths, seed = [], [], _whole_seed(random_state)
    for name, rows in sample.items():
        if name in preparations:
            rows = preparations[name].apply(rows)
        map_ = clone(approximation)
        unset = [seed for seed in seeds_of(map_) if map_.get_params()[seed] is None]
        map_.set_params(**dict.fromkeys(unset, _seed_of_view(seed, name)))
        try:
            # A map may keep what it learns from; of all samples, that is the caller's array.
            is_own = rows.shape[0] == count < blocks.n_samples
            training_rows = rows if is_own else copy_array(rows)
            first = map_.fit(training_rows).transform(rows[:1, :])
            _check_place(map_, rows, first)
        except (ValueError, TypeError) as error:
            if isinstance(error, TypeError) and not (is_foreign(rows) or issparse(rows)):
                raise
            message = error if isinstance(error, ValueError) else _unfit(map_, rows)
            n, n_drawn = rows.shape[0], min(count, blocks.n_samples)
            lacks = f", observed in {n} of {n_drawn} samples" if n < n_drawn else ""
            raise ValueError(f"View {name!r}{lacks}: {message}") from error
        if issparse(first):
            raise ValueError(
                f"View {name!r}: {type(map_).__name__} gives sparse features, and their products "
                "are dense; pass a feature map with few, dense columns, such as Nystroem"
            )
        maps.append(PreparedMap(preparations[name], map_) if name in preparations else map_)
        widths.append(int(first.shape[1]))
    return maps, widths


def draw_rows(blocks: Blocks, count: int, *, fewest: int = 1, seed: int = 0) -> dict[str, Array]:
    """Return rows of every view to learn from: those that it has of samples drawn from all.

    Parameters
    ----------
    blocks : Blocks
        The samples.
    count : int
        How many to draw.
    fewest : int, default=1
        Where a view has fewer of these, or a small share, samples are drawn that it has.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    dict of str to array of shape (n_rows, n_features)
        Finite rows, by the names of the views; at least one.
    """
    names, numbers = blocks.names, draw(blocks.n_samples, count, seed)
    if len(names) == 1:  # which has all samples
        seen = {name: (rows, numbers) for name, rows in blocks.take(numbers).items()}
    else:
        seen = blocks.take_seen(numbers)
    few = min(len(numbers), max(fewest, SCARCE * count))
    if len(numbers) < blocks.n_samples and any(len(found) < few for _, found in seen.values()):
        observed = observed_samples(blocks)
        for name, own in zip(names, map(np.flatnonzero, observed.T), strict=True):
            if len(seen[name][1]) < few:
                seen[name] = blocks.take_seen(own[draw(len(own), count, seed)])[name]
    return {name: _finite_rows(name, *each) for name, each in seen.items()}


def _finite_rows(name: str, rows: Array, numbers: np.ndarray) -> Array:
    """Return rows of a view, of which there must be one, having made sure that they are finite."""
    if not len(numbers):
        raise ValueError(f"View {name!r} has no sample: all of its rows are NaN; leave it out.")
    check_finite({name: rows}, numbers)
    return rows


def n_fit_samples(map_: Any) -> int:
    """Return how many samples a feature map learns from."""
    return max([FIT_SAMPLES, *(SAMPLES_A_LANDMARK * n for n in n_components(map_))])


def seeds_of(map_: Any) -> list[str]:
    """Return the parameters of a feature map, and of the steps of a pipeline, that are seeds."""
    return _parameters(map_, "random_state")


def n_components(map_: Any) -> list[int]:
    """Return the numbers of features that a map, or the steps of a pipeline, are asked for."""
    values = [map_.get_params()[name] for name in _parameters(map_, "n_components")]
    return [int(value) for value in values if isinstance(value, int | np.integer)]


def missed_trace_share(map_: Any, rows: Array, F: Array) -> float:
    """Return the share of a kernel's trace that features of rows miss, NaN where nobody knows."""
    if isinstance(map_, PreparedMap):
        rows, map_ = map_.preparation.apply(rows), map_.map_
    if hasattr(map_, "self_similarity"):
        lengths = map_.self_similarity(rows)
        trace = float(namespace(lengths).sum(lengths))
    elif isinstance(map_, RBFSampler) or (
        isinstance(map_, Nystroem) and map_.kernel in UNIT_DIAGONAL
    ):
        trace = rows.shape[0]
    else:
        return float("nan")
    return 1 - float(sum_of_squares(F)) / trace if trace else 0.0


def all_rows(numbers: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Return the numbers of rows, where None stands for all of them."""
    return np.arange(n_rows) if numbers is None else numbers


def spread_features(
    features: Sequence[Array],
    seen: Sequence[np.ndarray | None],
    block: dict[str, Array],
    value: float,
) -> list[Array]:
    """Return a row of features for every sample of a block, of one value where a view lacks it."""
    n_rows = next(iter(block.values())).shape[0]
    return [
        F if numbers is None else spread_rows(F, numbers, n_rows, value)
        for F, numbers in zip(features, seen, strict=True)
    ]


def floor_of(name: str, variance: float, mean: Float, center: bool) -> float:
    """Return the squared length below which a sample's features are rounding.

    A view whose features are nothing but rounding is refused.
    """
    length = variance + float(mean @ mean)
    left = variance if center else length
    if not left > CONSTANT * length:
        raise ValueError(f"View {name!r} has a kernel that is {nothing_left(length)} leave it out")
    return float(max(1e-10 * left, CONSTANT * length))


def nothing_left(size: float) -> str:
    """Say in what a kernel of entries of about some size is as good as none."""
    if not size:
        return "zero;"
    return (
        f"constant up to rounding: its entries are about {size:.3g}, and nothing is left of it "
        "after centering. If it is made of columns with a large offset, such as values of 1e8 "
        "that differ by 1, subtract the offset from the columns; else"
    )


def cut(
    block: dict[str, Array], start: int, n_columns: int
) -> Iterator[tuple[dict[str, Array], int]]:
    """Cut a block into parts whose features are not too large, with their first samples."""
    like = next(iter(block.values()))
    for rows in ranges(like.shape[0], rows_at_once(n_columns, like)):
        yield {name: view[rows, :] for name, view in block.items()}, start + rows.start


def rows_at_once(n_columns: int, like: Any) -> int:
    """Return of how many samples to compute so many features at a time, where `like` lives."""
    size = device_bytes(like)
    return max(FEWEST_ROWS, (WORK_BYTES if size is None else size) // (8 * n_columns))


def to_same_device(learned: Float, F: Array) -> Array:
    """Return what was learned where features live, in their precision."""
    return namespace(F).astype(to_device(learned, F), F.dtype, copy=False)


def sum_of_squares(F: Array) -> Array:
    """Return the sum of all squared entries, in float64 and where they live."""
    return namespace(F).sum(squared_norms(F)) if F.shape[0] else zeros((), F)


def draw(n_samples: int, count: int, seed: int = 0) -> np.ndarray:
    """Return the numbers of some samples, rising; of all where there are no more."""
    if n_samples <= count:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(seed).choice(n_samples, count, replace=False))


def _parameters(map_: Any, name: str) -> list[str]:
    """Return the parameters of a map that have a name, those of its parts included."""
    return [parameter for parameter in map_.get_params() if parameter.split("__")[-1] == name]


def _whole_seed(random_state: Any) -> int:
    """Return the seed of a model as a whole number, drawn if it is a generator."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0)
    return int(random_state.randint(2**31))


def _seed_of_view(seed: int, name: str) -> int:
    """Return the seed of one view's feature map: the same whichever views are beside it."""
    return int(np.random.SeedSequence([seed, crc32(name.encode())]).generate_state(1)[0])


def _transform(map_: Any, rows: Array) -> Array:
    """Return the features of rows, where the rows live."""
    if isinstance(map_, PreparedMap):
        rows, map_ = map_.preparation.apply(rows), map_.map_
    if not is_foreign(rows):
        return np.asarray(map_.transform(rows))
    try:
        F = map_.transform(rows)
    except TypeError as error:
        raise ValueError(_unfit(map_, rows)) from error
    _check_place(map_, rows, F)
    return F


def _check_place(map_: Any, rows: Array, F: Any) -> None:
    """Refuse features that live elsewhere than the rows of which they are made."""
    if is_foreign(rows) and place(F) != place(rows):
        raise ValueError(_unfit(map_, rows))


def _unfit(map_: Any, rows: Array) -> str:
    """Return that a map serves NumPy's arrays only, and what to do about it."""
    if issparse(rows):
        return (
            f"{type(map_).__name__} takes no sparse rows, as these are: pass Nystroem or "
            "RandomFourier of mkclust.kernels, or a pipeline that begins with TruncatedSVD"
        )
    return (
        f"{type(map_).__name__} computes with NumPy arrays only, and this is one of {place(rows)}: "
        "pass Nystroem, RandomFourier or Linear of mkclust.kernels, or the views as NumPy arrays"
    )


def _multiply(features: Sequence[Array], matrix: Float) -> Array:
    """Multiply features, side by side, with a matrix, in their precision."""
    ends = np.cumsum([0, *(F.shape[1] for F in features)])
    parts = zip(features, pairwise(ends), strict=True)
    return sum(F @ to_same_device(matrix[a:b], F) for F, (a, b) in parts)


def _unit_scale(F: Array, floor: float) -> Array:
    """Return what makes rows those of unit length, or zero: what is at the very mean has none."""
    xp, squared = namespace(F), squared_norms(F)
    seen = squared > floor
    scale = xp.where(seen, 1 / xp.sqrt(xp.where(seen, squared, 1.0)), 0.0)
    # What is too large to square must not seem to be nothing.
    scale = xp.where(xp.isfinite(squared), scale, np.nan)
    return xp.astype(scale, F.dtype)
