r"""From vectors over all samples to vectors over those that a kernel has, and back.

A kernel K that lacks some of n samples is, over all of them, :math:`E^\top K E`, with a
thin product on either side of K. Column i of E says how sample i is composed in the
kernel's feature space: an observed sample is itself, a missing one is zero, or a
combination of observed ones. For every E, :math:`E^\top K E` is positive semidefinite
if K is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mkclust.linalg import (
    arrays_to_host,
    namespace,
    precision_of,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.stack.kernel import Kernel, Wrapped
from mkclust.types import Array, Float

# How samples that are missing from views are treated without being learned.
FillRule = Literal["zero", "rescale"]


@dataclass(frozen=True)
class Fill:
    """Missing samples as combinations: column j of ``left @ right^T`` is that of sample j."""

    left: Array  # over the observed samples, (n_observed, r)
    right: Array  # over all samples, (n_samples, r); zero on the observed ones

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def beside(self, V: Array) -> tuple[Array, Array]:
        """Return both sides on the device of vectors, in their number type."""
        precision = precision_of(V)
        return to_device(self.left, V, precision), to_device(self.right, V, precision)


@dataclass(frozen=True)
class SampleMap:
    r"""The map E from vectors over all samples to vectors over the samples of a kernel.

    .. math:: E = (S + L R^\top)\, \mathrm{diag}(s)

    S selects the observed samples, L and R are the two sides of the fill, and s is the
    scale.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack.observed import SampleMap
    >>> sample_map = SampleMap(np.array([0, 2]), 3)
    >>> sample_map.gather(np.array([[1.0], [2.0], [3.0]])).ravel()
    array([1., 3.])
    >>> sample_map.scatter(np.array([[1.0], [3.0]])).ravel()
    array([1., 0., 3.])
    """

    samples: np.ndarray  # rising numbers of the observed samples, on the host
    n_samples: int  # number of all samples, n
    scale: Array | None = None  # a factor of every sample; None for ones
    fill: Fill | None = None  # of missing samples; None for similarities of zero

    n_observed = property(lambda self: len(self.samples))

    @cached_property
    def missing(self) -> np.ndarray:
        """Rising numbers of the samples that are missing, on the host."""
        return np.setdiff1d(np.arange(self.n_samples), self.samples, assume_unique=True)

    @cached_property
    def positions(self) -> np.ndarray:
        """Every sample's position among the observed ones, after the last if it is missing."""
        positions = np.full(self.n_samples, self.n_observed)
        positions[self.samples] = np.arange(self.n_observed)
        return positions

    def gather(self, V: Array) -> Array:
        """Return ``E @ V``, (n_samples, b) to (n_observed, b), on the device of V."""
        if self.scale is not None:
            V = V * to_device(self.scale, V, precision_of(V))[:, None]
        Y = select(V, self.samples)
        if self.fill is None:
            return Y
        left, right = self.fill.beside(V)
        return Y + left @ (right.T @ V)

    def scatter(self, Y: Array) -> Array:
        """Return ``E^T @ Y``, (n_observed, b) to (n_samples, b), on the device of Y."""
        V = spread_rows(Y, self.samples, self.n_samples, 0.0)
        if self.fill is not None:
            left, right = self.fill.beside(Y)
            V = V + right @ (left.T @ Y)
        return (
            V
            if self.scale is None
            else V * to_device(self.scale, Y, precision_of(Y))[:, None]
        )

    def __getstate__(self) -> dict[str, Any]:
        names = ("samples", "n_samples", "scale", "fill")
        return {name: arrays_to_host(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class Observed(Wrapped):
    """E^T K E: a kernel over some of n samples, and a fill for the others."""

    kernel: Kernel  # over the observed samples
    map: SampleMap  # E

    n_samples = property(lambda self: self.map.n_samples)

    def before(self, V: Array) -> Array:
        return self.map.gather(V)

    def after(self, Y: Array, V: Array) -> Array:
        return self.map.scatter(Y)

    @cached_property
    def _filled(self) -> Array:
        """``K L`` for the left side L of the fill, (n_observed, r)."""
        assert self.map.fill is not None
        return self.kernel @ to_device(self.map.fill.left, self.like, "float64")

    def rows(self, index: Any) -> Array:
        index = index if isinstance(index, slice) else to_host(index, None)
        chosen, positions = np.arange(self.n_samples)[index], self.map.positions[index]
        is_observed = positions < self.map.n_observed
        inner = self.kernel.rows(positions[is_observed])  # over the observed samples
        part = spread_rows(inner, np.flatnonzero(is_observed), len(chosen), 0.0)
        scale, fill = self.map.scale, self.map.fill
        if fill is not None:
            part = part + select(to_device(fill.right, part), chosen) @ self._filled.T
        part = self.map.scatter(part.T).T
        return (
            part
            if scale is None
            else part * select(to_device(scale, part), chosen)[:, None]
        )

    def diagonal(self) -> Array:
        inner, scale, fill = self.kernel.diagonal(), self.map.scale, self.map.fill
        diagonal = spread_rows(inner, self.map.samples, self.n_samples, 0.0)
        if fill is not None:  # the right side is zero on the observed samples
            left, right = fill.beside(inner)
            added = (right @ (left.T @ self._filled)) * right
            diagonal = diagonal + namespace(inner).sum(added, axis=1)
        return diagonal if scale is None else diagonal * to_device(scale, inner) ** 2


def maps_of(kernels: Sequence[Kernel]) -> list[SampleMap | None]:
    """Return which samples each kernel has; None for kernels that lack none."""
    return [kernel.map if isinstance(kernel, Observed) else None for kernel in kernels]


def observed_samples(kernels: Sequence[Kernel]) -> np.ndarray | None:
    """Return which samples each kernel has, bool of shape (n, m); None if none lacks any."""
    maps = maps_of(kernels)
    if all(each is None for each in maps):
        return None
    observed = np.ones((kernels[0].n_samples, len(kernels)), bool)
    for p, each in enumerate(maps):
        if each is not None:
            observed[each.missing, p] = False
    return observed


def with_maps(
    kernels: Sequence[Kernel], maps: Sequence[SampleMap | None]
) -> tuple[Kernel, ...]:
    """Return kernels with other maps; a kernel without one stays as it is."""
    return tuple(
        replace(kernel, map=each)
        if isinstance(kernel, Observed) and each is not None
        else kernel
        for kernel, each in zip(kernels, maps, strict=True)
    )


def with_active(kernels: Sequence[Kernel], active: Sequence[int]) -> tuple[Kernel, ...]:
    """Return kernels with samples rescaled to compensate for active kernels that lack them.

    Maps without a scale, and those with a fill, are left alone.
    """
    observed = observed_samples(kernels)
    if observed is None:
        return tuple(kernels)
    is_active = np.zeros(len(kernels), bool)
    is_active[list(active)] = True
    scale = rescaling(observed, is_active)
    # The other kernels stay as they are for samples that only they have.
    scale[scale == 0] = 1
    # Kernels that share a map share the new one.
    scaled = {
        id(each): replace(each, scale=scale)
        for each in maps_of(kernels)
        if each is not None and each.scale is not None
    }
    return with_maps(
        kernels, [each and scaled.get(id(each), each) for each in maps_of(kernels)]
    )


def rescaling(observed: np.ndarray, counted: np.ndarray | None = None) -> Float:
    """Return the factors that make up for kernels, or views, that lack a sample, (n_samples,).

    With equal weights, a sample then has the total self-similarity of one that all of
    them have; zero for samples that none of them has. `observed`, bool of shape
    (n_samples, m), says which samples they have, and `counted`, bool of shape (m,),
    which of them count; None for all.
    """
    observed = observed if counted is None else observed[:, counted]
    counts = observed.sum(axis=1)
    ratios = np.divide(
        observed.shape[1], counts, out=np.zeros(len(counts)), where=counts > 0
    )
    return np.sqrt(ratios)
