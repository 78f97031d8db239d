"""Figures of a benchmark: weights, times, objectives, and average ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkclust.bench.rows import Row, read_rows, read_solves
from mkclust.bench.score_table import order_methods, printed_names
from mkclust.bench.tables import (
    dataset_labels,
    outcomes,
    rank_methods,
    score_matrix,
    time_table,
    weight_table,
)
from mkclust.files import write_atomically
from mkclust.plots import ConvergenceDisplay, CriticalDifferenceDisplay
from mkclust.plots.style import BLUE, INK, shorten
from mkclust.text import join_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The formats that every figure is written in: for LaTeX, and for everything else.
FORMATS = ("pdf", "png")
# A solve of fewer steps has no curve.
FEWEST_STEPS = 2
REDUCED_GRADIENT = (
    '{ method = "simplemkkm", name = "SimpleMKKM (reduced gradient)", '
    'parameters = { solver = "reduced-gradient", stopping = "step" } }'
)


class NoFigureError(ValueError):
    """A figure cannot be drawn; the message says what is missing."""


def draw_weights(solves: Sequence[Row]) -> Figure:
    """Draw the weights of kernels by every method, next to their alignments.

    Weights are relative to the largest one of a method. An alignment is the share of
    the kernel's own leading structure that the consensus captures.
    """
    frame = weight_table(solves)
    if frame.empty:
        raise NoFigureError("no method with default settings has stored weights")
    labels = dataset_labels(solves)
    names = printed_names(solves)
    tables = [
        (labels[dataset], side, _by_kernel(part, side))
        for dataset, part in frame.groupby("data set", sort=False)
        for side in ("weight", "alignment")
    ]
    heights = [0.19 * len(table) + 1.1 for _, _, table in tables[::2]]
    figure = _new_figure(9.5, sum(heights) + 0.3)
    axes = figure.subplots(
        len(heights),
        2,
        squeeze=False,
        height_ratios=heights,
    )

    for ax, (label, side, table) in zip(axes.flat, tables, strict=True):
        # The darkest blue stands for more than 1, so that 1 is not the color of text.
        ax.imshow(
            table,
            cmap="Blues",
            vmin=0,
            vmax=1.3,
            aspect="auto",
        )
        _name_panel(ax, f"{label}: {side}s")
        rows = [shorten(names[method], 30) for method in table.index]
        ax.set_yticks(
            range(len(rows)),
            rows,
            fontsize=8,
            parse_math=False,
        )
        if side == "alignment":
            ax.set_yticks([])
        # More kernels are not named below their columns.
        if len(table.columns) > 12:
            ax.set_xticks([])
            ax.set_xlabel(f"{len(table.columns)} kernels", fontsize=8)
        else:
            ax.set_xticks(
                range(len(table.columns)),
                [shorten(name, 16) for name in table],
                rotation=30,
                ha="right",
                rotation_mode="anchor",
                fontsize=8,
                parse_math=False,
            )
    figure.supxlabel(
        "Weights: relative to the largest one of the method. "
        "Alignments: from 0 (white) to 1.",
        fontsize=9,
    )
    return figure


def _by_kernel(part: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return relative weights, or alignments, of a data set, methods by kernels."""
    table = part.pivot_table(side, "method", "kernel", sort=False)
    if side == "weight":
        table = table.div(table.max(axis=1), axis=0)
    return table.reindex(
        index=order_methods(part["method"]), columns=part["kernel"].unique()
    )


def draw_times(rows: Sequence[Row]) -> Figure:
    """Draw the seconds of a solve by every method, a panel for each data set."""
    table = time_table(rows)
    if table.empty:
        raise NoFigureError("no solve with default settings has succeeded")
    names = printed_names(rows)
    figure, axes = _panels(list(table.index), 1.2 + 0.19 * len(table.columns))
    for label, times in table.iterrows():
        seconds = times.dropna()
        ax = axes[label]
        # Points, since bars have no beginning on such an axis.
        ax.plot(seconds, range(len(seconds)), "o", color=BLUE, markersize=5)
        for height, value in enumerate(seconds):
            ax.annotate(
                f"{value:.2g}",
                (value, height),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color=INK,
            )
        # Whole decades, with room for the last number.
        ax.set(
            xscale="log",
            xlim=(
                10 ** np.floor(np.log10(seconds.min() * 0.9)),
                10 ** np.ceil(np.log10(seconds.max() * 1.6)),
            ),
            ylim=(len(seconds) - 0.4, -0.6),
            axisbelow=True,
        )
        methods = [shorten(names[method], 30) for method in seconds.index]
        ax.set_yticks(range(len(methods)), methods, fontsize=8, parse_math=False)
        ax.set_xlabel("seconds of a solve", fontsize=8)
        ax.xaxis.set_minor_formatter("")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e6e6e6", linewidth=0.7)
    return figure


def draw_objectives(solves: Iterable[Row], method: str) -> Figure:
    """Draw the objective of a method by iteration, a panel for each data set.

    Certified lower bounds are drawn with it if the solver has some.
    """
    chosen = [
        solve for solve in solves if solve["method"] == method and _has_steps(solve)
    ]
    if not chosen:
        raise NoFigureError(f"no solve of {method} took {FEWEST_STEPS} steps")
    labels = dataset_labels(chosen)
    titles = [labels[solve["dataset"]] for solve in chosen]
    figure, axes = _panels(titles, 2.5)
    for solve, title in zip(chosen, titles, strict=True):
        bounds = solve.get("lower_bounds") or None
        ConvergenceDisplay(
            history=solve["history"],
            lower_bounds=bounds,
        ).plot(axes[title])
        # Below a legend, if there is one.
        _name_panel(axes[title], title, 22 if bounds else 6)
        axes[title].set_xlabel("iteration", fontsize=8)
    return figure


def _has_steps(solve: Row) -> bool:
    """Return whether a solve with default settings has a curve of its objective."""
    is_default = solve["default"] and not solve.get("oracle")
    return is_default and len(solve.get("history") or ()) > FEWEST_STEPS


def draw_ranks(rows: Sequence[Row]) -> Figure:
    """Draw the average ranks of methods by accuracy, with the critical difference."""
    try:
        ranking = rank_methods(score_matrix(outcomes(rows), "acc"))
    except ValueError as error:
        raise NoFigureError(str(error)) from None
    names = printed_names(rows)
    display = CriticalDifferenceDisplay(
        names=[names[method] for method in ranking.table.index],
        ranks=ranking.table["rank"],
        critical_difference=ranking.critical_difference,
    )
    figure = _new_figure(*display.figsize)
    display.plot(figure.subplots())
    return figure


def write_figures(path: str | Path, folder: str | Path) -> tuple[list[Path], list[str]]:
    """Draw the figures of a benchmark, and write each as PDF and PNG.

    Parameters
    ----------
    path : str or path-like
        Folder of a benchmark.
    folder : str or path-like
        Folder for the figures.

    Returns
    -------
    files : list of Path
        The files.
    notes : list of str
        Why figures are missing, in sentences.
    """
    rows = read_rows(path)
    solves = read_solves(path)
    curved = order_methods(solve["method"] for solve in solves if _has_steps(solve))
    drawings: dict[str, Callable[[], Figure]] = {
        "weights": partial(draw_weights, solves),
        "times": partial(draw_times, rows),
        "ranks": partial(draw_ranks, rows),
    }
    for method in curved:
        # What is neither a letter nor a digit may have a meaning in a name of a file.
        name = re.sub(r"[\W_]+", "-", method).strip("-").lower() or "method"
        drawings[f"convergence-{name}"] = partial(draw_objectives, solves, method)

    contents = {}
    notes = _notes_on_objectives(solves, curved)
    for name, draw in drawings.items():
        try:
            figure = draw()
        except NoFigureError as error:
            notes.append(f"No figure of {name}: {error}.")
            continue
        for form in FORMATS:
            file = Path(folder) / f"{name}.{form}"
            contents[file] = partial(figure.savefig, dpi=200)
    return write_atomically(contents), notes


def _notes_on_objectives(solves: Sequence[Row], curved: list[str]) -> list[str]:
    """Return what to do for curves that are not there, or not as in the paper."""
    advice = f"add {REDUCED_GRADIENT} to the methods of the plan, and run it again."
    if not curved:
        return [f"No figure of convergence: no solve took steps; {advice}"]
    notes = []
    of_simple = [solve for solve in solves if solve.get("entry") == "simplemkkm"]
    by_gradient = [s for s in of_simple if "reduced-gradient" in s["parameters"]]
    if of_simple and not by_gradient:
        notes.append(
            "Convergence of SimpleMKKM: its default solver takes few steps; for the "
            f"curve of its authors, {advice}"
        )
    names = printed_names(solves)
    labels = dataset_labels(solves)
    for method in curved:
        of_method = [s for s in solves if s["method"] == method and s["default"]]
        short = [labels[s["dataset"]] for s in of_method if not _has_steps(s)]
        if short:
            notes.append(
                f"No curve of {names[method]} on {join_words(short)}: fewer than "
                f"{FEWEST_STEPS} steps."
            )
    return notes


def _new_figure(width: float, height: float) -> Figure:
    """Return an empty figure on white; no screen is needed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "figures are drawn with matplotlib, which is not installed: pip install "
            "'mkclust[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _panels(titles: list[str], height: float) -> tuple[Figure, dict[str, Any]]:
    """Return a figure with a panel for each title, and the panels."""
    columns = min(len(titles), 3)
    rows = -(-len(titles) // columns)
    figure = _new_figure(1.5 + 3.2 * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False)
    found = dict(zip(titles, axes.flat, strict=False))
    for title, ax in found.items():
        _name_panel(ax, title)
    for ax in axes.flat[len(titles) :]:
        ax.remove()
    return figure, found


def _name_panel(ax: Any, title: str, pad: float = 6) -> None:
    """Set the title of a panel; a dollar sign in it is no formula."""
    ax.set_title(
        shorten(title, 40),
        fontsize=10,
        loc="left",
        pad=pad,
        parse_math=False,
    )
    ax.tick_params(labelsize=8)
