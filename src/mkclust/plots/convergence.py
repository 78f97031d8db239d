"""How the objective came to rest, and how far from the optimum it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.style import BLUE, FAINT, INK, ORANGE, Display, count_steps, learned, set_titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    if lower_bounds is None and gap is not None and np.isfinite(gap):
        title += f": certified relative gap {gap:.1e}"
    if lower_bounds is not None:
        bounds = np.where(np.isfinite(lower_bounds), lower_bounds, np.nan).astype(float)
        ax.plot(steps, bounds, color=ORANGE, label="certified lower bound", **marks)
        ax.fill_between(steps, bounds, history, color=FAINT, alpha=0.15, linewidth=0)
        gaps = relative_gaps(history, bounds, gap)
        kind = "relative gap" if gap is None else "certified relative gap"
        if np.isfinite(gaps[-1]):
            title += f": {kind} {gaps[-1]:.1e}" if gaps[-1] else f": {kind} 0"
        _draw_gap(ax, steps, gaps, history)
        # At the right: at the left is what ticks close to each other have in common.
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
        ax.legend(**place, fontsize=9, frameon=False, borderaxespad=0.2, borderpad=0)
    set_titles(ax, title, "step", "objective", pad=8 if lower_bounds is None else 24)
    count_steps(ax, len(history))
    ax.tick_params(labelsize=9, color=FAINT)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)


def relative_gaps(history: np.ndarray, bounds: np.ndarray, gap: float | None) -> np.ndarray:
    """Return the gap between objective and bound at each step, the last as certified if it is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.maximum(history - bounds, 0) / np.abs(history)
    gaps[-1] = gaps[-1] if gap is None else gap
    return gaps


class ConvergenceDisplay(Display):
    """The objective over the steps of the solver, and the certified bound where there is one.

    Make it by :meth:`from_estimator`, or of arrays.

    Parameters
    ----------
    history : array-like of shape (s,)
        Values of the objective.
    lower_bounds : array-like of shape (s,), default=None
        Certified lower bounds on the minimum; None for a method that has none.
    gap : float, default=None
        The certified relative gap at the end.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.

    Examples
    --------
    >>> from mkclust.plots import ConvergenceDisplay
    >>> display = ConvergenceDisplay(history=[12.0, 10.5, 10.0], lower_bounds=[9.0, 9.9, 9.99])
    >>> display.plot().ax_.get_title(loc="left")
    'Convergence: relative gap 1.0e-03'
    """

    def __init__(self, *, history: Any, lower_bounds: Any = None, gap: float | None = None):
        self.history = np.asarray(history, dtype=float)
        self.lower_bounds = None if lower_bounds is None else np.asarray(lower_bounds, dtype=float)
        self.gap = gap

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None) -> ConvergenceDisplay:
        """Draw how the solver of a fitted model converged.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        ConvergenceDisplay
        """
        (history,) = learned(model, "history_")
        bounds, gap = (getattr(model, name, None) for name in ("lower_bounds_", "duality_gap_"))
        return cls(history=history, lower_bounds=bounds, gap=gap).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return (7.0, 4.0)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        draw_convergence(ax, self.history, self.lower_bounds, gap=self.gap)


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
    count_steps(inset, len(steps))
    inset.minorticks_off()
