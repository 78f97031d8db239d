"""The kernels of a fitted model: what they answer by entries, products or approximating features.

With features F of a kernel, their column means and the small matrix F^T F, summed over blocks of
samples, tell its spectrum, its products with the other kernels, and all that shuffling the samples
would do to these. So nothing as long as the samples is made but labels, and these stay where the
samples are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from mkclust.engine.relaxation import Relaxation, relax
from mkclust.explain.noise import (
    EIGEN_TOLERANCE,
    SummedDiagonals,
    centered_products,
    has_clusters,
    most_clusters,
)
from mkclust.linalg import astype, captured, namespace, to_device, to_host
from mkclust.linalg.operators import CenteredOperator
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.training import training_kernels
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.checks import is_dask
from mkclust.samples.samples import Samples, as_blocks
from mkclust.stack import KernelOperator, KernelStack, as_stack
from mkclust.stack.discretize import discretize
from mkclust.stack.low_rank import COMPARED_SAMPLES
from mkclust.stack.mapped import Features, draw
from mkclust.types import Array, Float


class ExaminedKernels:
    """The kernels that a model was fitted on, be they in memory, in files, or made on the fly.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted on two kernels or more, without an approximation.
    samples : Samples
        What it was fitted on, in the order of its labels.
    seed : int
        Seed of k-means.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    relaxations : sequence of Relaxation
        What each kernel shows alone, as the model sees it.
    gram, diagonals : ndarray of shape (m, m), Diagonals
        Products of the centered kernels, and their diagonals.
    """

    def __init__(self, model: MultipleKernelClusterer, samples: Samples, seed: int):
        self._model, self._seed = model, seed
        # What was checked in fit need not be checked again, but what was repaired must be.
        self._repaired = model.psd != "error" and model.validate and not hasattr(model, "bank_")
        self._kernels = _rebuilt(model, samples)
        self._stack = self._standardized(model.normalize)
        self.n_samples = self._stack.n_samples
        self.gram, self.diagonals = centered_products(self._stack)
        k = model.n_clusters
        self.relaxations = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in _each(self._stack)]
        self._plain: KernelStack | None = None

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        H = to_device(self._model.embedding_, self._stack.like)
        return captured(self._stack.apply(H), H)

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            return self.relaxations, self._stack.traces()
        k, kernels = self._model.n_clusters, _each(self._stack)
        relaxations = [
            relax(CenteredOperator(kernel), k, tol=EIGEN_TOLERANCE) for kernel in kernels
        ]
        return relaxations, self.diagonals.totals()

    def labels(self, p: int) -> np.ndarray:
        """Return the clusters of one kernel alone."""
        relaxation, k = self.relaxations[p], self._model.n_clusters
        # As in fit: where the kernel has a rank below k, the coordinate is zero.
        scale = inverse(relaxation.eigenvalues[:k], self.n_samples, self._stack.precision)
        rows = relaxation.products[:, :k] * to_device(scale, relaxation.products)
        return discretize(rows, k, n_init=self._model.n_init, random_state=self._seed)[0]

    def labels_without(self, p: int) -> np.ndarray | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none."""
        rest = [q for q in range(len(self.relaxations)) if q != p]
        refitted = clone(self._model)
        refitted.set_params(kernels="precomputed", validate=self._repaired, random_state=self._seed)
        if len(rest) == 1 and "anchor" in refitted.get_params():
            refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
        try:
            return refitted.fit(self._stack.raw_subset(rest)).labels_
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters of its own."""
        if self._plain is None:
            # Scaling to unit length would push the samples of few dimensions apart.
            self._plain = self._standardized(False)
        most = most_clusters(self._model.n_clusters, self.n_samples)
        relaxation = relax(CenteredOperator(self._plain.kernel(p)), most, tol=EIGEN_TOLERANCE)
        return has_clusters(relaxation.eigenvalues[:most], to_host(relaxation.vectors))

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


def _rebuilt(model: MultipleKernelClusterer, samples: Samples) -> Any:
    """Return the kernels that the model was fitted on, neither centered nor scaled, as in fit."""
    kernels = training_kernels(model, samples)
    if hasattr(model, "bank_"):
        on_the_fly = model.bank_.on_the_fly and not model.NEEDS_ENTRIES
        return kernels if on_the_fly else kernels.entries(type(model).__name__)
    return kernels


class ExaminedFeatures:
    """The approximated kernels that a model was fitted on, by the feature maps that it learned.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted on two views or more, with an approximation.
    samples : Samples
        The views that it was fitted on, in the order of its labels: arrays, files read by rows, or
        dask arrays.
    seed : int
        Seed of k-means.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    relaxations : sequence of Relaxation
        What each kernel shows alone, as the model sees it; vectors are columns of coefficients
        of the features.
    gram, diagonals : ndarray of shape (m, m), SummedDiagonals
        Products of the centered kernels, and their diagonals.
    """

    def __init__(self, model: MultipleKernelClusterer, samples: Samples, seed: int):
        self._model, self._seed = model, seed
        self._samples = _views_of_fit(model, samples)
        features: Features = model._features[0]
        self._features, n = features, len(model.labels_)
        blocks, names = as_blocks(self._samples), self._samples.names
        means = _sums(blocks, features) / n
        self._ends = np.cumsum([0, *_widths(features, blocks)])
        ends = self._ends
        # Longer than the name of any view, and so another one.
        partition = f"partition of {list(names)}"

        def look(block: dict[str, np.ndarray], _: int) -> tuple:
            views = {name: rows for name, rows in block.items() if name != partition}
            H, xp = astype(block[partition], "float64"), namespace(block[partition])
            F = xp.concat([astype(part, "float64") for part in features.of(views)], axis=1)
            Z = F - to_device(means, F)
            squared = Z * Z
            lengths = [xp.sum(squared[:, a:b], axis=1) for a, b in pairwise(ends.tolist())]
            diagonals = xp.stack(lengths, axis=1)
            return Z.T @ Z, F.T @ H, xp.sum(diagonals, axis=0), diagonals.T @ diagonals

        H = model.embedding_
        if not is_dask(H):
            H = to_device(H, self._samples.parts[0])  # it may be of another place
        together = as_blocks(self._samples.by_name | {partition: H})
        centered, self._toward, totals, squares = map(to_host, together.total(look))
        self.n_samples = n
        self.diagonals = SummedDiagonals(totals, squares, n)
        self._centered = (centered + centered.T) / 2
        self._products = self._centered + n * np.outer(means, means)
        m, C = len(names), self._centered
        parts = [self._part(p) for p in range(m)]
        self.gram = np.array([[np.sum(C[a, b] ** 2) for b in parts] for a in parts])
        self.relaxations = [relax_features(self._products[a, a], model.n_clusters) for a in parts]

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        parts = map(self._part, range(len(self.relaxations)))
        return np.array([np.sum(self._toward[part] ** 2) for part in parts])

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        parts = [self._part(p) for p in range(len(self.relaxations))]
        if self._model.center:
            return self.relaxations, np.array([np.trace(self._products[a, a]) for a in parts])
        k = self._model.n_clusters
        return [relax_features(self._centered[a, a], k) for a in parts], self.diagonals.totals()

    def labels(self, p: int) -> Array:
        """Return the clusters of one kernel alone."""
        relaxation, k = self.relaxations[p], self._model.n_clusters
        features, matrix = self._features_of([p]), _orthonormal(relaxation, k)
        blocks = as_blocks(self._only([p]))
        rows = blocks.map(lambda block, _: features.project(block, matrix))
        return discretize(rows, k, n_init=self._model.n_init, random_state=self._seed)[0]

    def labels_without(self, p: int) -> Array | None:
        """Return the clusters of the model fitted without one kernel, None where it finds none.

        The other kernels keep the features that they have: what changes is not their landmarks.
        """
        rest = [q for q in range(len(self.relaxations)) if q != p]
        maps = _LearnedMaps([self._features.maps[q] for q in rest])
        refitted = clone(self._model).set_params(approximation=maps, random_state=self._seed)
        if len(rest) == 1 and "anchor" in refitted.get_params():
            refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
        try:
            return refitted.fit(self._only(rest)).labels_
        except ValueError:  # the other kernels may tell too few samples apart
            return None

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters, judged by samples that stand for all."""
        most = most_clusters(self._model.n_clusters, self.n_samples)
        # Scaling to unit length would push the samples of few dimensions apart.
        features = replace(self._features_of([p]), floors=None)
        blocks = as_blocks(self._only([p]))
        mean = _sums(blocks, features) / self.n_samples

        def products(block: dict[str, np.ndarray], _: int) -> Float:
            F = features.of(block)[0]
            Z = astype(F, "float64") - to_device(mean, F)
            return Z.T @ Z

        relaxation = relax_features(to_host(blocks.total(products)), most)
        points = to_host(features.project(_sample(blocks), _orthonormal(relaxation, most)), None)
        return has_clusters(relaxation.eigenvalues[:most], points)

    def _part(self, p: int) -> Any:
        """Return which features belong to one kernel."""
        return slice(self._ends[p], self._ends[p + 1])

    def _only(self, indices: Sequence[int]) -> Samples:
        """Return some of the views."""
        return self._samples.only([self._samples.names[p] for p in indices])

    def _features_of(self, indices: Sequence[int]) -> Features:
        """Return the features of some of the kernels, as the model sees them."""
        features = self._features
        return Features(
            [features.maps[p] for p in indices],
            None if features.means is None else [features.means[p] for p in indices],
            None if features.floors is None else [features.floors[p] for p in indices],
        )


class _LearnedMaps(TransformerMixin, BaseEstimator):
    """Feature maps that were learned before: a clone is the next of them, and learns nothing.

    So a model that clones its approximation for one view after another takes them as they are.
    """

    def __init__(self, maps: Sequence[Any]):
        self.maps = maps
        self._coming = iter(maps)

    def __sklearn_clone__(self) -> "_LearnedMaps":
        """Return the next of the maps."""
        return _LearnedMaps([next(self._coming)])

    def fit(self, X: Any, y: Any = None) -> "_LearnedMaps":
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of rows."""
        return self.maps[0].transform(X)


def examine(
    model: MultipleKernelClusterer, samples: Samples, seed: int
) -> ExaminedKernels | ExaminedFeatures:
    """Return the kernels of a fitted model, as it saw them.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted.
    samples : Samples
        What it was fitted on, in the order of its labels.
    seed : int
        Seed of k-means.

    Returns
    -------
    ExaminedKernels or ExaminedFeatures
    """
    approximated = hasattr(model, "approximation_error_")
    return (ExaminedFeatures if approximated else ExaminedKernels)(model, samples, seed)


def relax_features(products: Float, n_clusters: int) -> Relaxation:
    """Solve the relaxed k-means problem of ``F F^T`` by ``F^T F``, which has its spectrum.

    Parameters
    ----------
    products : ndarray of shape (n_features, n_features)
        The products of the features.
    n_clusters : int
        Number of eigenvalues wanted, k.

    Returns
    -------
    Relaxation
        Of k + 1 eigenvalues, zeros where there are fewer features.
    """
    values, V = np.linalg.eigh(products)
    values, V = values[::-1][: n_clusters + 1], V[:, ::-1][:, : n_clusters + 1]
    eigenvalues = np.zeros(n_clusters + 1)
    eigenvalues[: len(values)] = values
    return Relaxation(n_clusters, V, V * values, eigenvalues)


def _orthonormal(relaxation: Relaxation, count: int) -> Float:
    """Return what the features are multiplied with for orthonormal eigenvectors over the samples.

    Where the kernel has a lower rank, the coordinate is zero.
    """
    V = relaxation.vectors[:, :count]
    values = relaxation.eigenvalues[: V.shape[1]]
    return V * np.sqrt(inverse(values, len(V), float(np.finfo(np.float64).eps)))


def _sums(blocks: Blocks, features: Features) -> Float:
    """Return the sums of all features, side by side, having looked for entries not finite."""

    def look(block: dict[str, np.ndarray], start: int) -> Float:
        check_finite(block, start)
        parts = features.of(block)
        xp = namespace(*parts)
        return xp.concat([xp.sum(F, axis=0, dtype=xp.float64) for F in parts])

    return to_host(blocks.total(look))


def _sample(blocks: Blocks) -> dict[str, np.ndarray]:
    """Return samples that stand for all, the same every time."""
    return blocks.take(draw(blocks.n_samples, COMPARED_SAMPLES))


def _widths(features: Features, blocks: Blocks) -> list[int]:
    """Return the number of features of each view."""
    return [F.shape[1] for F in features.of(blocks.take(np.arange(1)))]


def _views_of_fit(model: MultipleKernelClusterer, samples: Samples) -> Samples:
    """Return the views in the order of the fit, refusing others than those of the fit."""
    samples = model._known_views(samples)
    n = as_blocks(samples).n_samples
    if n != len(model.labels_):
        raise ValueError(f"X has {n} samples, the model was fitted on {len(model.labels_)}")
    given, fitted = is_dask(samples.parts[0]), is_dask(model.labels_)
    if given != fitted:
        kinds = [f"{'dask ' * lazy}arrays" for lazy in (given, fitted)]
        raise ValueError(
            f"X holds {kinds[0]}, the model was fitted on {kinds[1]}: pass what it was fitted on"
        )
    return samples
