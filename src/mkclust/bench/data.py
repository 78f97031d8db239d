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
from mkclust.fit.mixture import leading_sums
from mkclust.kernels import KernelBank, default_bank
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.checks import symmetrized
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set with its kernels, of all samples or of a part."""

    data: Dataset  # as it was read
    views: dict[str, Any] | None
    kernels: list[Any]  # (n, n) each
    names: tuple[str, ...]
    y: np.ndarray  # the true classes
    n_clusters: int  # to find

    @classmethod
    def read(cls, entry: DatasetEntry, folder: Path) -> "Prepared":
        """Read a data set of a plan and compute its kernels."""
        if entry.path:
            data = load(
                folder / entry.path,
                kernels=entry.precomputed,
                on_disk=False,
                labels=entry.labels,
            )
        else:
            data = load(entry.name)
        if data.y is None:
            raise ValueError(
                f"{entry.name}: has no classes to compare with; store one per sample "
                "as y, Y, gnd or labels, or name the variable in the plan: labels = "
                f'"NAME". {data.description}'
            )
        kernels, names = make_kernels(data)
        kernels = [*map(symmetrized, kernels, map(str, names))]
        return cls(
            data=data,
            views=data.views,
            kernels=kernels,
            names=tuple(names),
            y=data.y,
            n_clusters=entry.n_clusters or int(data.n_classes or 0),
        )

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The columns of a row about its data set, with a fingerprint of kernels."""
        digest = hashlib.sha256(
            repr((self.names, self.n_clusters, len(self.y))).encode()
        )
        _, codes = np.unique(self.y, return_inverse=True)
        digest.update(codes.astype("<i8").tobytes())
        # Some rows of every kernel.
        rows = np.unique(np.linspace(0, len(self.y) - 1, 64, dtype=int))
        for kernel in self.kernels:
            part = kernel[rows]
            if scipy.sparse.issparse(part):
                part = part.toarray()
            # To a few digits: the last ones differ between machines.
            size = np.abs(part).max() or 1.0
            digest.update(np.rint(part / size * 1e4).astype("<i4").tobytes())
        return {
            "fingerprint": digest.hexdigest()[:16],
            "paper": self.data.paper,
            "caveat": self.data.caveat,
            "n_samples": len(self.y),
            "n_kernels": len(self.names),
            "n_clusters": self.n_clusters,
        }

    def part(self, indices: np.ndarray) -> "Prepared":
        """Return the same for some of the samples."""
        views = self.views and {
            name: view[indices] for name, view in self.views.items()
        }
        kernels = [K[indices][:, indices] for K in self.kernels]
        return replace(self, views=views, kernels=kernels, y=self.y[indices])

    @cached_property
    def stack(self) -> Stack:
        """The kernels, centered and scaled on the fly."""
        return as_stack(self.kernels, validate=False, names=self.names)

    @cached_property
    def leading_sums(self) -> Float:
        """The sum of the k largest eigenvalues of each kernel."""
        return leading_sums(self.stack, self.n_clusters)

    def input(self, kind: str) -> Any:
        """Return the input of a clusterer, as copies."""
        if kind == "kernels":
            return [kernel.copy() for kernel in self.kernels]
        if kind == "average-kernel":
            # Not centered: clusterers that take similarities refuse negative ones.
            stack = as_stack(self.kernels, center=False, validate=False)
            equal = np.full(stack.n_kernels, 1 / stack.n_kernels)
            return Mix(equal, stack.kernels).dense()
        if self.views is None:
            raise ValueError(f"the data are kernels only, without features for {kind}")
        if kind == "views":
            return {name: view.copy() for name, view in self.views.items()}
        dense = (
            view.toarray() if scipy.sparse.issparse(view) else np.asarray(view)
            for view in self.views.values()
        )
        return np.hstack([StandardScaler().fit_transform(view) for view in dense])


def make_kernels(data: Dataset) -> tuple[Any, Any]:
    """Return the kernels of a data set and their names, made from views if needed."""
    if data.kernels is not None:
        return data.kernels, data.kernel_names
    assert data.views is not None
    if data.bank is not None:
        bank = KernelBank(**data.bank)
    else:  # as papers do: a Gaussian of the rows as they are
        bank = default_bank(len(data.views) > 1, "gaussian")
    return bank.fit_transform(data.views), bank.kernel_names_
