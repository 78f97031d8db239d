"""Kernels of views, computed when their rows are asked for and never held as matrices."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from mkclust.kernels.formulas import Formula
from mkclust.kernels.pairs import PairFormula, PairKernels, pair_kernels
from mkclust.kernels.tiles import (
    Points,
    ViewKernels,
    default_tile_limits,
    extended,
    far_rows,
    power_of_two,
    write_symmetric,
)
from mkclust.kernels.training import precision_of_all
from mkclust.linalg import (
    FactoredMatrix,
    astype,
    empty,
    free_bytes,
    is_foreign,
    is_sparse,
    namespace,
    precision_of,
    ranges,
    select,
    set_diagonal,
    to_device,
    to_host,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.distances import safe_norms
from mkclust.types import Array

# What the rows of new samples take over all kernels, and how many there are at most.
BLOCK_BYTES, BLOCK_ROWS = 16 * 2**20, 256
# On a device, where each step has to be worth starting it.
BLOCK_BYTES_ON_DEVICE = 2**30


class CrossRows:
    """The kernels of some samples against the training samples of a bank, by blocks of rows.

    Every block is computed anew from the views, so that memory is as long as the views and not
    their square. The kernels of a view share its distances and its inner products. Rows are
    computed where the views live.

    Parameters
    ----------
    bank : KernelBank
        Fitted: it knows the training views, and what to make of views.
    views : dict of str to array of shape (n_new, n_features)
        Views of the samples, checked, in the order of the training views and where these live.
    tile_limits : (int, int), default=None
        Rows and entries that are computed at a time, at most; None chooses.
    neighborhoods : dict of int to (FactoredMatrix, float), default=None
        Shared neighborhoods of the samples by the place of the kernel that they are a part of, and
        their share in it; at 1 nothing else is computed.

    Attributes
    ----------
    shape : tuple of int
        Number of kernels, of samples and of training samples.
    dtype : dtype
        Number type of the kernels, that of the training views, as their library names it.
    of_training_samples : bool
        Whether the samples are the training samples: then the kernels are square and symmetric.
    """

    of_training_samples: ClassVar[bool] = False

    def __init__(
        self,
        bank: Any,
        views: dict[str, Array],
        tile_limits: tuple[int, int] | None = None,
        *,
        neighborhoods: dict[int, tuple[FactoredMatrix, float]] | None = None,
    ):
        self._neighborhoods = neighborhoods or {}
        # A bank may be given other parameters later: what it makes now is noted here.
        precision, counts = precision_of_all(bank.views_), map(len, bank._formulas.values())
        *places, n_kernels = accumulate(counts, initial=0)
        computed = [
            place
            for place in range(n_kernels)
            if place not in self._neighborhoods or self._neighborhoods[place][1] < 1
        ]
        self._views = tuple(
            _view_kernels(bank, name, views[name], formulas, precision)
            for name, first in zip(bank.views_, places, strict=True)
            if (
                formulas := [
                    (place, formula)
                    for place, formula in enumerate(bank._formulas[name], first)
                    if place in computed
                ]
            )
        )
        self._like = self._views[0].training.like
        n_new, n = (next(iter(rows.values())).shape[0] for rows in (views, bank.views_))
        self.shape: tuple[int, int, int] = (n_kernels, n_new, n)
        foreign = is_foreign(self.like)
        self.dtype: Any = (
            getattr(namespace(self.like), precision) if foreign else np.dtype(precision)
        )
        self._tile_limits = tile_limits
        self._diagonal: Array | None = None

    def __copy__(self) -> Any:
        """Return the same rows, where they live; what is pickled is brought to the host."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they live."""
        state = dict(vars(self))
        if is_foreign(self.like):
            precision = precision_of(self)
            state["dtype"] = np.dtype(precision)
            state["_views"] = tuple(view.on_host() for view in self._views)
            state["_like"] = to_host(self._like[:1, :1])
            if self._diagonal is not None:
                state["_diagonal"] = to_host(self._diagonal, precision)
        return state

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        return self._like

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.shape[0]

    def only(self, indices: Sequence[int]) -> Any:
        """Return the rows of some of the kernels, for which the others are not computed."""
        selected = copy.copy(self)
        selected._views = tuple(
            view for view in (each.only(indices) for each in self._views) if view.formulas
        )
        selected.shape = (len(indices), *self.shape[1:])
        places = enumerate(indices)
        selected._neighborhoods = {
            place: self._neighborhoods[index]
            for place, index in places
            if index in self._neighborhoods
        }
        if self._diagonal is not None:
            selected._diagonal = select(self._diagonal, list(indices))
        return selected

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from start to stop of every kernel, (m, stop - start, n)."""
        stop = min(stop, self.shape[1])
        kernels = empty((self.shape[0], stop - start, self.shape[2]), self.like, precision_of(self))
        self.write(start, stop, kernels)
        return kernels

    def parts(self, start: int, stop: int) -> list[Array]:
        """Return the same on a device, all at once: m blocks, as they were computed."""
        blocks: list[Any] = [None] * self.shape[0]
        rows, columns = slice(start, min(stop, self.shape[1])), slice(0, self.shape[2])
        for place, _, tile in self._tiles(rows, [columns]):
            blocks[place] = tile
        return blocks

    def write(self, start: int, stop: int, out: Array) -> None:
        """Write the rows from start to stop of every kernel in place, (m, stop - start, n)."""
        height, width = self._tile_shape(stop - start)
        for rows in _cut(slice(start, stop), height):
            here = slice(rows.start - start, rows.stop - start)
            for place, columns, tile in self._tiles(rows, _cut(slice(0, self.shape[2]), width)):
                out[place, here, columns] = tile

    def _tile_shape(self, n_rows: int) -> tuple[int, int]:
        """Return how many of so many rows, and how many columns, are computed at a time."""
        of_sparse_rows = any(view.training.is_sparse for view in self._views)
        # Of kernels of neighborhoods alone no rows of views are compared.
        n_features = max((view.training.n_features for view in self._views), default=1)
        height, n_entries = self._tile_limits or default_tile_limits(
            self.shape[2], self.like, precision_of(self), of_sparse_rows, n_features
        )
        height = max(1, min(height, n_rows))
        return height, max(height, n_entries // height)

    def _tiles(self, rows: slice, blocks: Iterable[slice]) -> Iterator[tuple[int, slice, Array]]:
        """Compute some rows of all kernels, tile by tile, with their exact diagonal."""
        blocks = list(blocks)
        for place, columns, tile in self._mixed_tiles(rows, blocks):
            first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
            if self._diagonal is not None and first < last:
                square = tile[
                    first - rows.start : last - rows.start,
                    first - columns.start : last - columns.start,
                ]
                set_diagonal(square, self._diagonal[place, first:last])
            yield place, columns, tile

    def _mixed_tiles(self, rows: slice, blocks: list[slice]) -> Iterator[tuple[int, slice, Array]]:
        """Compute some rows of all kernels, tile by tile, mixed with shared neighborhoods."""
        shared = {
            place: self._to_tile(part[rows].toarray())
            for place, (part, _) in self._neighborhoods.items()
        }
        for view in self._views:
            for place, columns, tile in view.tiles(rows, blocks):
                if place in shared:
                    share = self._neighborhoods[place][1]
                    tile = (1 - share) * tile + share * shared[place][:, columns]
                yield place, columns, tile
        for place, (_, share) in self._neighborhoods.items():
            if share == 1:
                yield from ((place, columns, shared[place][:, columns]) for columns in blocks)

    def _to_tile(self, similarities: np.ndarray) -> Array:
        """Return similarities in the precision of the kernels and where these live."""
        return to_device(similarities, self.like, precision_of(self))

    def all_rows(self) -> Array:
        """Return the kernels, (m, n_new, n)."""
        return self.rows(0, self.shape[1])

    def blocks(self, n_bytes: int | None = None) -> Iterator[tuple[slice, Array]]:
        """Yield all rows, some at a time, with their place; each block takes the last one's."""
        m, n_new, n = self.shape
        foreign = is_foreign(self.like)
        n_bytes = n_bytes or (BLOCK_BYTES_ON_DEVICE if foreign else BLOCK_BYTES)
        height = max(1, n_bytes // (m * n * np.dtype(precision_of(self)).itemsize))
        if foreign:
            for rows in ranges(n_new, height):
                yield rows, self.parts(rows.start, rows.stop)
            return
        height = min(height, BLOCK_ROWS, n_new)
        scratch = np.empty((m, height, n), self.dtype)
        for rows in ranges(n_new, height):
            block = scratch[:, : rows.stop - rows.start]
            self.write(rows.start, rows.stop, block)
            yield rows, block


class KernelRows(CrossRows):
    """The kernels of a bank over its training samples, by blocks of rows.

    It is a source of rows in the sense of ``mkclust.stack.RowSource``: ``as_stack`` takes it. Rows
    are symmetric up to rounding, and their diagonal is exact.

    Parameters
    ----------
    bank : KernelBank
        Fitted.
    views : dict of str to array of shape (n_samples, n_features)
        The training views.
    tile_limits : (int, int), default=None
        Rows and entries that are computed at a time, at most; None chooses.
    """

    of_training_samples: ClassVar[bool] = True

    def __init__(
        self,
        bank: Any,
        views: dict[str, Array],
        tile_limits: tuple[int, int] | None = None,
        *,
        neighborhoods: dict[int, tuple[FactoredMatrix, float]] | None = None,
    ):
        super().__init__(bank, views, tile_limits, neighborhoods=neighborhoods)
        shares = np.zeros(self.n_kernels)
        for place, (_, share) in self._neighborhoods.items():
            shares[place] = share
        self._diagonal = mix_with_ones(bank._self_similarity(views), shares)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.shape[1]

    def diagonal(self) -> Array:
        """Return the self-similarities, (m, n)."""
        assert self._diagonal is not None
        return self._diagonal

    def product(self, index: int, X: Array) -> Array | None:
        """Multiply one of the kernels with a thin matrix, (n, b), in float64.

        None where that takes its rows: of samples on the host, in double precision, of other than
        Gaussian kernels, and mixed with shared neighborhoods.
        """
        if index in self._neighborhoods:
            return None
        (view,) = (view for view in self._views if index in dict(view.formulas))
        return view.product(index, X)

    def among(self, samples: np.ndarray) -> "KernelRows":
        """Return the kernels of some samples, against these samples only."""
        selected = copy.copy(self)
        selected._views = tuple(view.among(samples) for view in self._views)
        selected.shape = (self.shape[0], len(samples), len(samples))
        selected._diagonal = select(self.diagonal(), samples, axis=1)
        selected._neighborhoods = {
            place: (part[samples, samples], share)
            for place, (part, share) in self._neighborhoods.items()
        }
        return selected

    def all_rows(self) -> Array:
        """Return the kernels, (m, n, n), exactly symmetric."""
        return self.whole()

    def whole(self) -> Array:
        """Return the kernels, (m, n, n), exactly symmetric."""
        _, n, _ = self.shape
        kernels = empty(self.shape, self.like, precision_of(self))
        height, width = self._tile_shape(n)
        for rows in ranges(n, height):
            for place, columns, tile in self._tiles(rows, _cut(slice(rows.start, n), width)):
                write_symmetric(kernels, place, rows, columns, tile)
        return kernels

    def entries(self, who: str) -> Array:
        """Write the kernels out, (m, n, n), for somebody who needs them, where they fit."""
        m, n, _ = self.shape
        require_memory(
            m * n * n * np.dtype(precision_of(self)).itemsize,
            f"{who} needs the entries of the kernels, and writing out {m} kernels of {n} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        return self.whole()


def mix_with_ones(diagonals: Array, shares: np.ndarray) -> Array:
    """Return self-similarities mixed with those of shared neighborhoods, which are one, (m, n)."""
    if not shares.any():
        return diagonals
    parts = to_device(shares, diagonals, precision_of(diagonals))[:, None]
    return diagonals * (1 - parts) + parts


def _view_kernels(
    bank: Any,
    name: str,
    view: Array,
    formulas: Sequence[tuple[int, Formula]],
    precision: str,
) -> ViewKernels | PairKernels:
    """Return kernels that a bank makes of one view, with their places among all."""
    if isinstance(formulas[0][1], PairFormula):
        training_view = bank.views_[name]
        rows = None if view is training_view else bank._prepared(name, view)
        return pair_kernels(formulas, rows, bank._prepared(name, training_view), precision)
    scale = bank.scales_[name]
    steepness = [formula.steepness for _, formula in formulas]
    # Without units, squares could be too large or too small for single precision.
    median = bank.medians_.get(name, 1.0)
    width, length = power_of_two(median), power_of_two(np.sqrt(scale))
    training_rows = bank._prepared(name, bank.views_[name])
    if is_sparse(training_rows):
        width = length  # both are had from one product
    median, work_precision = median / width, precision if is_foreign(view) else "float64"

    def prepare(rows: Array) -> Points:
        """Return rows as the formulas multiply them."""
        columns = is_far = lengths = None
        if is_sparse(rows):
            return Points.of_sparse(rows, safe_norms(rows) / float(np.sqrt(scale)), length)
        if any(steepness):
            columns = extended(rows, bank._origins[name], width, work_precision)
            is_far = far_rows(columns, max(steepness) / median**2)
        if all(steepness):
            return Points(columns, is_far)
        lengths = astype(safe_norms(rows) / float(np.sqrt(scale)), work_precision)
        return Points(columns, is_far, astype(rows, work_precision), lengths)

    training = prepare(training_rows)
    same = view is bank.views_[name]
    samples = training if same else prepare(bank._prepared(name, view))
    return ViewKernels(formulas, samples, training, median, scale / length**2, length, precision)


def _cut(part: slice, size: int) -> Iterator[slice]:
    """Cut a range into pieces of a size, the last of which ends with it."""
    for start in range(part.start, part.stop, size):
        yield slice(start, min(start + size, part.stop))
