"""Parts of a benchmark's report on scores: tables with the pictures that belong to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mkclust.bench.report.dots import Dot, Panel, draw_dots
from mkclust.bench.report.maps import draw_differences
from mkclust.bench.report.rankings import draw_ranks
from mkclust.bench.tables import (
    PAPER_METHODS,
    SCORES,
    SELECTIONS,
    Ranking,
    Results,
    Run,
    Table,
    ablation_table,
    paper_comparison,
    rank_table,
    settings_table,
)
from mkclust.bench.tables.ranking import ranking
from mkclust.bench.tables.scores import (
    ABLATION,
    CHOSEN,
    TITLES,
    MethodScore,
    method_scores,
    score_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_TO_RANK = 3  # methods, and data sets, below which ranks say nothing
MOST_TO_RANK = 20  # methods that a diagram has room for
HEADINGS = {
    "oracle": "Scores with settings chosen by the true classes",
    "default": "Scores with default settings",
    "stable": "Scores with settings chosen by stability",
}


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with the name of its files.

    Attributes
    ----------
    name : str
        Of the files, without suffix.
    alt : str
        What the picture shows, for those who cannot see it.
    figure : matplotlib.figure.Figure
    """

    name: str
    alt: str
    figure: Figure


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the report.

    Attributes
    ----------
    heading : str
    words : tuple of str
        Paragraphs, as Markdown.
    shown : tuple of Table
        Tables that are in the text as well as in files of their own.
    linked : tuple of Table
        Tables too long for the text.
    pictures : tuple of Picture
    """

    heading: str
    words: tuple[str, ...] = ()
    shown: tuple[Table, ...] = ()
    linked: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def name(self) -> str:
        """Its place in a page, for links."""
        return re.sub(r"[^a-z0-9 -]", "", self.heading.lower()).replace(" ", "-")

    @property
    def tables(self) -> tuple[Table, ...]:
        """All of its tables."""
        return (*self.shown, *self.linked)


def comparison_pictures(results: Results) -> tuple[Picture, ...]:
    """Draw by how much our scores differ from the paper's, for each way of choosing settings."""
    comparisons = paper_comparison(results)
    pictures = []
    for selection in ("oracle", "default"):
        part = [cell for cell in comparisons if cell.selection == selection]
        if not part:
            continue
        labels = list(dict.fromkeys(cell.label for cell in part))
        methods = [m for m in PAPER_METHODS if any(cell.method == m for cell in part)]
        differences = {
            TITLES[score]: np.full((len(labels), len(methods)), np.nan) for score in SCORES
        }
        for cell in part:
            at = labels.index(cell.label), methods.index(cell.method)
            differences[TITLES[cell.score]][at] = cell.difference
        title = f"Our scores less the paper's, in points; {CHOSEN[selection]}"
        notes = [
            "The paper's settings were chosen by the true classes. Orange: ours are above, purple: "
            "below, in full from ten points on.",
            *results.names.notes({cell.dataset for cell in part}),
        ]
        figure = draw_differences(labels, methods, differences, title=title, notes=notes)
        pictures.append(Picture(f"paper-{selection}", title, figure))
    return tuple(pictures)


def score_sections(
    results: Results, selections: Sequence[str] = SELECTIONS, scores: Sequence[str] = SCORES
) -> Iterator[Section]:
    """Yield the scores of each way of choosing settings, which are never mixed."""
    for selection in selections:
        tables: list[Table] = []
        pictures: list[Picture] = []
        for run in results.runs.values():
            table = score_table(run, selection)
            if len(table.columns) > 1:
                tables.append(table)
                pictures += _score_pictures(table, run, selection, scores)
        if tables:
            yield Section(HEADINGS[selection], (), tuple(tables), pictures=tuple(pictures))


def ablation_section(results: Results) -> Section | None:
    """Return the comparison of SimpleMKKM with its two variants, None where it was not run."""
    tables, pictures = [], []
    for whole_run in results.runs.values():
        run = whole_run.only(lambda row: row["method"] in ABLATION)
        if len(run.methods) < 2:
            continue
        table = ablation_table(run)
        tables.append(table)
        panels = [
            Panel(
                f"{run.label(dataset)}: {TITLES[score]}",
                _dots(run, dataset, score, "default", table.columns[1:]),
            )
            for dataset, score in product(run.datasets, SCORES)
        ]
        figure = _score_figure(panels, table.title, "score (%)", table.picture_notes)
        pictures.append(Picture(table.name, table.title, figure))
    return Section("Ablation", (), tuple(tables), (), tuple(pictures)) if tables else None


def rank_section(
    results: Results, selections: Sequence[str] = SELECTIONS, scores: Sequence[str] = SCORES
) -> Section:
    """Return average ranks with a diagram for each score and each way of choosing settings."""
    tables, pictures, missing = [], [], []
    for run, selection, score in product(results.runs.values(), selections, scores):
        ranked = _ranked(run, score, selection)
        if ranked is None:
            missing.append(f"{TITLES[score]}, {CHOSEN[selection]}{run.ending}")
            continue
        table = rank_table(run, score, selection)
        tables.append(table)
        if len(ranked.methods) <= MOST_TO_RANK:
            figure = draw_ranks(ranked.methods, ranked.ranks.tolist(), ranked.cliques,
                                ranked.critical_difference, title=table.title,
                                notes=table.picture_notes)  # fmt: skip
            pictures.append(Picture(table.name, table.title, figure))
    words = []
    if missing:
        what = f" for: {'; '.join(missing)}" if tables else ""
        words.append(
            f"Ranks need {FEWEST_TO_RANK} methods that have scores on the same {FEWEST_TO_RANK} "
            f"data sets. There are none{what}."
        )
    return Section("Average ranks", tuple(words), (), tuple(tables), tuple(pictures))


def settings_section(results: Results) -> Section | None:
    """Return which settings were tried and chosen, None where there was nothing to choose."""
    tables = [settings_table(run) for run in results.runs.values()]
    tables = [table for table in tables if table.rows]
    return Section("Settings", (), (), tuple(tables)) if tables else None


def _dots(
    run: Run, dataset: str, score: str, selection: str, methods: Sequence[str]
) -> tuple[Dot, ...]:
    """Return the line of each method in the panel of a data set."""
    return tuple(
        Dot(
            each.method,
            each.outcome.mean,
            each.outcome.deviation,
            each.paper,
            each.like_best,
            _words(each),
        )
        for each in method_scores(run, dataset, score, selection, methods)
    )


def _words(score: MethodScore) -> str:
    """Return what stands beside a dot, or why there is none."""
    mean, deviation = score.outcome.mean, score.outcome.deviation
    if mean is None:
        return score.outcome.problem
    words = f"{mean:.1f}" + (f"±{deviation:.1f}" if deviation is not None else "")
    # Beside the number: panels of a row share the names of the methods.
    return f"{words} [{','.join(score.marks)}]" if score.marks else words


def _ranked(run: Run, score: str, selection: str) -> Ranking | None:
    """Return average ranks, None where there is too little to rank."""
    try:
        ranked = ranking(run, score, selection)
    except ValueError:
        return None
    return ranked if min(len(ranked.methods), len(ranked.datasets)) >= FEWEST_TO_RANK else None


def file_name(text: str, used_names: Iterable[str]) -> str:
    """Return a name for files that is not taken yet: letters, digits, dots and hyphens."""
    base = re.sub(r"[^A-Za-z0-9.]+", "-", text)[:100].strip("-.").lower() or "unnamed"
    used_names, name, number = set(used_names), base, 2
    while name in used_names:
        name, number = f"{base}-{number}", number + 1
    return name


def _score_pictures(
    table: Table, run: Run, selection: str, scores: Sequence[str]
) -> Iterator[Picture]:
    """Draw a table of scores, a picture for each score."""
    for score in scores:
        panels = [
            Panel(run.label(dataset), _dots(run, dataset, score, selection, table.columns[1:]))
            for dataset in run.datasets
        ]
        title = f"{TITLES[score]}: {table.title[0].lower()}{table.title[1:]}"
        figure = _score_figure(panels, title, f"{TITLES[score]} (%)", table.picture_notes)
        yield Picture(f"scores-{selection}-{score}{run.suffix}", title, figure)


def _score_figure(panels: Sequence[Panel], title: str, scale: str, notes: Sequence[str]) -> Figure:
    """Draw panels of scores."""
    dots = [dot for panel in panels for dot in panel.dots]
    legend: dict[str, str] = {}
    if any(dot.leading for dot in dots):
        legend |= {"leading": "not significantly different from the best",
                   "other": "significantly below it, or nothing to compare"}  # fmt: skip
    if any(dot.reference is not None for dot in dots):
        legend["reference"] = "the paper's figure"
    return draw_dots(panels, title=title, scale=scale, notes=notes, legend=legend)
