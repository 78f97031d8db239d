"""The kernels of a model with an approximation, known by the features that stand for them.

With features F of a kernel, their column means and the small matrix F^T F, summed over blocks of
samples, tell its spectrum and what partitions capture of it. So nothing as long as the samples is
made but labels, and these stay where the samples are.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from mkclust.engine.eigen import Relaxation
from mkclust.explain.examined import Examined, Refit
from mkclust.linalg import astype, eigh, namespace, to_device, to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.uncovered import only_covered
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.checks import is_dask
from mkclust.samples.samples import Samples, as_blocks
from mkclust.stack.feature_maps import Features
from mkclust.types import Array, Float


class ExaminedFeatures(Examined):
    """Approximated kernels, by the feature maps that the model learned.

    Vectors of its relaxations are columns of coefficients of the features. Samples are the views of
    the fit in the order of its labels: arrays, files read by rows, or dask arrays.
    """

    def __init__(self, model: MultipleKernelClusterer, samples: Samples, seed: int):
        super().__init__(model, seed)
        self._samples = _views_of_fit(model, samples)
        self._features: Features = model._source.features
        self.n_samples = n = len(model.labels_)
        blocks = as_blocks(self._samples)
        means = _sums(blocks, self._features) / n
        ends = np.cumsum([0, *_widths(self._features, blocks)]).tolist()
        self._columns = [slice(*both) for both in pairwise(ends)]
        centered, self._toward_partition = self._products_with_partition(means)
        self._centered = (centered + centered.T) / 2
        self._products = self._centered + n * np.outer(means, means)
        self.relaxations = self._relax_each(self._products)

    def mixed_kernel(self, samples: np.ndarray) -> Float:
        """Return the similarities by which the model clusters, among some samples, (s, s)."""
        return self._model.mixed_kernel(self._samples, samples)

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        return np.array([np.sum(self._toward_partition[a] ** 2) for a in self._columns])

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        products = self._products if self._model.center else self._centered
        traces = np.array([np.trace(products[a, a]) for a in self._columns])
        return self.relaxations if self._model.center else self._relax_each(products), traces

    def _products_with_partition(self, means: Float) -> tuple[Float, Float]:
        """Sum up products of centered features with each other, and of all with the partition."""
        features = self._features
        # Longer than the name of any view, and so another one.
        partition = f"partition of {list(self._samples.names)}"

        def products(block: dict[str, np.ndarray], _: int) -> tuple:
            views = {name: rows for name, rows in block.items() if name != partition}
            H, xp = astype(block[partition], "float64"), namespace(block[partition])
            F = xp.concat([astype(part, "float64") for part in features.of(views)], axis=1)
            Z = F - to_device(means, F)
            return Z.T @ Z, F.T @ H

        H = self._model.embedding_
        if not is_dask(H):
            H = to_device(H, self._samples.parts[0])  # it may be of another place
        blocks = as_blocks(_with_view(self._samples, partition, H))
        centered, toward_partition = map(to_host, blocks.total(products))
        return centered, toward_partition

    def _relax_each(self, products: Float) -> list[Relaxation]:
        """Return what each kernel shows by the products of its features."""
        return [_relax_features(products[a, a], self._model.n_clusters) for a in self._columns]

    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""
        features = self._features_of(p)
        matrix = _orthonormal(self.relaxations[p], self._model.n_clusters)
        return as_blocks(self._views([p])).map(lambda block, _: features.project(block, matrix))

    def _mixed_rows(self, coefficients: Float) -> Array:
        """Return the rows by which the samples of a sum of the kernels are clustered, (n, k)."""
        k, scale = self._model.n_clusters, np.zeros(len(self._products))
        for columns, coefficient in zip(self._columns, coefficients, strict=True):
            scale[columns] = np.sqrt(coefficient)
        relaxation = _relax_features(scale[:, None] * self._products * scale, k)
        features, matrix = self._features, scale[:, None] * _orthonormal(relaxation, k)
        return as_blocks(self._samples).map(lambda block, _: features.project(block, matrix))

    def _refit(self, model: MultipleKernelClusterer, indices: Sequence[int]) -> Refit:
        """Return the clusters of a model of some views, by the features they have."""
        maps = _LearnedMaps([self._features.maps[p] for p in indices])
        # The maps prepare rows themselves, as they learned to.
        model.set_params(approximation=maps, kernels="gaussian", random_state=self._seed)
        views, samples = self._views(indices), self._seen_in(indices)
        model.fit(views if samples is None else views.take(samples))
        if model._covered is None:
            return Refit(model.labels_, samples)
        samples = np.arange(self.n_samples) if samples is None else samples
        return Refit(only_covered(model).labels_, samples[model._covered])

    def _views(self, indices: Sequence[int]) -> Samples:
        """Return some of the views."""
        return self._samples.only([self._samples.names[p] for p in indices])

    def _features_of(self, p: int) -> Features:
        """Return the features of one kernel, as the model sees them."""
        return self._features.subset([p])


class _LearnedMaps(TransformerMixin, BaseEstimator):
    """Feature maps that were learned before: a clone is the next of them, and learns nothing.

    So a model that clones its approximation for one view after another takes them as they are.
    """

    def __init__(self, maps: Sequence[Any]):
        self.maps = maps
        self._next_maps = cycle(maps)  # a fit may begin again, without some samples

    def __sklearn_clone__(self) -> "_LearnedMaps":
        """Return the next of the maps."""
        return _LearnedMaps([next(self._next_maps)])

    def fit(self, X: Any, y: Any = None) -> "_LearnedMaps":
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of rows."""
        return self.maps[0].transform(X)


def _with_view(samples: Samples, name: str, view: Array) -> Samples:
    """Return samples with one view more, which has all of them."""
    missing = samples.missing
    if missing is not None:
        missing = np.column_stack([missing, np.zeros(len(missing), dtype=bool)])
    names, parts = (*samples.names, name), (*samples.parts, view)
    return replace(samples, kind="views", names=names, parts=parts, missing=missing)


def _relax_features(products: Float, n_clusters: int) -> Relaxation:
    """Solve the relaxed k-means problem of ``F F^T`` by ``F^T F``, which has its spectrum.

    It has k + 1 eigenvalues, zeros where there are fewer features.
    """
    values, V = eigh(products)
    values, V = values[::-1][: n_clusters + 1], V[:, ::-1][:, : n_clusters + 1]
    eigenvalues = np.zeros(n_clusters + 1)
    eigenvalues[: len(values)] = values
    return Relaxation(n_clusters, V, eigenvalues)


def _orthonormal(relaxation: Relaxation, count: int) -> Float:
    """Return what the features are multiplied with for orthonormal eigenvectors over the samples.

    Where the kernel has a lower rank, the coordinate is zero.
    """
    V = relaxation.vectors[:, :count]
    values = relaxation.eigenvalues[: V.shape[1]]
    return V * np.sqrt(inverse(values, len(V), float(np.finfo(np.float64).eps)))


def _sums(blocks: Blocks, features: Features) -> Float:
    """Return the sums of all features, side by side, having looked for entries not finite."""

    def sums(block: dict[str, np.ndarray], start: int) -> Float:
        check_finite(block, start)
        parts = features.of(block)
        xp = namespace(*parts)
        return xp.concat([xp.sum(F, axis=0, dtype=xp.float64) for F in parts])

    return to_host(blocks.total(sums))


def _widths(features: Features, blocks: Blocks) -> list[int]:
    """Return the number of features of each view."""
    return [F.shape[1] for F in features.of(blocks.take(np.arange(1)))]


def _views_of_fit(model: MultipleKernelClusterer, samples: Samples) -> Samples:
    """Return the views in the order of the fit, refusing others than those of the fit."""
    n = as_blocks(samples).n_samples
    if n != len(model.labels_):
        raise ValueError(f"X has {n} samples, the model was fitted on {len(model.labels_)}")
    lazy = [is_dask(samples.parts[0]), is_dask(model.labels_)]
    if lazy[0] != lazy[1]:
        now, then = (f"{'dask ' * each}arrays" for each in lazy)
        raise ValueError(
            f"X holds {now}, the model was fitted on {then}: pass what it was fitted on"
        )
    return samples
