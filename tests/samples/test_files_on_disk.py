"""What stays in its file is clustered as if it were in memory."""

import pickle
import threading

import numpy as np
import pytest

from mkclust import SimpleMKKM
from mkclust.datasets import DatasetError, load
from mkclust.kernels import Nystroem
from mkclust.samples.local import LocalBlocks
from mkclust.samples.samples import as_blocks

pytestmark = pytest.mark.slow

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


@pytest.fixture(scope="module")
def kernels(X):
    squared = np.square(X[:, None] - X)
    return np.exp(-np.array([squared[..., :3].sum(-1), squared[..., 3:].sum(-1)]) / 30)


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow")


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


def write_parquet(path, columns, row_group_size=50, **options):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size, **options)
    return path


def columns_of(X, **more):
    return {f"c{i}": column for i, column in enumerate(X.T)} | more


def same_fit(one, other):
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.duality_gap_ == pytest.approx(other.duality_gap_, abs=1e-12)


def complaint(target, **options):
    """Return the one line that loading the target raises."""
    with pytest.raises(DatasetError) as caught:
        load(target, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- parquet -------------------------------------------------------------------------------------


def test_a_parquet_file_is_clustered_exactly_as_its_array_in_memory(tmp_path, pyarrow, X, y):
    views = {"left": X[:, :3], "right": X[:, 3:]}
    sizes = {"left": 50, "right": 97}
    found = {
        name: load(write_parquet(tmp_path / f"{name}.parquet", columns_of(view), sizes[name]))
        for name, view in views.items()
    }
    on_disk = {name: data.views[name] for name, data in found.items()}
    assert [view.row_groups for view in on_disk.values()] == [(50, 50, 50, 50, 40), (97, 97, 46)]
    for approximation in (None, Nystroem(n_components=40)):
        model = SimpleMKKM(3, approximation=approximation, random_state=0)
        expected = SimpleMKKM(3, approximation=approximation, random_state=0).fit(views)
        same_fit(model.fit(on_disk), expected)
    np.testing.assert_array_equal(model.predict(on_disk), expected.predict(views))


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


def test_a_pass_in_blocks_decodes_every_row_group_once(tmp_path, pyarrow, X, monkeypatch):
    from pyarrow.parquet import ParquetFile

    view = load(write_parquet(tmp_path / "x.parquet", columns_of(X))).views["x"]
    groups, read = [], ParquetFile.iter_batches
    monkeypatch.setattr(
        ParquetFile,
        "iter_batches",
        lambda self, *args, **options: (
            groups.extend(options["row_groups"]) or read(self, *args, **options)
        ),
    )
    blocks = as_blocks([view], block_rows=8)
    total = blocks.total(lambda block, _: block["view 0"].sum(axis=0))
    np.testing.assert_allclose(total, X.sum(axis=0))
    assert groups == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(view[[130, 1, 120]], X[[130, 1, 120]])
    assert groups[5:] == [0, 2]


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


def test_of_a_table_on_disk_text_and_the_index_are_left_aside_with_a_note(tmp_path, pyarrow, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns_of(X, place=["here"] * N))
    frame.index = np.arange(N)[::-1] * 1000
    frame.to_parquet(tmp_path / "x.parquet")
    data = load(tmp_path / "x.parquet", on_disk=True)
    np.testing.assert_array_equal(data.views["x"][:], X)
    assert "__index_level_0__ index" in data.description
    assert "place" in data.description
    many = {f"text {i}": ["a"] * N for i in range(20)}
    data = load(write_parquet(tmp_path / "many.parquet", columns_of(X, **many)), on_disk=True)
    assert data.description.count("text ") == 8


def test_columns_of_a_parquet_file_can_be_selected(tmp_path, pyarrow, X, y):
    path = write_parquet(tmp_path / "x.parquet", columns_of(X, y=y, place=["here"] * N))
    data = load(f"{path}::c5,c2")
    np.testing.assert_array_equal(data.views["x"][:], X[:, [2, 5]])
    np.testing.assert_array_equal(data.y, y)
    assert load(f"{path}::c3").views["x"].shape == (N, 1)
    assert "no column c9; select among c0 double" in complaint(f"{path}::c1,c9")
    assert "the column place holds string" in complaint(f"{path}::place")


def test_a_square_parquet_file_can_be_a_kernel(tmp_path, pyarrow, kernels):
    path = write_parquet(tmp_path / "K.parquet", columns_of(kernels[0]))
    data = load(path, kernels=True)
    np.testing.assert_array_equal(data.kernels[0], kernels[0])
    # As a view it could be either, and is refused as its array is.
    with pytest.raises(ValueError, match="symmetric 240 x 240"):
        SimpleMKKM(3).fit(load(path).views["K"])


def test_a_parquet_file_without_features_says_what_it_holds(tmp_path, pyarrow, y):
    path = tmp_path / "x.parquet"
    text = write_parquet(path, {"place": ["here"] * N, "y": y})
    assert "only place string and y int64" in complaint(text, on_disk=True)
    empty = write_parquet(path, {"a": np.empty(0), "b": np.empty(0)})
    assert "x float64[0, 2]" in complaint(empty)
    assert "only nothing" in complaint(write_parquet(path, {}))
    names = ["a", "b", "a"]
    twice = pyarrow.Table.from_arrays([pyarrow.array([1.0, 2.0])] * 3, names=names)
    pyarrow.parquet.write_table(twice, path)
    assert "two columns are called a" in complaint(path)
    path.write_bytes(b"PAR1 but no more")
    assert "cannot be read" in complaint(path)


def test_a_row_group_with_nan_is_refused_by_view_and_sample(tmp_path, pyarrow, X):
    broken = columns_of(X)
    broken["c4"] = pyarrow.array(X[:, 4], mask=np.arange(N) == 137)
    good = load(write_parquet(tmp_path / "good.parquet", columns_of(X))).views["good"]
    bad = load(write_parquet(tmp_path / "bad.parquet", broken)).views["bad"]
    model = SimpleMKKM(3, approximation=Nystroem(n_components=40))
    with pytest.raises(ValueError, match=r"(?s)'bad'.*137"):
        model.fit({"good": good, "bad": bad})
    with pytest.raises(ValueError, match="'bad' has entries that are not finite: 1 NaN"):
        SimpleMKKM(3).fit({"good": good, "bad": bad})


def test_a_parquet_file_that_changes_while_in_use_is_named(tmp_path, pyarrow, X):
    path = write_parquet(tmp_path / "x.parquet", columns_of(X), compression="none")
    view = load(path).views["x"]
    view[:10]
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) - 4))
    with pytest.raises(OSError, match=r"x\.parquet: row 200 cannot be read"):
        view[200:]
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.parquet"):
        pickle.loads(pickle.dumps(view))[:10]


# --- HDF5 ----------------------------------------------------------------------------------------


def test_views_of_an_hdf5_file_on_disk_are_clustered_as_in_memory(tmp_path, h5py, X, y):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"] = X[:, :3]
        file.create_dataset("tiles/packed", data=X[:, 3:], chunks=(64, 2), compression="gzip")
        file.create_dataset("whole", data=np.rint(10 * X).astype(np.int16), chunks=(50, 7))
        file["y"] = y[:, None]
    data, memory = load(tmp_path / "x.h5", on_disk=True), load(tmp_path / "x.h5", on_disk=False)
    assert data.kernel_names == memory.kernel_names == ("rows", "tiles/packed", "whole")
    assert all(isinstance(view, h5py.Dataset) for view in data.views.values())
    assert all(isinstance(view, np.ndarray) for view in memory.views.values())
    np.testing.assert_array_equal(data.y, y)
    some = np.array([0, 1, 2, 100, 180, 239])
    for name, view in memory.views.items():
        assert data.views[name].shape == view.shape
        for rows in (slice(None), slice(13, 77), some):
            np.testing.assert_array_equal(data.views[name][rows], view[rows])
    # Rows first, as they come from the file: sums depend on the order in their last digit.
    views = {name: np.ascontiguousarray(view) for name, view in memory.views.items()}
    for approximation in (None, Nystroem(n_components=40)):
        model = SimpleMKKM(3, approximation=approximation, random_state=0)
        expected = SimpleMKKM(3, approximation=approximation, random_state=0).fit(views)
        same_fit(model.fit(data.views), expected)


def test_kernels_of_an_hdf5_file_on_disk_are_clustered_as_in_memory(tmp_path, h5py, kernels, y):
    with h5py.File(tmp_path / "K.h5", "w") as file:
        file["K"] = kernels
        file["y"] = y
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["first"], file["second"] = kernels
    expected = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(kernels)
    for name, square in (("K.h5", False), ("two.h5", True)):
        data = load(tmp_path / name, kernels=square, on_disk=True)
        assert data.n_samples == N
        assert isinstance(data.kernels if not square else data.kernels[1], h5py.Dataset)
        model = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(data.X)
        same_fit(model, expected)


def test_a_stack_on_disk_whose_kernels_are_not_first_is_refused_or_loaded(tmp_path, h5py, kernels):
    with h5py.File(tmp_path / "K.h5", "w") as file:
        file["K"] = np.moveaxis(kernels, 0, 2)
    assert "K float64[240, 240, 2]" in complaint(tmp_path / "K.h5", on_disk=True)
    np.testing.assert_array_equal(load(tmp_path / "K.h5").kernels, kernels)


def test_a_missing_name_in_a_large_hdf5_file_loads_none_of_it(tmp_path, h5py, X, monkeypatch):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = X
    read = []
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, key: read.append(key))
    assert "select among X float64[240, 7]" in complaint(f"{tmp_path}/x.h5::Z")
    assert not read


# --- memory maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32, np.float64])
def test_a_memory_map_of_any_type_is_not_converted_at_the_door(tmp_path, X, dtype):
    table = (10 * X).astype(dtype)
    np.save(tmp_path / "x.npy", table)
    view = load(tmp_path / "x.npy").views["x"]
    assert isinstance(view, np.memmap)
    assert view.dtype == dtype
    model = SimpleMKKM(3, approximation=Nystroem(n_components=40), random_state=0)
    expected = SimpleMKKM(3, approximation=Nystroem(n_components=40), random_state=0)
    same_fit(model.fit([view, view]), expected.fit([table, table]))


def test_a_memory_map_of_whole_numbers_can_be_a_kernel(tmp_path, kernels):
    whole = np.rint(1e6 * kernels).astype(np.int32)
    np.save(tmp_path / "K.npy", whole)
    data = load(tmp_path / "K.npy")
    assert isinstance(data.kernels, np.memmap)
    expected = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(whole.astype(float))
    same_fit(SimpleMKKM(3, kernels="precomputed", random_state=0).fit(data.kernels), expected)


def test_tiles_of_an_hdf5_file_are_known(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("X", data=np.ones((1200, 4)), chunks=(300, 4))
        file.create_dataset("y", data=np.ones(1200, int))
    view = load(tmp_path / "t.h5", on_disk=True).views["X"]
    assert view.chunks == (300, 4)
    assert LocalBlocks({"X": view})._height % 300 == 0
