"""Pictures of a fit: weights beside alignments, convergence, embedding, kernel, classes.

Each ``draw_*`` function draws one thing on the axes it is given, from plain arrays; `plot_fit`
composes them. None of these touches matplotlib's global state: no display is needed. The displays
do the same in scikit-learn's manner: ``from_estimator(model, ax=None)`` takes the arrays and draws
them, on a new figure of pyplot's where no axes are given.
"""

from mkclust.plots.agreement import AgreementDisplay
from mkclust.plots.convergence import ConvergenceDisplay, draw_convergence
from mkclust.plots.description import DescriptionDisplay
from mkclust.plots.embedding import (
    MAX_NUMBERED,
    MAX_POINTS,
    MAX_ROWS,
    EmbeddingDisplay,
    draw_embedding,
)
from mkclust.plots.number_of_clusters import NumberOfClustersDisplay, draw_number_of_clusters
from mkclust.plots.page import draw_classes, plot_fit, save
from mkclust.plots.sorted_kernel import SortedKernelDisplay, draw_sorted_kernel
from mkclust.plots.style import BLUE, FAINT, INK, MAX_TICKS, ORANGE, PALETTE
from mkclust.plots.weights import (
    AGREEING_WEIGHT,
    LARGE_WEIGHT,
    MAX_NAMED,
    MIXING_WEIGHT,
    KernelWeightsDisplay,
    draw_weights,
)

__all__ = [
    "AGREEING_WEIGHT",
    "BLUE",
    "FAINT",
    "INK",
    "LARGE_WEIGHT",
    "MAX_NAMED",
    "MAX_NUMBERED",
    "MAX_POINTS",
    "MAX_ROWS",
    "MAX_TICKS",
    "MIXING_WEIGHT",
    "ORANGE",
    "PALETTE",
    "AgreementDisplay",
    "ConvergenceDisplay",
    "DescriptionDisplay",
    "EmbeddingDisplay",
    "KernelWeightsDisplay",
    "NumberOfClustersDisplay",
    "SortedKernelDisplay",
    "draw_classes",
    "draw_convergence",
    "draw_embedding",
    "draw_number_of_clusters",
    "draw_sorted_kernel",
    "draw_weights",
    "plot_fit",
    "save",
]
