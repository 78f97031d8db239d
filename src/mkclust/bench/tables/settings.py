"""A table of settings: how many were tried, and which were chosen."""

from collections.abc import Iterable

from mkclust.bench.rows import DEFAULT, SCORES, Row
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import chosen, dataset_labels, group
from mkclust.bench.tables.scores import TITLES, caveat_notes, repeated, suffix


def settings_table(rows: Iterable[Row], resample: float | None = None) -> Table:
    """Return which settings were chosen, and of how many, for methods that have a choice.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    Table
        A row for each data set and each method of which more than one setting was tried.
    """
    rows = list(rows)
    grouped, resample = group(rows, resample)
    labels = dataset_labels(rows)
    columns = ["method", "tried", "failed"]
    columns += [f"oracle, {TITLES[score]}" for score in SCORES] + ["default", "stable"]
    lines: list[tuple] = []
    listed = set()
    for dataset, own in grouped.items():
        block: list[tuple] = []
        for method, its in own.items():
            tried = {row["parameters"] for row in its}
            if len(tried) == 1:
                continue
            failed = tried - {row["parameters"] for row in its if row["status"] == "ok"}
            names = [chosen(its, score, "oracle") for score in SCORES]
            if any(row.get("oracle") for row in its):
                names += [None, None]
            else:
                names += [chosen(its, "acc", selection) for selection in ("default", "stable")]
            counts = [Cell(float(n), text=str(n)) for n in (len(tried), len(failed))]
            block.append((method, *counts, *(Cell(None, text=_setting(name)) for name in names)))
        if block:
            listed.add(dataset)
            lines += [(labels[dataset],), *block]
    notes = (
        "The oracle's settings are chosen by the true classes, the stable one without them. "
        "Methods that are not listed had one setting, and nothing to choose.",
        *caveat_notes(row for row in rows if row["dataset"] in listed),
    )
    title = "Settings tried and chosen" + repeated(resample)
    return Table("settings" + suffix(resample), title, tuple(columns), tuple(lines), notes)


def _setting(parameters: str | None) -> str:
    """Return a setting for a cell."""
    if parameters is None:
        return "-"
    return "defaults" if parameters == DEFAULT else parameters.strip("{}").replace('"', "")
