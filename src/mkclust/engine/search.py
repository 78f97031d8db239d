"""The search for weights: in a subspace, or in the whole space where that is cheaper.

Eigenvectors of a combination of kernels, and combinations that are themselves being sought, are
found in a subspace of a few dozen to a few hundred dimensions. All this asks of the kernels is
products with thin matrices.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.engine.cutting import CuttingSurfaces, Evaluation
from mkclust.engine.missed import DOUBLE
from mkclust.engine.problem import Problem, Search
from mkclust.engine.proof import Certificate, entries_of_combination
from mkclust.engine.relaxation import Relaxation, block_width, relax_whole
from mkclust.engine.subspace import SubspaceSearch
from mkclust.engine.subspace_in_memory import InMemorySearch
from mkclust.engine.subspace_streamed import StreamedSearch
from mkclust.linalg import inner_products, is_on_accelerator
from mkclust.linalg.operators import Anchor
from mkclust.linalg.threads import (
    single_threaded_products,
    threads_for,
    threads_for_decomposition,
)
from mkclust.types import Array, Float

__all__ = ["Search", "search"]


def search(
    stack: Any,
    n_clusters: int,
    surfaces: CuttingSurfaces,
    *,
    tol: float,
    max_iter: int,
    anchor: Anchor | None = None,
    baseline: Relaxation | None = None,
    prove: bool | Literal["auto"] = "auto",
    key: int = 0,
) -> Search:
    r"""Find the weights and the eigenvectors of their combination together.

    .. math:: \min_{\gamma \in \Delta} \max_{H^\top H = I_k}
              \sum_p \gamma_p^2 \mathrm{Tr}(H^\top K_p H) + c\, \mathrm{Tr}(H^\top H_0 H_0^\top H)

    A basis V is kept together with the products of every kernel with it. In each iteration the
    problem restricted to V is solved to about the accuracy that V deserves; then V is expanded by
    the leading eigenvectors of the combination just found, computed with products of that one
    matrix alone, or by their residuals where the kernels are not in memory and a combination is no
    matrix either. Alignments measured in V belong to vectors of full length, so the surfaces they
    make stay valid however V changes: the lower bound is exact. The upper bound is the eigenvalue
    sum found plus what may be missing from it, which is proved or searched for
    (`mkclust.engine.proof`) before it is believed.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    n_clusters : int
        Number of clusters, k.
    surfaces : CuttingSurfaces
        The problem over the weights.
    tol : float
        Relative gap at which to stop.
    max_iter : int
        Number of iterations at which to give up.
    anchor : Anchor, default=None
        A partition that every combination is drawn to, :math:`H_0`, and how strongly, c.
    baseline : Relaxation, default=None
        A partition to begin with; None begins with that of first weights.
    prove : bool or "auto", default="auto"
        Whether to prove by a factorization that no eigenvector was missed, "auto" where that is
        cheaper than a search, or where a search does not tell.
    key : int, default=0
        Of the random vectors that a search starts from (`mkclust.engine.missed.search_key`).

    Returns
    -------
    Search
    """
    n = stack.n_samples
    problem = Problem(stack, n_clusters, surfaces, tol, max_iter, anchor, prove, key)
    if block_width(n, n_clusters) >= n:
        with threads_for(n), threads_for_decomposition():
            return _search_whole_space(problem)
    kind: type[SubspaceSearch] = InMemorySearch if stack.combining_pays else StreamedSearch
    subspace = kind(problem)
    # Beside an accelerator a host has small problems only, which several threads slow down.
    on_device = is_on_accelerator(stack.like)
    with single_threaded_products() if on_device else threads_for(n):
        result = subspace.run(baseline)
    n_left = max_iter - len(result.history)
    if result.converged or n_left <= 0 or not subspace.could_be_whole():
        return result
    with threads_for(n), threads_for_decomposition():
        whole = _search_whole_space(replace(problem, max_iter=n_left))
    history = np.concatenate([result.history, whole.history])
    return replace(whole, history=history, n_passes=result.n_passes + whole.n_passes)


def _search_whole_space(problem: Problem) -> Search:
    """Search where the basis would be the whole space: every eigenproblem at full size."""
    stack, k, surfaces = problem.stack, problem.n_clusters, problem.surfaces
    anchor = problem.anchor

    def evaluate(gamma: Float) -> Evaluation:
        """Solve the eigenproblem of some weights at full size."""
        M = entries_of_combination(stack, gamma**2, stack.combine(gamma**2))
        relaxation = relax_whole(M if anchor is None else anchor.added_to(M), k)
        H = relaxation.vectors[:, :k]
        offset = 0.0 if anchor is None else anchor.offset(H)
        alignments, products = _exact_alignments(stack, H)
        return Evaluation(relaxation.value, alignments, (relaxation, products), offset)

    weights, best, history = surfaces.minimize(evaluate, problem.tol, problem.max_iter)
    # A dense eigensolver is exact but for rounding.
    rounding = np.sqrt(stack.n_samples) * np.finfo(np.float64).eps
    relaxation, products = best.state
    relaxation = replace(relaxation, error=float(rounding * best.value))
    return Search(
        weights,
        relaxation,
        np.array(history),
        converged=best.value - surfaces.lower_bound <= problem.tol * best.value,
        n_passes=2 * len(history),
        certificate=Certificate("proved", relaxation.error),
        alignments=best.alignments,
        kernel_products=products,
    )


def _exact_alignments(stack: Any, H: Array) -> tuple[Float, Array | None]:
    """Return ``Tr(H^T K_p H)`` in double precision, and ``K_p H`` where that has all of it."""
    if stack.precision <= DOUBLE:
        products = stack.apply(H)
        return inner_products(products, H), products
    exact = (stack.kernel(index).dense() @ H for index in range(stack.n_kernels))
    return np.array([inner_products(product[None, :, :], H)[0] for product in exact]), None
