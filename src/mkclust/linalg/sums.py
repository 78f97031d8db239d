"""Sums of scaled matrices on a device."""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from array_api_compat import is_torch_array

from mkclust.linalg.arrays import (
    astype,
    is_on_accelerator,
    namespace,
    precision_of,
    ranges,
    to_device,
    zeros,
)
from mkclust.types import Array, Float

# Entries that are written at a time where what is in between is written, too.
SUM_ENTRIES = 2**24


def scaled_sum(
    coefficients: Float, matrices: Sequence[Array], scales: Sequence[Array | None], out: Array
) -> None:
    """Write ``sum_p c_p D_p K_p D_p`` to ``out``, arrays of one library that is not NumPy.

    Parameters
    ----------
    coefficients : ndarray of shape (m,)
        One a matrix.
    matrices : sequence of m arrays of shape (n, n)
        What to sum up.
    scales : sequence of m arrays of shape (n,) or None
        The diagonals of D_p; None leaves a matrix unscaled.
    out : array of shape (n, n)
        Where to.
    """
    xp, n, precision = namespace(out), out.shape[0], precision_of(out)
    ones = zeros((n,), out, precision) + 1.0
    columns = xp.stack([ones if s is None else astype(s, precision) for s in scales])
    rows = columns * to_device(coefficients, out, precision)[:, None]
    if (
        is_torch_array(out)
        and is_on_accelerator(out)
        and (fused := _fused()) is not None
        and fused.fits(matrices, out)
    ):
        fused.write_sum(matrices, rows, columns, out)
        return
    for some in ranges(n, max(1, SUM_ENTRIES // n)):
        block = zeros((some.stop - some.start, n), out, precision)
        for p, matrix in enumerate(matrices):
            block += (matrix[some, :] * columns[p, :]) * rows[p, some][:, None]
        out[some, :] = block


@cache
def _fused() -> Any:
    """Return the functions that read every matrix once, None where they cannot be had.

    Formulas of the array API write and read again what is between their steps, which is seven
    times as much as the matrices.
    """
    try:
        from mkclust.linalg import fused

        fused.try_out()
    except ImportError:
        return None
    except Exception as error:  # such as no C compiler, which Triton asks for
        warnings.warn(f"sums of kernels take longer, Triton does not work: {error}", stacklevel=2)
        return None
    return fused
