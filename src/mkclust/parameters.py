"""The parameters of estimators: annotated fields, and what values they may have."""

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Rule:
    """The values that a parameter may have, and what to pass, in words."""

    holds: Callable[[Any], bool]
    advice: str


Allowed: TypeAlias = Rule


def Number(
    low: float, high: float = math.inf, open_low: bool = False, open_high: bool = False
) -> Allowed:
    """Allow finite numbers in an interval, whose ends may be excluded."""

    def test(value: Any) -> bool:
        if (
            not isinstance(value, Real)
            or isinstance(value, bool)
            or not math.isfinite(value)
        ):
            return False
        is_end = (open_low and value == low) or (open_high and value == high)
        return low <= float(value) <= high and not is_end

    if math.isinf(high):
        start = "greater than" if open_low else "of at least"
        return Rule(test, f"pass a number {start} {low:g}")
    advice = f"pass a number between {low:g} and {high:g}"
    ends = {low: open_low, high: open_high}
    excluded = " and ".join(f"{end:g}" for end, is_open in ends.items() if is_open)
    if excluded:
        advice += f" ({excluded} excluded)"
    return Rule(test, advice)


def Count(more: str = "", *, least: int = 1) -> Allowed:
    """Allow integers of at least 1, or more."""

    def test(value: Any) -> bool:
        return (
            isinstance(value, Integral)
            and not isinstance(value, bool)
            and int(value) >= least
        )

    return Rule(test, f"pass an integer of at least {least}{more}")


def Flag() -> Allowed:
    """Allow True and False."""
    return Rule(lambda value: isinstance(value, bool | np.bool_), "pass True or False")


def Choice(values: tuple[Any, ...]) -> Allowed:
    """Allow some values; 1 is not True."""

    def test(value: Any) -> bool:
        if isinstance(value, np.generic):
            value = value.item()

        return any(
            type(value) is type(allowed) and value == allowed for allowed in values
        )

    some = "pass" if len(values) == 1 else "choose one of"
    return Rule(test, f"{some} {', '.join(map(repr, values))}")


def Either(first: Allowed, second: Allowed) -> Allowed:
    """Allow what one or the other allows."""
    words = f"{first.advice}, or {second.advice}"
    return Rule(lambda value: first.holds(value) or second.holds(value), words)


def check_parameter(name: str, value: Any, allowed: Allowed) -> None:
    """Refuse a value that a parameter may not have, by the parameter's name."""
    if not allowed.holds(value):
        raise ValueError(f"{name}={value!r}: {allowed.advice}")


def learned(default: Any = MISSING, *, init: Literal[False] = False) -> Any:
    """Return a field that a fit sets, which is not a parameter."""
    return field(default=default, init=init)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, learned))
class Parameters(BaseEstimator):
    """A scikit-learn estimator whose parameters are its annotated fields.

    Fields are keyword-only unless they say ``field(default=..., kw_only=False)``. What
    is annotated as ``ClassVar``, or set to ``learned()``, is not a parameter. A class
    may still have an ``__init__`` of its own.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Write the ``__init__`` of a class that has none."""
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def _options(self, *names: str) -> dict[str, Any]:
        """Return some parameters by name, for a solver that takes the same ones."""
        return {name: getattr(self, name) for name in names}
