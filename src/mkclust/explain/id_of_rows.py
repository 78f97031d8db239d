"""Tables that hold the ids of their samples in a column instead of the index."""

from collections.abc import Hashable
from typing import Any, Literal

import pandas as pd

from mkclust.data.no_features import has_name_of_ids
from mkclust.index import FITTED, has_ids, id_advice, whole_numbers, written_like
from mkclust.text import join_words


def with_ids(
    frame: pd.DataFrame, index: Any, who: str, *, has_index: bool = True
) -> tuple[pd.DataFrame, str]:
    """Return a frame by the ids of a fit, and the column that held these, if any.

    A column is used if each of its values is the id of one sample. Columns that hold
    some of the ids, or several that hold them all, are refused: rows would be matched
    by position otherwise. So is a default index for ids that are not numbers;
    `has_index` is whether there is an index.
    """
    if isinstance(index, int) or not has_ids(index):
        return frame, ""
    if has_ids(frame.index) and (index.nlevels > 1 or len(_shared(frame.index, index))):
        return frame, ""
    if index.nlevels > 1:
        return _with_levels(frame, index, who, has_index)

    places = range(frame.shape[1])
    uses = {place: _use(frame, place, index) for place in places}
    whole = [place for place, use in uses.items() if use == "all"]
    part = [place for place, use in uses.items() if use == "some"]
    if not whole and part:
        raise ValueError(_advice(frame, part[0], index, who))
    if not whole:
        _refuse_position(frame, index, who, has_index)
        return frame, ""

    first = frame.columns[whole[0]]
    ids = pd.Index(frame.iloc[:, whole[0]])
    if any(not ids.equals(pd.Index(frame.iloc[:, place])) for place in whole[1:]):
        doubles = (repr(frame.columns[place]) for place in whole)
        names = join_words(doubles)
        raise ValueError(
            f"{who}: each of the columns {names} holds the ids of {FITTED}: choose one "
            f"by frame.set_index({first!r})"
        )

    kept = [p for p in range(frame.shape[1]) if p not in whole]
    rest = frame.iloc[:, kept]
    return rest.set_axis(ids, axis=0), str(first)


def _with_levels(
    frame: pd.DataFrame, index: Any, who: str, has_index: bool
) -> tuple[pd.DataFrame, str]:
    """Return a frame indexed by its columns named as levels of the ids."""
    names = list(index.names)
    if None not in names and set(names) <= set(frame.columns):
        return frame.set_index(names), join_words(names)

    _refuse_position(frame, index, who, has_index)
    return frame, ""


def _refuse_position(
    frame: pd.DataFrame, index: Any, who: str, has_index: bool
) -> None:
    """Refuse rows without ids if those of the fit are not numbers of rows."""
    if not len(frame) or has_ids(frame.index) or whole_numbers(index) is not None:
        return

    cure = ""
    for place, name in enumerate(frame.columns):
        column = frame.iloc[:, place]
        is_text = all(isinstance(value, str) for value in column)
        advice = ""
        if is_text and column.is_unique:
            advice = id_advice(pd.Index(column), index)

        if advice:
            cure = f"its column {name!r} may hold ids, but {advice}"
            break
    if has_index and not cure:
        cure = (
            "pass frame.set_index(column) if a column holds its ids, or "
            "frame.set_axis(ids) with those of the model (sample_ids_) if its rows are "
            "in their order"
        )
    if cure:
        raise ValueError(
            f"{who} has no index of ids, and {FITTED} have ids such as "
            f"{index[:1].tolist()[0]!r}, so that its rows may be in another order: "
            f"{cure}"
        )


def _shared(ids: Any, index: Any) -> Any:
    """Return the ids of a table that are those of a fit, numbers also as text."""
    if ids.nlevels > 1:
        return ids[:0]
    return ids[written_like(ids, index).isin(index)]


def _use(frame: pd.DataFrame, place: int, index: Any) -> Literal["all", "some", "none"]:
    """Return whether all, some or none of the values of a column are ids of a fit.

    Numbers may be ids by chance, as ages are. Without the name of ids, they count as
    some if they all differ and all ids of the fit are among them, and else as none.
    """
    column = frame.iloc[:, place]
    known = column.dropna()
    different = pd.Index(known.unique())
    n_shared = 0
    if len(different):
        n_shared = len(_shared(different, index))

    if n_shared == 0:
        return "none"

    is_text = all(isinstance(value, str) for value in different)
    is_named = _is_named(frame.columns[place], index)
    all_differ = len(different) == len(column)
    if all_differ and n_shared == len(different) and (is_text or is_named):
        return "all"

    # From this share of its values on, a column of text that are ids of the samples
    # holds ids.
    least_share = 0.5
    if is_named or (is_text and n_shared >= least_share * len(different)):
        return "some"
    if all_differ and n_shared == len(index):
        return "some"
    return "none"


def _is_named(name: Hashable, index: Any) -> bool:
    return has_name_of_ids(name) or (index.name is not None and name == index.name)


def _advice(frame: pd.DataFrame, place: int, index: Any, who: str) -> str:
    """Return what keeps a column of ids from being used, and what to do about it."""
    name = frame.columns[place]
    column = frame.iloc[:, place]
    known = column.dropna()
    different = pd.Index(known.unique())
    others = different.difference(_shared(different, index))
    found = f"{who}: column {name!r} holds ids of {FITTED}, and the index none"

    if len(known) < len(column):
        n = len(column) - len(known)
        return (
            f"{found}: {n} of its cells are empty: drop these rows, then "
            f"set_index({name!r})"
        )
    if not known.is_unique:
        repeated = known[known.duplicated()].iloc[0]
        return (
            f"{found}: some are there more than once, such as {repeated!r}: keep one "
            f"row for each by frame.drop_duplicates({name!r}), then set_index({name!r})"
        )
    if len(others):
        return (
            f"{found}; it also holds others, such as {others[:1].tolist()[0]!r}: pass "
            f"frame.set_index({name!r}), which leaves the rows of others out"
        )
    return (
        f"{found}: pass frame.set_index({name!r}), or rename it if these are other "
        "numbers"
    )
