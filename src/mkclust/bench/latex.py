"""The tables of a benchmark as LaTeX, and a document that prints all of them."""

from pathlib import Path

from mkclust.bench.rows import SCORES, read_rows
from mkclust.bench.score_table import ScoreTable, score_table
from mkclust.bench.tables import SELECTIONS, outcomes_by_selection
from mkclust.files import write_atomically

DOCUMENT = r"""% pdflatex {name} prints all tables.
\documentclass{{article}}
\usepackage[a4paper, margin=2cm]{{geometry}}
\usepackage{{booktabs}}
\setlength{{\belowcaptionskip}}{{6pt}}
\begin{{document}}
{inputs}
\end{{document}}
"""


def write_latex(
    path: str | Path, folder: str | Path, rows: str | None = None
) -> list[Path]:
    r"""Write the tables of scores of a benchmark as LaTeX.

    Parameters
    ----------
    path : str or path-like
        Folder of a benchmark.
    folder : str or path-like
        Folder for the files.
    rows : {"datasets", "methods"}, optional
        What is in the rows of tables; by default the more numerous of the two.

    Returns
    -------
    list of Path
        The files: ``tables.tex``, a document, and a file for each table, which another
        document can take by ``\input``.
    """
    found = read_rows(path)

    meaning = "Every repetition is another $k$-means on one solve."
    share = found[0]["resample"]
    if share < 1:
        meaning = (
            rf"Every repetition is a refit on {100 * share:.0f}\,\% of the samples, "
            "the same ones for all methods."
        )

    tables = {}
    for selection, frame in outcomes_by_selection(found).items():
        for score in SCORES:
            name = f"{score}-{selection}"
            table = score_table(frame, score)
            tables[name] = table.to_latex(
                rows=rows or _numerous(table),
                caption=f"{SELECTIONS[selection]} {meaning}",
                label=f"tab:{name}",
            )
    lines = (rf"\input{{{name}}}" for name in tables)
    inputs = "\n".join(lines)
    document = "tables.tex"
    files = {document: DOCUMENT.format(name=document, inputs=inputs)}
    files |= {f"{name}.tex": text for name, text in tables.items()}
    return write_atomically(
        {Path(folder) / name: text.encode() for name, text in files.items()}
    )


def _numerous(table: ScoreTable) -> str:
    """Return which there are more of, data sets or methods: a page is high."""
    n_datasets, n_methods = table.shape
    if n_datasets > n_methods:
        return "datasets"
    return "methods"
