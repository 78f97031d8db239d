"""The kernels of a model with an approximation, known by the features that stand for them.

With features F of a kernel, their column means and the small matrix F^T F, summed over blocks of
samples, tell its spectrum, its products with the other kernels, and all that shuffling the samples
would do to these. So nothing as long as the samples is made but labels, and these stay where the
samples are.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from mkclust.engine.relaxation import Relaxation
from mkclust.explain.examined import Examined
from mkclust.explain.noise import SummedDiagonals, has_clusters, most_clusters
from mkclust.linalg import astype, namespace, to_device, to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.out_of_sample import inverse
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.checks import is_dask
from mkclust.samples.samples import Samples, as_blocks
from mkclust.stack.low_rank import COMPARED_SAMPLES
from mkclust.stack.mapped import Features, draw
from mkclust.types import Array, Float


class ExaminedFeatures(Examined):
    """Approximated kernels, by the feature maps that the model learned.

    Vectors of its relaxations are columns of coefficients of the features. Samples are the views of
    the fit in the order of its labels: arrays, files read by rows, or dask arrays. Clusters of its
    own are looked for in a kernel on ``most_compared`` samples at most.
    """

    def __init__(
        self,
        model: MultipleKernelClusterer,
        samples: Samples,
        seed: int,
        most_compared: int = COMPARED_SAMPLES,
    ):
        super().__init__(model, seed)
        self._most_compared = most_compared
        self._samples = _views_of_fit(model, samples)
        self._features: Features = model._source.features
        self.n_samples = n = len(model.labels_)
        blocks = as_blocks(self._samples)
        means = _sums(blocks, self._features) / n
        ends = np.cumsum([0, *_widths(self._features, blocks)]).tolist()
        self._columns = [slice(*both) for both in pairwise(ends)]
        centered, self._toward_partition, totals, squares = self._products_with_partition(means)
        self.diagonals = SummedDiagonals(totals, squares, n)
        self._centered = C = (centered + centered.T) / 2
        self._products = C + n * np.outer(means, means)
        columns = self._columns
        self.gram = np.array([[np.sum(C[a, b] ** 2) for b in columns] for a in columns])
        self.relaxations = self._relax_each(self._products)

    def captured(self) -> Float:
        """Return what the model's partition captures of each kernel, ``Tr(H^T K_p H)``."""
        return np.array([np.sum(self._toward_partition[a] ** 2) for a in self._columns])

    def structure(self) -> tuple[Sequence[Relaxation], Float]:
        """Return what each kernel shows, centered in any case, and the traces."""
        if self._model.center:
            traces = [np.trace(self._products[a, a]) for a in self._columns]
            return self.relaxations, np.array(traces)
        return self._relax_each(self._centered), self.diagonals.totals()

    def has_clusters(self, p: int) -> bool:
        """Return whether one kernel has clear clusters, judged by samples that stand for all."""
        most = most_clusters(self._model.n_clusters, self.n_samples)
        # Scaling to unit length would push the samples of few dimensions apart.
        features = replace(self._features_of(p), floors=None)
        blocks = as_blocks(self._views([p]))
        mean = _sums(blocks, features) / self.n_samples

        def products(block: dict[str, np.ndarray], _: int) -> Float:
            F = features.of(block)[0]
            Z = astype(F, "float64") - to_device(mean, F)
            return Z.T @ Z

        relaxation = _relax_features(to_host(blocks.total(products)), most)
        some = blocks.take(draw(self.n_samples, self._most_compared))
        points = to_host(features.project(some, _orthonormal(relaxation, most)), None)
        return has_clusters(relaxation.eigenvalues[:most], points)

    def _products_with_partition(self, means: Float) -> tuple[Float, Float, Float, Float]:
        """Sum up products of centered features, those with the partition, and the diagonals."""
        features, columns = self._features, self._columns
        # Longer than the name of any view, and so another one.
        partition = f"partition of {list(self._samples.names)}"

        def products(block: dict[str, np.ndarray], _: int) -> tuple:
            views = {name: rows for name, rows in block.items() if name != partition}
            H, xp = astype(block[partition], "float64"), namespace(block[partition])
            F = xp.concat([astype(part, "float64") for part in features.of(views)], axis=1)
            Z = F - to_device(means, F)
            squared = Z * Z
            diagonals = xp.stack([xp.sum(squared[:, a], axis=1) for a in columns], axis=1)
            return Z.T @ Z, F.T @ H, xp.sum(diagonals, axis=0), diagonals.T @ diagonals

        H = self._model.embedding_
        if not is_dask(H):
            H = to_device(H, self._samples.parts[0])  # it may be of another place
        blocks = as_blocks(self._samples.by_name | {partition: H})
        centered, toward_partition, totals, squares = map(to_host, blocks.total(products))
        return centered, toward_partition, totals, squares

    def _relax_each(self, products: Float) -> list[Relaxation]:
        """Return what each kernel shows by the products of its features."""
        return [_relax_features(products[a, a], self._model.n_clusters) for a in self._columns]

    def _rows(self, p: int) -> Array:
        """Return the rows by which the samples of one kernel are clustered, (n, k)."""
        features = self._features_of(p)
        matrix = _orthonormal(self.relaxations[p], self._model.n_clusters)
        return as_blocks(self._views([p])).map(lambda block, _: features.project(block, matrix))

    def _fit(
        self, model: MultipleKernelClusterer, indices: Sequence[int]
    ) -> MultipleKernelClusterer:
        """Fit a model on some of the views, by the features that they have already."""
        maps = _LearnedMaps([self._features.maps[p] for p in indices])
        model.set_params(approximation=maps, random_state=self._seed)
        return model.fit(self._views(indices))

    def _views(self, indices: Sequence[int]) -> Samples:
        """Return some of the views."""
        return self._samples.only([self._samples.names[p] for p in indices])

    def _features_of(self, p: int) -> Features:
        """Return the features of one kernel, as the model sees them."""
        maps, means, floors = self._features.maps, self._features.means, self._features.floors
        return Features(
            [maps[p]],
            None if means is None else [means[p]],
            None if floors is None else [floors[p]],
        )


class _LearnedMaps(TransformerMixin, BaseEstimator):
    """Feature maps that were learned before: a clone is the next of them, and learns nothing.

    So a model that clones its approximation for one view after another takes them as they are.
    """

    def __init__(self, maps: Sequence[Any]):
        self.maps = maps
        self._next_maps = iter(maps)

    def __sklearn_clone__(self) -> "_LearnedMaps":
        """Return the next of the maps."""
        return _LearnedMaps([next(self._next_maps)])

    def fit(self, X: Any, y: Any = None) -> "_LearnedMaps":
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of rows."""
        return self.maps[0].transform(X)


def _relax_features(products: Float, n_clusters: int) -> Relaxation:
    """Solve the relaxed k-means problem of ``F F^T`` by ``F^T F``, which has its spectrum.

    It has k + 1 eigenvalues, zeros where there are fewer features.
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
    samples = model._source.match(samples)
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
