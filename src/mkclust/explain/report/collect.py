"""Everything that the report of a fit says, computed by `mkclust.explain`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkclust.agreements import Agreement
from mkclust.data import Samples
from mkclust.exceptions import silence
from mkclust.explain.annotate import Annotation, annotate
from mkclust.explain.clarity import Clarity
from mkclust.explain.describe import Description, describe, views_of_features
from mkclust.explain.diagnose import Diagnosis, diagnose
from mkclust.explain.fitted import Parts, check_fitted, fitted_index, samples_of_views
from mkclust.explain.number_of_clusters import (
    NumberOfClusters,
    options_of,
    suggest_n_clusters,
)
from mkclust.explain.sample_scores import SampleScores, sample_scores
from mkclust.explain.stability import Stability, stability
from mkclust.explain.tables import read_tables
from mkclust.explain.view_separation import ViewSeparation, view_separation
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import is_approximated, known_again
from mkclust.index import index_of, match_rows
from mkclust.kernels import default_bank
from mkclust.linalg import to_host
from mkclust.methods import AgreementKKM, AverageKKM
from mkclust.metrics import agreement_of_labels
from mkclust.plots.style import names_of, noun_of_kernels, sample_clusters

# Entries of kernels for one of several refits, with the slowness of the method.
MAX_REFITTED = 1.6e7
# Samples for a refit, however few kernels there are.
MAX_SAMPLES = 2000
# Entries of kernels, times the slowness of the method, for refits without each of them.
MAX_DIAGNOSED = 6e7
# Clusters up to which every two of them are compared view by view.
MAX_SEPARATED = 12


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that the report of a fit says, None for what is unknown."""

    model: MultipleKernelClusterer
    X: Any
    y: np.ndarray | None  # given classes, in the order of the labels
    ids: list[str]
    n_filled: int  # empty cells that were filled
    annotation: Annotation | None
    scores: SampleScores
    description: Description | None
    diagnosis: Diagnosis | None
    separation: ViewSeparation | None  # of clusters by single views
    agreed_ari: float | None  # with the clusters that the views agree on
    stability: Stability | None
    suggestion: NumberOfClusters | None

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the clusters, None if they have only numbers."""
        return names_of(self.model)

    @property
    def titles(self) -> tuple[str, ...]:
        """The names of the clusters, or their numbers."""
        return self.names or tuple(map(str, range(int(self.model.n_clusters_))))

    @property
    def solves_one_problem(self) -> bool:
        """Whether one eigenproblem is all that the method solves."""
        return isinstance(self.model, AverageKKM | AgreementKKM)

    @property
    def noun(self) -> str:
        """What a kernel is called: a view, if every view has one kernel."""
        return noun_of_kernels(self.model)

    @property
    def has_equal_weights(self) -> bool:
        """Whether all kernels that are used have the same weight, to three digits."""
        weights = np.asarray(self.model.weights_)
        return bool(np.ptp(weights[weights > 0]) < 5e-4)

    @property
    def verdict(self) -> str:
        """Which views agree, in words."""
        if self.agreement is None:
            return f"One {self.noun} alone: there is nothing to compare it with."
        return self.agreement.verdict(sets_aside=hasattr(self.model, "set_aside_"))

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each sample, -1 without one."""
        return np.asarray(self.model.labels_)

    @property
    def known(self) -> np.ndarray:
        """Which samples have a cluster."""
        return self.labels >= 0

    @property
    def unknown(self) -> list[str]:
        """The ids of the samples without a cluster."""
        return [self.ids[place] for place in np.flatnonzero(~self.known)]

    @property
    def agreement(self) -> Agreement | None:
        """What the kernels share, None for a single one."""
        if len(self.model.kernel_names_) == 1:
            return None
        return self.model.agreement_

    @property
    def gap(self) -> str | None:
        """The certified relative gap, None if the method certifies nothing."""
        gap = getattr(self.model, "duality_gap_", None)
        return None if gap is None else f"{max(gap, 0):.0e}".replace("0e+00", "0")

    @property
    def clusters(self) -> pd.DataFrame:
        """Sizes and mean silhouettes by cluster."""
        by_cluster = pd.Series(self.scores.silhouette).groupby(self.labels)
        found = by_cluster.agg(["size", "mean"]).reindex(range(len(self.titles)))
        return found.fillna({"size": 0}).astype({"size": int})

    @property
    def clarity(self) -> Clarity:
        """How clear the clusters are, by all that was measured."""
        silhouette = float(self.scores.silhouette[self.known].mean())
        k = int(self.model.n_clusters_)
        return Clarity.of_fit(k, silhouette, self.stability, self.suggestion)


def collect(
    model: MultipleKernelClusterer,
    X: Any,
    y: Any = None,
    *,
    annotation: Any = None,
    n_resamples: int | Stability | None = None,
    alternatives: bool | NumberOfClusters = False,
) -> ReportData:
    """Return everything that the report of a fit says, None for what is unknown."""
    check_fitted(model)
    # The model and its samples without those of which nothing is known.
    covered, samples = known_again(model, X)
    if y is not None:
        y = _classes_by_index(y, model)
    if annotation is not None and not isinstance(annotation, Annotation):
        annotation = annotate(model, annotation)
    n_filled = 0
    if model.table_options.impute and samples.kind != "kernels":
        tables = read_tables(X, fitted_index(model), samples_of_views(model))
        n_filled = sum(table.n_missing for table in tables)

    description = None
    diagnosis = None
    separation = None
    agreed_ari = None
    m = len(model.kernel_names_)
    k = int(model.n_clusters_)
    n_refitted = _refit_size(model)
    with silence():  # the fit itself has warned
        unused = set(getattr(model, "set_aside_", ()))
        views = views_of_features(covered, samples)
        views = [name for name in views if name not in unused]
        if views:
            description = describe(covered, samples.only(views), n_features=5)
        if m > 1:
            n_entries = (m * min(len(covered.labels_), n_refitted)) ** 2
            diagnosis = diagnose(
                covered,
                samples,
                leave_one_out=n_entries * model.SLOWNESS <= MAX_DIAGNOSED,
                max_samples=n_refitted,
            )
            agreed_ari = _agreed_ari(covered, samples)
        if m > 1 and 1 < k <= MAX_SEPARATED:
            n_compared = min(n_refitted, 1000)
            separation = view_separation(model, X, max_samples=n_compared)
        return ReportData(
            model=model,
            X=X,
            y=y,
            ids=list(
                map(str, getattr(model, "sample_ids_", range(len(model.labels_))))
            ),
            n_filled=n_filled,
            annotation=annotation,
            scores=sample_scores(model),
            description=description,
            diagnosis=diagnosis,
            separation=separation,
            agreed_ari=agreed_ari,
            stability=_stability(model, X, n_resamples),
            suggestion=_suggestion(covered, samples, alternatives),
        )


def _refit_size(model: MultipleKernelClusterer) -> int:
    """Return on how many samples one of several refits of a model is quick."""
    entries = MAX_REFITTED / len(model.kernel_names_) / model.SLOWNESS
    return max(5 * int(model.n_clusters_), min(MAX_SAMPLES, int(entries**0.5)))


def _classes_by_index(y: Any, model: MultipleKernelClusterer) -> np.ndarray:
    """Return classes in the order of the labels; those of a Series by its index."""
    values = to_host(y, None)
    index = index_of(y)
    if index is None:
        index = len(values)
    return values[match_rows(index, fitted_index(model), "y", every=True)]


def _agreed_ari(model: MultipleKernelClusterer, samples: Any) -> float | None:
    """Return the ARI with clusters of the views that agree, None if none do."""
    if not model.agreement_.any_share or isinstance(model, AgreementKKM):
        return None
    if hasattr(model, "baseline_agreement_"):
        return float(model.baseline_agreement_)
    labels = np.asarray(model.labels_)
    parts = Parts(model, samples)
    part = sample_clusters(labels, _refit_size(model))
    given = parts.unfitted(model).get_params()
    # Neighbors of another method are another thing.
    shared = AgreementKKM().get_params(deep=False).keys() & given.keys() - {"neighbors"}
    agreed = AgreementKKM(**{name: given[name] for name in shared})
    return agreement_of_labels(labels[part], agreed.fit(parts.take(part)).labels_)


def _stability(
    model: MultipleKernelClusterer, X: Any, n_resamples: int | Stability | None
) -> Stability | None:
    """Return the stability of a fit as given, or by refits, or None."""
    if isinstance(n_resamples, Stability):
        return n_resamples
    if n_resamples is None:
        n_resamples = 10
    k = model.n_clusters_
    most = _refit_size(model)
    if k == 1 or n_resamples == 0 or min(round(0.8 * len(model.labels_)), most) <= k:
        return None
    return stability(model, X, n_resamples=n_resamples, max_samples=most)


def _suggestion(
    model: MultipleKernelClusterer,
    samples: Samples,
    alternatives: bool | NumberOfClusters,
) -> NumberOfClusters | None:
    """Return the suggested number of clusters as given, computed, or None."""
    if isinstance(alternatives, NumberOfClusters):
        return alternatives
    if not alternatives or model.n_clusters_ == 1:
        return None
    options = options_of(model)
    if is_approximated(model):
        options["kernels"] = default_bank(True, "gaussian")
    return suggest_n_clusters(samples, evidence=True, **options)
