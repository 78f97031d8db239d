"""How much is looked at: what is cheap wholly, what is dear on some samples, and by which rule.

The rules go by sizes and not by the clock, so that the same fit always gives the same page.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.explain.fitted import is_approximated

# A cluster is not found again in fewer samples than so many, on average.
FEWEST_OF_A_CLUSTER = 5


@dataclass(frozen=True)
class Budget:
    """How much a page looks at.

    Attributes
    ----------
    dots : int
        Dots of the embedding, which are also the samples whose silhouettes are computed.
    similarities : int
        Samples whose similarities are drawn.
    entries_examined : float
        Entries of kernels, m n^2, up to which kernels are examined on all samples; beyond, on some.
    entries_refitted, entries_left_out : float
        The same for one refit, of which stability takes several, and for leaving each kernel out in
        turn, which takes m.
    samples_examined, samples_compressed : int
        Samples that are examined at most where not all are, and with features in place of kernels.
    entries_described : float
        Entries of views by which clusters are described; of more, some samples are left out.
    resamples_few, resamples_many : int
        Refits that tell stability, of large problems and of small ones.
    samples_compared : int
        Samples on which other numbers of clusters are compared, at most.
    """

    dots: int = 2000
    similarities: int = 240
    entries_examined: float = 8e7
    entries_refitted: float = 1.6e7
    entries_left_out: float = 6e7
    samples_examined: int = 2000
    samples_compressed: int = 5000
    entries_described: float = 1e8
    resamples_few: int = 10
    resamples_many: int = 20
    samples_compared: int = 500

    def n_examined(self, model: Any) -> int:
        """Return on how many samples the kernels of a model are examined."""
        n, m = len(model.labels_), len(model.kernel_names_)
        if is_approximated(model):
            most = self.samples_compressed
        elif m * n**2 <= self.entries_examined:
            return n
        else:
            most = self._refitted_samples(model)
        return min(n, max(most, FEWEST_OF_A_CLUSTER * model.n_clusters))

    def allows_leave_one_out(self, model: Any, n_samples: int) -> bool:
        """Return whether refitting without each kernel in turn is cheap enough."""
        m = len(model.kernel_names_)
        if is_approximated(model):
            return m <= 12
        return m**2 * n_samples**2 * model.SLOWNESS <= self.entries_left_out

    def resampling_plan(self, model: Any) -> dict[str, int]:
        """Return how many resamples are drawn to tell stability, and how large they are at most."""
        n, m = len(model.labels_), len(model.kernel_names_)
        exact = not is_approximated(model)
        most = self._refitted_samples(model) if exact else self.samples_examined
        most = max(most, FEWEST_OF_A_CLUSTER * model.n_clusters)
        is_small = m * min(n, most) ** 2 * model.SLOWNESS <= self.entries_refitted / 20
        return {
            "n_resamples": self.resamples_many if is_small else self.resamples_few,
            "most_samples": most,
        }

    def _refitted_samples(self, model: Any) -> int:
        """Return on how many samples one refit is cheap enough."""
        entries = self.entries_refitted / len(model.kernel_names_) / model.SLOWNESS
        return min(self.samples_examined, int(entries**0.5))


DEFAULT_BUDGET = Budget()


def sample_by_cluster(labels: np.ndarray, most: int, least: int = 2) -> np.ndarray:
    """Return the numbers of some samples, rising: each cluster by its share, none left out.

    About ``most`` of them, all where there are no more; and ``least`` of every cluster in any case,
    where it has them.
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
