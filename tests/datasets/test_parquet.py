"""Parquet files as tables that are read by rows."""

import pickle
import threading

import numpy as np
import pytest

from mkclust.datasets import DatasetError, load

N = 240


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def y():
    return np.arange(N) % 3


@pytest.fixture(scope="module")
def X(rng, y):
    return 4 * rng.normal(size=(3, 7))[y] + rng.normal(size=(N, 7))


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow")


def write_parquet(path, columns, row_group_size=50, **options):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size, **options)
    return path


def columns_of(X, **more):
    return {f"c{i}": column for i, column in enumerate(X.T)} | more


def complaint(target, **options):
    """Return the one line that loading the target raises."""
    with pytest.raises(DatasetError) as caught:
        load(target, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_view_of_a_parquet_file_is_indexed_as_an_array_is(tmp_path, pyarrow, X, rng):
    view = load(write_parquet(tmp_path / "x.parquet", columns_of(X))).views["x"]
    assert (view.shape, view.ndim, view.dtype, len(view)) == (X.shape, 2, np.float64, N)
    keys = [
        slice(None),
        slice(40, 130),
        slice(-30, None),
        slice(200, 100),
        slice(10, 220, 7),
        np.sort(rng.choice(N, 60, replace=False)),
        rng.integers(-N, N, size=50),
        rng.random(N) < 0.3,
        [],
        3,
        -1,
        (slice(5, 60), slice(1, 3)),
    ]
    for key in keys:
        np.testing.assert_array_equal(view[key], X[key])
    np.testing.assert_array_equal(np.asarray(view), X)
    assert np.asarray(view, dtype=np.float32).dtype == np.float32
    for wrong in (N, [0, -N - 1], [0.5], np.ones((2, 2), int), np.ones(N - 1, bool)):
        with pytest.raises(IndexError):
            view[wrong]


def test_a_pickled_view_is_its_path_and_several_threads_may_read_it(tmp_path, pyarrow, X):
    wide = np.tile(X, 100)
    write_parquet(tmp_path / "x.parquet", columns_of(wide))
    for name in ("x.parquet",):
        view = load(tmp_path / name, on_disk=True).views["x"]
        assert np.array_equal(view[:5], wide[:5])
        content = pickle.dumps(view)
        assert len(content) < 20_000 < wide.nbytes
        again, wrong = pickle.loads(content), []

        def read(number, view=again, wrong=wrong):
            for start in range(number, N, 37):
                if not np.array_equal(view[start : start + 30], wide[start : start + 30]):
                    wrong.append(start)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_numbers_of_every_type_become_floats_and_what_is_missing_becomes_nan(tmp_path, pyarrow):
    columns = {
        "whole": pyarrow.array([1, None, 3]),
        "truth": pyarrow.array([True, False, None]),
        "money": pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(24, 2)),
        "single": pyarrow.array([1, 2, 3], pyarrow.float32()),
    }
    view = load(write_parquet(tmp_path / "x.parquet", columns)).views["x"]
    assert view.dtype == np.float64
    expected = [[1, 1, 1, 1], [np.nan, 0, 2, 2], [3, np.nan, 3, 3]]
    np.testing.assert_array_equal(view[:], expected)
    halves = {name: np.arange(3, dtype=np.float16) for name in "ab"}
    view = load(write_parquet(tmp_path / "half.parquet", halves)).views["half"]
    assert view.dtype == view[:].dtype == np.float32


@pytest.mark.parametrize("name", ["y", "Y", "gnd", "labels"])
def test_a_column_of_labels_is_never_a_feature(tmp_path, pyarrow, X, y, name):
    words = np.array(["cat", "dog", "owl"])[y]
    for labels in (y, words, pyarrow.array(words).dictionary_encode()):
        data = load(write_parquet(tmp_path / "x.parquet", columns_of(X, **{name: labels})))
        assert data.views["x"].shape == X.shape
        np.testing.assert_array_equal(data.y, words if labels is not y else y)
    assert data.n_classes == 3


def test_columns_of_a_parquet_file_can_be_selected(tmp_path, pyarrow, X, y):
    path = write_parquet(tmp_path / "x.parquet", columns_of(X, y=y, place=["here"] * N))
    data = load(f"{path}::c5,c2")
    np.testing.assert_array_equal(data.views["x"][:], X[:, [2, 5]])
    np.testing.assert_array_equal(data.y, y)
    assert load(f"{path}::c3").views["x"].shape == (N, 1)
    assert "no column c9; select among c0 double" in complaint(f"{path}::c1,c9")
    assert "the column place holds string" in complaint(f"{path}::place")
