"""A table of scores, data sets by methods, as text and as journals print it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mkclust.bench.rows import Row
from mkclust.files import write_atomically
from mkclust.methods import METHODS
from mkclust.plots.style import when
from mkclust.text import latex_text

# The scores in the headings of tables.
TITLES = {"acc": "ACC", "nmi": "NMI", "purity": "Purity"}
# The names of methods in print, if they are neither those of their classes nor of a
# plan.
PRINTED_NAMES = {
    "avg-kkm": "Avg-KKM",
    "mkkm-mir": "MKKM-MiR",
    "lf-mvc": "LF-MVC",
    "mkkm-mm": "MKKM-MM",
    "kamm-r": "KAMM-R",
    "kamm-a": "KAMM-A",
    "best-single-kernel": "Best single kernel",
}
# The name of the axis of data sets.
DATA_SET = "data set"
# What may be in the rows of a table.
ROWS = ("datasets", "methods")
# The marks of a cell in LaTeX.
ORACLE_MARK = r"$^{\dagger}$"
UNFINISHED_MARK = r"$^{\ddagger}$"


@dataclass(frozen=True)
class Score:
    """What a method scores on a data set, in percent: a cell of a table."""

    mean: float = math.nan
    std: float = math.nan
    n: int = 0  # of repetitions with scores
    not_worse: bool = False  # significantly, than the best of the data set
    oracle: bool = False  # whether the true classes chose the entry
    converged: bool = True

    def __str__(self) -> str:
        """Return mean, deviation and marks as in Markdown."""
        if not self.n:
            return "-"
        bold = when(self.not_worse, "**")
        spread = when(self.n > 1, f"±{self.std:.1f}")
        marks = when(self.oracle, " [o]") + when(not self.converged, " [n]")
        return f"{bold}{self.mean:.1f}{spread}{bold}{marks}"

    def to_latex(self) -> str:
        """Return mean, deviation and marks in LaTeX."""
        if not self.n:
            return "--"
        mean = f"{self.mean:.1f}"
        if self.not_worse:
            mean = rf"\textbf{{{mean}}}"
        spread = when(self.n > 1, rf"$\,\pm\,${self.std:.1f}")
        oracle = when(self.oracle, ORACLE_MARK)
        return mean + spread + oracle + when(not self.converged, UNFINISHED_MARK)


class ScoreTable(pd.DataFrame):
    """One score of methods on data sets: a frame of `Score`.

    Its parts, such as ``table[["simplemkkm", "avg-kkm"]]``, and ``table.T`` are such
    tables, too. It shows itself as text; :meth:`to_latex` makes LaTeX of it.

    Attributes
    ----------
    title : str
        The name of the score.
    printed_names : dict of str
        The names of methods in print.
    """

    _metadata = ["title", "printed_names"]  # noqa: RUF012

    @property
    def _constructor(self) -> type["ScoreTable"]:
        return ScoreTable

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        rows: str | None = None,
        caption: str = "",
        label: str = "",
    ) -> str:
        r"""Return the table as LaTeX, which needs ``\usepackage{booktabs}``.

        Parameters
        ----------
        path : str or path-like, optional
            A file that is written, too.
        rows : {"datasets", "methods"}, optional
            What is in rows; by default what is in the rows of this table.
        caption : str, default=""
            LaTeX with which the caption goes on, after the name of the score. The
            meaning of bold face and of the marks in the table follows.
        label : str, default=""
            The label, such as ``tab:acc``.

        Returns
        -------
        str
            A floating table.
        """
        if rows not in (*ROWS, None):
            raise ValueError(f"rows={rows!r}: choose 'datasets' or 'methods'")
        table = self
        in_columns = "datasets" if table.columns.name == DATA_SET else "methods"
        if rows == in_columns:
            table = self.T
        text = table._latex_cells().style.to_latex(
            hrules=True,
            position_float="centering",
            column_format="l" + "c" * len(table.columns),
            caption=self._caption(caption),
            label=label or None,
        )
        if path is not None:
            write_atomically({Path(path): text.encode()})
        return text

    def _latex_cells(self) -> pd.DataFrame:
        """Return cells and names as LaTeX, the names of methods as in print."""
        cells = pd.DataFrame(self).map(Score.to_latex)
        for axis, names in enumerate(self.axes):
            printed = {} if names.name == DATA_SET else self.printed_names
            cells_of_names = [latex_text(printed.get(name, name)) for name in names]
            cells = cells.set_axis(cells_of_names, axis=axis)
        return cells

    def _caption(self, words: str) -> str:
        """Return what the numbers are, and what the marks mean that are there."""
        cells: list[Score] = list(self.to_numpy().ravel())
        counts = {cell.n for cell in cells if cell.n}
        text = f"{self.title} in percent"
        if max(counts, default=0) > 1:
            number = "the" if len(counts) > 1 else max(counts)
            text += rf", mean\,$\pm$\,standard deviation over {number} repetitions"
        sentences = [
            f"{text}.",
            words,
            when(
                any(cell.not_worse for cell in cells),
                "Bold: the best mean, and all that are not significantly worse (paired "
                r"$t$ test over the repetitions, 5\,\%, Holm's correction for all "
                "pairs).",
            ),
            when(
                any(cell.oracle for cell in cells),
                f"{ORACLE_MARK}: the true classes chose the entry itself.",
            ),
            when(
                not all(cell.converged for cell in cells),
                f"{UNFINISHED_MARK}: the solve stopped before it converged.",
            ),
        ]
        return " ".join(filter(None, sentences))


def score_table(frame: pd.DataFrame, score: str) -> ScoreTable:
    r"""Return one score from `outcomes` as a table, data sets by methods.

    As text, bold (``**``) means: not significantly worse than the best of the row.
    ``[o]``: the true classes chose the entry itself. ``[n]``: the solve stopped before
    it converged. ``-``: no scores.

    Parameters
    ----------
    frame : DataFrame
        What :func:`mkclust.bench.tables.outcomes` returns.
    score : {"acc", "nmi", "purity"}
        The score.

    Examples
    --------
    >>> from mkclust.bench.tables import outcomes, score_table
    >>> row = {"dataset": "my_set", "parameters": "{}", "seed": 0, "status": "ok"}
    >>> row |= {"resample": 1.0, "repetition": 0, "default": True}
    >>> scores = dict.fromkeys(("acc", "nmi", "purity"), 0.5)
    >>> rows = [row | scores | {"method": name} for name in ("mkkm-mir", "lkam")]
    >>> table = score_table(outcomes(rows), "acc")
    >>> print(table)
             mkkm-mir  lkam
    data set
    my_set       50.0  50.0
    >>> print(table.to_latex(rows="methods", label="tab:acc"))
    \begin{table}
    \centering
    \caption{ACC in percent.}
    \label{tab:acc}
    \begin{tabular}{lc}
    \toprule
     & my\_set \\
    \midrule
    MKKM-MiR & 50.0 \\
    LKAM & 50.0 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    part = frame[frame["score"] == score]
    cells = part[list(Score.__dataclass_fields__)].to_dict("records")
    table = part.assign(cell=[Score(**cell) for cell in cells]).pivot(
        index="label", columns="method", values="cell"
    )
    table = table.map(lambda cell: cell if isinstance(cell, Score) else Score())
    ordered = ScoreTable(table[order_methods(table)])
    ordered.title = TITLES[score]
    ordered.printed_names = dict(zip(part["method"], part["name"], strict=True))
    return ordered.rename_axis(index=DATA_SET, columns=None)


def order_methods(methods: Iterable[Any]) -> list[str]:
    """Return methods in the order of the library's own, then by name."""
    names = set(methods)
    own = [name for name in METHODS if name in names]
    return own + sorted(names - set(METHODS))


def printed_names(rows: Iterable[Row]) -> dict[str, str]:
    """Return the names of methods in print.

    A class of another package has its own name, unless the plan gives another one.
    """
    names: dict[str, str] = {}
    for row in rows:
        method = row["method"]
        entry = str(row.get("entry") or method)
        own_class = entry.partition(" on ")[0].rpartition(":")[2]
        names[method] = method
        if entry == method in METHODS:
            names[method] = METHODS[method].__name__
        elif own_class.lower() == method:
            names[method] = own_class
        if entry == method:
            names[method] = PRINTED_NAMES.get(method, names[method])
    return names
