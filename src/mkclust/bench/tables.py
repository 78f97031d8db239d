"""From the rows of a benchmark to tables of scores, ranks, times and weights."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from mkclust.bench.rows import (
    MEAN_DIGITS,
    SCORES,
    Row,
    best_settings,
    read_rows,
    read_solves,
)
from mkclust.bench.score_table import (
    TITLES,
    order_methods,
    printed_names,
    score_table,
)
from mkclust.files import write_atomically
from mkclust.plots.style import when
from mkclust.text import markdown_text, spreadsheet_text

# How a method's setting is chosen.
SELECTIONS = {
    "default": "Every method with its default setting; no classes were used to choose "
    "it.",
    "oracle": "The true classes chose the setting of every method, for each score "
    "separately, as in most papers. No clustering without classes can count on these "
    "scores.",
}


def outcomes(rows: Iterable[Row], selection: str = "default") -> pd.DataFrame:
    """Return the scores of each method on each data set.

    Parameters
    ----------
    rows : iterable of dict
        Rows of one benchmark; see :func:`mkclust.bench.rows.read_rows`.
    selection : {"default", "oracle"}
        Whether a method has its default setting, or the best one by the true classes.

    Returns
    -------
    DataFrame
        One row per data set, method and score: the ``mean`` and ``std`` in percent over
        ``n`` repetitions of the setting ``parameters``; whether it is ``not_worse``
        than the best method (paired t tests, Holm's correction), whether the true
        classes chose the entry (``oracle``), whether all solves ``converged``, and the
        ``problem`` of repetitions without scores.

    Examples
    --------
    >>> from mkclust.bench.tables import outcomes
    >>> row = {"dataset": "a", "method": "mkkm", "parameters": "{}", "seed": 0}
    >>> row["resample"] = 1.0
    >>> row |= {"repetition": 0, "status": "ok", "default": True, "acc": 0.5}
    >>> row |= {"nmi": 0.25, "purity": 0.5}
    >>> outcomes([row]).set_index("score")["mean"].to_dict()
    {'acc': 50.0, 'nmi': 25.0, 'purity': 50.0}
    """
    if selection not in SELECTIONS:
        raise ValueError(f"selection={selection!r}: choose 'default' or 'oracle'")
    rows = list(rows)
    frame = pd.DataFrame(
        {"oracle": False, "converged": True, "message": ""} | r for r in rows
    )
    shares = frame["resample"].unique()
    if len(shares) > 1:
        raise ValueError(
            f"rows have resample={shares.tolist()}: pass those of one benchmark"
        )
    labels = dataset_labels(rows)
    names = printed_names(rows)
    found = []
    for (dataset, method), group in frame.groupby(["dataset", "method"], sort=False):
        is_oracle = group["oracle"].any()
        if is_oracle and selection != "oracle":
            continue
        head = {
            "dataset": dataset,
            "label": labels[dataset],
            "method": method,
            "name": names[method],
            "oracle": is_oracle,
        }
        found += [head | each for each in _group_outcomes(group, selection)]
    if not found:
        raise ValueError(f"there are no rows with {selection} settings")
    order = order_methods(names)
    found.sort(
        key=lambda each: (each["label"], order.index(each["method"]), each["score"])
    )
    frame = pd.DataFrame(found)
    by_score = frame.groupby(["dataset", "score"])["values"]
    best = (not_worse(values.to_dict()) for _, values in by_score)
    frame["not_worse"] = frame.index.isin(set[int]().union(*best))
    return frame.drop(columns="values")


def outcomes_by_selection(rows: list[Row]) -> dict[str, pd.DataFrame]:
    """Return the outcomes for both ways to choose settings, if there was a choice."""
    found = {}
    for selection in SELECTIONS:
        if selection == "oracle" and all(row["default"] for row in rows):
            continue
        # Of the reference that uses the true classes alone there are no defaults.
        with suppress(ValueError):
            found[selection] = outcomes(rows, selection)
    return found


def _group_outcomes(rows: pd.DataFrame, selection: str) -> Iterator[dict[str, Any]]:
    """Yield the outcomes of a method on a data set, for each score."""
    best = best_settings(rows)
    scored = rows[rows["status"] == "ok"]
    # Some repetitions chose the settings to repeat in full; all repetitions choose
    # among these.
    sizes = scored["parameters"].value_counts()
    full = sizes.index[sizes == sizes.reindex(best.values()).max()].sort_values()
    means = scored.groupby("parameters")[list(SCORES)].mean().round(MEAN_DIGITS)
    for score in SCORES:
        setting = best.get("default" if selection == "default" else score)
        if selection == "oracle" and setting in full:
            setting = means.loc[full, score].idxmax()
        chosen = scored[scored["parameters"] == setting].set_index("repetition")
        values = 100 * chosen[score].astype(float).sort_index()
        tried = rows["default"] | (selection == "oracle")
        if setting is not None:
            tried = rows["parameters"] == setting
        yield {
            "score": score,
            "parameters": setting,
            "mean": math.fsum(values) / (len(values) or math.nan),
            "std": values.std(),
            "n": len(values),
            "converged": not chosen["converged"].eq(False).any(),
            "problem": _problem(rows[tried & (rows["status"] != "ok")], len(values)),
            "values": values,
        }


def _problem(failed: pd.DataFrame, n_scored: int) -> str:
    """Return why scores are missing, in words; empty if none are."""
    n = len(failed)
    if not n:
        return when(not n_scored, "not run")
    reason = min(failed["status"] + ": " + failed["message"]).strip(": ")
    return when(n_scored, f"{n} of {n + n_scored} repetitions ") + reason


def dataset_labels(rows: Iterable[Row]) -> dict[str, str]:
    """Return the names of data sets in tables: the published name, and the caveat."""
    labels: dict[str, str] = {}
    for row in rows:
        # Of unreadable data no name is known.
        if row.get("paper") or row["dataset"] not in labels:
            caveat = when(row.get("caveat"), f" ({row.get('caveat')})")
            labels[row["dataset"]] = (row.get("paper") or row["dataset"]) + caveat
    return labels


def not_worse(scores: Mapping[Any, Any], alpha: float = 0.05) -> set[Any]:
    """Return the methods that do not differ significantly from the best one.

    `scores` are by method and repetition. Paired t tests with Holm's correction for all
    pairs, for the data decide which is the best. Empty if it shares no three
    repetitions with another.
    """
    frame = pd.DataFrame(scores).dropna(axis=1, how="all").astype(float)
    p_values = {}
    # Scores that differ by less are equal up to rounding.
    score_rounding = 1e-10
    for pair in itertools.combinations(frame, 2):
        differences = (frame[pair[0]] - frame[pair[1]]).dropna().to_numpy()
        if len(differences) < 3:
            continue
        # The sign decides, since t has no variance.
        if np.ptp(differences) <= score_rounding:
            p_values[pair] = float(abs(differences[0]) <= score_rounding)
        else:
            p_values[pair] = float(stats.ttest_1samp(differences, 0.0).pvalue)
    ordered = pd.Series(p_values, dtype=float).sort_values()
    factors = np.arange(len(ordered), 0, -1)
    holm = (ordered * factors).clip(upper=1).cummax()
    best = max(frame, key=lambda name: frame[name].mean(), default=None)
    with_best = {pair: p for pair, p in holm.items() if best in pair}
    equal = {name for pair, p in with_best.items() if p > alpha for name in pair}
    if not with_best:
        return set()
    return equal | {best}


class Ranking(NamedTuple):
    """Average ranks of methods over data sets, and which of them differ."""

    table: pd.DataFrame  # by method, the best first: rank, times_best
    summary: str  # the tests in words
    p_value: float  # of Friedman's test that all methods are equally good
    critical_difference: float  # of average ranks, by Nemenyi's test at 5 %


def rank_methods(scores: pd.DataFrame) -> Ranking:
    """Rank methods on every data set, and test the average ranks for differences [1]_.

    Parameters
    ----------
    scores : DataFrame
        Data sets by methods, larger being better. If scores are missing, the method or
        data set with the largest share of missing ones is left out, until none is
        missing.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets",
       Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkclust.bench.tables import rank_methods
    >>> scores = pd.DataFrame({"a": 0.9, "b": 0.8, "c": 0.7}, index=["x", "y", "z"])
    >>> rank_methods(scores).table["rank"].to_dict()
    {'a': 1.0, 'b': 2.0, 'c': 3.0}
    """
    complete = scores.sort_index(axis=0).sort_index(axis=1)
    while complete.isna().any(axis=None):
        by_method = complete.isna().mean(axis=0)
        by_dataset = complete.isna().mean(axis=1)
        if by_method.max() >= by_dataset.max():
            complete = complete.drop(columns=by_method[::-1].idxmax())
        else:
            complete = complete.drop(index=by_dataset[::-1].idxmax())
    n, k = complete.shape
    if n < 2 or k < 3:
        raise ValueError(
            f"ranks need three methods with scores on two data sets, found {k} on {n}"
        )
    ranks = (-complete.round(10)).rank(axis=1)
    table = pd.DataFrame(
        {"rank": ranks.mean(), "times_best": ranks.eq(ranks.min(axis=1), 0).sum()}
    )
    table = table.rename_axis("method").sort_values("rank", kind="stable")
    p_value = 1.0  # if all methods are equal on all data sets
    if ranks.nunique(axis=1).max() > 1:
        p_value = float(stats.friedmanchisquare(*ranks.to_numpy().T).pvalue)
    q = stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2)
    difference = float(q * math.sqrt(k * (k + 1) / (6 * n)))
    left_out = [
        *scores.columns.difference(ranks.columns),
        *scores.index.difference(ranks.index),
    ]
    sentences = [
        f"Average ranks over {n} data sets; 1 is the best.",
        f"Friedman's test: p = {p_value:.2g}.",
        when(p_value > 0.05, "The methods may all be equally good."),
        f"Average ranks that differ by less than {difference:.2f} do not differ "
        "significantly (Nemenyi, 5 %).",
        when(n < 10, "With fewer than ten data sets the tests are rough."),
        when(left_out, f"Left out, because scores are missing: {', '.join(left_out)}."),
    ]
    return Ranking(
        table=table,
        summary=" ".join(filter(None, sentences)),
        p_value=p_value,
        critical_difference=difference,
    )


def score_matrix(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the means of one score from :func:`outcomes`, data sets by methods."""
    part = frame[frame["score"] == score]
    matrix = part.pivot(index="label", columns="method", values="mean").astype(float)
    return matrix[order_methods(matrix)]


def time_table(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the median seconds of a solve with default settings."""
    rows = list(rows)
    frame = pd.DataFrame(rows).astype({"solve_seconds": float})
    frame["label"] = frame["dataset"].map(dataset_labels(rows))
    frame = frame[(frame["status"] == "ok") & frame["default"]]
    table = frame.pivot_table("solve_seconds", "label", "method", aggfunc="median")
    return table[order_methods(table)].rename_axis(index="data set", columns=None)


def in_seconds(times: pd.DataFrame) -> str:
    """Return a table of times as Markdown, with three digits."""
    return _markdown(times.map("{:.3g}".format).where(times.notna(), "-"))


def _markdown(table: pd.DataFrame, **options: Any) -> str:
    """Return a table as Markdown; the names of its rows and columns stay text."""
    safe = table.rename(index=markdown_text, columns=markdown_text)
    return safe.to_markdown(**options)


def _csv(table: pd.DataFrame, *, index: bool = False) -> str:
    """Return a table as CSV in which a spreadsheet runs nothing."""
    safe = table.map(
        lambda cell: spreadsheet_text(cell) if isinstance(cell, str) else cell
    )
    names = {"index": spreadsheet_text, "columns": spreadsheet_text}
    return safe.rename(**names).to_csv(index=index)


def weight_table(solves: Iterable[Row]) -> pd.DataFrame:
    """Return the weight and the alignment of every kernel with default settings.

    A weight says how a method mixes the kernels, not how important they are. Read it
    together with the alignment, the share of the kernel's own leading structure that
    the consensus captures.
    """
    columns = {
        "dataset": "data set",
        "kernel_names": "kernel",
        "method": "method",
        "weights": "weight",
        "alignments": "alignment",
    }
    found = [
        solve
        for solve in solves
        if solve["default"] and not solve.get("oracle") and solve["weights"] is not None
    ]
    frame = pd.DataFrame(found, columns=list(columns)).rename(columns=columns)
    table = frame.explode(["kernel", "weight", "alignment"], ignore_index=True)
    return table.astype({"weight": float, "alignment": float})


def write_tables(path: str | Path, folder: str | Path | None = None) -> list[Path]:
    """Write the tables of a benchmark: Markdown to read, CSV to use.

    Parameters
    ----------
    path : str or path-like
        Folder of a benchmark.
    folder : str or path-like, optional
        Folder for the tables; by default ``report`` within `path`.

    Returns
    -------
    list of Path
        The files; the first one, ``README.md``, shows all tables.
    """
    rows = read_rows(path)
    solves = read_solves(path)
    table = pd.DataFrame(rows)
    n_scored = (table["status"] == "ok").sum()
    words = [f"{len(table):,} rows, {n_scored:,} of them with scores"]
    for key in pd.Index(["machine", "versions"]).intersection(table.columns):
        found = " / ".join(sorted(table[key].dropna().unique()))
        words.append(f"{key}: {markdown_text(found)}")
    meaning = "another k-means on one solve."
    resample = rows[0]["resample"]
    if resample < 1:
        share = f"{100 * resample:.0f} %"
        meaning = f"a refit on {share} of the samples, the same ones for all methods."

    # The meaning of bold face in tables.
    bold = (
        "Bold: not significantly worse than the best of the row (paired t test over "
        "the repetitions, 5 %, Holm's correction for all pairs). Every repetition is "
    )
    parts = ["# Benchmark", f"{'; '.join(words)}."]
    files = {}
    for selection, frame in outcomes_by_selection(rows).items():
        files[f"scores-{selection}.csv"] = _csv(frame)
        parts += [
            f"## Scores, {selection} settings",
            SELECTIONS[selection],
            bold + meaning,
        ]
        for score, title in TITLES.items():
            parts += [f"### {title}", _markdown(score_table(frame, score))]
        with suppress(ValueError):  # there may be too little to rank
            ranking = rank_methods(score_matrix(frame[~frame["oracle"]], "acc"))
            files[f"ranks-{selection}.csv"] = _csv(ranking.table, index=True)
            parts += [
                "### Average ranks by ACC",
                markdown_text(ranking.summary),
                _markdown(ranking.table, floatfmt=".2f"),
            ]
        problems = frame.loc[frame["problem"] != "", ["label", "method", "problem"]]
        for row in problems.drop_duplicates().to_numpy():
            parts.append(f"- {' | '.join(map(markdown_text, row))}")
    times = time_table(rows)
    files["times.csv"] = _csv(times, index=True)
    parts += ["## Seconds of a solve, default settings", in_seconds(times)]
    if solves:
        files["weights.csv"] = _csv(weight_table(solves))
        parts.append("Weights and alignments of all kernels are in weights.csv.")
    files = {"README.md": "\n\n".join(parts) + "\n"} | files
    target = Path(folder or Path(path) / "report")
    return write_atomically(
        {target / name: text.encode() for name, text in files.items()}
    )
