"""Files that lead elsewhere, do not fit into memory, or are damaged are refused by one line."""

import os

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from mkclust.datasets import DatasetError, load

N = 20


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 3))


@pytest.fixture
def folder(tmp_path, X, monkeypatch):
    """A folder to work in; in it a file whose numbers others may lead to."""
    monkeypatch.chdir(tmp_path)
    with h5py.File("target.h5", "w") as file:
        file["X"] = X
    (tmp_path / "raw.bin").write_bytes(X.tobytes())
    return tmp_path


def complaint(target, **options):
    """Return the one line that loading the target raises."""
    with pytest.raises(DatasetError) as caught:
        load(target, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def external_link(file):
    file["a"] = h5py.ExternalLink("target.h5", "/X")


def link_in_a_group(file):
    file.create_group("a")["b"] = h5py.ExternalLink("target.h5", "/X")


def external_storage(file):
    file.create_dataset("a", shape=(N, 3), dtype="f8", external=[("raw.bin", 0, 24 * N)])


def virtual_data_set(file):
    layout = h5py.VirtualLayout(shape=(N, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("target.h5", "X", shape=(N, 3))
    file.create_virtual_dataset("a", layout)


ELSEWHERE = [external_link, link_in_a_group, external_storage, virtual_data_set]


@pytest.mark.parametrize("lead", ELSEWHERE)
@pytest.mark.parametrize("on_disk", [None, True])
def test_numbers_of_another_file_are_not_read(folder, X, lead, on_disk):
    with h5py.File("own.h5", "w") as file:
        lead(file)
        file["X"] = X
    assert "own.h5: " in (message := complaint("own.h5", on_disk=on_disk))
    assert "link" in message
    np.testing.assert_array_equal(load("own.h5::X").views["X"], X)


def test_numbers_of_another_file_are_not_read_from_anndata_and_matlab_files(folder):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(np.ones((3, 2))).write_h5ad("own.h5ad")
    with h5py.File("own.h5ad", "a") as file:
        del file["X"]
        external_link(file)
    assert "own.h5ad: a is a link" in complaint("own.h5ad")
    with h5py.File("own.mat", "w", userblock_size=512) as file:
        external_link(file)
    assert "own.mat: a is a link" in complaint("own.mat")


def test_links_within_a_file_are_read(folder, X):
    with h5py.File("own.h5", "w") as file:
        file["group/X"] = X
        file["soft"], file["hard"] = h5py.SoftLink("/group/X"), file["group/X"]
    assert set(load("own.h5").views) == {"group/X", "soft", "hard"}
    with h5py.File("own.h5", "a") as file:
        file["group/again"] = file["group"]
        file["lost"] = h5py.SoftLink("/nowhere")
    for selected in ("::lost", "::group"):
        assert complaint(f"own.h5{selected}").startswith("own.h5: ")


@pytest.mark.parametrize("row", [20, -1])
def test_a_sparse_matrix_with_entries_outside_of_its_shape_is_refused(tmp_path, row):
    with h5py.File(tmp_path / "d.mat", "w", userblock_size=512) as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = np.uint64(N)
        group["data"], group["ir"] = [1.0, 2.0], np.array([3, row])
        group["jc"] = np.array([0, 1, 2])
    assert "d.mat: cannot be read" in complaint(tmp_path / "d.mat")
    parts = {"indices": [0, row], "indptr": [0, 1, 2], "format": b"csr", "shape": [2, 3]}
    np.savez(tmp_path / "d.npz", data=[1.0, 2.0], **parts)
    assert "d.npz: cannot be read" in complaint(tmp_path / "d.npz")


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_an_array_that_is_larger_than_memory_is_refused_by_its_name(folder, monkeypatch, kind):
    X = np.zeros((250_000, 10))
    if kind == "npz":
        np.savez_compressed("bomb.npz", X=X)
    else:
        scipy.io.savemat("bomb.mat", {"X": X}, do_compression=True)
    assert os.path.getsize(f"bomb.{kind}") < 100_000
    (folder / "meminfo").write_text("MemAvailable: 30000 kB\n")
    monkeypatch.setattr("mkclust.linalg.memory.MEMINFO", folder / "meminfo")
    assert "of memory" in complaint(f"bomb.{kind}")


def test_what_does_not_fit_into_memory_stays_on_disk_or_sparse(tmp_path):
    shape = (10**8, 10**6)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", shape=shape, dtype="f8", chunks=(1000, 1000))
    assert "of memory" in complaint(tmp_path / "d.h5", on_disk=False)
    assert load(tmp_path / "d.h5").views["X"].shape == shape
    matrix = scipy.sparse.csc_matrix(([1.0], ([3], [0])), shape=(10**6, 10**6))
    scipy.io.savemat(tmp_path / "d.mat", {"X": matrix})
    assert load(tmp_path / "d.mat").views["X"].nnz == 1
