"""The steps of a fit: solve, give every sample a label, and warn of what its user should know."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mkclust.data.samples import Samples
from mkclust.exceptions import FewerClustersWarning, MissingnessWarning, MissingViewsWarning, warn
from mkclust.linalg import copy_array, select
from mkclust.linalg.threads import one_thread_if_small
from mkclust.methods.agreement import measure_agreement, warn_of_agreement
from mkclust.methods.leading_shares import leading_shares
from mkclust.methods.missingness import advise_on_missing, measure_missingness
from mkclust.methods.neighborhoods import check_neighborhoods
from mkclust.methods.parameter_checks import check_n_clusters
from mkclust.methods.solution import Solution
from mkclust.methods.training import open_training
from mkclust.methods.uncovered import (
    UNCOVERED,
    check_covered,
    observed_of,
    spread_over_all,
    spread_samples,
    used_kernels,
    warn_of_uncovered,
    without_entries,
)
from mkclust.stack import Stack
from mkclust.stack.discretize import count_clusters, discretize
from mkclust.types import Array, Float


def solve_timed(model: Any, stack: Stack) -> Solution:
    """Return the solution of a checked problem, with the seconds that it took."""
    started = time.perf_counter()
    solution = model._solve(stack)
    return replace(solution, seconds=time.perf_counter() - started)


def learn(model: Any, samples: Samples) -> dict[str, Any]:
    """Solve, and return what a fit learns by name; warn of what its user should know."""
    training = open_training(model, samples)
    source, fitted = training.source, training.fitted
    noted = check_neighborhoods(
        source.neighborhoods, source.given.ids, model.n_clusters, source.observed
    )
    given = source.stack(model, training.kernels)
    check_n_clusters(model, given)
    with one_thread_if_small(given.n_samples):
        solution = solve_timed(model, given)
        if solution.agreement is None and given.n_kernels > 1:
            # Of what was observed: what was learned of missing samples agrees with all views.
            solution = replace(solution, agreement=measure_agreement(given))
        stack = given if solution.stack is None else solution.stack
        observed = observed_of(stack)
        empty = training.empty if observed is None else training.empty | ~observed
        used = used_kernels(stack, solution.coefficients, solution.included)
        unused = without_entries(empty, used)
        learned = noted | _learn_labels(model, source, stack, solution, empty, unused)
        learned |= {"alignments_": leading_shares(stack, solution), "_used_kernels": used}
    if solution.agreement is not None:
        learned["agreement_"] = solution.agreement
    if "observed_" in learned:
        views = learned.get("view_names_in_", learned["kernel_names_"])
        labels, seen = (np.delete(learned[name], unused, 0) for name in ("labels_", "observed_"))
        learned["missingness_"] = measure_missingness(labels, seen, views)
    _warn_of_fit(model, learned, solution)
    if fitted is not None or len(unused):
        has = np.flatnonzero((~empty[unused]).any(axis=0))
        uncovered = spread_over_all(learned, samples, fitted, unused)
        aside = [stack.names[p] for p in has]
        warn_of_uncovered(uncovered, samples.n_samples, samples.ids, aside)
    return learned


def _learn_labels(
    model: Any,
    source: Any,
    stack: Stack,
    solution: Solution,
    empty: np.ndarray,
    uncovered: np.ndarray,
) -> dict[str, Any]:
    """Return what a fit learns of its source and its solution, labels included.

    Empty says which kernels have nothing of which samples; uncovered are the samples of which no
    kernel that is used has anything.
    """
    rows, extension = model._rows(stack, solution)
    source = source.extended(stack, rows, extension)
    vectors = solution.partition, rows, *model._further_rows(stack, solution)
    if stack.features is not None:
        vectors = stack.features.lift(*vectors)
    embedding, rows, *further = vectors
    labels, centers = _cluster(model, rows, source.given.ids, uncovered)
    learned: dict[str, Any] = source.attributes(stack) | {
        "_source": source,
        "_centers": centers,
        "labels_": labels,
        # A copy, or what was lifted beside it would live as long as the model.
        "embedding_": copy_array(embedding),
        "weights_": solution.weights,
        "coefficients_": solution.coefficients,
        "objective_": solution.objective,
        "history_": solution.history,
        "fill_history_": solution.fill_history,
        "converged_": solution.converged,
        "n_iter_": solution.n_iter,
        "kernel_names_": stack.names,
        "solve_seconds_": solution.seconds,
    }
    learned = {name: value for name, value in learned.items() if value is not None}
    others = []
    if further and solution.agreement is not None:  # they are of the views' compromise
        used = used_kernels(stack, solution.agreement.coefficients(), solution.included)
        uncovered = np.union1d(uncovered, without_entries(empty, used))
        others = [_cluster(model, each, source.given.ids, uncovered)[0] for each in further]
    learned.update(solution.learned)
    return learned | model._learned(stack, solution, labels, *others)


def _cluster(
    model: Any, rows: Array, ids: np.ndarray | None, uncovered: np.ndarray
) -> tuple[Array, Float]:
    """Return labels, -1 for samples that are not covered, and centers, by a model's settings.

    Starts are drawn in the order of the ids as text: what is random is then the same for the same
    samples, whatever the order of their rows.
    """
    n = rows.shape[0]
    order = np.delete(np.arange(n), uncovered)
    if len(uncovered):
        check_covered(len(order), n, model.n_clusters)
    if ids is not None:
        order = order[np.argsort([str(sample) for sample in ids[order]], kind="stable")]
    is_given = np.array_equal(order, np.arange(n))
    with warnings.catch_warnings():
        # Said in words of our own, once it is known how many clusters there are.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        labels, centers = discretize(
            rows if is_given else select(rows, order),
            model.n_clusters,
            n_init=model.n_init,
            random_state=model.random_state,
        )
    if is_given:
        return labels, centers
    labels = select(labels, np.argsort(order))
    return spread_samples(labels, np.sort(order), n, UNCOVERED), centers


def _warn_of_fit(model: Any, learned: dict[str, Any], solution: Solution) -> None:
    """Warn of what a fit has learned that its user should know."""
    name, k = type(model).__name__, model.n_clusters
    if "agreement_" in learned:
        warn_of_agreement(learned["agreement_"])
    if "missingness_" in learned:
        if learned["missingness_"].follows:
            warn(learned["missingness_"].warning(), MissingnessWarning)
        is_scaled = model.missing_views is None and not model._asks_to_learn
        if is_scaled and (advice := advise_on_missing(learned["observed_"])) is not None:
            warn(advice, MissingViewsWarning)
    if (n_found := count_clusters(learned["labels_"])) < k:
        warn(
            f"{name} found {n_found} cluster{'s' * (n_found > 1)} but n_clusters={k}: the "
            f"embedding tells the samples apart by {n_found} directions only. Either the kernels "
            "have fewer independent directions than there are to be clusters, or many samples are "
            "alike; ask for fewer clusters, or add kernels or views that tell the samples apart",
            FewerClustersWarning,
        )
    if not solution.converged:
        warn(f"{name} did not converge: {model._explain_stop(solution)}", ConvergenceWarning)
