"""Warnings about kernels that hardly distinguish samples."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import issparse

from mkclust.data.distances import some_rows
from mkclust.exceptions import KernelWarning, warn
from mkclust.kernels.formulas import select_points
from mkclust.kernels.preparations import sampled_rows
from mkclust.kernels.view_kernels import ViewKernels
from mkclust.linalg import to_host
from mkclust.types import Array, Float


def warn_of_lost_digits(name: str, view: Array, columns: Sequence[str] | None) -> None:
    """Warn of columns whose values differ by hardly more than their rounding."""
    if issparse(view):
        return
    rows = sampled_rows(view)
    dtype = str(view.dtype).rpartition(".")[2]
    largest = np.abs(rows).max(axis=0)
    with np.errstate(over="ignore"):
        spacing = np.spacing(largest.astype(dtype)).astype(np.float64)
        spread = rows.max(axis=0) - rows.min(axis=0)
    # Values that differ by 16 roundings have hardly a digit left; equal ones may have
    # lost theirs if they are rounded coarsely.
    may_be_lost = spread <= 16 * spacing
    lost = np.where(spread > 0, may_be_lost, spacing > 1e-3)
    if not lost.any():
        return
    column = int(lost.argmax())
    warn(
        f"View {name!r}: {_column_name(columns, column)} ({lost.sum()} in all) may "
        "have lost the differences between samples: values of about "
        f"{largest[column]:.3g} are stored in {dtype} to the nearest "
        f"{spacing[column]:.2g}, and differ by {spread[column]:.2g}; subtract an "
        "offset, such as the mean, from the original numbers before they are rounded, "
        "or pass float64.",
        KernelWarning,
    )


def warn_of_kernels(view: ViewKernels) -> None:
    """Warn of kernels of a view that say little, and say what to do."""
    # With fewer samples any kernel may seem flat, or depend on one column.
    if view.view.shape[0] >= 20:
        for sentence in (*_about_rows(view), *_about_entries(view)):
            warn(f"View {view.name!r}: {sentence}", KernelWarning)


def _about_rows(view: ViewKernels) -> Iterator[str]:
    """Yield which column outweighs the others in rows that are used as they are."""
    has_units = view.rule.by_name and view.rule.has_units and not view.ignores_zeros
    if not has_units or view.preparation.changes_rows:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        variances = sampled_rows(view.view).var(axis=0)
        total = variances.sum() or 1.0
        share = float(variances.max() / total)
    # It outweighs all others together, as one of two always does.
    if share > 0.5 and len(variances) > 2:
        yield (
            f"{_column_name(view.columns, int(variances.argmax()))} makes up "
            f"{share:.0%} of the squared distance between rows, against "
            f"{len(variances) - 1} other columns, and the kernel {view.kind!r} takes "
            "the rows as they are; pass kernels='auto', which scales such columns "
            "down, or view(preprocess=StandardScaler())."
        )


def _about_entries(view: ViewKernels) -> Iterator[str]:
    """Yield that all exponential kernels of a view are flat, or the identity."""
    # With several kernels some are narrow and some are wide, as intended.
    measures = {formula.measure for formula in view.formulas}
    if measures & {"product", "cosine", "given similarity"} or view.share:
        return
    points = view.points(view.prepared(view.view))
    # 80,000 pairs, whose quantiles are good to a percent.
    samples = some_rows(np.arange(view.view.shape[0]), 400)
    problems = []
    for formula in view.formulas:
        some = select_points(points[formula.measure], samples)
        compared = view.measures[formula.measure].compare(some, some)
        entries = to_host(formula.entries(compared))
        upper = np.triu_indices(len(samples), 1)
        problems.append(_problem(entries[upper]))
    if all(problems):
        yield f"every kernel, such as {view.formulas[0].name!r}, {problems[0]}"


def _problem(entries: Float) -> str:
    """Return the problem of a kernel by entries between two samples, "" if none."""
    # The widest of a bank has a median of 0.992.
    if np.quantile(entries, 0.01) > 0.999:
        return (
            f"is nearly flat: similarities between two samples are {entries.min():.4f} "
            f"to {entries.max():.4f}; pass smaller widths, or another kernel, such as "
            "'self-tuning'."
        )
    if np.quantile(entries, 0.99) < 0.01:
        return (
            "is nearly the identity: 99 of 100 similarities between two samples are "
            "below 0.01; pass larger widths, or another kernel, such as "
            "'cosine'."
        )
    # Most vary by over a tenth.
    apart = 1 - entries
    if apart.std() < 0.02 * apart.mean():
        return (
            "is nearly flat: all samples are about equally similar "
            f"({entries.mean():.3f}, with a standard deviation of "
            f"{entries.std():.1g}); leave noise columns out, pass "
            "view(preprocess=PCA(20)), or another kernel, such as 'cosine'."
        )
    return ""


def _column_name(names: Sequence[str] | None, column: int) -> str:
    """Return what messages call a column."""
    if names is None:
        return f"column {column}"
    return f"column {names[column]!r}"
