"""Parts of a benchmark's report on scores: tables with the pictures that belong to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    Row,
    Table,
    ablation_table,
    caveat_notes,
    paper_comparison,
    rank_table,
    resamples,
    score_tables,
    settings_table,
)
from mkclust.bench.tables.ranking import ranking
from mkclust.bench.tables.scores import ABLATION, CHOSEN, TITLES, repeated

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
    ranking : Ranking or None
        The ranks that it draws, where it does.
    """

    name: str
    alt: str
    figure: Figure
    ranking: Ranking | None = None


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


def comparison_pictures(rows: Sequence[Row]) -> tuple[Picture, ...]:
    """Draw by how much our scores differ from the paper's, for each way of choosing settings."""
    compared = paper_comparison(rows)
    pictures = []
    for selection in ("oracle", "default"):
        own = [cell for cell in compared if cell.selection == selection]
        if not own:
            continue
        labels = list(dict.fromkeys(cell.label for cell in own))
        methods = [m for m in PAPER_METHODS if any(cell.method == m for cell in own)]
        differences = {
            TITLES[score]: np.full((len(labels), len(methods)), np.nan) for score in SCORES
        }
        for cell in own:
            at = labels.index(cell.label), methods.index(cell.method)
            differences[TITLES[cell.score]][at] = cell.difference
        title = f"Our scores less the paper's, in points; {CHOSEN[selection]}"
        there = {cell.dataset for cell in own}
        notes = [
            "The paper's settings were chosen by the true classes. Orange: ours are above, purple: "
            "below, in full from ten points on.",
            *caveat_notes(row for row in rows if row["dataset"] in there),
        ]
        figure = draw_differences(labels, methods, differences, title=title, notes=notes)
        pictures.append(Picture(f"paper-{selection}", title, figure))
    return tuple(pictures)


def score_sections(rows: Sequence[Row]) -> Iterator[Section]:
    """Yield the scores of each way of choosing settings, which are never mixed."""
    for selection in SELECTIONS:
        tables = score_tables(rows, selection)
        if tables:
            pictures = [picture for table in tables for picture in _score_pictures(table)]
            yield Section(HEADINGS[selection], (), tuple(tables), pictures=tuple(pictures))


def ablation_section(rows: Sequence[Row]) -> Section | None:
    """Return the comparison of SimpleMKKM with its two variants, None where it was not run."""
    tables, pictures = [], []
    for resample in resamples(rows):
        own = [row for row in rows if float(row["resample"]) == resample]
        if len({row["method"] for row in own} & set(ABLATION)) < 2:
            continue
        table = ablation_table(own, resample)
        tables.append(table)
        by_place = {(row, block): panel for block, row, panel in panels(table)}
        datasets = dict.fromkeys(row for row, _ in by_place)
        drawn = [
            Panel(f"{dataset}: {TITLES[score]}", by_place[dataset, TITLES[score]])
            for dataset in datasets
            for score in SCORES
        ]
        figure = _score_figure(drawn, table.title, "score (%)", table.notes)
        pictures.append(Picture(table.name, table.title, figure))
    return Section("Ablation", (), tuple(tables), (), tuple(pictures)) if tables else None


def rank_section(rows: Sequence[Row]) -> Section:
    """Return average ranks with a diagram for each score and each way of choosing settings."""
    tables, pictures, missing = [], [], []
    for resample in resamples(rows):
        for selection in SELECTIONS:
            for score in SCORES:
                try:
                    found = ranking(rows, score, selection, resample)
                    fewest = min(len(found.methods), len(found.datasets))
                except ValueError:
                    fewest = 0
                name = f"{TITLES[score]}, {CHOSEN[selection]}"
                if fewest < FEWEST_TO_RANK:
                    missing.append(name + repeated(resample))
                    continue
                table = rank_table(rows, score, selection, resample)
                tables.append(table)
                if len(found.methods) <= MOST_TO_RANK:
                    # The diagram shows its groups, and nothing in it is bold.
                    kept = [note.split(" Bold: ")[0] for note in table.notes]
                    kept = [note for note in kept if not note.startswith("Not told apart")]
                    figure = draw_ranks(found.methods, found.ranks.tolist(), found.cliques,
                                        found.critical_difference, title=table.title,
                                        notes=kept)  # fmt: skip
                    pictures.append(Picture(table.name, table.title, figure, found))
    words = []
    if missing:
        what = f" for: {'; '.join(missing)}" if tables else ""
        words.append(
            f"Ranks need {FEWEST_TO_RANK} methods that have scores on the same {FEWEST_TO_RANK} "
            f"data sets. There are none{what}."
        )
    return Section("Average ranks", tuple(words), (), tuple(tables), tuple(pictures))


def settings_section(rows: Sequence[Row]) -> Section | None:
    """Return which settings were tried and chosen, None where there was nothing to choose."""
    tables = [settings_table(rows, resample) for resample in resamples(rows)]
    tables = [table for table in tables if table.rows]
    return Section("Settings", (), (), tuple(tables)) if tables else None


def panels(table: Table) -> Iterator[tuple[str, str, tuple[Dot, ...]]]:
    """Yield the block, the label and the dots of each row of a table of scores."""
    lines: dict[tuple[str, str], list[Dot]] = {}
    for block, row, column, cell in table.cells():
        words = f"{cell.mean:.1f}" if cell.mean is not None else ""
        words += f"±{cell.std:.1f}" if cell.std is not None else ""
        words = words or why(table, cell.mark, f"{row}, {column}: ")
        marks = [mark for mark in cell.mark.split(",") if mark.isalpha()]
        # Beside the number: panels of a row share the names of the methods.
        words += f" [{','.join(marks)}]" if marks and cell.mean is not None else ""
        dot = Dot(column, cell.mean, cell.std, cell.paper, cell.bold, words)
        lines.setdefault((block, row), []).append(dot)
    for (block, row), dots in lines.items():
        yield block, row, tuple(dots)


def why(table: Table, marks: str, place: str) -> str:
    """Return what the notes say of a cell without a number."""
    for mark in marks.split(","):
        for note in table.notes:
            if mark and note.startswith(f"[{mark}] "):
                return note.removeprefix(f"[{mark}] ").removeprefix(place)
    return "not run"


def file_name(text: str, taken: Iterable[str]) -> str:
    """Return a name for files that is not taken yet: letters, digits, dots and hyphens."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", text)[:100].strip("-.").lower() or "unnamed"
    taken, name, number = set(taken), plain, 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name


def _score_pictures(table: Table) -> Iterator[Picture]:
    """Draw a table of scores, a picture for each score."""
    found = list(panels(table))
    for score in SCORES:
        block = TITLES[score]
        drawn = [Panel(row, dots) for own, row, dots in found if own == block]
        title = f"{block}: {table.title[0].lower()}{table.title[1:]}"
        name = re.sub("^(scores-[a-z]+)", rf"\1-{score}", table.name)
        figure = _score_figure(drawn, title, f"{block} (%)", table.notes)
        yield Picture(name, title, figure)


def _score_figure(drawn: Sequence[Panel], title: str, scale: str, notes: Iterable[str]) -> Figure:
    """Draw panels of scores; the notes are those of their table that a picture needs."""
    dots = [dot for panel in drawn for dot in panel.dots]
    legend: dict[str, str] = {}
    if any(dot.leading for dot in dots):
        legend |= {"leading": "not significantly different from the best",
                   "other": "significantly below it, or nothing to compare"}  # fmt: skip
    if any(dot.reference is not None for dot in dots):
        legend["reference"] = "the paper's figure"
    # Failures are written in the panels, and a picture has no parentheses to explain.
    kept = [note for note in notes if not re.match(r"\[\d+\] |In parentheses", note)]
    return draw_dots(drawn, title=title, scale=scale, notes=kept, legend=legend)
