"""The rows of a benchmark, grouped once: what each method reached on each data set."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mkclust.bench.rows import SCORES, Choice, Row, choose, is_default, read_rows, read_solves
from mkclust.bench.tables.paper import PAPER_DATASETS, PAPER_METHODS

SELECTIONS = ("oracle", "default", "stable")
NOT_RUN = "not run"
CAVEATS = {
    "substitute": "a substitute: other samples or kernels than the paper's, so that a difference "
    "from the paper's figure says nothing about the method",
    "truncated": "truncated: kernels of reduced rank, made of their leading factors, of all "
    "samples, so that methods that use the tail of a spectrum may differ from the paper's figure "
    "for that reason alone",
}
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
        """Return the setting that a selection gives the method.

        Parameters
        ----------
        score : {"acc", "nmi", "purity"}
        selection : {"oracle", "default", "stable"}

        Returns
        -------
        str or None
            None where there is no such setting that ran.
        """
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
        return {
            (s, selection): self._reach(s, selection) for s in SCORES for selection in SELECTIONS
        }

    def _reach(self, score: str, selection: str) -> Outcome | None:
        """Return one outcome."""
        if not self.rows:
            return Outcome(problem=NOT_RUN)
        if self.oracle and selection != "oracle":
            return None
        parameters = self.setting(score, selection)
        if parameters is None:
            return Outcome(oracle=self.oracle, problem=_why_none(self.rows, selection))
        repeated = [
            row
            for row in self.rows
            if row["parameters"] == parameters and row["repetition"] is not None
        ]
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
        first = self.choice.oracle.get(score)
        most = max((len(values.get(name, ())) for name in self.choice.settings()), default=0)
        full = {name: values[name] for name in sorted(values) if len(values[name]) == most}
        if first not in full:  # not repeated yet, or only a summary was kept
            return first
        return max(full, key=lambda name: round(math.fsum(full[name]) / most, 12))


@dataclass(frozen=True, eq=False)
class DatasetNames:
    """How data sets are called in tables, with what must be said of them.

    Attributes
    ----------
    labels : mapping of str to str
        The paper's name where there is one and no other data set claims it, else its own; the
        caveat in parentheses.
    papers : mapping of str to str
        The name of each data set in the paper, or empty.
    caveats : mapping of str to tuple of str
        What each data set is in place of the paper's.
    """

    labels: Mapping[str, str]
    papers: Mapping[str, str]
    caveats: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "DatasetNames":
        """Return the names of the data sets that rows are of."""
        papers: dict[str, str] = {}
        caveats: dict[str, set[str]] = {}
        for row in rows:
            name = row["dataset"]
            papers[name] = row.get("paper") or papers.get(name, "")
            caveats.setdefault(name, set()).update({row.get("caveat") or ""} - {""})
        claims = list(papers.values())
        labels = {}
        for name, paper in papers.items():
            label = name if not paper else paper if claims.count(paper) == 1 else f"{paper}: {name}"
            caveat = ", ".join(sorted(caveats[name]))
            labels[name] = f"{label} ({caveat})" if caveat else label
        return cls(labels, papers, {name: tuple(sorted(caveats[name])) for name in papers})

    def notes(self, datasets: Iterable[str]) -> list[str]:
        """Return a note on each of some data sets that is not what the paper used."""
        pairs = {(self.labels[name], caveat) for name in datasets for caveat in self.caveats[name]}
        return [f"{label} is {CAVEATS.get(caveat, caveat)}." for label, caveat in sorted(pairs)]


@dataclass(frozen=True, eq=False)
class Run:
    """What was run on one share of the samples; shares are never mixed.

    Attributes
    ----------
    resample : float
        The share, 1 being the whole data set.
    names : DatasetNames
        How the data sets are called.
    entries : mapping of (str, str) to Entry
        By data set and method: those of the paper first and in its order, then by name.
    """

    resample: float
    names: DatasetNames
    entries: Mapping[tuple[str, str], Entry]

    @classmethod
    def of(cls, rows: Iterable[Row], resample: float, names: DatasetNames) -> "Run":
        """Return the run of rows that all have one share."""
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((row["dataset"], row["method"]), []).append(row)

        def place(pair: tuple[str, str]) -> tuple:
            return _dataset_key(names.papers[pair[0]], pair[0]), _method_key(pair[1])

        return cls(resample, names, {p: Entry(tuple(groups[p])) for p in sorted(groups, key=place)})

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(dict.fromkeys(dataset for dataset, _ in self.entries))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The methods."""
        return tuple(sorted({method for _, method in self.entries}, key=_method_key))

    @property
    def suffix(self) -> str:
        """The end of a table's name: what was repeated."""
        return "" if self.resample == 1 else f"-resample-{100 * self.resample:.0f}"

    @property
    def ending(self) -> str:
        """The end of a title: what was repeated."""
        share = f"{100 * self.resample:.0f} %"
        return "" if self.resample == 1 else f"; refits on {share} of the samples"

    def label(self, dataset: str) -> str:
        """Return how a data set is called in a table."""
        return self.names.labels[dataset]

    def caveat_notes(self) -> list[str]:
        """Return a note on each data set that is not what the paper used."""
        return self.names.notes(self.datasets)

    def entry(self, dataset: str, method: str) -> Entry:
        """Return one method on one data set: without rows where it was not run."""
        return self.entries.get((dataset, method), Entry())

    def rows(self) -> list[Row]:
        """Return all rows, in the order of the entries."""
        return [row for entry in self.entries.values() for row in entry.rows]

    def on(self, dataset: str) -> "Run":
        """Return the run on one data set."""
        return self.only(lambda row: row["dataset"] == dataset)

    def only(self, belongs: Callable[[Row], bool]) -> "Run":
        """Return the run of some of the rows."""
        parts = {
            pair: Entry(tuple(filter(belongs, entry.rows))) for pair, entry in self.entries.items()
        }
        entries = {pair: entry for pair, entry in parts.items() if entry.rows}
        return Run(self.resample, self.names, entries)


@dataclass(frozen=True, eq=False)
class Results:
    """The rows of one benchmark, grouped once: every table and figure is made from these.

    Attributes
    ----------
    runs : mapping of float to Run
        By share of the samples, from the whole data sets downward.
    solves : mapping of float to Run
        What was recorded of the solves with default settings, alike; what the true classes choose
        has no default setting.
    names : DatasetNames
        How the data sets are called.
    n_rows, n_scored, n_solves : int
        How many rows there are, how many of them have scores, and how many solves were recorded.
    machines, versions : tuple of str
        Where the rows were made, and with what.
    """

    runs: Mapping[float, Run]
    solves: Mapping[float, Run]
    names: DatasetNames
    n_rows: int
    n_scored: int
    n_solves: int
    machines: tuple[str, ...]
    versions: tuple[str, ...]

    @classmethod
    def read(cls, path: str | Path) -> "Results":
        """Read the results of a benchmark, from its folder or from its file of rows.

        Parameters
        ----------
        path : str or path-like
            See `read_rows`.

        Returns
        -------
        Results
        """
        return cls.of(read_rows(path), read_solves(path))

    @classmethod
    def of(cls, rows: Iterable[Row], solves: Iterable[Row] = ()) -> "Results":
        """Group rows, and what was recorded of the solves behind them.

        Parameters
        ----------
        rows : iterable of dict
            Rows of a benchmark; see `read_rows`.
        solves : iterable of dict
            See `read_solves`.

        Returns
        -------
        Results

        Examples
        --------
        >>> from mkclust.bench.tables import Results
        >>> head = {"dataset": "digit", "method": "mkkm", "parameters": "{}", "resample": 1.0}
        >>> row = head | {"repetition": 0, "status": "ok", "acc": 0.5}
        >>> run = Results.of([row]).run()
        >>> run.entry("digit", "mkkm").outcome("acc", "default").values
        {(0, 0): 50.0}
        """
        rows, solves = list(rows), list(solves)
        defaults = [solve for solve in solves if is_default(solve) and not solve.get("oracle")]
        names = DatasetNames.of([*rows, *solves])
        return cls(
            runs=_by_share(rows, names),
            solves=_by_share(defaults, names),
            names=names,
            n_rows=len(rows),
            n_scored=sum(row["status"] == "ok" for row in rows),
            n_solves=len(solves),
            machines=_distinct(rows, "machine"),
            versions=_distinct(rows, "versions"),
        )

    def run(self, resample: float | None = None) -> Run:
        """Return the run on one share of the samples.

        Parameters
        ----------
        resample : float or None
            None stands for the largest share that there is.

        Returns
        -------
        Run

        Raises
        ------
        ValueError
            If there are no such rows.
        """
        if not self.runs or (resample is not None and resample not in self.runs):
            shares = ", ".join(map(str, self.runs)) or "none at all"
            wanted = "" if resample is None else f" of resample={resample}"
            raise ValueError(f"There are no rows{wanted}; the rows given have resample: {shares}.")
        return next(iter(self.runs.values())) if resample is None else self.runs[resample]


def _by_share(rows: Iterable[Row], names: DatasetNames) -> dict[float, Run]:
    """Return rows by share of the samples, from the whole data sets downward."""
    groups: dict[float, list[Row]] = {}
    for row in rows:
        groups.setdefault(float(row["resample"]), []).append(row)
    return {share: Run.of(groups[share], share, names) for share in sorted(groups, reverse=True)}


def _distinct(rows: Iterable[Row], key: str) -> tuple[str, ...]:
    """Return the values that rows have under a key, each once."""
    return tuple(sorted({str(row[key]) for row in rows if row.get(key)}))


def reason(rows: Sequence[Row]) -> str:
    """Return in words why rows have no scores.

    Parameters
    ----------
    rows : sequence of dict
        Rows whose status is not "ok"; the first one's reason stands for all.

    Returns
    -------
    str
    """
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


def _dataset_key(paper: str, name: str) -> tuple[int, str]:
    """Return what sorts data sets: the paper's first, as there."""
    place = PAPER_DATASETS.index(paper) if paper in PAPER_DATASETS else len(PAPER_DATASETS)
    return place, name


def _method_key(name: str) -> tuple[int, str]:
    """Return what sorts methods: the paper's first, as there."""
    place = PAPER_METHODS.index(name) if name in PAPER_METHODS else len(PAPER_METHODS)
    return place, name
