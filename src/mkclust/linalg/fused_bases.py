"""Orthonormal bases that are looked at later, so that nothing waits for them: written in Triton."""

import torch
import triton
import triton.language as tl

from mkclust.types import Array

# Fewest and most columns of a block that a program holds.
FEWEST, MOST_COLUMNS = 16, 64


@triton.jit
def _invert_factor(out, doubts, gram, b, by_row, by_column, width: tl.constexpr):
    """Write Z with ``Z G Z^T = I``, lower triangular, and by how much columns of G differ from I.

    Where G is not positive definite, Z holds what is no number.
    """
    row, column = tl.arange(0, width)[:, None], tl.arange(0, width)[None, :]
    inside = (row < b) & (column < b)
    Z = (row == column).to(tl.float64)
    G = tl.load(gram + row * by_row + column * by_column, mask=inside, other=0.0).to(tl.float64)
    G = tl.where(inside, G, Z)
    difference = tl.abs(G - Z)
    # A maximum passes over what is no number.
    difference = tl.where(difference < 1e30, difference, 1e30)
    place = tl.arange(0, width)
    tl.store(doubts + place, tl.max(difference, axis=0), mask=place < b)
    for step in range(0, width):
        # Row and column of the pivot, and what becomes of the identity beside it.
        pivot_row = tl.sum(tl.where(row == step, G, 0.0), axis=0)
        pivot_column = tl.sum(tl.where(column == step, G, 0.0), axis=1)
        beside = tl.sum(tl.where(row == step, Z, 0.0), axis=0)
        pivot = tl.sum(tl.where(place == step, pivot_row, 0.0), axis=0)
        share = tl.where(place > step, pivot_column / pivot, 0.0)[:, None]
        G -= share * pivot_row[None, :]
        Z -= share * beside[None, :]
    lengths = tl.sum(tl.where(row == column, G, 0.0), axis=1)
    Z = Z / tl.sqrt(lengths)[:, None]
    tl.store(out + row * b + column, Z, mask=inside)


def orthonormalize_ahead(X: Array, against: Array, gram: Array) -> tuple[Array, Array] | None:
    """Return an orthonormal basis of the columns of X and, to be looked at later, how sure that is.

    As `mkclust.linalg.orthonormalize` does, but for columns that are orthogonal to ``against``
    but for rounding. None where there are too many columns.
    """
    if X.shape[1] > MOST_COLUMNS:
        return None
    inverse, _ = _inverse_factor(gram)
    X = X @ inverse.T
    X = X - against @ (against.T @ X)
    inverse, doubts = _inverse_factor(X.T @ X)
    return X @ inverse.T, doubts


def _inverse_factor(gram: Array) -> tuple[Array, Array]:
    """Return the inverse of a Gram matrix's triangular factor, and how far it is from identity."""
    b = gram.shape[0]
    out, doubts = torch.empty((b, b), dtype=gram.dtype, device=gram.device), gram.new_empty(b)
    with torch.cuda.device(gram.device):
        width = max(FEWEST, triton.next_power_of_2(b))
        _invert_factor[(1,)](out, doubts, gram, b, *gram.stride(), width=width)
    return out, doubts


def try_out() -> None:
    """Orthonormalize something small, so that what does not work here is known before."""
    X = torch.eye(3, 2, dtype=torch.float64, device="cuda")
    orthonormalize_ahead(X, X[:, :0], X.T @ X)
