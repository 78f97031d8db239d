"""Every kernel, however it is held, answers as the matrix that it stands for."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.arrays import LIBRARIES, as_library, kind_of
from helpers.kernels import M, N, Rows, integer_kernels, on_disk, standardized
from mkclust.linalg import to_host
from mkclust.stack import DenseKernel, Factored, Mix, as_stack
from mkclust.stack.kernel import multiply
from mkclust.stack.observed import Fill, rescaling, with_active

STANDARDS = [(True, True), (True, False), (False, True), (False, False)]


FORMS = {
    "array": lambda K, folder: K,
    "list of arrays": lambda K, folder: [k.copy() for k in K],
    "dict of arrays": lambda K, folder: dict(zip("abc", K, strict=True)),
    "nested lists": lambda K, folder: K.tolist(),
    "list of Fortran arrays": lambda K, folder: [np.asfortranarray(k) for k in K],
    "list of memory maps": lambda K, folder: [on_disk(k, folder, "memmap") for k in K],
    "list of small integers": lambda K, folder: [k.astype(np.uint16) for k in K],
    "float32": lambda K, folder: K.astype(np.float32),
    "float32 and float64": lambda K, folder: [K[0].astype(np.float32), *K[1:]],
    "object array": lambda K, folder: K.astype(object),
    "big-endian": lambda K, folder: K.astype(">f8"),
    "sparse": lambda K, folder: [
        sp.csr_array(K[0]),
        sp.coo_matrix(K[1]),
        sp.lil_array(K[2]),
    ],
    "dense and sparse": lambda K, folder: [
        K[0],
        sp.csr_array(K[1]),
        sp.csc_matrix(K[2]),
    ],
    "rows": lambda K, folder: Rows(K),
    "rows in float32": lambda K, folder: Rows(K.astype(np.float32)),
    "kernels": lambda K, folder: [
        DenseKernel(K[0]),
        Factored(np.linalg.cholesky(K[1])),
        K[2],
    ],
    "mixed kernels": lambda K, folder: [
        Mix(np.array([2.0, 1.0]), [DenseKernel(k / 3)] * 2) for k in K
    ],
}


def agree(actual, expected, form="float64"):
    """Compare within the precision that the kernels were given in."""
    tolerance = 2e-5 if "float32" in form else 1e-11
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


def check_answers(stack, K, form="float64"):
    """Compare all that a stack answers with the matrices that it stands for."""
    rng = np.random.default_rng(1)
    m, n, _ = K.shape
    V, c, samples = (
        rng.normal(size=(n, 4)),
        rng.uniform(size=m),
        np.array([5, n - 1, 0, 5]),
    )
    mixed = np.tensordot(c, K, 1)
    answers = {
        "apply": (stack.apply(V), K @ V),
        "mix": (stack.mix(c).dense(), mixed),
        "product of a mix": (stack.mix(c) @ V, mixed @ V),
        "diagonal of a mix": (stack.mix(c).diagonal(), np.diag(mixed)),
        "traces": (stack.traces(), np.trace(K, axis1=1, axis2=2)),
        "gram": (stack.gram(), np.einsum("pij,qij->pq", K, K)),
        "all": (stack.among().entries, K),
        "among": (stack.among(samples).entries, K[:, samples][:, :, samples]),
        "held mix": (stack.among().mix(c) @ V, mixed @ V),
        "subset": (stack.subset([m - 1, 0]).among().entries, K[[m - 1, 0]]),
    }
    for p, kernel in enumerate(stack.kernels):
        answers |= {
            f"product {p}": (kernel @ V, K[p] @ V),
            f"rows {p}": (kernel.rows(samples), K[p][samples]),
            f"slice {p}": (kernel.rows(slice(3, 9)), K[p][3:9]),
            f"diagonal {p}": (kernel.diagonal(), np.diag(K[p])),
        }
        assert kernel.n_samples == n
    for found, expected in answers.values():
        assert found.dtype == np.float64
        agree(found, expected, form)
    single = stack.apply(V.astype(np.float32))
    assert single.dtype == np.float32
    agree(single, K @ V, "float32")
    assert stack.among(None, "float32").mix(c).matrix.dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (False, False)])
def test_every_form_of_kernels_answers_as_its_matrices_and_changes_none(
    form, center, normalize, tmp_path
):
    kernels = integer_kernels()
    if form == "kernels":
        kernels[1] += np.eye(N)  # to have a Cholesky factor
    before = kernels.copy()
    stack = as_stack(FORMS[form](kernels, tmp_path), center=center, normalize=normalize)
    check_answers(stack, standardized(kernels, center, normalize), form)
    for kernel in stack.kernels:
        kernel.rows(slice(0, 5))[...] = 0
        kernel.dense()[...] = 0
    np.testing.assert_array_equal(kernels, before)


@pytest.mark.parametrize("form", ["array", "list of memory maps"])
@pytest.mark.parametrize("streamed", [None, True])
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
@pytest.mark.parametrize("fill", ["zero", "rescale"])
def test_kernels_that_lack_samples_answer_as_their_matrices(
    form, streamed, fill, center, normalize, tmp_path
):
    rng, kernels = np.random.default_rng(0), integer_kernels()
    observed = rng.random((N, M)) > 0.3
    observed[:, 2] = True
    expected = np.zeros((M, N, N))
    for p, has in enumerate(observed.T):
        some = np.ix_(has, has)
        expected[p][some] = standardized(kernels[p][some][None], center, normalize)[0]
        kernels[p][~has] = kernels[p][:, ~has] = np.nan
    if fill == "rescale":
        scale = rescaling(observed)
        expected *= scale * scale[:, None]
    how = {"center": center, "normalize": normalize, "fill": fill, "streamed": streamed}
    check_answers(as_stack(FORMS[form](kernels, tmp_path), **how), expected)


def test_filled_kernels_answer_as_their_matrices():
    rng, kernels = np.random.default_rng(0), integer_kernels()
    missing = rng.random((N, M)) < 0.3
    missing[:, 2] = False
    for p in range(M):
        kernels[p][missing[:, p]] = kernels[p][:, missing[:, p]] = np.nan
    stack, filled = as_stack(kernels), []
    for kernel in stack.kernels:
        right = np.zeros((N, 2))
        right[kernel.map.missing] = rng.normal(size=(len(kernel.map.missing), 2))
        fill = Fill(rng.normal(size=(kernel.map.n_observed, 2)), right)
        filled.append(replace(kernel, map=replace(kernel.map, fill=fill)))
    expected = []
    for kernel in filled:
        E = kernel.map.gather(np.eye(N))
        expected.append(E.T @ kernel.kernel.dense() @ E)
    check_answers(replace(stack, kernels=tuple(filled)), np.array(expected))


def test_samples_are_scaled_up_for_the_active_kernels_that_lack_them():
    kernels = integer_kernels()
    kernels[0][:20] = kernels[0][:, :20] = np.nan
    stack = as_stack(kernels)
    np.testing.assert_allclose(stack.kernels[1].diagonal()[:20], 1.5)
    alone = with_active(stack.kernels, [1])
    np.testing.assert_allclose(alone[1].diagonal(), 1)
    both = with_active(stack.kernels, [0, 1])
    np.testing.assert_allclose(both[1].diagonal()[:20], 2)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("incomplete", [False, True])
def test_answers_live_where_the_kernels_do(library, incomplete):
    kernels = integer_kernels()
    if incomplete:
        kernels[0][:9] = kernels[0][:, :9] = np.nan
    expected = as_stack(kernels)
    stack = as_stack([as_library(library, K) for K in kernels])
    V, c = np.random.default_rng(0).normal(size=(N, 3)), np.array([0.2, 0.5, 0.3])
    there = as_library(library, V)
    pairs = {
        "apply": (stack.apply(there), expected.apply(V)),
        "mix": (stack.mix(c) @ there, expected.mix(c) @ V),
        "rows": (
            stack.kernels[0].rows(np.array([7, 30])),
            expected.kernels[0].rows([7, 30]),
        ),
        "diagonal": (stack.kernels[1].diagonal(), expected.kernels[1].diagonal()),
        "among": (
            stack.among(np.arange(5, 12)).entries,
            expected.among(np.arange(5, 12)).entries,
        ),
        "dense": (stack.mix(c).dense(), expected.mix(c).dense()),
    }
    for found, wanted in pairs.values():
        assert kind_of(found) == kind_of(there)
        agree(to_host(found), wanted)
    for found, wanted in (
        (stack.gram(), expected.gram()),
        (stack.traces(), expected.traces()),
    ):
        assert type(found) is np.ndarray
        agree(found, wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_checking_and_applying_takes_much_less_memory_than_one_kernel(dtype):
    X = np.random.default_rng(0).normal(size=(3, 1500, 8)).astype(dtype)
    kernels, V = X @ X.transpose(0, 2, 1), np.ones((1500, 5))
    tracemalloc.start()
    as_stack(list(kernels)).apply(V)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < kernels[0].nbytes / 2


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("n", [90, 700])  # one part, and several threads
def test_a_kernel_far_from_centered_is_written_out_to_single_precision(n, library):
    X = np.random.default_rng(0).normal(size=(n, 5)) + 1e3
    stack = as_stack(as_library(library, (X @ X.T)[None]))
    centered = X - X.mean(axis=0)
    expected = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    held = to_host(stack.among(None, "float32").entries)
    np.testing.assert_allclose(held[0], expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [1e-100, 1e-50, 1e60])
def test_the_size_of_kernels_does_not_matter_in_single_precision(size, form):
    X = np.random.default_rng(0).normal(size=(520, 4))
    expected = as_stack([X @ X.T]).kernels[0].dense()
    held = as_stack([form(size * X @ X.T)] * 2).held(True)
    np.testing.assert_allclose(held.entries[0], expected, atol=1e-7)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_mix_stays_what_it_is_when_another_one_is_made(library):
    K = integer_kernels()
    stack = as_stack(as_library(library, list(K)), center=False, normalize=False)
    held = stack.among()
    first = held.mix(np.array([1.0, 0.0, 2.0]))
    second = held.mix(np.array([0.0, 3.0, 0.0]))
    agree(to_host(first.dense()), K[0] + 2 * K[2])
    agree(to_host(second.dense()), 3 * K[1])


def test_writing_out_is_refused_if_memory_is_short(monkeypatch):
    stack = as_stack(integer_kernels())
    monkeypatch.setattr("mkclust.linalg.memory.LITTLE", 0)
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: M * N * N * 8)
    assert stack.among().entries.nbytes == M * N * N * 8
    monkeypatch.setattr(
        "mkclust.linalg.memory.available_bytes", lambda: M * N * N * 8 - 1
    )
    with pytest.raises(MemoryError, match="fewer samples"):
        stack.among()
    assert stack.among(np.arange(N - 1)).n_samples == N - 1


def test_kernels_of_one_source_are_read_once_per_pass():
    counts = np.zeros(N, int)

    class Counted(Rows):
        def rows(self, start, stop):
            counts[start:stop] += 1
            return super().rows(start, stop)

    stack = as_stack(Counted(integer_kernels()))
    for question in (
        lambda: stack.apply(np.ones((N, 2))),
        lambda: stack.mix(np.ones(M)) @ np.ones((N, 1)),
        lambda: multiply(stack.kernels[::-1], [np.ones((N, 1))] * M),
        stack.gram,
        stack.among,
    ):
        counts[:] = 0
        question()
        assert set(counts) <= {0, 1}  # a block that was just read is not read again
    counts[:] = 0
    stack.among(np.array([60, 3, 4]))
    assert counts.sum() <= 3
