"""What rows and solves of a benchmark must look like: checked once, where they are read."""

import json
from collections.abc import Callable
from typing import Any

# How a repetition may have ended; "time" and "memory" are limits that were met.
STATUSES = ("ok", "failed", "skipped", "time", "memory")
# Scores are sums of shares, which rounding may take above one by so much.
ROUNDING = 1e-9
LARGEST = 1e300

# What a value may be, and how to say so.
Rule = tuple[Callable[[Any], bool], str]


def _is_number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> bool:
    """Whether a value is a finite number within bounds; a NaN is within none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value, 0)


def _is_setting(value: Any) -> bool:
    try:
        return isinstance(value, str) and isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(each is None or _is_number(each) for each in value)


def _or_none(rule: Rule) -> Rule:
    holds, words = rule
    return (lambda value: value is None or holds(value), f"{words}, or null")


_NAME: Rule = (lambda value: isinstance(value, str) and value != "", "a name")
_TEXT: Rule = (lambda value: isinstance(value, str), "a text")
_FLAG: Rule = (lambda value: isinstance(value, bool), "true or false")
_COUNT: Rule = (_is_count, "a whole number of at least 0")
_NUMBER: Rule = (_is_number, "a finite number")
_SECONDS: Rule = (lambda value: _is_number(value, 0), "a finite number of at least 0")
_SHARE: Rule = (lambda value: _is_number(value, 0, 1 + ROUNDING), "a number from 0 to 1")
_INDEX: Rule = (lambda value: _is_number(value, -1 - ROUNDING, 1 + ROUNDING), "from -1 to 1")
_PART: Rule = (lambda value: _is_number(value, 0, 1) and value > 0, "above 0, at most 1")
_SETTING: Rule = (_is_setting, "the text of a JSON object")
_NUMBERS: Rule = (_are_numbers, "a list of finite numbers or null")
_NAMES: Rule = (
    lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "a list of texts",
)
_STATUS: Rule = (lambda value: value in STATUSES, f"one of {', '.join(STATUSES)}")

# What stands at the head of rows and of solves alike.
_HEAD: dict[str, Rule] = {
    "dataset": _NAME,
    "method": _NAME,
    "parameters": _SETTING,
    "resample": _PART,
    "repetition": _or_none(_COUNT),
    "gap": _or_none(_NUMBER),
}
_ROW: dict[str, Rule] = _HEAD | {
    "seed": _or_none(_COUNT),
    "acc": _or_none(_SHARE),
    "nmi": _or_none(_SHARE),
    "purity": _or_none(_SHARE),
    "ari": _or_none(_INDEX),
    "solve_seconds": _or_none(_SECONDS),
    "n_iter": _or_none(_COUNT),
    "status": _STATUS,
}
_SOLVE: dict[str, Rule] = _HEAD | {
    "kernel_names": _NAMES,
    "weights": _or_none(_NUMBERS),
    "alignments": _or_none(_NUMBERS),
    "history": _or_none(_NUMBERS),
}
# What may be missing, but not be anything.
_OPTIONAL: dict[str, Rule] = {
    **dict.fromkeys(("paper", "caveat", "message", "machine", "versions", "entry"), _TEXT),
    **dict.fromkeys(("oracle", "default"), _FLAG),
    **dict.fromkeys(("n_samples", "n_kernels", "n_clusters"), _or_none(_COUNT)),
    **dict.fromkeys(("threads", "grid_repetitions", "n_repetitions"), _COUNT),
    **dict.fromkeys(("acc_std", "nmi_std", "purity_std", "ari_std"), _or_none(_SECONDS)),
    "converged": _or_none(_FLAG),
    "stability": _or_none(_INDEX),
    "lower_bounds": _or_none(_NUMBERS),
}


def check_row(row: Any) -> None:
    """Refuse what is no row of a benchmark, with a reason that goes on from where it was found.

    Parameters
    ----------
    row : object
        What a line holds.

    Raises
    ------
    ValueError
        If keys are missing, or values are not what they may be.
    """
    _check(row, _ROW)
    if row["status"] == "ok":
        for score in ("acc", "nmi", "purity"):
            if row[score] is None:
                raise ValueError(f"{score} is null in a row with the status 'ok'")


def check_solve(solve: Any) -> None:
    """Refuse what is no record of a solve, as `check_row` does.

    Parameters
    ----------
    solve : object
        What a line holds.

    Raises
    ------
    ValueError
        If keys are missing, or values are not what they may be.
    """
    _check(solve, _SOLVE)


def _check(row: Any, rules: dict[str, Rule]) -> None:
    """Refuse what breaks a rule."""
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    for key, (holds, words) in rules.items():
        if key not in row:
            raise ValueError(f"has no {key}")
        if not holds(row[key]):
            raise ValueError(f"{key} is {_short(row[key])}, not {words}")
    for key, (holds, words) in _OPTIONAL.items():
        if key in row and not holds(row[key]):
            raise ValueError(f"{key} is {_short(row[key])}, not {words}")


def _short(value: Any) -> str:
    """Return a value in few letters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
