"""What a model was fitted on: kernels, views of a bank, or views that features stand for.

A model holds one of the three: it reads the same samples again, and embeds new ones. Nothing
sample-sized of kernels and of views with features is stored, so that they are passed once more.
What is passed must be what the model was fitted on: numbers of samples, names and shapes always
tell; what a model remembers of its samples tells more, and is compared if it can be.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import validate_data

from mkclust.index import make_index
from mkclust.kernels import KernelBank
from mkclust.kernels.neighbors import Neighborhoods
from mkclust.linalg import arrays_to_host, check_one_place, is_foreign, select, to_host
from mkclust.methods.column_ranks import ColumnRanks
from mkclust.methods.memory_checks import require_memory_beside_kernels
from mkclust.methods.neighborhoods import KernelNeighborhoods, check_same_kernels
from mkclust.methods.out_of_sample import Extension, Similarities, observed_part
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.checks import check_entries, check_view, is_in_memory
from mkclust.samples.encoding import Encoding
from mkclust.samples.forms import TABLE, check_masks, depth
from mkclust.samples.frames import is_frame
from mkclust.samples.missing_kernels import zero_samples
from mkclust.samples.samples import (
    Samples,
    as_blocks,
    kernel_shapes,
    read_samples,
    read_views,
    single_kernels,
)
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
from mkclust.stack.discretize import assign
from mkclust.stack.feature_maps import PreparedMap
from mkclust.stack.observed import SampleMap, maps_of, with_maps
from mkclust.types import Array, Float

# What differs by less than this share of the largest self-similarity is rounding.
ROUNDING = 1e-6
# Rounding may change the cluster of single samples between two, and of no larger share than this.
CHANGED_SHARE = 0.02
OTHER_SAMPLES = "X holds other samples than the model was fitted on: pass the same"


def training_index(model: Any) -> Any:
    """Return the index of the samples of a fit: ids, 0, 1, ... of frames, None of arrays."""
    source = model._source
    ids = source.ids if model._covered is None else getattr(model, "sample_ids_", None)
    return make_index(ids, source.index_names, len(model.labels_))


@dataclass(frozen=True, kw_only=True)
class Source:
    """What all three have in common; as it stands, for views.

    Attributes
    ----------
    ids : ndarray of shape (n_samples,) or None
        Ids of the training samples.
    index_names : tuple of str or None
        Names of the levels of their index; None for arrays, which have no index.
    missing : ndarray of bool of shape (n_samples, n_views) or None
        Which of them each view, or kernel, lacks; None if none is missing.
    encodings : dict of str to Encoding
        What was learned of the columns of tables.
    notes : tuple of str
        What was understood of the input.
    extension : Extension or None
        How similarities are embedded; None if a method embeds no new samples.
    maps : sequence of (SampleMap or None)
        What became of samples that are missing, kernel by kernel.
    """

    ids: np.ndarray | None
    index_names: tuple[str | None, ...] | None = None
    missing: np.ndarray | None = None
    encodings: dict[str, Encoding] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    extension: Extension | None = None
    maps: Sequence[SampleMap | None] = ()

    def explain(self) -> list[str]:
        """Say what was understood of the input."""
        return list(self.notes)

    def kernel_views(self, n_kernels: int) -> Sequence[int]:
        """Return the number of the view that each kernel is of."""
        return range(n_kernels)

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None if all."""
        if self.missing is None:
            return None
        return ~self.missing[:, list(self.kernel_views(self.missing.shape[1]))]

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> Any:
        """Return the same with what embeds new samples."""
        return replace(self, extension=extension, maps=maps_of(stack.kernels))

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

    def check(self, model: Any, X: Any) -> None:
        """Refuse what cannot be what the model was fitted on."""
        self.kernels(model, X)

    def mixed_entries(self, model: Any, X: Any, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel among some samples that the model was fitted on."""
        return model._mixed_among(self.training_stack(model, X), indices)

    def embed(
        self, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples, by another extension than that of the fit if there is one."""
        samples = self.read_new(model, X)
        if samples.n_samples == 0:
            raise ValueError("X is empty, it has no samples: pass at least one")
        extension = self.extension if extension is None else extension
        assert extension is not None
        similarities = self.similarities(model, samples, self_similarity)
        return extension.embed(similarities, samples.n_samples)

    def _observed_attribute(self) -> dict[str, Any]:
        """Return what a model shows of samples that are missing, if any are."""
        return {} if self.missing is None else {"observed_": ~self.missing}

    def kernels(self, model: Any, X: Any) -> Any:
        """Return the kernels that the model was fitted on, neither centered nor scaled."""
        raise NotImplementedError(f"{type(self).__name__} must define kernels")

    def training_stack(self, model: Any, X: Any, *, written_out: bool = False) -> Stack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        raise NotImplementedError(f"{type(self).__name__} must define training_stack")

    def similarities(self, model: Any, samples: Samples, self_similarity: Any) -> Any:
        """Return the similarities of new samples to the training samples that kernels have."""
        raise NotImplementedError(f"{type(self).__name__} must define similarities")


@dataclass(frozen=True, kw_only=True)
class FromKernels(Source):
    """Precomputed kernels: new samples come as their similarities to the training samples.

    Attributes
    ----------
    found : sequence of KernelNeighborhoods
        The neighborhoods that replace the kernels; none if they are used as they are.
    """

    found: Sequence[KernelNeighborhoods] = ()
    view_names: ClassVar[None] = None

    def explain(self) -> list[str]:
        """Say what was understood of the input."""
        return [*self.notes, "precomputed kernels, taken as they are"]

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
        shown = {"n_features_in_": stack.n_samples} | self._observed_attribute()
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
        return samples if covered is None else _with_columns(samples, covered, len(model.labels_))

    def empty_of_fit(self, samples: Samples, cross: bool = False) -> np.ndarray | None:
        """Return which kernels have nothing of which samples, (n, m); None if none."""
        if isinstance(samples.whole, RowSource):
            return samples.missing
        parts = samples.parts if samples.whole is None else single_kernels(samples.whole)
        return _empty_or_missing(samples, [zero_samples(part, cross) for part in parts])

    def empty_of_new(self, model: Any, samples: Samples) -> np.ndarray | None:
        """Return which kernels have nothing of which new samples; None if none."""
        return self.empty_of_fit(samples, cross=True)

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples, with their similarities to all training samples."""
        if samples.whole is not None:
            return replace(samples, whole=select(samples.whole, numbers, axis=1))
        return replace(replace(samples, kind="views").take(numbers), kind="kernels")

    def kernels(self, model: Any, X: Any) -> Any:
        """Return the kernels that the model was fitted on, neither centered nor scaled."""
        names, n = model.kernel_names_, len(model.labels_)
        samples = self.read(model, X)
        kernels = _match_kernels(samples, names)
        if is_incomplete := self.missing is not None or samples.missing is not None:
            samples = samples.only(names) if samples.names_given else samples
            _check_same_missing(samples, self.missing)
            kernels = samples = replace(samples, parts=tuple(kernels))
        else:
            for name, shape in zip(names, kernel_shapes(kernels, len(names)), strict=True):
                if shape != (n, n):
                    raise ValueError(
                        f"{name} has the shape {shape}, the model was fitted on {n} samples: pass "
                        f"the same {n} x {n} kernels"
                    )
        if not self.found:
            return kernels
        check_same_kernels(self.found, kernels)
        found = tuple(each.found.kernel() for each in self.found)
        return replace(samples, parts=found) if is_incomplete else list(found)

    def training_stack(self, model: Any, X: Any, *, written_out: bool = False) -> Stack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        # What was checked in fit need not be checked again, but what was repaired must be.
        validate = model.psd != "error" and not self.found
        names = model.kernel_names_
        stack = _as_stack(model, self.kernels(model, X), validate=validate, names=names)
        if self.extension is not None:
            _check_same(stack, self.extension)
        return replace(stack, kernels=with_maps(stack.kernels, self.maps))

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples to the training samples, kernel by kernel."""
        names, n_new = model.kernel_names_, samples.n_samples
        kernels = single_kernels(_match_kernels(samples, names))
        samples = samples.only(names) if samples.names_given else samples
        seen = np.ones((n_new, len(names)), bool) if samples.missing is None else ~samples.missing
        cross = [as_numbers(K, name) for name, K in zip(names, kernels, strict=True)]
        check_one_place(cross, names)
        for p, (name, K) in enumerate(zip(names, cross, strict=True)):
            cross[p] = self._training_columns(model, p, K, int(seen[:, p].sum()))
            row_sums(cross[p], name)  # refuses what is not finite
        own = None
        if self_similarity is not None:
            own = self._check_self_similarity(model, self_similarity, cross, seen.T)
        rows = [np.flatnonzero(has) for has in seen.T]
        own_rows = [None if own is None else own[p : p + 1, rows[p]] for p in range(len(names))]
        if self.found:
            each = zip(self.found, cross, own_rows, strict=True)
            cross = [found.cross(K, None if o is None else o[0]) for found, K, o in each]
            own_rows = [np.ones((1, len(some))) for some in rows]
        every = enumerate(zip(rows, cross, own_rows, strict=True))
        return [Similarities([p], some, [K], o) for p, (some, K, o) in every]

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

    def _check_self_similarity(
        self, model: Any, self_similarity: Any, cross: Sequence[Array], seen: np.ndarray
    ) -> Float:
        """Return the similarities of new samples to themselves, (m, n_new), or refuse them.

        Entries of samples that kernels lack, whose rows ``cross`` is without, do not matter.
        """
        if is_frame(self_similarity):
            raise TypeError(
                "self_similarity is a data frame, whose ids are not compared with those of X: pass "
                "an array, its rows in the order of the kernels and its columns in that of the "
                "new samples"
            )
        check_masks(self_similarity, "self_similarity")
        self_similarity = to_host(arrays_to_host(self_similarity))
        if self_similarity.shape != seen.shape:
            raise ValueError(
                f"self_similarity has the shape {self_similarity.shape}, expected {seen.shape}: "
                "one row per kernel, one column per new sample"
            )
        assert self.extension is not None
        # A kernel that was repaired may have had negative ones.
        sound = np.array([each.added is None for each in self.extension.standardizations])
        wrong = ~np.isfinite(self_similarity) | (sound[:, None] & (self_similarity < 0))
        wrong &= seen
        if model.normalize and model.psd == "error":
            # By a positive semidefinite kernel, what is not similar to itself is so to nothing.
            for p, sample in np.argwhere(seen & (self_similarity == 0)):
                place = int(seen[p, :sample].sum())
                row = cross[p][place : place + 1, :]
                wrong[p, sample] = bool((row != 0).sum() > 0)
        if np.any(wrong):
            kernel, sample = np.argwhere(wrong)[0]
            raise ValueError(
                f"self_similarity has {int(wrong.sum())} entries that are no similarity of a "
                "sample to itself (NaN, infinite, negative, or zero for a sample that is similar "
                f"to others), first {self_similarity[kernel, sample]:g} for "
                f"{model.kernel_names_[kernel]} and new sample {sample}: pass k(x, x)"
            )
        return self_similarity


@dataclass(frozen=True, kw_only=True)
class FromViews(Source):
    """Views of which a bank makes kernels: new samples come as views.

    Attributes
    ----------
    bank : KernelBank
        Fitted on the views.
    feature_names : ndarray of shape (n_features,) or None
        Columns of one table, if they have names.
    """

    bank: KernelBank
    feature_names: np.ndarray | None = None

    @property
    def view_names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self.bank.views_)

    def explain(self) -> list[str]:
        """Say what was understood of the input, and which kernels are made of it."""
        return [*self.notes, *self.bank.explain().splitlines()]

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods, or links, that every kernel consists of; None if of more."""
        return dict(zip(self.bank.kernel_names_, self.bank.lone_neighborhoods(), strict=True))

    def kernel_views(self, n_kernels: int) -> Sequence[int]:
        """Return the number of the view that each kernel is of."""
        return self.bank.kernel_views_

    def empty_of_fit(self, samples: Samples) -> np.ndarray | None:
        """Return which kernels have nothing of which samples of the fit, (n, m); None if none."""
        empty = _of_views(samples, self.bank.empty_rows(self.bank.views_))
        return None if empty is None else empty[:, list(self.bank.kernel_views_)]

    def empty_of_new(self, model: Any, samples: Samples) -> np.ndarray | None:
        """Return which views have nothing of which new samples; None if none."""
        if samples.is_lazy or not self.bank.views_ignoring_zeros:
            return samples.missing
        with warnings.catch_warnings():  # which come when they are embedded
            warnings.simplefilter("ignore", UserWarning)
            views = _check_new_table(model, samples).views
        known = {name: view.shape[1] for name, view in self.bank.views_.items()}
        if {name: view.shape[1] for name, view in views.items()} != known:
            return samples.missing  # others are refused when they are embedded
        return _of_views(samples, self.bank.empty_rows(views))

    def parts(self, by_view: bool) -> list[tuple[KernelBank, list[int]]]:
        """Return the bank, or a bank of each view, and the numbers of its kernels."""
        views = np.asarray(self.bank.kernel_views_)
        if not by_view:
            return [(self.bank, list(range(len(views))))]
        return [
            (self.bank.of_view(name), np.flatnonzero(views == number).tolist())
            for number, name in enumerate(self.bank.views_)
        ]

    def stack(self, model: Any, kernels: Sequence[Any]) -> Stack:
        """Return the kernels to fit on, checked if one may not be positive semidefinite."""
        return self._stacked(model, kernels, validate=not self.bank.is_definite)

    def _stacked(self, model: Any, kernels: Sequence[Any], *, validate: bool) -> Stack:
        """Return the kernels of all parts as one stack."""
        stacks, parts = [], self.parts(self.missing is not None)
        for number, ((bank, places), given) in enumerate(zip(parts, kernels, strict=True)):
            views = [self.bank.kernel_views_[place] for place in places]
            if isinstance(given, Stack):
                stacks.append(given)
                continue
            numbers: dict[str, Any] = {}
            if self.missing is not None:
                has = np.flatnonzero(~self.missing[:, number])
                numbers = {"kernel_numbers": places, "sample_numbers": has}
            names = bank.kernel_names_
            stacks.append(
                _as_stack(model, given, validate=validate, names=names, views=views, **numbers)
            )
        if self.missing is None:
            return stacks[0]
        numbers_of_kernels = [places for _, places in parts]
        rule = model.table_options.fill_rule
        stack = stack_observed(stacks, ~self.missing, numbers_of_kernels, rule)
        if not self.maps:
            return stack
        return replace(stack, kernels=with_maps(stack.kernels, self.maps))

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = {"n_features_in_": self.bank.n_features_in_, "bank_": self.bank}
        shown |= self._observed_attribute()
        if self.bank.neighbors is not None:
            shown["n_neighbors_"] = self.bank.n_neighbors_
        return shown | _feature_names_in(self.feature_names)

    def kernels(self, model: Any, X: Any) -> list[Any]:
        """Return the kernels that the model was fitted on, computed as their rows are asked for.

        If samples are missing from views, those of each view by themselves.
        """
        n, samples = len(model.labels_), _check_new_table(model, self.read(model, X))
        if samples.n_samples != n:
            raise ValueError(f"X has {samples.n_samples} samples, the model was fitted on {n}")
        by_view = self.missing is not None or samples.missing is not None
        if by_view:
            samples = _match_views(samples, self.bank)
            _check_same_missing(samples, self.missing)
        kernels = [
            copy(bank).set_params(on_the_fly=True).transform(part)
            for (bank, _), (part, _) in zip(
                self.parts(by_view), _by_view(samples, by_view), strict=True
            )
        ]
        if not all(each.of_training_samples for each in kernels):
            raise ValueError(OTHER_SAMPLES)
        return kernels

    def training_stack(self, model: Any, X: Any, *, written_out: bool = False) -> Stack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        # What was repaired must be repaired again, and is held for that.
        is_repaired = model.psd != "error" and not self.bank.is_definite
        kernels: list[Any] = self.kernels(model, X)
        for number, (bank, places) in enumerate(self.parts(self.missing is not None)):
            if bank.only_neighborhoods:
                continue
            if is_repaired or written_out:
                kernels[number] = kernels[number].entries(type(model).__name__)
            elif self.extension is not None:  # spares the pass that learns the means
                views = tuple(self.bank.kernel_views_[place] for place in places)
                source, diagonals = kernels[number], kernels[number].diagonal()
                standardized = tuple(
                    Standardized(
                        Computed(source, index, diagonals[index, :]),
                        self.extension.standardizations[place].to_same_device(diagonals),
                    )
                    for index, place in enumerate(places)
                )
                kernels[number] = Stack(standardized, bank.kernel_names_, views)
        return self._stacked(model, kernels, validate=is_repaired)

    def embed(
        self, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples; dask arrays are left lazy."""
        _refuse_self_similarity(self_similarity)
        samples = self.read_new(model, X)
        if not samples.is_lazy:
            return super().embed(model, samples, None, extension)
        kind = samples.kind

        def embed_block(block: dict[str, np.ndarray], start: int) -> Array:
            parts = Samples(kind, tuple(block), tuple(block.values()))
            if kind == "views":  # new samples, of which a block may lack a view altogether
                parts = read_views(block, encodings={})
            return self.embed(model, parts, None, extension)

        return as_blocks(samples, keep=False).map(embed_block)

    def similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples, view by view if some views lack samples."""
        samples = _check_new_table(model, samples)
        by_view = self.missing is not None or samples.missing is not None
        if by_view:
            samples = _match_views(samples, self.bank)
        return [
            Similarities(places, rows, bank.transform(part), bank.self_similarity(part))
            for (bank, places), (part, rows) in zip(
                self.parts(by_view), _by_view(samples, by_view), strict=True
            )
            if len(rows)
        ]


@dataclass(frozen=True, kw_only=True)
class FromFeatures(Source):
    """Views that features stand for: new samples come as views, and are looked at in blocks.

    Attributes
    ----------
    widths : dict of str to int
        Number of columns of each view.
    columns : dict of str to list of str
        Names of the columns of those views that have any.
    features : Features or None
        What makes features of views; None before the fit has ended.
    matrix : array of shape (n_columns, n_clusters) or None
        What takes features to rows of the embedding; None before the fit has ended.
    ranks : dict of str to ColumnRanks
        By which the columns of views can be recognized.
    """

    widths: dict[str, int]
    columns: dict[str, list[str]]
    features: Any = None
    matrix: Array = None
    ranks: dict[str, ColumnRanks] = field(default_factory=dict)
    neighborhoods: ClassVar[dict[str, Neighborhoods]] = {}

    @property
    def view_names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self.widths)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def empty_of_fit(self, samples: Samples) -> np.ndarray | None:
        """Return which views have nothing of which samples, as far as these are in memory."""
        assert self.features is not None
        if samples.is_lazy:
            return samples.missing
        tables, empty = samples.tables, {}
        for name, map_ in zip(self.widths, self.features.maps, strict=True):
            if not isinstance(map_, PreparedMap) or not map_.preparation.ignores_zeros:
                continue
            if is_foreign(tables[name]) or is_in_memory(tables[name]):
                empty[name] = map_.preparation.zero_rows(tables[name])
        return _of_views(samples, empty)

    def empty_of_new(self, model: Any, samples: Samples) -> np.ndarray | None:
        """Return which views have nothing of which new samples; None if none."""
        if samples.is_lazy or set(samples.names) != set(self.widths):
            return samples.missing  # others are refused when they are embedded
        return self.empty_of_fit(samples)

    def stack(self, model: Any, stack: Stack) -> Stack:
        """Return the compressed kernels themselves."""
        return stack

    def extended(self, stack: Stack, rows: Array, extension: Extension | None) -> "FromFeatures":
        """Return the same with what embeds new samples."""
        features, matrix = stack.features.embedding_map(rows)
        return replace(self, features=features, matrix=matrix)

    def attributes(self, stack: Stack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        names = np.array(self.columns[TABLE], object) if TABLE in self.columns else None
        shown = {
            "n_features_in_": sum(self.widths.values()),
            "approximation_error_": stack.features.trace_errors,
        }
        if stack.features.observed is not None:  # one kernel per view
            shown["observed_"] = stack.features.observed
        return shown | _feature_names_in(names)

    def check(self, model: Any, X: Any) -> None:
        """Refuse what cannot be what the model was fitted on."""
        self._blocks(model, X)

    def match(self, samples: Samples) -> Samples:
        """Return views in the order of those that features were learned from, or refuse others."""
        widths = dict(zip(samples.names, samples.n_features, strict=True))
        if widths != self.widths:
            raise ValueError(
                f"X has the views {widths} (name: columns), the model was fitted on {self.widths}: "
                "pass the same views, with the same columns"
            )
        samples.check_columns(self.columns, "model")
        return samples.only(list(self.widths))

    def mixed_entries(self, model: Any, X: Any, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel of features among some samples that the model was fitted on."""
        indices = np.arange(len(model.labels_)) if indices is None else indices
        similarities = np.zeros((len(indices), len(indices)))
        features = self._training_features(model, X, indices)
        for c, F in zip(model.coefficients_, features, strict=True):
            similarities += c * (F @ F.T)
        return similarities

    def embed(
        self, model: Any, X: Any, self_similarity: Any, extension: Extension | None = None
    ) -> Array:
        """Embed new samples by their features, in blocks; dask arrays are left lazy."""
        _refuse_self_similarity(self_similarity)
        features, matrix = self.features, self.matrix

        def embed_block(block: dict[str, np.ndarray], start: int) -> np.ndarray:
            check_finite(block, start)
            return features.project(block, matrix)

        return as_blocks(self.match(self.read_new(model, X)), keep=False).map(embed_block)

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


def _as_stack(model: Any, kernels: Any, *, validate: bool, **options: Any) -> Stack:
    """Return kernels centered, scaled and repaired as a model asks for."""
    options |= {"center": model.center, "normalize": model.normalize, "psd": model.psd}
    return as_stack(kernels, validate=validate, fill=model.table_options.fill_rule, **options)


def _of_views(samples: Samples, empty: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return which views lack which samples, or have empty rows of them; None if none."""
    return _empty_or_missing(samples, [empty.get(name) for name in samples.names])


def _empty_or_missing(samples: Samples, empty: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return which parts lack which samples, or have empty rows of them; None if none."""
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


def _by_view(samples: Samples, by_view: bool) -> list[tuple[Samples, np.ndarray]]:
    """Return all views, or one after another, and the numbers of the samples that they have."""
    if not by_view:
        return [(samples, np.arange(samples.n_samples))]
    return [
        (replace(samples.only([name]), kind="views", missing=None), rows)
        for name, rows in samples.observed.items()
    ]


def _match_views(samples: Samples, bank: KernelBank) -> Samples:
    """Return views in the order of those that a bank was fitted on, or say how they differ."""
    if set(samples.names) != set(bank.views_):
        raise ValueError(
            f"X has the views {list(samples.names)}, the model was fitted on {list(bank.views_)}: "
            "pass the same views"
        )
    samples.check_columns(bank.columns_, "model")
    return samples.only(list(bank.views_))


def _match_kernels(samples: Samples, names: Sequence[str]) -> Any:
    """Return kernels in the order of those that a model was fitted on, or refuse others."""
    whole, kernels = samples.whole, samples.by_name
    count = len(kernels)
    if whole is not None:
        count = whole.n_kernels if isinstance(whole, RowSource) else whole.shape[0]
    if count != len(names):
        raise ValueError(f"X has {count} kernels, the model was fitted on {len(names)}")
    if whole is not None or not samples.names_given:
        return list(samples.parts) if whole is None else whole
    if missing := [name for name in names if name not in kernels]:
        raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(kernels)}")
    return [kernels[name] for name in names]


def _with_columns(samples: Samples, covered: np.ndarray, n_samples: int) -> Samples:
    """Return kernels of new samples with the columns of the samples that a model was fitted on."""

    def of_covered(kernel: Any) -> Any:
        is_whole = depth(kernel) == 2 and kernel.shape[1] == n_samples
        return select(as_numbers(kernel, "X"), covered, axis=1) if is_whole else kernel

    if samples.whole is None:
        return replace(samples, parts=tuple(map(of_covered, samples.parts)))
    names = tuple(f"kernel {p}" for p in range(samples.whole.shape[0]))
    parts = tuple(map(of_covered, single_kernels(samples.whole)))
    return replace(samples, names=names, parts=parts, whole=None)


def _check_same_missing(samples: Samples, fitted: np.ndarray | None) -> None:
    """Refuse samples that are missing from other views than those that a model was fitted on."""
    missing = samples.missing
    if missing is None or fitted is None or not np.array_equal(missing, fitted):
        raise ValueError(
            "X lacks other samples than the model was fitted on, view by view: pass the same, with "
            "observed as it was in the fit by way of mkclust.samples.read_samples"
        )


def _check_same(stack: Stack, extension: Extension) -> None:
    """Refuse kernels whose diagonals, or means over the samples, are not those of the fit."""
    for kernel, name, b in zip(stack.kernels, stack.names, extension.standardizations, strict=True):
        a = observed_part(kernel).for_new_samples
        differences = [np.abs(to_host(a.diagonal) - to_host(b.diagonal)).max()]
        if a.row_means is not None and b.row_means is not None:
            differences.append(np.abs(to_host(a.row_means) - to_host(b.row_means)).max())
        if max(differences) > ROUNDING * np.abs(to_host(b.diagonal)).max():
            raise ValueError(
                f"{name} is not the kernel that the model was fitted on: its means over the "
                "samples, or its diagonal, differ; pass the same kernels, samples in the same order"
            )


def _check_new_table(model: Any, samples: Samples) -> Samples:
    """Return new samples, of which one table is compared by scikit-learn with that of the fit."""
    if samples.kind != "table" or is_foreign(samples.parts[0]):
        return samples
    table = samples.parts[0]
    types = [np.float64, np.float32]
    with warnings.catch_warnings():
        if TABLE in samples.columns:  # filled cells are in an array, compared by name already
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        table = validate_data(
            model, table, reset=False, dtype=types, ensure_all_finite=False, accept_sparse="csr"
        )
    table = check_view(table, "X")
    check_entries({TABLE: table}, {TABLE: "X"}, samples.columns)
    return replace(samples, parts=(table,), is_checked=True)


def _refuse_self_similarity(self_similarity: Any) -> None:
    """Refuse what only precomputed kernels need."""
    if self_similarity is not None:
        raise ValueError("self_similarity belongs to precomputed kernels: leave it out")


def _feature_names_in(names: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return scikit-learn's attribute for the names of columns, if there are any."""
    return {} if names is None else {"feature_names_in_": names}
