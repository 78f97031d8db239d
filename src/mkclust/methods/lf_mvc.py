"""LF-MVC: cluster by every kernel alone, then align the partitions with a consensus."""

from typing import ClassVar, NamedTuple

import numpy as np

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.documentation import COSINES
from mkclust.fit.embedding import inverse
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import EIGEN_TOLERANCE
from mkclust.fit.solution import Solution
from mkclust.linalg import hstack, namespace, polar_factor, to_device, to_host
from mkclust.parameters import Allowed, Number
from mkclust.stack import Mix, Stack
from mkclust.types import Array, Float

# A partition with at most this weight keeps the rotation it has, as in the authors'
# code.
SMALLEST_WEIGHT = 1e-4


class Fusion(NamedTuple):
    """A consensus of partitions: ``F`` is the polar factor of ``total``."""

    partition: Array  # F, (n, k)
    weights: Float  # b, (m,)
    rotations: Float  # W, (m, k, k)
    total: Array  # sum_p b_p H_p W_p + lambda H_0, (n, k)
    history: Float
    converged: bool


def solve_lf_mvc(
    stack: Stack,
    n_clusters: int,
    *,
    reg: float = 2.0,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Maximize the objective of `LFMVC` over consensus, rotations, weights in turn."""
    k = n_clusters
    n = stack.n_samples
    rounding = rounding_of_entries(stack)
    uniform = np.full(stack.n_kernels, 1 / stack.n_kernels)
    average = stack.mix(uniform)
    found = [
        relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in (average, *stack.kernels)
    ]
    inverses = [inverse(each.eigenvalues[:k], n, rounding) for each in found]
    pairs = list(zip((each.vectors[:, :k] for each in found), inverses, strict=True))
    # Columns in the null space of a kernel of rank below k become zeros: which of these
    # vectors an eigensolver returns must not matter.
    H_0, *H = (
        vectors * to_device(values > 0, vectors, "float64") for vectors, values in pairs
    )
    fusion = fuse(H, H_0, reg=float(reg), tol=tol, max_iter=max_iter)
    R = to_host(namespace(fusion.total).linalg.qr(fusion.total)[1])
    _, lengths, Vt = np.linalg.svd(R)
    root = (Vt.T * inverse(lengths, n, rounding)) @ Vt  # (X^T X)^(-1/2)
    # H_p = K_p V_p.
    V_0, *V = (vectors * to_device(values, vectors) for vectors, values in pairs)
    shared = V_0 @ to_device(reg / stack.n_kernels * root, V_0)
    parts = zip(V, fusion.weights, fusion.rotations, strict=True)
    projections = [V_p @ to_device(b * W @ root, V_p) + shared for V_p, b, W in parts]
    return Solution(
        partition=fusion.partition,
        weights=fusion.weights,
        objective=float(fusion.history[-1]),
        history=fusion.history,
        kernel=Mix(uniform, stack.kernels),
        converged=fusion.converged,
        projections=projections,
        n_iter=len(fusion.history) - 1,
        n_passes=2,
    )


def fuse(
    H: list[Array],
    H_0: Array,
    *,
    reg: float,
    align: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Fusion:
    """Find the consensus of m orthonormal partitions H, starting near one of them, H_0.

    With ``align``, every partition is turned towards ``H_0`` at the start.
    """
    m, k = len(H), H_0.shape[1]
    partitions, xp = hstack(*H), namespace(H_0)

    def overlaps(F: Array) -> Float:
        return to_host(partitions.T @ F).reshape(m, k, k)

    W = np.stack([polar_factor(M_p) if align else np.eye(k) for M_p in overlaps(H_0)])
    b, history, converged = np.full(m, 1 / m), list[float](), False
    while True:
        A = (b[:, None, None] * W).reshape(m * k, k)
        X = partitions @ to_device(A, partitions) + reg * H_0
        F = polar_factor(X)
        M, anchored = overlaps(F), reg * float(xp.sum(F * H_0))
        if converged or len(history) == max_iter:
            # F once more, so that partition, rotations and weights belong together.
            history.append(float(b @ np.sum(M * W, axis=(1, 2))) + anchored)
            return Fusion(F, b, W, X, np.array(history), converged)
        for p in np.flatnonzero(b > SMALLEST_WEIGHT):
            W[p] = polar_factor(M[p])
        # Nuclear norms, except for rotations that were kept, which may give negative
        # numbers.
        c = np.maximum(np.sum(M * W, axis=(1, 2)), 0)
        length = float(np.linalg.norm(c))
        b = c / length if length > 0 else np.full(m, m**-0.5)
        history.append(length + anchored)
        converged = len(history) > 2 and abs(history[-1] - history[-2]) < tol * abs(
            history[-2]
        )


class LFMVC(RelaxedClusterer, InductiveClusterer):
    r"""Multi-view clustering via late fusion alignment maximization [1]_.

    .. math:: \max_{F,\, W_p,\, b} \mathrm{Tr}\Bigl(F^\top \sum_p b_p H_p W_p\Bigr)
              + \lambda\, \mathrm{Tr}(F^\top H_0), \qquad
              F^\top F = W_p^\top W_p = I_k, \quad \|b\|_2 = 1, \quad b \ge 0

    Every kernel is clustered alone, into its k leading eigenvectors :math:`H_p`; these
    partitions are mixed, not the kernels, each turned by a rotation :math:`W_p`. The
    consensus F also stays near the partition :math:`H_0` of the average kernel. In
    turns over F, the rotations and the weights b, the objective rises to a stationary
    point of at most :math:`k (\sqrt m + \lambda)`. Rotations start towards :math:`H_0`,
    so that signs of eigenvectors do not matter.

    Parameters
    ----------
    {inductive}
    reg : float, default=2.0
        The paper's lambda, not negative: how much the average kernel's partition
        counts. The authors search 2^-15, ..., 2^15 (``GRID``). Small values may need
        more iterations.
    {stopping}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        Mixing weights b of the partitions, of unit l2 norm. Not importance: a large
        weight means that the kernel's own partition agrees with the consensus.
    objective_ : float
        ``Tr(F^T sum_p b_p H_p W_p) + reg Tr(F^T H_0)``.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective after each update of the weights, and at the end, rising.
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import LFMVC
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = LFMVC(n_clusters=10, random_state=0).fit(views)
    >>> model.converged_, round(float((model.weights_**2).sum()), 6)
    (True, 1.0)
    """

    reg: float = 2.0
    tol: float = 1e-6
    max_iter: int = 100

    SUMMARY = (
        "which aligns a consensus with rotated partitions of all kernels and of their "
        "average"
    )
    REFERENCES = (
        "S. Wang, X. Liu, E. Zhu, C. Tang, J. Liu, J. Hu, J. Xia, J. Yin. Multi-view "
        "Clustering via Late Fusion Alignment Maximization. IJCAI, 2019.",
    )
    GRID: ClassVar[dict[str, list]] = {"reg": [2.0**e for e in range(-15, 16)]}
    SIMILARITIES = COSINES
    ALLOWED: ClassVar[dict[str, Allowed]] = {"reg": Number(0)}

    def _solve(self, stack: Stack) -> Solution:
        return solve_lf_mvc(
            stack, self.n_clusters, **self._options("reg", "tol", "max_iter")
        )
