"""The picture of ``mkclust demo``: what agrees, what was found, and how well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.plots.embedding import EmbeddingDisplay
from mkclust.plots.style import BLUE, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mkclust.methods import AgreementKKM

# Inches, of the whole and of an 8 x 8 image on the map.
SIZE, IMAGE_SIZE = (13.6, 5.2), 0.25
TITLE: Any = {
    "loc": "left",
    "fontsize": 12,
    "fontweight": "bold",
    "color": INK,
    "pad": 12,
}


def draw_demo(
    model: AgreementKKM, images: np.ndarray, scores: Mapping[str, Mapping[str, float]]
) -> Figure:
    """Draw the tables that agree, a map with an image of every cluster, and scores.

    Images are in the order of the samples; scores are by method and name.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained", facecolor="white")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4.6, 5.4, 3.2))
    _draw_agreement(left, model)
    _draw_map(middle, model, images)
    accuracies = {name: each["acc"] for name, each in scores.items()}
    _draw_scores(right, accuracies)
    return figure


def _draw_agreement(ax: Axes, model: AgreementKKM) -> None:
    """Draw what every two tables share, and say which one is set aside."""
    shared = model.agreement_
    shared.plot(ax)
    used = len(shared.names) - len(model.set_aside_)
    aside = ", ".join(model.set_aside_)
    ax.set_title(f"{used} tables agree, “{aside}” does not", **TITLE)
    ax.set_anchor("N")
    ax.set_xlabel("what every two tables share", color=INK)


def _draw_map(ax: Axes, model: AgreementKKM, images: np.ndarray) -> None:
    """Draw the samples by cluster, with an image of each at its center."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    display = EmbeddingDisplay(
        embedding=model._rows_of(model.embedding_), labels=model.labels_
    )
    display.plot(ax)
    for label in list(ax.texts):
        label.remove()

    pixels = images.shape[1]
    zoom = IMAGE_SIZE * ax.figure.dpi / pixels
    for cluster in np.unique(display.labels).tolist():
        central = display.central(cluster)
        image = images[display.samples[central]]
        picture = OffsetImage(image, zoom=zoom, cmap="gray_r", interpolation="nearest")
        frame: dict[str, Any] = {"edgecolor": INK, "linewidth": 0.8}
        box = AnnotationBbox(
            picture, display.points[central], pad=0.15, bboxprops=frame
        )
        ax.add_artist(box)

    n_clusters = len(display.sizes)
    title = f"{n_clusters} clusters of {len(images):,} images, without labels"
    ax.set_title(title, **TITLE)
    ax.set_anchor("N")
    ax.set_xlabel("a map of neighbors, colored by cluster", color=INK)


def _draw_scores(ax: Axes, accuracies: Mapping[str, float]) -> None:
    """Draw how many images are in the right cluster, by method."""
    names = list(accuracies)[::-1]
    shares = np.array([accuracies[name] for name in names])
    colors = [BLUE if share == shares.max() else FAINT for share in shares]
    ax.barh(names, shares, height=0.55, color=colors)
    for place, share in enumerate(shares):
        words = f"{share:.0%}"
        style: Any = {"va": "center", "ha": "right", "color": "white", "fontsize": 13}
        ax.text(share - 0.02, place, words, fontweight="bold", **style)
    ax.set_title("Images in the right cluster", **TITLE)
    ax.set_xlim(0, 1)
    ax.set_xticks([])
    ax.tick_params(axis="y", length=0, labelsize=11)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("by the true digits, which no fit has used", color=INK)
