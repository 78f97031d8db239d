"""What a model was fitted on: kernels, or views of a bank.

For views by their features see `mkclust.fit.from_features`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, validate_data

from mkclust.data.adjust import adjust_again, adjust_like
from mkclust.data.check import check_masks, check_view
from mkclust.data.missing import single_kernels, zero_samples
from mkclust.data.samples import Samples, read_samples, read_views
from mkclust.data.tables import TABLE
from mkclust.exceptions import MissingViewsWarning, warn
from mkclust.fit.embedding import (
    UNCOVERED,
    Extension,
    Similarities,
    is_training,
    matrix_at,
    numbers_of,
)
from mkclust.fit.memory_checks import require_memory_beside_kernels
from mkclust.fit.neighborhoods import NeighborhoodExtension
from mkclust.index import make_index
from mkclust.kernels import KernelBank
from mkclust.kernels.bank import match_views
from mkclust.kernels.computed import ComputedKernels
from mkclust.kernels.kinds import RULES
from mkclust.kernels.neighbors import Neighborhoods
from mkclust.kernels.view_kernels import (
    ViewKernels,
    kernels_of,
    self_similarities_of,
)
from mkclust.linalg import (
    arrays_to_host,
    check_one_place,
    is_foreign,
    select,
    to_device,
    to_host,
    zeros,
)
from mkclust.stack import (
    RowSource,
    Stack,
    as_numbers,
    as_stack,
    raw_kernels,
    repair_by,
    row_sums,
)
from mkclust.stack.checks import describe, symmetrized
from mkclust.stack.stack import RawKernel
from mkclust.text import join_words
from mkclust.types import Array, Float

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer

# The refusal of dask arrays for exact kernels.
LAZY = (
    "X holds dask arrays, and exact kernels are computed in this process: pass NumPy "
    "arrays, or fit with an approximation, such as mkclust.kernels.Nystroem(200)"
)
# The refusal of samples that differ from those of the fit.
OTHER_SAMPLES = "X holds other samples than the model was fitted on: pass the same"


def training_index(model: MultipleKernelClusterer) -> pd.Index | None:
    """Return the index of a fit's samples: ids, 0, 1, ... of frames, None of arrays."""
    ids = getattr(model, "sample_ids_", None)
    return make_index(ids, model._source.given.index_names, len(model.labels_))


@dataclass(frozen=True, kw_only=True)
class TrainingInput:
    """What a model was fitted on, as far as it needs it; the defaults are for views."""

    # What was read, without its arrays: names, ids, missing samples, columns and notes.
    given: Samples
    # How kernels were centered, scaled, filled and embedded; set by the fit, None for
    # features.
    extension: Any = None
    # Numbers of columns of the views, by name; empty for kernels.
    widths: dict[str, int] = field(default_factory=dict)

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods that kernels consist of, by name; None if of more."""
        return {}

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the precomputed kernels."""
        return ()

    @property
    def has_pairs(self) -> bool:
        """Whether a view's columns are its samples, as in distances and links."""
        return False

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of a view or kernel say nothing, by its number, if any."""
        raise NotImplementedError(f"{type(self).__name__} must define zero_rows")

    def similarities(
        self, model: MultipleKernelClusterer, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return similarities of new samples to the training samples, by kernel."""
        raise NotImplementedError(f"{type(self).__name__} must define similarities")

    def of_kernels(self, by_view: np.ndarray) -> np.ndarray:
        """Return columns of kernels, given those of views, (n, n_views) to (n, m)."""
        return by_view

    @property
    def observed(self) -> np.ndarray | None:
        """Which kernels have which samples, (n, m) of bool; None if all have all."""
        if self.given.missing is None:
            return None
        return self.of_kernels(~self.given.missing)

    def read(
        self,
        model: MultipleKernelClusterer,
        X: Any,
        observed: Any = None,
        *,
        is_new: bool = False,
        adjust: Any = None,
    ) -> Samples:
        """Read views, and rows of frames, in the order of the fit, or refuse them."""
        samples = read_views(
            X,
            ids=None if is_new else training_index(model),
            options=model.table_options,
            encodings=self.given.encodings,
            observed=observed,
        )
        if not is_new:
            return adjust_again(self.given, self.match(model, samples, ()))

        samples = self.with_absent(model, samples, self.widths)
        samples = self.match(model, samples, self.unused(model))
        return adjust_like(self.given, samples, adjust)

    def rows_of_fit(self) -> dict[str, Array]:
        """Return rows of samples of the fit by view, as far as features are kept."""
        return {}

    def with_absent(
        self,
        model: MultipleKernelClusterer,
        samples: Samples,
        widths: Mapping[str, int],
    ) -> Samples:
        """Return new samples with the views, or kernels, that they may lack."""
        given = set(samples.names)
        used = set(widths) - set(self.unused(model))
        absent = [name for name in widths if name in used - given]
        if not absent or not self.may_lack_views(model) or not given <= set(widths):
            return samples

        missing = join_words(map(repr, absent))
        if not used & given:
            raise ValueError(
                f"X has {join_words(map(repr, samples.names))} only, and the model "
                f"uses {missing}: pass at least one of these"
            )
        warn(
            f"X lacks {missing}, which the model uses: taken as missing from every new "
            "sample",
            MissingViewsWarning,
        )
        return with_unused(samples, widths, absent)

    def may_lack_views(self, model: MultipleKernelClusterer) -> bool:
        """Return whether new samples may lack views: some of the fit did, or could."""
        return model.table_options.join == "outer" or self.given.missing is not None

    def match(
        self, model: MultipleKernelClusterer, samples: Samples, unused: Sequence[str]
    ) -> Samples:
        """Return views in the order of the fit, or refuse others."""
        samples = with_unused(samples, self.widths, unused)
        return match_views(samples, self.widths, self.given.columns)

    def unused(self, model: MultipleKernelClusterer) -> list[str]:
        """Return the views, or kernels, that embedding new samples does not need."""
        used = np.asarray(model._used_kernels)
        if self.extension is not None:
            used = used | self.extension.active
        is_kernels = self.given.kind == "kernels"
        names = model.kernel_names_ if is_kernels else self.given.names
        of_view = self.of_kernels(np.eye(len(names), dtype=bool))
        is_used = (of_view & used).any(axis=1)
        return [name for name, own in zip(names, is_used, strict=True) if not own]

    def empty(self, samples: Samples) -> np.ndarray:
        """Return which kernels have nothing of which samples, (n, m) of bool."""
        empty = np.zeros((samples.n_samples, count_parts(samples)), bool)
        if samples.missing is not None:
            empty |= samples.missing
        for number, rows in self.zero_rows(samples).items():
            seen = np.flatnonzero(~empty[:, number])
            if len(seen) == len(rows):  # kernels of other samples are refused elsewhere
                empty[seen[rows], number] = True
        return self.of_kernels(empty)

    def isolated(self, empty: np.ndarray) -> np.ndarray:
        """Return which kernels find no neighbor of which fitted samples, (n, m)."""
        found = np.zeros_like(empty)
        for p, neighborhoods in enumerate(self.neighborhoods.values()):
            if neighborhoods is not None:
                found[self.seen_by(p), p] = neighborhoods.isolated()
        return found

    def seen_by(self, kernel: int) -> Any:
        """Return what selects the samples that a kernel has."""
        return slice(None) if self.observed is None else self.observed[:, kernel]

    def embed(
        self, model: MultipleKernelClusterer, samples: Samples, self_similarity: Any
    ) -> tuple[Array, np.ndarray]:
        """Embed new samples, and say which kernels find them no neighbor, (n, m)."""
        similarities = self.similarities(model, samples, self_similarity)
        rows = self.extension.embed(similarities, samples.n_samples)
        return rows, self.without_neighbors(model, similarities, samples.n_samples)

    def without_neighbors(
        self,
        model: MultipleKernelClusterer,
        similarities: Sequence[Similarities],
        n_new: int,
    ) -> np.ndarray:
        """Return which kernels find new samples no neighbor with a cluster, (n, m)."""
        kernels = enumerate(self.neighborhoods.values())
        by_neighbors = {p for p, each in kernels if each is not None}
        found = np.zeros((n_new, len(model.kernel_names_)), bool)
        fitted = numbers_of(model._covered, len(model.labels_))
        has_cluster = (to_host(model.labels_)[fitted] != UNCOVERED).astype(float)
        for part in similarities:
            own = [(i, p) for i, p in enumerate(part.kernels) if p in by_neighbors]
            if not own:
                continue
            for rows, matrices in part.blocks():
                for place, p in own:
                    cross = matrix_at(matrices, place)
                    counts = to_device(has_cluster[self.seen_by(p)], cross)
                    found[part.rows[rows], p] = to_host(cross @ counts) <= 0
        return found


@dataclass(frozen=True, kw_only=True)
class FromKernels(TrainingInput):
    """Precomputed kernels: new samples come as similarities to the training samples."""

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the kernels, all of which are precomputed."""
        return range(len(self.extension.names))

    def stack(self, model: MultipleKernelClusterer, samples: Samples) -> Stack:
        """Return the kernels to fit on, if there is memory for a fit beside them."""
        options = model._options("center", "normalize", "psd")
        stack = as_stack(samples, fill=model.table_options.fill_rule, **options)
        stack = replace(stack, groups=samples.groups)
        if samples.encodings:
            stack = replace(stack, views=samples.source_numbers)
        require_memory_beside_kernels(model, stack)
        return stack

    def read(
        self,
        model: MultipleKernelClusterer,
        X: Any,
        observed: Any = None,
        *,
        is_new: bool = False,
        adjust: Any = None,
    ) -> Samples:
        """Read kernels, and their columns, in the order of the fit, or refuse them."""
        if adjust is not None:
            raise ValueError("adjust= belongs to views, and X holds kernels")
        samples = read_samples(
            X,
            expected="precomputed",
            ids=training_index(model),
            cross=is_new,
            observed=observed,
        )
        names = model.kernel_names_
        if is_new and set(samples.names) < set(names):
            widths = dict.fromkeys(names, len(model.labels_))
            samples = self.with_absent(model, samples, widths)
            samples = with_unused(samples, widths, self.unused(model))
        count = count_parts(samples)
        if count != len(names):
            raise ValueError(
                f"X has {count} kernels, the model was fitted on {len(names)}"
            )
        # No names given.
        if samples.names in ((), tuple(f"kernel {p}" for p in range(count))):
            return samples
        missing = [name for name in names if name not in samples.names]
        if missing:
            raise ValueError(
                f"X lacks the kernel {missing[0]!r}, it has {list(samples.names)}"
            )
        return samples.only(names)

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return samples of which a kernel has only zeros, by its number, if any."""
        zero = enumerate(zero_samples(part) for part in samples.parts)
        return {number: rows for number, rows in zero if rows is not None}

    def similarities(
        self, model: MultipleKernelClusterer, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return similarities of new samples to the training samples, by kernel."""
        names = model.kernel_names_
        seen = np.ones((samples.n_samples, len(names)), bool)
        if samples.missing is not None:
            seen = ~samples.missing
        own: list[Any] = [None] * len(names)
        if self_similarity is not None:
            own = check_self_similarity(self.extension, self_similarity, seen.T)
        kernels = list(map(as_numbers, samples.parts, names))
        check_one_place(kernels, names)
        found = []
        for p, K in enumerate(kernels):
            rows = np.flatnonzero(seen[:, p])
            cross = self._training_columns(model, p, K, len(rows))
            row_sums(cross, names[p])  # refuses what is not finite
            is_known = is_training(self.extension.standardizations[p], cross)
            if is_known:
                cross = symmetrized(cross, names[p])
            lengths = None if own[p] is None else own[p][None]
            found.append(Similarities([p], rows, [cross], lengths, is_known))
        return found

    def _training_columns(
        self, model: MultipleKernelClusterer, p: int, K: Array, n_new: int
    ) -> Array:
        """Return the columns of those training samples that a kernel has."""
        fitted = numbers_of(model._covered, len(model.labels_))
        n = len(fitted)
        if n < len(model.labels_) and K.ndim == 2 and K.shape[1] == len(model.labels_):
            K = select(K, fitted, axis=1)

        has = np.arange(n)[self.seen_by(p)]
        n_observed = len(has)
        if K.ndim != 2 or K.shape[0] != n_new or K.shape[1] not in (n, n_observed):
            raise ValueError(
                f"{model.kernel_names_[p]} has the shape {tuple(K.shape)}: expected "
                f"similarities of {n_new} new samples (rows) to the {n} training "
                f"samples (columns), or to the {n_observed} that it has"
            )
        if K.shape[1] == n_observed:
            return K
        return select(K, has, axis=1)


@dataclass(frozen=True, kw_only=True)
class FromViews(TrainingInput):
    """Views, with a bank that makes kernels of them: new samples come as views."""

    bank: KernelBank

    def of_kernels(self, by_view: np.ndarray) -> np.ndarray:
        """Return columns of kernels, given those of views, (n, n_views) to (n, m)."""
        return by_view[:, list(self.bank.kernel_views_)]

    @property
    def given_kernels(self) -> Sequence[int]:
        """The numbers of the precomputed kernels among those of tables."""
        is_given = [rule == "precomputed" for rule in self.bank.rules_.values()]
        return [p for p, view in enumerate(self.bank.kernel_views_) if is_given[view]]

    @property
    def has_pairs(self) -> bool:
        """Whether a view's columns are its samples, as in distances and links."""
        return any(RULES[kind].of_pairs for kind in self.bank.rules_.values())

    @property
    def neighborhoods(self) -> dict[str, Neighborhoods | None]:
        """The neighborhoods, or links, that kernels consist of; None if of more."""
        return dict(
            zip(self.bank.kernel_names_, self.bank.lone_neighborhoods(), strict=True)
        )

    def rows_of_fit(self) -> dict[str, Array]:
        """Return the training views, without those of similarities."""
        rules = self.bank.rules_
        return {
            n: rows for n, rows in self.bank.views_.items() if rules[n] != "precomputed"
        }

    @property
    def parts(self) -> list[tuple[ViewKernels, list[int]]]:
        """What was learned of each view, and the numbers of its kernels."""
        views = enumerate(self.bank.learned_views_)
        owners = np.asarray(self.bank.kernel_views_)
        return [(view, np.flatnonzero(owners == i).tolist()) for i, view in views]

    def match(
        self, model: MultipleKernelClusterer, samples: Samples, unused: Sequence[str]
    ) -> Samples:
        """Return views in the order of the fit, or refuse others."""
        if samples.is_lazy and not isinstance(self.extension, NeighborhoodExtension):
            raise ValueError(LAZY)
        if samples.kind == "table" and [*self.widths] == [TABLE]:
            return check_new_table(model, samples)
        used = [name for name in samples.names if name not in unused]
        if used and not samples.is_lazy:
            samples = samples.only(used)  # what unused views hold must not matter
        return super().match(model, samples, unused)

    def zero_rows(self, samples: Samples) -> dict[int, np.ndarray]:
        """Return which rows of a view count as empty, by its number, if known."""
        zero = self.bank.empty_rows(samples.views)
        return {samples.names.index(name): rows for name, rows in zero.items()}

    def stack(self, model: MultipleKernelClusterer) -> Stack:
        """Return the kernels of the views, checked if one may be indefinite."""
        names = self.bank.kernel_names_
        sources = self.given.source_numbers
        samples: list[np.ndarray | None] = [None] * len(names)
        n_samples = None
        if self.observed is not None:
            samples = [np.flatnonzero(has) for has in self.observed.T]
            n_samples = len(self.observed)

        raw: list[RawKernel] = []
        for view, numbers in self.parts:
            labels = [describe(p, names[p]) for p in numbers]
            observed = [samples[p] for p in numbers]
            raw += raw_kernels_of(view, labels, observed, model, self.bank.on_the_fly)

        are_definite = all(view.is_definite for view, _ in self.parts)
        stack = Stack.of(
            raw,
            names,
            # Parts of one table count as one view: they prove nothing about each other.
            [sources[view] for view in self.bank.kernel_views_],
            **model._options("center", "normalize"),
            fill=model.table_options.fill_rule,
            n_samples=n_samples,
            repair=None if are_definite else repair_by(model.psd),
        )
        return replace(
            stack, groups=self.given.groups, covariates=self.given.covariates
        )

    def similarities(
        self, model: MultipleKernelClusterer, samples: Samples, self_similarity: Any
    ) -> list[Similarities]:
        """Return the similarities of new samples, view by view."""
        names = self.bank.kernel_names_
        given = {}
        if self_similarity is not None:
            seen = np.zeros((len(names), samples.n_samples), bool)
            seen[list(self.given_kernels)] = True
            values = check_self_similarity(self.extension, self_similarity, seen)
            given = {p: values[p] for p in self.given_kernels}

        views = samples.views
        observed = samples.observed
        found = []
        for view, numbers in self.parts:
            rows = observed[view.name]
            if not len(rows):
                continue
            new = {view.name: view.read(views[view.name])}
            is_known = view.is_training(new[view.name])
            own = self_similarities_of([view], new)
            for place, p in enumerate(numbers):
                if p in given:
                    own[place, :] = to_device(given[p][rows], own)
            compared = None if is_known else new
            cross = kernels_of([view], compared, on_the_fly=self.bank.on_the_fly)
            found.append(Similarities(numbers, rows, cross, own, is_known))
        return found


def without_arrays(samples: Samples, *notes: str) -> Samples:
    """Return what is kept of the samples of a fit, with further notes."""
    return replace(samples, parts=(), table_notes=(*samples.table_notes, *notes))


def raw_kernels_of(
    view: ViewKernels,
    labels: Sequence[str],
    observed: Sequence[np.ndarray | None],
    model: MultipleKernelClusterer,
    on_the_fly: bool,
) -> list[RawKernel]:
    """Return the kernels of a view, written out if the model needs their entries."""
    made = kernels_of([view], on_the_fly=on_the_fly)
    if isinstance(made, ComputedKernels):
        if not model.NEEDS_ENTRIES:
            return raw_kernels(made, labels, observed, not view.is_definite)
        made = made.all_rows()
    parts = made if isinstance(made, list) else single_kernels(made)
    raw: list[RawKernel] = []
    for part, label, has in zip(parts, labels, observed, strict=True):
        raw += raw_kernels(part, [label], [has], not view.is_definite)
    return raw


def with_unused(
    samples: Samples, widths: Mapping[str, int], unused: Collection[str]
) -> Samples:
    """Return samples with unused views, or kernels, that they lack, as missing."""
    absent = [n for n in widths if n in unused and n not in samples.names]
    is_read_in_rows = any(isinstance(part, RowSource) for part in samples.parts)
    if not absent or samples.is_lazy or is_read_in_rows:
        return samples

    n = samples.n_samples
    like = samples.parts[0] if is_foreign(samples.parts[0]) else np.zeros(0)
    missing = samples.missing
    if missing is None:
        missing = np.zeros((n, len(samples.names)), bool)
    added = [zeros((0, widths[name]), like) for name in absent]
    return replace(
        samples,
        names=(*samples.names, *absent),
        parts=(*samples.parts, *added),
        missing=np.hstack([missing, np.ones((n, len(absent)), bool)]),
    )


def count_parts(samples: Samples) -> int:
    """Return the number of views or kernels."""
    return sum(getattr(part, "n_kernels", 1) for part in samples.parts)


def check_new_table(model: MultipleKernelClusterer, samples: Samples) -> Samples:
    """Return one new table, compared with that of the fit as scikit-learn does."""
    (table,) = samples.parts
    if is_foreign(table):  # on a device, which scikit-learn does not know
        return samples
    options: dict[str, Any] = {
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,
        "accept_sparse": "csr",
    }
    # An array of encoded columns, compared by name already.
    if TABLE in samples.columns:
        checked = check_array(table, **options)
    else:
        checked = validate_data(model, table, reset=False, **options)
    return replace(samples, parts=(check_view(checked, "X"),))


def check_self_similarity(
    extension: Extension, self_similarity: Any, seen: np.ndarray
) -> list[Float]:
    """Return self-similarities of those new samples that each kernel has seen."""
    if isinstance(self_similarity, pd.DataFrame):
        raise TypeError(
            "self_similarity is a data frame, whose ids are not compared with those of "
            "X: pass an array, with rows in the order of the kernels and columns in "
            "that of the new samples"
        )
    check_masks(self_similarity, "self_similarity")
    values = to_host(arrays_to_host(self_similarity))
    if values.shape != seen.shape:
        raise ValueError(
            f"self_similarity has the shape {values.shape}, expected {seen.shape}: "
            "one row per kernel, one column per new sample"
        )
    # A kernel that was repaired may have had negative ones.
    are_repaired = np.array([each.is_repaired for each in extension.standardizations])
    least = np.where(are_repaired, -np.inf, 0.0)
    wrong = seen & ~(np.isfinite(values) & (values >= least[:, None]))
    if np.any(wrong):
        kernel, sample = np.argwhere(wrong)[0]
        raise ValueError(
            f"self_similarity is {values[kernel, sample]:g} for "
            f"{extension.names[kernel]} and new sample {sample}, one of "
            f"{int(wrong.sum())} entries that cannot be k(x, x): they are NaN, "
            "infinite or negative"
        )
    return [own[has] for own, has in zip(values, seen, strict=True)]
