"""Embed samples that were not there when the model was fitted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from mkclust.kernels.computed import ComputedKernels
from mkclust.linalg import (
    arrays_to_host,
    empty,
    is_foreign,
    namespace,
    noise,
    precision_of,
    side_by_side,
    to_device,
    to_host,
    zeros,
)
from mkclust.methods.learned_rows import LearnedRows
from mkclust.methods.seen_regression import SeenRegression
from mkclust.stack import KernelStack, Standardization
from mkclust.stack.checks import symmetrized
from mkclust.stack.sample_map import FillRule, SampleMap, rescaling
from mkclust.types import Array, Float

# A sample is a training sample where its similarities differ by no more than this share.
SAME_SAMPLE = 1e-6


def inverse(eigenvalues: Float, n_samples: int, precision: float) -> Float:
    """Return the reciprocals of falling eigenvalues, zero where there is only rounding."""
    is_positive = eigenvalues > n_samples * precision * max(eigenvalues[0], 0)
    return is_positive / np.where(is_positive, eigenvalues, 1)


@dataclass(frozen=True)
class SeenSimilarities:
    """The similarities of those new samples that some kernels have.

    Attributes
    ----------
    indices : sequence of int
        The numbers of these kernels among all.
    rows : ndarray of int of shape (n_seen,)
        Which of the new samples they have, rising.
    cross : m matrices of shape (n_seen, n_samples), or ComputedKernels
        Similarities of these to the training samples that the kernels have.
    self_similarity : array of shape (m, n_seen) or None
        Their similarities to themselves; None where they are known.
    """

    indices: Sequence[int]
    rows: np.ndarray
    cross: Sequence[Array] | ComputedKernels
    self_similarity: Array | None = None


class SeenRows:
    """What extensions share: to embed samples that some kernels lack, by those that have them."""

    def embed_seen(self: Any, parts: Sequence[SeenSimilarities], n_new: int) -> Array:
        """Embed new samples of which some kernels lack some, (n_new, k)."""
        return embed_seen(self, parts, n_new)

    def complete(self: Any, rows: Array, seen: np.ndarray) -> Array:
        """Make up for kernels that lack samples, where all others have been added up.

        Parameters
        ----------
        rows : array of shape (n_new, k)
            What the kernels that have them contribute to the embedding of samples.
        seen : ndarray of bool of shape (n_new, n_kernels)
            Which kernels have which samples.
        """
        if self.learned is not None:
            return self.learned.complete(rows, seen)
        return rescaled(rows, seen, self.counted) if self.rule == "rescale" else rows


@dataclass(frozen=True)
class Extension(SeenRows):
    r"""The embedding as a function of similarities to the training samples.

    .. math:: h(x) = \sum_p P_p^\top k_p(x)

    Leading eigenvectors H of a combination, with eigenvalues :math:`\Lambda`, have
    :math:`P_p = c_p H \Lambda^{-1}`.

    Attributes
    ----------
    standardizations : sequence of Standardization
        How each kernel was centered and scaled.
    names : sequence of str
        Names of the kernels.
    projections : sequence of m arrays of shape (n_samples, k)
        What the similarities by each kernel, as given, are multiplied with. Where the negative part
        of a kernel was dropped, they leave out the directions that were.
    prints : ndarray of shape (n_samples, 3) or None
        Random products of the training samples' similarities, by which they are known again; None
        where no kernel was repaired.
    rule : {"zero", "rescale"}
        Whether samples that some kernels lack are scaled up.
    learned : LearnedRows or None
        What makes up for kernels that lack samples in place of the rule, where that was learned.
    """

    standardizations: Sequence[Standardization]
    names: Sequence[str]
    projections: Sequence[Array]
    prints: Float | None = None
    rule: FillRule = "rescale"
    learned: LearnedRows | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    @classmethod
    def of(
        cls, stack: KernelStack, coefficients: Float, H: Array, eigenvalues: Float
    ) -> "Extension":
        """Return the extension of a partition H with the given eigenvalues."""
        return cls.by(stack, eigenvector_projections(stack, coefficients, H, eigenvalues))

    @classmethod
    def by(
        cls, stack: KernelStack, projections: Sequence[Array], rule: FillRule = "rescale"
    ) -> "Extension":
        """Return the extension of ``sum_p K_p P_p``, the kernels as they are in the stack."""
        extension = cls(
            stack.standardizations, stack.names, _raw_projections(stack, projections), None, rule
        )
        if not stack.repaired:
            return extension
        return replace(extension, prints=extension._products(stack.raw_kernels))

    def only(self, indices: Sequence[int]) -> "Extension":
        """Return what some kernels contribute; training samples are not known again by these."""
        return replace(
            self,
            standardizations=[self.standardizations[p] for p in indices],
            names=[self.names[p] for p in indices],
            projections=[self.projections[p] for p in indices],
            prints=None,
        )

    @property
    def counted(self) -> np.ndarray:
        """Which kernels contribute anything, (m,) of bool."""
        return np.array([bool(namespace(P).any(P != 0)) for P in self.projections])

    def toward_centroids(self, stack: KernelStack, labels: np.ndarray) -> "Extension":
        """Return the alignments with the clusters' centroids, as such a function.

        Column v is the inner product with the mean of the members of the v-th cluster, in the
        feature space of ``sum_p K_p``. A cluster without members has no column.
        """
        members = (labels[:, None] == np.unique(labels[labels >= 0])).astype(np.float64)
        # Where the kernels live, or it would have to get there for every block of samples.
        means = to_device(members / members.sum(axis=0), self.standardizations[0].diagonal)
        projections = _raw_projections(stack, [means] * len(self.standardizations))
        return replace(self, projections=projections, learned=None)

    def times(self, coefficients: Float) -> "Extension":
        """Return the same of ``sum_p coefficients_p K_p``."""
        pairs = zip(coefficients, self.projections, strict=True)
        return replace(self, projections=[float(c) * P for c, P in pairs])

    def embed_training(self, stack: KernelStack) -> Array:
        """Embed the training samples as new ones are embedded, (n_samples, k).

        Their embedding is H itself but for rounding, and for what a tolerance left open.
        """
        embedded = stack.sum_of_products(self.projections)
        if embedded is not None:
            return embedded
        diagonals = [standardization.diagonal for standardization in self.standardizations]
        self_similarities = namespace(*diagonals).stack(diagonals)
        embedding = empty((stack.n_samples, self.projections[0].shape[1]), stack.like)

        def visit(rows: slice, blocks: Sequence[Array]) -> None:
            samples = np.arange(rows.start, rows.stop)
            embedding[rows, :] = self._embed(blocks, self_similarities[:, rows], samples)

        stack.for_each_block(visit)
        return embedding

    def embed(
        self, cross: Sequence[Array] | ComputedKernels, self_similarity: Array | None = None
    ) -> Array:
        """Embed new samples.

        Parameters
        ----------
        cross : m matrices of shape (n_new, n_samples), or ComputedKernels
            Similarities of the new samples to the training samples; or what computes some rows of
            all kernels at a time.
        self_similarity : array of shape (m, n_new), default=None
            Similarities of the new samples to themselves. None serves where they are known.

        Returns
        -------
        array of shape (n_new, k)
            Where the similarities live.
        """
        if isinstance(cross, ComputedKernels):
            parts = [
                self.embed(block, None if self_similarity is None else self_similarity[:, rows])
                for rows, block in cross.blocks()
            ]
            return namespace(*parts).concat(parts)
        samples = (
            None
            if self.prints is None
            else find_training_samples(self._products(cross), self.prints)
        )
        return self._embed(cross, self_similarity, samples)

    def _embed(
        self, cross: Sequence[Array], self_similarity: Array | None, samples: np.ndarray | None
    ) -> Array:
        """Embed samples of which it is known which are training samples, by their numbers."""
        first = _nth(cross, 0)
        rows = zeros((first.shape[0], self.projections[0].shape[1]), first)
        for p, (P, standardization) in enumerate(
            zip(self.projections, self.standardizations, strict=True)
        ):
            kernel, diagonal = _nth(cross, p), None
            if self._is_of_training(p, kernel):
                kernel = symmetrized(kernel, self.names[p])
                diagonal = standardization.diagonal
            if self_similarity is not None:
                diagonal = self_similarity[p, :]
            elif standardization.scale is not None and diagonal is None:
                diagonal = self._constant_self_similarity(p, kernel)
            rows += standardization.project(kernel, P, diagonal, samples)
        return rows

    def _products(self, cross: Sequence[Array]) -> Float:
        """Return the products of samples' similarities, all kernels together, with random ones."""
        total = np.zeros((_nth(cross, 0).shape[0], 3))
        for p, standardization in enumerate(self.standardizations):
            unscaled = replace(standardization, scale=None, added=None, shift=0.0)
            lengths = standardization.repaired_diagonal()
            probe = noise((lengths.shape[0], 3), p, lengths)
            projection = unscaled.project(_nth(cross, p), probe, None)
            total += to_host(projection) / float(namespace(lengths).mean(lengths))
        return total

    def _is_of_training(self, index: int, cross: Array) -> bool:
        """Return whether similarities are all those of the training samples to each other."""
        if cross.shape[0] != cross.shape[1]:
            return False
        xp, expected = namespace(cross), to_device(self.standardizations[index].diagonal, cross)
        diagonal = cross.diagonal() if not is_foreign(cross) else xp.linalg.diagonal(cross)
        difference = xp.abs(xp.astype(diagonal, xp.float64) - expected)
        return bool(xp.all(difference <= 1e-6 * xp.abs(expected))) and _symmetric(cross)

    def _constant_self_similarity(self, index: int, cross: Array) -> Array:
        """Return the self-similarities of new samples if all training samples have the same."""
        constant = self.standardizations[index].constant_self_similarity()
        if constant is not None:
            return zeros((cross.shape[0],), cross) + constant
        raise ValueError(
            f"{self.names[index]}: scaling new samples needs their similarity to themselves, and "
            "it is not constant for this kernel; pass self_similarity, an array of k(x, x) with a "
            "row for each kernel and a column for each new sample, or fit with normalize=False"
        )


@dataclass(frozen=True)
class IncompleteExtension(SeenRows):
    """The same where kernels lack training samples: one extension for those of the same samples.

    Attributes
    ----------
    extensions : sequence of Extension
        How similarities to the samples that some kernels have are embedded.
    parts : sequence of (tuple of int, SampleMap)
        The numbers of these kernels among all, and the samples that they have.
    counted : ndarray of bool of shape (n_kernels,)
        Which kernels count where samples are scaled up.
    rule : {"zero", "rescale"}
        Whether they are.
    learned : LearnedRows or None
        What makes up for kernels that lack samples in place of the rule, where that was learned.
    """

    extensions: Sequence[Extension]
    parts: Sequence[tuple[tuple[int, ...], SampleMap]]
    counted: np.ndarray
    rule: FillRule
    learned: LearnedRows | None = None

    @classmethod
    def by(
        cls, stack: KernelStack, projections: Sequence[Array], rule: FillRule
    ) -> "IncompleteExtension":
        """Return the extension of ``sum_p K_p P_p``, the kernels as they are in the stack."""
        extensions = [
            Extension.by(part.stack, [part.map.gather(projections[p]) for p in part.indices])
            for part in stack.parts
        ]
        parts = [(part.indices, part.map) for part in stack.parts]
        return cls(extensions, parts, stack.counted, rule)

    def with_regressions(
        self, stack: KernelStack, regressions: Sequence[SeenRegression]
    ) -> "IncompleteExtension":
        """Return the same with what regressions make of samples in columns of their own."""
        extensions = []
        for part, extension in zip(stack.parts, self.extensions, strict=True):
            alone = replace(part.map, scale=None, fill=None)
            projections = []
            for place, index in enumerate(part.indices):
                kernel = part.stack.kernel(place)
                further = [
                    kernel.raw_projection(alone.gather(each.projection(index)))
                    for each in regressions
                ]
                projections.append(side_by_side(extension.projections[place], *further))
            extensions.append(replace(extension, projections=projections))
        return replace(self, extensions=extensions)

    @property
    def standardizations(self) -> list[Standardization]:
        """How each kernel was centered and scaled, among the samples that it has."""
        every = {
            index: standardization
            for (indices, _), extension in zip(self.parts, self.extensions, strict=True)
            for index, standardization in zip(indices, extension.standardizations, strict=True)
        }
        return [every[index] for index in sorted(every)]

    def only(self, indices: Sequence[int]) -> Extension:
        """Return what some kernels of the same samples contribute."""
        for (numbers, _), extension in zip(self.parts, self.extensions, strict=True):
            if set(indices) <= set(numbers):
                if tuple(indices) == tuple(numbers):
                    return extension
                return extension.only([numbers.index(index) for index in indices])
        raise ValueError(f"the kernels {list(indices)} have different samples")

    def toward_centroids(self, stack: KernelStack, labels: np.ndarray) -> "IncompleteExtension":
        """Return the alignments with the clusters' centroids, as such a function."""
        members = (labels[:, None] == np.unique(labels[labels >= 0])).astype(np.float64)
        means = to_device(members / members.sum(axis=0), stack.like)
        extensions = [
            replace(
                extension,
                projections=_raw_projections(
                    part.stack, [part.map.gather(means)] * len(part.indices)
                ),
            )
            for part, extension in zip(stack.parts, self.extensions, strict=True)
        ]
        return replace(self, extensions=extensions, learned=None)

    def times(self, coefficients: Float) -> "IncompleteExtension":
        """Return the same of ``sum_p coefficients_p K_p``."""
        extensions = [
            extension.times(coefficients[list(indices)])
            for (indices, _), extension in zip(self.parts, self.extensions, strict=True)
        ]
        return replace(self, extensions=extensions)

    def embed_training(self, stack: KernelStack) -> Array:
        """Embed the training samples as new ones are embedded, (n_samples, k)."""
        seen = np.zeros((stack.n_samples, stack.n_kernels), bool)
        rows: Any = 0.0
        for part, extension in zip(stack.parts, self.extensions, strict=True):
            seen[np.ix_(part.map.samples, np.array(part.indices))] = True
            alone = replace(part.map, scale=None, fill=None)
            rows = rows + alone.scatter(extension.embed_training(part.stack))
        return self.complete(rows, seen)


AnyExtension = Extension | IncompleteExtension


def extend(stack: KernelStack, projections: Sequence[Array], rule: FillRule) -> AnyExtension:
    """Return the embedding ``sum_p K_p P_p`` as a function of similarities.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    projections : sequence of m arrays of shape (n_samples, k)
        What each is multiplied with.
    rule : {"zero", "rescale"}
        Whether samples that some kernels lack are scaled up.
    """
    if len(stack.parts) > 1:
        return IncompleteExtension.by(stack, projections, rule)
    return Extension.by(stack, projections, rule)


def eigenvector_projections(
    stack: KernelStack, coefficients: Float, H: Array, eigenvalues: Float
) -> list[Array]:
    """Return what takes similarities to leading eigenvectors H of a combination of kernels.

    Where an eigenvalue is zero (the combined kernel has rank below k) the coordinate is zero.
    """
    projection = H * to_device(inverse(eigenvalues, H.shape[0], stack.precision), H)
    return [float(c) * projection for c in coefficients]


def embed_seen(extension: AnyExtension, parts: Sequence[SeenSimilarities], n_new: int) -> Array:
    """Embed new samples of which some kernels lack some, (n_new, k)."""
    seen, rows = np.zeros((n_new, len(extension.standardizations)), bool), None
    for part in parts:
        if not len(part.rows):
            continue
        seen[np.ix_(part.rows, np.array(part.indices))] = True
        own = extension.only(part.indices).embed(part.cross, part.self_similarity)
        spread = SampleMap(part.rows, n_new).scatter(own)
        rows = spread if rows is None else rows + spread
    return extension.complete(rows, seen)


def rescaled(rows: Array, seen: np.ndarray, counted: np.ndarray) -> Array:
    """Return rows of the embedding scaled up by the kernels that lack a sample, (n_new, k)."""
    return rows * to_device(rescaling(seen, counted), rows)[:, None]


def find_training_samples(products: Float, prints: Float) -> np.ndarray:
    """Return the indices of the training samples that new ones are, -1 for none, (n_new,).

    Both are random products of similarities. The sample at the same index comes first, so that
    each of several equal samples finds itself.
    """
    same = SAME_SAMPLE * np.abs(prints).max()
    nearest = KDTree(prints).query(products, p=np.inf, distance_upper_bound=same)[1]
    samples = np.where(nearest < len(prints), nearest, -1)
    both = min(len(products), len(prints))
    in_place = np.abs(products[:both] - prints[:both]).max(axis=1) <= same
    samples[:both][in_place] = np.flatnonzero(in_place)
    return samples


def _raw_projections(stack: KernelStack, projections: Sequence[Array]) -> list[Array]:
    """Return what the kernels as given are multiplied with where those of a stack are with P."""
    return [stack.kernel(p).raw_projection(P) for p, P in enumerate(projections)]


def _nth(matrices: Any, index: int) -> Array:
    """Return one of several matrices, be they in a list or in one array."""
    return matrices[index, ...] if is_foreign(matrices) else matrices[index]


def _symmetric(matrix: Array) -> bool:
    """Return whether a matrix equals its transpose but for rounding, judged by one product."""
    probe = np.random.default_rng(0).standard_normal((matrix.shape[0], 1))
    columns = to_device(probe, matrix, precision_of(matrix))
    left, right = to_host(matrix @ columns), to_host(matrix.T @ columns)
    return bool(np.abs(left - right).max() <= 1e-3 * np.abs(left).max())
