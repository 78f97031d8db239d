"""Kernels that are centered and scaled on the fly, and new samples that are treated as these."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mkclust.linalg import (
    arrays_to_host,
    astype,
    empty,
    hstack,
    is_sparse,
    namespace,
    precision_of,
    row_ranges,
    select,
    set_diagonal,
    to_device,
    zeros,
)
from mkclust.linalg.in_triton import triton_module
from mkclust.stack.kernel import FEWEST_ROWS, Kernel, Mix, Wrapped
from mkclust.stack.kernel import Array as Held
from mkclust.types import Array


@dataclass(frozen=True)
class Standardization:
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
    # What a repair by clipping adds to the centered self-similarities, and the
    # orthonormal directions, (n, r), that the centered kernel lost by it.
    added: Array | None = None
    dropped: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        names = ("diagonal", "row_means", "scale", "shift", "added", "dropped")
        return {name: arrays_to_host(getattr(self, name)) for name in names}

    def to_same_device(self, like: Array) -> "Standardization":
        arrays = {
            name: to_device(array, like)
            for name, array in vars(self).items()
            if name not in ("shift", "mean") and array is not None
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
        """Whether an indefinite kernel was shifted or clipped."""
        return bool(self.shift) or self.added is not None

    def centered_diagonal(self) -> Array:
        """Return the self-similarities after centering and repair, before scaling, (n,)."""
        lengths = self.diagonal
        if self.row_means is not None:
            lengths = lengths - 2 * self.row_means + self.mean
        return lengths if self.added is None else lengths + self.added

    def constant_self_similarity(self) -> float | None:
        """Return the self-similarity all training samples share, or None if they differ."""
        xp, first = namespace(self.diagonal), float(self.diagonal[0])
        # A float32 kernel computes its unit diagonal to about 1e-6.
        shared = xp.all(xp.abs(self.diagonal - first) <= 1e-6 * abs(first))
        return first - self.shift if shared else None

    def project(
        self,
        cross: Array,
        P: Array,
        self_similarity: Array | None,
        *,
        is_training: bool = False,
    ) -> Array:
        """Multiply the standardized similarities of new samples to the training ones with P.

        The similarities `cross`, (n_new, n), are neither centered nor scaled, `P` is of
        shape (n, b), the result of shape (n_new, b). The new samples' similarities to
        themselves, (n_new,), are needed only to scale. If the samples are all training
        samples, in the order of the fit, a repair adds what it added then.
        """
        local, P, xp = self.to_same_device(cross), to_device(P, cross), namespace(cross)
        (n_new, n), is_centered = cross.shape, local.row_means is not None
        if local.scale is not None:
            P = P * local.scale[:, None]
        # Directions that were dropped by clipping do not count.
        if local.dropped is not None:
            P = P - local.dropped @ (local.dropped.T @ P)
        if is_centered:
            P = P - xp.mean(P, axis=0)  # cancels the new samples' own means exactly
        thin = hstack(P, zeros((n, 1), cross) + 1 / n)
        products = empty((n_new, thin.shape[1]), cross)
        fewest = max(1, n_new) if is_sparse(cross) else FEWEST_ROWS
        # In float64, dense similarities some rows at a time to save memory.
        for part in row_ranges(n_new, n, cross, fewest):
            products[part, :] = astype(cross[part, :], "float64") @ thin
        rows, means = products[:, :-1], products[:, -1]
        if local.shift and is_training:
            rows, means = rows + local.shift * P, means + local.shift / n
        if is_centered:
            rows = rows - local.row_means @ P
        if local.scale is None:
            return rows
        return (
            rows
            * local._factors(self_similarity, means, is_training=is_training)[:, None]
        )

    def rows(
        self, cross: Array, self_similarity: Array | None, *, first: int | None = None
    ) -> Array:
        """Return the standardized similarities of new samples to the training ones, (n_new, n).

        They come as those of :meth:`project`. Training samples are given by the number
        of the ``first``, which the others follow; None for new samples.
        """
        local, xp = self.to_same_device(cross), namespace(cross)
        given = astype(cross.toarray() if is_sparse(cross) else cross, "float64")
        means, own = xp.mean(given, axis=1), slice(0, 0)
        rows = given + 0.0
        if first is not None:
            own = slice(first, first + cross.shape[0])
        if local.shift and first is not None:
            square = rows[:, own]
            set_diagonal(square, xp.linalg.diagonal(square) + local.shift)
            means = means + local.shift / rows.shape[1]
        if local.row_means is not None:
            rows -= local.row_means
            rows -= (means - local.mean)[:, None]
        # Directions that were dropped by clipping do not count.
        if local.dropped is not None:
            rows -= (rows @ local.dropped) @ local.dropped.T
        if local.scale is not None:
            factors = local._factors(
                self_similarity, means, own, is_training=first is not None
            )
            rows *= local.scale
            rows *= factors[:, None]
        return rows

    def _factors(
        self,
        self_similarity: Any,
        means: Array,
        own: slice = slice(None),
        *,
        is_training: bool,
    ) -> Array:
        """Return what scales the similarities of new samples, given their means over the others.

        Of training samples, ``own`` says which they are.
        """
        xp = namespace(means)
        lengths = to_device(self_similarity, means) + self.shift
        if self.row_means is not None:
            lengths = lengths - 2 * means + self.mean
        if self.added is not None:
            lengths = lengths + (
                self.added[own] if is_training else xp.mean(self.added)
            )
        # A new sample at the very mean of the training samples has no direction: leave
        # it at zero.
        has_length = lengths > 1e-10 * float(xp.mean(xp.abs(self.centered_diagonal())))
        factors = 1 / xp.sqrt(xp.where(has_length, lengths, 1.0))
        return xp.where(has_length, factors, 0.0)


@dataclass(frozen=True)
class Standardized(Wrapped):
    """D C K C D: a kernel centered, then scaled; it is neither copied nor changed itself."""

    kernel: Kernel  # as given, or repaired
    standardization: Standardization
    # How similarities of new samples are centered, if that differs: after clipping.
    given: Standardization | None = None

    @property
    def for_new_samples(self) -> Standardization:
        """How similarities of new samples are centered and scaled."""
        own = self.standardization
        return own if self.given is None else replace(self.given, scale=own.scale)

    def before(self, V: Array) -> Array:
        return self._centered(self._scaled(V))

    def after(self, Y: Array, V: Array) -> Array:
        return self._scaled(self._centered(Y))

    def _centered(self, V: Array) -> Array:
        is_centered = self.standardization.row_means is not None
        return V - namespace(V).mean(V, axis=0) if is_centered else V

    def _scaled(self, V: Array) -> Array:
        scale = self.standardization.scale
        return V if scale is None else V * astype(scale, precision_of(V))[:, None]

    def rows(self, index: Any) -> Array:
        return self._standardize(
            self.kernel.rows(index), index, slice(0, self.n_samples)
        )

    def entries(self, rows: Any, columns: Any) -> Array:
        return self._standardize(self.kernel.entries(rows, columns), rows, columns)

    def _standardize(self, part: Array, rows: Any, columns: Any) -> Array:
        own = self.standardization
        if own.row_means is None:
            part = part + 0.0
        else:
            part = part - (select(own.row_means, rows) - own.mean)[:, None]
            part -= select(own.row_means, columns)
        if own.scale is not None:
            part *= select(own.scale, columns)
            part *= select(own.scale, rows)[:, None]
        return part

    def diagonal(self) -> Array:
        lengths, scale = (
            self.standardization.centered_diagonal(),
            self.standardization.scale,
        )
        return lengths if scale is None else lengths * scale**2


def fused_mixes(kernels: Sequence[Kernel]) -> Any:
    """Return the module that mixes these kernels in one pass over them, or None.

    They have to be contiguous matrices of one number type on an accelerator.
    """
    are_plain = all(
        isinstance(K, Standardized) and isinstance(K.kernel, Held) for K in kernels
    )
    first = kernels[0].like
    module = triton_module("fused_mixes", first) if are_plain else None
    if module and all(
        K.like.dtype == first.dtype and K.like.is_contiguous() for K in kernels
    ):
        return module
    return None


def write_mix(mix: Mix, precision: str) -> Array:
    """Write a mix of kernels to an array, (n, n)."""
    module, like = fused_mixes(mix.kernels), mix.like
    if module is None:
        return mix.dense(precision)
    kernels: Any = mix.kernels
    all_own, n = [K.standardization for K in kernels], mix.n_samples
    no_means, no_scale = zeros(n, like), zeros(n, like) + 1.0
    means = [
        no_means if own.row_means is None else own.row_means - own.mean / 2
        for own in all_own
    ]
    scales = [no_scale if own.scale is None else own.scale for own in all_own]
    out, xp = empty((n, n), like, precision), namespace(like)
    matrices = [K.kernel.matrix for K in kernels]
    module.write_mix(out, matrices, mix.coefficients, xp.stack(scales), xp.stack(means))
    return out
