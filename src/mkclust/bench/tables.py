"""From the rows of a benchmark to tables of scores, ranks, times and weights."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from mkclust.bench.rows import SCORES, Row, best_settings, mean, read_rows, read_solves
from mkclust.files import write_atomically
from mkclust.methods import METHODS

# How the headings of tables call the scores.
TITLES = {"acc": "ACC", "nmi": "NMI", "purity": "Purity"}
# Who chooses a method's setting.
SELECTIONS = {
    "default": "Every method with its default setting; no classes were used to choose it.",
    "oracle": "The true classes chose the setting of every method, for each score separately, as "
    "in most papers. No clustering without classes can count on these scores.",
}
# What bold face means.
BOLD = (
    "Bold: not significantly worse than the best of the row (paired t test over the repetitions, "
    "5 %, Holm's correction for all pairs). Every "
)
# What the caveat of a data set means.
CAVEATS = {
    "substitute": "other samples or kernels than the published ones, so that a difference from a "
    "published figure says nothing about the method",
    "truncated": "kernels of reduced rank, so that methods that use the tail of a spectrum may "
    "differ from a published figure for that reason alone",
}
# Two scores that differ by less are the same up to rounding.
SAME = 1e-10
# The least number of pairs for a test.
FEWEST_PAIRS = 3


def outcomes(rows: Iterable[Row], selection: str = "default") -> pd.DataFrame:
    """Return what each method reached on each data set.

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
    labels = dataset_labels(rows)
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault((float(row["resample"]), row["dataset"], row["method"]), []).append(row)
    found = []
    for (resample, dataset, method), group in groups.items():
        head = {"resample": resample, "dataset": dataset, "label": labels[dataset]}
        head |= {"method": method, "oracle": any(row.get("oracle") for row in group)}
        if selection == "oracle" or not head["oracle"]:
            found += [head | _outcome(group, score, selection) for score in SCORES]
    frame = pd.DataFrame(found)
    if frame.empty:
        raise ValueError(f"there are no rows with {selection} settings")
    by_method = frame.groupby(["resample", "dataset", "score"])["values"]
    alike = set[int]().union(*(not_worse(values.to_dict()) for _, values in by_method))
    frame["not_worse"] = frame.index.isin(alike)
    order = {name: number for number, name in enumerate(METHODS)}
    frame["order"] = frame["method"].map(order).fillna(len(order))
    keys = ["resample", "label", "order", "method", "score"]
    frame = frame.sort_values(keys, ascending=[False, True, True, True, True])
    return frame.drop(columns=["order", "values"]).reset_index(drop=True)


def _outcome(rows: list[Row], score: str, selection: str) -> dict[str, Any]:
    """Return the mean of one score of one method on one data set."""
    setting = _setting(rows, score, selection)
    repeated = [row for row in rows if row["repetition"] is not None]
    chosen = [row for row in repeated if row["parameters"] == setting]
    candidates = chosen
    if setting is None:
        candidates = [r for r in rows if selection == "oracle" or r["default"]] or rows
    scored = {row["repetition"]: 100 * row[score] for row in chosen if row["status"] == "ok"}
    values = pd.Series(scored, dtype=float).sort_index()
    failed = [row for row in candidates if row["status"] != "ok"]
    return {
        "score": score,
        "parameters": setting,
        "mean": math.fsum(values) / len(values) if len(values) else None,
        "std": values.std(),
        "n": len(values),
        "converged": not any(row.get("converged") is False for row in chosen),
        "problem": _problem(failed, len(values)),
        "values": values,
    }


def _setting(rows: list[Row], score: str, selection: str) -> str | None:
    """Return the setting that stands for a method; None if none has scores."""
    best = best_settings(rows)
    if selection == "default":
        return best.get("default")
    # A few repetitions choose which settings are repeated in full; all repetitions choose among
    # these.
    values: dict[str, list[float]] = {}
    for row in rows:
        if row["status"] == "ok" and row["repetition"] is not None:
            values.setdefault(row["parameters"], []).append(row[score])
    most = max((len(values.get(name, ())) for name in best.values()), default=0)
    full = {name: values[name] for name in sorted(values) if len(values[name]) == most}
    return max(full, key=lambda n: mean(full[n])) if best.get(score) in full else best.get(score)


def _problem(failed: list[Row], n_scored: int) -> str:
    """Return why repetitions have no scores."""
    if not failed:
        return "" if n_scored else "not run"
    row = min(failed, key=lambda row: (row["status"], row.get("message") or ""))
    words = f"{row['status']}: {row.get('message') or ''}".strip(": ")
    return f"{len(failed)} of {len(failed) + n_scored} repetitions {words}" if n_scored else words


def dataset_labels(rows: Iterable[Row]) -> dict[str, str]:
    """Return how data sets are called in tables: the published name, and the caveat."""
    papers: dict[str, str] = {}
    caveats: dict[str, str] = {}
    for row in rows:
        papers[row["dataset"]] = row.get("paper") or papers.get(row["dataset"], "")
        caveats[row["dataset"]] = row.get("caveat") or caveats.get(row["dataset"], "")
    claims = list(papers.values())
    labels = {}
    for name, paper in papers.items():
        label = name if not paper else paper if claims.count(paper) == 1 else f"{paper}: {name}"
        labels[name] = f"{label} ({caveats[name]})" if caveats[name] else label
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
    for pair in itertools.combinations(frame, 2):
        differences = (frame[pair[0]] - frame[pair[1]]).dropna()
        if len(differences) >= FEWEST_PAIRS:
            p_values[pair] = _paired_p(differences)
    ordered = pd.Series(p_values, dtype=float).sort_values()
    holm = (ordered * np.arange(len(ordered), 0, -1)).clip(upper=1).cummax()
    best = frame.mean().idxmax() if len(holm) else None
    with_best = {pair: p for pair, p in holm.items() if best in pair}
    alike = {name for pair, p in with_best.items() if p > alpha for name in pair}
    return alike | {best} if with_best else set()


def _paired_p(differences: pd.Series) -> float:
    """Return the p-value of the paired t test; constant differences are decided by their sign."""
    if np.ptp(differences) <= SAME:
        return 1.0 if abs(differences.iloc[0]) <= SAME else 0.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Average ranks of methods over data sets, and which of them differ.

    Attributes
    ----------
    table : DataFrame
        By method, from the best average rank to the worst: ``rank``, and ``times_best``.
    datasets : tuple of str
        The data sets ranked on.
    chi2, chi2_p_value : float
        Friedman's test that all methods are alike, corrected for ties.
    f, f_p_value : float
        The same test in the less conservative form of Iman and Davenport.
    critical_difference : float
        Average ranks further apart differ significantly (Nemenyi's test at 5 %).
    methods_left_out, datasets_left_out : tuple of str
        What was left out because scores were missing.
    """

    table: pd.DataFrame
    datasets: tuple[str, ...]
    chi2: float
    chi2_p_value: float
    f: float
    f_p_value: float
    critical_difference: float
    methods_left_out: tuple[str, ...]
    datasets_left_out: tuple[str, ...]

    def summary(self) -> str:
        """Return what was tested, in words."""
        left_out = [
            f"{kind} left out, because scores are missing: {', '.join(names)}."
            for kind, names in (
                ("Methods", self.methods_left_out),
                ("Data sets", self.datasets_left_out),
            )
            if names
        ]
        alike = "" if self.f_p_value <= 0.05 else " They may all be alike."
        few = " With fewer than ten data sets the tests are rough." * (len(self.datasets) < 10)
        return " ".join(
            [
                f"Average ranks over {len(self.datasets)} data sets; 1 is the best. Friedman's "
                f"test: p = {self.chi2_p_value:.2g}; Iman and Davenport's: p = "
                f"{self.f_p_value:.2g}.{alike} Average ranks that differ by less than "
                f"{self.critical_difference:.2f} (Nemenyi, 5 %) are not told apart.{few}",
                *left_out,
            ]
        )


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
    f = float((n - 1) * chi2 / rest) if rest > SAME else math.inf
    q = stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2)
    return Ranking(
        table.sort_values("rank", kind="stable"),
        tuple(complete.index),
        chi2,
        float(stats.chi2.sf(chi2, k - 1)),
        f,
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        float(q * math.sqrt(k * (k + 1) / (6 * n))),
        tuple(sorted(set(scores.columns) - set(complete.columns))),
        tuple(sorted(set(scores.index) - set(complete.index))),
    )


def score_matrix(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the means of one score from :func:`outcomes`, data sets by methods."""
    part = frame[frame["score"] == score]
    matrix = part.pivot(index="label", columns="method", values="mean").astype(float)
    return matrix[list(dict.fromkeys(part["method"]))]


def score_table(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return one score from :func:`outcomes` as text, data sets by methods.

    Bold (``**``): not significantly worse than the best of the row. ``[o]``: the true classes chose
    the entry itself. ``[n]``: the solve stopped before it converged. ``-``: no scores.
    """
    part = frame[frame["score"] == score].copy()
    part["text"] = [_cell(row) for row in part.itertuples()]
    table = part.pivot(index="label", columns="method", values="text").fillna("-")
    return table[list(dict.fromkeys(part["method"]))].rename_axis(index="data set", columns=None)


def _cell(row: Any) -> str:
    if not row.n:
        return "-"
    text = f"{row.mean:.1f}" + (f"±{row.std:.1f}" if row.n > 1 else "")
    marks = [f" [{mark}]" for mark, on in (("o", row.oracle), ("n", not row.converged)) if on]
    return (f"**{text}**" if row.not_worse else text) + "".join(marks)


def time_table(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the median seconds of a solve with the default setting, data sets by methods."""
    rows = list(rows)
    frame = pd.DataFrame(rows).astype({"solve_seconds": float})
    frame = frame[(frame["status"] == "ok") & frame["default"] & frame["repetition"].notna()]
    frame = frame.assign(label=frame["dataset"].map(dataset_labels(rows)))
    table = frame.pivot_table("solve_seconds", "label", "method", aggfunc="median")
    order = [name for name in METHODS if name in table]
    order += [name for name in table if name not in METHODS]
    return table[order].rename_axis(index="data set", columns=None)


def in_seconds(times: pd.DataFrame) -> str:
    """Return a table of times as Markdown, with three digits."""
    texts = times.map("{:.3g}".format).where(times.notna(), "-")
    return texts.to_markdown()


def weight_table(solves: Iterable[Row]) -> pd.DataFrame:
    """Return the weight and the alignment of every kernel with default settings.

    A weight says how a method mixes the kernels, not how important they are. Read it beside the
    alignment, the share of the kernel's own leading structure that the consensus captures.
    """
    rows = [
        {"data set": solve["dataset"], "kernel": name, "method": solve["method"]}
        | {"weight": solve["weights"][p], "alignment": solve["alignments"][p]}
        for solve in solves
        if solve["default"] and not solve.get("oracle") and solve["weights"] is not None
        for p, name in enumerate(solve["kernel_names"])
    ]
    return pd.DataFrame(rows, columns=["data set", "kernel", "method", "weight", "alignment"])


def caveat_notes(rows: Iterable[Row]) -> list[str]:
    """Return what must be said about data sets that are not the published ones."""
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
    for selection, words in SELECTIONS.items():
        try:
            frame = outcomes(rows, selection)
        except ValueError:
            continue
        files[f"scores-{selection}.csv"] = frame.to_csv(index=False)
        for resample, part in frame.groupby("resample", sort=False):
            share = "" if resample == 1 else f", refits on {100 * float(str(resample)):.0f} %"
            bold = BOLD + (
                "repetition is a refit on the same part of the samples for all methods."
                if share
                else "method is solved once and only k-means is repeated."
            )
            parts += [f"## Scores, {selection} settings{share}", words, bold]
            for score, title in TITLES.items():
                table = score_table(part, score)
                name = f"{score}-{selection}" + ("" if resample == 1 else f"-resample-{resample}")
                files[f"{name}.tex"] = _latex(table, f"{title}{share} ({selection} settings)")
                parts += [f"### {title}", table.to_markdown()]
            parts += _rank_parts(part, files, f"{selection}-{resample}")
            problems = part.loc[part["problem"] != "", ["label", "method", "problem"]]
            parts += [f"- {' | '.join(row)}" for row in problems.drop_duplicates().to_numpy()]
    times = time_table(rows)
    files["times.csv"] = times.to_csv()
    parts += ["## Seconds of a solve, default settings", in_seconds(times)]
    if solves:
        files["weights.csv"] = weight_table(solves).to_csv(index=False)
        parts.append("Weights and alignments of all kernels are in weights.csv.")
    text = "\n\n".join(part for part in parts if part) + "\n"
    contents = {folder / "README.md": text.encode()}
    contents |= {folder / name: content.encode() for name, content in files.items()}
    return write_atomically(contents)


def _rank_parts(frame: pd.DataFrame, files: dict[str, str], name: str) -> list[str]:
    """Return the table of average ranks by accuracy, if there is enough to rank."""
    try:
        ranking = rank_methods(score_matrix(frame[~frame["oracle"]], "acc"))
    except ValueError:
        return []
    files[f"ranks-{name}.csv"] = ranking.table.to_csv()
    text = ranking.table.to_markdown(floatfmt=".2f")
    return ["### Average ranks by ACC", ranking.summary(), text]


def _circumstances(rows: list[Row]) -> str:
    """Return how much was run, where, and with which versions."""
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
