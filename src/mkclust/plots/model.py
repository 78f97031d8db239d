"""What displays ask of a fitted model: methods are in a layer above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mkclust.types import Array, Float, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SharedByViews(Protocol):
    """What every two views of a fit share, and which views are used."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""

    @property
    def alignments(self) -> Float:
        """What every two views share, (v, v)."""

    def weights(self) -> Float:
        """Return the weights of the views, (v,)."""

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw what the views share."""


class FittedModel(Protocol):
    """A fitted clusterer of this library."""

    @property
    def labels_(self) -> Labels:
        """The cluster of every sample, (n,)."""

    @property
    def weights_(self) -> Float:
        """The weights of the kernels, (m,)."""

    @property
    def alignments_(self) -> Float:
        """How well every kernel fits the clusters, (m,)."""

    @property
    def kernel_names_(self) -> tuple[str, ...]:
        """Names of the kernels."""

    @property
    def embedding_(self) -> Array:
        """The partition, (n, k)."""

    @property
    def history_(self) -> Float:
        """The objective at every step of the solver."""

    @property
    def agreement_(self) -> SharedByViews:
        """What the views share."""

    @property
    def _source(self) -> Any:
        """How the samples of the fit are read again."""

    def mixed_kernel(self, X: Any, samples: Any = None) -> Float:
        """Return the similarities by which samples are clustered, (s, s)."""

    def describe_mixed_kernel(self) -> str:
        """Return what the mixed kernel holds, in words."""

    def _rows_of(self, embedding: Array) -> Float:
        """Return the rows, but for their form, by which an embedding is clustered."""


def noun_of_kernels(model: FittedModel) -> str:
    """Return what a person calls the kernels of a fit: views, if each has one."""
    views = getattr(model, "view_names_in_", None)
    if views is not None and len(views) == len(model.kernel_names_):
        return "view"
    return "kernel"
