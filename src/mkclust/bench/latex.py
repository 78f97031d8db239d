"""The tables of a benchmark as LaTeX, and a document that prints all of them."""

from pathlib import Path

from mkclust.bench.rows import SCORES, read_rows
from mkclust.bench.score_table import score_table
from mkclust.bench.tables import SELECTIONS, outcomes_by_selection
from mkclust.files import write_atomically

DOCUMENT = r"""% pdflatex tables.tex prints all tables.
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

    files = {}
    for selection, frame in outcomes_by_selection(found).items():
        for score in SCORES:
            table = score_table(frame, score)
            # A page is high: what there is more of is in the rows.
            numerous = "datasets" if len(table) > len(table.columns) else "methods"
            name = f"{score}-{selection}"
            files[f"{name}.tex"] = table.to_latex(
                rows=rows or numerous,
                caption=f"{SELECTIONS[selection]} {meaning}",
                label=f"tab:{name}",
            )
    inputs = "\n".join(rf"\input{{{name.removesuffix('.tex')}}}" for name in files)
    files = {"tables.tex": DOCUMENT.format(inputs=inputs)} | files
    return write_atomically(
        {Path(folder) / name: text.encode() for name, text in files.items()}
    )
