"""How many samples differ: there cannot be more clusters than that."""

import numpy as np

from mkclust.linalg import to_device, to_host
from mkclust.stack import KernelStack


def count_distinct(stack: KernelStack) -> int:
    """Return how many samples the kernels tell apart, up to rounding.

    Identical samples have identical rows in every kernel, and so identical products with any
    vector. Two vectors are tried, since the products with one alone can agree by chance.
    """
    probe = np.random.default_rng(0).standard_normal((stack.n_samples, 2))
    mix = np.random.default_rng(1).standard_normal(stack.n_kernels)
    bounds = np.zeros((stack.n_samples, 1))
    for p, standard in enumerate(stack.standards):
        size = np.sqrt(np.abs(to_host(standard.diagonal)))
        mix[p] /= (standard.scale is None and size.max() ** 2) or 1.0
        size = size if standard.scale is None else size * to_host(standard.scale)
        # By Cauchy and Schwarz no sum of terms is larger, nor its rounding than a share of it.
        bounds[:, 0] += abs(mix[p]) * size * (size @ np.abs(probe).max(axis=1))
    images = to_host(stack.apply(to_device(probe, stack.like)))
    prints = np.tensordot(mix, images, 1)
    order = np.argsort(prints[:, 0])
    apart = np.abs(np.diff(prints[order], axis=0))
    rounding = stack.precision * (bounds[order][1:] + bounds[order][:-1])
    return 1 + int(np.any(apart > rounding, axis=1).sum())
