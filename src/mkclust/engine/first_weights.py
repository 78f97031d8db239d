"""The first weights of a search, from samples of the samples."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkclust.engine.basis import Basis
from mkclust.engine.cutting import CuttingSurfaces
from mkclust.engine.relaxation import block_width, block_width_on_accelerator, relax
from mkclust.linalg import (
    astype,
    free_bytes,
    is_on_accelerator,
    namespace,
    orthonormalize,
    select,
    to_device,
    to_host,
)
from mkclust.linalg.memory import fits
from mkclust.linalg.operators import Anchor, AnchoredOperator, MatrixOperator, Operator
from mkclust.linalg.parallel import for_each
from mkclust.types import Array, Float

# Samples that they are learned from: a quarter of all, but no more than so many, and fewer of
# kernels out of memory; at least so many, and so many a cluster.
MOST_SAMPLES, FEWER_SAMPLES = 2048, 256
FEWEST_SAMPLES, FEWEST_A_CLUSTER = 150, 5
# How accurately partitions and weights are found, in how many rounds at most, and the largest
# change of a weight's logarithm after which another round would change little.
TOLERANCE, ROUNDS, SMALL_CHANGE = 1e-4, 3, 0.03
# The same on an accelerator: how many samples; from how many of all on, since another look at all
# kernels of fewer takes less time; how accurately, and in how many rounds.
SAMPLES_THERE, FEWEST_SAMPLED_THERE, TOLERANCE_THERE, ROUNDS_THERE = 4096, 30_000, 1e-3, 2


def first_weights(stack: Any, n_clusters: int, anchor: Anchor | None) -> Float:
    """Return the weights that a sample of the samples asks for, as a place to start from.

    Few samples make noise look like structure, the more the fewer they are: by about the inverse
    root of their number. What half of the sample asks for tells how much. In the memory of an
    accelerator, a larger sample does without that, and moderately many samples without a sample.
    """
    m, n = stack.n_kernels, stack.n_samples
    uniform, fewest = np.full(m, 1 / m), FEWEST_A_CLUSTER * n_clusters
    if m > 1 and stack.combining_pays and is_on_accelerator(stack.like):
        is_sampled = n >= FEWEST_SAMPLED_THERE
        is_sampled = is_sampled and block_width(SAMPLES_THERE, n_clusters) < SAMPLES_THERE
        room = 8 * SAMPLES_THERE * (3 * m * SAMPLES_THERE + n)
        if is_sampled and fits(room, available=free_bytes(stack.like)):
            return _weights_on_accelerator(stack, n_clusters, anchor)
        return uniform
    size = min(n // 4, max(MOST_SAMPLES if stack.combining_pays else FEWER_SAMPLES, fewest))
    if m == 1 or size < max(FEWEST_SAMPLES, fewest):
        return uniform
    samples = np.random.default_rng(0).choice(n, size, replace=False)
    half = size // 2
    samples = np.concatenate([np.sort(samples[:half]), np.sort(samples[half:])])
    entries = to_host(stack.entries(samples), None).astype(np.float32)
    H = None if anchor is None else to_host(select(anchor.vectors, samples))

    def weights_of(some: slice, start: Float) -> Float:
        """Return the weights that some of the samples ask for."""
        drawn_to = None
        if anchor is not None and H is not None:
            drawn_to = _part_of_anchor(anchor, H[some], n)
        kernels = SampledKernels(np.ascontiguousarray(entries[:, some, some]))
        return _weights_of(kernels, n_clusters, drawn_to, start)

    fewer = weights_of(slice(half), uniform)
    more = weights_of(slice(None), fewer)
    if not (np.all(fewer > 0) and np.all(more > 0)):
        return more
    trend = np.log(more) - np.log(fewer)
    further = (1 / np.sqrt(size) - 1 / np.sqrt(n)) / (1 / np.sqrt(half) - 1 / np.sqrt(size))
    logarithms = np.log(more) + further * trend
    weights = np.exp(logarithms - logarithms.max())
    return weights / weights.sum()


def _weights_on_accelerator(stack: Any, n_clusters: int, anchor: Anchor | None) -> Float:
    """Return the weights that a larger sample asks for, which stays on the accelerator."""
    m, n = stack.n_kernels, stack.n_samples
    samples = np.sort(np.random.default_rng(0).choice(n, SAMPLES_THERE, replace=False))
    kernels = KernelsSampledThere(astype(stack.entries(samples), "float32"))
    drawn_to = None
    if anchor is not None:
        drawn_to = _part_of_anchor(anchor, select(anchor.vectors, samples), n)
    return _weights_of(
        kernels,
        n_clusters,
        drawn_to,
        np.full(m, 1 / m),
        tol=TOLERANCE_THERE,
        n_rounds=ROUNDS_THERE,
        width=block_width_on_accelerator(SAMPLES_THERE, n_clusters),
    )


def _part_of_anchor(anchor: Anchor, H: Array, n: int) -> Anchor:
    """Return an anchor for some of n samples, H being those of its vectors."""
    # Eigenvalues of a part of a kernel are about as much smaller as it has fewer samples.
    return Anchor(orthonormalize(H), anchor.strength * H.shape[0] / n)


@dataclass(frozen=True)
class SampledKernels:
    """Kernels among few samples, written out in float32: what a basis asks of a stack.

    Attributes
    ----------
    entries : array of shape (m, s, s)
        The kernels.
    """

    entries: Any

    @property
    def n_kernels(self) -> int:
        """Number of kernels, m."""
        return self.entries.shape[0]

    @property
    def n_samples(self) -> int:
        """Number of samples, s."""
        return self.entries.shape[1]

    @property
    def like(self) -> Array:
        """An array that says where vectors over the samples live."""
        return self.entries

    def combine(self, coefficients: Float) -> Operator:
        """Return ``sum_p c_p K_p``."""
        return RoundedMatrix(np.tensordot(coefficients.astype(np.float32), self.entries, 1))

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (s, b) to (m, s, b)."""
        thin, products = V.astype(np.float32).T, np.empty((self.n_kernels, *V.T.shape))

        def multiply(p: int) -> None:
            """Multiply one kernel."""
            products[p] = thin @ self.entries[p]

        for_each(range(self.n_kernels), multiply)
        return products.transpose(0, 2, 1)


class KernelsSampledThere(SampledKernels):
    """The same on an accelerator."""

    def combine(self, coefficients: Float) -> Operator:
        """Return ``sum_p c_p K_p``."""
        scales = to_device(coefficients, self.entries, "float32")
        return RoundedMatrix(namespace(scales).tensordot(scales, self.entries, axes=1))

    def apply(self, V: Array) -> Array:
        """Multiply every kernel with V, (s, b) to (m, s, b)."""
        return astype(self.entries @ astype(V, "float32"), "float64")


class RoundedMatrix(MatrixOperator):
    """A matrix whose vectors are in single precision, too."""

    @property
    def is_rounded(self) -> bool:
        """Whether it is in single precision although what it was made of is not: yes."""
        return True


def _weights_of(
    kernels: SampledKernels,
    n_clusters: int,
    anchor: Anchor | None,
    start: Float,
    *,
    tol: float = TOLERANCE,
    n_rounds: int = ROUNDS,
    width: int | None = None,
) -> Float:
    """Return the weights that kernels of few samples ask for, from others on."""
    weights, vectors = start, None
    basis = Basis(kernels, n_clusters, anchor, width)
    for _ in range(n_rounds):
        operator = kernels.combine(weights**2)
        if anchor is not None:
            operator = AnchoredOperator(operator, anchor)
        relaxation = relax(operator, n_clusters, tol=tol, start=vectors, width=width)
        basis.expand(astype(relaxation.vectors, "float64"), weights)
        surfaces, previous = CuttingSurfaces(kernels.n_kernels), weights
        surfaces.weights = weights
        weights, best, _ = surfaces.minimize(basis.problem.evaluate, tol)
        if np.all(np.abs(weights - previous) <= SMALL_CHANGE * previous):
            break
        vectors = basis.relaxation(weights, best).vectors
    return weights
