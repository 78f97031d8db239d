"""What stays in its file is clustered as if it were in memory."""

import numpy as np
import pytest

from mkclust import SimpleMKKM
from mkclust.datasets import load
from mkclust.kernels import Nystroem

pytestmark = pytest.mark.slow

N = 240
Y = np.arange(N) % 3


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return 4 * rng.normal(size=(3, 7))[Y] + rng.normal(size=(N, 7))


@pytest.fixture(scope="module")
def kernels(X):
    squared = np.square(X[:, None] - X)
    return np.exp(-np.array([squared[..., :3].sum(-1), squared[..., 3:].sum(-1)]) / 30)


def write_parquet(path, X, row_group_size=50):
    pq, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = pyarrow.table({f"c{i}": column for i, column in enumerate(X.T)})
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def same_fit(one, other):
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-10)
    np.testing.assert_array_equal(one.labels_, other.labels_)


def assert_same_fits(given, expected):
    for approximation in (None, Nystroem(n_components=40)):
        options = {"approximation": approximation, "random_state": 0}
        models = [SimpleMKKM(3, **options).fit(views) for views in (given, expected)]
        same_fit(*models)
        np.testing.assert_array_equal(models[0].predict(given), models[1].labels_)


def test_parquet_files_are_clustered_as_arrays(tmp_path, X):
    views = {"left": X[:, :3], "right": X[:, 3:]}
    paths = {n: write_parquet(tmp_path / f"{n}.parquet", view) for n, view in views.items()}
    assert_same_fits({name: load(path).views[name] for name, path in paths.items()}, views)


def test_hdf5_datasets_are_clustered_as_arrays(tmp_path, X):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"] = X[:, :3]
        file.create_dataset("chunks", data=X[:, 3:], chunks=(64, 2), compression="gzip")
        file.create_dataset("whole", data=np.rint(10 * X).astype(np.int16), chunks=(50, 7))
    data, memory = load(tmp_path / "x.h5", on_disk=True), load(tmp_path / "x.h5", on_disk=False)
    assert all(isinstance(view, h5py.Dataset) for view in data.views.values())
    assert_same_fits(data.views, memory.views)


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32, np.float64])
def test_memory_maps_are_clustered_as_arrays(tmp_path, X, dtype):
    table = (10 * X).astype(dtype)
    np.save(tmp_path / "x.npy", table)
    view = load(tmp_path / "x.npy").views["x"]
    assert isinstance(view, np.memmap)
    assert_same_fits([view, view[:, :5]], [table, table[:, :5]])


def test_kernels_in_files_are_clustered_as_arrays(tmp_path, kernels):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "K.h5", "w") as file:
        file["K"] = kernels
    np.save(tmp_path / "K.npy", kernels)
    expected = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(kernels)
    for name in ("K.h5", "K.npy"):
        held = load(tmp_path / name, on_disk=True).kernels
        same_fit(SimpleMKKM(3, kernels="precomputed", random_state=0).fit(held), expected)
