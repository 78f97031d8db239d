"""From the rows of a benchmark to tables of scores, ranks, times and weights."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from mkclust.bench.rows import MEAN_DIGITS, SCORES, Row, best_settings, read_rows, read_solves
from mkclust.files import write_atomically
from mkclust.methods import METHODS
from mkclust.types import Float

# The scores in the headings of tables.
TITLES = {"acc": "ACC", "nmi": "NMI", "purity": "Purity"}
# How a method's setting is chosen.
SELECTIONS = {
    "default": "Every method with its default setting; no classes were used to choose it.",
    "oracle": "The true classes chose the setting of every method, for each score separately, as "
    "in most papers. No clustering without classes can count on these scores.",
}
# The meaning of bold face in tables.
BOLD = (
    "Bold: not significantly worse than the best of the row (paired t test over the repetitions, "
    "5 %, Holm's correction for all pairs). Every "
)
# The meaning of the caveats of data sets.
CAVEATS = {
    "substitute": "other samples or kernels than the published ones, so that a difference from a "
    "published figure says nothing about the method",
    "truncated": "kernels of reduced rank, so that methods that use the tail of a spectrum may "
    "differ from a published figure for that reason alone",
}
# Scores that differ by less are equal up to rounding.
SCORE_ROUNDING = 1e-10
# The smallest number of pairs for a paired test.
MIN_PAIRS = 3


def outcomes(rows: Iterable[Row], selection: str = "default") -> pd.DataFrame:
    """Return the scores of each method on each data set.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark; see :func:`mkclust.bench.rows.read_rows`.
    selection : {"default", "oracle"}
        Whether a method has its default setting, or the best one by the true classes.

    Returns
    -------
    DataFrame
        One row per share of the samples (``resample``), data set, method and score: the ``mean``
        and ``std`` in percent over ``n`` repetitions of the setting ``parameters``; whether it is
        ``not_worse`` than the best method of the data set (see :func:`not_worse`); whether the true
        classes chose the entry itself (``oracle``), whether the solves ``converged``, and the
        ``problem`` of repetitions without scores.

    Examples
    --------
    >>> from mkclust.bench.tables import outcomes
    >>> row = {"dataset": "a", "method": "mkkm", "parameters": "{}", "resample": 1.0, "seed": 0}
    >>> row |= {"repetition": 0, "status": "ok", "default": True, "acc": 0.5}
    >>> row |= {"nmi": 0.25, "purity": 0.5}
    >>> outcomes([row]).set_index("score")["mean"].to_dict()
    {'acc': 50.0, 'nmi': 25.0, 'purity': 50.0}
    """
    if selection not in SELECTIONS:
        raise ValueError(f"selection={selection!r}: choose 'default' or 'oracle'")
    rows = list(rows)
    frame = pd.DataFrame({"oracle": False, "converged": True, "message": ""} | r for r in rows)
    found = []
    for keys, group in frame.groupby(["resample", "dataset", "method"], sort=False):
        if selection == "oracle" or not group["oracle"].any():
            head = dict(zip(("resample", "dataset", "method"), keys, strict=True))
            head["oracle"] = group["oracle"].any()
            found += [head | each for each in _group_outcomes(group, selection)]
    if not found:
        raise ValueError(f"there are no rows with {selection} settings")
    frame = pd.DataFrame(found)
    frame.insert(2, "label", frame["dataset"].map(dataset_labels(rows)))
    by_method = frame.groupby(["resample", "dataset", "score"])["values"]
    best = set[int]().union(*(not_worse(values.to_dict()) for _, values in by_method))
    frame["not_worse"] = frame.index.isin(best)
    frame["order"] = frame["method"].map(_order(frame["method"]).index)
    columns = ["resample", "label", "order", "score"]
    frame = frame.sort_values(columns, ascending=[False, True, True, True])
    return frame.drop(columns=["order", "values"]).reset_index(drop=True)


def _order(methods: Iterable[str]) -> list[str]:
    """Return methods in the order of tables: that of METHODS, then others by name."""
    names = set(methods)
    return [name for name in METHODS if name in names] + sorted(names - set(METHODS))


def _group_outcomes(rows: pd.DataFrame, selection: str) -> Iterator[dict[str, Any]]:
    """Yield the mean of every score of one method on one data set."""
    best = best_settings(rows)
    scored = rows[(rows["status"] == "ok") & rows["repetition"].notna()]
    # Some repetitions chose the settings to repeat in full; all repetitions choose among these.
    sizes = scored["parameters"].value_counts()
    full = sizes.index[sizes == sizes.reindex(best.values()).max()]
    means = scored.groupby("parameters")[list(SCORES)].mean().round(MEAN_DIGITS)
    for score in SCORES:
        setting = best.get("default" if selection == "default" else score)
        if selection == "oracle" and setting in full:
            setting = means.loc[full.sort_values(), score].idxmax()
        chosen = scored[scored["parameters"] == setting].set_index("repetition").sort_index()
        values = 100 * chosen[score].astype(float)
        tried = rows["default"] | (selection == "oracle")
        if setting is not None:
            tried = rows["parameters"] == setting
        yield {
            "score": score,
            "parameters": setting,
            "mean": math.fsum(values) / len(values) if len(values) else None,
            "std": values.std(),
            "n": len(values),
            "converged": not chosen["converged"].eq(False).any(),
            "problem": _problem(rows[tried & (rows["status"] != "ok")], len(values)),
            "values": values,
        }


def _problem(failed: pd.DataFrame, n_scored: int) -> str:
    """Return why repetitions have no scores."""
    if failed.empty:
        return "" if n_scored else "not run"
    words = min(failed["status"] + ": " + failed["message"].fillna("")).strip(": ")
    n = len(failed)
    return f"{n} of {n + n_scored} repetitions {words}" if n_scored else words


def dataset_labels(rows: Iterable[Row]) -> dict[str, str]:
    """Return the names of data sets in tables: the published name, and the caveat."""
    facts: dict[str, tuple[str, str]] = {}
    for row in rows:
        paper, caveat = facts.get(row["dataset"], ("", ""))
        facts[row["dataset"]] = row.get("paper") or paper, row.get("caveat") or caveat
    papers, labels = [paper for paper, _ in facts.values()], {}
    for name, (paper, caveat) in facts.items():
        label = name if not paper else paper if papers.count(paper) == 1 else f"{paper}: {name}"
        labels[name] = f"{label} ({caveat})" if caveat else label
    return labels


def not_worse(scores: Mapping[Any, Any], alpha: float = 0.05) -> set[Any]:
    """Return the methods that do not differ significantly from the one with the best mean.

    Paired t tests over shared repetitions, with Holm's correction for all pairs, since the data
    decide which method is the best one.

    Parameters
    ----------
    scores : dict of str to dict or Series
        The scores of each method by repetition, larger being better.
    alpha : float, default=0.05
        Largest probability of calling any two equal methods different.

    Returns
    -------
    set of str
        The best method and those like it; empty if it shares no three repetitions with another.

    Examples
    --------
    >>> from mkclust.bench.tables import not_worse
    >>> same, worse = {0: 0.7, 1: 0.8, 2: 0.6}, {0: 0.5, 1: 0.61, 2: 0.4}
    >>> sorted(not_worse({"a": same, "b": same, "c": worse}))
    ['a', 'b']
    """
    frame = pd.DataFrame(scores).dropna(axis=1, how="all")
    p_values = {}
    values = {name: frame[name].to_numpy(float) for name in frame}
    for pair in itertools.combinations(frame, 2):
        differences = values[pair[0]] - values[pair[1]]
        differences = differences[~np.isnan(differences)]
        if len(differences) >= MIN_PAIRS:
            p_values[pair] = _paired_p(differences)
    ordered = pd.Series(p_values, dtype=float).sort_values()
    holm = (ordered * np.arange(len(ordered), 0, -1)).clip(upper=1).cummax()
    best = frame.mean().idxmax() if len(holm) else None
    with_best = {pair: p for pair, p in holm.items() if best in pair}
    alike = {name for pair, p in with_best.items() if p > alpha for name in pair}
    return alike | {best} if with_best else set()


def _paired_p(differences: Float) -> float:
    """Return the p-value of the paired t test; constant differences are decided by their sign."""
    if np.ptp(differences) <= SCORE_ROUNDING:
        return 1.0 if abs(differences[0]) <= SCORE_ROUNDING else 0.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


class Ranking(NamedTuple):
    """Average ranks of methods over data sets, and which of them differ."""

    table: pd.DataFrame  # by method, the best first: rank, times_best
    summary: str  # the tests in words
    chi2: float  # Friedman's test that all methods are alike, corrected for ties
    p_value: float  # of the same test
    critical_difference: float  # of average ranks, by Nemenyi's test at 5 %


def rank_methods(scores: pd.DataFrame) -> Ranking:
    """Rank methods on every data set, and test the average ranks for differences [1]_.

    If scores are missing, the method or data set with the largest share of missing ones is left
    out, until none is missing.

    Parameters
    ----------
    scores : DataFrame
        Data sets by methods, larger being better.

    Returns
    -------
    Ranking

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

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
        by_method, by_dataset = complete.isna().mean(axis=0), complete.isna().mean(axis=1)
        if by_method.max() >= by_dataset.max():
            complete = complete.drop(columns=by_method[::-1].idxmax())
        else:
            complete = complete.drop(index=by_dataset[::-1].idxmax())
    n, k = complete.shape
    if n < 2 or k < 2:
        raise ValueError(f"ranks need two methods with scores on two data sets, found {k} on {n}")
    ranks = (-complete.round(10)).rank(axis=1)
    table = pd.DataFrame({"rank": ranks.mean(), "times_best": ranks.eq(ranks.min(axis=1), 0).sum()})
    table.index.name = "method"
    spread = ((table["rank"] - (k + 1) / 2) ** 2).sum()
    ties = ((ranks - (k + 1) / 2) ** 2).to_numpy().sum() / (n * (k - 1))
    chi2 = float(n * spread / ties) if ties else 0.0
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > SCORE_ROUNDING else math.inf
    p_value, f_p_value = stats.chi2.sf(chi2, k - 1), stats.f.sf(f, k - 1, (k - 1) * (n - 1))
    q = stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2)
    difference = float(q * math.sqrt(k * (k + 1) / (6 * n)))
    left_out = [*scores.columns.difference(ranks.columns), *scores.index.difference(ranks.index)]
    summary = (
        f"Average ranks over {n} data sets; 1 is the best. Friedman's test: p = {p_value:.2g}; "
        f"Iman and Davenport's: p = {f_p_value:.2g}."
        + " They may all be alike."
        * bool(f_p_value > 0.05)
        + f" Average ranks that differ by less than {difference:.2f} (Nemenyi, 5 %) are not told "
        "apart."
        + " With fewer than ten data sets the tests are rough." * (n < 10)
        + f" Left out, because scores are missing: {', '.join(left_out)}." * bool(left_out)
    )
    table = table.sort_values("rank", kind="stable")
    return Ranking(table, summary, chi2, float(p_value), difference)


def score_matrix(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the means of one score from :func:`outcomes`, data sets by methods."""
    part = frame[frame["score"] == score]
    matrix = part.pivot(index="label", columns="method", values="mean").astype(float)
    return matrix[_order(matrix)]


def score_table(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return one score from :func:`outcomes` as text, data sets by methods.

    Bold (``**``): not significantly worse than the best of the row. ``[o]``: the true classes chose
    the entry itself. ``[n]``: the solve stopped before it converged. ``-``: no scores.
    """
    part = frame[frame["score"] == score].copy()
    part["text"] = [_cell(row) for row in part.itertuples()]
    table = part.pivot(index="label", columns="method", values="text").fillna("-")
    return table[_order(table)].rename_axis(index="data set", columns=None)


def _cell(row: Any) -> str:
    if not row.n:
        return "-"
    text = f"{row.mean:.1f}" + (f"±{row.std:.1f}" if row.n > 1 else "")
    text = f"**{text}**" if row.not_worse else text
    return text + " [o]" * row.oracle + " [n]" * (not row.converged)


def time_table(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the median seconds of a solve with the default setting, data sets by methods."""
    rows = list(rows)
    frame = pd.DataFrame(rows).astype({"solve_seconds": float})
    frame = frame[(frame["status"] == "ok") & frame["default"] & frame["repetition"].notna()]
    frame = frame.assign(label=frame["dataset"].map(dataset_labels(rows)))
    table = frame.pivot_table("solve_seconds", "label", "method", aggfunc="median")
    return table[_order(table)].rename_axis(index="data set", columns=None)


def in_seconds(times: pd.DataFrame) -> str:
    """Return a table of times as Markdown, with three digits."""
    return times.map("{:.3g}".format).where(times.notna(), "-").to_markdown()


def weight_table(solves: Iterable[Row]) -> pd.DataFrame:
    """Return the weight and the alignment of every kernel with default settings.

    A weight says how a method mixes the kernels, not how important they are. Read it beside the
    alignment, the share of the kernel's own leading structure that the consensus captures.
    """
    rows = [
        (solve["dataset"], name, solve["method"], solve["weights"][p], solve["alignments"][p])
        for solve in solves
        if solve["default"] and not solve.get("oracle") and solve["weights"] is not None
        for p, name in enumerate(solve["kernel_names"])
    ]
    return pd.DataFrame(rows, columns=["data set", "kernel", "method", "weight", "alignment"])


def caveat_notes(rows: Iterable[Row]) -> list[str]:
    """Return the caveats of data sets that are not the published ones."""
    rows = list(rows)
    labels = dataset_labels(rows)
    pairs = sorted({(labels[row["dataset"]], row.get("caveat") or "") for row in rows})
    return [f"{label}: {CAVEATS.get(caveat, caveat)}." for label, caveat in pairs if caveat]


def write_tables(path: str | Path, folder: str | Path | None = None) -> list[Path]:
    """Write the tables of a benchmark: Markdown to read, CSV and LaTeX to use.

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
    rows, solves = read_rows(path), read_solves(path)
    folder = Path(path) / "report" if folder is None else Path(folder)
    parts, files = ["# Benchmark", _circumstances(rows), *caveat_notes(rows)], {}
    for selection in SELECTIONS:
        try:
            frame = outcomes(rows, selection)
        except ValueError:
            continue
        files[f"scores-{selection}.csv"] = frame.to_csv(index=False)
        for resample, part in frame.groupby("resample", sort=False):
            parts += _score_parts(part, selection, float(str(resample)), files)
    times = time_table(rows)
    files["times.csv"] = times.to_csv()
    parts += ["## Seconds of a solve, default settings", in_seconds(times)]
    if solves:
        files["weights.csv"] = weight_table(solves).to_csv(index=False)
        parts.append("Weights and alignments of all kernels are in weights.csv.")
    files = {"README.md": "\n\n".join(parts) + "\n"} | files
    return write_atomically({folder / name: text.encode() for name, text in files.items()})


def _score_parts(
    frame: pd.DataFrame, selection: str, resample: float, files: dict[str, str]
) -> list[str]:
    """Return the tables of one selection as Markdown, and add the others to `files`."""
    share, bold, end = "", BOLD + "method is solved once and only k-means is repeated.", ""
    if resample < 1:
        share, end = f", refits on {100 * resample:.0f} %", f"-resample-{resample}"
        bold = BOLD + "repetition is a refit on the same part of the samples for all methods."
    parts = [f"## Scores, {selection} settings{share}", SELECTIONS[selection], bold]
    for score, title in TITLES.items():
        table = score_table(frame, score)
        caption = f"{title}{share} ({selection} settings)"
        files[f"{score}-{selection}{end}.tex"] = _latex(table, caption)
        parts += [f"### {title}", table.to_markdown()]
    try:
        ranking = rank_methods(score_matrix(frame[~frame["oracle"]], "acc"))
    except ValueError:  # too little to rank
        pass
    else:
        files[f"ranks-{selection}-{resample}.csv"] = ranking.table.to_csv()
        text = ranking.table.to_markdown(floatfmt=".2f")
        parts += ["### Average ranks by ACC", ranking.summary, text]
    problems = frame.loc[frame["problem"] != "", ["label", "method", "problem"]]
    return parts + [f"- {' | '.join(row)}" for row in problems.drop_duplicates().to_numpy()]


def _circumstances(rows: list[Row]) -> str:
    """Return how much was run, on which machines, and with which versions."""
    frame = pd.DataFrame(rows)
    words = [f"{len(frame):,} rows, {(frame['status'] == 'ok').sum():,} of them with scores"]
    for key in ("machine", "versions"):
        if key in frame:
            words.append(f"{key}: {' / '.join(sorted(frame[key].dropna().unique()))}")
    return "; ".join(words) + "."


def _latex(table: pd.DataFrame, caption: str) -> str:
    """Return a table of texts for LaTeX, its bold marks as boldface."""
    texts = table.replace({r"\*\*(.*?)\*\*": r"\\textbf{\1}", "±": r"$\\pm$"}, regex=True)
    texts = texts.rename(index=lambda text: text.replace("_", r"\_").replace("%", r"\%"))
    return texts.to_latex(escape=False, caption=caption.replace("%", r"\%"))
