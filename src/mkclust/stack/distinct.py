"""How many samples differ: there cannot be more clusters than that."""

import numpy as np

from mkclust.linalg import namespace, to_device, to_host
from mkclust.stack import KernelStack
from mkclust.stack.mapped import draw
from mkclust.types import Array

# Samples that are looked at first, for each that must differ.
LOOKED_AT = 4


def has_distinct(stack: KernelStack, count: int) -> bool:
    """Return whether so many samples differ, which some of them mostly tell.

    Samples differ where their similarities to some others do.
    """
    if LOOKED_AT * count >= stack.n_samples:
        return count_distinct(stack) >= count
    some = draw(stack.n_samples, LOOKED_AT * count)
    entries = to_host(stack.entries(some))
    scale = np.abs(entries).max(axis=(1, 2))
    scale[scale == 0] = 1
    products = np.tensordot(1 / scale, entries, 1) @ np.random.default_rng(0).uniform(
        0.5, 1.5, len(some)
    )
    # No similarity is larger than the lengths of both samples, nor its rounding than a share of it.
    longest = np.array([float(namespace(each).max(each)) for each in stack.raw_lengths()])
    rounding = 1e2 * stack.precision * len(some) * float(np.sum(longest**2 / scale))
    n_distinct = 1 + int(np.sum(np.diff(np.sort(products)) > rounding))
    return n_distinct >= count or count_distinct(stack) >= count


def count_distinct(stack: KernelStack) -> int:
    """Return how many samples the kernels tell apart, up to rounding.

    Identical samples have identical rows in every kernel, and so identical products with any
    vector. Two vectors are tried, since the products with one alone can agree by chance.
    """
    probe = np.random.default_rng(0).standard_normal((stack.n_samples, 2))
    mix = np.random.default_rng(1).standard_normal(stack.n_kernels)
    largest = np.abs(probe).max(axis=1)
    limits: Array = 0.0
    for p, (size, standardization) in enumerate(
        zip(stack.raw_lengths(), stack.standardizations, strict=True)
    ):
        xp = namespace(size)
        mix[p] /= (standardization.scale is None and float(xp.max(size)) ** 2) or 1.0
        # By Cauchy and Schwarz no sum of terms is larger, nor its rounding than a share of it.
        reach = float(xp.sum(size * to_device(largest, size)))
        limits = limits + abs(float(mix[p])) * reach * size
    bounds = to_host(limits)[:, None]
    # Mixed before they come to the host: two columns, however many kernels there are.
    images = stack.apply(to_device(probe, stack.like))
    prints = to_host(namespace(images).tensordot(to_device(mix, images), images, axes=1))
    order = np.argsort(prints[:, 0])
    apart = np.abs(np.diff(prints[order], axis=0))
    rounding = stack.precision * (bounds[order][1:] + bounds[order][:-1])
    return 1 + int(np.any(apart > rounding, axis=1).sum())
