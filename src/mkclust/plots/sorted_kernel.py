"""The similarities by which a model clusters, sorted by cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.linalg import to_host
from mkclust.plots.style import (
    INK,
    Display,
    FittedModel,
    cluster_sizes,
    names_of,
    sample_clusters,
    set_titles,
    title_of,
)
from mkclust.text import count


@dataclass(eq=False, kw_only=True)
class SortedKernelDisplay(Display):
    """The similarities by which a model clusters, as a matrix sorted by cluster.

    Clear clusters are dark squares along the diagonal; dark areas off it are what
    two clusters share. Within a cluster the samples most similar to it come first.
    ``SortedKernelDisplay.from_estimator(model, X, max_samples=500)`` draws at most that
    many.

    Parameters
    ----------
    kernel : array-like of shape (s, s)
        Similarities, sorted by cluster.
    labels : array-like of int of shape (s,)
        The cluster of each of these samples.
    samples : array-like of int of shape (s,), default=None
        The index of each of these samples among all.
    sizes : mapping of int to int, default=None
        Number of samples of each cluster, if these are some of all.
    note : str, default=""
        A sentence below the matrix.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.plots import SortedKernelDisplay
    >>> display = SortedKernelDisplay(kernel=np.eye(4), labels=[0, 0, 1, 1])
    >>> display.caption
    'Two samples of one cluster have a mean similarity of 0, ...'
    """

    kernel: Any
    labels: Any
    samples: Any = None
    sizes: Mapping[int, int] | None = None
    note: str = ""
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.kernel = to_host(self.kernel)
        self.labels = to_host(self.labels, None)
        if self.sizes is None:
            self.sizes = cluster_sizes(self.labels)

    @classmethod
    def _read(
        cls, model: FittedModel, X: Any, max_samples: int = 500, **options: Any
    ) -> dict[str, Any]:
        """Return the mixed kernel of some samples of a fit, sorted by cluster."""
        labels = to_host(model.labels_, None)
        # Others have no kernels.
        anchors = getattr(model, "anchors_", np.arange(len(labels)))
        samples = anchors[sample_clusters(labels[anchors], max_samples)]
        kernel = to_host(model.mixed_kernel(X, samples))
        same = labels[samples][:, None] == labels[samples]
        order = np.lexsort((-(kernel * same).sum(axis=1), labels[samples]))
        note = model.describe_mixed_kernel().replace(" (", "\n(", 1)
        n = (labels >= 0).sum()
        if len(samples) < n:
            note += f"\n{len(samples):,} of {n:,} samples drawn, clusters in proportion"
            if hasattr(model, "anchors_"):
                note += ", from the anchors"
        return {
            "kernel": kernel[np.ix_(order, order)],
            "labels": labels[samples[order]],
            "samples": samples[order],
            "sizes": cluster_sizes(labels),
            "note": note,
            "names": names_of(model),
            **options,
        }

    def _words(self) -> str:
        """Return the mean similarities within and between clusters, in words."""
        same = self.labels[:, None] == self.labels
        pairs = same & ~np.eye(len(same), dtype=bool)
        if not pairs.any() or same.all():
            return "Similarities of the samples, sorted by cluster."
        return (
            "Two samples of one cluster have a mean similarity of "
            f"{self.kernel[pairs].mean():.3g}, two of different clusters "
            f"{self.kernel[~same].mean():.3g}."
        )

    def _draw(self, ax: Any) -> None:
        """Draw similarities as shades, with lines between the clusters."""
        s = len(self.labels)
        sizes = self.sizes or {}
        starts = np.flatnonzero(np.r_[True, self.labels[1:] != self.labels[:-1]])
        ends = np.r_[starts[1:], s]
        # A few entries, such as those of samples with themselves, would take all
        # shades.
        low, high = np.quantile(self.kernel[~np.eye(s, dtype=bool)], [0.01, 0.99])
        image = ax.imshow(
            self.kernel,
            extent=(0, s, s, 0),
            cmap="Blues",
            vmin=low,
            vmax=max(high, low + 1e-9),
            aspect="auto",
            interpolation="nearest",
            rasterized=True,
        )
        # Lines between more than 60 clusters would cover the entries.
        for border in starts[1:] if len(starts) <= 60 else ():
            ax.axhline(border, color=INK, linewidth=0.8)
            ax.axvline(border, color=INK, linewidth=0.8)
        # Clusters that are too narrow for a name have none.
        wide = ends - starts >= s / 32
        middles = ((starts + ends) / 2)[wide]
        clusters = self.labels[starts][wide].tolist()
        ax.set_yticks(
            middles,
            [f"{title_of(each, self.names)} ({sizes[each]:,})" for each in clusters],
        )
        ax.set_xticks(middles, [title_of(each, self.names, 10) for each in clusters])
        ax.tick_params(
            length=0,
            labelsize=9 if len(clusters) <= 12 else 7.5,
            labelcolor=INK,
        )
        bar = ax.figure.colorbar(image, ax=ax, extend="both", extendfrac=0.02)
        bar.ax.tick_params(labelsize=8, length=2)
        bar.set_label("similarity", fontsize=9)
        set_titles(
            ax,
            f"Similarities sorted by cluster ({count(len(sizes), 'cluster')})",
            f"cluster\n{self.note}".strip(),
            "cluster (number of samples)",
        )
