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
    Stored,
    namespace,
    precision_of,
    select,
    spread_rows,
    to_device,
    to_host,
)
from mkclust.stack.kernel import Kernel, Wrapped
from mkclust.types import Array, Float

# How samples that are missing from views are treated without being learned.
FillRule = Literal["zero", "rescale"]


@dataclass(frozen=True)
class Fill(Stored):
    """Missing samples as combinations: column j of ``left @ right^T`` is sample j."""

    left: Array  # over the observed samples, (n_observed, r)
    right: Array  # over all samples, (n_samples, r); zero on the observed ones

    def to_device_of(self, V: Array) -> tuple[Array, Array]:
        """Return both sides on the device of vectors, in their number type."""
        precision = precision_of(V)
        left = to_device(self.left, V, precision)
        right = to_device(self.right, V, precision)
        return left, right


@dataclass(frozen=True)
class SampleMap(Stored):
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
        """Positions of samples among the observed ones, after the last if missing."""
        positions = np.full(self.n_samples, self.n_observed)
        positions[self.samples] = np.arange(self.n_observed)
        return positions

    def gather(self, V: Array) -> Array:
        """Return ``E @ V``, (n_samples, b) to (n_observed, b), on the device of V."""
        if self.scale is not None:
            scale = to_device(self.scale, V, precision_of(V))
            V = V * scale[:, None]
        Y = select(V, self.samples)
        if self.fill is None:
            return Y
        left, right = self.fill.to_device_of(V)
        return Y + left @ (right.T @ V)

    def scatter(self, Y: Array) -> Array:
        """Return ``E^T @ Y``, (n_observed, b) to (n_samples, b), on the device of Y."""
        V = spread_rows(Y, self.samples, self.n_samples, 0.0)
        if self.fill is not None:
            left, right = self.fill.to_device_of(Y)
            V = V + right @ (left.T @ Y)
        if self.scale is None:
            return V
        scale = to_device(self.scale, Y, precision_of(Y))
        return V * scale[:, None]


@dataclass(frozen=True)
class Observed(Wrapped):
    """E^T K E: a kernel over some of n samples, and a fill for the others."""

    kernel: Kernel  # over the observed samples
    map: SampleMap  # E

    n_samples = property(lambda self: self.map.n_samples)

    def before(self, V: Array) -> Array:
        """Return vectors over the samples of the kernel."""
        return self.map.gather(V)

    def after(self, Y: Array, V: Array) -> Array:
        """Return vectors over all samples."""
        return self.map.scatter(Y)

    @cached_property
    def _filled(self) -> Array:
        """``K L`` for the left side L of the fill, (n_observed, r)."""
        assert self.map.fill is not None
        left = to_device(self.map.fill.left, self.like, "float64")
        return self.kernel @ left

    def rows(self, index: Any) -> Array:
        """Return rows over all samples, (s, n), filled in."""
        index = index if isinstance(index, slice) else to_host(index, None)
        chosen = np.arange(self.n_samples)[index]
        positions = self.map.positions[index]
        is_observed = positions < self.map.n_observed
        inner = self.kernel.rows(positions[is_observed])  # over the observed samples
        part = spread_rows(inner, np.flatnonzero(is_observed), len(chosen), 0.0)
        if self.map.fill is not None:
            right = to_device(self.map.fill.right, part)
            chosen_rows = select(right, chosen)
            part = part + chosen_rows @ self._filled.T
        part = self.map.scatter(part.T).T
        if self.map.scale is None:
            return part
        scale = select(to_device(self.map.scale, part), chosen)
        return part * scale[:, None]

    def diagonal(self) -> Array:
        """Return the diagonal over all samples, (n,), filled in."""
        inner = self.kernel.diagonal()
        diagonal = spread_rows(inner, self.map.samples, self.n_samples, 0.0)
        if self.map.fill is not None:  # the right side is zero on the observed samples
            left, right = self.map.fill.to_device_of(inner)
            added = (right @ (left.T @ self._filled)) * right
            diagonal = diagonal + namespace(inner).sum(added, axis=1)
        if self.map.scale is None:
            return diagonal
        return diagonal * to_device(self.map.scale, inner) ** 2


def maps_of(kernels: Sequence[Kernel]) -> list[SampleMap | None]:
    """Return which samples each kernel has; None for kernels that lack none."""
    return [kernel.map if isinstance(kernel, Observed) else None for kernel in kernels]


def observed_samples(kernels: Sequence[Kernel]) -> np.ndarray | None:
    """Return which samples each kernel has, (n, m); None if no kernel lacks any."""
    maps = maps_of(kernels)
    if all(each is None for each in maps):
        return None
    shape = (kernels[0].n_samples, len(kernels))
    observed = np.ones(shape, bool)
    for p, each in enumerate(maps):
        if each is not None:
            observed[each.missing, p] = False
    return observed


def with_maps(
    kernels: Sequence[Kernel],
    maps: Sequence[SampleMap | None],
) -> tuple[Kernel, ...]:
    """Return kernels with other maps; a kernel without one stays as it is."""
    changed = []
    for kernel, new in zip(kernels, maps, strict=True):
        if isinstance(kernel, Observed) and new is not None:
            kernel = replace(kernel, map=new)
        changed.append(kernel)
    return tuple(changed)


def with_active(kernels: Sequence[Kernel], active: Sequence[int]) -> tuple[Kernel, ...]:
    """Return kernels rescaled for samples that active ones lack.

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
    maps = maps_of(kernels)
    # Kernels that share a map share the new one.
    scaled = {
        id(old): replace(old, scale=scale)
        for old in maps
        if old is not None and old.scale is not None
    }
    return with_maps(kernels, [scaled.get(id(old)) for old in maps])


def rescaling(observed: np.ndarray, counted: np.ndarray | None = None) -> Float:
    """Return the factors that make up for kernels that lack a sample, (n_samples,).

    With equal weights, a sample then has the total self-similarity of one that all of
    them have; zero for samples that none of them has. `observed`, bool of shape
    (n_samples, m), says which samples they have, and `counted`, bool of shape (m,),
    which of them count; None for all.
    """
    if counted is not None:
        observed = observed[:, counted]
    counts = observed.sum(axis=1)
    ratios = np.where(counts > 0, observed.shape[1] / np.maximum(counts, 1), 0.0)
    return np.sqrt(ratios)
