"""Small matrices as shades: shared by views, clusters by classes, features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkclust.linalg import to_host
from mkclust.plots.style import (
    BLUE,
    INK,
    ORANGE,
    Display,
    FittedModel,
    format_range,
    set_titles,
    shorten,
    title_of,
    when,
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
        return {
            "kernel_names": shared.names,
            "alignments": shared.alignments,
            "weights": shared.weights(),
            **options,
        }

    def _size(self) -> tuple[float, float]:
        side = np.clip(0.45 * len(self.kernel_names) + 2.1, 3.6, 12.0)
        return side + 0.5, side

    def _words(self) -> str:
        """Return how much any two views share, in words."""
        is_pair = ~np.eye(len(self.kernel_names), dtype=bool)
        pairs = format_range(np.asarray(self.alignments)[is_pair])
        some = when(not np.all(self.weights), " In brackets: views that are not used.")
        return f"Two views share {pairs}: 1 means copies, 0 nothing.{some}"

    def _draw(self, ax: Any) -> None:
        """Draw the shares of all pairs of views."""
        values = np.asarray(self.alignments, dtype=float)
        names = [
            shorten(name) if weight > 0 else f"({shorten(name)})"
            for name, weight in zip(self.kernel_names, self.weights, strict=True)
        ]
        _draw_matrix(
            ax,
            values,
            rows=names,
            columns=names,
            cells=[[f"{value:z.2f}" for value in row] for row in values],
            cmap="Blues",
            vmin=0,
            vmax=1,
        )
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
        note = when(not np.all(self.weights), "in brackets: not used")
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
        # Classes of several types have no order, so that they cannot be sorted.
        codes, classes = pd.factorize(
            to_host(self.y, None)[labels >= 0], use_na_sentinel=False
        )
        table = pd.crosstab(labels[labels >= 0], codes).set_axis(classes, axis=1)
        counts = table.to_numpy()
        order = np.lexsort((-counts.max(axis=0), counts.argmax(axis=0)))
        self.counts = table.rename_axis(index=None).iloc[:, order]

    def _size(self) -> tuple[float, float]:
        k, c = (min(size, 40) for size in self.counts.shape)
        return max(4.5, 0.35 * c + 2.0), max(3.5, 0.3 * k + 1.5)

    def _words(self) -> str:
        """Return how clusters and classes match, in words."""
        largest = self.counts.max(axis=1).sum() / self.counts.to_numpy().sum()
        return (
            f"Shades are shares of a class. {largest:.0%} of the samples are of the "
            "most frequent class of their cluster."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the number of samples of every cluster in every class."""
        counts = self.counts.to_numpy()
        shares = counts / counts.sum(axis=0)
        columns = [shorten(name, 12) for name in self.counts.columns]
        _draw_matrix(
            ax,
            shares,
            rows=[title_of(cluster, self.names) for cluster in self.counts.index],
            columns=columns,
            cells=np.where(counts > 0, counts.astype(str), "").tolist(),
            cmap="Blues",
            vmin=0,
            vmax=shares.max(),
            aspect="auto",
        )
        if max(map(len, columns)) > 3:
            ax.tick_params(axis="x", rotation=45)
        set_titles(
            ax,
            f"Shares of the classes (darkest: {shares.max():.0%})",
            "given class (not used to fit)",
            "cluster",
        )


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
        differences = np.asarray(self.differences, dtype=float)
        self.differences = differences.reshape(len(self.features), len(self.sizes))

    def _size(self) -> tuple[float, float]:
        d, k = self.differences.shape
        return min(3.6 + 0.5 * max(k, 3), 16.0), min(1.7 + 0.25 * max(d, 4), 24.0)

    def _words(self) -> str:
        """Return what the shades mean, in words."""
        if np.isnan(self.differences).all():
            return "No feature stands out."
        largest = np.nanargmax(np.abs(self.differences))
        row, cluster = divmod(int(largest), len(self.sizes))
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
        hues: Any = LinearSegmentedColormap.from_list("", [ORANGE, "#ffffff", BLUE])
        hues.colorbar_extend = "both"
        _draw_matrix(
            ax,
            self.differences,
            rows=[shorten(name, 34) for name in self.features],
            columns=[
                f"{title_of(cluster, self.names, 10)}\n{size:,}"
                for cluster, size in enumerate(self.sizes)
            ],
            cells=[
                [f"{value:+.1f}" if abs(value) >= 0.05 else "0" for value in row]
                for row in self.differences
            ],
            scale="standard deviations from the rest",
            cmap=hues.with_extremes(bad="#f0f0f0"),
            vmin=-2,
            vmax=2,
            aspect="auto",
        )
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
        return (
            min(2.6 + 0.52 * max(len(self.pairs), 4), 16.0),
            1.4 + 0.32 * max(len(self.views), 2),
        )

    def _words(self) -> str:
        """Return what the numbers mean, in words."""
        return (
            "How often a sample of one cluster is nearer to it than one of the other, "
            f"by a view alone: 1 always, 0.5 by chance (up to {self.chance:.2f})."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the areas of all views and pairs of clusters."""
        areas = np.asarray(self.areas, dtype=float)
        columns = [shorten(name, 24) for name in self.pairs]
        _draw_matrix(
            ax,
            areas,
            rows=[shorten(name) for name in self.views],
            columns=columns,
            cells=[[f"{value:.2f}" for value in row] for row in areas],
            cmap="Blues",
            vmin=0.5,
            vmax=1.0,
            aspect="auto",
        )
        if max(map(len, columns), default=0) > 6:
            ax.tick_params(axis="x", rotation=45)
        set_titles(ax, "Which view separates which clusters", "two clusters")


def _draw_matrix(
    ax: Any,
    values: np.ndarray,
    *,
    rows: list[str],
    columns: list[str],
    cells: list[list[Any]],
    scale: str = "",
    **shades: Any,
) -> None:
    """Draw a matrix as shades, with numbers if it is small, or else with a scale."""
    image = ax.imshow(np.ma.masked_invalid(values), interpolation="nearest", **shades)
    for axis, names, limit in ((ax.yaxis, rows, 60), (ax.xaxis, columns, 25)):
        every = -(-len(names) // limit)
        axis.set_ticks(
            range(0, len(names), every),
            names[::every],
            size=9 if len(names) <= 30 else 7,
            parse_math=False,  # a dollar sign in a name is not a formula
        )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)

    # The numbers of more columns would not fit into their cells.
    is_written = len(columns) <= 15
    if scale or not is_written:
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(scale, fontsize=9)
    for (row, column), value in np.ndenumerate(values) if is_written else ():
        brightness = np.dot(image.to_rgba(value)[:3], (0.3, 0.6, 0.1))
        ax.text(
            column,
            row,
            "" if np.isnan(value) else cells[row][column],
            ha="center",
            va="center",
            fontsize=8,
            color=INK if brightness > 0.55 else "white",
        )
