"""What is learned from one view: how its rows are prepared, and its kernels."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkclust.kernels.chosen_rules import ChosenRule
from mkclust.kernels.computed import ComputedKernels
from mkclust.kernels.formulas import Formula, Gaussian
from mkclust.kernels.kinds import RULES, Rule, formulas_of
from mkclust.kernels.neighbors import (
    Links,
    Neighborhoods,
    SimilarityLists,
    closeness,
    join_by_similarity,
    join_nearest,
    lengths_of,
    linked_neighborhoods,
    nearest_neighborhoods,
)
from mkclust.kernels.points import Points, Units
from mkclust.kernels.preparations import Preparation
from mkclust.linalg import arrays_to_host, astype, is_foreign, namespace, precision_of, to_host
from mkclust.linalg.sparse_rows import rows_from, stored_entries
from mkclust.samples.distances import drawn_rows, mean_squared_norm, median_distance, middle
from mkclust.types import Array


@dataclass(frozen=True, kw_only=True)
class ViewKernels:
    """What is learned from one view: its preparation, its kernels and their neighborhoods."""

    name: str  # name of the view
    view: Any = field(repr=False)  # the training rows
    kind: str  # the name of the rule that the kernels follow
    preparation: Preparation  # what is done to rows first
    formulas: tuple[Formula, ...]  # the kernels of prepared rows, with what they learned
    units: Units  # origin, median distance and mean squared norm of the prepared training rows
    median: float | None  # the median dissimilarity, if a kernel is as wide as it
    size: int | None = None  # number of neighbors, if kernels contain neighborhoods
    share: float = 0.0  # the share of neighborhoods in every kernel; 1 if it contains nothing else
    neighborhoods: tuple[Neighborhoods, ...] = ()  # one per kernel, or none at all

    @classmethod
    def learn(
        cls, name: str, view: Array, chosen: ChosenRule, bank_formulas: tuple[Formula, ...]
    ) -> "ViewKernels":
        """Learn from the training rows of a view, without neighborhoods."""
        preparation = chosen.learn(view)
        rows, median = preparation.apply_to_training(view), None
        scale, origin = mean_squared_norm(name, rows), middle(rows)
        formulas = formulas_of(chosen.rule, bank_formulas)
        if any(isinstance(formula, Gaussian) for formula in formulas):
            # Only the rows that are drawn anyway are brought to float64 on a device.
            some = drawn_rows(rows) if is_foreign(rows) else rows
            median = median_distance(name, rows_from(origin, some))
        else:
            formulas = tuple(formula.learn(name, rows, origin) for formula in formulas)
        units = Units(origin, median or 1.0, scale)
        median = median if median else formulas[0].median
        return cls(
            name=name,
            view=view,
            kind=chosen.rule.kind,
            preparation=preparation,
            formulas=formulas,
            units=units,
            median=median,
        )

    def with_neighborhoods(self, size: int, share: float, *, as_links: bool) -> "ViewKernels":
        """Find the neighborhoods of the training samples; kernels with the same ones share them."""
        prepared, found = self.prepared(self.view), dict[Any, Neighborhoods]()
        for index, formula in enumerate(self.formulas):
            key = self._search(index)
            if key in found:
                continue
            if self.kind == "distances":
                lists = SimilarityLists(size, None)
                for block in closeness(prepared, _mean_entry(prepared)):
                    lists.add(block)
                found[key] = lists.result()
            elif formula.neighbors_by == "entries":
                kernel = ComputedKernels.of([self._alone(index)], None, precision_of(self.view))
                lists = SimilarityLists(size, lengths_of(to_host(kernel.diagonal()[0, :])))
                for _, blocks in kernel.blocks():
                    lists.add(blocks[0])
                found[key] = lists.result()
            else:
                by_cosine = formula.neighbors_by == "cosine"
                found[key] = nearest_neighborhoods(prepared, size, cosine=by_cosine)
        every = [found[self._search(index)] for index in range(len(self.formulas))]
        if as_links:
            links = {id(each): Links(each.members, each.kth_similarity) for each in every}
            every = [links[id(each)] for each in every]
        return replace(self, size=size, share=share, neighborhoods=tuple(every))

    def _search(self, index: int) -> Any:
        """Return what tells kernels with the same neighbors from others."""
        by = self.formulas[index].neighbors_by
        return index if by == "entries" and self.kind != "distances" else by

    def _alone(self, index: int) -> "ViewKernels":
        """Return one of the kernels, without its neighborhoods."""
        formulas = self.formulas[index : index + 1]
        return replace(self, formulas=formulas, neighborhoods=(), share=0.0)

    def shared(self, rows: Array | None, samples: np.ndarray | None) -> tuple[Any, ...]:
        """Return the similarities by neighborhoods, one sparse matrix per kernel.

        Parameters
        ----------
        rows : array of shape (n_new, n_features) or None
            New rows of the view; None for the training rows.
        samples : ndarray of int of shape (n_new,) or None
            Which training samples they are, -1 for none.
        """
        made: dict[int, Any] = {}
        for index, each in enumerate(self.neighborhoods):
            if id(each) not in made:
                made[id(each)] = (
                    each.kernel()
                    if rows is None or samples is None
                    else each.cross(*self._join(index, rows), samples)
                )
        return tuple(made[id(each)] for each in self.neighborhoods)

    def _join(self, index: int, rows: Array) -> tuple[Any, Any]:
        """Return whose neighborhoods new rows join by a kernel, and who is in their own."""
        formula, each, size = self.formulas[index], self.neighborhoods[index], self.size
        assert size is not None
        training, prepared = self.prepared(self.view), self.prepared(rows)
        if self.kind == "distances":
            return join_by_similarity(each, size, closeness(prepared, _mean_entry(training)))
        if formula.neighbors_by != "entries":
            by_cosine = formula.neighbors_by == "cosine"
            return join_nearest(each, size, prepared, training, cosine=by_cosine)
        alone, precision = self._alone(index), precision_of(self.view)
        lengths = (
            lengths_of(to_host(alone.self_similarity(some, precision)[0, :]))
            for some in (rows, self.view)
        )
        kernel = ComputedKernels.of([alone], [rows], precision)
        blocks = (blocks[0] for _, blocks in kernel.blocks())
        return join_by_similarity(each, size, blocks, *lengths)

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods or links that it consists of; None if of more."""
        if self.share == 1:
            return list(self.neighborhoods)
        of_graph = linked_neighborhoods(self.view) if self.kind == "graph" else None
        return [of_graph] * len(self.formulas)

    def explain(self, rules: Any, asked: Any) -> str:
        """Say what was made of the view, and why, given the rules and what was asked for."""
        asked_for = asked is not None and getattr(asked, "kernel", "") != "auto"
        reason = "asked for" if asked_for else self.rule.why
        kind = f"{self.kind} ({reason}); " if rules is not None else ""
        start, n_kernels = f"{self.name}: {kind}{self.preparation}; ", len(self.formulas)
        kernels = str(self.formulas[0]) if n_kernels == 1 else f"{n_kernels} kernels"
        width = "" if self.median is None else f", median distance {self.median:.3g}"
        if self.neighborhoods:
            near = f"shared neighborhoods of {self.size} neighbors"
            if self.kind == "distances":
                return f"{start}{near} by these distances"
            kernels = f"{near} by {kernels}" if self.share == 1 else f"{kernels} and {near}"
        return f"{start}{kernels}{width}"

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they are."""
        return vars(self) | {"view": arrays_to_host(self.view)}

    @property
    def rule(self) -> Rule:
        """The rule that the kernels follow."""
        return RULES[self.kind]

    @property
    def ignores_zeros(self) -> bool:
        """Whether rows of zeros say nothing."""
        return not self.rule.of_pairs and (
            self.preparation.ignores_zeros
            or all(formula.ignores_zeros for formula in self.formulas)
        )

    def prepared(self, rows: Array) -> Array:
        """Return rows as the formulas take them."""
        if rows is self.view:
            return self.preparation.apply_to_training(rows)
        return self.preparation.apply(rows)

    def points(self, rows: Array, precision: str, training: Points | None = None) -> Points:
        """Return rows in the coordinates of the formulas; training points for other rows only."""
        prepared, made = self.prepared(rows), dict[str, Array]()
        precision = precision if is_foreign(self.view) else "float64"
        for formula in {type(each): each for each in self.formulas}.values():
            if training is None:
                made |= formula.coordinates(prepared, self.units, precision)
            else:
                made |= formula.coordinates_of_new(prepared, self.units, precision, training)
        return Points(made, self.units)

    def rows(self, X: Array) -> Array:
        """Return the similarities of rows to the training rows, (n_kernels, n_rows, n_samples)."""
        views = None if X is self.view else [X]
        return ComputedKernels.of([self], views, precision_of(self.view)).all_rows()

    def self_similarity(self, X: Array, precision: str) -> Array:
        """Return the kernels between rows and themselves, (n_kernels, n_rows)."""
        prepared, values = self.prepared(X), []
        for index, formula in enumerate(self.formulas):
            own = formula.self_similarity(prepared, self.units)
            if self.share:
                near = self.neighborhoods[index].self_similarity()
                own = (1 - self.share) * own + self.share * near
            values.append(astype(own, precision))
        return namespace(*values).stack(values)


def _mean_entry(distances: Array) -> float:
    """Return the mean of given distances, their unit; one if all are zero."""
    entries, (n, m) = astype(stored_entries(distances), "float64"), distances.shape
    return float(namespace(entries).sum(entries)) / (n * m) or 1.0
