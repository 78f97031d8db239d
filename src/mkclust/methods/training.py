"""From what is passed to what a model is fitted on, and what it was fitted on passed once more."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.by_name import expected_input
from mkclust.kernels.chosen_rules import learn_preparations, rules_of
from mkclust.linalg import arrays_to_host, is_foreign, select, to_host
from mkclust.linalg.memory import require_memory
from mkclust.methods.column_ranks import column_ranks
from mkclust.methods.feature_source import FromFeatures
from mkclust.methods.memory_checks import require_memory_for_features, require_memory_for_views
from mkclust.methods.neighborhoods import find_neighborhoods
from mkclust.methods.same_input import with_checked_table
from mkclust.methods.source import FromKernels, FromViews, Source
from mkclust.methods.uncovered import NOBODY, check_covered, only_covered, without_entries
from mkclust.samples.check import check_observed, n_dims
from mkclust.samples.join import looks_like_kernel
from mkclust.samples.samples import Samples, as_blocks, read_samples, read_views
from mkclust.samples.tables import TABLE
from mkclust.stack import RowSource, Stack
from mkclust.stack.discretize import normalize_rows
from mkclust.stack.features import compress
from mkclust.types import Float


class Training(NamedTuple):
    """What a model is fitted on: its kernels, of the samples that have an entry in any of them."""

    samples: Samples  # all that were read
    fitted: np.ndarray | None  # the numbers of those that are fitted; None if all are
    source: Any  # FromKernels, FromViews or FromFeatures
    kernels: Any  # what its ``stack`` takes
    empty: np.ndarray | None  # which kernels have nothing of which samples; None if none


def open_training(
    model: Any, samples: Samples, fitted: np.ndarray | None = None, lost: np.ndarray = NOBODY
) -> Training:
    """Make the kernels of samples that have been read, without those that have no entry.

    Fitted are the numbers of the samples that are left, lost the places among these of others to
    leave out.
    """
    while True:
        if len(lost):
            fitted = np.delete(np.arange(samples.n_samples) if fitted is None else fitted, lost)
            check_covered(len(fitted), samples.n_samples, model.n_clusters)
        part = samples if fitted is None else samples.take(fitted)
        source, kernels = open_samples(model, part)
        empty = source.of_kernels(source.empty(part))
        if not len(lost := without_entries(empty)):
            return Training(samples, fitted, source, kernels, empty)


def read_training(model: Any, X: Any, observed: Any = None) -> Samples:
    """Read what was passed to ``fit``."""
    options = model.table_options
    if model.approximation is not None:
        samples = read_views(X, options=options, observed=observed)
    else:
        expected = expected_input(model.kernels)
        samples = read_samples(X, expected=expected, options=options, observed=observed)
    check_observed(samples.missing, samples.names)
    return samples


def open_samples(model: Any, samples: Samples) -> tuple[Source, Any]:
    """Return what a model is fitted on, and the kernels that its ``stack`` takes."""
    if model.approximation is not None:
        return _compress(model, samples)
    if samples.kind == "kernels":
        source = FromKernels(**_known(samples, ["precomputed kernels, taken as they are"]))
        if model.kernel_neighbors is None:
            return source, samples
        found = find_neighborhoods(model, samples)
        names, kernels = zip(*((each.name, each.found.kernel()) for each in found), strict=True)
        samples = replace(samples, names=names, parts=kernels, whole=None)
        return replace(source, found=found), samples
    return _make_kernels(model, samples)


def _make_kernels(model: Any, samples: Samples) -> tuple[FromViews, list[Any]]:
    """Return the bank of views and their kernels."""
    if samples.is_lazy:
        raise ValueError(
            "X holds dask arrays, and exact kernels are computed in this process: pass an "
            "approximation, such as mkclust.kernels.Nystroem(200), or NumPy arrays"
        )
    feature_names = None
    if samples.kind == "table":
        if TABLE in samples.columns:
            feature_names = np.array(samples.columns[TABLE], dtype=object)
        else:
            # scikit-learn refuses names of several types.
            validate_data(BaseEstimator(), samples.parts[0], skip_check_array=True)
        samples = _check_training_table(model, samples)
    bank = make_bank(model, several_views=samples.kind == "views")
    require_memory_for_views(model, bank, samples)
    known = _known(samples, bank.fit(samples).explain().splitlines())
    source = FromViews(
        bank=bank,
        view_names=tuple(bank.views_),
        kernel_views=bank.kernel_views_,
        feature_names=feature_names,
        **known,
    )
    kernels: list[Any] = []
    for part, _ in source.parts():
        kernels.append(part.training_kernels())
        if part.on_the_fly and model.NEEDS_ENTRIES and not part.only_neighborhoods:
            kernels[-1] = kernels[-1].entries(type(model).__name__)
    return source, kernels


def _known(samples: Samples, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return what every source knows of its samples."""
    names = ("ids", "index_names", "missing", "encodings")
    known = {name: getattr(samples, name) for name in names}
    return known | {"notes": (*samples.notes, *notes)}


def make_bank(model: Any, several_views: bool) -> KernelBank:
    """Return the bank that a model asks for, not yet fitted."""
    neighbors = model.kernel_neighbors
    if not isinstance(model.kernels, KernelBank):
        bank = default_bank(several_views, model.kernels).set_params(neighbors=neighbors)
        # By Gaussian kernels of any width, neighbors are the same.
        return bank if neighbors is None else bank.set_params(widths=(1.0,))
    bank = clone(model.kernels)
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
        learn_preparations=partial(learn_preparations, rules_of(kernels)),
        fill=model.table_options.fill_rule,
    )
    names = samples.columns.get(TABLE)
    widths = dict(zip(blocks.names, blocks.n_features, strict=True))
    source = FromFeatures(
        view_names=tuple(widths),
        widths=widths,
        columns=samples.columns,
        feature_names=np.array(names, object) if names is not None else None,
        # Of dask arrays, all that lead to these samples would be computed once more.
        ranks={} if samples.is_lazy else column_ranks(blocks),
        features=stack.features.learned,
        **_known(samples),
    )
    return source, stack


def _check_training_table(model: Any, samples: Samples) -> Samples:
    """Return a table as scikit-learn checks it, but on a device, which it does not know."""
    table = samples.parts[0]
    if is_foreign(table):
        return samples
    # Without the notes that validate_data takes, for a failing fit is to leave none.
    table = check_array(
        table,
        input_name="X",
        estimator=model,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=2,
        accept_sparse="csr",
    )
    return with_checked_table(samples, table)


def _is_kernel(part: Any) -> bool:
    """Return whether what should be a view is one kernel, or several."""
    return isinstance(part, RowSource) or n_dims(part) == 3 or looks_like_kernel(part)


def in_order_of_fit(model: Any, X: Any) -> Samples:
    """Read what a model was fitted on with the rows of data frames in the order of its labels.

    Samples of which nothing is known are left out, as in ``only_covered(model)``.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted.
    X : array, list, dict or source of rows
        What it was fitted on; frames may have their rows in any order.

    Returns
    -------
    Samples
    """
    source, covered = model._source, model._covered
    if covered is None or (isinstance(X, Samples) and X.n_samples == len(covered)):
        return source.read(only_covered(model), X)
    samples = source.read(model, X)
    n = len(model.labels_)
    if samples.n_samples != n:
        raise ValueError(f"X has {samples.n_samples} samples, the model was fitted on {n}")
    return samples.take(covered)


def embedding_cosines(model: Any, samples: np.ndarray | None) -> Float:
    """Return the cosines between the rows that k-means clusters, where no kernels are mixed.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted.
    samples : ndarray of int of shape (s,) or None
        Their numbers; None for all.

    Returns
    -------
    ndarray of shape (s, s)
    """
    rows = model.embedding_ if samples is None else select(model.embedding_, samples)
    rows = normalize_rows(to_host(rows))
    return rows @ rows.T


def check_samples(
    samples: Any, n_samples: int, *, available: int | None = None
) -> np.ndarray | None:
    """Return the numbers of some samples, None for all, or say why there are no such samples."""
    indices = None if samples is None else np.asarray(arrays_to_host(samples))
    if indices is not None:
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise ValueError(
                f"samples is an array of shape {indices.shape} and type {indices.dtype}: pass the "
                "numbers of the samples in a list, or np.flatnonzero(mask) for a mask"
            )
        indices = indices.astype(np.intp)
        outside = indices[(indices < 0) | (indices >= n_samples)]
        if len(outside):
            raise ValueError(
                f"samples names the sample {outside[0]}, the model was fitted on {n_samples}: pass "
                f"numbers from 0 to {n_samples - 1}"
            )
    count = n_samples if indices is None else len(indices)
    require_memory(
        3 * 8 * count**2,
        f"writing out the similarities of {count} samples",
        "pass samples, the numbers of some of them",
        available=available,
    )
    return indices
