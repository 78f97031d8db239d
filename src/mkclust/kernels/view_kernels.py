"""What is learned from one view, and the kernels of several views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.data.blocks import fingerprint
from mkclust.data.distances import mean_squared_norm
from mkclust.data.tables import TABLE
from mkclust.kernels.computed import (
    ComputedKernel,
    ComputedKernels,
    JoinedNeighborhoods,
)
from mkclust.kernels.formulas import (
    MEASURES,
    Formula,
    Measure,
    Points,
    select_points,
)
from mkclust.kernels.kinds import RULES
from mkclust.kernels.neighbors import (
    Neighborhoods,
    dissimilarities_from,
    find_neighborhoods,
    find_training_samples,
    linked_neighborhoods,
)
from mkclust.kernels.preparations import (
    Logarithm,
    Preparation,
    are_strongly_skewed,
)
from mkclust.linalg import (
    Stored,
    as_csr,
    astype,
    dense_rows,
    free_bytes,
    is_foreign,
    namespace,
    pair_ranges,
    precision_of,
    require_memory,
    to_device,
    to_host,
)
from mkclust.types import Array, Float


@dataclass(frozen=True, kw_only=True)
class ViewKernels(Stored):
    """What is learned from one view: preparation, kernels and their neighborhoods."""

    name: str  # name of the view
    view: Any = field(repr=False)  # the training rows
    columns: list[str] | None = field(repr=False)  # their names, if they have names
    fingerprint: str | None  # of training rows in a file
    kind: str  # the name of the rule that the kernels follow
    preparation: Preparation  # applied to rows first
    formulas: tuple[Formula, ...]  # the kernels of prepared rows
    # The measures they are functions of, and the mean squared norm of prepared training
    # rows.
    measures: dict[str, Measure] = field(default_factory=dict)
    scale: float = 1.0
    # The share of neighborhoods in every kernel; 1 if it contains nothing else.
    share: float = 0.0
    neighborhoods: tuple[Neighborhoods | None, ...] = ()  # those of each kernel
    # The row sums of a kernel without its neighborhoods, if they were computed along
    # with these.
    sums: Any = field(default=None, repr=False)

    # The rule that the kernels follow.
    rule = property(lambda self: RULES[self.kind])
    # Whether its kernels are positive semidefinite by construction.
    is_definite = property(lambda self: self.share == 1 or self.rule.is_definite)
    # The median dissimilarity of two training rows, if that is a width.
    median = property(lambda self: self.measures[self.formulas[0].measure].median)

    def learn(self) -> "ViewKernels":
        """Return a copy with scales and measures learned from the training rows."""
        rows = self.prepared(self.view)
        scale = mean_squared_norm(self.name, rows)
        names = dict.fromkeys(formula.measure for formula in self.formulas)
        measures = {each: MEASURES[each].learn(self.name, rows) for each in names}
        nothing = (None,) * len(self.formulas)
        return replace(self, measures=measures, scale=scale, neighborhoods=nothing)

    @property
    def kernel_names(self) -> list[str]:
        """The names of the kernels, unique over all views."""
        if len(self.formulas) == 1:
            return [self.name]
        prefix = "" if self.name == TABLE else f"{self.name} "
        return [f"{prefix}{formula.name}" for formula in self.formulas]

    @property
    def ignores_zeros(self) -> bool:
        """Whether rows of zeros carry no information."""
        if self.rule.of_pairs:
            return False
        by_all = all(measure.ignores_zeros for measure in self.measures.values())
        return self.preparation.ignores_zeros or by_all

    def read(self, rows: Array) -> Array:
        """Return new rows in the form of the training rows, sparse or on their device.

        Training rows in a file must still be those of the fit.
        """
        # A view in a file is in memory after the bank was stored and loaded.
        now = fingerprint(self.view)
        if self.fingerprint and now is not None and now != self.fingerprint:
            raise ValueError(
                f"View {self.name!r} is in a file that has changed since the bank was "
                "fitted, and new samples are compared with what it holds: fit again, "
                "or fit on an array in memory, such as numpy.array(view)."
            )
        if issparse(self.view):
            return as_csr(rows)
        return to_device(dense_rows(rows), self.view)

    def is_training(self, rows: Array) -> bool:
        """Return whether rows are the training rows, all of them in their order."""
        if rows.shape != self.view.shape or issparse(rows) != issparse(self.view):
            return False
        if issparse(rows):
            return (rows != self.view).nnz == 0
        return rows is self.view or bool(namespace(rows).all(rows == self.view))

    def prepared(self, rows: Array) -> Array:
        """Return rows as the measures take them."""
        if rows is self.view:
            return self.preparation.apply_to_training(rows)
        return self.preparation.apply(rows)

    def points(
        self,
        prepared: Array,
        training: dict[str, Points] | None = None,
    ) -> dict[str, Points]:
        """Return prepared rows as points by measure; new rows take those of the fit."""
        known = training or {}
        return {
            name: each.points(prepared, known.get(name))
            for name, each in self.measures.items()
        }

    def self_similarity(self, rows: Array, precision: str) -> list[Array]:
        """Return every kernel between rows and themselves, (n_rows,) each."""
        prepared = self.prepared(rows)
        values = []
        for formula in self.formulas:
            own = formula.of_itself(self.measures[formula.measure], prepared)
            values.append(astype((1 - self.share) * own + self.share, precision))
        return values

    def with_neighborhoods(self, size: int, share: float) -> "ViewKernels":
        """Find the neighborhoods of the training samples; kernels share equal ones."""
        # Kernels that fall with the same distances have the same neighbors.
        keys = [
            each if self.measures[each.measure].is_similarity else each.measure
            for each in self.formulas
        ]
        sums = None
        if share < 1 and len(self.formulas) == 1 and not is_foreign(self.view):
            sums = np.zeros(self.view.shape[0])
        found = {
            key: self._find_neighborhoods(size, formula, sums)
            for key, formula in dict(zip(keys, self.formulas, strict=True)).items()
        }
        neighborhoods = tuple(found[key] for key in keys)
        return replace(self, share=share, neighborhoods=neighborhoods, sums=sums)

    def _find_neighborhoods(
        self,
        size: int,
        formula: Formula,
        sums: Float | None,
    ) -> Neighborhoods:
        """Return the neighborhoods by a kernel, whose sums are filled on the way."""
        measure = self.measures[formula.measure]
        rows = astype(self.prepared(self.view), "float64")
        points = measure.points(rows)
        lengths = formula.norms_in_feature_space(measure, rows)

        def compute(part: slice) -> Array:
            """Return the dissimilarities of some samples to all."""
            compared = measure.compare(select_points(points, part), points)
            if measure.is_similarity or sums is not None:
                entries = formula.entries(compared)
            if sums is not None:
                sums[part] = entries.sum(axis=1)
            if measure.is_similarity:
                compared = dissimilarities_from(
                    entries / lengths[part][:, None] / lengths
                )
            return compared

        parts = pair_ranges(rows.shape[0], rows.shape[0], rows)
        return find_neighborhoods(size, compute, parts, rows)

    def kernels(self, precision: str) -> "list[ComputedKernel]":
        """Return the kernels of the training samples."""
        points: dict[str, Any] = dict.fromkeys(self.measures)
        if self.share < 1:
            points = self.points(self.prepared(self.view))
        # Kernels share equal neighborhoods.
        unlike = dict.fromkeys(self.neighborhoods)
        shared = {found: found and found.kernel() for found in unlike}
        diagonals = self.self_similarity(self.view, precision)
        return [
            ComputedKernel(
                formula,
                self.measures[formula.measure],
                points[formula.measure],
                points[formula.measure],
                shared[found],
                self.share,
                diagonal,
                self.sums,
            )
            for formula, found, diagonal in zip(
                self.formulas, self.neighborhoods, diagonals, strict=True
            )
        ]

    def kernels_of_new(
        self,
        rows: Array,
        samples: np.ndarray | None,
    ) -> "list[ComputedKernel]":
        """Return the kernels of rows; samples say which are training samples."""
        if is_foreign(rows):  # other libraries do not mix number types
            rows = astype(rows, precision_of(self.view))
        known = self.prepared(self.view)
        new = self.prepared(rows)
        if samples is not None:  # neighborhoods are found in double precision
            known = astype(known, "float64")
            new = astype(new, "float64")
        y = self.points(known)
        x = self.points(new, training=y)

        joined: dict[Any, Any] = {None: None}
        kernels = []
        for formula, found in zip(self.formulas, self.neighborhoods, strict=True):
            name = formula.measure
            measure = self.measures[name]
            if found is not None and samples is not None and found not in joined:
                lengths = None
                if measure.is_similarity:
                    lengths = (
                        formula.norms_in_feature_space(measure, new),
                        formula.norms_in_feature_space(measure, known),
                    )
                joined[found] = JoinedNeighborhoods(found, samples, lengths)
            own = (measure, x[name], y[name], joined[found], self.share)
            kernels.append(ComputedKernel(formula, *own, None))
        return kernels

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods that it consists of; None if of more."""
        if self.share == 1:
            return list(self.neighborhoods)
        of_all = None
        if self.kind == "graph":
            of_all = linked_neighborhoods(self.view)
        return [of_all] * len(self.formulas)

    def explain(self, reason: str | None) -> str:
        """Say what was made of the view, and why, if there is a reason."""
        kind = "" if reason is None else f"{self.kind} ({reason}); "
        kernels = self.formulas[0].name
        if len(self.formulas) > 1:
            kernels = f"{len(self.formulas)} kernels"
        found = self.neighborhoods[0]
        if found is not None:
            near = f"shared neighborhoods of {found.size} neighbors"
            if self.share == 1:
                kernels = f"{near} by {kernels}"
            else:
                kernels = f"{kernels} and {near}"
        width = "" if self.median is None else f", median distance {self.median:.3g}"
        rows = str(self.preparation)
        if self.may_need_logarithms():
            rows += " (strongly skewed: log2(x + 1)?)"
        return f"{self.name}: {kind}{rows}; {kernels}{width}"

    def may_need_logarithms(self) -> bool:
        """Return whether columns that could be scaled are strongly skewed."""
        is_scaled = self.rule.has_units and not isinstance(self.preparation, Logarithm)
        return is_scaled and are_strongly_skewed(self.view)


def precision_of_kernels(views: Sequence[ViewKernels]) -> str:
    """Return the number type of the kernels of views: the widest of these."""
    return max(precision_of(view.view) for view in views)


def self_similarities_of(
    views: Sequence[ViewKernels],
    rows: Mapping[str, Array],
) -> Array:
    """Return k(x, x) of every row, by views, and kernel, (n_kernels, n_rows)."""
    precision = precision_of_kernels(views)
    values: list[Array] = []
    for view in views:
        values += view.self_similarity(rows[view.name], precision)
    similarities = namespace(*values).stack(values)
    if all(view.share == 1 for view in views):
        return to_host(similarities)
    return similarities


def kernels_of(
    views: Sequence[ViewKernels],
    new: Mapping[str, Array] | None = None,
    *,
    on_the_fly: bool = False,
) -> Array | ComputedKernels | list[Any]:
    """Return the kernels of some views, of training samples or of new ones with these.

    They are an array, or a source if they are computed on the fly; a list if kernels
    that consist of neighborhoods, which are factored matrices, are among them.
    """
    source = _source_of(views, new)
    known = views[0].view
    numbered = enumerate(source.kernels)
    dense = [p for p, kernel in numbered if kernel.share < 1]
    if dense and on_the_fly:
        return source

    # Sparse matrices are on the host: kernels on a device are all written out there.
    written = source if dense and is_foreign(known) else source.only(dense)
    m, n_rows, n = written.shape
    fewer = "" if new is None else ", or pass fewer new samples at a time"
    require_memory(
        m * n_rows * n * np.dtype(source.number_type).itemsize,
        f"holding {m} kernels of {n_rows} x {n} entries",
        f"pass on_the_fly=True to compute them when they are asked for{fewer}",
        available=free_bytes(known),
    )
    entries = written.all_rows()
    if m == source.n_kernels:
        return entries
    following = iter(entries if dense else ())
    return [
        source.of_neighborhoods(p) if kernel.share == 1 else next(following)
        for p, kernel in enumerate(source.kernels)
    ]


def _source_of(
    views: Sequence[ViewKernels],
    new: Mapping[str, Array] | None,
) -> ComputedKernels:
    """Return the kernels of views as a source of rows, none of which is computed."""
    precision = precision_of_kernels(views)
    known = views[0].view
    n_rows = n = known.shape[0]
    if new is None:
        kernels = [kernel for view in views for kernel in view.kernels(precision)]
    else:
        samples = None
        if any(view.share for view in views):
            training = {view.name: view.view for view in views}
            samples = find_training_samples(new, training)
        kernels = [
            kernel
            for view in views
            for kernel in view.kernels_of_new(new[view.name], samples)
        ]
        n_rows = next(iter(new.values())).shape[0]
    return ComputedKernels(tuple(kernels), n_rows, n, precision, known[:1, :])
