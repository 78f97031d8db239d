"""Sums of scaled matrices in one pass over them: written in Triton, which comes with torch."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# How many matrices are summed up at a time, and how many entries of a row.
TOGETHER, ENTRIES = 8, 1024


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


def fits(matrices: Sequence[Array], out: Array) -> bool:
    """Return whether matrices, of one type, are laid out as the sum needs them."""
    return all(
        isinstance(matrix, torch.Tensor)
        and matrix.is_contiguous()
        and (matrix is out or matrix.dtype == matrices[0].dtype)
        for matrix in (*matrices, out)
    )


def write_sum(matrices: Sequence[Array], rows: Array, columns: Array, out: Array) -> None:
    """Write the sum of matrices, each multiplied by its scales of rows and of columns, (m, n).

    It is computed in the precision of the matrices, and rounded to that of ``out``.
    """
    n = out.shape[0]
    grid = (n, triton.cdiv(n, ENTRIES))
    dtype = tl.float32 if matrices[0].dtype == torch.float32 else tl.float64
    rows, columns = rows.contiguous(), columns.contiguous()
    with torch.cuda.device(out.device):
        for start in range(0, len(matrices), TOGETHER):
            some = matrices[start : start + TOGETHER]
            addresses = torch.tensor([matrix.data_ptr() for matrix in some], device=out.device)
            _add_up[grid](
                out,
                addresses,
                rows[start:],
                columns[start:],
                n,
                count=len(some),
                first=start == 0,
                dtype=dtype,
                entries=ENTRIES,
            )


def try_out() -> None:
    """Sum up something small, so that what does not work here is known before it is needed."""
    one = torch.ones((2, 2), dtype=torch.float32, device="cuda")
    write_sum([one], one[:1], one[:1], torch.empty_like(one))
