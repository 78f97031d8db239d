"""Kernels of views, computed when their rows are asked for and never held as matrices."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mkclust.kernels.tiles import extended, far_rows, in_units, tile_rows, tiles, write_symmetric
from mkclust.linalg import (
    empty,
    free_bytes,
    is_foreign,
    namespace,
    pick,
    precision_of,
    ranges,
    set_diagonal,
    to_host,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.distances import RESOLUTION, safe_norms, squared_norms
from mkclust.types import Array, Float

# Entries computed at a time, kernel after kernel, and rows among them at most: few enough to stay
# in a core's own cache.
TILE_ENTRIES, TILE_ROWS = 2**15, 64
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

    def __init__(self, bank: Any, views: dict[str, Array]):
        training_views = bank.views_
        # A bank may be given other parameters later: what it makes now is noted here.
        kinds = bank._kinds()
        self._views = tuple(
            _view_kernels(bank, name, views[name], place * kinds)
            for place, name in enumerate(training_views)
        )
        n_new, n = (next(iter(rows.values())).shape[0] for rows in (views, training_views))
        self.shape: tuple[int, int, int] = (kinds * len(training_views), n_new, n)
        precision, foreign = bank._precision(training_views), is_foreign(self.like)
        self.dtype: Any = (
            getattr(namespace(self.like), precision) if foreign else np.dtype(precision)
        )
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
            if self._diagonal is not None:
                state["_diagonal"] = to_host(self._diagonal, precision)
        return state

    @property
    def like(self) -> Array:
        """An array that says where the rows live."""
        moved, plain = self._views[0].moved, self._views[0].plain
        return plain[1] if moved is None else moved[1]  # type: ignore[index]

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.shape[0]

    def only(self, indices: Sequence[int]) -> Any:
        """Return the rows of some of the kernels, for which the others are not computed."""
        picked = copy.copy(self)
        picked._views = tuple(
            view for view in (each.only(indices) for each in self._views) if view.places
        )
        picked.shape = (len(indices), *self.shape[1:])
        if self._diagonal is not None:
            picked._diagonal = pick(self._diagonal, list(indices))
        return picked

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from start to stop of every kernel, (m, stop - start, n)."""
        stop = min(stop, self.shape[1])
        shape = self.shape[0], stop - start, self.shape[2]
        kernels = empty(shape, self.like, precision_of(self))
        if not is_foreign(kernels):
            self.write(start, stop, kernels)
            return kernels
        for block in ranges(stop - start, tile_rows(shape[2], precision_of(self))):
            for place, tile in self._tiles(start + block.start, start + block.stop):
                kernels[place, block, :] = tile
        return kernels

    def parts(self, start: int, stop: int) -> list[Array]:
        """Return the same on a device, all at once: m blocks, as they were computed."""
        blocks: list[Any] = [None] * self.shape[0]
        for place, tile in self._tiles(start, min(stop, self.shape[1])):
            blocks[place] = tile
        return blocks

    def _tiles(self, start: int, stop: int, first: int = 0) -> Iterator[tuple[int, Array]]:
        """Compute rows on a device, kernel after kernel, with the columns from the first on."""
        rows, columns = slice(start, stop), slice(first, self.shape[2])
        for view in self._views:
            for place, tile in tiles(view, rows, columns):
                if self._diagonal is not None:
                    square = tile[:, start - first : stop - first]
                    set_diagonal(square, self._diagonal[place, rows])
                yield place, tile

    def write(self, start: int, stop: int, out: np.ndarray) -> None:
        """Write the rows from start to stop of every kernel in place, (m, stop - start, n)."""
        for first in range(start, stop, TILE_ROWS):
            rows = slice(first, min(first + TILE_ROWS, stop))
            for view in self._views:
                view.write(rows, out[:, first - start : rows.stop - start])
        if self._diagonal is not None:
            places = np.arange(start, stop)
            out[:, places - start, places] = self._diagonal[:, start:stop]

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield all rows, some at a time, with their place; each block takes the last one's."""
        m, n_new, n = self.shape
        if is_foreign(self.like):
            all_kernels = m * n * np.dtype(precision_of(self)).itemsize
            for rows in ranges(n_new, max(1, BLOCK_BYTES_ON_DEVICE // all_kernels)):
                yield rows, self.parts(rows.start, rows.stop)
            return
        height = min(max(1, BLOCK_BYTES // (m * n * self.dtype.itemsize)), BLOCK_ROWS, n_new)
        scratch = np.empty((m, height, n), self.dtype)
        for start in range(0, n_new, height):
            rows = slice(start, min(start + height, n_new))
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
    """

    of_training_samples: ClassVar[bool] = True

    def __init__(self, bank: Any, views: dict[str, Array]):
        super().__init__(bank, views)
        self._diagonal = bank._self_similarity(views)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.shape[1]

    def diagonal(self) -> Array:
        """Return the self-similarities, (m, n)."""
        assert self._diagonal is not None
        return self._diagonal

    def among(self, samples: np.ndarray) -> "KernelRows":
        """Return the kernels of some samples, against these samples only."""
        picked = copy.copy(self)
        picked._views = tuple(view.among(samples) for view in self._views)
        picked.shape = (self.shape[0], len(samples), len(samples))
        picked._diagonal = pick(self.diagonal(), samples, axis=1)
        return picked

    def whole(self) -> Array:
        """Return the kernels of views on a device, (m, n, n), exactly symmetric."""
        _, n, _ = self.shape
        kernels = empty(self.shape, self.like, precision_of(self))
        for rows in ranges(n, tile_rows(n, precision_of(self))):
            for place, tile in self._tiles(rows.start, rows.stop, first=rows.start):
                write_symmetric(kernels, place, rows, tile)
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
        return self.whole() if is_foreign(self.like) else self.rows(0, n)


@dataclass(frozen=True)
class _ViewKernels:
    """The kernels of one view: what they are computed from, and their places among all kernels.

    Attributes
    ----------
    gaussians : sequence of (place, factor)
        What the exponents are multiplied with for each Gaussian kernel.
    polynomials : sequence of (place, offset, degree)
        The polynomial kernels.
    linear : sequence of (place, kind)
        The linear or cosine kernel, if any.
    moved : pair of arrays of shape (n_features + 2, n_new) and (n_features + 2, n)
        The samples and the training samples z, as columns in units of a width, each followed by 1
        and |z|^2 / 2: so one product of matrices gives the exponents. None without Gaussians.
    plain : pair of arrays of shape (n_new, n_features) and (n, n_features)
        The rows themselves; on a device, divided by the root of the scale. None without other
        kernels.
    scale : float
        What inner products are divided by.
    far : ndarray of shape (n_new,) or None
        On a device, which of the samples need care in Gaussian kernels. None elsewhere.
    """

    gaussians: Sequence[tuple[int, float]]
    polynomials: Sequence[tuple[int, float, int]]
    linear: Sequence[tuple[int, str]]
    moved: tuple[Array, Array] | None = field(repr=False)
    plain: tuple[Array, Array] | None = field(repr=False)
    scale: float
    far: np.ndarray | None = field(default=None, repr=False)

    @property
    def places(self) -> list[int]:
        """The places of all kernels."""
        kernels: list[tuple] = [*self.gaussians, *self.polynomials, *self.linear]
        return [place for place, *_ in kernels]

    def only(self, indices: Sequence[int]) -> "_ViewKernels":
        """Return some of the kernels, at the places that the indices give them."""

        def select(kernels: Sequence[tuple]) -> list[tuple]:
            """Return those kernels that the indices name, at their new places."""
            return [
                (place, *rest)
                for place, index in enumerate(indices)
                for old_place, *rest in kernels
                if old_place == index
            ]

        return replace(
            self,
            gaussians=select(self.gaussians),
            polynomials=select(self.polynomials),
            linear=select(self.linear),
        )

    def among(self, samples: np.ndarray) -> "_ViewKernels":
        """Return the kernels of some training samples, against these only."""
        # Both of a pair are the same here.
        moved = None if self.moved is None else (pick(self.moved[1], samples, axis=1),) * 2
        plain = None if self.plain is None else (pick(self.plain[1], samples),) * 2
        far = None if self.far is None else self.far[samples]
        return replace(self, moved=moved, plain=plain, far=far)

    def on_host(self) -> "_ViewKernels":
        """Return the same kernels of samples on a device, computed by NumPy."""

        def bring_both(pair: tuple[Array, Array] | None, convert: Callable) -> Any:
            """Bring both of a pair to the host, once where they are the same."""
            if pair is None:
                return None
            training = convert(to_host(pair[1]))
            return (training if pair[0] is pair[1] else convert(to_host(pair[0])), training)

        def with_exact_norms(extended: Float) -> Float:
            """Return extended columns with half their squared norms in float64."""
            norms = squared_norms(extended[:-2].T) / 2
            return np.concatenate([extended[:-1], norms[None]])

        return replace(
            self,
            moved=bring_both(self.moved, with_exact_norms),
            plain=bring_both(self.plain, lambda rows: rows * np.sqrt(self.scale)),
        )

    def write(self, rows: slice, out: np.ndarray) -> None:
        """Write some rows of every kernel in place, tile by tile, out being (m, b, n)."""
        _, height, n = out.shape
        width = max(1, min(TILE_ENTRIES // height, n))
        scratch, base = np.empty(height * width), np.empty(height * width)
        exponents = self._exponents_of(rows) if self.gaussians else None
        inner = self._inner_of(rows) if self.polynomials or self.linear else None
        for start in range(0, n, width):
            columns = slice(start, min(start + width, n))
            shape = height, columns.stop - columns.start
            tile, spare = (part[: shape[0] * shape[1]].reshape(shape) for part in (scratch, base))
            parts = out[:, :, columns]
            if exponents is not None:
                self._write_gaussians(exponents, columns, parts, tile)
            if inner is not None:
                self._write_others(inner, rows, columns, parts, tile, spare)

    def _exponents_of(self, rows: slice) -> Float:
        """Return what the training rows are multiplied with for the exponents of some samples."""
        assert self.moved is not None
        left = self.moved[0][:, rows].T.copy()
        # -|z - y|^2 / 2 = z y - |z|^2 / 2 - |y|^2 / 2
        left[:, -2], left[:, -1] = -left[:, -1], -1
        return left

    def _inner_of(self, rows: slice) -> Float:
        """Return what the training rows are multiplied with for scaled inner products."""
        assert self.plain is not None
        return self.plain[0][rows] / self.scale

    def _write_gaussians(self, left: Float, columns: slice, parts: np.ndarray, tile: Float) -> None:
        """Write the Gaussian kernels of some columns."""
        assert self.moved is not None
        right = self.moved[1][:, columns]
        np.matmul(left, right, out=tile)
        longest, longest_training = -left[:, -2].min(), right[-1].max()
        if tile.max() >= -RESOLUTION * (longest + longest_training):
            # Somewhere the distance may be rounding only, as on the diagonal: identical rows.
            tile[tile >= RESOLUTION * np.subtract.outer(left[:, -2], right[-1])] = 0
        # Exponentials about the smallest normal number, and below, take up to fifty times as long
        # as others. No distance exceeds the sum of the lengths, so few tiles need a look.
        lowest = 0.98 * np.log(np.finfo(parts.dtype).tiny)
        smallest = -((np.sqrt(longest) + np.sqrt(longest_training)) ** 2)
        if max(factor for _, factor in self.gaussians) * smallest < lowest:
            smallest = tile.min()
        for place, factor in self.gaussians:
            part, exponents = parts[place], tile
            if factor != 1 or part.dtype != tile.dtype:
                exponents = np.multiply(tile, factor, out=part)
            if factor * smallest < lowest:
                exponents = np.maximum(exponents, lowest, out=part)
            np.exp(exponents, out=part)

    def _write_others(
        self, left: Float, rows: slice, columns: slice, parts: np.ndarray, tile: Float, base: Float
    ) -> None:
        """Write the polynomial and linear kernels of some columns."""
        assert self.plain is not None
        right = self.plain[1][columns]
        np.matmul(left, right.T, out=tile)
        for place, offset, degree in self.polynomials:
            power(np.add(tile, offset, out=base), degree, out=parts[place])
        for place, kind in self.linear:
            if kind == "linear":
                parts[place] = tile
            else:
                lengths = safe_norms(self.plain[0][rows]) / self.scale
                np.divide(tile, lengths[:, None], out=base)
                np.divide(base, safe_norms(right), out=parts[place])


def _view_kernels(bank: Any, name: str, view: Array, first: int) -> _ViewKernels:
    """Return the kernels that a bank makes of one view, the first of them at a place."""
    training_rows = bank.views_[name]
    same, precision = view is training_rows, bank._precision(bank.views_)

    def as_columns(rows: Array) -> Array:
        """Return rows as the Gaussian kernels multiply them."""
        if is_foreign(rows):
            return extended(rows, bank._origins[name], unit, precision)
        return _extended(rows, bank._origins[name], unit)

    def as_rows(rows: Array) -> Array:
        """Return rows as the other kernels multiply them."""
        if is_foreign(rows):
            return in_units(rows, bank.scales_[name], precision)
        return rows.astype(np.float64, copy=False)

    places = iter(range(first, first + len(bank.kernel_names_)))
    moved = plain = far = None
    # In units of one width, so that where it is the only one there is nothing left to multiply.
    gaussians = [(next(places), (bank.widths[0] / width) ** 2) for width in bank.widths]
    if gaussians:
        unit = bank.widths[0] * bank.medians_[name]
        right = as_columns(training_rows)
        moved = (right if same else as_columns(view), right)
        if is_foreign(right):
            far = far_rows(moved[0], [factor for _, factor in gaussians])
    polynomials = [(next(places), offset, degree) for offset, degree in bank.polynomials]
    linear = [(next(places), bank.linear)] if bank.linear is not None else []
    if polynomials or linear:
        right = as_rows(training_rows)
        plain = (right if same else as_rows(view), right)
    return _ViewKernels(gaussians, polynomials, linear, moved, plain, bank.scales_[name], far)


def _extended(view: np.ndarray, origin: np.ndarray, unit: float) -> Float:
    """Return rows z, from an origin in some unit, as columns followed by 1 and |z|^2 / 2."""
    columns = np.empty((view.shape[1] + 2, view.shape[0]))
    moved = np.subtract(view.T, origin[:, None], out=columns[:-2], dtype=np.float64)
    moved /= unit
    columns[-2], columns[-1] = 1, squared_norms(moved.T) / 2
    return columns


def power(base: np.ndarray, degree: int, out: np.ndarray) -> None:
    """Write an integer power; repeated products are faster than ``np.power``."""
    out[...] = base
    for _ in range(degree - 1):
        out *= base
