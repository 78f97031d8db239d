"""Everything that the report of a fit says, computed by the functions of `mkclust.explain`."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkclust.data import Samples
from mkclust.explain.annotate import Annotation
from mkclust.explain.describe import Description, describe, views_of_features
from mkclust.explain.diagnose import Diagnosis, diagnose
from mkclust.explain.fitted import check_fitted, fitted_index, is_approximated
from mkclust.explain.number_of_clusters import NumberOfClusters, suggest_n_clusters
from mkclust.explain.parts import Parts
from mkclust.explain.sample_scores import SampleScores, sample_scores
from mkclust.explain.stability import Stability, part_size, stability
from mkclust.index import index_of, match_rows
from mkclust.kernels import default_bank
from mkclust.linalg import to_host
from mkclust.methods import AgreementKKM
from mkclust.methods.agreement import Agreement
from mkclust.methods.training import in_order_of_fit, make_bank
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import agreement_of_labels
from mkclust.plots.sampling import sample_clusters

# Entries of kernels, m n^2, up to which all samples are diagnosed; of more samples, some are.
MAX_DIAGNOSED = 8e7
# Entries of kernels for one of several refits, with the slowness of the method.
MAX_REFITTED = 1.6e7
# Samples for a refit, however few kernels there are.
MAX_SAMPLES = 2000


@dataclass(frozen=True, eq=False)
class ReportData:
    """A fitted model, and everything that its report says about it."""

    model: Any
    X: Any  # what it was fitted on
    ids: list[str]  # of the samples, or their numbers
    labels: np.ndarray  # -1 if nothing is known of a sample
    y: np.ndarray | None  # given classes
    scores: SampleScores
    description: Description | None  # None if no view has features
    diagnosis: Diagnosis | None  # None for a single kernel
    agreed_ari: float | None  # ARI with the clusters that the views agree on
    stability: Stability | None
    stability_note: str  # why there is none
    suggestion: NumberOfClusters | None
    number_note: str  # why there is none
    annotation: Annotation | None

    @property
    def known(self) -> np.ndarray:
        """Which samples have a cluster, (n,) of bool."""
        return self.labels >= 0

    @property
    def n_samples(self) -> int:
        """Number of samples that have a cluster."""
        return int(self.known.sum())

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return int(self.model.n_clusters)

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in each cluster, (k,)."""
        return np.bincount(self.labels[self.known], minlength=self.n_clusters)

    @property
    def agreement(self) -> Agreement | None:
        """What the views share; None for a single kernel."""
        return self.model.agreement_ if len(self.model.kernel_names_) > 1 else None

    @property
    def unknown_ids(self) -> list[str]:
        """Ids of the samples without a cluster."""
        return [self.ids[i] for i in np.flatnonzero(~self.known)]

    @property
    def strongest_effects(self) -> pd.DataFrame:
        """The five features that set each cluster apart most, rows of the description."""
        found, k = self.description, self.n_clusters
        return pd.DataFrame(
            [row for c in range(k) for row in found.strongest(c, 5)] if found else []
        )

    @property
    def mean_silhouette(self) -> float:
        """Mean silhouette, NaN for a single cluster."""
        return float(pd.Series(self.scores.silhouette).mean())


def collect(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    annotation: Annotation | None = None,
    n_resamples: int | None = None,
    alternatives: bool | NumberOfClusters = False,
    max_diagnosed: float = MAX_DIAGNOSED,
) -> ReportData:
    """Compute everything that the report of a fitted model says."""
    check_fitted(model)
    labels = np.asarray(model.labels_)
    # The model and its samples without those of which nothing is known.
    covered, samples = only_covered(model), in_order_of_fit(model, X)
    given = None if y is None else _in_order(y, model)
    ids = [str(name) for name in getattr(model, "sample_ids_", range(len(labels)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has warned
        views = views_of_features(covered, samples)
        return ReportData(
            model,
            X,
            ids,
            labels,
            given,
            sample_scores(model),
            describe(covered, samples.only(views), n_features=5) if views else None,
            *_diagnose(covered, samples, max_diagnosed),
            *_stability(model, X, n_resamples),
            *_number_of_clusters(covered, samples, alternatives),
            annotation,
        )


def refit_size(model: Any) -> int:
    """Return on how many samples one of several refits of a model is quick."""
    entries = MAX_REFITTED / len(model.kernel_names_) / model.SLOWNESS
    return max(5 * int(model.n_clusters), min(MAX_SAMPLES, int(entries**0.5)))


def _in_order(y: Any, model: Any) -> np.ndarray:
    """Return given classes in the order of the labels, those of a Series by its index."""
    index, n = index_of(y), len(model.labels_)
    values = to_host(y, None)
    if index is not None:
        values = values[match_rows(index, fitted_index(model), "y", every=True)]
    if values.shape != (n,):
        raise ValueError(
            f"y has the shape {values.shape}, the model was fitted on {n} samples: pass one class "
            "per sample"
        )
    return values


def _diagnose(
    model: Any, samples: Any, max_entries: float
) -> tuple[Diagnosis | None, float | None]:
    """Return the diagnosis, and the ARI with the clusters that the views agree on, None if none."""
    m, n = len(model.kernel_names_), len(model.labels_)
    if m == 1:
        return None, None
    if m * n**2 > max_entries:
        n = min(refit_size(model), int((max_entries / m) ** 0.5))
    quick = (m * n) ** 2 * model.SLOWNESS <= 6e7
    diagnosis = diagnose(model, samples, leave_one_out=quick, max_samples=n)
    return diagnosis, _agreed_ari(model, samples, n)


def _agreed_ari(model: Any, samples: Any, max_samples: int) -> float | None:
    """Return the ARI of a model's clusters with those that its views agree on, None if none."""
    if not model.agreement_.any_share or isinstance(model, AgreementKKM):
        return None
    if hasattr(model, "baseline_agreement_"):
        return float(model.baseline_agreement_)
    labels, parts = np.asarray(only_covered(model).labels_), Parts.of_fit(model, samples)
    part, given = sample_clusters(labels, max_samples), parts.unfitted(model).get_params(deep=False)
    names = AgreementKKM().get_params(deep=False)
    agreed = AgreementKKM(**{name: given[name] for name in names if name in given})
    return agreement_of_labels(labels[part], agreed.fit(parts.take(part)).labels_)


def _stability(model: Any, X: Any, n_resamples: int | None) -> tuple[Stability | None, str]:
    """Return the stability under resampling, or None and why it is unknown."""
    n, k, most = len(model.labels_), model.n_clusters, refit_size(model)
    if n_resamples is None:
        entries = len(model.kernel_names_) * min(n, most) ** 2 * model.SLOWNESS
        n_resamples = 20 if entries <= MAX_REFITTED / 20 else 10
    if k == 1:
        return None, "A single cluster is always found again."
    if n_resamples == 0:
        return None, "Stability was not asked for."
    if part_size(n, 0.8, most) <= k:
        return None, f"Stability is unknown: 80 % of {n} samples are too few for {k} clusters."
    return stability(model, X, n_resamples=n_resamples, max_samples=most), ""


def _number_of_clusters(
    model: Any, samples: Samples, alternatives: bool | NumberOfClusters
) -> tuple[NumberOfClusters | None, str]:
    """Compare numbers of clusters, as `suggest_n_clusters` does."""
    if isinstance(alternatives, NumberOfClusters):
        return alternatives, ""
    if not alternatives or model.n_clusters == 1:
        return None, "Not compared: mkclust.suggest_n_clusters(X) compares numbers of clusters."
    kernels = default_bank(True, "gaussian") if is_approximated(model) else model.kernels
    if samples.kind != "kernels" and model.kernel_neighbors is not None:
        kernels = make_bank(model, several_views=samples.kind == "views")
    names = ("center", "normalize", "psd", "missing_views", "scale")
    try:
        suggestion = suggest_n_clusters(
            samples, kernels=kernels, **{name: getattr(model, name) for name in names}
        )
    except ValueError as error:
        return None, f"Other numbers of clusters could not be compared: {error}."
    return suggestion, ""
