"""Linear algebra on arrays of any library: NumPy, torch, CuPy and others that follow the standard.

An array says itself where it lives. What is computed from it stays there; only what is small, as
wide as a block of vectors or as long as the number of kernels, comes to the host, in float64. All
that depends on the library is in this folder.
"""

from mkclust.linalg.algebra import (
    inner_products,
    orthonormalize,
    polar_factor,
    psd_part,
    side_by_side,
    sum_of_squares,
    top_eigenpairs,
)
from mkclust.linalg.arrays import (
    arrays_to_host,
    as_floats,
    astype,
    check_one_place,
    copy_array,
    device,
    empty,
    free_bytes,
    is_foreign,
    is_on_accelerator,
    namespace,
    place,
    precision_of,
    random_normal,
    ranges,
    rounding_of,
    select,
    set_diagonal,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.eigen import eigh, eigvalsh
from mkclust.linalg.factored import FactoredMatrix, is_sparse

__all__ = [
    "FactoredMatrix",
    "arrays_to_host",
    "as_floats",
    "astype",
    "check_one_place",
    "copy_array",
    "device",
    "eigh",
    "eigvalsh",
    "empty",
    "free_bytes",
    "inner_products",
    "is_foreign",
    "is_on_accelerator",
    "is_sparse",
    "namespace",
    "orthonormalize",
    "place",
    "polar_factor",
    "precision_of",
    "psd_part",
    "random_normal",
    "ranges",
    "rounding_of",
    "select",
    "set_diagonal",
    "side_by_side",
    "sum_of_squares",
    "to_device",
    "to_host",
    "top_eigenpairs",
    "zeros",
]
