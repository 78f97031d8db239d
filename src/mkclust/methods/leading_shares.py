"""How much of each kernel's own leading structure a partition captures."""

import numpy as np

from mkclust.engine.leading import leading_share
from mkclust.engine.leading_together import leading_shares_together
from mkclust.engine.relaxation import relax
from mkclust.linalg import is_foreign
from mkclust.linalg.memory import are_written_out
from mkclust.linalg.parallel import for_each
from mkclust.linalg.threads import are_ours
from mkclust.methods.solution import Solution
from mkclust.stack import KernelStack
from mkclust.types import Float

# How accurately shares are found: they are read, to two digits, and not computed on.
SHARE_TOLERANCE = 1.5e-3


def leading_shares(stack: KernelStack, solution: Solution) -> Float:
    """Return the share of each kernel's own top-k eigenvalue sum that a partition captures, (m,).

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    solution : Solution
        The partition, and the products of the kernels with it where the solver has them.
    """
    H, products = solution.partition, solution.kernel_products
    if products is None and not stack.combining_pays:
        products = stack.apply(H)  # of all kernels in one pass
    sums, shares = solution.shared_sums, np.empty(stack.n_kernels)
    if not is_foreign(H) and are_written_out(stack.n_kernels, stack.n_samples):
        kernels = [stack.rough_kernel(p) for p in range(stack.n_kernels)]
        return leading_shares_together(
            kernels, H, tol=SHARE_TOLERANCE, products=products, captured=sums
        )

    def find(p: int) -> None:
        """Find the share of one kernel."""
        shares[p] = leading_share(
            stack.rough_kernel(p),
            H,
            tol=SHARE_TOLERANCE,
            products=None if products is None else products[p, :, :],
            captured=None if sums is None else float(sums[p]),
        )

    # Of many samples there is room for one copy at a time in single precision.
    for_each(range(stack.n_kernels), find, together=are_ours() and not is_foreign(H))
    return shares


def leading_sums(stack: KernelStack, n_clusters: int) -> Float:
    """Return each kernel's own top-k eigenvalue sum, (m,), for shares of many partitions."""
    kernels = map(stack.kernel, range(stack.n_kernels))
    return np.array([relax(K, n_clusters, tol=SHARE_TOLERANCE).value for K in kernels])
