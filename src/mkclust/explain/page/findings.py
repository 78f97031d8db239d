"""What a report finds out about a fit before it is written down."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkclust.data import Samples
from mkclust.explain.aligned_tables import count_entries, read_tables
from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.describe import describe_tables, views_of_features
from mkclust.explain.description import Description
from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.explain.page.alternatives import Alternatives, compare_numbers, count_comparisons
from mkclust.explain.page.budget import (
    DEFAULT_BUDGET,
    FEWEST_OF_A_CLUSTER,
    Budget,
    sample_by_cluster,
)
from mkclust.explain.page.kernels import (
    Examination,
    KernelFindings,
    examine_kernels,
    open_kernels,
)
from mkclust.explain.sample_scores import silhouettes
from mkclust.explain.stability import Stability, part_size, resample
from mkclust.explain.steps import StepCallback, Steps
from mkclust.index import index_of, match_rows
from mkclust.linalg import select, to_host
from mkclust.methods.agreement import Agreement
from mkclust.methods.missingness import Missingness
from mkclust.methods.training import in_order_of_fit
from mkclust.methods.uncovered import UNCOVERED, only_covered
from mkclust.plots.neighbor_map import SampleMap, map_samples
from mkclust.types import Float

# The share of the samples in a resample.
FRACTION = 0.8
# Features of each cluster and view that describe it.
FEATURES = 5


@dataclass(frozen=True, eq=False)
class Similarities:
    """The mixed kernel among some samples, sorted by cluster.

    Attributes
    ----------
    samples : ndarray of int of shape (s,)
        Their numbers, cluster by cluster.
    entries : ndarray of shape (s, s)
        Their similarities.
    within, between : float
        Mean similarity of two samples of one cluster, and of two.
    """

    samples: np.ndarray
    entries: Float
    within: float
    between: float


@dataclass(frozen=True, eq=False)
class StabilityFindings:
    """Stability under resampling, or why it is not known.

    Attributes
    ----------
    stability : Stability or None
        What resampling found; None where it was left out.
    reason : str
        Why it was left out, as a sentence; empty where it was not.
    """

    stability: Stability | None
    reason: str = ""

    def samples(self, numbers: np.ndarray) -> np.ndarray:
        """Return the stability of some samples, NaN where it is not known."""
        if self.stability is None:
            return np.full(len(numbers), np.nan)
        return np.asarray(self.stability.samples)[numbers]


@dataclass(frozen=True, eq=False)
class Findings:
    """A fitted model, and all that its page says about it.

    Attributes
    ----------
    model : MultipleKernelClusterer
        The fitted model, without samples of which nothing is known.
    ids : sequence of str, length n
        Names of the samples.
    labels : ndarray of int of shape (n,)
        Their clusters.
    y : ndarray of shape (n,) or None
        Their given classes, where there are any.
    drawn : ndarray of int of shape (s,)
        Numbers of the samples that are drawn as dots, rising.
    placed, plane : SampleMap
        Where they are drawn: on a map of neighbors, and in the plane of the widest spread. Where
        there are too few for a map, both are the plane.
    silhouettes : ndarray of shape (s,)
        Of the drawn samples; NaN where there are no two clusters.
    similarities : Similarities
        The mixed kernel.
    kernels : KernelFindings
        What the kernels are.
    resampling : StabilityFindings
        How the clusters fare under resampling.
    alternatives : Alternatives
        What speaks for other numbers of clusters.
    description : Description or None
        What sets the clusters apart in the views; None where there are no views to tell.
    n_described : int
        On how many samples.
    uncovered : sequence of str
        Names of further samples, of which nothing is known.
    """

    model: Any
    ids: Sequence[str]
    labels: np.ndarray
    y: np.ndarray | None
    drawn: np.ndarray
    placed: SampleMap
    plane: SampleMap
    silhouettes: Float
    similarities: Similarities
    kernels: KernelFindings
    resampling: StabilityFindings
    alternatives: Alternatives
    description: Description | None
    n_described: int
    uncovered: Sequence[str] = ()

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return int(self.model.n_clusters)

    @property
    def agreement(self) -> Agreement | None:
        """What the views share, on all samples; None for a single kernel."""
        return self.model.agreement_ if len(self.model.kernel_names_) > 1 else None

    @property
    def missingness(self) -> Missingness | None:
        """Whether clusters follow missing views; None where no sample is missing from any."""
        return getattr(self.model, "missingness_", None)

    @property
    def compromise_name(self) -> str:
        """What the clusters are called that the model's are compared with."""
        agreed = self.agreement is not None and self.agreement.any_share
        return "what the views agree on" if agreed else "all kernels mixed alike"

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in each cluster, (k,)."""
        return np.bincount(self.labels, minlength=self.n_clusters)


def find(
    model: Any,
    X: Any,
    *,
    y: Any = None,
    ids: Any = None,
    n_resamples: int | None = None,
    leave_one_out: bool | None = None,
    alternatives: bool | NumberOfClusters = True,
    budget: Budget = DEFAULT_BUDGET,
    progress: StepCallback = None,
) -> Findings:
    """Find out what the page of a fitted model says; everything is as `fit_page` takes it."""
    check_fitted(model)
    samples, names = in_order_of_fit(model, X), _names(ids, model)
    classes = None if y is None else _checked(_in_order(y, model), len(model.labels_), "y")
    has_cluster = np.asarray(model.labels_) != UNCOVERED
    uncovered = [names[i] for i in np.flatnonzero(~has_cluster)]
    names = [names[i] for i in np.flatnonzero(has_cluster)]
    classes = None if classes is None else classes[has_cluster]
    model = only_covered(model)
    labels = np.asarray(model.labels_)
    known = np.flatnonzero(labels != UNCOVERED)  # of those that were fitted
    plan, m = _resampling_plan(model, budget, n_resamples), len(model.kernel_names_)
    if leave_one_out is None:
        leave_one_out = budget.allows_leave_one_out(model, budget.n_examined(model))
    n_left_out = m if leave_one_out and m > 1 else 0
    given = alternatives if isinstance(alternatives, NumberOfClusters) else None
    n_compared = count_comparisons(model, budget) if alternatives and given is None else 0
    steps = Steps(progress, 3 + n_left_out + plan["n_resamples"] + n_compared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of concerns the whole fit
        # First of all, for it refuses what the model was not fitted on.
        steps.tell("making the kernels")
        examination = open_kernels(model, samples, labels, budget)
        similarities = _similarities(model, samples, known, budget.similarities, examination)
        steps.tell("describing the clusters")
        description, n_described = _describe(model, samples, known, budget)
        steps.tell("drawing the samples")
        labels = labels[known]
        known_samples = samples.take(known) if len(known) < samples.n_samples else samples
        drawn = sample_by_cluster(labels, budget.dots, least=10)
        rows = to_host(select(model.embedding_, known[drawn]))
        return Findings(
            model=model,
            ids=names,
            labels=labels,
            y=classes,
            drawn=drawn,
            placed=map_samples(rows),
            plane=map_samples(rows, "plane"),
            silhouettes=silhouettes(rows, labels[drawn]),
            similarities=similarities,
            kernels=examine_kernels(examination, model, bool(n_left_out), steps.part(n_left_out)),
            resampling=_examine_stability(
                model, samples, known, plan, steps.part(plan["n_resamples"])
            ),
            alternatives=compare_numbers(
                model, known_samples, budget if alternatives else None, steps.part(n_compared)
            )
            if given is None
            else Alternatives(given, is_given=True),
            description=description,
            n_described=n_described,
            uncovered=uncovered,
        )


def _checked(values: Any, n: int, name: str) -> np.ndarray:
    """Return one value a sample, or say how many there are."""
    array = to_host(values, None)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(
            f"{name} has the shape {array.shape}, the model was fitted on {n} samples: pass one "
            "value a sample"
        )
    return array


def _names(ids: Any, model: Any) -> list[str]:
    """Return the names of the samples: given, those of the data frames, or their numbers."""
    n = len(model.labels_)
    if ids is not None:
        return [str(name) for name in _checked(list(ids), n, "ids").tolist()]
    return [str(name) for name in getattr(model, "sample_ids_", range(n))]


def _in_order(y: Any, model: Any) -> Any:
    """Return classes in the order of the labels, those of a Series by its index."""
    if (index := index_of(y)) is None:
        return y
    return np.asarray(y)[match_rows(index, fitted_index(model), "y", every=True)]


def _similarities(
    model: Any, samples: Samples, known: np.ndarray, most: int, examination: Examination
) -> Similarities:
    """Return the mixed kernel among some samples that have a cluster, sorted by cluster."""
    labels = np.asarray(model.labels_)[known]
    drawn = sample_by_cluster(labels, most)
    drawn = drawn[np.argsort(labels[drawn], kind="stable")]
    clusters = labels[drawn]
    if examination.model is model:
        entries = examination.examined.mixed_kernel(known[drawn])
    else:
        entries = model.mixed_kernel(samples, known[drawn])
    same, others = clusters[:, None] == clusters, ~np.eye(len(clusters), dtype=bool)

    def mean(chosen: np.ndarray) -> float:
        return float(entries[chosen].mean()) if chosen.any() else np.nan

    return Similarities(drawn, entries, mean(same & others), mean(~same))


def _describe(
    model: Any, samples: Samples, known: np.ndarray, budget: Budget
) -> tuple[Description | None, int]:
    """Describe the clusters by the views of the fit, and say on how many samples."""
    if not (names := views_of_features(model, samples)):
        return None, 0
    everyone = np.asarray(model.labels_)
    labels, tables = everyone[known], read_tables(samples.only(names), len(everyone))
    entries = sum(count_entries(table) for table in tables)
    most = int(len(labels) * budget.entries_described / max(entries, budget.entries_described))
    part = sample_by_cluster(labels, max(most, FEWEST_OF_A_CLUSTER * model.n_clusters))
    if len(part) < len(everyone):
        tables = [table.take(known[part]) for table in tables]
    described = describe_tables(labels[part], tables, FEATURES, int(model.n_clusters))
    return described, len(part)


def _resampling_plan(model: Any, budget: Budget, n_resamples: int | None) -> dict[str, int]:
    """Return how many resamples tell stability, and their size; None lets the budget say both."""
    plan = budget.resampling_plan(model)
    if n_resamples is not None:
        plan["n_resamples"] = n_resamples
    if model.n_clusters == 1:
        plan["n_resamples"] = 0
    return plan


def _examine_stability(
    model: Any,
    samples: Samples,
    known: np.ndarray,
    plan: dict[str, int],
    progress: StepCallback,
) -> StabilityFindings:
    """Refit a model on some of its samples several times."""
    n, k = len(model.labels_), model.n_clusters
    if k == 1:
        return StabilityFindings(None, "A single cluster is always found again.")
    if plan["n_resamples"] == 0:
        return StabilityFindings(None, "Stability was not asked for.")
    if part_size(n, FRACTION, plan["most_samples"]) <= k:
        return StabilityFindings(
            None,
            f"Stability is not known: {FRACTION:.0%} of {n} samples are too few for {k} clusters.",
        )
    stability = resample(
        model, samples, fraction=FRACTION, random_state=0, progress=progress, **plan
    )
    return StabilityFindings(replace(stability, samples=stability.samples[known]))
