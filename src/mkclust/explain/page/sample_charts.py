"""The plots of the samples on a fit's page, as plain data that the page's script draws."""

from typing import Any

import numpy as np

from mkclust.explain.page.budget import sample_by_cluster
from mkclust.explain.page.findings import Findings
from mkclust.plots import PALETTE
from mkclust.plots.neighbor_map import CAUTION, SampleMap, amid, spread_names
from mkclust.web import plot
from mkclust.web.plot import SHADES, axis, color, margins, plot_text, symbol
from mkclust.web.words import count_noun, format_number, format_percent, format_short

MOST_NAMED = 20  # clusters that have their number on a map
MAP_PIXELS = (420, 400)  # about the room for the dots of a map
MOST_BARS = 600  # of the plot of silhouettes
LEAST_NAMED = 0.03  # clusters of a smaller share of an axis have no number on it
WHOLE = 0.995  # from this share of the variance on, a plane holds all of it but a rest


def embedding(findings: Findings, placed: SampleMap) -> str:
    """Draw the samples where they are placed, colored by cluster."""
    labels = findings.labels[findings.drawn]
    stabilities = findings.resampling.samples(findings.drawn)
    measures = {"silhouette": findings.silhouettes, "stability": stabilities}
    shown = {name: values for name, values in measures.items() if not np.isnan(values).all()}
    data = [
        _dots(findings, placed, cluster, np.flatnonzero(labels == cluster), shown)
        for cluster in range(findings.n_clusters)
    ]
    first, second = _axes_of(placed)
    is_plane = placed.method == "plane"
    plain = {"showticklabels": False, "showgrid": is_plane}
    layout = {
        "margin": margins(),
        "showlegend": False,  # clusters are named amid their dots
        "hovermode": "closest",
        "xaxis": axis(first, **plain),
        "yaxis": axis(second, scaleanchor="x", **plain),
        "annotations": _cluster_names(findings, placed, labels),
    }
    note = _drawn_note(len(labels), findings)
    colors = (
        f" {len(PALETTE)} colors, with another shape for every {len(PALETTE)} clusters, stand for "
        f"{findings.n_clusters} clusters: hovering tells which."
        if findings.n_clusters > len(PALETTE)
        else ""
    )
    summary = (
        f"{_caution(placed)}{note}{colors} Hover over a dot for its sample; drag to zoom, "
        "double-click to go back."
    )
    where = "in the plane of the widest spread" if is_plane else "on a map of neighbors"
    return plot(
        "plane-plot" if is_plane else "embedding-plot", data, layout, summary=summary, height=500,
        label=f"The samples {where}, colored by cluster",
    )  # fmt: skip


def _axes_of(placed: SampleMap) -> tuple[str, str]:
    """Return the names of the axes; those of a map of neighbors mean nothing, and have none."""
    if placed.method == "neighbors":
        return "", ""
    first, second = map(format_percent, placed.shares)
    return f"first axis ({first} of the variance)", f"second axis ({second})"


def _caution(placed: SampleMap) -> str:
    """Return what positions do not say."""
    if placed.method == "neighbors":
        return CAUTION
    share = float(placed.shares.sum())
    if share >= WHOLE:
        return "The two axes show the variance of the embedding, and hardly any is left over."
    return (
        f"The two axes show {format_percent(share)} of the variance of the embedding: clusters "
        "which overlap here may be apart in the other directions."
    )


def _cluster_names(
    findings: Findings, placed: SampleMap, labels: np.ndarray
) -> list[dict[str, Any]]:
    """Return the number and size of each cluster amid its dots, unless there are too many."""
    clusters, points = np.unique(labels).tolist(), placed.points
    if len(clusters) > MOST_NAMED:
        return []
    texts = [f"{cluster} ({findings.sizes[cluster]:,})" for cluster in clusters]
    centers = np.array([amid(points[labels == cluster]) for cluster in clusters])
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes: the pixels of a unit, and of letters.
    unit = (np.array(MAP_PIXELS) / np.maximum(high - low, 1e-9)).min()
    boxes = np.array([[8 * len(text) + 4, 20] for text in texts]) / unit
    corners = np.array([low - boxes.max(axis=0), high + boxes.max(axis=0)])
    places = spread_names(centers, boxes, corners)
    look = {"showarrow": False, "bgcolor": "rgba(255,255,255,0.7)", "borderpad": 1}
    look["font"] = {"size": 13, "color": "#222222"}
    return [
        {"x": x, "y": y, "text": f"<b>{text.replace(' ', '</b> ')}", **look}
        for text, (x, y) in zip(texts, places.tolist(), strict=True)
    ]


def _dots(
    findings: Findings,
    placed: SampleMap,
    cluster: int,
    places: np.ndarray,
    shown: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Return the dots of one cluster, which are at some places among those that are drawn."""
    samples = findings.drawn[places]
    columns = [[plot_text(findings.ids[i]) for i in samples]]
    columns += [[format_number(value) for value in values[places]] for values in shown.values()]
    lines = [f"{name} %{{customdata[{c + 1}]}}" for c, name in enumerate(shown)]
    if findings.y is not None:
        lines.append(f"class %{{customdata[{len(columns)}]}}")
        columns.append([plot_text(value) for value in findings.y[samples].tolist()])
    hover = "<br>".join([f"<b>%{{customdata[0]}}</b><br>cluster {cluster}", *lines])
    return {
        "type": "scatter", "mode": "markers", "name": f"cluster {cluster}",
        "x": placed.points[places, 0], "y": placed.points[places, 1],
        "customdata": [list(row) for row in zip(*columns, strict=True)],
        "hovertemplate": hover + "<extra></extra>",
        "marker": {
            "color": color(cluster), "opacity": 0.75,
            "size": 7 if len(findings.drawn) <= 800 else 5,
            "symbol": symbol(cluster),
        },
    }  # fmt: skip


def similarities(findings: Findings) -> str:
    """Draw the mixed kernel, sorted by cluster."""
    pairs, s = findings.similarities, len(findings.similarities.samples)
    labels = findings.labels[pairs.samples]
    others = pairs.entries[~np.eye(s, dtype=bool)]
    # The diagonal, and a few copies of samples, would take all shades for themselves.
    low, high = np.quantile(others, [0.01, 0.99]) if len(others) else (0.0, 1.0)
    names = [
        f"{plot_text(findings.ids[i])} (cluster {cluster})"
        for i, cluster in zip(pairs.samples, labels.tolist(), strict=True)
    ]
    ticks = _cluster_ticks(labels) | {"tickangle": 0}
    edges = (np.flatnonzero(np.diff(labels)) + 0.5).tolist() if findings.n_clusters <= 40 else []
    borders = [(at, at, -0.5, s - 0.5) for at in edges]
    borders += [(-0.5, s - 0.5, at, at) for at in edges]
    line = {"color": "#b4610a", "width": 1}
    layout = {
        "margin": margins(),
        "xaxis": axis("cluster", showgrid=False, constrain="domain", **ticks),
        "yaxis": axis(
            "cluster", showgrid=False, autorange="reversed", scaleanchor="x", constrain="domain",
            **ticks,
        ),
        "shapes": [
            {"type": "line", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}
            for x0, x1, y0, y1 in borders
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
    note = _drawn_note(s, findings)
    apart = ""
    if np.isfinite(pairs.within) and np.isfinite(pairs.between):
        apart = (
            f"Two samples of one cluster have a mean similarity of {format_short(pairs.within)}, "
            f"two of different clusters {format_short(pairs.between)}. "
        )
    summary = (
        f"{apart}Shades run from {format_short(low)} to {format_short(high)}, which hold "
        f"{format_percent(0.98)} of the entries off the diagonal.{note}"
    )
    return plot(
        "similarities-plot", data, layout, label="Similarities of the samples, sorted by cluster",
        summary=summary, height=520, widest=620,
    )  # fmt: skip


def _drawn_note(count: int, findings: Findings) -> str:
    """Say how many samples are drawn where not all are."""
    n = findings.n_samples
    some = f" Drawn are {count:,} of the {n:,} samples, some of every cluster."
    return "" if count == n else some


def _cluster_ticks(labels: np.ndarray) -> dict[str, Any]:
    """Return the ticks of an axis of sorted samples: the clusters that have room for a number."""
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    ends = np.append(starts[1:], len(labels))
    wide = (ends - starts) >= LEAST_NAMED * len(labels)
    names = [str(cluster) for cluster in labels[starts][wide].tolist()]
    return {"tickvals": ((starts + ends - 1) / 2)[wide], "ticktext": names}


def silhouettes(findings: Findings) -> str:
    """Draw the silhouettes, cluster by cluster, falling."""
    labels = findings.labels[findings.drawn]
    some = sample_by_cluster(labels, MOST_BARS)
    some = some[np.lexsort((-findings.silhouettes[some], labels[some]))]
    clusters, values = labels[some], findings.silhouettes[some]
    data = [
        {
            "type": "bar", "x": list(range(len(some))), "y": values,
            "customdata": [
                [plot_text(findings.ids[findings.drawn[i]]), cluster]
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
        "xaxis": axis("samples by cluster", showgrid=False, **_cluster_ticks(clusters)),
        "yaxis": axis("silhouette", zeroline=True, zerolinecolor="#777777"),
    }
    below = int((findings.silhouettes < 0).sum())
    note = (
        f" Drawn are {len(some)} of {count_noun(findings.n_samples, 'sample')}."
        if len(some) < findings.n_samples
        else ""
    )
    verb, they, their = ("has", "it is", "its") if below == 1 else ("have", "they are", "their")
    summary = (
        f"{below:,} of {count_noun(len(labels), 'sample')} {verb} a negative silhouette: {they} "
        f"nearer to another cluster than to {their} own.{note}"
        if below
        else f"No sample has a negative silhouette.{note}"
    )
    return plot(
        "silhouettes-plot", data, layout, label="Silhouettes of the samples, cluster by cluster",
        summary=summary, height=300,
    )  # fmt: skip
