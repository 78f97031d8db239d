"""Views by their features, which stand for kernels: approximations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.data.blocks import Block, Blocks, check_finite
from mkclust.data.check import in_memory
from mkclust.data.join import looks_like_kernel
from mkclust.data.samples import Samples, as_blocks
from mkclust.fit.embedding import numbers_of
from mkclust.fit.training_input import OTHER_SAMPLES, TrainingInput, without_arrays
from mkclust.kernels import KernelBank, Linear, default_bank
from mkclust.kernels.bank import expected_input
from mkclust.kernels.kinds import learn_preparations, with_components
from mkclust.linalg import arrays_to_host, is_foreign, select, to_host
from mkclust.linalg.sparse_rows import row_width
from mkclust.stack import Stack
from mkclust.stack.feature_maps import PreparedMap, n_components
from mkclust.stack.features import compress, require_products
from mkclust.types import Array

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer

# The rising numbers of some samples, (s,), and their rows of a view, (s, n_columns).
SomeRows = tuple[np.ndarray, Array]


@dataclass(frozen=True, kw_only=True)
class FromFeatures(TrainingInput):
    """Views by their features: new samples come as views, and are read in blocks."""

    # The feature maps of the views, and the matrix from features to rows of the
    # embedding.
    features: Any
    matrix: Array = None
    # Some rows of each view, to recognize its columns.
    rows: dict[str, SomeRows] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def rows_of_fit(self) -> dict[str, Array]:
        """Return some rows of each view."""
        return {name: rows for name, (_, rows) in self.rows.items()}

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of views in memory count as empty, by the view's number."""
        zero = {}
        maps = self.features.maps
        for number, (map_, table) in enumerate(zip(maps, samples.parts, strict=True)):
            if not isinstance(map_, PreparedMap) or not map_.preparation.ignores_zeros:
                continue
            if is_foreign(table) or in_memory(table):
                zero[number] = map_.preparation.zero_rows(table)
        return zero

    def mixed_entries(
        self,
        model: MultipleKernelClusterer,
        samples: Samples,
        indices: np.ndarray | None,
    ) -> Array:
        """Return the mixed kernel of features among some samples of the fit."""
        everyone = numbers_of(indices, len(model.labels_))
        rising, positions = np.unique(everyone, return_inverse=True)
        block = as_blocks(samples).take(rising)
        check_finite(block, rising)
        if len(rising):
            labels = model._assign(self.features.project(block, self.matrix))
            fitted = np.asarray(model.labels_[rising])
            changed_share = np.mean((labels != fitted) & (fitted >= 0))
            if changed_share > 0.02:  # rounding may change single ones
                raise ValueError(OTHER_SAMPLES)
        features = [to_host(F)[positions] for F in self.features.of(block)]
        return sum(
            float(c) * (F @ F.T)
            for c, F in zip(model.coefficients_, features, strict=True)
        )

    def embed(
        self, model: MultipleKernelClusterer, samples: Samples, self_similarity: Any
    ) -> tuple[Array, np.ndarray]:
        """Embed new samples by features, in blocks; features know no neighbors."""
        # What workers of dask are sent: not the rows that this object keeps.
        features = self.features
        matrix = self.matrix

        def embed_block(block: Block, start: int) -> Array:
            check_finite(block, start)
            return features.project(block, matrix)

        rows = as_blocks(samples).map(embed_block)
        return rows, np.zeros((samples.n_samples, len(model.kernel_names_)), bool)


def some_rows(
    blocks: Blocks,
    most_samples: int = 256,
    fewest_samples: int = 32,
    most_entries: int = 1 << 21,
) -> dict[str, SomeRows]:
    """Return some samples of every view of not too many columns, to recognize it."""
    order = np.random.default_rng(0).permutation(blocks.n_samples)
    numbers = np.sort(order[:most_samples])
    block = blocks.take(numbers)
    found = {}
    for name, rows in block.items():
        samples = numbers[numbers_of(block.index(name), len(numbers))]
        height = min(len(samples), most_entries // row_width(rows))
        if height >= min(len(samples), fewest_samples):
            kept = arrays_to_host(select(rows, slice(height)))
            # A copy: what the model keeps must not change with the arrays of its user.
            found[name] = (samples[:height], kept.copy())
    return found


def require_memory_for_features(model: MultipleKernelClusterer, blocks: Blocks) -> None:
    """Refuse features whose products do not fit into memory, before any pass."""
    m = len(blocks.names)
    # For a pipeline, the columns of its last step; for other maps, known once they are
    # fitted.
    columns = m * next(reversed(n_components(model.approximation)), 0)
    if isinstance(model.approximation, Linear):
        columns = sum(blocks.n_features)
    require_products(
        columns, m, "pass approximation=Nystroem() with a smaller n_components"
    )


def compress_views(
    model: MultipleKernelClusterer, samples: Samples
) -> tuple[FromFeatures, Stack]:
    """Learn features of views, and return them as input and as kernels."""
    kernels = model.kernels
    expected_input(kernels)
    if isinstance(kernels, KernelBank) or kernels in ("precomputed", "on-the-fly"):
        raise ValueError(
            f"kernels={kernels!r} with an approximation: features stand for kernels of "
            "views; pass views and kernels='auto', 'gaussian' or kinds by name, or "
            "approximation=None"
        )
    if all(map(looks_like_kernel, samples.parts)):
        raise ValueError(
            "X holds kernels, and an approximation makes features of views, samples x "
            "features: pass the views, or approximation=None for kernels"
        )
    blocks = as_blocks(samples)
    rules = default_bank(True, kernels).rules
    require_memory_for_features(model, blocks)
    rules = with_components(rules, samples.by_name)
    stack = compress(
        blocks,
        model.approximation,
        **model._options("n_clusters", "center", "normalize", "random_state"),
        learn_preparations=partial(learn_preparations, rules, model.scale),
        fill=model.table_options.fill_rule,
    )
    # Parts of one table count as one view: they prove nothing about each other.
    stack = replace(
        stack,
        views=samples.source_numbers,
        groups=samples.groups,
        covariates=samples.covariates,
    )
    features = stack.features.learned
    source = FromFeatures(
        given=without_arrays(samples, *features.explain(blocks.names)),
        widths=dict(zip(blocks.names, blocks.n_features, strict=True)),
        # Dask would compute all chunks with these samples again.
        rows={} if samples.is_lazy else some_rows(blocks),
        features=features,
    )
    return source, stack
