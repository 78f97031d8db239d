"""Everything that the report of a fit says, computed by `mkclust.explain`."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from mkclust.data import Samples
from mkclust.exceptions import silence
from mkclust.explain.annotate import Annotation, annotate
from mkclust.explain.describe import describe, views_of_features
from mkclust.explain.diagnose import diagnose
from mkclust.explain.fitted import check_fitted, fitted_index, observed_samples
from mkclust.explain.number_of_clusters import NumberOfClusters, suggest_n_clusters
from mkclust.explain.parts import Parts
from mkclust.explain.sample_scores import sample_scores
from mkclust.explain.stability import Stability, stability
from mkclust.explain.tables import read_tables
from mkclust.index import index_of, match_rows
from mkclust.kernels import default_bank
from mkclust.linalg import to_host
from mkclust.methods import AgreementKKM
from mkclust.methods.same_input import is_approximated, known_again
from mkclust.metrics import agreement_of_labels, scores
from mkclust.plots.sampling import sample_clusters

# Entries of kernels for one of several refits, with the slowness of the method.
MAX_REFITTED = 1.6e7
# Samples for a refit, however few kernels there are.
MAX_SAMPLES = 2000


def collect(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    annotation: Any = None,
    n_resamples: int | Stability | None = None,
    alternatives: bool | NumberOfClusters = False,
) -> SimpleNamespace:
    """Return everything that the report of a fit says, None for what is unknown."""
    check_fitted(model)
    labels = np.asarray(model.labels_)
    several = len(model.kernel_names_) > 1
    # The model and its samples without those of which nothing is known.
    covered, samples = known_again(model, X)
    data = SimpleNamespace(model=model, X=X, labels=labels, known=labels >= 0)
    data.y = None
    if y is not None:
        data.y = _in_order(y, model)

    data.ids = [str(name) for name in getattr(model, "sample_ids_", range(len(labels)))]
    data.agreement = None
    if several:
        data.agreement = model.agreement_

    data.annotation = _annotation(model, annotation)
    data.n_filled = 0
    if model.table_options.impute and samples.kind != "kernels":
        tables = read_tables(X, fitted_index(model), observed_samples(model))
        data.n_filled = sum(table.n_missing for table in tables)
    with silence():  # the fit itself has warned
        data.scores = sample_scores(model)
        views = views_of_features(covered, samples)
        data.description = None
        if views:
            data.description = describe(covered, samples.only(views), n_features=5)

        data.diagnosis = None
        if several:
            n = min(len(covered.labels_), refit_size(model))
            quick = (len(model.kernel_names_) * n) ** 2 * model.SLOWNESS <= 6e7
            data.diagnosis = diagnose(
                covered, samples, leave_one_out=quick, max_samples=n
            )
        data.agreed_ari = None
        if several:
            data.agreed_ari = _agreed_ari(covered, samples)

        data.stability = _stability(model, X, n_resamples)
        data.suggestion = _suggestion(covered, samples, alternatives)
    known = data.known
    data.class_scores = None
    groups = pd.Series(data.scores.silhouette[known]).groupby(labels[known])
    found = groups.agg(
        size="size", mean="mean", negative=lambda each: (each < 0).mean()
    )
    found = found.reindex(range(model.n_clusters)).fillna({"size": 0})
    data.clusters = found.astype({"size": int})
    if y is not None:
        given = {"this model": labels}
        if hasattr(model, "baseline_labels_"):
            given["what the views agree on"] = np.asarray(model.baseline_labels_)
        percent = {
            name: scores(data.y[known], each[known]) for name, each in given.items()
        }
        data.class_scores = 100 * pd.DataFrame(percent).T
    shares = pd.Series(
        [] if data.stability is None else data.stability.samples, dtype=float
    )
    data.least_stable = (
        shares[shares < 1].sort_values(kind="stable").index[:25].tolist()
    )
    return data


def _annotation(model: Any, given: Any) -> Annotation | None:
    """Return the tests of variables, or make those of a table."""
    if given is None or isinstance(given, Annotation):
        return given
    return annotate(model, given)


def refit_size(model: Any) -> int:
    """Return on how many samples one of several refits of a model is quick."""
    entries = MAX_REFITTED / len(model.kernel_names_) / model.SLOWNESS
    return max(5 * int(model.n_clusters), min(MAX_SAMPLES, int(entries**0.5)))


def _in_order(y: Any, model: Any) -> np.ndarray:
    """Return classes in the order of the labels; those of a Series by its index."""
    index = index_of(y)
    n = len(model.labels_)
    values = to_host(y, None)
    if index is not None:
        values = values[match_rows(index, fitted_index(model), "y", every=True)]
    if values.shape != (n,):
        raise ValueError(
            f"y has the shape {values.shape}, the model was fitted on {n} samples: "
            "pass one class per sample"
        )
    return values


def _agreed_ari(model: Any, samples: Any) -> float | None:
    """Return the ARI with clusters of the views that agree, None if none do."""
    if not model.agreement_.any_share or isinstance(model, AgreementKKM):
        return None
    if hasattr(model, "baseline_agreement_"):
        return float(model.baseline_agreement_)
    labels = np.asarray(model.labels_)
    parts = Parts(model, samples)
    part = sample_clusters(labels, refit_size(model))
    given = parts.unfitted(model).get_params()
    names = AgreementKKM().get_params(deep=False)
    # Neighbors of another method are another thing.
    shared = names.keys() & given.keys() - {"neighbors"}
    common = {name: given[name] for name in shared}
    agreed = AgreementKKM(**common)
    return agreement_of_labels(labels[part], agreed.fit(parts.take(part)).labels_)


def _stability(
    model: Any, X: Any, n_resamples: int | Stability | None
) -> Stability | None:
    """Return the stability of a fit as given, or by refits, or None."""
    if isinstance(n_resamples, Stability):
        return n_resamples
    n = len(model.labels_)
    k = model.n_clusters
    most = refit_size(model)
    if n_resamples is None:
        n_resamples = 10

    if k == 1 or n_resamples == 0 or min(round(0.8 * n), most) <= k:
        return None
    return stability(model, X, n_resamples=n_resamples, max_samples=most)


def _suggestion(
    model: Any, samples: Samples, alternatives: bool | NumberOfClusters
) -> NumberOfClusters | None:
    """Return the suggested number of clusters as given, computed, or None."""
    if isinstance(alternatives, NumberOfClusters):
        return alternatives
    if not alternatives or model.n_clusters == 1:
        return None
    if is_approximated(model):
        kernels = default_bank(True, "gaussian")
    else:
        kernels = model.kernels

    names = ("center", "normalize", "psd", "missing_views", "scale")
    options = {name: getattr(model, name) for name in names}
    return suggest_n_clusters(samples, kernels=kernels, **options)
