"""The kernels of a fitted model, known by their entries or by products: what they answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from mkclust.diagnosis.noise import (
    EIGEN_TOLERANCE,
    Centered,
    centered_products,
    has_clusters,
    most_clusters,
)
from mkclust.discretize import discretize
from mkclust.generalize import inverse
from mkclust.kernels.on_the_fly import CrossRows, KernelRows
from mkclust.linalg import to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.inputs import kind_of_input
from mkclust.relaxation import Relaxation, relax
from mkclust.stack import DenseStack, RowSource, StreamedStack, as_stack
from mkclust.stack.rows import only
from mkclust.types import Array, Float


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
        self.own = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in self._stack.kernels]
        self._plain: DenseStack | StreamedStack | None = None

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        H = self._model.embedding_
        return to_host((self._stack.apply(H) * H).sum(axis=(1, 2)))

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            return self.own, self._stack.traces()
        k, kernels = self._model.n_clusters, self._stack.kernels
        found = [relax(Centered(kernel), k, tol=EIGEN_TOLERANCE) for kernel in kernels]
        return found, self.diagonals.totals()

    def labels(self, p: int) -> np.ndarray:
        """Return the clusters of one kernel alone."""
        found, k = self.own[p], self._model.n_clusters
        # As in fit: where the kernel has a rank below k, the coordinate is zero.
        scale = inverse(found.eigenvalues[:k], self.n_samples, self._stack.precision)
        rows = to_host(found.products[:, :k] * scale)
        return discretize(rows, k, n_init=self._model.n_init, random_state=self._seed)[0]

    def labels_without(self, p: int) -> np.ndarray | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none."""
        rest = [q for q in range(len(self.own)) if q != p]
        others: Any = [self._stack.given[q] for q in rest]
        if isinstance(self._stack, StreamedStack):
            others = only(self._stack.source, rest)
        refitted = clone(self._model)
        refitted.set_params(kernels="precomputed", validate=self._repaired, random_state=self._seed)
        if len(rest) == 1 and "anchor" in refitted.get_params():
            refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
        try:
            return refitted.fit(others).labels_
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters of its own."""
        if self._plain is None:
            # Scaling to unit length would push the samples of few dimensions apart.
            self._plain = self._standardized(False)
        most = most_clusters(self._model.n_clusters, self.n_samples)
        found = relax(Centered(self._plain.kernel(p)), most, tol=EIGEN_TOLERANCE)
        return has_clusters(found.eigenvalues[:most], to_host(found.vectors))

    def _standardized(self, normalize: bool) -> DenseStack | StreamedStack:
        """Return the kernels, centered as the model does, scaled or not."""
        stack = as_stack(
            self._kernels,
            center=self._model.center,
            normalize=normalize,
            psd=self._model.psd,
            validate=self._repaired,
            names=self._model.kernel_names_,
        )
        assert isinstance(stack, DenseStack | StreamedStack)
        return stack


def _rebuilt(model: MultipleKernelClusterer, X: Any) -> Any:
    """Return the kernels that the model was fitted on, neither centered nor scaled."""
    names, n = model.kernel_names_, len(model.labels_)
    if hasattr(model, "bank_"):
        return _rebuilt_by_bank(model, X)
    kind_of_input(X, "precomputed")  # refuses all that is not several matrices
    rows = isinstance(X, RowSource)
    count = X.n_kernels if rows else len(X)
    if count != len(names):
        raise ValueError(f"X has {count} kernels, the model was fitted on {len(names)}")
    if isinstance(X, Mapping):
        X = {str(name): kernel for name, kernel in X.items()}
        if missing := [name for name in names if name not in X]:
            raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(X)}")
        X = [X[name] for name in names]
    if rows:
        shapes = [(X.n_samples, X.n_samples)] * count
    elif hasattr(X, "shape"):  # not to be taken apart: to do that to a file is to read it
        shapes = [tuple(X.shape[1:])] * count
    else:
        shapes = [np.shape(K) for K in X]
    for name, shape in zip(names, shapes, strict=True):
        if shape != (n, n):
            raise ValueError(
                f"{name} has the shape {shape}, the model was fitted on {n} samples: pass "
                f"the same {n} x {n} kernels"
            )
    return X


def _rebuilt_by_bank(model: MultipleKernelClusterer, X: Any) -> Array | KernelRows:
    """Return the kernels that the model's bank makes of the views it was fitted on."""
    n = len(model.labels_)
    kernels = model.bank_.transform(model._views(X, model, reset=False))
    if kernels.shape[1] != n:
        raise ValueError(f"X has {kernels.shape[1]} samples, the model was fitted on {n}")
    if isinstance(kernels, CrossRows):
        known = isinstance(kernels, KernelRows)
    else:
        # The bank's kernels are exactly symmetric where, and only where, it knows the samples.
        known = all(np.array_equal(K, K.T) for K in kernels)
    if not known:
        raise ValueError("X holds other samples than the model was fitted on: pass the same")
    if isinstance(kernels, KernelRows) and not hasattr(model, "predict"):
        return kernels.entries(type(model).__name__)  # as in fit
    return kernels
