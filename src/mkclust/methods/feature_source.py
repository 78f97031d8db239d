"""What a model was fitted on if features stand for the kernels of its views."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.linalg import arrays_to_host, is_foreign, to_host
from mkclust.methods.column_ranks import ColumnRanks
from mkclust.methods.out_of_sample import Extension
from mkclust.methods.same_input import OTHER_SAMPLES, match_views, refuse_self_similarity
from mkclust.methods.source import Source
from mkclust.samples.blocks import Block, Blocks, check_finite
from mkclust.samples.check import in_memory
from mkclust.samples.samples import Samples, as_blocks
from mkclust.stack import Stack
from mkclust.stack.discretize import assign
from mkclust.stack.feature_maps import PreparedMap
from mkclust.types import Array, Float

# Rounding may change the cluster of single samples between two, and of no larger share than this.
CHANGED_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class FromFeatures(Source):
    """Views that features stand for: new samples come as views, and are looked at in blocks."""

    # Numbers of columns of the views, and their names if they have any.
    widths: dict[str, int]
    columns: dict[str, list[str]]
    # What makes features of views, and what takes these to rows of the embedding after the fit.
    features: Any
    matrix: Array = None
    # By which the columns of views can be recognized.
    ranks: dict[str, ColumnRanks] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def zero_rows(self, samples: Samples, model: Any) -> list[np.ndarray | None]:
        """Return which rows of each view say nothing, as far as these are in memory."""
        if samples.is_lazy or set(samples.names) != set(self.widths):
            return []  # others are refused when they are embedded
        tables, zero = samples.tables, {}
        for name, map_ in zip(self.widths, self.features.maps, strict=True):
            is_held = is_foreign(tables[name]) or in_memory(tables[name])
            if is_held and isinstance(map_, PreparedMap) and map_.preparation.ignores_zeros:
                zero[name] = map_.preparation.zero_rows(tables[name])
        return [zero.get(name) for name in samples.names]

    def stack(self, model: Any, stack: Stack) -> Stack:
        """Return the compressed kernels themselves."""
        return stack

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> "FromFeatures":
        """Return the same with what embeds new samples."""
        features, matrix = stack.features.embedding_map(rows)
        return replace(self, features=features, matrix=matrix)

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = super().attributes(stack)
        if stack.features.observed is not None:  # one kernel per view
            shown["observed_"] = stack.features.observed
        n_features = sum(self.widths.values())
        error = stack.features.trace_errors
        return shown | {"n_features_in_": n_features, "approximation_error_": error}

    def check(self, model: Any, X: Any) -> None:
        """Refuse what cannot be what the model was fitted on."""
        self._blocks(model, X)

    def match(self, samples: Samples) -> Samples:
        """Return views in the order of those that features were learned from, or refuse others."""
        return match_views(samples, self.widths, self.columns)

    def mixed_entries(self, model: Any, X: Any, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel of features among some samples that the model was fitted on."""
        indices = np.arange(len(model.labels_)) if indices is None else indices
        pairs = zip(model.coefficients_, self._training_features(model, X, indices), strict=True)
        terms = [float(c) * (F @ F.T) for c, F in pairs]
        return sum(terms[1:], terms[0])

    def embed(
        self, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples by their features, in blocks."""
        refuse_self_similarity(self_similarity)
        features, matrix = self.features, self.matrix

        def embed_block(block: Block, start: int) -> Array:
            check_finite(block, start)
            return features.project(block, matrix)

        return as_blocks(self.match(self.read_new(model, X))).map(embed_block)

    def _blocks(self, model: Any, X: Any) -> Blocks:
        """Return the views that the model was fitted on, in the order of the fit."""
        blocks, n = as_blocks(self.match(self.read(model, X))), len(model.labels_)
        if blocks.n_samples != n:
            raise ValueError(f"X has {blocks.n_samples} samples, the model was fitted on {n}")
        return blocks

    def _training_features(self, model: Any, X: Any, indices: np.ndarray) -> list[Float]:
        """Return the features of some samples that the model was fitted on, view by view."""
        rising, positions = np.unique(indices, return_inverse=True)
        block = self._blocks(model, X).take(rising)
        check_finite(block, rising)
        if len(rising):
            labels = assign(self.features.project(block, self.matrix), model._centers)
            fitted = np.asarray(model.labels_[rising])
            if np.mean((labels != fitted) & (fitted >= 0)) > CHANGED_SHARE:
                raise ValueError(OTHER_SAMPLES)
        return [to_host(F)[positions] for F in self.features.of(block)]
