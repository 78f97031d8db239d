"""The pictures of a report: SVG with text as text, unique ids and titles."""

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from mkclust import plots
from mkclust.explain.annotation import SMALL_P, Annotation
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.report.blocks import Picture
from mkclust.explain.report.collect import ReportData
from mkclust.fit import MultipleKernelClusterer
from mkclust.plots.heatmap import has_features
from mkclust.plots.style import Display
from mkclust.text import printable

Plot = Callable[[Any], Display]

SVG, HREF = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
# Variables that differ and are drawn.
MOST_VARIABLES = 6
# Features in the heat map.
N_FEATURES = 24


def draw_all(data: ReportData) -> dict[str, Picture]:
    """Return the pictures of a report, by name."""
    pictures = dict[str, Picture]()
    for name, plot in _plots(data):
        # Names of variables may hold anything, names in a page may not.
        key = re.sub(r"[^a-z-]", "-", name.split(" ")[0]) + f"-{len(pictures)}"
        pictures[name] = _draw(key, plot, data)
    return pictures


def _plots(data: ReportData) -> Iterator[tuple[str, Plot]]:
    """Yield the displays of a report by their names, as functions of the axes."""
    yield from _of_clusters(data)
    if data.annotation is not None:
        for name in data.annotation.survival:
            yield f"survival {name}", partial(data.annotation.plot, name)
        for name in _that_differ(data.annotation):
            yield f"variable {name}", partial(data.annotation.plot, name)
    if data.suggestion is not None:
        for name, display in (
            ("numbers", plots.NumberOfClustersDisplay),
            ("tree", plots.ClusterTreeDisplay),
        ):
            yield name, partial(_from_suggestion, display, data.suggestion)
    yield from _of_views(data)


def _of_clusters(data: ReportData) -> Iterator[tuple[str, Plot]]:
    """Yield the displays of the clusters and their samples."""
    if data.description is not None and _has_heatmap(data):
        yield "heatmap", partial(_heatmap, data)
    if data.separation is not None:
        yield "separation", data.separation.plot
    yield "map", partial(_from_model, plots.EmbeddingDisplay, data.model)
    if data.y is not None:
        display = plots.ClassesDisplay(labels=data.labels, y=data.y, names=data.names)
        yield "classes", display.plot


def _of_views(data: ReportData) -> Iterator[tuple[str, Plot]]:
    """Yield the displays of the views, and of how the model found its solution."""
    model = data.model
    if not data.has_equal_weights:
        yield "weights", partial(_from_model, plots.KernelWeightsDisplay, model)
    if data.agreement is not None:
        yield "agreement", data.agreement.plot
    yield "similarities", partial(_similarities, model, data.X)
    if len(model.history_) > 1:
        yield "convergence", partial(_from_model, plots.ConvergenceDisplay, model)


def _heatmap(data: ReportData, ax: Any) -> Display:
    """Draw the samples by the features that set clusters apart."""
    return plots.HeatmapDisplay.from_estimator(
        data.model, data.X, annotation=data.annotation, n_features=N_FEATURES, ax=ax
    )


def _has_heatmap(data: ReportData) -> bool:
    """Return whether any view has features in memory."""
    samples = data.model._source.read(data.model, data.X)
    return samples.kind != "kernels" and any(
        has_features(part, samples.n_samples) for part in samples.parts
    )


def _that_differ(annotation: Annotation) -> list[str]:
    """Return the variables that differ most, but for survival."""
    tests = annotation.table[annotation.table["p_adjusted"] < SMALL_P]
    tests = tests.sort_values("p_adjusted", kind="stable")
    names = [name for name in tests["variable"] if name in annotation.values]
    return names[:MOST_VARIABLES]


def _from_model(
    display: type[Display], model: MultipleKernelClusterer, ax: Any
) -> Display:
    """Draw a model."""
    return display.from_estimator(model, ax=ax)


def _from_suggestion(display: Any, found: NumberOfClusters, ax: Any) -> Display:
    """Draw how numbers of clusters compare."""
    return display.from_suggestion(found, ax=ax)


def _similarities(model: MultipleKernelClusterer, X: Any, ax: Any) -> Display:
    """Draw the similarities of some samples."""
    return plots.SortedKernelDisplay.from_estimator(model, X, max_samples=240, ax=ax)


def _draw(name: str, plot: Plot, data: ReportData) -> Picture:
    """Return what a function draws, as SVG whose ids begin with a name."""
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.sans-serif": ["DejaVu Sans"],
    }
    file = io.BytesIO()
    with matplotlib.rc_context(style):
        figure = Figure(layout="constrained")
        display: Any = plot(figure.subplots())
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
    }
    # Smaller text cannot be read.
    root.attrib["style"] = f"min-width: {0.65 * width:.0f}px"
    del root.attrib["height"]
    if name.startswith("map"):
        dots = root.findall(".//{*}g[@id='samples']//{*}use")
        for dot, sample in zip(dots, display.samples[display.drawn_order], strict=True):
            margin = data.scores.margin[sample]
            title = data.titles[data.labels[sample]]
            words = f"{printable(data.ids[sample])}, cluster {title}"
            words += f", margin {margin:.2f}" if np.isfinite(margin) else ""
            # Which browsers show.
            ElementTree.SubElement(dot, f"{{{SVG}}}title").text = words
    for element in root.iter():
        if HREF in element.attrib:
            element.attrib["href"] = element.attrib.pop(HREF)
        for key, value in element.attrib.items():
            if key == "id":
                value = f"{name}-{value}"

            element.attrib[key] = re.sub(
                r"^#(?=[^#]*$)|(?<=url\()#", f"#{name}-", value
            )
    svg = Markup(ElementTree.tostring(root, encoding="unicode"))
    return Picture(name, svg, display.caption)
