"""Methods that assign clusters to new samples."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.data.blocks import Block, check_finite, opposite
from mkclust.data.dask import DaskBlocks
from mkclust.data.samples import Samples
from mkclust.engine.certificate import rounding_of_entries
from mkclust.fit.base import MultipleKernelClusterer
from mkclust.fit.coverage import (
    nearness_by_features,
    nearness_of_new,
    references_of,
    warn_of_other_ranges,
)
from mkclust.fit.embedding import (
    UNCOVERED,
    Extension,
    LearnedRows,
    embedded_rows,
    grams_of,
    inverse,
    learn_regressions,
    observed_of,
    warn_of_uncovered,
    without_entries,
)
from mkclust.fit.solution import Solution
from mkclust.linalg import arrays_to_host, is_on_accelerator, select, to_device, to_host
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.parameters import learned
from mkclust.stack import Stack
from mkclust.stack.kernel import multiply
from mkclust.types import Array, Float, Labels


class InductiveClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultipleKernelClusterer
):
    """Base of the methods whose partition is a function of similarities.

    The solution says which: by ``projections``, or by ``coefficients`` and
    ``relaxation``.
    """

    approximation: Any = None

    NEEDS_ENTRIES: ClassVar[bool] = False

    # How near the nearest others are to some samples of the fit, rising; None of
    # features.
    _references: Float | None = learned(None)

    def predict(
        self,
        X: Any,
        self_similarity: Array | None = None,
        *,
        observed: Any = None,
        adjust: Any = None,
    ) -> Labels:
        """Give new samples the cluster whose center is nearest.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of kernels or views, or table
            What ``fit`` was given, for other samples: similarities of the new samples
            to the training samples, or features. Views and named kernels of weight zero
            may be left out.
        self_similarity : array of shape (m, n_new), default=None
            With precomputed kernels and ``normalize=True``: the new samples'
            similarities to themselves, k(x, x). None is enough if they are known:
            kernels with a constant diagonal, and the training kernels themselves.
        observed : array of bool of shape (n_new, n_views), default=None
            Which views, or kernels, have which new samples, as in ``fit``.
        adjust : frame, Series or array-like of shape (n_new, q), default=None
            The covariates of the new samples, if the fit had some.

        Returns
        -------
        ndarray of shape (n_new,)
            The same as ``labels_`` for the training samples; -1 for samples that have
            no entry, or no neighbor, in any view that is used, which an
            `UncoveredSamplesWarning` names. An `OtherRangeWarning` says if most values
            of a view are outside the ranges of the fit, as those in another unit are.
            If X holds dask arrays, a dask array: workers assign a chunk at a time when
            it is computed, without these warnings.
        """
        samples = self._read_new(X, self_similarity, observed, adjust)
        if samples.is_lazy:
            return lazy_labels(self, samples)
        return self._labels(*self._embed(samples, self_similarity))

    def _labels(self, rows: Float, uncovered: np.ndarray) -> Labels:
        """Return the clusters of rows, -1 for samples that are uncovered."""
        labels = self._assign(rows)
        labels[uncovered] = UNCOVERED
        return labels

    def transform(
        self,
        X: Any,
        self_similarity: Array | None = None,
        *,
        observed: Any = None,
        adjust: Any = None,
    ) -> Float:
        """Embed new samples, with rows of their natural length.

        Parameters
        ----------
        X, self_similarity, observed, adjust : array-like
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows of data frames with ids are in the order of the first such frame; if
            ``set_output`` asks for a frame of pandas, its index holds the ids.
        """
        samples = self._read_new(X, self_similarity, observed, adjust)
        rows, _ = self._embed(samples, self_similarity)
        rows = self._as_embedding(rows)
        asked = getattr(self, "_sklearn_output_config", {})
        form = asked.get("transform", get_config()["transform_output"])
        if samples.ids is None or form != "pandas":
            return rows
        return pd.DataFrame(to_host(rows), index=pd.Index(samples.ids))

    def coverage(
        self,
        X: Any,
        self_similarity: Array | None = None,
        *,
        observed: Any = None,
        adjust: Any = None,
    ) -> Float:
        """Return how well new samples are covered by those of the fit.

        A sample is as near to the fit as its fifth nearest sample there is in the mixed
        kernel, by the cosine. The coverage is the share of samples of the fit (of 256
        at most) that are not nearer to the others: spread evenly from 0 to 1 for
        samples like those of the fit, and 0 for those that resemble nothing. Below
        0.01, clusters mean little.

        Parameters
        ----------
        X, self_similarity, observed, adjust : array-like
            As in ``predict``. Samples of the fit are near to themselves, which raises
            theirs.

        Returns
        -------
        ndarray of shape (n_new,)
            In the order of the labels; 0 for samples with the label -1.

        Examples
        --------
        >>> import numpy as np
        >>> from mkclust import AgreementKKM
        >>> from mkclust.datasets import load
        >>> digits = load("digits").views
        >>> old, new = ({n: view[rows] for n, view in digits.items()} for rows in
        ...             (slice(0, 1000, 2), slice(1, 1000, 10)))
        >>> model = AgreementKKM(n_clusters=10, random_state=0).fit(old)
        >>> noise = {n: np.random.default_rng(0).permuted(view)
        ...          for n, view in new.items()}
        >>> bool(model.coverage(new).mean() > 0.3), float(model.coverage(noise).max())
        (True, 0.0)
        """
        samples = self._read_new(X, self_similarity, observed, adjust)
        coefficients = getattr(self, "coefficients_", self.weights_)
        references = self._references
        if self.approximation is not None:
            nearness, references = nearness_by_features(self, samples, coefficients)
        else:
            nearness = nearness_of_new(self, samples, coefficients, self_similarity)
        if references is None:
            raise ValueError(
                f"this {type(self).__name__} has not learned how near its samples are: "
                "fit it again; a method that defines _learned returns what "
                "super()._learned does, too"
            )
        return np.searchsorted(references, nearness, side="right") / len(references)

    def _read_new(
        self, X: Any, self_similarity: Any, observed: Any, adjust: Any = None
    ) -> Samples:
        """Read new samples as the fit has read its own."""
        check_is_fitted(self)
        if self_similarity is not None and not self._source.given_kernels:
            raise ValueError(
                "self_similarity belongs to precomputed kernels: leave it out"
            )
        return self._source.read(self, X, observed, is_new=True, adjust=adjust)

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        mixed = solution.coefficients
        coefficients = solution.weights if mixed is None else mixed
        return {"_references": references_of(stack, coefficients)}

    def _embed(
        self, samples: Samples, self_similarity: Any
    ) -> tuple[Float, np.ndarray]:
        """Return rows of new samples and which have no entries, with warnings."""
        source = self._source
        unused = source.unused(self)
        known = {n: rows for n, rows in source.rows_of_fit().items() if n not in unused}
        warn_of_other_ranges(samples, known, source.given.columns)
        rows, uncovered = self._embed_samples(samples, self_similarity)
        warn_of_uncovered(uncovered, samples)
        return rows, uncovered

    def _embed_samples(
        self, samples: Samples, self_similarity: Any = None
    ) -> tuple[Float, np.ndarray]:
        """Return rows of samples, and which are uncovered.

        Samples of which no used view says anything have rows of zeros.
        """
        n = samples.n_samples
        empty = self._source.empty(samples)
        used = self._used_kernels
        covered = np.delete(np.arange(n), without_entries(empty, used))
        if not len(covered):
            return np.zeros((n, self.n_clusters_)), np.arange(n)

        if len(covered) < n:
            if self_similarity is not None:
                self_similarity = to_host(arrays_to_host(self_similarity))[:, covered]
            # As views, since the columns of kernels are training samples.
            part = replace(samples, kind="views").take(covered)
            samples = replace(part, kind=samples.kind)
        rows, alone = self._source.embed(self, samples, self_similarity)
        lost = without_entries(empty[covered] | alone, used)
        kept = np.delete(np.arange(len(covered)), lost)
        if len(kept) < n:
            rows = spread_rows(select(rows, kept), covered[kept], n, 0.0)
        return rows, np.delete(np.arange(n), covered[kept])

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _as_embedding(self, rows: Array) -> Array:
        """Return rows, clustered by their directions, as ``embedding_`` has them."""
        return rows

    def _rows(self, stack: Stack, solution: Solution) -> tuple[Array, Extension | None]:
        """Embed the training samples as new ones are, so that their labels agree."""
        relaxation = solution.relaxation
        observed = observed_of(stack)
        extension = None
        projections = self._projections(stack, solution)
        if stack.features is None:
            options = self.table_options
            extension = Extension.by(
                stack, projections, options.fill_rule, solution.included
            )
            if options.missing_views == "learn":
                predictions = self._predictions(stack, solution, projections)
                extension = replace(extension, learned=LearnedRows(predictions))
                if observed is not None:
                    rows = extension.embed_training(stack)
                    seen = observed & extension.active
                    extension = extension.with_regressions(
                        learn_regressions(stack, rows, seen)
                    )
        is_complete = stack.features is not None or observed is None
        # On accelerators products are only as precise as the kernels.
        is_precise = is_complete and not is_on_accelerator(solution.partition)
        if solution.projections is None and relaxation is not None and is_precise:
            return embedded_rows(relaxation, rounding_of_entries(stack)), extension
        if solution.rows is not None and is_precise:
            return solution.rows, extension
        if extension is not None:
            return extension.embed_training(stack), extension
        products = multiply(stack.kernels, projections)
        return sum(products[1:], products[0]), None

    def _predictions(
        self, stack: Stack, solution: Solution, projections: Sequence[Array]
    ) -> Float:
        """Return ``H^T K_p P_p`` for the projections P of every kernel."""
        H = solution.partition
        # P = H H^T P.
        if solution.projections is None and solution.products is not None:
            grams = grams_of(H, solution.products[:, :, : H.shape[1]])
            return grams @ np.stack([to_host(H.T @ each) for each in projections])
        products = multiply(stack.kernels, projections)
        return np.stack([to_host(H.T @ each) for each in products])

    def _projections(self, stack: Stack, solution: Solution) -> list[Array]:
        if solution.projections is not None:
            return list(solution.projections)
        if solution.relaxation is None or solution.coefficients is None:
            name = type(self).__name__
            raise TypeError(
                f"{name} cannot embed new samples: its solution has neither "
                "projections nor both coefficients and relaxation; return these from "
                f"_solve, or derive {name} from MultipleKernelClusterer"
            )
        values = solution.relaxation.eigenvalues[: self.n_clusters]
        reciprocals = inverse(values, stack.n_samples, rounding_of_entries(stack))
        projection = solution.partition * to_device(reciprocals, solution.partition)
        return [float(c) * projection for c in solution.coefficients]


def lazy_labels(model: InductiveClusterer, samples: Samples) -> Array:
    """Return the labels of views in dask arrays as a dask array."""
    assign = partial(labels_of_block, model, samples.frame)
    blocks = DaskBlocks(samples.by_name, opposite(samples.missing))
    return blocks.map_lazily(assign, model.labels_[:1])


def labels_of_block(
    model: InductiveClusterer, frame: Samples, block: Block, start: int
) -> Labels:
    """Return the labels of some samples, on the host."""
    check_finite(block, start)
    some = slice(start, start + block.n_rows)
    return to_host(model._labels(*model._embed_samples(frame.held(block, some))), None)
