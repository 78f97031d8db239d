"""The kernels of views, computed some rows at a time: one object per view, and a source of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.kernels.chosen_rules import ChosenRule
from mkclust.kernels.formulas import Formula, Gaussian
from mkclust.kernels.kinds import RULES, Rule, formulas_of
from mkclust.kernels.neighbors import (
    Links,
    Neighborhoods,
    SimilarityLists,
    closeness,
    join_by_similarity,
    join_nearest,
    lengths_of,
    linked_neighborhoods,
    nearest_neighborhoods,
)
from mkclust.kernels.points import Pairs, Points, Units
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
from mkclust.linalg.sparse_rows import rows_from, stored_entries
from mkclust.samples.distances import drawn_rows, mean_squared_norm, median_distance, middle
from mkclust.types import Array

# Entries of one kernel that are computed at a time on the host: few enough for a core's cache.
TILE_ENTRIES = 2**17
# But at least so many rows, or products of matrices are slow.
TILE_ROWS = 16
# What one tile of one kernel takes on a device, in bytes; about four are in use at a time.
TILE_BYTES_ON_DEVICE = 2**28
# What a block of rows of all kernels takes on the host, in bytes.
BLOCK_BYTES = 2**24
# The same on a device.
BLOCK_BYTES_ON_DEVICE = 2**30
# Rows of a block on the host, at most.
BLOCK_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class ViewKernels:
    """What is learned from one view: its preparation, its kernels and their neighborhoods.

    Attributes
    ----------
    name : str
        Name of the view.
    view : array or CSR array of shape (n_samples, n_features)
        The training rows.
    kind : str
        The name of the rule that the kernels follow.
    preparation : Preparation
        What is done to rows first.
    formulas : tuple of Formula
        The kernels of prepared rows, with what they learned.
    units : Units
        Origin, median distance and mean squared norm of the prepared training rows.
    median : float or None
        The median dissimilarity, if a kernel is as wide as it.
    size : int or None
        Number of neighbors, if kernels contain neighborhoods.
    share : float
        The share of neighborhoods in every kernel; 1 if it contains nothing else.
    neighborhoods : tuple of Neighborhoods
        One per kernel, or none at all.
    """

    name: str
    view: Any = field(repr=False)
    kind: str
    preparation: Preparation
    formulas: tuple[Formula, ...]
    units: Units
    median: float | None
    size: int | None = None
    share: float = 0.0
    neighborhoods: tuple[Neighborhoods, ...] = ()

    @classmethod
    def learn(
        cls, name: str, view: Array, chosen: ChosenRule, bank_formulas: tuple[Formula, ...]
    ) -> "ViewKernels":
        """Learn from the training rows of a view, without neighborhoods."""
        preparation = chosen.learn(view)
        rows, median = preparation.apply_to_training(view), None
        scale, origin = mean_squared_norm(name, rows), middle(rows)
        formulas = formulas_of(chosen.rule, bank_formulas)
        if any(isinstance(formula, Gaussian) for formula in formulas):
            # Only the rows that are drawn anyway are brought to float64 on a device.
            some = drawn_rows(rows) if is_foreign(rows) else rows
            median = median_distance(name, rows_from(origin, some))
        else:
            formulas = tuple(formula.learn(name, rows, origin) for formula in formulas)
        units = Units(origin, median or 1.0, scale)
        median = median if median else formulas[0].median
        return cls(
            name=name,
            view=view,
            kind=chosen.rule.kind,
            preparation=preparation,
            formulas=formulas,
            units=units,
            median=median,
        )

    def with_neighborhoods(self, size: int, share: float, *, as_links: bool) -> "ViewKernels":
        """Find the neighborhoods of the training samples; kernels with the same ones share them."""
        prepared, found = self.prepared(self.view), dict[Any, Neighborhoods]()
        for index, formula in enumerate(self.formulas):
            key = self._search(index)
            if key in found:
                continue
            if self.kind == "distances":
                lists = SimilarityLists(size, None)
                for block in closeness(prepared, _mean_entry(prepared)):
                    lists.add(block)
                found[key] = lists.result()
            elif formula.neighbors_by == "entries":
                kernel = ComputedKernels.of([self._alone(index)], None, precision_of(self.view))
                lists = SimilarityLists(size, lengths_of(to_host(kernel.diagonal()[0, :])))
                for _, blocks in kernel.blocks():
                    lists.add(blocks[0])
                found[key] = lists.result()
            else:
                by_cosine = formula.neighbors_by == "cosine"
                found[key] = nearest_neighborhoods(prepared, size, cosine=by_cosine)
        every = [found[self._search(index)] for index in range(len(self.formulas))]
        if as_links:
            links = {id(each): Links(each.members, each.kth_similarity) for each in every}
            every = [links[id(each)] for each in every]
        return replace(self, size=size, share=share, neighborhoods=tuple(every))

    def _search(self, index: int) -> Any:
        """Return what tells kernels with the same neighbors from others."""
        by = self.formulas[index].neighbors_by
        return index if by == "entries" and self.kind != "distances" else by

    def _alone(self, index: int) -> "ViewKernels":
        """Return one of the kernels, without its neighborhoods."""
        formulas = self.formulas[index : index + 1]
        return replace(self, formulas=formulas, neighborhoods=(), share=0.0)

    def shared(self, rows: Array | None, samples: np.ndarray | None) -> tuple[Any, ...]:
        """Return the similarities by neighborhoods, one sparse matrix per kernel.

        Parameters
        ----------
        rows : array of shape (n_new, n_features) or None
            New rows of the view; None for the training rows.
        samples : ndarray of int of shape (n_new,) or None
            Which training samples they are, -1 for none.
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
        formula, each, size = self.formulas[index], self.neighborhoods[index], self.size
        assert size is not None
        training, prepared = self.prepared(self.view), self.prepared(rows)
        if self.kind == "distances":
            return join_by_similarity(each, size, closeness(prepared, _mean_entry(training)))
        if formula.neighbors_by != "entries":
            by_cosine = formula.neighbors_by == "cosine"
            return join_nearest(each, size, prepared, training, cosine=by_cosine)
        alone, precision = self._alone(index), precision_of(self.view)
        lengths = (
            lengths_of(to_host(alone.self_similarity(some, precision)[0, :]))
            for some in (rows, self.view)
        )
        kernel = ComputedKernels.of([alone], [rows], precision)
        blocks = (blocks[0] for _, blocks in kernel.blocks())
        return join_by_similarity(each, size, blocks, *lengths)

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods or links that it consists of; None if of more."""
        if self.share == 1:
            return list(self.neighborhoods)
        of_graph = linked_neighborhoods(self.view) if self.kind == "graph" else None
        return [of_graph] * len(self.formulas)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they are."""
        units = replace(self.units, origin=arrays_to_host(self.units.origin))
        return vars(self) | {"view": arrays_to_host(self.view), "units": units}

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

    def points(self, rows: Array, precision: str, training: Points | None = None) -> Points:
        """Return rows in the coordinates of the formulas; training points for other rows only."""
        prepared, made = self.prepared(rows), dict[str, Array]()
        precision = precision if is_foreign(self.view) else "float64"
        for formula in {type(each): each for each in self.formulas}.values():
            if training is None:
                made |= formula.coordinates(prepared, self.units, precision)
            else:
                made |= formula.coordinates_of_new(prepared, self.units, precision, training)
        return Points(made)

    def rows(self, X: Array) -> Array:
        """Return the similarities of rows to the training rows, (n_kernels, n_rows, n_samples)."""
        views = None if X is self.view else [X]
        return ComputedKernels.of([self], views, precision_of(self.view)).all_rows()

    def self_similarity(self, X: Array, precision: str) -> Array:
        """Return the kernels between rows and themselves, (n_kernels, n_rows)."""
        prepared, values = self.prepared(X), []
        for index, formula in enumerate(self.formulas):
            own = formula.self_similarity(prepared, self.units)
            if self.share:
                near = self.neighborhoods[index].self_similarity()
                own = (1 - self.share) * own + self.share * near
            values.append(astype(own, precision))
        return namespace(*values).stack(values)


class KernelList(list[Any]):
    """Kernels one after another, each stored in its own way.

    Parameters
    ----------
    matrices : sequence of m arrays or FactoredMatrix, of shape (n_new, n_samples)
        Similarities to the training samples.
    of_training_samples : bool, default=False
        Whether the samples are the training samples: then the kernels are square and symmetric.
    """

    def __init__(self, matrices: Sequence[Any], of_training_samples: bool = False):
        super().__init__(matrices)
        self.of_training_samples = of_training_samples

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of kernels, of samples and of training samples."""
        return (len(self), *self[0].shape)


@dataclass(frozen=True)
class ComputedKernel:
    """One kernel of a source, computed from points.

    Attributes
    ----------
    formula : Formula
        How it is computed.
    x, y : Points or None
        The samples and the training samples; None if the kernel consists of neighborhoods.
    shared : FactoredMatrix, CSR array or None
        Its neighborhoods.
    share : float
        Their share in the kernel.
    """

    formula: Formula
    x: Points | None = field(repr=False)
    y: Points | None = field(repr=False)
    shared: Any = field(default=None, repr=False)
    share: float = 0.0

    def among(self, samples: np.ndarray, made: dict[int, Points]) -> "ComputedKernel":
        """Return the kernel of some samples; points that were selected already are in `made`."""
        if self.y is not None and id(self.y) not in made:
            made[id(self.y)] = self.y.among(samples)
        points = None if self.y is None else made[id(self.y)]
        shared = None if self.shared is None else self.shared[samples][:, samples]
        return replace(self, x=points, y=points, shared=shared)


@dataclass(frozen=True)
class ComputedKernels:
    """The kernels of some samples against training samples, computed by blocks of rows.

    Every block is computed anew from the views, so that memory is as long as the views and not
    their square. The kernels of a view share its distances and its inner products. Rows are
    computed where the views live. The kernels of the training samples have `diagonal` and are a
    ``mkclust.stack.RowSource``: rows are symmetric up to rounding, with an exact diagonal.

    Attributes
    ----------
    kernels : tuple of ComputedKernel
        What computes each kernel.
    shape : tuple of int
        Number of kernels, of samples and of training samples.
    precision : str
        Number type of the kernels.
    like : array
        An array that says where rows live.
    self_similarities : array of shape (n_kernels, n_samples) or None
        The diagonals; None if the samples are not the training samples.
    """

    kernels: tuple[ComputedKernel, ...]
    shape: tuple[int, int, int]
    precision: str
    like: Any = field(repr=False)
    self_similarities: Any = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        views: Sequence[ViewKernels],
        new_rows: Sequence[Array] | None,
        precision: str,
        samples: np.ndarray | None = None,
    ) -> "ComputedKernels":
        """Return the kernels of views: of the training rows, or of new rows of each view.

        `samples` says which training samples new rows are, -1 for none.
        """
        kernels: list[ComputedKernel] = []
        for number, view in enumerate(views):
            x = y = rows = None
            if new_rows is not None:
                rows = new_rows[number]
            if view.share < 1:
                x = y = view.points(view.view, precision)
                x = y if rows is None else view.points(rows, precision, training=y)
            shared = view.shared(rows, samples) or (None,) * len(view.formulas)
            kernels += [
                ComputedKernel(formula, x, y, part, view.share)
                for formula, part in zip(view.formulas, shared, strict=True)
            ]
        n, diagonals = views[0].view.shape[0], None
        n_rows = n if new_rows is None else new_rows[0].shape[0]
        if new_rows is None:
            parts = [view.self_similarity(view.view, precision) for view in views]
            diagonals = namespace(*parts).concat(parts)
        like = views[0].view[:1, :]
        return cls(tuple(kernels), (len(kernels), n_rows, n), precision, like, diagonals)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they are."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    @property
    def of_training_samples(self) -> bool:
        """Whether the samples are the training samples: then the kernels are symmetric."""
        return self.self_similarities is not None

    @property
    def dtype(self) -> Any:
        """Number type of the kernels, as their library names it."""
        foreign = is_foreign(self.like)
        return (
            getattr(namespace(self.like), self.precision) if foreign else np.dtype(self.precision)
        )

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.shape[0]

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.shape[1]

    def diagonal(self) -> Array:
        """Return the self-similarities, (m, n)."""
        assert self.self_similarities is not None
        return self.self_similarities

    def only(self, indices: Sequence[int]) -> "ComputedKernels":
        """Return some of the kernels; the others are not computed."""
        diagonals = self.self_similarities
        if diagonals is not None:
            diagonals = select(diagonals, np.asarray(indices, np.int64))
        kernels, shape = tuple(self.kernels[p] for p in indices), (len(indices), *self.shape[1:])
        return replace(self, kernels=kernels, shape=shape, self_similarities=diagonals)

    def among(self, samples: np.ndarray) -> "ComputedKernels":
        """Return the kernels of some training samples, against these samples only."""
        made, n = dict[int, Points](), len(samples)
        return replace(
            self,
            kernels=tuple(kernel.among(samples, made) for kernel in self.kernels),
            shape=(self.n_kernels, n, n),
            self_similarities=select(self.diagonal(), samples, axis=1),
        )

    def product(self, index: int, X: Array) -> Array | None:
        """Multiply one of the kernels with a thin matrix, (n, b), in float64, without storing it.

        None if the product takes its rows: for samples on the host, in double precision, kernels
        that are not Gaussian, and kernels mixed with neighborhoods.
        """
        kernel = self.kernels[index]
        if not isinstance(kernel.formula, Gaussian) or kernel.shared is not None:
            return None
        assert kernel.y is not None
        if kernel.x is not kernel.y or kernel.y.split is None:
            return None
        fused = written_in_triton("fused_products", X)
        return fused.gaussian_products(kernel.y.split, kernel.formula.width**-2, X)

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from start to stop of every kernel, (m, stop - start, n)."""
        stop = min(stop, self.n_samples)
        out = empty((self.n_kernels, stop - start, self.shape[2]), self.like, self.precision)
        for some in ranges(stop - start, self._tile_rows()):
            rows = slice(start + some.start, start + some.stop)
            for p, tile in self._tiles(rows, slice(0, self.shape[2])):
                out[p, some, :] = tile
        return out

    def all_rows(self) -> Array:
        """Return the kernels, (m, n_new, n); those of the training samples exactly symmetric."""
        n = self.n_samples
        if not self.of_training_samples:
            return self.rows(0, n)
        out = empty(self.shape, self.like, self.precision)
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
        m, n, _ = self.shape
        require_memory(
            m * n * n * np.dtype(self.precision).itemsize,
            f"{who} needs the entries of the kernels, and writing out {m} kernels of {n} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        return self.all_rows()

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield all rows, block after block, with their place."""
        m, n_rows, n = self.shape
        foreign, row_bytes = is_foreign(self.like), m * n * np.dtype(self.precision).itemsize
        height = max(1, (BLOCK_BYTES_ON_DEVICE if foreign else BLOCK_BYTES) // row_bytes)
        for rows in ranges(n_rows, height if foreign else min(height, BLOCK_ROWS)):
            yield rows, self.rows(rows.start, rows.stop)

    def _tile_rows(self) -> int:
        """Return how many rows are computed at a time."""
        n = max(1, self.shape[2])
        if is_foreign(self.like):
            return max(1, TILE_BYTES_ON_DEVICE // np.dtype(self.precision).itemsize // n)
        return max(TILE_ROWS, TILE_ENTRIES // n)

    def _tiles(self, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
        """Yield some entries of every kernel, with its index."""
        pairs, near = dict[int, Pairs](), dict[int, Array]()
        for p, kernel in enumerate(self.kernels):
            tile: Any = None
            if kernel.x is not None and kernel.y is not None:
                if id(kernel.x) not in pairs:
                    x, y = kernel.x.part(rows), kernel.y.part(columns)
                    pairs[id(kernel.x)] = Pairs(x, y, columns, self.precision)
                tile = astype(kernel.formula.entries(pairs[id(kernel.x)]), self.precision)
            if kernel.shared is not None:
                if id(kernel.shared) not in near:
                    block = kernel.shared[rows].toarray()[:, columns]
                    near[id(kernel.shared)] = to_device(block, self.like, self.precision)
                part = near[id(kernel.shared)]
                tile = part if tile is None else (1 - kernel.share) * tile + kernel.share * part
            first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
            if self.of_training_samples and first < last:
                square = tile[
                    first - rows.start : last - rows.start,
                    first - columns.start : last - columns.start,
                ]
                set_diagonal(square, self.self_similarities[p, first:last])
            yield p, tile


def _mean_entry(distances: Array) -> float:
    """Return the mean of given distances, their unit; one if all are zero."""
    entries, (n, m) = astype(stored_entries(distances), "float64"), distances.shape
    return float(namespace(entries).sum(entries)) / (n * m) or 1.0
