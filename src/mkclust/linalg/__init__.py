"""Linear algebra on arrays of any library: NumPy, torch, and others of the standard.

Results stay on the device of their array; only small arrays, as wide as a block of
vectors or as long as the number of kernels, are copied to the host, in float64. All
code that depends on the array library is in this folder.
"""

# ruff: noqa: F401 (names for others to import)

from mkclust.linalg.algebra import (
    eigh,
    eigvalsh,
    has_cholesky,
    hstack,
    inner_products,
    orthonormalize,
    polar_factor,
    products_of_rows,
    psd_part,
    row_lengths,
    sum_of_squares,
    top_eigenpairs,
)
from mkclust.linalg.arrays import (
    EPS,
    Stored,
    add_multiple,
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
    is_sparse_tensor,
    library_and_device,
    namespace,
    pair_ranges,
    precision_of,
    random_normal,
    random_signs,
    ranges,
    rounding_of,
    row_ranges,
    select,
    set_diagonal,
    to_device,
    to_host,
    triton_module,
    zeros,
)
from mkclust.linalg.memory import available_bytes, fits, require_memory
from mkclust.linalg.nearest import entries_at, places_of, true_at, upper_bounds
from mkclust.linalg.sparse_rows import (
    FactoredMatrix,
    as_csr,
    dense_rows,
    divide_rows,
    entrywise,
    is_sparse,
    row_products,
    scale_columns,
    spread_links,
    spread_rows,
    stored_entries,
    subtract_origin,
    zero_rows,
)
from mkclust.linalg.threads import (
    ENTRIES_PER_THREAD,
    FEW_SAMPLES,
    in_threads,
    one_thread,
    one_thread_if_small,
)
