"""One variable by cluster: boxes for numbers, bars for categories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkclust.linalg import to_host
from mkclust.plots.style import (
    FAINT,
    INK,
    PALETTE,
    UNKNOWN_COLOR,
    Display,
    set_frame,
    set_titles,
    shorten,
    title_of,
)
from mkclust.unknown import known_first, means_unknown


@dataclass(eq=False, kw_only=True)
class VariableDisplay(Display):
    """A variable by cluster: boxes and dots for numbers, shares for categories.

    ``annotate(model, table).plot("age")`` makes it. A box reaches from the first to the
    third quartile, with a line at the median.

    Parameters
    ----------
    values : Series or array-like of shape (n,)
        Numbers, or categories; missing ones are left out.
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1 are left out.
    name : str
        The name of the variable.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.
    note : str, default=""
        Words next to the name, such as a p-value.

    Attributes
    ----------
    table : pandas.DataFrame
        Quartiles of numbers, or shares of categories, with a row for each cluster.

    Examples
    --------
    >>> from mkclust.plots import VariableDisplay
    >>> display = VariableDisplay(
    ...     values=["I", "II", "II", "II"], labels=[0, 0, 1, 1], name="stage"
    ... )
    >>> display.table.to_dict("list")
    {'I': [0.5, 0.0], 'II': [0.5, 1.0]}
    """

    values: Any
    labels: Any
    name: str
    names: Sequence[str] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        labels = to_host(self.labels, None)
        values = pd.Series(self.values).reset_index(drop=True)
        known = values.notna().to_numpy() & (labels >= 0)
        self.values = values[known]
        self.labels = labels[known]
        self.is_number = pd.api.types.is_numeric_dtype(values) and values.nunique() > 2
        if self.is_number:
            by_cluster = self.values.groupby(self.labels)
            self.table = by_cluster.quantile([0.25, 0.5, 0.75]).unstack()
        else:
            table = pd.crosstab(self.labels, self.values.to_numpy(), normalize="index")
            table = table.rename_axis(index=None, columns=None)
            self.table = table[known_first(table)]

    def _size(self) -> tuple[float, float]:
        return 1.9 + 0.3 * len(self.table), 2.5

    def _words(self) -> str:
        """Return the medians, or that bars are shares, in words."""
        if not self.is_number:
            return f"Shares of {self.name} in each cluster."
        medians = ", ".join(
            f"{middle:.3g} in {title_of(cluster, self.names)}"
            for cluster, middle in self.table[0.5].items()
        )
        return f"Median {self.name}: {medians}."

    def _draw(self, ax: Any) -> None:
        """Draw boxes or bars of every cluster."""
        titles = [title_of(cluster, self.names, 10) for cluster in self.table.index]
        if self.is_number:
            self._draw_boxes(ax)
        else:
            self._draw_bars(ax)
        ax.set_xticks(range(len(titles)), titles, parse_math=False)
        set_frame(ax)
        ax.tick_params(labelsize=8)
        if max(map(len, titles), default=0) > 4:
            ax.tick_params(axis="x", rotation=30)
        set_titles(ax, f"{shorten(self.name)}\n{self.note}".strip())
        ax.title.set(fontsize=9.5, parse_math=False)

    def _draw_boxes(self, ax: Any) -> None:
        """Draw a box for each cluster, with its samples as dots."""
        rng = np.random.default_rng(0)
        for place, cluster in enumerate(self.table.index):
            own = self.values[self.labels == cluster].to_numpy(float)
            color = PALETTE[cluster % len(PALETTE)]
            ax.boxplot(
                [own],
                positions=[place],
                widths=0.6,
                showfliers=False,
                medianprops={"color": color, "linewidth": 2},
                boxprops={"color": INK, "linewidth": 0.8},
                whiskerprops={"color": FAINT},
                capprops={"color": FAINT},
            )
            # More dots would cover each other.
            dots = rng.permutation(own)[:80]
            offsets = place + rng.uniform(-0.22, 0.22, size=len(dots))
            ax.scatter(offsets, dots, 5, color, alpha=0.5, linewidths=0)

    def _draw_bars(self, ax: Any) -> None:
        """Draw the shares of the levels in each cluster, one on the other."""
        import matplotlib

        n_known = sum(not means_unknown(level) for level in self.table)
        # From light to dark, neither white nor black.
        shades = np.linspace(0.12, 0.75, max(n_known, 2))
        colors = [*matplotlib.colormaps["Blues"](shades)[:n_known]]
        colors += [UNKNOWN_COLOR] * (len(self.table.columns) - n_known)
        below = np.zeros(len(self.table))
        for level, color in zip(self.table, colors, strict=True):
            ax.bar(
                range(len(below)),
                self.table[level],
                width=0.75,
                bottom=below,
                color=color,
                label=shorten(level, 16),
            )
            below += self.table[level].to_numpy()
        ax.set_ylim(0, 1)
        ax.legend(
            fontsize=7.5,
            frameon=False,
            handlelength=0.9,
            reverse=True,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )
