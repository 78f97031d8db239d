"""Certified multiple kernel clustering.

Mix several kernels, or several views of the same samples, and find the clusters.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mkclust.version import __version__

if TYPE_CHECKING:
    from mkclust.data.devices import to_device
    from mkclust.explain.agreement import agreement
    from mkclust.explain.anndata import to_anndata
    from mkclust.explain.annotate import annotate
    from mkclust.explain.cluster_names import name_clusters
    from mkclust.explain.describe import describe
    from mkclust.explain.diagnose import diagnose
    from mkclust.explain.memory import estimate_memory
    from mkclust.explain.number_of_clusters import suggest_n_clusters
    from mkclust.explain.report import write_report
    from mkclust.explain.sample_scores import sample_scores
    from mkclust.explain.stability import stability
    from mkclust.explain.view_separation import view_separation
    from mkclust.fit.persistence import load_model, save_model
    from mkclust.kernels import KernelBank, view
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
        AgreementKKM,
        AnchoredMKKM,
        AverageKKM,
        LocalizedSimpleMKKM,
        MKKMMiR,
        SimpleMKKM,
    )
    from mkclust.metrics import align_labels

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
    "AgreementKKM",
    "AnchoredMKKM",
    "AverageKKM",
    "KernelBank",
    "LocalizedSimpleMKKM",
    "MKKMMiR",
    "SimpleMKKM",
    "__version__",
    "agreement",
    "align_labels",
    "annotate",
    "describe",
    "diagnose",
    "estimate_memory",
    "load_model",
    "name_clusters",
    "sample_scores",
    "save_model",
    "stability",
    "suggest_n_clusters",
    "to_anndata",
    "to_device",
    "view",
    "view_separation",
    "write_report",
]

# All names are imported on first use: the command line answers --help and mistakes
# without what computes.
_IMPORTED_LATER = {
    "agreement": "mkclust.explain.agreement",
    "annotate": "mkclust.explain.annotate",
    "describe": "mkclust.explain.describe",
    "diagnose": "mkclust.explain.diagnose",
    "estimate_memory": "mkclust.explain.memory",
    "load_model": "mkclust.fit.persistence",
    "name_clusters": "mkclust.explain.cluster_names",
    "sample_scores": "mkclust.explain.sample_scores",
    "save_model": "mkclust.fit.persistence",
    "stability": "mkclust.explain.stability",
    "suggest_n_clusters": "mkclust.explain.number_of_clusters",
    "to_anndata": "mkclust.explain.anndata",
    "view_separation": "mkclust.explain.view_separation",
    "write_report": "mkclust.explain.report",
    "KAMMA": "mkclust.methods",
    "KAMMR": "mkclust.methods",
    "LFMVC": "mkclust.methods",
    "LKAM": "mkclust.methods",
    "LMKKM": "mkclust.methods",
    "METHODS": "mkclust.methods",
    "MKKM": "mkclust.methods",
    "MKKMMM": "mkclust.methods",
    "ONKC": "mkclust.methods",
    "RECOMMENDED": "mkclust.methods",
    "AgreementKKM": "mkclust.methods",
    "AnchoredMKKM": "mkclust.methods",
    "AverageKKM": "mkclust.methods",
    "LocalizedSimpleMKKM": "mkclust.methods",
    "MKKMMiR": "mkclust.methods",
    "SimpleMKKM": "mkclust.methods",
    "KernelBank": "mkclust.kernels",
    "align_labels": "mkclust.metrics",
    "to_device": "mkclust.data.devices",
    "view": "mkclust.kernels",
}
# Parts that are reached as attributes, such as ``mkclust.metrics``.
_PACKAGES = (
    "agreements",
    "bench",
    "data",
    "datasets",
    "engine",
    "exceptions",
    "explain",
    "files",
    "fit",
    "graph",
    "index",
    "kernels",
    "linalg",
    "methods",
    "metrics",
    "parameters",
    "plots",
    "scverse",
    "stack",
    "text",
    "types",
)


if not TYPE_CHECKING:  # otherwise type checkers accept any attribute

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"mkclust.{name}")
        if name not in _IMPORTED_LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_IMPORTED_LATER[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_IMPORTED_LATER, *_PACKAGES})
