"""From the input of a fit to kernels, labels and warnings; and the same input read again."""

import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mkclust.data.check import check_observed, n_dims
from mkclust.data.join import looks_like_kernel
from mkclust.data.samples import Samples, as_blocks, read_samples, read_views
from mkclust.exceptions import FewerClustersWarning, MissingnessWarning, MissingViewsWarning, warn
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.bank import expected_input
from mkclust.kernels.kinds import learn_preparations
from mkclust.kernels.view_kernels import ComputedKernels
from mkclust.linalg import arrays_to_host, copy_array, select, to_host
from mkclust.linalg.memory import require_memory
from mkclust.linalg.threads import one_thread_if_small
from mkclust.methods.agreement import measure_agreement, warn_of_agreement
from mkclust.methods.learned_rows import grams_of
from mkclust.methods.memory_checks import require_memory_for_features, require_memory_for_views
from mkclust.methods.missingness import advise_on_missing, measure_missingness
from mkclust.methods.mixture import leading_shares
from mkclust.methods.neighborhoods import check_neighborhoods
from mkclust.methods.parameter_checks import check_n_clusters
from mkclust.methods.same_input import check_same_kernel, check_same_samples, check_table
from mkclust.methods.solution import Solution
from mkclust.methods.source import FromFeatures, FromKernels, FromViews, some_rows
from mkclust.methods.uncovered import (
    UNCOVERED,
    check_covered,
    observed_of,
    only_covered,
    spread_over_all,
    spread_samples,
    used_kernels,
    warn_of_uncovered,
    without_entries,
)
from mkclust.stack import RowSource, Stack
from mkclust.stack.discretize import count_clusters, discretize, normalize_rows
from mkclust.stack.features import compress
from mkclust.stack.observed import with_maps
from mkclust.types import Array, Float


class Training(NamedTuple):
    """What a model is fitted on: its kernels, of the samples that have an entry in any of them."""

    fitted: np.ndarray | None  # the numbers of the samples that are fitted; None if all are
    source: Any  # FromKernels, FromViews or FromFeatures
    kernels: Any  # what its ``stack`` takes
    empty: np.ndarray  # which kernels have nothing of which samples, (n, m) of bool


def read_training(model: Any, X: Any, observed: Any = None) -> Samples:
    """Read what was passed to ``fit``."""
    options = model.table_options
    if model.approximation is not None:
        samples = read_views(X, options=options, observed=observed)
    else:
        expected = expected_input(model.kernels)
        samples = read_samples(X, expected=expected, options=options, observed=observed)
        if samples.kind == "table" and not samples.is_lazy:
            samples = check_table(model, samples, is_new=False)
    check_observed(samples.missing, samples.names)
    return samples


def open_training(model: Any, samples: Samples, fitted: np.ndarray | None = None) -> Training:
    """Make the kernels of samples, all or some, without those that turn out to have no entry."""
    part = samples if fitted is None else samples.take(fitted)
    source, kernels = open_samples(model, part)
    empty = source.of_kernels(source.empty(part))
    if not len(lost := without_entries(empty)):
        return Training(fitted, source, kernels, empty)
    fitted = np.delete(np.arange(samples.n_samples) if fitted is None else fitted, lost)
    check_covered(len(fitted), samples.n_samples, model.n_clusters)
    return open_training(model, samples, fitted)


def open_samples(model: Any, samples: Samples, *, on_the_fly: bool = False) -> tuple[Any, Any]:
    """Return what a model is fitted on, and the kernels that its ``stack`` takes."""
    if model.approximation is not None:
        return _compress(model, samples)
    if samples.kind == "kernels":
        if model.scale != "auto":
            raise ValueError(
                f"scale={model.scale!r} with kernels: only views have columns to scale"
            )
        source = FromKernels(
            given=_without_arrays(samples, "precomputed kernels, taken as they are")
        )
        return source, samples
    return _make_kernels(model, samples, on_the_fly)


def _make_kernels(model: Any, samples: Samples, on_the_fly: bool) -> tuple[FromViews, list[Any]]:
    """Return the bank of views and their kernels."""
    if samples.is_lazy:
        raise ValueError(
            "X holds dask arrays, and exact kernels are computed in this process: pass an "
            "approximation, such as mkclust.kernels.Nystroem(200), or NumPy arrays"
        )
    bank = make_bank(model, several_views=samples.kind == "views")
    if not on_the_fly:
        require_memory_for_views(model, bank, samples)
    notes = bank.fit(samples).explain().splitlines()
    source = FromViews(given=_without_arrays(samples, *notes), bank=bank)
    on_the_fly = on_the_fly and (bank.is_definite or model.psd == "error")
    if on_the_fly:
        bank.set_params(on_the_fly=True)
    kernels: list[Any] = []
    for part, _ in source.parts(samples.missing is not None):
        kernels.append(part.training_kernels())
        if isinstance(kernels[-1], ComputedKernels) and model.NEEDS_ENTRIES and not on_the_fly:
            kernels[-1] = kernels[-1].all_rows()
    return source, kernels


def _without_arrays(samples: Samples, *notes: str) -> Samples:
    """Return what a source keeps of samples, with further notes."""
    return replace(samples, parts=(), table_notes=(*samples.table_notes, *notes))


def make_bank(model: Any, several_views: bool) -> KernelBank:
    """Return the bank that a model asks for, not yet fitted."""
    if not isinstance(model.kernels, KernelBank):
        return default_bank(several_views, model.kernels, model.scale)
    if model.scale != "auto":
        raise ValueError(f"scale={model.scale!r} with a KernelBank: pass scale to the bank")
    return clone(model.kernels)


def _compress(model: Any, samples: Samples) -> tuple[FromFeatures, Stack]:
    """Return the source of views with features, and the compressed kernels of these."""
    kernels = model.kernels
    expected_input(kernels)
    if isinstance(kernels, KernelBank) or kernels in ("precomputed", "on-the-fly"):
        raise ValueError(
            f"kernels={kernels!r} with an approximation: features stand for kernels of views; pass "
            "views and kernels='auto', 'gaussian' or kinds by name, or approximation=None"
        )
    if all(map(_is_kernel, samples.parts)):
        raise ValueError(
            "X holds kernels, and an approximation makes features of views, samples x features: "
            "pass the views, or approximation=None for kernels"
        )
    blocks = as_blocks(samples)
    require_memory_for_features(model, blocks)
    stack = compress(
        blocks,
        model.approximation,
        n_clusters=model.n_clusters,
        center=model.center,
        normalize=model.normalize,
        random_state=model.random_state,
        learn_preparations=partial(
            learn_preparations, default_bank(True, kernels).rules, model.scale
        ),
        fill=model.table_options.fill_rule,
    )
    source = FromFeatures(
        given=_without_arrays(samples),
        widths=dict(zip(blocks.names, blocks.n_features, strict=True)),
        # Of dask arrays, all that lead to these samples would be computed once more.
        rows={} if samples.is_lazy else some_rows(blocks),
        features=stack.features.learned,
    )
    return source, stack


def _is_kernel(part: Any) -> bool:
    """Return whether what should be a view is one kernel, or several."""
    return isinstance(part, RowSource) or n_dims(part) == 3 or looks_like_kernel(part)


def solve_timed(model: Any, stack: Stack) -> Solution:
    """Return the solution of a checked problem, with the seconds that it took."""
    check_n_clusters(model, stack)
    started = time.perf_counter()
    solution = model._solve(stack)
    return replace(solution, seconds=time.perf_counter() - started)


def learn(model: Any, samples: Samples) -> dict[str, Any]:
    """Solve, and return the learned attributes by name; warn of problems."""
    training = open_training(model, samples)
    source, fitted = training.source, training.fitted
    noted = check_neighborhoods(
        source.neighborhoods, source.given.ids, model.n_clusters, source.observed
    )
    given = source.stack(model, training.kernels)
    with one_thread_if_small(given.n_samples):
        solution = solve_timed(model, given)
        if solution.agreement is None and given.n_kernels > 1:
            # Measured on observed samples: learned values of missing ones agree with all views.
            solution = replace(solution, agreement=measure_agreement(given))
        stack = given if solution.stack is None else solution.stack
        grams = grams_of(stack.held() or stack, solution.partition)
        solution = replace(solution, grams=grams)
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
    """Return the attributes learned from the source and the solution, labels included."""
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
        # A copy: a slice would keep all lifted vectors in memory.
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
    """Return labels, -1 for samples that are not covered, and centers, by a model's settings."""
    n = rows.shape[0]
    order = np.delete(np.arange(n), uncovered)
    if len(uncovered):
        check_covered(len(order), n, model.n_clusters)
    if ids is not None:  # so that the order of rows changes nothing that is random
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
    """Warn of problems that a fit has found."""
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
            f"{name}: k-means found only {n_found} nonempty cluster{'s' * (n_found > 1)} for "
            f"n_clusters={k}. Either the kernels have fewer than {k} independent directions, or "
            "many samples are alike; ask for fewer clusters, or add kernels or views that separate "
            "the samples",
            FewerClustersWarning,
        )
    if not solution.converged:
        warn(f"{name} did not converge: {model._explain_stop(solution)}", ConvergenceWarning)


def read_again(model: Any, X: Any) -> Samples:
    """Read the data of a fit again, or refuse data that cannot be the same."""
    samples = model._source.read(model, X)
    check_same_samples(samples, len(model.labels_), model._source.given.missing)
    return samples


def open_again(model: Any, X: Any, *, on_the_fly: bool = False) -> Stack:
    """Return the kernels that a model was fitted on, made, centered and scaled as in the fit."""
    source, samples = model._source, read_again(model, X)
    with warnings.catch_warnings():  # which came in the fit
        warnings.simplefilter("ignore")
        again, kernels = open_samples(model, samples, on_the_fly=on_the_fly)
        stack = again.stack(model, kernels)
    every = zip(stack.kernels, stack.names, source.standardizations, strict=True)
    for kernel, name, fitted in every:
        check_same_kernel(kernel, name, fitted)
    return replace(stack, kernels=with_maps(stack.kernels, source.maps))


def in_order_of_fit(model: Any, X: Any) -> Samples:
    """Read what a model was fitted on in the order of its labels, covered samples only."""
    source, covered = model._source, model._covered
    if covered is None or (isinstance(X, Samples) and X.n_samples == len(covered)):
        return source.read(only_covered(model), X)
    samples = source.read(model, X)
    check_same_samples(samples, len(model.labels_), samples.missing)
    return samples.take(covered)


def mixed_kernel(model: Any, X: Any, samples: Any = None) -> Float:
    """Return the similarities among some samples, zero for those that are not covered, (s, s)."""
    indices = check_samples(samples, len(model.labels_))
    if model._covered is None:
        return _entries(model, X, indices)
    wanted = np.arange(len(model.labels_)) if indices is None else indices
    numbers = np.full(len(model.labels_), -1)
    numbers[model._covered] = np.arange(len(model._covered))
    places = np.flatnonzero(numbers[wanted] >= 0)
    entries = np.zeros((len(wanted), len(wanted)))
    entries[np.ix_(places, places)] = _entries(
        only_covered(model), in_order_of_fit(model, X), numbers[wanted[places]]
    )
    return entries


def _entries(model: Any, X: Any, indices: np.ndarray | None) -> Float:
    """Return the similarities among some samples on the host, exactly symmetric."""
    if not isinstance(X, Stack):
        is_exact = model.approximation is None
        X = open_again(model, X, on_the_fly=True) if is_exact else read_again(model, X)
    if not model._mixes_kernels:
        rows = model.embedding_ if indices is None else select(model.embedding_, indices)
        rows = normalize_rows(to_host(rows))
        entries = rows @ rows.T
    elif isinstance(X, Stack):
        entries = to_host(model._mixed_among(X, indices))
    else:
        entries = to_host(model._source.mixed_entries(model, X, indices))
    return (entries + entries.T) / 2


def check_samples(samples: Any, n_samples: int) -> np.ndarray | None:
    """Return the numbers of some samples, None for all, or say why there are no such samples."""
    indices = None
    if samples is not None:
        indices = np.asarray(arrays_to_host(samples))
        is_list = indices.ndim == 1 and (indices.dtype.kind in "iu" or not indices.size)
        if not is_list or np.any((indices < 0) | (indices >= n_samples)):
            raise ValueError(
                f"samples has the shape {indices.shape} and the type {indices.dtype}: pass a list "
                f"of numbers from 0 to {n_samples - 1}, or np.flatnonzero(mask) for a mask"
            )
        indices = indices.astype(np.intp)
    count = n_samples if indices is None else len(indices)
    require_memory(
        3 * 8 * count**2,
        f"writing out the similarities of {count} samples",
        "pass samples, the numbers of some of them",
    )
    return indices
