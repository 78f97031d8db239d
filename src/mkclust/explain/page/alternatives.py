"""What speaks for other numbers of clusters than that of a fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.data import Samples
from mkclust.explain.choosing import NumberOfClusters, suggest_n_clusters
from mkclust.explain.choosing.checks import FEWEST_SAMPLES
from mkclust.explain.fitted import is_approximated
from mkclust.explain.page.budget import Budget
from mkclust.explain.steps import StepCallback
from mkclust.kernels import default_bank
from mkclust.methods.training import make_bank
from mkclust.types import Float

# Numbers of clusters below and above that of the fit that are tried.
BESIDE = 3
# Draws without clusters, the level that so few can reach, and resamples.
N_DRAWS, LEVEL, N_RESAMPLES = 19, 0.05, 10


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The number of clusters of a fit beside others, or why these were not tried.

    Attributes
    ----------
    suggestion : NumberOfClusters or None
        What speaks for each number; None where none were tried.
    reason : str
        Why not, as a sentence; empty where they were.
    is_given : bool
        Whether the suggestion was known before.
    """

    suggestion: NumberOfClusters | None
    reason: str = ""
    is_given: bool = False


def count_comparisons(model: Any, budget: Budget) -> int:
    """Return how many steps it takes to compare numbers of clusters, at most."""
    if _reason(model, budget):
        return 0
    several = len(model.kernel_names_) > 1
    return (2 if several else 1) * N_DRAWS + N_RESAMPLES


def compare_numbers(
    model: Any, samples: Samples, budget: Budget | None, progress: StepCallback = None
) -> Alternatives:
    """Compare the number of clusters of a fit with its neighbors, on some samples; None does not.

    They are looked for as `suggest_n_clusters` does, in the compromise of the views that agree:
    weights that were learned for one number would speak for it.
    """
    if budget is None:
        return Alternatives(None, "Other numbers of clusters were not asked for.")
    if reason := _reason(model, budget):
        return Alternatives(None, reason)
    n, k = min(len(model.labels_), budget.samples_compared), int(model.n_clusters)
    numbers = [each for each in range(k - BESIDE, k + BESIDE + 1) if 2 <= each <= n // 2]
    kernels = default_bank(True, "gaussian") if is_approximated(model) else model.kernels
    if samples.kind != "kernels" and model.kernel_neighbors is not None:
        kernels = make_bank(model, several_views=samples.kind == "views")
    try:
        suggestion = suggest_n_clusters(
            samples,
            numbers,
            kernels=kernels,
            center=model.center,
            normalize=model.normalize,
            psd=model.psd,
            missing_views=model.missing_views,
            coefficients=_coefficients(model),
            n_resamples=N_RESAMPLES,
            n_draws=N_DRAWS,
            level=LEVEL,
            most_samples=n,
            progress=progress,
        )
    except ValueError as error:  # a part of the samples may lack what tells kernels
        return Alternatives(None, f"Other numbers of clusters could not be tried: {error}.")
    return Alternatives(suggestion)


def _reason(model: Any, budget: Budget) -> str:
    """Return why other numbers of clusters are not tried; empty where they are."""
    n, k = min(len(model.labels_), budget.samples_compared), int(model.n_clusters)
    if k == 1:
        return "A single cluster was asked for: mkclust.suggest_n_clusters(X) tries other numbers."
    if n < FEWEST_SAMPLES or k > n // 2:
        return f"{n} samples are too few to compare {k} clusters with other numbers."
    return ""


def _coefficients(model: Any) -> Float | None:
    """Return the coefficients of the views' compromise, None where none agree."""
    agreement = getattr(model, "agreement_", None)
    if agreement is None or not agreement.any_share:
        return None
    return np.asarray(agreement.coefficients(), dtype=float)
