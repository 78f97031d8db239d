"""The similarities by which a model clusters, sorted by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkclust.linalg import to_host
from mkclust.plots.sampling import sample_clusters
from mkclust.plots.style import FAINT, INK, Display, learned, set_titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The darkest and the lightest of this share of the entries are drawn alike: a few, such as those of
# samples with themselves, would leave no shades to the others.
CLIPPED = 0.01
MAX_BORDERS = 60  # beyond this many clusters lines between them would cover the entries
MAX_NAMED = 32  # so many names have room along the map, one below the other


def draw_sorted_kernel(
    ax: Axes,
    kernel: Any,
    labels: Any,
    *,
    sizes: Any = None,
    note: str = "",
) -> None:
    """Draw similarities as a map, with a border between every two clusters.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    kernel : array-like of shape (s, s)
        Similarities, sorted by cluster.
    labels : array-like of int of shape (s,)
        The cluster of each of these samples, samples of one cluster beside each other.
    sizes : mapping of int to int, optional
        How many samples each cluster has in all, where these are a part; counted where not given.
    note : str
        A sentence below the map.
    """
    kernel, labels = to_host(kernel), to_host(labels, None)
    s = len(labels)
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    ends, clusters = np.r_[starts[1:], s], labels[starts]
    beside = kernel[~np.eye(s, dtype=bool)] if s > 1 else kernel.ravel()
    low, high = np.quantile(beside, [CLIPPED, 1 - CLIPPED])
    if not low < high:
        low, high = low - 0.5, high + 0.5
    shades: dict[str, Any] = {"cmap": "Blues", "vmin": low, "vmax": high, "aspect": "auto"}
    shades["interpolation"] = "nearest"
    image = ax.imshow(kernel, extent=(0, s, s, 0), rasterized=True, **shades)
    if len(clusters) <= MAX_BORDERS:
        for border in starts[1:]:
            ax.axhline(border, color=INK, linewidth=0.8)
            ax.axvline(border, color=INK, linewidth=0.8)
    named = _with_room((starts + ends) / 2, s / MAX_NAMED)
    middles, clusters = ((starts + ends) / 2)[named], clusters[named]
    counted = dict(zip(labels[starts], ends - starts, strict=True)) if sizes is None else sizes
    tick_names = [f"{cluster} ({counted[cluster]:,})" for cluster in clusters]
    ax.set_yticks(middles, tick_names)
    ax.set_xticks(middles, [f"{cluster}" for cluster in clusters])
    ax.tick_params(length=0, labelsize=9 if len(middles) <= 12 else 7.5, labelcolor=INK)
    ax.spines[:].set(color=INK, linewidth=0.8)
    # Beside the map and not of its axes' room: they keep the place that they were given.
    bar = ax.figure.colorbar(
        image, cax=ax.inset_axes((1.03, 0, 0.035, 1)), extend="both", extendfrac=0.02
    )
    bar.outline.set(color=FAINT, linewidth=0.6)
    bar.ax.tick_params(labelsize=8, length=2, labelcolor=INK)
    bar.set_label("similarity", fontsize=9)
    k = len(starts)
    title = f"Similarities sorted by cluster ({k:,} cluster{'s' * (k != 1)})"
    below = f"cluster\n{note}" if note else "cluster"
    set_titles(ax, title, below, "cluster (number of samples)")
    ax.xaxis.label.set_fontsize(9)


class SortedKernelDisplay(Display):
    """The similarities by which a model clusters, as a map sorted by cluster.

    Clear clusters are dark squares along the diagonal; what is dark beside it is what two clusters
    share. Within a cluster the samples that fit best come first: those whose mean similarity to
    their own cluster is furthest above that to the nearest other one.

    Make it by :meth:`from_estimator`, or of arrays.

    Parameters
    ----------
    kernel : array-like of shape (s, s)
        Similarities, sorted.
    labels : array-like of int of shape (s,)
        The cluster of each of these samples.
    samples : array-like of int of shape (s,)
        The number of each of these samples among all.
    sizes : mapping of int to int
        How many samples each cluster has in all.
    note : str, default=""
        A sentence below the map.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What was drawn on last.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.plots import SortedKernelDisplay
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> display = SortedKernelDisplay.from_estimator(model, views, max_samples=200)
    >>> display.kernel.shape, sum(display.sizes.values())
    ((200, 200), 300)
    """

    def __init__(
        self, *, kernel: Any, labels: Any, samples: Any, sizes: dict[int, int], note: str = ""
    ):
        self.kernel = to_host(kernel)
        self.labels = to_host(labels, None)
        self.samples = np.asarray(samples)
        self.sizes = dict(sizes)
        self.note = note

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        max_samples: int = 500,
        random_state: Any = 0,
        ax: Axes | None = None,
    ) -> SortedKernelDisplay:
        """Draw the similarities of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        X : array, list or dict of kernels or views, or table
            What it was fitted on; see ``model.mixed_kernel``.
        max_samples : int, default=500
            Of more samples so many are drawn at random, from each cluster in proportion to its
            size and one at least, and the picture says so.
        random_state : int, default=0
            Seed of that draw.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        SortedKernelDisplay
        """
        labels = np.asarray(learned(model, "labels_", "mixed_kernel")[0])
        known = np.flatnonzero(labels >= 0)
        clusters, counts = np.unique(labels[known], return_counts=True)
        if max_samples < len(clusters):
            raise ValueError(
                f"max_samples={max_samples!r} with {len(clusters)} clusters: pass one for each at "
                "least"
            )
        samples = known[sample_clusters(labels[known], max_samples, random_state)]
        kernel = model.mixed_kernel(X, samples)
        order = _by_cluster_and_fit(kernel, labels[samples])
        note = model.describe_mixed_kernel().replace(" (", "\n(", 1)
        if len(samples) < len(known):
            note += f"\n{len(samples):,} of {len(known):,} samples drawn, clusters in proportion"
        return cls(
            kernel=kernel[np.ix_(order, order)],
            labels=labels[samples][order],
            samples=samples[order],
            sizes=dict(zip(clusters.tolist(), counts.tolist(), strict=True)),
            note=note,
        ).plot(ax)

    def _size(self) -> tuple[float, float]:
        """Return the width and height of a new figure, in inches."""
        return (7.2, 6.6)

    def _draw(self, ax: Axes) -> None:
        """Draw on given axes."""
        draw_sorted_kernel(ax, self.kernel, self.labels, sizes=self.sizes, note=self.note)


def _by_cluster_and_fit(kernel: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the order by cluster, and within a cluster by how well a sample fits, best first."""
    clusters, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    members = np.eye(len(clusters))[inverse]
    sums, everyone = kernel @ members, np.arange(len(labels))
    means = sums / sizes
    # A sample's similarity to itself says nothing about the company it is in.
    inside = (sums[everyone, inverse] - kernel[everyone, everyone]) / np.maximum(
        sizes[inverse] - 1, 1
    )
    means[everyone, inverse] = -np.inf
    outside = means.max(axis=1) if len(clusters) > 1 else 0.0
    return np.lexsort((-(inside - outside), inverse))


def _with_room(places: np.ndarray, room: float) -> np.ndarray:
    """Return which of some rising places can be named without their names touching."""
    named, last = [], -np.inf
    for index, place in enumerate(places):
        if place - last >= room:
            named.append(index)
            last = place
    return np.array(named, dtype=int)
