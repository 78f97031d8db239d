"""What values a parameter may have, and the sentence that refuses the others."""

import math
import numbers
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Allowed(Protocol):
    """The values that a parameter may have."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of them."""

    def advice(self) -> str:
        """Return what to pass, in words."""


@dataclass(frozen=True)
class Number:
    """A finite number in an interval.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    open_low, open_high : bool
        Whether an end is left out.
    """

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a value is such a number."""
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            return False
        number = float(value)
        above = number > self.low if self.open_low else number >= self.low
        below = number < self.high if self.open_high else number <= self.high
        return math.isfinite(number) and above and below

    def advice(self) -> str:
        """Return what to pass, in words."""
        if math.isinf(self.high):
            return (
                f"pass a number {'greater than' if self.open_low else 'of at least'} {self.low:g}"
            )
        ends = zip((self.low, self.high), (self.open_low, self.open_high), strict=True)
        excluded = " and ".join(f"{end:g}" for end, is_open in ends if is_open)
        between = f"pass a number between {self.low:g} and {self.high:g}"
        return f"{between} ({excluded} excluded)" if excluded else between


@dataclass(frozen=True)
class Count:
    """A whole number of at least one."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is such a number."""
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return is_integer and int(value) >= 1

    def advice(self) -> str:
        """Return what to pass, in words."""
        return "pass an integer of at least 1"


@dataclass(frozen=True)
class ClusterCount(Count):
    """A number of clusters, which the data may suggest beforehand."""

    def advice(self) -> str:
        """Return what to pass, in words."""
        return f"{super().advice()}; mkclust.suggest_n_clusters(X) finds one that the data support"


@dataclass(frozen=True)
class Flag:
    """True or False, and nothing that merely counts as one of them."""

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of the two."""
        return isinstance(value, bool | np.bool_)

    def advice(self) -> str:
        """Return what to pass, in words."""
        return "pass True or False"


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of them."""
        value = value.item() if isinstance(value, np.generic) else value
        # By type as well, since True equals 1.
        return any(type(value) is type(allowed) and value == allowed for allowed in self.values)

    def advice(self) -> str:
        """Return what to pass, in words."""
        if len(self.values) == 1:
            return f"pass {self.values[0]!r}"
        return f"choose one of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True)
class Either:
    """What one or another allows."""

    first: Allowed
    second: Allowed

    def holds(self, value: Any) -> bool:
        """Return whether one of the two allows a value."""
        return self.first.holds(value) or self.second.holds(value)

    def advice(self) -> str:
        """Return what to pass, in words."""
        return f"{self.first.advice()}, or {self.second.advice()}"


def check_parameter(name: str, value: Any, allowed: Allowed) -> None:
    """Refuse a value that a parameter may not have, by the parameter's name."""
    if not allowed.holds(value):
        raise ValueError(f"{name}={value!r}: {allowed.advice()}")
