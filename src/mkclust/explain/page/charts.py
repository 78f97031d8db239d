"""The plots of a fit's page, as plain data that the page's script draws."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.explain.description import Description
from mkclust.explain.fitted import certified_gap
from mkclust.explain.page.budget import sample_by_cluster
from mkclust.explain.page.findings import Findings
from mkclust.methods.agreement import Agreement
from mkclust.plots import BLUE, ORANGE, PALETTE
from mkclust.plots.convergence import relative_gaps
from mkclust.plots.description import FULL_COLOR
from mkclust.plots.neighbor_map import CAUTION, SampleMap, amid, spread_names
from mkclust.web import plot
from mkclust.web.plot import PALE, SHADES, axis, color, margins, plot_text, short, symbol
from mkclust.web.words import format_number, format_percent, format_short

MOST_IN_LEGEND = 20
MAP_PIXELS = (700, 400)  # about the room for the dots of the embedding
MOST_BARS = 600  # of the plot of silhouettes
LEAST_NAMED = 0.03  # clusters of a smaller share of an axis have no number on it
# Beyond so many classes or clusters their counts are not written out, nor all of them named.
MOST_COUNTS_WRITTEN, MOST_TICKS = 15, 25
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def weights(findings: Findings) -> str:
    """Draw the weight of each kernel beside its alignment."""
    model = findings.model
    names, m = model.kernel_names_, len(model.kernel_names_)
    places = list(range(m))
    full = [plot_text(name) for name in names]

    def bars(values: Any, shade: str, word: str, axis: str) -> dict[str, Any]:
        return {
            "type": "bar", "orientation": "h", "x": values, "y": places, "xaxis": axis,
            "marker": {"color": shade}, "customdata": full, "name": word,
            "hovertemplate": f"%{{customdata}}<br>{word} %{{x:.3f}}<extra></extra>",
        }  # fmt: skip

    data = [
        bars(model.weights_, ORANGE, "weight", "x"),
        bars(model.alignments_, BLUE, "alignment", "x2"),
    ]
    ticks = {"tickvals": places, "ticktext": [short(name) for name in names]}
    layout = {
        "showlegend": False,
        "margin": margins(),
        "bargap": 0.3,
        "xaxis": axis("weight", domain=[0, 0.48], rangemode="tozero", nticks=5),
        "xaxis2": axis("alignment", domain=[0.54, 1], range=[0, 1.02], nticks=5),
        "yaxis": axis("", range=[m - 0.4, -0.6], showgrid=False, **ticks),
    }
    largest = int(np.nanargmax(model.weights_))
    alignments = model.alignments_[np.isfinite(model.alignments_)]
    spread = (
        f" Alignments run from {alignments.min():.2f} to {alignments.max():.2f}."
        if len(alignments)
        else ""
    )
    summary = (
        f"The largest weight, {model.weights_[largest]:.3f}, is that of {names[largest]}."
        f"{spread if m > 1 else ''}"
    )
    return plot(
        "weights-plot", data, layout, label="Weights and alignments of the kernels, as bars",
        summary=summary, height=int(np.clip(26 * m + 70, 170, 1400)),
    )  # fmt: skip


def agreement(shared: Agreement) -> str:
    """Draw how much every two views share."""
    m, names = len(shared.names), shared.names
    heard = shared.weights() > 0
    full = [plot_text(name) for name in names]
    values = np.round(shared.alignments, 2) + 0.0
    small = m <= MOST_COUNTS_WRITTEN
    trace: dict[str, Any] = {
        "type": "heatmap", "z": values, "zmin": 0, "zmax": 1,
        "colorscale": PALE if small else SHADES,
        "customdata": [[f"{a} and {b}" for b in full] for a in full],
        "colorbar": {"title": {"text": "alignment"}, "thickness": 12, "len": 0.8},
        "showscale": not small,  # the numbers are written into the cells
        "hovertemplate": "%{customdata}<br>alignment %{z:.2f}<extra></extra>",
    }  # fmt: skip
    if small:
        trace |= {"texttemplate": "%{z:.2f}", "textfont": {"color": "#222222"}}
        trace |= {"xgap": 1, "ygap": 1}
    labels = [
        short(name, 16) if voice else f"({short(name, 16)})"
        for name, voice in zip(names, heard.tolist(), strict=True)
    ]
    places = list(range(m))[:: -(-m // MOST_TICKS)]
    ticks = {"tickvals": places, "ticktext": [labels[p] for p in places], "showgrid": False}
    layout = {
        "margin": margins(),
        "xaxis": axis("", constrain="domain", **ticks),
        "yaxis": axis("", autorange="reversed", scaleanchor="x", constrain="domain", **ticks),
    }
    others = values[~np.eye(m, dtype=bool)]
    brackets = "" if heard.all() else " In brackets: no voice among the views that agree."
    summary = (
        f"Alignments of two views run from {others.min():.2f} to {others.max():.2f}.{brackets}"
    )
    return plot(
        "agreement-plot", [trace], layout, label="How much every two views share, as a matrix",
        summary=summary, height=int(np.clip(48 * m + 110, 220, 600)), widest=620,
    )  # fmt: skip


def features(description: Description, n_features: int) -> str:
    """Draw how clusters differ in the strongest features of each."""
    keys, titles = description.drawn(n_features)
    k, full = len(description.sizes), [plot_text(title) for title in titles]
    values = np.array([description.profiles[key] for key in keys])
    small = k <= MOST_COUNTS_WRITTEN
    trace: dict[str, Any] = {
        "type": "heatmap", "z": values, "zmid": 0, "zmin": -FULL_COLOR, "zmax": FULL_COLOR,
        "colorscale": [[0, ORANGE], [0.5, "#ffffff"], [1, "#6f9fc8"]], "xgap": 1, "ygap": 1,
        "customdata": [[title] * k for title in full],
        "colorbar": {"title": {"text": "deviations"}, "thickness": 12, "len": 0.8},
        "hovertemplate": "%{customdata}<br>cluster %{x}<br>%{z:.2f} standard deviations from the "
        "rest<extra></extra>",
    }  # fmt: skip
    if small:
        trace |= {"texttemplate": "%{z:.1f}", "textfont": {"color": "#222222"}}
    places = list(range(len(keys)))
    ticks = {"tickvals": places, "ticktext": [short(title, 30) for title in titles]}
    clusters = list(range(k))[:: -(-k // MOST_TICKS)]
    layout = {
        "margin": margins(),
        "xaxis": axis("cluster", tickvals=clusters, ticktext=clusters, showgrid=False),
        "yaxis": axis("", autorange="reversed", showgrid=False, **ticks),
    }
    row, cluster = np.unravel_index(np.nanargmax(np.abs(values)), values.shape)
    summary = (
        f"Blue is above the rest, orange below. The largest difference, "
        f"{format_number(float(values[row, cluster]))} standard deviations, is that of cluster "
        f"{cluster} in {titles[row]}."
    )
    return plot(
        "features-plot", [trace], layout, label="Features by cluster, as a matrix",
        summary=summary, height=int(np.clip(24 * len(keys) + 90, 200, 1400)),
    )  # fmt: skip


def convergence(findings: Findings) -> str:
    """Draw the objective over the iterations, and what is certified below or beside it."""
    model = findings.model
    history = np.asarray(model.history_, dtype=float)
    bounds = getattr(model, "lower_bounds_", None)
    margin, every = 0.03 * (len(history) - 1), -(-len(history) // 10)
    data = [_steps(history, "objective", BLUE, "objective", ".6g")]
    layout: dict[str, Any] = {
        "margin": margins(),
        "showlegend": bounds is not None,
        "legend": LEGEND,
        "xaxis": axis("step", range=[-margin, len(history) - 1 + margin], dtick=every),
        "yaxis": axis("objective"),
    }
    direction = "falls" if history[-1] < history[0] else "rises" if history[-1] > history[0] else ""
    change = f"{direction} from {history[0]:.5g} to {history[-1]:.5g}" if direction else "stays"
    summary = f"Within {len(history) - 1} steps the objective {change}."
    if bounds is not None:
        lower = np.where(np.isfinite(bounds), bounds, np.nan).astype(float)
        gaps = relative_gaps(history, lower, certified_gap(model))
        positive = np.where(gaps > 0, gaps, np.nan)
        below = {"yaxis": "y2", "showlegend": False}
        data += [
            _steps(lower, "certified lower bound", ORANGE, "lower bound", ".6g"),
            _steps(positive, "relative gap", "#444444", "relative gap", ".1e", **below),
        ]
        layout["yaxis"]["domain"] = [0.46, 1]
        layout["yaxis2"] = axis("relative gap", domain=[0, 0.38], type="log", exponentformat="e")
        layout["yaxis2"]["nticks"] = 5
        layout["xaxis"]["anchor"] = "y2"
        summary += f" The certified relative gap between it and the bound ends at {gaps[-1]:.1e}."
    return plot(
        "convergence-plot", data, layout, label="The objective at each step of the solver",
        summary=summary, height=300 if bounds is None else 440,
    )  # fmt: skip


def _steps(
    values: np.ndarray, name: str, shade: str, short_name: str, form: str, **more: Any
) -> dict[str, Any]:
    """Return a curve of one value a step."""
    return {
        "type": "scatter", "x": list(range(len(values))), "y": values,
        "mode": "lines+markers" if len(values) <= 60 else "lines", "name": name,
        "line": {"color": shade}, **more,
        "hovertemplate": f"step %{{x}}: %{{y:{form}}}<extra>{short_name}</extra>",
    }  # fmt: skip


def embedding(findings: Findings) -> str:
    """Draw the samples on a map, colored by cluster."""
    labels = findings.labels[findings.drawn]
    stabilities = findings.resampling.samples(findings.drawn)
    measures = {"silhouette": findings.silhouettes, "stability": stabilities}
    shown = {name: values for name, values in measures.items() if not np.isnan(values).all()}
    data = [
        _dots(findings, cluster, np.flatnonzero(labels == cluster), shown)
        for cluster in range(findings.n_clusters)
    ]
    first, second = _axes_of(findings.placed)
    plain = {"showticklabels": False, "showgrid": findings.placed.method == "plane"}
    layout = {
        "margin": margins(),
        "showlegend": 1 < findings.n_clusters <= MOST_IN_LEGEND,
        "legend": LEGEND,
        "hovermode": "closest",
        "xaxis": axis(first, **plain),
        "yaxis": axis(second, scaleanchor="x", **plain),
        "annotations": _cluster_names(findings, labels),
    }
    note = _drawn_note(len(labels), findings)
    colors = (
        f" {len(PALETTE)} colors, with another shape for every {len(PALETTE)} clusters, stand for "
        f"{findings.n_clusters} clusters: hovering tells which."
        if findings.n_clusters > len(PALETTE)
        else ""
    )
    summary = (
        f"{_caution(findings.placed)}{note}{colors} Hover over a dot for its sample; drag to zoom, "
        "double-click to go back."
    )
    return plot(
        "embedding-plot", data, layout, label="The samples on a map, colored by cluster",
        summary=summary, height=520, widest=760,
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
    return (
        f"The two axes show {format_percent(placed.shares.sum())} of the variance of the "
        "embedding, so that clusters which overlap here may be apart in the other directions."
    )


def _cluster_names(findings: Findings, labels: np.ndarray) -> list[dict[str, Any]]:
    """Return the number and size of each cluster amid its dots, unless there are too many."""
    clusters, points = np.unique(labels).tolist(), findings.placed.points
    if len(clusters) > MOST_IN_LEGEND:
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
    findings: Findings, cluster: int, places: np.ndarray, shown: dict[str, np.ndarray]
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
        "x": findings.placed.points[places, 0], "y": findings.placed.points[places, 1],
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
    below = float((findings.silhouettes < 0).mean())
    note = (
        f" Drawn are {len(some)} of {findings.n_samples:,}."
        if len(some) < findings.n_samples
        else ""
    )
    summary = (
        f"{format_percent(below)} of the samples have a negative silhouette: they are nearer to "
        f"another cluster than to their own.{note}"
        if below
        else f"No sample has a negative silhouette.{note}"
    )
    return plot(
        "silhouettes-plot", data, layout, label="Silhouettes of the samples, cluster by cluster",
        summary=summary, height=300,
    )  # fmt: skip


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
    finite = values[np.isfinite(values)]
    summary = "No cluster's stability is known."
    if len(finite) and finite.max() - finite.min() < 0.005:
        summary = f"All clusters have a stability of {finite[0]:.2f}."
    elif len(finite):
        summary = (
            f"The least stable cluster is {int(np.nanargmin(values))}, at {finite.min():.2f}; the "
            f"most stable reaches {finite.max():.2f}."
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
    columns, rows = (slice(None, None, -(-len(ticks) // MOST_TICKS)) for ticks in (across, down))
    layout = {
        "margin": margins(),
        "xaxis": axis(
            "given class", showgrid=False, type="category", tickvals=across[columns],
            ticktext=[short(name, 12) for name in names[columns]],
        ),
        "yaxis": axis(
            "cluster", showgrid=False, type="category", autorange="reversed", tickvals=down[rows]
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
