"""Views looked at in blocks: what is read, what is refused, and what an interruption leaves."""

import re
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from mkclust.kernels import KernelBank
from mkclust.samples.blocks import block_height, check_finite
from mkclust.samples.cluster import connect
from mkclust.samples.local import LocalBlocks
from mkclust.samples.samples import as_blocks, as_views

N = 500


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    return {"a": rng.normal(size=(N, 3)), "b": rng.normal(size=(N, 4)).astype(np.float32)}


class Failing:
    """A view that cannot be read beyond some row."""

    def __init__(self, data, beyond, error):
        self.data, self.beyond, self.error = data, beyond, error
        self.shape, self.dtype = data.shape, data.dtype

    def __getitem__(self, rows):
        if rows.stop > self.beyond:
            raise self.error
        return self.data[rows]


def readers():
    return [t for t in threading.enumerate() if t.name.startswith("mkclust-")]


def passes(blocks, look):
    """Both kinds of pass, not yet begun."""
    return [lambda: blocks.total(look), lambda: blocks.map(look)]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("look")])
@pytest.mark.parametrize("at", [0, 200, 480])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupted_pass_raises_and_its_threads_end(views, error, at, threads):
    seen = []

    def look(block, start):
        seen.append(start)
        if start == at:
            raise error
        return block["a"]

    for begin in passes(LocalBlocks(views, 40), look):
        seen.clear()
        with threadpool_limits(threads), pytest.raises(type(error)):
            begin()
        assert not readers()
        # Those before it were looked at, and no more after it than there are threads.
        assert set(seen) >= set(range(0, at + 1, 40))
        assert len(seen) <= at // 40 + threads + (threads > 1)


@pytest.mark.parametrize("error", [OSError("disk"), RuntimeError("hole"), KeyError("gone")])
def test_what_cannot_be_read_is_named_by_view_and_samples(views, error):
    blocks = LocalBlocks(views | {"b": Failing(views["b"], 130, error)}, 50)
    told = rf"View 'b' could not be read, at the samples 100 to 149: '?{error.args[0]}"
    for begin in passes(blocks, lambda block, _: block["a"]):
        with pytest.raises(OSError, match=told):
            begin()
        assert not readers()
    with pytest.raises(OSError, match=r"View 'b' could not be read, at the samples 140 to 140"):
        blocks.take(np.array([3, 40, 140]))


def test_a_memory_map_cut_short_is_an_error_not_the_end_of_the_process(views, tmp_path):
    path = tmp_path / "b.npy"
    np.save(path, views["b"])
    mapped = np.load(path, mmap_mode="r")
    # A part of a map, taken for a plain array, is the same file.
    for view in (mapped, np.asarray(mapped)[:, 1:]):
        blocks = as_blocks({"b": view}, block_rows=100)

        def cut(block, start):
            if start == 100:
                with open(path, "r+b") as file:
                    file.truncate(3000)
            return block["b"].sum(axis=0)

        told = r"View 'b'.*b\.npy was cut short while in use, it has 3000 of 8128 bytes"
        with pytest.raises(OSError, match=told):
            blocks.total(cut)
        with pytest.raises(OSError, match="cut short"):
            blocks.take(np.arange(5))
        np.save(path, views["b"])


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.uint8, bool, ">f8", np.longdouble])
def test_numbers_of_other_types_become_double_block_by_block(tmp_path, dtype):
    data = (np.random.default_rng(0).normal(size=(N, 3)) * 5).clip(0, 9).astype(dtype)
    path = tmp_path / "data"
    mapped = np.memmap(path, dtype, "w+", shape=data.shape)
    mapped[:] = data
    seen = []

    def look(block, _):
        seen.append((block["a"].dtype, len(block["a"])))
        return block["a"]

    found = as_blocks({"a": mapped}, block_rows=120).map(look)
    np.testing.assert_array_equal(found, data.astype(np.float64))
    assert set(seen) == {(np.dtype(np.float64), 120), (np.dtype(np.float64), 20)}


def test_the_order_of_an_array_in_memory_does_not_matter(views):
    plain = as_blocks(views, block_rows=70)
    columns = {name: np.asfortranarray(view) for name, view in views.items()}
    reversed_twice = {name: view[::-1].copy()[::-1] for name, view in views.items()}
    for other in (columns, reversed_twice):
        blocks = as_blocks(other, block_rows=70)
        np.testing.assert_array_equal(blocks.map(lambda block, _: block["b"]), views["b"])
        for name, rows in blocks.take(np.array([5, 71, 499])).items():
            np.testing.assert_array_equal(rows, views[name][[5, 71, 499]])
        np.testing.assert_allclose(
            blocks.total(lambda block, _: block["a"].T @ block["b"]),
            plain.total(lambda block, _: block["a"].T @ block["b"]),
            rtol=1e-5,
        )


@pytest.mark.parametrize("chunks", [None, True, (64, 2), (3, 4)])
def test_rows_of_files_are_picked_from_few_slices(views, tmp_path, chunks):
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "views.h5", "w") as file:
        view = file.create_dataset("b", data=views["b"], chunks=chunks)
        for block_rows in (None, 100):
            blocks = as_blocks({"b": view}, block_rows=block_rows)
            for count in (0, 1, 7, 300, N):
                samples = np.sort(rng.choice(N, count, replace=False))
                np.testing.assert_array_equal(blocks.take(samples)["b"], views["b"][samples])
            np.testing.assert_array_equal(blocks.map(lambda block, _: block["b"]), views["b"])


def test_wide_gaps_between_samples_are_not_read():
    read = []

    class Counting(Failing):
        def __getitem__(self, rows):
            read.append(rows.stop - rows.start)
            return super().__getitem__(rows)

    view = Counting(np.arange(100_000.0).reshape(-1, 1), 10**6, None)
    blocks = LocalBlocks({"a": view}, gap_bytes=80)
    samples = np.array([0, 5, 9, 50_000, 50_011, 99_999])
    assert blocks.take(samples)["a"].ravel().tolist() == samples.tolist()
    assert read == [10, 1, 1, 1]


def test_blocks_of_a_file_are_whole_tiles(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "tiles.h5", "w") as file:
        heights = []

        def look(block, _):
            heights.append(len(block["a"]))
            return np.zeros(1)

        for rows, expected in ((300, 8100), (10_000, 10_000)):
            view = file.create_dataset(str(rows), (20_000, 2), "f4", chunks=(rows, 1))
            as_blocks({"a": view}).total(look)
            assert heights[0] == expected
            heights.clear()


def test_tables_of_arrow_are_sliced_too(views):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": views["a"][:, 0], "y": views["a"][:, 1]})
    blocks = as_blocks({"t": table}, block_rows=60)
    np.testing.assert_array_equal(blocks.map(lambda block, _: block["t"]), views["a"][:, :2])
    np.testing.assert_array_equal(blocks.take(np.array([2, 400]))["t"], views["a"][[2, 400], :2])


def test_objects_that_are_numbers_are_numbers(views):
    found = as_blocks({"a": views["a"].astype(object)}).map(lambda block, _: block["a"])
    np.testing.assert_array_equal(found, views["a"])


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (np.full((N, 2), "x"), r"'c' is not a table of real numbers.*numeric"),
        (np.full((N, 2), "x", object), r"'c' is not a table of real numbers.*convert"),
        (np.ones((N, 2), complex), r"'c' is not a table of real numbers.*Complex"),
        (np.ones((N, 2), "datetime64[s]"), r"'c' has entries of type datetime64.*convert or drop"),
        (np.ones((N, 0)), r"'c' is empty, of shape \(500, 0\); leave it out"),
        (np.ones((0, 2)), r"'c' is empty, of shape \(0, 2\); leave it out"),
        (np.ones(N), r"'c' has 1 dimensions.*reshape"),
        (np.ones((N - 1, 2)), r"'a' has 500 rows but view 'c' has 499.*same samples"),
        (1j * scipy.sparse.eye(N, 2, format="csr"), r"'c' has entries of type complex128"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_at_the_door_in_one_sentence(views, view, message):
    sentences = set()
    for door in (as_views, as_blocks, KernelBank().fit):
        with pytest.raises((TypeError, ValueError), match=message) as refusal:
            door(views | {"c": view})
        sentences.add(str(refusal.value))
    assert len(sentences) == 1


def test_masked_entries_are_missing(views):
    masked = np.ma.masked_array(views["a"], np.zeros((N, 3), bool))
    np.testing.assert_array_equal(
        as_blocks({"a": masked}).map(lambda block, _: block["a"]), views["a"]
    )
    masked[300, 1] = np.ma.masked
    rows = as_blocks({"a": masked}, block_rows=100).map(lambda block, _: block["a"])
    assert np.argwhere(np.isnan(rows)).tolist() == [[300, 1]]


def test_no_views_are_refused():
    with pytest.raises(ValueError, match="no views in an empty dict"):
        as_blocks({})


def test_entries_that_are_not_finite_are_told_by_the_numbers_of_their_samples(views):
    bad = views["b"][:10].copy()
    bad[[6, 8]] = np.inf
    told = "View 'b' has entries that are not finite in 2 of the samples {} to {}, first in sample "
    for samples, expected in (
        (70, told.format(70, 79) + "76;"),
        (70 + np.arange(10), told.format(70, 79) + "76;"),
        (7 * np.arange(10), "in 2 of 10 samples drawn from all, first in sample 42;"),
    ):
        with pytest.raises(ValueError, match=re.escape(expected)):
            check_finite({"a": views["a"][:10], "b": bad}, samples)
    check_finite({name: view[:10] for name, view in views.items()}, 7 * np.arange(10))


def test_blocks_are_neither_tiny_nor_huge():
    assert block_height([1]) == 8192
    assert block_height([50, 50]) == 5242
    assert block_height([10**6]) == 256


def test_a_cluster_without_the_package_for_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "mkclust\[dask\]"'), connect("tcp://a:1"):
        pass


def test_a_view_that_gives_fewer_rows_than_it_has_is_an_error():
    class Short:
        shape, dtype = (300, 2), np.dtype(float)

        def __getitem__(self, rows):
            return np.ones((300, 2))[rows][:5]

    blocks = as_blocks({"a": Short()}, block_rows=100)
    for ask in (blocks.total, blocks.map):
        with pytest.raises(OSError, match="'a'.*samples 0 to 99: there are 5 rows instead of 100"):
            ask(lambda block, start: block["a"])
    with pytest.raises(OSError, match="rows instead of"):
        blocks.take(np.arange(0, 300, 7))


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "a"])
def test_blocks_of_no_rows_are_refused(wrong):
    with pytest.raises(ValueError, match="block_rows"):
        as_blocks(np.ones((4, 2)), block_rows=wrong)
