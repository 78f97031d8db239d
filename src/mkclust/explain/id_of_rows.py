"""Tables that hold the ids of their samples in a column instead of the index."""

from typing import Any

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
        # Columns may have the names of the levels of the ids.
        levels = list(index.names)
        if None not in levels and set(levels) <= set(frame.columns):
            return frame.set_index(levels), join_words(levels)
        _refuse_position(frame, index, who, has_index)
        return frame, ""

    uses: list[str] = [_use(frame.iloc[:, p], index) for p in range(frame.shape[1])]
    whole = [place for place, use in enumerate(uses) if use == "all"]
    if not whole and "some" in uses:
        raise ValueError(_advice(frame.iloc[:, uses.index("some")], index, who))
    if not whole:
        _refuse_position(frame, index, who, has_index)
        return frame, ""

    first = frame.columns[whole[0]]
    ids = pd.Index(frame.iloc[:, whole[0]])
    if any(not ids.equals(pd.Index(frame.iloc[:, place])) for place in whole[1:]):
        names = join_words(map(repr, frame.columns[whole]))
        raise ValueError(
            f"{who}: each of the columns {names} holds the ids of {FITTED}: choose one "
            f"by frame.set_index({first!r})"
        )

    kept = [place for place, use in enumerate(uses) if use != "all"]
    return frame.iloc[:, kept].set_axis(ids, axis=0), str(first)


def _refuse_position(
    frame: pd.DataFrame, index: Any, who: str, has_index: bool
) -> None:
    """Refuse rows without ids if those of the fit are not numbers of rows."""
    if not len(frame) or has_ids(frame.index) or whole_numbers(index) is not None:
        return

    cure = ""
    if has_index:
        cure = (
            "pass frame.set_index(column) if a column holds its ids, or "
            "frame.set_axis(ids) with those of the model (sample_ids_) if its rows are "
            "in their order"
        )
    for name, column in frame.items():
        is_text = column.is_unique and all(isinstance(value, str) for value in column)
        advice = id_advice(pd.Index(column), index) if is_text else ""
        if advice:
            cure = f"its column {name!r} may hold ids, but {advice}"
            break
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


def _use(column: pd.Series, index: Any) -> str:
    """Return whether all, some or none of the values of a column are ids of a fit.

    Numbers may be ids by chance, as ages are. Without the name of ids, they count as
    some if they all differ and all ids of the fit are among them, and else as none.
    """
    different = pd.Index(column.dropna().unique())
    n_shared = len(_shared(different, index))
    if n_shared == 0:
        return "none"

    is_text = all(isinstance(value, str) for value in different)
    is_named = has_name_of_ids(column.name) or column.name in {index.name} - {None}
    all_differ = len(different) == len(column)
    if all_differ and n_shared == len(different) and (is_text or is_named):
        return "all"
    # From half of its values on, a column of text that are ids holds ids.
    may_be = is_text and 2 * n_shared >= len(different)
    if is_named or may_be or (all_differ and n_shared == len(index)):
        return "some"
    return "none"


def _advice(column: pd.Series, index: Any, who: str) -> str:
    """Return what keeps a column of ids from being used, and what to do about it."""
    name = column.name
    known = column.dropna()
    found = f"{who}: column {name!r} holds ids of {FITTED}, and the index none"
    if len(known) < len(column):
        return (
            f"{found}: {len(column) - len(known)} of its cells are empty: drop these "
            f"rows, then set_index({name!r})"
        )
    if not known.is_unique:
        repeated = known[known.duplicated()].iloc[0]
        return (
            f"{found}: some are there more than once, such as {repeated!r}: keep one "
            f"row for each by frame.drop_duplicates({name!r}), then set_index({name!r})"
        )
    different = pd.Index(known)
    others = different.difference(_shared(different, index)).tolist()
    also = f"; it also holds others, such as {others[0]!r}" if others else ""
    return (
        f"{found}{also}: pass frame.set_index({name!r}), which leaves the rows of "
        "others out, or rename it if these are other numbers"
    )
