"""The p-value below which two views agree, in numbers and in words."""

import math
from typing import Any

import numpy as np

from mkclust.agreements.alignments import ORDERS

# The p-value below which two views agree, times the square of the number of samples,
# ...
LIMIT_TIMES_SQUARE = 1.5
# ... if it is not lower than this, ...
LOWEST_LIMIT = 1e-5
# ... or higher than this.
HIGHEST_LIMIT = 1e-3


def p_value_limit(n_samples: Any) -> Any:
    """Return the p-value below which two views agree: `limit_rule` in numbers.

    Chosen by benchmarks/agreement_limit.py. It does not depend on the number of views:
    a view that agrees with none must not exclude another.
    """
    limits = LIMIT_TIMES_SQUARE / np.maximum(n_samples, 1.0) ** 2
    return np.clip(limits, LOWEST_LIMIT, HIGHEST_LIMIT)


def limit_rule() -> str:
    """Return in words the p-value below which two views agree.

    >>> limit_rule()  # doctest: +NORMALIZE_WHITESPACE
    '1.5 / n^2 for n samples, but at most 1e-3 (up to 38 samples) and at least 1e-5
    (from 388 on)'
    """
    last_high = math.floor(math.sqrt(LIMIT_TIMES_SQUARE / HIGHEST_LIMIT))
    first_low = math.ceil(math.sqrt(LIMIT_TIMES_SQUARE / LOWEST_LIMIT))
    highest = f"{HIGHEST_LIMIT:.0e}".replace("e-0", "e-")
    lowest = f"{LOWEST_LIMIT:.0e}".replace("e-0", "e-")
    return (
        f"{LIMIT_TIMES_SQUARE} / n^2 for n samples, but at most {highest} (up to "
        f"{last_high} samples) and at least {lowest} (from {first_low} on)"
    )


def p_text(value: float, sign: str = "") -> str:
    """Return a p-value in one digit after a sign; as a bound if it is one.

    Those in the far tail are below 1e-16, and the smallest that shuffled samples give
    have "<=" as their sign.
    """
    if value < 1e-16:
        return "< 1e-16" if sign else "<1e-16"

    # The smallest p-value by shuffled samples, and twice it.
    least = 1 / ORDERS**2
    if math.isclose(value, least) or math.isclose(value, 2 * least):
        sign = "<= "
    return f"{sign}{value:.1g}"


def limit_text(value: float) -> str:
    """Return the limit of a p-value in one digit."""
    return f"{value:.1g}"
