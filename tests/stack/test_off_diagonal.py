"""What pairs of kernels share off their diagonals: the same from every kind of stack."""

import numpy as np
import pytest
import scipy.sparse

from mkclust.kernels import Linear, Nystroem
from mkclust.samples.samples import as_blocks
from mkclust.stack import MatrixRows, as_stack
from mkclust.stack.low_rank import compress
from mkclust.stack.mapped import draw
from mkclust.stack.off_diagonal import ALL_COMPARED, SOME_COMPARED

N, M = 70, 3


def kernels():
    X = np.random.default_rng(0).normal(size=(M, N, 4))
    squares = np.square(X[:, :, None] - X[:, None]).sum(axis=3)
    return np.exp(-squares / 4)


def by_definition(entries):
    """Return products, row products and totals of kernels written out."""
    hollow = np.array([K - np.diag(np.diag(K)) for K in entries])
    sums = hollow.sum(axis=2)
    return np.einsum("pij,qij->pq", hollow, hollow), sums @ sums.T, sums.sum(axis=1)


STACKS = {
    "dense": lambda: as_stack(kernels()),
    "float32": lambda: as_stack(kernels().astype(np.float32)),
    "neither centered nor scaled": lambda: as_stack(kernels(), center=False, normalize=False),
    "list": lambda: as_stack(list(kernels()), normalize=False),
    "clipped": lambda: as_stack(kernels() - 0.5 * np.eye(N), psd="clip"),
    "shifted": lambda: as_stack(kernels() - 0.5 * np.eye(N), psd="shift"),
    "sparse": lambda: as_stack([scipy.sparse.csr_array(K) for K in kernels()]),
    "streamed": lambda: as_stack(MatrixRows(list(kernels()))),
}


@pytest.mark.parametrize("kind", STACKS)
def test_sums_are_those_of_the_entries(kind):
    stack = STACKS[kind]()
    products = stack.off_diagonal_products()
    expected = by_definition(stack.entries())
    assert products.n_samples == N
    for found, wanted in zip(
        (products.products, products.row_products, products.totals), expected, strict=True
    ):
        assert np.allclose(found, wanted, rtol=1e-6 if kind == "float32" else 1e-9)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("feature_map", [Nystroem(12), Linear()])
def test_sums_of_compressed_kernels_are_those_of_their_features(center, normalize, feature_map):
    views = {f"view {p}": X for p, X in enumerate(np.random.default_rng(0).normal(size=(M, N, 4)))}
    stack = compress(
        as_blocks(views), feature_map, center=center, normalize=normalize, random_state=0
    )
    entries = [F @ F.T for F in stack.features.of(views)]
    products = stack.off_diagonal_products()
    assert products.n_samples == N
    for found, wanted in zip(
        (products.products, products.row_products, products.totals),
        by_definition(np.array(entries)),
        strict=True,
    ):
        assert np.allclose(found, wanted, atol=1e-8 * N)
    some = stack.compared_entries(np.arange(N))
    assert np.allclose(some.diagonal(axis1=1, axis2=2).sum(axis=1), stack.traces())
    spread = draw(N, 9)
    part = stack.subset([2, 0]).compared_entries(spread)
    assert np.allclose(part, np.array(entries)[[2, 0]][:, spread[:, None], spread])


@pytest.mark.parametrize("kind", STACKS)
def test_a_subset_has_those_kernels_and_nothing_of_the_others(kind):
    stack = STACKS[kind]()
    part = stack.subset([2, 0])
    assert part.names == (stack.names[2], stack.names[0])
    assert tuple(part.views) == (2, 0)
    np.testing.assert_allclose(part.entries(), stack.entries()[[2, 0]], rtol=1e-12, atol=1e-12)
    alone = part.off_diagonal_products()
    together = stack.off_diagonal_products()
    assert np.allclose(alone.products, together.products[np.ix_([2, 0], [2, 0])])


@pytest.mark.parametrize("streamed", [False, True])
def test_of_many_samples_some_stand_for_all(streamed):
    n = ALL_COMPARED + 60
    X = np.random.default_rng(1).normal(size=(2, n, 3))
    K = X @ X.transpose(0, 2, 1)
    stack = as_stack(MatrixRows(list(K)) if streamed else K, validate=False)
    products = stack.off_diagonal_products()
    some = draw(n, SOME_COMPARED)
    expected = by_definition(stack.entries()[:, some][:, :, some])
    assert products.n_samples == SOME_COMPARED
    for found, wanted in zip(
        (products.products, products.row_products, products.totals), expected, strict=True
    ):
        assert np.allclose(found, wanted, rtol=1e-9)
