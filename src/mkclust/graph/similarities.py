"""Similarities between samples and anchors: by mixed kernels and by single views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mkclust.linalg import to_device, to_host
from mkclust.types import Array, Float


class KernelBlock(NamedTuple):
    """Similarities by one kernel, of those samples and anchors that it has."""

    entries: Array
    rows: np.ndarray | None = None  # which of the samples these are; None for all
    anchors: np.ndarray | None = None  # which of the anchors; None for all

    @property
    def is_complete(self) -> bool:
        """Whether the kernel has all samples and all anchors."""
        return self.rows is None and self.anchors is None


@dataclass(frozen=True)
class MixAndViews:
    """By which kernels samples are compared: all mixed ones, and those of each view.

    Two samples are as similar as the sum, with the coefficients of the mix, over the
    kernels that have both, divided by the root of the share of these: so that
    similarities spread alike however few kernels they are from. Without any, samples
    are infinitely dissimilar.
    """

    coefficients: Float  # of all kernels, zero for those that are set aside
    views: tuple[int, ...]  # the number of the view of every kernel

    @property
    def included(self) -> list[int]:
        """The numbers of the kernels that are mixed."""
        return np.flatnonzero(self.coefficients).tolist()

    @property
    def groups(self) -> list[list[int]]:
        """The kernels to compare by: all, and by view if there are several views."""
        of_view: dict[int, list[int]] = {}
        for p in self.included:
            of_view.setdefault(self.views[p], []).append(p)
        if len(of_view) == 1:
            return [self.included]
        return [self.included, *of_view.values()]

    def compare(
        self,
        blocks: Mapping[int, KernelBlock],
        shape: tuple[int, int],
        like: Array,
    ) -> list[Array]:
        """Return similarities of samples to anchors, by the mix and by each view."""
        return [self._mix(group, blocks, shape, like) for group in self.groups]

    def _mix(
        self,
        kernels: Sequence[int],
        blocks: Mapping[int, KernelBlock],
        shape: tuple[int, int],
        like: Array,
    ) -> Array:
        """Return the similarities of samples to anchors by the sum of some kernels."""
        found = {p: blocks[p] for p in kernels if p in blocks}
        weights = {p: float(self.coefficients[p]) for p in kernels}
        total = sum(weights.values())
        is_complete = all(block.is_complete for block in found.values())

        if len(found) == len(kernels) and is_complete:
            if len(kernels) == 1:
                return found[kernels[0]].entries
            terms = (weights[p] / total * block.entries for p, block in found.items())
            mixed = next(terms)
            for term in terms:
                mixed += term
            return mixed

        sums = np.zeros(shape)
        shares = np.zeros(shape)
        for p, block in found.items():
            rows = block.rows
            if rows is None:
                rows = np.arange(shape[0])
            anchors = block.anchors
            if anchors is None:
                anchors = np.arange(shape[1])
            places = np.ix_(rows, anchors)
            share = weights[p] / total
            sums[places] += share * to_host(block.entries)
            shares[places] += share
        similarities = np.full(shape, -np.inf)
        np.divide(sums, np.sqrt(shares), out=similarities, where=shares > 0)
        return to_device(similarities, like)
