"""From what a user has to a sound stack of kernels over the same samples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mkclust.linalg import check_one_place, to_device
from mkclust.samples.samples import Samples, read_kernels
from mkclust.stack.checks import (
    as_numbers,
    check_diagonal,
    check_shapes,
    describe,
    learn_centering,
    learn_scale,
    row_sums,
    symmetrized,
)
from mkclust.stack.dissimilarity import refuse_distances
from mkclust.stack.kernel import Array, Computed, Kernel
from mkclust.stack.observed import FillRule, Observed, SampleMap, with_active
from mkclust.stack.opened import open_kernels
from mkclust.stack.repair import make_positive
from mkclust.stack.row_pass import examine_rows
from mkclust.stack.sources import MatrixRows, Source
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardized
from mkclust.types import Float

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
    allowed: dict[str, tuple[Any, ...]] = dict.fromkeys(flags, (True, False))
    allowed |= {"streamed": (True, False, None), "psd": PSD_CHOICES}
    options: dict[str, Any] = {**flags, "streamed": streamed, "psd": psd}
    for option, value in options.items():
        if value not in allowed[option]:
            choices = ", ".join(map(repr, allowed[option]))
            raise ValueError(f"{option}={value!r}: choose one of {choices}")
    samples = read_kernels(kernels)
    if samples.missing is not None:
        return _stack_incomplete(samples, names, views, fill, options)
    given = open_kernels(samples, streamed, psd)
    names = _named(samples, names, given.n_kernels if isinstance(given, Source) else len(given))
    numbers = range(len(names)) if kernel_numbers is None else kernel_numbers
    labels = [describe(number, name) for number, name in zip(numbers, names, strict=True)]
    raw, means, largest = _checked(given, labels, symmetry=validate)
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


def _named(samples: Samples, names: Sequence[str] | None, count: int) -> list[str]:
    """Return one name per kernel."""
    if names is None:
        names = samples.names or [f"kernel {index}" for index in range(count)]
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} kernels: give each one a name")
    return [str(name) for name in names]


def _checked(
    given: Source | list[Any], labels: Sequence[str], *, symmetry: bool
) -> tuple[list[Kernel], list[Any], Float]:
    """Return sound kernels as they came, their row means, and their largest entries if streamed."""
    m = range(len(labels))
    if isinstance(given, Source):
        if isinstance(given, MatrixRows):
            check_shapes(given.matrices, labels)
        sums, diagonals, largest = examine_rows(given, labels, symmetry)
        kernels: list[Kernel] = [Computed(given, p, diagonals[p, :]) for p in m]
        return kernels, [sums[p, :] / given.n_samples for p in m], largest
    pairs = zip(given, labels, strict=True)
    matrices = [K if isinstance(K, Kernel) else as_numbers(K, label) for K, label in pairs]
    check_shapes(matrices, labels)
    kernels, means = [], []
    for K, label in zip(matrices, labels, strict=True):
        if isinstance(K, Kernel):
            ones = to_device(np.ones((K.n_samples, 1)), K.like)
            sums = (K @ ones)[:, 0]
        else:
            K = Array(symmetrized(K, label) if symmetry else K)
            sums = row_sums(K.matrix, label)
        kernels.append(K)
        means.append(sums / K.n_samples)
    check_one_place([kernel.like for kernel in kernels], labels)
    return kernels, means, np.zeros(len(labels))


def _scaled(centered: Standardized, label: str, numbers: np.ndarray | None) -> Standardized:
    """Return a centered kernel, scaled to a unit diagonal."""
    scale = learn_scale(centered.diagonal(), centered.kernel, label, numbers)
    given = centered.given
    return replace(
        centered,
        standardization=replace(centered.standardization, scale=scale),
        given=None if given is None else replace(given, scale=scale),
    )


def stack_observed(
    stacks: Sequence[Stack], observed: np.ndarray, places: Sequence[Sequence[int]], fill: FillRule
) -> Stack:
    """Stack kernels of which each has some samples.

    The kernels of each of the `stacks` are over the samples that a column of `observed`, bool of
    shape (n_samples, n_stacks), has; `places` are their numbers among all. `fill` says what becomes
    of samples that are missing: they are similar to nobody ("zero"); or, besides, every sample is
    scaled up to the total self-similarity of one that all kernels have ("rescale").
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
    names = _named(samples, names, len(samples.parts))
    views = range(len(names)) if views is None else views
    patterns, number = np.unique(samples.missing.T, axis=0, return_inverse=True)
    groups = [np.flatnonzero(number == each).tolist() for each in range(len(patterns))]
    stacks = []
    for group, pattern in zip(groups, patterns, strict=True):
        parts = tuple(samples.parts[p] for p in group)
        stack = as_stack(
            Samples("kernels", tuple(names[p] for p in group), parts, names_given=True),
            views=[views[p] for p in group],
            kernel_numbers=group,
            sample_numbers=np.flatnonzero(~pattern),
            **options,
        )
        stacks.append(stack)
    return stack_observed(stacks, ~patterns.T, groups, fill)
