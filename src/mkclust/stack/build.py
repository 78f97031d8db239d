"""Check the kernels of a user, and stack them."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.data.row_source import RowSource, RowSubset
from mkclust.data.samples import read_kernels
from mkclust.linalg import check_one_place, to_device
from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.parameters import Choice, check_parameter
from mkclust.stack.checks import (
    as_numbers,
    check_diagonal,
    check_shapes,
    describe,
    learn_centering,
    learn_scale,
    make_positive,
    refuse_distances,
    row_sums,
    symmetrized,
)
from mkclust.stack.kernel import Array, Computed, Kernel
from mkclust.stack.observed import FillRule, Observed, SampleMap, with_active
from mkclust.stack.sources import GivenRows, MatrixRows, Source, examine_rows
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized
from mkclust.types import Array as AnyArray

# The values of options that are not True or False alone.
CHOICES = {"psd": ("error", "clip", "shift"), "streamed": (True, False, None)}
# Kernels in files are streamed if one matrix of their size, and what must be copied to
# compute with them, would take more than this: solvers form such a matrix.
LARGEST_IN_MEMORY = 2 * 2**30
# Or more than this share of the available memory.
LARGEST_SHARE_IN_MEMORY = 0.25


def as_stack(
    kernels: Any,
    *,
    center: bool = True,
    normalize: bool = True,
    psd: Literal["error", "clip", "shift"] = "error",
    validate: bool = True,
    names: Sequence[str] | None = None,
    views: Sequence[int] | None = None,
    streamed: bool | None = None,
    fill: FillRule = "rescale",
) -> Stack:
    """Check kernels and stack them, to be centered, then scaled to a unit diagonal, on the fly.

    Float kernels are neither copied nor changed (``(K + K.T) / 2`` stands for those
    that are not quite symmetric), and float32 kernels stay float32. Kernels that do not
    fit into memory are streamed: read some rows at a time, as often as a solver asks
    for products.

    Parameters
    ----------
    kernels : array of shape (m, n, n), list or dict of m matrices of shape (n, n), or RowSource
        NumPy arrays, memory maps, HDF5 datasets, SciPy sparse matrices or `Kernel`
        objects; a dict gives the names. A source of rows is anything with
        ``n_kernels``, ``n_samples``, ``dtype`` and ``rows(start, stop)``.
    center : bool, default=True
        Center every kernel in its feature space.
    normalize : bool, default=True
        Scale every kernel to a unit diagonal.
    psd : {"error", "clip", "shift"}, default="error"
        What to do with an indefinite kernel: refuse it, set its negative eigenvalues to
        zero (a dense copy of that kernel and a full eigendecomposition), or add the
        multiple of the identity that makes it positive semidefinite (no copy).
    validate : bool, default=True
        Look for asymmetry, for distances in place of similarities (among 128 samples),
        and for negative eigenvalues: with more than 500 samples by the diagonal and a
        few products per kernel, which much smaller ones than the largest can escape;
        for streamed kernels only by the diagonal (without centering, also by the
        largest entry). False repairs nothing.
    names : sequence of str, default=None
        Names of the kernels; "kernel 0", "kernel 1", ... if not given.
    views : sequence of int, default=None
        The number of the view that each kernel is computed from; by default all differ.
        Kernels of one view, or of parts of one table, prove nothing about each other
        (`mkclust.agreement`).
    streamed : bool, default=None
        Whether to read the kernels some rows at a time rather than hold them in memory.
        None streams sources of rows, and files in which one memory-mapped kernel, or
        all kernels of an HDF5 dataset and one more, take more than 2 GiB or a quarter
        of the available memory. With psd="clip" or psd="shift" files are loaded if they
        fit, and sources of rows are refused.
    fill : {"zero", "rescale"}, default="rescale"
        If kernels lack samples: whether these are similar to no other sample, or are
        also scaled up in the other kernels to the self-similarity of a sample that no
        kernel lacks.

    Returns
    -------
    Stack

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack import as_stack
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> stack = as_stack([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(-1))])
    >>> stack.n_kernels, stack.n_samples, stack.traces().round(6).tolist()
    (2, 20, [20.0, 20.0])
    """
    options: dict[str, Any] = {
        "center": center,
        "normalize": normalize,
        "validate": validate,
    }
    options |= {"streamed": streamed, "psd": psd}
    for option, value in options.items():
        check_parameter(option, value, Choice(CHOICES.get(option, (True, False))))
    samples = read_kernels(kernels)
    if not samples.parts:
        raise ValueError(
            "no kernels: the list is empty; pass at least one n x n matrix"
        )
    parts = [
        GivenRows(part)
        if isinstance(part, RowSource) and not isinstance(part, Source)
        else part
        for part in samples.parts
    ]
    counts = [part.n_kernels if isinstance(part, Source) else 1 for part in parts]
    count = sum(counts)
    names = names or samples.names or [f"kernel {index}" for index in range(count)]
    if len(names) != count:
        raise ValueError(
            f"{len(names)} names for {count} kernels: give each one a name"
        )
    names = [str(name) for name in names]
    labels = [describe(p, name) for p, name in enumerate(names)]
    # The number of the first kernel of each part.
    firsts = np.cumsum([0, *counts[:-1]]).tolist()
    parts = [
        part
        if isinstance(part, Source) or hasattr(part, "shape")
        else as_numbers(part, labels[p])
        for part, p in zip(parts, firsts, strict=True)
    ]
    observed: list[Any] = [None] * len(names)
    if samples.missing is not None:
        observed = [np.flatnonzero(~lacks) for lacks in samples.missing.T]
    check_shapes(parts, [labels[p] for p in firsts], [observed[p] for p in firsts])
    check_one_place(
        [getattr(part, "like", part) for part in parts], [labels[p] for p in firsts]
    )
    standardized: list[Kernel] = []
    for part, first in zip(_opened(parts, streamed, psd), firsts, strict=True):
        for kernel, means, largest in _examined(part, labels[first:], validate):
            p = len(standardized)
            centered = Standardized(
                kernel, learn_centering(kernel, means, labels[p], center)
            )
            if validate:
                refuse_distances(kernel, labels[p])
            if validate and kernel.storage == "streamed":
                check_diagonal(centered, largest, labels[p])
            elif validate:
                centered = make_positive(centered, labels[p], psd)
            if normalize:
                scale = learn_scale(
                    centered.diagonal(), centered.kernel, labels[p], observed[p]
                )
                scaled = replace(centered.standardization, scale=scale)
                centered = replace(centered, standardization=scaled)
            standardized.append(centered)
    numbers = range(len(names)) if views is None else views
    kernels = tuple(standardized)
    if samples.missing is not None:
        # Kernels of one view, or given ones with the same samples, share their map.
        shared: dict[Any, SampleMap] = {}
        scale = np.ones(samples.n_samples) if fill == "rescale" else None
        for p, has in enumerate(observed):
            key = None if views is None else views[p], has.tobytes()
            each = shared.setdefault(key, SampleMap(has, samples.n_samples, scale))
            standardized[p] = Observed(standardized[p], each)
        kernels = with_active(standardized, range(len(names)))
    return Stack(kernels, tuple(names), tuple(numbers))


def _opened(parts: list[Any], streamed: bool | None, psd: str) -> list[Any]:
    """Return kernels with those that are to be streamed as sources of rows."""
    asked = "streamed=False" if psd == "error" else f"psd={psd!r}"
    is_source = any(isinstance(part, Source) for part in parts)
    if (streamed or is_source) and (streamed is False or psd != "error"):
        raise ValueError(
            f"{asked} needs the kernels in memory, and these are read some rows at a "
            "time: pass arrays, such as K[:], if they fit"
        )
    stored = [part for part in parts if _is_stored(part)]
    if streamed is None and psd == "error" and stored:
        largest = LARGEST_SHARE_IN_MEMORY * (available_bytes() or np.inf)
        streamed = _bytes_needed(stored) > min(LARGEST_IN_MEMORY, largest)
    if streamed:
        return [
            part
            if isinstance(part, Source | Kernel)
            else MatrixRows(part if _is_stored(part) else as_numbers(part, "X"))
            for part in parts
        ]
    if stored:
        require_memory(
            _bytes_needed(stored),
            f"{asked} needs the kernels in memory, and loading {len(stored)} kernels "
            f"of {stored[0].shape[-1]} samples and mixing them",
            "pass streamed=None and psd='error' to read some rows at a time, or use "
            "fewer samples",
        )
    return parts


def _is_stored(part: Any) -> bool:
    """Return whether a kernel is in a file; without h5py loaded, nothing is a dataset of it."""
    h5py = sys.modules.get("h5py")
    is_dataset = h5py is not None and isinstance(part, h5py.Dataset)
    return is_dataset or isinstance(part, np.memmap | RowSubset)


def _bytes_needed(stored: list[Any]) -> int:
    """Return how much memory kernels in files and a mix of them take, without the files."""
    sizes = [8 * part.shape[-1] ** 2 for part in stored]
    floats = (np.float64, np.float32)
    mapped = [isinstance(part, np.memmap) and part.dtype in floats for part in stored]
    return max(sizes) + sum(
        size for size, is_read in zip(sizes, mapped, strict=True) if not is_read
    )


def _examined(
    part: Any, labels: Sequence[str], validate: bool
) -> list[tuple[Kernel, AnyArray, float]]:
    """Return sound kernels as they came, their row means, and their largest entries if streamed."""
    if isinstance(part, Source):
        m, n = part.n_kernels, part.n_samples
        sums, diagonals, largest = examine_rows(part, labels[:m], validate)
        return [
            (Computed(part, p, diagonals[p, :]), sums[p, :] / n, float(largest[p]))
            for p in range(m)
        ]
    if isinstance(part, Kernel):
        ones = to_device(np.ones((part.n_samples, 1)), part.like)
        return [(part, (part @ ones)[:, 0] / part.n_samples, 0.0)]
    matrix = as_numbers(part, labels[0])
    kernel = Array(symmetrized(matrix, labels[0]) if validate else matrix)
    return [(kernel, row_sums(kernel.matrix, labels[0]) / kernel.n_samples, 0.0)]
