"""What the plots of a fit's page share: colors, axes, margins."""

from typing import Any

from mkclust.plots import PALETTE
from mkclust.web.plot import plot_text

GRID = "#e6e6e6"
# Light for unlike, dark for alike; its steps are even in lightness.
SHADES = [[0, "#ffffff"], [0.25, "#cfe0ef"], [0.5, "#8db6d8"], [0.75, "#3f7fb5"], [1, "#123a5e"]]
PALE = [[0, "#ffffff"], [1, "#8db6d8"]]  # dark letters are legible on all of it
# With the ten colors, enough to tell a hundred clusters apart.
SYMBOLS: tuple[str, ...] = ("circle", "square", "diamond", "triangle-up", "cross")
SYMBOLS += ("x", "star", "hexagon", "pentagon", "triangle-down")


def color(cluster: int) -> str:
    """Return the color of a cluster, the same in all plots."""
    return PALETTE[cluster % len(PALETTE)]


def symbol(cluster: int) -> str:
    """Return the shape of a cluster's dots, another for every ten clusters."""
    return SYMBOLS[cluster // len(PALETTE) % len(SYMBOLS)]


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis with a title and faint lines."""
    plain = {"gridcolor": GRID, "zeroline": False, "automargin": True, "fixedrange": False}
    return plain | {"title": {"text": title, "standoff": 10, "font": {"size": 13}}} | more


def margins(top: int = 10) -> dict[str, int]:
    """Return narrow margins; axes make room for their names by themselves."""
    return {"l": 10, "r": 12, "t": top, "b": 10}


def short(name: Any, limit: int = 22) -> str:
    """Return a name, its middle left out where it is too long for an axis."""
    name, half = str(name), (limit - 1) // 2
    return plot_text(name if len(name) <= limit else f"{name[:half]}…{name[-half:]}")
