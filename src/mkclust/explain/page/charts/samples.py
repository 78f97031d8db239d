"""Plots of the samples."""

import numpy as np

from mkclust.explain.page.budget import MOST_BARS, thinned
from mkclust.explain.page.findings import Findings
from mkclust.plots import PALETTE
from mkclust.web import plot
from mkclust.web.plot import plot_text
from mkclust.web.style import SHADES, axis, color, margins, symbol
from mkclust.web.words import few, percent, spoken

MOST_IN_LEGEND = 20
LEAST_NAMED = 0.03  # clusters of a smaller share of an axis have no number on it


def embedding(found: Findings) -> str:
    """Draw the samples in the plane, colored by cluster."""
    own = found.labels[found.drawn]
    steady = found.steadiness.samples(found.drawn)
    parts = {"silhouette": found.silhouettes, "stability": steady}
    shown = {name: values for name, values in parts.items() if not np.isnan(values).all()}
    data = []
    for cluster in range(found.n_clusters):
        at = np.flatnonzero(own == cluster)
        columns = [[plot_text(found.ids[i]) for i in found.drawn[at]]]
        columns += [[spoken(value) for value in values[at]] for values in shown.values()]
        lines = [f"{name} %{{customdata[{c + 1}]}}" for c, name in enumerate(shown)]
        if found.y is not None:
            lines.append(f"class %{{customdata[{len(columns)}]}}")
            columns.append([plot_text(value) for value in found.y[found.drawn[at]].tolist()])
        hover = "<br>".join([f"<b>%{{customdata[0]}}</b><br>cluster {cluster}", *lines])
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": f"cluster {cluster}",
                "x": found.plane[at, 0], "y": found.plane[at, 1],
                "customdata": [list(row) for row in zip(*columns, strict=True)],
                "hovertemplate": hover + "<extra></extra>",
                "marker": {
                    "color": color(cluster), "opacity": 0.75,
                    "size": 7 if len(own) <= 800 else 5,
                    "symbol": symbol(cluster),
                },
            }
        )  # fmt: skip
    first, second = found.shares
    layout = {
        "margin": margins(),
        "showlegend": 1 < found.n_clusters <= MOST_IN_LEGEND,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "xaxis": axis(f"first axis ({percent(first)} of the variance)", showticklabels=False),
        "yaxis": axis(f"second axis ({percent(second)})", showticklabels=False, scaleanchor="x"),
    }
    thin = "" if len(own) == found.n_samples else (
        f" Drawn are {len(own):,} of the {found.n_samples:,} samples, some of every cluster."
    )  # fmt: skip
    colors = (
        f" Ten colors, with another shape for every ten clusters, stand for {found.n_clusters} "
        "clusters: hovering tells which."
        if found.n_clusters > len(PALETTE)
        else ""
    )
    summary = (
        f"The two axes show {percent(first + second)} of the variance of the embedding, so that "
        f"clusters which overlap here may be apart in the other directions.{thin}{colors} Hover "
        "over a dot for its sample; drag to zoom, double-click to go back."
    )
    return plot(
        "embedding-plot", data, layout, label="The samples in the plane, colored by cluster",
        summary=summary, height=520, widest=760,
    )  # fmt: skip


def similarities(found: Findings) -> str:
    """Draw the mixed kernel, sorted by cluster."""
    pairs, s = found.similarities, len(found.similarities.samples)
    own = found.labels[pairs.samples]
    others = pairs.entries[~np.eye(s, dtype=bool)]
    # The diagonal, and a few copies of samples, would take all shades for themselves.
    low, high = np.quantile(others, [0.01, 0.99]) if len(others) else (0.0, 1.0)
    names = [
        f"{plot_text(found.ids[i])} (cluster {cluster})"
        for i, cluster in zip(pairs.samples, own.tolist(), strict=True)
    ]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    ends = np.append(starts[1:], s)
    wide = (ends - starts) >= LEAST_NAMED * s
    ticks = {
        "tickvals": ((starts + ends - 1) / 2)[wide],
        "ticktext": [str(cluster) for cluster in own[starts][wide].tolist()],
        "tickangle": 0,
    }
    edges = (starts[1:] - 0.5).tolist() if found.n_clusters <= 40 else []
    line = {"color": "#b4610a", "width": 1}
    layout = {
        "margin": margins(),
        "xaxis": axis("cluster", showgrid=False, constrain="domain", **ticks),
        "yaxis": axis(
            "cluster", showgrid=False, autorange="reversed", scaleanchor="x", constrain="domain",
            **ticks,
        ),
        "shapes": [
            {"type": "line", "x0": at, "x1": at, "y0": -0.5, "y1": s - 0.5, "line": line}
            for at in edges
        ]
        + [
            {"type": "line", "x0": -0.5, "x1": s - 0.5, "y0": at, "y1": at, "line": line}
            for at in edges
        ],
    }  # fmt: skip
    digits = 3 if high - low > 0.05 else 5
    data = [
        {
            "type": "heatmap", "z": np.round(pairs.entries, digits), "zmin": low, "zmax": high,
            "colorscale": SHADES, "pairs": names,
            "colorbar": {"title": {"text": "similarity"}, "thickness": 12, "len": 0.8},
            "hovertemplate": "%{text}<br>similarity %{z:.3f}<extra></extra>",
        }
    ]  # fmt: skip
    thin = "" if s == found.n_samples else (
        f" Drawn are {s} of the {found.n_samples:,} samples, some of every cluster."
    )  # fmt: skip
    apart = ""
    if np.isfinite(pairs.within) and np.isfinite(pairs.between):
        apart = (
            f"Two samples of one cluster have a mean similarity of {few(pairs.within)}, two of "
            f"different clusters {few(pairs.between)}. "
        )
    summary = (
        f"{apart}Shades run from {few(low)} to {few(high)}, which hold {percent(0.98)} of the "
        f"entries off the diagonal.{thin}"
    )
    return plot(
        "similarities-plot", data, layout, label="Similarities of the samples, sorted by cluster",
        summary=summary, height=520, widest=620,
    )  # fmt: skip


def silhouettes(found: Findings) -> str:
    """Draw the silhouettes, cluster by cluster, falling."""
    own = found.labels[found.drawn]
    some = thinned(own, MOST_BARS)
    some = some[np.lexsort((-found.silhouettes[some], own[some]))]
    clusters, values = own[some], found.silhouettes[some]
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    ends = np.append(starts[1:], len(some))
    wide = (ends - starts) >= LEAST_NAMED * len(some)
    data = [
        {
            "type": "bar", "x": list(range(len(some))), "y": values,
            "customdata": [
                [plot_text(found.ids[found.drawn[i]]), cluster]
                for i, cluster in zip(some, clusters.tolist(), strict=True)
            ],
            "marker": {"color": [color(cluster) for cluster in clusters], "line": {"width": 0}},
            "hovertemplate": "<b>%{customdata[0]}</b><br>cluster %{customdata[1]}<br>"
            "silhouette %{y:.2f}<extra></extra>",
        }
    ]  # fmt: skip
    layout = {
        "margin": margins(),
        "bargap": 0,
        "xaxis": axis(
            "samples by cluster", showgrid=False,
            tickvals=((starts + ends - 1) / 2)[wide],
            ticktext=[str(cluster) for cluster in clusters[starts][wide].tolist()],
        ),
        "yaxis": axis("silhouette", zeroline=True, zerolinecolor="#777777"),
    }  # fmt: skip
    below = float((found.silhouettes < 0).mean())
    thin = f" Drawn are {len(some)} of {found.n_samples:,}." if len(some) < found.n_samples else ""
    summary = (
        f"{percent(below)} of the samples have a negative silhouette: they are nearer to another "
        f"cluster than to their own.{thin}"
        if below
        else f"No sample has a negative silhouette.{thin}"
    )
    return plot(
        "silhouettes-plot", data, layout, label="Silhouettes of the samples, cluster by cluster",
        summary=summary, height=300,
    )  # fmt: skip
