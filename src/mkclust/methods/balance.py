"""Weights that are learned, of kernels that have different numbers of samples."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mkclust.methods.solution import Solution
from mkclust.stack import KernelStack


def solve_balanced(stack: KernelStack, solve: Callable[[KernelStack], Solution]) -> Solution:
    r"""Solve so that no kernel has a large weight for having few samples.

    What a partition explains of a kernel, and what it leaves, grows with the number of samples that
    the kernel has, and the weights of some methods with the reciprocal: a kernel of a tenth of the
    samples would have ten times the weight, and a hundred times the coefficient. Multiplied by
    :math:`(n_{max} / n_p)^2` it has the coefficient that it would have with all samples.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    solve : callable
        Returns the solution of a stack.

    Returns
    -------
    Solution
        With coefficients of the kernels as they are in `stack`.
    """
    sizes = np.array([part.map.n_observed for part in stack.parts])
    if np.all(sizes == sizes[0]):
        return solve(stack)
    ratios = sizes.max() / sizes
    pairs = zip(stack.parts, ratios.tolist(), strict=True)
    maps = [
        part.map if part.map.scale is None else replace(part.map, scale=part.map.scale * ratio)
        for part, ratio in pairs
    ]
    solution = solve(stack.with_maps(maps))
    assert solution.coefficients is not None
    factors = np.ones(stack.n_kernels)
    for part, ratio in zip(stack.parts, ratios, strict=True):
        if part.map.scale is not None:  # scaled up, not zero as it is
            factors[list(part.indices)] = ratio**2
    return replace(solution, coefficients=solution.coefficients * factors)
