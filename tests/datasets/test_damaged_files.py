"""Files that lead elsewhere, claim more than they hold, or are damaged, are refused by a line."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from mkclust.datasets.on_disk import HDF5View

from mkclust.datasets import DatasetError, load

pytestmark = pytest.mark.slow

h5py = pytest.importorskip("h5py")

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
        file["group/X"] = X
    (tmp_path / "raw.bin").write_bytes(X.tobytes())
    return tmp_path


def complaint(target, **options):
    """Return the one line that loading the target raises."""
    with pytest.raises(DatasetError) as caught:
        load(target, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def virtual(file, name, source, dataset, shape=(N, 3)):
    layout = h5py.VirtualLayout(shape=shape, dtype="f8")
    layout[:] = h5py.VirtualSource(source, dataset, shape=shape)
    file.create_virtual_dataset(name, layout)


def external(file, name, raw, n_bytes=8 * 3 * N):
    file.create_dataset(name, shape=(N, 3), dtype="f8", external=[(raw, 0, n_bytes)])


def lead_elsewhere(file, kind):
    """Write a data set ``a`` whose numbers are in another file, in one of many ways."""
    if kind == "external link":
        file["a"] = h5py.ExternalLink("target.h5", "/X")
    elif kind == "absolute external link":
        file["a"] = h5py.ExternalLink(os.path.abspath("target.h5"), "/X")
    elif kind == "external group":
        file["a"] = h5py.ExternalLink("target.h5", "/group")
    elif kind == "link within a group":
        file.create_group("a")["b"] = h5py.ExternalLink("target.h5", "/X")
    elif kind == "soft link through an external link":
        file["#there"] = h5py.ExternalLink("target.h5", "/group")
        file["a"] = h5py.SoftLink("/#there/X")
    elif kind == "external storage":
        external(file, "a", "raw.bin")
    elif kind == "virtual data set":
        virtual(file, "a", "target.h5", "X")
    elif kind == "virtual data set of a link":
        file["#there"] = h5py.ExternalLink("target.h5", "/X")
        virtual(file, "a", ".", "#there")
    elif kind == "virtual data set of external storage":
        external(file, "#raw", "raw.bin")
        virtual(file, "a", ".", "#raw")
    elif kind == "reference to external storage":
        external(file, "#refs#/raw", "raw.bin")
        cells = file.create_dataset("a", shape=(1,), dtype=h5py.ref_dtype)
        cells[0] = file["#refs#/raw"].ref


ELSEWHERE = [
    "external link",
    "absolute external link",
    "external group",
    "link within a group",
    "soft link through an external link",
    "external storage",
    "virtual data set",
    "virtual data set of a link",
    "virtual data set of external storage",
    "reference to external storage",
]


@pytest.mark.parametrize("kind", ELSEWHERE)
@pytest.mark.parametrize("on_disk", [None, True])
def test_numbers_of_another_file_are_read_only_where_links_are_followed(folder, X, kind, on_disk):
    with h5py.File("own.h5", "w") as file:
        lead_elsewhere(file, kind)
    message = complaint("own.h5", on_disk=on_disk)
    target = "raw.bin" if "storage" in kind else "target.h5"
    assert message.startswith("own.h5: ")
    assert f"leads to another file, {folder / target}; pass follow_links=True" in message
    data = load("own.h5", on_disk=on_disk, follow_links=True)
    assert data.linked_files == (str(folder / target),)
    (view,) = data.views.values()
    assert isinstance(view, HDF5View if on_disk else np.ndarray)
    np.testing.assert_array_equal(np.asarray(view), X)


def test_links_of_a_matlab_file_are_not_followed_either(folder, X):
    with h5py.File("own.mat", "w", userblock_size=512) as file:
        file["a"] = h5py.ExternalLink("target.h5", "/X")
    assert "own.mat: a leads to another file" in complaint("own.mat")
    np.testing.assert_array_equal(load("own.mat", follow_links=True).views["a"], X.T)


def test_every_file_of_a_chain_of_links_is_listed(folder, X):
    with h5py.File("middle.h5", "w") as file:
        file["b"] = h5py.ExternalLink("target.h5", "/X")
        external(file, "c", "raw.bin")
    with h5py.File("own.h5", "w") as file:
        file["a"] = h5py.ExternalLink("middle.h5", "/b")
        virtual(file, "v", "middle.h5", "c")
    data = load("own.h5", follow_links=True)
    assert {Path(path).name for path in data.linked_files} == {"middle.h5", "target.h5", "raw.bin"}
    for view in data.views.values():
        np.testing.assert_array_equal(view, X)


def test_the_name_of_a_linked_file_is_relative_to_the_file_with_the_link(folder, X, monkeypatch):
    with h5py.File("own.h5", "w") as file:
        file["a"] = h5py.ExternalLink("target.h5", "/X")
        virtual(file, "v", "target.h5", "X")
    (folder / "deeper").mkdir()
    monkeypatch.chdir(folder / "deeper")
    data = load("../own.h5", follow_links=True)
    assert data.linked_files == (str(folder / "target.h5"),)
    np.testing.assert_array_equal(data.views["v"], X)


def test_links_within_a_file_need_no_permission(folder, X):
    with h5py.File("own.h5", "w") as file:
        file["group/X"] = X
        file["soft"] = h5py.SoftLink("/group/X")
        file["group/near"] = h5py.SoftLink("X")
        file["hard"] = file["group/X"]
        virtual(file, "virtual", ".", "group/X")
    data = load("own.h5")
    assert set(data.views) == {"group/X", "group/near", "soft", "hard", "virtual"}
    assert data.linked_files == ()
    for view in data.views.values():
        np.testing.assert_array_equal(view, X)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (h5py.SoftLink("/nowhere"), "b is a link to /nowhere: own.h5: nowhere is not there"),
        (h5py.SoftLink("/X/deeper"), "b is a link to /X/deeper: own.h5: X/deeper is not there"),
        (h5py.SoftLink("/b"), "16 links in a row"),
        (h5py.ExternalLink("none.h5", "/X"), "none.h5, which is not there"),
        (h5py.ExternalLink("target.h5", "/Z"), "Z is not there"),
        (h5py.ExternalLink("raw.bin", "/Z"), "raw.bin, which cannot be read as HDF5"),
        (h5py.ExternalLink("own.h5", "/b"), "16 links in a row"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(folder, X, link, words):
    with h5py.File("own.h5", "w") as file:
        file["X"] = X
        file["b"] = link
    message = complaint("own.h5", follow_links=True)
    assert message.startswith("own.h5: b ")
    assert words in message
    # What else is in the file can be read without it.
    np.testing.assert_array_equal(load("own.h5::X").views["X"], X)
    assert complaint("own.h5::Z") == "own.h5: no Z in it; select what is"


def test_a_group_or_cell_that_holds_itself_is_named(folder, X):
    with h5py.File("own.h5", "w") as file:
        file["group/X"] = X
        file["group/again"] = file["group"]
    assert "own.h5: group/again holds itself" in complaint("own.h5")
    with h5py.File("own.h5", "w") as file:
        cells = file.create_dataset("a", shape=(1,), dtype=h5py.ref_dtype)
        cells[0] = cells.ref
    assert "own.h5: a holds itself" in complaint("own.h5")


def test_a_data_set_that_is_put_together_from_itself_is_named(folder):
    with h5py.File("own.h5", "w") as file:
        virtual(file, "a", ".", "a")
    assert "own.h5: a is put together from itself" in complaint("own.h5")
    with h5py.File("own.h5", "w") as file:
        virtual(file, "a", ".", "b")
        virtual(file, "b", "own.h5", "a")
    assert "b is put together from itself" in complaint("own.h5::b", follow_links=True)


def test_zeros_never_stand_for_what_is_missing_elsewhere(folder):
    with h5py.File("own.h5", "w") as file:
        virtual(file, "a", "none.h5", "X")
    assert "none.h5, which is not there" in complaint("own.h5", follow_links=True)
    with h5py.File("own.h5", "w") as file:
        virtual(file, "a", "target.h5", "Z")
    assert "is put together from Z: " in complaint("own.h5", follow_links=True)
    with h5py.File("own.h5", "w") as file:
        external(file, "a", "raw.bin")
    os.truncate("raw.bin", 100)
    assert "raw.bin, which is too short for it" in complaint("own.h5", follow_links=True)


# --- claims --------------------------------------------------------------------------------------


def header(shape, descr="<f8"):
    file = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


def test_an_archive_that_claims_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "d.npz"
    for shape in ((10**7, 10**6), (50, 50)):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", header(shape) + bytes(800))
        message = complaint(path)
        assert f"X.npy in it should take {8 * shape[0] * shape[1]} bytes and has 800" in message


def test_an_archive_that_would_not_fit_is_refused_before_it_is_unpacked(tmp_path):
    path, shape = tmp_path / "d.npz", (10**9, 10**6)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header(shape) + bytes(800))
        archive.getinfo("X.npy").file_size = len(header(shape)) + 8 * shape[0] * shape[1]
    assert "what it holds would take 7,450,580.6 GiB of memory" in complaint(path)


def test_a_data_set_that_would_not_fit_is_refused_or_stays_on_disk(tmp_path):
    path, shape = tmp_path / "d.h5", (10**8, 10**6)
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=shape, dtype="f8", chunks=(1000, 1000))
    assert "d.h5: X would take 745,058.1 GiB of memory" in complaint(path, on_disk=False)
    assert load(path).views["X"].shape == shape


def test_a_sparse_matrix_that_would_not_fit_if_it_were_dense_is_a_view(tmp_path):
    matrix = scipy.sparse.csc_matrix(([1.0], ([3], [0])), shape=(10**6, 10**6))
    scipy.io.savemat(tmp_path / "d.mat", {"X": matrix})
    assert load(tmp_path / "d.mat").views["X"].nnz == 1


def test_a_sparse_archive_with_entries_outside_of_its_shape_is_refused(tmp_path):
    parts = {"indices": [0, 9], "indptr": [0, 1, 2], "format": b"csr", "shape": [2, 3]}
    np.savez(tmp_path / "d.npz", data=[1.0, 2.0], **parts)
    assert "d.npz: cannot be read" in complaint(tmp_path / "d.npz")


@pytest.mark.parametrize("row", [20, 2**40, -1])
def test_a_sparse_matrix_with_entries_outside_of_its_shape_is_refused(tmp_path, row):
    path = tmp_path / "d.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = np.uint64(N)
        group["data"], group["ir"] = [1.0, 2.0], np.array([3, row])
        group["jc"] = np.array([0, 1, 2])
    assert "d.mat: cannot be read" in complaint(path)


def test_what_is_no_array_in_an_archive_is_left_aside(tmp_path, X):
    path = tmp_path / "d.npz"
    np.savez(path, X=X)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "hello")
    data = load(path)
    assert list(data.views) == ["X"]
    assert "Left aside: README.txt no array." in data.description


@pytest.mark.parametrize("kind", ["", "::X"])
def test_an_empty_path_is_called_so(kind):
    assert "names no file" in complaint(kind)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "d.npz")
    assert "is not a regular file" in complaint(tmp_path / "d.npz")


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.999])
def test_a_truncated_parquet_file_is_refused(tmp_path, share, X):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({f"c{i}": X[:, i] for i in range(3)}), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "d.parquet: cannot be read" in complaint(path)


@pytest.mark.parametrize("kind", ["npz", "int8.npz", "mat", "cell.mat", "h5", "int8.h5"])
def test_an_array_that_is_larger_than_memory_is_refused_by_its_name(folder, monkeypatch, kind):
    path, dtype = f"bomb.{kind}", np.int8 if "int8" in kind else np.float64
    X = np.zeros((20_000_000 // np.dtype(dtype).itemsize // 10, 10), dtype)
    if kind.endswith("npz"):
        np.savez_compressed(path, X=X)
    elif kind.endswith("mat"):
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = X
        scipy.io.savemat(path, {"X": cell if "cell" in kind else X}, do_compression=True)
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("X", shape=X.shape, dtype=dtype, chunks=True)
    assert os.path.getsize(path) < 100_000
    free = 100_000 if "int8" in kind else 30_000
    (folder / "meminfo").write_text(f"MemAvailable: {free} kB\n")
    monkeypatch.setattr("mkclust.linalg.memory.MEMINFO", folder / "meminfo")
    message = complaint(path)
    assert message.startswith(path)
    assert "of memory" in message


def test_an_array_that_says_it_is_larger_than_its_file_is_refused(folder):
    with open("lying.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)}
        np.lib.format.write_array_header_1_0(file, header)
    assert complaint("lying.npy").startswith("lying.npy")
