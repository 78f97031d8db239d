"""Plots of the kernels and of the solver."""

from typing import Any

import numpy as np

from mkclust.explain.page.findings import Findings
from mkclust.plots import BLUE, ORANGE
from mkclust.web import plot
from mkclust.web.plot import plot_text
from mkclust.web.style import axis, margins, short


def weights(found: Findings) -> str:
    """Draw the weight of each kernel beside its alignment."""
    model = found.model
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
    known = model.alignments_[np.isfinite(model.alignments_)]
    spread = f" Alignments run from {known.min():.2f} to {known.max():.2f}." if len(known) else ""
    summary = (
        f"The largest weight, {model.weights_[largest]:.3f}, is that of {names[largest]}."
        f"{spread if m > 1 else ''}"
    )
    return plot(
        "weights-plot", data, layout, label="Weights and alignments of the kernels, as bars",
        summary=summary, height=int(np.clip(26 * m + 70, 170, 1400)),
    )  # fmt: skip


def convergence(found: Findings) -> str:
    """Draw the objective over the iterations, and what is certified below or beside it."""
    model = found.model
    history = np.asarray(model.history_, dtype=float)
    steps, bounds = list(range(len(history))), getattr(model, "lower_bounds_", None)
    mode = "lines+markers" if len(history) <= 60 else "lines"
    margin, every = 0.03 * (len(history) - 1), -(-len(history) // 10)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "x": steps, "y": history, "mode": mode, "name": "objective",
            "line": {"color": BLUE},
            "hovertemplate": "step %{x}: %{y:.6g}<extra>objective</extra>",
        }
    ]  # fmt: skip
    layout: dict[str, Any] = {
        "margin": margins(),
        "showlegend": bounds is not None,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": axis("step", range=[-margin, len(history) - 1 + margin], dtick=every),
        "yaxis": axis("objective"),
    }
    direction = "falls" if history[-1] < history[0] else "rises" if history[-1] > history[0] else ""
    moved = f"{direction} from {history[0]:.5g} to {history[-1]:.5g}" if direction else "stays"
    summary = f"Within {len(history) - 1} steps the objective {moved}."
    height = 300
    if bounds is not None:
        lower = np.where(np.isfinite(bounds), bounds, np.nan).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = np.maximum(history - lower, 0) / np.abs(history)
        gaps[-1] = model.duality_gap_
        data += [
            {
                "type": "scatter", "x": steps, "y": lower, "mode": mode,
                "name": "certified lower bound", "line": {"color": ORANGE},
                "hovertemplate": "step %{x}: %{y:.6g}<extra>lower bound</extra>",
            },
            {
                "type": "scatter", "x": steps, "y": np.where(gaps > 0, gaps, np.nan), "mode": mode,
                "name": "relative gap", "line": {"color": "#444444"}, "yaxis": "y2",
                "showlegend": False,
                "hovertemplate": "step %{x}: %{y:.1e}<extra>relative gap</extra>",
            },
        ]  # fmt: skip
        layout["yaxis"]["domain"] = [0.46, 1]
        layout["yaxis2"] = axis("relative gap", domain=[0, 0.38], type="log", exponentformat="e")
        layout["yaxis2"]["nticks"] = 5
        layout["xaxis"]["anchor"] = "y2"
        summary += f" The certified relative gap between it and the bound ends at {gaps[-1]:.1e}."
        height = 440
    return plot(
        "convergence-plot", data, layout, label="The objective at each step of the solver",
        summary=summary, height=height,
    )  # fmt: skip
