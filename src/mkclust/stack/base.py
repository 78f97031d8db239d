"""What every stack of kernels answers, and how one kernel is centered and scaled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from mkclust.linalg import (
    arrays_to_host,
    astype,
    empty,
    is_foreign,
    is_sparse,
    namespace,
    ranges,
    select,
    to_device,
    zeros,
)
from mkclust.linalg.operators import Operator
from mkclust.stack.mapped import Features
from mkclust.stack.off_diagonal import Comparison
from mkclust.stack.sample_map import SampleMap
from mkclust.types import Array, Float

Storage = Literal["dense", "sparse", "streamed"]

# Rows of similarities that are projected at a time, on a host and on a device.
PROJECTED_ROWS, PROJECTED_ROWS_ON_DEVICE = 256, 4096


class KernelOperator(Operator, Protocol):
    """One kernel of a stack, centered and scaled."""

    def block(self, rows: Array | slice, columns: Array | slice) -> Array:
        """Return the entries of some rows and columns."""

    def diagonal(self) -> Array:
        """Return the diagonal, (n,)."""

    def raw_projection(self, P: Array) -> Array:
        """Return what the kernel as it came is multiplied with where this one is with P, (n, b)."""

    def times_members(self, members: Any) -> Array:
        """Multiply with a sparse matrix of the host, given as its transpose, (b, n) to (n, b)."""


class KernelStack(Protocol):
    """Several kernels over the same samples: all that a method may ask of them.

    What is as long as the samples stays with the array library of the kernels; what is as long
    as the number of kernels comes out as NumPy float64.
    """

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live: beside it, in float64."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""

    @property
    def views(self) -> Sequence[int]:
        """The number of the view that each kernel is of, (m,)."""

    @property
    def standardizations(self) -> Sequence["Standardization"]:
        """How each kernel is centered and scaled."""

    @property
    def parts(self) -> Sequence["StackPart"]:
        """The kernels by the samples that they have: all together where none lacks a sample."""

    @property
    def raw_kernels(self) -> Sequence[Array]:
        """The kernels as they came: neither centered nor scaled nor repaired."""

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""

    @property
    def storage(self) -> Storage:
        """How the kernels as they came are held."""

    @property
    def itemsize(self) -> int:
        """Bytes of one of their entries."""

    @property
    def combining_pays(self) -> bool:
        """Whether a combination is a matrix, cheaper to multiply with than all kernels are."""

    @property
    def repaired(self) -> bool:
        """Whether an indefinite kernel was clipped or shifted."""

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""

    @property
    def approximation_error(self) -> Float | None:
        """The share of each kernel's trace that features miss, (m,); None where there are none."""

    @property
    def observed(self) -> np.ndarray | None:
        """Which samples each kernel has, bool of shape (all samples, m); None where all."""

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors as long as ``n_samples``."""

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for samples that stand for all, where clusters are only compared."""

    def embedding_map(self, rows: Float) -> tuple[Features, Float] | None:
        """Return what takes samples, old or new, to rows where ``lift`` takes `rows` to them.

        That is features, and a matrix to multiply them with; None where there are no features, and
        a sample is known by its similarities only.
        """

    def kernel(self, index: int) -> KernelOperator:
        """Return one kernel, as something that supports ``@``."""

    def rough_kernel(self, index: int) -> KernelOperator:
        """Return one kernel for products that need few digits, faster where it can be."""

    @property
    def counted(self) -> np.ndarray:
        """Which kernels count as those that could have a sample, (m,) of bool."""

    def counting(self, indices: Sequence[int]) -> "KernelStack":
        """Return the same where samples that are missing count as such by these kernels only."""

    def with_maps(self, maps: Sequence[SampleMap]) -> "KernelStack":
        """Return the same with other maps, one a part; none is missing where there is one part."""

    def subset(self, indices: Sequence[int]) -> "KernelStack":
        """Return some of the kernels, each computed with alone, whatever stands beside it."""

    def raw_subset(self, indices: Sequence[int]) -> Any:
        """Return some of the kernels as they came, as something that ``as_stack`` takes."""

    def for_each_block(self, handle: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came, some rows of all at a time, each read once."""

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""

    def combine(
        self, coefficients: Float, out: Operator | None = None, *, rounded: bool = False
    ) -> Operator:
        """Return ``sum_p c_p K_p``, in the memory of an earlier combination where given.

        Rounded, it may be in single precision where that takes half of the time.
        """

    def sum_of_products(self, thin: Sequence[Array]) -> Array | None:
        """Return ``sum_p K_p X_p``, (n, b), where that takes no rows of the kernels; else None."""

    def raw_lengths(self) -> Sequence[Array]:
        """Return the lengths of the samples by each kernel, scaled but not centered, m of (n,)."""

    def traces(self) -> Float:
        """Return the m traces."""

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""

    def comparisons(self) -> Sequence[Comparison]:
        """Return what every two kernels share off their diagonals, on the samples both have."""

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""

    def mixed_entries(self, coefficients: Float, samples: np.ndarray | None = None) -> Float:
        """Write ``sum_p c_p K_p`` out, (n, n), or the part of some samples; on the host."""


@dataclass(frozen=True)
class StackPart:
    """Kernels that have the same samples.

    Attributes
    ----------
    stack : KernelStack
        The kernels, over the samples that they have.
    indices : tuple of int
        Their numbers among all kernels.
    map : SampleMap
        Which samples they have, and what becomes of the others.
    """

    stack: KernelStack
    indices: tuple[int, ...]
    map: SampleMap

    @classmethod
    def whole(cls, stack: KernelStack) -> "StackPart":
        """Return all kernels of a stack as one part."""
        everyone = SampleMap(np.arange(stack.n_samples), stack.n_samples)
        return cls(stack, tuple(range(stack.n_kernels)), everyone)


class UncompressedStack:
    """What a stack answers whose vectors are as long as the samples, as all but compressed ones."""

    standardizations: Sequence["Standardization"]
    kernel: Callable[[int], Any]
    combine: Callable[..., Operator]

    @property
    def compressed(self) -> bool:
        """Whether ``n_samples`` counts coordinates that stand for many more samples."""
        return False

    @property
    def approximation_error(self) -> Float | None:
        """The share of each kernel's trace that features miss: there are no features."""
        return None

    @property
    def observed(self) -> np.ndarray | None:
        """Which samples each kernel has: all of them have all."""
        return None

    def lift(self, *vectors: Array) -> tuple[Array, ...]:
        """Return vectors over all samples, from vectors as long as ``n_samples``: themselves."""
        return vectors

    def lift_some(self, vectors: Array) -> Array:
        """Return the same for samples that stand for all: here all do."""
        return vectors

    def embedding_map(self, rows: Float) -> tuple[Features, Float] | None:
        """Return what takes the features of samples to rows: there are no features."""
        return None

    def rough_kernel(self, index: int) -> Any:
        """Return one kernel for products that need few digits: with all digits."""
        return self.kernel(index)

    def sum_of_products(self, thin: Sequence[Array]) -> Array | None:
        """Return ``sum_p K_p X_p`` where that takes no rows of the kernels: it does."""
        return None

    def counting(self, indices: Sequence[int]) -> Any:
        """Return the same where samples that are missing count by some kernels: none is missing."""
        return self

    def with_maps(self, maps: Sequence[SampleMap]) -> Any:
        """Return the same with other maps of samples that are missing: none is."""
        return self

    def raw_lengths(self) -> Sequence[Array]:
        """Return the lengths of the samples by each kernel, scaled but not centered, m of (n,)."""
        return [each.raw_lengths() for each in self.standardizations]


@dataclass(frozen=True)
class Standardization:
    """How one kernel is centered and scaled, as learned from the training samples.

    The standardized kernel is ``s_i s_j (K_ij - r_i - r_j + r)``: r_i the row means, r their mean,
    s the scale that makes the diagonal one.

    Attributes
    ----------
    diagonal : array of shape (n_samples,)
        Self-similarities before any centering or scaling.
    row_means : array of shape (n_samples,) or None
        None where the kernel is not centered.
    scale : array of shape (n_samples,) or None
        None where the kernel is not scaled.
    added : array of shape (n_samples,) or None
        What the repair of an indefinite kernel adds to the centered self-similarities; None where
        nothing was repaired.
    shift : float
        Multiple of the identity that a repair adds to the centered kernel: to the similarity of a
        sample with itself only.
    """

    diagonal: Array
    row_means: Array | None = None
    scale: Array | None = None
    added: Array | None = None
    shift: float = 0.0

    def to_same_device(self, like: Array) -> "Standardization":
        """Return the same with its arrays where another array lives."""
        names = ("diagonal", "row_means", "scale", "added")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        return replace(self, **{name: to_device(array, like) for name, array in arrays.items()})

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    @cached_property
    def mean(self) -> float:
        """Mean of all entries of the kernel."""
        return (
            0.0 if self.row_means is None else float(namespace(self.row_means).mean(self.row_means))
        )

    @property
    def scale_or_ones(self) -> Array:
        """What rows and columns are multiplied with, (n_samples,)."""
        return (
            zeros(self.diagonal.shape[0], self.diagonal) + 1.0 if self.scale is None else self.scale
        )

    def raw_lengths(self) -> Array:
        """Return the lengths of the samples, scaled but not centered, (n_samples,)."""
        xp = namespace(self.diagonal)
        lengths = xp.sqrt(xp.abs(self.diagonal))
        return lengths if self.scale is None else lengths * self.scale

    def centered_diagonal(self) -> Array:
        """Return the self-similarities after centering, before scaling, (n_samples,)."""
        if self.row_means is None:
            return self.diagonal
        return self.diagonal - 2 * self.row_means + self.mean

    def repaired_diagonal(self) -> Array:
        """Return the same with what a repair adds to them, (n_samples,)."""
        lengths = self.centered_diagonal()
        return lengths if self.added is None else lengths + self.added

    def entries(self, part: Array, rows: Any, columns: Any) -> Array:
        """Return entries of some rows and columns, centered and scaled, as a copy in float64."""
        xp = namespace(part)
        part = xp.astype(part, xp.float64)
        self.standardize(part, rows, columns)
        return part

    def write(self, matrix: np.ndarray, out: np.ndarray) -> None:
        """Write all entries of a kernel of the host, centered and scaled, in float64."""
        if self.row_means is None:
            out[...] = matrix
        else:
            np.subtract(matrix, self.row_means[:, None], out=out)
            out -= self.row_means - self.mean
        if self.scale is not None:
            out *= self.scale[:, None]
            out *= self.scale

    def standardize(self, part: Array, rows: Any, columns: Any) -> None:
        """Center and scale entries of some rows and columns where they are, in float64."""
        if self.row_means is not None:
            part -= select(self.row_means, rows)[:, None]
            part -= select(self.row_means, columns) - self.mean
        if self.scale is not None:
            part *= select(self.scale, rows)[:, None]
            part *= select(self.scale, columns)

    def transform_columns(self, V: Array) -> Array:
        """Return what the kernel as it came is multiplied with in place of V, (n, b)."""
        Y = V if self.scale is None else V * self.scale[:, None]
        return Y if self.row_means is None else Y - namespace(Y).mean(Y, axis=0)

    def constant_self_similarity(self) -> float | None:
        """Return the self-similarity all training samples share, or None where they differ."""
        xp, first = namespace(self.diagonal), float(self.diagonal[0])
        # A float32 kernel computes its unit diagonal to about 1e-6.
        shared = xp.all(xp.abs(self.diagonal - first) <= 1e-6 * abs(first))
        return first if shared else None

    def project(
        self,
        cross: Array,
        P: Array,
        self_similarity: Array | None,
        samples: np.ndarray | None = None,
    ) -> Array:
        """Multiply the standardized similarities of new samples to the training ones with P.

        Parameters
        ----------
        cross : array of shape (n_new, n_samples)
            Similarities as they come, neither centered nor scaled. What else is given is brought
            to where they live.
        P : array of shape (n_samples, b)
            What to multiply with.
        self_similarity : array of shape (n_new,) or None
            The new samples' similarities to themselves; needed only to scale.
        samples : ndarray of int of shape (n_new,) or None
            Which of them are training samples, by their numbers there, -1 for none; needed only
            where the kernel was repaired. None where all are new.

        Returns
        -------
        array of shape (n_new, b)
        """
        local, P, xp = self.to_same_device(cross), to_device(P, cross), namespace(cross)
        if local.scale is not None:
            P = P * local.scale[:, None]
        n_new, scaled = cross.shape[0], P
        if local.row_means is not None:
            P = P - xp.mean(P, axis=0)  # cancels the new samples' own means exactly
        rows, means = empty((n_new, P.shape[1]), cross), zeros((n_new,), cross)
        # In float64 whatever the similarities are, dense ones some rows at a time for the memory.
        for part in ranges(n_new, _projected_rows(cross)):
            block = _as_float64(cross[part, :])
            rows[part, :] = block @ P
            if local.row_means is not None:
                means[part] = _row_means(block)
        if local.row_means is not None:
            rows -= local.row_means @ P
        if local.shift and samples is not None:
            is_training = to_device(samples >= 0, cross)[:, None]
            rows += local.shift * xp.where(is_training, select(scaled, np.maximum(samples, 0)), 0.0)
        if local.scale is None:
            return rows
        if self_similarity is None:
            raise ValueError("scaling needs the self-similarity of the new samples")
        lengths = to_device(self_similarity, cross) - 2 * means + local.mean
        if local.added is not None:
            lengths = lengths + local._added_to(n_new, samples)
        # A new sample at the very mean of the training samples has no direction: leave it at zero.
        has_length = lengths > 1e-10 * float(xp.mean(xp.abs(local.repaired_diagonal())))
        return (
            rows
            * xp.where(has_length, 1 / xp.sqrt(xp.where(has_length, lengths, 1.0)), 0.0)[:, None]
        )

    def _added_to(self, n_new: int, samples: np.ndarray | None) -> Array:
        """Return what a repair adds to self-similarities: to new ones what it does on average."""
        assert self.added is not None
        xp = namespace(self.added)
        average = zeros((n_new,), self.added) + xp.mean(self.added)
        if samples is None:
            return average
        additions = select(self.added, np.maximum(samples, 0))
        return xp.where(to_device(samples >= 0, additions), additions, average)


def _projected_rows(cross: Array) -> int:
    """Return how many rows of similarities are projected at a time; all that are sparse."""
    if is_sparse(cross):
        return max(1, cross.shape[0])
    return PROJECTED_ROWS_ON_DEVICE if is_foreign(cross) else PROJECTED_ROWS


def _as_float64(block: Array) -> Array:
    """Return a block of similarities, dense or sparse, in double precision."""
    if is_sparse(block):
        return block.astype(np.float64, copy=False)
    return astype(block, "float64")


def _row_means(block: Array) -> Array:
    """Return the mean of every row of a dense or sparse block."""
    if is_sparse(block):
        return np.asarray(block.mean(axis=1)).reshape(-1)
    return namespace(block).mean(block, axis=1)
