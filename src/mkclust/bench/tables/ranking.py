"""A table of average ranks over data sets."""

import math
from collections.abc import Iterable
from dataclasses import replace

from mkclust.bench.rows import Row
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import check, dataset_labels, group, outcome
from mkclust.bench.tables.ranks import Ranking, rank_methods
from mkclust.bench.tables.scores import CHOSEN, EXPLAINED, TITLES, caveat_notes, repeated, suffix
from mkclust.bench.tables.statistics import mean_and_deviation

# Below this the tests' distributions are rough.
ENOUGH_DATASETS = 10
SMALL = "On {} data sets only these tests are rough, and little can be told apart."


def ranking(
    rows: Iterable[Row], score: str, selection: str, resample: float | None = None
) -> Ranking:
    """Return the average ranks of methods over the data sets of a benchmark.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting; see `score_tables`.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    Ranking
        Its data sets are called as in the tables, with their caveats.

    Raises
    ------
    ValueError
        If fewer than two methods share two data sets.
    """
    check(score, selection)
    rows = list(rows)
    grouped, _ = group(rows, resample)
    labels = dataset_labels(rows)
    means: dict[str, dict[str, float]] = {labels[dataset]: {} for dataset in grouped}
    unscored: set[str] = set()
    for dataset, own in grouped.items():
        for method, its in own.items():
            reached = outcome(its, score, selection)
            if reached is not None and reached.oracle:
                continue  # no method, but a choice that the true classes make
            if reached is not None and reached.values:
                mean, _ = mean_and_deviation(list(reached.values.values()))
                means[labels[dataset]][method] = mean
            elif reached is not None:
                unscored.add(method)
    ranked = rank_methods(means)
    left_out = unscored.union(ranked.methods_left_out) - set(ranked.methods)
    return replace(ranked, methods_left_out=tuple(sorted(left_out)))


def rank_table(
    rows: Iterable[Row], score: str, selection: str, resample: float | None = None
) -> Table:
    """Return the table of average ranks, with the tests of their differences as notes.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting; see `score_tables`.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    Table
        Methods from the best average rank to the worst.

    Raises
    ------
    ValueError
        If fewer than two methods share two data sets.
    """
    rows = list(rows)
    _, resample = group(rows, resample)
    ranked = ranking(rows, score, selection, resample)
    labels = dataset_labels(rows)
    in_it = [row for row in rows if labels[row["dataset"]] in ranked.datasets]
    k, n = len(ranked.methods), len(ranked.datasets)
    limit = ranked.ranks[0] + ranked.critical_difference
    lines = [
        (method, Cell(float(rank), bold=bool(rank <= limit)), Cell(float(best), text=str(best)))
        for method, rank, best in zip(ranked.methods, ranked.ranks, ranked.times_best, strict=True)
    ]
    friedman = (
        f"F({k - 1}, {(k - 1) * (n - 1)}) = {ranked.f:.2f}, p = {ranked.f_p_value:.2g}"
        if math.isfinite(ranked.f)
        else "F is infinite, the order being the same on all data sets"
    )
    alike = "" if ranked.f_p_value <= ranked.alpha else ": they may all be alike, read no order"
    notes = [
        EXPLAINED[selection],
        f"Ranks of mean {TITLES[score]} on {n} data sets ({', '.join(ranked.datasets)}); 1 is the "
        "best, ties share. The tests take data sets for independent, which those that share "
        "samples are not.",
        f"Friedman's test: chi2({k - 1}) = {ranked.chi2:.2f}, p = {ranked.chi2_p_value:.2g}; Iman "
        f"and Davenport's {friedman}{alike}.",
        *([] if n >= ENOUGH_DATASETS else [SMALL.format(n)]),
        f"Nemenyi's critical difference at {100 * ranked.alpha:.0f} %: "
        f"{ranked.critical_difference:.2f}. Bold: within it from the best.",
    ]
    notes += [f"Not told apart: {', '.join(clique)}." for clique in ranked.cliques]
    for kind, names in (
        ("Methods", ranked.methods_left_out),
        ("Data sets", ranked.datasets_left_out),
    ):
        if names:
            notes.append(f"{kind} left out, because scores are missing: {', '.join(names)}.")
    return Table(
        f"ranks-{selection}-{score}{suffix(resample)}",
        f"Average ranks by {TITLES[score]}, {CHOSEN[selection]}{repeated(resample)}",
        ("method", "average rank", "times best"),
        tuple(lines),
        (*notes, *caveat_notes(in_it)),
        digits=2,
    )
