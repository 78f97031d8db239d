r"""From vectors over all samples to vectors over those that a kernel has, and back.

A kernel K that lacks some of n samples is, over all of them, :math:`E^\top K E`, with a thin
product on either side of K. Column i of E says what sample i is made of in the kernel's feature
space: an observed sample of itself, a missing one of nothing, or of a combination of observed ones.
Whatever E is, :math:`E^\top K E` is positive semidefinite where K is.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mkclust.linalg import arrays_to_host, namespace, place, select, to_device, zeros
from mkclust.types import Array, Float

# How samples that are missing from views are treated without being learned.
FillRule = Literal["zero", "rescale"]


@dataclass(frozen=True)
class Fill:
    """What missing samples are made of: column j of ``left @ right^T`` says so for sample j.

    Attributes
    ----------
    left : array of shape (n_observed, r)
        Over the observed samples.
    right : array of shape (n_samples, r)
        Over all samples; zero on the observed ones, which are made of themselves.
    """

    left: Array
    right: Array

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: arrays of the host."""
        return {name: arrays_to_host(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class SampleMap:
    r"""The map E from vectors over all samples to vectors over the samples of a kernel.

    .. math:: E = (S + L R^\top)\, \mathrm{diag}(s)

    S selects the observed samples, L and R are the two sides of the fill, and s is the scale.

    Attributes
    ----------
    samples : ndarray of int of shape (n_observed,)
        Rising numbers of the observed samples, on the host.
    n_samples : int
        Number of all samples, n.
    scale : array of shape (n_samples,) or None
        What every sample is multiplied with; None for ones.
    fill : Fill or None
        What missing samples are made of; None for nothing, so that their similarities are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack.sample_map import SampleMap
    >>> sample_map = SampleMap(np.array([0, 2]), 3)
    >>> sample_map.gather(np.array([[1.0], [2.0], [3.0]])).ravel()
    array([1., 3.])
    >>> sample_map.scatter(np.array([[1.0], [3.0]])).ravel()
    array([1., 0., 3.])
    """

    samples: np.ndarray
    n_samples: int
    scale: Array | None = None
    fill: Fill | None = None

    @property
    def n_observed(self) -> int:
        """Number of observed samples."""
        return len(self.samples)

    @cached_property
    def missing(self) -> np.ndarray:
        """Rising numbers of the samples that are missing, on the host."""
        return np.setdiff1d(np.arange(self.n_samples), self.samples, assume_unique=True)

    @cached_property
    def positions(self) -> np.ndarray:
        """Every sample's position among the observed ones, after the last where it is missing."""
        positions = np.full(self.n_samples, self.n_observed)
        positions[self.samples] = np.arange(self.n_observed)
        return positions

    def gather(self, V: Array) -> Array:
        """Return ``E @ V``, (n_samples, b) to (n_observed, b), where V lives."""
        if self.scale is not None:
            V = V * to_device(self.scale, V)[:, None]
        samples, _ = self._numbers_beside(V)
        Y = select(V, samples)
        if self.fill is None:
            return Y
        left, right = to_device(self.fill.left, V), to_device(self.fill.right, V)
        return Y + left @ (right.T @ V)

    def scatter(self, Y: Array) -> Array:
        """Return ``E^T @ Y``, (n_observed, b) to (n_samples, b), where Y lives."""
        xp, (_, positions) = namespace(Y), self._numbers_beside(Y)
        # Missing samples read the row of zeros at the end: no library need write by numbers.
        V = select(xp.concat([Y, zeros((1, Y.shape[1]), Y)]), positions)
        if self.fill is not None:
            left, right = to_device(self.fill.left, Y), to_device(self.fill.right, Y)
            V = V + right @ (left.T @ Y)
        return V if self.scale is None else V * to_device(self.scale, Y)[:, None]

    def scatter_lengths(self, lengths: Array) -> Array:
        """Return how long the features of all samples are at most, from those observed, (n,)."""
        if self.fill is None:
            return self.scatter(lengths[:, None])[:, 0]
        xp = namespace(lengths)
        sizes = Fill(*(xp.abs(to_device(side, lengths)) for side in vars(self.fill).values()))
        return SampleMap(self.samples, self.n_samples, self.scale, sizes).scatter(lengths[:, None])[
            :, 0
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored of it: its attributes, as arrays of the host."""
        names = ("samples", "n_samples", "scale", "fill")
        return {name: arrays_to_host(getattr(self, name)) for name in names}

    @cached_property
    def _numbers(self) -> dict[str, tuple[Array, Array]]:
        """The numbers of samples and positions, by the place that they were brought to."""
        return {}

    def _numbers_beside(self, like: Array) -> tuple[Array, Array]:
        """Return the observed samples' numbers, and every sample's position, beside ``like``.

        They are brought there once, not for every product.
        """
        where = place(like)
        if where not in self._numbers:
            self._numbers[where] = to_device(self.samples, like), to_device(self.positions, like)
        return self._numbers[where]


def rescaling(observed: np.ndarray, counted: np.ndarray | None = None) -> Float:
    """Return what makes up for the kernels, or views, that lack a sample, (n_samples,).

    With equal weights, a sample then has the total self-similarity of one that all of them have.

    Parameters
    ----------
    observed : ndarray of bool of shape (n_samples, n_kernels)
        Which kernels have which samples.
    counted : ndarray of bool of shape (n_kernels,), default=None
        Which kernels count; None for all.

    Returns
    -------
    ndarray of shape (n_samples,)
        Zero for samples that none of them has.
    """
    observed = observed if counted is None else observed[:, counted]
    counts = observed.sum(axis=1)
    ratios = np.divide(observed.shape[1], counts, out=np.zeros(len(counts)), where=counts > 0)
    return np.sqrt(ratios)
