"""Kernels that lack samples: every answer of their stack against matrices written out by hand."""

import numpy as np
import pytest
import scipy.sparse
from test_protocol import check_operator, members

from libraries import FOREIGN, as_library
from mkclust.linalg import FactoredMatrix, to_host
from mkclust.samples.samples import Samples
from mkclust.stack import KernelOperator, KernelStack, MatrixRows, as_stack
from mkclust.stack.incomplete import IncompleteStack
from mkclust.stack.sample_map import Fill, rescaling

N, M = 30, 4


def raw_kernels():
    X = np.random.default_rng(0).normal(size=(M, N, 5))
    return X @ X.transpose(0, 2, 1)


def pattern():
    """Return which kernels have which samples; two kernels have the same ones."""
    observed = np.random.default_rng(1).random((N, M)) > 0.4
    observed[:, 2] = observed[:, 0]
    observed[~observed.any(axis=1), 1] = True
    return observed


def kernels_of(form):
    observed = pattern()
    parts = [K[np.ix_(seen, seen)] for K, seen in zip(raw_kernels(), observed.T, strict=True)]
    return Samples("kernels", tuple("abcd"), tuple(map(form, parts)), missing=~observed)


def by_hand(rule, center=True, normalize=True):
    """Return the kernels over all samples, written out one after another."""
    observed, every = pattern(), []
    scale = np.sqrt(M / observed.sum(axis=1)) if rule == "rescale" else np.ones(N)
    for K, seen in zip(raw_kernels(), observed.T, strict=True):
        part = K[np.ix_(seen, seen)]
        if center:
            part = part - part.mean(axis=0) - part.mean(axis=1)[:, None] + part.mean()
        if normalize:
            lengths = np.sqrt(part.diagonal())
            part = part / lengths / lengths[:, None]
        whole = np.zeros((N, N))
        whole[np.ix_(seen, seen)] = part
        every.append(scale[:, None] * whole * scale)
    return np.array(every)


FORMS = {"dense": np.array, "sparse": scipy.sparse.csr_array, "float32": np.float32}


@pytest.mark.parametrize("rule", ["zero", "rescale"])
@pytest.mark.parametrize("form", FORMS)
def test_kernels_over_all_samples_are_those_written_out_by_hand(form, rule):
    stack = as_stack(kernels_of(FORMS[form]), fill=rule)
    rounding = 1e-5 if form == "float32" else 1e-12
    expected = by_hand(rule)
    assert isinstance(stack, IncompleteStack)
    np.testing.assert_allclose(stack.entries(), expected, atol=rounding)
    V = np.random.default_rng(2).normal(size=(N, 3))
    np.testing.assert_allclose(stack.apply(V), expected @ V, atol=10 * rounding)
    np.testing.assert_allclose(stack.traces(), np.trace(expected, axis1=1, axis2=2), atol=1e-4)


def test_every_member_of_the_protocol_is_answered():
    stack, K = as_stack(kernels_of(np.array)), by_hand("rescale")
    some = np.array([4, 0, 2, 4])
    assert all(hasattr(stack, name) for name in members(KernelStack))
    assert stack.names == tuple("abcd")
    assert sorted(part.indices for part in stack.parts) == [(0, 2), (1,), (3,)]
    np.testing.assert_allclose(stack.entries(some), K[:, some][:, :, some], atol=1e-12)
    np.testing.assert_allclose(stack.gram(), np.einsum("pij,qij->pq", K, K), atol=1e-10)
    c = np.arange(1.0, M + 1)
    check_operator(stack.combine(c), np.tensordot(c, K, 1))
    np.testing.assert_allclose(stack.mixed_entries(c), np.tensordot(c, K, 1), atol=1e-10)
    np.testing.assert_allclose(
        stack.mixed_entries(c, some), np.tensordot(c, K, 1)[np.ix_(some, some)], atol=1e-10
    )
    observed = pattern()
    np.testing.assert_array_equal(stack.observed, observed)
    swept = np.zeros((M, N, N))

    def take(rows, blocks):
        for p, block in enumerate(blocks):
            swept[p, rows] = block

    stack.for_each_block(take)
    for p, seen in enumerate(observed.T):
        both = np.outer(seen, seen)
        np.testing.assert_array_equal(swept[p][both], raw_kernels()[p][both])
        assert np.isnan(swept[p][~both]).all()


@pytest.mark.parametrize("p", range(M))
def test_a_kernel_that_lacks_samples_is_an_operator_with_entries(p):
    stack, K = as_stack(kernels_of(np.array)), by_hand("rescale")[p]
    kernel = stack.kernel(p)
    assert all(hasattr(kernel, name) for name in members(KernelOperator))
    check_operator(kernel, K)
    np.testing.assert_allclose(kernel.block([3, 1, 3], slice(0, 9)), K[[3, 1, 3], :9], atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(), K.diagonal(), atol=1e-12)
    n_observed = int(pattern()[:, p].sum())
    assert kernel.raw_projection(np.ones((N, 2))).shape == (n_observed, 2)


def test_samples_of_which_more_is_known_are_filled_by_it():
    stack, rng = as_stack(kernels_of(np.array), fill="zero"), np.random.default_rng(3)
    maps = []
    for each in stack.maps:
        right = rng.normal(size=(N, 2))
        right[each.samples] = 0.0
        fill = Fill(rng.normal(size=(each.n_observed, 2)), right)
        maps.append(type(each)(each.samples, N, None, fill))
    filled, plain = stack.with_maps(maps), by_hand("zero")
    for part in filled.parts:
        E = part.map.gather(np.eye(N))
        for index in part.indices:
            K = E.T @ plain[index][np.ix_(part.map.samples, part.map.samples)] @ E
            kernel = filled.kernel(index)
            check_operator(kernel, K)
            np.testing.assert_allclose(kernel.diagonal(), K.diagonal(), atol=1e-10)
            np.testing.assert_allclose(kernel.block([7, 2], [0, 5]), K[np.ix_([7, 2], [0, 5])])


def test_subsets_and_counts_scale_by_the_kernels_that_are_left():
    stack, K = as_stack(kernels_of(np.array)), by_hand("zero")
    some, observed = [3, 0], pattern()
    scale = rescaling(observed[:, some], np.ones(2, bool))
    assert (scale[~observed[:, some].any(axis=1)] == 0).all()
    expected = scale[:, None] * K[some] * scale
    np.testing.assert_allclose(stack.subset(some).entries(), expected, atol=1e-12)
    np.testing.assert_allclose(stack.counting(some).entries()[some], expected, atol=1e-12)
    again = as_stack(stack.raw_subset(some))
    np.testing.assert_allclose(again.entries(), expected, atol=1e-12)


def test_with_equal_weights_all_samples_have_the_same_total_self_similarity():
    stack = as_stack(kernels_of(np.array))
    total = sum(stack.kernel(p).diagonal() for p in range(M))
    np.testing.assert_allclose(total, M)


def test_streamed_kernels_that_lack_samples_are_the_same():
    samples = kernels_of(np.array)
    rows = [MatrixRows([K], block_rows=4) for K in samples.parts]
    stacks = [as_stack(each) for each in rows]
    streamed = IncompleteStack.of(stacks, pattern(), [[p] for p in range(M)], "rescale")
    V = np.random.default_rng(2).normal(size=(N, 3))
    assert streamed.storage == "streamed"
    assert not streamed.combining_pays
    np.testing.assert_allclose(streamed.apply(V), as_stack(samples).apply(V), atol=1e-12)
    np.testing.assert_allclose(streamed.entries(), by_hand("rescale"), atol=1e-12)


def test_factored_kernels_that_lack_samples_are_sparse():
    members_of = [np.eye(n) + (np.random.default_rng(n).random((n, n)) < 0.2) for n in (20, 25)]
    kernels = [FactoredMatrix.symmetric(scipy.sparse.csr_array(S)) for S in members_of]
    missing = np.zeros((30, 2), bool)
    missing[:10, 0], missing[25:, 1] = True, True
    samples = Samples("kernels", ("a", "b"), tuple(kernels), missing=missing)
    assert as_stack(samples).storage == "sparse"


@pytest.mark.parametrize("rule", ["zero", "rescale"])
@pytest.mark.parametrize("library", FOREIGN)
def test_kernels_of_other_libraries_that_lack_samples_are_the_same(library, rule):
    stack = as_stack(kernels_of(lambda K: as_library(library, K)), fill=rule)
    K, V = by_hand(rule), np.random.default_rng(2).normal(size=(N, 3))
    c, some = np.arange(1.0, M + 1), np.array([4, 0, 2, 4])
    there = as_library(library, V)
    np.testing.assert_allclose(to_host(stack.apply(there)), K @ V, atol=1e-12)
    np.testing.assert_allclose(to_host(stack.entries()), K, atol=1e-12)
    np.testing.assert_allclose(to_host(stack.entries(some)), K[:, some][:, :, some], atol=1e-12)
    mixed = np.tensordot(c, K, 1)
    np.testing.assert_allclose(to_host(stack.combine(c) @ there), mixed @ V, atol=1e-10)
    np.testing.assert_allclose(to_host(stack.combine(c).dense()), mixed, atol=1e-10)
    np.testing.assert_allclose(stack.gram(), np.einsum("pij,qij->pq", K, K), atol=1e-10)
