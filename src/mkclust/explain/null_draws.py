"""The mixed kernel of samples, and of random samples without clusters."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from mkclust.data import Samples
from mkclust.explain.spectral_path import centered
from mkclust.kernels.kinds import RULES
from mkclust.linalg import arrays_to_host, eigh, eigvalsh, is_sparse, to_host
from mkclust.methods import AverageKKM
from mkclust.methods.agreement_kkm import find_compromise
from mkclust.methods.training import open_samples
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.observed import FillRule, Observed, rescaling
from mkclust.types import Float

# Directions of less than this share of the longest are rounding.
RANK_TOLERANCE = 1e-9
# A squared distance may differ from a Euclidean one by this share.
EUCLIDEAN_TOLERANCE = 1e-6
# Diagonals of kernels that are one in theory are so up to this.
SAME_DIAGONAL = 1e-6
# Attempts to draw samples that can all be scaled.
MAX_DRAWS = 20


@dataclass(frozen=True)
class Mixing:
    """How samples become one kernel: as in ``fit``, then mixed by fixed coefficients."""

    kernels: Any  # "precomputed" or a KernelBank
    center: bool
    normalize: bool
    psd: Literal["error", "clip", "shift"]
    fill: FillRule = "rescale"
    coefficients: Float | None = None

    def open(self, samples: Samples) -> tuple[Any, Any, Any]:
        """Return a model, what it would be fitted on, and the kernels as they are."""
        # In NumPy's arrays: many small steps follow.
        samples = replace(samples, parts=arrays_to_host(samples.parts))
        is_bank = self.kernels != "precomputed"
        model = AverageKKM(
            1,
            kernels=clone(self.kernels).set_params(on_the_fly=False) if is_bank else "precomputed",
            center=self.center,
            normalize=self.normalize,
            psd=self.psd,
            missing_views=self.fill,
        )
        return model, *open_samples(model, samples)

    def stack(self, samples: Samples) -> Stack:
        """Return the kernels of some samples, centered and scaled as in ``fit``."""
        model, source, kernels = self.open(samples)
        return source.stack(model, kernels)

    def learned(self, samples: Samples) -> "Mixing":
        """Return the same with coefficients: what views share in the recommended method."""
        if self.coefficients is not None:
            return self
        found = find_compromise(self.stack(samples))
        return replace(self, coefficients=found.scatter(found.coefficients))

    def shares(self, n_kernels: int) -> Float:
        """Return the coefficients of the kernels, summing to one."""
        assert self.coefficients is not None
        if len(self.coefficients) != n_kernels:
            raise ValueError(
                f"{len(self.coefficients)} coefficients for {n_kernels} kernels: pass one for each"
            )
        return self.coefficients / self.coefficients.sum()

    def mix(self, samples: Samples) -> Float:
        """Return the mixed kernel of some samples, centered, (n, n)."""
        return self.mix_stack(self.stack(samples))

    def mix_stack(self, stack: Stack) -> Float:
        """Return the mix of kernels, centered, (n, n)."""
        return centered(to_host(Mix(self.shares(stack.n_kernels), stack.kernels).dense()))


class ShuffledViews:
    """Draws of the mix with the samples of every view shuffled on their own."""

    def __init__(self, samples: Samples, mixing: Mixing):
        # If views lack samples, the sum of the shuffled kernels is rescaled.
        stack, n = replace(mixing, fill="zero").stack(samples), samples.n_samples
        shares, view = mixing.shares(stack.n_kernels), np.asarray(stack.views)
        missing = np.zeros((n, view.max() + 1), dtype=bool)
        missing = missing if samples.missing is None else samples.missing
        used = np.unique(view[shares > 0])
        parts = [np.where(view == v, shares, 0) for v in used]
        self.kernels = [to_host(Mix(part, stack.kernels).dense()) for part in parts]
        self._orders = [np.flatnonzero(~missing[:, v]) for v in used]
        scaled = mixing.fill == "rescale"
        self._scale = rescaling(~missing[:, view], shares > 0) if scaled else np.ones(n)

    def draw(self, rng: np.random.Generator) -> Float:
        """Return the mix of one draw, centered, (n_samples, n_samples)."""
        total = np.zeros_like(self.kernels[0])
        for K, some in zip(self.kernels, self._orders, strict=True):
            order = np.arange(len(K))
            order[some] = rng.permutation(some)
            total += K[np.ix_(order, order)]
        return centered(np.outer(self._scale, self._scale) * total)


class Cloud:
    """Draws of samples without clusters that have the mean and covariance of given ones.

    What is linear in the samples, even if all views share it, stays; clusters are lost. Coordinates
    are the columns of views. Counts, shares, links and distances cannot be drawn so without turning
    negative: with such views, and with precomputed kernels, coordinates are those of the feature
    space of each kernel, or if it could be Gaussian, those of the space of its distances. Samples
    that views lack are drawn, and left out again.
    """

    def __init__(self, samples: Samples, mixing: Mixing):
        self._mixing, self._samples, self._missing = mixing, samples, samples.missing
        self._gaussian: list[bool] = []
        self._is_rows = _can_be_drawn(samples, mixing)
        if self._is_rows:
            coordinates = [to_host(view) for view in samples.views.values()]
        else:
            coordinates = self._coordinates_of_kernels()
        if self._missing is not None:
            # For the covariance alone, a sample that a view lacks gets the row of the most similar
            # one that it has.
            K = mixing.mix(samples)
            coordinates = [
                rows[_nearest(K, np.flatnonzero(~lacks))]
                for rows, lacks in zip(coordinates, self._missing.T, strict=True)
            ]
        self._means = [view.mean(axis=0) for view in coordinates]
        apart = [view - mean for view, mean in zip(coordinates, self._means, strict=True)]
        # Of one size, so that no view is taken for the rounding of another.
        self._sizes = [np.linalg.norm(view) or 1.0 for view in apart]
        scaled = [view / size for view, size in zip(apart, self._sizes, strict=True)]
        self._ends = np.cumsum([view.shape[1] for view in scaled])[:-1]
        _, lengths, axes = np.linalg.svd(np.hstack(scaled), full_matrices=False)
        has_length = lengths > RANK_TOLERANCE * lengths[0]
        self._axes = lengths[has_length][:, None] * axes[has_length]

    def draw(self, rng: np.random.Generator) -> Float:
        """Return the mix of one draw, centered, (n_samples, n_samples)."""
        # A sample at the very mean of a kernel has no length to be scaled by: rare in one draw, but
        # certain in some of many draws of few columns.
        for _ in range(MAX_DRAWS - 1):
            with suppress(ValueError):
                return self._draw_once(rng)
        return self._draw_once(rng)

    def _draw_once(self, rng: np.random.Generator) -> Float:
        """Return the mix of one draw; ValueError if its samples would be refused by a fit."""
        rotated = rng.normal(size=(self._samples.n_samples, len(self._axes)))
        rotated = np.linalg.qr(rotated - rotated.mean(axis=0))[0]
        parts = np.split(rotated @ self._axes, self._ends, axis=1)
        drawn = [
            mean + size * part
            for mean, size, part in zip(self._means, self._sizes, parts, strict=True)
        ]
        if self._missing is not None:
            drawn = [part[~lacks] for part, lacks in zip(drawn, self._missing.T, strict=True)]
        if self._is_rows:
            return self._mixing.mix(replace(self._samples, parts=tuple(drawn)))
        kernels = [_kernel_of(F, each) for F, each in zip(drawn, self._gaussian, strict=True)]
        names = tuple(map(str, range(len(kernels))))
        stack = as_stack(
            Samples("kernels", names, tuple(kernels), missing=self._missing),
            center=self._mixing.center,
            normalize=self._mixing.normalize,
            validate=False,
            fill=self._mixing.fill,
        )
        return self._mixing.mix_stack(stack)

    def _coordinates_of_kernels(self) -> list[Float]:
        """Return coordinates of the samples for each kernel, and note which could be Gaussian."""
        mixing = self._mixing
        if mixing.kernels == "precomputed":
            stack = replace(mixing, center=False, normalize=False).stack(self._samples)
            kernels = [K.kernel if isinstance(K, Observed) else K for K in stack.kernels]
            given = [to_host(K.dense()) for K in kernels]
        else:
            _, source, made = mixing.open(self._samples)
            entries = [K for part in made for K in part]
            given = [K.toarray() if is_sparse(K) else np.asarray(K) for K in entries]
            if self._missing is not None:
                self._missing = source.of_kernels(self._missing)
        coordinates = []
        for K in given:
            inner = gaussian_inner_products(K)
            self._gaussian.append(inner is not None)
            if inner is None:
                inner = centered(K) if mixing.center else K
            values, vectors = eigh(inner)
            coordinates.append(vectors * np.sqrt(np.maximum(values, 0)))
        return coordinates


def _nearest(K: Float, observed: np.ndarray) -> np.ndarray:
    """Return for every sample the position of the most similar observed one: itself if it is."""
    positions = np.argmax(K[:, observed], axis=1)
    positions[observed] = np.arange(len(observed))
    return positions


def _can_be_drawn(samples: Samples, mixing: Mixing) -> bool:
    """Return whether the rules of all views take rows of any numbers."""
    if mixing.kernels == "precomputed" or any(map(is_sparse, samples.parts)):
        return False
    bank = clone(mixing.kernels).fit(samples)
    asked = bank.rules if isinstance(bank.rules, Mapping) else {}
    return all(
        RULES[kind].takes_any_numbers and getattr(asked.get(name), "preprocess", None) is None
        for name, kind in bank.rules_.items()
    )


def _kernel_of(F: Float, is_gaussian: bool) -> Float:
    """Return the kernel of coordinates: their inner products, or the Gaussian of distances."""
    K = F @ F.T
    if is_gaussian:
        lengths = np.diag(K)
        K = np.exp(K - lengths / 2 - lengths[:, None] / 2)
    return (K + K.T) / 2


def gaussian_inner_products(K: Float) -> Float | None:
    """Return inner products of points of which K is the Gaussian kernel; None if there are none."""
    diagonal = np.diag(K)
    constant = np.ptp(diagonal) <= SAME_DIAGONAL * abs(diagonal[0])
    if not constant or K.min() <= 0:
        return None
    inner = centered(np.log(K / diagonal[0]))
    values = eigvalsh(inner)
    return inner if values[0] >= -EUCLIDEAN_TOLERANCE * max(values[-1], 0) else None
