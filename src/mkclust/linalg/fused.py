"""Sums of scaled matrices in one pass over them: written in Triton, which comes with torch."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# How many matrices are summed up at a time, how many entries of a row, and the rows and columns of
# a square of a symmetric matrix.
TOGETHER, ENTRIES, SIDE = 8, 1024, 32


@triton.jit
def _add_up(
    out,
    addresses,
    rows,
    columns,
    n,
    count: tl.constexpr,
    first: tl.constexpr,
    dtype: tl.constexpr,
    entries: tl.constexpr,
):
    """Write some entries of one row: a sum over matrices that are known by their addresses."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * entries + tl.arange(0, entries)
    inside = column < n
    here = row * n + column
    if first:
        total = tl.zeros((entries,), dtype=dtype)
    else:
        total = tl.load(out + here, mask=inside).to(dtype)
    for p in tl.static_range(count):
        matrix = tl.load(addresses + p).to(tl.pointer_type(dtype))
        scale = tl.load(rows + p * n + row) * tl.load(columns + p * n + column, mask=inside)
        total += tl.load(matrix + here, mask=inside) * scale
    tl.store(out + here, total, mask=inside)


@triton.jit
def _add_up_symmetric(
    out,
    addresses,
    rows,
    columns,
    n,
    count: tl.constexpr,
    first: tl.constexpr,
    dtype: tl.constexpr,
    side: tl.constexpr,
):
    """Write a square of the sum on or below the diagonal, and its mirror image."""
    # Squares are counted row by row; the root may be rounded.
    square = tl.program_id(0)
    i = ((tl.sqrt(8.0 * square.to(tl.float64) + 1.0) - 1.0) / 2.0).to(tl.int32)
    i = tl.where((i + 1) * (i + 2) // 2 <= square, i + 1, i)
    i = tl.where(i * (i + 1) // 2 > square, i - 1, i)
    j = square - i * (i + 1) // 2
    row, column = i * side + tl.arange(0, side), j * side + tl.arange(0, side)
    inside = (row < n)[:, None] & (column < n)[None, :]
    here = row.to(tl.int64)[:, None] * n + column[None, :]
    if first:
        total = tl.zeros((side, side), dtype=dtype)
    else:
        total = tl.load(out + here, mask=inside, other=0.0).to(dtype)
    for p in tl.static_range(count):
        matrix = tl.load(addresses + p).to(tl.pointer_type(dtype))
        of_rows = tl.load(rows + p * n + row, mask=row < n, other=0.0)
        of_columns = tl.load(columns + p * n + column, mask=column < n, other=0.0)
        scale = of_rows[:, None] * of_columns[None, :]
        total += tl.load(matrix + here, mask=inside, other=0.0) * scale
    total = total.to(out.dtype.element_ty)
    tl.store(out + here, total, mask=inside)
    there = column.to(tl.int64)[:, None] * n + row[None, :]
    mirrored = (column < n)[:, None] & (row < n)[None, :] & (i != j)
    tl.store(out + there, tl.trans(total), mask=mirrored)


def fits(matrices: Sequence[Array], out: Array) -> bool:
    """Return whether matrices, of one type, are laid out as the sum needs them."""
    return all(
        isinstance(matrix, torch.Tensor)
        and matrix.is_contiguous()
        and (matrix is out or matrix.dtype == matrices[0].dtype)
        for matrix in (*matrices, out)
    )


def write_sum(
    matrices: Sequence[Array], rows: Array, columns: Array, out: Array, *, symmetric: bool = False
) -> None:
    """Write the sum of matrices, each multiplied by its scales of rows and of columns, (m, n).

    It is computed in the precision of the matrices, and rounded to that of ``out``. Of symmetric
    matrices what is above the diagonal is not read.
    """
    n = out.shape[0]
    dtype = tl.float32 if matrices[0].dtype == torch.float32 else tl.float64
    rows, columns = rows.contiguous(), columns.contiguous()
    n_squares = triton.cdiv(n, SIDE)
    with torch.cuda.device(out.device):
        for start in range(0, len(matrices), TOGETHER):
            some = matrices[start : start + TOGETHER]
            addresses = torch.tensor([matrix.data_ptr() for matrix in some], device=out.device)
            here = out, addresses, rows[start:], columns[start:], n
            how = {"count": len(some), "first": start == 0, "dtype": dtype}
            if symmetric:
                grid = (n_squares * (n_squares + 1) // 2,)
                _add_up_symmetric[grid](*here, **how, side=SIDE)
            else:
                _add_up[(n, triton.cdiv(n, ENTRIES))](*here, **how, entries=ENTRIES)


def try_out() -> None:
    """Sum up something small, so that what does not work here is known before it is needed."""
    one = torch.ones((2, 2), dtype=torch.float32, device="cuda")
    write_sum([one], one[:1], one[:1], torch.empty_like(one))
