"""Plots of the clusters."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.web import plot
from mkclust.web.plot import plot_text
from mkclust.web.style import PALE, SHADES, axis, color, margins, short

# Beyond so many classes or clusters their counts are not written out, nor all of them named.
MOST_COUNTS_WRITTEN, MOST_TICKS = 15, 25


def stability(values: np.ndarray, sizes: np.ndarray) -> str:
    """Draw how stable each cluster is; values and sizes are one a cluster."""
    clusters = list(range(len(values)))
    data = [
        {
            "type": "bar", "x": clusters, "y": values,
            "marker": {"color": [color(cluster) for cluster in clusters]},
            "customdata": sizes,
            "hovertemplate": "cluster %{x}, %{customdata} samples<br>stability %{y:.2f}"
            "<extra></extra>",
        }
    ]  # fmt: skip
    layout = {
        "margin": margins(),
        "bargap": 0.3,
        "xaxis": axis("cluster", showgrid=False, tickvals=clusters[:: -(-len(clusters) // 25)]),
        "yaxis": axis("stability", range=[0, 1.02]),
    }
    known = values[np.isfinite(values)]
    summary = "No cluster's stability is known."
    if len(known) and known.max() - known.min() < 0.005:
        summary = f"All clusters have a stability of {known[0]:.2f}."
    elif len(known):
        summary = (
            f"The least stable cluster is {int(np.nanargmin(values))}, at {known.min():.2f}; the "
            f"most stable reaches {known.max():.2f}."
        )
    return plot(
        "stability-plot", data, layout, label="Stability of each cluster, as bars",
        summary=summary, height=280,
    )  # fmt: skip


def classes(counts: np.ndarray, clusters: Sequence[int], names: Sequence[str]) -> str:
    """Draw how each class spreads over the clusters; rows and columns are matched already."""
    shares = counts / np.maximum(counts.sum(axis=0), 1)
    small = max(counts.shape) <= MOST_COUNTS_WRITTEN
    across = _distinct([plot_text(name) for name in names])
    down = [str(cluster) for cluster in clusters]
    trace: dict[str, Any] = {
        "type": "heatmap", "x": across, "y": down, "z": np.round(shares, 3), "zmin": 0, "zmax": 1,
        "colorscale": PALE if small else SHADES, "customdata": counts,
        "colorbar": {"title": {"text": "share"}, "thickness": 12, "len": 0.8},
        "hovertemplate": "cluster %{y}, class %{x}<br>%{customdata} samples, %{z:.0%} of the class"
        "<extra></extra>",
    }  # fmt: skip
    if small:
        trace |= {"text": [[str(c) if c else "" for c in row] for row in counts.tolist()]}
        trace |= {"texttemplate": "%{text}", "textfont": {"color": "#222222"}, "xgap": 1, "ygap": 1}
    some, few = (slice(None, None, -(-len(of) // MOST_TICKS)) for of in (across, down))
    layout = {
        "margin": margins(),
        "xaxis": axis(
            "given class", showgrid=False, type="category", tickvals=across[some],
            ticktext=[short(name, 12) for name in names[some]],
        ),
        "yaxis": axis(
            "cluster", showgrid=False, type="category", autorange="reversed", tickvals=down[few]
        ),
    }  # fmt: skip
    matched = np.diag(counts)
    summary = (
        f"The matched pairs, on the diagonal, hold {int(matched.sum()):,} of the "
        f"{int(counts.sum()):,} samples. Shades are shares of a class."
    )
    return plot(
        "classes-plot", [trace], layout, label="Clusters against given classes, matched",
        summary=summary, height=int(np.clip(26 * len(clusters) + 110, 280, 700)),
    )  # fmt: skip


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of which no two are the same, which would be one place on an axis."""
    seen = Counter(names)
    return [f"{name} ({i})" if seen[name] > 1 else name for i, name in enumerate(names)]
