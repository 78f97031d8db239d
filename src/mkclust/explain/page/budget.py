"""How much is looked at: what is cheap wholly, what is dear on some samples, and by which rule.

The rules go by sizes and not by the clock, so that the same fit always gives the same page.
"""

from typing import Any

import numpy as np

# Dots of the embedding, which are also the samples whose silhouettes are computed.
MOST_DOTS = 3000
# Samples whose similarities are drawn, and bars of the plot of silhouettes.
MOST_SIMILARITIES, MOST_BARS = 240, 600
# Rows of the embedding by which the plane is found.
MOST_ROWS = 20_000
# Entries of kernels, m n^2, up to which kernels are examined on all samples; beyond, on some.
ENTRIES_EXAMINED = 8e7
# The same for one refit, of which stability takes several, and leaving each out in turn m.
ENTRIES_REFITTED = 1.6e7
ENTRIES_LEFT_OUT = 6e7
# Samples that are examined at most where not all are, and with features in place of kernels.
MOST_EXAMINED, MOST_COMPRESSED = 2000, 5000
# A cluster is not found again in fewer samples than so many, on average.
FEWEST_OF_A_CLUSTER = 5
RESAMPLES_FEW, RESAMPLES_MANY = 10, 20


def sample_by_cluster(labels: np.ndarray, most: int, least: int = 2) -> np.ndarray:
    """Return the numbers of some samples, rising: each cluster by its share, none left out.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        Clusters of the samples.
    most : int
        About so many samples are kept; all where there are no more.
    least : int, default=2
        So many of every cluster in any case, where it has them.

    Returns
    -------
    ndarray of int of shape (s,)
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    sizes = np.bincount(labels)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank = np.arange(n) - starts
    counts = np.maximum(sizes * most // n, least)
    return np.sort(by_cluster[rank < np.repeat(counts, sizes)])


def n_examined(model: Any) -> int:
    """Return on how many samples the kernels of a model are examined."""
    n, m = len(model.labels_), len(model.kernel_names_)
    if hasattr(model, "approximation_error_"):
        return min(n, max(MOST_COMPRESSED, FEWEST_OF_A_CLUSTER * model.n_clusters))
    if m * n**2 <= ENTRIES_EXAMINED:
        return n
    some = min(MOST_EXAMINED, int((ENTRIES_REFITTED / m / model.SLOWNESS) ** 0.5))
    return min(n, max(some, FEWEST_OF_A_CLUSTER * model.n_clusters))


def leave_one_out_is_cheap(model: Any, n_samples: int) -> bool:
    """Return whether refitting without each kernel in turn is cheap enough."""
    m = len(model.kernel_names_)
    if hasattr(model, "approximation_error_"):
        return m <= 12
    return m**2 * n_samples**2 * model.SLOWNESS <= ENTRIES_LEFT_OUT


def resampling_plan(model: Any) -> dict[str, int]:
    """Return how many resamples are drawn to tell stability, and how large they are at most."""
    n, m = len(model.labels_), len(model.kernel_names_)
    most = MOST_EXAMINED
    if not hasattr(model, "approximation_error_"):
        most = min(most, int((ENTRIES_REFITTED / m / model.SLOWNESS) ** 0.5))
    most = max(most, FEWEST_OF_A_CLUSTER * model.n_clusters)
    small = m * min(n, most) ** 2 * model.SLOWNESS <= ENTRIES_REFITTED / 10
    return {
        "n_resamples": RESAMPLES_MANY if small else RESAMPLES_FEW,
        "most_samples": most,
    }
