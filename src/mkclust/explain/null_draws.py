"""The mixed kernel of samples, and of random samples without clusters."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import helmert

from mkclust.data import Samples
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.embedding import observed_part
from mkclust.fit.steps import open_samples
from mkclust.kernels.kinds import RULES
from mkclust.linalg import arrays_to_host, eigvalsh, is_sparse, to_host
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.observed import observed_samples
from mkclust.types import Float

# Up to this share, diagonals are constant, and squared distances Euclidean.
TOLERANCE = 1e-6


def open_stack(model: MultipleKernelClusterer, samples: Samples) -> Stack:
    """Return the kernels of samples, standardized as in a fit, in NumPy's arrays."""
    samples = replace(samples, parts=arrays_to_host(samples.parts))
    _, make_stack = open_samples(model, samples)
    return make_stack()


def centered(K: Float) -> Float:
    """Return a kernel centered."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def mix(stack: Stack, shares: Float) -> Float:
    """Return the mix of kernels, centered, (n, n)."""
    return centered(to_host(Mix(shares, stack.kernels).dense()))


class NullDraws:
    """Mixed kernels of random samples without clusters, drawn from given samples.

    A cloud is the samples rotated at random around their mean: the columns of views, or
    if there are precomputed kernels, or counts, shares, links or distances, which would
    turn negative, the feature space of each kernel; of one that could be Gaussian, the
    space of its distances.
    """

    def __init__(self, samples: Samples, model: MultipleKernelClusterer, shares: Float):
        stack = open_stack(model, samples)
        self._samples, self._model, self._shares = samples, model, shares
        self._names, self._views = stack.names, stack.views
        observed = observed_samples(stack.kernels)
        self._kernels = [
            to_host(observed_part(each).kernel.dense()) for each in stack.kernels
        ]
        self._missing = None
        if observed is not None:
            self._missing = ~observed
        self.n_views = len(
            {view for view, share in zip(stack.views, shares, strict=True) if share}
        )

        missing = self._missing
        self._is_rows = _can_be_drawn(samples, model)
        if self._is_rows:
            parts = [to_host(view) for view in samples.views.values()]
            missing = samples.missing
        else:
            inner = [gaussian_inner_products(K) for K in self._kernels]
            self._is_gaussian = [each is not None for each in inner]
            parts = list(self._kernels)
            for p, products in enumerate(inner):
                if products is not None:
                    parts[p] = products

        K = mix(stack, shares)
        self._rotated = []
        for v, part in enumerate(parts):
            some = np.arange(len(K))
            if missing is not None:
                some = np.flatnonzero(~missing[:, v])
            # For the covariance alone, a sample that a view lacks is the most similar
            # one of it.
            places = np.argmax(K[:, some], axis=1)
            places[some] = np.arange(len(some))
            if self._is_rows:
                block = part[places]
            else:
                block = part[np.ix_(places, places)]
            self._rotated.append((some, block))

    def cloud(self, rng: np.random.Generator) -> Float:
        """Return the mix of one cloud, centered, (n_samples, n_samples)."""
        # Attempts to draw samples that can all be scaled.
        max_draws = 20
        # A sample at the mean of a kernel cannot be scaled: rare, but certain in many
        # draws.
        for _ in range(max_draws - 1):
            with suppress(ValueError):
                return self._draw_cloud(rng)
        return self._draw_cloud(rng)

    def _draw_cloud(self, rng: np.random.Generator) -> Float:
        """Return the mix of one cloud; ValueError if a fit would refuse it."""
        normal = rng.normal(size=(self._samples.n_samples,) * 2)
        normal[:, 0] = 1
        Q, T = np.linalg.qr(normal)
        # All rotations that keep the constant vector, and so the mean, are equally
        # likely.
        signs = np.sign(np.diag(T))
        R = Q * signs @ helmert(len(Q), full=True)
        rotated = (R[some] @ part for some, part in self._rotated)
        drawn = tuple(rotated)
        if self._is_rows:
            samples = replace(self._samples, parts=drawn)
            return mix(open_stack(self._model, samples), self._shares)
        kernels = []
        for p, (some, _) in enumerate(self._rotated):
            products = drawn[p] @ R[some].T
            if self._is_gaussian[p]:
                products = _gaussian(products, self._kernels[p][0, 0])
            kernels.append(products)
        return self._mix(kernels)

    def shuffled(self, rng: np.random.Generator) -> Float:
        """Return the mix with the samples of every view shuffled, centered, (n, n)."""
        sizes = {
            view: len(K) for view, K in zip(self._views, self._kernels, strict=True)
        }
        orders = {view: rng.permutation(size) for view, size in sizes.items()}
        each = zip(self._views, self._kernels, strict=True)
        permuted = [K[np.ix_(orders[view], orders[view])] for view, K in each]
        return self._mix(permuted)

    def _mix(self, kernels: Sequence[Float]) -> Float:
        symmetric = tuple((K + K.T) / 2 for K in kernels)
        stack = as_stack(
            Samples("kernels", self._names, symmetric, missing=self._missing),
            center=self._model.center,
            normalize=self._model.normalize,
            validate=False,
            fill=self._model.table_options.fill_rule,
        )
        return mix(stack, self._shares)


def _can_be_drawn(samples: Samples, model: MultipleKernelClusterer) -> bool:
    if samples.kind == "kernels" or any(map(is_sparse, samples.parts)):
        return False
    bank = model.kernels.fit(samples)
    asked: Mapping[str, Any] = {}
    if isinstance(bank.rules, Mapping):
        asked = bank.rules
    return all(
        RULES[kind].takes_any_numbers
        and getattr(asked.get(name), "preprocess", None) is None
        for name, kind in bank.rules_.items()
    )


def _gaussian(products: Float, scale: float) -> Float:
    halves = np.diag(products) / 2
    exponents = products - halves - halves[:, None]
    return scale * np.exp(exponents)


def gaussian_inner_products(K: Float) -> Float | None:
    """Return inner products of the points of a Gaussian kernel; None of others."""
    diagonal = np.diag(K)
    first = diagonal[0]
    constant = np.ptp(diagonal) <= TOLERANCE * abs(first)
    if not constant or K.min() <= 0:
        return None
    inner = centered(np.log(K / diagonal[0]))
    values = eigvalsh(inner)
    largest = max(values[-1], 0)
    if values[0] < -TOLERANCE * largest:
        return None
    return inner
