"""The input of a fit, passed again: checked to be the same, and made into kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from mkclust.data.samples import Samples
from mkclust.exceptions import silence
from mkclust.fit.embedding import numbers_of, observed_part
from mkclust.fit.from_features import FromFeatures
from mkclust.fit.steps import PER_SAMPLE, open_samples
from mkclust.fit.training_input import OTHER_SAMPLES
from mkclust.linalg import arrays_to_host, select, to_host
from mkclust.linalg.memory import require_memory
from mkclust.stack import Stack
from mkclust.stack.discretize import normalize_rows
from mkclust.stack.observed import with_maps
from mkclust.text import join_words
from mkclust.types import Float

if TYPE_CHECKING:
    from mkclust.fit.base import MultipleKernelClusterer

Model = TypeVar("Model", bound="MultipleKernelClusterer")


def read_again(model: MultipleKernelClusterer, X: Any) -> Samples:
    """Read the samples with kernels in the order of a fit, or refuse others.

    See also `only_covered`.
    """
    samples = _read_all(model, X)
    if model._covered is not None:
        samples = samples.take(model._covered)
    if not is_approximated(model):
        samples = samples.computed()
    _check_missing(samples, model._source.given.missing)
    return replace(samples, groups=model._source.given.groups)


def known_again(model: Model, X: Any) -> tuple[Model, Samples]:
    """Return a model and the samples of its fit, read again, without those of no entry.

    A model that was learned from anchors knows all samples, though it has no kernels of
    most.
    """
    if not hasattr(model, "anchors_"):
        return only_covered(model), read_again(model, X)
    samples = _read_all(model, X)
    _check_missing(samples, ~getattr(model, "observed_", np.ones(1, bool)))
    return model, samples


def is_approximated(model: MultipleKernelClusterer) -> bool:
    """Return whether features stood for the kernels."""
    return hasattr(model, "approximation_error_")


def _read_all(model: MultipleKernelClusterer, X: Any) -> Samples:
    """Read as many samples as a model was fitted on."""
    samples = model._source.read(model, X)
    n = len(model.labels_)
    if samples.n_samples != n:
        raise ValueError(
            f"X has {samples.n_samples} samples, the model was fitted on {n}: pass the "
            "same"
        )
    return samples


def _check_missing(samples: Samples, fitted: np.ndarray | None) -> None:
    """Refuse samples of which other views are missing than in the fit."""
    nothing = np.zeros(1, bool)
    given = nothing if samples.missing is None else samples.missing
    known = nothing if fitted is None else fitted
    if (given != known).any():
        raise ValueError(
            "X lacks other samples than the model was fitted on, view by view: pass "
            "the same, with observed as it was in the fit by way of "
            "mkclust.data.read_samples"
        )


def only_covered(model: Model) -> Model:
    """Return a fitted model of the samples that have kernels; itself if all have."""
    covered = model._covered
    if covered is None:
        return model
    other = clone(model)
    vars(other).update(vars(model))  # the same arrays, not copied
    for name in ("_covered", "uncovered_samples_", "anchors_"):
        vars(other).pop(name, None)
    for name in (*PER_SAMPLE, "sample_ids_", "observed_"):
        if hasattr(model, name):
            setattr(other, name, select(getattr(model, name), covered))
    if "observed_" in vars(other) and other.observed_.all():
        del other.observed_
    if model._source.given.kind == "kernels":
        other.n_features_in_ = len(covered)
    return other


def open_again(model: MultipleKernelClusterer, samples: Samples) -> Stack:
    """Return kernels of samples read again, centered and scaled as in the fit."""
    fitted = model._source.extension
    with silence():  # which came in the fit
        _, make_stack = open_samples(model, samples)
        stack = make_stack()
    for p, then in enumerate(fitted.standardizations):
        name = stack.names[p]
        now = observed_part(stack.kernels[p]).standardization
        # Smaller differences are rounding, in float32.
        limit = 1e-5 * np.abs(to_host(then.diagonal)).max()
        pairs = [(now.diagonal, then.diagonal), (now.row_means, then.row_means)]
        for new, old in pairs:
            if old is not None and np.abs(to_host(new) - to_host(old)).max() > limit:
                raise ValueError(
                    f"{OTHER_SAMPLES}, in the same order: the diagonal of {name}, or "
                    "its means over the samples, differ"
                )
    return replace(stack, kernels=with_maps(stack.kernels, fitted.maps))


def mixed_kernel(model: MultipleKernelClusterer, X: Any, samples: Any = None) -> Float:
    """Return similarities among some samples, zero for uncovered ones, (s, s)."""
    indices = _check_samples(samples, len(model.labels_))
    _check_anchors(model, indices)
    read = read_again(model, X)
    covered = model._covered
    if covered is None:
        return _entries(model, read, indices)
    indices = numbers_of(indices, len(model.labels_))
    places = np.flatnonzero(np.isin(indices, covered))
    among_covered = np.searchsorted(covered, indices[places])
    entries = np.zeros((len(indices), len(indices)))
    entries[np.ix_(places, places)] = _entries(only_covered(model), read, among_covered)
    return entries


def _entries(
    model: MultipleKernelClusterer, samples: Samples, indices: np.ndarray | None
) -> Float:
    """Return similarities among some samples of a fit, exactly symmetric."""
    stack = None
    if model.approximation is None:
        stack = open_again(model, samples)
    if not model._mixes_kernels:
        rows = model.embedding_
        if indices is not None:
            rows = select(rows, indices)
        rows = normalize_rows(to_host(rows))
        entries = rows @ rows.T
    elif stack is not None:
        entries = to_host(model._mixed_among(stack, indices))
    else:
        source = model._source
        assert isinstance(source, FromFeatures)
        entries = to_host(source.mixed_entries(model, samples, indices))
    return (entries + entries.T) / 2


def _check_anchors(model: MultipleKernelClusterer, indices: np.ndarray | None) -> None:
    """Refuse samples without kernels, if a fit has kernels of its anchors alone."""
    n = len(model.labels_)
    anchors = getattr(model, "anchors_", np.arange(n))
    others = np.setdiff1d(numbers_of(indices, n), anchors)
    if len(others):
        raise ValueError(
            f"the fit has kernels of its {len(anchors):,} anchors alone, of {n:,} "
            f"samples, and not of {join_words(others, most=3)}: pass "
            "samples=model.anchors_, or some of these"
        )


def _check_samples(samples: Any, n_samples: int) -> np.ndarray | None:
    """Return the samples asked for, if there is memory for their similarities."""
    indices = None
    count = n_samples
    if samples is not None:
        indices = np.asarray(arrays_to_host(samples))
        is_list = indices.ndim == 1 and (indices.dtype.kind in "iu" or not indices.size)
        if not is_list or np.any((indices < 0) | (indices >= n_samples)):
            raise ValueError(
                f"samples has the shape {indices.shape} and the type {indices.dtype}: "
                f"pass a list of numbers from 0 to {n_samples - 1}, or "
                "np.flatnonzero(mask) for a mask"
            )
        indices = indices.astype(np.intp)
        count = len(indices)
    require_memory(
        3 * 8 * count**2,
        f"writing out the similarities of {count} samples",
        "pass samples, the numbers of some of them",
    )
    return indices
