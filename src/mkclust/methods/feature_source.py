"""What a model was fitted on if features stand for the kernels of its views."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.data.blocks import Block, Blocks, check_finite
from mkclust.data.check import in_memory
from mkclust.data.samples import Samples, as_blocks
from mkclust.linalg import arrays_to_host, is_foreign, select, to_host
from mkclust.linalg.sparse_rows import row_width
from mkclust.methods.out_of_sample import Extension
from mkclust.methods.same_input import (
    OTHER_SAMPLES,
    match_views,
    refuse_self_similarity,
)
from mkclust.methods.source import Source
from mkclust.stack import Stack
from mkclust.stack.discretize import assign
from mkclust.stack.features import PreparedMap
from mkclust.types import Array

# Samples of a view that are kept, at most and at least, and their entries at most.
MOST_SAMPLES, FEWEST_SAMPLES, MOST_ENTRIES = 256, 32, 1 << 21

# The rising numbers of some samples, (s,), and their rows of a view, (s, n_columns).
SomeRows = tuple[np.ndarray, Array]
# Rounding may change the cluster of single samples between two, and of no larger share than this.
CHANGED_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class FromFeatures(Source):
    """Views that features stand for: new samples come as views, and are read in blocks."""

    widths: dict[str, int]  # numbers of columns of the views
    # What makes features of views, and what takes these to rows of the embedding after the fit.
    features: Any
    matrix: Array = None
    # By which the columns of views can be recognized.
    rows: dict[str, SomeRows] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def match(self, model: Any, samples: Samples) -> Samples:
        """Return views in the order of those that features were learned from, or refuse others."""
        return match_views(samples, self.widths, self.given.columns)

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of a view count as empty, by its number, if it is in memory."""
        zero = {}
        for number, (map_, table) in enumerate(
            zip(self.features.maps, samples.tables.values(), strict=True)
        ):
            is_held = is_foreign(table) or in_memory(table)
            if is_held and isinstance(map_, PreparedMap) and map_.preparation.ignores_zeros:
                zero[number] = map_.preparation.zero_rows(table)
        return zero

    def stack(self, model: Any, stack: Stack) -> Stack:
        """Return the compressed kernels themselves."""
        return stack

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> "FromFeatures":
        """Return the same with what embeds new samples."""
        features = stack.features
        matrix = features.coordinate_map @ to_host(rows)
        return replace(self, features=features.learned, matrix=matrix)

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = super().attributes(stack) | {
            "n_features_in_": sum(self.widths.values()),
            "approximation_error_": stack.features.trace_errors,
        }
        if stack.features.observed is not None:  # one kernel per view
            shown["observed_"] = stack.features.observed
        return shown

    def mixed_entries(self, model: Any, samples: Samples, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel of features among some samples that the model was fitted on."""
        indices = np.arange(len(model.labels_)) if indices is None else indices
        rising, positions = np.unique(indices, return_inverse=True)
        block = as_blocks(samples).take(rising)
        check_finite(block, rising)
        if len(rising):
            labels = assign(self.features.project(block, self.matrix), model._centers)
            fitted = np.asarray(model.labels_[rising])
            if np.mean((labels != fitted) & (fitted >= 0)) > CHANGED_SHARE:
                raise ValueError(OTHER_SAMPLES)
        features = [to_host(F)[positions] for F in self.features.of(block)]
        return sum(float(c) * (F @ F.T) for c, F in zip(model.coefficients_, features, strict=True))

    def embed(self, model: Any, samples: Samples, self_similarity: Any) -> Array:
        """Embed new samples by their features, in blocks."""
        refuse_self_similarity(self_similarity)
        features, matrix = self.features, self.matrix

        def embed_block(block: Block, start: int) -> Array:
            check_finite(block, start)
            return features.project(block, matrix)

        return as_blocks(samples).map(embed_block)


def some_rows(blocks: Blocks) -> dict[str, SomeRows]:
    """Return some samples of every view, by which its columns can be recognized.

    Views with too many columns are left out.
    """
    numbers = np.sort(np.random.default_rng(0).permutation(blocks.n_samples)[:MOST_SAMPLES])
    block, found = blocks.take(numbers), {}
    for name, rows in block.items():
        index = block.index(name)
        samples = numbers if index is None else numbers[index]
        height = MOST_ENTRIES // row_width(rows)
        if height >= min(len(samples), FEWEST_SAMPLES):
            # A copy: what the model keeps must not change with the arrays of its user.
            found[name] = samples[:height], arrays_to_host(select(rows, slice(height))).copy()
    return found
