"""What stays in its file is clustered as if it were in memory."""

import numpy as np
import pytest

from mkclust import SimpleMKKM
from mkclust.datasets import load
from mkclust.kernels import Nystroem

pytestmark = pytest.mark.slow

N = 240
RNG = np.random.default_rng(0)
X = 4 * RNG.normal(size=(3, 7))[np.arange(N) % 3] + RNG.normal(size=(N, 7))


def assert_same_fits(given, expected):
    for approximation in (None, Nystroem(n_components=40)):
        options = {"approximation": approximation, "random_state": 0}
        model, other = (
            SimpleMKKM(3, **options).fit(views) for views in (given, expected)
        )
        np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-10)
        np.testing.assert_array_equal(model.labels_, other.labels_)
        np.testing.assert_array_equal(model.predict(given), other.labels_)


def test_parquet_files_are_clustered_as_arrays(tmp_path):
    pq, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    views, given = {"left": X[:, :3], "right": X[:, 3:]}, {}
    for name, view in views.items():
        table = pyarrow.table({f"c{i}": column for i, column in enumerate(view.T)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=50)
        given[name] = load(tmp_path / f"{name}.parquet").views[name]
    assert_same_fits(given, views)


def test_hdf5_datasets_are_clustered_as_arrays(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["rows"] = X[:, :3]
        file.create_dataset("chunks", data=X[:, 3:], chunks=(64, 2), compression="gzip")
        file.create_dataset(
            "whole", data=np.rint(10 * X).astype(np.int16), chunks=(50, 7)
        )
    data, memory = (
        load(tmp_path / "x.h5", on_disk=True),
        load(tmp_path / "x.h5", on_disk=False),
    )
    assert all(isinstance(view, h5py.Dataset) for view in data.views.values())
    assert_same_fits(data.views, memory.views)


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float64])
def test_memory_maps_are_clustered_as_arrays(tmp_path, dtype):
    table = (10 * X).astype(dtype)
    np.save(tmp_path / "x.npy", table)
    view = load(tmp_path / "x.npy").views["x"]
    assert isinstance(view, np.memmap)
    assert_same_fits([view, view[:, :5]], [table, table[:, :5]])
