"""What a bank learns from one view."""

from dataclasses import dataclass

from mkclust.kernels.chosen_rules import ChosenRule
from mkclust.kernels.formulas import Formula
from mkclust.kernels.kinds import formulas_of
from mkclust.kernels.pairs import PairFormula
from mkclust.kernels.preparations import Preparation
from mkclust.linalg import is_foreign
from mkclust.linalg.sparse_rows import rows_from
from mkclust.samples.distances import drawn_rows, mean_squared_norm, median_distance, middle
from mkclust.types import Array


@dataclass(frozen=True)
class NeighborhoodPart:
    """What kernels of a view are mixed with: shared neighborhoods.

    Attributes
    ----------
    size : int
        Number of neighbors.
    share : float
        The share of them in a kernel; 1 where nothing else is in it.
    """

    size: int
    share: float


@dataclass(frozen=True)
class LearnedView:
    """What a bank learns from one view.

    Attributes
    ----------
    preparation : Preparation
        What is done to rows.
    formulas : tuple of Formula
        The kernels of rows so prepared.
    scale, median : float
        Mean squared norm of a training row, and median distance between two; no median without
        kernels that are as wide as it.
    origin : array of shape (n_features,)
        What distances are computed from.
    """

    preparation: Preparation
    formulas: tuple[Formula, ...]
    scale: float
    median: float | None
    origin: Array

    @classmethod
    def of(
        cls, name: str, view: Array, chosen: ChosenRule, bank_formulas: tuple[Formula, ...]
    ) -> "LearnedView":
        """Learn from the training rows of a view."""
        preparation, formulas = chosen.learn(view), formulas_of(chosen.rule, bank_formulas)
        rows, median = preparation.apply_to_training(view), None
        scale = mean_squared_norm(name, rows)
        # Distances do not depend on the origin, and inner products give them to more digits the
        # closer it is; the median stays close despite outliers.
        origin = middle(rows)
        if any(formula.steepness for formula in formulas):
            # On a device only those rows that are drawn anyway are brought to float64.
            some = drawn_rows(rows) if is_foreign(rows) else rows
            median = median_distance(name, rows_from(origin, some))
        elif isinstance(formulas[0], PairFormula):
            learned = formulas[0].learn(name, rows)
            formulas, median = (learned,), learned.median
        return cls(preparation, formulas, scale, median, origin)
