"""What a user may hand to ``fit``: kernels, views or a table, told apart here and nowhere else."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse

from mkclust.linalg import is_foreign, namespace
from mkclust.samples.forms import depth, named_views
from mkclust.samples.ids import is_frame, is_kernel
from mkclust.samples.row_source import RowSource

Kind = Literal["kernels", "views", "table"]
Expected = Literal["auto", "precomputed", "views"]


def kind_of_input(X: Any, expected: Expected) -> Kind:
    """Return what X is, given what is expected, or refuse what could be two things.

    Parameters
    ----------
    X : object
        What a user passed.
    expected : {"auto", "precomputed", "views"}
        Kernels or views as X shows, kernels only, or what a bank makes kernels of.

    Returns
    -------
    {"kernels", "views", "table"}
    """
    precomputed, auto = expected == "precomputed", expected == "auto"
    if isinstance(X, RowSource):
        if expected != "views":
            return "kernels"
        raise ValueError(
            f"X is a source of rows of kernels, a {type(X).__name__}: a KernelBank makes kernels "
            "from views; pass the views, or kernels='precomputed'"
        )
    several = _several_matrices(X)
    dimensions = 2 if scipy.sparse.issparse(X) or several else getattr(X, "ndim", 2)
    if precomputed:
        if several or dimensions == 3:
            return "kernels"
        found = f"an array of shape {X.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
        advice = ": pass K[None], or [K], if it is the only kernel" if hasattr(X, "shape") else ""
        if isinstance(X, Iterator):
            advice = ": pass list(X)"
        raise ValueError(
            "kernels='precomputed' expects an array of shape (m, n, n) or a list or dict of n x n "
            f"matrices, got {found}{advice}"
        )
    if dimensions == 3:
        if auto:
            return "kernels"
        raise ValueError(
            f"X has the shape {X.shape}: a KernelBank makes kernels from views, samples x "
            "features; pass kernels='precomputed' if these are kernels already"
        )
    if not several:
        if auto and looks_like_kernel(X):
            raise ValueError(
                f"X is one symmetric {X.shape[0]} x {X.shape[0]} matrix: if it is a kernel, pass "
                "K[None], or [K] and kernels='precomputed'; if it is a table of features, pass "
                "kernels=KernelBank()"
            )
        return "table"
    shapes = {tuple(np.shape(view)) for view in named_views(X).values()}
    n = max(max(shapes), default=0)
    if auto and shapes == {(n, n)}:
        raise ValueError(
            f"X holds square matrices only, all {n} x {n}: they could be kernels or views with as "
            "many features as samples; pass kernels='precomputed' for kernels or "
            "kernels=KernelBank() for views"
        )
    return "views"


def is_table(X: Any) -> bool:
    """Return whether X is one table rather than several views."""
    return not _several_matrices(X)


def looks_like_kernel(X: Any) -> bool:
    """Return whether X is a square array that equals its transpose, or has its ids as columns."""
    if getattr(X, "ndim", 0) != 2 or scipy.sparse.issparse(X):
        return False
    rows, columns = X.shape
    if not rows == columns > 1:
        return False
    if is_frame(X) and is_kernel(X):
        return True
    return bool(namespace(X).all(X == X.T) if is_foreign(X) else np.array_equal(X, X.T))


def _several_matrices(X: Any) -> bool:
    """Return whether X is a list or dict of two-dimensional things."""
    if scipy.sparse.issparse(X):  # one format of SciPy's is a dict, too
        return False
    if not isinstance(X, Mapping | list | tuple):
        return False
    if not X:
        raise ValueError(f"X is an empty {type(X).__name__}: pass at least one kernel or view")
    return isinstance(X, Mapping) or any(depth(item) == 2 for item in X)
