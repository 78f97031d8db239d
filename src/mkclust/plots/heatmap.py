"""Samples by the features that set their clusters apart, with variables above."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mkclust.index import match_rows
from mkclust.linalg import to_host
from mkclust.plots.style import (
    BLUE,
    FAINT,
    INK,
    MISSING_COLOR,
    ORANGE,
    PALETTE,
    UNKNOWN_COLOR,
    Display,
    FittedModel,
    cluster_sizes,
    names_of,
    sample_clusters,
    set_titles,
    shorten,
    title_of,
    when,
)
from mkclust.text import count
from mkclust.types import Float
from mkclust.unknown import known_first, means_unknown

# Bars of variables, and levels of one of them, that have room.
MOST_BARS = 6
MOST_LEVELS = 8
# Rows of white between two views, and heights of a bar and of the space below all.
GAP = 0.6
BAR = 1.0
SPACE = 0.5
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
    annotation: Any = None
    names: Sequence[str] | None = None
    max_samples: int = 600

    def __post_init__(self) -> None:
        self.labels = to_host(self.labels, None)
        self.annotation = pd.DataFrame(self.annotation).dropna(axis=1, how="all")
        self.values = {view: _standardized(each) for view, each in self.values.items()}
        drawn = sample_clusters(self.labels, self.max_samples)
        rows = np.hstack([each[drawn] for each in self.values.values()])
        self.samples = drawn[_order(np.nan_to_num(rows), self.labels[drawn])]

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
        unused = getattr(model, "set_aside_", ())
        parts = {name: parts[name] for name in parts if name not in unused} or parts
        values = {}
        features = {}
        per_view = max(-(-n_features // len(parts)), 2)
        for name, part in parts.items():
            seen = samples.observed[name]
            columns = _strongest(part, labels[seen], per_view)
            values[name] = np.full((len(labels), len(columns)), np.nan)
            values[name][seen] = csr_array(part[:, columns]).toarray()
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
        n_rows = sum(map(len, self.features.values())) + len(self._bars())
        return 9.6, 1.3 + 0.17 * n_rows

    def _words(self) -> str:
        """Return what the rows and shades are, in words."""
        features = count(sum(map(len, self.features.values())), "feature")
        n_drawn = len(self.samples)
        n_known = int((self.labels >= 0).sum())
        some = when(n_drawn < n_known, f" of {n_known:,}")
        bars = when(
            self._bars(), "; above, the variables by which they were not clustered"
        )
        return (
            f"{count(n_drawn, 'sample')}{some} (columns) by the {features} "
            f"that set their clusters apart most{bars}. Blue is above the mean of a "
            "feature, orange below, gray not measured."
        )

    def _bars(self) -> list[str]:
        """Return the names of the variables that are drawn."""
        levels = {name: _levels(self.annotation[name]) for name in self.annotation}
        return [name for name in levels if len(levels[name]) <= MOST_LEVELS][:MOST_BARS]

    def _draw(self, ax: Any) -> None:
        """Draw the bars, then the features of each view."""
        from matplotlib.colors import LinearSegmentedColormap

        labels = self.labels[self.samples]
        self._draw_clusters(ax, labels)
        ticks: dict[float, str] = {}
        legends: dict[str, dict[str, str]] = {}
        top = BAR
        for name in self._bars():
            ticks[top + BAR / 2] = shorten(name, 24)
            legends[name] = self._draw_bar(ax, name, top)
            top += BAR
        top += SPACE
        hues = LinearSegmentedColormap.from_list("", [ORANGE, "#ffffff", BLUE])
        for view, values in self.values.items():
            height = values.shape[1]
            # Two standard deviations have full color.
            image = _draw_block(
                ax, values[self.samples].T, top, height, hues, vmin=-2, vmax=2
            )
            ax.text(
                1.006 * len(labels),
                top + height / 2,
                shorten(view),
                fontsize=9,
                ha="left",
                va="center",
                rotation=90,
            )
            for place, feature in enumerate(self.features[view]):
                ticks[top + place + 0.5] = shorten(feature, 24)
            top += height + GAP
        for border in 1 + np.flatnonzero(np.diff(labels)):
            ax.axvline(border, color="white", linewidth=1.2)
        ax.set(
            xlim=(0, len(labels)),
            ylim=(top - GAP, -BAR * 0.2),
            xticks=[],
        )
        ax.set_yticks(list(ticks), ticks.values(), fontsize=7, parse_math=False)
        ax.tick_params(length=0, labelcolor=INK)
        ax.spines[:].set_visible(False)
        set_titles(ax, "What sets the clusters apart, sample by sample", pad=18)
        self._draw_legends(ax, legends, image)

    def _draw_clusters(self, ax: Any, labels: np.ndarray) -> None:
        """Draw the bar of the clusters, with their names above."""
        _draw_levels(ax, [labels % len(PALETTE)], 0.0, PALETTE)
        for cluster, size in cluster_sizes(labels).items():
            if size >= len(labels) / 40:
                room = max(size * 60 // len(labels), 3)
                ax.text(
                    np.flatnonzero(labels == cluster).mean() + 0.5,
                    -0.25,
                    title_of(cluster, self.names, room),
                    color=INK,
                    ha="center",
                    va="bottom",
                    fontsize=9,
                )

    def _draw_bar(self, ax: Any, name: str, top: float) -> dict[str, str]:
        """Draw a variable of all samples as a bar; return what its colors mean."""
        from matplotlib.colors import LinearSegmentedColormap

        column = self.annotation[name].iloc[self.samples]
        levels = _levels(self.annotation[name])
        if levels:
            colors = [
                UNKNOWN_COLOR if means_unknown(level) else color
                for level, color in zip(levels, LEVEL_COLORS, strict=False)
            ]
            places = {level: place for place, level in enumerate(levels)}
            codes = [[places.get(level, np.nan) for level in column]]
            _draw_levels(ax, codes, top, colors)
            return dict(zip(map(str, levels), colors, strict=True))
        shades = LinearSegmentedColormap.from_list("numbers", NUMBER_COLORS)
        image = _draw_block(ax, [column.to_numpy(float)], top, 0.9 * BAR, shades)
        ends = zip(image.get_clim(), NUMBER_COLORS, strict=True)
        return {f"{limit:.3g}": color for limit, color in ends}

    def _draw_legends(
        self, ax: Any, legends: Mapping[str, Mapping[str, str]], image: Any
    ) -> None:
        """Write what the colors of the bars mean, and draw the scale of the shades."""
        from matplotlib.patches import Patch

        handles = list[Any]()
        for title, colors in legends.items():
            handles.append(Patch(alpha=0, label=shorten(title)))
            handles += [Patch(color=c, label=shorten(w)) for w, c in colors.items()]
        if handles:
            drawn = ax.legend(
                handles=handles,
                fontsize=7.5,
                frameon=False,
                handlelength=1.0,
                loc="upper left",
                bbox_to_anchor=(1.03, 1.0),
            )
            for handle, text in zip(handles, drawn.get_texts(), strict=True):
                text.set_parse_math(False)
                if handle.get_alpha() == 0:
                    text.set_fontweight("bold")
        bar = ax.inset_axes([1.05, 0.0, 0.015, 0.22])
        ax.figure.colorbar(image, cax=bar, extend="both").outline.set_visible(False)
        bar.tick_params(labelsize=7.5, length=2, color=FAINT)
        bar.set_title("SD", fontsize=8, loc="left")


def _draw_levels(ax: Any, codes: Any, top: float, colors: Sequence[str]) -> None:
    """Draw a bar of a color for each level."""
    from matplotlib.colors import ListedColormap

    _draw_block(
        ax,
        codes,
        top,
        0.9 * BAR,
        ListedColormap(colors),
        vmin=0,
        vmax=len(colors),
    )


def _draw_block(
    ax: Any, values: Any, top: float, height: float, colors: Any, **limits: float
) -> Any:
    """Draw rows of values below each other, all samples wide; return the image."""
    return ax.imshow(
        np.ma.masked_invalid(values),
        extent=(0, np.shape(values)[1], top + height, top),
        cmap=colors.with_extremes(bad=MISSING_COLOR),
        aspect="auto",
        interpolation="nearest",
        rasterized=True,
        **limits,
    )


def _levels(column: pd.Series) -> list[Any]:
    """Return the levels of a variable of categories, none of one of numbers."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return known_first(column.cat.remove_unused_categories().cat.categories)
    values = column.dropna()
    if values.nunique() <= 2 or not pd.api.types.is_numeric_dtype(values):
        return known_first(sorted(values.unique().tolist(), key=str))
    return []


def has_features(part: Any, n_samples: int) -> bool:
    """Return whether a view holds features, in memory, rather than similarities."""
    return (
        (isinstance(part, np.ndarray) or issparse(part))
        and part.ndim == 2
        and part.shape[1] != n_samples
    )


def _standardized(values: Any) -> Float:
    """Return columns with the mean zero and the deviation one, NaN as it is."""
    with np.errstate(invalid="ignore"):  # a column may hold nothing but NaN
        return StandardScaler().fit_transform(np.asarray(values, dtype=float))


def _strongest(part: Any, labels: np.ndarray, most: int) -> list[int]:
    """Return the columns that differ most, for each cluster in turn, by cluster."""
    strengths = np.abs(_differences(part, labels))
    orders = np.argsort(-strengths, axis=1, kind="stable").tolist()
    taken: dict[int, int] = {}
    for cluster in itertools.cycle(range(len(orders))):
        if len(taken) >= min(most, part.shape[1]):
            break
        taken[next(each for each in orders[cluster] if each not in taken)] = cluster
    return sorted(taken, key=taken.__getitem__)


def _differences(part: Any, labels: np.ndarray) -> Float:
    """Return how far each cluster is from the rest in every column, standardized."""
    known = labels >= 0
    members = csr_array(OneHotEncoder().fit_transform(labels[known, None]).T)
    values = part[np.flatnonzero(known)]
    if issparse(values):
        filled = csr_array(values)
        counts = members.sum(axis=1)[:, None] * np.ones(values.shape[1])
    else:
        standard = _standardized(values)
        filled = np.nan_to_num(standard)
        counts = members @ np.isfinite(standard).astype(float)
    sums, squares = (
        csr_array(members @ each).toarray() for each in (filled, filled * filled)
    )
    n = np.maximum(counts.sum(axis=0), 1)
    total = sums.sum(axis=0)
    inside = sums / np.maximum(counts, 1)
    outside = (total - sums) / np.maximum(n - counts, 1)
    variance = squares.sum(axis=0) / n - (total / n) ** 2
    shares = counts / n
    within = variance - shares * (1 - shares) * (inside - outside) ** 2
    spread = np.sqrt(np.maximum(within, 1e-4 * np.maximum(variance, 0)))
    is_known = (counts > 0) & (counts < n) & (spread > 0)
    return np.where(is_known, inside - outside, 0) / np.where(is_known, spread, 1)


def _order(rows: Float, labels: np.ndarray) -> np.ndarray:
    """Return samples by cluster, within a cluster along its main direction."""
    found = []
    for cluster in np.unique(labels):
        own = np.flatnonzero(labels == cluster)
        centered = rows[own] - rows[own].mean(axis=0)
        _, _, directions = np.linalg.svd(centered, full_matrices=False)
        main = directions[0] * np.sign(max(directions[0], key=abs))
        found.append(own[np.argsort(centered @ main, kind="stable")])
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
    samples = len(model.labels_) if ids is None else pd.Index(ids)
    rows = match_rows(frame.index, samples, "annotation")
    return frame.set_axis(range(len(frame))).reindex(rows).reset_index(drop=True)
