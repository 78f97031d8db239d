"""How far clusters stay the same with other samples, or other landmarks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state

from mkclust.exceptions import silence
from mkclust.explain.clarity import DEPENDS, Clarity, Vary
from mkclust.explain.fitted import Parts, check_fitted
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import known_again
from mkclust.linalg import to_host
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.metrics import agreement_of_labels, align_labels
from mkclust.parameters import Count, Number, check_parameter
from mkclust.plots.style import names_of
from mkclust.stack.feature_maps import seeds_of
from mkclust.types import Float
from mkclust.watch import steps


@dataclass(frozen=True, eq=False)
class Stability:
    """How far a model's clusters stay the same in refits; ``print`` it.

    Attributes
    ----------
    method : str
        Name of the model's class.
    vary : {"samples", "landmarks"}
        What was drawn again for each refit.
    samples : ndarray of shape (n_samples,)
        Of the refits that a sample was in, the share in which it fell into its own
        cluster; NaN if it was in none. Low for samples between clusters.
    clusters : ndarray of shape (n_clusters,)
        Mean of these over the samples of each cluster; NaN for a cluster of which none
        was drawn.
    agreements : ndarray of shape (n_resamples,)
        Adjusted Rand index of each refit's clusters with the model's, on its samples.
    size : int
        Number of samples of a refit.
    names : tuple of str or None
        The names of the clusters, None if they have only numbers.
    """

    method: str
    vary: Vary
    samples: Float
    clusters: Float
    agreements: Float
    size: int
    names: tuple[str, ...] | None = None

    @property
    def mean(self) -> float:
        """Mean agreement of a refit with the model."""
        return float(self.agreements.mean())

    def summary(self) -> str:
        """Return the reading in words."""
        shares = [f"{share:.2f}".replace("nan", "-") for share in self.clusters]
        if self.names is not None:
            shares = list(map("{} ({})".format, shares, self.names))
        drawn = "with other landmarks"
        if self.vary == "samples":
            drawn = f"on {self.size} of {len(self.samples)} samples"
        return (
            f"{self.method}, {len(self.agreements)} refits {drawn}\n\nClusters of a "
            f"refit agree with the model's to {self.mean:.2f} on average, and to "
            f"{self.agreements.min():.2f} at least (adjusted Rand index: 1 is the same "
            "clusters, 0 is chance).\nShare of refits in which a cluster's samples "
            f"stay with it: {', '.join(shares)}.\n{self.verdict()}"
        )

    def verdict(self) -> str:
        """Return in a sentence how far the clusters are to be relied on."""
        return Clarity(stability=self.mean, vary=self.vary).about_stability()

    __repr__ = summary


def stability(
    model: MultipleKernelClusterer,
    X: Any,
    *,
    vary: Vary = "samples",
    n_resamples: int | None = None,
    fraction: float = 0.8,
    max_samples: int = 2000,
    random_state: Any = 0,
) -> Stability:
    """Say how far clusters stay the same with other samples, or other landmarks.

    The model is fitted again on random parts of the samples, or on all samples with
    features drawn from other landmarks. The clusters of each refit are matched with the
    model's so that as many samples as possible stay in their cluster.

    Stable clusters need not exist: an elongated cloud is cut in the same place every
    time. Unstable clusters cannot be relied on; if they change with the landmarks,
    there may be too few of these.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator; for ``vary="landmarks"`` one with a random
        ``approximation``.
    X : array of shape (m, n, n) or (n, d), or list or dict of kernels or views
        The data that the model was fitted on; files and dask arrays are allowed.
    vary : {"samples", "landmarks"}, default="samples"
        What is drawn again for each refit. With new landmarks, k-means also gets new
        seeds.
    n_resamples : int, default=None
        Number of refits; None takes 20 for samples and 5 for landmarks.
    fraction : float, default=0.8
        Share of the samples in a part, between 0 and 1; for landmarks all samples are
        used.
    max_samples : int, default=2000
        The most samples of a part, and so the most components of a feature map.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, stability
    >>> rng = np.random.default_rng(0)
    >>> places = 5 * np.eye(3, 4)[np.arange(90) % 3]
    >>> views = [places + rng.normal(size=(90, 4)) for _ in range(2)]
    >>> model = AverageKKM(n_clusters=3, random_state=0).fit(views)
    >>> found = stability(model, views, n_resamples=5)
    >>> bool(found.mean > 0.9), found.clusters.shape
    (True, (3,))
    """
    check_fitted(model)
    if vary not in DEPENDS:
        raise ValueError(f"vary={vary!r}: pass 'samples' or 'landmarks'")
    if n_resamples is None:
        n_resamples = {"samples": 20, "landmarks": 5}[vary]
    check_parameter("n_resamples", n_resamples, Count())
    check_parameter("fraction", fraction, Number(0, 1, open_low=True, open_high=True))
    rng = seeded(random_state)
    covered = model._covered
    n_all = len(model.labels_)
    model, samples = known_again(model, X)
    labels = to_host(model.labels_, None)
    n = len(labels)
    k = model.n_clusters_
    parts = Parts(model, samples)
    refitted = parts.unfitted(model)
    size = min(round(fraction * n), max_samples)
    if vary == "landmarks":
        size = n
        refitted.set_params(approximation=_without_seeds(model.approximation))
    else:
        if size < k:
            raise ValueError(
                f"a part of {size} of {n} samples cannot have {k} clusters: raise "
                "fraction or max_samples"
            )
        number = getattr(refitted.approximation, "n_components", None)
        if isinstance(number, int | np.integer):
            refitted.set_params(approximation__n_components=min(int(number), size))

    n_stayed, n_drawn = np.zeros((2, n))
    agreements = np.zeros(n_resamples)
    with silence():  # the fit itself has warned
        for index in steps(range(n_resamples)):
            part = np.arange(n)
            given = samples
            if vary == "samples":
                part = draw(rng, n, size)
                given = parts.take(part)
            else:
                refitted.set_params(random_state=int(rng.integers(2**31 - 1)))
            found = to_host(refitted.fit(given).labels_, None)
            known = (labels[part] >= 0) & (found >= 0)
            if known.any():
                part = part[known]
                found = found[known]
                n_stayed[part] += align_labels(found, labels[part]) == labels[part]
                n_drawn[part] += 1
                agreements[index] = agreement_of_labels(labels[part], found)
    with np.errstate(invalid="ignore"):
        shares = n_stayed / n_drawn
    means = pd.Series(shares).groupby(labels).mean()
    if covered is not None and n < n_all:
        shares = spread_rows(shares, covered, n_all, np.nan)
    return Stability(
        type(model).__name__,
        vary,
        shares,
        means.reindex(range(k)).to_numpy(),
        agreements,
        size,
        names_of(model),
    )


def _without_seeds(approximation: Any) -> Any:
    """Return a copy of a map without seeds: each view's is seeded by the model then."""
    seeds = () if approximation is None else seeds_of(approximation)
    if not seeds:
        raise ValueError(
            f"vary='landmarks' with approximation={approximation!r}: it draws nothing; "
            "pass a model with an approximation that does, such as "
            "mkclust.kernels.Nystroem(200)"
        )
    return clone(approximation).set_params(**dict.fromkeys(seeds))


def seeded(random_state: Any) -> np.random.Generator:
    """Return a generator from any kind of seed."""
    try:
        return np.random.default_rng(
            check_random_state(random_state).randint(2**31 - 1)
        )
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r}: {error}") from None


def draw(rng: np.random.Generator, n_samples: int, size: int) -> np.ndarray:
    """Return the rising indices of some samples, each drawn once."""
    return np.sort(rng.choice(n_samples, size, replace=False))
