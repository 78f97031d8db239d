"""Our scores against the paper's, cell by cell, and how many of them agree."""

from collections.abc import Sequence
from dataclasses import dataclass

from mkclust.bench.rows import SCORES
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.paper import paper_score
from mkclust.bench.tables.results import Results
from mkclust.bench.tables.scores import TITLES

# Points of percent within which two figures are counted as close.
WITHIN = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class ScoreComparison:
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


def paper_comparison(results: Results) -> list[ScoreComparison]:
    """Return every cell of the paper's tables that results have, with ours beside it.

    Parameters
    ----------
    results : Results
        Of a benchmark. Refits on parts of the samples are left aside: the paper has none.

    Returns
    -------
    list of ScoreComparison
        For settings chosen by the true classes, as the paper's are, and for default settings.
    """
    run = results.runs.get(1.0)
    pairs = run.entries.items() if run else ()
    comparisons = []
    for selection in ("oracle", "default"):
        for (dataset, method), entry in pairs:
            for score in SCORES:
                figure = paper_score(results.names.papers[dataset], method, score)
                outcome = entry.outcome(score, selection)
                if figure is None or outcome is None or outcome.mean is None:
                    continue
                comparisons.append(
                    ScoreComparison(
                        dataset=dataset,
                        label=results.names.labels[dataset],
                        method=method,
                        score=score,
                        selection=selection,
                        caveat=", ".join(results.names.caveats[dataset]),
                        ours=outcome.mean,
                        ours_std=outcome.deviation,
                        paper=figure[0],
                        paper_std=figure[1],
                    )
                )
    return comparisons


def comparison_table(results: Results) -> Table:
    """Return every cell of the paper that results have beside ours, a row each.

    Parameters
    ----------
    results : Results
        Of a benchmark.

    Returns
    -------
    Table
        Blocks by who chose the settings and by score.
    """
    comparisons = paper_comparison(results)
    lines: list[tuple] = []
    for selection in ("oracle", "default"):
        for score in SCORES:
            part = [c for c in comparisons if (c.selection, c.score) == (selection, score)]
            lines += [(f"{TITLES[score]}, {selection}",)] if part else []
            lines += [
                (
                    f"{c.label}, {c.method}",
                    Cell(c.ours, c.ours_std),
                    Cell(c.paper, c.paper_std),
                    Cell(c.difference, text=f"{c.difference + 0.0:+.1f}"),
                )
                for c in part
            ]
    notes = (
        "The paper's settings were chosen by the true classes: only the oracle's block repeats "
        "that. Default settings stand beside it because a user has no classes to choose by.",
        *results.names.notes({c.dataset for c in comparisons}),
    )
    columns = ("data set, method", "ours", "paper", "difference")
    return Table("paper", "Our scores and the paper's, in percent", columns, tuple(lines), notes)


def reproduction_table(results: Results) -> Table:
    """Return how many cells of the paper we come close to, the paper's own data sets apart.

    Parameters
    ----------
    results : Results
        Of a benchmark.

    Returns
    -------
    Table
        Rows by who chose the settings and by data set; columns count the cells within 0.5, 1 and
        2 points, and those above and below the paper's by more.
    """
    comparisons = paper_comparison(results)
    lines: list[tuple] = []
    for selection in ("oracle", "default"):
        part = [c for c in comparisons if c.selection == selection]
        labels = dict.fromkeys(c.label for c in part)
        by_label = [(label, [c for c in part if c.label == label]) for label in labels]
        same = [c for c in part if not c.caveat]
        if part:
            lines.append((f"{selection.capitalize()} settings",))
            lines += [(label, *_counts(cells)) for label, cells in by_label]
            lines.append(("all data sets without caveat", *_counts(same)))
    within = [f"within {points:g}" for points in WITHIN]
    notes = (
        "Cells of the paper's tables (a method and a score on a data set each) by how many points "
        "of percent ours are away; the last two columns are the rest.",
        *results.names.notes({c.dataset for c in comparisons}),
    )
    beyond = [f"over {WITHIN[-1]:g} {where}" for where in ("above", "below")]
    columns = ("data set", "cells", *within, *beyond)
    return Table("reproduction", "What reproduces", columns, tuple(lines), notes)


def _counts(comparisons: Sequence[ScoreComparison]) -> list[Cell]:
    """Return the number of cells, of those within each distance, and of those beyond."""
    differences = [c.difference for c in comparisons]
    close = [sum(abs(d) <= points for d in differences) for points in WITHIN]
    widest = WITHIN[-1]
    beyond = [sum(d > widest for d in differences), sum(d < -widest for d in differences)]
    return [Cell(float(n), text=str(n)) for n in (len(differences), *close, *beyond)]
