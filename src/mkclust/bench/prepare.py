"""A data set made ready for all methods: kernels, their stack, features, classes."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from mkclust.bench.plan import DatasetEntry
from mkclust.datasets import Dataset, load
from mkclust.kernels import KernelBank
from mkclust.linalg import to_host
from mkclust.relaxation import relax
from mkclust.stack import DenseStack, as_stack
from mkclust.types import Float

# How accurately each kernel's own top eigenvalue sum is found: its share is read, not computed on.
SHARE_TOLERANCE = 1e-3


class NotApplicableError(ValueError):
    """Say why a method does not apply to a data set."""


class Prepared:
    """A data set with its kernels, of all samples or of a part.

    Parameters
    ----------
    data : Dataset
        With classes.
    kernels : array of shape (m, n, n), or list of m matrices of shape (n, n)
        Its kernels.
    names : sequence of str
        Their names.
    n_clusters : int
        Number of clusters to look for.
    """

    def __init__(self, data: Dataset, kernels: Any, names: Any, n_clusters: int):
        self.data, self.kernels, self.names, self.n_clusters = (
            data,
            kernels,
            tuple(names),
            n_clusters,
        )
        assert data.y is not None
        self.y: np.ndarray = data.y

    @classmethod
    def read(cls, entry: DatasetEntry, folder: Path) -> "Prepared":
        """Read a data set of a plan and make its kernels."""
        if entry.path:
            data = load(folder / entry.path, kernels=entry.precomputed)
            data = replace(data, name=entry.name)
        else:
            data = load(entry.name, download=entry.download)
        if data.y is None:
            raise ValueError(f"{data.name}: has no classes to compare with; store them as y")
        kernels, names = make_kernels(data)
        return cls(data, kernels, names, entry.n_clusters or int(data.n_classes or 0))

    def part(self, indices: np.ndarray) -> "Prepared":
        """Return the same of some of the samples."""
        views = self.data.views and {name: view[indices] for name, view in self.data.views.items()}
        kernels = [K[indices][:, indices] for K in self.kernels]
        data = replace(
            self.data,
            views=views,
            kernels=None if views is not None else kernels,
            y=self.y[indices],
            kernel_names=tuple(views) if views is not None else self.names,
        )
        return Prepared(data, kernels, self.names, self.n_clusters)

    def single(self, index: int) -> "Prepared":
        """Return the same with one of the kernels only."""
        kernels, names = [self.kernels[index]], self.names[index : index + 1]
        return Prepared(self.data, kernels, names, self.n_clusters)

    @cached_property
    def stack(self) -> DenseStack:
        """The kernels, centered and scaled on the fly."""
        return as_stack(self.kernels, validate=False, names=self.names)

    @cached_property
    def own_sums(self) -> Float:
        """Each kernel's own top-k eigenvalue sum, the most that a partition can capture of it."""
        k, kernels = self.n_clusters, map(self.stack.kernel, range(self.stack.n_kernels))
        return np.array([relax(kernel, k, tol=SHARE_TOLERANCE).value for kernel in kernels])

    def alignments(self, H: Float) -> Float:
        """Return the share of each kernel's own leading structure that a partition captures."""
        captured = to_host((self.stack.apply(H) * H).sum(axis=(1, 2)))
        return np.clip(captured / self.own_sums, 0, 1)

    def input(self, kind: str) -> Any:
        """Return what a clusterer is fitted on."""
        if kind == "kernels":
            return self.kernels
        if kind == "average-kernel":
            # Not centered: what clusters by similarities takes negative ones for mistakes.
            stack = as_stack(self.kernels, center=False, validate=False)
            return stack.combine(np.full(stack.n_kernels, 1 / stack.n_kernels)).dense()
        if self.data.views is None:
            raise NotApplicableError(
                f"{self.data.name} has kernels only, no features for {kind} input"
            )
        if kind == "views":
            return self.data.views
        return np.hstack([StandardScaler().fit_transform(v) for v in self.data.views.values()])


def make_kernels(data: Dataset) -> tuple[Any, Any]:
    """Return the kernels of a data set, made as it says where it holds views only, and names."""
    if data.kernels is not None:
        return data.kernels, data.kernel_names
    assert data.views is not None
    settings = data.bank
    if settings is None:
        settings = (
            {} if len(data.views) == 1 else {"widths": (1.0,), "polynomials": (), "linear": None}
        )
    bank = KernelBank(**settings)
    return bank.fit_transform(data.views), bank.kernel_names_
