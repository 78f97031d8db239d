"""Plots of a page: plain data that one script draws, and the colors and axes they share."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mkclust.plots import PALETTE
from mkclust.plots.style import shortened
from mkclust.web.words import escape

# Digits of drawn numbers: finer than any screen shows, and a quarter of the bytes.
DIGITS = 4
GRID = "#e6e6e6"
# Light for unlike, dark for alike; its steps are even in lightness.
SHADES = [[0, "#ffffff"], [0.25, "#cfe0ef"], [0.5, "#8db6d8"], [0.75, "#3f7fb5"], [1, "#123a5e"]]
PALE = [[0, "#ffffff"], [1, "#8db6d8"]]  # dark letters are legible on all of it
# With the twelve colors, enough to tell a hundred clusters apart.
SYMBOLS: tuple[str, ...] = ("circle", "square", "diamond", "triangle-up", "cross")
SYMBOLS += ("x", "star", "hexagon", "pentagon", "triangle-down")


def plot(
    name: str,
    data: list[dict[str, Any]],
    layout: Mapping[str, Any],
    *,
    label: str,
    summary: str,
    height: int = 360,
    widest: int | None = None,
) -> str:
    """Return a figure: the plot, a label for who cannot see it, and its summary in words.

    Parameters
    ----------
    name : str
        Its place in the page, unique there.
    data, layout : list of dict, mapping
        Traces and layout as plotly takes them. Texts in them are markup to plotly: pass them
        through `plot_text`.
    label : str
        What is drawn, in a few words.
    summary : str
        What there is to see.
    height : int, default=360
        In pixels.
    widest : int, default=None
        Most pixels across, for what has one scale in both directions; None takes all there are.

    Returns
    -------
    str
    """
    drawn = {"data": data, "layout": dict(layout)}
    # Within a script nothing is markup but its end, which no number or text may spell.
    spec = json.dumps(_plain(drawn), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    limit = "" if widest is None else f";max-width:{widest}px"
    kind = "plot square" if widest else "plot"
    return (
        f'<figure id="{name}"><div class="{kind}" role="img" aria-label="{escape(label)}" '
        f'style="height:{height}px{limit}"></div>'
        f'<script type="application/json">{spec}</script>'
        f"<figcaption>{escape(summary)} "
        f'<button type="button" class="save" hidden aria-label="Save picture: {escape(label)}">'
        "Save picture</button></figcaption></figure>"
    )


def plot_text(value: Any) -> str:
    """Return a text as plotly shows it, letter by letter."""
    plain = "".join(letter if letter.isprintable() else " " for letter in str(value))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def color(cluster: int) -> str:
    """Return the color of a cluster, the same in all plots."""
    return PALETTE[cluster % len(PALETTE)]


def symbol(cluster: int) -> str:
    """Return the shape of a cluster's dots, another where the colors begin again."""
    return SYMBOLS[cluster // len(PALETTE) % len(SYMBOLS)]


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis with a title and faint lines."""
    plain = {"gridcolor": GRID, "zeroline": False, "automargin": True, "fixedrange": False}
    return plain | {"title": {"text": title, "standoff": 10, "font": {"size": 13}}} | more


def margins(top: int = 10) -> dict[str, int]:
    """Return narrow margins; axes make room for their names by themselves."""
    return {"l": 10, "r": 12, "t": top, "b": 10}


def short(name: Any, limit: int = 22) -> str:
    """Return a name as plotly shows it, its middle left out where it is too long for an axis."""
    return plot_text(shortened(name, limit))


def plotting_script() -> str:
    """Return the script that draws, to be embedded in a page once.

    Raises
    ------
    ImportError
        Where plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError(
            'a report needs plotly; install it with: pip install "mkclust[report]"'
        ) from None
    return get_plotlyjs()


def _plain(value: Any) -> Any:
    """Return a value as JSON knows them, numbers short and those that are not finite as null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    return value
