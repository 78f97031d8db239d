"""A data set made ready for all methods: kernels, their stack, features, classes."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from mkclust.bench.plan import DatasetEntry
from mkclust.datasets import Dataset, load
from mkclust.kernels import KernelBank, default_bank
from mkclust.linalg import inner_products
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.methods.leading_shares import leading_sums
from mkclust.samples.missing import single_kernels
from mkclust.samples.samples import Samples, read_kernels
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.checks import check_symmetry
from mkclust.stack.kernel import dense_of
from mkclust.types import Float

# Rows of every kernel that a fingerprint of the data looks at.
FINGERPRINT_ROWS = 64


class NotApplicableError(ValueError):
    """Say why a method does not apply to a data set."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set with its kernels, of all samples or of a part.

    Parameters
    ----------
    data : Dataset
        With classes.
    samples : Samples
        Its kernels, m matrices of shape (n, n).
    names : tuple of str
        Their names.
    n_clusters : int
        Number of clusters to look for.
    """

    data: Dataset
    samples: Samples
    names: tuple[str, ...]
    n_clusters: int

    @classmethod
    def read(cls, entry: DatasetEntry, folder: Path) -> "Prepared":
        """Read a data set of a plan and make its kernels."""
        if entry.path:
            data = load(folder / entry.path, kernels=entry.precomputed, on_disk=False)
            data = replace(data, name=entry.name)
        else:
            data = load(entry.name)
        if data.y is None:
            raise ValueError(f"{data.name}: has no classes to compare with; store them as y")
        kernels, names = make_kernels(data)
        for name, kernel in zip(names, kernels, strict=True):
            check_symmetry(kernel, str(name))
        n_clusters = entry.n_clusters or int(data.n_classes or 0)
        return cls(data, read_kernels(kernels), tuple(names), n_clusters)

    @property
    def y(self) -> np.ndarray:
        """The true classes."""
        assert self.data.y is not None
        return self.data.y

    @property
    def matrices(self) -> list[Any]:
        """The single kernels."""
        whole = self.samples.whole
        return list(self.samples.parts) if whole is None else single_kernels(whole)

    @cached_property
    def fingerprint(self) -> str:
        """A short text that other data, or other kernels of them, would hardly share."""
        digest = hashlib.sha256(repr((self.names, self.n_clusters, len(self.y))).encode())
        digest.update(np.unique(self.y, return_inverse=True)[1].astype("<i8").tobytes())
        rows = np.unique(np.linspace(0, len(self.y) - 1, FINGERPRINT_ROWS).astype(int))
        for kernel in self.matrices:
            part = kernel[rows]
            part = part.toarray() if scipy.sparse.issparse(part) else np.asarray(part)
            # To a few digits: the last ones differ between machines.
            size = np.abs(part).max() or 1.0
            digest.update(np.rint(part / size * 1e4).astype("<i4").tobytes())
        return digest.hexdigest()[:16]

    def part(self, indices: np.ndarray) -> "Prepared":
        """Return the same of some of the samples."""
        views = self.data.views and {name: view[indices] for name, view in self.data.views.items()}
        kernels = [K[indices][:, indices] for K in self.matrices]
        data = replace(
            self.data,
            views=views,
            kernels=None if views is not None else kernels,
            y=self.y[indices],
            kernel_names=tuple(views) if views is not None else self.names,
        )
        return Prepared(data, read_kernels(kernels), self.names, self.n_clusters)

    def single(self, index: int) -> "Prepared":
        """Return the same with one of the kernels only."""
        kernel, names = read_kernels([self.matrices[index]]), self.names[index : index + 1]
        return replace(self, samples=kernel, names=names)

    @cached_property
    def stack(self) -> Stack:
        """The kernels, centered and scaled on the fly."""
        return as_stack(self.samples, validate=False, names=self.names)

    @cached_property
    def leading_sums(self) -> Float:
        """Each kernel's own top-k eigenvalue sum, the most that a partition can capture of it."""
        return leading_sums(self.stack, self.n_clusters)

    def alignments(self, H: Float) -> Float:
        """Return the share of each kernel's own leading structure that a partition captures."""
        return np.clip(inner_products(self.stack.apply(H), H) / self.leading_sums, 0, 1)

    def input(self, kind: str) -> Any:
        """Return what a clusterer is fitted on; it cannot change what the next one gets."""
        if kind == "kernels":
            return [_read_only(kernel) for kernel in self.matrices]
        if kind == "average-kernel":
            # Not centered: what clusters by similarities takes negative ones for mistakes.
            stack = as_stack(self.samples, center=False, validate=False)
            return dense_of(Mix(np.full(stack.n_kernels, 1 / stack.n_kernels), stack.kernels))
        if self.data.views is None:
            raise NotApplicableError(
                f"{self.data.name} has kernels only, no features for {kind} input"
            )
        if kind == "views":
            return {name: _read_only(view) for name, view in self.data.views.items()}
        tables = [dense_rows(view) for view in self.data.views.values()]
        return np.hstack([StandardScaler().fit_transform(table) for table in tables])


def _read_only(array: Any) -> Any:
    """Return an array that cannot be written to, without a copy where it is dense."""
    if scipy.sparse.issparse(array):
        return array.copy()
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def make_kernels(data: Dataset) -> tuple[Any, Any]:
    """Return the kernels of a data set, made as it says where it holds views only, and names."""
    if data.kernels is not None:
        return data.kernels, data.kernel_names
    assert data.views is not None
    # Of papers, whose kernels are of rows as they are.
    plain = default_bank(len(data.views) > 1, "gaussian")
    bank = plain if data.bank is None else KernelBank(**data.bank)
    return bank.fit_transform(data.views), bank.kernel_names_
