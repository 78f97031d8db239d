"""Views in blocks of samples: what is read, by how many threads, and what is
refused."""

import threading
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

from helpers.arrays import LIBRARIES, as_library
from mkclust.data.blocks import Blocks
from mkclust.data.samples import as_blocks
from mkclust.linalg import to_host

N = 500


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    return {
        "a": rng.normal(size=(N, 3)),
        "b": rng.normal(size=(N, 4)).astype(np.float32),
    }


class Failing:
    """A view that cannot be read beyond some row."""

    def __init__(self, data, beyond, error):
        self.data, self.beyond, self.error = data, beyond, error
        self.shape, self.dtype = data.shape, data.dtype

    def __getitem__(self, rows):
        if rows.stop > self.beyond:
            raise self.error
        return self.data[rows]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("function")])
@pytest.mark.parametrize(("at", "threads"), [(0, 1), (200, 3), (480, 3)])
def test_an_interrupted_pass_raises_and_its_threads_end(views, error, at, threads):
    def function(block, start):
        if start == at:
            raise error
        return block["a"]

    blocks = as_blocks(views, block_rows=40)
    for begin in (blocks.total, blocks.map):
        with threadpool_limits(threads), pytest.raises(type(error)):
            begin(function)
        assert not any(t.name.startswith("mkclust-") for t in threading.enumerate())


def test_what_cannot_be_read_is_named_by_view_and_rows(views):
    failing = Failing(views["b"], 130, RuntimeError("hole"))
    with pytest.raises(OSError, match="'b' .* 0 to 499: hole"):
        as_blocks(views | {"b": failing})  # which looks for empty rows
    blocks = as_blocks({"b": failing}, block_rows=50)
    with pytest.raises(OSError, match="'b' .* 100 to 149: hole"):
        blocks.total(lambda block, _: block["b"])
    with pytest.raises(OSError, match="'b' .* 140 to 140"):
        blocks.take(np.array([3, 40, 140]))
    failing.beyond, failing.data = N, views["b"][:300]
    with pytest.raises(OSError, match="'b' .* 0 rows"):
        blocks.map(lambda block, _: block["b"])


@pytest.mark.parametrize("chunks", [None, (64, 2)])
def test_rows_of_files_are_read_in_whole_chunks(views, tmp_path, chunks):
    h5py = pytest.importorskip("h5py")
    rng, heights = np.random.default_rng(1), []
    with h5py.File(tmp_path / "views.h5", "w") as file:
        view = file.create_dataset("b", data=views["b"], chunks=chunks)
        for block_rows in (None, 100):
            blocks = as_blocks({"b": view}, block_rows=block_rows)
            for count in (0, 1, 7, 300, N):
                samples = np.sort(rng.choice(N, count, replace=False))
                np.testing.assert_array_equal(
                    blocks.take(samples)["b"], views["b"][samples]
                )
            np.testing.assert_array_equal(
                blocks.map(lambda block, _: block["b"]), views["b"]
            )
        long = file.create_dataset("long", (20_000, 2), "f4", chunks=(300, 1))
        as_blocks({"a": long}).total(
            lambda block, _: heights.append(block.n_rows) or np.zeros(1)
        )
    assert heights[0] % 300 == 0


def test_sums_and_rows_are_the_same_for_any_number_of_threads(views):
    def products(block, start):
        rows = np.hstack(list(block.values()))
        return rows.T @ rows, np.array([float(start)])

    blocks, found = as_blocks(views, block_rows=32), []
    for threads in (1, 2, 16):
        with threadpool_limits(threads):
            rows = blocks.map(lambda block, _: block["a"] @ block["a"][0])
            found.append([*blocks.total(products), rows])
    for several in found[1:]:
        for one, other in zip(several, found[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_threads_have_the_settings_of_the_caller(views):
    def overflow(block, start):
        assert get_config()["assume_finite"]
        return np.exp(np.full(len(block["a"]), 1e4 if start else 0.0))

    blocks = as_blocks(views, block_rows=64)
    with threadpool_limits(2), config_context(assume_finite=True):
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            blocks.map(overflow)
        with np.errstate(over="ignore"), warnings.catch_warnings(action="error"):
            assert np.isinf(blocks.map(overflow)[64:]).all()


@pytest.mark.parametrize("library", [*LIBRARIES, "sparse"])
def test_blocks_hold_the_rows_that_each_view_has(library):
    rng = np.random.default_rng(0)
    full, observed = rng.normal(size=(35, 3)), rng.random((35, 2)) < 0.6
    as_held = (
        scipy.sparse.csr_array if library == "sparse" else partial(as_library, library)
    )
    tables = {
        name: as_held(full[has]) for name, has in zip("ab", observed.T, strict=True)
    }
    blocks = Blocks(tables, observed, 8)
    some = np.sort(rng.choice(35, 9, replace=False))
    parts = [(blocks.take(some), some), (blocks.take(some[:0]), some[:0])]
    parts += [(block, np.arange(start, min(start + 8, 35))) for start, block in blocks]
    whole = blocks.take(np.arange(35))
    parts += [(whole, np.arange(35)), (whole.part(slice(5, 21)), np.arange(5, 21))]
    for block, numbers in parts:
        assert block.n_rows == len(numbers)
        for number, (name, rows) in enumerate(block.items()):
            has = observed[numbers, number]
            dense = to_host(rows.toarray() if library == "sparse" else rows)
            np.testing.assert_array_equal(dense, full[numbers[has]])
            index = (
                np.arange(len(numbers))
                if block.index(name) is None
                else block.index(name)
            )
            np.testing.assert_array_equal(index, np.flatnonzero(has))


@pytest.mark.parametrize("form", ["map", 25, (40, 0, 37, 13)])
def test_rows_of_files_and_dask_arrays_that_are_all_nan_are_missing(form, tmp_path):
    rng = np.random.default_rng(0)
    views, observed = (
        {name: rng.normal(size=(90, 3)) for name in "ab"},
        rng.random((90, 2)) < 0.7,
    )
    observed[~observed.any(axis=1), 0] = True
    for view, has in zip(views.values(), observed.T, strict=True):
        view[~has] = np.nan
    given = {}
    for name, view in views.items():
        if form == "map":
            np.save(tmp_path / f"{name}.npy", view)
            given[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        else:
            da = pytest.importorskip("dask.array")
            given[name] = da.from_array(view, chunks=(form, 2))
    blocks = as_blocks(given, block_rows=90)
    np.testing.assert_array_equal(blocks.observed, observed)
    for view, rows in zip(
        views.values(), blocks.take(np.arange(5, 30)).values(), strict=True
    ):
        np.testing.assert_array_equal(rows, view[5:30][~np.isnan(view[5:30, 0])])
    found = blocks.total(
        lambda block, _: np.array([rows.sum() for rows in block.values()])
    )
    np.testing.assert_allclose(found, [np.nansum(view) for view in views.values()])
