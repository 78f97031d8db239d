"""What all displays share: colors, frames, names, samples, and the base class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mkclust.text import printable
from mkclust.types import Array, Float, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Two hues that differ for every common color vision deficiency, and in gray.
BLUE = "#2b6ca3"
ORANGE = "#d98324"
# Text and main lines, and what stays in the background.
INK = "#222222"
FAINT = "#8a8a8a"
# Levels of a category that say that a value is not known, and cells without a value.
UNKNOWN_COLOR = "#c9c9c9"
MISSING_COLOR = "#e4e4e4"
# Twelve colors that differ under deuteranopia and protanopia, too; more clusters reuse
# them.
PALETTE: tuple[str, ...] = (
    "#332288",
    "#DDAA33",
    "#44AA99",
    "#EE3377",
    "#66CCEE",
    "#994F00",
    "#785EF0",
    "#DDCC77",
    "#882255",
    "#222222",
    "#4477AA",
    "#661100",
)


class FittedModel(Protocol):
    """What displays ask of a fitted model: methods are in a layer above."""

    labels_: Labels  # the cluster of every sample, (n,)
    weights_: Float  # of the kernels, (m,)
    alignments_: Float  # how well every kernel fits the clusters, (m,)
    kernel_names_: tuple[str, ...]
    embedding_: Array  # the partition, (n, k)
    history_: Float  # the objective at every step of the solver
    agreement_: Any  # what the views share
    _source: Any  # how the samples of the fit are read again

    def mixed_kernel(self, X: Any, samples: Any = None) -> Float:
        """Return the similarities by which samples are clustered, (s, s)."""

    def describe_mixed_kernel(self) -> str:
        """Return what the mixed kernel holds, in words."""

    def _rows_of(self, embedding: Array) -> Float:
        """Return the rows, but for their form, by which an embedding is clustered."""


class Display:
    """Base of all displays.

    A child stores arrays, reads them from a model (`_read`), draws them (`_draw`), and
    says their size in inches (`_size`) and what they show (`_words`).

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the last ``plot``.
    figure_ : matplotlib.figure.Figure
        The figure of these axes.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    _words: Callable[[], str]
    _draw: Callable[[Axes], None]

    @classmethod
    def from_estimator(
        cls,
        model: FittedModel,
        X: Any = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted clusterer of this library.
        X : array, list or dict of kernels or views, or table, default=None
            What it was fitted on; only `SortedKernelDisplay` needs it.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        **options
            Further parameters of the display.
        """
        check_is_fitted(model)
        if not hasattr(model, "alignments_"):
            raise TypeError(
                f"{type(model).__name__}: pass a fitted clusterer of mkclust"
            )
        return cls(**cls._read(model, X, **options)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw in given axes, or in those of a new figure; return the display."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError(
                    f"{type(self).__name__} draws with matplotlib, which is not "
                    "installed: pip install 'mkclust[plot]'"
                ) from error
            _, ax = plt.subplots(figsize=self.figsize, layout="constrained")
        self.ax_ = ax
        self.figure_ = ax.figure
        self._draw(ax)
        return self

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure for this display, in inches."""
        return self._size()

    @property
    def caption(self) -> str:
        """What the picture shows, in words."""
        return self._words()

    @classmethod
    def _read(cls, model: FittedModel, X: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError(f"{cls.__name__} is not made from a model")

    def _size(self) -> tuple[float, float]:
        return 6.2, 5.8


def set_titles(ax: Any, text: str, x: str = "", y: str = "", pad: float = 8) -> None:
    """Set a panel's title, and the names of its axes."""
    ax.set_title(text, fontsize=11.5, fontweight="bold", loc="left", color=INK, pad=pad)
    ax.set_xlabel(x, fontsize=9.5, color=INK)
    ax.set_ylabel(y, fontsize=9.5, color=INK)


def set_frame(ax: Any) -> None:
    """Draw thin axes to the left and below, and none on the other sides."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    ax.tick_params(labelsize=9, color=FAINT)


def names_of(model: FittedModel) -> tuple[str, ...] | None:
    """Return the names of the clusters of a model, None if nobody has given any."""
    return getattr(model, "cluster_names_", None)


def noun_of_kernels(model: FittedModel) -> str:
    """Return what a person calls the kernels of a fit: views, if each has one."""
    views = getattr(model, "view_names_in_", ())
    if len(views or ()) == len(model.kernel_names_):
        return "view"
    return "kernel"


def cluster_sizes(labels: np.ndarray) -> dict[int, int]:
    """Return the number of samples of each cluster; the label -1 stands for none."""
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return dict(zip(clusters.tolist(), sizes.tolist(), strict=True))


def sample_clusters(labels: np.ndarray, count: int) -> np.ndarray:
    """Return some rising indices of labeled samples, in proportion to clusters."""
    known = np.flatnonzero(labels >= 0)
    if len(known) <= count:
        return known
    order = np.random.default_rng(0).permutation(known)
    order = order[np.argsort(labels[order], kind="stable")]
    sizes = np.array(list(cluster_sizes(labels).values()))
    quotas = np.maximum(sizes * count // len(known), 1)
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(len(known)) - np.repeat(starts, sizes)
    return np.sort(order[rank < np.repeat(quotas, sizes)])


def when(holds: Any, text: str) -> str:
    """Return a text if a condition holds, and nothing otherwise."""
    return text if holds else ""


def title_of(cluster: int, names: Sequence[str] | None, limit: int = 18) -> str:
    """Return the name of a cluster, or its number if it has no name."""
    return str(cluster) if names is None else shorten(names[cluster], limit)


def shorten(name: Any, limit: int = 26) -> str:
    """Return a name, without its middle if it is too long for a tick label."""
    name = printable(name)
    half = (limit - 1) // 2
    return name if len(name) <= limit else f"{name[:half]}…{name[-half:]}"


def format_range(values: np.ndarray) -> str:
    """Return "0.10 to 0.25", or one number if both ends read the same."""
    ends = (f"{end:z.2f}" for end in (values.min(), values.max()))
    return " to ".join(dict.fromkeys(ends))
