"""What an input is by its form: kernels, several views, or one table."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mkclust.data.check import n_dims
from mkclust.data.join import looks_like_kernel
from mkclust.data.row_source import RowSource

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


def kind_of(X: Any, expected: Expected) -> Kind:
    """Return what X is by its form, given what is expected."""
    if isinstance(X, RowSource):
        if expected != "views":
            return "kernels"
        raise ValueError(
            f"X is a source of rows of kernels, a {type(X).__name__}: pass the views, or "
            "kernels='precomputed'"
        )
    several = isinstance(X, Mapping | list | tuple) and not issparse(X)
    if several and not X:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    several = several and (isinstance(X, Mapping) or any(n_dims(item) == 2 for item in X))
    several = several or hasattr(X, "mod")  # MuData
    dimensions = 2 if issparse(X) or several else getattr(X, "ndim", 2)
    if expected == "precomputed":
        if several or dimensions == 3:
            return "kernels"
        form = f"an array of shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        advice = ": pass K[None], or [K], if it is the only kernel" if hasattr(X, "shape") else ""
        advice = ": pass list(X)" if isinstance(X, Iterator) else advice
        raise ValueError(
            "kernels='precomputed' expects an array of shape (m, n, n) or a list or dict of n x n "
            f"matrices, got {form}{advice}"
        )
    if dimensions == 3 and expected == "views":
        raise ValueError(
            f"X has the shape {X.shape}: a KernelBank makes kernels from views, samples x "
            "features; pass kernels='precomputed' if these are kernels already"
        )
    if dimensions == 3:
        return "kernels"
    if not several and expected == "auto" and looks_like_kernel(X):
        raise ValueError(
            f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a kernel, pass "
            f"{'[K]' if issparse(X) else 'K[None], or [K]'} and kernels='precomputed'; if it is a "
            "table of features, pass kernels=KernelBank()"
        )
    return "views" if several else "table"


def refuse_square(samples: Any) -> None:
    """Refuse square matrices of one size, which could be kernels or views."""
    shapes = {tuple(np.shape(view)) for view in samples.parts}
    n = max(max(shapes), default=0)
    # Rows that a mask takes out are gone, and the columns of these samples may be there.
    if shapes == {(n, n)} or (
        samples.missing is not None
        and all(shape[1:] in ((samples.n_samples,), shape[:1]) for shape in shapes)
    ):
        sizes = f"{n} x {n}" if len(shapes) == 1 else f"up to {n} x {n}"
        raise ValueError(
            f"X holds square matrices only, all {sizes}: they could be kernels or views with as "
            "many features as samples; pass kernels='precomputed' for kernels or "
            "kernels=KernelBank() for views, or kernels='from_distances' for distances"
        )
