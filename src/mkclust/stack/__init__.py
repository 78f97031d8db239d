"""Stacks of kernels: the one border between the methods and the data.

``as_stack`` is the door: what passes it is a sound set of kernels over the same samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from mkclust.stack.base import KernelStack, Operator, Standard
from mkclust.stack.checks import (
    as_numbers,
    check_square,
    check_symmetry,
    describe,
    learn_centering,
    learn_scale,
    row_sums,
    smallest_eigenvalue,
    smallest_eigenvalue_seen,
)
from mkclust.stack.dense import DenseStack, StandardizedKernel
from mkclust.types import Float

__all__ = [
    "DenseStack",
    "KernelStack",
    "Operator",
    "Standard",
    "as_numbers",
    "as_stack",
    "row_sums",
]

PSD_CHOICES = ("error", "clip", "shift")


def as_stack(
    kernels: Any,
    *,
    center: bool = True,
    normalize: bool = True,
    psd: Literal["error", "clip", "shift"] = "error",
    validate: bool = True,
    names: Sequence[str] | None = None,
) -> DenseStack:
    """Check kernels and stack them, to be centered and scaled on the fly.

    The kernels are neither copied nor changed (integer ones are converted), and float32 kernels
    stay float32. Centering comes first, then the scaling to a unit diagonal.

    Parameters
    ----------
    kernels : array of shape (m, n, n), or list or dict of m matrices of shape (n, n)
        NumPy arrays, memory maps or SciPy sparse matrices; a dict gives the names.
    center : bool, default=True
        Center every kernel in its feature space.
    normalize : bool, default=True
        Scale every kernel to a unit diagonal.
    psd : {"error", "clip", "shift"}, default="error"
        What to do with an indefinite kernel: refuse it, set its negative eigenvalues to zero
        (a dense copy of that kernel and a full eigendecomposition), or add the multiple of the
        identity that makes it positive semidefinite (no copy).
    validate : bool, default=True
        Look for asymmetry, and for negative eigenvalues with the diagonal and ten Lanczos steps a
        kernel. That is a check, not a proof: a negative eigenvalue much smaller than the largest
        one can escape it. False skips both, and repairs nothing.
    names : sequence of str, default=None
        Names of the kernels; "kernel 0", "kernel 1", ... where not given.

    Returns
    -------
    DenseStack

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack import as_stack
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> stack = as_stack([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(-1))])
    >>> stack.n_kernels, stack.n_samples, stack.traces().round(6).tolist()
    (2, 20, [20.0, 20.0])
    """
    if psd not in PSD_CHOICES:
        raise ValueError(f"psd={psd!r}: choose one of {', '.join(map(repr, PSD_CHOICES))}")
    slices, names, whole = _collect(kernels, names)
    who = [describe(index, name) for index, name in enumerate(names)]
    matrices = [as_numbers(matrix, label) for matrix, label in zip(slices, who, strict=True)]
    for matrix, label in zip(matrices, who, strict=True):
        check_square(matrix, label)
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"kernels of different sizes: {who[0]} has {matrices[0].shape[0]} samples, {label} "
                f"has {matrix.shape[0]}; all kernels must be over the same samples"
            )
    stacked, standards = [], []
    for matrix, label in zip(matrices, who, strict=True):
        kernel = given = StandardizedKernel(matrix, learn_centering(matrix, label, center))
        if validate:
            check_symmetry(matrix, label)
            kernel = _positive(kernel, label, psd)
        scale = learn_scale(kernel.diagonal(), matrix, label) if normalize else None
        stacked.append(replace(kernel, standard=replace(kernel.standard, scale=scale)))
        standards.append(replace(given.standard, scale=scale))
    if any(kernel.matrix is not part for kernel, part in zip(stacked, slices, strict=True)):
        whole = None  # converted or clipped: no longer slices of one array
    return DenseStack(tuple(stacked), tuple(names), tuple(standards), tuple(matrices), whole)


def _collect(kernels: Any, names: Sequence[str] | None) -> tuple[list, list[str], Any]:
    """Return the single kernels, their names, and the contiguous array that holds them all."""
    whole = None
    if isinstance(kernels, Mapping):
        names = list(kernels) if names is None else names
        matrices = list(kernels.values())
        if len(set(map(str, names))) < len(names):
            raise ValueError(f"two kernels have the same name, among {names}: rename one of them")
    elif isinstance(kernels, list | tuple):
        matrices = list(kernels)
    elif scipy.sparse.issparse(kernels) or getattr(kernels, "ndim", 0) == 2:
        raise ValueError(
            f"one matrix of shape {kernels.shape} where several kernels belong: pass K[None] or "
            "[K] if it is the only kernel"
        )
    elif getattr(kernels, "ndim", 0) == 3:
        if isinstance(kernels, np.ndarray) and kernels.flags.c_contiguous:
            kernels = whole = np.asarray(kernels)
        matrices = list(kernels)
    else:
        raise TypeError(
            f"kernels of type {type(kernels).__name__}: pass an array of shape (m, n, n), or a "
            "list or dict of n x n matrices"
        )
    if not matrices:
        raise ValueError("no kernels: the list is empty; pass at least one n x n matrix")
    if names is None:
        names = [f"kernel {index}" for index in range(len(matrices))]
    if len(names) != len(matrices):
        raise ValueError(f"{len(names)} names for {len(matrices)} kernels: give each one a name")
    return matrices, [str(name) for name in names], whole


def _positive(kernel: StandardizedKernel, who: str, psd: str) -> StandardizedKernel:
    """Return the kernel if it looks positive semidefinite, else refuse or repair it."""
    smallest, largest = smallest_eigenvalue_seen(kernel)
    smallest = min(smallest, float(kernel.diagonal().min()))
    if smallest >= -np.sqrt(np.finfo(kernel.matrix.dtype).eps) * largest:
        return kernel
    if psd == "error":
        raise ValueError(
            f"{who} is indefinite: it has an eigenvalue of {smallest:.3g} or lower (the largest is "
            f"about {largest:.3g}); pass psd='clip' to drop its negative part, psd='shift' to add "
            "a multiple of the identity, or validate=False to skip this check"
        )
    if psd == "shift":
        # A little more than the eigenvalue, which is itself known to its tolerance only.
        return replace(kernel, shift=-smallest_eigenvalue(kernel) * (1 + 1e-6))
    values, vectors = np.linalg.eigh(kernel.dense())
    clipped: Float = (vectors * np.maximum(values, 0)) @ vectors.T
    clipped = (clipped + clipped.T) / 2
    return StandardizedKernel(clipped, Standard(np.diag(clipped).copy()))
