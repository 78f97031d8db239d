"""What a model was fitted on: kernels, or views of a bank; see `feature_source` for features.

A model holds one source: it reads the same samples again, and embeds new ones. Nothing
sample-sized of kernels and of views with features is stored, so that they are passed once more.
What is passed must be what the model was fitted on: numbers of samples, names and shapes always
tell; what a model remembers of its samples tells more, and is compared if it can be.
"""

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mkclust.index import make_index
from mkclust.kernels import KernelBank
from mkclust.kernels.neighbors import Neighborhoods
from mkclust.linalg import check_one_place, select
from mkclust.methods.memory_checks import require_memory_beside_kernels
from mkclust.methods.neighborhoods import KernelNeighborhoods, check_same_kernels
from mkclust.methods.out_of_sample import Extension, Similarities
from mkclust.methods.same_input import (
    OTHER_SAMPLES,
    check_new_table,
    check_same_kernel,
    check_same_missing,
    check_self_similarity,
    match_kernels,
    match_views,
    refuse_self_similarity,
    with_columns,
)
from mkclust.samples.blocks import Block
from mkclust.samples.missing import single_kernels, zero_samples
from mkclust.samples.samples import (
    Samples,
    as_blocks,
    kernel_shapes,
    read_samples,
    read_views,
)
from mkclust.samples.tables import TableEncoder
from mkclust.stack import (
    Computed,
    RowSource,
    Stack,
    Standardized,
    as_numbers,
    as_stack,
    row_sums,
)
from mkclust.stack.build import stack_observed
from mkclust.stack.observed import SampleMap, maps_of, with_maps
from mkclust.types import Array


def training_index(model: Any) -> Any:
    """Return the index of the samples of a fit: ids, 0, 1, ... of frames, None of arrays."""
    source = model._source
    ids = source.ids if model._covered is None else getattr(model, "sample_ids_", None)
    return make_index(ids, source.index_names, len(model.labels_))


@dataclass(frozen=True, kw_only=True)
class Source:
    """What all sources have in common; as it stands, for views."""

    # Ids of the training samples, and the names of the levels of their index (None for arrays).
    ids: np.ndarray | None
    index_names: tuple[str | None, ...] | None = None
    # Which of them each view, or kernel, lacks, (n_samples, n_views) of bool; None if none.
    missing: np.ndarray | None = None
    # What was learned of the columns of tables, and what was understood of the input.
    encodings: dict[str, TableEncoder] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    # The views, and the number of that of each kernel (None for kernels of one view each), and the
    # columns of one table if they have names.
    view_names: tuple[str, ...] | None = None
    kernel_views: tuple[int, ...] | None = None
    feature_names: np.ndarray | None = None
    # How similarities are embedded; None if a method embeds no new samples.
    extension: Extension | None = None
    # What became of samples that are missing, kernel by kernel.
    maps: Sequence[SampleMap | None] = ()
    neighborhoods: ClassVar[Any] = {}

    def of_kernels(self, by_view: np.ndarray | None) -> np.ndarray | None:
        """Return columns of kernels, given those of views, (n, n_views) to (n, m)."""
        if by_view is None or self.kernel_views is None:
            return by_view
        return by_view[:, list(self.kernel_views)]

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None if all."""
        return None if self.missing is None else self.of_kernels(~self.missing)

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> Any:
        """Return the same with what embeds new samples."""
        return replace(self, extension=extension, maps=maps_of(stack.kernels))

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown: dict[str, Any] = {}
        if self.missing is not None:
            shown["observed_"] = ~self.missing
        if self.feature_names is not None:
            shown["feature_names_in_"] = self.feature_names
        return shown

    def read(self, model: Any, X: Any) -> Samples:
        """Read what the model was fitted on, data frames in the order of its labels."""
        options, ids = model.table_options, training_index(model)
        return read_views(X, ids=ids, options=options, encodings=self.encodings)

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples, their columns as those of the training samples were."""
        options = model.table_options
        return read_views(X, options=options, encodings=self.encodings, observed=observed)

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples."""
        return samples.take(numbers)

    def empty(self: Any, samples: Samples, model: Any = None) -> np.ndarray | None:
        """Return which views, or kernels, have nothing of which samples, by n; None if none.

        Of new samples if a model is given, else of the samples of the fit.
        """
        empty = self.zero_rows(samples, model)
        found = [rows for rows in empty if rows is not None and rows.any()]
        if not found:
            return samples.missing
        shape = len(found[0]), len(empty)
        every = np.zeros(shape, bool) if samples.missing is None else samples.missing.copy()
        for number, rows in enumerate(empty):
            if rows is not None:
                places = np.flatnonzero(~every[:, number])
                if len(rows) != len(places):  # kernels of other samples are refused elsewhere
                    return samples.missing
                every[places[rows], number] = True
        return every

    def check(self: Any, model: Any, X: Any) -> None:
        """Refuse what cannot be what the model was fitted on."""
        self.kernels(model, X)

    def mixed_entries(self: Any, model: Any, X: Any, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel among some samples that the model was fitted on."""
        return model._mixed_among(self.training_stack(model, X), indices)

    def embed(
        self: Any, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples, by another extension than that of the fit if there is one."""
        samples = self.read_new(model, X)
        extension = self.extension if extension is None else extension
        return extension.embed(
            self.similarities(model, samples, self_similarity), samples.n_samples
        )

    def stack(self, model: Any, kernels: Any) -> Stack:
        """Return the kernels to fit on."""
        raise NotImplementedError(f"{type(self).__name__} must define stack")


@dataclass(frozen=True, kw_only=True)
class FromKernels(Source):
    """Precomputed kernels: new samples come as their similarities to the training samples.

    The neighborhoods that replace the kernels are `found`; none if they are used as they are.
    """

    found: Sequence[KernelNeighborhoods] = ()

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods]:
        """The neighborhoods of every kernel by its name, if they are used."""
        return {each.name: each.found for each in self.found}

    def stack(self, model: Any, samples: Samples) -> Stack:
        """Return the kernels to fit on, if there is memory for a fit beside them."""
        stack = _as_stack(model, samples, validate=not self.found)
        require_memory_beside_kernels(model, stack)
        return stack

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = super().attributes(stack) | {"n_features_in_": stack.n_samples}
        if self.found:
            shown["n_neighbors_"] = max(each.size for each in self.found)
        return shown

    def read(self, model: Any, X: Any) -> Samples:
        """Read what the model was fitted on, data frames in the order of its labels."""
        return read_samples(X, expected="precomputed", ids=training_index(model))

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples, the columns of data frames in the order of the training samples."""
        covered, ids = model._covered, training_index(model)
        samples = read_samples(X, expected="precomputed", ids=ids, cross=True, observed=observed)
        return samples if covered is None else with_columns(samples, covered, len(model.labels_))

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples, with their similarities to all training samples."""
        if samples.whole is not None:
            return replace(samples, whole=select(samples.whole, numbers, axis=1))
        return replace(replace(samples, kind="views").take(numbers), kind="kernels")

    def zero_rows(self, samples: Samples, model: Any) -> list[np.ndarray | None]:
        """Return of which samples each kernel has nothing but zeros, as far as that is known."""
        if isinstance(samples.whole, RowSource):
            return []
        return [zero_samples(part, model is not None) for part in _matrices(samples)]

    def kernels(self, model: Any, X: Any) -> Samples:
        """Return the kernels that the model was fitted on, neither centered nor scaled."""
        names, n = model.kernel_names_, len(model.labels_)
        samples = match_kernels(self.read(model, X), names)
        check_same_missing(samples, self.missing)
        given = samples.parts if samples.whole is None else samples.whole
        shapes = kernel_shapes(given, len(names))
        counts = [n] * len(names) if self.missing is None else (~self.missing).sum(axis=0)
        for name, shape, count in zip(names, shapes, counts, strict=True):
            if shape != (count, count):
                raise ValueError(
                    f"{name} has the shape {shape}, the model was fitted on {count} samples: pass "
                    f"the same {count} x {count} kernels"
                )
        if not self.found:
            return samples
        check_same_kernels(self.found, samples)
        parts = tuple(each.found.kernel() for each in self.found)
        return replace(samples, names=tuple(names), parts=parts, whole=None)

    def training_stack(self, model: Any, X: Any, *, written_out: bool = False) -> Stack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        # What was checked in fit need not be checked again, but what was repaired must be.
        validate = model.psd != "error" and not self.found
        names = model.kernel_names_
        stack = _as_stack(model, self.kernels(model, X), validate=validate, names=names)
        if self.extension is not None:
            for kernel, name, fitted in zip(
                stack.kernels, names, self.extension.standardizations, strict=True
            ):
                check_same_kernel(kernel, name, fitted)
        return replace(stack, kernels=with_maps(stack.kernels, self.maps))

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples to the training samples, kernel by kernel."""
        names, m = model.kernel_names_, len(model.kernel_names_)
        samples = match_kernels(samples, names)
        missing = samples.missing
        seen = np.ones((samples.n_samples, m), bool) if missing is None else ~missing
        rows = [np.flatnonzero(has) for has in seen.T]
        named = zip(names, _matrices(samples), strict=True)
        cross: list[Any] = [as_numbers(K, name) for name, K in named]
        check_one_place(cross, names)
        for p, name in enumerate(names):
            cross[p] = self._training_columns(model, p, cross[p], len(rows[p]))
            row_sums(cross[p], name)  # refuses what is not finite
        own: list[Any] = [None] * m
        if self_similarity is not None:
            assert self.extension is not None
            own = check_self_similarity(
                model, self.extension.standardizations, self_similarity, cross, seen.T
            )
        if self.found:
            every = zip(self.found, cross, own, strict=True)
            cross = [found.cross(K, values) for found, K, values in every]
            own = [np.ones(len(some)) for some in rows]
        return [
            Similarities([p], rows[p], [cross[p]], None if own[p] is None else own[p][None])
            for p in range(m)
        ]

    def _training_columns(self, model: Any, p: int, K: Array, n_new: int) -> Array:
        """Return the columns of the training samples that a kernel has, of these or of all."""
        n = model.n_features_in_ if model._covered is None else len(model._covered)
        has = np.ones(n, bool) if self.missing is None else ~self.missing[:, p]
        if K.ndim != 2 or K.shape[0] != n_new or K.shape[1] not in (n, has.sum()):
            rest = "" if has.all() else f", or to the {has.sum()} that it has"
            raise ValueError(
                f"{model.kernel_names_[p]} has the shape {tuple(K.shape)}: expected similarities "
                f"of {n_new} new samples (rows) to the {n} training samples (columns){rest}"
            )
        return K if K.shape[1] == has.sum() else select(K, np.flatnonzero(has), axis=1)


@dataclass(frozen=True, kw_only=True)
class FromViews(Source):
    """Views of which a bank, fitted on them, makes kernels: new samples come as views."""

    bank: KernelBank

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods, or links, that every kernel consists of; None if of more."""
        return dict(zip(self.bank.kernel_names_, self.bank.lone_neighborhoods(), strict=True))

    def zero_rows(self, samples: Samples, model: Any) -> list[np.ndarray | None]:
        """Return which rows of each view say nothing, as far as that is known."""
        views = self.bank.views_
        if model is not None:
            if samples.is_lazy or not self.bank.views_ignoring_zeros:
                return []
            with warnings.catch_warnings():  # which come when they are embedded
                warnings.simplefilter("ignore", UserWarning)
                views = check_new_table(model, samples).views
            if {name: view.shape[1] for name, view in views.items()} != self._widths:
                return []  # others are refused when they are embedded
        zero = self.bank.empty_rows(views)
        return [zero.get(name) for name in samples.names]

    @property
    def _widths(self) -> dict[str, int]:
        """The number of columns of each view."""
        return {name: view.shape[1] for name, view in self.bank.views_.items()}

    def parts(self, by_view: bool | None = None) -> list[tuple[KernelBank, list[int]]]:
        """Return the bank, or that of each view, and the numbers of its kernels.

        By view if that is asked for, or if samples of the fit are missing from views.
        """
        views = np.asarray(self.bank.kernel_views_)
        if not (self.missing is not None if by_view is None else by_view):
            return [(self.bank, list(range(len(views))))]
        return [
            (self.bank.of_view(name), np.flatnonzero(views == number).tolist())
            for number, name in enumerate(self.bank.views_)
        ]

    def _split(
        self, samples: Samples
    ) -> Iterator[tuple[KernelBank, list[int], Samples, np.ndarray]]:
        """Yield the parts with the samples that each has, and the numbers of these."""
        if self.missing is None and samples.missing is None:
            yield *self.parts()[0], samples, np.arange(samples.n_samples)
            return
        samples = match_views(samples, self._widths, self.bank.columns_)
        parts = zip(self.parts(by_view=True), samples.observed.items(), strict=True)
        for (bank, places), (name, rows) in parts:
            view = replace(samples.only([name]), kind="views", missing=None)
            yield bank, places, view, rows

    def stack(self, model: Any, kernels: Sequence[Any], *, repair: bool = True) -> Stack:
        """Return kernels, one after another part, as one stack: as given, or standardized.

        They are checked, and repaired, if one may not be positive semidefinite.
        """
        stacks, parts, validate = [], self.parts(), repair and not self.bank.is_definite
        for number, ((bank, places), given) in enumerate(zip(parts, kernels, strict=True)):
            options: dict[str, Any] = {
                "names": bank.kernel_names_,
                "views": [self.bank.kernel_views_[place] for place in places],
            }
            if self.missing is not None:
                has = np.flatnonzero(~self.missing[:, number])
                options |= {"kernel_numbers": places, "sample_numbers": has}
            is_stack = isinstance(given, Stack)
            stacks.append(given if is_stack else _as_stack(model, given, validate, **options))
        if self.missing is None:
            return stacks[0]
        rule = model.table_options.fill_rule
        stack = stack_observed(stacks, ~self.missing, [places for _, places in parts], rule)
        if not self.maps:
            return stack
        return replace(stack, kernels=with_maps(stack.kernels, self.maps))

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = super().attributes(stack)
        if self.bank.neighbors is not None:
            shown["n_neighbors_"] = self.bank.n_neighbors_
        return shown | {"n_features_in_": self.bank.n_features_in_, "bank_": self.bank}

    def kernels(self, model: Any, X: Any) -> list[Any]:
        """Return the kernels that the model was fitted on, computed as their rows are asked for.

        If samples are missing from views, those of each view by themselves.
        """
        n, samples = len(model.labels_), check_new_table(model, self.read(model, X))
        if samples.n_samples != n:
            raise ValueError(f"X has {samples.n_samples} samples, the model was fitted on {n}")
        if samples.names_given:
            samples = match_views(samples, self._widths, self.bank.columns_)
        check_same_missing(samples, self.missing)
        kernels = [
            copy(bank).set_params(on_the_fly=True).transform(part)
            for bank, _, part, _ in self._split(samples)
        ]
        if not all(each.of_training_samples for each in kernels):
            raise ValueError(OTHER_SAMPLES)
        return kernels

    def training_stack(self, model: Any, X: Any, *, written_out: bool = False) -> Stack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        # What was repaired must be repaired again, and is held for that.
        repair = model.psd != "error" and not self.bank.is_definite
        kernels = self.kernels(model, X)
        for number, (bank, places) in enumerate(self.parts()):
            source = kernels[number]
            if bank.only_neighborhoods:
                continue
            if repair or written_out:
                kernels[number] = source.entries(type(model).__name__)
            elif self.extension is not None:  # spares the pass that learns the means
                diagonals, known = source.diagonal(), self.extension.standardizations
                standardized = tuple(
                    Standardized(
                        Computed(source, index, diagonals[index, :]),
                        known[place].to_same_device(diagonals),
                    )
                    for index, place in enumerate(places)
                )
                views = tuple(self.bank.kernel_views_[place] for place in places)
                kernels[number] = Stack(standardized, bank.kernel_names_, views)
        return self.stack(model, kernels, repair=repair)

    def embed(
        self, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples, those of dask arrays in blocks."""
        refuse_self_similarity(self_similarity)
        samples = self.read_new(model, X)
        if not samples.is_lazy:
            return super().embed(model, check_new_table(model, samples), None, extension)
        kind = samples.kind

        def embed_block(block: Block, start: int) -> Array:
            missing = None if block.observed is None else ~block.observed
            parts = Samples(kind, tuple(block), tuple(block.values()), missing=missing)
            return self.embed(model, parts, None, extension)

        return as_blocks(samples).map(embed_block)

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples, view by view if some views lack samples."""
        return [
            Similarities(places, rows, bank.transform(part), bank.self_similarity(part))
            for bank, places, part, rows in self._split(samples)
            if len(rows)
        ]


def _as_stack(model: Any, kernels: Any, validate: bool, **options: Any) -> Stack:
    """Return kernels centered, scaled and repaired as a model asks for."""
    options |= {"center": model.center, "normalize": model.normalize, "psd": model.psd}
    return as_stack(kernels, validate=validate, fill=model.table_options.fill_rule, **options)


def _matrices(samples: Samples) -> Sequence[Any]:
    """Return kernels one by one."""
    return samples.parts if samples.whole is None else single_kernels(samples.whole)
