"""What a user asks of tables: how they are split into views, joined and filled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkclust.parameters import Choice, Rule, check_parameter


def _are_columns(views: Any) -> bool:
    """Return whether every view is a prefix, a slice or a list of columns."""
    if not isinstance(views, Mapping) or not views:
        return views is None
    lists = str | list | tuple | np.ndarray
    return all(
        isinstance(name, str)
        and (isinstance(each, slice) or (isinstance(each, lists) and len(each) > 0))
        for name, each in views.items()
    )


# What the parameters may be that say how tables become views.
TABLE_RULES = {
    "views": Rule(
        _are_columns,
        "pass None, or a dict from names of views to their columns in one table: a "
        "list of names or numbers, a slice of numbers, or the prefix of their names",
    ),
    "join": Choice(("exact", "inner", "outer")),
    "impute": Choice((None, "median")),
    "missing_views": Choice((None, "learn", "zero", "rescale")),
}


@dataclass(frozen=True, eq=False)
class TableOptions:
    """How tables become views of the same samples: parameters of every method."""

    views: Mapping[str, Any] | None = None
    join: str = "exact"
    impute: str | None = None
    missing_views: str | None = None

    def __post_init__(self) -> None:
        for name, rule in TABLE_RULES.items():
            check_parameter(name, getattr(self, name), rule)

    @property
    def fill_rule(self) -> Literal["zero", "rescale"]:
        """The rule for samples that views lack, before anything is learned of them."""
        if self.missing_views in (None, "rescale"):
            return "rescale"
        return "zero"


# Tables as they come: ids the same, and no cell missing.
AS_THEY_ARE = TableOptions()
