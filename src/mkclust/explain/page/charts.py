"""The plots of a fit's page, as plain data that the page's script draws."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.description import Description
from mkclust.explain.fitted import certified_gap, format_gap
from mkclust.explain.page.findings import Findings
from mkclust.methods.agreement import Agreement
from mkclust.plots import BLUE, ORANGE
from mkclust.plots.convergence import relative_gaps
from mkclust.plots.description import FULL_COLOR
from mkclust.text import join_words
from mkclust.web import plot
from mkclust.web.plot import PALE, SHADES, axis, color, margins, plot_text, short
from mkclust.web.words import count_noun, format_number, format_range

# Beyond so many classes or clusters their counts are not written out, nor all of them named.
MOST_COUNTS_WRITTEN, MOST_TICKS = 15, 25
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def weights(findings: Findings) -> str:
    """Draw the weight of each kernel beside its alignment."""
    model = findings.model
    names, m = model.kernel_names_, len(model.kernel_names_)
    places = list(range(m))
    full = [plot_text(name) for name in names]

    def bars(values: Any, shade: str, word: str, axis: str, digits: str) -> dict[str, Any]:
        return {
            "type": "bar", "orientation": "h", "x": values, "y": places, "xaxis": axis,
            "marker": {"color": shade}, "customdata": full, "name": word,
            "hovertemplate": f"%{{customdata}}<br>{word} %{{x:{digits}}}<extra></extra>",
        }  # fmt: skip

    data = [
        bars(model.weights_, ORANGE, "weight", "x", ".3f"),
        bars(model.alignments_, BLUE, "alignment", "x2", ".2f"),
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
    return plot(
        "weights-plot", data, layout, label="Weights and alignments of the kernels, as bars",
        summary=_weights_in_words(model), height=int(np.clip(26 * m + 70, 170, 1400)),
    )  # fmt: skip


def _weights_in_words(model: Any) -> str:
    """Say which weight is the largest, where there are several, and how far alignments run."""
    names, values = model.kernel_names_, model.weights_
    if len(names) == 1:
        return f"The only kernel, {names[0]}, has all of the weight."
    largest = float(np.nanmax(values))
    holders = [name for name, value in zip(names, values, strict=True) if largest - value < 5e-4]
    first = f"The largest weight, {largest:.3f}, is that of {join_words(holders)}."
    if len(holders) == len(names):
        first = f"All weights are {largest:.3f}."
    elif len(holders) > 1:
        first = f"{join_words(holders)} have the largest weight, {largest:.3f} each."
    alignments = model.alignments_[np.isfinite(model.alignments_)]
    if not len(alignments):
        return first
    low, high = alignments.min(), alignments.max()
    if format_range(low, high) == f"{low:.2f}":
        return f"{first} All alignments are {low:.2f}."
    return f"{first} Alignments run from {low:.2f} to {high:.2f}."


def agreement(shared: Agreement) -> str:
    """Draw how much every two views share."""
    m, names = len(shared.names), shared.names
    included = shared.weights() > 0
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
        short(name, 16) if is_included else f"({short(name, 16)})"
        for name, is_included in zip(names, included.tolist(), strict=True)
    ]
    places = list(range(m))[:: -(-m // MOST_TICKS)]
    ticks = {"tickvals": places, "ticktext": [labels[p] for p in places], "showgrid": False}
    layout = {
        "margin": margins(),
        "xaxis": axis("", constrain="domain", **ticks),
        "yaxis": axis("", autorange="reversed", scaleanchor="x", constrain="domain", **ticks),
    }
    others = values[~np.eye(m, dtype=bool)]
    brackets = "" if included.all() else " In brackets: views that were set aside."
    low, high = others.min(), others.max()
    run = f"Alignments of two views run from {low:.2f} to {high:.2f}."
    if format_range(low, high) == f"{low:.2f}":
        run = f"The alignment of {'the' if m == 2 else 'any'} two views is {low:.2f}."
    summary = f"{run}{brackets}"
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
    change = f"stays at {history[0]:.5g}"
    if direction:
        change = f"{direction} from {history[0]:.5g} to {history[-1]:.5g}"
    summary = f"Within {count_noun(len(history) - 1, 'step')} the objective {change}."
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
        summary += (
            f" The certified relative gap between it and the bound ends at {format_gap(gaps[-1])}."
        )
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


def numbers(suggestion: NumberOfClusters, n_clusters: int) -> str:
    """Draw what speaks for each number of clusters, that of the fit marked."""
    values = suggestion.k_values.tolist()
    chosen = [each == n_clusters for each in values]
    curves = {"excess of the silhouette": suggestion.excess, "stability": suggestion.stabilities}
    data = []
    for (name, curve), shade, place in zip(
        curves.items(), (BLUE, "#777777"), ("y", "y2"), strict=True
    ):
        data.append(
            {
                "type": "scatter", "mode": "lines+markers", "x": values, "y": curve, "name": name,
                "yaxis": place, "line": {"color": shade},
                "marker": {
                    "color": [ORANGE if each else shade for each in chosen],
                    "size": [11 if each else 7 for each in chosen],
                },
                "hovertemplate": f"%{{x}} clusters<br>{name} %{{y:.2f}}<extra></extra>",
            }
        )  # fmt: skip
    layout = {
        "margin": margins(),
        "showlegend": False,
        "xaxis": axis("number of clusters", tickvals=values, showgrid=False, anchor="y2"),
        "yaxis": axis("excess", domain=[0.55, 1], nticks=4),
        "yaxis2": axis("stability", domain=[0, 0.45], range=[0, 1.05], nticks=4),
    }
    largest = int(np.nanargmax(suggestion.excess))
    but = "" if suggestion.kind == "clusters" else ", which is no evidence of separate ones"
    summary = (
        "Orange is this fit. The excess of the silhouette over samples without clusters is largest "
        f"for {values[largest]} clusters{but}."
    )
    return plot(
        "numbers-plot", data, layout, label="What speaks for each number of clusters",
        summary=summary, height=300, widest=620,
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
    if len(finite) and f"{finite.max():.2f}" == f"{finite.min():.2f}":
        summary = f"All clusters have a stability of {finite[0]:.2f}."
    elif len(finite):
        summary = (
            f"The least stable cluster is cluster {int(np.nanargmin(values))}, at "
            f"{finite.min():.2f}; the most stable reaches {finite.max():.2f}."
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
