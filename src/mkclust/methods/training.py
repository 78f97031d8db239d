"""From what is passed to what a model is fitted on, and what it was fitted on passed once more."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from mkclust.data.check import check_observed, n_dims
from mkclust.data.join import looks_like_kernel
from mkclust.data.samples import Samples, as_blocks, read_samples, read_views
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.kinds import learn_preparations, rules_of
from mkclust.kernels.requested import expected_input
from mkclust.methods.feature_source import FromFeatures, some_rows
from mkclust.methods.memory_checks import require_memory_for_features, require_memory_for_views
from mkclust.methods.neighborhoods import find_neighborhoods
from mkclust.methods.same_input import check_same_kernel, check_same_samples, check_table
from mkclust.methods.source import FromKernels, FromViews
from mkclust.methods.uncovered import check_covered, only_covered, without_entries
from mkclust.stack import RowSource, Stack
from mkclust.stack.features import compress
from mkclust.stack.observed import with_maps


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
    """Return what a model is fitted on, and the kernels that its ``stack`` takes.

    If that is asked for and possible, kernels of views are computed on the fly.
    """
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
        if model.kernel_neighbors is None:
            return source, samples
        found = find_neighborhoods(model, samples)
        names, kernels = zip(*((each.name, each.found.kernel()) for each in found), strict=True)
        samples = replace(samples, names=names, parts=kernels, whole=None)
        return replace(source, found=found), samples
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
        needs_entries = model.NEEDS_ENTRIES and not part.only_neighborhoods
        if part.on_the_fly and needs_entries and not on_the_fly:
            kernels[-1] = kernels[-1].entries(type(model).__name__)
    return source, kernels


def _without_arrays(samples: Samples, *notes: str) -> Samples:
    """Return what a source keeps of samples, with further notes."""
    return replace(samples, parts=(), whole=None, table_notes=(*samples.table_notes, *notes))


def make_bank(model: Any, several_views: bool) -> KernelBank:
    """Return the bank that a model asks for, not yet fitted."""
    neighbors = model.kernel_neighbors
    if not isinstance(model.kernels, KernelBank):
        bank = default_bank(several_views, model.kernels, model.scale)
        bank.set_params(neighbors=neighbors)
        # By Gaussian kernels of any width, neighbors are the same.
        return bank if neighbors is None else bank.set_params(widths=(1.0,))
    bank = clone(model.kernels)
    if model.scale != "auto":
        raise ValueError(f"scale={model.scale!r} with a KernelBank: pass scale to the bank")
    if neighbors is not None and bank.neighbors is not None and bank.neighbors != neighbors:
        raise ValueError(
            f"neighbors={neighbors!r} with a KernelBank whose neighbors={bank.neighbors!r}: pass "
            "one of them"
        )
    return bank if neighbors is None else bank.set_params(neighbors=neighbors)


def _compress(model: Any, samples: Samples) -> tuple[FromFeatures, Stack]:
    """Return what is to be known of views, and the compressed kernels of their features."""
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
        learn_preparations=partial(learn_preparations, rules_of(kernels), model.scale),
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


def read_again(model: Any, X: Any) -> Samples:
    """Read what a model was fitted on, or refuse what cannot be that."""
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
    """Read what a model was fitted on with the rows of data frames in the order of its labels.

    Samples of which nothing is known are left out, as in ``only_covered(model)``.
    """
    source, covered = model._source, model._covered
    if covered is None or (isinstance(X, Samples) and X.n_samples == len(covered)):
        return source.read(only_covered(model), X)
    samples = source.read(model, X)
    check_same_samples(samples, len(model.labels_), samples.missing)
    return samples.take(covered)
