"""The kernels of views as a source of rows, computed some rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from mkclust.kernels.formulas import Formula, Gaussian
from mkclust.kernels.points import Pairs, Points
from mkclust.linalg import (
    arrays_to_host,
    astype,
    empty,
    free_bytes,
    is_foreign,
    namespace,
    ranges,
    select,
    set_diagonal,
    to_device,
)
from mkclust.linalg.in_triton import written_in_triton
from mkclust.linalg.memory import require_memory
from mkclust.stack import Source
from mkclust.types import Array

# Entries of one kernel that are computed at a time on the host: few enough for a core's cache.
TILE_ENTRIES = 2**17
# But at least so many rows, or products of matrices are slow.
TILE_ROWS = 16
# What one tile of one kernel takes on a device, in bytes; about four are in use at a time.
TILE_BYTES_ON_DEVICE = 2**28


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
    """One kernel of a source, computed from points."""

    formula: Formula  # how it is computed
    # The samples and the training samples; None if the kernel consists of neighborhoods.
    x: Points | None = field(repr=False)
    y: Points | None = field(repr=False)
    shared: Any = field(default=None, repr=False)  # its neighborhoods
    share: float = 0.0  # their share in the kernel

    def among(self, samples: np.ndarray, made: dict[int, Points]) -> "ComputedKernel":
        """Return the kernel of some samples; points that were selected already are in `made`."""
        if self.y is not None and id(self.y) not in made:
            made[id(self.y)] = self.y.among(samples)
        points = None if self.y is None else made[id(self.y)]
        shared = None if self.shared is None else self.shared[samples, :][:, samples]
        return replace(self, x=points, y=points, shared=shared)


@dataclass(frozen=True)
class ComputedKernels(Source):
    """The kernels of some samples against training samples, computed by blocks of rows.

    Every block is computed anew from the views, so that memory is as long as the views and not
    their square. The kernels of a view share its distances and its inner products. Rows are
    computed where the views live. Rows of the training samples are symmetric up to rounding, with
    an exact diagonal.
    """

    kernels: tuple[ComputedKernel, ...]  # what computes each kernel
    shape: tuple[int, int, int]  # number of kernels, of samples and of training samples
    number_type: str  # of the kernels, such as "float64"
    like: Any = field(repr=False)  # an array that says where rows live
    # The diagonals; None if the samples are not the training samples.
    self_similarities: Any = field(default=None, repr=False)

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
        return {each.name: arrays_to_host(getattr(self, each.name)) for each in fields(self)}

    @property
    def of_training_samples(self) -> bool:
        """Whether the samples are the training samples: then the kernels are symmetric."""
        return self.self_similarities is not None

    @property
    def dtype(self) -> Any:
        """Number type of the kernels, as their library names it."""
        if is_foreign(self.like):
            return getattr(namespace(self.like), self.number_type)
        return np.dtype(self.number_type)

    @property
    def n_kernels(self) -> int:  # type: ignore[override]
        """Number of kernels, m."""
        return self.shape[0]

    @property
    def n_samples(self) -> int:  # type: ignore[override]
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
        out = empty((self.n_kernels, stop - start, self.shape[2]), self.like, self.number_type)
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
        m, n, _ = self.shape
        require_memory(
            m * n * n * np.dtype(self.number_type).itemsize,
            f"{who} needs the entries of the kernels, and writing out {m} kernels of {n} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        return self.all_rows()

    def _tile_rows(self) -> int:
        """Return how many rows are computed at a time."""
        n = max(1, self.shape[2])
        if is_foreign(self.like):
            return max(1, TILE_BYTES_ON_DEVICE // np.dtype(self.number_type).itemsize // n)
        return max(TILE_ROWS, TILE_ENTRIES // n)

    def _tiles(self, rows: slice, columns: slice) -> Iterator[tuple[int, Array]]:
        """Yield some entries of every kernel, with its index."""
        pairs, near = dict[int, Pairs](), dict[int, Array]()
        for p, kernel in enumerate(self.kernels):
            tile: Any = None
            if kernel.x is not None and kernel.y is not None:
                if id(kernel.x) not in pairs:
                    x, y = kernel.x.part(rows), kernel.y.part(columns)
                    pairs[id(kernel.x)] = Pairs(x, y, columns, self.number_type)
                tile = astype(kernel.formula.entries(pairs[id(kernel.x)]), self.number_type)
            if kernel.shared is not None:
                if id(kernel.shared) not in near:
                    block = kernel.shared[rows].toarray()[:, columns]
                    near[id(kernel.shared)] = to_device(block, self.like, self.number_type)
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
