"""What displays ask of a fitted model: methods are in a layer above."""

from typing import Any, Protocol

from mkclust.types import Array, Float, Labels


class FittedModel(Protocol):
    """A fitted clusterer of this library."""

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


def noun_of_kernels(model: FittedModel) -> str:
    """Return what a person calls the kernels of a fit: views, if each has one."""
    views = getattr(model, "view_names_in_", ())
    return "view" if len(views or ()) == len(model.kernel_names_) else "kernel"
