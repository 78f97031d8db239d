"""A fitted model in one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mkclust.plots.curves import ConvergenceDisplay
from mkclust.plots.embedding import EmbeddingDisplay
from mkclust.plots.matrices import ClassesDisplay
from mkclust.plots.style import FittedModel, names_of
from mkclust.plots.weights import KernelWeightsDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_fit(model: FittedModel, y: Any = None) -> Figure:
    """Draw a fitted model in one figure.

    Parameters
    ----------
    model : estimator
        A fitted clusterer of this library.
    y : array-like of shape (n,), default=None
        Given classes, drawn against the clusters.

    Returns
    -------
    matplotlib.figure.Figure
        With weights, convergence (or, if the solver took one step, the agreement of the
        views), the embedding, and the classes. A notebook shows it, ``savefig`` writes
        it.
    """
    from matplotlib.figure import Figure

    heights = [max(3.6, 0.21 * min(len(model.weights_), 60) + 1.5), 5.4]
    panels: Any = [["weights", "solver"], ["embedding", "embedding"]]
    if y is not None:
        panels[1][1] = "classes"
    figure = Figure(
        figsize=(13, sum(heights) + 0.8), layout="constrained", facecolor="white"
    )
    axes: Any = figure.subplot_mosaic(panels, height_ratios=heights)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.12, h_pad=0.12)
    KernelWeightsDisplay.from_estimator(model, ax=axes["weights"])
    agreement = getattr(model, "agreement_", None)
    if agreement is not None and len(model.history_) == 1:
        agreement.plot(axes["solver"])
    else:
        ConvergenceDisplay.from_estimator(model, ax=axes["solver"])
    EmbeddingDisplay.from_estimator(model, ax=axes["embedding"])
    if y is not None:
        ClassesDisplay(
            labels=model.labels_,
            y=y,
            names=names_of(model),
        ).plot(axes["classes"])
    return figure
