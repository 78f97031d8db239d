"""Curves: convergence of a solver, and the evidence for each number of clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.plots.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    Display,
    FittedModel,
    set_frame,
    set_titles,
    when,
)


@dataclass(eq=False, kw_only=True)
class ConvergenceDisplay(Display):
    """The objective over the steps of the solver, and certified lower bounds, if any.

    The global minimum lies between the two curves.

    Parameters
    ----------
    history : array-like of shape (s,)
        Values of the objective.
    lower_bounds : array-like of shape (s,), default=None
        Certified lower bounds on the minimum, not finite if unknown; None if there are
        none.
    gap : float, default=None
        The certified relative gap at the end, ``duality_gap_`` of a fit. It includes
        what the residuals of the eigenvectors leave open.

    Examples
    --------
    >>> from mkclust.plots import ConvergenceDisplay
    >>> history, bounds = [12.0, 10.0], [9.0, 9.99]
    >>> display = ConvergenceDisplay(history=history, lower_bounds=bounds, gap=1e-3)
    >>> display.plot().ax_.get_title(loc="left")
    'Convergence: certified relative gap 1.0e-03'
    """

    history: Any
    lower_bounds: Any = None
    gap: float | None = None

    def __post_init__(self) -> None:
        self.history = np.asarray(self.history, dtype=float)
        if self.lower_bounds is not None:
            bounds = np.asarray(self.lower_bounds, dtype=float)
            self.lower_bounds = np.where(np.isfinite(bounds), bounds, np.nan)

    @classmethod
    def _read(cls, model: FittedModel, X: Any, **options: Any) -> dict[str, Any]:
        """Return the objective of a fit at every step, with bounds and gap if known."""
        return {
            "history": model.history_,
            "lower_bounds": getattr(model, "lower_bounds_", None),
            "gap": getattr(model, "duality_gap_", None),
            **options,
        }

    def _size(self) -> tuple[float, float]:
        return 6.2, 3.6

    def _words(self) -> str:
        """Return the first and the last value, in words."""
        first, last = self.history[[0, -1]]
        return (
            f"The objective at every step of the solver, from {first:.5g} to "
            f"{last:.5g}."
        )

    def _draw(self, ax: Any) -> None:
        """Draw the objective and the bounds, with what may lie between them."""
        from matplotlib.ticker import ScalarFormatter

        steps = np.arange(len(self.history))
        # The marks of more steps would cover the curves.
        marks = {"marker": when(len(steps) <= 40, "o"), "markersize": 4}
        ax.plot(steps, self.history, color=BLUE, label="objective", **marks)
        _frame(ax, steps)
        if self.lower_bounds is not None:
            ax.plot(
                steps,
                self.lower_bounds,
                color=ORANGE,
                label="certified lower bound",
                **marks,
            )
            ax.fill_between(
                steps,
                self.lower_bounds,
                self.history,
                color=FAINT,
                alpha=0.15,
                linewidth=0,
            )
            # Above the curves, where it covers nothing.
            ax.legend(
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=3,
                fontsize=8.5,
                frameon=False,
                borderaxespad=0.2,
                borderpad=0,
            )
        # The numbers themselves on the axis, without an offset to add to them.
        ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
        title = "Convergence"
        if self.gap is not None and np.isfinite(self.gap):
            title += f": certified relative gap {self.gap:.1e}"
        set_titles(
            ax,
            title,
            "step",
            "objective",
            pad=8 if self.lower_bounds is None else 24,
        )


@dataclass(eq=False, kw_only=True)
class NumberOfClustersDisplay(Display):
    """Three criteria over the number of clusters, and the number that fits best.

    Parameters
    ----------
    k_values : array-like of int of shape (s,)
        The numbers of clusters, rising.
    eigengaps, tightness, agreements : array-like of shape (s,)
        The criteria, the larger the better; NaN if unknown.
    n_clusters : int
        The number that fits best, marked in all panels.

    Attributes
    ----------
    axes_ : list of matplotlib.axes.Axes
        The panels, from top to bottom, inside of ``ax_``.

    Examples
    --------
    >>> from mkclust.plots import NumberOfClustersDisplay
    >>> criteria = {"eigengaps": [0.1, 0.6], "tightness": [0.4, 0.7]}
    >>> criteria["agreements"] = [0.8, 1.0]
    >>> display = NumberOfClustersDisplay(k_values=[2, 3], n_clusters=3, **criteria)
    >>> display.plot().axes_[0].get_title(loc="left")
    'Number of clusters: 3 fit best'
    """

    k_values: Any
    eigengaps: Any
    tightness: Any
    agreements: Any
    n_clusters: int

    @classmethod
    def from_suggestion(
        cls, result: Any, *, ax: Any = None
    ) -> "NumberOfClustersDisplay":
        """Draw what ``mkclust.suggest_n_clusters`` returns."""
        found = {name: getattr(result, name) for name in cls.__annotations__}
        return cls(**found).plot(ax)

    def _words(self) -> str:
        return "Three criteria, each the larger the better."

    def _draw(self, ax: Any) -> None:
        """Draw a panel for each criterion, one below the other."""
        ax.set_axis_off()
        self.axes_ = [
            ax.inset_axes((0, 0.715 - 0.357 * row, 1, 0.285)) for row in range(3)
        ]
        criteria = {
            "eigengap": self.eigengaps,
            "tightness": self.tightness,
            "agreement": self.agreements,
        }
        for panel, name in zip(self.axes_, criteria, strict=True):
            self._draw_criterion(panel, np.asarray(criteria[name], dtype=float))
            panel.set_ylabel(name)
            panel.tick_params(labelbottom=panel is self.axes_[-1])
        set_titles(
            self.axes_[0],
            f"Number of clusters: {self.n_clusters} fit best",
            y="eigengap",
            pad=20,
        )
        self.axes_[-1].set_xlabel("number of clusters")

    def _draw_criterion(self, panel: Any, values: np.ndarray) -> None:
        """Draw one criterion, and mark the number that fits best."""
        k_values = np.asarray(self.k_values)
        best = self.n_clusters
        panel.plot(k_values, values, "o-", color=BLUE, markersize=4, linewidth=1.4)
        panel.margins(y=0.2)
        _frame(panel, k_values)
        panel.axvline(best, color=ORANGE, linewidth=1.2, linestyle="--", zorder=1)
        for value in values[(k_values == best) & np.isfinite(values)]:
            panel.plot(best, value, "o", color=ORANGE, markersize=8, zorder=3)
            panel.annotate(
                f"{value:.3f}",
                (best, value),
                xytext=(8, 6),
                textcoords="offset points",
                fontsize=9,
                color=INK,
            )


def _frame(ax: Any, x_values: Any) -> None:
    """Draw thin axes and a grid, with whole numbers on the horizontal one."""
    from matplotlib.ticker import MaxNLocator

    set_frame(ax)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=14))
    if len(x_values) == 1:
        ax.set_xticks(x_values)
