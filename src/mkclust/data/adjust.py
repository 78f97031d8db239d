"""What covariates explain linearly of views is removed before kernels are computed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from mkclust.data.check import in_memory, is_symmetric
from mkclust.data.encode import TableEncoder
from mkclust.data.options import AS_THEY_ARE, TableOptions
from mkclust.data.samples import Samples, read_views
from mkclust.index import index_of, match_rows
from mkclust.linalg import arrays_to_host
from mkclust.text import count, join_words
from mkclust.types import Float

# The name of the covariates in messages.
COVARIATES = "adjust"


@dataclass(frozen=True, eq=False)
class Adjustment:
    """What the covariates of a fit explain of its views.

    A view of rows x loses ``(z - means) @ slopes`` with the covariates z of the rows:
    the fit of least squares, whose columns of categories are zeros and ones.
    """

    names: tuple[str, ...]  # of the columns of covariates
    encodings: Mapping[str, TableEncoder]
    means: Float  # of the covariates, (q,)
    values: Float = field(repr=False)  # of the samples of the fit, (n, q)
    slopes: Mapping[str, Float] = field(repr=False)  # by view, (q, n_columns)
    # By view, the mean share of the variance of its columns that was removed, ...
    shares: Mapping[str, float]
    # ... and what as many columns of random numbers would take.
    by_chance: float
    # By covariate, how many of its cells were empty and filled.
    filled: Mapping[str, int] = field(default_factory=dict)

    def residuals(self, samples: Samples, covariates: Float) -> Samples:
        """Return samples with views of which the covariates explain nothing."""
        parts = []
        for name, part in samples.by_name.items():
            if name in self.slopes:
                rows = covariates[samples.observed[name]] - self.means
                expected = rows @ self.slopes[name]
                part = np.asarray(part, dtype=float) - expected
            parts.append(part)
        return replace(
            samples, parts=tuple(parts), adjustment=self, covariates=covariates
        )

    def notes(self) -> list[str]:
        """Say for every view how much was removed, and what was filled."""
        named = join_words(self.names)
        lines = [
            f"{name}: adjusted for {named}, which took {share:.1%} of the variance of "
            f"its columns on average ({self.by_chance:.1%} by chance)"
            for name, share in self.shares.items()
        ]
        if self.filled:
            cells = join_words(
                f"{name}: {n_empty}" for name, n_empty in self.filled.items()
            )
            lines.append(
                f"empty cells of covariates were filled by medians, or by the most "
                f"frequent category ({cells})"
            )
        return lines


def adjust_samples(
    samples: Samples, covariates: Any, impute: str | None = None
) -> Samples:
    """Return samples of a fit whose views are adjusted for covariates.

    Covariates are a frame or Series, by id where the views have ids, or an array in the
    order of the samples. Views of categories are left as they are. Empty cells of
    covariates are filled as those of views are, or refused.
    """
    if samples.kind == "kernels":
        raise ValueError(
            "adjust= removes what is linear in covariates from columns of views, and X "
            "holds kernels, which have none: pass views"
        )
    frame = _as_frame(covariates)
    read, rows = _read(covariates, samples, TableOptions(impute=impute))
    n_empty = frame.iloc[rows].isna().sum()
    values = _numbers_of(read)[rows]
    means = values.mean(axis=0)
    rank = int(np.linalg.matrix_rank(values - means))
    if rank > samples.n_samples - 3:
        raise ValueError(
            f"adjust has {count(rank, 'independent column')} for "
            f"{samples.n_samples} samples, and explains everything: pass fewer"
        )

    slopes = {}
    shares = {}
    views = samples.views
    for name in _numeric(samples):
        view = _dense(name, samples.by_name[name], views[name])
        design = values[samples.observed[name]] - means
        # The mean of a column is none of what covariates explain.
        centered = view - view.mean(axis=0)
        own = design - design.mean(axis=0)
        slopes[name] = np.linalg.lstsq(own, centered, rcond=None)[0]
        before = (centered**2).sum(axis=0)
        left = centered - own @ slopes[name]
        after = (left**2).sum(axis=0)
        varying = before > 0
        gone = 1 - after[varying] / before[varying]
        shares[name] = float(gone.sum() / max(len(gone), 1))

    found = Adjustment(
        names=tuple(map(str, frame.columns)),
        encodings=read.encodings,
        means=means,
        values=values,
        slopes=slopes,
        shares=shares,
        by_chance=rank / (samples.n_samples - 1),
        filled={str(name): int(n) for name, n in n_empty.items() if n},
    )
    adjusted = found.residuals(samples, values)
    return replace(adjusted, table_notes=(*samples.table_notes, *found.notes()))


def adjust_like(fitted: Samples, samples: Samples, covariates: Any) -> Samples:
    """Return samples adjusted as those of a fit, whose covariates are known."""
    known = fitted.adjustment
    if known is None or samples.adjustment is not None:
        if covariates is not None:
            raise ValueError(
                "adjust= has covariates, and the model was fitted without: leave it out"
            )
        return samples
    if covariates is None:
        raise ValueError(
            f"the model was fitted with adjust= ({join_words(known.names)}): pass "
            "these covariates of the new samples as adjust=, too"
        )
    read, rows = _read(covariates, samples, AS_THEY_ARE, known.encodings)
    _refuse_unknown(read, known.encodings[COVARIATES])
    values = _numbers_of(read)[rows]
    if values.shape[1] != len(known.means):
        raise ValueError(
            f"adjust has {count(values.shape[1], 'column')}, and "
            f"{len(known.means)} in the fit ({join_words(known.names)}): pass the same"
        )
    return known.residuals(samples, values)


def adjust_again(fitted: Samples, samples: Samples) -> Samples:
    """Return the samples of a fit, read again, adjusted as there."""
    known = fitted.adjustment
    if known is None or samples.adjustment is not None:
        return samples
    return known.residuals(samples, known.values)


def _read(
    covariates: Any,
    samples: Samples,
    options: TableOptions,
    encodings: Mapping[str, TableEncoder] | None = None,
) -> tuple[Samples, np.ndarray]:
    """Return covariates, empty cells filled, and the row of each sample."""
    frames = {COVARIATES: _as_frame(covariates)}
    read = read_views(frames, options=options, encodings=encodings)
    given: Any = read.index
    if index_of(covariates) is None:
        given = read.n_samples
    wanted: Any = samples.index
    if wanted is None:
        wanted = samples.n_samples
    return read, match_rows(given, wanted, COVARIATES, "the samples", every=True)


def _numbers_of(read: Samples) -> Float:
    """Return all columns of covariates, (n, q)."""
    return np.hstack([np.asarray(view, float) for view in read.views.values()])


def _as_frame(covariates: Any) -> pd.DataFrame:
    """Return covariates as a frame with names."""
    if isinstance(covariates, pd.DataFrame):
        return covariates
    if isinstance(covariates, pd.Series):
        return covariates.to_frame(covariates.name or "covariate")
    frame = pd.DataFrame(np.asarray(arrays_to_host(covariates))).infer_objects()
    return frame.rename(columns=lambda k: f"covariate {k}")


def _refuse_unknown(read: Samples, encoder: TableEncoder) -> None:
    """Refuse categories of new samples that the fit has not seen."""
    if not encoder.levels:
        return
    marks = read.by_name[encoder.parts(COVARIATES)[-1]]
    n_unknown = int((marks.sum(axis=1) < len(encoder.levels)).sum())
    if n_unknown:
        raise ValueError(
            f"adjust has {count(n_unknown, 'new sample')} of a category that the fit "
            "has not seen, whose effect is unknown: leave these samples out"
        )


def _numeric(samples: Samples) -> list[str]:
    """Return the views of numbers: not those of the categories of tables."""
    encodings = samples.encodings.items()
    of_levels = {
        encoder.parts(table)[-1] for table, encoder in encodings if encoder.levels
    }
    return [name for name in samples.names if name not in of_levels]


def _dense(name: str, part: Any, view: Any) -> Float:
    """Return a view that covariates can be removed from, or refuse it."""
    if issparse(part) or not in_memory(part):
        raise ValueError(
            f"View {name!r} is sparse or not in memory, and adjust= takes dense arrays "
            "and frames: pass one, such as its principal components"
        )
    if is_symmetric(view):
        raise ValueError(
            f"View {name!r} compares samples with each other, and adjust= takes "
            "features: leave it out"
        )
    return np.asarray(view, dtype=float)
