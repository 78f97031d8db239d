"""Which columns are times and events of survival, by their names and values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mkclust.text import join_words
from mkclust.types import Float

# Words in the names of columns of times and events; some are joined to the word before.
TIMES = {"time", "day", "days", "week", "weeks", "month", "months", "year", "years"}
EVENTS = {"event", "status"}
GLUED = re.compile(r"(?<=[a-z])(time|event|status)$")
# What is followed up: usual abbreviations, and other words for them.
ENDPOINTS = {"", "os", "pfs", "dfs", "rfs", "efs", "dss", "css", "mfs", "dmfs", "pfi", "dfi", "ttp"}
WORDS = {
    "": "to_event",
    "os": "survival overall_survival to_death death dead died deceased vital follow_up followup "
    "to_last_follow_up to_last_followup",
    "pfs": "progression_free progression_free_survival to_progression progression progressed",
    "dfs": "disease_free disease_free_survival",
    "rfs": "relapse_free relapse_free_survival recurrence_free to_relapse to_recurrence relapse "
    "relapsed recurrence",
}
ENDPOINT_OF = {word: end for end, words in WORDS.items() for word in words.split()}
# These belong together if neither has a partner of its own endpoint: "time" and "dead".
SIMILAR = {"": "os", "os": ""}
# The values that mean an event, and those that mean none.
HAPPENED = {"1", "dead", "deceased", "died", "death", "event", "yes", "true", "progressed"}
HAPPENED |= {"progression", "recurred", "relapsed", "relapse", "recurrence", "recurred/progressed"}
CENSORED = {"0", "alive", "living", "censored", "no", "false", "diseasefree", "disease free"}


def read_events(values: Float, levels: Sequence[str]) -> Float | None:
    """Return 1 for events and 0 for censored, given numbers or codes of levels; None if neither."""
    if not levels:
        return values if np.isin(values[np.isfinite(values)], (0, 1)).all() else None
    # "1:DECEASED" means 1.
    words = [re.sub(r"^([01])\s*:.*", r"\1", level.strip().lower()) for level in levels]
    if not set(words) <= HAPPENED | CENSORED:
        return None
    marks = np.array([*(float(word in HAPPENED) for word in words), np.nan])
    return marks[np.where(np.isfinite(values), values, -1).astype(int)]


def named_survival(
    columns: Mapping[str, tuple[Float, Sequence[str]]], time: Any, event: Any
) -> list[tuple[str, str]]:
    """Return the pairs of times and events that were asked for, or refuse them."""
    times, events = (
        [each] if isinstance(each, str) else list(each or ()) for each in (time, event)
    )
    if len(times) != len(events):
        raise ValueError(f"time={time!r}, event={event!r}: name one event per time")
    for name in (*times, *events):
        if name not in columns:
            raise ValueError(f"there is no column {name!r} among {join_words(columns)}")
    for name, mark in zip(times, events, strict=True):
        if columns[name][1]:
            raise ValueError(f"time {name!r} holds categories: pass numbers")
        if read_events(*columns[mark]) is None:
            raise ValueError(
                f"event {mark!r}: pass 0 or 'alive' for censored, and 1 or 'dead' for an event"
            )
    return list(zip(times, events, strict=True))


class SurvivalName(NamedTuple):
    """What the name of a column says of survival."""

    is_time: bool
    is_event: bool
    endpoint: str  # such as "os"; "" if the name is of times or events alone

    @property
    def is_bare(self) -> bool:
        """Whether it is the name of an endpoint alone, which may be a time or an event."""
        return not (self.is_time or self.is_event) and self.endpoint in ENDPOINTS


def read_name(name: str) -> SurvivalName:
    """Return what the name of a column says of survival."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    words = GLUED.sub(r"_\1", key).split("_")

    is_time = not TIMES.isdisjoint(words)
    is_event = not EVENTS.isdisjoint(words)

    kind = TIMES if is_time else EVENTS
    rest = "_".join(word for word in words if word not in kind)
    return SurvivalName(is_time, is_event, ENDPOINT_OF.get(rest, rest))


def usual_survival(
    columns: Mapping[str, tuple[Float, Sequence[str]]],
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs of times and events with usual names, and times without events."""
    times, events = dict[str, str](), dict[str, str]()
    for name, column in columns.items():
        is_time, is_event, endpoint = said = read_name(name)
        if (is_event or said.is_bare) and not is_time and read_events(*column) is not None:
            events.setdefault(endpoint, name)
        elif (is_time or said.is_bare) and not column[1]:
            times[name] = endpoint
    found = {name: events.pop(end) for name, end in times.items() if end in events}
    for name, end in times.items():
        if name not in found and SIMILAR.get(end) in events:
            found[name] = events.pop(SIMILAR[end])
    lonely = [name for name, end in times.items() if name not in found and end in ENDPOINTS]
    return list(found.items()), lonely
