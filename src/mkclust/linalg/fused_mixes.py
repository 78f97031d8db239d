"""Mixes of kernels that are centered and scaled as they are read: written in Triton."""

from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl

from mkclust.types import Array, Float


@triton.jit
def _mix(
    out,
    addresses,
    coefficients,
    scales,
    means,
    n,
    n_kernels,
    kind: tl.constexpr,
    tile: tl.constexpr,
):
    """Write a tile of the mix and its mirror image, summed up in double precision."""
    if tl.program_id(0) <= tl.program_id(1):
        row = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
        column = tl.program_id(1).to(tl.int64) * tile + tl.arange(0, tile)
        is_row = row < n
        is_column = column < n
        inside = is_row[:, None] & is_column[None, :]
        place = row[:, None] * n + column[None, :]
        total = tl.zeros((tile, tile), dtype=tl.float64)
        for p in range(n_kernels):
            matrix = tl.load(addresses + p).to(tl.pointer_type(kind))
            entries = tl.load(matrix + place, mask=inside, other=0.0).to(tl.float64)
            left = tl.load(means + p * n + row, mask=is_row, other=0.0)
            right = tl.load(means + p * n + column, mask=is_column, other=0.0)
            left_scale = tl.load(scales + p * n + row, mask=is_row, other=0.0)
            right_scale = tl.load(scales + p * n + column, mask=is_column, other=0.0)
            entries -= left[:, None] + right[None, :]
            total += (
                entries
                * (left_scale[:, None] * right_scale)
                * tl.load(coefficients + p)
            )
        rounded = total.to(out.dtype.element_ty)
        tl.store(out + place, rounded, mask=inside)
        mirrored = column[:, None] * n + row[None, :]
        tl.store(
            out + mirrored, tl.trans(rounded), mask=is_column[:, None] & is_row[None, :]
        )


def write_mix(
    out: Array,
    matrices: Sequence[Array],
    coefficients: Float,
    scales: Array,
    means: Array,
) -> None:
    """Write ``sum_p c_p s_pi s_pj (K_pij - r_pi - r_pj)``, by one pass over all K_p.

    The matrices are contiguous and of one number type; scales and means are (m, n), in
    float64.
    """
    m, n = means.shape
    addresses = torch.tensor(
        [matrix.data_ptr() for matrix in matrices], device=out.device
    )
    c = torch.tensor(coefficients, dtype=torch.float64, device=out.device)
    kind = tl.float32 if matrices[0].dtype == torch.float32 else tl.float64
    # Rows and columns of a tile: with larger ones, fewer are computed at a time.
    tile = 32
    grid = triton.cdiv(n, tile), triton.cdiv(n, tile)
    with torch.cuda.device(out.device):
        _mix[grid](out, addresses, c, scales, means, n, m, kind, tile)


def try_out() -> None:
    """Mix two small kernels, so that it is known early if Triton does not work."""
    out, ones = torch.ones((2, 2, 2), device="cuda")
    vectors = torch.ones((2, 2), device="cuda", dtype=torch.float64)
    write_mix(
        out,
        [ones, 4 * ones],
        np.array([1.0, 2.0]),
        vectors,
        vectors,
    )
    assert bool((out == 3.0).all())
