"""What a model was fitted on: kernels, views of a bank, or views that features stand for.

A model holds one source, which reads the same samples again and embeds new ones. Kernels, and views
with features, are not stored: they are passed again, and must be the data that the model was
fitted on: numbers of samples, names and shapes are always compared, and values if the model has
something to compare them with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mkclust.data.blocks import Block, Blocks, check_finite
from mkclust.data.check import in_memory
from mkclust.data.missing import single_kernels, zero_samples
from mkclust.data.samples import Samples, as_blocks, read_samples, read_views
from mkclust.data.tables import TABLE
from mkclust.index import make_index
from mkclust.kernels import KernelBank
from mkclust.kernels.bank import match_views
from mkclust.kernels.neighbors import Neighborhoods
from mkclust.linalg import (
    arrays_to_host,
    check_one_place,
    is_foreign,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import row_width
from mkclust.methods.memory_checks import require_memory_beside_kernels
from mkclust.methods.out_of_sample import Extension, Similarities, observed_part
from mkclust.methods.same_input import (
    OTHER_SAMPLES,
    check_self_similarity,
    check_table,
    count_parts,
    match_kernels,
    with_unused,
)
from mkclust.stack import RowSource, Stack, Standardization, as_numbers, as_stack, row_sums
from mkclust.stack.discretize import assign
from mkclust.stack.feature_maps import PreparedMap
from mkclust.stack.observed import SampleMap, maps_of
from mkclust.types import Array

# Samples of a view that are kept beside features, at most and at least, and their entries at most.
MOST_SAMPLES, FEWEST_SAMPLES, MOST_ENTRIES = 256, 32, 1 << 21
# The rising numbers of some samples, (s,), and their rows of a view, (s, n_columns).
SomeRows = tuple[np.ndarray, Array]
# Largest share of changed labels that is tolerated: rounding may change single ones.
CHANGED_SHARE = 0.02


def training_index(model: Any) -> Any:
    """Return the index of the samples of a fit: ids, 0, 1, ... of frames, None of arrays."""
    source = model._source
    ids = source.given.ids if model._covered is None else getattr(model, "sample_ids_", None)
    return make_index(ids, source.given.index_names, len(model.labels_))


@dataclass(frozen=True, kw_only=True)
class Source:
    """What all sources have in common; as it stands, for views."""

    # What was read, without its arrays: names, ids, missing samples, columns and notes.
    given: Samples
    # How similarities are embedded; None if a method embeds no new samples.
    extension: Extension | None = None
    # How missing samples were filled, and how each kernel was centered and scaled.
    maps: Sequence[SampleMap | None] = ()
    standardizations: Sequence[Standardization] = ()
    neighborhoods: ClassVar[Any] = {}

    def of_kernels(self, by_view: np.ndarray) -> np.ndarray:
        """Return columns of kernels, given those of views, (n, n_views) to (n, m)."""
        return by_view

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the precomputed kernels, whose self-similarities can be passed."""
        return ()

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None if all."""
        return None if self.given.missing is None else self.of_kernels(~self.given.missing)

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> Any:
        """Return the same with what embeds new samples."""
        standards = [observed_part(kernel).for_new_samples for kernel in stack.kernels]
        maps = maps_of(stack.kernels)
        return replace(self, extension=extension, maps=maps, standardizations=standards)

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        given, names = self.given, self.given.columns.get(TABLE)
        shown = {
            "observed_": None if given.missing is None else ~given.missing,
            "feature_names_in_": None if names is None else np.array(names, object),
            "sample_ids_": given.ids,
            "view_names_in_": None if given.kind == "kernels" else given.names,
        }
        return {name: value for name, value in shown.items() if value is not None}

    def read(
        self: Any, model: Any, X: Any, observed: Any = None, *, is_new: bool = False
    ) -> Samples:
        """Read views in the order of the fit, data frames in that of its labels, or refuse them."""
        ids, options = None if is_new else training_index(model), model.table_options
        samples = read_views(
            X, ids=ids, options=options, encodings=self.given.encodings, observed=observed
        )
        return self.match(model, samples, self.unused(model) if is_new else ())

    def unused(self: Any, model: Any) -> list[str]:
        """Return the views, or kernels, that the embedding of new samples does not depend on."""
        used, extension = np.asarray(model._used_kernels), self.extension
        if extension is not None:
            used = used | extension.active
        names = model.kernel_names_ if self.given.kind == "kernels" else self.given.names
        of_view = self.of_kernels(np.eye(len(names), dtype=bool))  # (n_views, n_kernels)
        return [name for name, own in zip(names, of_view, strict=True) if not used[own].any()]

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples."""
        return samples.take(numbers)

    def empty(self: Any, samples: Samples) -> np.ndarray:
        """Return which views, or kernels, have nothing of which samples, (n, n_views) of bool."""
        empty = np.zeros((samples.n_samples, count_parts(samples)), bool)
        if samples.missing is not None:
            empty |= samples.missing
        for number, rows in self.zero_rows(samples).items():
            seen = np.flatnonzero(~empty[:, number])
            if len(seen) == len(rows):  # kernels of other samples are refused elsewhere
                empty[seen[rows], number] = True
        return empty

    def embed(self: Any, model: Any, samples: Samples, self_similarity: Any) -> Array:
        """Embed new samples."""
        similarities = self.similarities(model, samples, self_similarity)
        return self.extension.embed(similarities, samples.n_samples)


@dataclass(frozen=True, kw_only=True)
class FromKernels(Source):
    """Precomputed kernels: new samples come as their similarities to the training samples."""

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the precomputed kernels: all."""
        return range(len(self.standardizations))

    def stack(self, model: Any, samples: Samples) -> Stack:
        """Return the kernels to fit on, if there is memory for a fit beside them."""
        stack = _as_stack(model, samples, validate=True)
        require_memory_beside_kernels(model, stack)
        return stack

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        return super().attributes(stack) | {"n_features_in_": stack.n_samples}

    def read(self, model: Any, X: Any, observed: Any = None, *, is_new: bool = False) -> Samples:
        """Read kernels in the order of the fit, columns in that of its samples, or refuse them."""
        ids = training_index(model)
        samples = read_samples(X, expected="precomputed", ids=ids, cross=is_new, observed=observed)
        unused = self.unused(model) if is_new else ()
        return match_kernels(samples, model.kernel_names_, unused, len(model.labels_))

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples, with their similarities to all training samples."""
        return replace(replace(samples, kind="views").take(numbers), kind="kernels")

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return the samples for which a kernel has only zeros, by its number, if any."""
        zero = [zero_samples(part, cross=self.extension is not None) for part in samples.parts]
        return {number: rows for number, rows in enumerate(zero) if rows is not None}

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples to the training samples, kernel by kernel."""
        names, missing = model.kernel_names_, samples.missing
        seen = np.ones((samples.n_samples, len(names)), bool) if missing is None else ~missing
        rows = [np.flatnonzero(has) for has in seen.T]
        named = zip(names, samples.parts, strict=True)
        cross: list[Any] = [as_numbers(K, name) for name, K in named]
        check_one_place(cross, names)
        for p, name in enumerate(names):
            cross[p] = self._training_columns(model, p, cross[p], len(rows[p]))
            row_sums(cross[p], name)  # refuses what is not finite
        own: list[Any] = [None] * len(names)
        if self_similarity is not None:
            own = check_self_similarity(names, self.standardizations, self_similarity, seen.T)
        return [
            Similarities([p], rows[p], [cross[p]], None if own[p] is None else own[p][None])
            for p in range(len(names))
        ]

    def _training_columns(self, model: Any, p: int, K: Array, n_new: int) -> Array:
        """Return the columns of the training samples that a kernel has, of these or of all."""
        every, covered = len(model.labels_), model._covered
        if covered is not None and K.ndim == 2 and K.shape[1] == every:
            K = select(K, covered, axis=1)
        n = every if covered is None else len(covered)
        has = np.ones(n, bool) if self.given.missing is None else ~self.given.missing[:, p]
        if K.ndim != 2 or K.shape[0] != n_new or K.shape[1] not in (n, has.sum()):
            rest = "" if has.all() else f", or to the {has.sum()} that it has"
            raise ValueError(
                f"{model.kernel_names_[p]} has the shape {tuple(K.shape)}: expected similarities "
                f"of {n_new} new samples (rows) to the {n} training samples (columns){rest}"
            )
        return K if K.shape[1] == has.sum() else select(K, np.flatnonzero(has), axis=1)


@dataclass(frozen=True, kw_only=True)
class FromViews(Source):
    """Views, with a bank that makes kernels of them: new samples come as views."""

    bank: KernelBank

    def of_kernels(self, by_view: np.ndarray) -> np.ndarray:
        """Return columns of kernels, given those of views, (n, n_views) to (n, m)."""
        return by_view[:, list(self.bank.kernel_views_)]

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the precomputed kernels among those of tables."""
        rules = list(self.bank.rules_.values())
        views = enumerate(self.bank.kernel_views_)
        return [p for p, view in views if rules[view] == "precomputed"]

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods, or links, that every kernel consists of; None if of more."""
        return dict(zip(self.bank.kernel_names_, self.bank.lone_neighborhoods(), strict=True))

    def match(self, model: Any, samples: Samples, unused: Sequence[str]) -> Samples:
        """Return views in the order of the fit, or refuse others."""
        widths = {name: view.shape[1] for name, view in self.bank.views_.items()}
        is_held = not samples.is_lazy and not is_foreign(samples.parts[0])
        if samples.kind == "table" and list(widths) == [TABLE] and is_held:
            return check_table(model, samples, is_new=True)
        used = [name for name in samples.names if name not in unused]
        if used and not samples.is_lazy:  # what unused views hold must not matter
            samples = samples.only(used)
        return match_views(with_unused(samples, widths, unused), widths, self.bank.columns_)

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of a view count as empty, by its number, as far as that is known."""
        zero = {} if samples.is_lazy else self.bank.empty_rows(samples.views)
        return {samples.names.index(name): rows for name, rows in zero.items()}

    def parts(self, by_view: bool) -> list[tuple[KernelBank, list[int]]]:
        """Return the bank, or that of each view, and the numbers of its kernels."""
        views = np.asarray(self.bank.kernel_views_)
        if not by_view:
            return [(self.bank, list(range(len(views))))]
        return [
            (self.bank.of_view(name), np.flatnonzero(views == number).tolist())
            for number, name in enumerate(self.bank.views_)
        ]

    def stack(self, model: Any, kernels: Sequence[Any]) -> Stack:
        """Return kernels as one stack, checked if one may not be positive semidefinite."""
        parts: list[Any] = []
        for given in kernels:
            if isinstance(given, RowSource):
                parts.append(given)
            else:
                parts += given if isinstance(given, list) else single_kernels(given)
        names, views = self.bank.kernel_names_, self.bank.kernel_views_
        missing = None if self.observed is None else ~self.observed
        samples = Samples("kernels", names, tuple(parts), missing=missing)
        return _as_stack(model, samples, not self.bank.is_definite, views=views)

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = super().attributes(stack)
        return shown | {"n_features_in_": self.bank.n_features_in_, "bank_": self.bank}

    def embed(self, model: Any, samples: Samples, self_similarity: Any) -> Array:
        """Embed new samples, those of dask arrays in blocks."""
        if not samples.is_lazy:
            return super().embed(model, samples, self_similarity)
        kind = samples.kind

        def embed_block(block: Block, start: int) -> Array:
            missing = None if block.observed is None else ~block.observed
            part = Samples(kind, tuple(block), tuple(block.values()), missing=missing)
            return self.embed(model, part, None)

        return as_blocks(samples).map(embed_block)

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples, view by view if some views lack samples."""
        names, given = self.bank.kernel_names_, {}
        if self_similarity is not None:
            seen = np.zeros((len(names), samples.n_samples), bool)
            for p in self.given_kernels:
                seen[p] = True
            values = check_self_similarity(names, self.standardizations, self_similarity, seen)
            given = {p: values[p] for p in self.given_kernels}

        def similarities(bank: KernelBank, places: Any, part: Samples, rows: Any) -> Similarities:
            own = bank.self_similarity(part)
            for place, p in enumerate(places):
                if p in given:
                    own[place, :] = to_device(given[p][rows], own)
            return Similarities(places, rows, bank.transform(part), own)

        if self.given.missing is None and samples.missing is None:
            everyone = np.arange(samples.n_samples)
            return [similarities(self.bank, range(len(names)), samples, everyone)]
        parts = zip(self.parts(True), samples.observed.items(), strict=True)
        return [
            similarities(bank, places, replace(samples.only([name]), missing=None), rows)
            for (bank, places), (name, rows) in parts
            if len(rows)
        ]


@dataclass(frozen=True, kw_only=True)
class FromFeatures(Source):
    """Views that features stand for: new samples come as views, and are read in blocks."""

    widths: dict[str, int]  # numbers of columns of the views
    # The feature maps of the views, and the matrix from features to rows of the embedding.
    features: Any
    matrix: Array = None
    # By which the columns of views can be recognized.
    rows: dict[str, SomeRows] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to store, with arrays on the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def match(self, model: Any, samples: Samples, unused: Sequence[str]) -> Samples:
        """Return views in the order of those that features were learned from, or refuse others."""
        samples = with_unused(samples, self.widths, unused)
        return match_views(samples, self.widths, self.given.columns)

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of a view count as empty, by its number, if it is in memory."""
        zero, maps = {}, self.features.maps
        for number, (map_, table) in enumerate(zip(maps, samples.parts, strict=True)):
            is_held = is_foreign(table) or in_memory(table)
            if is_held and isinstance(map_, PreparedMap) and map_.preparation.ignores_zeros:
                zero[number] = map_.preparation.zero_rows(table)
        return zero

    def stack(self, model: Any, stack: Stack) -> Stack:
        """Return the compressed kernels themselves."""
        return stack

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> Any:
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
        features, matrix = self.features, self.matrix

        def embed_block(block: Block, start: int) -> Array:
            check_finite(block, start)
            return features.project(block, matrix)

        return as_blocks(samples).map(embed_block)


def some_rows(blocks: Blocks) -> dict[str, SomeRows]:
    """Return some samples of every view that has not too many columns, to recognize these by."""
    numbers = np.sort(np.random.default_rng(0).permutation(blocks.n_samples)[:MOST_SAMPLES])
    block, found = blocks.take(numbers), {}
    for name, rows in block.items():
        index = block.index(name)
        samples = numbers if index is None else numbers[index]
        height = min(len(samples), MOST_ENTRIES // row_width(rows))
        if height >= min(len(samples), FEWEST_SAMPLES):
            # A copy: what the model keeps must not change with the arrays of its user.
            found[name] = samples[:height], arrays_to_host(select(rows, slice(height))).copy()
    return found


def _as_stack(model: Any, kernels: Any, validate: bool, **options: Any) -> Stack:
    """Return kernels centered, scaled and repaired as a model asks for."""
    options |= {"center": model.center, "normalize": model.normalize, "psd": model.psd}
    return as_stack(kernels, validate=validate, fill=model.table_options.fill_rule, **options)
