"""What sets the clusters of a fit apart, to be read, drawn or handed on."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from mkclust.plots import DescriptionDisplay
from mkclust.text import printable
from mkclust.types import Float

# Less than this is a small effect by Cohen's reading, too small for the name of a cluster.
NOTEWORTHY = 0.2
# Features in the name of a cluster, and at most, where others have the same name.
IN_NAME, MOST_IN_NAME = 2, 4
# What a feature without a name of its own is called.
NUMBERED = re.compile(r"column \d+")


@dataclass(frozen=True)
class FeatureEffect:
    """How one feature differs between a cluster and the rest.

    Attributes
    ----------
    cluster : int
        The cluster.
    view, feature : str
        The feature, and the view it is in; a level of a category is ``"column=level"``.
    kind : {"mean", "share"}
        Whether means of numbers are compared, or shares of samples.
    effect : float
        Of means, their difference over the pooled standard deviation (Cohen's d); of shares, their
        difference.
    standardized : float
        The difference over the pooled standard deviation, of shares as well: features of both
        kinds are ordered by it.
    mean_in, mean_out : float
        Mean or share within the cluster, and in the rest.
    n_in, n_out, n_missing : int
        Samples of the cluster and of the rest whose cells are not missing, and those that are.
    """

    cluster: int
    view: str
    feature: str
    kind: Literal["mean", "share"]
    effect: float
    standardized: float
    mean_in: float
    mean_out: float
    n_in: int
    n_out: int
    n_missing: int

    @property
    def title(self) -> str:
        """The feature, with its view where it has no name of its own."""
        return f"{self.view} {self.feature}" if NUMBERED.fullmatch(self.feature) else self.feature

    @property
    def phrase(self) -> str:
        """The feature and its direction, in words such as "high age" or "not smoker"."""
        high, low = ("high ", "low ") if self.kind == "mean" else ("", "not ")
        return (high if self.effect > 0 else low) + self.title


@dataclass(frozen=True, eq=False)
class Description:
    """The features that set each cluster apart from the rest, as `mkclust.describe` finds them.

    Attributes
    ----------
    table : tuple of FeatureEffect
        Cluster by cluster and view by view, the strongest first.
    sizes : tuple of int
        Number of samples in each cluster.
    notes : tuple of str
        What was left out, and why.
    profiles : mapping of (str, str) to ndarray of shape (k,)
        Of every feature in the table, by view and name, the standardized difference in each
        cluster.
    """

    table: tuple[FeatureEffect, ...]
    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()
    profiles: Mapping[tuple[str, str], Float] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """A short name of each cluster, of the features that set it apart most."""
        clusters = range(len(self.sizes))
        phrases = {c: [row.phrase for row in self.strongest(c, MOST_IN_NAME)] for c in clusters}
        names = {c: ", ".join(phrases[c][:IN_NAME]) for c in clusters}
        for count in range(IN_NAME + 1, MOST_IN_NAME + 1):
            taken = list(names.values())
            for c in [c for c in clusters if taken.count(names[c]) > 1]:
                names[c] = ", ".join(phrases[c][:count])
        for c in clusters:
            if not names[c]:
                names[c] = "no samples" if self.sizes[c] == 0 else "nothing stands out"
        taken = list(names.values())
        return tuple(
            f"{names[c]} ({c})" if taken.count(names[c]) > 1 else names[c] for c in clusters
        )

    def strongest(self, cluster: int, most: int) -> list[FeatureEffect]:
        """Return the noteworthy features of a cluster over all views, the strongest first.

        Parameters
        ----------
        cluster : int
            The cluster.
        most : int
            How many at most.

        Returns
        -------
        list of FeatureEffect
            Those with a standardized difference of at least 0.2.
        """
        rows = [row for row in self.table if row.cluster == cluster]
        rows = [row for row in rows if abs(row.standardized) >= NOTEWORTHY]
        return sorted(rows, key=lambda row: -abs(row.standardized))[:most]

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, one row a feature of a cluster.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        names = FeatureEffect.__dataclass_fields__
        return pd.DataFrame([asdict(row) for row in self.table], columns=list(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON takes it.

        Returns
        -------
        dict
            ``clusters``, each with its ``cluster``, ``name``, ``n_samples`` and ``features``; and
            ``notes``.
        """
        clusters = []
        for cluster, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            rows = [asdict(row) for row in self.table if row.cluster == cluster]
            features = [{key: row[key] for key in row if key != "cluster"} for row in rows]
            clusters.append(
                {"cluster": cluster, "name": name, "n_samples": size, "features": features}
            )
        return {"clusters": clusters, "notes": list(self.notes)}

    def plot(self, ax: Any = None, *, n_features: int = 3) -> DescriptionDisplay:
        """Draw the strongest features of every cluster, and how all clusters differ in them.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        n_features : int, default=3
            Features of each cluster that are drawn.

        Returns
        -------
        DescriptionDisplay
        """
        keys, titles = self.drawn(n_features)
        k = len(self.sizes)
        values = np.array([self.profiles[key] for key in keys]).reshape(len(keys), k)
        return DescriptionDisplay(features=titles, differences=values, sizes=self.sizes).plot(ax)

    def drawn(self, n_features: int) -> tuple[list[tuple[str, str]], list[str]]:
        """Return the strongest features of every cluster, each once, as keys and in words.

        Parameters
        ----------
        n_features : int
            Features of each cluster.

        Returns
        -------
        keys : list of (str, str)
            Views and features, as in `profiles`.
        titles : list of str
            What to call them.
        """
        rows = [row for c in range(len(self.sizes)) for row in self.strongest(c, n_features)]
        titles = {(row.view, row.feature): row.title for row in rows}
        return list(titles), list(titles.values())

    def summary(self, n_features: int = 3) -> str:
        """Return a line a cluster: its size, and the features that set it apart most.

        Parameters
        ----------
        n_features : int, default=3
            Features of each cluster.

        Returns
        -------
        str
        """
        width = len(f"{max(self.sizes, default=0):,}")
        lines = ["Clusters by what sets them apart (in standard deviations from the rest):"]
        for cluster, size in enumerate(self.sizes):
            rows = self.strongest(cluster, n_features)
            words = [f"{printable(row.phrase)} ({row.standardized:+.1f})" for row in rows]
            what = ", ".join(words) or "nothing stands out"
            lines.append(f"{cluster:>{len(str(len(self.sizes) - 1))}}  {size:>{width},}  {what}")
        return "\n".join([*lines, *map(printable, self.notes)])

    def __str__(self) -> str:
        """Return the features of each cluster as a text table."""
        lines: list[str] = []
        for cluster, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            rows = [row for row in self.table if row.cluster == cluster]
            lines += [f"cluster {cluster}, {size:,} samples: {printable(name)}", *_lines(rows), ""]
        return "\n".join([*lines, *map(printable, self.notes)]).rstrip()


def _lines(rows: list[FeatureEffect]) -> list[str]:
    """Return features as lines of text, in columns."""
    if not rows:
        return []
    cells = [["view", "feature", "effect", "inside", "outside"]]
    cells += [
        [
            printable(row.view),
            printable(row.feature),
            f"{row.effect:+.2f}",
            _amount(row.mean_in, row.kind),
            _amount(row.mean_out, row.kind),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  " + "  ".join(_pad(cell, width, at) for at, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in cells)
    ]


def _pad(cell: str, width: int, place: int) -> str:
    """Return a cell as wide as its column: words to the left, numbers to the right."""
    return cell.ljust(width) if place < 2 else cell.rjust(width)


def _amount(value: float, kind: str) -> str:
    """Return a mean in four digits, or a share in percent."""
    return f"{value:.0%}" if kind == "share" else f"{value:.4g}"
