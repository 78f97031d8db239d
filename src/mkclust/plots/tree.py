"""The tree of clusters: how the clusters of one number become those of the next."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mkclust.plots.style import FAINT, INK, PALETTE, Display, set_titles


@dataclass(eq=False, kw_only=True)
class ClusterTreeDisplay(Display):
    """How the clusters of one number become those of the next larger one.

    Every level is one number of clusters, and every node a cluster, with an area by its
    size. An edge is as wide as the share of the lower cluster that comes from the upper
    one. Clusters that stay together from level to level are clear at several scales;
    one that takes its samples from several others was found at its level only.

    Parameters
    ----------
    labels : array-like of int of shape (s, n)
        Clusters of the samples for every number; -1 for none.
    k_values : array-like of int of shape (s,)
        The numbers, rising.
    n_clusters : int, default=None
        The number that fits best, named in bold.

    Attributes
    ----------
    positions_ : list of ndarray
        Where the nodes of each level are, from 0 to 1.

    Examples
    --------
    >>> from mkclust.plots import ClusterTreeDisplay
    >>> labels = [[0, 0, 0, 1, 1], [0, 0, 2, 1, 1]]
    >>> display = ClusterTreeDisplay(labels=labels, k_values=[2, 3]).plot()
    >>> display.flows()[0].tolist()
    [[2, 0, 1], [0, 2, 0]]
    """

    labels: Any
    k_values: Any
    n_clusters: int | None = None

    def __post_init__(self) -> None:
        self.labels = np.asarray(self.labels)
        self.k_values = np.asarray(self.k_values)

    @classmethod
    def from_suggestion(
        cls, result: Any, k_values: Any = None, *, ax: Any = None
    ) -> "ClusterTreeDisplay":
        """Draw what ``mkclust.suggest_n_clusters`` returns, in new axes or given ones.

        Without `k_values`, the levels are the candidates and the numbers with the next
        highest scores, up to six.
        """
        known = [int(k) for k in result.k_values]
        if k_values is None:
            order = np.argsort(-np.asarray(result.scores), kind="stable")
            k_values = [known[place] for place in order[:6]]
        levels = sorted(k_values)
        return cls(
            labels=[result.labels[known.index(k)] for k in levels],
            k_values=levels,
            n_clusters=result.n_clusters,
        ).plot(ax)

    def sizes(self) -> list[np.ndarray]:
        """Return the numbers of samples of the clusters of every level."""
        return [np.bincount(labels[labels >= 0]) for labels in self.labels]

    def flows(self) -> list[np.ndarray]:
        """Return how many samples each cluster gives to each one of the next level."""
        sizes = [len(each) for each in self.sizes()]
        found: list[np.ndarray] = []
        for above, below in itertools.pairwise(self.labels):
            both = (above >= 0) & (below >= 0)
            flow = np.zeros(sizes[len(found) :][:2], dtype=int)
            np.add.at(flow, (above[both], below[both]), 1)
            found.append(flow)
        return found

    def _size(self) -> tuple[float, float]:
        widest = max(map(len, self.sizes()))
        return min(5.0 + 0.25 * widest, 11.0), 1.0 + 0.9 * len(self.labels)

    def _words(self) -> str:
        return (
            "Clusters for several numbers of them, by size; edges show where the "
            "samples of a cluster come from, by their share."
        )

    def _place(self) -> list[np.ndarray]:
        """Return the positions of nodes, so that edges cross little."""
        flows = self.flows()
        places = [(np.arange(len(each)) + 1) / (len(each) + 1) for each in self.sizes()]
        # Nodes are put in the order of the nodes they are linked to, several times.
        for _ in range(4):
            for level, flow in enumerate(flows):
                places[level + 1] = _in_order(places[level] @ flow, flow.sum(axis=0))
            for level, flow in reversed([*enumerate(flows)]):
                places[level] = _in_order(flow @ places[level + 1], flow.sum(axis=1))
        return places

    def _colors(self) -> list[list[int]]:
        """Return the colors of nodes: a cluster gives its own to its largest part."""
        colors = [list(range(len(self.sizes()[0])))]
        for flow in self.flows():
            parents = flow.argmax(axis=0)
            own = [-1] * flow.shape[1]
            for parent, color in enumerate(colors[-1]):
                children = np.flatnonzero(parents == parent)
                if len(children):
                    own[children[flow[parent, children].argmax()]] = color
            unused = (c for c in itertools.count() if c not in own)
            colors.append([next(unused) if color < 0 else color for color in own])
        return colors

    def _draw(self, ax: Any) -> None:
        """Draw the levels, and the edges between them."""
        self.positions_ = self._place()
        for level, flow in enumerate(self.flows()):
            self._draw_edges(ax, level, flow)
        for level in range(len(self.labels)):
            self._draw_level(ax, level)
        ax.set(xlim=(-0.02, 1.02), ylim=(0.6 - len(self.labels), 0.4))
        ax.set_axis_off()
        set_titles(ax, "How clusters divide")

    def _draw_edges(self, ax: Any, level: int, flow: np.ndarray) -> None:
        """Draw where the clusters of the next level come from."""
        shares = flow / np.maximum(flow.sum(axis=0), 1)
        above, below = self.positions_[level : level + 2]
        # Of a cluster, edges to it show at least one in twenty of its samples.
        for parent, child in np.argwhere(shares >= 0.05):
            share = shares[parent, child]
            ax.plot(
                [above[parent], below[child]],
                [-level, -level - 1],
                color=FAINT,
                linewidth=5.0 * share,
                alpha=0.25 + 0.5 * share,
                zorder=1,
            )

    def _draw_level(self, ax: Any, level: int) -> None:
        """Draw the clusters of one number, with their sizes, and the number."""
        places = self.positions_[level]
        counts = self.sizes()[level]
        total = counts.sum()

        # In points, as wide as there is room for; small clusters stay visible.
        room = min(1.0, 12.0 / len(counts))
        areas = room * np.maximum(2200.0 * counts / total, 18.0)
        ax.scatter(
            places,
            np.full(len(places), -level),
            s=areas,
            c=[PALETTE[color % len(PALETTE)] for color in self._colors()[level]],
            zorder=2,
        )

        # Nodes of at least one in fifty samples have their size written below them.
        radius = np.sqrt(areas.max() / np.pi)
        for place, count in zip(places, counts, strict=True):
            if count >= 0.02 * total:
                ax.annotate(
                    str(count),
                    (place, -level),
                    (0, -3 - radius),
                    textcoords="offset points",
                    ha="center",
                    va="top",
                    fontsize=7,
                    bbox={"pad": 0.5, "color": "white", "alpha": 0.7},
                )
        k = self.k_values[level]
        ax.text(
            -0.02,
            -level,
            f"k = {k}",
            color=INK,
            fontsize=9.5,
            ha="right",
            va="center",
            fontweight="bold" if k == self.n_clusters else "normal",
        )


def _in_order(sums: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return evenly spread places in the order of the mean places of linked nodes."""
    wished = sums / np.maximum(totals, 1)
    return rankdata(wished, method="ordinal") / (len(wished) + 1)
