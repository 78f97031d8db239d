"""What one method reached on one data set, with the setting that a selection gives it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from mkclust.bench.rows import SCORES, Choice, Row, choose, is_default
from mkclust.bench.tables.statistics import mean_and_deviation

SELECTIONS = ("oracle", "default", "stable")
NOT_RUN = "not run"
# What is meant where a run ends in one of these ways.
STATUSES = {"memory": "out of memory", "time": "out of time"}


@dataclass(frozen=True)
class Outcome:
    """What a method reached on a data set in one score.

    Attributes
    ----------
    values : dict of (int, int) to float
        The score in percent, by repetition and seed.
    parameters : str or None
        The setting that these are of.
    oracle : bool
        Whether the entry itself is chosen by the true classes.
    problem : str
        Why there are no values, or that some repetitions failed; else empty.
    converged : bool
        Whether all solves behind the values converged, as far as is known.
    """

    values: dict[tuple[int, int], float] = field(default_factory=dict)
    parameters: str | None = None
    oracle: bool = False
    problem: str = ""
    converged: bool = True

    @property
    def mean(self) -> float | None:
        """The mean of the values, None without any."""
        return mean_and_deviation([*self.values.values()])[0] if self.values else None

    @property
    def deviation(self) -> float | None:
        """Their deviation, None where there are fewer than two."""
        return mean_and_deviation([*self.values.values()])[1] if self.values else None


@dataclass(frozen=True, eq=False)
class Entry:
    """One method on one data set, with one share of the samples.

    Attributes
    ----------
    rows : tuple of dict
        Its rows; none where it was not run.
    """

    rows: tuple[Row, ...] = ()

    @cached_property
    def oracle(self) -> bool:
        """Whether the true classes choose the entry itself."""
        return any(row.get("oracle") for row in self.rows)

    @cached_property
    def settings(self) -> frozenset[str]:
        """The settings that were tried."""
        return frozenset(row["parameters"] for row in self.rows)

    @cached_property
    def choice(self) -> Choice:
        """The settings that stand for the method."""
        return choose(self.rows)

    def setting(self, score: str, selection: str) -> str | None:
        """Return the setting that a selection gives the method, None where none such ran."""
        if selection == "oracle":
            return self._best_repeated(score)
        # Of a single setting nothing needs to be chosen, so that its stability need not be known.
        if selection == "default" or len(self.settings) == 1:
            return self.choice.default
        return self.choice.stable

    def outcome(self, score: str, selection: str) -> Outcome | None:
        """Return what the method reached with the setting that a selection gives it.

        Parameters
        ----------
        score : {"acc", "nmi", "purity"}
        selection : {"oracle", "default", "stable"}

        Returns
        -------
        Outcome or None
            None where the method has no place in a table of that selection: an entry that the
            true classes choose, in a table where they choose nothing.
        """
        check(score, selection)
        return self._outcomes[score, selection]

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str], Outcome | None]:
        """The outcomes by score and selection."""
        return {pair: self._reach(*pair) for pair in product(SCORES, SELECTIONS)}

    def _reach(self, score: str, selection: str) -> Outcome | None:
        """Return one outcome."""
        if not self.rows:
            return Outcome(problem=NOT_RUN)
        if self.oracle and selection != "oracle":
            return None
        parameters = self.setting(score, selection)
        if parameters is None:
            return Outcome(oracle=self.oracle, problem=_why_none(self.rows, selection))
        rows = [row for row in self.rows if row["parameters"] == parameters]
        repeated = [row for row in rows if row["repetition"] is not None]
        values = {
            _draw(row): 100 * row[score]
            for row in sorted(repeated, key=lambda row: row["repetition"])
            if row["status"] == "ok" and row.get(score) is not None
        }
        failed = [row for row in repeated if row["status"] != "ok" and _draw(row) not in values]
        problem = ""
        if not values:
            problem = reason(failed) if failed else "only a summary was kept, no repetitions"
        elif failed:
            problem = f"{len(failed)} of {len(failed) + len(values)} repetitions: {reason(failed)}"
        converged = not any(row.get("converged") is False for row in repeated)
        return Outcome(values, parameters, self.oracle, problem, converged)

    def _best_repeated(self, score: str) -> str | None:
        """Return the best of the settings that were repeated most, by all their repetitions.

        A few repetitions choose which settings are repeated; among these, all of them count.
        """
        values: dict[str, list[float]] = {}
        for row in self.rows:
            repeated = row["status"] == "ok" and row["repetition"] is not None
            if repeated and row.get(score) is not None:
                values.setdefault(row["parameters"], []).append(row[score])
        best = self.choice.oracle.get(score)
        most = max((len(values.get(name, ())) for name in self.choice.settings()), default=0)
        full = {name: values[name] for name in sorted(values) if len(values[name]) == most}
        if best not in full:  # not repeated yet, or only a summary was kept
            return best
        return max(full, key=lambda name: round(math.fsum(full[name]) / most, 12))


def reason(rows: Sequence[Row]) -> str:
    """Return in words why rows have no scores; the first reason stands for all."""
    row = min(rows, key=lambda row: (row["status"], row.get("message") or ""))
    message = " ".join((row.get("message") or "").split())
    return f"{in_words(row)}: {message}" if message else in_words(row)


def in_words(row: Row) -> str:
    """Return the status of a row in words."""
    return STATUSES.get(row["status"], str(row["status"]))


def check(score: str, selection: str) -> None:
    """Refuse a score or a selection that does not exist."""
    if score not in SCORES:
        raise ValueError(f"score={score!r} is not known: give one of {', '.join(SCORES)}.")
    if selection not in SELECTIONS:
        known = ", ".join(SELECTIONS)
        raise ValueError(f"selection={selection!r} is not known: give one of {known}.")


def _why_none(rows: Sequence[Row], selection: str) -> str:
    """Return why a selection finds no setting."""
    failed = [row for row in rows if row["status"] != "ok"]
    if selection == "default":
        failed_default = [row for row in failed if is_default(row)]
        return reason(failed_default) if failed_default else "the default setting was not run"
    if any(row["status"] == "ok" for row in rows):
        return "the stability of its settings is not known"
    return reason(failed)


def _draw(row: Row) -> tuple[int, int]:
    """Return what is the same for the same random draw: the repetition and the seed."""
    return row["repetition"], row.get("seed", 0)
