"""Parameters of an estimator as annotated fields, written once."""

from dataclasses import MISSING, dataclass, field
from typing import Any, Literal, dataclass_transform

from sklearn.base import BaseEstimator


def learned(default: Any = MISSING, *, init: Literal[False] = False) -> Any:
    """Return a field that a fit sets: not a parameter; absent before unless it has a default."""
    return field(default=default, init=init)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, learned))
class Parameters(BaseEstimator):
    """A scikit-learn estimator whose parameters are its annotated fields, those of bases included.

    Fields are keyword-only unless they say ``field(default=..., kw_only=False)``. What is annotated
    as ``ClassVar``, or set to ``learned()``, is not a parameter. A class may still have an
    ``__init__`` of its own.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Write the ``__init__`` of a class that has none."""
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def _options(self, *names: str) -> dict[str, Any]:
        """Return some parameters by name, for a solver that takes the same ones."""
        return {name: getattr(self, name) for name in names}
