"""Certified multiple kernel clustering.

Mix several kernels, or several views of the same samples, and find the clusters.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mkclust.kernels import KernelBank, KernelWarning, view
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
    LocalizedSimpleMKKM,
    Missingness,
    MissingnessWarning,
    MissingViewsWarning,
    MKKMMiR,
    NeighborhoodsWarning,
    NoAgreementWarning,
    OrderWarning,
    SimpleMKKM,
    UncoveredSamplesWarning,
    WeightsWarning,
)
from mkclust.metrics import align_labels
from mkclust.plots import (
    AgreementDisplay,
    ConvergenceDisplay,
    DescriptionDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    NumberOfClustersDisplay,
    SortedKernelDisplay,
)
from mkclust.samples.devices import to_device
from mkclust.stack.discretize import FewerClustersWarning
from mkclust.version import __version__

if TYPE_CHECKING:
    from mkclust.explain import Diagnosis, LandmarkStability, diagnose, landmark_stability
    from mkclust.explain.agreement import agreement
    from mkclust.explain.annotate import annotate
    from mkclust.explain.annotation import Annotation
    from mkclust.explain.choosing import NumberOfClusters, suggest_n_clusters
    from mkclust.explain.describe import describe
    from mkclust.explain.description import Description
    from mkclust.explain.memory import estimate_memory
    from mkclust.explain.page import fit_report
    from mkclust.explain.sample_scores import SampleScores, sample_scores
    from mkclust.explain.write_back import write_back
    from mkclust.methods.persistence import ModelVersionWarning, load_model, save_model

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
    "Annotation",
    "AverageKKM",
    "ConvergenceDisplay",
    "Description",
    "DescriptionDisplay",
    "Diagnosis",
    "EmbeddingDisplay",
    "FewerClustersWarning",
    "GroupsWarning",
    "KernelBank",
    "KernelWarning",
    "KernelWeightsDisplay",
    "LandmarkStability",
    "LocalizedSimpleMKKM",
    "MKKMMiR",
    "MissingViewsWarning",
    "Missingness",
    "MissingnessWarning",
    "ModelVersionWarning",
    "NeighborhoodsWarning",
    "NoAgreementWarning",
    "NumberOfClusters",
    "NumberOfClustersDisplay",
    "OrderWarning",
    "SampleScores",
    "SimpleMKKM",
    "SortedKernelDisplay",
    "UncoveredSamplesWarning",
    "WeightsWarning",
    "__version__",
    "agreement",
    "align_labels",
    "annotate",
    "describe",
    "diagnose",
    "estimate_memory",
    "fit_report",
    "landmark_stability",
    "load_model",
    "sample_scores",
    "save_model",
    "suggest_n_clusters",
    "to_device",
    "view",
    "write_back",
]

# What explains a fit is wanted after one: it is imported when it is first asked for, which makes
# importing the library faster.
_IMPORTED_LATER = {
    "Annotation": "mkclust.explain.annotation",
    "Description": "mkclust.explain.description",
    "Diagnosis": "mkclust.explain",
    "LandmarkStability": "mkclust.explain",
    "ModelVersionWarning": "mkclust.methods.persistence",
    "NumberOfClusters": "mkclust.explain.choosing",
    "SampleScores": "mkclust.explain.sample_scores",
    "agreement": "mkclust.explain.agreement",
    "annotate": "mkclust.explain.annotate",
    "describe": "mkclust.explain.describe",
    "diagnose": "mkclust.explain",
    "estimate_memory": "mkclust.explain.memory",
    "fit_report": "mkclust.explain.page",
    "landmark_stability": "mkclust.explain",
    "sample_scores": "mkclust.explain.sample_scores",
    "load_model": "mkclust.methods.persistence",
    "save_model": "mkclust.methods.persistence",
    "suggest_n_clusters": "mkclust.explain.choosing",
    "write_back": "mkclust.explain.write_back",
}


if not TYPE_CHECKING:  # a type checker would take any name for one of the module's

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first asked for, and remember it."""
        if name == "explain":
            return import_module("mkclust.explain")
        if name not in _IMPORTED_LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_IMPORTED_LATER[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the names that are there, and those that are imported later."""
    return sorted({*globals(), *_IMPORTED_LATER, "explain"})
