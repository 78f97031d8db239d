"""The kernels of a fitted model, each of them, as the model saw them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from sklearn.base import clone

from mkclust.engine.relaxation import Relaxation, relax
from mkclust.explain.fitted import kernel_source, may_be_repaired
from mkclust.explain.noise import (
    EIGEN_TOLERANCE,
    Diagonals,
    centered_products,
    has_clusters,
    most_clusters,
)
from mkclust.linalg import inner_products, to_device, to_host
from mkclust.linalg.operators import CenteredOperator
from mkclust.methods import AverageKKM, MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.samples.samples import Samples
from mkclust.stack import KernelOperator, KernelStack, as_stack
from mkclust.stack.discretize import discretize
from mkclust.types import Array, Float


class Examined(ABC):
    """What a diagnosis asks of the kernels of a fitted model; seed is that of k-means.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    relaxations : sequence of Relaxation
        What each kernel shows alone, as the model sees it.
    gram, diagonals : ndarray of shape (m, m), Diagonals
        Products of the centered kernels, and their diagonals.
    """

    n_samples: int
    relaxations: Sequence[Relaxation]
    gram: Float
    diagonals: Diagonals

    def __init__(self, model: MultipleKernelClusterer, seed: int):
        self._model, self._seed = model, seed

    @cached_property
    def labels(self) -> list[Array]:
        """The clusters of each kernel alone."""
        k, n_init = self._model.n_clusters, self._model.n_init
        rows = map(self._rows, range(len(self.relaxations)))
        return [discretize(one, k, n_init=n_init, random_state=self._seed)[0] for one in rows]

    def labels_without(self, p: int) -> Array | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none."""
        rest = [q for q in range(len(self.relaxations)) if q != p]
        model = clone(self._model)
        if len(rest) == 1 and "anchor" in model.get_params():
            model.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
        try:
            return self._fit(model, rest).labels_
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def labels_of_average(self) -> Array:
        """Return the clusters of the average kernel, by the model's own settings."""
        settings = self._model.get_params(deep=False)
        shared = AverageKKM().get_params(deep=False).keys() & settings.keys()
        average = AverageKKM(**{name: settings[name] for name in shared})
        return self._fit(average, range(len(self.relaxations))).labels_

    @abstractmethod
    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""

    @abstractmethod
    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""

    @abstractmethod
    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters of its own."""

    @abstractmethod
    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""

    @abstractmethod
    def _fit(
        self, model: MultipleKernelClusterer, indices: Sequence[int]
    ) -> MultipleKernelClusterer:
        """Fit a model on some of the kernels, as they were in the fit."""


class ExaminedKernels(Examined):
    """Exact kernels, be they in memory, in files, or made on the fly, of samples in order."""

    def __init__(self, model: MultipleKernelClusterer, samples: Samples, seed: int):
        super().__init__(model, seed)
        self._kernels = _kernels_of_fit(model, samples)
        self._stack = self._standardized(model.normalize)
        self.n_samples = self._stack.n_samples
        self.gram, self.diagonals = centered_products(self._stack)
        k = model.n_clusters
        self.relaxations = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in _each(self._stack)]

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        H = to_device(self._model.embedding_, self._stack.like)
        return inner_products(self._stack.apply(H), H)

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            return self.relaxations, self._stack.traces()
        k, centered = self._model.n_clusters, map(CenteredOperator, _each(self._stack))
        relaxations = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in centered]
        return relaxations, self.diagonals.totals()

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters of its own."""
        most = most_clusters(self._model.n_clusters, self.n_samples)
        kernel = CenteredOperator(self._unscaled.kernel(p))
        relaxation = relax(kernel, most, tol=EIGEN_TOLERANCE)
        return has_clusters(relaxation.eigenvalues[:most], to_host(relaxation.vectors))

    @cached_property
    def _unscaled(self) -> KernelStack:
        """The kernels without scaling, which would push the samples of few dimensions apart."""
        return self._standardized(False)

    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""
        relaxation, k = self.relaxations[p], self._model.n_clusters
        # As in fit: where the kernel has a rank below k, the coordinate is zero.
        scale = inverse(relaxation.eigenvalues[:k], self.n_samples, self._stack.precision)
        return relaxation.products[:, :k] * to_device(scale, relaxation.products)

    def _fit(
        self, model: MultipleKernelClusterer, indices: Sequence[int]
    ) -> MultipleKernelClusterer:
        """Fit a model on some of the kernels, as they were in the fit."""
        validate = may_be_repaired(self._model)
        model.set_params(kernels="precomputed", validate=validate, random_state=self._seed)
        return model.fit(self._stack.raw_subset(indices))

    def _standardized(self, normalize: bool) -> KernelStack:
        """Return the kernels, centered as the model does, scaled or not."""
        return as_stack(
            self._kernels,
            center=self._model.center,
            normalize=normalize,
            psd=self._model.psd,
            validate=may_be_repaired(self._model),
            names=self._model.kernel_names_,
        )


def _each(stack: KernelStack) -> Iterator[KernelOperator]:
    """Return the kernels of a stack, one after another."""
    return map(stack.kernel, range(stack.n_kernels))


def _kernels_of_fit(model: MultipleKernelClusterer, samples: Samples) -> Any:
    """Return the kernels that the model was fitted on, neither centered nor scaled, as in fit."""
    kernels = model._source.kernels(model, samples)
    if kernel_source(model) == "given" or (model.bank_.on_the_fly and not model.NEEDS_ENTRIES):
        return kernels
    return kernels.entries(type(model).__name__)
