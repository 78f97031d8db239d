"""From what a user has to a sound stack of kernels over the same samples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from mkclust.linalg import check_one_place, to_device
from mkclust.linalg.memory import available_bytes
from mkclust.samples.check import check_masks
from mkclust.samples.row_source import RowSource
from mkclust.samples.samples import Samples, read_kernels
from mkclust.stack.checks import (
    as_numbers,
    check_diagonal,
    check_square,
    describe,
    learn_centering,
    learn_scale,
    row_sums,
    symmetrized,
)
from mkclust.stack.dissimilarity import refuse_distances
from mkclust.stack.kernel import Array, Computed, Kernel
from mkclust.stack.observed import FillRule, Observed, SampleMap, with_active
from mkclust.stack.on_disk import better_streamed, has_files, is_dataset, require_memory_to_load
from mkclust.stack.repair import make_positive
from mkclust.stack.row_pass import RowPass
from mkclust.stack.sources import DatasetKernel, GivenRows, MatrixRows, Source
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized

PSD_CHOICES = ("error", "clip", "shift")


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
    kernel_numbers: Sequence[int] | None = None,
    sample_numbers: np.ndarray | None = None,
) -> Stack:
    """Check kernels and stack them, to be centered and scaled on the fly.

    The kernels are neither copied nor changed (integer ones are converted, and ``(K + K.T) / 2``
    stands for those that are not quite symmetric), and float32 kernels stay float32. Centering
    comes first, then the scaling to a unit diagonal.

    Kernels that do not fit into memory are streamed: read some rows at a time, as often as a
    solver asks for products. Nothing of their size is allocated.

    Parameters
    ----------
    kernels : array of shape (m, n, n), list or dict of m matrices of shape (n, n), or RowSource
        NumPy arrays, memory maps, HDF5 datasets, SciPy sparse matrices or `Kernel` objects; a dict
        gives the names. A source of rows is anything with ``n_kernels``, ``n_samples``, ``dtype``
        and ``rows(start, stop)``.
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
        negative eigenvalues with the diagonal and a few products per kernel. That is a check, not
        a proof: a negative eigenvalue much smaller than the largest one can escape it. False skips
        all of it, and repairs nothing. Of streamed kernels one random product tells asymmetry, and
        only the diagonal (without centering, the largest entry, too) tells negative eigenvalues:
        products would take a pass over all kernels each.
    names : sequence of str, default=None
        Names of the kernels; "kernel 0", "kernel 1", ... if not given.
    views : sequence of int, default=None
        The number of the view that each kernel is made of; each is of its own if not given.
        Kernels of one view prove nothing about each other (`mkclust.agreement`).
    streamed : bool, default=None
        Whether to read the kernels some rows at a time rather than hold them, or a combination of
        them, in memory. None streams sources of rows, and what is in files and large: memory maps
        of which one kernel would take more than 2 GiB, or than a quarter of the memory there is,
        and HDF5 datasets of which all kernels and one more would; smaller datasets are loaded.
        Streamed kernels cannot be repaired: with psd="clip" or psd="shift" what is in files is
        loaded, or refused where it does not fit, and sources of rows are refused.
    fill : {"zero", "rescale"}, default="rescale"
        If kernels lack samples: whether these are similar to nobody, or what other kernels tell
        of them is scaled up to the self-similarity of a sample that no kernel lacks.
    kernel_numbers, sample_numbers : sequence of int, default=None
        The numbers that messages call kernels and samples by, if these are some of more.

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
    flags = {"center": center, "normalize": normalize, "validate": validate}
    _check_options(flags, streamed, psd)
    samples = read_kernels(kernels)
    if samples.missing is not None:
        options: dict[str, Any] = {**flags, "psd": psd, "streamed": streamed}
        return _stack_incomplete(samples, names, views, fill, options)
    is_streamed = _is_streamed(samples, streamed, psd)
    if not is_streamed:
        require_memory_to_load(samples, psd)
    given, names = _open(samples, names, is_streamed)
    numbers = range(len(names)) if kernel_numbers is None else kernel_numbers
    labels = [describe(number, name) for number, name in zip(numbers, names, strict=True)]
    raw, means, largest = _checked(given, labels, symmetry=validate, means=center)
    standardized = []
    for kernel, mean, most, label in zip(raw, means, largest, labels, strict=True):
        centered = Standardized(kernel, learn_centering(kernel, mean, label, center))
        if validate:
            refuse_distances(kernel, label)
        if validate and kernel.storage == "streamed":
            check_diagonal(kernel, centered.standardization, most, label)
        elif validate:
            centered = make_positive(centered, label, psd)
        standardized.append(_scaled(centered, label, sample_numbers) if normalize else centered)
    numbers_of_views = range(len(names)) if views is None else views
    return Stack(tuple(standardized), tuple(names), tuple(numbers_of_views))


def _scaled(centered: Standardized, label: str, numbers: np.ndarray | None) -> Standardized:
    """Return a centered kernel, scaled to a unit diagonal."""
    scale = learn_scale(centered.diagonal(), centered.kernel, label, numbers)
    given = centered.given
    return replace(
        centered,
        standardization=replace(centered.standardization, scale=scale),
        given=None if given is None else replace(given, scale=scale),
    )


def _is_streamed(samples: Samples, streamed: bool | None, psd: str) -> bool:
    """Return whether kernels are read some rows at a time; refuse what then cannot be done."""
    is_source = isinstance(samples.whole, RowSource | Source)
    if not (streamed or is_source):
        in_files = streamed is None and psd == "error" and has_files(samples)
        return in_files and better_streamed(samples, available_bytes())
    if streamed is False or psd != "error":
        asked = "streamed=False" if streamed is False else f"psd={psd!r}"
        raise ValueError(
            f"{asked} needs the kernels in memory, and these are read some rows at a time: "
            "pass arrays, such as K[:], if they fit"
        )
    return True


def _open(
    samples: Samples, names: Sequence[str] | None, is_streamed: bool
) -> tuple[Any, list[str]]:
    """Return a source of rows, or a list of matrices and kernels, and their names."""
    if isinstance(samples.whole, Source):
        return samples.whole, _named(samples.whole.n_kernels, names)
    if isinstance(samples.whole, RowSource):
        return GivenRows(samples.whole), _named(samples.whole.n_kernels, names)
    matrices, names, whole = _collect(samples, names, lazily=is_streamed)
    return (MatrixRows(matrices, whole) if is_streamed else matrices), names


def _checked(
    given: Any, labels: Sequence[str], *, symmetry: bool, means: bool
) -> tuple[list[Kernel], list[Any], Sequence[float]]:
    """Return sound kernels as they came, their row means, and their largest entries if streamed."""
    if isinstance(given, Source):
        if isinstance(given, MatrixRows):
            _check_sizes(given.matrices, labels)
        found = RowPass(given, labels, symmetry)
        n = given.n_samples
        kernels: list[Kernel] = [
            Computed(given, p, found.diagonals[p, :]) for p in range(given.n_kernels)
        ]
        return kernels, [found.sums[p, :] / n for p in range(given.n_kernels)], found.largest
    kernels = []
    for matrix, label in zip(given, labels, strict=True):
        if isinstance(matrix, Kernel):
            kernels.append(matrix)
            continue
        matrix = as_numbers(matrix, label)
        check_square(matrix, label)
        kernels.append(Array(symmetrized(matrix, label) if symmetry else matrix))
    _check_same_size(kernels, labels)
    check_one_place([kernel.like for kernel in kernels], labels)
    return (
        kernels,
        [_row_means(*pair) for pair in zip(kernels, labels, strict=True)],
        [0.0] * len(labels),
    )


def _row_means(kernel: Kernel, label: str) -> Any:
    """Return the mean of every row, having made sure that all entries are finite."""
    if isinstance(kernel, Array):
        return row_sums(kernel.matrix, label) / kernel.n_samples
    ones = to_device(np.ones((kernel.n_samples, 1)), kernel.like)
    return (kernel @ ones)[:, 0] / kernel.n_samples


def stack_observed(
    stacks: Sequence[Stack],
    observed: np.ndarray,
    places: Sequence[Sequence[int]],
    fill: FillRule,
) -> Stack:
    """Stack kernels of which each has some samples.

    Parameters
    ----------
    stacks : sequence of Stack
        Kernels over the samples that they have, those of each with the same samples.
    observed : ndarray of bool of shape (n_samples, n_stacks)
        Which samples these are.
    places : sequence of sequences of int
        The number of each of their kernels among all.
    fill : {"zero", "rescale"}
        What becomes of samples that are missing: they are similar to nobody; or, besides, every
        sample is scaled up to the total self-similarity of one that all kernels have.
    """
    n, scale = len(observed), np.ones(len(observed)) if fill == "rescale" else None
    found: dict[int, tuple[Kernel, str, int]] = {}
    for stack, has, numbers in zip(stacks, observed.T, places, strict=True):
        sample_map = SampleMap(np.flatnonzero(has), n, scale)
        kernels = [Observed(kernel, sample_map) for kernel in stack.kernels]
        found.update(zip(numbers, zip(kernels, stack.names, stack.views, strict=True), strict=True))
    every, names, views = zip(*(found[number] for number in sorted(found)), strict=True)
    return Stack(with_active(every, range(len(every))), names, views)


def _stack_incomplete(
    samples: Samples,
    names: Sequence[str] | None,
    views: Sequence[int] | None,
    fill: FillRule,
    options: dict[str, Any],
) -> Stack:
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
    return stack_observed(stacks, ~patterns.T, groups, fill)


def _some(values: Sequence[Any], indices: Sequence[int]) -> tuple[Any, ...]:
    """Return some of the values."""
    return tuple(values[index] for index in indices)


def _check_options(flags: dict[str, Any], streamed: Any, psd: Any) -> None:
    """Refuse values that an option cannot have."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name}={flag!r}: pass True or False")
    if not (streamed is None or isinstance(streamed, bool | np.bool_)):
        raise ValueError(f"streamed={streamed!r}: pass True, False or None")
    if psd not in PSD_CHOICES:
        raise ValueError(f"psd={psd!r}: choose one of {', '.join(map(repr, PSD_CHOICES))}")


def _check_sizes(matrices: Sequence[Any], labels: Sequence[str]) -> None:
    """Raise if matrices are not square, or have entries of a wrong type."""
    for matrix, label in zip(matrices, labels, strict=True):
        check_square(matrix, label)
        as_numbers(matrix[:0], label)  # refuses types that are not numbers


def _check_same_size(kernels: Sequence[Kernel], labels: Sequence[str]) -> None:
    """Raise if kernels are not over the same samples."""
    for kernel, label in zip(kernels, labels, strict=True):
        if kernel.n_samples != kernels[0].n_samples:
            raise ValueError(
                f"kernels of different sizes: {labels[0]} has {kernels[0].n_samples} samples, "
                f"{label} has {kernel.n_samples}; all kernels must be over the same samples"
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
            check_masks(matrix, describe(index, _named(len(kernels), names)[index]))
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
