"""A table of average ranks over data sets."""

import math
from dataclasses import replace

from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import check
from mkclust.bench.tables.ranks import Ranking, rank_methods
from mkclust.bench.tables.results import Run
from mkclust.bench.tables.scores import CHOSEN, EXPLAINED, TITLES

# Below this the tests' distributions are rough.
ENOUGH_DATASETS = 10
SMALL = "On {} data sets only these tests are rough, and little can be told apart."


def ranking(run: Run, score: str, selection: str) -> Ranking:
    """Return the average ranks of methods over the data sets of a benchmark.

    Parameters
    ----------
    run : Run
        Of a benchmark.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting; see `score_tables`.

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
    means: dict[str, dict[str, float]] = {run.label(dataset): {} for dataset in run.datasets}
    unscored: set[str] = set()
    for (dataset, method), entry in run.entries.items():
        outcome = entry.outcome(score, selection)
        if outcome is None or outcome.oracle:
            continue  # no method, but a choice that the true classes make
        if outcome.mean is not None:
            means[run.label(dataset)][method] = outcome.mean
        else:
            unscored.add(method)
    ranked = rank_methods(means)
    left_out = unscored.union(ranked.methods_left_out) - set(ranked.methods)
    return replace(ranked, methods_left_out=tuple(sorted(left_out)))


def rank_table(run: Run, score: str, selection: str) -> Table:
    """Return the table of average ranks, with the tests of their differences as notes.

    Parameters
    ----------
    run : Run
        Of a benchmark.
    score : {"acc", "nmi", "purity"}
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting; see `score_tables`.

    Returns
    -------
    Table
        Methods from the best average rank to the worst.

    Raises
    ------
    ValueError
        If fewer than two methods share two data sets.
    """
    ranked = ranking(run, score, selection)
    limit = ranked.ranks[0] + ranked.critical_difference
    lines = [
        (method, Cell(float(rank), bold=bool(rank <= limit)), Cell(float(best), text=str(best)))
        for method, rank, best in zip(ranked.methods, ranked.ranks, ranked.times_best, strict=True)
    ]
    notes = [EXPLAINED[selection], *_test_notes(ranked, TITLES[score])]
    nemenyi = (
        f"Nemenyi's critical difference at {100 * ranked.alpha:.0f} %: "
        f"{ranked.critical_difference:.2f}."
    )
    groups = [f"Not told apart: {', '.join(clique)}." for clique in ranked.cliques]
    left_out = [
        f"{kind} left out, because scores are missing: {', '.join(names)}."
        for kind, names in (
            ("Methods", ranked.methods_left_out),
            ("Data sets", ranked.datasets_left_out),
        )
        if names
    ]
    caveats = run.names.notes(name for name in run.datasets if run.label(name) in ranked.datasets)
    return Table(
        f"ranks-{selection}-{score}{run.suffix}",
        f"Average ranks by {TITLES[score]}, {CHOSEN[selection]}{run.ending}",
        ("method", "average rank", "times best"),
        tuple(lines),
        (*notes, f"{nemenyi} Bold: within it from the best.", *groups, *left_out, *caveats),
        # The diagram shows its groups, and nothing in it is bold.
        picture_notes=(*notes, nemenyi, *left_out, *caveats),
        digits=2,
    )


def _test_notes(ranked: Ranking, title: str) -> list[str]:
    """Say what was ranked, and what the tests of all ranks together say."""
    k, n = len(ranked.methods), len(ranked.datasets)
    friedman = (
        f"F({k - 1}, {(k - 1) * (n - 1)}) = {ranked.f:.2f}, p = {ranked.f_p_value:.2g}"
        if math.isfinite(ranked.f)
        else "F is infinite, the order being the same on all data sets"
    )
    alike = "" if ranked.f_p_value <= ranked.alpha else ": they may all be alike, read no order"
    return [
        f"Ranks of mean {title} on {n} data sets ({', '.join(ranked.datasets)}); 1 is the best, "
        "ties share. The tests take data sets for independent, which those that share samples are "
        "not.",
        f"Friedman's test: chi2({k - 1}) = {ranked.chi2:.2f}, p = {ranked.chi2_p_value:.2g}; Iman "
        f"and Davenport's {friedman}{alike}.",
        *([] if n >= ENOUGH_DATASETS else [SMALL.format(n)]),
    ]
