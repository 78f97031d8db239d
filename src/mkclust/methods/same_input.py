"""Whether what is passed to a fitted model has the form of what it was fitted on."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from mkclust.linalg import arrays_to_host, is_foreign, select, to_host
from mkclust.methods.out_of_sample import observed_part
from mkclust.samples.check import check_entries, check_masks, check_view, n_dims
from mkclust.samples.missing import single_kernels
from mkclust.samples.samples import Samples
from mkclust.samples.tables import TABLE, is_frame
from mkclust.stack import Kernel, RowSource, Standardization, as_numbers
from mkclust.types import Array, Float

# What differs by less than this share of the largest self-similarity is rounding.
ROUNDING = 1e-6
OTHER_SAMPLES = "X holds other samples than the model was fitted on: pass the same"


def match_views(
    samples: Samples, widths: Mapping[str, int], columns: Mapping[str, list[str]]
) -> Samples:
    """Return views in the order of those that a model was fitted on, or say how they differ."""
    given = dict(zip(samples.names, samples.n_features, strict=True))
    if given != widths:
        raise ValueError(
            f"X has the views {given} (name: columns), the model was fitted on {dict(widths)}: "
            "pass the same views, with the same columns"
        )
    samples.check_columns(columns, "model")
    return samples.only(list(widths))


def match_kernels(samples: Samples, names: Sequence[str]) -> Samples:
    """Return kernels in the order of those that a model was fitted on, or refuse others."""
    whole, count = samples.whole, len(samples.parts)
    if whole is not None:
        count = whole.n_kernels if isinstance(whole, RowSource) else whole.shape[0]
    if count != len(names):
        raise ValueError(f"X has {count} kernels, the model was fitted on {len(names)}")
    if whole is not None or not samples.names_given:
        return samples
    if missing := [name for name in names if name not in samples.names]:
        raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(samples.names)}")
    return samples.only(names)


def with_columns(samples: Samples, covered: np.ndarray, n_samples: int) -> Samples:
    """Return kernels of new samples with the columns of the samples that a model was fitted on."""

    def of_covered(kernel: Any) -> Any:
        is_whole = n_dims(kernel) == 2 and kernel.shape[1] == n_samples
        return select(as_numbers(kernel, "X"), covered, axis=1) if is_whole else kernel

    if samples.whole is None:
        return replace(samples, parts=tuple(map(of_covered, samples.parts)))
    names = tuple(f"kernel {p}" for p in range(samples.whole.shape[0]))
    parts = tuple(map(of_covered, single_kernels(samples.whole)))
    return replace(samples, names=names, parts=parts, whole=None)


def check_same_missing(samples: Samples, fitted: np.ndarray | None) -> None:
    """Refuse samples that are missing from other views than those that a model was fitted on."""
    missing = samples.missing
    if missing is None and fitted is None:
        return
    if missing is None or fitted is None or not np.array_equal(missing, fitted):
        raise ValueError(
            "X lacks other samples than the model was fitted on, view by view: pass the same, with "
            "observed as it was in the fit by way of mkclust.samples.read_samples"
        )


def check_same_kernel(kernel: Kernel, name: str, fitted: Standardization) -> None:
    """Refuse a kernel whose diagonal, or means over the samples, are not those of the fit."""
    given = observed_part(kernel).for_new_samples
    differences = [np.abs(to_host(given.diagonal) - to_host(fitted.diagonal)).max()]
    if given.row_means is not None and fitted.row_means is not None:
        differences.append(np.abs(to_host(given.row_means) - to_host(fitted.row_means)).max())
    if max(differences) > ROUNDING * np.abs(to_host(fitted.diagonal)).max():
        raise ValueError(
            f"{name} is not the kernel that the model was fitted on: its means over the "
            "samples, or its diagonal, differ; pass the same kernels, samples in the same order"
        )


def check_new_table(model: Any, samples: Samples) -> Samples:
    """Return new samples, of which one table is compared by scikit-learn with that of the fit."""
    if samples.kind != "table" or is_foreign(samples.parts[0]):
        return samples
    with warnings.catch_warnings():
        if TABLE in samples.columns:  # filled cells are in an array, compared by name already
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        table = validate_data(
            model,
            samples.parts[0],
            reset=False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            accept_sparse="csr",
        )
    return with_checked_table(samples, table)


def with_checked_table(samples: Samples, table: Any) -> Samples:
    """Return one table that scikit-learn has checked, if its entries are finite."""
    table = check_view(table, "X")
    check_entries({TABLE: table}, {TABLE: "X"}, samples.columns)
    return replace(samples, parts=(table,), is_checked=True)


def refuse_self_similarity(self_similarity: Any) -> None:
    """Refuse what only precomputed kernels need."""
    if self_similarity is not None:
        raise ValueError("self_similarity belongs to precomputed kernels: leave it out")


def check_self_similarity(
    model: Any,
    standardizations: Sequence[Standardization],
    self_similarity: Any,
    cross: Sequence[Array],
    seen: np.ndarray,
) -> list[Float]:
    """Return the similarities to themselves of the new samples that each kernel has.

    Those are `seen`, (m, n_new) of bool, and their similarities to the training samples are
    `cross`. What was passed for samples that a kernel lacks does not matter.
    """
    if is_frame(self_similarity):
        raise TypeError(
            "self_similarity is a data frame, whose ids are not compared with those of X: pass "
            "an array, its rows in the order of the kernels and its columns in that of the "
            "new samples"
        )
    check_masks(self_similarity, "self_similarity")
    values = to_host(arrays_to_host(self_similarity))
    if values.shape != seen.shape:
        raise ValueError(
            f"self_similarity has the shape {values.shape}, expected {seen.shape}: "
            "one row per kernel, one column per new sample"
        )
    # A kernel that was repaired may have had negative ones.
    sound = np.array([not each.is_repaired for each in standardizations])
    wrong = seen & (~np.isfinite(values) | (sound[:, None] & (values < 0)))
    if model.normalize and model.psd == "error":
        # By a positive semidefinite kernel, what is not similar to itself is so to nothing.
        for p, sample in np.argwhere(seen & (values == 0)):
            place = int(seen[p, :sample].sum())
            wrong[p, sample] = bool((cross[p][place : place + 1, :] != 0).sum() > 0)
    if np.any(wrong):
        kernel, sample = np.argwhere(wrong)[0]
        raise ValueError(
            f"self_similarity has {int(wrong.sum())} entries that are no similarity of a "
            "sample to itself (NaN, infinite, negative, or zero for a sample that is similar "
            f"to others), first {values[kernel, sample]:g} for "
            f"{model.kernel_names_[kernel]} and new sample {sample}: pass k(x, x)"
        )
    return [own[has] for own, has in zip(values, seen, strict=True)]
