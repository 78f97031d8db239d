"""The report of a benchmark: tables and pictures in files, and a page that shows them all."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mkclust.bench.report import figure as page
from mkclust.bench.report.opening import say_circumstances, say_data, say_missing, say_reproduction
from mkclust.bench.report.sections import (
    Section,
    ablation_section,
    comparison_pictures,
    rank_section,
    score_sections,
    settings_section,
)
from mkclust.bench.report.solving import objective_section, time_section, weight_section
from mkclust.bench.tables import (
    SCORES,
    SELECTIONS,
    Results,
    Table,
    comparison_table,
    paper_comparison,
    reproduction_table,
    to_csv,
    to_latex,
    to_markdown,
)
from mkclust.bench.tables.formats import escape
from mkclust.files import write_atomically

RENDERINGS = {"md": to_markdown, "tex": to_latex, "csv": to_csv}
KINDS = {"md": "Markdown", "tex": "LaTeX", "csv": "CSV"}


def write_benchmark_report(source: str | Path, out: str | Path | None = None) -> list[Path]:
    """Write the report of a benchmark's rows: tables, pictures, and a page that shows them.

    Every table is written as Markdown, LaTeX and CSV, every picture as PNG and PDF; ``README.md``
    shows all of them in reading order. The same rows always give the same bytes. Files appear only
    after all of them are made: a failure leaves the folder as it was.

    Parameters
    ----------
    source : str or path-like
        The folder of a benchmark, with ``rows.jsonl`` and, for weights and objectives,
        ``solves.jsonl``; each may be compressed, with the suffix ``.gz``. Or the file of rows.
    out : str or path-like, optional
        The folder to write to, made where it is missing; by default ``report`` beside the rows.

    Returns
    -------
    list of Path
        The files written, ``README.md`` first.

    Raises
    ------
    ValueError
        If there are no rows, or none with scores.
    ImportError
        If matplotlib is missing.
    """
    source = Path(source)
    results = Results.read(source)
    if not results.n_scored:
        rows = f"{results.n_rows} rows, but none with scores" if results.n_rows else "no rows"
        raise ValueError(f"{source}: there are {rows}; run the benchmark, or look at its messages")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        advice = 'pip install "mkclust[plot]"'
        raise ImportError(f"a report needs matplotlib; install it with: {advice}") from None
    beside = (source if source.is_dir() else source.parent) / "report"
    folder = beside if out is None else Path(out)
    return write_atomically({folder / name: data for name, data in report_files(results).items()})


def report_files(
    results: Results, *, selections: Sequence[str] = SELECTIONS, scores: Sequence[str] = SCORES
) -> dict[str, bytes]:
    """Return the files of a report.

    Parameters
    ----------
    results : Results
        Of a benchmark, some with scores.
    selections, scores : sequence of str
        Of which ways of choosing settings there are tables, and which scores are drawn and ranked.

    Returns
    -------
    dict of str to bytes
        From name to content, ``README.md`` first.
    """
    circumstances, sections = (
        say_circumstances(results),
        list(_sections(results, selections, scores)),
    )
    body: list[str] = []
    files: dict[str, bytes] = {}
    for section in sections:
        body += [f"## {section.heading}", *section.words]
        for table in section.tables:
            files |= {f"{table.name}.{kind}": f(table).encode() for kind, f in RENDERINGS.items()}
        for table in section.shown:
            body += [to_markdown(table).strip(), _links(table)]
        for picture in section.pictures:
            contents = page.render(picture.figure)
            files |= {f"{picture.name}.{kind}": content for kind, content in contents.items()}
            body.append(
                f"![{escape(picture.alt)}]({picture.name}.png)\n\n[PDF]({picture.name}.pdf)"
            )
        if section.linked:
            lines = [f"- {escape(table.title)}: {_links(table)}" for table in section.linked]
            body.append("\n".join(["Tables:", "", *lines]))
    links = "\n".join(f"- [{section.heading}](#{section.name})" for section in sections)
    text = "\n\n".join(["# Benchmark", circumstances, links, *body])
    return {"README.md": f"{text}\n".encode()} | files


def _sections(
    results: Results, selections: Sequence[str], scores: Sequence[str]
) -> Iterator[Section]:
    """Yield the parts of a report in reading order; each is drawn when it is asked for."""
    if paper_comparison(results):
        yield Section(
            "What reproduces",
            tuple(say_reproduction(results)),
            (reproduction_table(results),),
            (comparison_table(results),),
            comparison_pictures(results),
        )
    yield Section("Data sets", tuple(say_data(results)))
    yield Section("What is missing", tuple(say_missing(results)))
    yield from score_sections(results, selections, scores)
    yield rank_section(results, selections, scores)
    if ablation := ablation_section(results):
        yield ablation
    yield weight_section(results)
    yield time_section(results)
    yield objective_section(results)
    if settings := settings_section(results):
        yield settings


def _links(table: Table) -> str:
    """Return links to the files of a table."""
    return ", ".join(f"[{KINDS[kind]}]({table.name}.{kind})" for kind in RENDERINGS)
