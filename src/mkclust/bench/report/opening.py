"""What a report says first: what reproduces, on which data, and what is missing."""

from collections.abc import Iterable, Sequence
from itertools import product

from mkclust.bench.tables import Results, Row
from mkclust.bench.tables.comparison import WITHIN, ScoreComparison, paper_comparison
from mkclust.bench.tables.formats import escape
from mkclust.bench.tables.outcomes import reason
from mkclust.bench.tables.scores import CHOSEN, TITLES

MOST_LISTED = 12  # figures that differ from the paper's, beyond which the table must do


def say_reproduction(results: Results) -> list[str]:
    """Say by counts which figures of the paper are reproduced, of those that were measured."""
    comparisons, paragraphs = paper_comparison(results), []
    for selection in ("oracle", "default"):
        part = [cell for cell in comparisons if cell.selection == selection]
        same = [cell for cell in part if not cell.caveat]
        other = [cell for cell in part if cell.caveat]
        kind = CHOSEN[selection] + (", as in the paper" if selection == "oracle" else "")
        if same:
            paragraphs.append(
                f"**With {kind}**, on the paper's samples and views, or its kernels "
                f"({_list_names(cell.label for cell in same)}): {_count_close(same)}."
            )
            paragraphs += _say_distant(same)
        if other:
            paragraphs.append(
                f"With {kind}, on data that are not the paper's "
                f"({_list_names(cell.label for cell in other)}): {_count_close(other)}; this is "
                "not a reproduction, whichever way it comes out."
            )
    return paragraphs


def say_data(results: Results) -> list[str]:
    """Say which data sets there are, and which of them are not what the paper used."""
    labels = results.names.labels
    first: dict[str, Row] = {}
    for run in results.runs.values():
        for dataset in run.datasets:
            first.setdefault(dataset, {})
        for row in run.rows():
            if row.get("n_samples"):
                first[row["dataset"]] = first[row["dataset"]] or row
    lines = ["| data set | name | samples | kernels | clusters |"]
    lines.append("| :--- | :--- | ---: | ---: | ---: |")
    for dataset, row in first.items():
        counts = [row.get(name) for name in ("n_samples", "n_kernels", "n_clusters")]
        numbers = ["-" if count is None else f"{count:,}" for count in counts]
        lines.append(f"| {' | '.join([escape(labels[dataset]), escape(dataset), *numbers])} |")
    caveats = [f"- {escape(note)}" for note in results.names.notes(first)]
    return ["\n".join(lines), *(["\n".join(caveats)] if caveats else [])]


def say_missing(results: Results) -> list[str]:
    """Say what failed and why, what was not run, and what did not converge."""
    failed, absent, unfinished = [], [], []
    for run in results.runs.values():
        for dataset, method in product(run.datasets, run.methods):
            where = f"{escape(run.label(dataset))}, {escape(method)}{run.ending}"
            rows = run.entry(dataset, method).rows
            if not rows:
                absent.append(where)
            failed += [f"- {where}: {words}" for words in _failures(rows)]
            if open_ones := _count_settings(row for row in rows if row.get("converged") is False):
                unfinished.append(f"{where} ({open_ones} of {_settings_in_words(rows)})")
    paragraphs = ["\n".join(["Failed:", "", *failed])] if failed else ["Nothing failed."]
    if absent:
        paragraphs.append(f"No rows at all: {'; '.join(absent)}.")
    if unfinished:
        paragraphs.append(
            f"Stopped before converging, and scored as they were: {'; '.join(unfinished)}."
        )
    return paragraphs


def say_circumstances(results: Results) -> str:
    """Say how much was run, where, and with which versions."""
    sentence = f"{results.n_rows:,} rows, {results.n_scored:,} of them with scores"
    for word, values in (("machine", results.machines), ("versions", results.versions)):
        if values:
            sentence += f"; {word}: {' / '.join(map(escape, values))}"
    return f"{sentence}."


def _count_close(comparisons: Sequence[ScoreComparison]) -> str:
    """Return how many figures are how close to the paper's."""
    n = len(comparisons)
    close = [
        f"{sum(abs(c.difference) <= points for c in comparisons)} within {points:g}"
        for points in WITHIN
    ]
    points = ", ".join(close[:-1]) + f" and {close[-1]}"
    return f"of {n} figure{'s' * (n != 1)}, {points} points of percent"


def _say_distant(comparisons: Sequence[ScoreComparison]) -> list[str]:
    """Name the figures that differ from the paper's by more than the widest count."""
    distant = [cell for cell in comparisons if abs(cell.difference) > WITHIN[-1]]
    if not distant:
        return []
    distant.sort(key=lambda cell: -abs(cell.difference))
    named = [
        f"{escape(cell.label)}, {escape(cell.method)}, {TITLES[cell.score]}: {cell.ours:.1f} for "
        f"{cell.paper:.1f}"
        for cell in distant[:MOST_LISTED]
    ]
    rest = len(distant) - len(named)
    more = f"; and {rest} more" if rest else ""
    return [f"Further away (ours for the paper's): {'; '.join(named)}{more}."]


def _list_names(labels: Iterable[str]) -> str:
    """Return names, each once."""
    return ", ".join(map(escape, dict.fromkeys(labels)))


def _failures(rows: Sequence[Row]) -> list[str]:
    """Return each reason for which settings of one method failed, and how many did."""
    done = {_key(row) for row in rows if row["status"] == "ok"}
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        if row["status"] != "ok" and _key(row) not in done:
            by_reason.setdefault(reason([row]), []).append(row)
    n_settings = _settings_in_words(rows)
    return [
        f"{escape(words)} ({_count_settings(by_reason[words])} of {n_settings})"
        for words in sorted(by_reason)
    ]


def _count_settings(rows: Iterable[Row]) -> int:
    """Return the number of settings that rows are of."""
    return len({row["parameters"] for row in rows})


def _settings_in_words(rows: Iterable[Row]) -> str:
    """Return the number of settings in words."""
    n_settings = _count_settings(rows)
    return f"{n_settings} setting{'s' * (n_settings != 1)}"


def _key(row: Row) -> tuple:
    """Return what makes a row the same task as another."""
    return row["parameters"], row["repetition"]
