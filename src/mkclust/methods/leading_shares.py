"""How much of each kernel's own leading structure a partition captures."""

import numpy as np

from mkclust.engine.eigen import relax
from mkclust.linalg import inner_products
from mkclust.methods.solution import Solution
from mkclust.stack import Stack
from mkclust.types import Float

SHARE_TOLERANCE = 1.5e-3


def leading_shares(stack: Stack, solution: Solution) -> Float:
    H = solution.partition
    sums = inner_products(stack.apply(H), H)
    tops = leading_sums(stack, H.shape[1])
    return np.clip(np.divide(sums, tops, out=np.zeros_like(tops), where=tops > 0), 0, 1)


def leading_sums(stack: Stack, n_clusters: int) -> Float:
    return np.array([relax(K, n_clusters, tol=1e-3).value for K in stack.kernels])
