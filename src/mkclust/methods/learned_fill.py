r"""Samples missing from some kernels, made of observed ones in turns with clustering.

A kernel :math:`K = \Phi_c \Phi_c^\top` over the samples c that it has is, over all
samples, that of features :math:`\Phi`: those observed, and for every missing sample j a
combination :math:`\varphi_j` of these. With a partition H, rows :math:`h_i`, let

.. math:: M = \Phi^\top H, \qquad a(\Phi) = \mathrm{Tr}(K H H^\top) = \|M\|^2, \qquad
          u(\Phi) = \mathrm{Tr}(K (I - H H^\top)).

**MKKM** minimizes a sum of u over partition and weights; over the missing features, it
is minimized by regression on the partition [1]_: :math:`\varphi_j = \Phi_c^\top H_c
(H_c^\top H_c)^+ h_j`. Each of the three moves is exact, so the objective never rises.

**SimpleMKKM** minimizes over the weights the maximum over the partitions. As in other
methods that maximize alignment [2]_, the fills side with the partition here: they
maximize :math:`G = \min_\gamma \max_H \sum_p \gamma_p^2 a_p`, among features no longer
than a length :math:`\ell`, or G would grow without end. A fill is :math:`\varphi_j =
\ell M h_j / \|M h_j\|`, with M by the features before it.

*It never lowers G.* Let :math:`(\gamma, H)` be the optimum before a fill. As a is
convex in the features, :math:`a(\Phi') - a(\Phi) \ge 2 \sum_j \langle M h_j, \varphi'_j
- \varphi_j \rangle`, and no vector of length :math:`\ell` has a larger inner product
with :math:`M h_j` than :math:`\varphi'_j`. So a rises for every kernel, and for all
weights :math:`\gamma'`

.. math:: \max_{H'} \sum_p \gamma_p'^2 a'_p(H') \ge \sum_p \gamma_p'^2 a'_p(H)
          \ge \sum_p \gamma_p'^2 a_p(H) \ge G.

The last step holds as :math:`\gamma` minimizes that sum over the simplex: it is where
the gradient of the convex :math:`\max_H` vanishes. If eigenvalues k and k + 1 tie
there, the gradient is that of a mixture of partitions and H is one of them; and kernels
that have the same samples share one fill, which raises the mean of their a. In these
two cases only the next solve can show it, and a fill that lowers G is rejected.

*How long.* :math:`\ell^2` is the part of the squared length of an observed sample that
its regression on the first partition explains, on average. Longer ones would outweigh
the observed samples, and the partition would only confirm itself.

References
----------
.. [1] X. Liu, X. Zhu, M. Li, L. Wang, E. Zhu, T. Liu, M. Kloft, D. Shen, J. Yin, W.
   Gao. Multiple Kernel k-Means with Incomplete Kernels. IEEE TPAMI 42(5), 2020.
.. [2] X. Liu. Incomplete Multiple Kernel Alignment Maximization for Clustering. IEEE
   TPAMI, 2021.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mkclust.fit.embedding import grams_of
from mkclust.fit.solution import Solution
from mkclust.linalg import namespace, to_device, to_host
from mkclust.stack import Stack
from mkclust.stack.observed import Fill, SampleMap, maps_of, with_maps
from mkclust.types import Array, Float

# A direction is rounding if it has less than this share of the squared length.
SMALLEST_SHARE = 1e-8


def learn_fills(
    stack: Stack,
    solve: Callable[[Stack, Solution | None], Solution],
    rule: Callable[[Stack, Array], Sequence[SampleMap | None]],
    *,
    goal: Literal["rising", "falling"],
) -> Solution:
    """Solve and fill in turns, beginning with similarities of zero for missing samples.

    ``solve`` takes filled kernels and the previous solution, ``rule`` returns the next
    maps. A fill that moves the objective against the goal is rejected and ends the
    loop.
    """
    sign = {"rising": 1.0, "falling": -1.0}[goal]
    plain = _each_map(stack, lambda before, kernels: _plain(before))
    stack = replace(stack, kernels=with_maps(stack.kernels, plain))
    solution = solve(stack, None)
    history = [solution.objective]
    n_passes = solution.n_passes
    # Learning ends if a fill changes the objective by no more than this share, or after
    # this number of fills.
    least_change = 1e-3
    most_fills = 20
    while len(history) <= most_fills:
        maps = rule(stack, solution.partition)
        filled = replace(stack, kernels=with_maps(stack.kernels, maps))
        candidate = solve(filled, solution)
        n_passes += candidate.n_passes + 1
        gain = sign * (candidate.objective - history[-1])
        if gain < 0:
            break
        stack = filled
        solution = candidate
        history.append(solution.objective)
        if gain <= least_change * abs(history[-1]):
            break
    return replace(
        solution, stack=stack, fill_history=np.array(history), n_passes=n_passes
    )


def regressed_fills(stack: Stack, H: Array) -> list[SampleMap | None]:
    """Fill in features of missing samples by regression of observed ones on H."""

    def regressed(before: SampleMap, kernels: Sequence[int]) -> SampleMap:
        plain = _plain(before)
        left = plain.gather(H)
        inverse = to_device(_inverse(to_host(left.T @ left)), H)
        fill = Fill(left, _missing_rows(before, H) @ inverse)
        return replace(plain, fill=fill)

    return _each_map(stack, regressed)


class AlignedFills:
    """Features of missing samples along what H predicts of them, of a fixed length."""

    def __init__(self) -> None:
        # By the first kernel of each map, learned from the first partition.
        self.lengths: dict[int, float] = {}

    def __call__(self, stack: Stack, H: Array) -> list[SampleMap | None]:
        """Return the map of each kernel for a partition."""
        grams = grams_of(H, stack.apply(H))

        def aligned(before: SampleMap, kernels: Sequence[int]) -> SampleMap:
            gram = np.mean(grams[list(kernels)], axis=0)  # M^T M
            if kernels[0] not in self.lengths:
                # The root mean square of what a regression on H explains of observed
                # features.
                observed = before.gather(H)
                explained = np.sum(_inverse(to_host(observed.T @ observed)) * gram)
                length = np.sqrt(max(explained, 0.0) / before.n_observed)
                self.lengths[kernels[0]] = float(length)
            rows = _missing_rows(before, H)
            xp = namespace(rows)
            squares = xp.sum((rows @ to_device(gram, rows)) * rows, axis=1)
            # A sample that the partition predicts nothing of keeps similarities of
            # zero.
            largest = float(np.trace(gram)) * xp.sum(rows * rows, axis=1)
            has_direction = squares > SMALLEST_SHARE * largest
            lengths = xp.sqrt(xp.where(has_direction, squares, 1.0))
            factors = xp.where(has_direction, self.lengths[kernels[0]] / lengths, 0.0)
            return replace(
                _plain(before), fill=Fill(before.gather(H), rows * factors[:, None])
            )

        return _each_map(stack, aligned)


def _each_map(
    stack: Stack, change: Callable[[SampleMap, Sequence[int]], SampleMap]
) -> list[SampleMap | None]:
    """Return each kernel's map, changed if samples are missing; shared ones stay so."""
    maps = maps_of(stack.kernels)
    for before in {id(each): each for each in maps if each is not None}.values():
        kernels = [p for p, each in enumerate(maps) if each is before]
        after = change(before, kernels) if before.missing.size else _plain(before)
        for p in kernels:
            maps[p] = after
    return maps


def _plain(sample_map: SampleMap) -> SampleMap:
    """Return a map whose missing samples have similarities of zero."""
    return replace(sample_map, scale=None, fill=None)


def _missing_rows(sample_map: SampleMap, H: Array) -> Array:
    """Return H with zeros in the rows of observed samples."""
    is_missing = np.zeros((sample_map.n_samples, 1))
    is_missing[sample_map.missing] = 1
    return H * to_device(is_missing, H)


def _inverse(shares: Float) -> np.ndarray:
    """Return the inverse of ``H_c^T H_c`` on the directions of observed samples."""
    return np.linalg.pinv(shares, SMALLEST_SHARE, hermitian=True)
