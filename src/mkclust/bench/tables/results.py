"""The rows of a benchmark, grouped once: what each method reached on each data set."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mkclust.bench.rows import Row, is_default, read_rows, read_solves
from mkclust.bench.tables.outcomes import Entry
from mkclust.bench.tables.paper import PAPER_DATASETS, PAPER_METHODS

CAVEATS = {
    "substitute": "a substitute: other samples or kernels than the paper's, so that a difference "
    "from the paper's figure says nothing about the method",
    "truncated": "truncated: kernels of reduced rank, made of their leading factors, of all "
    "samples, so that methods that use the tail of a spectrum may differ from the paper's figure "
    "for that reason alone",
}


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
            which = "" if resample is None else f" of resample={resample}"
            raise ValueError(f"There are no rows{which}; the rows given have resample: {shares}.")
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


def _dataset_key(paper: str, name: str) -> tuple[int, str]:
    """Return what sorts data sets: the paper's first, as there."""
    place = PAPER_DATASETS.index(paper) if paper in PAPER_DATASETS else len(PAPER_DATASETS)
    return place, name


def _method_key(name: str) -> tuple[int, str]:
    """Return what sorts methods: the paper's first, as there."""
    place = PAPER_METHODS.index(name) if name in PAPER_METHODS else len(PAPER_METHODS)
    return place, name
