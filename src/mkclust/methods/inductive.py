"""Methods that can tell the cluster of samples they have not seen."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.linalg import arrays_to_host, namespace, to_device, to_host
from mkclust.linalg.memory import are_written_out
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.learned_rows import LearnedRows
from mkclust.methods.out_of_sample import (
    AnyExtension,
    Extension,
    IncompleteExtension,
    eigenvector_projections,
    extend,
    inverse,
)
from mkclust.methods.seen_regression import learn_seen_regressions
from mkclust.methods.solution import Solution
from mkclust.methods.source import Source
from mkclust.methods.uncovered import UNCOVERED, uncovered_among_new, warn_of_uncovered
from mkclust.samples.samples import Samples
from mkclust.stack import KernelStack
from mkclust.stack.discretize import TIE, assign
from mkclust.types import Array, Float, Labels

# By so many roundings of the largest eigenvalue two products with the same vectors may differ.
ROUNDINGS = 16


class InductiveClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultipleKernelClusterer
):
    """Base of the methods whose partition is a function of similarities.

    The solution says which: by ``projections``, or by ``coefficients`` and ``relaxation``.
    """

    approximation: Any = None

    NEEDS_ENTRIES: ClassVar[bool] = False

    def predict(
        self, X: Any, self_similarity: Array | None = None, *, observed: Any = None
    ) -> Labels:
        """Give new samples the cluster whose center is nearest.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
            What ``fit`` was given, for other samples: similarities of the new samples to the
            training samples, or features.
        self_similarity : array of shape (m, n_new), default=None
            With precomputed kernels and ``normalize=True``: the new samples' similarities to
            themselves, k(x, x). None serves where they are known: kernels with a constant
            diagonal, and the training kernels themselves.
        observed : array of bool of shape (n_new, n_views), default=None
            Which views, or kernels, have which new samples, as in ``fit``.

        Returns
        -------
        ndarray of shape (n_new,)
            The same as ``labels_`` for the training samples; -1 for samples that have no entry in
            any view that is used, which an `UncoveredSamplesWarning` names. Of views that are dask
            arrays a dask array, whatever the model was fitted on; it is lazy, so that labels of any
            number of samples can be written out chunk by chunk.
        """
        check_is_fitted(self)
        samples = self._source.read_new(self, X, observed)
        rows, uncovered = self._embed(samples, self_similarity)
        labels = assign(rows, self._centers)
        if len(uncovered):
            labels[uncovered] = UNCOVERED
        return labels

    def transform(
        self, X: Any, self_similarity: Array | None = None, *, observed: Any = None
    ) -> Float:
        """Embed new samples, with rows of their natural length.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
            As in ``predict``.
        self_similarity : array of shape (m, n_new), default=None
            As in ``predict``.
        observed : array of bool of shape (n_new, n_views), default=None
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Of views that are dask arrays a lazy dask array, as in ``predict``. Rows of data frames
            with ids are in the order of the first such frame; where ``set_output`` asks for a
            frame of pandas, its index are the ids.
        """
        check_is_fitted(self)
        samples = self._source.read_new(self, X, observed)
        rows, _ = self._embed(samples, self_similarity)
        asked = getattr(self, "_sklearn_output_config", {})
        if (
            samples.ids is None
            or asked.get("transform", get_config()["transform_output"]) != "pandas"
        ):
            return rows
        import pandas as pd

        return pd.DataFrame(to_host(rows), index=pd.Index(samples.ids))

    def _embed(
        self, samples: Samples, self_similarity: Any, extension: AnyExtension | None = None
    ) -> tuple[Float, np.ndarray]:
        """Embed new samples in an array, in whatever form `transform` has been set to return it.

        By another extension than that of the fit, if there is one. Returned are the numbers of
        the samples of which nothing is known, too; their rows are zero.
        """

        def embed(some: Samples, own: Any) -> Array:
            if extension is None:
                return source.embed(self, some, own)
            return source.embed_by(extension, self, some, own)

        source, uncovered = self._source, uncovered_among_new(self, samples)
        if not len(uncovered):
            return embed(samples, self_similarity), uncovered
        n = samples.n_samples
        warn_of_uncovered(uncovered, n, samples.ids)
        others = np.delete(np.arange(n), uncovered)
        if not len(others):
            return np.zeros((n, self.n_clusters)), uncovered
        if self_similarity is not None:
            self_similarity = to_host(arrays_to_host(self_similarity))[:, others]
        rows = embed(source.take_new(samples, others), self_similarity)
        return spread_rows(rows, others, n, 0.0), uncovered

    def _common_attributes(
        self, source: Source, stack: KernelStack, solution: Solution, lost: np.ndarray
    ) -> tuple[dict[str, Any], list[Array]]:
        """Return what every method learns, and how well the clusters fit the training samples."""
        learned, further = super()._common_attributes(source, stack, solution, lost)
        learned["_n_features_out"] = self.n_clusters
        if solution.coefficients is not None and not stack.compressed:
            extension: AnyExtension = learned["_source"].extension
            centroids = extension.toward_centroids(stack, learned["labels_"])
            rows = self._similarities_to_centroids(stack, solution, learned["labels_"], centroids)
            xp = namespace(rows)
            learned["alignment_error_"] = float(
                np.mean(np.delete(to_host(1 - xp.max(rows, axis=1)), lost))
            )
            learned["_centroids"] = centroids
        return learned, further

    def _similarities_to_centroids(
        self, stack: KernelStack, solution: Solution, labels: np.ndarray, centroids: AnyExtension
    ) -> Array:
        """Return the alignments of the training samples with the clusters' centroids."""
        coefficients = solution.coefficients
        assert coefficients is not None
        if not stack.combining_pays or not _is_plain(stack, centroids):
            return centroids.times(coefficients).embed_training(stack)
        if are_written_out(stack.n_kernels, stack.n_samples):
            means = (labels[:, None] == np.unique(labels[labels >= 0])).astype(np.float64)
            means /= means.sum(axis=0)
            return stack.combine(coefficients) @ to_device(means, stack.like)
        members = csr_array(labels == np.unique(labels[labels >= 0])[:, None], dtype=np.float64)
        members = members.multiply(1 / members.sum(axis=1)[:, None]).tocsr()
        mixed = np.flatnonzero(coefficients).tolist()
        parts = [float(coefficients[p]) * stack.kernel(p).times_members(members) for p in mixed]
        return sum(parts[1:], parts[0])

    def _rows(self, stack: KernelStack, solution: Solution) -> tuple[Array, AnyExtension]:
        """Embed the training samples as new ones are, so that their labels agree."""
        extension = self._extend(stack, solution)
        if solution.projections is None and _is_plain(stack, extension):
            rows = _rows_of_solve(stack, solution)
            if rows is not None:
                return rows, extension
        return extension.embed_training(stack), extension

    def _extend(self, stack: KernelStack, solution: Solution) -> AnyExtension:
        """Return the partition as a function of similarities to the training samples."""
        rule = self.table_options.fill_rule
        if solution.projections is not None:
            return extend(stack, solution.projections, rule)
        if solution.relaxation is None or solution.coefficients is None:
            name = type(self).__name__
            raise TypeError(
                f"{name} cannot embed new samples: its solution has neither projections nor both "
                "coefficients and relaxation; return these from _solve, or derive "
                f"{name} from MultipleKernelClusterer"
            )
        values = solution.relaxation.eigenvalues[: self.n_clusters]
        projections = eigenvector_projections(
            stack, solution.coefficients, solution.partition, values
        )
        extension = extend(stack, projections, rule)
        if not self._asks_to_learn:
            return extension
        reciprocals = inverse(values, stack.n_samples, stack.precision)
        H, coefficients = solution.partition, solution.coefficients
        learned = LearnedRows.of(stack, coefficients, H, reciprocals)
        if not isinstance(extension, IncompleteExtension):
            return replace(extension, learned=learned)
        regressions = learn_seen_regressions(stack, extension.embed_training(stack))
        return replace(
            extension.with_regressions(stack, regressions),
            learned=replace(learned, regressions=[each.pattern() for each in regressions]),
        )


def _rows_of_solve(stack: KernelStack, solution: Solution) -> Array | None:
    """Embed the training samples by the products of the solve, None where they tell too little.

    Those are as exact as products anew, and round differently: that must not decide on a label.
    """
    products, relaxation = solution.kernel_products, solution.relaxation
    if products is None or relaxation is None or solution.coefficients is None:
        return None
    k = solution.partition.shape[1]
    values = relaxation.eigenvalues[:k]
    rounding = ROUNDINGS * stack.precision * float(values[0])
    if not values[-1] > 0:
        return None
    xp, rows = namespace(products), None
    for p in np.flatnonzero(solution.coefficients).tolist():
        term = float(solution.coefficients[p]) * products[p, :, :]
        rows = term if rows is None else rows + term
    assert rows is not None
    rows = rows * to_device(1 / values, rows)
    shortest = float(xp.min(xp.linalg.vector_norm(rows, axis=1)))
    return rows if rounding / float(values[-1]) < TIE * shortest else None


def _is_plain(stack: KernelStack, extension: AnyExtension) -> bool:
    """Return whether training samples are embedded by the kernels of the stack as they are.

    Similarities in float32 are embedded in float64, which the products of a stack are not.
    """
    is_double = stack.itemsize == np.dtype(np.float64).itemsize
    as_given = isinstance(extension, Extension) and extension.learned is None
    return as_given and is_double and not stack.repaired
