"""The kernels of a fitted model, known by their entries or by products: what they answer."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from mkclust.engine.relaxation import Relaxation, relax
from mkclust.explain.noise import (
    EIGEN_TOLERANCE,
    centered_products,
    has_clusters,
    most_clusters,
)
from mkclust.linalg import captured, to_device, to_host
from mkclust.linalg.operators import CenteredOperator
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.training import training_kernels
from mkclust.stack import KernelOperator, KernelStack, as_stack
from mkclust.stack.discretize import discretize
from mkclust.types import Float


class ExaminedKernels:
    """The kernels that a model was fitted on, be they in memory, in files, or made on the fly.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted on two kernels or more, without an approximation.
    X : array, list, dict or source of rows
        What it was fitted on.
    seed : int
        Seed of k-means.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    own : sequence of Relaxation
        What each kernel shows alone, as the model sees it.
    gram, diagonals : ndarray of shape (m, m), Diagonals
        Products of the centered kernels, and their diagonals.
    """

    def __init__(self, model: MultipleKernelClusterer, X: Any, seed: int):
        self._model, self._seed = model, seed
        # What was checked in fit need not be checked again, but what was repaired must be.
        self._repaired = model.psd != "error" and model.validate and not hasattr(model, "bank_")
        self._kernels = _rebuilt(model, X)
        self._stack = self._standardized(model.normalize)
        self.n_samples = self._stack.n_samples
        self.gram, self.diagonals = centered_products(self._stack)
        k = model.n_clusters
        self.own = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in _each(self._stack)]
        self._plain: KernelStack | None = None

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        H = to_device(self._model.embedding_, self._stack.like)
        return captured(self._stack.apply(H), H)

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            return self.own, self._stack.traces()
        k, kernels = self._model.n_clusters, _each(self._stack)
        found = [relax(CenteredOperator(kernel), k, tol=EIGEN_TOLERANCE) for kernel in kernels]
        return found, self.diagonals.totals()

    def labels(self, p: int) -> np.ndarray:
        """Return the clusters of one kernel alone."""
        found, k = self.own[p], self._model.n_clusters
        # As in fit: where the kernel has a rank below k, the coordinate is zero.
        scale = inverse(found.eigenvalues[:k], self.n_samples, self._stack.precision)
        rows = found.products[:, :k] * to_device(scale, found.products)
        return discretize(rows, k, n_init=self._model.n_init, random_state=self._seed)[0]

    def labels_without(self, p: int) -> np.ndarray | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none."""
        rest = [q for q in range(len(self.own)) if q != p]
        refitted = clone(self._model)
        refitted.set_params(kernels="precomputed", validate=self._repaired, random_state=self._seed)
        if len(rest) == 1 and "anchor" in refitted.get_params():
            refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
        try:
            return refitted.fit(self._stack.given_subset(rest)).labels_
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters of its own."""
        if self._plain is None:
            # Scaling to unit length would push the samples of few dimensions apart.
            self._plain = self._standardized(False)
        most = most_clusters(self._model.n_clusters, self.n_samples)
        found = relax(CenteredOperator(self._plain.kernel(p)), most, tol=EIGEN_TOLERANCE)
        return has_clusters(found.eigenvalues[:most], to_host(found.vectors))

    def _standardized(self, normalize: bool) -> KernelStack:
        """Return the kernels, centered as the model does, scaled or not."""
        return as_stack(
            self._kernels,
            center=self._model.center,
            normalize=normalize,
            psd=self._model.psd,
            validate=self._repaired,
            names=self._model.kernel_names_,
        )


def _each(stack: KernelStack) -> Iterator[KernelOperator]:
    """Return the kernels of a stack, one after another."""
    return map(stack.kernel, range(stack.n_kernels))


def _rebuilt(model: MultipleKernelClusterer, X: Any) -> Any:
    """Return the kernels that the model was fitted on, neither centered nor scaled, as in fit."""
    kernels = training_kernels(model, X)
    if hasattr(model, "bank_"):
        on_the_fly = model.bank_.on_the_fly and not model.NEEDS_ENTRIES
        return kernels if on_the_fly else kernels.entries(type(model).__name__)
    return kernels
