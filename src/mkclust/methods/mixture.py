"""The relaxed clustering of a mix of kernels, as a function of how they are mixed."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mkclust.engine.certificate import (
    Certificate,
    certify,
    relax_from,
    rounding_of_entries,
    search_key,
)
from mkclust.engine.eigen import Relaxation
from mkclust.linalg import inner_products
from mkclust.methods.solution import Solution
from mkclust.stack import Stack
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums that iterations compare.
EIGEN_TOLERANCE = 1e-12


class Mixture:
    """Leading eigenvectors of ``sum_p c_p K_p`` for one c after another.

    Each solve starts from the eigenvectors of the last.

    Parameters
    ----------
    stack : Stack
        The kernels.
    n_clusters : int
        Number of eigenvectors, k.
    tol : float, default=EIGEN_TOLERANCE
        Relative error allowed in the sum of the k largest eigenvalues.
    eigensolver : callable, default=None
        ``eigensolver(kernel, n_clusters) -> Relaxation`` in place of the warm-started one.
    """

    def __init__(
        self,
        stack: Stack,
        n_clusters: int,
        *,
        tol: float = EIGEN_TOLERANCE,
        eigensolver: Callable[[Any, int], Relaxation] | None = None,
    ):
        self.stack, self.n_clusters, self.tol, self.n_passes = stack, n_clusters, tol, 0
        self._eigensolver = eigensolver
        self._start: Array | None = None

    @property
    def uniform(self) -> Float:
        """The same weight for every kernel, summing to one."""
        return np.full(self.stack.n_kernels, 1 / self.stack.n_kernels)

    @cached_property
    def totals(self) -> Float:
        """The traces of the kernels."""
        return self.stack.traces()

    def relax(self, coefficients: Float) -> Relaxation:
        """Return the leading eigenvectors of one mix."""
        self.n_passes += 1
        mix = self.stack.mix(coefficients)
        if self._eigensolver is not None:
            return self._eigensolver(mix, self.n_clusters)
        relaxation = relax_from(mix, self.n_clusters, tol=self.tol, start=self._start)
        self._start = relaxation.vectors
        return relaxation

    def certify(
        self,
        relaxation: Relaxation,
        coefficients: Float,
        allowed_error: float,
        *,
        prove: bool | Literal["auto"] = "auto",
        random_state: Any = None,
    ) -> Certificate:
        """Return how it is known that no leading eigenvector of a mix was missed.

        Parameters
        ----------
        relaxation : Relaxation
            The eigenvectors.
        coefficients : ndarray of shape (n_kernels,)
            Those of the mix.
        allowed_error : float
            By how much the sum of their eigenvalues may be too small.
        prove : bool or "auto", default="auto"
            Whether to prove at once, never, or if a search is inconclusive and the kernels are in
            memory.
        random_state : int, RandomState or None, default=None
            What the random vectors of a search depend on.

        Returns
        -------
        Certificate
            Open if something was missed, or if the search was inconclusive.
        """
        key = search_key(random_state)
        verdict = certify(self.stack, coefficients, relaxation, allowed_error, prove=prove, key=key)
        self.n_passes += verdict.n_passes
        return verdict.certificate or Certificate("open", relaxation.error)

    def alignments(self, partition: Relaxation) -> Float:
        """Return ``Tr(H^T K_p H)`` for every kernel."""
        self.n_passes += 1
        H = partition.vectors[:, : self.n_clusters]
        return inner_products(self.stack.apply(H), H)

    def unexplained(self, partition: Relaxation) -> Float:
        """Return ``Tr(K_p (I - H H^T))`` for every kernel."""
        rest = self.totals - self.alignments(partition)
        # Never negative for a positive semidefinite kernel, and of a kernel of rank k nothing may
        # be left: what rounding leaves of it is no ground for weights.
        rounding = 10 * np.sqrt(self.stack.n_samples) * rounding_of_entries(self.stack)
        return np.where(rest <= rounding * self.totals, 0, rest)

    def solution(
        self,
        relaxation: Relaxation,
        weights: Float,
        coefficients: Float,
        history: Any,
        converged: bool,
        n_iter: int,
        **more: Any,
    ) -> Solution:
        """Return a mix as the solution of a method; its objective is the last of the history."""
        return Solution(
            partition=relaxation.vectors[:, : self.n_clusters],
            weights=weights,
            objective=float(history[-1]),
            history=np.asarray(history),
            converged=converged,
            coefficients=coefficients,
            relaxation=relaxation,
            n_iter=n_iter,
            n_passes=self.n_passes,
            **more,
        )
