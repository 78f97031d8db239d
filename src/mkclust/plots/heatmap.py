"""Samples by the features that set their clusters apart, with variables above."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from mkclust.index import has_ids, match_rows
from mkclust.linalg import to_host
from mkclust.plots.model import FittedModel
from mkclust.plots.sampling import sample_clusters
from mkclust.plots.style import (
    BLUE,
    FAINT,
    INK,
    MISSING_COLOR,
    ORANGE,
    PALETTE,
    UNKNOWN_COLOR,
    Display,
    names_of,
    set_titles,
    shorten,
    title_of,
)
from mkclust.text import count
from mkclust.types import Float
from mkclust.unknown import known_first, means_unknown

# Bars of variables, and levels of one of them, that have room.
MOST_BARS, MOST_LEVELS = 6, 8
# Rows of white between two views, and heights of a bar and of the space below all.
GAP, BAR, SPACE = 0.6, 1.0, 0.5
# Paler than the colors of the clusters, so that neither is taken for the other.
LEVEL_COLORS: tuple[str, ...] = (
    "#bcd4e6",
    "#4f81a8",
    "#f3c99f",
    "#c0722d",
    "#cfe3c4",
    "#6d9b58",
    "#e2c6dd",
    "#8f5f88",
)
# From the least to the largest number.
NUMBER_COLORS = ("#f2f2f2", "#4a4a4a")


class _Legend(NamedTuple):
    """What the colors of a bar mean."""

    title: str
    colors: list[str]
    words: list[str]


@dataclass(eq=False, kw_only=True)
class HeatmapDisplay(Display):
    """Samples by the features that set their clusters apart, ordered by cluster.

    Every row is a feature and every column a sample, in standard deviations from the
    mean of the feature. Bars above show the clusters and other variables.
    ``HeatmapDisplay.from_estimator(model, X, annotation=table, n_features=30)`` takes,
    for every cluster in turn, the feature of a view that differs most between it and
    the rest.

    Parameters
    ----------
    values : mapping of str to array-like of shape (n, d)
        By the names of the views: features of the samples, NaN for missing values.
    features : mapping of str to sequence of str, length d
        The names of these features.
    labels : array-like of int of shape (n,)
        The cluster of each sample; samples labeled -1 are left out.
    annotation : data frame of n rows, default=None
        Variables, numbers or categories, that are drawn as bars.
    names : sequence of str, default=None
        The names of the clusters; None takes their numbers.
    max_samples : int, default=600
        Of more samples, this number is drawn at random, clusters in proportion.

    Attributes
    ----------
    samples : ndarray of int
        The samples in the order of the columns.

    Examples
    --------
    >>> from mkclust.plots import HeatmapDisplay
    >>> display = HeatmapDisplay(
    ...     values={"rna": [[1.0, 2.0], [9.0, 8.0], [1.5, 2.5]]},
    ...     features={"rna": ["TP53", "KRAS"]},
    ...     labels=[0, 1, 0],
    ... )
    >>> sorted(display.samples[:2].tolist()), int(display.samples[2])
    ([0, 2], 1)
    """

    values: Mapping[str, Any]
    features: Mapping[str, Sequence[str]]
    labels: Any
    annotation: pd.DataFrame | None = None
    names: Sequence[str] | None = None
    max_samples: int = 600

    def __post_init__(self) -> None:
        self.labels = to_host(self.labels, None)
        self.values = {
            view: _standardized(np.asarray(each, dtype=float))
            for view, each in self.values.items()
        }
        drawn = sample_clusters(self.labels, self.max_samples)
        parts = [each[drawn] for each in self.values.values()]
        rows = np.hstack(parts)
        known = np.nan_to_num(rows)
        self.samples = drawn[_order(known, self.labels[drawn])]

    @classmethod
    def _read(
        cls,
        model: FittedModel,
        X: Any,
        annotation: Any = None,
        n_features: int = 30,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the features of a fit that differ most between its clusters."""
        labels = to_host(model.labels_, None)
        samples = model._source.read(model, X)
        parts = {
            name: part
            for name, part in samples.by_name.items()
            if samples.kind != "kernels" and has_features(part, samples.n_samples)
        }
        if not parts:
            raise ValueError(
                "X holds no features in memory: pass views, samples x features, rather "
                "than kernels, distances or files"
            )
        unused = set(getattr(model, "set_aside_", ()))
        parts = {name: parts[name] for name in parts if name not in unused} or parts
        values = {}
        features = {}
        per_view = -(-n_features // len(parts))
        most = max(per_view, 2)
        for name, part in parts.items():
            seen = samples.observed[name]
            columns = _strongest(part, labels[seen], most)
            shape = (len(labels), len(columns))
            values[name] = np.full(shape, np.nan)
            values[name][seen] = _dense(part[:, columns])
            titles = samples.columns.get(name) or [
                f"column {place}" for place in range(part.shape[1])
            ]
            features[name] = [str(titles[column]) for column in columns]
        return {
            "values": values,
            "features": features,
            "labels": labels,
            "annotation": _read_annotation(model, annotation),
            "names": names_of(model),
            **options,
        }

    def _size(self) -> tuple[float, float]:
        rows = sum(map(len, self.features.values()))
        n_rows = rows + len(self._bars())
        return 9.6, 1.3 + 0.17 * n_rows

    def _words(self) -> str:
        """Return what the rows and shades are, in words."""
        n_features = sum(map(len, self.features.values()))
        features = count(n_features, "feature")
        some = ""
        known = int((self.labels >= 0).sum())
        if len(self.samples) < known:
            some = f" of {known:,}"
        bars = ""
        if self._bars():
            bars = "; above, the variables by which they were not clustered"
        return (
            f"{count(len(self.samples), 'sample')}{some} (columns) by the {features} "
            f"that set their clusters apart most{bars}. Blue is above the mean of a "
            "feature, orange below, gray not measured."
        )

    def _bars(self) -> list[str]:
        """Return the names of the variables that are drawn."""
        if self.annotation is None:
            return []
        kept = [
            name
            for name in self.annotation
            if self.annotation[name].notna().any()
            and len(_levels(self.annotation[name])) <= MOST_LEVELS
        ]
        return kept[:MOST_BARS]

    def _draw(self, ax: Any) -> None:
        """Draw the bars, then the features of each view."""
        labels = self.labels[self.samples]
        ticks: list[tuple[float, str]] = []
        legends = [self._draw_clusters(ax, labels)]
        top = BAR
        for name in self._bars():
            middle_of_bar = top + BAR / 2
            ticks.append((middle_of_bar, shorten(name, 24)))
            legends.append(self._draw_bar(ax, name, top))
            top += BAR
        top += SPACE
        image = None
        for view, values in self.values.items():
            bottom = top + values.shape[1]
            image = self._draw_view(ax, values[self.samples], top, bottom)
            middle: dict[str, Any] = {
                "ha": "left",
                "va": "center",
                "rotation": 90,
            }
            x = 1.006 * len(labels)
            ax.text(
                x,
                (top + bottom) / 2,
                shorten(view),
                fontsize=9,
                **middle,
            )
            for place, feature in enumerate(self.features[view]):
                row = top + place + 0.5
                ticks.append((row, shorten(feature, 24)))
            top = bottom + GAP
        changes = np.flatnonzero(labels[1:] != labels[:-1])
        for border in changes + 1:
            ax.axvline(border, color="white", linewidth=1.2)
        ax.set(
            xlim=(0, len(labels)),
            ylim=(top - GAP, -BAR * 0.2),
            xticks=[],
        )
        ax.set_yticks([place for place, _ in ticks])
        words = [word for _, word in ticks]
        ax.set_yticklabels(words, fontsize=7, parse_math=False)
        ax.tick_params(length=0, labelcolor=INK)
        ax.spines[:].set_visible(False)
        set_titles(ax, "What sets the clusters apart, sample by sample", pad=18)
        self._draw_legends(ax, legends[1:], image)

    def _draw_clusters(self, ax: Any, labels: np.ndarray) -> _Legend:
        """Draw the bar of the clusters, with their names above."""
        colors = [PALETTE[each % len(PALETTE)] for each in labels]
        _draw_colors(ax, colors, 0.0)
        clusters = np.unique(labels)
        for cluster in clusters.tolist():
            places = np.flatnonzero(labels == cluster)
            if len(places) < len(labels) / 40:
                continue
            share = len(places) * 60 // len(labels)
            room = max(share, 3)
            name = title_of(cluster, self.names, room)
            middle: dict[str, Any] = {
                "ha": "center",
                "va": "bottom",
                "fontsize": 9,
            }
            ax.text(
                places.mean() + 0.5,
                -0.25,
                name,
                color=INK,
                **middle,
            )
        return _Legend("cluster", colors, [])

    def _draw_bar(self, ax: Any, name: str, top: float) -> _Legend:
        """Draw a variable of all samples as a bar; return what its colors mean."""
        from matplotlib.colors import LinearSegmentedColormap, to_hex

        assert self.annotation is not None
        column = self.annotation[name].iloc[self.samples]
        levels = _levels(self.annotation[name])
        if levels:
            pairs = zip(levels, _colors_of(levels), strict=True)
            known = column.map(dict(pairs))
            colors = known.astype(object).where(column.notna(), MISSING_COLOR).tolist()
            _draw_colors(ax, colors, top)
            return _Legend(name, _colors_of(levels), [f"{each}" for each in levels])
        numbers = column.to_numpy(float)
        low, high = np.nanmin(numbers), np.nanmax(numbers)
        shades = LinearSegmentedColormap.from_list("numbers", list(NUMBER_COLORS))
        span = max(high - low, np.finfo(float).tiny)
        shares = (numbers - low) / span
        colors = [
            to_hex(shades(share)) if np.isfinite(share) else MISSING_COLOR
            for share in shares
        ]
        _draw_colors(ax, colors, top)
        limits = [f"{low:.3g}", f"{high:.3g}"]
        return _Legend(name, list(NUMBER_COLORS), limits)

    def _draw_view(self, ax: Any, values: Float, top: float, bottom: float) -> Any:
        """Draw the features of a view."""
        from matplotlib.colors import LinearSegmentedColormap

        hues = LinearSegmentedColormap.from_list("", [ORANGE, "#ffffff", BLUE])
        # Standard deviations that have full color.
        full_color = 2.0
        return ax.imshow(
            np.ma.masked_invalid(values.T),
            extent=(0, len(values), bottom, top),
            cmap=hues.with_extremes(bad=MISSING_COLOR),
            vmin=-full_color,
            vmax=full_color,
            aspect="auto",
            interpolation="nearest",
            rasterized=True,
        )

    def _draw_legends(self, ax: Any, legends: Sequence[_Legend], image: Any) -> None:
        """Write what the colors of the bars mean, and draw the scale of the shades."""
        from matplotlib.patches import Patch

        handles = list[Any]()
        titles = list[int]()
        for legend in legends:
            titles.append(len(handles))
            handles.append(Patch(alpha=0, label=shorten(legend.title)))
            pairs = zip(legend.colors, legend.words, strict=False)
            handles += [Patch(color=c, label=shorten(word)) for c, word in pairs]
        if handles:
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.03, 1.0)}
            drawn = ax.legend(
                handles=handles, fontsize=7.5, frameon=False, handlelength=1.0, **place
            )
            for number, text in enumerate(drawn.get_texts()):
                text.set(parse_math=False)
                if number in titles:
                    text.set(fontweight="bold")
        if image is not None:
            bar = ax.inset_axes([1.05, 0.0, 0.015, 0.22])
            scale = ax.figure.colorbar(image, cax=bar, extend="both")
            scale.outline.set_visible(False)
            bar.tick_params(labelsize=7.5, length=2, color=FAINT)
            bar.set_title("SD", fontsize=8, loc="left")


def _draw_colors(ax: Any, colors: Sequence[str], top: float) -> None:
    """Draw a row of colors."""
    from matplotlib.colors import to_rgb

    row = np.array([[to_rgb(color) for color in colors]])
    ax.imshow(
        row,
        extent=(0, len(colors), top + 0.9 * BAR, top),
        aspect="auto",
        interpolation="nearest",
        rasterized=True,
    )


def _levels(column: pd.Series) -> list[Any]:
    """Return the levels of a variable of categories, none of one of numbers."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return known_first(column.cat.remove_unused_categories().cat.categories)
    values = column.dropna()
    if values.nunique() <= 2 or not pd.api.types.is_numeric_dtype(values):
        return known_first(sorted(values.unique().tolist(), key=str))
    return []


def _colors_of(levels: Sequence[Any]) -> list[str]:
    """Return a color for every level; gray says that a value is not known."""
    return [
        UNKNOWN_COLOR if means_unknown(level) else color
        for level, color in zip(levels, LEVEL_COLORS, strict=False)
    ]


def has_features(part: Any, n_samples: int) -> bool:
    """Return whether a view holds features, in memory, rather than similarities."""
    is_in_memory = isinstance(part, np.ndarray) or issparse(part)
    return is_in_memory and part.ndim == 2 and part.shape[1] != n_samples


def _dense(part: Any) -> Float:
    """Return a few columns as an array."""
    if issparse(part):
        return np.asarray(part.toarray(), dtype=float)
    return np.asarray(part, dtype=float)


def _standardized(values: Float) -> Float:
    """Return columns with the mean zero and the deviation one, NaN as it is."""
    known = np.isfinite(values)
    counts = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, 0)
    means = filled.sum(axis=0) / counts
    centered = np.where(known, values - means, 0)
    squares = (centered**2).sum(axis=0)
    deviations = np.sqrt(squares / counts)
    divisors = np.where(deviations > 0, deviations, 1)
    scaled = centered / divisors
    return np.where(known, scaled, np.nan)


def _strongest(part: Any, labels: np.ndarray, most: int) -> list[int]:
    """Return the columns that differ most, for each cluster in turn, by cluster."""
    differences = _differences(part, labels)
    k = len(differences)
    best: list[list[int]] = [[] for _ in range(k)]
    taken: set[int] = set()
    strengths = np.abs(differences)
    orders = np.argsort(-strengths, axis=1, kind="stable").tolist()
    while len(taken) < min(most, part.shape[1]):
        for cluster, order in enumerate(orders):
            free = (c for c in order if c not in taken)
            column = next(free, None)
            if column is not None and len(taken) < most:
                best[cluster].append(column)
                taken.add(column)
    return [column for columns in best for column in columns]


def _differences(part: Any, labels: np.ndarray) -> Float:
    """Return how far each cluster is from the rest in every column, standardized."""
    known = np.flatnonzero(labels >= 0)
    clusters, places = np.unique(labels[known], return_inverse=True)
    shape = (len(clusters), len(known))
    positions = np.arange(len(known))
    members = csr_array((np.ones(len(known)), (places, positions)), shape)
    values = part[known]
    if issparse(values):
        filled = csr_array(values)
        sizes = members.sum(axis=1)
        counts = np.repeat(sizes[:, None], values.shape[1], axis=1)
        sums_of_squares = members @ (filled * filled)
        squares = np.asarray(sums_of_squares.todense())
        sums = np.asarray((members @ filled).todense())
    else:
        standard = _standardized(np.asarray(values, dtype=float))
        counts = members @ np.isfinite(standard).astype(float)
        sums = members @ np.nan_to_num(standard)
        squares = members @ np.nan_to_num(standard) ** 2
    n, total = counts.sum(axis=0), sums.sum(axis=0)
    inside = sums / np.maximum(counts, 1)
    n_outside = np.maximum(n - counts, 1)
    outside = (total - sums) / n_outside
    mean = total / np.maximum(n, 1)
    variance = squares.sum(axis=0) / np.maximum(n, 1) - mean**2
    within = (
        variance
        - counts * (n - counts) / np.maximum(n, 1) ** 2 * (inside - outside) ** 2
    )
    least = 1e-4 * np.maximum(variance, 0)
    spread = np.sqrt(np.maximum(within, least))
    found = np.divide(
        inside - outside, spread, out=np.zeros_like(inside), where=spread > 0
    )
    is_between = (counts > 0) & (counts < n)
    return np.where(is_between, found, 0.0)


def _order(rows: Float, labels: np.ndarray) -> np.ndarray:
    """Return samples by cluster, within a cluster along its main direction."""
    found = []
    for cluster in np.unique(labels):
        own = np.flatnonzero(labels == cluster)
        mean = rows[own].mean(axis=0)
        centered = rows[own] - mean
        _, _, directions = np.linalg.svd(centered, full_matrices=False)
        largest = np.abs(directions[0]).argmax()
        main = directions[0] * np.sign(directions[0][largest])
        order = np.argsort(centered @ main, kind="stable")
        found.append(own[order])
    return np.concatenate(found)


def _read_annotation(model: FittedModel, given: Any) -> pd.DataFrame | None:
    """Return variables in the order of the samples, whatever holds them."""
    if given is None:
        return None
    tested = getattr(given, "values", None)
    if isinstance(tested, pd.DataFrame):  # of `mkclust.annotate`
        return tested
    frame = pd.DataFrame(given)
    ids = getattr(model, "sample_ids_", None)
    if ids is None or not has_ids(frame.index):
        if len(frame) != len(model.labels_):
            raise ValueError(
                f"annotation has {len(frame)} rows, the model was fitted on "
                f"{len(model.labels_)} samples: pass one row per sample, or their ids "
                "as its index"
            )
        return frame.reset_index(drop=True)
    rows = match_rows(frame.index, pd.Index(ids), "annotation")
    numbered = frame.set_axis(range(len(frame)))
    return numbered.reindex(rows).reset_index(drop=True)
