"""What speaks for each number of clusters: one panel a criterion, none summed up in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.style import BLUE, FAINT, INK, ORANGE, Display, set_titles, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CRITERIA = ("eigengap", "silhouette", "stability")


def draw_number_of_clusters(
    ax: Axes, k_values: Any, criteria: dict[str, Any], *, n_clusters: int, null: Any = None
) -> list[Axes]:
    """Draw one panel for each criterion over the number of clusters.

    The recommended number is marked in all of them, with its values. Where a criterion was
    computed on data without clusters too, what it reaches there is shaded.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        What to draw inside of; its own frame is taken away.
    k_values : array-like of int of shape (s,)
        The numbers of clusters, rising.
    criteria : dict of str to array-like of shape (s,)
        Values of each criterion, the larger the better; NaN where one is not known.
    n_clusters : int
        The recommended number; one stands for no evidence of clusters, and nothing is marked.
    null : dict of str to array-like of shape (s,) or (2, s), optional
        What each criterion reaches without clusters: its upper edge, or both edges.

    Returns
    -------
    list of matplotlib.axes.Axes
        The panels, from top to bottom.
    """
    from matplotlib.ticker import MaxNLocator

    k_values, null = np.asarray(k_values), null or {}
    recommendation = (
        f"{n_clusters} clusters recommended" if n_clusters > 1 else "no evidence of clusters"
    )
    ax.set_axis_off()
    count, gap = len(criteria), 0.07
    height = (1 - gap * (count - 1)) / count
    panels = []
    for place, (name, values) in enumerate(criteria.items()):
        low = 1 - (place + 1) * height - place * gap
        panel = ax.inset_axes((0.0, low, 1.0, height))
        _draw_criterion(panel, k_values, np.asarray(values, dtype=float), n_clusters)
        if null.get(name) is not None:
            _draw_null(panel, k_values, np.asarray(null[name], dtype=float))
        # Above what is said about the shades.
        set_titles(
            panel, "" if place else f"Number of clusters: {recommendation}", "", name, pad=20
        )
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=14))
        if len(k_values) == 1:
            panel.set_xticks(k_values)
        if place < count - 1:
            panel.tick_params(labelbottom=False)
        panels.append(panel)
    panels[-1].set_xlabel("number of clusters", fontsize=10)
    return panels


class NumberOfClustersDisplay(Display):
    """Three criteria over the number of clusters, and the number they recommend.

    Make it by :meth:`from_suggestion`, or of arrays.

    Parameters
    ----------
    k_values : array-like of int of shape (s,)
        The numbers of clusters, rising.
    eigengaps, silhouettes, stabilities : array-like of shape (s,)
        The criteria, the larger the better; NaN where one is not known.
    n_clusters : int
        The recommended number; one stands for no evidence of clusters.
    null_eigengaps, null_silhouettes, null_stabilities : array-like, default=None
        What the criteria reach on data without clusters: upper edges, of shape (s,), or lower and
        upper ones, of shape (2, s).

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn inside of last.
    axes_ : list of matplotlib.axes.Axes
        The panels, from top to bottom.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.

    Examples
    --------
    >>> from mkclust.plots import NumberOfClustersDisplay
    >>> display = NumberOfClustersDisplay(
    ...     k_values=[2, 3, 4],
    ...     eigengaps=[0.1, 0.6, 0.2],
    ...     silhouettes=[0.4, 0.7, 0.5],
    ...     stabilities=[0.8, 1.0, 0.7],
    ...     n_clusters=3,
    ... )
    >>> display.plot().axes_[0].get_title(loc="left")
    'Number of clusters: 3 clusters recommended'
    """

    def __init__(
        self,
        *,
        k_values: Any,
        eigengaps: Any,
        silhouettes: Any,
        stabilities: Any,
        n_clusters: int,
        null_eigengaps: Any = None,
        null_silhouettes: Any = None,
        null_stabilities: Any = None,
    ):
        self.k_values = np.asarray(k_values)
        self.eigengaps = np.asarray(eigengaps, dtype=float)
        self.silhouettes = np.asarray(silhouettes, dtype=float)
        self.stabilities = np.asarray(stabilities, dtype=float)
        self.n_clusters = n_clusters
        self.null_eigengaps = null_eigengaps
        self.null_silhouettes = null_silhouettes
        self.null_stabilities = null_stabilities

    @classmethod
    def from_suggestion(cls, result: Any, *, ax: Axes | None = None) -> NumberOfClustersDisplay:
        """Draw what ``mkclust.suggest_n_clusters`` has found.

        Parameters
        ----------
        result : object
            With ``k_values``, ``eigengaps``, ``silhouettes``, ``stabilities`` and ``n_clusters``;
            ``null_eigengaps``, ``null_silhouettes`` and ``null_stabilities`` are drawn where it
            has them.
        ax : matplotlib.axes.Axes, default=None
            What to draw inside of; None makes a new figure.

        Returns
        -------
        NumberOfClustersDisplay
        """
        names = ("k_values", "eigengaps", "silhouettes", "stabilities", "n_clusters")
        if missing := [name for name in names if not hasattr(result, name)]:
            raise TypeError(
                f"{type(result).__name__} has no {missing[0]}: pass what suggest_n_clusters returns"
            )
        null = ("null_eigengaps", "null_silhouettes", "null_stabilities")
        values: dict[str, Any] = {name: getattr(result, name, None) for name in (*names, *null)}
        return cls(**values).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return (6.5, 6.5)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        values = (self.eigengaps, self.silhouettes, self.stabilities)
        null = (self.null_eigengaps, self.null_silhouettes, self.null_stabilities)
        self.axes_ = draw_number_of_clusters(
            ax,
            self.k_values,
            dict(zip(CRITERIA, values, strict=True)),
            n_clusters=self.n_clusters,
            null=dict(zip(CRITERIA, null, strict=True)),
        )


def _draw_criterion(panel: Axes, k_values: np.ndarray, values: np.ndarray, n_clusters: int) -> None:
    """Draw one criterion as dots on a line, with its value at the recommended number."""
    panel.plot(k_values, values, color=BLUE, marker="o", markersize=4, linewidth=1.4)
    margin = 0.04 * (k_values[-1] - k_values[0]) or 0.5
    panel.set_xlim(k_values[0] - margin, k_values[-1] + margin)
    panel.margins(y=0.2)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["bottom", "left"]].set_color(FAINT)
    panel.tick_params(labelsize=9, color=FAINT)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    panel.set_axisbelow(True)
    if not np.isfinite(values).any():
        panel.text(0.5, 0.5, "not known", ha="center", va="center", transform=panel.transAxes)
        panel.set_yticks([])
        return
    chosen = np.flatnonzero((k_values == n_clusters) & np.isfinite(values))
    if n_clusters > 1:
        panel.axvline(n_clusters, color=ORANGE, linewidth=1.2, linestyle="--", zorder=1)
    for place in chosen:
        panel.plot(n_clusters, values[place], "o", color=ORANGE, markersize=8, zorder=3)
        right = place > len(k_values) / 2
        panel.annotate(
            written(values[place]),
            (n_clusters, values[place]),
            (-8 if right else 8, 6),
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=9,
            color=INK,
        )


def _draw_null(panel: Axes, k_values: np.ndarray, edges: np.ndarray) -> None:
    """Shade what a criterion reaches on data without clusters."""
    low, high = panel.get_ylim()
    upper = edges if edges.ndim == 1 else edges[1]
    if not np.isfinite(upper).any():
        return
    lower = np.full(len(upper), low) if edges.ndim == 1 else edges[0]
    panel.fill_between(k_values, lower, upper, color=FAINT, alpha=0.25, linewidth=0, zorder=0)
    panel.set_ylim(min(low, np.nanmin(lower)), max(high, np.nanmax(upper)))
    caption = "shaded: reached without clusters"
    place: dict[str, Any] = {"ha": "right", "va": "bottom", "transform": panel.transAxes}
    panel.text(1, 1.01, caption, fontsize=8, color=INK, **place)
