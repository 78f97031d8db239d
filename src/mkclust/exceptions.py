"""Warnings of the library, which programs may turn into errors, and an error."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Whether the warnings of this library are left out. Every thread has a value of its
# own, unlike the filters of the module `warnings`, which all threads of a process
# share.
_is_silent: ContextVar[bool] = ContextVar("mkclust_is_silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Leave out the library's warnings within a block that repeats work."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program that called the library."""
    if _is_silent.get():
        return

    frame = sys._getframe(1)
    level = 2
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in (
        "mkclust",
        "sklearn",
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


class ClusterNumberWarning(UserWarning):
    """One cluster was asked for, or more than half as many as there are samples."""


class FewerClustersWarning(UserWarning):
    """Fewer clusters have samples than were asked for."""


class GroupsWarning(UserWarning):
    """The views form groups that do not agree; the clusters are those of one."""


class IdSpellingWarning(UserWarning):
    """A join keeps apart, or leaves out, ids that are most likely of one sample."""


class KernelWarning(UserWarning):
    """A kernel of a view says little: nearly flat, the identity, or one column."""


class MissingViewsWarning(UserWarning):
    """Much is missing, and the method scales samples up because it cannot learn."""


class MissingnessWarning(UserWarning):
    """The clusters follow which views samples are missing from, beyond chance."""


class ModelVersionWarning(UserWarning):
    """A model was saved with other versions of the packages that it computes with."""


class NeighborhoodsWarning(UserWarning):
    """Neighborhoods leave samples alone, or fall into more groups than clusters."""


class NoAgreementWarning(UserWarning):
    """No two views agree clearly: the data do not tell which of them is right."""


class OrderWarning(UserWarning):
    """What views share may come from the order of the rows alone, such as time."""


class OtherRangeWarning(UserWarning):
    """Most values of new samples are outside the ranges of the fit."""


class UnknownCellsWarning(UserWarning):
    """Cells such as ``[Not Available]`` are taken for a category of their own."""


class OutcomeColumnsWarning(UserWarning):
    """Columns of survival were left out of what is clustered."""


class UncoveredSamplesWarning(UserWarning):
    """Samples have no entry, or no neighbor, in any view that is used."""


class WeightsWarning(UserWarning):
    """The learned weights find other clusters than the views agree on."""


class InputError(ValueError):
    """Tables that cannot be clustered as they are, with all that is in the way.

    Attributes
    ----------
    findings : tuple of mkclust.data.findings.Finding
        What was found, and what to do about it, each with its table.
    """

    def __init__(self, message: str, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)
