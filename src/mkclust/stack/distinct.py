"""How many samples differ: there cannot be more clusters than that."""

import numpy as np

from mkclust.linalg import namespace, to_device, to_host
from mkclust.stack.compare import draw
from mkclust.stack.kernel import Kernel
from mkclust.stack.observed import Observed
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized

# Samples that are compared first, for each that must differ.
COMPARED = 4


def count_distinct(stack: Stack, enough: int) -> int:
    """Return how many samples differ, up to rounding; of some of them if these are enough."""
    if COMPARED * enough < stack.n_samples:
        found = _count(stack.among(draw(stack.n_samples, COMPARED * enough)), stack)
        if found >= enough:
            return found
    return _count(stack, stack)


def _count(stack: Stack, whole: Stack) -> int:
    """Count distinct products of a random mix with random vectors; `whole` gives their rounding.

    Identical samples have identical rows in every kernel, and so identical products. Products with
    one vector alone can agree by chance.
    """
    rng = np.random.default_rng(0)
    probe, mix = rng.standard_normal((stack.n_samples, 2)), rng.standard_normal(stack.n_kernels)
    largest = np.array([_largest_entry(kernel) or 1.0 for kernel in whole.kernels])
    images = stack.apply(to_device(probe, stack.kernels[0].like, "float64"))
    weights = to_device(mix / largest, images)
    products = to_host(namespace(images).tensordot(weights, images, axes=1))
    precision = max(kernel.precision for kernel in whole.kernels)
    rounding = 2 * precision * np.abs(probe).sum(axis=0) * np.abs(mix).sum()
    apart = np.abs(np.diff(products[np.argsort(products[:, 0])], axis=0))
    return 1 + int(np.any(apart > rounding, axis=1).sum())


def _largest_entry(kernel: Kernel) -> float:
    """Return a bound on the entries of a kernel before it was centered: they round by a share."""
    if isinstance(kernel, Observed):
        scale = 1.0 if kernel.map.scale is None else float(np.max(to_host(kernel.map.scale)))
        return scale**2 * _largest_entry(kernel.kernel)
    sizes = kernel.diagonal()
    if isinstance(kernel, Standardized):
        sizes, scale_of_samples = kernel.kernel.diagonal(), kernel.standardization.scale
        sizes = sizes if scale_of_samples is None else sizes * scale_of_samples**2
    return float(namespace(sizes).max(namespace(sizes).abs(sizes)))
