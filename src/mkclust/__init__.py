"""Certified multiple kernel clustering.

Mix several kernels, or several views of the same samples, and find the clusters.
"""

from mkclust.choosing import NumberOfClusters, suggest_n_clusters
from mkclust.devices import to_device
from mkclust.diagnosis import Diagnosis, LandmarkStability, diagnose, landmark_stability
from mkclust.discretize import FewerClustersWarning
from mkclust.kernels import KernelBank
from mkclust.memory import estimate_memory
from mkclust.methods import (
    KAMMA,
    KAMMR,
    LFMVC,
    LKAM,
    LMKKM,
    METHODS,
    MKKM,
    MKKMMM,
    ONKC,
    AverageKKM,
    MKKMMiR,
    SimpleMKKM,
    WeightsWarning,
)
from mkclust.plots import (
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    NumberOfClustersDisplay,
    SortedKernelDisplay,
)

__version__ = "0.1.0"

__all__ = [
    "KAMMA",
    "KAMMR",
    "LFMVC",
    "LKAM",
    "LMKKM",
    "METHODS",
    "MKKM",
    "MKKMMM",
    "ONKC",
    "AverageKKM",
    "ConvergenceDisplay",
    "Diagnosis",
    "EmbeddingDisplay",
    "FewerClustersWarning",
    "KernelBank",
    "KernelWeightsDisplay",
    "LandmarkStability",
    "MKKMMiR",
    "NumberOfClusters",
    "NumberOfClustersDisplay",
    "SimpleMKKM",
    "SortedKernelDisplay",
    "WeightsWarning",
    "__version__",
    "diagnose",
    "estimate_memory",
    "landmark_stability",
    "suggest_n_clusters",
    "to_device",
]
