"""Displays of a fit in scikit-learn's style: arrays with ``plot(ax=None)``.

``from_estimator(model, ax=None)`` takes the arrays from a fitted model. If axes are
given, nothing touches matplotlib's global state, and no screen is needed.
"""

from mkclust.plots.curves import ConvergenceDisplay, NumberOfClustersDisplay
from mkclust.plots.embedding import EmbeddingDisplay
from mkclust.plots.fit import plot_fit
from mkclust.plots.heatmap import HeatmapDisplay
from mkclust.plots.matrices import (
    AgreementDisplay,
    ClassesDisplay,
    DescriptionDisplay,
    ViewSeparationDisplay,
)
from mkclust.plots.ranks import CriticalDifferenceDisplay
from mkclust.plots.sorted_kernel import SortedKernelDisplay
from mkclust.plots.survival import SurvivalDisplay
from mkclust.plots.tree import ClusterTreeDisplay
from mkclust.plots.variables import VariableDisplay
from mkclust.plots.weights import KernelWeightsDisplay

__all__ = [
    "AgreementDisplay",
    "ClassesDisplay",
    "ClusterTreeDisplay",
    "ConvergenceDisplay",
    "CriticalDifferenceDisplay",
    "DescriptionDisplay",
    "EmbeddingDisplay",
    "HeatmapDisplay",
    "KernelWeightsDisplay",
    "NumberOfClustersDisplay",
    "SortedKernelDisplay",
    "SurvivalDisplay",
    "VariableDisplay",
    "ViewSeparationDisplay",
    "plot_fit",
]
