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
from mkclust.explain.fitted import (
    check_fitted,
    fitted_index,
    is_approximated,
    observed_samples,
)
from mkclust.explain.number_of_clusters import NumberOfClusters, suggest_n_clusters
from mkclust.explain.parts import Parts
from mkclust.explain.sample_scores import SampleScores, sample_scores
from mkclust.explain.stability import Stability, part_size, stability
from mkclust.explain.tables import read_tables
from mkclust.index import index_of, match_rows
from mkclust.kernels import default_bank
from mkclust.linalg import to_host
from mkclust.methods import AgreementKKM
from mkclust.methods.agreement import Agreement
from mkclust.methods.training import in_order_of_fit, make_bank
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import agreement_of_labels, scores
from mkclust.plots.sampling import sample_clusters

# Entries of kernels for one of several refits, with the slowness of the method.
MAX_REFITTED = 1.6e7
# Samples for a refit, however few kernels there are.
MAX_SAMPLES = 2000


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportData:
    """A fitted model, and everything that its report says about it; None for what is not known."""

    model: Any
    X: Any  # what it was fitted on
    ids: list[str]  # of the samples, or their numbers
    labels: np.ndarray  # -1 if nothing is known of a sample
    n_filled: int  # empty cells that were filled
    y: np.ndarray | None  # given classes
    scores: SampleScores
    description: Description | None  # None if no view has features
    diagnosis: Diagnosis | None  # None for a single kernel
    agreed_ari: float | None  # ARI with the clusters that the views agree on
    stability: Stability | None
    suggestion: NumberOfClusters | None
    annotation: Annotation | None

    @property
    def known(self) -> np.ndarray:
        """Which samples have a cluster, (n,) of bool."""
        return self.labels >= 0

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return int(self.model.n_clusters)

    @property
    def agreement(self) -> Agreement | None:
        """What the views share; None for a single kernel."""
        return self.model.agreement_ if len(self.model.kernel_names_) > 1 else None

    @property
    def clusters(self) -> pd.DataFrame:
        """The size of each cluster, its mean silhouette, and the share of negative ones."""
        groups = pd.Series(self.scores.silhouette[self.known]).groupby(self.labels[self.known])
        found = groups.agg(size="size", mean="mean", negative=lambda each: (each < 0).mean())
        return found.reindex(range(self.n_clusters)).fillna({"size": 0}).astype({"size": int})

    @property
    def least_stable(self) -> list[int]:
        """The indices of the 25 samples that change clusters most often."""
        if self.stability is None:
            return []
        shares = pd.Series(self.stability.samples)
        return shares[shares < 1].sort_values(kind="stable").index[:25].tolist()

    @property
    def class_scores(self) -> pd.DataFrame | None:
        """The scores against given classes in percent, by whose clusters they are."""
        if self.y is None:
            return None
        found = {"this model": self.labels}
        if hasattr(self.model, "baseline_labels_"):
            found["what the views agree on"] = np.asarray(self.model.baseline_labels_)
        y, known = self.y[self.known], self.known
        return 100 * pd.DataFrame({name: scores(y, each[known]) for name, each in found.items()}).T


def collect(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    annotation: Annotation | None = None,
    n_resamples: int | None = None,
    alternatives: bool | NumberOfClusters = False,
) -> ReportData:
    """Compute everything that the report of a fitted model says."""
    check_fitted(model)
    labels = np.asarray(model.labels_)
    # The model and its samples without those of which nothing is known.
    covered, samples = only_covered(model), in_order_of_fit(model, X)
    given = None if y is None else _in_order(y, model)
    n_filled = 0
    if model.table_options.impute and samples.kind != "kernels":
        tables = read_tables(X, fitted_index(model), observed_samples(model))
        n_filled = sum(table.n_missing for table in tables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has warned
        views, several = views_of_features(covered, samples), len(model.kernel_names_) > 1
        return ReportData(
            model=model,
            X=X,
            ids=[str(name) for name in getattr(model, "sample_ids_", range(len(labels)))],
            labels=labels,
            n_filled=n_filled,
            y=given,
            scores=sample_scores(model),
            description=describe(covered, samples.only(views), n_features=5) if views else None,
            diagnosis=_diagnose(covered, samples) if several else None,
            agreed_ari=_agreed_ari(covered, samples) if several else None,
            stability=_stability(model, X, n_resamples),
            suggestion=_suggestion(covered, samples, alternatives),
            annotation=annotation,
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


def _diagnose(model: Any, samples: Any) -> Diagnosis:
    """Return the diagnosis, with refits without each kernel if they are quick."""
    n = min(len(model.labels_), refit_size(model))
    quick = (len(model.kernel_names_) * n) ** 2 * model.SLOWNESS <= 6e7
    return diagnose(model, samples, leave_one_out=quick, max_samples=n)


def _agreed_ari(model: Any, samples: Any) -> float | None:
    """Return the ARI of a model's clusters with those that its views agree on, None if none."""
    if not model.agreement_.any_share or isinstance(model, AgreementKKM):
        return None
    if hasattr(model, "baseline_agreement_"):
        return float(model.baseline_agreement_)
    labels, parts = np.asarray(model.labels_), Parts.of_fit(model, samples)
    part, given = sample_clusters(labels, refit_size(model)), parts.unfitted(model).get_params()
    names = AgreementKKM().get_params(deep=False)
    agreed = AgreementKKM(**{name: given[name] for name in names if name in given})
    return agreement_of_labels(labels[part], agreed.fit(parts.take(part)).labels_)


def _stability(model: Any, X: Any, n_resamples: int | None) -> Stability | None:
    """Return the stability under resampling; None if nothing could change, or is asked for."""
    n, k, most = len(model.labels_), model.n_clusters, refit_size(model)
    if n_resamples is None:
        entries = len(model.kernel_names_) * min(n, most) ** 2 * model.SLOWNESS
        n_resamples = 20 if entries <= MAX_REFITTED / 20 else 10
    if k == 1 or n_resamples == 0 or part_size(n, 0.8, most) <= k:
        return None
    return stability(model, X, n_resamples=n_resamples, max_samples=most)


def _suggestion(
    model: Any, samples: Samples, alternatives: bool | NumberOfClusters
) -> NumberOfClusters | None:
    """Compare numbers of clusters if asked for, as `suggest_n_clusters` does."""
    if isinstance(alternatives, NumberOfClusters):
        return alternatives
    if not alternatives or model.n_clusters == 1:
        return None
    kernels = default_bank(True, "gaussian") if is_approximated(model) else model.kernels
    if samples.kind != "kernels" and model.kernel_neighbors is not None:
        kernels = make_bank(model, several_views=samples.kind == "views")
    names = ("center", "normalize", "psd", "missing_views", "scale")
    options = {name: getattr(model, name) for name in names}
    return suggest_n_clusters(samples, kernels=kernels, **options)
