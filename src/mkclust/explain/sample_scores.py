"""How well each sample fits into its cluster: silhouette and margin."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import silhouette_samples

from mkclust.explain.fitted import check_fitted
from mkclust.linalg import ranges, select, to_host
from mkclust.stack.discretize import normalize_rows
from mkclust.types import Float

# Beyond so many samples, distances to all others would take long: those to centers stand for them.
MOST_COMPARED = 10_000
BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class SampleScores:
    """How well each sample fits into its cluster.

    Attributes
    ----------
    silhouette : ndarray of shape (n_samples,)
        From -1 to 1: how much nearer its own cluster is than the next one. Zero for a sample alone
        in its cluster; NaN where there is a single cluster, or one sample a cluster.
    margin : ndarray of shape (n_samples,)
        Cosine to the center of its own cluster minus that to the next one: 0 is on the border. NaN
        where there is a single cluster.
    """

    silhouette: Float
    margin: Float


def sample_scores(model: Any, *, most_compared: int = MOST_COMPARED) -> SampleScores:
    """Return the silhouette and the margin of every sample of a fit.

    Both are those of the row-normalized embedding, which k-means clusters. It has just made the
    clusters as tight as it could there: the scores tell samples apart, and are no proof of
    clusters.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    most_compared : int, default=10_000
        Up to so many samples the silhouette goes by the mean distances to the samples of the
        clusters; beyond, by the distances to their centers (the simplified silhouette), which
        takes time and memory in proportion to the samples.

    Returns
    -------
    SampleScores
        In the order of ``labels_``; NaN for samples with the label -1.

    Examples
    --------
    >>> from mkclust import AverageKKM, sample_scores
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> scores = sample_scores(model)
    >>> scores.silhouette.shape, bool(abs(scores.margin).max() <= 2)
    ((300,), True)
    """
    check_fitted(model)
    labels, embedding = np.asarray(model.labels_), model.embedding_
    known = np.flatnonzero(labels >= 0)
    if len(known) < len(labels):
        scores = np.full((2, len(labels)), np.nan)
        scores[:, known] = _scores(select(embedding, known), labels[known], most_compared)
        return SampleScores(*scores)
    return SampleScores(*_scores(embedding, labels, most_compared))


def _scores(embedding: Any, labels: np.ndarray, most_compared: int) -> tuple[Float, Float]:
    """Return the silhouettes and the margins of samples that all have a cluster."""
    centers = _centers(embedding, labels)
    margin = _by_block(lambda rows, of, to, _: margins(rows, of, to), embedding, labels, centers)
    if len(labels) <= most_compared:
        return silhouettes(to_host(embedding), labels), margin
    return _by_block(_simplified, embedding, labels, centers), margin


def silhouettes(rows: Float, labels: np.ndarray) -> Float:
    """Return the silhouettes of samples among each other, on their rows scaled to unit length.

    Parameters
    ----------
    rows : ndarray of shape (s, k)
        Rows of an embedding.
    labels : ndarray of int of shape (s,)
        Their clusters.

    Returns
    -------
    ndarray of shape (s,)
        NaN where there are no two clusters, or as many as samples.
    """
    if not 2 <= len(np.unique(labels)) < len(labels):
        return np.full(len(labels), np.nan)
    return silhouette_samples(normalize_rows(rows), labels)


def _blocks(embedding: Any) -> Iterator[tuple[slice, Float]]:
    """Yield unit rows of an embedding, wherever it lives, some at a time."""
    for some in ranges(embedding.shape[0], BLOCK_ROWS):
        yield some, normalize_rows(to_host(select(embedding, some)))


def _centers(embedding: Any, labels: np.ndarray) -> Float:
    """Return the mean unit row of each cluster that has samples, NaN for the others."""
    sums = np.zeros((int(labels.max()) + 1, embedding.shape[1]))
    for some, rows in _blocks(embedding):
        np.add.at(sums, labels[some], rows)
    sizes = np.bincount(labels)[:, None]
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)


def _by_block(score: Any, embedding: Any, labels: np.ndarray, centers: Float) -> Float:
    """Return the scores of all samples, NaN where there is a single cluster."""
    sizes = np.bincount(labels)
    if np.sum(sizes > 0) < 2:
        return np.full(len(labels), np.nan)
    # A cluster without samples is nobody's next one.
    numbers = np.cumsum(sizes > 0) - 1
    centers, sizes, labels = centers[sizes > 0], sizes[sizes > 0], numbers[labels]
    parts = [score(rows, labels[some], centers, sizes) for some, rows in _blocks(embedding)]
    return np.concatenate(parts)


def margins(rows: Float, labels: np.ndarray, centers: Float) -> Float:
    """Return the cosine to the own center minus that to the next; NaN for a single cluster.

    Parameters
    ----------
    rows : ndarray of shape (s, k)
        Rows of an embedding, of unit length.
    labels : ndarray of int of shape (s,)
        Their clusters.
    centers : ndarray of shape (n_clusters, k)
        The centers of all clusters.

    Returns
    -------
    ndarray of shape (s,)
    """
    if len(centers) < 2:
        return np.full(len(labels), np.nan)
    cosines = rows @ normalize_rows(centers).T
    own, others = _own_and_others(cosines, labels, -np.inf)
    return own - others.max(axis=1)


def _simplified(rows: Float, labels: np.ndarray, centers: Float, sizes: np.ndarray) -> Float:
    """Return silhouettes by the distances to the centers, zero for a sample alone."""
    squares = (rows**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * rows @ centers.T
    own, others = _own_and_others(np.sqrt(np.maximum(squares, 0)), labels, np.inf)
    nearest = others.min(axis=1)
    larger = np.maximum(own, nearest)
    relative = (nearest - own) / np.where(larger > 0, larger, 1)
    return np.where(sizes[labels] > 1, relative, 0.0)


def _own_and_others(values: Float, labels: np.ndarray, nothing: float) -> tuple[Float, Float]:
    """Return each row's value for its own cluster, and those for the others."""
    everyone, others = np.arange(len(labels)), values.copy()
    others[everyone, labels] = nothing
    return values[everyone, labels], others
