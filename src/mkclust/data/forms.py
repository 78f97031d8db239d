"""What an input is by its form: kernels, several views, or one table."""

from typing import Any, Literal

import numpy as np

from mkclust.data.join import looks_like_kernel
from mkclust.data.row_source import RowSource
from mkclust.data.tables import TABLE, by_name

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


def kind_of(X: Any, expected: Expected) -> Kind:
    """Return what X is by its form, given what is expected."""
    named = by_name(X)
    if not named:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    several = named.get(TABLE) is not X
    is_stack = not several and (isinstance(X, RowSource) or getattr(X, "ndim", 2) == 3)
    if expected == "precomputed" and not (several or is_stack):
        found = f"an array of shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        raise ValueError(
            "kernels='precomputed' expects an array of shape (m, n, n) or a list or dict of n x n "
            f"matrices, got {found}: pass K[None], or [K], for a single kernel"
        )
    if expected == "views" and is_stack:
        raise ValueError(
            "X holds kernels, and a KernelBank makes kernels from views, samples x features: pass "
            "these, or kernels='precomputed'"
        )
    if expected == "auto" and not several and looks_like_kernel(X):
        raise ValueError(
            f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a kernel, pass [K] "
            "and kernels='precomputed'; if it is a table of features, pass kernels=KernelBank()"
        )
    if is_stack or expected == "precomputed":
        return "kernels"
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
