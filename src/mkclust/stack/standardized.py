"""Kernels that are centered and scaled on the fly, and new samples treated alike."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mkclust.linalg import (
    Stored,
    astype,
    device,
    empty,
    hstack,
    is_sparse,
    namespace,
    precision_of,
    row_ranges,
    select,
    set_diagonal,
    to_device,
    triton_module,
    zeros,
)
from mkclust.stack.kernel import FEWEST_ROWS, DenseKernel, Kernel, Mix, Wrapped
from mkclust.types import Array


@dataclass(frozen=True)
class Standardization(Stored):
    """How one kernel is centered and scaled, as learned from the training samples.

    The standardized kernel is ``s_i s_j (K_ij - r_i - r_j + r)``: r_i the row means, r
    their mean, s the scale that makes the diagonal one, each of shape (n,).
    """

    diagonal: Array  # self-similarities before any centering or scaling
    row_means: Array | None = None  # None if the kernel is not centered
    scale: Array | None = None  # None if it is not scaled
    # What a repair adds to every self-similarity; it is part of the diagonal and of the
    # row means.
    shift: float = 0.0

    def to_same_device(self, like: Array) -> "Standardization":
        """Return the same with arrays on the device of another one."""
        arrays = {
            name: to_device(getattr(self, name), like)
            for name in ("diagonal", "row_means", "scale")
            if getattr(self, name) is not None
        }
        return replace(self, **arrays)

    @cached_property
    def mean(self) -> float:
        """Mean of all entries of the kernel."""
        if self.row_means is None:
            return 0.0
        return float(namespace(self.row_means).mean(self.row_means))

    @property
    def is_repaired(self) -> bool:
        """Whether an indefinite kernel was shifted."""
        return bool(self.shift)

    def centered_diagonal(self) -> Array:
        """Return the self-similarities after centering, before scaling, (n,)."""
        if self.row_means is None:
            return self.diagonal
        return self.diagonal - 2 * self.row_means + self.mean

    def constant_self_similarity(self) -> float | None:
        """Return the self-similarity of all training samples, None if they differ."""
        xp = namespace(self.diagonal)
        first = float(self.diagonal[0])
        # A float32 kernel computes its unit diagonal to about 1e-6.
        is_shared = xp.all(xp.abs(self.diagonal - first) <= 1e-6 * abs(first))
        if is_shared:
            return first - self.shift
        return None

    def project(
        self,
        cross: Array,
        P: Array,
        self_similarity: Array | None,
        *,
        is_training: bool = False,
    ) -> Array:
        """Multiply standardized similarities of new to training samples with P.

        The similarities `cross`, (n_new, n), are neither centered nor scaled, `P` is of
        shape (n, b), the result of shape (n_new, b). The new samples' similarities to
        themselves, (n_new,), are needed only to scale. If the samples are all training
        samples, in the order of the fit, a repair adds what it added then.
        """
        local = self.to_same_device(cross)
        xp = namespace(cross)
        n_new, n = cross.shape
        P = to_device(P, cross)
        if local.scale is not None:
            P = P * local.scale[:, None]
        if local.row_means is not None:
            P = P - xp.mean(P, axis=0)  # cancels the new samples' own means exactly

        # In float64, dense similarities some rows at a time to save memory.
        uniform = zeros((n, 1), cross) + 1 / n
        thin = hstack(P, uniform)
        products = empty((n_new, thin.shape[1]), cross)
        fewest = max(1, n_new) if is_sparse(cross) else FEWEST_ROWS
        for part in row_ranges(n_new, n, cross, fewest):
            products[part, :] = astype(cross[part, :], "float64") @ thin
        rows = products[:, :-1]
        means = products[:, -1]

        if local.shift and is_training:
            rows = rows + local.shift * P
            means = means + local.shift / n
        if local.row_means is not None:
            rows = rows - local.row_means @ P
        if local.scale is None:
            return rows
        return rows * local._factors(self_similarity, means)[:, None]

    def rows(
        self,
        cross: Array,
        self_similarity: Array | None,
        *,
        first: int | None = None,
    ) -> Array:
        """Return standardized similarities of new to training samples, (n_new, n).

        They come as those of :meth:`project`. Training samples are given by the number
        of the ``first``, which the others follow; None for new samples.
        """
        local = self.to_same_device(cross)
        xp = namespace(cross)
        if is_sparse(cross):
            cross = cross.toarray()
        given = astype(cross, "float64")
        means = xp.mean(given, axis=1)
        rows = given + 0.0
        if local.shift and first is not None:
            last = first + cross.shape[0]
            square = rows[:, first:last]
            set_diagonal(square, xp.linalg.diagonal(square) + local.shift)
            means = means + local.shift / rows.shape[1]
        if local.row_means is not None:
            rows -= local.row_means
            rows -= (means - local.mean)[:, None]
        if local.scale is not None:
            rows *= local.scale
            rows *= local._factors(self_similarity, means)[:, None]
        return rows

    def _factors(self, self_similarity: Any, means: Array) -> Array:
        """Return what scales rows of similarities of new samples, by their means."""
        xp = namespace(means)
        lengths = to_device(self_similarity, means) + self.shift
        if self.row_means is not None:
            lengths = lengths - 2 * means + self.mean
        # A new sample at the very mean of the training samples has no direction: leave
        # it at zero.
        typical = float(xp.mean(xp.abs(self.centered_diagonal())))
        has_length = lengths > 1e-10 * typical
        factors = 1 / xp.sqrt(xp.where(has_length, lengths, 1.0))
        return xp.where(has_length, factors, 0.0)


@dataclass(frozen=True)
class Standardized(Wrapped):
    """D C (K + c I) C D: a kernel repaired, centered, then scaled, and not copied."""

    kernel: Kernel  # as given
    standardization: Standardization

    def before(self, V: Array) -> Array:
        """Return the scaled, then centered vectors."""
        V = self._scaled(V)
        if self.standardization.row_means is None:
            return V
        return V - namespace(V).mean(V, axis=0)

    def after(self, Y: Array, V: Array) -> Array:
        """Return the centered, then scaled product."""
        if self.standardization.shift:
            Y = Y + self.standardization.shift * self.before(V)
        if self.standardization.row_means is not None:
            Y = Y - namespace(Y).mean(Y, axis=0)
        return self._scaled(Y)

    def _scaled(self, V: Array) -> Array:
        """Return vectors times the scale, if the kernel is scaled."""
        scale = self.standardization.scale
        if scale is None:
            return V
        factors = astype(scale, precision_of(V))
        return V * factors[:, None]

    def rows(self, index: Any) -> Array:
        """Return centered and scaled rows, (s, n)."""
        return self._standardize(
            self.kernel.rows(index), index, slice(0, self.n_samples)
        )

    def entries(self, rows: Any, columns: Any) -> Array:
        return self._standardize(self.kernel.entries(rows, columns), rows, columns)

    def _standardize(self, part: Array, rows: Any, columns: Any) -> Array:
        """Return entries of the kernel as given, centered and scaled."""
        own = self.standardization
        if own.shift:
            everyone = namespace(part).arange(self.n_samples, device=device(part))
            same = select(everyone, rows)[:, None] == select(everyone, columns)
            part = part + own.shift * astype(same, "float64")
        if own.row_means is None:
            part = part + 0.0
        else:
            means = select(own.row_means, rows) - own.mean
            part = part - means[:, None]
            part -= select(own.row_means, columns)
        if own.scale is not None:
            part *= select(own.scale, columns)
            part *= select(own.scale, rows)[:, None]
        return part

    def diagonal(self) -> Array:
        """Return the centered and scaled diagonal, (n,)."""
        lengths = self.standardization.centered_diagonal()
        return self._scaled(self._scaled(lengths[:, None]))[:, 0]


def fused_mixes(kernels: Sequence[Kernel]) -> Any:
    """Return the module that mixes these kernels in one pass over them, or None.

    They have to be contiguous matrices of one number type on an accelerator.
    """
    first = kernels[0].like
    module = triton_module("fused_mixes", first)
    if module is None:
        return None
    for kernel in kernels:
        if not isinstance(kernel, Standardized) or kernel.standardization.shift:
            return None
        if not isinstance(kernel.kernel, DenseKernel):
            return None
        if kernel.like.dtype != first.dtype or not kernel.like.is_contiguous():
            return None
    return module


def write_mix(mix: Mix, precision: str) -> Array:
    """Write a mix of kernels to an array, (n, n)."""
    module = fused_mixes(mix.kernels)
    if module is None:
        return mix.dense(precision)
    like = mix.like
    n = mix.n_samples
    kernels: Any = mix.kernels
    means = zeros((len(kernels), n), like)
    scales = zeros((len(kernels), n), like) + 1.0
    for p, kernel in enumerate(kernels):
        own = kernel.standardization
        if own.row_means is not None:
            means[p, :] = own.row_means - own.mean / 2
        if own.scale is not None:
            scales[p, :] = own.scale
    out = empty((n, n), like, precision)
    matrices = [kernel.kernel.matrix for kernel in kernels]
    module.write_mix(out, matrices, mix.coefficients, scales, means)
    return out
