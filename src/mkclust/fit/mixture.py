"""Relaxed clustering of mixed kernels; loops that find mix and partition in turn."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from mkclust.engine.certificate import (
    Certificate,
    certify,
    relax_from,
    rounding_of_entries,
    search_key,
)
from mkclust.engine.eigen import Relaxation, relax
from mkclust.fit.solution import Solution
from mkclust.linalg import inner_products, precision_of
from mkclust.stack import Stack
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums that iterations compare.
EIGEN_TOLERANCE = 1e-12
# Relative error of the sums used by `leading_shares`, which are shown with two digits.
SHARE_TOLERANCE = 5e-3


class Iterates(NamedTuple):
    """Weights and partition at the end of an alternation, and how it got there."""

    weights: Any
    relaxation: Relaxation
    history: Float
    converged: bool
    n_iter: int
    cycle: int = 0


class Mixture:
    """The leading eigenvectors of one mix after another, each started from the last."""

    def __init__(self, stack: Stack, n_clusters: int):
        self.stack = stack
        self.n_clusters = n_clusters
        self.n_passes = 0
        self.mixed: Any = None  # the latest mix
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
        mix = self.mixed = self.stack.mix(coefficients)
        relaxation = relax_from(
            mix, self.n_clusters, tol=EIGEN_TOLERANCE, start=self._start
        )
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
        # Nothing is left of a kernel of rank k but rounding, which must not decide on
        # weights.
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
        """Return how it is known that no eigenvector of a mix was missed, or "open"."""
        key = search_key(random_state)
        verdict = certify(
            self.stack, coefficients, relaxation, allowed_error, prove=prove, key=key
        )
        self.n_passes += verdict.n_passes
        known = verdict.certificate or verdict.weaker
        return known or Certificate("open", relaxation.error)

    def solution(
        self,
        relaxation: Relaxation,
        weights: Float,
        coefficients: Float,
        history: Float | list[float],
        converged: bool,
        n_iter: int,
        **more: Any,
    ) -> Solution:
        """Return a mix as a solution, whose objective is the last of the history."""
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


def leading_shares(
    stack: Stack, H: Array, products: Array, start: Array | None = None
) -> Float:
    """Return what share of each kernel's top-k eigenvalue sum a partition captures.

    The ``products`` of the kernels are those with the vectors ``start``, of which H are
    the first, or with H alone.
    """
    if start is None:
        start = H
    k = H.shape[1]
    largest = leading_sums(stack, k, start, products)
    sums = inner_products(products[:, :, :k], H)
    shares = np.divide(sums, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.clip(shares, 0, 1)


def leading_sums(
    stack: Stack,
    n_clusters: int,
    start: Array | None = None,
    products: Array | None = None,
) -> Float:
    """Return the sum of the k largest eigenvalues of each kernel.

    The search may ``start`` from vectors, of which the ``products`` with the kernels
    are known.
    """
    held = stack.held()
    options: Any = {"tol": SHARE_TOLERANCE, "start": start}
    if held is not None:
        options["dtype"] = precision_of(held.entries)
    sums = np.empty(stack.n_kernels)
    for p, K in enumerate((held or stack).kernels):
        if products is not None:
            options["products"] = products[p, :, :]
        sums[p] = relax(K, n_clusters, **options).value
    return sums


def descend(
    mixture: Mixture,
    weights: Float,
    update: Callable[[Float], Float],
    objective: Callable[[Float, Float], float],
    *,
    tol: float,
    max_iter: int,
    mix: Callable[[Float], Float] = np.square,
    recorded: Literal["before", "after"] = "before",
) -> Solution:
    """Minimize an objective over partition and weights in turns.

    The weights depend on what the partition leaves unexplained. From the third
    iteration on, the loop stops if the objective ``recorded`` before or after the
    update changes by less than the share ``tol``. The history ends with the objective
    of the pair that is returned.
    """
    relaxation = mixture.relax(mix(weights))
    unexplained = mixture.unexplained(relaxation)
    history = list[float]()
    converged = False
    while not converged and len(history) < max_iter:
        updated = update(unexplained)
        if recorded == "before":
            history.append(objective(weights, unexplained))
        else:
            history.append(objective(updated, unexplained))
        weights = updated
        relaxation = mixture.relax(mix(weights))
        unexplained = mixture.unexplained(relaxation)
        converged = len(history) > 2 and (
            history[-1] == 0 or abs(history[-2] - history[-1]) < tol * abs(history[-2])
        )
    n_iter = len(history)
    history.append(objective(weights, unexplained))
    return mixture.solution(
        relaxation, weights, mix(weights), history, converged, n_iter
    )


def alternate(
    weights: Float,
    relax: Callable[[Float], Relaxation],
    respond: Callable[[Relaxation], tuple[Float, float]],
    *,
    tol: float,
    max_iter: int,
    order: float = np.inf,
) -> Iterates:
    """Alternate between two sides with opposite goals.

    ``respond(relaxation)`` returns the weights that answer a partition, and the
    objective. The loop stops if the weights change by less than ``tol`` in the norm of
    some ``order``, or at a cycle. The iterate with the least objective is returned; the
    start is not an iterate.
    """
    trail = [weights]
    relaxation = relax(weights)
    answer, value = respond(relaxation)
    history = [value]
    best = (value, weights, relaxation)
    converged = False
    cycle = 0
    while not converged and not cycle and len(trail) <= max_iter:
        weights = answer
        relaxation = relax(weights)
        answer, value = respond(relaxation)
        history.append(value)
        converged = float(np.linalg.norm(weights - trail[-1], order)) < tol
        if converged or len(trail) == 1 or value < best[0]:
            best = (value, weights, relaxation)
        if not converged:
            cycle = _cycle(trail, weights, share=1e-3)
        trail.append(weights)
    if not converged and not cycle:
        cycle = _cycle(trail[:-1], weights, share=0.1)  # nearly, when it was stopped
    value, weights, relaxation = best
    if value != history[-1]:
        history.append(value)
    return Iterates(
        weights, relaxation, np.array(history), converged, len(trail) - 1, cycle
    )


def _cycle(trail: list[Float], weights: Float, share: float) -> int:
    """Return in how many steps the weights came back to an earlier iterate, or zero.

    They are back if they are within this share of the last step.
    """
    if len(trail) < 2:
        return 0
    step = np.max(np.abs(weights - trail[-1]))
    for length in range(2, len(trail) + 1):
        if np.max(np.abs(weights - trail[-length])) <= share * step:
            return length
    return 0
