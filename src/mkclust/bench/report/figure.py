"""What the figures of a report share: pages without global state, titles, and files as bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mkclust.plots import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 12.0  # inches; at 110 dots an inch twice what a README shows, for sharp letters
COLORS = 128  # of a PNG: enough for two maps of shades and smooth letters
DOTS_PER_INCH = 110
COLUMNS = 3  # panels side by side
LETTERS = 15.5  # of a note, to an inch
GRID = "#e6e6e6"
TIMES = "\u00d7"
FORMATS = ("png", "pdf")


def new_page(width: float, height: float) -> Figure:
    """Return an empty white figure of some inches whose parts make room for one another."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.08, wspace=0.02, hspace=0.03)  # type: ignore[union-attr, call-arg]
    return figure


def panel_grid(count: int, panel_height: float, extra: float) -> tuple[Figure, list[Axes]]:
    """Return a page of equal panels, at most three side by side, and their axes row by row."""
    columns = min(COLUMNS, count)
    lines = -(-count // columns)
    figure = new_page(panel_width(count), lines * panel_height + extra)
    grid = figure.subplots(lines, columns, squeeze=False)
    for unused in grid.flat[count:]:
        unused.remove()
    return figure, list(grid.flat[:count])


def panel_width(count: int) -> float:
    """Return the width in inches of a page of so many panels, by which its notes are wrapped."""
    columns = min(COLUMNS, count)
    width = WIDTH if columns == COLUMNS else 1.5 + (WIDTH - 1.5) / COLUMNS * columns
    return max(width, 6.5)


def add_heading(
    figure: Figure, title: str, notes: Sequence[str] = (), marks: Sequence[Any] = ()
) -> None:
    """Write a page's title at its top and its notes at its foot, broken to its width.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    title : str
    notes : sequence of str
        A paragraph each.
    marks : sequence of matplotlib.artist.Artist
        What the legend below the title explains.
    """
    width = figure.get_figwidth()
    broken = textwrap.fill(title, int(8.6 * width))
    bold: dict[str, Any] = {"fontsize": 13, "fontweight": "bold", "color": INK}
    if marks:
        # The title is the legend's own: that keeps the two from covering each other.
        columns = len(marks) if width > 9 else 1
        legend = figure.legend(handles=marks, title=broken, loc="outside upper left",
                               alignment="left", ncols=columns, fontsize=9, frameon=False,
                               handletextpad=0.4, borderaxespad=0.2)  # fmt: skip
        legend.get_title().set(**bold, parse_math=False)
    else:
        figure.suptitle(broken, x=0.01, ha="left", parse_math=False, **bold)
    if notes:
        lines = [textwrap.fill(note, int(LETTERS * width)) for note in notes]
        foot = figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8.5, color=INK)
        foot.set_parse_math(False)


def note_height(notes: Sequence[str], width: float = WIDTH) -> float:
    """Return the inches that notes need at the foot of a page."""
    lines = sum(len(textwrap.wrap(note, int(LETTERS * width))) or 1 for note in notes)
    return 0.16 * lines + 0.1


def panel_title(ax: Axes, text: str) -> None:
    """Write the title of a panel, as it is: a dollar sign begins no formula."""
    ax.set_title(
        shorten(text, 44), fontsize=10, fontweight="bold", loc="left", color=INK, parse_math=False
    )


def simplify_frame(ax: Axes) -> None:
    """Leave a panel no more lines than its two scales."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    ax.tick_params(labelsize=8, color=FAINT, labelcolor=INK)
    ax.set_axisbelow(True)


def shorten(name: Any, limit: int = 26) -> str:
    """Return a name, its middle left out where it is longer than `limit`."""
    name, half = str(name), (limit - 1) // 2
    return name if len(name) <= limit else f"{name[:half]}…{name[-half:]}"


def truncate(text: str, limit: int = 38) -> str:
    """Return as much of a sentence as there is room for."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def as_ratio(ratio: float) -> str:
    """Return a ratio as it is said: 0.85, 3.2 or 410 times, with the sign of multiplication."""
    return f"{float(f'{ratio:.{3 if ratio >= 100 else 2}g}'):,g}{TIMES}"


def render(figure: Figure) -> dict[str, bytes]:
    """Return a figure as bytes by suffix, as in `FORMATS`, the same whenever it is drawn."""
    # Arranged once for all formats: each would do it again, and draw twice for that.
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine(None)
    files = {}
    for suffix in FORMATS:
        content = io.BytesIO()
        # A date would make two reports of the same rows differ.
        dateless: dict[str, Any] = {"CreationDate": None} if suffix == "pdf" else {}
        figure.savefig(content, format=suffix, dpi=DOTS_PER_INCH, metadata=dateless)
        files[suffix] = _fewer_colors(content) if suffix == "png" else content.getvalue()
    return files


def _fewer_colors(picture: io.BytesIO) -> bytes:
    """Return a picture with a palette in place of full colors: a third of its size."""
    from PIL import Image  # comes with matplotlib

    content = io.BytesIO()
    colors = Image.open(picture).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    colors.save(content, format="PNG", optimize=True)
    return content.getvalue()
