"""What a report finds out about a fit before it is written down."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import silhouette_samples
from sklearn.utils.validation import check_is_fitted

from mkclust.explain.page.budget import MOST_DOTS, MOST_ROWS, MOST_SIMILARITIES, sample_by_cluster
from mkclust.explain.page.kernels import KernelFindings, examine_kernels
from mkclust.explain.page.stability import StabilityFindings, examine_stability
from mkclust.linalg import pick, to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.samples.ids import aligned
from mkclust.stack.discretize import normalize_rows
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class Similarities:
    """The mixed kernel among some samples, sorted by cluster.

    Attributes
    ----------
    samples : ndarray of int of shape (s,)
        Their numbers, cluster by cluster.
    entries : ndarray of shape (s, s)
        Their similarities.
    within, between : float
        Mean similarity of two samples of one cluster, and of two.
    """

    samples: np.ndarray
    entries: Float
    within: float
    between: float


@dataclass(frozen=True, eq=False)
class Findings:
    """A fitted model, and all that its page says about it.

    Attributes
    ----------
    model : MultipleKernelClusterer
        The fitted model.
    ids : sequence of str, length n
        Names of the samples.
    labels : ndarray of int of shape (n,)
        Their clusters.
    y : ndarray of shape (n,) or None
        Their given classes, where there are any.
    drawn : ndarray of int of shape (s,)
        Numbers of the samples that are drawn as dots, rising.
    plane, shares : ndarray of shape (s, 2), ndarray of shape (2,)
        Where they are drawn, and the shares of the variance that the two axes show.
    silhouettes : ndarray of shape (s,)
        Of the drawn samples; NaN where there are no two clusters.
    similarities : Similarities
        The mixed kernel.
    kernels : KernelFindings
        What the kernels are.
    resampling : StabilityFindings
        How the clusters fare under resampling.
    """

    model: Any
    ids: Sequence[str]
    labels: np.ndarray
    y: np.ndarray | None
    drawn: np.ndarray
    plane: Float
    shares: Float
    silhouettes: Float
    similarities: Similarities
    kernels: KernelFindings
    resampling: StabilityFindings

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return int(self.model.n_clusters)

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in each cluster, (k,)."""
        return np.bincount(self.labels, minlength=self.n_clusters)


def find(
    model: Any,
    X: Any,
    *,
    y: Any = None,
    ids: Any = None,
    n_resamples: int | None = None,
    leave_one_out: bool | None = None,
) -> Findings:
    """Find out what the page of a fitted model says.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What it was fitted on.
    y : array-like of shape (n,), default=None
        Given classes.
    ids : sequence of length n, default=None
        Names of the samples; None takes the index of a data frame, or else their numbers.
    n_resamples : int, default=None
        Refits that tell stability; None lets their number go by the size, 0 leaves them out.
    leave_one_out : bool, default=None
        Whether to refit without each kernel in turn; None does so where it is cheap.

    Returns
    -------
    Findings
    """
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(f"model is a {type(model).__name__}: pass a fitted estimator of mkclust")
    check_is_fitted(model)
    labels = np.asarray(model.labels_)
    X = in_order_of_fit(model, X)
    names = _names(ids, model)
    classes = None if y is None else _checked(_in_order(y, model), len(labels), "y")
    seed = int(model.random_state) if isinstance(model.random_state, numbers.Integral) else 0
    # First of all, for it refuses what the model was not fitted on, and is quick.
    similarities = _similarities(model, X, labels)
    drawn = sample_by_cluster(labels, MOST_DOTS, least=10)
    plane, shares = _plane(model, labels, drawn)
    return Findings(
        model=model,
        ids=names,
        labels=labels,
        y=classes,
        drawn=drawn,
        plane=plane,
        shares=shares,
        silhouettes=_silhouettes(model, labels, drawn),
        similarities=similarities,
        kernels=examine_kernels(model, X, labels, seed, leave_one_out),
        resampling=examine_stability(model, X, n_resamples),
    )


def _checked(values: Any, n: int, name: str) -> np.ndarray:
    """Return one value a sample, or say how many there are."""
    array = to_host(values, None)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(
            f"{name} has the shape {array.shape}, the model was fitted on {n} samples: pass one "
            "value a sample"
        )
    return array


def _names(ids: Any, model: Any) -> list[str]:
    """Return the names of the samples: given, those of the data frames, or their numbers."""
    n = len(model.labels_)
    if ids is not None:
        return [str(name) for name in _checked(list(ids), n, "ids").tolist()]
    return [str(name) for name in getattr(model, "sample_ids_", range(n))]


def _in_order(y: Any, model: Any) -> Any:
    """Return classes in the order of the labels, by their ids where both have some."""
    if not hasattr(y, "to_frame") or not hasattr(y, "index"):
        return y
    return aligned({"y": y.to_frame()}, getattr(model, "sample_ids_", None))[0]["y"].iloc[:, 0]


def _rows(model: Any, samples: np.ndarray) -> Float:
    """Return the rows that k-means sees: of unit length, in memory."""
    return normalize_rows(to_host(pick(model.embedding_, samples)))


def _plane(model: Any, labels: np.ndarray, drawn: np.ndarray) -> tuple[Float, Float]:
    """Return the drawn samples on the two leading axes of the rows, and their shares."""
    many = np.union1d(sample_by_cluster(labels, MOST_ROWS), drawn)
    rows = _rows(model, many)
    rows = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    points = rows @ vectors[:, ::-1][:, :2]
    # The embedding is unique up to a rotation only, so the points decide where the axes point.
    points = points * np.where((points**3).sum(axis=0) < 0, -1.0, 1.0)
    shares = np.clip(values[::-1][:2], 0, None) / max(values.sum(), np.finfo(float).tiny)
    missing = 2 - points.shape[1]
    points, shares = np.pad(points, ((0, 0), (0, missing))), np.pad(shares, (0, missing))
    return points[np.searchsorted(many, drawn)], shares


def _silhouettes(model: Any, labels: np.ndarray, drawn: np.ndarray) -> Float:
    """Return the silhouettes of the drawn samples among each other, on the unit rows."""
    clusters = labels[drawn]
    if not 2 <= len(np.unique(clusters)) < len(clusters):
        return np.full(len(drawn), np.nan)
    return silhouette_samples(_rows(model, drawn), clusters)


def _similarities(model: Any, X: Any, labels: np.ndarray) -> Similarities:
    """Return the mixed kernel among some samples, sorted by cluster."""
    samples = sample_by_cluster(labels, MOST_SIMILARITIES)
    samples = samples[np.argsort(labels[samples], kind="stable")]
    entries = model.mixed_kernel(X, samples)
    clusters = labels[samples]
    same, others = clusters[:, None] == clusters, ~np.eye(len(clusters), dtype=bool)

    def mean(chosen: np.ndarray) -> float:
        return float(entries[chosen].mean()) if chosen.any() else np.nan

    return Similarities(samples, entries, mean(same & others), mean(~same))
