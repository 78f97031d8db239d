"""Checks that the input of a fitted model has the form of its training data."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from mkclust.data.check import check_masks, check_view
from mkclust.data.samples import Samples
from mkclust.data.tables import TABLE
from mkclust.linalg import arrays_to_host, is_foreign, to_host, zeros
from mkclust.methods.out_of_sample import Extension
from mkclust.stack import RowSource
from mkclust.types import Float

LAZY = (
    "X holds dask arrays, and exact kernels are computed in this process: pass NumPy arrays, or "
    "fit with an approximation, such as mkclust.kernels.Nystroem(200)"
)
OTHER_SAMPLES = "X holds other samples than the model was fitted on: pass the same"


def with_unused(samples: Samples, widths: Mapping[str, int], unused: Collection[str]) -> Samples:
    """Return samples with unused views, or kernels, that they lack, as missing from all samples."""
    absent = {n: width for n, width in widths.items() if n in unused and n not in samples.names}
    if not absent or samples.is_lazy or any(isinstance(p, RowSource) for p in samples.parts):
        return samples
    n, like = samples.n_samples, samples.parts[0]
    like = like if is_foreign(like) else np.zeros(0)
    missing = (
        np.zeros((n, len(samples.names)), bool) if samples.missing is None else samples.missing
    )
    return replace(
        samples,
        names=(*samples.names, *absent),
        parts=(*samples.parts, *(zeros((0, width), like) for width in absent.values())),
        missing=np.hstack([missing, np.ones((n, len(absent)), bool)]),
    )


def count_parts(samples: Samples) -> int:
    """Return the number of views or kernels."""
    return sum(part.n_kernels if isinstance(part, RowSource) else 1 for part in samples.parts)


def match_kernels(
    samples: Samples, names: Sequence[str], unused: Collection[str], n_samples: int
) -> Samples:
    """Return kernels in the order of those that a model was fitted on, or refuse others."""
    if set(samples.names) < set(names):
        samples = with_unused(samples, dict.fromkeys(unused, n_samples), unused)
    if (count := count_parts(samples)) != len(names):
        raise ValueError(f"X has {count} kernels, the model was fitted on {len(names)}")
    if samples.names in ((), tuple(f"kernel {p}" for p in range(count))):  # no names given
        return samples
    if missing := [name for name in names if name not in samples.names]:
        raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(samples.names)}")
    return samples.only(names)


def check_table(model: Any, samples: Samples, *, is_new: bool) -> Samples:
    """Return one table as scikit-learn checks it, a new one compared with that of the fit."""
    table = samples.parts[0]
    if is_foreign(table):  # on a device, which scikit-learn does not know
        return samples
    options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    options["accept_sparse"] = "csr"
    has_names = TABLE in samples.columns  # an array of encoded columns, compared by name already
    if is_new:
        with warnings.catch_warnings():
            if has_names:
                warnings.filterwarnings("ignore", "X does not have valid feature", UserWarning)
            table = validate_data(model, table, reset=False, **options)
    else:  # without the notes that validate_data takes: a fit that fails leaves none
        if not has_names:  # scikit-learn refuses names of several types
            validate_data(BaseEstimator(), table, skip_check_array=True)
        table = check_array(table, input_name="X", estimator=model, ensure_min_samples=2, **options)
    return replace(samples, parts=(check_view(table, "X"),))


def check_self_similarity(
    extension: Extension, self_similarity: Any, seen: np.ndarray
) -> list[Float]:
    """Return the similarities to themselves of the new samples that each kernel has seen."""
    if isinstance(self_similarity, pd.DataFrame):
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
    least = [-np.inf if each.is_repaired else 0.0 for each in extension.standardizations]
    wrong = seen & ~(np.isfinite(values) & (values >= np.array(least)[:, None]))
    if np.any(wrong):
        kernel, sample = np.argwhere(wrong)[0]
        raise ValueError(
            f"self_similarity is {values[kernel, sample]:g} for {extension.names[kernel]} and new "
            f"sample {sample}, one of {int(wrong.sum())} entries that cannot be k(x, x): they are "
            "NaN, infinite or negative"
        )
    return [own[has] for own, has in zip(values, seen, strict=True)]
