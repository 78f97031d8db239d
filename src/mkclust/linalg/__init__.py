"""Linear algebra on arrays of any library: NumPy, torch, CuPy and others that follow the standard.

An array says itself where it lives. What is computed from it stays there; only what is small, as
wide as a block of vectors or as long as the number of kernels, comes to the host, in float64. All
that depends on the library is in this folder.
"""

from mkclust.linalg.algebra import (
    captured,
    orthonormalize,
    polar_factor,
    psd_part,
    side_by_side,
    sum_of_squares,
    top_eigenpairs,
)
from mkclust.linalg.arrays import (
    as_floats,
    astype,
    check_one_place,
    copied,
    device,
    empty,
    free_bytes,
    gaussian_noise,
    is_foreign,
    is_on_accelerator,
    namespace,
    noise,
    on_host,
    pick,
    place,
    precision_of,
    ranges,
    rounding_of,
    set_diagonal,
    smallest_normal,
    to_device,
    to_host,
    zeros,
)
from mkclust.linalg.sums import weighted_sum

__all__ = [
    "as_floats",
    "astype",
    "captured",
    "check_one_place",
    "copied",
    "device",
    "empty",
    "free_bytes",
    "gaussian_noise",
    "is_foreign",
    "is_on_accelerator",
    "namespace",
    "noise",
    "on_host",
    "orthonormalize",
    "pick",
    "place",
    "polar_factor",
    "precision_of",
    "psd_part",
    "ranges",
    "rounding_of",
    "set_diagonal",
    "side_by_side",
    "smallest_normal",
    "sum_of_squares",
    "to_device",
    "to_host",
    "top_eigenpairs",
    "weighted_sum",
    "zeros",
]
