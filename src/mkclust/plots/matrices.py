"""Small matrices as shades: shared by views, clusters by classes, features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkclust.linalg import to_host
from mkclust.plots.model import FittedModel
from mkclust.plots.style import (
    BLUE,
    INK,
    ORANGE,
    Display,
    format_range,
    set_titles,
    shorten,
    title_of,
)


@dataclass(eq=False, kw_only=True)
class AgreementDisplay(Display):
    """How much every two views share, and which are not used.

    ``mkclust.agreement(X).plot()`` or ``AgreementDisplay.from_estimator(model)`` makes
    it.

    Parameters
    ----------
    kernel_names : sequence of str, length m
        Names of the kernels.
    alignments : array-like of shape (m, m)
        Debiased alignments: one for copies, about zero for independent kernels.
    weights : array-like of shape (m,)
        Weights; zero for kernels that are not used, whose names are put in brackets.
    """

    kernel_names: Sequence[str]
    alignments: Any
    weights: Any

    @classmethod
    def _read(cls, model: FittedModel, X: Any, **options: Any) -> dict[str, Any]:
        """Return what every two views of a fit share."""
        shared = model.agreement_
        arrays = {"alignments": shared.alignments, "weights": shared.weights()}
        return {"kernel_names": shared.names, **arrays, **options}

    def _size(self) -> tuple[float, float]:
        wanted = 0.45 * len(self.kernel_names) + 2.1
        side = max(3.6, min(wanted, 12.0))
        return side + 0.5, side

    def _words(self) -> str:
        """Return how much any two views share, in words."""
        is_pair = ~np.eye(len(self.kernel_names), dtype=bool)
        pairs = np.asarray(self.alignments)[is_pair]
        brackets = " In brackets: views that are not used."
        if np.all(self.weights):
            brackets = ""

        return (
            f"Two views share {format_range(pairs)}: 1 means copies, 0 "
            f"nothing.{brackets}"
        )

    def _draw(self, ax: Any) -> None:
        """Draw the shares of all pairs of views."""
        values = np.asarray(self.alignments, dtype=float)
        names = [
            shorten(name) if weight > 0 else f"({shorten(name)})"
            for name, weight in zip(self.kernel_names, self.weights, strict=True)
        ]
        cells = [
            [f"{round(value, 2) + 0.0:.2f}" for value in row] for row in values.tolist()
        ]
        image = _draw_matrix(
            ax, values, names, names, cells, cmap="Blues", vmin=0, vmax=1
        )
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        if not ax.texts:
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
            bar.outline.set_visible(False)
        note = "in brackets: not used"
        if np.all(self.weights):
            note = ""

        set_titles(ax, "What every two views share", note)


@dataclass(eq=False, kw_only=True)
class ClassesDisplay(Display):
    """How the samples of each given class spread over the clusters.

    Parameters
    ----------
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1 are left out.
    y : array-like of shape (n,)
        The given class of each sample.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.

    Attributes
    ----------
    counts : pandas.DataFrame
        Samples by cluster (rows) and class (columns); classes by their main cluster.

    Examples
    --------
    >>> from mkclust.plots import ClassesDisplay
    >>> ClassesDisplay(labels=[0, 0, 1, 1], y=["b", "b", "b", "a"]).counts.to_dict()
    {'b': {0: 2, 1: 1}, 'a': {0: 0, 1: 1}}
    """

    labels: Any
    y: Any
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        labels = to_host(self.labels, None)
        y = to_host(self.y, None)
        # Classes of several types have no order, so that they cannot be sorted.
        known = y[labels >= 0]
        codes, classes = pd.factorize(known, use_na_sentinel=False)
        clusters = labels[labels >= 0]
        table = pd.crosstab(clusters, codes).set_axis(classes, axis=1)
        counts = table.to_numpy()
        largest = counts.max(axis=0)
        order = np.lexsort((-largest, counts.argmax(axis=0)))
        self.counts = table.rename_axis(index=None).iloc[:, order]

    def _size(self) -> tuple[float, float]:
        k, c = (min(size, 40) for size in self.counts.shape)
        width = 0.35 * c + 2.0
        height = 0.3 * k + 1.5
        return max(4.5, width), max(3.5, height)

    def _words(self) -> str:
        """Return how clusters and classes match, in words."""
        n_largest = self.counts.max(axis=1).sum()
        largest = n_largest / self.counts.to_numpy().sum()
        return (
            f"Shades are shares of a class. {largest:.0%} of the samples are of the "
            "most frequent class of their cluster."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the number of samples of every cluster in every class."""
        counts = self.counts.to_numpy()
        shares = counts / counts.sum(axis=0)
        rows = [title_of(cluster, self.names) for cluster in self.counts.index]
        columns = [shorten(name, 12) for name in self.counts.columns]
        cells = [[count or "" for count in row] for row in counts.tolist()]
        shades = {"cmap": "Blues", "vmin": 0, "vmax": shares.max(), "aspect": "auto"}
        _draw_matrix(ax, shares, rows, columns, cells, **shades)
        if max(map(len, columns)) > 3:
            ax.tick_params(axis="x", rotation=45)
        title = f"Shares of the classes (darkest: {shares.max():.0%})"
        set_titles(ax, title, "given class (not used to fit)", "cluster")


@dataclass(eq=False, kw_only=True)
class DescriptionDisplay(Display):
    """How clusters differ in the features that set them apart.

    ``mkclust.describe(model, tables).plot()`` makes it. Two standard deviations have
    full color.

    Parameters
    ----------
    features : sequence of str, length d
        Names of the features; the first is drawn at the top.
    differences : array-like of shape (d, k)
        Standardized difference between each cluster and the rest.
    sizes : sequence of int, length k
        Number of samples in each cluster.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.
    """

    features: Sequence[str]
    differences: Any
    sizes: Sequence[int]
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        shape = len(self.features), len(self.sizes)
        self.differences = np.asarray(self.differences, dtype=float).reshape(shape)

    def _size(self) -> tuple[float, float]:
        d, k = self.differences.shape
        width = 3.6 + 0.5 * max(k, 3)
        height = 1.7 + 0.25 * max(d, 4)
        return min(width, 16.0), min(height, 24.0)

    def _words(self) -> str:
        """Return what the shades mean, in words."""
        if np.isnan(self.differences).all():
            return "No feature stands out."
        largest = np.nanargmax(np.abs(self.differences))
        place = np.unravel_index(largest, self.differences.shape)
        row, cluster = map(int, place)
        return (
            "Blue is above the rest, orange below. The largest difference, "
            f"{self.differences[row, cluster]:+.1f} standard deviations, is that of "
            f"cluster {title_of(cluster, self.names)} in {self.features[row]}."
        )

    def _draw(self, ax: Any) -> None:
        """Draw how far the features of every cluster are from the rest."""
        from matplotlib.colors import LinearSegmentedColormap

        title = "What sets the clusters apart"
        if not len(self.features):
            ax.set_axis_off()
            set_titles(ax, f"{title}: no feature stands out")
            return
        hues = LinearSegmentedColormap.from_list(
            "low to high", [ORANGE, "#ffffff", BLUE]
        )
        rows = [shorten(name, 34) for name in self.features]
        columns = [
            f"{title_of(cluster, self.names, 10)}\n{size:,}"
            for cluster, size in enumerate(self.sizes)
        ]
        cells = [list(map(_difference, row)) for row in self.differences.tolist()]
        values = np.ma.masked_invalid(self.differences)
        image = _draw_matrix(
            ax,
            values,
            rows,
            columns,
            cells,
            cmap=hues.with_extremes(bad="#f0f0f0"),
            vmin=-2,
            vmax=2,
            aspect="auto",
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02, extend="both")
        bar.outline.set_visible(False)
        bar.set_label("standard deviations from the rest", fontsize=9)
        set_titles(ax, title, "cluster, with its samples")


@dataclass(eq=False, kw_only=True)
class ViewSeparationDisplay(Display):
    """How well each view alone tells every two clusters from each other.

    ``mkclust.view_separation(model, X).plot()`` makes it.

    Parameters
    ----------
    views : sequence of str, length m
        Names of the views.
    pairs : sequence of str, length q
        Names of the pairs of clusters.
    areas : array-like of shape (m, q)
        Areas under the curve: 1 if the view separates the two, 0.5 if it knows nothing.
    chance : float
        The largest area by chance.
    """

    views: Sequence[str]
    pairs: Sequence[str]
    areas: Any
    chance: float

    def _size(self) -> tuple[float, float]:
        wide = 2.6 + 0.52 * max(len(self.pairs), 4)
        height = 1.4 + 0.32 * max(len(self.views), 2)
        return min(wide, 16.0), height

    def _words(self) -> str:
        """Return what the numbers mean, in words."""
        return (
            "How often a sample of one cluster is nearer to it than one of the other, "
            f"by a view alone: 1 always, 0.5 by chance (up to {self.chance:.2f})."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the areas of all views and pairs of clusters."""
        areas = np.asarray(self.areas, dtype=float)
        rows = [shorten(name) for name in self.views]
        columns = [shorten(name, 24) for name in self.pairs]
        cells = [[_area(value) for value in row] for row in areas.tolist()]
        shades = {"cmap": "Blues", "vmin": 0.5, "vmax": 1.0, "aspect": "auto"}
        image = _draw_matrix(
            ax, np.ma.masked_invalid(areas), rows, columns, cells, **shades
        )
        if max(map(len, columns), default=0) > 6:
            ax.tick_params(axis="x", rotation=45)
        if not ax.texts:
            bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02)
            bar.outline.set_visible(False)
        set_titles(ax, "Which view separates which clusters", "two clusters")


def _area(value: float) -> str:
    """Return an area, nothing for NaN."""
    if np.isnan(value):
        return ""
    return f"{value:.2f}"


def _difference(value: float) -> str:
    """Return a difference with its sign; nothing for NaN."""
    if np.isnan(value):
        return ""
    if abs(value) < 0.05:
        return "0"
    return f"{value:+.1f}"


def _draw_matrix(
    ax: Any,
    values: Any,
    rows: list[str],
    columns: list[str],
    cells: list[list[Any]],
    **shades: Any,
) -> Any:
    """Draw a matrix as shades, with numbers if it is small; return the image."""
    image = ax.imshow(values, interpolation="nearest", **shades)
    for axis, names, limit in ((ax.yaxis, rows, 60), (ax.xaxis, columns, 25)):
        every = -(-len(names) // limit)
        size = 7
        if len(names) <= 30:
            size = 9

        # A dollar sign in a name is not a formula.
        axis.set_ticks(
            range(0, len(names), every), names[::every], size=size, parse_math=False
        )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)

    # The numbers of more columns would not fit into their cells.
    most_written = 15
    for (row, column), value in (
        np.ndenumerate(values) if len(columns) <= most_written else ()
    ):
        red, green, blue, _ = image.to_rgba(value)
        color = "white"
        brightness = 0.3 * red + 0.6 * green + 0.1 * blue
        if brightness > 0.55:
            color = INK

        text = cells[row][column]
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    return image
