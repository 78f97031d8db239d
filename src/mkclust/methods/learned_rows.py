"""Rows of the embedding of samples that some kernels lack, where that was learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.linalg import namespace, select, to_device, to_host
from mkclust.stack import Stack
from mkclust.types import Array, Float

# The share of what is predicted of a kernel that lacks a sample which counts in its embedding:
# what its other kernels say is then amplified ten times at most.
TRUST = 0.9


def grams_of(stack: Stack, H: Array) -> Float:
    """Return ``H^T K_p H`` of every kernel, (m, k, k)."""
    products = stack.apply(H)
    grams = np.stack([to_host(H.T @ products[p, ...]) for p in range(stack.n_kernels)])
    return (grams + grams.transpose(0, 2, 1)) / 2


@dataclass(frozen=True)
class LearnedRows:
    r"""The embedding of samples that some kernels lack, from what the others say.

    With a partition H of :math:`\sum_p c_p K_p`, eigenvalues :math:`\Lambda`, a kernel contributes
    :math:`c_p \varphi_p(x)^\top M_p \Lambda^{-1}` to the embedding of x. Where it lacks x, it
    contributes a share :math:`\tau` of that for the features :math:`M_p h(x)` that the embedding
    predicts. With b(x) the sum of what the others contribute,

    .. math:: h(x) = b(x) \Big(I - \tau \sum_{p\ \mathrm{lacks}\ x}
              c_p M_p^\top M_p \Lambda^{-1}\Big)^{-1}.

    Were :math:`\tau` one, that would be the h for which the features seen are nearest to
    :math:`M_p h`. A sample that no kernel lacks keeps its b(x), and one in kernels of which enough
    other samples have more is embedded by what these teach (`mkclust.methods.seen_regression`).

    """

    # What a row is multiplied with for what it predicts of each kernel, (n_kernels, k, k).
    predictions: Float
    # Patterns of kernels, each with a regression for samples that no others have, (m,) of bool.
    patterns: Sequence[np.ndarray] = ()
    # The kernels that are mixed at all: whether others have a sample does not matter.
    active: np.ndarray | None = None

    @classmethod
    def of(cls, stack: Stack, coefficients: Float, H: Array, reciprocals: Float) -> "LearnedRows":
        """Return that of a partition H, with the reciprocals of its eigenvalues."""
        return cls(coefficients[:, None, None] * grams_of(stack, H) * reciprocals)

    def complete(self, rows: Array, seen: np.ndarray) -> Array:
        """Make up for kernels that lack samples, given the sum over the kernels that have them.

        Rows are what these contribute to the embedding, and to what each regression makes of the
        samples, (n_new, k + k * n_regressions); seen says which kernels have which samples.
        """
        k = self.predictions.shape[1]
        completed = self._complete(select(rows, slice(0, k), axis=1), seen)
        for number, pattern in enumerate(self.patterns, start=1):
            is_pattern = ((seen & self.active) == pattern).all(axis=1).astype(np.float64)
            predicted = select(rows, slice(number * k, (number + 1) * k), axis=1)
            chosen = to_device(is_pattern, rows)[:, None]
            completed = completed + chosen * (predicted - completed)
        return completed

    def _complete(self, rows: Array, seen: np.ndarray) -> Array:
        """Return rows with what they predict of the kernels that lack them, (n_new, k)."""
        patterns, of_row = np.unique(seen, axis=0, return_inverse=True)
        order = np.argsort(of_row.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(of_row.ravel(), minlength=len(patterns)))
        groups = np.split(order, ends[:-1]) if len(patterns) else []
        parts: list[Any] = [
            select(rows, group) @ to_device(self._matrix(pattern), rows)
            for pattern, group in zip(patterns, groups, strict=True)
        ]
        return select(namespace(rows).concat(parts), np.argsort(order)) if parts else rows

    def _matrix(self, seen: np.ndarray) -> Float:
        """Return what rows are multiplied with where some kernels lack them, (k, k)."""
        identity = np.eye(self.predictions.shape[1])
        return np.linalg.inv(identity - TRUST * self.predictions[~seen].sum(axis=0))
