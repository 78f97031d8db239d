"""What displays share: the axes they draw on, and what they take from a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Display:
    """A picture that is made of plain arrays, and can be drawn as often as wanted.

    A child stores its arrays in ``__init__``, takes them from a model in a class method, and draws
    them in ``plot``.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Note the axes to draw on; where none are given, make them as pyplot does."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__} draws with matplotlib, which is not installed: "
                    "pip install 'mkclust[plot]'"
                ) from error
            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def learned(model: Any, *names: str) -> list[Any]:
    """Return what a model has learned, by name, or say that it is not fitted, or no such model."""
    check_is_fitted(model)
    if missing := [name for name in names if not hasattr(model, name)]:
        raise TypeError(
            f"{type(model).__name__} has no {missing[0]}: pass a fitted clusterer of mkclust"
        )
    return [getattr(model, name) for name in names]
