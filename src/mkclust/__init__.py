"""Certified multiple kernel clustering.

Mix several kernels, or several views of the same samples, and find the clusters.
"""

from mkclust.diagnosis import Diagnosis, LandmarkStability, diagnose, landmark_stability
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
    "Diagnosis",
    "KernelBank",
    "LandmarkStability",
    "MKKMMiR",
    "SimpleMKKM",
    "WeightsWarning",
    "__version__",
    "diagnose",
    "estimate_memory",
    "landmark_stability",
]
