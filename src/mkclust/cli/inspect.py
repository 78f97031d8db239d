"""The command ``mkclust inspect``: what files hold and what would be made of it, not clustered."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust import datasets
from mkclust.cli.failures import expected_failures, in_options, one_line, recorded_warnings, say
from mkclust.cli.inputs import DEFAULT_TABLES, joined_views, kernels_taken_for_views, read_all
from mkclust.cli.joining import all_views, common_ids, paired_by_row, row_ids
from mkclust.cli.method import kernels_by_view, parse_kernels
from mkclust.cli.near_misses import problems, suspicions, unusable_columns
from mkclust.cli.options import (
    Drop,
    Id,
    Impute,
    Inputs,
    Join,
    Json,
    Kernels,
    SamplesIn,
)
from mkclust.cli.outputs import strict_json
from mkclust.cli.printing import Progress, count
from mkclust.cli.table_request import TableRequest
from mkclust.data.samples import Samples
from mkclust.data.tables import CATEGORIES, is_frame, is_numeric, read_column
from mkclust.exceptions import KernelWarning
from mkclust.kernels import default_bank
from mkclust.text import join_words

# Kernels are told from so many samples: their kinds need no more.
MOST_SAMPLES = 2000
# What columns hold, by their kinds.
WORDS = {
    "number": "numbers",
    "boolean": "truth values",
    "category": "categories",
    "text": "text",
    "date": "dates",
    "other": "values of several types",
}


@dataclass
class ViewReport:
    """What was understood of one view.

    Attributes
    ----------
    name, file : str
        Of the view, and where it comes from.
    n_samples, n_columns : int
        Its size.
    ids : str or None
        The first id; None where rows are paired by their order.
    columns : dict of str to int
        How many columns hold what.
    missing : float
        The share of cells that are missing.
    lacks : int
        How many of all samples are missing from it.
    scale : dict of str to float or None
        Median and largest of the standard deviations of its columns of numbers.
    kernels : list of str
        What is made of it, and why.
    warnings : list of str
        What may be wrong with it.
    """

    name: str
    file: str
    n_samples: int
    n_columns: int
    ids: str | None
    columns: dict[str, int]
    missing: float
    scale: dict[str, float] | None
    lacks: int = 0
    kernels: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def run(
    inputs: Inputs,
    kernels: Kernels = None,
    id: Id = None,
    samples_in: SamplesIn = None,
    join: Join = "exact",
    impute: Impute = None,
    drop: Drop = None,
    as_json: Json = False,
) -> None:
    """Show what the files contain, how they would be joined and which kernels would be used."""
    asked_for = parse_kernels(kernels or [])
    tables = TableRequest.of(id, samples_in, drop, join, impute)
    with Progress() as progress, recorded_warnings() as log, expected_failures():
        progress.phase("reading")
        _, data_sets = read_all(
            inputs,
            precomputed=asked_for == "precomputed",
            tables=tables,
        )
        progress.phase("looking at views")
        report = inspect(inputs, data_sets, tables, asked_for)
    report["warnings"] += [in_options(one_line(entry.message)) for entry in log]
    say(strict_json(report).rstrip("\n") if as_json else _as_text(report))


def inspect(
    inputs: Sequence[str],
    data_sets: Sequence[datasets.Dataset],
    tables: TableRequest = DEFAULT_TABLES,
    kernels: Any = "auto",
) -> dict[str, Any]:
    """Return what was understood of data sets, as a record.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    tables : TableRequest
        The options about tables.
    kernels : str or dict
        The kernels that were asked for.

    Returns
    -------
    dict
        With the keys views, join, patterns, problems and warnings.
    """
    found = problems(inputs, data_sets, kernels)
    if any(data.precomputed for data in data_sets):
        lines = [f"{text}: {data!r}" for text, data in zip(inputs, data_sets, strict=True)]
        return {
            "views": [],
            "join": "",
            "patterns": [],
            "kernels": lines,
            "problems": found,
            "warnings": [],
        }
    reports = [_look(text, name, view) for text, name, view in all_views(inputs, data_sets)]
    found += _refusals(data_sets, tables)
    patterns: list[dict[str, Any]] = []
    if not found:
        try:
            samples, names = joined_views(data_sets, tables)
            patterns = _count_missing(reports, names, samples)
            if nearly := kernels_taken_for_views(inputs, samples, kernels):
                found = [in_options(nearly)]
            else:
                _explain(reports, samples, kernels)
        except (ValueError, TypeError) as error:
            found = [in_options(one_line(error))]
    return {
        "views": [asdict(each) for each in reports],
        "join": _join_sentence(inputs, data_sets, tables.join),
        "patterns": patterns,
        "kernels": [],
        "problems": found,
        "warnings": suspicions(inputs, data_sets),
    }


def _refusals(data_sets: Sequence[datasets.Dataset], tables: TableRequest) -> list[str]:
    """Return why tables are refused; as if each remedy were followed, to see what comes after."""
    sentences = []
    usable = [_without_unusable_columns(data) for data in data_sets]
    joined = replace(tables, join="inner" if tables.join == "exact" else tables.join)
    filled = replace(joined, impute="median")
    for request in (tables, joined, filled):
        try:
            joined_views(usable, request)[0].views  # noqa: B018 - computed to be checked
            break
        except (ValueError, TypeError) as error:
            sentences.append(in_options(one_line(error)))
    return list(dict.fromkeys(sentences))


def _without_unusable_columns(data: datasets.Dataset) -> datasets.Dataset:
    """Return a data set without columns of text and dates, which have been named."""
    views = {
        name: view.drop(columns=list(unusable_columns(view))) if is_frame(view) else view
        for name, view in (data.views or {}).items()
    }
    return replace(data, views=views)


def _look(text: str, name: str, view: Any) -> ViewReport:
    """Return what one view holds, before anything is made of it."""
    ids = row_ids(view)
    matrix = view.X if hasattr(view, "obs_names") else view
    report = ViewReport(
        name,
        text,
        int(view.shape[0]),
        int(view.shape[1]),
        None if ids is None else str(ids[0]),
        _column_kinds(matrix),
        0.0,
        None,
    )
    if is_frame(matrix):
        report.missing = float(matrix.isna().to_numpy().mean())
        matrix = matrix.select_dtypes("number").to_numpy(dtype=float)
    elif issparse(matrix):
        report.columns = {"sparse": report.n_columns}
        return report
    rows = np.asarray(matrix[:MOST_SAMPLES], dtype=float)
    if rows.shape[1]:
        _measure(report, rows)
    return report


def _measure(report: ViewReport, rows: np.ndarray) -> None:
    """Note the scale of columns, and what is odd about it."""
    report.missing = report.missing or float(np.isnan(rows).mean())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
        variances = np.nan_to_num(np.nanvar(rows, axis=0))
    deviations = np.sqrt(variances)
    report.scale = {"median": float(np.median(deviations)), "largest": float(deviations.max())}
    if constant := int(np.sum(deviations == 0)):
        report.warnings.append(f"{count(constant, 'column')} of one value each")


def _column_kinds(view: Any) -> dict[str, int]:
    """Return how many columns of a view hold what."""
    if not is_frame(view):
        return {"numbers": int(view.shape[1])}
    if is_numeric(view):
        return {"numbers": int(view.shape[1])}
    columns = (read_column(view, place) for place in range(view.shape[1]))
    return dict(Counter(WORDS[column.kind] for column in columns))


def _explain(
    reports: Sequence[ViewReport],
    samples: Samples,
    kernels: Any,
) -> None:
    """Note which kernel each view would have, why, and what may be wrong with it."""
    n = samples.n_samples
    if n > MOST_SAMPLES:
        rows = np.linspace(0, n - 1, MOST_SAMPLES).astype(int)
        parts = tuple(samples.views.values())
        samples = replace(samples, parts=parts).take(rows)
    by_name = kernels_by_view(kernels, samples.names)
    several = len(samples.names) > 1 or isinstance(by_name, Mapping)
    with recorded_warnings() as log:
        bank = default_bank(several, by_name).fit(samples)
    sentences = [str(entry.message) for entry in log if entry.category is KernelWarning]
    for entry in log:
        if entry.category is not KernelWarning:  # about no view in particular
            warnings.warn(entry.message, stacklevel=2)
    for report in reports:
        for name in (report.name, CATEGORIES.format(report.name)):
            lines = bank.explain().splitlines()
            report.kernels += _after(f"{name}: ", lines)
            report.warnings += map(in_options, _after(f"View {name!r}: ", sentences))


def _count_missing(
    reports: Sequence[ViewReport], names: Sequence[str], samples: Samples
) -> list[dict[str, Any]]:
    """Note how many samples each view lacks, and return which views go missing together."""
    if samples.missing is None:
        return []
    lacks = dict(zip(samples.names, samples.missing.T, strict=True))
    for report, name in zip(reports, names, strict=True):
        report.lacks = int(lacks[name].sum())
    # The categories of a table are missing where its numbers are.
    counts = Counter(map(tuple, np.column_stack([lacks[name] for name in names]).tolist()))
    return [
        {"lacks": [name for name, gone in zip(names, pattern, strict=True) if gone], "samples": n}
        for pattern, n in counts.most_common()
    ]


def _after(title: str, lines: Sequence[str]) -> list[str]:
    """Return what is said about something in lines that begin with its title."""
    return [line.removeprefix(title) for line in lines if line.startswith(title)]


def _join_sentence(inputs: Sequence[str], data_sets: Sequence[datasets.Dataset], join: str) -> str:
    """Say how many samples a join would keep."""
    views = [view for *_, view in all_views(inputs, data_sets)]
    indices = [ids for view in views if (ids := row_ids(view)) is not None]
    rest = "".join(f" {line}; {advice}." for line, advice in paired_by_row(inputs, data_sets))
    if not indices:
        return f"No ids: rows are paired by their order, {views[0].shape[0]} samples.{rest}"
    if len(views) == 1:
        return f"1 file, {len(indices[0])} samples."
    everybody = indices[0]
    for ids in indices[1:]:
        everybody = everybody.union(ids, sort=False)
    common, how = len(common_ids(indices)), "Files with ids" if rest else "Joined by id"
    if not common:
        return f"{how}: none of {len(everybody)} samples is in all files.{rest}"
    if common == len(everybody):
        return f"{how}: all files hold the same {common} samples.{rest}"
    keeps = "all are kept" if join == "outer" else "--join inner keeps these, --join outer all"
    return f"{how}: {common} of {len(everybody)} samples are in all files; {keeps}.{rest}"


def _as_text(report: dict[str, Any]) -> str:
    """Return a record as lines to be read."""
    lines: list[str] = [*report["kernels"]]
    for view in report["views"]:
        kinds = ", ".join(f"{number} {kind}" for kind, number in view["columns"].items())
        ids = "no ids" if view["ids"] is None else f"ids such as {view['ids']!r}"
        lines.append(f"{view['name']} ({view['file']})")
        lines.append(
            f"  {view['n_samples']} samples x {view['n_columns']} columns ({kinds}), {ids}"
        )
        if view["scale"] is not None:
            median, largest = view["scale"]["median"], view["scale"]["largest"]
            lines.append(f"  standard deviations: median {median:.3g}, largest {largest:.3g}")
        lines.append(f"  missing: {view['missing']:.2%} of the cells")
        lines += [f"  lacks {count(view['lacks'], 'sample')}"] if view["lacks"] else []
        lines += [f"  kernel: {line}" for line in view["kernels"]]
        lines += [f"  warning: {line}" for line in view["warnings"]]
    lines += [report["join"]] if report["join"] else []
    lines += _pattern_lines(report["patterns"])
    lines += [f"warning: {line}" for line in dict.fromkeys(report["warnings"])]
    lines += [f"problem: {line}" for line in report["problems"]]
    return "\n".join(lines)


def _pattern_lines(patterns: Sequence[dict[str, Any]]) -> list[str]:
    """Say how many sorts of samples there are by the views that they lack, the largest first."""
    if not patterns:
        return []
    sorts = [
        f"{count(each['samples'], 'sample')} "
        + (f"without {join_words(each['lacks'])}" if each["lacks"] else "in all views")
        for each in patterns
    ]
    return [f"{count(len(patterns), 'pattern')} of missing views: {join_words(sorts)}."]
