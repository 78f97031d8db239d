"""How far clusters stay the same when some of the samples are left out."""

import numbers
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_random_state

from mkclust.explain.fitted import (
    check_fitted,
    integer_seed,
    is_approximated,
    unfitted_copy,
)
from mkclust.explain.steps import StepCallback, counted
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.bank import expected_input, with_rules_by_name
from mkclust.kernels.kinds import rule_of
from mkclust.linalg import select
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import adjusted_rand_of_table
from mkclust.parameters import Count, Number, check_parameter
from mkclust.samples.checks import check_view
from mkclust.samples.options import AS_THEY_ARE, TableOptions
from mkclust.samples.samples import Samples, as_blocks, read_samples
from mkclust.stack import as_stack
from mkclust.types import Float

# From here on clusters are the same but for a few samples, and below that they are others.
STABLE, UNSTABLE = 0.95, 0.8


@dataclass(frozen=True, eq=False)
class Stability:
    """How far a model's clusters stay the same on parts of the samples; ``print`` it.

    Attributes
    ----------
    method : str
        Name of the model's class.
    samples : ndarray of shape (n_samples,)
        Of the resamples that a sample was in, the share in which it fell into its own cluster;
        NaN where it was in none. Low for samples between clusters.
    clusters : ndarray of shape (n_clusters,)
        Mean of these over the samples of each cluster; NaN for a cluster of which none was drawn.
    agreements : ndarray of shape (n_resamples,)
        Adjusted Rand index of each resample's clusters with the model's, on its samples.
    size : int
        Number of samples of a resample.
    """

    method: str
    samples: Float
    clusters: Float
    agreements: Float
    size: int

    @property
    def mean(self) -> float:
        """Mean agreement of a resample with the model."""
        return float(self.agreements.mean())

    def summary(self) -> str:
        """Return the reading in words.

        Returns
        -------
        str
        """
        shares = [f"{share:.2f}" if share == share else "-" for share in self.clusters]
        sentences = [
            f"{self.method}, {len(self.agreements)} resamples of {self.size} of "
            f"{len(self.samples)} samples",
            "",
            f"Clusters of a resample agree with the model's to {self.mean:.2f} on average, and to "
            f"{self.agreements.min():.2f} at least (adjusted Rand index: 1 is the same clusters, "
            "0 what chance gives).",
            f"Share of resamples in which a cluster's samples stay with it: {', '.join(shares)}.",
        ]
        return "\n".join([*sentences, self.verdict()])

    def verdict(self) -> str:
        """Return in a sentence how far the clusters are to be relied on.

        Returns
        -------
        str
        """
        if self.mean >= STABLE:
            return "High: the clusters do not depend on a few samples."
        if self.mean >= UNSTABLE:
            return "Middling: some samples change clusters."
        return (
            "Low: other samples would have given other clusters; n_clusters may not fit, or "
            "there may be none."
        )

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()


class Resampler:
    """What ``fit`` takes, of which some samples can be had.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        In any form that ``fit`` takes: arrays, sparse matrices, files, dask arrays.
    kernels : "auto", "precomputed" or KernelBank
        What the estimator would be given for it.
    options : TableOptions, default=TableOptions()
        How tables become views.

    Attributes
    ----------
    kind : {"kernels", "views", "table"}
        What X holds.
    n_samples : int
        Number of samples, n.
    kernels : "precomputed" or KernelBank
        What an estimator has to be given for a part, which may be of another shape: as many
        samples as features, say, which could be two things.
    """

    def __init__(self, X: Any, kernels: Any, options: TableOptions = AS_THEY_ARE):
        samples = read_samples(X, expected=expected_input(kernels), options=options)
        self.kind, self._samples = samples.kind, samples
        self.kernels: Any = "precomputed"
        if self.kind != "kernels":
            named = not isinstance(kernels, KernelBank)
            bank = default_bank(self.kind == "views", kernels) if named else kernels
            self.kernels = bank if samples.is_lazy else with_rules_by_name(bank, samples)
        if samples.missing is not None:
            self.n_samples = samples.n_samples
        elif self.kind == "kernels":
            # As they are: each part is centered and scaled for itself.
            self._stack = as_stack(samples, center=False, normalize=False, validate=False)
            self.n_samples = self._stack.n_samples
        else:
            self._blocks = as_blocks(samples)
            self.n_samples = self._blocks.n_samples

    @classmethod
    def of_fit(cls, model: MultipleKernelClusterer, X: Any) -> "Resampler":
        """Return what a model was fitted on, of which some samples can be had."""
        # Features are made of views, whatever these might be taken for otherwise.
        kernels = default_bank(True, "gaussian") if is_approximated(model) else model.kernels
        return cls(X, kernels, model.table_options)

    def take(self, samples: np.ndarray) -> Any:
        """Return the part of X that belongs to some samples, given by rising numbers.

        Parameters
        ----------
        samples : ndarray of int, of shape (s,)
            Their numbers.

        Returns
        -------
        dict of str to array of shape (s, s) or (s, d), array of shape (s, d), or Samples
            Kernels or views by name, or a table, where X lives; where samples are missing from
            some of these, `Samples` that say which.
        """
        if self._samples.missing is not None:
            return self._take_observed(samples)
        if self.kind == "kernels":
            entries = self._stack.among(samples).entries
            return {name: entries[p, :, :] for p, name in enumerate(self._stack.names)}
        views = self._blocks.take(samples)
        for name in self._views_of_pairs():
            views[name] = select(views[name], samples, axis=1)
        return next(iter(views.values())) if self.kind == "table" else views

    def _take_observed(self, samples: np.ndarray) -> Samples:
        """Return some samples, each part with those of them that it has."""
        taken = self._samples.take(samples)
        observed, parts = self._samples.observed, taken.by_name
        for name in self._views_of_pairs():
            columns = np.flatnonzero(np.isin(observed[name], samples))
            view = check_view(parts[name], f"View {name!r}")
            parts[name] = select(view, columns, axis=1)
        return replace(taken, parts=tuple(parts.values()))

    def _views_of_pairs(self) -> list[str]:
        """Return the views whose columns are samples."""
        rules = None if self.kind == "kernels" else self.kernels.rules
        named = rules if isinstance(rules, Mapping) else {}
        return [name for name in named if rule_of(named[name]).of_pairs]


def resample(
    model: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    fraction: float = 0.8,
    most_samples: int = 2000,
    random_state: Any = 0,
    progress: StepCallback = None,
) -> Stability:
    """Say how far a model's clusters stay the same when some of the samples are left out.

    The model is fitted anew on random parts of the samples. The clusters of each part are matched
    with the model's so that as many samples as possible stay where they are; what then changes
    sides hangs on which samples there were.

    Clusters that stay are no proof of clusters that exist: a long cloud is cut in the same place
    every time. Clusters that do not stay are nothing to rely on.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on: files and dask arrays, too.
    n_resamples : int, default=20
        Number of parts.
    fraction : float, default=0.8
        Share of the samples in a part, between 0 and 1.
    most_samples : int, default=2000
        A part holds no more samples than this. A feature map of more components than that makes
        do with as many.
    random_state : int, RandomState instance or None, default=0
        Seed of the parts.
    progress : callable, default=None
        Called as ``progress(done, total, text)`` while it works: steps done, their number, and
        what they are.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM
    >>> from mkclust.explain.stability import resample
    >>> rng = np.random.default_rng(0)
    >>> places = 5 * np.eye(3, 4)[np.arange(90) % 3]
    >>> views = [places + rng.normal(size=(90, 4)) for _ in range(2)]
    >>> model = AverageKKM(n_clusters=3, random_state=0).fit(views)
    >>> stability = resample(model, views, n_resamples=5)
    >>> bool(stability.mean > 0.9), stability.clusters.shape
    (True, (3,))
    """
    check_fitted(model)
    check_resamples(n_resamples, fraction, most_samples)
    n_all, covered, X = len(model.labels_), model._covered, in_order_of_fit(model, X)
    model = only_covered(model)
    source = Resampler.of_fit(model, X)
    n, k = source.n_samples, model.n_clusters
    if n != len(model.labels_):
        raise ValueError(f"X has {n} samples, the model was fitted on {len(model.labels_)}")
    size = part_size(n, fraction, most_samples)
    if size < k:
        raise ValueError(
            f"a part of {size} of {n} samples cannot have {k} clusters: raise fraction or "
            "most_samples"
        )
    refitted = _unfitted(model, source, size)
    labels = np.asarray(model.labels_)
    n_stayed, n_drawn, agreements = np.zeros(n), np.zeros(n), np.empty(n_resamples)
    rng = seeded(random_state)
    with warnings.catch_warnings():
        # The model itself has warned when it was fitted.
        warnings.simplefilter("ignore")
        for index in counted(range(n_resamples), progress, "resamples"):
            part = draw(rng, n, size)
            labels_of_part = np.asarray(refitted.fit(source.take(part)).labels_)
            known = (labels[part] >= 0) & (labels_of_part >= 0)
            part, labels_of_part = part[known], labels_of_part[known]
            table = count_pairs(labels[part], labels_of_part, k)
            old, new = linear_sum_assignment(table, maximize=True)
            n_stayed[part] += old[np.argsort(new)][labels_of_part] == labels[part]
            n_drawn[part] += 1
            agreements[index] = adjusted_rand_of_table(table) if table.any() else 0
    samples = np.divide(n_stayed, n_drawn, out=np.full(n, np.nan), where=n_drawn > 0)
    clusters = _means_by_cluster(samples, labels, k)
    if covered is not None:
        samples = spread_rows(samples[:, None], covered, n_all, np.nan)[:, 0]
    return Stability(type(model).__name__, samples, clusters, agreements, size)


def _means_by_cluster(values: Float, labels: np.ndarray, n_clusters: int) -> Float:
    """Return the mean of the values that are known in each cluster, NaN where none is."""
    known = ~np.isnan(values)
    sums = np.bincount(labels[known], weights=values[known], minlength=n_clusters)
    counts = np.bincount(labels[known], minlength=n_clusters)
    return np.divide(sums, counts, out=np.full(n_clusters, np.nan), where=counts > 0)


def count_pairs(first: np.ndarray, second: np.ndarray, n_clusters: int) -> np.ndarray:
    """Count the samples in each cluster of one clustering and each of another, (k, k)."""
    table = np.zeros((n_clusters, n_clusters), dtype=np.int64)
    np.add.at(table, (first, second), 1)
    return table


def check_resamples(n_resamples: Any, fraction: Any, most_samples: Any) -> None:
    """Refuse numbers of parts, and sizes of them, that make no sense."""
    check_parameter("n_resamples", n_resamples, Count())
    check_parameter("most_samples", most_samples, Count())
    check_parameter("fraction", fraction, Number(0, 1, open_low=True, open_high=True))


def part_size(n_samples: int, fraction: float, most_samples: int) -> int:
    """Return how many samples a part has."""
    return min(round(fraction * n_samples), most_samples)


def seeded(random_state: Any) -> np.random.Generator:
    """Return a generator from any kind of seed, a clear word where it is none."""
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r}: {error}") from None


def draw(rng: np.random.Generator, n_samples: int, size: int) -> np.ndarray:
    """Return the rising numbers of some samples, each drawn once."""
    return np.sort(rng.choice(n_samples, size, replace=False))


def _unfitted(model: MultipleKernelClusterer, source: Resampler, size: int) -> Any:
    """Return a copy of the model that takes parts of its samples."""
    # Seeds that change from call to call would make the clusters do so, too.
    copy = unfitted_copy(model).set_params(random_state=integer_seed(model))
    if not is_approximated(model):
        return copy.set_params(kernels=source.kernels)
    components = getattr(model.approximation, "n_components", None)
    if isinstance(components, numbers.Integral):
        # As many landmarks as there are samples at most.
        copy.set_params(approximation__n_components=min(int(components), size))
    return copy
