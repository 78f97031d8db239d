"""How many samples differ: there cannot be more clusters than that."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.linalg import namespace, select, to_device, to_host
from mkclust.stack.compare import draw
from mkclust.stack.kernel import Kernel
from mkclust.stack.observed import Observed
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized
from mkclust.types import Array

# Samples that are compared first, per sample that must differ.
COMPARED_FIRST = 4


def has_distinct(stack: Stack, count: int) -> bool:
    """Return whether so many samples differ, which some of them mostly tell."""
    if COMPARED_FIRST * count < stack.n_samples:
        some = draw(stack.n_samples, COMPARED_FIRST * count)
        lengths = [select(each, some) for each in map(_lengths, stack.kernels)]
        if _count(stack.among(some), lengths, _precision(stack)) >= count:
            return True
    return count_distinct(stack) >= count


def count_distinct(stack: Stack) -> int:
    """Return how many samples the kernels tell apart, up to rounding."""
    return _count(stack, list(map(_lengths, stack.kernels)), _precision(stack))


def _count(stack: Stack, lengths: Sequence[Array], precision: float) -> int:
    """Return how many samples differ, given their lengths by each kernel before centering.

    Identical samples have identical rows in every kernel, and so identical products with any
    vector. Two vectors are tried, since the products with one alone can agree by chance.
    """
    probe = np.random.default_rng(0).standard_normal((stack.n_samples, 2))
    mix = np.random.default_rng(1).standard_normal(stack.n_kernels)
    bounds: Any = 0.0
    for p, length in enumerate(map(to_host, lengths)):
        mix[p] /= length.max() ** 2 or 1.0
        # By Cauchy and Schwarz no sum of terms is larger, nor its rounding than a share of it.
        bounds = bounds + abs(mix[p]) * length * (length @ np.abs(probe).max(axis=1))
    images = stack.apply(to_device(probe, stack.kernels[0].like))
    # Mixed before they come to the host: two columns, however many kernels there are.
    prints = to_host(namespace(images).tensordot(to_device(mix, images), images, axes=1))
    order = np.argsort(prints[:, 0])
    apart = np.abs(np.diff(prints[order], axis=0)).max(axis=1)
    rounding = precision * (bounds[order][1:] + bounds[order][:-1])
    return 1 + int(np.sum(apart > rounding))


def _lengths(kernel: Kernel) -> Array:
    """Return the lengths of the samples in a feature space, scaled but not centered, (n,)."""
    if isinstance(kernel, Observed):
        return kernel.map.scatter(_lengths(kernel.kernel)[:, None])[:, 0]
    is_standardized = isinstance(kernel, Standardized)
    diagonal = kernel.standardization.diagonal if is_standardized else kernel.diagonal()
    xp = namespace(diagonal)
    lengths = xp.sqrt(xp.abs(diagonal))
    scale = kernel.standardization.scale if is_standardized else None
    return lengths if scale is None else lengths * scale


def _precision(stack: Stack) -> float:
    """Return the largest rounding of the kernels."""
    return max(kernel.precision for kernel in stack.kernels)
