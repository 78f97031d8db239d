"""Survival by cluster: Kaplan-Meier curves with the numbers at risk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mkclust.linalg import to_host
from mkclust.plots.style import (
    FAINT,
    INK,
    PALETTE,
    Display,
    set_titles,
    shorten,
    title_of,
)

# Half the width of a normal interval of 95 %, in standard deviations.
HALF_WIDTH = 1.959964
# The height of a name at the end of a curve, as a share of the axes, and the width of a
# letter of it.
NAME_HEIGHT, LETTER_WIDTH = 0.062, 0.019


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
    low, high = shares.copy(), shares.copy()
    low[is_left] = S**reach
    high[is_left] = S ** (1 / reach)
    return low, high


def set_apart(x: np.ndarray, y: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return heights of names from 0 to 1, moved as little as keeps them legible.

    Names begin at `x`; only those whose widths overlap have to be set apart.
    """
    gaps = np.abs(x[:, None] - x)
    first = np.where(x[:, None] <= x, widths[:, None], widths)
    meet = gaps < first

    heights = y.astype(float)
    placed: list[int] = []
    for name in np.argsort(y, kind="stable").tolist():
        below = [heights[other] for other in placed if meet[name, other]]
        heights[name] = max([y[name], *(each + NAME_HEIGHT for each in below)])
        placed.append(name)

    # Names that would be above the axes move down, and with them those below.
    for place, name in reversed(list(enumerate(placed))):
        above = [heights[other] for other in placed[place + 1 :] if meet[name, other]]
        limits = [each - NAME_HEIGHT for each in above]
        heights[name] = min([1.0, heights[name], *limits])
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
            observed = stats.CensoredData.right_censored(own, ~happened)
            survived = stats.ecdf(observed).sf
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
        found = {c: steps[shares <= 0.5] for c, (steps, shares) in self.curves.items()}
        return {
            cluster: float(min(steps, default=np.nan))
            for cluster, steps in found.items()
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
        for row, (cluster, (steps, shares)) in enumerate(self.curves.items()):
            own = self.times[self.labels == cluster]
            color = PALETTE[cluster % len(PALETTE)]
            x = np.r_[0, steps, own.max()]
            y = np.r_[1, shares, min(shares, default=1)]
            ax.step(x, y, where="post", color=color, linewidth=1.6)
            low, high = self.bands[cluster]
            ends: dict[str, Any] = {"step": "post", "color": color, "linewidth": 0}
            ax.fill_between(
                np.r_[steps, max(own.max(), steps[-1])] if len(steps) else [],
                np.r_[low, low[-1:]],
                np.r_[high, high[-1:]],
                alpha=0.13,
                **ends,
            )
            censored = own[self.events[self.labels == cluster] == 0]
            at = np.searchsorted(steps, censored, side="right")
            ax.plot(censored, np.r_[1, shares][at], "|", color=color, markersize=7)
            # The numbers at risk, a row for each cluster below the axis.
            name: dict[str, Any] = {"color": color, "fontweight": "bold"}
            title = title_of(cluster, self.names)
            self._write(ax, -0.05 * end, row, title, ha="right", **name)
            for tick in ticks:
                self._write(ax, tick, row, f"{np.sum(own >= tick):,}", color=INK)
        self._write(ax, -0.05 * end, -1, "at risk", ha="right", color=INK)
        self._write_names(ax, end)
        if self.note:
            corner: dict[str, Any] = {"ha": "right", "va": "top", "fontsize": 9.5}
            ax.text(0.99, 0.99, self.note, transform=ax.transAxes, **corner)
        ax.set(xlim=(-0.02 * end, 1.06 * end), ylim=(0, 1.03), xticks=ticks)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["bottom", "left"]].set_color(FAINT)
        ax.tick_params(labelsize=9, color=FAINT)
        set_titles(
            ax,
            "Survival by cluster",
            shorten(self.time_name, 60),
            "share without an event",
        )

    def _write_names(self, ax: Any, last: float) -> None:
        """Write the names of the clusters at the ends of their curves."""
        clusters = list(self.curves)
        titles = [title_of(cluster, self.names) for cluster in clusters]
        x = np.array([self.times[self.labels == each].max() for each in clusters])
        y = np.array([min(shares, default=1) for _, shares in self.curves.values()])
        letters = np.array([len(title) + 1 for title in titles])
        widths = LETTER_WIDTH * last * letters
        heights = set_apart(x, y, widths)
        for cluster, title, *end in zip(clusters, titles, x, heights, strict=True):
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
