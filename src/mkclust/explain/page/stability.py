"""How the clusters of a fit fare when it is repeated on some of the samples."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.explain.page.budget import resampling_plan
from mkclust.explain.stability import Stability, part_size, resample

# The share of the samples in a resample.
FRACTION = 0.8


@dataclass(frozen=True, eq=False)
class StabilityFindings:
    """Stability under resampling, or why it is not known.

    Attributes
    ----------
    stability : Stability or None
        What resampling found; None where it was left out.
    reason : str
        Why it was left out, as a sentence; empty where it was not.
    """

    stability: Stability | None
    reason: str = ""

    def samples(self, numbers: np.ndarray) -> np.ndarray:
        """Return the stability of some samples, NaN where it is not known."""
        if self.stability is None:
            return np.full(len(numbers), np.nan)
        return np.asarray(self.stability.samples)[numbers]


def examine_stability(model: Any, X: Any, n_resamples: int | None = None) -> StabilityFindings:
    """Refit a model on some of its samples, several times.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    X : array, list, dict or source of rows
        What it was fitted on.
    n_resamples : int, default=None
        Number of refits; None lets it go by the size, 0 leaves them out.

    Returns
    -------
    StabilityFindings
    """
    plan, n, k = resampling_plan(model), len(model.labels_), model.n_clusters
    if n_resamples is not None:
        plan["n_resamples"] = n_resamples
    size = part_size(n, FRACTION, plan["most_samples"])
    if plan["n_resamples"] == 0:
        return StabilityFindings(None, "Stability was not asked for.")
    if k == 1:
        return StabilityFindings(None, "A single cluster is always found again.")
    if size <= k:
        return StabilityFindings(
            None,
            f"Stability is not known: {FRACTION:.0%} of {n} samples are too few for {k} clusters.",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of concerns the whole fit
        stability = resample(model, X, fraction=FRACTION, random_state=0, **plan)
    return StabilityFindings(stability)
