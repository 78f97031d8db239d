"""Check the kernels of a user, and stack them."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mkclust.data.row_source import RowSource, RowSubset
from mkclust.data.samples import Samples, read_kernels
from mkclust.linalg import available_bytes, check_one_place, require_memory, to_device
from mkclust.parameters import Choice, check_parameter
from mkclust.stack.checks import (
    as_numbers,
    check_diagonal,
    check_shapes,
    describe,
    make_positive,
    refuse_distances,
    row_sums,
    symmetrized,
)
from mkclust.stack.kernel import Computed, DenseKernel, Kernel
from mkclust.stack.observed import FillRule
from mkclust.stack.sources import MatrixRows, Source, SourceAdapter, examine_rows
from mkclust.stack.stack import RawKernel, Repair, Stack
from mkclust.stack.standardized import Standardized

# Kernels as they were given: one, or those of a source of rows; what messages call
# them, and the samples that they have, None for all.
_Given = tuple[Any, list[str], list[np.ndarray | None]]


def as_stack(
    kernels: Any,
    *,
    center: bool = True,
    normalize: bool = True,
    psd: Literal["error", "shift"] = "error",
    validate: bool = True,
    names: Sequence[str] | None = None,
    views: Sequence[int] | None = None,
    streamed: bool | None = None,
    fill: FillRule = "rescale",
) -> Stack:
    """Check kernels and stack them, to be centered and scaled on the fly.

    Float kernels are neither copied nor changed (``(K + K.T) / 2`` stands for those
    that are not quite symmetric), and float32 kernels stay float32. Kernels that do not
    fit into memory are streamed: read some rows at a time, as often as a solver asks
    for products.

    Parameters
    ----------
    kernels : array of shape (m, n, n), list or dict of m matrices, or RowSource
        Of shape (n, n) each: NumPy arrays, memory maps, HDF5 datasets, SciPy sparse
        matrices or `Kernel` objects; a dict gives the names. A source of rows is
        anything with ``n_kernels``, ``n_samples``, ``dtype`` and ``rows(start, stop)``.
    center : bool, default=True
        Center every kernel in its feature space.
    normalize : bool, default=True
        Scale every kernel to a unit diagonal.
    psd : {"error", "shift"}, default="error"
        What to do with an indefinite kernel: refuse it, or add the multiple of the
        identity that makes it positive semidefinite (no copy).
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
        of the available memory. With psd="shift" files are loaded if they fit, and
        sources of rows are refused.
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
    booleans = {"center": center, "normalize": normalize, "validate": validate}
    for option, value in booleans.items():
        check_parameter(option, value, Choice((True, False)))
    check_parameter("streamed", streamed, Choice((True, False, None)))
    check_parameter("psd", psd, Choice(("error", "shift")))

    samples = read_kernels(kernels)
    given, names = _read(samples, names)
    parts, labels, observed = zip(*given, strict=True)
    first_labels = [some[0] for some in labels]
    check_shapes(parts, first_labels, [some[0] for some in observed])
    check_one_place([getattr(part, "like", part) for part in parts], first_labels)

    raw: list[RawKernel] = []
    opened = _opened(parts, streamed, psd)
    for part, own_labels, has in zip(opened, labels, observed, strict=True):
        raw += raw_kernels(part, own_labels, has, validate)

    return Stack.of(
        raw,
        names,
        views,
        center=center,
        normalize=normalize,
        fill=fill,
        n_samples=None if samples.missing is None else samples.n_samples,
        repair=repair_by(psd) if validate else None,
    )


def repair_by(psd: str) -> Repair:
    """Return what refuses distances and indefinite kernels, or repairs these."""

    def repair(centered: Standardized, raw: RawKernel) -> Standardized:
        refuse_distances(raw.kernel, raw.label)
        if raw.kernel.storage != "streamed":
            return make_positive(centered, raw.label, psd)
        if psd != "error":
            raise ValueError(
                f"psd={psd!r} needs {raw.label} in memory, and its rows are computed "
                "whenever they are needed: do not compute kernels on the fly, or pass "
                "psd='error'"
            )
        check_diagonal(centered, raw.largest, raw.label)
        return centered

    return repair


def _read(
    samples: Samples,
    names: Sequence[str] | None,
) -> tuple[list[_Given], list[str]]:
    """Return given kernels as sources, numbers or `Kernel` objects, and their names."""
    if not samples.parts:
        raise ValueError(
            "no kernels: the list is empty; pass at least one n x n matrix"
        )
    parts = []
    for part in samples.parts:
        if isinstance(part, RowSource) and not isinstance(part, Source):
            part = SourceAdapter(part)
        parts.append(part)
    counts = [part.n_kernels if isinstance(part, Source) else 1 for part in parts]
    total = sum(counts)

    names = names or samples.names or [f"kernel {index}" for index in range(total)]
    if len(names) != total:
        raise ValueError(
            f"{len(names)} names for {total} kernels: give each one a name"
        )
    names = [str(name) for name in names]
    labels = [describe(p, name) for p, name in enumerate(names)]
    observed: list[np.ndarray | None] = [None] * total
    if samples.missing is not None:
        observed = [np.flatnonzero(~lacks) for lacks in samples.missing.T]

    given = []
    first = 0
    for part, count in zip(parts, counts, strict=True):
        own = slice(first, first + count)
        if not isinstance(part, Source) and not hasattr(part, "shape"):
            part = as_numbers(part, labels[first])
        given.append((part, labels[own], observed[own]))
        first += count
    return given, names


def _opened(parts: Sequence[Any], streamed: bool | None, psd: str) -> Sequence[Any]:
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
        # Solvers form one matrix of the size of a kernel: with what must be copied to
        # compute with them, kernels may take 2 GiB, or a quarter of the memory.
        free = available_bytes() or np.inf
        streamed = _bytes_needed(stored) > min(2 * 2**30, 0.25 * free)
    if streamed:
        return list(map(_streamed, parts))
    if stored:
        require_memory(
            _bytes_needed(stored),
            f"{asked} needs the kernels in memory, and loading {len(stored)} kernels "
            f"of {stored[0].shape[-1]} samples and mixing them",
            "pass streamed=None and psd='error' to read some rows at a time, or use "
            "fewer samples",
        )
    return parts


def _streamed(part: Any) -> Any:
    """Return a matrix as a source of rows."""
    if isinstance(part, Source | Kernel):
        return part
    if _is_stored(part):
        return MatrixRows(part)
    return MatrixRows(as_numbers(part, "X"))


def _is_stored(part: Any) -> bool:
    """Return whether a kernel is in a file."""
    h5py = sys.modules.get("h5py")
    is_dataset = h5py is not None and isinstance(part, h5py.Dataset)
    return is_dataset or isinstance(part, np.memmap | RowSubset)


def _bytes_needed(stored: list[Any]) -> int:
    """Return how much memory kernels of files and a mix of them take."""
    sizes = [8 * part.shape[-1] ** 2 for part in stored]
    total = max(sizes)
    for part, size in zip(stored, sizes, strict=True):
        is_mapped = isinstance(part, np.memmap)
        if not is_mapped or part.dtype not in (np.float64, np.float32):
            total += size
    return total


def raw_kernels(
    part: Any,
    labels: Sequence[str],
    observed: Sequence[np.ndarray | None],
    validate: bool,
) -> list[RawKernel]:
    """Return kernels that are finite and, if they are to be validated, symmetric."""
    if isinstance(part, Source):
        n = part.n_samples
        sums, diagonals, largest = examine_rows(part, labels, validate)
        return [
            RawKernel(
                Computed(part, p, diagonals[p, :]),
                sums[p, :] / n,
                labels[p],
                observed[p],
                float(largest[p]),
            )
            for p in range(part.n_kernels)
        ]

    label = labels[0]
    if isinstance(part, Kernel):
        ones = to_device(np.ones((part.n_samples, 1)), part.like)
        means = (part @ ones)[:, 0] / part.n_samples
        return [RawKernel(part, means, label, observed[0])]

    matrix = as_numbers(part, label)
    if validate:
        matrix = symmetrized(matrix, label)
    kernel = DenseKernel(matrix)
    means = row_sums(matrix, label) / kernel.n_samples
    return [RawKernel(kernel, means, label, observed[0])]
