"""The page of a benchmark, put together of what its other files have, and of plots."""

import base64
from collections.abc import Iterator, Mapping, Sequence

from mkclust.report.dots import Dot, Panel
from mkclust.report.results.dots import rank_plot, ratio_plot, score_plot, time_plot
from mkclust.report.results.markup import folding, from_markdown, notes_of, tables
from mkclust.report.results.objectives import objective_parts
from mkclust.report.results.weights import weight_plot
from mkclust.report.sections import Picture, Section, panels
from mkclust.report.web import Section as Part
from mkclust.report.web import document, escape, paragraph, subheading
from mkclust.tables import Row, Table, caveat_notes
from mkclust.tables.outcomes import methods_of
from mkclust.tables.times import REFERENCE

PAGE = "report.html"


def benchmark_page(
    rows: Sequence[Row],
    solves: Sequence[Row],
    circumstances: str,
    sections: Sequence[Section],
    pictures: Mapping[str, bytes],
) -> str:
    """Return a benchmark's report as one HTML file that needs nothing but a browser.

    It has the sections of ``README.md`` in the same order and words. Tables can be sorted; scores,
    times, weights and objectives are plots to point at, other pictures are embedded.

    Parameters
    ----------
    rows, solves : sequence of dict
        Of the benchmark.
    circumstances : str
        How much was run, where, and with which versions, as Markdown.
    sections : sequence of Section
        Parts of the report in reading order.
    pictures : mapping of str to bytes
        From the name of a picture to its PNG.

    Returns
    -------
    str
        The same for the same rows.

    Raises
    ------
    ImportError
        If plotly is missing.
    """
    caveats = caveat_notes([*rows, *solves])
    methods = methods_of({"": {row["method"]: [] for row in (*rows, *solves)}})
    places = {method: place for place, method in enumerate(methods)}
    parts = []
    for section in sections:
        content = [from_markdown(words) for words in section.words]
        if section.name == "objectives":
            content += objective_parts(solves, places)
        else:
            content += _tables_and_pictures(section, pictures, caveats, places)
        parts.append(Part(section.name, section.heading, content))
    foot = (
        "Written by mkclust. The page is one file: it works offline, and loads nothing. Plots are "
        "drawn by four digits of each number. The folder that it was written to has every table as "
        "Markdown, LaTeX and, with all digits, CSV, and every picture as PNG and PDF."
    )
    return document("Benchmark", [from_markdown(circumstances)], parts, [paragraph(foot)])


def _tables_and_pictures(
    section: Section,
    pictures: Mapping[str, bytes],
    caveats: Sequence[str],
    places: Mapping[str, int],
) -> Iterator[str]:
    """Yield what a section shows: of each table the plots, or else its picture, and itself."""
    own = {picture.name: picture for picture in section.pictures}
    plots = {table.name: _plots(table, own.get(table.name), places) for table in section.tables}
    # Where there are plots, they are the section's pictures, to be pointed at.
    embedded = [] if any(plots.values()) else section.pictures
    for table in section.shown:
        drawn = plots[table.name]
        yield subheading(table.title) if len(section.shown) > 1 else ""
        for at, written in enumerate(tables(table)):
            yield drawn[at] if at < len(drawn) else ""
            yield written
        yield notes_of(table, caveats, section.words)
    for picture in embedded:
        yield _embedded(picture, pictures)
    for table in section.linked:
        drawn = plots[table.name]
        yield subheading(table.title) if drawn else ""
        yield from drawn
        written = "".join(tables(table, bars=table.name.startswith("weights")))
        # A table too long for the text is opened by who wants it, unless there is nothing else.
        yield folding(f"Table: {table.title}", written) if section.pictures else written
        yield notes_of(table, caveats, section.words)


def _plots(table: Table, picture: Picture | None, places: Mapping[str, int]) -> list[str]:
    """Return the plots of a table, one for each of its blocks; none of a table to be read."""
    if picture is not None and picture.ranking is not None:
        return [rank_plot(f"{table.name}-plot", table.title, picture.ranking)]
    kind = table.name.partition("-")[0]
    if kind in ("scores", "ablation"):
        return _score_plots(table, places)
    if kind == "times":
        return _time_plots(table, places)
    return [weight_plot(table)] if kind == "weights" else []


def _score_plots(table: Table, places: Mapping[str, int]) -> list[str]:
    """Return a plot for each score."""
    by_score: dict[str, list[Panel]] = {}
    for score, dataset, dots in panels(table):
        by_score.setdefault(score, []).append(Panel(dataset, dots))
    return [
        score_plot(
            f"{table.name}-{score.lower()}-plot", f"{score}: {table.title}", f"{score} (%)", found,
            places,
        )
        for score, found in by_score.items()
    ]  # fmt: skip


def _time_plots(table: Table, places: Mapping[str, int]) -> list[str]:
    """Return a plot of seconds, and one of ratios, where there are any."""
    seconds: dict[str, list[Dot]] = {}
    ratios: dict[str, dict[str, float]] = {}
    for block, dataset, method, cell in table.cells():
        # A time too short to be measured has no place on a logarithmic scale.
        value = cell.mean if cell.mean and cell.mean > 0 else None
        if block == "Seconds":
            seconds.setdefault(dataset, []).append(Dot(method, value, words=f"{cell.text} s"))
        elif method != REFERENCE and value is not None:
            ratios.setdefault(method, {})[dataset] = value
    drawn = []
    if any(dot.value is not None for dots in seconds.values() for dot in dots):
        rows = [Panel(dataset, tuple(dots)) for dataset, dots in seconds.items()]
        drawn.append(time_plot(f"{table.name}-plot", table.title, rows, places))
    if ratios:
        title = f"{table.title}, relative to {REFERENCE}"
        drawn.append(ratio_plot(f"{table.name}-ratios-plot", title, REFERENCE, ratios))
    return drawn


def _embedded(picture: Picture, pictures: Mapping[str, bytes]) -> str:
    """Return a picture as part of the page."""
    content = base64.b64encode(pictures[picture.name]).decode()
    return (
        f'<p style="max-width:none"><img src="data:image/png;base64,{content}" '
        f'alt="{escape(picture.alt)}" style="max-width:100%;height:auto"></p>'
    )
