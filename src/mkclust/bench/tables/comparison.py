"""Our scores against the paper's, cell by cell, and how many of them agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mkclust.bench.rows import SCORES, Row
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import dataset_labels, group, outcome, resamples
from mkclust.bench.tables.paper import paper_score
from mkclust.bench.tables.scores import TITLES, caveat_notes
from mkclust.bench.tables.statistics import mean_and_deviation

# Points of percent within which two figures are counted as close.
WITHIN = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Compared:
    """A cell of the paper's tables beside ours, in percent.

    Attributes
    ----------
    dataset, label, method, score, selection : str
        What was measured; the label is that of the tables, with the caveat.
    caveat : str
        ``"substitute"`` or ``"truncated"`` where the data set is not the paper's, else empty.
    ours, paper : float
        Means.
    ours_std, paper_std : float or None
        Deviations.
    """

    dataset: str
    label: str
    method: str
    score: str
    selection: str
    caveat: str
    ours: float
    ours_std: float | None
    paper: float
    paper_std: float

    @property
    def difference(self) -> float:
        """Ours less the paper's, to the one digit that the paper gives."""
        return round(round(self.ours, 1) - self.paper, 1)


def paper_comparison(rows: Iterable[Row]) -> list[Compared]:
    """Return every cell of the paper's tables that rows have, with ours beside it.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark. Those of refits on parts of the samples are left aside: the paper has
        none.

    Returns
    -------
    list of Compared
        For settings chosen by the true classes, as the paper's are, and for default settings.
    """
    rows = list(rows)
    if 1.0 not in resamples(rows):
        return []
    grouped, _ = group(rows, 1.0)
    labels = dataset_labels(rows)
    found = []
    for selection in ("oracle", "default"):
        for dataset, own in grouped.items():
            for method, its in own.items():
                for score in SCORES:
                    theirs = paper_score(its[0].get("paper") or "", method, score)
                    ours = outcome(its, score, selection)
                    if theirs is None or ours is None or not ours.values:
                        continue
                    mean, std = mean_and_deviation(list(ours.values.values()))
                    found.append(
                        Compared(
                            dataset=dataset,
                            label=labels[dataset],
                            method=method,
                            score=score,
                            selection=selection,
                            caveat=its[0].get("caveat") or "",
                            ours=mean,
                            ours_std=std,
                            paper=theirs[0],
                            paper_std=theirs[1],
                        )
                    )
    return found


def comparison_table(rows: Iterable[Row]) -> Table:
    """Return every cell of the paper that rows have beside ours, a row each.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.

    Returns
    -------
    Table
        Blocks by who chose the settings and by score.
    """
    rows = list(rows)
    compared = paper_comparison(rows)
    lines: list[tuple] = []
    for selection in ("oracle", "default"):
        for score in SCORES:
            own = [c for c in compared if (c.selection, c.score) == (selection, score)]
            lines += [(f"{TITLES[score]}, {selection}",)] if own else []
            lines += [
                (
                    f"{c.label}, {c.method}",
                    Cell(c.ours, c.ours_std),
                    Cell(c.paper, c.paper_std),
                    Cell(c.difference, text=f"{c.difference + 0.0:+.1f}"),
                )
                for c in own
            ]
    notes = (
        "The paper's settings were chosen by the true classes: only the oracle's block repeats "
        "that. Default settings stand beside it because a user has no classes to choose by.",
        *caveat_notes(row for row in rows if row["dataset"] in {c.dataset for c in compared}),
    )
    columns = ("data set, method", "ours", "paper", "difference")
    return Table("paper", "Our scores and the paper's, in percent", columns, tuple(lines), notes)


def reproduction_table(rows: Iterable[Row]) -> Table:
    """Return how many cells of the paper we come close to, the paper's own data sets apart.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.

    Returns
    -------
    Table
        Rows by who chose the settings and by data set; columns count the cells within 0.5, 1 and
        2 points, and those above and below the paper's by more.
    """
    rows = list(rows)
    compared = paper_comparison(rows)
    lines: list[tuple] = []
    for selection in ("oracle", "default"):
        own = [c for c in compared if c.selection == selection]
        labels = dict.fromkeys(c.label for c in own)
        counted = [(label, [c for c in own if c.label == label]) for label in labels]
        same = [c for c in own if not c.caveat]
        if own:
            lines.append((f"{selection.capitalize()} settings",))
            lines += [(label, *_counts(cells)) for label, cells in counted]
            lines.append(("all data sets without caveat", *_counts(same)))
    within = [f"within {points:g}" for points in WITHIN]
    notes = (
        "Cells of the paper's tables (a method and a score on a data set each) by how many points "
        "of percent ours are away; the last two columns are the rest.",
        *caveat_notes(row for row in rows if row["dataset"] in {c.dataset for c in compared}),
    )
    beyond = [f"over {WITHIN[-1]:g} {where}" for where in ("above", "below")]
    columns = ("data set", "cells", *within, *beyond)
    return Table("reproduction", "What reproduces", columns, tuple(lines), notes)


def _counts(compared: Sequence[Compared]) -> list[Cell]:
    """Return the number of cells, of those within each distance, and of those beyond."""
    differences = [c.difference for c in compared]
    close = [sum(abs(d) <= points for d in differences) for points in WITHIN]
    far = WITHIN[-1]
    beyond = [sum(d > far for d in differences), sum(d < -far for d in differences)]
    return [Cell(float(n), text=str(n)) for n in (len(differences), *close, *beyond)]
