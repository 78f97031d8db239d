"""Pictures of a fit: weights beside alignments, convergence, embedding, clusters against classes.

Each ``draw_*`` function draws one thing on the axes it is given, from plain arrays; `plot_fit`
composes them. Nothing here touches matplotlib's global state: no display is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGE_WEIGHT = "A large weight means little agreement with the consensus; it is not importance."
MIXING_WEIGHT = "A weight says how the kernels are mixed; it is not importance."
# Two hues that stay apart for every common color vision deficiency, and in gray.
BLUE, ORANGE = "#2b6ca3", "#d98324"
INK, FAINT = "#222222", "#8a8a8a"
# Ten colors, told apart under deuteranopia and protanopia; more clusters reuse them.
PALETTE: tuple[str, ...] = ("#332288", "#DDAA33", "#44AA99", "#CC6677", "#88CCEE")
PALETTE += ("#117733", "#AA4499", "#999933", "#6F4E37", "#9A9A9A")
MAX_POINTS = 20_000  # more dots than this only add ink and file size
MAX_ROWS = 200_000  # of more samples, so many tell the axes and the centers
MAX_NUMBERED = 30  # beyond this many clusters their numbers would cover the dots
MAX_NAMED = 60  # beyond this many kernels only every second, third ... one is named
MAX_TICKS = 25  # beyond this many clusters or classes the map of counts has no names


def draw_weights(
    ax: Axes, names: Sequence[str], weights: Any, alignments: Any, *, note: str = LARGE_WEIGHT
) -> None:
    """Draw each kernel's weight to the left and its alignment to the right.

    Weights are never drawn alone: read without the alignments they are easily taken for
    importance. The two sides have their own scales; the numbers at the bars are the values.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    names : sequence of str, length m
        Names of the kernels, in their order; the first is drawn at the top.
    weights : array-like of shape (m,)
        Mixing weights, not negative.
    alignments : array-like of shape (m,)
        The share, from 0 to 1, of each kernel's own best value that the consensus captures.
    note : str
        The sentence below the bars on how to read them.
    """
    values = np.array([weights, alignments], dtype=float)
    m = len(values[0])
    rows = np.arange(m)
    # Both sides fill the same width, so that small weights (1/m on average) stay visible.
    ends = np.array([-_unit(values[0]), _unit(values[1], top=1.0)])
    for end, color in zip(ends, (ORANGE, BLUE), strict=True):
        ax.barh(rows, end, height=0.68, color=color)
    ax.axvline(0, color=INK, linewidth=0.8)
    size = 9 if m <= 16 else 8 if m <= 30 else 7
    every = -(-m // MAX_NAMED)
    style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": INK}
    for row in rows[::every]:
        for i, (side, gap) in enumerate((("right", -3), ("left", 3))):
            number, end = _number(values[i, row]), ends[i, row]
            ax.annotate(number, (end, row), (gap, 0), ha=side, fontsize=size, **style)
    # `parse_math=False`: a dollar sign in a file's variable name is not a formula.
    ax.set_yticks(rows[::every], [_short(name) for name in names[::every]], parse_math=False)
    ax.tick_params(axis="y", length=0, labelsize=size, labelcolor=INK)
    # Room for four bars at least, so that one or two kernels are not drawn as slabs.
    middle, room = (m - 1) / 2, max(m, 4) / 2 + 0.1
    ax.set(xlim=(-1.3, 1.3), ylim=(middle + room, middle - room))
    ax.set_xticks([-0.5, 0.5], ["weight", "alignment"])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0, labelsize=10)
    for label, color in zip(ax.get_xticklabels(), (ORANGE, BLUE), strict=True):
        label.set(color=color, fontweight="bold")
    ax.spines[:].set_visible(False)
    _title(ax, "Weights and alignments of the kernels")
    # Broken at its semicolon, the sentence fits below half a page.
    ax.set_xlabel(note.replace("; ", ";\n", 1), fontsize=9, color=INK, labelpad=6)


def draw_convergence(
    ax: Axes, history: Any, lower_bounds: Any = None, *, gap: float | None = None
) -> None:
    """Draw the falling objective and the rising certified lower bound.

    The global minimum lies in the band between the two curves. The band soon becomes too thin
    to see, so an inset shows its relative width on a logarithmic scale.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    history : array-like of shape (s,)
        Values of the objective.
    lower_bounds : array-like of shape (s,), optional
        Certified lower bounds on the minimum, one for each value; entries that are not finite
        are left out. None for a method that has no certificate.
    gap : float, optional
        The certified relative gap at the end, ``duality_gap_`` of a fit. It is larger than the
        distance of the last two values by what the residuals of the eigenvectors leave open,
        so only this number is called certified.
    """
    history = np.asarray(history, dtype=float)
    steps = np.arange(len(history))
    marks: dict[str, Any] = {"marker": "o", "markersize": 4} if len(history) <= 40 else {}
    marks["linewidth"] = 1.8
    ax.plot(steps, history, color=BLUE, label="objective", **marks)
    title = "Convergence"
    if lower_bounds is not None:
        bounds = np.where(np.isfinite(lower_bounds), lower_bounds, np.nan).astype(float)
        ax.plot(steps, bounds, color=ORANGE, label="certified lower bound", **marks)
        ax.fill_between(steps, bounds, history, color=FAINT, alpha=0.15, linewidth=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.maximum(history - bounds, 0) / np.abs(history)
        kind = "relative gap" if gap is None else "certified relative gap"
        gaps[-1] = gaps[-1] if gap is None else gap
        if np.isfinite(gaps[-1]):
            title += f": {kind} {gaps[-1]:.1e}" if gaps[-1] else f": {kind} 0"
        _draw_gap(ax, steps, gaps, history)
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
        ax.legend(**place, fontsize=9, frameon=False, borderaxespad=0.2, borderpad=0)
    _title(ax, title, "step", "objective", pad=8 if lower_bounds is None else 24)
    _count_steps(ax, len(history))
    ax.tick_params(labelsize=9, color=FAINT)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)


def draw_embedding(ax: Axes, embedding: Any, labels: Any) -> None:
    """Draw the samples on the two leading axes of the row-normalized embedding.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    embedding : array-like of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means sees them. Of
        more than 200,000 rows a sample is drawn.
    labels : array-like of int of shape (n,)
        The cluster of each sample. Clusters are numbered at their centers, unless too many.
    """
    labels = np.asarray(labels)
    n, k = len(labels), len(np.unique(labels))
    if n > MAX_ROWS:
        some = np.sort(np.random.default_rng(0).choice(n, MAX_ROWS, replace=False))
        embedding, labels = embedding[some], labels[some]
    points, shares = _principal_plane(np.asarray(embedding, dtype=float))
    clusters = np.unique(labels)
    # A fixed order drawn once at random: no cluster is painted over by the ones after it.
    order = np.random.default_rng(0).permutation(len(points))[:MAX_POINTS]
    palette = np.resize(PALETTE, len(clusters))
    colors = palette[np.searchsorted(clusters, labels)]
    x, y = points[order].T
    size = float(np.clip(22_000 / max(len(order), 1), 3, 26))
    ax.scatter(x, y, size, colors[order], alpha=0.75, linewidths=0, rasterized=True)
    ax.set(xticks=[], yticks=[])
    ax.margins(0.06)
    # One scale for both axes: distances in the picture are distances in the plane.
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set(color=FAINT, linewidth=0.6)
    title = f"Embedding of {n:,} samples, {k:,} cluster{'s' * (k != 1)}"
    if k > MAX_NUMBERED:
        title += " (colors repeat)"
    else:
        centers = np.array([points[labels == cluster].mean(axis=0) for cluster in clusters])
        _draw_numbers(ax, clusters, centers, palette)
    first, second = (f"{share:.0%}" for share in shares)
    _title(ax, title, f"first axis ({first} of the variance)", f"second axis ({second})")


def draw_classes(ax: Axes, labels: Any, y: Any) -> None:
    """Draw how the samples of each given class spread over the clusters.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    labels : array-like of int of shape (n,)
        The cluster of each sample.
    y : array-like of shape (n,)
        The given class of each sample. Classes are ordered by the cluster that holds most of
        them, so that a good clustering reads as a dark diagonal.
    """
    clusters, rows = np.unique(np.asarray(labels), return_inverse=True)
    classes, columns = np.unique(np.asarray(y), return_inverse=True)
    counts = np.zeros((len(clusters), len(classes)), dtype=int)
    np.add.at(counts, (rows, columns), 1)
    order = np.lexsort((-counts.max(axis=0), counts.argmax(axis=0)))
    counts, classes = counts[:, order], classes[order]
    shares = counts / counts.sum(axis=0)
    darkest = shares.max()
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=darkest, aspect="auto", interpolation="nearest")
    if max(counts.shape) <= 12:
        for (row, column), count in np.ndenumerate(counts):
            if count:
                shade = "white" if shares[row, column] > 0.55 * darkest else INK
                ax.text(column, row, count, ha="center", va="center", fontsize=8, color=shade)
    for axis, values in ((ax.yaxis, clusters), (ax.xaxis, classes)):
        names = [_short(value, 12) for value in values] if len(values) <= MAX_TICKS else []
        axis.set_ticks(np.arange(len(names)), names, parse_math=False)
    if len(classes) <= MAX_TICKS and max(len(str(value)) for value in classes) > 3:
        ax.tick_params(axis="x", rotation=45)
    ax.tick_params(length=0, labelsize=8)
    ax.spines[:].set_visible(False)
    title = f"Share of each class in each cluster (darkest: {darkest:.0%})"
    _title(ax, title, "given class (not used to fit)", "cluster")


def plot_fit(model: Any, y: Any = None) -> Figure:
    """Draw a fitted model on one page.

    Parameters
    ----------
    model : estimator
        A fitted clusterer of this library.
    y : array-like of shape (n,), optional
        Given classes, drawn against the clusters found.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Pass it to :func:`save`, or to a notebook, which shows it.
    """
    from matplotlib.figure import Figure

    m = len(model.weights_)
    bounds = getattr(model, "lower_bounds_", None)
    if m > 16:
        # A tall column of bars, the other panels beside it.
        panels = ["convergence", "embedding"] + ([] if y is None else ["classes"])
        mosaic = [["weights", panel] for panel in panels]
        heights = [3.2, 5.2, 5.2][: len(panels)]
        height = max(sum(heights) + 1.0, 0.21 * min(m, MAX_NAMED) + 2.0)
    else:
        mosaic = [["weights", "convergence"], ["embedding", "classes"]]
        heights = [max(3.6, 0.3 * m + 1.2), 5.4]
        if y is None:
            mosaic = [["weights", "embedding"], ["convergence", "embedding"]]
            heights = [max(3.2, 0.3 * m + 1.2), 3.6]
        height = sum(heights) + 0.8
    figure = Figure(figsize=(13, height), layout="constrained", facecolor="white")
    axes = figure.subplot_mosaic(mosaic, height_ratios=heights)  # type: ignore[arg-type]
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12, wspace=0.03, hspace=0.03)  # type: ignore[union-attr, call-arg]
    names, note = list(model.kernel_names_), MIXING_WEIGHT if bounds is None else LARGE_WEIGHT
    draw_weights(axes["weights"], names, model.weights_, model.alignments_, note=note)
    gap = getattr(model, "duality_gap_", None)
    draw_convergence(axes["convergence"], model.history_, bounds, gap=gap)
    draw_embedding(axes["embedding"], model.embedding_, model.labels_)
    if y is not None:
        draw_classes(axes["classes"], model.labels_, y)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file whose suffix names the format (png, pdf, svg ...)."""
    figure.savefig(path, dpi=150)


def _unit(values: np.ndarray, top: float | None = None) -> np.ndarray:
    """Return finite values as lengths from 0 to 1, relative to `top` or to the largest."""
    values = np.clip(np.nan_to_num(values, posinf=0.0), 0, None)
    top = max(top or 0.0, float(values.max(initial=0.0)))
    return values / top if top > 0 else values


def _number(value: float) -> str:
    """Return a value with three decimals, or with two digits where that would read zero."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.1e}"


def _short(name: Any, limit: int = 26) -> str:
    """Return a name, its middle left out where it is too long for a tick label."""
    name, half = str(name), (limit - 1) // 2
    return name if len(name) <= limit else f"{name[:half]}…{name[-half:]}"


def _title(ax: Axes, text: str, x: str = "", y: str = "", pad: float = 8) -> None:
    """Set a panel's title, and the names of its axes."""
    ax.set_title(text, fontsize=11.5, fontweight="bold", loc="left", color=INK, pad=pad)
    ax.set_xlabel(x, fontsize=10)
    ax.set_ylabel(y, fontsize=10)


def _count_steps(ax: Axes, steps: int) -> None:
    """Frame a curve over steps: whole numbers as ticks, and no more lines than its two scales."""
    from matplotlib.ticker import MaxNLocator

    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    margin = 0.04 * (steps - 1) or 0.5
    ax.set_xlim(-margin, steps - 1 + margin)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_gap(ax: Axes, steps: np.ndarray, gaps: np.ndarray, history: np.ndarray) -> None:
    """Draw the relative gap on a logarithmic scale in the upper right of a convergence panel."""
    shown = np.isfinite(gaps) & (gaps > 0)
    if shown.sum() < 3:
        return
    # Where the objective has not fallen far by the middle, the scale grows to free the corner.
    low, high = ax.get_ylim()
    middle = np.interp(0.48 * steps[-1], steps, history)
    ax.set_ylim(low, max(high, low + (middle - low) / 0.4))
    inset = ax.inset_axes((0.56, 0.5, 0.42, 0.4))
    inset.semilogy(steps[shown], gaps[shown], color=INK, linewidth=1.2)
    inset.set_title("relative gap", fontsize=8, color=INK, pad=3)
    inset.patch.set_alpha(0.0)
    inset.tick_params(labelsize=7, color=FAINT, which="both", length=2)
    _count_steps(inset, len(steps))
    inset.minorticks_off()


def _principal_plane(embedding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the row-normalized embedding on its two leading axes, and their shares of variance."""
    lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
    rows = embedding / np.where(lengths > 0, lengths, 1)
    rows -= rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    points = rows @ vectors[:, ::-1][:, :2]
    # The embedding is unique only up to a rotation, so the sign must come from the points.
    points *= np.where((points**3).sum(axis=0) < 0, -1.0, 1.0)
    total = max(float(values.sum()), np.finfo(float).tiny)
    shares = np.clip(values[::-1][:2], 0, None) / total
    missing = 2 - points.shape[1]
    return np.pad(points, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def _draw_numbers(ax: Axes, clusters: np.ndarray, centers: np.ndarray, colors: np.ndarray) -> None:
    """Write each cluster's number in its color at its center, apart where centers coincide."""
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    origin, span = np.array([x0, y0]), np.array([x1 - x0, y1 - y0])
    places = _spread((centers - origin) / span) * span + origin
    size = 9.5 if len(clusters) <= 12 else 8
    for cluster, place, color in zip(clusters, places, colors, strict=True):
        # Red, green and blue as the eye weighs them: white on dark colors, black on light ones.
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 140
        number = ax.text(place[0], place[1], f"{cluster}", ha="center", va="center")
        number.set(color="black" if light else "white", fontsize=size, fontweight="bold")
        number.set_bbox({"boxstyle": "circle,pad=0.25", "facecolor": color, "edgecolor": "white"})


def _spread(places: np.ndarray, distance: float = 0.06, rounds: int = 60) -> np.ndarray:
    """Push points of the unit square apart until none are closer than `distance`."""
    angles = 2.4 * np.arange(len(places))  # any fixed directions do, where two points coincide
    places = places + 1e-6 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(rounds):
        steps = places[:, None] - places[None]
        lengths = np.linalg.norm(steps, axis=2)
        np.fill_diagonal(lengths, np.inf)
        short = np.maximum(distance - lengths, 0)
        if not short.any():
            break
        places = places + 0.5 * np.einsum("ij,ijd->id", short / lengths, steps)
    return np.clip(places, 0.02, 0.98)
