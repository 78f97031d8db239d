"""Kernels that are not in memory answer as those that are, and stay out of it."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from conftest import gaussian_kernels
from mkclust import SimpleMKKM
from mkclust.methods import solve_anchored_mkkm, solve_simple_mkkm
from mkclust.samples.samples import read_kernels
from mkclust.stack import DenseStack, MatrixRows, StreamedStack, as_stack
from mkclust.stack.in_files import better_streamed
from mkclust.stack.rows import DatasetKernel, for_each_block, row_ranges

N, M = 70, 3
STANDARDS = [(True, True), (True, False), (False, True), (False, False)]


def kernels_of(n=N, m=M, seed=0, dtype=np.float64):
    """Return exactly symmetric kernels of random features, well away from rounding."""
    X = np.random.default_rng(seed).normal(size=(m, n, 12)) + 0.3
    K = X @ X.transpose(0, 2, 1)
    return ((K + K.transpose(0, 2, 1)) / 2).astype(dtype)


def saved(K, folder, name="kernels"):
    """Return an array as a memory map of its file."""
    np.save(folder / f"{name}.npy", K)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


@pytest.fixture
def hdf5(tmp_path):
    """Return a function that writes an array to an HDF5 file and returns the open dataset."""
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        yield lambda K, name="K", **how: file.create_dataset(name, data=K, **how)


STORED = {
    "one memory map": lambda K, folder, write: saved(K, folder),
    "list of memory maps": lambda K, folder, write: [
        saved(k, folder, str(p)) for p, k in enumerate(K)
    ],
    "slices of one memory map": lambda K, folder, write: list(saved(K, folder)),
    "contiguous dataset": lambda K, folder, write: write(K),
    "chunked dataset": lambda K, folder, write: write(K, chunks=(2, 16, 9)),
    "compressed dataset": lambda K, folder, write: write(K, chunks=(1, 5, N), compression="gzip"),
    "list of datasets": lambda K, folder, write: [
        write(k, str(p), chunks=(p + 1, 32)) for p, k in enumerate(K)
    ],
    "dict of datasets": lambda K, folder, write: {
        f"k{p}": write(k, str(p)) for p, k in enumerate(K)
    },
    "dataset and array": lambda K, folder, write: [write(K[0]), K[1], saved(K[2], folder)],
}


@dataclass
class Rows:
    """A source that computes nothing and counts what it is asked for."""

    kernels: np.ndarray
    block_rows: int | None = None

    def __post_init__(self):
        self.n_kernels, self.n_samples, _ = self.kernels.shape
        self.dtype, self.asked = self.kernels.dtype, []

    def rows(self, start, stop):
        self.asked.append((start, stop))
        return self.kernels[:, start:stop]

    def passes(self):
        """Return how often each row was asked for, and forget it."""
        counts = np.zeros(self.n_samples, dtype=int)
        for start, stop in self.asked:
            counts[start:stop] += 1
        self.asked.clear()
        return counts


def readers():
    """Return the reading threads that are alive."""
    return [thread for thread in threading.enumerate() if "mkclust-reader" in thread.name]


def agree(actual, expected, dtype=np.float64):
    tolerance = 2e-5 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(
        actual, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


def compare(stack, dense, dtype):
    """Ask both stacks all questions and compare the answers."""
    rng = np.random.default_rng(1)
    V, c, samples = rng.normal(size=(N, 4)), np.array([0.5, 0.0, 2.0]), np.array([5, 69, 0, 5, 6])
    assert isinstance(stack, StreamedStack)
    assert isinstance(dense, DenseStack)
    assert (stack.n_kernels, stack.n_samples, stack.names) == (M, N, dense.names)
    assert stack.precision == dense.precision
    assert not stack.repaired
    agree(stack.apply(V), dense.apply(V), dtype)
    for coefficients in (c, np.ones(M), np.zeros(M)):
        agree(stack.combine(coefficients) @ V, dense.combine(coefficients) @ V, dtype)
        agree(stack.combine(coefficients).dense(), dense.combine(coefficients).dense(), dtype)
    agree(stack.traces(), dense.traces(), dtype)
    agree(stack.gram(), dense.gram(), dtype)
    agree(stack.entries(), dense.entries(), dtype)
    agree(stack.entries(samples), dense.entries(samples), dtype)
    for p in range(M):
        agree(stack.kernel(p) @ V, dense.kernel(p) @ V, dtype)
        agree(stack.kernel(p).dense(), dense.kernel(p).dense(), dtype)
        assert stack.kernel(p).shape == stack.combine(c).shape == (N, N)
        np.testing.assert_array_equal(stack.raw_kernels[p][3:300], dense.raw_kernels[p][3:300])
        for one, other in zip(stack.standardizations, dense.standardizations, strict=True):
            agree(one.diagonal, other.diagonal, dtype)
    for answer in (stack.apply(V), stack.combine(c) @ V, stack.kernel(0) @ V, stack.entries()):
        assert answer.dtype == np.float64
        assert type(answer) is np.ndarray


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", STORED)
def test_a_streamed_stack_answers_as_a_dense_one(form, dtype, tmp_path, hdf5):
    K = kernels_of(dtype=dtype)
    stack = as_stack(STORED[form](K, tmp_path, hdf5), streamed=True)
    compare(stack, as_stack(dict(zip(stack.names, K, strict=True))), dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
@pytest.mark.parametrize("rows", [1, 7, N])
def test_neither_standards_nor_the_height_of_blocks_matter(rows, center, normalize, tmp_path):
    K = kernels_of()
    how = {"center": center, "normalize": normalize}
    source = MatrixRows(list(saved(K, tmp_path)), block_rows=rows)
    compare(as_stack(source, **how), as_stack(K, **how), np.float64)


def test_any_source_of_rows_will_do():
    K = kernels_of()
    compare(as_stack(Rows(K)), as_stack(K), np.float64)


@pytest.mark.parametrize("dtype", [np.int32, np.float16, ">f8", np.bool_])
def test_other_number_types_are_converted_as_they_come(dtype, tmp_path):
    X = np.random.default_rng(0).random((M, N, 12)) < 0.5
    K = (X[:, :, None] & X[:, None]).any(axis=3).astype(np.float64)
    K[:, np.arange(N), np.arange(N)] = 1
    K = K.astype(dtype)
    V = np.random.default_rng(1).normal(size=(N, 2))
    how = {"center": False, "validate": False}
    stack, dense = as_stack(saved(K, tmp_path), streamed=True, **how), as_stack(K, **how)
    agree(stack.apply(V), dense.apply(V), np.float32 if dtype == np.float16 else np.float64)
    assert stack.source.rows(0, 1)[0].dtype == dense.raw_kernels[0].dtype


@pytest.mark.parametrize("rows", [1, 7, 32, N])
def test_every_row_is_read_once_a_pass(rows):
    source = Rows(kernels_of(), block_rows=rows)
    V, c = np.ones((N, 2)), np.array([0.2, 0.3, 0.5])
    stack = as_stack(source)
    assert set(source.passes()) == {1}  # all checks together
    combined = stack.combine(c)
    stack.traces()
    assert not source.asked
    for question in (
        lambda: stack.apply(V),
        lambda: combined @ V,
        lambda: stack.kernel(1) @ V,
        combined.dense,
        stack.gram,
        stack.entries,
    ):
        question()
        assert set(source.passes()) == {1}


def test_entries_of_some_samples_read_their_rows_only():
    source = Rows(kernels_of())
    stack = as_stack(source)
    source.passes()
    stack.entries(np.array([9, 2, 3, 2]))
    assert np.flatnonzero(source.passes()).tolist() == [2, 3, 9]


class RowsAndProducts(Rows):
    """A source that knows the products of some kernels without their rows."""

    without_rows = (0, 2)

    def diagonal(self):
        return np.array([K.diagonal() for K in self.kernels])

    def product(self, index, X):
        return self.kernels[index] @ X if index in self.without_rows else None

    def only(self, indices):
        self.alone = indices
        return Rows(self.kernels[indices])


def test_products_that_take_no_rows_are_used_where_the_source_knows_them():
    K, V = kernels_of(), np.random.default_rng(1).normal(size=(N, 4))
    stack = as_stack(RowsAndProducts(K, block_rows=16), validate=False)
    dense = as_stack(K)
    np.testing.assert_allclose(stack.apply(V), dense.apply(V), atol=1e-12)
    assert stack.source.alone == [1]
    c = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stack.combine(c) @ V, dense.combine(c) @ V, atol=1e-12)
    assert stack.sum_of_products([V, V, V]) is None


def test_row_sums_take_no_rows_where_all_products_are_known_without():
    K, V = kernels_of(), np.random.default_rng(1).normal(size=(M, N, 4))
    source = RowsAndProducts(K)
    source.without_rows = range(M)
    stack = as_stack(source, validate=False)
    assert not source.asked
    for found, expected in zip(stack.standardizations, as_stack(K).standardizations, strict=True):
        np.testing.assert_allclose(found.row_means, expected.row_means)
        np.testing.assert_allclose(found.scale, expected.scale)
    expected = sum(kernel @ X for kernel, X in zip(as_stack(K).kernels, V, strict=True))
    np.testing.assert_allclose(stack.sum_of_products(V), expected, atol=1e-12)
    as_stack(source)  # where symmetry is looked at, rows are read
    assert source.asked
    assert as_stack(Rows(K)).sum_of_products(V) is None


def test_one_kernel_is_read_alone_where_the_source_can(tmp_path):
    K = kernels_of()
    stack = as_stack([saved(k, tmp_path, str(p)) for p, k in enumerate(K)], streamed=True)
    stack.source.matrices[2] = None  # whoever reads it fails
    V, c = np.random.default_rng(1).normal(size=(N, 2)), np.array([1.0, 2.0, 0.0])
    agree(stack.kernel(1) @ V, as_stack(K).kernel(1) @ V)
    agree(stack.combine(c) @ V, as_stack(K).combine(c) @ V)
    with pytest.raises(TypeError, match="NoneType"):
        stack.apply(V)


@pytest.mark.parametrize("chunks", [(1, 16, 9), (3, 5, N), (2, 1, 1)])
def test_no_tile_of_a_file_is_read_in_two_blocks(chunks, hdf5):
    source = as_stack(hdf5(kernels_of(), chunks=chunks), streamed=True).source
    assert source.step == chunks[1]
    assert all(start % chunks[1] == 0 for start, _ in row_ranges(source))
    assert all(start % chunks[1] == 0 for start, _ in row_ranges(source, np.array([3, 40, 69])))


def test_tiles_too_tall_for_memory_are_read_in_parts(hdf5):
    # A tile of 64 rows of all kernels takes 1.5 GB.
    tall = SimpleNamespace(n_kernels=M, n_samples=10**6, dtype=np.dtype("float64"), step=64)
    assert all(stop - start < 64 for start, stop in row_ranges(tall))
    assert all(stop - start < 64 for start, stop in row_ranges(tall, np.arange(150)))
    K = kernels_of()
    source = MatrixRows([hdf5(k, str(p), chunks=(16, 9)) for p, k in enumerate(K)], block_rows=10)
    compare(as_stack(source), as_stack(K), np.float64)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("rows", [1, 7, N])
def test_what_is_not_finite_is_named_with_its_kernel_and_row(bad, rows, tmp_path):
    K = kernels_of()
    K[1, 37, 50] = K[1, 50, 37] = bad
    with pytest.raises(ValueError, match=r"kernel 1 contains NaN or infinity: in row 37"):
        as_stack(MatrixRows(list(saved(K, tmp_path)), block_rows=rows), validate=False)
    assert not readers()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_single_asymmetric_entry_is_refused_unless_told_not_to_look(dtype, tmp_path):
    K = kernels_of(dtype=dtype)
    K[2, 11, 50] += 0.01 * np.abs(K[2]).max()
    stored = saved(K, tmp_path)
    with pytest.raises(ValueError, match=r"kernel 2 is not symmetric.*sample (11|50)"):
        as_stack(stored, streamed=True)
    assert as_stack(stored, streamed=True, validate=False).n_kernels == M


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_is_not_taken_for_asymmetry(dtype):
    X = np.random.default_rng(0).normal(size=(2, 900, 20))
    squares = np.stack([cdist(view, view, "sqeuclidean") for view in X])
    K = np.exp(-0.02 * squares).astype(dtype)
    K *= 1 + np.finfo(dtype).eps * np.random.default_rng(1).choice([-1, 0, 1], K.shape)
    assert np.abs(K - K.transpose(0, 2, 1)).max() > 0
    assert as_stack(K.astype(dtype), streamed=True).n_samples == 900


@pytest.mark.parametrize("center", [True, False])
def test_distances_are_not_taken_for_kernels(center):
    X = np.random.default_rng(0).normal(size=(N, 3))
    D = np.linalg.norm(X[:, None] - X, axis=-1)[None]
    with pytest.raises(ValueError, match="kernel 0 looks like distances"):
        as_stack(D, streamed=True, center=center, normalize=False)
    with pytest.raises(ValueError, match="kernel 0 is indefinite"):
        as_stack(-np.exp(-D), streamed=True, center=center, normalize=False)


def test_a_constant_kernel_is_refused(tmp_path):
    K = kernels_of()
    K[1] = 2.5
    with pytest.raises(ValueError, match="kernel 1 is constant"):
        as_stack(saved(K, tmp_path), streamed=True)


@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_streamed_kernels_cannot_be_repaired(psd, hdf5):
    dataset = hdf5(kernels_of())
    with pytest.raises(ValueError, match=f"psd='{psd}' needs the kernels in memory.*K\\[:\\]"):
        as_stack(dataset, psd=psd, streamed=True)
    assert isinstance(as_stack(dataset, psd=psd), DenseStack)


def test_a_source_of_rows_cannot_be_held_in_memory():
    with pytest.raises(ValueError, match="streamed=False needs the kernels in memory"):
        as_stack(Rows(kernels_of()), streamed=False)


def test_the_door_streams_memory_maps_that_would_not_fit(tmp_path):
    K = kernels_of()
    stored, enough = saved(K, tmp_path), 4 * N * N * 8
    assert isinstance(as_stack([K[0], saved(K[1], tmp_path, "1")]), DenseStack)
    assert not better_streamed(read_kernels(stored), enough)
    assert better_streamed(read_kernels(stored), enough - 1)
    assert better_streamed(read_kernels(list(stored)), enough - 1)
    assert not better_streamed(read_kernels(K), enough - 1)
    assert isinstance(as_stack(stored, streamed=False), DenseStack)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_the_door_loads_datasets_that_fit_and_streams_the_others(dtype, hdf5):
    K = (100 * kernels_of()).astype(dtype)
    whole, several = hdf5(K), [hdf5(k, str(p)) for p, k in enumerate(K)]
    # All kernels in a type that can be computed with, and one combination of them.
    held = 8 if dtype == np.int32 else K.itemsize
    enough = 4 * (M * held + K.itemsize) * N * N
    for given in (whole, several):
        assert not better_streamed(read_kernels(given), enough)
        stack = as_stack(given, validate=False)
        assert isinstance(stack, DenseStack)
        np.testing.assert_array_equal(np.stack(stack.raw_kernels), K)
    for given in (whole, several, [K[0], *several[1:], several[0]]):
        assert better_streamed(read_kernels(given), enough - 1)
        assert isinstance(as_stack(given, validate=False, streamed=False), DenseStack)
    assert better_streamed(read_kernels(whole), None)


def test_writing_out_is_refused_where_memory_is_short(tmp_path, monkeypatch):
    stack = as_stack(saved(kernels_of(), tmp_path), streamed=True)
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: N * N * 8 - 1)
    for question in (stack.combine(np.ones(M)).dense, stack.kernel(0).dense, stack.entries):
        with pytest.raises(MemoryError):
            question()
    assert stack.apply(np.ones((N, 1))).shape == (M, N, 1)


def at_an_offset(K, path):
    path.write_bytes(b"x" * 4104 + K.tobytes())
    return np.memmap(path, K.dtype, "r", offset=4104, shape=K.shape)


def in_columns(K, path):
    np.save(path, np.asfortranarray(K))
    return np.load(path, mmap_mode="r")


def changed_in_memory(K, path):
    np.save(path, np.zeros_like(K))
    mapped = np.load(path, mmap_mode="c")
    mapped[...] = K
    return mapped


def changed_in_the_file(K, path):
    np.save(path, np.zeros_like(K))
    mapped = np.load(path, mmap_mode="r+")
    mapped[...] = K
    return mapped


def moved_away(K, path):
    np.save(path, K)
    mapped = np.load(path, mmap_mode="r")
    path.rename(path.with_name("moved"))
    return mapped


def replaced(K, path):
    mapped = moved_away(K, path)
    np.save(path, np.zeros(K.size + 1))
    return mapped


@pytest.mark.parametrize(
    "mapped",
    [at_an_offset, in_columns, changed_in_memory, changed_in_the_file, moved_away, replaced],
)
def test_what_is_read_is_what_the_map_shows(mapped, tmp_path):
    K = kernels_of()
    whole = mapped(K, tmp_path / "kernels.npy")
    for given in (whole, list(whole)):
        stack = as_stack(given, streamed=True)
        np.testing.assert_array_equal(np.stack(stack.source.rows(30, 41)), K[:, 30:41])
        np.testing.assert_array_equal(stack.raw_kernels[2][[7, 3]], K[2, [7, 3]])


def test_a_file_cut_short_is_an_error_and_leaves_no_thread(tmp_path):
    source = MatrixRows(list(saved(kernels_of(), tmp_path)), block_rows=7)
    seen = []

    def cut(rows, blocks):
        seen.append(rows.start)
        if rows.start == 14:
            os.truncate(tmp_path / "kernels.npy", 1000)

    with pytest.raises(OSError, match=r"kernel \d: the file .*kernels\.npy was cut short"):
        for_each_block(source, cut)
    assert seen[-1] <= 21
    assert not readers()


def test_a_file_closed_in_the_middle_is_an_error_and_leaves_no_thread(tmp_path):
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        dataset = file.create_dataset("K", data=kernels_of())
        kernels = [DatasetKernel(dataset, p) for p in range(M)]
        source = MatrixRows(kernels, whole=dataset, block_rows=7)
        with pytest.raises((ValueError, RuntimeError, OSError)):
            for_each_block(source, lambda rows, blocks: file.close())
    assert not readers()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_pass_leaves_no_thread(kind):
    source = Rows(kernels_of(), block_rows=7)

    def interrupt(rows, blocks):
        assert readers()
        raise kind

    with pytest.raises(kind):
        for_each_block(source, interrupt)
    assert not readers()
    assert len(source.asked) <= 2


def test_the_next_rows_are_read_while_the_last_are_at_work():
    K = kernels_of()
    begun = {start: threading.Event() for start in range(0, N, 7)}

    class Announcing(Rows):
        def rows(self, start, stop):
            begun[start].set()
            return super().rows(start, stop)

    def take(rows, blocks):
        # Without a second thread this would wait for what only comes after it.
        assert rows.stop == N or begun[rows.stop].wait(timeout=30)

    for_each_block(Announcing(K, block_rows=7), take)
    assert not readers()


def solved(stack, anchor, **options):
    """Return the solution of SimpleMKKM or, with an anchor, of what is drawn to a compromise."""
    if anchor:
        return solve_anchored_mkkm(stack, 5, anchor=anchor, **options)
    return solve_simple_mkkm(stack, 5, **options)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("anchor", [0.0, 1.0])
@pytest.mark.parametrize("pays", [True, False])
def test_on_one_road_streamed_kernels_give_the_weights_of_dense_ones(pays, anchor, dtype, tmp_path):
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=400, k=5, strengths=(1, 1, 0.5))
    K = kernels.astype(dtype)
    dense, streamed = as_stack(K), as_stack(saved(K, tmp_path), streamed=True)

    class Dense(DenseStack):
        combining_pays = pays

        def subset(self, indices):
            return self  # all views agree, and the road is to stay

    class Streamed(StreamedStack):
        combining_pays = pays
        subset = Dense.subset

    dense = Dense(dense.kernels, dense.names, dense.standardizations, dense.raw_kernels)
    streamed = Streamed(streamed.source, streamed.names, streamed.standardizations)
    one, other = (solved(stack, anchor) for stack in (streamed, dense))
    assert one.converged
    # An anchor is a partition known to a tolerance, whose rest differs by rounding.
    rounding = 1e-4 if dtype == np.float32 else 1e-6 if anchor else 1e-8
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=rounding)
    assert one.gap == pytest.approx(other.gap, abs=min(rounding, 1e-7))


@pytest.mark.parametrize("anchor", [0.0, 1.0])
def test_both_roads_through_the_engine_lead_to_one_minimum(anchor):
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=400, k=5, strengths=(1, 1, 0.5))
    stacks = as_stack(kernels), as_stack(kernels, streamed=True)
    one, other = (solved(stack, anchor, tol=1e-9) for stack in stacks)
    assert one.converged
    assert other.converged
    # Each is within the tolerance of it; anchors are partitions known to 1e-6 themselves.
    rel = 1e-6 if anchor else 1e-9
    assert one.objective == pytest.approx(other.objective, rel=rel)
    assert max(one.lower_bounds[-1], other.lower_bounds[-1]) <= one.objective * (1 + rel)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)


def test_solving_takes_as_many_passes_as_it_says():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=900, k=4)
    source = Rows(kernels)
    stack = as_stack(source)
    source.passes()
    found = solve_simple_mkkm(stack, 4)
    # A look at some samples comes before, for weights to start from.
    assert source.passes().min() == found.n_passes


def test_estimators_take_datasets_that_are_not_loaded(hdf5, monkeypatch):
    monkeypatch.setattr("mkclust.stack.door.available_bytes", lambda: 300**2)
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=300, k=4)
    model = SimpleMKKM(4, random_state=0)
    expected = model.fit(kernels).labels_
    weights = model.weights_
    for given in (hdf5(kernels), [hdf5(k, str(p)) for p, k in enumerate(kernels)]):
        found = SimpleMKKM(4, kernels="precomputed", random_state=0).fit(given)
        np.testing.assert_array_equal(found.labels_, expected)
        np.testing.assert_allclose(found.weights_, weights, atol=3e-3)
        np.testing.assert_array_equal(found.predict(kernels), expected)


MEASURE = """
import sys
import numpy as np
from mkclust.methods.simple_mkkm import solve_simple_mkkm
from mkclust.stack import MatrixRows, as_stack

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

most = 0

class Measured(MatrixRows):
    def rows(self, start, stop):
        global most
        found = super().rows(start, stop)
        most = max(most, anonymous())
        return found

K = np.load(sys.argv[1], mmap_mode="r")
before = anonymous()
solution = solve_simple_mkkm(as_stack(Measured(list(K))), 5)
print(most - before, solution.converged)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the memory")
def test_a_solve_takes_less_memory_than_half_a_kernel(tmp_path):
    n = 3000
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(3, 5, 30))[:, np.arange(n) % 5] + rng.normal(size=(3, n, 30))
    K = np.lib.format.open_memmap(tmp_path / "K.npy", "w+", np.float64, (3, n, n))
    for p in range(3):
        np.matmul(X[p], X[p].T, out=K[p])
    K.flush()
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "K.npy")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    taken, converged = run.stdout.split()
    assert converged == "True"
    assert int(taken) < n * n * 8 / 2
