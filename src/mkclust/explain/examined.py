"""The kernels of a fitted model, each of them, as the model saw them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import Relaxation, relax
from mkclust.explain.fitted import observed_of_kernels, unfitted_copy
from mkclust.linalg import inner_products, select, to_device
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.training import open_again
from mkclust.samples.samples import Samples
from mkclust.stack import Kernel, Observed, Stack, Standardization, Standardized
from mkclust.stack.discretize import assign, discretize
from mkclust.stack.observed import SampleMap, with_active
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums; the gaps between single eigenvalues are read off.
EIGEN_TOLERANCE = 1e-10


class Refit(NamedTuple):
    """The clusters of a refit, of the samples that its kernels have; None for all."""

    labels: Array
    samples: np.ndarray | None


class Examined(ABC):
    """What a diagnosis asks of the kernels of a fitted model; seed is that of k-means.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    relaxations : sequence of Relaxation
        What each kernel shows alone, as the model sees it.
    """

    n_samples: int
    relaxations: Sequence[Relaxation]

    def __init__(self, model: MultipleKernelClusterer, seed: int):
        self._model, self._seed = model, seed

    @cached_property
    def labels(self) -> list[Array]:
        """The clusters of each kernel alone, of the samples that it has."""
        return [
            self._discretize(self.of_kernel(p, self._rows(p))) for p in range(len(self.relaxations))
        ]

    def of_kernel(self, p: int, values: Array) -> Array:
        """Return values of the samples that one kernel has, of those for all samples."""
        observed = observed_of_kernels(self._model)
        return values if observed is None else select(values, np.flatnonzero(observed[:, p]))

    def _seen_in(self, indices: Sequence[int]) -> np.ndarray | None:
        """Return the numbers of the samples that some kernels have, None where these are all."""
        observed = observed_of_kernels(self._model)
        if observed is None or (seen := observed[:, list(indices)].any(axis=1)).all():
            return None
        return np.flatnonzero(seen)

    def refit_without(self, p: int) -> Refit | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none."""
        rest = [q for q in range(len(self.relaxations)) if q != p]
        try:
            return self._refit(unfitted_copy(self._model), rest)
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def labels_of_mix(self, coefficients: Float) -> Array:
        """Return the clusters of a sum of the kernels, (m,) coefficients of which are given.

        Samples that no kernel of the sum has are given to the nearest cluster.
        """
        included = np.flatnonzero(coefficients).tolist()
        return self._labels_by(self._mixed_rows(coefficients), included)

    def _labels_by(self, rows: Array, indices: Sequence[int]) -> Array:
        """Return the clusters of rows, found without samples that none of some kernels has."""
        seen = self._seen_in(indices)
        if seen is None:
            return self._discretize(rows)
        return assign(rows, self._labels_and_centers(select(rows, seen))[1])

    def _discretize(self, rows: Array) -> Array:
        """Return the clusters of rows, by the model's own settings."""
        return self._labels_and_centers(rows)[0]

    def _labels_and_centers(self, rows: Array) -> tuple[Array, Float]:
        """Return the clusters of rows, by the model's own settings, and their centers."""
        k, n_init = self._model.n_clusters, self._model.n_init
        return discretize(rows, k, n_init=n_init, random_state=self._seed)

    @abstractmethod
    def mixed_kernel(self, samples: np.ndarray) -> Float:
        """Return the similarities by which the model clusters, among some samples, (s, s)."""

    @abstractmethod
    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""

    @abstractmethod
    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""

    @abstractmethod
    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""

    @abstractmethod
    def _mixed_rows(self, coefficients: Float) -> Array:
        """Return the rows by which the samples of a sum of the kernels are clustered, (n, k)."""

    @abstractmethod
    def _refit(self, model: MultipleKernelClusterer, indices: Sequence[int]) -> Refit:
        """Return the clusters of a model of some kernels, as they were in the fit."""


class ExaminedKernels(Examined):
    """Exact kernels, be they in memory, in files, or made on the fly, of samples in order."""

    def __init__(self, model: MultipleKernelClusterer, samples: Samples, seed: int):
        super().__init__(model, seed)
        self._stack = open_again(model, samples)
        self.n_samples = self._stack.n_samples
        k = model.n_clusters
        self.relaxations = [relax(K, k, tol=EIGEN_TOLERANCE) for K in self._stack.kernels]

    def mixed_kernel(self, samples: np.ndarray) -> Float:
        """Return the similarities by which the model clusters, among some samples, (s, s)."""
        return self._model.mixed_kernel(self._stack, samples)

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        H = to_device(self._model.embedding_, self._stack.kernels[0].like)
        return inner_products(self._stack.apply(H), H)

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            return self.relaxations, self._stack.traces()
        k, kernels = self._model.n_clusters, tuple(map(_centered, self._stack.kernels))
        relaxations = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in kernels]
        return relaxations, replace(self._stack, kernels=kernels).traces()

    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""
        return self._rows_of(self.relaxations[p])

    def _mixed_rows(self, coefficients: Float) -> Array:
        """Return the rows by which the samples of a sum of the kernels are clustered, (n, k)."""
        kernels = with_active(self._stack.kernels, np.flatnonzero(coefficients).tolist())
        mixed = replace(self._stack, kernels=kernels).mix(coefficients)
        return self._rows_of(relax(mixed, self._model.n_clusters, tol=EIGEN_TOLERANCE))

    def _rows_of(self, relaxation: Relaxation) -> Array:
        """Return the rows of a relaxed partition, (n, k)."""
        k = self._model.n_clusters
        # As in fit: if the kernel has a rank below k, the coordinate is zero.
        rounding = rounding_of_entries(self._stack)
        scale = inverse(relaxation.eigenvalues[:k], self.n_samples, rounding)
        return relaxation.products[:, :k] * to_device(scale, relaxation.products)

    def _refit(self, model: MultipleKernelClusterer, indices: Sequence[int]) -> Refit:
        """Return the clusters of a model of some kernels, as they were in the fit."""
        # The same kernels of the same views: read once more, all would be views of their own.
        stack, samples = self._stack.subset(indices), self._seen_in(indices)
        stack = _of_samples(stack, samples, model.table_options.fill_rule == "rescale")
        solution = model.set_params(random_state=self._seed).solve(stack)
        # As in fit: what was learned of missing samples, or what the included kernels lack.
        stack = stack if solution.stack is None else solution.stack
        rows, included = model._rows(stack, solution)[0], list(indices)
        if solution.coefficients is not None:
            included = [indices[int(q)] for q in np.flatnonzero(solution.coefficients)]
        seen = self._seen_in(included)
        if seen is None:
            return Refit(self._discretize(rows), None)
        places = seen if samples is None else np.searchsorted(samples, seen)
        return Refit(self._discretize(select(rows, places)), seen)


def _centered(kernel: Kernel) -> Kernel:
    """Return a kernel centered."""
    n = kernel.n_samples
    means = kernel @ to_device(np.full((n, 1), 1 / n), kernel.like)
    return Standardized(kernel, Standardization(kernel.diagonal(), row_means=means[:, 0]))


def _of_samples(stack: Stack, samples: np.ndarray | None, is_rescaled: bool) -> Stack:
    """Return kernels over some samples, all that they have; None for the samples as they are."""
    kernels: list[Kernel] = []
    for kernel in stack.kernels:
        if samples is not None and isinstance(kernel, Observed):
            places = np.searchsorted(samples, kernel.map.samples)
            scale = np.ones(len(samples)) if is_rescaled else None
            kernel = Observed(kernel.kernel, SampleMap(places, len(samples), scale))
        kernels.append(kernel)
    return replace(stack, kernels=with_active(kernels, range(len(kernels))))
