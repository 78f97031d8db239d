"""What is learned from one view, and the kernels of several views computed by rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.data.distances import drawn_rows, mean_squared_norm, median_distance, middle
from mkclust.kernels.formulas import Closeness, Formula, Gaussian, Points, Units, select_points
from mkclust.kernels.kinds import RULES, ChosenRule, Rule
from mkclust.kernels.neighbors import (
    Neighborhoods,
    SimilarityLists,
    join_by_similarity,
    join_nearest,
    lengths_of,
    linked_neighborhoods,
    nearest_neighborhoods,
)
from mkclust.kernels.preparations import Preparation
from mkclust.linalg import (
    arrays_to_host,
    astype,
    empty,
    free_bytes,
    is_foreign,
    namespace,
    precision_of,
    ranges,
    select,
    set_diagonal,
    to_device,
    to_host,
)
from mkclust.linalg.in_triton import written_in_triton
from mkclust.linalg.memory import require_memory
from mkclust.linalg.sparse_rows import rows_from
from mkclust.stack import Source
from mkclust.types import Array

# Entries of one kernel that are computed at a time on the host: few enough for a core's cache.
TILE_ENTRIES = 2**17
# But at least so many rows, or products of matrices are slow.
TILE_ROWS = 16
# What one tile of one kernel takes on a device, in bytes; about four are in use at a time.
TILE_BYTES_ON_DEVICE = 2**28
# With fewer samples, compiling a product that stores nothing takes longer than it saves.
FEWEST_FUSED = 2**14


@dataclass(frozen=True, kw_only=True)
class ViewKernels:
    """What is learned from one view: its preparation, its kernels and their neighborhoods."""

    name: str  # name of the view
    view: Any = field(repr=False)  # the training rows
    kind: str  # the name of the rule that the kernels follow
    preparation: Preparation  # what is done to rows first
    formulas: tuple[Formula, ...]  # the kernels of prepared rows, with what they learned
    units: Units  # origin, median distance and mean squared norm of the prepared training rows
    median: float | None  # the median dissimilarity, if a kernel is as wide as it
    size: int | None = None  # number of neighbors, if kernels contain neighborhoods
    share: float = 0.0  # the share of neighborhoods in every kernel; 1 if it contains nothing else
    neighborhoods: tuple[Neighborhoods, ...] = ()  # one per kernel, or none at all

    @classmethod
    def learn(
        cls, name: str, view: Array, chosen: ChosenRule, bank_formulas: tuple[Formula, ...]
    ) -> "ViewKernels":
        """Learn from the training rows of a view, without neighborhoods."""
        preparation = chosen.learn(view)
        rows, median = preparation.apply_to_training(view), None
        scale, origin = mean_squared_norm(name, rows), middle(rows)
        own, precision = chosen.rule.formula, precision_of(rows) if is_foreign(rows) else "float64"
        formulas = bank_formulas if own is None else (own,)
        if any(isinstance(formula, Gaussian) for formula in formulas):
            # Only the rows that are drawn anyway are brought to float64 on a device.
            some = drawn_rows(rows) if is_foreign(rows) else rows
            median = median_distance(name, rows_from(origin, some))
        formulas = tuple(formula.learn(name, rows, origin) for formula in formulas)
        return cls(
            name=name,
            view=view,
            kind=chosen.rule.kind,
            preparation=preparation,
            formulas=formulas,
            units=Units(origin, median or 1.0, scale, precision),
            median=median or formulas[0].median,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they are."""
        return vars(self) | {"view": arrays_to_host(self.view)}

    @property
    def rule(self) -> Rule:
        """The rule that the kernels follow."""
        return RULES[self.kind]

    @property
    def ignores_zeros(self) -> bool:
        """Whether rows of zeros say nothing."""
        return not self.rule.of_pairs and (
            self.preparation.ignores_zeros
            or all(formula.ignores_zeros for formula in self.formulas)
        )

    def prepared(self, rows: Array) -> Array:
        """Return rows as the formulas take them."""
        if rows is self.view:
            return self.preparation.apply_to_training(rows)
        return self.preparation.apply(rows)

    def points(self, rows: Array, training: dict[str, Points] | None = None) -> dict[str, Points]:
        """Return rows as points by measure; training points for other rows only."""
        prepared, training = self.prepared(rows), training or {}
        return {
            measure: formula.points(prepared, self.units, training.get(measure))
            for measure, formula in {each.measure: each for each in self.formulas}.items()
        }

    def self_similarity(self, X: Array, precision: str) -> Array:
        """Return the kernels between rows and themselves, (n_kernels, n_rows)."""
        prepared, share = self.prepared(X), self.share
        values = [
            astype((1 - share) * each.self_similarity(prepared, self.units) + share, precision)
            for each in self.formulas
        ]
        return namespace(*values).stack(values)

    def with_neighborhoods(self, size: int, share: float) -> "ViewKernels":
        """Find the neighborhoods of the training samples; kernels with the same ones share them."""
        found = dict[Any, Neighborhoods]()
        for index in range(len(self.formulas)):
            key = self._search(index)
            if key not in found:
                found[key] = self._find(index, size)
        every = tuple(found[self._search(index)] for index in range(len(self.formulas)))
        return replace(self, size=size, share=share, neighborhoods=every)

    def _search(self, index: int) -> Any:
        """Return what tells kernels with the same neighbors from others."""
        by = "given" if self.kind == "distances" else self.formulas[index].neighbors_by
        return index if by == "entries" else by

    def _find(self, index: int, size: int) -> Neighborhoods:
        """Find the neighborhoods of the training samples by one kernel."""
        if (by := self._search(index)) in ("distance", "cosine"):
            return nearest_neighborhoods(self.prepared(self.view), size, cosine=by == "cosine")
        kernel = ComputedKernels.of([self._alone(index)], None, precision_of(self.view))
        lists = SimilarityLists(size, lengths_of(to_host(kernel.diagonal()[0, :])))
        for _, blocks in kernel.blocks():
            lists.add(blocks[0])
        return lists.result()

    def _alone(self, index: int) -> "ViewKernels":
        """Return the kernel that neighbors are found by, without its neighborhoods."""
        given = self.kind == "distances"
        formula = Closeness(self.median or 1.0) if given else self.formulas[index]
        return replace(self, formulas=(formula,), neighborhoods=(), share=0.0)

    def shared(self, rows: Array | None, samples: np.ndarray | None) -> tuple[Any, ...]:
        """Return the similarities by neighborhoods, one sparse matrix per kernel.

        New rows, None for the training rows, come with the training samples that they are, or -1.
        """
        made: dict[int, Any] = {}
        for index, each in enumerate(self.neighborhoods):
            if id(each) not in made:
                made[id(each)] = (
                    each.kernel()
                    if rows is None or samples is None
                    else each.cross(*self._join(index, rows), samples)
                )
        return tuple(made[id(each)] for each in self.neighborhoods)

    def _join(self, index: int, rows: Array) -> tuple[Any, Any]:
        """Return whose neighborhoods new rows join by a kernel, and who is in their own."""
        each, size, by = self.neighborhoods[index], self.size, self._search(index)
        assert size is not None
        if by in ("distance", "cosine"):
            training, new = self.prepared(self.view), self.prepared(rows)
            return join_nearest(each, size, new, training, cosine=by == "cosine")
        alone, precision = self._alone(index), precision_of(self.view)
        lengths = (
            lengths_of(to_host(alone.self_similarity(some, precision)[0, :]))
            for some in (rows, self.view)
        )
        kernel = ComputedKernels.of([alone], [rows], precision)
        blocks = (blocks[0] for _, blocks in kernel.blocks())
        return join_by_similarity(each, size, blocks, *lengths)

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods that it consists of; None if of more."""
        if self.share == 1:
            return list(self.neighborhoods)
        of_graph = linked_neighborhoods(self.view) if self.kind == "graph" else None
        return [of_graph] * len(self.formulas)

    def explain(self, rules: Any, asked: Any) -> str:
        """Say what was made of the view, and why, given the rules and what was asked for."""
        asked_for = asked is not None and getattr(asked, "kernel", "") != "auto"
        reason = "asked for" if asked_for else self.rule.why
        kind = f"{self.kind} ({reason}); " if rules is not None else ""
        start, n_kernels = f"{self.name}: {kind}{self.preparation}; ", len(self.formulas)
        kernels = str(self.formulas[0]) if n_kernels == 1 else f"{n_kernels} kernels"
        width = "" if self.median is None else f", median distance {self.median:.3g}"
        if self.neighborhoods:
            near = f"shared neighborhoods of {self.size} neighbors"
            if self.kind == "distances":
                return f"{start}{near} by these distances"
            kernels = f"{near} by {kernels}" if self.share == 1 else f"{kernels} and {near}"
        return f"{start}{kernels}{width}"


class KernelList(list[Any]):
    """Kernels one after another, each stored in its own way: arrays, sparse or factored matrices.

    Those of training samples are square and symmetric.
    """

    def __init__(self, matrices: Sequence[Any], of_training_samples: bool = False):
        super().__init__(matrices)
        self.of_training_samples = of_training_samples

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of kernels, of samples and of training samples."""
        return (len(self), *self[0].shape)


@dataclass(frozen=True, eq=False)
class ComputedKernel:
    """One kernel of a source, computed from points or consisting of neighborhoods."""

    formula: Formula
    # The points of the samples and of the training samples; None if it consists of neighborhoods.
    x: Points | None = field(repr=False)
    y: Points | None = field(repr=False)
    shared: Any = field(default=None, repr=False)  # its neighborhoods
    share: float = 0.0  # their share in the kernel


@dataclass(frozen=True, eq=False)
class ComputedKernels(Source):
    """The kernels of some samples against training samples, computed by blocks of rows.

    Every block is computed anew from the views, so that memory is as long as the views and not
    their square. The kernels of a view share its distances and its inner products. Rows are
    computed where the views live. Rows of the training samples are symmetric up to rounding, with
    an exact diagonal.
    """

    kernels: tuple[ComputedKernel, ...]
    n_samples: int
    n_training: int
    number_type: str  # of the kernels, such as "float64"
    like: Any = field(repr=False)  # an array that says where rows live
    # The diagonals; None if the samples are not the training samples.
    self_similarities: Any = field(default=None, repr=False)
    _split: dict[int, Any] = field(default_factory=dict, repr=False)  # see `product`

    @classmethod
    def of(
        cls,
        views: Sequence[Any],
        new_rows: Sequence[Array] | None,
        precision: str,
        samples: np.ndarray | None = None,
    ) -> "ComputedKernels":
        """Return the kernels of `ViewKernels`: of the training rows, or of new rows of each view.

        `samples` says which training samples new rows are, -1 for none.
        """
        kernels: list[ComputedKernel] = []
        for number, view in enumerate(views):
            rows = None if new_rows is None else new_rows[number]
            x = y = dict[str, Points]()
            if view.share < 1:
                x = y = view.points(view.view)
                x = y if rows is None else view.points(rows, training=y)
            shared = view.shared(rows, samples) or (None,) * len(view.formulas)
            kernels += [
                ComputedKernel(each, x.get(each.measure), y.get(each.measure), part, view.share)
                for each, part in zip(view.formulas, shared, strict=True)
            ]
        n_rows = n = views[0].view.shape[0]
        diagonals = None
        if new_rows is None:
            parts = [view.self_similarity(view.view, precision) for view in views]
            diagonals = namespace(*parts).concat(parts)
        else:
            n_rows = new_rows[0].shape[0]
        return cls(tuple(kernels), n_rows, n, precision, views[0].view[:1, :], diagonals)

    @property
    def of_training_samples(self) -> bool:
        """Whether the samples are the training samples: then the kernels are symmetric."""
        return self.self_similarities is not None

    @property
    def dtype(self) -> Any:
        """Number type of the kernels, as their library names it."""
        return getattr(namespace(self.like), self.number_type)

    @property
    def n_kernels(self) -> int:  # type: ignore[override]
        """Number of kernels, m."""
        return len(self.kernels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of kernels, of samples and of training samples."""
        return self.n_kernels, self.n_samples, self.n_training

    def diagonal(self) -> Array:
        """Return the self-similarities, (m, n)."""
        assert self.self_similarities is not None
        return self.self_similarities

    def only(self, indices: Sequence[int]) -> "ComputedKernels":
        """Return some of the kernels; the others are not computed."""
        diagonals = self.self_similarities
        if diagonals is not None:
            diagonals = select(diagonals, np.asarray(indices, np.int64))
        kernels = tuple(self.kernels[p] for p in indices)
        return replace(self, kernels=kernels, self_similarities=diagonals)

    def product(self, index: int, X: Array) -> Array | None:
        """Multiply one of the kernels with a thin matrix, (n, b), in float64, without storing it.

        None if the product takes its rows: for samples on the host, in double precision, kernels
        that are not Gaussian, and kernels mixed with neighborhoods.
        """
        kernel = self.kernels[index]
        fused = written_in_triton("fused_products", X)
        if fused is None or not isinstance(kernel.formula, Gaussian) or kernel.shared is not None:
            return None
        assert kernel.y is not None
        rows = kernel.y[0]
        is_large_single = rows.shape[0] >= FEWEST_FUSED and precision_of(rows) == "float32"
        if kernel.x is not kernel.y or not is_large_single:
            return None
        if id(rows) not in self._split:
            self._split[id(rows)] = fused.split_points(rows)
        split = self._split[id(rows)]
        if split is None:
            return None
        return fused.gaussian_products(split, kernel.formula.width**-2, X)

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from start to stop of every kernel, (m, stop - start, n)."""
        stop = min(stop, self.n_samples)
        out = empty((self.n_kernels, stop - start, self.n_training), self.like, self.number_type)
        for some in ranges(stop - start, self._tile_rows()):
            rows = slice(start + some.start, start + some.stop)
            for p, tile in self._tiles(rows, slice(0, self.n_training)):
                out[p, some, :] = tile
        return out

    def all_rows(self) -> Array:
        """Return the kernels, (m, n_new, n); those of the training samples exactly symmetric."""
        n = self.n_samples
        if not self.of_training_samples:
            return self.rows(0, n)
        out = empty(self.shape, self.like, self.number_type)
        for rows in ranges(n, self._tile_rows()):
            for p, tile in self._tiles(rows, slice(rows.start, n)):
                xp, height = namespace(tile), rows.stop - rows.start
                square = tile[:, :height]
                tile[:, :height] = xp.triu(square) + xp.triu(square, k=1).T
                out[p, rows, rows.start :] = tile
                out[p, rows.start :, rows] = tile.T
        return out

    def entries(self, who: str) -> Array:
        """Write the kernels out, (m, n, n), for somebody who needs them, if they fit in memory."""
        m, n = self.n_kernels, self.n_samples
        require_memory(
            m * n * n * np.dtype(self.number_type).itemsize,
            f"{who} needs the entries of the kernels, and writing out {m} kernels of {n} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        return self.all_rows()

    def _tile_rows(self) -> int:
        """Return how many rows are computed at a time."""
        n = max(1, self.n_training)
        if is_foreign(self.like):
            return max(1, TILE_BYTES_ON_DEVICE // np.dtype(self.number_type).itemsize // n)
        return max(TILE_ROWS, TILE_ENTRIES // n)

    def _tiles(self, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
        """Yield some entries of every kernel, with its index; columns begin before the rows do."""
        made: dict[int, Array] = {}  # what several kernels share
        for p, kernel in enumerate(self.kernels):
            tile: Any = None
            if kernel.x is not None and kernel.y is not None:
                if id(kernel.x) not in made:
                    x, y = select_points(kernel.x, rows), select_points(kernel.y, columns)
                    made[id(kernel.x)] = kernel.formula.compare(x, y)
                tile = astype(kernel.formula.entries(made[id(kernel.x)]), self.number_type)
            if kernel.shared is not None:
                if id(kernel.shared) not in made:
                    block = kernel.shared[rows].toarray()[:, columns]
                    made[id(kernel.shared)] = to_device(block, self.like, self.number_type)
                part = made[id(kernel.shared)]
                tile = part if tile is None else (1 - kernel.share) * tile + kernel.share * part
            if self.of_training_samples:
                square = tile[:, rows.start - columns.start : rows.stop - columns.start]
                set_diagonal(square, self.self_similarities[p, rows])
            yield p, tile
