"""Does a kernel tell samples apart? What came out of a view is looked at, and warned of."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.exceptions import KernelWarning
from mkclust.kernels.formulas import Gaussian, InnerProduct, Polynomial, Tile
from mkclust.kernels.kinds import RULES
from mkclust.kernels.pairs import Laplacian, PairFormula, SelfTuning, pair_kernels
from mkclust.kernels.preparations import rows_looked_at
from mkclust.linalg import is_sparse, select, to_host
from mkclust.samples.distances import squared_distances
from mkclust.types import Array, Float

# Of fewer samples anything may look flat, or be carried by one column.
FEWEST_SAMPLES = 20
# Samples among which entries are looked at: 80,000 pairs, whose quantiles are good to a percent.
LOOKED_AT = 400
# A kernel whose entries are nearly all above this differs from one by less than a thousandth: in
# single precision a few digits are left of it after centering. Eight median distances, the widest
# kernel of a bank, leave 0.992 at the median.
FLAT = 0.999
# Where dissimilarities vary by less than this share of their mean, all samples are equally far from
# each other: so it is with 5,000 columns of pure noise. Real views have shares of 0.1 and more.
EQUALLY_FAR = 0.02
# A kernel of which 99 in 100 entries are below this knows samples, and no neighbors.
IDENTITY, FAR_SHARE = 0.01, 0.99
# One column that carries more than this share of the squared distance leaves less for all others
# together; of fewer columns than three, one always does.
LOUD_SHARE, FEWEST_COLUMNS = 0.5, 3
# Counts have a heavy tail where the largest is so many times the middle one of those not zero:
# images of 256 shades stay below 10, counts of reads and words exceed 100.
HEAVY_TAIL = 20.0
# Values that differ by so few roundings have hardly a digit left; of equal ones that may be so if
# their rounding is coarse.
FEW_ROUNDINGS, COARSE = 16, 1e-3
# Kernels by which loud columns drown the others; of cosines and shares that is another question.
OF_DIFFERENCES = (Gaussian, InnerProduct, Polynomial, Laplacian, SelfTuning)


def warn_of_lost_digits(views: Mapping[str, Array], columns: Mapping[str, Sequence[str]]) -> None:
    """Warn of columns whose values differ by hardly more than their rounding, beside an offset."""
    for name, view in views.items():
        if is_sparse(view):
            continue
        rows, dtype = rows_looked_at(view), str(view.dtype).rpartition(".")[2]
        largest = np.abs(rows).max(axis=0)
        with np.errstate(over="ignore"):
            spacing = np.spacing(largest.astype(dtype)).astype(np.float64)
            spread = rows.max(axis=0) - rows.min(axis=0)
        lost = np.where(spread > 0, spread <= FEW_ROUNDINGS * spacing, spacing > COARSE)
        if lost.any():
            place = int(lost.argmax())
            more = f" and {lost.sum() - 1} more" if lost.sum() > 1 else ""
            warnings.warn(
                f"View {name!r}: {_column_name(columns.get(name), place)}{more} may have lost what "
                f"tells samples apart: values of about {largest[place]:.3g} are stored in {dtype} "
                f"to the nearest {spacing[place]:.2g}, and differ by {spread[place]:.2g}; subtract "
                "an offset, such as the mean, from the original numbers before they are rounded"
                f"{', or pass them in float64' if dtype == 'float32' else ''}.",
                KernelWarning,
                stacklevel=2,
            )


def warn_of_kernels(bank: Any) -> None:
    """Warn of views of a fitted bank whose kernels say little, and say what to do."""
    for name, view in bank.views_.items():
        if view.shape[0] < FEWEST_SAMPLES:
            continue
        for sentence in (*_about_rows(bank, name), *_about_entries(bank, name)):
            warnings.warn(f"View {name!r}: {sentence}", KernelWarning, stacklevel=2)


def _about_rows(bank: Any, name: str) -> Iterator[str]:
    """Yield what is loud in rows that are taken as they are."""
    rule, preparation = RULES[bank.rules_[name]], bank._preparations[name]
    kernels = bank._formulas[name]
    if not rule.by_name or preparation.changes_rows or not isinstance(kernels[0], OF_DIFFERENCES):
        return
    rows = rows_looked_at(bank.views_[name])
    if _are_raw_counts(rows):
        yield (
            f"it holds counts with a heavy tail (the largest is {rows.max():g}, the median "
            f"of those above zero {np.median(rows[rows > 0]):g}); the kernel {rule.kind!r} "
            "takes them as they are, so the few large ones decide; pass "
            f"kernels={{{name!r}: 'sparse'}}, which takes logarithms, or "
            "view(preprocess=FunctionTransformer(np.log1p))."
        )
        return
    if rows.shape[1] < FEWEST_COLUMNS:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        variances = rows.var(axis=0)
        share = float(variances.max() / variances.sum()) if variances.any() else 0.0
    if share > LOUD_SHARE:
        loudest = _column_name(bank._columns.get(name), int(variances.argmax()))
        yield (
            f"{loudest} makes up {share:.0%} of "
            f"the squared distance between rows, against {rows.shape[1] - 1} other "
            f"columns, and the kernel {rule.kind!r} takes the rows as they are; pass "
            "kernels='auto', which scales such columns down, or "
            "view(preprocess=StandardScaler())."
        )


def _about_entries(bank: Any, name: str) -> Iterator[str]:
    """Yield that all exponential kernels of a view are nearly flat, or nearly the identity."""
    kernels = [
        formula for formula in bank._formulas[name] if isinstance(formula, Gaussian | PairFormula)
    ]
    # Of several kernels some are narrow and some are wide, and that is meant.
    if not kernels or len(kernels) < len(bank._formulas[name]) or name in bank._neighbors:
        return
    problems = [_problem(entries) for entries in _entries(bank, name)]
    if all(problems):
        many = "" if len(kernels) == 1 else f"all {len(kernels)} kernels, the first "
        yield f"{many}{str(kernels[0])!r}, {problems[0]}"


def _problem(entries: Float) -> str:
    """Return what is wrong with a kernel by its entries between two samples, if anything is."""
    if np.quantile(entries, 1 - FAR_SHARE) > FLAT:
        return (
            f"came out nearly flat: similarities between two samples are {entries.min():.4f} to "
            f"{entries.max():.4f}; pass smaller widths, such as KernelBank(widths=(1.0,)), or "
            "another kernel, such as 'self-tuning'."
        )
    if np.quantile(entries, FAR_SHARE) < IDENTITY:
        return (
            "came out nearly the identity: 99 of 100 similarities between two samples are "
            f"below {IDENTITY}; pass larger widths, such as KernelBank(widths=(1.0,)), or "
            "another kernel, such as 'cosine'."
        )
    apart = 1 - entries
    if apart.std() < EQUALLY_FAR * apart.mean():
        return (
            "came out nearly flat: all samples are about equally similar "
            f"({entries.mean():.3f}, with a standard deviation of {entries.std():.1g}), as "
            "happens with many noise columns; leave columns out, pass "
            "view(preprocess=PCA(20)), or another kernel, such as 'cosine'."
        )
    return ""


def _entries(bank: Any, name: str) -> Iterator[Float]:
    """Yield the entries between two samples of each kernel of a view, of some samples."""
    view, formulas = bank.views_[name], list(enumerate(bank._formulas[name]))
    samples = np.arange(view.shape[0])
    if len(samples) > LOOKED_AT:
        samples = np.sort(np.random.default_rng(0).choice(len(samples), LOOKED_AT, replace=False))
    above, all_samples = np.triu_indices(len(samples), 1), slice(0, len(samples))
    if isinstance(formulas[0][1], PairFormula):
        kernels = pair_kernels(formulas, None, bank._prepared(name, view), "float64")
        tiles = kernels.among(samples).tiles(all_samples, [all_samples])
        yield from (to_host(tile)[above] for _, _, tile in tiles)
        return
    rows = to_host(bank._preparations[name].apply(select(view, samples)))
    if not is_sparse(rows):  # those are measured from zero
        rows = rows - to_host(bank._origins[name])
    tile = Tile(-squared_distances(rows, rows) / 2, None, None, bank.medians_[name], "float64")
    yield from (formula.entries(tile)[above] for _, formula in formulas)


def _are_raw_counts(rows: Float) -> bool:
    """Return whether rows hold whole numbers, none negative, few of them very large."""
    if rows.min() < 0 or not np.all(rows == np.round(rows)) or not rows.any():
        return False
    return bool(rows.max() > HEAVY_TAIL * np.median(rows[rows > 0]))


def _column_name(names: Sequence[str] | None, column: int) -> str:
    """Return how a message calls a column: by its name if it has one."""
    return f"column {column}" if names is None else f"column {names[column]!r}"
