"""What all pictures share: colors, limits on what is drawn, titles that fit, and displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Two hues that stay apart for every common color vision deficiency, and in gray.
BLUE, ORANGE = "#2b6ca3", "#d98324"
INK, FAINT = "#222222", "#8a8a8a"
# The orange of words: dark enough to be read on white.
ORANGE_INK = "#9c5700"
# Twelve colors, told apart under deuteranopia and protanopia too; more clusters reuse them.
PALETTE: tuple[str, ...] = ("#332288", "#DDAA33", "#44AA99", "#EE3377", "#66CCEE", "#994F00")
PALETTE += ("#785EF0", "#DDCC77", "#882255", "#222222", "#4477AA", "#661100")
MAX_TICKS = 25  # beyond this many clusters or classes not all of them are named


def written(value: float, decimals: int = 3) -> str:
    """Return a value with so many decimals, or with two digits where that would read zero."""
    is_seen = value == 0 or abs(value) >= 0.5 * 0.1**decimals
    return f"{value:.{decimals}f}" if is_seen else f"{value:.1e}"


def shortened(name: Any, limit: int = 26) -> str:
    """Return a name, its middle left out where it is too long for a tick label."""
    name, half = str(name), (limit - 1) // 2
    return name if len(name) <= limit else f"{name[:half]}…{name[-half:]}"


def set_titles(ax: Axes, text: str, x: str = "", y: str = "", pad: float = 8) -> None:
    """Set a panel's title, and the names of its axes."""
    ax.set_title(text, fontsize=11.5, fontweight="bold", loc="left", color=INK, pad=pad)
    ax.set_xlabel(x, fontsize=10)
    ax.set_ylabel(y, fontsize=10)


def count_steps(ax: Axes, steps: int) -> None:
    """Frame a curve over steps: whole numbers as ticks, and no more lines than its two scales."""
    from matplotlib.ticker import MaxNLocator

    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    margin = 0.04 * (steps - 1) or 0.5
    ax.set_xlim(-margin, steps - 1 + margin)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if steps == 1:
        ax.set_xticks([0])


class Display:
    """A picture that is made of plain arrays, and can be drawn as often as wanted.

    A child stores its arrays in ``__init__``, takes them from a model in a class method, and draws
    them in ``_draw``, on a figure of ``_size`` where nobody gives another.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__} draws with matplotlib, which is not installed: "
                    "pip install 'mkclust[plot]'"
                ) from error
            _, ax = plt.subplots(figsize=self._size(), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        raise NotImplementedError

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        raise NotImplementedError


def learned(model: Any, *names: str) -> list[Any]:
    """Return what a model has learned, by name, or say that it is not fitted, or no such model."""
    check_is_fitted(model)
    if missing := [name for name in names if not hasattr(model, name)]:
        raise TypeError(
            f"{type(model).__name__} has no {missing[0]}: pass a fitted clusterer of mkclust"
        )
    return [getattr(model, name) for name in names]
