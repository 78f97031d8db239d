"""The pictures of a report: SVG with text as text, unique ids and titles."""

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from mkclust import plots
from mkclust.plots.style import Display
from mkclust.text import printable

SVG, HREF = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
# Clusters up to which the features that set them apart are drawn.
MAX_CLUSTERS = 60


class Picture(NamedTuple):
    """A display as SVG, with its caption in words."""

    svg: Markup
    caption: str


def draw_all(data: Any) -> dict[str, Picture]:
    """Return the pictures of a report, by name."""
    model = data.model
    drawn: dict[str, Callable[[Any], Display]] = {
        "map": lambda ax: plots.EmbeddingDisplay.from_estimator(model, ax=ax),
        "weights": lambda ax: plots.KernelWeightsDisplay.from_estimator(model, ax=ax),
        "similarities": lambda ax: plots.SortedKernelDisplay.from_estimator(
            model, data.X, max_samples=240, ax=ax
        ),
    }
    if data.description is not None and model.n_clusters_ <= MAX_CLUSTERS:
        drawn["features"] = data.description.plot
    if data.y is not None:
        drawn["classes"] = plots.ClassesDisplay(labels=data.labels, y=data.y).plot
    if data.suggestion is not None:
        found = data.suggestion
        drawn["numbers"] = lambda ax: plots.NumberOfClustersDisplay.from_suggestion(
            found, ax=ax
        )
        drawn["tree"] = lambda ax: plots.ClusterTreeDisplay.from_suggestion(
            found, ax=ax
        )
    if data.annotation is not None:
        for number, display in enumerate(data.annotation.survival.values()):
            drawn[f"survival-{number}"] = display.plot
    if data.agreement is not None:
        drawn["agreement"] = model.agreement_.plot
    if len(model.history_) > 1:
        drawn["convergence"] = lambda ax: plots.ConvergenceDisplay.from_estimator(
            model, ax=ax
        )
    return {name: _draw(name, plot, data) for name, plot in drawn.items()}


def _draw(name: str, plot: Callable[[Any], Display], data: Any) -> Picture:
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
        if name in ("map", "weights", "agreement"):
            display.ax_.set_xlabel("")
        if name in ("features", "agreement"):
            display.ax_.set_title("", loc="left")
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
    if name == "map":
        dots = root.findall(".//{*}g[@id='samples']//{*}use")
        for dot, sample in zip(dots, display.samples[display.drawn_order], strict=True):
            margin = data.scores.margin[sample]
            words = f"{printable(data.ids[sample])}, cluster {data.labels[sample]}"
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
    return Picture(
        Markup(ElementTree.tostring(root, encoding="unicode")), display.caption
    )
