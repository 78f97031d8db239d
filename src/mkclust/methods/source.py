"""What a model was fitted on: kernels, views of a bank, or views that features stand for.

A model holds one of the three: it reads the same samples again, and embeds new ones. Nothing
sample-sized of kernels and of views with features is stored, so that they are passed once more.
What is passed must be what the model was fitted on: numbers of samples, names and shapes always
tell; what a model remembers of its samples tells more, and is compared where it can be.
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
from mkclust.kernels.computed import ComputedKernels
from mkclust.kernels.neighbors import Neighborhoods
from mkclust.linalg import arrays_to_host, check_one_place, is_foreign, select, to_host
from mkclust.methods.column_ranks import ColumnRanks
from mkclust.methods.memory_checks import require_memory_beside_kernels
from mkclust.methods.neighborhoods import KernelNeighborhoods, SeparateNeighborhoods
from mkclust.methods.out_of_sample import AnyExtension, Extension, SeenSimilarities
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
    KernelStack,
    RowSource,
    Standardization,
    StreamedStack,
    as_numbers,
    as_stack,
    row_sums,
)
from mkclust.stack.discretize import assign
from mkclust.stack.incomplete import IncompleteStack
from mkclust.stack.mapped import Features, PreparedMap
from mkclust.stack.sample_map import SampleMap
from mkclust.types import Array, Float

# What differs by less than this share of the largest self-similarity is rounding.
ROUNDING = 1e-6
# Rounding may change the cluster of single samples between two, and of no larger share than this.
CHANGED_SHARE = 0.02
# Similarities of new samples to the training samples, and to themselves.
Similarities = tuple[Sequence[Array] | ComputedKernels, Array | None]


def training_index(model: Any) -> Any:
    """Return the index of the samples of a fit: ids, 0, 1, ... of frames, None of arrays."""
    source = model._source
    ids = source.ids if model._covered is None else getattr(model, "sample_ids_", None)
    return make_index(ids, source.index_names, len(model.labels_))


@dataclass(frozen=True, kw_only=True)
class _FromSimilarities:
    """What was fitted on similarities: precomputed kernels, or those of views.

    Attributes
    ----------
    ids : ndarray of shape (n_samples,) or None
        Ids of the training samples.
    index_names : tuple of str or None
        Names of the levels of their index; None for arrays, which have no index.
    missing : ndarray of bool of shape (n_samples, n_views) or None
        Which of them each view, or kernel, lacks; None where none is missing.
    extension : Extension, IncompleteExtension or None
        How similarities are embedded; None where a method embeds no new samples.
    maps : sequence of SampleMap
        What became of samples that are missing, part by part of the kernels.
    """

    ids: np.ndarray | None
    index_names: tuple[str | None, ...] | None = None
    missing: np.ndarray | None = None
    extension: AnyExtension | None = None
    maps: Sequence[SampleMap] = ()

    def extended(self, stack: KernelStack, rows: Array, extension: AnyExtension | None) -> Any:
        """Return the same with what embeds new samples."""
        return replace(self, extension=extension, maps=[part.map for part in stack.parts])

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None where all."""
        raise NotImplementedError(f"{type(self).__name__} must define observed")

    def check(self, model: Any, X: Any) -> None:
        """Refuse what cannot be what the model was fitted on."""
        self.kernels(model, X)

    def mixed_entries(self, model: Any, X: Any, indices: np.ndarray | None) -> Array:
        """Return the mixed kernel among some samples that the model was fitted on."""
        return model._mixed_among(self.training_stack(model, X), indices)

    def embed(self, model: Any, X: Any, self_similarity: Any) -> Array:
        """Embed new samples."""
        assert self.extension is not None
        return self.embed_by(self.extension, model, X, self_similarity)

    def embed_by(self, extension: AnyExtension, model: Any, X: Any, self_similarity: Any) -> Array:
        """Return what an extension of the model makes of new samples."""
        samples = self.read_new(model, X)
        if samples.missing is None and isinstance(extension, Extension):
            return extension.embed(*self.similarities(model, samples, self_similarity))
        if samples.n_samples == 0:
            raise ValueError("X is empty, it has no samples: pass at least one")
        parts = self.seen_similarities(model, samples, self_similarity)
        return extension.embed_seen(parts, samples.n_samples)

    def _observed_attribute(self) -> dict[str, Any]:
        """Return what a model shows of samples that are missing, where any are."""
        return {} if self.missing is None else {"observed_": ~self.missing}

    def empty_of_fit(self, samples: Samples) -> np.ndarray | None:
        """Return which kernels have nothing of which samples of the fit, (n, m); None if none."""
        raise NotImplementedError(f"{type(self).__name__} must define empty_of_fit")

    def empty_of_new(self, model: Any, samples: Samples) -> np.ndarray | None:
        """Return which views, or kernels, have nothing of which new samples; None if none."""
        raise NotImplementedError(f"{type(self).__name__} must define empty_of_new")

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples."""
        raise NotImplementedError(f"{type(self).__name__} must define read_new")

    def seen_similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[SeenSimilarities]:
        """Return the similarities of those new samples that kernels have, part by part."""
        raise NotImplementedError(f"{type(self).__name__} must define seen_similarities")

    def kernels(self, model: Any, X: Any) -> Any:
        """Return the kernels that the model was fitted on, neither centered nor scaled."""
        raise NotImplementedError(f"{type(self).__name__} must define kernels")

    def training_stack(self, model: Any, X: Any) -> KernelStack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        raise NotImplementedError(f"{type(self).__name__} must define training_stack")

    def similarities(self, model: Any, X: Any, self_similarity: Any) -> Similarities:
        """Return the similarities of new samples to the training samples and to themselves."""
        raise NotImplementedError(f"{type(self).__name__} must define similarities")


@dataclass(frozen=True, kw_only=True)
class FromKernels(_FromSimilarities):
    """Precomputed kernels: new samples come as their similarities to the training samples.

    Attributes
    ----------
    found : KernelNeighborhoods, SeparateNeighborhoods or None
        The neighborhoods that replace the kernels; None where they are used as they are.
    notes : tuple of str
        Which samples the kernels lack.
    """

    found: KernelNeighborhoods | SeparateNeighborhoods | None = None
    notes: tuple[str, ...] = ()
    view_names: ClassVar[None] = None

    def explain(self) -> list[str]:
        """Say what was understood of the input."""
        return [*self.notes, "precomputed kernels, taken as they are"]

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None where all."""
        return None if self.missing is None else ~self.missing

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods]:
        """The neighborhoods of every kernel by its name, where they are used."""
        return {} if self.found is None else self.found.by_name

    def stack(self, model: Any, samples: Samples) -> KernelStack:
        """Return the kernels to fit on, with room beside them."""
        stack = _as_stack(model, samples, validate=model.validate and self.found is None)
        require_memory_beside_kernels(model, stack)
        return stack

    def attributes(self, stack: KernelStack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = {"n_features_in_": stack.n_samples} | self._observed_attribute()
        return shown if self.found is None else shown | {"n_neighbors_": self.found.size}

    def read(self, model: Any, X: Any) -> Samples:
        """Read what the model was fitted on, data frames in the order of its labels."""
        return read_samples(X, expected="precomputed", ids=training_index(model))

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples, the columns of data frames in the order of the training samples."""
        covered, ids = model._covered, training_index(model)
        samples = read_samples(X, expected="precomputed", ids=ids, cross=True, observed=observed)
        return samples if covered is None else _with_columns(samples, covered, len(model.labels_))

    def empty_of_fit(self, samples: Samples) -> np.ndarray | None:
        """Return which kernels have nothing of which samples of the fit, (n, m); None if none."""
        return _of_kernels(samples, cross=False)

    def empty_of_new(self, model: Any, samples: Samples) -> np.ndarray | None:
        """Return which kernels have nothing of which new samples; None if none."""
        return _of_kernels(samples, cross=True)

    def kernel_views(self, n_kernels: int) -> Sequence[int]:
        """Return the number of what each kernel was made of: itself."""
        return range(n_kernels)

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples, with their similarities to all training samples."""
        if samples.whole is not None:
            return replace(samples, whole=select(samples.whole, numbers, axis=1))
        return replace(replace(samples, kind="views").take(numbers), kind="kernels")

    def kernels(self, model: Any, X: Any) -> Any:
        """Return the kernels that the model was fitted on, neither centered nor scaled."""
        names, n = model.kernel_names_, len(model.labels_)
        samples = self.read(model, X)
        if self.missing is not None or samples.missing is not None:
            return self._incomplete_kernels(model, samples)
        kernels = _match_kernels(samples, names)
        for name, shape in zip(names, kernel_shapes(kernels, len(names)), strict=True):
            if shape != (n, n):
                raise ValueError(
                    f"{name} has the shape {shape}, the model was fitted on {n} samples: pass "
                    f"the same {n} x {n} kernels"
                )
        if self.found is None:
            return kernels
        self.found.check_same(kernels)
        return self.found.kernels()

    def _incomplete_kernels(self, model: Any, samples: Samples) -> Samples:
        """Return kernels that lack the samples that those of the fit lack."""
        names = model.kernel_names_
        parts = tuple(_match_kernels(samples, names))
        if samples.names_given:
            samples = samples.only(names)
        _check_same_missing(samples, self.missing)
        if self.found is not None:
            self.found.check_same(samples)
            parts = tuple(self.found.kernels())
        return replace(samples, parts=parts)

    def training_stack(self, model: Any, X: Any) -> KernelStack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        # What was checked in fit need not be checked again, but what was repaired must be.
        validate = model.psd != "error" and model.validate and self.found is None
        names = model.kernel_names_
        stack = _as_stack(model, self.kernels(model, X), validate=validate, names=names)
        if self.extension is not None:
            _check_same(names, stack.standardizations, self.extension.standardizations)
        return stack.with_maps(self.maps)

    def seen_similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[SeenSimilarities]:
        """Return the similarities of those new samples that kernels have, kernel by kernel."""
        names, n_new = model.kernel_names_, samples.n_samples
        kernels = single_kernels(_match_kernels(samples, names))
        if samples.names_given:
            samples = samples.only(names)
        cross = [
            self._training_columns(as_numbers(K, name), p, name, _n_fitted(model))
            for p, (name, K) in enumerate(zip(names, kernels, strict=True))
        ]
        check_one_place(cross, names)
        if self_similarity is not None:
            self_similarity = self._check_self_similarity(
                model, self_similarity, cross, n_new, samples.missing
            )
        for name, K in zip(names, cross, strict=True):
            row_sums(K, name)  # refuses what is not finite
        parts = []
        for group, seen in self._groups(len(names), n_new, samples.missing):
            matrices = [cross[p] for p in group]
            own = None if self_similarity is None else self_similarity[group][:, seen]
            if self.found is not None:
                pairs = [self.found.of_kernel(p).cross([cross[p]], own) for p in group]
                matrices = [matrix for pair in pairs for matrix in pair]
                own = np.ones((len(group), len(seen)))
            parts.append(SeenSimilarities(group, seen, matrices, own))
        return parts

    def _groups(
        self, n_kernels: int, n_new: int, missing: np.ndarray | None
    ) -> list[tuple[list[int], np.ndarray]]:
        """Return kernels that have the same training and the same new samples, and these.

        Those that were fitted as one part stay together where they can, so that repaired kernels
        know their training samples again.
        """
        has = [np.ones((n_new, n_kernels), bool) if missing is None else ~missing]
        has += [] if self.observed is None else [self.observed]
        number = np.unique(np.vstack(has), axis=1, return_inverse=True)[1].ravel()
        if self.found is not None:
            number = np.arange(n_kernels)
        groups = [np.flatnonzero(number == each).tolist() for each in np.unique(number)]
        return [(group, np.flatnonzero(has[0][:, group[0]])) for group in groups]

    def similarities(self, model: Any, X: Any, self_similarity: Any) -> Similarities:
        """Return the similarities of new samples to the training samples and to themselves."""
        samples = self.read_new(model, X)
        names, n = model.kernel_names_, _n_fitted(model)
        matrices = single_kernels(_match_kernels(samples, names))
        cross = [as_numbers(K, name) for name, K in zip(names, matrices, strict=True)]
        check_one_place(cross, names)
        for name, K in zip(names, cross, strict=True):
            if K.ndim != 2 or K.shape[1] != n or K.shape[0] != cross[0].shape[0]:
                raise ValueError(
                    f"{name} has the shape {K.shape}: expected similarities of "
                    f"{cross[0].shape[0]} new samples (rows) to the {n} training samples (columns)"
                )
            row_sums(K, name)  # refuses what is not finite
        if self_similarity is not None:
            n_new = cross[0].shape[0]
            self_similarity = self._check_self_similarity(model, self_similarity, cross, n_new)
        if self.found is None:
            return cross, self_similarity
        assert isinstance(self.found, KernelNeighborhoods)
        matrices = self.found.cross(cross, self_similarity)
        return matrices, np.ones((len(matrices), cross[0].shape[0]))

    def _training_columns(self, K: Array, index: int, name: str, n: int) -> Array:
        """Return the columns of the training samples that a kernel has, of these or of all."""
        observed = self.observed
        has = np.ones(n, bool) if observed is None else observed[:, index]
        if K.ndim != 2 or K.shape[1] not in (n, has.sum()):
            rest = "" if has.all() else f", or of the {has.sum()} that it has"
            raise ValueError(
                f"{name} has the shape {tuple(K.shape)}: expected a column for each of the {n} "
                f"training samples{rest}"
            )
        if K.shape[1] == has.sum():
            return K
        return select(K, np.flatnonzero(has), axis=1)

    def _check_self_similarity(
        self,
        model: Any,
        self_similarity: Any,
        cross: Sequence[Array],
        n_new: int,
        missing: np.ndarray | None = None,
    ) -> Float:
        """Return the similarities of new samples to themselves, or say which are none.

        What is said of samples that kernels lack, whose rows ``cross`` is without, says nothing.
        """
        if is_frame(self_similarity):
            raise TypeError(
                "self_similarity is a data frame, whose ids are not compared with those of X: pass "
                "an array, its rows in the order of the kernels and its columns in that of the "
                "new samples"
            )
        check_masks(self_similarity, "self_similarity")
        self_similarity = to_host(arrays_to_host(self_similarity))
        expected = (len(cross), n_new)
        if self_similarity.shape != expected:
            raise ValueError(
                f"self_similarity has the shape {self_similarity.shape}, expected {expected}: "
                "one row a kernel, one column a new sample"
            )
        assert self.extension is not None
        # A kernel that was repaired may have had negative ones.
        sound = np.array([each.added is None for each in self.extension.standardizations])
        seen = np.ones(expected, bool) if missing is None else ~missing.T
        wrong = ~np.isfinite(self_similarity) | (sound[:, None] & (self_similarity < 0))
        wrong &= seen
        if model.normalize and model.validate and model.psd == "error":
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
class FromViews(_FromSimilarities):
    """Views of which a bank makes kernels: new samples come as views.

    Attributes
    ----------
    bank : KernelBank
        Fitted on the views.
    feature_names : ndarray of shape (n_features,) or None
        Columns of one table, where they have names.
    encodings : dict of str to Encoding
        What was learned of the columns of tables.
    notes : tuple of str
        What was understood of the tables.
    """

    bank: KernelBank
    feature_names: np.ndarray | None = None
    encodings: dict[str, Encoding] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def view_names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self.bank.views_)

    def explain(self) -> list[str]:
        """Say what was understood of the input, and which kernels are made of it."""
        return [*self.notes, *self.bank.explain().splitlines()]

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n_samples, n_kernels) of bool; None where all."""
        return None if self.missing is None else ~self.missing[:, list(self.bank.kernel_views_)]

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods, or links, that every kernel consists of; None where of more."""
        found = self.bank.lone_neighborhoods()
        return dict(zip(self.bank.kernel_names_, found, strict=True))

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

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples."""
        return samples.take(numbers)

    def stack(self, model: Any, kernels: Any) -> KernelStack:
        """Return the kernels to fit on, checked where one may not be positive semidefinite."""
        names, views = self.bank.kernel_names_, self.bank.kernel_views_
        validate = model.validate and not self.bank.is_definite
        if self.missing is None:
            return _as_stack(model, kernels, validate=validate, names=names, views=views)
        return self._incomplete_stack(
            model,
            [
                _as_stack(
                    model,
                    kernels[name],
                    validate=validate,
                    names=[names[p] for p in places],
                    views=[number] * len(places),
                    kernel_numbers=places,
                    sample_numbers=np.flatnonzero(~self.missing[:, number]),
                )
                for number, (name, places) in enumerate(self._kernels_of_views.items())
            ],
        )

    @property
    def _kernels_of_views(self) -> dict[str, list[int]]:
        """The numbers of the kernels of each view."""
        views = np.asarray(self.bank.kernel_views_)
        return {
            name: np.flatnonzero(views == number).tolist()
            for number, name in enumerate(self.bank.views_)
        }

    def _incomplete_stack(self, model: Any, stacks: Sequence[KernelStack]) -> IncompleteStack:
        """Return kernels of which each view has some samples, view by view."""
        assert self.missing is not None
        places = list(self._kernels_of_views.values())
        stack = IncompleteStack.of(stacks, ~self.missing, places, model.table_options.fill_rule)
        return stack.with_maps(self.maps) if self.maps else stack

    def attributes(self, stack: KernelStack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        shown = {"n_features_in_": self.bank.n_features_in_, "bank_": self.bank}
        shown |= self._observed_attribute()
        if self.bank.neighbors is not None:
            shown["n_neighbors_"] = self.bank.n_neighbors_
        return shown | _feature_names_in(self.feature_names)

    def read(self, model: Any, X: Any) -> Samples:
        """Read what the model was fitted on, data frames in the order of its labels."""
        options = model.table_options
        ids = training_index(model)
        return read_views(X, ids=ids, options=options, encodings=self.encodings)

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples, their columns as those of the training samples were."""
        options = model.table_options
        return read_views(X, options=options, encodings=self.encodings, observed=observed)

    def kernels(self, model: Any, X: Any) -> Any:
        """Return the kernels that the model was fitted on, computed as their rows are asked for.

        Of samples that are missing from views they come view by view, in a dict.
        """
        n, bank = len(model.labels_), copy(self.bank).set_params(on_the_fly=True)
        samples = _check_new_table(model, self.read(model, X))
        if samples.n_samples != n:
            raise ValueError(f"X has {samples.n_samples} samples, the model was fitted on {n}")
        if self.missing is None and samples.missing is None:
            return _of_training_samples(bank.transform(samples))
        samples = _match_views(samples, bank)
        _check_same_missing(samples, self.missing)
        return {
            name: _of_training_samples(bank.of_view(name).transform(_only_view(samples, name)))
            for name in bank.views_
        }

    def training_stack(self, model: Any, X: Any) -> KernelStack:
        """Return the kernels that the model was fitted on, centered and scaled as in the fit."""
        kernels, names = self.kernels(model, X), model.kernel_names_
        if self.missing is not None:
            return self._incomplete_stack(
                model,
                [
                    self._training_part(model, kernels[name], self.bank.of_view(name), places)
                    for name, places in self._kernels_of_views.items()
                ],
            )
        return self._training_part(model, kernels, self.bank, range(len(names)))

    def _training_part(
        self, model: Any, kernels: Any, bank: KernelBank, places: Sequence[int]
    ) -> KernelStack:
        """Return kernels of the same samples, centered and scaled as in the fit."""
        names, views = bank.kernel_names_, [self.bank.kernel_views_[place] for place in places]
        if model.psd != "error" and model.validate and not self.bank.is_definite:
            # What was repaired must be repaired again, and is held for that.
            held = kernels.entries(type(model).__name__)
            return _as_stack(model, held, validate=True, names=names, views=views)
        if self.extension is None or bank.only_neighborhoods:
            return _as_stack(model, kernels, validate=False, names=names, views=views)
        # Spares the pass that learns the means.
        standardizations = [self.extension.standardizations[place] for place in places]
        return StreamedStack(kernels, names, standardizations, tuple(views))

    def embed(self, model: Any, X: Any, self_similarity: Any) -> Array:
        """Embed new samples; dask arrays are left lazy."""
        _refuse_self_similarity(self_similarity)
        samples = self.read_new(model, X)
        if samples.is_lazy:
            kind = samples.kind

            def look(block: dict[str, np.ndarray], start: int) -> Array:
                parts = Samples(kind, tuple(block), tuple(block.values()))
                if kind == "views":  # new samples, of which a block may lack a view altogether
                    parts = read_views(block, encodings={})
                return self.embed(model, parts, None)

            return as_blocks(samples, keep=False).map(look)
        return super().embed(model, samples, None)

    def similarities(self, model: Any, X: Any, self_similarity: Any) -> Similarities:
        """Return the similarities of new samples to the training samples and to themselves."""
        _refuse_self_similarity(self_similarity)
        samples = _check_new_table(model, self.read_new(model, X))
        return self.bank.transform(samples), self.bank.self_similarity(samples)

    def seen_similarities(
        self, model: Any, samples: Samples, self_similarity: Any
    ) -> list[SeenSimilarities]:
        """Return the similarities of those new samples that views have, view by view."""
        samples, n_new = _match_views(samples, self.bank), samples.n_samples
        parts = []
        for number, (name, places) in enumerate(self._kernels_of_views.items()):
            bank, view = self.bank.of_view(name), _only_view(samples, name)
            rows = np.arange(n_new)
            if samples.missing is not None:
                rows = np.flatnonzero(~samples.missing[:, number])
            if not len(rows):
                continue
            similarities = bank.transform(view), bank.self_similarity(view)
            parts.append(SeenSimilarities(places, rows, *similarities))
        return parts


@dataclass(frozen=True, kw_only=True)
class FromFeatures:
    """Views that features stand for: new samples come as views, and are looked at in blocks.

    Attributes
    ----------
    ids : ndarray of shape (n_samples,) or None
        Ids of the training samples.
    index_names : tuple of str or None
        Names of the levels of their index; None for arrays, which have no index.
    widths : dict of str to int
        Number of columns of each view.
    columns : dict of str to list of str
        Names of the columns of those views that have any.
    features : Features or None
        What makes features of views; None before the fit has ended.
    matrix : array of shape (n_columns, n_clusters) or None
        What takes features to rows of the embedding; None before the fit has ended.
    encodings : dict of str to Encoding
        What was learned of the columns of tables.
    notes : tuple of str
        What was understood of the tables.
    ranks : dict of str to ColumnRanks
        By which the columns of views can be recognized.
    """

    ids: np.ndarray | None
    widths: dict[str, int]
    columns: dict[str, list[str]]
    index_names: tuple[str | None, ...] | None = None
    features: Features | None = None
    matrix: Array = None
    encodings: dict[str, Encoding] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ranks: dict[str, ColumnRanks] = field(default_factory=dict)
    neighborhoods: ClassVar[dict[str, Neighborhoods]] = {}
    observed: ClassVar[None] = None  # known once the samples have been looked at

    @property
    def view_names(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self.widths)

    def explain(self) -> list[str]:
        """Say what was understood of the input."""
        return list(self.notes)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def kernel_views(self, n_kernels: int) -> Sequence[int]:
        """Return the number of the view that each kernel is of."""
        return range(n_kernels)

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

    def take_new(self, samples: Samples, numbers: np.ndarray) -> Samples:
        """Return some new samples."""
        return samples.take(numbers)

    def stack(self, model: Any, stack: KernelStack) -> KernelStack:
        """Return the compressed kernels themselves."""
        return stack

    def extended(self, stack: KernelStack, rows: Array, extension: Any) -> "FromFeatures":
        """Return the same with what embeds new samples."""
        features, matrix = stack.embedding_map(rows) or (None, None)
        return replace(self, features=features, matrix=matrix)

    def attributes(self, stack: KernelStack) -> dict[str, Any]:
        """Return what a model shows of its input."""
        names = np.array(self.columns[TABLE], object) if TABLE in self.columns else None
        shown = {
            "n_features_in_": sum(self.widths.values()),
            "approximation_error_": stack.approximation_error,
        }
        if stack.observed is not None:  # a kernel a view
            shown["observed_"] = stack.observed
        return shown | _feature_names_in(names)

    def read(self, model: Any, X: Any) -> Samples:
        """Read what the model was fitted on, data frames in the order of its labels."""
        options = model.table_options
        ids = training_index(model)
        return read_views(X, ids=ids, options=options, encodings=self.encodings)

    def read_new(self, model: Any, X: Any, observed: Any = None) -> Samples:
        """Read new samples, their columns as those of the training samples were."""
        options = model.table_options
        return read_views(X, options=options, encodings=self.encodings, observed=observed)

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

    def embed(self, model: Any, X: Any, self_similarity: Any) -> Array:
        """Embed new samples by their features, in blocks; dask arrays are left lazy."""
        _refuse_self_similarity(self_similarity)
        features, matrix = self.features, self.matrix
        assert features is not None

        def look(block: dict[str, np.ndarray], start: int) -> np.ndarray:
            check_finite(block, start)
            return features.project(block, matrix)

        return as_blocks(self.match(self.read_new(model, X)), keep=False).map(look)

    def _blocks(self, model: Any, X: Any) -> Blocks:
        """Return the views that the model was fitted on, in the order of the fit."""
        blocks, n = as_blocks(self.match(self.read(model, X))), len(model.labels_)
        if blocks.n_samples != n:
            raise ValueError(f"X has {blocks.n_samples} samples, the model was fitted on {n}")
        return blocks

    def _training_features(self, model: Any, X: Any, indices: np.ndarray) -> list[Float]:
        """Return the features of some samples that the model was fitted on, view by view."""
        assert self.features is not None
        rising, positions = np.unique(indices, return_inverse=True)
        block = self._blocks(model, X).take(rising)
        check_finite(block, rising)
        if len(rising):
            labels = assign(self.features.project(block, self.matrix), model._centers)
            fitted = np.asarray(model.labels_[rising])
            if np.mean((labels != fitted) & (fitted >= 0)) > CHANGED_SHARE:
                raise ValueError(
                    "X holds other samples than the model was fitted on: pass the same"
                )
        return [to_host(F)[positions] for F in self.features.of(block)]


Source = FromKernels | FromViews | FromFeatures


def _of_views(samples: Samples, empty: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return which views lack which samples, or have empty rows of them; None if none."""
    return _empty_or_missing(samples, [empty.get(name) for name in samples.names])


def _of_kernels(samples: Samples, cross: bool) -> np.ndarray | None:
    """Return which kernels lack which samples, or have nothing but zeros of them; None if none."""
    if isinstance(samples.whole, RowSource):
        return samples.missing
    parts = samples.parts if samples.whole is None else single_kernels(samples.whole)
    return _empty_or_missing(samples, [zero_samples(part, cross) for part in parts])


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


def _as_stack(
    model: Any,
    kernels: Any,
    *,
    validate: bool,
    names: Sequence[str] | None = None,
    views: Sequence[int] | None = None,
    **numbers: Any,
) -> KernelStack:
    """Return kernels centered, scaled and repaired as a model asks for."""
    return as_stack(
        kernels,
        center=model.center,
        normalize=model.normalize,
        psd=model.psd,
        validate=validate,
        names=names,
        views=views,
        fill=model.table_options.fill_rule,
        **numbers,
    )


def _of_training_samples(kernels: Any) -> Any:
    """Return kernels of the samples that a model was fitted on, or refuse those of others."""
    if not kernels.of_training_samples:
        raise ValueError("X holds other samples than the model was fitted on: pass the same")
    return kernels


def _match_views(samples: Samples, bank: KernelBank) -> Samples:
    """Return views in the order of those that a bank was fitted on, or say how they differ."""
    if set(samples.names) != set(bank.views_):
        raise ValueError(
            f"X has the views {list(samples.names)}, the model was fitted on {list(bank.views_)}: "
            "pass the same views"
        )
    samples.check_columns(bank.columns_, "model")
    return samples.only(list(bank.views_))


def _n_fitted(model: Any) -> int:
    """Return how many samples a model of precomputed kernels was fitted on."""
    return model.n_features_in_ if model._covered is None else len(model._covered)


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


def _only_view(samples: Samples, name: str) -> Samples:
    """Return one view, of the samples that it has."""
    return replace(samples.only([name]), kind="views", missing=None)


def _check_same_missing(samples: Samples, fitted: np.ndarray | None) -> None:
    """Refuse samples that are missing from other views than those that a model was fitted on."""
    missing = samples.missing
    is_same = missing is not None and fitted is not None and np.array_equal(missing, fitted)
    if not is_same:
        raise ValueError(
            "X lacks other samples than the model was fitted on, view by view: pass the same, with "
            "observed as it was in the fit by way of mkclust.samples.read_samples"
        )


def _check_same(
    names: Sequence[str], new: Sequence[Standardization], fitted: Sequence[Standardization]
) -> None:
    """Refuse kernels whose diagonals, or means over the samples, are not those of the fit."""
    for name, a, b in zip(names, new, fitted, strict=True):
        differences = [np.abs(to_host(a.diagonal) - to_host(b.diagonal)).max()]
        if a.row_means is not None and b.row_means is not None:
            differences.append(np.abs(to_host(a.row_means) - to_host(b.row_means)).max())
        if max(differences) > ROUNDING * np.abs(to_host(b.diagonal)).max():
            raise ValueError(
                f"{name} is not the kernel that the model was fitted on: its means over the "
                "samples, or its diagonal, differ; pass the same kernels, samples in the same order"
            )


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
    """Return scikit-learn's attribute for the names of columns, where there are any."""
    return {} if names is None else {"feature_names_in_": names}
