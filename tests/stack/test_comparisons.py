"""What pairs of kernels share off their diagonals, on the samples that both have."""

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.agreement import written_out_agreement
from helpers.kernels import Rows
from mkclust.agreements import measure_agreement
from mkclust.stack import as_stack
from mkclust.stack.compare import ALL_COMPARED, SOME_COMPARED, compare, draw

N, M = 70, 3


def gaussians(n=N, m=M, seed=0):
    """Return Gaussian kernels of views that share a direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n, 3)) + 2 * rng.normal(size=(n, 1))
    return np.exp(-np.square(X[:, :, None] - X[:, None]).sum(axis=3) / 9)


def by_definition(entries):
    """Return products, row products and totals of kernels written out."""
    hollow = np.array([K - np.diag(np.diag(K)) for K in entries])
    sums = hollow.sum(axis=2)
    return np.einsum("pij,qij->pq", hollow, hollow), sums @ sums.T, sums.sum(axis=1)


STACKS = {
    "dense": lambda K: as_stack(K),
    "float32": lambda K: as_stack(K.astype(np.float32)),
    "neither centered nor scaled": lambda K: as_stack(K, center=False, normalize=False),
    "shifted": lambda K: as_stack(K - 0.5 * np.eye(N), psd="shift"),
    "sparse": lambda K: as_stack([sp.csr_array(k) for k in K]),
    "streamed": lambda K: as_stack(Rows(K)),
}


@pytest.mark.parametrize("kind", STACKS)
def test_sums_are_those_of_the_entries(kind):
    stack = STACKS[kind](gaussians())
    (comparison,) = compare(stack)
    found, entries = comparison.products, stack.among().entries
    assert found.n_samples == N
    wanted = by_definition(entries)
    for ours, theirs in zip(
        (found.products, found.row_products, found.totals), wanted, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * N)
    some = np.array([3, 9, 20])
    np.testing.assert_allclose(
        comparison.entries(some), entries[:, some][:, :, some], atol=1e-9
    )


@pytest.mark.parametrize("streamed", [False, True])
def test_of_many_samples_some_stand_for_all(streamed):
    n = ALL_COMPARED + 60
    X = np.random.default_rng(1).normal(size=(2, n, 3))
    K = X @ X.transpose(0, 2, 1)
    stack = as_stack(Rows(K) if streamed else K, validate=False)
    (comparison,) = compare(stack)
    some = draw(n, SOME_COMPARED)
    expected, *_ = by_definition(stack.among(some).entries)
    assert comparison.n_samples == SOME_COMPARED
    # Kernels are compared as they are written out, in single precision.
    np.testing.assert_allclose(
        comparison.products.products, expected, atol=1e-6 * expected.max()
    )


def incomplete(seed=0, missing=0.3):
    """Return kernels that lack samples, and which they have."""
    kernels = gaussians(seed=seed)
    observed = np.random.default_rng(seed).random((N, M)) >= missing
    observed[:, 1] = observed[:, 2]  # two kernels of the same samples
    observed[~observed.any(axis=1)] = True
    for K, has in zip(kernels, observed.T, strict=True):
        K[~has] = K[:, ~has] = np.nan
    return kernels, observed


@pytest.mark.parametrize("missing", [0.1, 0.5])
def test_alignments_are_those_of_the_entries_that_both_kernels_have(missing):
    kernels, observed = incomplete(missing=missing)
    stack = as_stack(kernels)
    found = measure_agreement(stack)
    for p, q in np.ndindex(M, M):
        common = np.flatnonzero(observed[:, p] & observed[:, q])
        blocks = []
        for kernel in (stack.kernels[p], stack.kernels[q]):
            place = np.searchsorted(kernel.map.samples, common)
            blocks.append(kernel.kernel.dense()[np.ix_(place, place)])
        alignments, norms = written_out_agreement(blocks)
        assert found.pair_samples[p, q] == len(common)
        assert found.alignments[p, q] == pytest.approx(alignments[0, 1], abs=1e-10)
        if p == q:
            assert found.norms[p] == pytest.approx(norms[0], rel=1e-10)
