"""What a user asks of tables: how they are taken apart, joined and filled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkclust.parameters import Choice, check_parameter

# The values of ``join``.
JOINS = ("exact", "inner", "outer")
# What fills missing cells, and what stands for views that lack a sample, the default first.
CELLS, FILLS = ("median",), ("rescale", "zero", "learn")
# The values of ``impute``, beside pairs of one that fills cells and one that stands for views.
IMPUTATIONS = (None, "median", "zero", "rescale", "learn")


@dataclass(frozen=True, eq=False)
class TableOptions:
    """How tables become views of the same samples.

    Parameters
    ----------
    views : mapping of str to (list, slice or str) or None, default=None
        Takes one wide table apart: names of views to lists of columns, by name or by number, to
        slices of columns, or to the prefix that their names begin with.
    join : {"exact", "inner", "outer"}, default="exact"
        Whether data frames must have the same ids, or the samples that all of them have are kept,
        or all samples are, those included that are missing from some frames.
    impute : {None, "median", "zero", "rescale", "learn"} or a pair, default=None
        ``"median"`` fills missing cells with the median of their column, and those of categories
        with the most frequent one; without it they are refused. The others say what stands for a
        view that lacks a sample altogether, ``"rescale"`` where none is named. A pair such as
        ``("median", "learn")`` says both.
    """

    views: Mapping[str, Any] | None = None
    join: str = "exact"
    impute: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Refuse what no table could make sense of."""
        check_parameter("views", self.views, Selection())
        check_parameter("join", self.join, Choice(JOINS))
        check_parameter("impute", self.impute, Imputation())

    @property
    def cells(self) -> str | None:
        """What missing cells are filled with: ``"median"``, or None to refuse them."""
        return next((name for name in _names(self.impute) if name in CELLS), None)

    @property
    def names_fill(self) -> bool:
        """Whether it was said what stands for views that lack a sample."""
        return any(name in FILLS for name in _names(self.impute))

    @property
    def fill_rule(self) -> Literal["zero", "rescale"]:
        """What stands for views that lack a sample before anything is learned of it."""
        return "rescale" if self.fill == "rescale" else "zero"

    @property
    def fill(self) -> str:
        """What stands for views that lack a sample: ``"rescale"``, ``"zero"`` or ``"learn"``."""
        return next((name for name in _names(self.impute) if name in FILLS), FILLS[0])


@dataclass(frozen=True)
class Selection:
    """The values that ``views`` may have: None, or columns by the names of views."""

    def holds(self, value: Any) -> bool:
        """Return whether a value says which columns make which view."""
        if value is None:
            return True
        if not isinstance(value, Mapping) or not value:
            return False
        return all(isinstance(name, str) and _selects(each) for name, each in value.items())

    def advice(self) -> str:
        """Return what to pass, in words."""
        return (
            "pass None, or a dict from names of views to their columns in one table: a list of "
            "names or numbers, a slice of numbers, or the prefix of their names"
        )


@dataclass(frozen=True)
class Imputation:
    """The values that ``impute`` may have: None, a name, or a pair of one name of each sort."""

    def holds(self, value: Any) -> bool:
        """Return whether a value says how what is missing is treated."""
        if value is not None and not isinstance(value, str | tuple | list):
            return False
        names = _names(value)
        if not all(isinstance(name, str) and name in IMPUTATIONS for name in names):
            return False
        n_cells, n_fills = (sum(name in sort for name in names) for sort in (CELLS, FILLS))
        return n_cells <= 1 and n_fills <= 1 and (value is None or len(names) > 0)

    def advice(self) -> str:
        """Return what to pass, in words."""
        return (
            "pass None; 'median' to fill missing cells; 'rescale', 'zero' or 'learn' for what "
            "stands for views that lack a sample; or a pair of both such as ('median', 'learn')"
        )


def _names(impute: Any) -> tuple[Any, ...]:
    """Return the single names of a value of ``impute``."""
    if impute is None:
        return ()
    return (impute,) if isinstance(impute, str) else tuple(impute)


def _selects(choice: Any) -> bool:
    """Return whether something can say which columns a view has."""
    return isinstance(choice, slice) or (
        isinstance(choice, str | list | tuple | np.ndarray) and len(choice) > 0
    )


# Tables as they come: ids the same, and no cell missing.
AS_THEY_ARE = TableOptions()
