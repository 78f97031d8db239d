r"""Labels of a relaxed partition: which rows k-means clusters, and what decides.

The leading eigenvectors H of a kernel K, with eigenvalues :math:`\Lambda`, are a
relaxed partition. k-means clusters its rows in one of two forms:

- "unit": rows of unit length, as the authors of most methods do;
- "components": kernel principal components, the rows of :math:`H \Lambda^{1/2}`, whose
  distances are those of the kernel's feature space as far as k directions hold them.

In rows of unit length every direction counts alike. k centered clusters span k - 1
directions, so one is noise, and near the mean, where a large cluster is, it decides.

Which form is better is measured by what kernel k-means is about before it is relaxed:
the share of the kernel's trace that lies between the clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from mkclust.fit.solution import Solution
from mkclust.linalg import precision_of, select, to_device, to_host
from mkclust.linalg.sparse_rows import spread_rows
from mkclust.stack import Kernel, Stack
from mkclust.stack.discretize import count_members, discretize
from mkclust.types import Array, Float

Form = Literal["unit", "components"]
# What the parameter `rounding` may be.
ROUNDINGS = ("best", "unit", "components")
# Of more rows than this, forms are compared by clusters learned from half of this
# number.
MANY_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class Rounded:
    """Labels, and all that gives them to other samples."""

    form: Form
    labels: np.ndarray  # (n_samples,), -1 for samples that are left out
    centers: Float  # (k, k)
    root: Float | None  # what rows are multiplied with, (k, k); None for unit length


def round_partition(
    stack: Stack,
    solution: Solution,
    rows: Array,
    *,
    rounding: str = "best",
    order: np.ndarray | None = None,
    **options: Any,
) -> Rounded:
    """Turn a relaxed partition into labels.

    Parameters
    ----------
    stack : Stack
        The kernels that were solved.
    solution : Solution
        The relaxed partition.
    rows : array of shape (n_samples, n_clusters)
        Its rows, one per sample.
    rounding : {"best", "unit", "components"}, default="best"
        The form of the rows; "best" takes components if their clusters explain more of
        the kernel than those of rows of unit length, by more than half a percent, or
        are the same.
    order : ndarray of int, default=None
        Which samples are clustered, in the order that random starts see; None for all.
    **options
        Those of `mkclust.stack.discretize.discretize`.
    """
    n, k = rows.shape
    if order is None:
        order = np.arange(n)
    some = select(rows, order)

    def cluster(form: Form, **more: Any) -> Rounded:
        """Return the clusters of rows in one form; -1 for samples left out."""
        root = root_of(stack, solution) if form == "components" else None
        labels, centers = discretize(some, k, root=root, **options, **more)
        return Rounded(form, spread_rows(labels, order, n, -1), centers, root)

    if rounding != "best":
        return cluster(cast(Form, rounding))

    is_large = len(order) > MANY_ROWS
    fewer = {"all_rows": MANY_ROWS} if is_large else {}
    unit = cluster("unit", **fewer)
    components = cluster("components", **fewer)
    # Which is the natural form for other samples, if clusters are the same.
    best = components
    if not np.array_equal(unit.labels, components.labels):
        labels = [unit.labels, components.labels]
        shares = explained(stack, kernel_of(stack, solution), labels)
        # Components that explain no more than this share more only move a border:
        # k-means on them all but maximizes what is compared.
        tied = 0.005
        is_better = shares[1] > (1 + tied) * shares[0]
        if not is_better:
            best = unit
    if is_large:
        return cluster(best.form)
    return best


def kernel_of(stack: Stack, solution: Solution) -> Kernel:
    """Return the kernel whose k-means problem a partition solves in relaxed form."""
    if solution.kernel is not None:
        return solution.kernel
    if solution.coefficients is None:
        raise TypeError(
            "the solution has neither coefficients nor a kernel, by which clusters "
            "could be compared: return one of them from _solve, or pass rounding='unit'"
        )
    return (stack.held() or stack).mix(solution.coefficients)


def root_of(stack: Stack, solution: Solution) -> Float:
    """Return what takes a partition to kernel principal components, (k, k).

    It is the root of ``H^T K H``, which is diagonal for eigenvectors H. Components are
    unique up to a rotation, as partitions are, and have a mean squared length of one.
    """
    H = solution.partition
    if solution.relaxation is not None:
        gram = np.diag(solution.relaxation.eigenvalues[: H.shape[1]])
    else:
        gram = to_host(H.T @ (kernel_of(stack, solution) @ H))
    return root_of_gram(gram, (stack.features or stack).n_samples)


def root_of_gram(gram: Float, n_samples: int) -> Float:
    """Return the root of ``H^T K H``, for n rows of a mean squared length of one."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    lengths = np.sqrt(np.maximum(values, 0))
    total = float(np.linalg.norm(lengths))
    if total > 0:
        lengths = lengths * (n_samples**0.5 / total)
    return (vectors * lengths) @ vectors.T


def explained(stack: Stack, kernel: Kernel, partitions: Sequence[np.ndarray]) -> Float:
    """Return the share of a kernel's trace that lies between clusters, by partition.

    That is the objective of kernel k-means, ``Tr(Z^T K Z)`` with Z the indicators of
    clusters over the roots of their sizes: one if all samples of every cluster are the
    same. It takes one product with the kernel, or one pass over the samples if features
    stand for them.

    Parameters
    ----------
    stack : Stack
        What the kernel is a mix of.
    kernel : Kernel
        Over the samples, or over the coordinates of the features.
    partitions : sequence of ndarray of shape (n_samples,)
        Labels from 0; -1 for samples that are left out.
    """
    labels = np.stack(partitions)
    k = int(labels.max()) + 1
    if stack.features is None:
        sums = count_members(labels, k)
    else:
        sums = stack.features.sum_clusters(labels, k)
    sizes = [np.bincount(each[each >= 0], minlength=k) for each in labels]
    Z = sums / np.sqrt(np.maximum(np.concatenate(sizes), 1))
    like = kernel.like
    products = to_host(kernel @ to_device(Z, like, precision_of(like)))
    between = np.sum(Z * products, axis=0).reshape(len(labels), k).sum(axis=1)
    trace = float(to_host(kernel.diagonal()).sum())
    if trace > 0:
        return between / trace
    return np.zeros(len(labels))
