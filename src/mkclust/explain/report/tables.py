"""Columns of the tables in a report, and the numbers that are computed only for a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust.explain.diagnose import Diagnosis
from mkclust.explain.report.collect import ReportData
from mkclust.metrics import scores


class Cell(NamedTuple):
    """What is shown; the number that it is sorted by, None for text; a bar's length, 0 to 1."""

    shown: str
    value: str | None = None
    bar: float | None = None


@dataclass(frozen=True)
class Column:
    """A column: its title, values, number format ("" for text), meaning, and bars."""

    title: str
    values: Sequence[Any]
    form: Any = ""
    meaning: str = ""
    bars: Sequence[float] | None = None

    @property
    def cells(self) -> Iterator[Cell]:
        """The cells; what is not a number is a dash, sorted last."""
        bars = [None] * len(self.values) if self.bars is None else np.nan_to_num(self.bars).tolist()
        for value, bar in zip(self.values, bars, strict=True):
            if self.form == "":
                yield Cell(str(value))
            elif not np.isfinite(value):
                yield Cell("-", "")
            else:
                shown = self.form(value) if callable(self.form) else format(value, self.form)
                # A small negative number is rounded to zero.
                shown = shown.lstrip("-") if not shown.strip("-0.") else shown
                yield Cell(shown, f"{value:.10g}", bar)


def cluster_silhouettes(data: ReportData) -> pd.DataFrame:
    """Return the mean silhouette of each cluster, and the share of negative ones."""
    known = pd.Series(data.scores.silhouette[data.known])
    clusters = known.groupby(data.labels[data.known])
    found = clusters.agg(mean="mean", negative=lambda values: (values < 0).mean())
    return found.reindex(range(data.n_clusters))


def unstable_samples(data: ReportData, most: int = 25) -> list[int]:
    """Return the indices of the samples that change clusters most often."""
    if data.stability is None:
        return []
    values = np.nan_to_num(data.stability.samples, nan=1.0)
    worst = np.argsort(values, kind="stable")[:most]
    return worst[values[worst] < 1].tolist()


def class_scores(data: ReportData) -> pd.DataFrame:
    """Return the scores against given classes in percent, by whose clusters they are."""
    found = {"this model": data.labels}
    if hasattr(data.model, "baseline_labels_"):
        found["what the views agree on"] = np.asarray(data.model.baseline_labels_)
    y = data.y if data.y is None else data.y[data.known]
    return 100 * pd.DataFrame({name: scores(y, each[data.known]) for name, each in found.items()}).T


def number_remarks(data: ReportData) -> list[str]:
    """Return a remark on every number of clusters that was compared."""
    found, remarks = data.suggestion, []
    assert found is not None
    for k in found.k_values.tolist():
        words = ["this fit"] * (k == data.n_clusters) + ["fits best"] * (k == found.n_clusters)
        remarks.append(", ".join(words) or "candidate" * (k in found.candidates))
    return remarks


def readings(diagnosis: Diagnosis) -> list[str]:
    """Return in a word or two what each kernel is."""
    found = []
    for name in diagnosis.names:
        copies = {other for pair in diagnosis.duplicates if name in pair for other in pair} - {name}
        remarks = ["shares nothing"] * (name in diagnosis.noise)
        remarks += [f"nearly the same as {other}" for other in sorted(copies)[:1]]
        known = "shares structure" if diagnosis.view_agreement.is_testable else "unknown"
        found.append("; ".join(remarks) or known)
    return found


def closest_views(data: ReportData) -> list[tuple[int, int]]:
    """Return each view with the one that it shares most with; none if all are copies."""
    found = data.agreement
    if found is None or found.n_independent_views < 2:
        return []
    return [(p, found.closest(p)) for p in range(len(found.names))]
