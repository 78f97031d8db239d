"""How much of each kernel's own leading structure a partition captures."""

from typing import Any

import numpy as np

from mkclust.engine.eigen import relax
from mkclust.linalg import inner_products, precision_of
from mkclust.methods.solution import Solution
from mkclust.stack import Stack
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums that the shares are of: they are shown with two digits.
SHARE_TOLERANCE = 2e-3


def leading_shares(stack: Stack, solution: Solution) -> Float:
    """Return the share of each kernel's own top-k eigenvalue sum that a partition captures."""
    H, relaxation, held = solution.partition, solution.relaxation, stack.held()
    sums = inner_products((held or stack).apply(H), H)
    largest = leading_sums(stack, H.shape[1], H if relaxation is None else relaxation.vectors)
    shares = np.divide(sums, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.clip(shares, 0, 1)


def leading_sums(stack: Stack, n_clusters: int, start: Array | None = None) -> Float:
    """Return the sum of the k largest eigenvalues of each kernel, from a partition on."""
    held = stack.held()
    options: Any = {"tol": SHARE_TOLERANCE, "start": start}
    if held is not None:
        options["dtype"] = precision_of(held.entries)
    return np.array([relax(K, n_clusters, **options).value for K in (held or stack).kernels])
