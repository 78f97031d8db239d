"""Parquet files as tables that are read by rows."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mkclust.datasets import DatasetError, load

pyarrow = pytest.importorskip("pyarrow")
N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 7))


def write(path, columns):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=50)
    return path


def columns_of(X, **more):
    return {f"c{i}": column for i, column in enumerate(X.T)} | more


def test_the_view_of_a_parquet_file_is_indexed_as_an_array_is(tmp_path):
    view = load(write(tmp_path / "x.parquet", columns_of(X)), on_disk=True).views["x"]
    assert (view.shape, view.ndim, view.dtype, len(view)) == (X.shape, 2, np.float64, N)
    keys = [slice(40, 130), slice(-30, None), slice(200, 100), slice(10, 220, 7), [], 3, -1]
    keys += [RNG.integers(-N, N, size=50), RNG.random(N) < 0.3, (slice(5, 60), slice(1, 3))]
    for key in keys:
        np.testing.assert_array_equal(view[key], X[key])
    assert np.asarray(view, dtype=np.float32).dtype == np.float32
    for wrong in (N, [0, -N - 1], [0.5], np.ones((2, 2), int), np.ones(N - 1, bool)):
        with pytest.raises(IndexError):
            view[wrong]


def test_a_pickled_view_is_its_path_and_several_threads_may_read_it(tmp_path):
    wide = np.tile(X, 100)
    view = load(write(tmp_path / "x.parquet", columns_of(wide)), on_disk=True).views["x"]
    content = pickle.dumps(view)
    assert len(content) < 20_000 < wide.nbytes
    again, starts = pickle.loads(content), [s for n in range(4) for s in range(n, N, 37)]
    with ThreadPoolExecutor(4) as pool:
        for start, rows in zip(starts, pool.map(lambda s: again[s : s + 30], starts), strict=True):
            np.testing.assert_array_equal(rows, wide[start : start + 30])


def test_numbers_of_every_type_become_floats_and_what_is_missing_becomes_nan(tmp_path):
    columns = {
        "whole": pyarrow.array([1, None, 3]),
        "truth": pyarrow.array([True, False, None]),
        "money": pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(24, 2)),
        "single": pyarrow.array([1, 2, 3], pyarrow.float32()),
    }
    view = load(write(tmp_path / "x.parquet", columns), on_disk=True).views["x"]
    expected = [[1, 1, 1, 1], [np.nan, 0, 2, 2], [3, np.nan, 3, 3]]
    np.testing.assert_array_equal(view[:], expected)


@pytest.mark.parametrize("on_disk", [None, True])
def test_columns_of_a_parquet_file_can_be_selected(tmp_path, on_disk):
    y = np.arange(N) % 3
    path = write(tmp_path / "x.parquet", columns_of(X, y=y, place=["here"] * N))
    data = load(f"{path}::c5,c2", on_disk=on_disk)
    np.testing.assert_array_equal(np.asarray(data.views["x"]), X[:, [2, 5]])
    np.testing.assert_array_equal(data.y, y)
    for wrong in ("c9", "place")[: 2 if on_disk else 1]:
        with pytest.raises(DatasetError, match=wrong):
            load(f"{path}::c1,{wrong}", on_disk=on_disk)
