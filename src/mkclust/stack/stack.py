"""Several kernels over the same samples: all that a solver may ask of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mkclust.linalg import (
    FEW_SAMPLES,
    add_multiple,
    astype,
    empty,
    fits,
    free_bytes,
    namespace,
    pair_ranges,
    precision_of,
    products_of_rows,
    require_memory,
    to_device,
)
from mkclust.stack.checks import learn_centering, learn_scale
from mkclust.stack.kernel import DenseKernel, Kernel, Mix, multiply, row_blocks, written
from mkclust.stack.observed import FillRule, Observed, SampleMap, with_active
from mkclust.stack.standardized import Standardized, fused_mixes, write_mix
from mkclust.types import Array, Float

# Up to this many samples, mixes of sparse kernels, and copies of all kernels, are
# written out.
MOST_WRITTEN = 4096


class RawKernel(NamedTuple):
    """A kernel that is neither centered nor scaled yet."""

    kernel: Kernel  # over the samples that it has
    row_means: Array
    label: str  # what messages call it
    observed: np.ndarray | None = None  # the samples that it has; None for all
    largest: float = 0.0  # of its entries, if these were looked for


# What checks or repairs a centered kernel.
Repair = Callable[[Standardized, RawKernel], Standardized]


@dataclass(frozen=True)
class Stack:
    """Several kernels over the same samples.

    Arrays as long as the samples stay with the array library of the kernels; arrays as
    long as the number of kernels come out as NumPy float64.
    """

    kernels: tuple[Kernel, ...]  # centered and scaled, over all samples
    names: tuple[str, ...]  # of the kernels
    # The number of the view of each kernel; parts of one table are one view.
    views: tuple[int, ...]
    # Lifts vectors over the coordinates of a compressed stack to all samples (a
    # `SampleFeatures`); None if the kernels are over the samples themselves.
    features: Any = field(default=None, repr=False)
    # The number of the group of each sample, of all that were read; None if there are
    # no groups.
    groups: np.ndarray | None = field(default=None, repr=False)
    # The covariates that views were adjusted for, of all samples, (n, q), if any.
    covariates: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        raw: Sequence[RawKernel],
        names: Sequence[str],
        views: Sequence[int] | None,
        *,
        center: bool,
        normalize: bool,
        fill: FillRule = "rescale",
        n_samples: int | None = None,
        repair: Repair | None = None,
    ) -> "Stack":
        """Return kernels centered and scaled, and filled if they lack samples.

        Views are the numbers of those that kernels are computed from; None if all
        differ. ``n_samples`` says how many samples there are, if kernels lack some. A
        function may check or repair centered kernels before they are scaled.
        """
        kernels: list[Kernel] = []
        for each in raw:
            centering = learn_centering(each.kernel, each.row_means, each.label, center)
            centered = Standardized(each.kernel, centering)
            if repair is not None:
                centered = repair(centered, each)
            if normalize:
                centered = learn_scale(centered, each.label, each.observed)
            kernels.append(centered)

        if n_samples is not None:
            observed = [each.observed for each in raw]
            kernels = _filled(kernels, observed, n_samples, views, fill)
        numbers = range(len(names)) if views is None else views
        return cls(tuple(kernels), tuple(names), tuple(numbers))

    n_kernels = property(lambda self: len(self.kernels))  # m
    # Number of samples, n, or of the coordinates that stand for them.
    n_samples = property(lambda self: self.kernels[0].n_samples)

    @property
    def in_memory(self) -> bool:
        """Whether a mix of the kernels is one matrix, with which products are cheap."""
        storage = Mix(np.ones(self.n_kernels), self.kernels).storage
        is_written = storage == "sparse" and self.n_samples <= MOST_WRITTEN
        return storage == "dense" or is_written

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass."""
        n, b = V.shape
        # As rows, which is how most products come and how they are reduced.
        products = empty((self.n_kernels, b, n), V, precision_of(V))
        for p, product in enumerate(multiply(self.kernels, [V] * self.n_kernels)):
            products[p, :, :] = product.T
        return namespace(V).permute_dims(products, (0, 2, 1))

    def mix(self, coefficients: Float, precision: str = "float64") -> Kernel:
        """Return ``sum_p c_p K_p``, written out if the kernels are in memory."""
        mix = Mix(np.array(coefficients, dtype=np.float64), self.kernels)
        # A single kernel is as cheap to multiply as a copy of it.
        n_mixed = np.count_nonzero(mix.coefficients)
        if n_mixed <= 1 or not self.in_memory:
            return mix
        n = self.n_samples
        require_memory(
            np.dtype(precision).itemsize * n**2,
            f"mixing {self.n_kernels} kernels of {n} samples, in addition to the "
            "kernels,",
            "use fewer samples, or views with kernels='on-the-fly'",
            available=free_bytes(self.kernels[0].like),
        )
        return DenseKernel(write_mix(mix, precision))

    def among(
        self,
        samples: np.ndarray | None = None,
        precision: str = "float64",
    ) -> "HeldStack":
        """Return the kernels of some samples, or of all, written out as one array."""
        n = self.n_samples
        m = self.n_kernels
        like = self.kernels[0].like
        count = n if samples is None else len(samples)
        require_memory(
            m * count**2 * np.dtype(precision).itemsize,
            f"writing out {m} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as "
            "SimpleMKKM",
            available=free_bytes(like),
        )
        if samples is None:
            return HeldStack(written(self.kernels, precision), self.names, self.views)
        entries = empty((m, count, count), like, precision)
        chosen = to_device(np.asarray(samples), like)
        for part in pair_ranges(count, n, like):
            for p, kernel in enumerate(self.kernels):
                entries[p, part, :] = astype(
                    kernel.entries(chosen[part], chosen), precision
                )
        return HeldStack(entries, self.names, self.views)

    def held(self, make: bool | None = None) -> "HeldStack | None":
        """Return the kernels written out, in single precision if they are large.

        None if memory or float32 cannot hold them, or if mixes are as fast without. By
        default, only few samples are written out.
        """
        if make is None:
            make = self.n_samples <= MOST_WRITTEN
        if make:
            return self._written_out
        return vars(self).get("_written_out")

    @cached_property
    def _written_out(self) -> "HeldStack | None":
        """The kernels written out, if that pays and fits."""
        n = self.n_samples
        if n <= FEW_SAMPLES and self.in_memory:
            return self.among()
        n_bytes = 4 * (self.n_kernels + 2) * n**2
        if not fits(n_bytes, available=free_bytes(self.kernels[0].like)):
            return None
        if not self.is_safe_in_single or fused_mixes(self.kernels) is not None:
            return None
        return self.among(None, "float32")

    @cached_property
    def is_safe_in_single(self) -> bool:
        """Whether a mix is one matrix whose entries single precision can hold."""
        # Coefficients are squares, so entries need room on both sides.
        sizes = self.traces() / self.n_samples
        return self.in_memory and bool(np.all((sizes > 1e-8) & (sizes < 1e8)))

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        xp = namespace(self.kernels[0].like)
        total = np.zeros((self.n_kernels, self.n_kernels))
        for part in row_blocks(self.kernels):
            rows = [xp.reshape(kernel.rows(part), (-1,)) for kernel in self.kernels]
            total += products_of_rows(xp.stack(rows))
        return total

    def traces(self) -> Float:
        """Return the traces of the kernels, (m,)."""
        diagonals = (kernel.diagonal() for kernel in self.kernels)
        return np.array([float(namespace(each).sum(each)) for each in diagonals])

    def subset(self, indices: Sequence[int]) -> "Stack":
        """Return some of the kernels."""
        features = self.features
        if features is not None:
            features = features.subset(indices)
        chosen = Stack(
            tuple(self.kernels[p] for p in indices),
            tuple(self.names[p] for p in indices),
            tuple(self.views[p] for p in indices),
            features,
            self.groups,
            self.covariates,
        )
        if "_compared" in vars(self):  # see `mkclust.stack.compare`
            vars(chosen)["_compared"] = vars(self)["_compared"].subset(indices)
        return chosen


class HeldStack(Stack):
    """Kernels written out as one array, (m, n, n): a mix of them is one product."""

    def __init__(
        self,
        entries: Array,
        names: tuple[str, ...],
        views: tuple[int, ...],
    ):
        slices = (DenseKernel(entries[p, :, :]) for p in range(entries.shape[0]))
        kernels = tuple(slices)
        super().__init__(kernels, names, views)
        object.__setattr__(self, "entries", entries)

    entries: Array

    def held(self, make: bool | None = None) -> "HeldStack":
        """Return the stack itself."""
        return self

    def mix(self, coefficients: Float, precision: str = "") -> Kernel:
        """Return ``sum_p c_p K_p`` as a new matrix, in the number type of the copy.

        What ``precision`` says is not asked for: mixes of a rounded copy are rounded.
        """
        m, n, _ = self.entries.shape
        mixed = empty((n, n), self.entries, precision_of(self.entries))

        if isinstance(self.entries, np.ndarray):
            c = np.asarray(coefficients, dtype=self.entries.dtype)
            flat = self.entries.reshape(m, n * n)
            np.dot(c, flat, out=mixed.reshape(n * n))
            return DenseKernel(mixed)

        mixed[...] = 0.0  # a product of n^2 columns overflows on a device
        for p in range(m):
            add_multiple(mixed, self.entries[p, :, :], float(coefficients[p]))
        return DenseKernel(mixed)


def _filled(
    kernels: Sequence[Kernel],
    observed: Sequence[Any],
    n_samples: int,
    views: Sequence[int] | None,
    fill: FillRule,
) -> list[Kernel]:
    """Return kernels over all samples, of which some are missing from them."""
    # Kernels of one view, or given ones with the same samples, share their map.
    shared: dict[Any, SampleMap] = {}
    scale = None
    if fill == "rescale":
        scale = np.ones(n_samples)
    mapped: list[Kernel] = []
    of_views = [None] * len(kernels) if views is None else views
    for kernel, view, has in zip(kernels, of_views, observed, strict=True):
        new = SampleMap(has, n_samples, scale)
        own = shared.setdefault((view, has.tobytes()), new)
        mapped.append(Observed(kernel, own))
    return list(with_active(mapped, range(len(mapped))))
