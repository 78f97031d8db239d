"""Orthonormal bases that are looked at later, so that nothing waits for them: written in Triton."""

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# Fewest and most columns of a block that a program holds.
FEWEST, MOST_COLUMNS = 16, 64
# How many warps compute with blocks of up to so many columns, and with wider ones.
FEW_COLUMNS, FEW_WARPS, MANY_WARPS = 32, 2, 16


@triton.jit
def _invert_factor(out, doubts, passed, gram, b, by_row, by_column, width: tl.constexpr):
    """Write Z with ``Z G Z^T = I``, lower triangular, and by how much columns of G differ from I.

    Where G is not positive definite, Z holds what is no number.
    """
    row, column = tl.arange(0, width)[:, None], tl.arange(0, width)[None, :]
    inside, place = (row < b) & (column < b), tl.arange(0, width)
    Z = (row == column).to(tl.float64)
    G = tl.load(gram + row * by_row + column * by_column, mask=inside, other=0.0).to(tl.float64)
    G = tl.where(inside, G, Z)
    difference = tl.abs(G - Z)
    # A maximum passes over what is no number.
    difference = tl.where(difference < 1e30, difference, 1e30)
    tl.store(doubts + place, tl.max(difference, axis=0), mask=place < b)
    for step in range(0, width):
        # The row of the pivot, and what became of the identity beside it, are passed by way of
        # memory to the threads that hold other rows; in turns, so that none is overwritten early.
        here = passed + (step % 2) * 2 * width
        tl.store(here + row * 0 + column, G, mask=row == step)
        tl.store(here + width + row * 0 + column, Z, mask=row == step)
        tl.debug_barrier()
        pivot_row, beside = tl.load(here + place), tl.load(here + width + place)
        # What is left of G is symmetric, so that its row is its column, too.
        share = tl.where(place > step, pivot_row / tl.load(here + step), 0.0)[:, None]
        G -= share * pivot_row[None, :]
        Z -= share * beside[None, :]
    lengths = tl.sum(tl.where(row == column, G, 0.0), axis=1)
    tl.store(out + row * b + column, Z / tl.sqrt(lengths)[:, None], mask=inside)


def orthonormalize_ahead(X: Array, against: Array, gram: Array) -> tuple[Array, Array]:
    """Return an orthonormal basis of the columns of X and, to be looked at later, how sure that is.

    As `mkclust.linalg.orthonormalize` does, but for columns that are orthogonal to ``against``
    but for rounding, `MOST_COLUMNS` at most.
    """
    inverse, _ = _inverse_factor(gram)
    X = X @ inverse.T
    X = torch.addmm(X, against, against.T @ X, alpha=-1.0)
    inverse, doubts = _inverse_factor(X.T @ X)
    return X @ inverse.T, doubts


def _inverse_factor(gram: Array) -> tuple[Array, Array]:
    """Return the inverse of a Gram matrix's triangular factor, and how far it is from identity."""
    b, here = gram.shape[0], {"device": gram.device}
    width = max(FEWEST, triton.next_power_of_2(b))
    out, doubts = torch.empty((b, b), dtype=gram.dtype, **here), gram.new_empty(b)
    passed = torch.empty(4 * width, dtype=torch.float64, **here)
    with torch.cuda.device(gram.device):
        _invert_factor[(1,)](
            out,
            doubts,
            passed,
            gram,
            b,
            *gram.stride(),
            width=width,
            num_warps=FEW_WARPS if width <= FEW_COLUMNS else MANY_WARPS,
        )
    return out, doubts


def try_out() -> None:
    """Orthonormalize something small, so that what does not work here is known before."""
    X = torch.eye(3, 2, dtype=torch.float64, device="cuda")
    orthonormalize_ahead(X, X[:, :0], X.T @ X)
