"""What a model was fitted on, looked at again: nothing of it was kept, so it is passed once more.

What is passed must be what it was fitted on. Numbers of samples, names and shapes always tell; what
a model remembers of its samples tells more, and is compared where it is there.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from mkclust.linalg import on_host, pick, to_host
from mkclust.linalg.memory import require_memory
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.samples import Samples, as_blocks, kernel_shapes, read_samples, read_views
from mkclust.stack import KernelStack, RowSource, StreamedStack, as_stack
from mkclust.stack.discretize import assign, normalize_rows
from mkclust.types import Float

# What differs by less than this share of the largest self-similarity is rounding.
ROUNDING = 1e-6
# Rounding may move single samples that are between two clusters, and no more than these.
MOST_MOVED = 0.02


def in_order_of_fit(model: Any, X: Any) -> Samples:
    """Read what a model was fitted on with the rows of data frames in the order of its labels.

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
    ids = getattr(model, "sample_ids_", None)
    if hasattr(model, "bank_") or model.approximation is not None:
        return read_views(X, ids=ids)
    return read_samples(X, expected="precomputed", ids=ids)


def matched_kernels(samples: Samples, names: Sequence[str]) -> Any:
    """Return kernels in the order of those that a model was fitted on, or refuse others.

    Parameters
    ----------
    samples : Samples
        Of the kind "kernels".
    names : sequence of str
        Names of the kernels of the fit.

    Returns
    -------
    RowSource, array or list of matrices
    """
    whole, kernels = samples.whole, samples.by_name
    count = len(kernels)
    if whole is not None:
        count = whole.n_kernels if isinstance(whole, RowSource) else whole.shape[0]
    if count != len(names):
        raise ValueError(f"X has {count} kernels, the model was fitted on {len(names)}")
    if whole is not None or not samples.names_given:
        return list(samples.parts) if whole is None else whole
    if missing := [name for name in names if name not in kernels]:
        raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(kernels)}")
    return [kernels[name] for name in names]


def training_stack(model: Any, X: Any) -> KernelStack:
    """Return the kernels that a model was fitted on, centered and scaled as in the fit.

    Kernels of views are computed when their rows are asked for, whatever the fit did: nothing of
    their size is made here.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted, without an approximation.
    X : array, list, dict or source of rows
        What it was fitted on.

    Returns
    -------
    KernelStack
    """
    kernels, names = training_kernels(model, X), model.kernel_names_
    fitted = model._extension.standardizations if hasattr(model, "_extension") else None
    if fitted is not None and hasattr(model, "bank_"):
        return StreamedStack(kernels, names, fitted)  # spares the pass that learns the means
    stack = as_stack(
        kernels,
        center=model.center,
        normalize=model.normalize,
        psd=model.psd,
        # What was checked in fit need not be checked again, but what was repaired must be.
        validate=model.psd != "error" and model.validate and not hasattr(model, "bank_"),
        names=names,
    )
    for name, new, old in zip(
        names, stack.standardizations, fitted or stack.standardizations, strict=True
    ):
        apart = [np.abs(to_host(new.diagonal) - to_host(old.diagonal)).max()]
        if new.row_means is not None and old.row_means is not None:
            apart.append(np.abs(to_host(new.row_means) - to_host(old.row_means)).max())
        if max(apart) > ROUNDING * np.abs(to_host(old.diagonal)).max():
            raise ValueError(
                f"{name} is not the kernel that the model was fitted on: its means over the "
                "samples, or its diagonal, differ; pass the same kernels, samples in the same order"
            )
    return stack


def training_kernels(model: Any, X: Any) -> Any:
    """Return the kernels that a model was fitted on, neither centered nor scaled.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted, without an approximation.
    X : array, list, dict or source of rows
        What it was fitted on.

    Returns
    -------
    KernelRows, RowSource, array or list of matrices
        Of views the rows of their kernels; precomputed kernels as they are, in the order of the
        fit.
    """
    names, n = model.kernel_names_, len(model.labels_)
    samples = in_order_of_fit(model, X)
    if hasattr(model, "bank_"):
        bank = copy(model.bank_).set_params(on_the_fly=True)
        kernels = bank.transform(model._check_table(samples, new=True))
        if kernels.shape[1] != n:
            raise ValueError(f"X has {kernels.shape[1]} samples, the model was fitted on {n}")
        if not kernels.of_training_samples:
            raise ValueError("X holds other samples than the model was fitted on: pass the same")
        return kernels
    kernels = matched_kernels(samples, names)
    for name, shape in zip(names, kernel_shapes(kernels, len(names)), strict=True):
        if shape != (n, n):
            raise ValueError(
                f"{name} has the shape {shape}, the model was fitted on {n} samples: pass "
                f"the same {n} x {n} kernels"
            )
    return kernels


def training_blocks(model: Any, X: Any) -> Blocks:
    """Return the views that a model with an approximation was fitted on, in the order of the fit.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted, with an approximation.
    X : list or dict of views, or table of shape (n, d)
        What it was fitted on: arrays, files read by rows, or dask arrays.

    Returns
    -------
    Blocks
    """
    blocks, n = as_blocks(model._known_views(in_order_of_fit(model, X))), len(model.labels_)
    if blocks.n_samples != n:
        raise ValueError(f"X has {blocks.n_samples} samples, the model was fitted on {n}")
    return blocks


def training_features(model: Any, X: Any, samples: np.ndarray) -> list[Float]:
    """Return the standardized features of some samples that a model was fitted on, view by view.

    Parameters
    ----------
    model : InductiveClusterer
        Fitted, with an approximation.
    X : list or dict of views, or table of shape (n, d)
        What it was fitted on.
    samples : ndarray of int of shape (s,)
        Their numbers.

    Returns
    -------
    list of m ndarrays of shape (s, n_columns)
    """
    rising, places = np.unique(samples, return_inverse=True)
    block = training_blocks(model, X).take(rising)
    check_finite(block, rising)
    features, matrix = model._features
    if len(rising):
        moved = assign(features.project(block, matrix), model._centers)
        if np.mean(moved != np.asarray(model.labels_[rising])) > MOST_MOVED:
            raise ValueError("X holds other samples than the model was fitted on: pass the same")
    return [to_host(F)[places] for F in features.of(block)]


def embedding_cosines(model: Any, X: Any, samples: np.ndarray | None) -> Float:
    """Return the cosines between the rows that k-means clusters, where no kernels are mixed.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted.
    X : array, list, dict or source of rows
        What it was fitted on.
    samples : ndarray of int of shape (s,) or None
        Their numbers; None for all.

    Returns
    -------
    ndarray of shape (s, s)
    """
    if hasattr(model, "_features"):
        training_blocks(model, X)
    else:
        training_kernels(model, X)
    rows = model.embedding_ if samples is None else pick(model.embedding_, samples)
    rows = normalize_rows(to_host(rows))
    return rows @ rows.T


def check_samples(samples: Any, n_samples: int) -> np.ndarray | None:
    """Return the numbers of some samples, None for all, or say why there are no such samples."""
    indices = None if samples is None else np.asarray(on_host(samples))
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
    )
    return indices
