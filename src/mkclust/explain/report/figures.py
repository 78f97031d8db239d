"""The pictures of a report: SVG with text as text, unique ids and titles."""

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from mkclust import plots
from mkclust.explain.annotation import SMALL_P
from mkclust.explain.report.blocks import Block
from mkclust.explain.report.collect import ReportData
from mkclust.plots.heatmap import has_features
from mkclust.text import printable

Plot = Callable[..., Any]

SVG, HREF = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
# Variables that differ and are drawn.
MOST_VARIABLES = 6


def draw_all(data: ReportData) -> dict[str, Block]:
    """Return the pictures of a report, by name."""
    pictures = dict[str, Block]()
    for name, plot in chain(_of_clusters(data), _of_views(data)):
        # Names of variables may hold anything, names in a page may not.
        key = re.sub(r"[^a-z-]", "-", name.split(" ")[0]) + f"-{len(pictures)}"
        pictures[name] = _draw(key, plot, data)
    return pictures


def _of_clusters(data: ReportData) -> Iterator[tuple[str, Plot]]:
    """Yield the displays of the clusters by their names, as functions of the axes."""
    model = data.model
    found = data.annotation
    samples = model._source.read(model, data.X)
    has_columns = samples.kind != "kernels" and any(
        has_features(part, samples.n_samples) for part in samples.parts
    )
    if data.description is not None and has_columns:
        options: Any = {"annotation": found, "n_features": 24}
        draw = plots.HeatmapDisplay.from_estimator
        yield "heatmap", partial(draw, model, data.X, **options)
    if data.separation is not None:
        yield "separation", data.separation.plot
    yield "map", partial(plots.EmbeddingDisplay.from_estimator, model)
    if data.y is not None:
        display = plots.ClassesDisplay(
            labels=data.labels,
            y=data.y,
            names=data.names,
        )
        yield "classes", display.plot
    if found is not None:
        small = found.table[found.table["p_adjusted"] < SMALL_P]
        differ = small.sort_values("p_adjusted", kind="stable")["variable"]
        drawn = [name for name in differ if name in found.values][:MOST_VARIABLES]
        for name in found.survival:
            yield f"survival {name}", partial(found.plot, name)
        for name in drawn:
            yield f"variable {name}", partial(found.plot, name)
    if data.suggestion is not None:
        draw_numbers = plots.NumberOfClustersDisplay.from_suggestion
        yield "numbers", partial(draw_numbers, data.suggestion)
        yield "tree", partial(plots.ClusterTreeDisplay.from_suggestion, data.suggestion)


def _of_views(data: ReportData) -> Iterator[tuple[str, Plot]]:
    """Yield the displays of the views, and of how the model found its solution."""
    model = data.model
    if not data.has_equal_weights:
        yield "weights", partial(plots.KernelWeightsDisplay.from_estimator, model)
    if data.agreement is not None:
        yield "agreement", data.agreement.plot
    draw = plots.SortedKernelDisplay.from_estimator
    yield "similarities", partial(draw, model, data.X, max_samples=240)
    if len(model.history_) > 1:
        yield "convergence", partial(plots.ConvergenceDisplay.from_estimator, model)


def _draw(name: str, plot: Plot, data: ReportData) -> Block:
    """Return what a function draws, as SVG whose ids begin with a name."""
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.sans-serif": ["DejaVu Sans"],
    }
    file = io.BytesIO()
    with matplotlib.rc_context(style):
        figure = Figure(layout="constrained")
        display = plot(ax=figure.subplots())
        figure.set_size_inches(display.figsize)
        # What the page says next to the picture.
        if name.startswith(("map", "weights", "agreement", "similarities")):
            display.ax_.set_xlabel("")
        figure.savefig(file, format="svg", metadata={"Date": None})
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(file.getvalue())
    for child in [*root.findall("{*}metadata"), *root.findall("{*}defs/{*}style/..")]:
        root.remove(child)
    width = 96 * display.figsize[0]
    root.attrib |= {
        "role": "img",
        "aria-labelledby": f"{name}-caption",
        "width": f"{width:.0f}",
        # Smaller text cannot be read.
        "style": f"min-width: {0.65 * width:.0f}px",
    }
    del root.attrib["height"]
    if name.startswith("map"):
        dots = root.findall(".//{*}g[@id='samples']//{*}use")
        for dot, sample in zip(dots, display.samples[display.drawn_order], strict=True):
            title = data.titles[data.labels[sample]]
            words = f"{printable(data.ids[sample])}, cluster {title}"
            margin = data.scores.margin[sample]
            if np.isfinite(margin):
                words += f", margin {margin:.2f}"
            # Which browsers show.
            ElementTree.SubElement(dot, f"{{{SVG}}}title").text = words
    for element in root.iter():
        if HREF in element.attrib:
            element.attrib["href"] = element.attrib.pop(HREF)
        if "id" in element.attrib:
            element.attrib["id"] = f"{name}-{element.attrib['id']}"
        for key, value in element.attrib.items():
            linked = re.sub(r"^#(?=[^#]*$)|(?<=url\()#", f"#{name}-", value)
            element.attrib[key] = linked
    svg = Markup(ElementTree.tostring(root, encoding="unicode"))
    return Block("picture", svg, display.caption, name)
