"""The mixed kernel of samples, and of random samples without clusters."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

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
        self._samples = samples
        self._model = model
        self._shares = shares
        self._stack = stack
        self._kernels = [
            to_host(observed_part(each).kernel.dense()) for each in stack.kernels
        ]
        observed = observed_samples(stack.kernels)
        self._missing = None if observed is None else ~observed
        self.n_views = len(set(np.array(stack.views)[np.asarray(shares) != 0]))

        self._is_rows = _can_be_drawn(samples, model)
        parts = self._kernels
        missing = self._missing
        if self._is_rows:
            parts = [to_host(view) for view in samples.views.values()]
            missing = samples.missing
        else:
            inner = [gaussian_inner_products(K) for K in parts]
            self._is_gaussian = [each is not None for each in inner]
            pairs = zip(parts, inner, strict=True)
            parts = [K if each is None else each for K, each in pairs]

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
            block = part[places]
            self._rotated.append((some, block if self._is_rows else block[:, places]))

    def cloud(self, rng: np.random.Generator) -> Float:
        """Return the mix of one cloud, centered, (n_samples, n_samples)."""
        # A sample at the mean of a kernel cannot be scaled: rare, but certain in many
        # draws.
        for _ in range(19):
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
        R = Q * np.sign(np.diag(T)) @ helmert(len(Q), full=True)
        drawn = [R[some] @ part for some, part in self._rotated]
        if self._is_rows:
            samples = replace(self._samples, parts=tuple(drawn))
            return mix(open_stack(self._model, samples), self._shares)
        for p, (some, _) in enumerate(self._rotated):
            drawn[p] = drawn[p] @ R[some].T
            if self._is_gaussian[p]:
                halves = np.diag(drawn[p]) / 2
                exponents = drawn[p] - halves - halves[:, None]
                drawn[p] = self._kernels[p][0, 0] * np.exp(exponents)
        return self._mix(drawn)

    def shuffled(self, rng: np.random.Generator) -> Float:
        """Return the mix with the samples of every view shuffled, centered, (n, n)."""
        pairs = list(zip(self._stack.views, self._kernels, strict=True))
        sizes = {view: len(K) for view, K in pairs}
        orders = {view: rng.permutation(size) for view, size in sizes.items()}
        return self._mix([K[np.ix_(orders[view], orders[view])] for view, K in pairs])

    def _mix(self, kernels: Sequence[Float]) -> Float:
        """Return the mix of kernels that were drawn, standardized as those given."""
        symmetric = tuple((K + K.T) / 2 for K in kernels)
        stack = as_stack(
            Samples("kernels", self._stack.names, symmetric, missing=self._missing),
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
    asked = bank.rules if isinstance(bank.rules, Mapping) else {}
    return all(
        RULES[kind].takes_any_numbers
        and getattr(asked.get(name), "preprocess", None) is None
        for name, kind in bank.rules_.items()
    )


def gaussian_inner_products(K: Float) -> Float | None:
    """Return inner products of the points of a Gaussian kernel; None of others."""
    diagonal = np.diag(K)
    is_constant = np.ptp(diagonal) <= TOLERANCE * abs(diagonal[0])
    if not is_constant or K.min() <= 0:
        return None
    inner = centered(np.log(K / diagonal[0]))
    values = eigvalsh(inner)
    return inner if values[0] >= -TOLERANCE * max(values[-1], 0) else None
