"""The relaxed clustering of a mix of kernels, as a function of how they are mixed."""

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
from mkclust.engine.eigen import Relaxation, relax
from mkclust.linalg import inner_products, precision_of
from mkclust.methods.alternate import Iterates
from mkclust.methods.solution import Solution
from mkclust.stack import Stack
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums that iterations compare.
EIGEN_TOLERANCE = 1e-12
# Relative error of the sums that `leading_shares` are of: they are shown with two digits.
SHARE_TOLERANCE = 2e-3


class Mixture:
    """The k leading eigenvectors of ``sum_p c_p K_p`` for one c after another.

    Each solve starts from the eigenvectors of the last.
    """

    def __init__(self, stack: Stack, n_clusters: int):
        self.stack, self.n_clusters, self.n_passes = stack, n_clusters, 0
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
        relaxation = relax_from(mix, self.n_clusters, tol=EIGEN_TOLERANCE, start=self._start)
        self._start = relaxation.vectors
        return relaxation

    def alignments(self, partition: Relaxation) -> Float:
        """Return ``Tr(H^T K_p H)`` for every kernel."""
        self.n_passes += 1
        H = partition.vectors[:, : self.n_clusters]
        return inner_products(self.stack.apply(H), H)

    def unexplained(self, partition: Relaxation) -> Float:
        """Return ``Tr(K_p (I - H H^T))`` for every kernel."""
        rest = self.totals - self.alignments(partition)
        # Nothing is left of a kernel of rank k but rounding, which must not decide on weights.
        rounding = 10 * np.sqrt(self.stack.n_samples) * rounding_of_entries(self.stack)
        return np.where(rest <= rounding * self.totals, 0, rest)

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

        The sum of its eigenvalues may be too small by the allowed error. The certificate is open if
        something was missed, or if the search was inconclusive.
        """
        key = search_key(random_state)
        verdict = certify(self.stack, coefficients, relaxation, allowed_error, prove=prove, key=key)
        self.n_passes += verdict.n_passes
        return verdict.certificate or Certificate("open", relaxation.error)

    def loop_solution(self, found: Iterates, coefficients: Float) -> Solution:
        """Return the end of one of the loops of `mkclust.methods.alternate` as a solution."""
        weights, relaxation, history, converged, n_iter, cycle = found
        return self.solution(
            relaxation, weights, coefficients, history, converged, n_iter, cycle=cycle
        )

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


def leading_shares(stack: Stack, solution: Solution) -> Float:
    """Return the share of each kernel's own top-k eigenvalue sum that a partition captures."""
    H, relaxation = solution.partition, solution.relaxation
    assert solution.grams is not None
    sums = np.einsum("pii->p", solution.grams)
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
