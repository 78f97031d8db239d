"""The steps of a fit, from input to samples, kernels, solution, labels and warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mkclust.agreements import measure_agreement
from mkclust.data.adjust import adjust_samples
from mkclust.data.check import check_observed
from mkclust.data.samples import Samples, read_samples, read_views
from mkclust.data.tables import TABLE
from mkclust.engine.certificate import rounding_of_entries
from mkclust.exceptions import (
    FewerClustersWarning,
    GroupsWarning,
    MissingnessWarning,
    MissingViewsWarning,
    NeighborhoodsWarning,
    NoAgreementWarning,
    OrderWarning,
    warn,
)
from mkclust.fit.embedding import (
    UNCOVERED,
    called,
    embedded_rows,
    numbers_of,
    observed_of,
    used_kernels,
    warn_of_uncovered,
    without_entries,
)
from mkclust.fit.from_features import FromFeatures, compress_views
from mkclust.fit.memory_checks import require_memory_for_views
from mkclust.fit.missingness import measure_missingness
from mkclust.fit.mixture import leading_shares
from mkclust.fit.rounding import Form, Rounded, round_partition
from mkclust.fit.solution import Solution
from mkclust.fit.training_input import (
    LAZY,
    FromKernels,
    FromViews,
    TrainingInput,
    without_arrays,
)
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.bank import expected_input
from mkclust.kernels.neighbors import count_components
from mkclust.linalg import astype, copy_array, precision_of, select, to_host
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.linalg.threads import one_thread_if_small
from mkclust.stack import Stack
from mkclust.stack.discretize import assign, count_clusters
from mkclust.text import count, join_words
from mkclust.types import Array

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer

# Up to this number of samples, kernels of which rows are read once are written out all
# the same.
MOST_WRITTEN = 2048
# Learned attributes with an entry per sample, and their value for such samples.
PER_SAMPLE = {
    "labels_": UNCOVERED,
    "baseline_labels_": UNCOVERED,
    "embedding_": 0,
    "sample_weights_": 0,
}
# Parts of a solution that a model has as attributes, with an underscore.
SHOWN = (
    "weights",
    "coefficients",
    "objective",
    "history",
    "fill_history",
    "converged",
    "n_iter",
    "agreement",
)


class Training(NamedTuple):
    """What a model is fitted on: its kernels, of samples that any says something of."""

    # The numbers of the samples that are fitted; None if all are.
    fitted: np.ndarray | None
    source: TrainingInput
    make_stack: Callable[[], Stack]  # of its kernels
    # Which kernels say nothing of which samples, without an entry or a neighbor, (n, m)
    # of bool.
    empty: np.ndarray


def read_training(
    model: MultipleKernelClusterer,
    X: Any,
    observed: Any = None,
    groups: Any = None,
    adjust: Any = None,
) -> Samples:
    """Read what was passed to ``fit``."""
    options = model.table_options
    if model.approximation is not None:
        samples = read_views(X, options=options, observed=observed)
    else:
        samples = read_samples(
            X,
            expected=expected_input(model.kernels),
            options=options,
            observed=observed,
        )
    check_observed(samples.missing, samples.names)
    if groups is not None:
        samples = samples.with_groups(groups)
    if adjust is None:
        return samples

    scales = model.scale.values() if isinstance(model.scale, dict) else [model.scale]
    if "log" in scales:
        raise ValueError(
            "scale='log' with adjust=: what is left of a view has negative entries; "
            "pass np.log2(x + 1) as the view"
        )
    return adjust_samples(samples, adjust, options.impute)


def open_training(
    model: MultipleKernelClusterer, samples: Samples, fitted: np.ndarray | None = None
) -> Training:
    """Make the kernels of samples, all or some, that any kernel says something of."""
    part = samples if fitted is None else samples.take(fitted)
    source, make_stack = open_samples(model, part)
    empty = source.empty(part)
    empty |= source.isolated(empty)
    lost = without_entries(empty)

    # The columns of pairs are all samples: those are fitted, and have no label.
    if source.has_pairs or not len(lost):
        return Training(fitted, source, make_stack, empty)

    fitted = np.delete(numbers_of(fitted, samples.n_samples), lost)
    check_covered(len(fitted), samples.n_samples, model.n_clusters)

    return open_training(model, samples, fitted)


def open_samples(
    model: MultipleKernelClusterer, samples: Samples
) -> tuple[TrainingInput, Callable[[], Stack]]:
    """Return what a model is fitted on, and what makes its kernels."""
    if model.approximation is not None:
        features, stack = compress_views(model, samples)
        return features, lambda: stack
    if samples.kind != "kernels":
        views = _learn_views(model, samples)
        return views, lambda: views.stack(model)
    if model.scale != "auto":
        raise ValueError(
            f"scale={model.scale!r} with kernels: only views have columns to scale"
        )
    notes = "precomputed kernels, taken as they are"
    kernels = FromKernels(given=without_arrays(samples, notes))
    return kernels, lambda: kernels.stack(model, samples)


def _learn_views(model: MultipleKernelClusterer, samples: Samples) -> FromViews:
    """Learn what makes kernels of views, if there is memory for these."""
    if samples.is_lazy:
        raise ValueError(LAZY)
    if not isinstance(model.kernels, KernelBank):
        bank = default_bank(samples.kind == "views", model.kernels, model.scale)
        if model.READS_ROWS and samples.n_samples > MOST_WRITTEN:
            bank.set_params(on_the_fly=True)
    elif model.scale != "auto":
        raise ValueError(
            f"scale={model.scale!r} with a KernelBank: pass scale to the bank"
        )
    else:
        bank = clone(model.kernels)
    require_memory_for_views(model, bank, samples)
    notes = bank.fit(samples).explain().splitlines()
    return FromViews(
        given=without_arrays(samples, *notes),
        bank=bank,
        widths={name: view.shape[1] for name, view in bank.views_.items()},
    )


def learn(model: MultipleKernelClusterer, samples: Samples) -> dict[str, Any]:
    """Solve, and return the learned attributes by name; warn of problems."""
    training = open_training(model, samples)
    fitted = training.fitted
    source = training.source
    noted = check_neighborhoods(source, model.n_clusters, fitted)
    with one_thread_if_small(len(training.empty)):
        stack, solution = _solve(model, training.make_stack())
        observed = observed_of(stack)
        empty = training.empty
        if observed is not None:
            empty = empty | ~observed
        used = used_kernels(stack, solution.coefficients, solution.included)
        unused = without_entries(empty, used)
        learned = noted | _learn_labels(model, source, stack, solution, empty, unused)
        learned["alignments_"] = solution.alignments
        if solution.alignments is None:
            learned["alignments_"] = leading_shares(
                stack, solution.partition, solution.products, solution.basis
            )
        learned["_used_kernels"] = used

    if "observed_" in learned:
        views = learned.get("view_names_in_", learned["kernel_names_"])
        labels = np.delete(learned["labels_"], unused, axis=0)
        seen = np.delete(learned["observed_"], unused, axis=0)
        learned["missingness_"] = measure_missingness(labels, seen, views)
    _warn_of_fit(model, learned, solution)
    if fitted is not None or len(unused):
        has = np.flatnonzero((~empty[unused]).any(axis=0))
        uncovered = spread_over_all(learned, samples, fitted, unused)
        aside = [stack.names[p] for p in has]
        warn_of_uncovered(uncovered, samples, aside)
    return learned


def _solve(model: MultipleKernelClusterer, given: Stack) -> tuple[Stack, Solution]:
    """Return the kernels that were solved, and a solution with all that a fit needs."""
    solution = model.solve(given)
    if solution.agreement is None and given.n_kernels > 1:
        # Measured on observed samples: learned values of missing ones agree with all
        # views.
        solution = replace(solution, agreement=measure_agreement(given))
    stack = solution.stack or given
    if solution.alignments is None and solution.products is None:
        held = stack.held() or stack  # perhaps in single precision
        basis = astype(solution.basis, precision_of(held.kernels[0].like))
        solution = replace(solution, products=held.apply(basis))
    return stack, solution


def _learn_labels(
    model: MultipleKernelClusterer,
    source: TrainingInput,
    stack: Stack,
    solution: Solution,
    empty: np.ndarray,
    uncovered: np.ndarray,
) -> dict[str, Any]:
    """Return what is learned of the samples by k-means, and what was read of them."""
    ids = source.given.ids
    features = stack.features
    missing = source.given.missing
    rows, extension = model._rows(stack, solution)
    relaxations = model._further(stack, solution)
    further = [embedded_rows(each, rounding_of_entries(stack)) for each in relaxations]
    embedding = solution.partition

    if features is None:
        source = replace(source, extension=extension)
    else:
        if features.observed is not None:
            missing = ~features.observed
        assert isinstance(source, FromFeatures)
        matrix = features.coordinate_map @ to_host(rows)
        source = replace(source, features=features.learned, matrix=matrix)
        embedding, rows, *further = features.lift(embedding, rows, *further)

    if solution.centers is None:
        rounded = _cluster(model, stack, solution, rows, ids, uncovered)
    else:
        labels = assign(rows, solution.centers)
        labels[uncovered] = UNCOVERED
        rounded = Rounded("unit", labels, solution.centers, None)

    learned = _about_input(source, missing, stack)
    learned |= {f"{name}_": getattr(solution, name) for name in SHOWN}
    learned |= {
        "_source": source,
        "_centers": rounded.centers,
        "_root": rounded.root,
        "labels_": rounded.labels,
        # A copy: a slice would keep all lifted vectors in memory.
        "embedding_": copy_array(embedding),
        "solve_seconds_": solution.seconds,
    }
    if model.rounding:
        learned["rounding_"] = rounded.form
    learned = {name: value for name, value in learned.items() if value is not None}
    learned.update(solution.learned)

    others = []
    if further and solution.agreement is not None:  # rows of the views' compromise
        used = used_kernels(stack, solution.agreement.coefficients(), solution.included)
        uncovered = np.union1d(uncovered, without_entries(empty, used))
        for each, relaxation in zip(further, relaxations, strict=True):
            other = replace(solution, relaxation=relaxation)
            form = rounded.form
            found = _cluster(model, stack, other, each, ids, uncovered, form=form)
            others.append(found.labels)
    return learned | model._learned(stack, solution, rounded.labels, *others)


def _about_input(
    source: TrainingInput, missing: np.ndarray | None, stack: Stack
) -> dict[str, Any]:
    """Return the attributes that say what was read; None if they say nothing."""
    given = source.given
    learned: dict[str, Any] = {
        "kernel_names_": stack.names,
        "sample_ids_": given.ids,
        "bank_": getattr(source, "bank", None),
        "approximation_error_": getattr(stack.features, "trace_errors", None),
    }
    if missing is not None:
        learned["observed_"] = ~missing
    if given.kind == "kernels":
        learned["n_features_in_"] = stack.n_samples
    else:
        learned["n_features_in_"] = sum(source.widths.values())
        learned["view_names_in_"] = given.names
    if TABLE in given.columns:
        learned["feature_names_in_"] = np.array(given.columns[TABLE], object)
    return learned


def _cluster(
    model: MultipleKernelClusterer,
    stack: Stack,
    solution: Solution,
    rows: Array,
    ids: np.ndarray | None,
    uncovered: np.ndarray,
    *,
    form: Form | None = None,
) -> Rounded:
    """Return labels, -1 for samples that are not covered, by a model's settings."""
    n = rows.shape[0]
    order = np.delete(np.arange(n), uncovered)
    if len(uncovered):
        check_covered(len(order), n, model.n_clusters)
    if ids is not None:  # so that the order of rows changes nothing that is random
        order = order[np.argsort([str(sample) for sample in ids[order]], kind="stable")]
    return round_partition(
        stack,
        solution,
        rows,
        order=order,
        rounding=form or model.rounding or "unit",
        **model._options("n_init", "random_state"),
    )


def _warn_of_fit(
    model: MultipleKernelClusterer, learned: dict[str, Any], solution: Solution
) -> None:
    """Warn if views, missing samples, clusters or iterations are not as they should."""
    name = type(model).__name__
    k = model.n_clusters
    agreement = solution.agreement
    if agreement is not None:
        if agreement.is_testable and not agreement.any_share:
            warn(agreement.verdict(), NoAgreementWarning)
        for sentence in agreement.order_sentences():
            warn(sentence, OrderWarning)
        if "set_aside_" in learned and len(agreement.groups) > 1:
            warn(agreement.verdict(), GroupsWarning)
    if "missingness_" in learned:
        if learned["missingness_"].follows:
            warn(learned["missingness_"].warning(), MissingnessWarning)
        is_rescaled = model.table_options.missing_views == "rescale"
        is_scaled = model.SCALES_MISSING and model.missing_views is None
        share = 1 - float(learned["observed_"].mean())
        # Learning is worth its time from this share of missing samples on
        # (benchmarks/missing_views.py).
        much_missing = 0.1
        if is_scaled and is_rescaled and share >= much_missing:
            warn(
                f"on average samples lack {share:.0%} of the views, and are scaled up "
                "to make up for it; learning the missing similarities gave better "
                "clusters in our measurements: use AgreementKKM, which compares "
                "samples by what both have, or SimpleMKKM with exact kernels, which "
                "learns them, or pass missing_views='rescale' to keep scaling without "
                "this warning",
                MissingViewsWarning,
            )
    n_found = count_clusters(learned["labels_"])
    if n_found < k:
        warn(
            f"{name}: k-means found only {n_found} nonempty "
            f"cluster{'s' * (n_found > 1)} for n_clusters={k}. Either the kernels have "
            f"fewer than {k} independent directions, or many samples are alike; ask "
            "for fewer clusters, or add kernels or views that separate the samples",
            FewerClustersWarning,
        )
    if not solution.converged:
        warn(
            f"{name} did not converge: {model._explain_stop(solution)}",
            ConvergenceWarning,
        )


def spread_over_all(
    learned: dict[str, Any],
    samples: Samples,
    fitted: np.ndarray | None,
    lost: np.ndarray,
) -> np.ndarray:
    """Spread what was learned over all samples, in place; return the uncovered ones."""
    n = samples.n_samples
    rows = numbers_of(fitted, n)
    # Lost are the positions among the fitted samples of those that only unused views
    # have.
    kept = np.delete(np.arange(len(rows)), lost)
    for name in PER_SAMPLE.keys() & learned.keys():
        known = select(learned[name], kept)
        learned[name] = spread_rows(known, rows[kept], n, PER_SAMPLE[name])
    uncovered = np.delete(np.arange(n), rows[kept])
    learned["uncovered_samples_"] = called(uncovered, samples.ids)
    if fitted is not None:
        if samples.missing is not None:
            learned["observed_"] = ~samples.missing
        if samples.ids is not None:
            learned["sample_ids_"] = samples.ids
        if samples.kind == "kernels":
            learned["n_features_in_"] = n
        learned["_covered"] = fitted
    return uncovered


def check_covered(n_covered: int, n_samples: int, n_clusters: int) -> None:
    """Refuse more clusters than there are samples of which something is known."""
    if n_covered < max(n_clusters, 2):
        raise ValueError(
            f"n_clusters={n_clusters}, but only {n_covered} of "
            f"{count(n_samples, 'sample')} have an entry in a view that is used, and "
            "there a neighbor if the view is compared by neighborhoods; nothing is "
            "known of the others: ask for fewer clusters, add a view that has them, or "
            "take a method that uses every view, such as AverageKKM"
        )


def check_neighborhoods(
    source: TrainingInput, n_clusters: int, fitted: np.ndarray | None = None
) -> dict[str, Any]:
    """Refuse or warn of neighborhoods that connect too little."""
    by_name = source.neighborhoods
    found = {name: each for name, each in by_name.items() if each is not None}
    if not found:
        return {}

    observed = source.observed
    parts = []
    for p, (name, each) in enumerate(by_name.items()):
        if each is None:
            continue
        if each.members.nnz == each.n_samples**2:
            raise ValueError(
                f"in {name} every sample is in the neighborhood of every other, which "
                "says nothing about clusters: pass fewer neighbors, or leave the "
                "kernel out"
            )
        n = each.n_samples if observed is None else len(observed)
        samples = np.arange(n) if observed is None else np.flatnonzero(observed[:, p])
        parts.append((each, samples))
        isolated = samples[each.isolated()]
        if len(isolated):
            names = fitted if source.given.ids is None else source.given.ids
            listed = join_words(called(isolated, names))
            warn(
                f"in {name}, {count(len(isolated), 'sample')} ({listed}) found no "
                "neighbor (only similarities above zero count): only the other kernels "
                "decide their clusters",
                NeighborhoodsWarning,
            )

    if len(found) < len(by_name):
        return {}
    n_components = count_components(parts, n)
    if n_components > n_clusters:
        warn(
            f"the neighborhoods of all kernels together form {n_components} groups "
            f"that are not connected, and n_clusters={n_clusters}: the clusters join "
            "such groups arbitrarily; raise neighbors, or ask for more clusters",
            NeighborhoodsWarning,
        )
    return {"n_components_": n_components}
