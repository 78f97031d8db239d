"""The mixed kernel in which clusters are looked for: of samples, and of draws without clusters."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from mkclust.data import Samples, read_samples
from mkclust.kernels.kinds import RULES
from mkclust.linalg import arrays_to_host, eigh, eigvalsh, is_sparse, to_host
from mkclust.methods import AverageKKM
from mkclust.methods.training import open_samples
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.observed import FillRule, Observed, rescaling
from mkclust.types import Float

# Directions of less than this share of the longest are rounding.
RANK_TOLERANCE = 1e-9
# A squared distance may be off a Euclidean one by this share.
EUCLIDEAN_TOLERANCE = 1e-6
# Diagonals of kernels that are one in theory are so to this.
SAME_DIAGONAL = 1e-6
# Draws in search of one that can be scaled.
MOST_TRIES = 20


@dataclass(frozen=True)
class MixSettings:
    """How samples become one kernel: as in ``fit``, then mixed by fixed coefficients.

    ``kernels`` is "precomputed" or a KernelBank; coefficients None take the average.
    """

    kernels: Any
    center: bool
    normalize: bool
    psd: Literal["error", "clip", "shift"]
    coefficients: Float | None = None
    fill: FillRule = "rescale"

    def read(self, X: Any) -> Samples:
        """Return input of any form as samples, in NumPy's arrays: many small steps follow."""
        if not isinstance(X, Samples):
            X = read_samples(
                X, expected="precomputed" if self.kernels == "precomputed" else "views"
            )
        if X.whole is not None:
            return X
        return replace(X, parts=tuple(map(arrays_to_host, X.parts)))

    def open(self, samples: Samples) -> tuple[Any, Any, Any]:
        """Return a model, what it would be fitted on, and the kernels as they are."""
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

    def stack(self, X: Any) -> Stack:
        """Return the kernels of some samples, centered and scaled as in ``fit``."""
        model, source, kernels = self.open(self.read(X))
        return source.stack(model, kernels)

    def shares(self, n_kernels: int) -> Float:
        """Return the coefficients of so many kernels, summing to one."""
        if self.coefficients is None:
            return np.full(n_kernels, 1 / n_kernels)
        if len(self.coefficients) != n_kernels:
            raise ValueError(
                f"{len(self.coefficients)} coefficients for {n_kernels} kernels: pass one for each"
            )
        return self.coefficients / self.coefficients.sum()

    def mix(self, X: Any) -> Float:
        """Return the mixed kernel of some samples, centered, (n, n)."""
        return self._mix_stack(self.stack(X))

    def mix_kernels(self, kernels: list[Float], missing: np.ndarray | None = None) -> Float:
        """Return the mix of kernels that need no check, each of the samples that it has."""
        names = tuple(map(str, range(len(kernels))))
        stack = as_stack(
            Samples("kernels", names, tuple(kernels), missing=missing),
            center=self.center,
            normalize=self.normalize,
            validate=False,
            fill=self.fill,
        )
        return self._mix_stack(stack)

    def _mix_stack(self, stack: Stack) -> Float:
        return centered(to_host(Mix(self.shares(stack.n_kernels), stack.kernels).dense()))

    def mixes(self, X: Any) -> "ViewMixes":
        """Return what each view, or single kernel, contributes to the mix."""
        samples = self.read(X)
        missing = samples.missing
        # If samples are missing from views, the sum of the shuffled kernels is scaled.
        settings = self if missing is None else replace(self, fill="zero")
        stack = settings.stack(samples)
        shares, view = self.shares(stack.n_kernels), np.asarray(stack.views)
        parts = [np.where(view == v, shares, 0) for v in range(view.max() + 1)]
        kernels = [to_host(Mix(part, stack.kernels).dense()) for part in parts]
        if missing is None:
            return ViewMixes([centered(K) for K in kernels])
        scale = np.ones(len(missing))
        if self.fill == "rescale":
            scale = rescaling(~missing[:, view], np.ones(len(view), dtype=bool))
        return ViewMixes(kernels, [np.flatnonzero(~lacks) for lacks in missing.T], scale)


def centered(K: Float) -> Float:
    """Return a kernel centered, whatever was done to it before."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


@dataclass(frozen=True)
class ViewMixes:
    """What each view contributes to the mix; with the samples that it has, if some are missing."""

    kernels: list[Float]  # centered, or zero for samples that a view lacks
    observed: list[np.ndarray] | None = None  # the samples that each view has; None for all
    scale: Float | None = None  # what every sample of the sum is multiplied with

    def shuffled(self, rng: np.random.Generator) -> Float:
        """Return the mix with the samples of every view shuffled for themselves, centered.

        What each view has of its own stays; what views share is gone. A view has the samples that
        it has.
        """
        total = self.kernels[0].copy()
        for v, K in enumerate(self.kernels[1:], start=1):
            order = np.arange(len(K))
            some = order.copy() if self.observed is None else self.observed[v]
            order[some] = rng.permutation(some)
            total += K[np.ix_(order, order)]
        return total if self.scale is None else centered(np.outer(self.scale, self.scale) * total)


class NullSamples:
    """Draws of samples that have no clusters, but the mean and covariance of given ones.

    All coordinates of all views together keep their covariance exactly, within views and between
    them; beyond that they are as random as can be, which for many samples means normally
    distributed. So what is linear in the samples, be it shared by all views, stays; what is not,
    such as clusters, goes.

    The coordinates are the columns of views. Counts, shares, links and distances cannot be drawn so
    without turning negative: with such views, and with precomputed kernels, they are coordinates of
    the feature space of each kernel. If one could be a Gaussian kernel (its diagonal is constant,
    it is positive, and minus its logarithm is a squared Euclidean distance), they are those of the
    space in which it measures distances. Samples that are missing from views are drawn for all, and
    those of the same samples are left out of the draws.
    """

    def __init__(self, X: Any, settings: MixSettings):
        samples = settings.read(X)
        self._settings, self._samples, self._missing = settings, samples, samples.missing
        self._gaussian: list[bool] = []
        if _can_be_drawn(samples, settings):
            self._is_rows, coordinates = True, [to_host(view) for view in samples.views.values()]
        else:
            self._is_rows, coordinates = False, self._coordinates_of_kernels()
        if self._missing is not None:
            # The row of the most similar sample that a view has replaces one that it lacks: for
            # the covariance alone.
            K = settings.mix(samples)
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
        """Return the mixed kernel of one draw, centered, (n_samples, n_samples)."""
        for _ in range(MOST_TRIES - 1):
            # A sample may be at the very mean of a kernel, and then has no length to be scaled by:
            # rare in a draw, but certain in some of many draws of few columns.
            with suppress(ValueError):
                return self._try(rng)
        return self._try(rng)

    def _try(self, rng: np.random.Generator) -> Float:
        """Return the mixed kernel of one draw, or refuse it as what was given would be refused."""
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
            return self._settings.mix(replace(self._samples, parts=tuple(drawn)))
        kernels = [_kernel_of(F, each) for F, each in zip(drawn, self._gaussian, strict=True)]
        return self._settings.mix_kernels(kernels, self._missing)

    def _coordinates_of_kernels(self) -> list[Float]:
        """Return coordinates of the samples for each kernel, and note which could be Gaussian."""
        settings, samples = self._settings, self._samples
        if settings.kernels == "precomputed":
            unscaled = replace(settings, center=False, normalize=False)
            given = [to_host(K.dense()) for K in _of_observed(unscaled.stack(samples))]
        else:
            _, source, made = settings.open(samples)
            given = [_written_out(K) for part in made for K in part]
            if self._missing is not None:
                self._missing = source.of_kernels(self._missing)
        coordinates = []
        for entries in given:
            inner = _gaussian_inner_products(entries)
            self._gaussian.append(inner is not None)
            if inner is None:
                inner = centered(entries) if settings.center else entries
            values, vectors = eigh(inner)
            coordinates.append(vectors * np.sqrt(np.maximum(values, 0)))
        return coordinates


def _nearest(K: Float, observed: np.ndarray) -> np.ndarray:
    """Return for every sample the place of the most similar one of some: of these, themselves."""
    places = np.argmax(K[:, observed], axis=1)
    places[observed] = np.arange(len(observed))
    return places


def _can_be_drawn(samples: Samples, settings: MixSettings) -> bool:
    """Return whether rows of all views, and what transforms them, take any numbers."""
    if settings.kernels == "precomputed" or any(map(is_sparse, samples.parts)):
        return False
    bank = clone(settings.kernels).fit(samples)
    asked = bank.rules if isinstance(bank.rules, Mapping) else {}
    return all(
        RULES[kind].takes_any_numbers and getattr(asked.get(name), "preprocess", None) is None
        for name, kind in bank.rules_.items()
    )


def _of_observed(stack: Stack) -> list[Any]:
    """Return the kernels of the samples that each has."""
    return [K.kernel if isinstance(K, Observed) else K for K in stack.kernels]


def _kernel_of(F: Float, is_gaussian: bool) -> Float:
    """Return the kernel of coordinates: their inner products, or the Gaussian of distances."""
    K = F @ F.T
    if is_gaussian:
        lengths = np.diag(K)
        K = np.exp(K - lengths / 2 - lengths[:, None] / 2)
    return (K + K.T) / 2


def _written_out(kernel: Any) -> Float:
    """Return the entries of a kernel, (n, n)."""
    return kernel.toarray() if is_sparse(kernel) else np.asarray(kernel)


def _gaussian_inner_products(K: Float) -> Float | None:
    """Return the inner products of points of which K is the Gaussian kernel, None if of none."""
    diagonal = np.diag(K)
    constant = np.ptp(diagonal) <= SAME_DIAGONAL * abs(diagonal[0])
    if not constant or K.min() <= 0:
        return None
    inner = centered(np.log(K / diagonal[0]))
    values = eigvalsh(inner)
    return inner if values[0] >= -EUCLIDEAN_TOLERANCE * max(values[-1], 0) else None
