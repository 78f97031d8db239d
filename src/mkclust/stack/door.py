"""Stacks of kernels: the one border between the methods and the data.

``as_stack`` is the door: what passes it is a sound set of kernels over the same samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from mkclust.linalg import (
    check_one_place,
    free_bytes,
    is_foreign,
    namespace,
    precision_of,
    rounding_of,
)
from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.linalg.threads import threads_for
from mkclust.samples.forms import check_masks
from mkclust.samples.row_source import RowSource
from mkclust.samples.samples import Samples, read_kernels
from mkclust.stack.base import KernelStack, Standardization
from mkclust.stack.checks import (
    as_numbers,
    check_square,
    describe,
    learn_centering,
    learn_scale,
    symmetrized,
)
from mkclust.stack.dense import DenseStack
from mkclust.stack.dissimilarity import refuse_distances
from mkclust.stack.in_files import (
    better_streamed,
    has_files,
    is_dataset,
    require_memory_to_load,
)
from mkclust.stack.incomplete import IncompleteStack
from mkclust.stack.repair import extremes_seen, make_positive
from mkclust.stack.row_checks import check_rows
from mkclust.stack.row_matrix import RowMatrix
from mkclust.stack.rows import DatasetKernel, MatrixRows
from mkclust.stack.standardized import StandardizedKernel
from mkclust.stack.streamed import StreamedStack

PSD_CHOICES = ("error", "clip", "shift")


@dataclass(frozen=True)
class _Numbers:
    """The numbers that messages call kernels and samples by, None for their places."""

    kernels: Sequence[int] | None = None
    samples: np.ndarray | None = None


AS_THEY_COME = _Numbers()


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
    fill: Literal["zero", "rescale"] = "rescale",
    kernel_numbers: Sequence[int] | None = None,
    sample_numbers: np.ndarray | None = None,
) -> KernelStack:
    """Check kernels and stack them, to be centered and scaled on the fly.

    The kernels are neither copied nor changed (integer ones are converted, and ``(K + K.T) / 2``
    stands for those that are not quite symmetric), and float32 kernels stay float32. Centering
    comes first, then the scaling to a unit diagonal. Of at most 500 samples, float64 kernels of 16
    MiB in all are written out once, centered and scaled: that saves more time than it takes.

    Kernels that do not fit into memory are streamed: read some rows at a time, as often as a
    solver asks for products. Nothing of their size is allocated.

    Parameters
    ----------
    kernels : array of shape (m, n, n), list or dict of m matrices of shape (n, n), or RowSource
        NumPy arrays, memory maps, HDF5 datasets or SciPy sparse matrices; a dict gives the names.
        A source of rows is anything with ``n_kernels``, ``n_samples``, ``dtype`` and
        ``rows(start, stop)``.
    center : bool, default=True
        Center every kernel in its feature space.
    normalize : bool, default=True
        Scale every kernel to a unit diagonal.
    psd : {"error", "clip", "shift"}, default="error"
        What to do with an indefinite kernel: refuse it, set its negative eigenvalues to zero
        (a dense copy of that kernel and a full eigendecomposition), or add the multiple of the
        identity that makes it positive semidefinite (no copy).
    validate : bool, default=True
        Look for asymmetry, for distances in place of similarities (among 128 samples), and for
        negative eigenvalues with the diagonal and ten Lanczos steps a kernel. That is a check, not
        a proof: a negative eigenvalue much smaller than the largest one can escape it. False skips
        all of it, and repairs nothing. Of streamed kernels one random product tells asymmetry, and
        only the diagonal (without centering, the largest entry, too) tells negative eigenvalues:
        Lanczos steps would take a pass over all kernels each.
    names : sequence of str, default=None
        Names of the kernels; "kernel 0", "kernel 1", ... where not given.
    views : sequence of int, default=None
        The number of the view that each kernel is made of; each is of its own where not given.
        Kernels of one view prove nothing about each other (`mkclust.agreement`).
    streamed : bool, default=None
        Whether to read the kernels some rows at a time rather than hold them, or a combination of
        them, in memory. None streams sources of rows, and what is in files and large: memory maps
        of which one kernel would take more than 2 GiB, or than a quarter of the memory there is,
        and HDF5 datasets of which all kernels and one more would; smaller datasets are loaded.
        Streamed kernels cannot be repaired: with psd="clip" or psd="shift" what is in files is
        loaded, or refused where it does not fit, and sources of rows are refused.
    fill : {"zero", "rescale"}, default="rescale"
        Where kernels lack samples: whether these are similar to nobody, or what other kernels tell
        of them is scaled up to the self-similarity of a sample that no kernel lacks.
    kernel_numbers, sample_numbers : sequence of int, default=None
        The numbers that messages call kernels and samples by, where these are some of more.

    Returns
    -------
    DenseStack, StreamedStack or IncompleteStack

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.stack import as_stack
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> stack = as_stack([X @ X.T, np.exp(-np.square(X[:, None] - X).sum(-1))])
    >>> stack.n_kernels, stack.n_samples, stack.traces().round(6).tolist()
    (2, 20, [20.0, 20.0])
    """
    numbers = _Numbers(kernel_numbers, sample_numbers)
    _check_options({"center": center, "normalize": normalize, "validate": validate}, streamed, psd)
    samples = read_kernels(kernels)
    options = {"center": center, "normalize": normalize, "validate": validate}
    if samples.missing is not None:
        how: dict[str, Any] = {**options, "psd": psd, "streamed": streamed}
        return _stack_incomplete(samples, names, views, fill, how)
    if (
        streamed
        or isinstance(samples.whole, RowSource)
        or (
            streamed is None
            and psd == "error"
            and has_files(samples)
            and better_streamed(samples, available_bytes())
        )
    ):
        if streamed is False or psd != "error":
            asked = "streamed=False" if streamed is False else f"psd={psd!r}"
            raise ValueError(
                f"{asked} needs the kernels in memory, and these are read some rows at a time: "
                "pass arrays, such as K[:], if they fit"
            )
        stack: StreamedStack | DenseStack = _stream(samples, names, numbers, **options)
    else:
        require_memory_to_load(samples, psd)
        stack = _hold(samples, names, numbers, psd=psd, **options)
    return stack if views is None else replace(stack, view_numbers=tuple(views))


def _stack_incomplete(
    samples: Samples,
    names: Sequence[str] | None,
    views: Sequence[int] | None,
    fill: Literal["zero", "rescale"],
    options: dict[str, Any],
) -> KernelStack:
    """Stack kernels that lack samples, those with the same samples together."""
    assert samples.missing is not None
    names = _named(len(samples.parts), samples.names if names is None else names)
    views = range(len(names)) if views is None else views
    patterns, number = np.unique(samples.missing.T, axis=0, return_inverse=True)
    groups = [np.flatnonzero(number == each).tolist() for each in range(len(patterns))]
    stacks = [
        as_stack(
            Samples("kernels", _some(names, group), _some(samples.parts, group), names_given=True),
            views=_some(views, group),
            kernel_numbers=group,
            sample_numbers=np.flatnonzero(~pattern),
            **options,
        )
        for group, pattern in zip(groups, patterns, strict=True)
    ]
    return IncompleteStack.of(stacks, ~patterns.T, groups, fill)


def _some(values: Sequence[Any], indices: Sequence[int]) -> tuple[Any, ...]:
    """Return some of the values."""
    return tuple(values[index] for index in indices)


def _check_options(flags: dict[str, Any], streamed: Any, psd: Any) -> None:
    """Refuse values that an option of :func:`as_stack` cannot have."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name}={flag!r}: pass True or False")
    if not (streamed is None or isinstance(streamed, bool | np.bool_)):
        raise ValueError(f"streamed={streamed!r}: pass True, False or None")
    if psd not in PSD_CHOICES:
        raise ValueError(f"psd={psd!r}: choose one of {', '.join(map(repr, PSD_CHOICES))}")


def _hold(
    samples: Samples,
    names: Sequence[str] | None,
    numbers: _Numbers,
    *,
    center: bool,
    normalize: bool,
    validate: bool,
    psd: str,
) -> DenseStack:
    """Check kernels in memory, one after another, and stack them."""
    parts, names, _ = _collect(samples, names)
    labels = _labels(names, numbers)
    matrices = [as_numbers(part, label) for part, label in zip(parts, labels, strict=True)]
    _check_sizes(matrices, labels)
    check_one_place(matrices, labels)
    with threads_for(matrices[0].shape[0]):
        if validate:
            matrices = list(map(symmetrized, matrices, labels))
        centered = [
            _center(matrix, label, center, validate)
            for matrix, label in zip(matrices, labels, strict=True)
        ]
    sound = centered
    if validate:
        sound = [
            make_positive(kernel, label, psd, seen)
            for kernel, label, seen in zip(centered, labels, extremes_seen(centered), strict=True)
        ]
    pairs = [
        _scale(kernel, before, label, normalize, numbers)
        for kernel, before, label in zip(sound, centered, labels, strict=True)
    ]
    kernels, standardizations = zip(*pairs, strict=True)
    _require_room_for_mix(matrices)
    return DenseStack(kernels, tuple(names), standardizations, tuple(matrices))


def _center(matrix: Any, label: str, center: bool, validate: bool) -> StandardizedKernel:
    """Return one kernel, centered, having looked for what is wrong with its entries."""
    kernel = StandardizedKernel(matrix, learn_centering(matrix, label, center))
    if validate:
        refuse_distances(matrix, kernel.standardization.diagonal, label)
    return kernel


def _scale(
    kernel: StandardizedKernel,
    centered: StandardizedKernel,
    label: str,
    normalize: bool,
    numbers: _Numbers,
) -> tuple[StandardizedKernel, Standardization]:
    """Return one kernel, repaired or as it was centered, scaled, and what new samples need."""
    scale = None
    if normalize:
        scale = learn_scale(kernel.diagonal(), centered.matrix, label, numbers.samples)
    added = None if kernel is centered else kernel.diagonal() - centered.diagonal()
    return (
        replace(kernel, standardization=replace(kernel.standardization, scale=scale)),
        replace(centered.standardization, scale=scale, added=added, shift=kernel.shift),
    )


def _require_room_for_mix(matrices: Sequence[Any]) -> None:
    """Refuse kernels that leave no room on their device for a mix of them."""
    if is_foreign(matrices[0]) and len(matrices) > 1:
        n, precision = matrices[0].shape[0], max(map(precision_of, matrices))
        require_memory(
            n**2 * np.dtype(precision).itemsize,
            f"mixing {len(matrices)} kernels of {n} samples, beside the kernels themselves,",
            "pass kernels in float32, fewer of them or of fewer samples, or views with "
            "kernels='on-the-fly'",
            available=free_bytes(matrices[0]),
        )


def _stream(
    samples: Samples,
    names: Sequence[str] | None,
    numbers: _Numbers,
    *,
    center: bool,
    normalize: bool,
    validate: bool,
) -> StreamedStack:
    """Check kernels known by their rows, in one pass, and stack them."""
    if isinstance(samples.whole, RowSource):
        source, names = samples.whole, _named(samples.whole.n_kernels, names)
        labels = _labels(names, numbers)
    else:
        matrices, names, whole = _collect(samples, names, lazily=True)
        labels = _labels(names, numbers)
        _check_sizes(matrices, labels)
        for matrix, label in zip(matrices, labels, strict=True):
            as_numbers(matrix[:0], label)  # refuses types that are no numbers
        source = MatrixRows(matrices, whole)
    standardizations = []
    checked, largest = check_rows(source, labels, symmetry=validate)
    for matrix, label, entry in zip(checked, labels, largest, strict=True):
        standardization = learn_centering(matrix, label, center)
        if validate:
            _check_diagonal(matrix, standardization, float(entry), label)
        lengths = standardization.centered_diagonal()
        scale = learn_scale(lengths, matrix, label, numbers.samples) if normalize else None
        standardizations.append(replace(standardization, scale=scale))
    return StreamedStack(source, tuple(names), tuple(standardizations))


def _check_diagonal(
    matrix: RowMatrix, standardization: Standardization, largest: float, label: str
) -> None:
    """Raise where the diagonal of a kernel tells that it is indefinite."""
    lengths, centered = standardization.centered_diagonal(), standardization.row_means is not None
    rounding, xp = np.sqrt(rounding_of(matrix)) * largest, namespace(lengths)
    least, most = float(xp.min(lengths)), float(xp.max(lengths))
    # No entry of a positive semidefinite matrix exceeds its diagonal.
    if least < -rounding or (not centered and largest > most + rounding):
        refuse_distances(matrix, standardization.diagonal, label)
        raise ValueError(
            f"{label} is indefinite: its self-similarities{' after centering' * centered} are "
            f"{least:.3g} to {most:.3g}, its largest entry is {largest:.3g}; pass a positive "
            "semidefinite kernel"
        )


def _check_sizes(matrices: Sequence[Any], labels: Sequence[str]) -> None:
    """Raise where kernels are not square, or not over the same samples."""
    for matrix, label in zip(matrices, labels, strict=True):
        check_square(matrix, label)
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"kernels of different sizes: {labels[0]} has {matrices[0].shape[0]} samples, "
                f"{label} has {matrix.shape[0]}; all kernels must be over the same samples"
            )


def _collect(
    samples: Samples, names: Sequence[str] | None, *, lazily: bool = False
) -> tuple[list, list[str], Any]:
    """Return the single kernels, their names, and the one array or dataset that holds them all.

    Lazily, what is on disk stays there.
    """
    whole, kernels = None, samples.whole
    if kernels is None:
        matrices = list(samples.parts)
        names = samples.names if names is None else names
        if samples.names_given and len(set(map(str, names))) < len(names):
            raise ValueError(f"two kernels have the same name, among {names}: rename one of them")
    elif scipy.sparse.issparse(kernels) or getattr(kernels, "ndim", 0) == 2:
        raise ValueError(
            f"one matrix of shape {kernels.shape} where several kernels belong: pass K[None] or "
            "[K] if it is the only kernel"
        )
    elif kernels.ndim == 3 and kernels.shape[0] == kernels.shape[1] != kernels.shape[2]:
        raise ValueError(
            f"an array of shape {tuple(kernels.shape)}, samples x samples x kernels as MATLAB has "
            "them: the first axis has to count the kernels; pass np.moveaxis(K, 2, 0)"
        )
    elif lazily and is_dataset(kernels):
        whole = kernels
        matrices = [DatasetKernel(kernels, index) for index in range(kernels.shape[0])]
    else:
        kernels = kernels[()] if is_dataset(kernels) else kernels
        for index, matrix in enumerate(kernels if np.ma.is_masked(kernels) else ()):
            check_masks(matrix, _labels(_named(len(kernels), names))[index])
        if not lazily and isinstance(kernels, np.ndarray) and kernels.flags.c_contiguous:
            kernels = whole = np.asarray(kernels)
        matrices = [kernels[p, :, :] for p in range(kernels.shape[0])]
    if not matrices:
        raise ValueError("no kernels: the list is empty; pass at least one n x n matrix")
    if lazily:
        on_disk = (np.memmap, DatasetKernel)
        matrices = [
            matrix if isinstance(matrix, on_disk) or is_dataset(matrix) else as_numbers(matrix, "")
            for matrix in matrices
        ]
    return matrices, _named(len(matrices), names), whole


def _named(count: int, names: Sequence[str] | None) -> list[str]:
    """Return one name a kernel."""
    if names is None:
        names = [f"kernel {index}" for index in range(count)]
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} kernels: give each one a name")
    return [str(name) for name in names]


def _labels(names: Sequence[str], numbers: _Numbers = AS_THEY_COME) -> list[str]:
    """Return how messages call the kernels."""
    indices = range(len(names)) if numbers.kernels is None else numbers.kernels
    return [describe(index, name) for index, name in zip(indices, names, strict=True)]
