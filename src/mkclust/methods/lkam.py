"""LKAM: multiple kernel k-means that trusts similarities between neighbors only."""

from typing import Any, ClassVar, Literal

import numpy as np

from mkclust.linalg import (
    astype,
    empty,
    is_foreign,
    namespace,
    ranges,
    select,
    set_diagonal,
    to_host,
    zeros,
)
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.mkkm_mir import descend_regularized
from mkclust.methods.solution import Solution
from mkclust.parameters import Allowed, Number
from mkclust.stack import KernelStack, as_stack
from mkclust.types import Array, Float

# Rows worked on at a time: enough for BLAS, few enough to add little memory. On a device, as many
# as have so many entries.
BLOCK_ROWS, BLOCK_ENTRIES_ON_DEVICE = 256, 2**25


def solve_lkam(
    stack: KernelStack,
    n_clusters: int,
    *,
    reg: float = 1.0,
    neighbors: float = 0.5,
    tol: float = 1e-6,
    max_iter: int = 10,
) -> Solution:
    r"""Align kernels with a partition within the neighborhood of every sample.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k} \sum_p \gamma_p^2\, z_p(H)
              + \frac\lambda2 \gamma^\top M \gamma

    .. math:: z_p(H) = \frac1n \sum_{ab} A_{ab} K_{p,ab} (I - H H^\top)_{ab}, \qquad
              M_{pq} = \frac1n \sum_{ab} A_{ab} K_{p,ab} K_{q,ab}

    :math:`A_{ab}` counts the samples in whose neighborhood both a and b are. With kernels
    :math:`A \circ K_p / n` the problem is that of MKKM-MiR with this M. They are written out:
    m + 1 matrices of n x n beside the kernels, and some six more for more than about n / 6
    clusters.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    reg : float, default=1.0
        The paper's lambda.
    neighbors : float, default=0.5
        The paper's tau: the size of a neighborhood, as a share of the samples.
    tol : float, default=1e-6
        Relative change of the objective at which to stop.
    max_iter : int, default=10
        Most iterations.

    Returns
    -------
    Solution
        Its history is the objective before each update of the weights, and that of the final pair.

    References
    ----------
    .. [1] M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering with Local
       Kernel Alignment Maximization. IJCAI 2016.
    """
    local, correlations = localize(stack, neighbors)
    return descend_regularized(local, n_clusters, reg * correlations, tol=tol, max_iter=max_iter)


def localize(stack: KernelStack, neighbors: float) -> tuple[KernelStack, Float]:
    """Return the kernels that count similarities of neighbors only, and their correlations M."""
    shared = shared_neighborhoods(stack, neighbors)
    entries, correlations = _localize_entries(stack.entries(), shared)
    local = as_stack(entries, center=False, normalize=False, validate=False, names=stack.names)
    return local, correlations


def shared_neighborhoods(stack: KernelStack, neighbors: float) -> Array:
    """Count for every two samples in how many neighborhoods both are, (n, n).

    The neighborhood of a sample are those most similar to it by the average kernel, itself left
    out unless all are wanted.
    """
    n, m = stack.n_samples, stack.n_kernels
    average = stack.combine(np.full(m, 1 / m)).dense()
    size = max(1, int(np.floor(neighbors * n + 0.5)))
    set_diagonal(average, -np.inf)
    # Counts are exact in single precision up to 2^24 samples.
    members = empty((n, n), average, "float32")
    for rows in ranges(n, _height(average, n)):
        members[rows, :] = astype(_nearest(average[rows, :], size), "float32")
    return members.T @ members


def _nearest(similarities: Array, size: int) -> Array:
    """Return which entries are among the largest of their row, so many of each."""
    xp, rest = namespace(similarities), similarities.shape[1] - size
    if is_foreign(similarities):
        least = xp.sort(similarities, axis=1)[:, rest : rest + 1]
    else:
        least = np.partition(similarities, rest, axis=1)[:, rest : rest + 1]
    inside, border = similarities > least, similarities == least
    # Among equals at the border the first are taken, as by a stable sort.
    room = size - xp.sum(astype(inside, "int32"), axis=1, keepdims=True)
    return inside | (border & (xp.cumulative_sum(astype(border, "int32"), axis=1) <= room))


def _height(like: Array, width: int) -> int:
    """Return how many rows to work on at a time."""
    return max(1, BLOCK_ENTRIES_ON_DEVICE // width) if is_foreign(like) else BLOCK_ROWS


def _localize_entries(entries: Array, shared: Array) -> tuple[Array, Float]:
    """Weigh the entries by shared neighborhoods, in place; return them and their correlations."""
    (m, n, _), xp = entries.shape, namespace(entries)
    total = zeros((m, m), entries)
    for rows in ranges(n, _height(entries, m * n)):
        block = entries[:, rows, :]
        local = block * (astype(shared[rows, :], "float64") / n)
        total += xp.reshape(local, (m, -1)) @ xp.reshape(block, (m, -1)).T
        entries[:, rows, :] = local
    correlations = to_host(total)
    return entries, (correlations + correlations.T) / 2


class LKAM(MultipleKernelClusterer):
    r"""Multiple kernel clustering with local kernel alignment maximization [1]_.

    MKKM-MiR, with every kernel's similarities counted only between samples that are neighbors of
    a common sample, the more often the more (see `solve_lkam` for the formula). The neighborhoods
    are those of the average kernel. It has no partition of samples it has not seen.

    Parameters
    ----------
    {inputs}
    reg : float, default=1.0
        The paper's lambda, not negative. The authors search 2^-15, ..., 2^15 (``GRID``).
    neighbors : float, default=0.5
        The paper's tau, above 0 and at most 1: the size of a neighborhood, as a share of the
        samples. The authors search 0.05, 0.15, ..., 0.95.
    tol : float, default=1e-6
        Relative change of the objective at which to stop.
    max_iter : int, default=10
        Most iterations.
    {seeds}

    Attributes
    ----------
    {labels}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights, summing to one; some may be zero. Not importance.
    coefficients_ : ndarray of shape (n_kernels,)
        Squares of the weights: ``sum_p coefficients_p K_p`` is what is masked and clustered.
    objective_ : float
        The objective of the final weights and partition.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective of each weights with their partition, falling.
    {notes}

    References
    ----------
    .. [1] M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering with Local
       Kernel Alignment Maximization. IJCAI 2016.

    Examples
    --------
    >>> from mkclust import LKAM
    >>> from mkclust.datasets import load
    >>> digits = load("digits")
    >>> model = LKAM(n_clusters=10, neighbors=0.1, random_state=0).fit(digits.views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    SUMMARY: ClassVar[str] = (
        "which aligns the mixed kernel with the partition among the nearest neighbors of each "
        "sample only"
    )
    REFERENCES: ClassVar[tuple[str, ...]] = (
        "M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering with Local "
        "Kernel Alignment Maximization. IJCAI, 2016.",
    )
    SLOWNESS: ClassVar[int] = 10
    GRID: ClassVar[dict[str, list]] = {
        "reg": [2.0**e for e in range(-15, 16)],
        "neighbors": [round(0.05 + 0.1 * i, 2) for i in range(10)],
    }
    ALLOWED: ClassVar[dict[str, Allowed]] = {
        "reg": Number(0),
        "neighbors": Number(0, 1, open_low=True),
    }
    SIMILARITIES: ClassVar[str] = "the sum of the kernels by their coefficients, among neighbors"
    FOOTPRINT: ClassVar[str] = "lkam"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = "auto",
        center: bool = True,
        normalize: bool = True,
        psd: Literal["error", "clip", "shift"] = "error",
        validate: bool = True,
        reg: float = 1.0,
        neighbors: float = 0.5,
        tol: float = 1e-6,
        max_iter: int = 10,
        n_init: int = 10,
        random_state: Any = None,
    ):
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            psd=psd,
            validate=validate,
            n_init=n_init,
            random_state=random_state,
        )
        self.reg = reg
        self.neighbors = neighbors
        self.tol = tol
        self.max_iter = max_iter

    def _solve(self, stack: KernelStack) -> Solution:
        """Solve by block descent."""
        return solve_lkam(
            stack,
            self.n_clusters,
            reg=self.reg,
            neighbors=self.neighbors,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _mixed_kernel(self, X: Any, samples: np.ndarray | None) -> Float:
        """Return the mix among samples that exist, by the share of neighborhoods they share."""
        stack = self._source.training_stack(self, X)
        entries = stack.mixed_entries(self.coefficients_, samples)
        shared = shared_neighborhoods(stack, self.neighbors)
        if samples is not None:
            shared = select(select(shared, samples), samples, axis=1)
        entries *= to_host(shared) / stack.n_samples
        return entries
