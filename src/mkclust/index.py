"""Which row is which sample: one rule for everything that has an index.

An index holds ids unless it is 0, 1, ..., n - 1 in this order, as the default index of
a frame is.

- If both sides have ids, rows are matched by id. Numbers match the same numbers as
  text, and dates match their text (2020-01-31), as after a round trip through a CSV
  file. If both sides have a MultiIndex with the same names, its levels are matched by
  these. Ids that are missing or duplicated are refused, and so are two sides without a
  common id.
- If one side has whole numbers for ids and the other the default index, the latter
  counts as the ids 0, 1, ..., n - 1. Numbers outside this range are refused.
- If neither side has ids, or one has other ids and the other the default index, rows
  are matched by position, and their numbers must be equal. The tables of a fit are
  refused in the latter case.
- Arrays have no index. Their rows are in the order of the samples. If the samples come
  from arrays alone, a table whose index holds whole numbers in another order is
  refused: its index could number the samples, and its rows could be in their order.
"""

import re
from collections.abc import Collection, Iterable
from datetime import date
from typing import Any, NoReturn

import numpy as np
import pandas as pd

# What messages call the samples of a model, and how to have rows paired by position
# instead.
FITTED = "the samples that the model was fitted on"
BY_ROW = "reset_index(drop=True) on every frame pairs by row"

_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")
# Other signs between letters and numbers, and zeros before numbers, are often the same
# id.
_SEPARATORS = re.compile(r"(?<=[^\W_])[\W_]+(?=[^\W_])")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


def has_ids(index: Any) -> bool:
    """Return whether an index holds ids: anything but 0, 1, ..., n - 1 in order."""
    if index is None:
        return False
    return index.dropna().tolist() != list(range(len(index)))


def index_of(thing: Any) -> Any:
    """Return the index of a frame, a Series or AnnData, None for what has none."""
    index = getattr(thing, "obs_names", getattr(thing, "index", None))
    return index if hasattr(index, "get_indexer") else None


def make_index(ids: Any, names: Any, n_samples: int) -> Any:
    """Return the index of samples by ids, or by names of levels; None for neither."""
    if ids is None:
        return None if names is None else pd.RangeIndex(n_samples)
    if isinstance(ids, pd.Index):
        return ids
    if isinstance(ids, np.ndarray) and ids.dtype.hasobject:
        ids = ids.tolist()  # of an array of tuples, pandas makes no MultiIndex
    index = pd.Index(ids)
    if names is not None and len(names) == index.nlevels:
        return index.set_names(names)
    return index


def match_rows(
    rows: Any, samples: Any, who: str, whose: str = FITTED, *, every: bool = False
) -> np.ndarray:
    """Return the row of every sample, -1 for those without, which `every` refuses.

    Rows and samples are given by their index, or their number if they are an array's;
    messages call them who and whose.
    """
    if not isinstance(rows, int) and not isinstance(samples, int):
        if are_matched_by_id(rows, samples, who, whose):
            return _match_by_id(rows, samples, who, whose, every)
    elif not isinstance(rows, int):
        refuse_missing(rows, who)
        in_order = list(range(len(rows)))
        if has_ids(rows) and whole_numbers(rows) not in (None, in_order):
            raise ValueError(
                f"{who} has whole numbers for ids, not 0 to {len(rows) - 1} in this "
                f"order, and {whose} have no index: give both the same ids ({BY_ROW})"
            )

    n_rows = rows if isinstance(rows, int) else len(rows)
    n_samples = samples if isinstance(samples, int) else len(samples)
    if n_rows != n_samples:
        raise ValueError(
            f"{who} has {n_rows} rows, and there are {n_samples} of {whose}: pass one "
            "for each of these, or the same ids as index of both"
        )
    return np.arange(n_samples)


def _match_by_id(
    rows: Any, samples: Any, who: str, whose: str, every: bool
) -> np.ndarray:
    """Return the row of every sample by their ids, -1 for samples without a row."""
    refuse_repeated(rows, who)
    refuse_repeated(samples, whose)
    rows = written_like(rows, samples)
    found = find(rows, samples)
    lacking = samples[found < 0]
    if len(lacking) == len(samples):
        refuse_disjoint(rows, samples, who, whose)
    if every and len(lacking):
        raise ValueError(
            f"{who} lacks {len(lacking)} of {whose}, such as {_example(lacking)}: pass "
            "all of these"
        )
    return found


def are_matched_by_id(index: Any, other: Any, who: str, whose: str) -> bool:
    """Return whether two indexes are matched by id, or refuse them."""
    refuse_missing(index, who)
    refuse_missing(other, whose)
    named = [each for each in (index, other) if has_ids(each)]
    if len(named) != 1:
        return bool(named)
    numbers = whole_numbers(named[0])
    if numbers is None:
        return False
    n = len(other if named[0] is index else index)
    outside = [number for number in numbers if not 0 <= number < n]
    if outside:
        raise ValueError(
            f"{who} and {whose}: one has the default index 0 to {n - 1}, the other "
            f"numbers such as {outside[0]} for ids: give both the same ids ({BY_ROW})"
        )
    return True


def find(index: Any, ids: Any) -> np.ndarray:
    """Return where ids are in an index without duplicates, -1 for missing ones."""
    if index.nlevels == ids.nlevels:
        return index.get_indexer(ids)
    return np.full(len(ids), -1)


def whole_numbers(index: Any) -> list[int] | None:
    """Return ids that are whole numbers, also as text or floats; None if one is not."""
    numbers = []
    for value in index.tolist():
        found = _WHOLE.fullmatch(str(key_of(value)))
        if not found:
            return None
        numbers.append(int(found[1]))
    return numbers


def written_like(index: Any, other: Any) -> Any:
    """Return an index with ids and levels written as another's, if clear."""
    if index.nlevels != other.nlevels or not len(index):
        return index
    names = set(index.names) - {None}
    if 1 < len(names) == index.nlevels and names == set(other.names):
        index = index.reorder_levels(list(other.names))
    if index.nlevels == 1 and index.inferred_type == other.inferred_type:
        return index
    values = index.tolist()
    keys = list(map(key_of, values))
    others = {key_of(value): value for value in other.tolist()}
    if len(set(keys)) < len(keys) or len(others) < len(other):
        return index
    found = [others.get(key, value) for key, value in zip(keys, values, strict=True)]
    return pd.Index(found).set_names(other.names)


def key_of(value: Any) -> Any:
    """Return one text for a number and its text, and one for a date and its text."""
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if isinstance(value, str) and not _DATE.fullmatch(value):
        whole = _WHOLE.fullmatch(value)
        return whole[1] if whole else value
    if isinstance(value, str | date | np.datetime64):
        try:
            return pd.Timestamp(value).isoformat()
        except ValueError:
            return str(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def refuse_missing(index: Any, owner: str) -> None:
    """Refuse an index in which an id is missing."""
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    missing = np.flatnonzero(np.any([pd.isna(level) for level in levels], axis=0))
    if len(missing):
        raise ValueError(
            f"the index of {owner} lacks {len(missing)} ids, the first in row "
            f"{missing[0]}: give every row an id, or drop these rows"
        )


def refuse_repeated(ids: Any, owner: str) -> None:
    """Refuse ids of which some are there twice, and name one of these."""
    if not ids.is_unique:
        repeated = ids[ids.duplicated()]
        raise ValueError(
            f"{owner}: {len(repeated)} ids more than once, such as "
            f"{_example(repeated)}: keep one row per id, as "
            f"frame[~frame.index.duplicated()] does ({BY_ROW})"
        )


def refuse_disjoint(ids: Any, others: Any, who: str, whose: str) -> NoReturn:
    """Refuse two indexes without a common id."""
    examples = " and ".join(_example(each) for each in (ids, others) if len(each))
    advice = id_advice(ids, others) or "give the same samples the same ids"
    raise ValueError(
        f"{who} and {whose} have no ids in common, such as {examples}: {advice} "
        f"({BY_ROW})"
    )


def _example(ids: Any) -> str:
    return repr(ids[:1].tolist()[0])


def spelled_otherwise(ids: Iterable[Any], others: Iterable[Any]) -> str:
    """Return which ids are most likely the same, or nothing."""
    names = dict.fromkeys(map(str, ids))
    other_names = dict.fromkeys(map(str, others))

    by_key: dict[str, str] = {}
    for name in other_names:
        if name in names:
            continue
        for key in _simplified(name):
            by_key.setdefault(key, name)

    pairs = []
    for name in names:
        alike = [by_key[key] for key in _simplified(name) if key in by_key]
        if alike and name not in other_names:
            pairs.append((name, alike[0]))
    if not pairs:
        return ""

    (name, other), *more = pairs
    and_more = f", as do {len(more)} further pairs" if more else ""
    return f"{name!r} and {other!r} differ in spelling only{and_more}"


def _simplified(name: str) -> tuple[str, str]:
    """Return two simpler spellings of an id, which hide how it was typed."""
    lower = name.strip().casefold()
    return _ZEROS.sub("", _SEPARATORS.sub("-", lower)), "".join(lower.split())


def id_advice(ids: Any, others: Any) -> str:
    """Return advice that would make ids of two tables match, empty if there is none."""
    names = ids.tolist()
    other_names = others.tolist()
    alike = spelled_otherwise(names, other_names)
    if alike:
        return f"{alike}: write them alike"

    length = shared_length(names, other_names)
    if length is None:
        return ""
    common = {name[:length] for name in names} & {name[:length] for name in other_names}
    return (
        f"{len(common)} ids begin alike, such as with {min(common)!r}: keep "
        f"{length} characters by frame.index = frame.index.str[:{length}]"
    )


def shared_length(ids: Collection[Any], others: Collection[Any]) -> int | None:
    """Return how many first characters of ids agree with others, None if too few do.

    >>> shared_length(["A-1-01A", "A-2-01B"], ["A-2", "A-1"])
    3
    """
    if not all(isinstance(name, str) for name in [*ids, *others]):
        return None

    few = max(len({*ids} & {*others}), min(len(ids), len(others)) / 2, 1)
    for length in range(min(map(len, [*ids, *others]), default=0), 1, -1):
        cut = {name[:length] for name in ids}
        others_cut = {name[:length] for name in others}
        if len(cut) < len(ids) or len(others_cut) < len(others):
            return None  # different samples would have the same id

        common = cut & others_cut
        if len(common) > few and all(name[-1].isalnum() for name in common):
            return length
    return None
