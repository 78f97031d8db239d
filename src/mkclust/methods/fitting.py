"""The steps of a fit: solve, give every sample a label, and warn of what its user should know."""

import time
import warnings
from dataclasses import replace
from typing import Any, Literal, NamedTuple

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
from mkclust.methods.training import Training, open_training
from mkclust.methods.uncovered import (
    NOBODY,
    UNCOVERED,
    check_covered,
    leaves_samples,
    missing_from,
    spread_samples,
    used_kernels,
    without_entries,
)
from mkclust.stack import Stack
from mkclust.stack.discretize import assign, count_clusters, discretize
from mkclust.types import Array, Float

Part = Literal["kernel", "check", "solve", "agreement", "label", "alignment"]
# The parts of a fit, in the order in which they come.
PARTS: tuple[Part, ...] = ("kernel", "check", "solve", "agreement", "label", "alignment")


class Stopwatch:
    """The seconds of each part of a fit, which follow one another without a gap."""

    def __init__(self) -> None:
        self.seconds: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        self._part: Part = PARTS[0]
        self._since = time.perf_counter()

    def switch(self, part: Part) -> None:
        """Begin a part, where the last one ends."""
        now = time.perf_counter()
        self.seconds[self._part] += now - self._since
        self._part, self._since = part, now

    def attributes(self) -> dict[str, float]:
        """Return the seconds up to now as attributes of a model, with their sum."""
        self.switch(self._part)
        shown = {f"{part}_seconds_": seconds for part, seconds in self.seconds.items()}
        return shown | {"fit_seconds_": sum(self.seconds.values())}


class Solved(NamedTuple):
    """A solution, and what it is of."""

    training: Training
    noted: dict[str, Any]  # of neighborhoods
    stack: Stack  # as given
    solution: Solution
    unused: np.ndarray  # samples that only kernels have that are not used
    aside: list[str]  # the names of these kernels

    @property
    def filled(self) -> Stack:
        """The kernels with what was learned of missing samples."""
        return self.stack if self.solution.stack is None else self.solution.stack


def solve_timed(model: Any, stack: Stack) -> Solution:
    """Return the solution of a checked problem, with the seconds that it took."""
    started = time.perf_counter()
    solution = model._solve(stack)
    return replace(solution, seconds=time.perf_counter() - started)


def solve_covered(model: Any, samples: Samples, watch: Stopwatch) -> Solved:
    """Solve; once more without samples of which nothing turns out to be known."""
    fitted, lost, aside = None, NOBODY, list[str]()
    while True:
        watch.switch("kernel")
        training = open_training(model, samples, fitted, lost)
        source, fitted = training.source, training.fitted
        noted = check_neighborhoods(
            source.neighborhoods, source.ids, model.n_clusters, source.observed
        )
        watch.switch("check")
        stack = source.stack(model, training.kernels)
        check_n_clusters(model, stack)
        watch.switch("solve")
        with one_thread_if_small(stack.n_samples):
            solution = solve_timed(model, stack)
        watch.switch("agreement")
        solved = Solved(training, noted, stack, solution, NOBODY, aside)
        used = used_kernels(solved.filled, solution.coefficients, solution.included)
        missing = missing_from(solved.filled, training.empty.shape)
        empty = training.empty | missing
        unused = without_entries(empty, used)
        has = np.flatnonzero((~empty[unused]).any(axis=0))
        aside += [stack.names[p] for p in has if stack.names[p] not in aside]
        # Samples that the used views lack change nothing; empty rows of them would.
        lost = np.setdiff1d(unused, without_entries(missing, used))
        if not len(lost) or not leaves_samples(solved.filled, lost):
            return solved._replace(unused=unused)


def learn(model: Any, solved: Solved, watch: Stopwatch) -> dict[str, Any]:
    """Return what a fit learns, by name."""
    solution, stack, unused = solved.solution, solved.filled, solved.unused
    with one_thread_if_small(stack.n_samples):
        if solution.agreement is None and stack.n_kernels > 1:
            # Of what was observed: what was learned of missing samples agrees with all views.
            solution = replace(solution, agreement=measure_agreement(solved.stack))
        watch.switch("label")
        learned, further = _learn_labels(model, solved._replace(solution=solution))
        learned |= solution.learned
        learned |= model._learned(stack, solution, learned["labels_"], *further)
        watch.switch("alignment")
        learned["alignments_"] = leading_shares(stack, solution)
        watch.switch("label")
    if solution.agreement is not None:
        learned["agreement_"] = solution.agreement
    if "observed_" in learned:
        views = learned.get("view_names_in_", learned["kernel_names_"])
        labels, seen = (np.delete(learned[name], unused, 0) for name in ("labels_", "observed_"))
        learned["missingness_"] = measure_missingness(labels, seen, views)
    return learned


def _learn_labels(model: Any, solved: Solved) -> tuple[dict[str, Any], list[Array]]:
    """Return what every method learns, labels included, and the further labels of some."""
    stack, solution, lost = solved.filled, solved.solution, solved.unused
    rows, extension = model._rows(stack, solution)
    source = solved.training.source.extended(stack, rows, extension)
    vectors = solution.partition, rows, *model._further_rows(stack, solution)
    if stack.features is not None:
        vectors = stack.features.lift(*vectors)
    embedding, rows, *further = vectors
    learned: dict[str, Any] = source.attributes(stack) | {
        "_source": source,
        # A copy, or what was lifted beside it would live as long as the model.
        "embedding_": copy_array(embedding),
        "weights_": solution.weights,
        "objective_": solution.objective,
        "history_": solution.history,
        "converged_": solution.converged,
        "n_iter_": solution.n_iter,
        "kernel_names_": stack.names,
    }
    if solution.coefficients is not None:
        learned["coefficients_"] = solution.coefficients
    if solution.fill_history is not None:
        learned["fill_history_"] = solution.fill_history
    order = _order_by_id(source.ids)
    learned["labels_"], learned["_centers"] = _cluster(model, rows, order, lost)
    learned["labels_"][lost] = UNCOVERED
    uncovered = lost
    if further and solution.agreement is not None:  # they are of the views' compromise
        used = used_kernels(stack, solution.agreement.coefficients(), solution.included)
        missing = missing_from(stack, solved.training.empty.shape)
        uncovered = np.union1d(lost, without_entries(missing, used))
    return learned, [_cluster(model, rows, order, uncovered)[0] for rows in further]


def _cluster(
    model: Any, rows: Array, order: np.ndarray | None, uncovered: np.ndarray
) -> tuple[Array, Float]:
    """Return labels and centers by the k-means settings of a model.

    Starts are drawn among the rows in an order, if there is one. Samples that are not covered
    have no part in the centers, and are given to the nearest.
    """
    if len(uncovered):
        order = np.arange(rows.shape[0]) if order is None else order
        order = order[~np.isin(order, uncovered)]
        check_covered(len(order), rows.shape[0], model.n_clusters)
    with warnings.catch_warnings():
        # Said in words of our own, once it is known how many clusters there are.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        labels, centers = discretize(
            rows if order is None else select(rows, order),
            model.n_clusters,
            n_init=model.n_init,
            random_state=model.random_state,
        )
    if order is not None:
        labels = select(labels, np.argsort(order))
        if len(uncovered):
            # Without a direction, whatever rounding has left of them.
            nearest = int(assign(np.zeros((1, model.n_clusters)), centers)[0])
            labels = spread_samples(labels, np.sort(order), rows.shape[0], nearest)
    return labels, centers


def _order_by_id(ids: np.ndarray | None) -> np.ndarray | None:
    """Return the samples in the order of their ids as text, None if they are or have none.

    What is random is then the same for the same samples, whatever the order of their rows.
    """
    if ids is None:
        return None
    order = np.argsort([str(sample) for sample in ids], kind="stable")
    return None if np.array_equal(order, np.arange(len(order))) else order


def warn_of_fit(model: Any, learned: dict[str, Any], solution: Solution) -> None:
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
