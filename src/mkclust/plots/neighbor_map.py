"""Where the samples are drawn: on a map of neighbors, or on the plane of the widest spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mkclust.linalg import eigh

Method = Literal["neighbors", "plane"]
METHODS: tuple[Method, ...] = ("neighbors", "plane")

MAX_MAPPED = 2_000  # of more samples so many are on a map of neighbors, which takes 5 s for these
LEAST_MAPPED = 11  # fewer samples have no neighborhoods to speak of, and are on the plane
PERPLEXITY = 30.0  # neighbors of a sample that have a say in where it is
MAX_ITER = 500
# What has to be said of such a map wherever it is drawn.
CAUTION = (
    "Neighbors in the embedding are neighbors here; distances between far clusters mean little. "
    "Positions are not used to cluster."
)


@dataclass(frozen=True, eq=False)
class SampleMap:
    """Positions of samples in a picture.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
        The positions.
    method : {"neighbors", "plane"}
        How they were found.
    shares : ndarray of shape (2,)
        The shares of the variance that the two axes of a plane show; zero for neighbors.
    """

    points: np.ndarray
    method: Method
    shares: np.ndarray


def map_samples(embedding: np.ndarray, method: str = "neighbors") -> SampleMap:
    """Return where to draw the samples of an embedding.

    Parameters
    ----------
    embedding : ndarray of shape (n, k)
        The relaxed partition matrix; its rows are scaled to length one, as k-means sees them.
    method : {"neighbors", "plane"}, default="neighbors"
        "neighbors" is t-SNE, begun on the plane and the same in every run; "plane" the two axes
        along which the rows spread most. Where there are ten samples or fewer, or all rows are
        the same, it is the plane in any case.

    Returns
    -------
    SampleMap
    """
    check_map_method(method)
    coordinates, shares = _principal_axes(embedding)
    plane = coordinates[:, :2]
    if method == "plane" or len(plane) < LEAST_MAPPED or not plane.any():
        return SampleMap(plane, "plane", shares[:2])
    # About as many neighbors as a cluster has: more would draw small clusters into each other.
    n, k = embedding.shape
    perplexity = min(PERPLEXITY, (n - 1) / 3, max(5.0, n / k))
    return SampleMap(_neighbor_map(coordinates, perplexity), "neighbors", np.zeros(2))


def check_map_method(method: str) -> None:
    """Refuse an unknown way to draw the samples."""
    if method not in METHODS:
        raise ValueError(f"method={method!r}: pass 'neighbors' or 'plane'")


def amid(points: np.ndarray) -> np.ndarray:
    """Return the point nearest to the median of points: if in two pieces, in one of them."""
    distances = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    return points[distances.argmin()]


def spread_names(
    places: np.ndarray, boxes: np.ndarray, corners: np.ndarray, rounds: int = 200
) -> np.ndarray:
    """Move boxes, given by centers and sizes, until none overlap, and keep them within a frame."""
    # Any fixed directions do, where two centers coincide.
    angles = 2.4 * np.arange(len(places))
    places = places + 1e-3 * boxes * np.column_stack([np.cos(angles), np.sin(angles)])
    room = (boxes[:, None] + boxes[None]) / 2
    low, high = corners[0] + boxes / 2, corners[1] - boxes / 2
    for _ in range(rounds):
        places = np.maximum(np.minimum(places, high), low)
        steps = places[:, None] - places[None]
        overlap = np.maximum(room - np.abs(steps), 0)
        overlap[np.arange(len(places)), np.arange(len(places))] = 0
        # Boxes overlap where they do in both directions, and part in that of the shorter way.
        overlap *= (overlap > 0).all(axis=2, keepdims=True)
        if not overlap.any():
            break
        shorter = overlap == overlap.min(axis=2, keepdims=True)
        places = places + 0.5 * (np.sign(steps) * overlap * shorter).sum(axis=1)
    return places


def _neighbor_map(coordinates: np.ndarray, perplexity: float) -> np.ndarray:
    """Return the positions that t-SNE finds, from the plane of the leading coordinates."""
    from sklearn.manifold import TSNE  # not worth the wait where nothing is drawn
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    plane = coordinates[:, :2]
    # As wide as scikit-learn begins; a little noise lets copies of a sample, and rows on a line,
    # move apart.
    noise = np.random.default_rng(0).normal(scale=1e-5, size=plane.shape)
    start = 1e-4 * plane / plane[:, 0].std() + noise
    tsne = TSNE(
        perplexity=perplexity,
        init=start.astype(np.float32),
        max_iter=MAX_ITER,
        n_iter_without_progress=100,
        angle=0.8,
        random_state=0,
    )
    # Threads add up in any order, which hundreds of steps would make visible.
    with threadpool_limits(1):
        return np.asarray(tsne.fit_transform(coordinates), dtype=float)


def _principal_axes(embedding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit rows in the axes of their spread, two at least, and its shares, falling."""
    lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
    rows = embedding / np.where(lengths > 0, lengths, 1)
    rows -= rows.mean(axis=0)
    values, vectors = eigh(rows.T @ rows)
    coordinates = rows @ vectors[:, ::-1]
    # The embedding is unique only up to a rotation, so the sign must come from the points. Rounded,
    # for t-SNE makes much of the last digits, in which rotations differ.
    coordinates *= np.where((coordinates**3).sum(axis=0) < 0, -1.0, 1.0)
    coordinates = np.round(coordinates, 12)
    total = max(float(values.sum()), np.finfo(float).tiny)
    shares = np.clip(values[::-1], 0, None) / total
    missing = max(2 - len(shares), 0)
    return np.pad(coordinates, ((0, 0), (0, missing))), np.pad(shares, (0, missing))
