"""How tables are to be read and joined, as the options of a command say it."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkclust import datasets
from mkclust.cli.failures import CommandError
from mkclust.cli.method import check_choice
from mkclust.data.options import IMPUTATIONS, JOINS, TableOptions
from mkclust.datasets.layout import SAMPLES_IN, TableLayout


@dataclass(frozen=True)
class TableRequest:
    """The options of a command about tables, as they were given.

    Attributes
    ----------
    ids, samples_in, drop : tuple of str
        Values for all files, or FILE=VALUE for one.
    join : {"exact", "inner", "outer"}
        Whether all files must hold the same samples, or those in all of them are kept, or all are.
    impute : {None, "median"}
        How missing cells are filled.
    """

    ids: tuple[str, ...] = ()
    samples_in: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    join: str = "exact"
    impute: str | None = None

    @classmethod
    def of(cls, ids: Any, samples_in: Any, drop: Any, join: str, impute: Any) -> Any:
        """Return the options as a command has them, None where one was not given."""
        return cls(tuple(ids or ()), tuple(samples_in or ()), tuple(drop or ()), join, impute)

    @property
    def options(self) -> TableOptions:
        """What the samples are read with."""
        return TableOptions(join=self.join, impute=self.impute)

    def layouts(self, inputs: Sequence[str]) -> list[TableLayout]:
        """Return how each input is to be read, refusing options that are about none of them."""
        check_choice("--join", self.join, JOINS)
        if self.impute is not None:
            check_choice("--impute", self.impute, IMPUTATIONS)
        ids = _by_input("--id", self.ids, inputs)
        sides = _by_input("--samples-in", self.samples_in, inputs)
        drops = _by_input("--drop", self.drop, inputs)
        for side in {side for each in sides for side in each}:
            if side not in SAMPLES_IN and "=" in side:
                names = ", ".join(inputs)
                raise CommandError(
                    f"--samples-in {side}: names no input; write FILE=columns (inputs: {names})"
                )
            check_choice("--samples-in", side, SAMPLES_IN)
        return [
            TableLayout(id_[-1] if id_ else None, side[-1] if side else "rows", tuple(drop))
            for id_, side, drop in zip(ids, sides, drops, strict=True)
        ]


def _by_input(option: str, values: Sequence[str], inputs: Sequence[str]) -> list[list[str]]:
    """Return the values for each input: those for all of them, then those for this one."""
    common: list[str] = []
    own: list[list[str]] = [[] for _ in inputs]
    for value in values:
        places = [i for i, text in enumerate(inputs) if value.startswith(_titles(text))]
        if not places:
            common.append(value)
        for place in places:
            title = next(title for title in _titles(inputs[place]) if value.startswith(title))
            own[place].append(value.removeprefix(title))
    if option == "--id" and len(common) > 1:
        raise CommandError(
            f"--id {common[0]} and --id {common[1]}: one column holds the ids of all files; write "
            f"--id FILE={common[1]} for one file"
        )
    return [[*common, *each] for each in own]


def _titles(text: str) -> tuple[str, ...]:
    """Return how an option may begin that is about one input."""
    path = text.rpartition("::")[0] or text
    return tuple(f"{title}=" for title in dict.fromkeys((text, path, Path(path).name)))


def check_drops(
    request: TableRequest, inputs: Sequence[str], data_sets: Sequence[datasets.Dataset]
) -> None:
    """Refuse columns to drop that no input has."""
    dropped = {name for data in data_sets for name in data.dropped}
    for name in request.drop:
        column = name
        for text in inputs:
            for title in _titles(text):
                column = column.removeprefix(title)
        if column in dropped:
            continue
        known = sorted({str(c) for data in data_sets for _, c in _columns(data)})
        close = difflib.get_close_matches(column, known, n=1)
        advice = f"did you mean --drop {close[0]}?" if close else "check its name"
        raise CommandError(f"--drop {column}: no input has such a column; {advice}")


def _columns(data: datasets.Dataset) -> list[tuple[str, Any]]:
    """Return the names of views and of their columns, of those that have some."""
    views = data.views or {}
    return [(name, c) for name, view in views.items() for c in getattr(view, "columns", ())]
