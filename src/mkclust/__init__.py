"""Certified multiple kernel clustering.

Mix several kernels, or several views of the same samples, and find the clusters.
"""

from mkclust.explain import Diagnosis, LandmarkStability, diagnose, landmark_stability
from mkclust.explain.agreement import agreement
from mkclust.explain.choosing import NumberOfClusters, suggest_n_clusters
from mkclust.explain.memory import estimate_memory
from mkclust.explain.page import fit_report
from mkclust.kernels import KernelBank
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
    RECOMMENDED,
    Agreement,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    GroupsWarning,
    MKKMMiR,
    NoAgreementWarning,
    SimpleMKKM,
    WeightsWarning,
)
from mkclust.plots import (
    AgreementDisplay,
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    NumberOfClustersDisplay,
    SortedKernelDisplay,
)
from mkclust.samples.devices import to_device
from mkclust.stack.discretize import FewerClustersWarning
from mkclust.version import __version__

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
    "RECOMMENDED",
    "Agreement",
    "AgreementDisplay",
    "AgreementKKM",
    "AnchoredMKKM",
    "AverageKKM",
    "ConvergenceDisplay",
    "Diagnosis",
    "EmbeddingDisplay",
    "FewerClustersWarning",
    "GroupsWarning",
    "KernelBank",
    "KernelWeightsDisplay",
    "LandmarkStability",
    "MKKMMiR",
    "NoAgreementWarning",
    "NumberOfClusters",
    "NumberOfClustersDisplay",
    "SimpleMKKM",
    "SortedKernelDisplay",
    "WeightsWarning",
    "__version__",
    "agreement",
    "diagnose",
    "estimate_memory",
    "fit_report",
    "landmark_stability",
    "suggest_n_clusters",
    "to_device",
]
