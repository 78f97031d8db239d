r"""Kernels of which each lacks some samples: complete stacks over the samples that they have.

Over all samples a kernel is :math:`E^\top K E`, with K centered and scaled among the samples that
it has, and E a `SampleMap`. That takes a product with K and nothing of the size of a kernel beside
it, and is positive semidefinite as K is: solvers and certificates hold for it as for any other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    free_bytes,
    is_foreign,
    is_sparse,
    namespace,
    ranges,
    select,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.memory import require_memory
from mkclust.linalg.operators import ExactOperator, ScaledOperator
from mkclust.samples.samples import Samples
from mkclust.stack.base import (
    KernelOperator,
    KernelStack,
    Operator,
    StackPart,
    Standardization,
    Storage,
    UncompressedStack,
)
from mkclust.stack.common_samples import compare_parts
from mkclust.stack.dense import GRAM_ROWS, GRAM_ROWS_ON_DEVICE
from mkclust.stack.off_diagonal import Comparison
from mkclust.stack.sample_map import FillRule, SampleMap, rescaling
from mkclust.types import Array, Float


@dataclass(frozen=True)
class IncompleteKernel(ExactOperator):
    """One kernel over all samples, of which it has some.

    Attributes
    ----------
    kernel : KernelOperator
        Over the samples that it has.
    map : SampleMap
        Which these are, and what becomes of the others.
    """

    kernel: KernelOperator
    map: SampleMap

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.map.n_samples, self.map.n_samples

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return self.kernel.like

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        return self.map.scatter(self.kernel @ self.map.gather(X))

    def times_members(self, members: Any) -> Array:
        """Multiply with a sparse matrix of the host, given as its transpose, (b, n) to (n, b)."""
        return self @ to_device(members.toarray().T, self.like)

    def raw_projection(self, P: Array) -> Array:
        """Return what the kernel as it came, over its own samples, is multiplied with for P."""
        return self.kernel.raw_projection(self.map.gather(P))

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        return _spread(self.kernel.dense(), self.map)

    def block(self, rows: Array | slice, columns: Array | slice) -> Array:
        """Return the entries of some rows and columns."""
        everyone, sample_map = np.arange(self.map.n_samples), self.map
        row_numbers, column_numbers = (_numbers(each, everyone) for each in (rows, columns))
        if sample_map.fill is None:
            return self._observed_block(row_numbers, column_numbers)
        plain = replace(sample_map, scale=None, fill=None)
        part = replace(self, map=plain)._observed_block(row_numbers, column_numbers)
        left, right = (to_device(side, part) for side in vars(sample_map.fill).values())
        products = self.kernel @ left
        # With S the selection of observed samples, (S + L R^T)^T K (S + L R^T) less S^T K S.
        images = plain.scatter(products) + right @ ((left.T @ products) / 2)
        for one, other in ((right, images), (images, right)):
            part = part + select(one, row_numbers) @ select(other, column_numbers).T
        if sample_map.scale is not None:
            scale = to_device(sample_map.scale, part)
            part = part * select(scale, row_numbers)[:, None] * select(scale, column_numbers)
        return part

    def _observed_block(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Return the entries of some rows and columns where missing samples are made of nothing."""
        positions = self.map.positions
        present = [numbers[positions[numbers] < self.map.n_observed] for numbers in (rows, columns)]
        part = self.kernel.block(*(to_device(positions[each], self.like) for each in present))
        for numbers, seen in ((columns, present[1]), (rows, present[0])):
            part = _between(part.T, np.isin(numbers, seen))
            if self.map.scale is not None:
                part = part * select(to_device(self.map.scale, part), numbers)[:, None]
        return part

    def diagonal(self) -> Array:
        """Return the diagonal, (n,)."""
        own = replace(self.map, scale=None, fill=None).scatter(self.kernel.diagonal()[:, None])
        diagonal, fill = own[:, 0], self.map.fill
        if fill is not None:
            left, right = to_device(fill.left, diagonal), to_device(fill.right, diagonal)
            xp, small = namespace(diagonal), left.T @ (self.kernel @ left)
            diagonal = diagonal + xp.sum((right @ small) * right, axis=1)
        scale = self.map.scale
        return diagonal if scale is None else diagonal * to_device(scale, diagonal) ** 2


@dataclass(frozen=True)
class IncompleteCombination(ExactOperator):
    """``sum_p c_p K_p`` over all samples, a sum of what each part contributes.

    Attributes
    ----------
    operators : sequence of Operator
        A combination of each part's kernels, over the samples that they have.
    maps : sequence of SampleMap
        Which these are.
    """

    operators: Sequence[Operator]
    maps: Sequence[SampleMap]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.maps[0].n_samples, self.maps[0].n_samples

    @property
    def like(self) -> Array:
        """An array that says where the vectors live that this can be multiplied with."""
        return self.operators[0].like

    def __matmul__(self, X: Array) -> Array:
        """Multiply with a thin matrix, (n, b) to (n, b)."""
        pairs = zip(self.operators, self.maps, strict=True)
        parts = [each.scatter(operator @ each.gather(X)) for operator, each in pairs]
        return sum(parts[1:], start=parts[0])

    def dense(self) -> Array:
        """Write the entries out, (n, n)."""
        n = self.shape[0]
        require_memory(
            2 * 8 * n**2,
            f"writing out a combination of kernels of {n} samples",
            "use fewer samples",
            available=free_bytes(self.like),
        )
        matrix = zeros((n, n), self.like)
        for operator, each in zip(self.operators, self.maps, strict=True):
            matrix += _spread(operator.dense(), each)
        return matrix


@dataclass(frozen=True)
class IncompleteStack(UncompressedStack):
    """Several kernels of which each has some of the samples only.

    Attributes
    ----------
    parts : sequence of StackPart
        The kernels by the samples that they have.
    rule : {"zero", "rescale"}
        What becomes of samples that are missing: nothing, so that their similarities are zero,
        which of centered kernels is the average; or besides that, every sample is scaled up to the
        total self-similarity of one that all kernels have.
    counted : ndarray of bool of shape (n_kernels,)
        Which kernels count in that.
    """

    parts: Sequence[StackPart]
    rule: FillRule
    counted: np.ndarray

    @classmethod
    def of(
        cls,
        stacks: Sequence[KernelStack],
        observed: np.ndarray,
        indices: Sequence[Sequence[int]],
        rule: FillRule,
    ) -> "IncompleteStack":
        """Stack kernels of which each has some samples.

        Parameters
        ----------
        stacks : sequence of KernelStack
            Kernels over the samples that they have, those of each with the same samples.
        observed : ndarray of bool of shape (n_samples, n_stacks)
            Which samples these are.
        indices : sequence of sequences of int
            The number of each of their kernels among all.
        rule : {"zero", "rescale"}
            What becomes of samples that are missing.
        """
        maps = [SampleMap(np.flatnonzero(column), len(observed)) for column in observed.T]
        triples = zip(stacks, map(tuple, indices), maps, strict=True)
        parts = [StackPart(*each) for each in triples]
        m = sum(len(part.indices) for part in parts)
        return cls(parts, rule, np.ones(m, bool)).counting(range(m))

    @cached_property
    def _places(self) -> dict[int, tuple[StackPart, int]]:
        """The part of each kernel, and its number there."""
        return {
            index: (part, place) for part in self.parts for place, index in enumerate(part.indices)
        }

    def _in_order(self, values: Callable[[StackPart], Sequence[Any]]) -> list[Any]:
        """Return something that each part knows of its kernels in the order of all kernels."""
        every = {id(part): values(part) for part in self.parts}
        places = (self._places[index] for index in range(self.n_kernels))
        return [every[id(part)][place] for part, place in places]

    @property
    def maps(self) -> list[SampleMap]:
        """The map of each part."""
        return [part.map for part in self.parts]

    def with_maps(self, maps: Sequence[SampleMap]) -> "IncompleteStack":
        """Return the same with other maps, one a part."""
        pairs = zip(self.parts, maps, strict=True)
        return replace(self, parts=[replace(part, map=each) for part, each in pairs])

    @cached_property
    def observed(self) -> np.ndarray:
        """Which kernels have which samples, (n_samples, n_kernels) of bool."""
        observed = np.zeros((self.n_samples, self.n_kernels), dtype=bool)
        for part in self.parts:
            observed[np.ix_(part.map.samples, np.array(part.indices))] = True
        return observed

    def counting(self, indices: Sequence[int]) -> "IncompleteStack":
        """Return the same where only some kernels count as those that could have a sample."""
        counted = np.isin(np.arange(self.n_kernels), list(indices))
        if self.rule == "zero":
            return replace(self, counted=counted)
        scale = rescaling(self.observed, counted)
        scale[scale == 0] = 1  # the others are still what they are to the samples that they have
        scale = to_device(scale, self.like)
        maps = [each if each.fill else replace(each, scale=scale) for each in self.maps]
        return replace(self.with_maps(maps), counted=counted)

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live: beside it, in float64."""
        return self.parts[0].stack.like

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(self._in_order(lambda part: part.stack.names))

    @property
    def views(self) -> Sequence[int]:
        """The number of the view that each kernel is of, (m,)."""
        return self._in_order(lambda part: part.stack.views)

    @property
    def standardizations(self) -> Sequence[Standardization]:  # type: ignore[override]
        """How each kernel is centered and scaled, among the samples that it has."""
        return self._in_order(lambda part: part.stack.standardizations)

    @property
    def raw_kernels(self) -> Sequence[Array]:
        """The kernels as they came, over the samples that each has."""
        return self._in_order(lambda part: part.stack.raw_kernels)

    @property
    def precision(self) -> float:
        """Relative rounding of the entries."""
        return max(part.stack.precision for part in self.parts)

    @cached_property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return sum(len(part.indices) for part in self.parts)

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return self.parts[0].map.n_samples

    @property
    def storage(self) -> Storage:
        """How the kernels as they came are held."""
        kinds = {part.stack.storage for part in self.parts}
        if "streamed" in kinds:
            return "streamed"
        return "sparse" if kinds == {"sparse"} else "dense"

    @property
    def itemsize(self) -> int:
        """Bytes of an entry of the kernels as they came."""
        return max(part.stack.itemsize for part in self.parts)

    @property
    def combining_pays(self) -> bool:
        """Whether products with a combination read fewer entries than those with all kernels."""
        combined = sum(part.map.n_observed**2 for part in self.parts)
        single = sum(len(part.indices) * part.map.n_observed**2 for part in self.parts)
        in_memory = all(part.stack.combining_pays for part in self.parts)
        return in_memory and combined <= single / 2

    @property
    def repaired(self) -> bool:
        """Whether an indefinite kernel was clipped or shifted."""
        return any(part.stack.repaired for part in self.parts)

    def kernel(self, index: int) -> IncompleteKernel:
        """Return one kernel, as something that supports ``@``."""
        part, place = self._places[index]
        return IncompleteKernel(part.stack.kernel(place), part.map)

    def rough_kernel(self, index: int) -> IncompleteKernel:
        """Return one kernel for products that need few digits, faster where it can be."""
        part, place = self._places[index]
        return IncompleteKernel(part.stack.rough_kernel(place), part.map)

    def subset(self, indices: Sequence[int]) -> "IncompleteStack":
        """Return some of the kernels, each computed with alone, whatever stands beside it."""
        new_places = {index: place for place, index in enumerate(indices)}
        parts = []
        for part in self.parts:
            inside = [place for place, index in enumerate(part.indices) if index in new_places]
            if inside:
                numbers = tuple(new_places[part.indices[place]] for place in inside)
                parts.append(StackPart(part.stack.subset(inside), numbers, part.map))
        return replace(self, parts=parts).counting(range(len(indices)))

    def raw_subset(self, indices: Sequence[int]) -> Samples:
        """Return some of the kernels as they came, as something that ``as_stack`` takes."""
        raw, names = self.raw_kernels, self.names
        return Samples(
            "kernels",
            tuple(names[p] for p in indices),
            tuple(raw[p] for p in indices),
            missing=~self.observed[:, list(indices)],
        )

    def for_each_block(self, handle: Callable[[slice, Sequence[Array]], None]) -> None:
        """Hand over the kernels as they came, some rows of all at a time, NaN for what is missing.

        Each part is handed over as it is by its own stack, at less expense.
        """
        raw, height = self.raw_kernels, GRAM_ROWS_ON_DEVICE if is_foreign(self.like) else GRAM_ROWS
        for rows in ranges(self.n_samples, height):
            blocks = []
            for p, matrix in enumerate(raw):
                seen = self.observed[:, p]
                first, last = np.cumsum(np.append(0, seen))[[rows.start, rows.stop]].tolist()
                part = matrix[first:last] if not is_foreign(matrix) else matrix[first:last, :]
                part = part.toarray() if is_sparse(part) else part
                part = _between(astype(part, "float64"), seen[rows], np.nan)
                blocks.append(_between(part.T, seen, np.nan).T)
            handle(rows, blocks)

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (n, b) to (m, n, b), in one pass over the data."""
        products = empty((self.n_kernels, V.shape[1], self.n_samples), V)
        for part in self.parts:
            images = part.stack.apply(part.map.gather(V))
            for place, index in enumerate(part.indices):
                products[index, :, :] = part.map.scatter(images[place, :, :]).T
        return namespace(V).permute_dims(products, (0, 2, 1))

    def combine(
        self, coefficients: Float, out: Operator | None = None, *, rounded: bool = False
    ) -> Operator:
        """Return ``sum_p c_p K_p``, in the memory of an earlier combination where given."""
        earlier: Sequence[Any] = [None] * len(self.parts)
        if isinstance(out, IncompleteCombination) and len(out.operators) == len(self.parts):
            earlier = out.operators
        operators: list[Operator] = []
        for part, memory in zip(self.parts, earlier, strict=True):
            c = coefficients[list(part.indices)]
            if len(c) == 1:  # nothing to add up, so nothing to copy
                operators.append(ScaledOperator(part.stack.kernel(0), float(c[0])))
            else:
                operators.append(part.stack.combine(c, out=memory))
        return IncompleteCombination(operators, self.maps)

    def raw_lengths(self) -> Sequence[Array]:
        """Return the lengths of the samples by each kernel, scaled but not centered, m of (n,)."""
        lengths = []
        for index, standardization in enumerate(self.standardizations):
            sample_map = self._places[index][0].map
            lengths.append(sample_map.scatter_lengths(standardization.raw_lengths()))
        return lengths

    def traces(self) -> Float:
        """Return the m traces."""
        diagonals = [self.kernel(p).diagonal() for p in range(self.n_kernels)]
        return np.array([float(namespace(each).sum(each)) for each in diagonals])

    def gram(self) -> Float:
        """Return ``Tr(K_p K_q)``, (m, m)."""
        m, xp = self.n_kernels, namespace(self.like)
        total, kernels = zeros((m, m), self.like), [self.kernel(p) for p in range(m)]
        height = GRAM_ROWS_ON_DEVICE if is_foreign(self.like) else GRAM_ROWS
        for rows in ranges(self.n_samples, height):
            parts = [kernel.block(rows, slice(None)) for kernel in kernels]
            blocks = xp.stack([xp.reshape(part, (-1,)) for part in parts])
            total += blocks @ blocks.T
        return to_host(total)

    def comparisons(self) -> Sequence[Comparison]:
        """Return what every two kernels share off their diagonals, on the samples both have."""
        return compare_parts(
            [part.stack for part in self.parts],
            [part.map.samples for part in self.parts],
            [part.indices for part in self.parts],
        )

    def entries(self, samples: Array | None = None) -> Array:
        """Write the kernels out, (m, n, n), or their part that belongs to some samples."""
        count = self.n_samples if samples is None else len(samples)
        require_memory(
            self.n_kernels * count**2 * 8,
            f"writing out {self.n_kernels} kernels of {count} samples",
            "use fewer samples, or a method that needs products only, such as SimpleMKKM",
            available=free_bytes(self.like),
        )
        out = empty((self.n_kernels, count, count), self.like)
        for p in range(self.n_kernels):
            kernel = self.kernel(p)
            out[p, :, :] = kernel.dense() if samples is None else kernel.block(samples, samples)
        return out

    def mixed_entries(self, coefficients: Float, samples: np.ndarray | None = None) -> Float:
        """Write ``sum_p c_p K_p`` out, (n, n), or the part of some samples; on the host."""
        if samples is None:
            return to_host(self.combine(coefficients).dense())
        mixed = np.zeros((len(samples), len(samples)))
        for p in np.flatnonzero(coefficients).tolist():  # one at a time, to spare the memory
            mixed += coefficients[p] * to_host(self.kernel(p).block(samples, samples))
        return mixed


def _spread(matrix: Array, sample_map: SampleMap) -> Array:
    """Return ``E^T K E`` of a matrix over the samples that a kernel has, (n, n)."""
    return sample_map.scatter(sample_map.scatter(matrix).T)


def _between(part: Array, seen: np.ndarray, missing: float = 0.0) -> Array:
    """Return rows in the places that are seen, others filled with a number."""
    xp = namespace(part)
    positions = np.where(seen, np.cumsum(seen) - 1, part.shape[0])
    last = zeros((1, part.shape[1]), part) + missing
    return select(xp.concat([part, last]), positions)


def _numbers(where: Any, everyone: np.ndarray) -> np.ndarray:
    """Return the numbers of samples that a slice or an array stands for, on the host."""
    return everyone[where if isinstance(where, slice) else to_host(where, None)]
