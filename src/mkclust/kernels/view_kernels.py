"""What is learned from one view, and the kernels of several views computed by rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.data.distances import mean_squared_norm
from mkclust.data.tables import TABLE
from mkclust.kernels.formulas import (
    MEASURES,
    Exponential,
    Formula,
    Measure,
    Points,
    select_points,
)
from mkclust.kernels.kinds import RULES, Rule
from mkclust.kernels.neighbors import (
    BLOCK_ROWS,
    Neighborhoods,
    RowBlocks,
    by_similarity,
    find_neighborhoods,
    lengths_of,
    linked_neighborhoods,
)
from mkclust.kernels.preparations import Preparation
from mkclust.linalg import (
    FactoredMatrix,
    arrays_to_host,
    astype,
    empty,
    is_foreign,
    namespace,
    precision_of,
    row_ranges,
    set_diagonal,
    to_device,
)
from mkclust.linalg.in_triton import triton_module
from mkclust.linalg.threads import in_threads
from mkclust.stack import Source
from mkclust.types import Array, Float


@dataclass(frozen=True, kw_only=True)
class ViewKernels:
    """What is learned from one view: its preparation, its kernels and their neighborhoods."""

    name: str  # name of the view
    view: Any = field(repr=False)  # the training rows
    columns: list[str] | None = field(repr=False)  # their names, if they have names
    fingerprint: str | None  # of training rows in a file
    kind: str  # the name of the rule that the kernels follow
    preparation: Preparation  # applied to rows first
    formulas: tuple[Formula, ...]  # the kernels of prepared rows
    # The measures they are functions of, and the mean squared norm of prepared training
    # rows.
    measures: dict[str, Measure] = field(default_factory=dict)
    scale: float = 1.0
    # The share of neighborhoods in every kernel; 1 if it contains nothing else.
    share: float = 0.0
    neighborhoods: tuple[Neighborhoods | None, ...] = ()  # those of each kernel
    # The row sums of a kernel without its neighborhoods, if they were computed along
    # with these.
    sums: Any = field(default=None, repr=False)

    def learn(self) -> "ViewKernels":
        """Return a copy with scales and measures learned from the training rows."""
        rows = self.prepared(self.view)
        scale = mean_squared_norm(self.name, rows)
        names = dict.fromkeys(formula.measure for formula in self.formulas)
        measures = {each: MEASURES[each].learn(self.name, rows) for each in names}
        nothing = (None,) * len(self.formulas)
        return replace(self, measures=measures, scale=scale, neighborhoods=nothing)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"view": arrays_to_host(self.view)}

    @property
    def rule(self) -> Rule:
        return RULES[self.kind]

    @property
    def kernel_names(self) -> list[str]:
        if len(self.formulas) == 1:
            return [self.name]
        prefix = "" if self.name == TABLE else f"{self.name} "
        return [f"{prefix}{formula.name}" for formula in self.formulas]

    @property
    def median(self) -> float | None:
        """The median dissimilarity of two training rows, if a kernel is as wide as it."""
        return self.measures[self.formulas[0].measure].median

    @property
    def ignores_zeros(self) -> bool:  # whether rows of zeros carry no information
        ignored = [
            self.measures[formula.measure].ignores_zeros for formula in self.formulas
        ]
        return not self.rule.of_pairs and (
            self.preparation.ignores_zeros or all(ignored)
        )

    def prepared(self, rows: Array) -> Array:
        if rows is self.view:
            return self.preparation.apply_to_training(rows)
        return self.preparation.apply(rows)

    def points(
        self, rows: Array, training: dict[str, Points] | None = None
    ) -> dict[str, Points]:
        """Return rows as points by measure; training points for other rows only."""
        prepared, training = self.prepared(rows), training or {}
        measures = self.measures.items()
        return {
            name: each.points(prepared, training.get(name)) for name, each in measures
        }

    def self_similarity(self, rows: Array, precision: str) -> list[Array]:
        """Return every kernel between rows and themselves, (n_rows,) each."""
        prepared, values = self.prepared(rows), []
        for formula in self.formulas:
            own = formula.entries(
                self.measures[formula.measure].compare_with_itself(prepared)
            )
            values.append(astype((1 - self.share) * own + self.share, precision))
        return values

    def with_neighborhoods(self, size: int, share: float) -> "ViewKernels":
        """Find the neighborhoods of the training samples; kernels with the same ones share them."""
        # Kernels that fall with the same distances have the same neighbors.
        keys = [
            each if self.measures[each.measure].is_similarity else each.measure
            for each in self.formulas
        ]
        is_summed = share < 1 and len(self.formulas) == 1 and not is_foreign(self.view)
        sums = np.zeros(self.view.shape[0]) if is_summed else None
        found = {
            key: find_neighborhoods(
                size, self._dissimilarities(formula, self.view, sums)
            )
            for key, formula in dict(zip(keys, self.formulas, strict=True)).items()
        }
        neighborhoods = tuple(found[key] for key in keys)
        return replace(self, share=share, neighborhoods=neighborhoods, sums=sums)

    def _dissimilarities(
        self, formula: Formula, rows: Array, sums: Float | None = None
    ) -> RowBlocks:
        """Return the dissimilarities of rows; those who compute them all also get sums."""
        measure = self.measures[formula.measure]
        known, new = (
            astype(self.prepared(each), "float64") for each in (self.view, rows)
        )
        y = measure.points(known)
        x = y if rows is self.view else measure.points(new, y)
        own = [
            formula.entries(measure.compare_with_itself(each)) for each in (new, known)
        ]
        lengths, known_lengths = map(lengths_of, own)

        def compute(part: slice) -> Array:
            compared = measure.compare(select_points(x, part), y)
            if measure.is_similarity or sums is not None:
                entries = formula.entries(compared)
            if sums is not None:
                sums[part] = entries.sum(axis=1)
            if measure.is_similarity:
                compared = by_similarity(
                    entries / lengths[part][:, None] / known_lengths
                )
            return compared

        parts = row_ranges(rows.shape[0], known.shape[0], known, BLOCK_ROWS)
        return RowBlocks(compute, list(parts), known)

    def kernels(
        self, rows: Array | None, samples: np.ndarray | None, precision: str
    ) -> "list[ComputedKernel]":
        """Return the kernels of rows that may be training samples, or of all of these for None."""
        # Other libraries do not mix number types.
        if rows is not None and is_foreign(rows):
            rows = astype(rows, precision_of(self.view))
        x = y = dict[str, Points]()
        if self.share < 1:
            x = y = self.points(self.view)
            x = y if rows is None else self.points(rows, training=y)
        diagonals: list[Any] = [None] * len(self.formulas)
        if rows is None:
            diagonals = self.self_similarity(self.view, precision)
        kernels, shared = [], dict[Any, Any]({None: None})
        for p, (formula, found) in enumerate(
            zip(self.formulas, self.neighborhoods, strict=True)
        ):
            if found is not None and found not in shared:
                shared[found] = (
                    found.kernel()
                    if rows is None or samples is None
                    else found.cross(self._dissimilarities(formula, rows), samples)
                )
            by = formula.measure
            computed = (
                self.measures[by],
                x.get(by),
                y.get(by),
                shared[found],
                self.share,
            )
            sums = self.sums if rows is None else None
            kernels.append(ComputedKernel(formula, *computed, diagonals[p], sums))
        return kernels

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods that it consists of; None if of more."""
        if self.share == 1:
            return list(self.neighborhoods)
        of_graph = linked_neighborhoods(self.view) if self.kind == "graph" else None
        return [of_graph] * len(self.formulas)

    def explain(self, reason: str | None) -> str:
        """Say what was made of the view, and why, if there is a reason."""
        kind = "" if reason is None else f"{self.kind} ({reason}); "
        start, n_kernels = (
            f"{self.name}: {kind}{self.preparation}; ",
            len(self.formulas),
        )
        kernels = self.formulas[0].name if n_kernels == 1 else f"{n_kernels} kernels"
        width = "" if self.median is None else f", median distance {self.median:.3g}"
        if (found := self.neighborhoods[0]) is not None:
            near = f"shared neighborhoods of {found.size} neighbors"
            kernels = (
                f"{near} by {kernels}" if self.share == 1 else f"{kernels} and {near}"
            )
        return f"{start}{kernels}{width}"


@dataclass(frozen=True, eq=False)
class ComputedKernel:
    """One kernel of a source, computed from points or consisting of neighborhoods."""

    formula: Formula
    measure: Measure = field(repr=False)
    # The points of the samples and of the training samples; None if it consists of
    # neighborhoods.
    x: Points | None = field(repr=False)
    y: Points | None = field(repr=False)
    shared: FactoredMatrix | None = field(repr=False)  # its neighborhoods
    share: float  # their share in the kernel
    # None if the samples are not the training samples.
    diagonal: Any = field(repr=False)
    # Of rows, without neighborhoods, if known.
    sums: Any = field(default=None, repr=False)

    def row_sums(self) -> Float | None:
        """Return the sums of rows, if they are known without computing these."""
        if self.sums is None or self.shared is None:
            return None
        return (1 - self.share) * self.sums + self.share * self.shared.sum(axis=1)


@dataclass(frozen=True, eq=False)
class ComputedKernels(Source):
    """The kernels of some samples against training samples, computed by blocks of rows.

    Every block is computed anew where the views live. The kernels of a view share its
    distances and inner products. Rows of training samples are symmetric up to rounding,
    with an exact diagonal.
    """

    kernels: tuple[ComputedKernel, ...]
    n_samples: int
    n_training: int
    number_type: str  # of the kernels, such as "float64"
    like: Any = field(repr=False)  # an array that says where rows live
    _split: dict[int, Any] = field(default_factory=dict, repr=False)  # see `product`

    @property
    def dtype(self) -> Any:
        return getattr(namespace(self.like), self.number_type)

    @property
    def n_kernels(self) -> int:  # type: ignore[override]
        return len(self.kernels)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n_kernels, self.n_samples, self.n_training

    def diagonal(self) -> Array:
        diagonals = [kernel.diagonal for kernel in self.kernels]
        return namespace(*diagonals).stack(diagonals)

    def sums(self) -> Array | None:
        found = [kernel.row_sums() for kernel in self.kernels]
        known = [each for each in found if each is not None]
        return np.stack(known) if len(known) == len(found) else None

    def entries(
        self, index: int, rows: np.ndarray, columns: np.ndarray
    ) -> Array | None:
        if is_foreign(self.like):
            return None
        (_, tile), *_ = self.only([index])._tiles(rows, columns)
        return tile

    def only(self, indices: Sequence[int]) -> "ComputedKernels":
        return replace(self, kernels=tuple(self.kernels[p] for p in indices))

    def product(self, index: int, X: Array) -> Array | None:
        """Multiply one of the kernels with a thin matrix, (n, b), in float64, without storing it.

        None if the product takes its rows: for samples on the host, in double
        precision, kernels that are not Gaussian, and kernels mixed with neighborhoods.
        """
        module, kernel = triton_module("fused_products", X), self.kernels[index]
        formula = kernel.formula
        if (
            module is None
            or not isinstance(formula, Exponential)
            or formula.measure != "distance"
        ):
            return None
        if kernel.y is None or kernel.x is not kernel.y or kernel.shared is not None:
            return None
        rows = kernel.y[0]
        if precision_of(rows) != "float32":
            return None
        if id(rows) not in self._split:
            self._split[id(rows)] = module.split_points(rows)
        split = self._split[id(rows)]
        return (
            None
            if split is None
            else module.gaussian_products(split, 2 * formula.rate, X)
        )

    def rows(self, start: int, stop: int) -> Array:
        return self._rows_of(np.arange(start, min(stop, self.n_samples)))

    def _some(self, samples: np.ndarray) -> list[Array]:
        return list(self._rows_of(samples))

    def _rows_of(self, samples: np.ndarray) -> Array:
        """Return the rows of some samples, (m, n_rows, n_training)."""
        n_rows, n = len(samples), self.n_training
        out = empty((self.n_kernels, n_rows, n), self.like, self.number_type)

        def write(part: slice) -> None:
            for p, tile in self._tiles(_as_slice(samples[part]), slice(0, n)):
                out[p, part, :] = tile

        in_threads(write, row_ranges(n_rows, n, self.like, BLOCK_ROWS), self.like)
        return out

    def all_rows(self) -> Array:
        """Return the kernels, (m, n_new, n); those of the training samples exactly symmetric."""
        n = self.n_samples
        if any(kernel.diagonal is None for kernel in self.kernels):  # of new samples
            return self.rows(0, n)
        out = empty(self.shape, self.like, self.number_type)
        for rows in row_ranges(n, n, self.like, BLOCK_ROWS):
            for p, tile in self._tiles(rows, slice(rows.start, n)):
                xp, height = namespace(tile), rows.stop - rows.start
                square = tile[:, :height]
                tile[:, :height] = xp.triu(square) + xp.triu(square, k=1).T
                out[p, rows, rows.start :] = tile
                out[p, rows.start :, rows] = tile.T
        return out

    def _tiles(
        self, rows: slice | np.ndarray, columns: slice | np.ndarray
    ) -> Iterator[tuple[int, Array]]:
        """Yield some entries of every kernel, with its index.

        Columns that are a slice begin before the rows do; others are rising numbers.
        """
        made: dict[int, Any] = {}  # what several kernels share
        for p, kernel in enumerate(self.kernels):
            tile: Any = None
            if kernel.x is not None and kernel.y is not None:
                if id(kernel.x) not in made:
                    x, y = (
                        select_points(kernel.x, rows),
                        select_points(kernel.y, columns),
                    )
                    made[id(kernel.x)] = kernel.measure.compare(x, y)
                tile = astype(
                    kernel.formula.entries(made[id(kernel.x)]), self.number_type
                )
            if kernel.shared is not None:
                if id(kernel.shared) not in made:
                    is_all = isinstance(columns, slice) and columns == slice(
                        0, self.n_training
                    )
                    chosen = rows if is_all else (rows, columns)
                    made[id(kernel.shared)] = kernel.shared[chosen]
                tile = self._with_shared(tile, made[id(kernel.shared)], kernel.share)
            if kernel.diagonal is not None:
                _set_own(tile, rows, columns, kernel.diagonal)
            yield p, tile

    def _with_shared(self, tile: Any, shared: Any, share: float) -> Array:
        """Return entries with those of shared neighborhoods as a share, or these alone."""
        if tile is None:
            return to_device(shared.toarray(), self.like, self.number_type)
        if is_foreign(tile):
            added = to_device(shared.toarray(), self.like, self.number_type)
            return (1 - share) * tile + share * added
        mixed = (1 - share) * tile
        shared.add_to(mixed, share)
        return mixed


def _as_slice(numbers: np.ndarray) -> slice | np.ndarray:
    """Return rising numbers without a gap as a slice."""
    first, count = int(numbers[0]), len(numbers)
    is_run = count == numbers[-1] - first + 1 and bool(np.all(np.diff(numbers) == 1))
    return slice(first, first + count) if is_run else numbers


def _set_own(
    tile: Array, rows: slice | np.ndarray, columns: slice | np.ndarray, diagonal: Array
) -> None:
    """Write self-similarities to the entries of samples with themselves."""
    if isinstance(rows, slice) and isinstance(columns, slice):
        square = tile[:, rows.start - columns.start : rows.stop - columns.start]
        set_diagonal(square, diagonal[rows])
        return
    n = diagonal.shape[0]
    numbers, others = (np.arange(n)[each] for each in (rows, columns))
    places = np.minimum(np.searchsorted(others, numbers), len(others) - 1)
    same = np.flatnonzero(others[places] == numbers)
    for place in same.tolist() if is_foreign(tile) else []:
        tile[place, int(places[place])] = diagonal[int(numbers[place])]
    if not is_foreign(tile):
        tile[same, places[same]] = diagonal[numbers[same]]
