"""Survival by cluster: Kaplan-Meier curves with the numbers at risk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mkclust.linalg import to_host
from mkclust.plots.style import (
    INK,
    PALETTE,
    Display,
    set_frame,
    set_titles,
    shorten,
    title_of,
)

# Half the width of a normal interval of 95 %, in standard deviations.
HALF_WIDTH = 1.959964
# The height of a name at the end of a curve, as a share of the axes, and the width of a
# letter of it.
NAME_HEIGHT = 0.062
LETTER_WIDTH = 0.019


def confidence_band(
    times: np.ndarray, happened: np.ndarray, steps: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a band of 95 % by Greenwood's variance, on the scale of log(-log(share)).

    It has no width where no sample is left.
    """
    at_risk = np.sum(times[:, None] >= steps, axis=0)
    events = np.sum((times[:, None] == steps) & happened[:, None], axis=0)
    is_left = shares > 0
    n, d, S = at_risk[is_left], events[is_left], shares[is_left]

    spread = np.sqrt(np.cumsum(d / (n * (n - d))))
    reach = np.exp(HALF_WIDTH * spread / -np.log(S))
    low = shares.copy()
    high = shares.copy()
    low[is_left] = S**reach
    high[is_left] = S ** (1 / reach)
    return low, high


def set_apart(x: np.ndarray, y: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return heights of names from 0 to 1, moved as little as keeps them legible.

    Names begin at `x`; only those whose widths overlap have to be set apart.
    """
    first = np.where(x[:, None] <= x, widths[:, None], widths)
    meet = np.abs(x[:, None] - x) < first

    heights = y.astype(float)
    placed: list[int] = []
    for name in np.argsort(y, kind="stable").tolist():
        below = [heights[other] for other in placed if meet[name, other]]
        heights[name] = max([y[name], *(each + NAME_HEIGHT for each in below)])
        placed.append(name)

    # Names that would be above the axes move down, and with them those below.
    for place, name in reversed(list(enumerate(placed))):
        above = [heights[other] for other in placed[place + 1 :] if meet[name, other]]
        heights[name] = min([1.0, heights[name], *(h - NAME_HEIGHT for h in above)])
    return heights


@dataclass(eq=False, kw_only=True)
class SurvivalDisplay(Display):
    """Kaplan-Meier curves of the clusters, with the numbers of samples at risk below.

    ``annotate(model, table).survival`` holds one for each pair of times and events.

    Parameters
    ----------
    times : array-like of shape (n,)
        Times to the event, or to the end of observation.
    events : array-like of shape (n,)
        1 for an event, 0 for censored.
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1, or without time or event, are
        left out.
    time_name : str, default="time"
        The title of the axis of times.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.
    note : str, default=""
        Words inside the axes, such as a p-value.

    Attributes
    ----------
    curves : dict
        For each cluster the times of its events, and the shares without an event up to
        then.
    bands : dict
        For each cluster the lower and the upper ends of the 95% confidence intervals of
        these shares, by the logarithm of minus their logarithm.

    Examples
    --------
    >>> from mkclust.plots import SurvivalDisplay
    >>> times, events, labels = [1, 2, 3, 4], [1, 1, 0, 1], [0, 0, 0, 0]
    >>> display = SurvivalDisplay(times=times, events=events, labels=labels)
    >>> display.curves[0][1].tolist(), display.medians
    ([0.75, 0.5, 0.0], {0: 2.0})
    """

    times: Any
    events: Any
    labels: Any
    time_name: str = "time"
    names: Sequence[str] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        labels = to_host(self.labels, None)
        times = np.asarray(self.times, dtype=float)
        events = np.asarray(self.events, dtype=float)
        known = np.isfinite(times) & np.isfinite(events) & (labels >= 0)
        self.times = times[known]
        self.events = events[known]
        self.labels = labels[known]

        self.curves = {}
        self.bands = {}
        for cluster in np.unique(self.labels).tolist():
            own = self.times[self.labels == cluster]
            happened = self.events[self.labels == cluster] == 1
            steps = np.unique(own[happened])
            survived = stats.ecdf(stats.CensoredData.right_censored(own, ~happened)).sf
            shares = survived.evaluate(steps)
            self.curves[cluster] = steps, shares
            self.bands[cluster] = confidence_band(own, happened, steps, shares)

    @property
    def n_samples(self) -> int:
        """Number of samples with a cluster, a time and an event."""
        return len(self.times)

    @property
    def n_events(self) -> int:
        """Number of samples with an event."""
        return int(self.events.sum())

    @property
    def medians(self) -> dict[int, float]:
        """The median time to an event in each cluster; NaN if it is not reached."""
        return {
            cluster: float(min(steps[shares <= 0.5], default=np.nan))
            for cluster, (steps, shares) in self.curves.items()
        }

    def _size(self) -> tuple[float, float]:
        return 6.2, 3.9 + 0.19 * len(self.curves)

    def _words(self) -> str:
        """Return what the curves and ticks show, in words."""
        return (
            f"Kaplan-Meier curves of {self.n_samples:,} samples, {self.n_events:,} "
            "with an event: the share of each cluster that has had none, with 95% "
            "confidence bands. Ticks: censored samples."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the curve of every cluster, and how many are still at risk."""
        from matplotlib.ticker import MaxNLocator

        end = float(self.times.max(initial=0)) or 1.0
        ticks = np.asarray(MaxNLocator(6).tick_values(0, end))
        ticks = ticks[(ticks >= 0) & (ticks <= end)]
        self._write(ax, -0.05 * end, -1, "at risk", ha="right", color=INK)
        for row, cluster in enumerate(self.curves):
            self._draw_curve(ax, cluster)
            # The numbers at risk, a row for each cluster below the axis.
            self._write(
                ax,
                -0.05 * end,
                row,
                title_of(cluster, self.names),
                ha="right",
                color=PALETTE[cluster % len(PALETTE)],
                fontweight="bold",
            )
            for tick in ticks:
                at_risk = np.sum(self.times[self.labels == cluster] >= tick)
                self._write(ax, tick, row, f"{at_risk:,}", color=INK)
        self._write_names(ax, end)
        ax.text(
            0.99,
            0.99,
            self.note,
            transform=ax.transAxes,
            ha="right",
            va="top",
            fontsize=9.5,
        )
        ax.set(xlim=(-0.02 * end, 1.06 * end), ylim=(0, 1.03), xticks=ticks)
        set_frame(ax)
        set_titles(
            ax,
            "Survival by cluster",
            shorten(self.time_name, 60),
            "share without an event",
        )

    def _draw_curve(self, ax: Any, cluster: int) -> None:
        """Draw the curve of a cluster, with its band and its censored samples."""
        own = self.times[self.labels == cluster]
        steps, shares = self.curves[cluster]
        style: dict[str, Any] = {"color": PALETTE[cluster % len(PALETTE)]}
        x = np.r_[0, steps, own.max()]
        y = np.r_[1, shares, min(shares, default=1)]
        ax.step(x, y, where="post", linewidth=1.6, **style)
        ax.fill_between(
            x,
            *(np.r_[1, end, min(end, default=1)] for end in self.bands[cluster]),
            step="post",
            alpha=0.13,
            linewidth=0,
            **style,
        )
        censored = own[self.events[self.labels == cluster] == 0]
        heights = y[np.searchsorted(steps, censored, side="right")]
        ax.plot(censored, heights, "|", markersize=7, **style)

    def _write_names(self, ax: Any, last: float) -> None:
        """Write the names of the clusters at the ends of their curves."""
        titles = [title_of(cluster, self.names) for cluster in self.curves]
        x = np.array([self.times[self.labels == each].max() for each in self.curves])
        y = np.array([min(shares, default=1) for _, shares in self.curves.values()])
        widths = LETTER_WIDTH * last * np.array([len(title) + 1 for title in titles])
        ends = zip(x, set_apart(x, y, widths), strict=True)
        for cluster, title, end in zip(self.curves, titles, ends, strict=True):
            ax.annotate(
                title,
                end,
                xytext=(4, 0),
                textcoords="offset points",
                fontsize=10,
                fontweight="bold",
                va="center",
                color=PALETTE[cluster % len(PALETTE)],
            )

    def _write(self, ax: Any, x: float, row: int, text: str, **style: Any) -> None:
        """Write a text below the axes, in a row of the table of those at risk."""
        ax.annotate(
            text,
            (x, 0),
            xycoords=ax.get_xaxis_transform(),
            xytext=(0, -54 - 12 * row),
            textcoords="offset points",
            **{"ha": "center", "fontsize": 8.5} | style,
        )
