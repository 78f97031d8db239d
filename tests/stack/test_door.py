import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

N, M = 70, 3


def integer_kernels(n=N, m=M, n_features=30, seed=0):
    """Return Gram matrices of sparse integer features: exact in every number type."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, size=(m, n, n_features)) * (rng.random((m, n, n_features)) < 0.08)
    X[:, np.arange(n), np.arange(n) % n_features] += 1  # no sample is zero
    return (X @ X.transpose(0, 2, 1)).astype(np.float64)


def standardized(kernels, center, normalize):
    """Center and scale by the textbook: dense matrices, one at a time."""
    result = []
    for K in np.asarray(kernels, dtype=np.float64):
        if center:
            C = np.eye(len(K)) - 1 / len(K)
            K = C @ K @ C
        if normalize:
            lengths = np.sqrt(np.diag(K))
            K = K / np.outer(lengths, lengths)
        result.append(K)
    return np.stack(result)


def on_disk(K, folder, kind):
    """Return one kernel as a memory map."""
    path = folder / f"kernel{len(list(folder.iterdir()))}"
    if kind == "load":
        np.save(f"{path}.npy", K)
        return np.load(f"{path}.npy", mmap_mode="r")
    K.tofile(path)
    return np.memmap(path, dtype=K.dtype, mode="r", shape=K.shape)


DENSE = {
    "array": lambda K, folder: K,
    "read-only array": lambda K, folder: np.broadcast_to(K, K.shape),
    "list of arrays": lambda K, folder: [k.copy() for k in K],
    "tuple of arrays": lambda K, folder: tuple(k.copy() for k in K),
    "dict of arrays": lambda K, folder: dict(zip("abc", K, strict=True)),
    "nested lists": lambda K, folder: K.tolist(),
    "Fortran array": lambda K, folder: np.asfortranarray(K),
    "list of Fortran arrays": lambda K, folder: [np.asfortranarray(k) for k in K],
    "negative strides": lambda K, folder: K[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
    "every other entry": lambda K, folder: K.repeat(2, axis=1).repeat(2, axis=2)[:, ::2, ::2],
    "np.load of an array": lambda K, folder: on_disk(K, folder, "load"),
    "np.memmap of an array": lambda K, folder: on_disk(K, folder, "memmap"),
    "list of memory maps": lambda K, folder: [on_disk(k, folder, "load") for k in K],
    "integers": lambda K, folder: K.astype(np.int64),
    "list of small integers": lambda K, folder: [k.astype(np.uint16) for k in K],
    "float32": lambda K, folder: K.astype(np.float32),
    "float32 list": lambda K, folder: [k.astype(np.float32) for k in K],
    "float32 and float64": lambda K, folder: [K[0].astype(np.float32), *K[1:]],
    "object array": lambda K, folder: K.astype(object),
    "big-endian": lambda K, folder: K.astype(">f8"),
}
SPARSE = {
    f"{kind.__name__}": lambda K, folder, kind=kind: [kind(k) for k in K]
    for kind in (
        *(sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix),
        *(sp.lil_array, sp.dok_array),
    )
}
MIXED = {
    "dense and sparse": lambda K, folder: [K[0], sp.csr_array(K[1]), sp.csc_matrix(K[2])],
    "sparse first": lambda K, folder: [sp.coo_matrix(K[0]), K[1], K[2].astype(np.float32)],
    "memory map and sparse": lambda K, folder: [
        on_disk(K[0], folder, "load"),
        sp.csr_matrix(K[1].astype(np.float32)),
        np.asfortranarray(K[2]),
    ],
    "sparse integers": lambda K, folder: [sp.csr_array(k.astype(np.int32)) for k in K],
    "sparse float32": lambda K, folder: [sp.csr_array(k.astype(np.float32)) for k in K],
}
FORMS = DENSE | SPARSE | MIXED
STANDARDS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture
def given(form, tmp_path):
    return FORMS[form](integer_kernels(), tmp_path)


def agree(actual, expected, form="float64"):
    """Compare within the precision that the kernels were given in."""
    tolerance = 2e-5 if "float32" in form else 1e-11
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_a_stack_answers_as_its_dense_reference(form, given, center, normalize):
    form = "float32" if form in ("sparse first", "memory map and sparse") else form
    rng = np.random.default_rng(1)
    K = standardized(integer_kernels(), center, normalize)
    stack = as_stack(given, center=center, normalize=normalize)
    V, c = rng.normal(size=(N, 4)), np.array([0.5, 0.0, 2.0])
    samples = np.array([5, 69, 0, 5])
    combined = np.tensordot(c, K, 1)

    assert (stack.n_kernels, stack.n_samples) == (M, N)
    agree(stack.apply(V), K @ V, form)
    agree(stack.combine(c).dense(), combined, form)
    agree(stack.combine(c) @ V, combined @ V, form)
    agree(stack.traces(), np.trace(K, axis1=1, axis2=2), form)
    agree(stack.gram(), np.einsum("pij,qij->pq", K, K), form)
    agree(stack.entries(), K, form)
    agree(stack.entries(samples), K[:, samples][:, :, samples], form)
    for p in range(M):
        agree(stack.kernel(p) @ V, K[p] @ V, form)
        agree(stack.kernel(p).dense(), K[p], form)
        assert stack.kernel(p).shape == (N, N)


@pytest.mark.parametrize(("center", "normalize"), [(True, True), (False, False)])
def test_what_leaves_a_stack_is_float64(form, given, center, normalize):
    stack = as_stack(given, center=center, normalize=normalize)
    combined = stack.combine(np.ones(M) / M)
    V = np.ones((N, 2))
    for answer in (
        *(stack.apply(V), combined @ V, combined.dense(), stack.kernel(0) @ V),
        *(stack.traces(), stack.gram(), stack.entries()),
    ):
        assert answer.dtype == np.float64
        assert type(answer) is np.ndarray


@pytest.mark.parametrize(("center", "normalize"), [(True, True), (False, False)])
def test_a_combination_can_reuse_the_memory_of_another(form, given, center, normalize):
    K = standardized(integer_kernels(), center, normalize)
    stack = as_stack(given, center=center, normalize=normalize)
    first = stack.combine(np.array([0.2, 0.3, 0.5]))
    c = np.array([3.0, 0.0, 1.0])
    second = stack.combine(c, out=first)
    single = "float32" if form in ("sparse first", "memory map and sparse") else form
    agree(second.dense(), np.tensordot(c, K, 1), single)
    if form in DENSE:
        assert np.shares_memory(first.matrix, second.matrix)


@pytest.mark.parametrize("form", ["array", "list of arrays", "list of Fortran arrays"])
def test_a_new_combination_leaves_the_last_one_alone(form, tmp_path):
    stack = as_stack(FORMS[form](integer_kernels(), tmp_path))
    first = stack.combine(np.array([0.2, 0.3, 0.5]))
    before = first.dense()
    stack.combine(np.ones(3))
    np.testing.assert_array_equal(first.dense(), before)


def content(given):
    """Return the bytes and the types that a set of kernels consists of."""
    parts = []
    for K in given.values() if isinstance(given, dict) else given:
        if sp.issparse(K):
            stored = {"coo": ("row", "col", "data"), "lil": (), "dok": ()}
            names = stored.get(K.format, ("indptr", "indices", "data"))
            parts += [getattr(K, name).tobytes() for name in names]
            parts += [K.format, K.toarray().tobytes(), K.dtype, type(K)]
        else:
            parts += [np.asarray(K).tobytes(), np.asarray(K).dtype, type(K)]
    return parts


def exercise(given, **settings):
    """Ask a stack everything that it can answer."""
    stack = as_stack(given, **settings)
    n, m = stack.n_samples, stack.n_kernels
    stack.apply(np.ones((n, 2)))
    first = stack.combine(np.ones(m))
    stack.combine(np.full(m, 2.0), out=first).dense()
    stack.traces(), stack.gram(), stack.entries(), stack.entries(np.arange(3))
    for p in range(m):
        kernel = stack.kernel(p)
        kernel @ np.ones((n, 1)), kernel.dense(), kernel.diagonal()


@pytest.mark.parametrize(("center", "normalize"), [(True, True), (False, False)])
def test_the_kernels_are_never_changed(given, center, normalize):
    before = content(given)
    exercise(given, center=center, normalize=normalize)
    assert content(given) == before


@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("form", ["array", "list of arrays", "float32", "csr_array"])
def test_repairing_a_kernel_does_not_change_it(form, psd, tmp_path):
    K = integer_kernels()
    K[1] -= 9 * np.eye(N)
    given = FORMS[form](K, tmp_path)
    before = content(given)
    exercise(given, psd=psd)
    assert content(given) == before


def unsorted(K):
    """Return a kernel as CSR with the entries of every row in falling order of columns."""
    rows = [np.flatnonzero(row)[::-1] for row in K]
    indptr = np.cumsum([0, *map(len, rows)])
    data = np.concatenate([K[i, columns] for i, columns in enumerate(rows)])
    return sp.csr_array((data, np.concatenate(rows), indptr), shape=K.shape)


def duplicated(K):
    """Return a kernel as CSR in which every entry is the sum of two stored halves."""
    S = sp.csr_array(K)
    return sp.csr_array((S.data.repeat(2) / 2, S.indices.repeat(2), S.indptr * 2), shape=K.shape)


@pytest.mark.parametrize("stored", [unsorted, duplicated])
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_sparse_kernels_of_no_canonical_form_are_read_right(stored, center, normalize):
    kernels = integer_kernels()
    stack = as_stack([stored(K) for K in kernels], center=center, normalize=normalize)
    K, c = standardized(kernels, center, normalize), np.array([0.5, 0.25, 2.0])
    agree(stack.entries(), K)
    agree(stack.combine(c).dense(), np.tensordot(c, K, 1))
    agree(stack.apply(np.eye(N)[:, :5]), K[:, :, :5])


@pytest.mark.parametrize("stored", [unsorted, duplicated])
def test_sparse_kernels_of_no_canonical_form_are_not_changed_either(stored):
    given = [stored(K) for K in integer_kernels()]
    before = content(given)
    exercise(given)
    assert content(given) == before


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "form", ["array", "list of arrays", "dict of arrays", "list of Fortran arrays"]
)
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_dense_kernels_are_not_copied(form, dtype, center, normalize, tmp_path):
    given = FORMS[form](integer_kernels().astype(dtype), tmp_path)
    stack = as_stack(given, center=center, normalize=normalize)
    for p, K in enumerate(given.values() if isinstance(given, dict) else given):
        assert np.shares_memory(stack.kernel(p).matrix, K)


@pytest.mark.parametrize("kind", ["load", "memmap"])
def test_memory_maps_stay_on_disk(tmp_path, kind):
    whole = on_disk(integer_kernels(), tmp_path, kind)
    for given in (whole, list(whole)):
        stack = as_stack(given)
        assert all(np.shares_memory(stack.kernel(p).matrix, whole[p]) for p in range(M))


@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
@pytest.mark.parametrize("form", ["float32", "float32 list", "sparse float32"])
def test_kernels_in_single_precision_stay_so(form, center, normalize, tmp_path):
    stack = as_stack(FORMS[form](integer_kernels(), tmp_path), center=center, normalize=normalize)
    assert all(stack.kernel(p).matrix.dtype == np.float32 for p in range(M))
    assert stack.combine(np.array([0.2, 0.3, 0.5])).matrix.dtype == np.float32


def test_one_kernel_in_double_precision_makes_a_combination_double():
    K = integer_kernels()
    assert as_stack([K[0].astype(np.float32), K[1]]).combine(np.ones(2)).matrix.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("whole", [True, False])
def test_checking_and_applying_takes_much_less_memory_than_one_kernel(whole, dtype):
    X = np.random.default_rng(0).normal(size=(3, 1500, 8)).astype(dtype)
    kernels = X @ X.transpose(0, 2, 1)
    given = kernels if whole else list(kernels)
    V = np.ones((1500, 5))
    tracemalloc.start()
    as_stack(given).apply(V)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < kernels[0].nbytes / 2


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_few_samples_are_written_out_and_nothing_else_changes(whole, center, normalize):
    kernels = integer_kernels() / 7
    before = kernels.copy()
    stack = as_stack(kernels if whole else list(kernels), center=center, normalize=normalize)
    on_the_fly = replace(stack, writes_out=False)
    rng = np.random.default_rng(0)
    V, c, some = rng.normal(size=(N, 4)), rng.uniform(size=M), np.array([5, 1, 8, 30])
    products, expected = stack.off_diagonal_products(), on_the_fly.off_diagonal_products()
    pairs = {
        "apply": (stack.apply(V), on_the_fly.apply(V)),
        "combine": (stack.combine(c).dense(), on_the_fly.combine(c).dense()),
        "combine again": (
            stack.combine(c, out=stack.combine(2 * c)) @ V,
            on_the_fly.combine(c) @ V,
        ),
        "entries": (stack.entries(), on_the_fly.entries()),
        "some entries": (stack.entries(some), on_the_fly.entries(some)),
        "gram": (stack.gram(), on_the_fly.gram()),
        "rough kernel": (stack.rough_kernel(1) @ V, on_the_fly.kernel(1) @ V),
        "products": (products.products, expected.products),
        "row products": (products.row_products, expected.row_products),
        "totals": (products.totals, expected.totals),
    }
    for name, (ours, theirs) in pairs.items():
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-10 * (1 + np.abs(theirs).max()), err_msg=name
        )
    stack.entries()[...] = 0.0  # a copy, whoever has it
    stack.combine(c).dense()[...] = 0.0
    np.testing.assert_array_equal(kernels, before)
    np.testing.assert_allclose(stack.entries(), on_the_fly.entries(), atol=1e-12)


def test_a_multiple_of_the_identity_has_nothing_off_its_diagonal():
    products = as_stack(np.stack([np.eye(N), 3 * np.eye(N)]), center=False).off_diagonal_products()
    assert not products.products.any()
    assert not products.totals.any()


def test_prepared_kernels_of_few_samples_are_not_written_out_again():
    X = np.random.default_rng(0).normal(size=(3, 300, 8))
    kernels = X @ X.transpose(0, 2, 1)
    stack = as_stack(kernels, center=False, normalize=False, validate=False)
    tracemalloc.start()
    stack.apply(np.ones((300, 2)))
    stack.gram()
    stack.combine(np.ones(3))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * kernels[0].nbytes


def test_combining_takes_the_memory_of_one_kernel_and_none_again(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    X = np.random.default_rng(0).normal(size=(3, 1200, 8))
    stack = as_stack(list(X @ X.transpose(0, 2, 1)))
    size, c = 1200**2 * 8, np.ones(3) / 3
    tracemalloc.start()
    first = stack.combine(c)
    _, peak = tracemalloc.get_traced_memory()
    assert peak < 1.6 * size
    tracemalloc.reset_peak()
    held, _ = tracemalloc.get_traced_memory()
    stack.combine(c, out=first)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - held < 0.6 * size


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_the_number_of_threads_changes_nothing(whole, center, normalize, monkeypatch):
    kernels = integer_kernels(n=700) / 7
    stack = as_stack(
        kernels if whole else list(kernels), center=center, normalize=normalize, validate=False
    )
    results = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda _, count=n_threads: set(range(count)), raising=False
        )
        results.append(stack.combine(np.array([0.2, 0.3, 0.5])).matrix.copy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12, atol=1e-12)


def test_writing_out_entries_is_refused_where_memory_is_short(monkeypatch):
    stack = as_stack(integer_kernels())
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: 8 * 2**30)
    # Three kernels of 40,000 samples in float64 take 3 * 40000^2 * 8 bytes = 35.8 GiB.
    with pytest.raises(MemoryError, match=r"3 kernels of 40000 samples.*35\.8 GiB.*8\.0 GiB"):
        stack.entries(np.zeros(40_000, dtype=int))


def test_what_entries_need_is_what_is_asked_for(monkeypatch):
    stack = as_stack(integer_kernels())
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: M * N * N * 8)
    assert stack.entries().nbytes == M * N * N * 8
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: M * N * N * 8 - 1)
    with pytest.raises(MemoryError, match="fewer samples"):
        stack.entries()
    assert stack.entries(np.arange(N - 1)).shape == (M, N - 1, N - 1)


def indefinite(n, seed=0, negative=-0.2):
    """Return a kernel with some negative eigenvalues, all on vectors that centering keeps."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(np.hstack([np.ones((n, 1)), rng.normal(size=(n, n - 1))]))
    values = np.concatenate([[0.5], rng.uniform(0.1, 1, size=n - 4), negative * np.ones(3)])
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


@pytest.mark.parametrize("n", [60, 260])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("center", [True, False])
def test_repaired_kernels_are_positive_semidefinite_with_unit_diagonals(n, dtype, psd, center):
    kernels = [indefinite(n).astype(dtype), np.eye(n, dtype=dtype), indefinite(n, 1).astype(dtype)]
    stack = as_stack(kernels, psd=psd, center=center)
    tolerance = 1e-5 if dtype == np.float32 else 1e-8
    assert stack.repaired
    for p in range(3):
        K = stack.kernel(p).dense()
        np.testing.assert_allclose(np.diag(K), 1, atol=tolerance)
        assert np.linalg.eigvalsh(K)[0] > -tolerance
        V = np.random.default_rng(0).normal(size=(n, 2))
        np.testing.assert_allclose(stack.kernel(p) @ V, K @ V, atol=100 * tolerance)
    combined = np.tensordot([0.2, 0.3, 0.5], stack.entries(), 1)
    np.testing.assert_allclose(
        stack.combine(np.array([0.2, 0.3, 0.5])).dense(), combined, atol=tolerance
    )
    np.testing.assert_allclose(stack.traces(), n, rtol=tolerance)


@pytest.mark.parametrize("center", [True, False])
def test_clipping_gives_the_nearest_positive_semidefinite_matrix(center):
    K = indefinite(60)
    values, vectors = np.linalg.eigh(standardized(K[None], center, False)[0])
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    stack = as_stack([K], psd="clip", center=center, normalize=False)
    np.testing.assert_allclose(stack.entries()[0], nearest, atol=1e-12)


@pytest.mark.parametrize("n", [60, 260])
@pytest.mark.parametrize("center", [True, False])
def test_shifting_adds_just_the_smallest_eigenvalue(n, center):
    K = indefinite(n)
    centered = standardized(K[None], center, False)[0]
    stack = as_stack([K], psd="shift", center=center, normalize=False)
    lowest = np.linalg.eigvalsh(centered)[0]
    np.testing.assert_allclose(stack.entries()[0], centered - lowest * np.eye(n), atol=1e-6)
    assert -1e-12 < np.linalg.eigvalsh(stack.entries()[0])[0] < 1e-6


@pytest.mark.parametrize("psd", ["error", "clip", "shift"])
def test_sound_kernels_are_not_repaired(psd):
    kernels = integer_kernels()
    stack = as_stack(kernels, psd=psd)
    assert not stack.repaired
    assert all(np.shares_memory(stack.kernel(p).matrix, kernels[p]) for p in range(M))


def test_shifting_does_not_copy_a_kernel():
    K = indefinite(60)
    assert np.shares_memory(as_stack([K], psd="shift").kernel(0).matrix, K)


def test_names_come_from_the_dict_or_the_argument_or_the_numbers():
    K = integer_kernels()
    assert as_stack(K).names == ("kernel 0", "kernel 1", "kernel 2")
    assert as_stack({"x": K[0], 7: K[1]}).names == ("x", "7")
    assert as_stack(list(K), names=["a", "b", "c"]).names == ("a", "b", "c")


def test_kernels_may_outnumber_the_samples():
    kernels = integer_kernels(n=8, m=30)
    c = np.linspace(0, 1, 30)
    combined = np.tensordot(c, standardized(kernels, True, True), 1)
    np.testing.assert_allclose(as_stack(kernels).combine(c).dense(), combined, atol=1e-12)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_the_scale_of_a_kernel_does_not_matter_where_it_is_scaled(scale):
    kernels = integer_kernels()
    stack = as_stack(kernels * scale)
    np.testing.assert_allclose(stack.entries(), as_stack(kernels).entries(), atol=1e-11)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_subclass_is_read_as_an_array():
    K = integer_kernels()
    stack = as_stack([np.asmatrix(k) for k in K])
    np.testing.assert_allclose(stack.entries(), standardized(K, True, True), atol=1e-11)
    np.testing.assert_allclose(stack.traces(), N)
    np.testing.assert_allclose(stack.apply(np.eye(N)), standardized(K, True, True), atol=1e-11)


def test_a_data_frame_is_read_as_an_array():
    pandas = pytest.importorskip("pandas")
    K = integer_kernels()
    stack = as_stack([pandas.DataFrame(k) for k in K])
    np.testing.assert_allclose(stack.entries(), standardized(K, True, True), atol=1e-11)


@pytest.mark.parametrize(("center", "normalize"), [(True, True), (True, False), (False, False)])
def test_products_with_members_of_clusters_are_those_of_the_kernel(center, normalize):
    X = np.random.default_rng(0).normal(size=(3, 50, 4)) + 2
    stack = as_stack(X @ X.transpose(0, 2, 1), center=center, normalize=normalize)
    labels = np.random.default_rng(1).integers(4, size=50)
    members = sp.csr_array(labels == np.arange(4)[:, None], dtype=np.float64)
    for p in range(3):
        kernel = stack.kernel(p)
        expected = kernel.dense() @ members.toarray().T
        np.testing.assert_allclose(kernel.times_members(members), expected, atol=1e-10)
        single = replace(kernel, matrix=kernel.matrix.astype(np.float32))
        np.testing.assert_allclose(single.times_members(members), expected, atol=1e-3)


def test_kernels_that_centering_leaves_little_of_keep_their_digits():
    X = np.random.default_rng(0).normal(size=(60, 4))
    stack = replace(as_stack([X @ X.T, X @ X.T + 1e4]), writes_out=False)
    assert stack.rough_kernel(0).matrix.dtype == np.float32
    assert stack.rough_kernel(1) is stack.kernel(1)
    mixed = stack.combine(np.array([0.5, 0.5]), rounded=True)
    assert mixed.matrix.dtype == np.float64


@pytest.mark.parametrize("n", [40, 700])
def test_one_entry_that_differs_from_its_mirror_image_is_seen(n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    K = X @ X.T
    K[n - 3, 5] += 1e-6 * np.abs(K).max()
    with pytest.raises(ValueError, match="kernel 0 is not symmetric.*differ by up to"):
        as_stack([K])
    K[n - 3, 5] -= (1 - 1e-3) * 1e-6 * np.abs(K).max()
    as_stack([K])


def test_a_few_negative_directions_of_many_samples_are_seen():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 6)), rng.normal(size=(900, 2))
    with pytest.raises(ValueError, match="kernel 1 is indefinite"):
        as_stack([X @ X.T, X @ X.T - 0.1 * Y @ Y.T])


@pytest.mark.parametrize("streamed", [None, True])
def test_kernels_in_the_order_of_matlab_are_refused_with_what_to_pass(streamed):
    kernels = integer_kernels()
    with pytest.raises(ValueError, match=r"samples x samples x kernels .* np.moveaxis\(K, 2, 0\)"):
        as_stack(np.moveaxis(kernels, 0, 2), streamed=streamed)
    turned = as_stack(np.moveaxis(np.moveaxis(kernels, 0, 2), 2, 0))
    np.testing.assert_allclose(turned.gram(), as_stack(kernels).gram())
