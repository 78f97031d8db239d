"""Which columns are times and events of survival, by their names and values."""

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.text import join_words
from mkclust.types import Float

# Words in the names of columns of times and events.
TIMES = {"time", "day", "days", "week", "weeks", "month", "months", "year", "years"}
EVENTS = {"event", "status"}

# What is followed up: usual abbreviations, and other words for them.
ENDPOINTS = {
    "",
    "os",
    "pfs",
    "dfs",
    "rfs",
    "efs",
    "dss",
    "css",
    "mfs",
    "dmfs",
    "pfi",
    "dfi",
    "ttp",
}
WORDS = {
    "": "to_event censored",
    "os": "survival overall_survival alive living survived survivor to_death death "
    "dead died "
    "deceased vital follow_up followup to_last_follow_up to_last_followup",
    "pfs": "progression_free progression_free_survival to_progression progression "
    "progressed",
    "dfs": "disease_free disease_free_survival",
    "efs": "event_free event_free_survival",
    "rfs": "relapse_free relapse_free_survival recurrence_free to_relapse "
    "to_recurrence relapse "
    "relapsed recurrence",
}
ENDPOINT_OF = {
    word: endpoint for endpoint, words in WORDS.items() for word in words.split()
}
# These belong together if neither has a partner of its own endpoint: "time" and "dead".
SIMILAR = {"": "os", "os": ""}
# Words in names of marks that are 1 for samples without an event, and those after which
# 1 may mean either: 1 is "survived" in some columns called survival, "died" in others.
NO_EVENT = {"alive", "living", "survived", "surviving", "survivor", "censored", "free"}
UNCLEAR = {"survival", "censor", "censoring", "no", "not", "non", "without"}
# The values that mean an event, and those that mean none, whatever the name of the
# column.
HAPPENED = {
    "dead",
    "deceased",
    "died",
    "death",
    "event",
    "progressed",
    "progression",
    "recurred",
    "relapsed",
    "relapse",
    "recurrence",
    "recurred/progressed",
    "dead with tumor",
}
CENSORED = {
    "alive",
    "living",
    "survived",
    "censored",
    "diseasefree",
    "disease free",
    "event free",
    "progression free",
    "recurrence free",
    "relapse free",
    "alive or dead tumor free",
    "no event",
    "not progressed",
    "not recurred",
}


class Events(NamedTuple):
    """What was read as the events of survival."""

    marks: Float  # 1 for events, 0 for censored, NaN for missing
    meaning: str  # the values that were read as the event, such as "1:DECEASED"


def read_events(values: Float, levels: Sequence[str], name: str = "") -> Events | None:
    """Return the events in a column of numbers or codes; None if there are none.

    Words such as "dead" and "alive" say what they mean. What 1 and "yes" mean, the name
    says: none is recognized under a name such as "survival", which could mean both.
    """
    labels = levels or ("0", "1")
    codes = np.where(np.isfinite(values), values, np.nan)
    if not levels and not np.isin(codes[np.isfinite(codes)], (0, 1)).all():
        return None

    happened = [_is_event(label, meaning_of_one(name)) for label in labels]
    if None in happened:
        return None

    marks = np.array([*happened, np.nan], dtype=float)
    places = np.where(np.isnan(codes), -1, codes).astype(int)
    return Events(marks[places], join_words(compress(labels, happened)))


def meaning_of_one(name: str) -> Literal["event", "no event", "unclear"]:
    """Return what 1 or "yes" means in a column of marks, by the words of its name.

    >>> names = ("OS_STATUS", "disease_free", "overall survival")
    >>> [meaning_of_one(name) for name in names]
    ['event', 'no event', 'unclear']
    """
    words = _words(name)
    if words[-1] == "event" and {"no", "not", "non", "without"}.isdisjoint(words):
        return "event"
    if not UNCLEAR.isdisjoint(words):
        return "unclear"
    if NO_EVENT.isdisjoint(words):
        return "event"
    if "status" in words:
        return "unclear"
    return "no event"


def is_unclear(name: str, values: Float, levels: Sequence[str]) -> bool:
    """Return whether a column may hold events or their opposite."""
    is_known = read_events(values, levels, name) is not None
    return not is_known and read_events(values, levels) is not None


def _is_event(label: str, one: str) -> bool | None:
    """Return whether a value means an event, given what 1 means; None if unclear."""
    text = re.sub(r"[\s_-]+", " ", label.strip().lower())
    # In "1:DECEASED" the word says what is meant, whatever the number.
    word = re.sub(r"^[01] ?: ?", "", text)

    if word in HAPPENED | CENSORED:
        return word in HAPPENED

    # These say whether what the name of the column means has happened.
    yes = {"1", "yes", "true"}
    no = {"0", "no", "false"}
    if word not in yes | no or one == "unclear":
        return None
    return (word in yes) == (one == "event")


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
        if is_unclear(mark, *columns[mark]):
            raise ValueError(
                f"event {mark!r}: under this name 1 or 'yes' may mean alive, or free "
                "of the event: pass the event under another name, such as "
                "frame.assign(died=...), or as words such as 'dead' and 'alive'"
            )
        if read_events(*columns[mark], mark) is None:
            raise ValueError(
                f"event {mark!r}: pass 0 or 'alive' for censored, and 1 or 'dead' for "
                "an event"
            )
    return list(zip(times, events, strict=True))


class SurvivalName(NamedTuple):
    """What the name of a column says of survival."""

    is_time: bool
    is_event: bool
    endpoint: str  # such as "os"; "" if the name is of times or events alone

    @property
    def is_bare(self) -> bool:
        """Whether it names an endpoint only, which may be a time or an event."""
        return self.endpoint in ENDPOINTS and not (self.is_time or self.is_event)


def read_name(name: str) -> SurvivalName:
    """Return what the name of a column says of survival."""
    words = _words(name)
    is_time = not TIMES.isdisjoint(words)
    is_event = not EVENTS.isdisjoint(words)
    kind = TIMES if is_time else EVENTS
    rest = "_".join(word for word in words if word not in kind)
    return SurvivalName(is_time, is_event, ENDPOINT_OF.get(rest, rest))


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, those of ``ostime`` being two."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return re.sub(r"(?<=[a-z])(time|event|status)$", r"_\1", key).split("_")


def usual_survival(
    columns: Mapping[str, tuple[Float, Sequence[str]]],
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs of times and events with usual names, and lone times."""
    times = dict[str, str]()
    events = dict[str, str]()
    for name, column in columns.items():
        said = read_name(name)
        is_mark = (said.is_event or said.is_bare) and not said.is_time
        may_be_time = said.is_time or (said.is_bare and read_events(*column) is None)
        if is_mark and read_events(*column, name) is not None:
            events.setdefault(said.endpoint, name)
        elif may_be_time and not column[1]:
            times[name] = said.endpoint
    found = {
        name: events.pop(endpoint)
        for name, endpoint in times.items()
        if endpoint in events
    }
    for name, end in times.items():
        if name not in found and SIMILAR.get(end) in events:
            found[name] = events.pop(SIMILAR[end])
    lonely = [
        name for name, end in times.items() if name not in found and end in ENDPOINTS
    ]
    return list(found.items()), lonely
