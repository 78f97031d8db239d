"""Methods that can tell the cluster of samples they have not seen."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.kernels import Linear
from mkclust.linalg import check_one_place, free_bytes, namespace, on_host, to_host
from mkclust.linalg.memory import require_memory
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.out_of_sample import Extension
from mkclust.methods.solution import Solution
from mkclust.methods.training import matched_kernels, training_features
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.dask import DaskBlocks
from mkclust.samples.forms import TABLE, check_masks, depth, looks_like_kernel
from mkclust.samples.ids import is_frame
from mkclust.samples.samples import (
    Kind,
    Samples,
    as_blocks,
    read_samples,
    read_views,
    single_kernels,
)
from mkclust.stack import KernelStack, RowSource, as_numbers, row_sums
from mkclust.stack.discretize import assign
from mkclust.stack.low_rank import compress, require_products
from mkclust.stack.mapped import n_components
from mkclust.types import Array, Float


class InductiveClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultipleKernelClusterer
):
    """Base of the methods whose partition is a function of similarities.

    The solution says which: by ``projections``, or by ``coefficients`` and ``relaxation``.
    """

    NEEDS_ENTRIES: ClassVar[bool] = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = "auto",
        center: bool = True,
        normalize: bool = True,
        psd: Literal["error", "clip", "shift"] = "error",
        validate: bool = True,
        approximation: Any = None,
        n_init: int = 10,
        random_state: Any = None,
    ):
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            psd=psd,
            validate=validate,
            n_init=n_init,
            random_state=random_state,
        )
        self.approximation = approximation

    def predict(self, X: Any, self_similarity: Array | None = None) -> Array:
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

        Returns
        -------
        ndarray of shape (n_new,)
            The same as ``labels_`` for the training samples. Of views that are dask arrays a dask
            array, whatever the model was fitted on; it is lazy, so that labels of any number of
            samples can be written out chunk by chunk.
        """
        return assign(self._embed(X, self_similarity), self._centers)

    def transform(self, X: Any, self_similarity: Array | None = None) -> Float:
        """Embed new samples, with rows of their natural length.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
            As in ``predict``.
        self_similarity : array of shape (m, n_new), default=None
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Of views that are dask arrays a lazy dask array, as in ``predict``.
        """
        return self._embed(X, self_similarity)

    def _embed(self, X: Any, self_similarity: Array | None) -> Float:
        """Embed new samples, having checked them."""
        check_is_fitted(self)
        if hasattr(self, "_features"):
            if self_similarity is not None:
                raise ValueError("self_similarity belongs to precomputed kernels: leave it out")
            return self._embed_features(read_views(X))
        if hasattr(self, "bank_"):
            samples = read_views(X)
            if samples.is_lazy:
                return as_blocks(samples, keep=False).map(self._embed_block)
            X = samples
        similarities = self._similarities(X, self_similarity)
        return self._extension.embed(*similarities)

    def _embed_block(self, block: dict[str, np.ndarray], start: int) -> Float:
        """Embed some new samples of several views, or of one table."""
        kind: Kind = "table" if TABLE in block else "views"
        return self._embed(Samples(kind, tuple(block), tuple(block.values())), None)

    def _embed_features(self, samples: Samples) -> Float:
        """Embed new samples by their features, in blocks; dask arrays are left lazy."""
        blocks = as_blocks(self._known_views(samples), keep=False)
        features, matrix = self._features

        def look(block: dict[str, np.ndarray], start: int) -> np.ndarray:
            check_finite(block, start)
            return features.project(block, matrix)

        return blocks.map(look)

    def _mixed_kernel(self, X: Any, samples: np.ndarray | None) -> Float:
        """Return the similarities among samples that exist, of features where there are any."""
        if not hasattr(self, "_features") or not hasattr(self, "coefficients_"):
            return super()._mixed_kernel(X, samples)
        everyone = np.arange(len(self.labels_)) if samples is None else samples
        similarities = np.zeros((len(everyone), len(everyone)))
        for c, F in zip(self.coefficients_, training_features(self, X, everyone), strict=True):
            similarities += c * (F @ F.T)
        return similarities

    def _known_views(self, samples: Samples) -> Samples:
        """Return views in the order of those that features were learned from, or refuse others."""
        fitted = self._view_widths
        widths = dict(zip(samples.names, samples.n_features, strict=True))
        if widths != fitted:
            raise ValueError(
                f"X has the views {widths} (name: columns), the model was fitted on {fitted}: pass "
                "the same views, with the same columns"
            )
        samples.check_columns(self._columns, "model")
        return samples.only(fitted)

    def _compress(self, samples: Samples) -> tuple[KernelStack, dict[str, Any]]:
        """Return the kernels of approximating features, compressed, and what is to be known."""
        if self.kernels != "auto":
            raise ValueError(
                f"kernels={self.kernels!r} with an approximation: features stand for kernels of "
                "views; pass views and kernels='auto', or approximation=None"
            )
        _refuse_kernels(samples)
        blocks, columns = as_blocks(samples), samples.columns
        self._require_features(blocks)
        stack = compress(
            blocks,
            self.approximation,
            n_clusters=self.n_clusters,
            center=self.center,
            normalize=self.normalize,
            random_state=self.random_state,
        )
        learned: dict[str, Any] = {
            "n_features_in_": sum(blocks.n_features),
            "approximation_error_": stack.approximation_error,
            "_view_widths": dict(zip(blocks.names, blocks.n_features, strict=True)),
            "_columns": columns,
        }
        if TABLE in columns:
            learned["feature_names_in_"] = np.array(columns[TABLE], dtype=object)
        return stack, learned

    def _require_features(self, blocks: Blocks) -> None:
        """Refuse features and embeddings that do not fit into memory, before any pass."""
        m, n = len(blocks.names), blocks.n_samples
        if isinstance(self.approximation, Linear):
            columns, advice = sum(blocks.n_features), "pass approximation=Nystroem()"
        else:
            # Of a pipeline, what its last step makes; of other maps, known once they are fitted.
            columns = m * next(reversed(n_components(self.approximation)), 0)
            advice = "pass a smaller n_components"
        require_products(columns, m, advice)
        if not isinstance(blocks, DaskBlocks):
            row = next(iter(blocks.take(np.arange(min(1, n))).values()))
            # The partition and the rows of k-means, twice for a baseline, in single precision.
            require_memory(
                16 * n * self.n_clusters,
                f"holding the embedding of {n} samples in {self.n_clusters} clusters",
                "pass dask arrays, whose results stay on the workers, or fit on some samples and "
                "predict the others",
                available=free_bytes(row),
            )

    def _similarities(
        self, X: Any, self_similarity: Array | None
    ) -> tuple[Sequence[Array], Float | None]:
        """Return new samples' similarities to the training samples and to themselves, checked."""
        check_is_fitted(self)
        if hasattr(self, "bank_"):
            if self_similarity is not None:
                raise ValueError("self_similarity belongs to precomputed kernels: leave it out")
            samples = self._check_table(read_views(X), new=True)
            return self.bank_.transform(samples), self.bank_.self_similarity(samples)
        cross = self._cross_kernels(X)
        if self_similarity is not None:
            self_similarity = self._own_similarities(self_similarity, cross)
        return cross, self_similarity

    def _own_similarities(self, self_similarity: Any, cross: Sequence[Array]) -> Float:
        """Return the similarities of new samples to themselves, checked."""
        if is_frame(self_similarity):
            raise TypeError(
                "self_similarity is a data frame, whose ids are not compared with those of X: pass "
                "an array, its rows in the order of the kernels and its columns in that of the "
                "new samples"
            )
        check_masks(self_similarity, "self_similarity")
        self_similarity = to_host(on_host(self_similarity))
        expected = (len(cross), cross[0].shape[0])
        if self_similarity.shape != expected:
            raise ValueError(
                f"self_similarity has the shape {self_similarity.shape}, expected {expected}: "
                "one row a kernel, one column a new sample"
            )
        # A kernel that was repaired may have had negative ones.
        sound = np.array(
            [standardization.added is None for standardization in self._extension.standardizations]
        )
        wrong = ~np.isfinite(self_similarity) | (sound[:, None] & (self_similarity < 0))
        if self.normalize and self.validate and self.psd == "error":
            # By a positive semidefinite kernel, what is not similar to itself is so to nothing.
            for p, sample in np.argwhere(self_similarity == 0):
                row = cross[p][sample : sample + 1, :]
                wrong[p, sample] = bool((row != 0).sum() > 0)
        if np.any(wrong):
            kernel, sample = np.argwhere(wrong)[0]
            raise ValueError(
                f"self_similarity has {int(wrong.sum())} entries that are no similarity of a "
                "sample to itself (NaN, infinite, negative, or zero for a sample that is similar "
                f"to others), first {self_similarity[kernel, sample]:g} for "
                f"{self._extension.names[kernel]} and new sample {sample}: pass k(x, x)"
            )
        return self_similarity

    def _common_attributes(
        self, stack: KernelStack, solution: Solution
    ) -> tuple[dict[str, Any], list[Array]]:
        """Return what every method learns, and how well the clusters fit the training samples."""
        learned, further = super()._common_attributes(stack, solution)
        if solution.coefficients is not None and not stack.compressed:
            extension: Extension = learned["_extension"]
            learned["_centroids"] = extension.toward_centroids(stack, learned["labels_"])
            rows = learned["_centroids"].times(solution.coefficients).embed_training(stack)
            xp = namespace(rows)
            learned["alignment_error_"] = float(xp.mean(1 - xp.max(rows, axis=1)))
        return learned, further

    def _rows(self, stack: KernelStack, solution: Solution) -> tuple[Array, dict[str, Any]]:
        """Embed the training samples by the same road as new ones, so that labels agree."""
        extension = self._extend(stack, solution)
        rows = extension.embed_training(stack)
        learned: dict[str, Any] = {"_n_features_out": self.n_clusters}
        feature_map = stack.embedding_map(rows)
        if feature_map is None:
            learned["_extension"] = extension
        else:
            learned["_features"] = feature_map
        return rows, learned

    def _extend(self, stack: KernelStack, solution: Solution) -> Extension:
        """Return the partition as a function of similarities to the training samples."""
        if solution.projections is not None:
            return Extension.by(stack, solution.projections)
        if solution.relaxation is None or solution.coefficients is None:
            name = type(self).__name__
            raise TypeError(
                f"{name} cannot embed new samples: its solution has neither projections nor both "
                "coefficients and relaxation; return these from _solve, or derive "
                f"{name} from MultipleKernelClusterer"
            )
        values = solution.relaxation.eigenvalues[: self.n_clusters]
        return Extension.of(stack, solution.coefficients, solution.partition, values)

    def _cross_kernels(self, X: Any) -> list[Array]:
        """Return the similarities of new samples to the training samples, checked."""
        ids = getattr(self, "sample_ids_", None)
        samples = read_samples(X, expected="precomputed", ids=ids, cross=True)
        names, n = self._extension.names, self.n_features_in_
        matrices = single_kernels(matched_kernels(samples, names))
        cross = [as_numbers(K, name) for name, K in zip(names, matrices, strict=True)]
        check_one_place(cross, names)
        for name, K in zip(names, cross, strict=True):
            if K.ndim != 2 or K.shape[1] != n or K.shape[0] != cross[0].shape[0]:
                raise ValueError(
                    f"{name} has the shape {K.shape}: expected similarities of "
                    f"{cross[0].shape[0]} new samples (rows) to the {n} training samples (columns)"
                )
            row_sums(K, name)  # refuses what is not finite
        return cross


def _refuse_kernels(samples: Samples) -> None:
    """Refuse kernels where features are to be made of views."""
    if all(
        isinstance(part, RowSource) or depth(part) == 3 or looks_like_kernel(part)
        for part in samples.parts
    ):
        raise ValueError(
            "X holds kernels, and an approximation makes features of views, samples x features: "
            "pass the views, or approximation=None for kernels"
        )
