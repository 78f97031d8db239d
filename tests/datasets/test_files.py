"""Files of every format give the same data; links and damaged files are refused by one
line."""

import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from mkclust import datasets
from mkclust.datasets import DatasetError
from mkclust.datasets.dataset import LABELS
from mkclust.datasets.digits import digit_tables

# A test knows whether it asked for views or for kernels; the type checker cannot.
load: Any = datasets.load

N = 12
SUFFIXES = (".npz", ".mat", "-v73.mat", ".h5")


def cell_of(*arrays):
    """Return a MATLAB cell array, a column as the field's files have it."""
    cell = np.empty((len(arrays), 1), dtype=object)
    cell[:, 0] = arrays
    return cell


def write_v73(path, variables):
    """Write what MATLAB's save -v7.3 does: reversed axes, cells as references, 512
    bytes ahead."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            write_v73_variable(file, name, value)
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def write_v73_variable(file, name, value):
    if scipy.sparse.issparse(value):
        matrix = value.tocsc()
        group = file.create_group(name)
        group.attrs["MATLAB_sparse"] = np.uint64(matrix.shape[0])
        group["data"], group["ir"], group["jc"] = (
            matrix.data,
            matrix.indices,
            matrix.indptr,
        )
        group.attrs["MATLAB_class"] = np.bytes_("double")
    elif value.dtype == object:
        items: list[Any] = []
        for item in value.ravel("F"):
            held = f"#refs#/{name}{len(items)}"
            write_v73_variable(file, held, item)
            items.append(file[held].ref)
        shape = value.shape[::-1]
        file.create_dataset(
            name, data=np.array(items, dtype=h5py.ref_dtype).reshape(shape)
        )
        file[name].attrs["MATLAB_class"] = np.bytes_("cell")
    else:
        file[name] = np.atleast_2d(value).T
        file[name].attrs["MATLAB_class"] = np.bytes_("double")


def write_h5(path, variables):
    with h5py.File(path, "w", track_order=True) as file:
        for name, value in variables.items():
            file[name] = value


def write(path, **variables):
    """Write the variables in the format that the name of the file tells."""
    name = str(path)
    if name.endswith("-v73.mat"):
        write_v73(path, variables)
    elif name.endswith(".mat"):
        scipy.io.savemat(path, variables)
    elif name.endswith(".npz"):
        np.savez(path, **variables)
    else:
        write_h5(path, variables)
    return path


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def views(rng):
    return {"second": rng.normal(size=(N, 4)), "first": rng.normal(size=(N, 3))}


@pytest.fixture
def kernels(rng):
    features = rng.normal(size=(3, N, 5))
    return features @ features.transpose(0, 2, 1)


@pytest.fixture
def y():
    return np.repeat([1, 2, 3], N // 3)


@pytest.mark.parametrize(("suffix", "label"), zip(SUFFIXES, LABELS, strict=True))
def test_views_and_labels_survive_a_round_trip(tmp_path, views, y, suffix, label):
    data = load(write(tmp_path / f"data{suffix}", **views, **{label: y}))
    # HDF5 without tracking, which is all MATLAB writes, has no order but the
    # alphabet's.
    expected = sorted(views) if suffix == "-v73.mat" else list(views)
    assert list(data.views) == list(data.kernel_names) == expected
    assert data.kernels is None
    for name, view in views.items():
        np.testing.assert_array_equal(data.views[name], view)
    np.testing.assert_array_equal(data.y, y)
    assert data.y.dtype == np.int64
    assert (data.n_samples, data.n_classes, data.X) == (N, 3, data.views)


@pytest.mark.parametrize("suffix", [".mat", "-v73.mat"])
def test_cells_of_a_cell_array_are_views_numbered_from_one(tmp_path, views, y, suffix):
    path = write(tmp_path / f"data{suffix}", X=cell_of(*views.values()), y=y)
    data = load(path)
    assert data.kernel_names == ("X_1", "X_2")
    for got, expected in zip(data.views.values(), views.values(), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(data.y, y)
    assert load(f"{path}::X").kernel_names == ("X_1", "X_2")
    assert load(f"{path}::X_2").kernel_names == ("X_2",)


def test_labels_are_never_views_even_if_they_look_like_one(tmp_path, views, y):
    data = load(
        write(tmp_path / "data.npz", **views, Y=np.eye(3)[y - 1], other=y[:, None])
    )
    assert (set(data.views), data.y) == (set(views), None)
    assert "Y" in data.description
    assert "other" in data.description


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_vector_of_many_values_is_no_labels_unless_it_is_asked_for(
    tmp_path, rng, views, suffix
):
    y = rng.normal(size=N)
    path = write(
        tmp_path / f"data{suffix}", **views, y=y, kind=np.repeat([1, 2], N // 2)
    )
    data = load(path)
    assert (set(data.views), data.y) == (set(views), None)
    assert "y float64" in data.description
    np.testing.assert_array_equal(load(path, labels="y").y, y)
    np.testing.assert_array_equal(
        load(path, labels="kind").y, np.repeat([1, 2], N // 2)
    )
    assert "no column class for the labels" in complaint(path, labels="class")
    if suffix == ".mat":
        assert list(load(f"{path}::second,y").views) == ["second", "y"]


def test_a_view_of_features_by_samples_is_transposed(tmp_path, views, y):
    turned = {name: view.T for name, view in views.items()}
    data = load(write(tmp_path / "data.npz", **turned, y=y))
    for name, view in views.items():
        np.testing.assert_array_equal(data.views[name], view)


@pytest.mark.parametrize("suffix", [".mat", "-v73.mat"])
def test_sparse_views_and_sparse_kernels_stay_sparse(tmp_path, rng, suffix):
    square = scipy.sparse.random(N, N, density=0.3, random_state=0, format="csc")
    path = write(tmp_path / f"data{suffix}", A=square, B=square.T.tocsc())
    data = load(path)
    assert data.views["A"].format == "csr"
    np.testing.assert_array_equal(data.views["A"].toarray(), square.toarray())
    kernels = load(path, kernels=True).kernels
    assert all(scipy.sparse.issparse(K) for K in kernels)
    np.testing.assert_array_equal(kernels[1].toarray(), square.toarray().T)


def test_a_file_of_scipy_is_one_sparse_view(tmp_path):
    matrix = scipy.sparse.random(N, 7, density=0.3, random_state=0, format="csc")
    scipy.sparse.save_npz(tmp_path / "words.npz", matrix)
    view = load(tmp_path / "words.npz").views["words"]
    assert view.format == "csr"
    np.testing.assert_array_equal(view.toarray(), matrix.toarray())


def test_structs_and_groups_are_walked_to_their_arrays(tmp_path, views, y):
    matlab = load(write(tmp_path / "data.mat", data={**views, "gnd": y}))
    nested = {
        **{f"data/{name}": view for name, view in views.items()},
        "meta/deep/y": y,
    }
    plain = load(write(tmp_path / "data.h5", **nested))
    for data in (matlab, plain):
        assert data.kernel_names == ("data/second", "data/first")
        np.testing.assert_array_equal(data.views["data/first"], views["first"])
        np.testing.assert_array_equal(data.y, y)
    assert load(f"{tmp_path}/data.h5::data/first").kernel_names == ("data/first",)
    assert load(f"{tmp_path}/data.h5::data").kernel_names == (
        "data/second",
        "data/first",
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [(np.uint8, np.float64), (np.float16, np.float32), (">f4", np.float32)],
)
def test_single_precision_is_kept_and_whole_numbers_become_double(
    tmp_path, given, expected
):
    table = np.arange(24).reshape(N, 2).astype(given)
    got = load(write(tmp_path / "data.npz", table=table)).views["table"]
    assert got.dtype == expected
    np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_axis_that_counts_the_kernels_is_found(tmp_path, kernels, y, suffix, axis):
    stored = np.moveaxis(kernels, 0, axis)
    data = load(
        write(tmp_path / f"data{suffix}", KH=stored, Y=y, numclass=np.array([[3.0]]))
    )
    assert data.views is None
    assert data.kernel_names == ("KH_1", "KH_2", "KH_3")
    np.testing.assert_array_equal(data.X, kernels)
    np.testing.assert_array_equal(data.y, y)
    if suffix.endswith("mat"):
        assert data.kernels.flags.c_contiguous


@pytest.mark.parametrize(
    ("suffix", "axis"), [(".mat", 2), ("-v73.mat", 2), (".npz", 0)]
)
def test_in_a_cube_the_usual_axis_of_the_program_counts_the_kernels(
    tmp_path, rng, suffix, axis
):
    features = rng.normal(size=(N, N, 5))
    cube = features @ features.transpose(0, 2, 1)
    stored = np.moveaxis(cube, 0, axis)
    data = load(write(tmp_path / f"data{suffix}", KH=stored))
    np.testing.assert_array_equal(data.X, cube)


def test_a_single_array_stays_on_disk_and_in_its_precision(tmp_path, kernels):
    for name, axis in (("first", 0), ("last", 2)):
        path = tmp_path / f"{name}.npy"
        np.save(path, np.moveaxis(kernels, 0, axis).astype(np.float32))
        got = load(path).kernels
        assert isinstance(got, np.memmap)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, kernels.astype(np.float32))


def test_square_arrays_are_kernels_only_where_the_caller_says_so(
    tmp_path, kernels, rng, y
):
    path = tmp_path / "data.npz"
    write(path, A=kernels[0], B=kernels[1], table=rng.normal(size=(N, 4)), y=y)
    assert list(load(path).views) == ["A", "B", "table"]
    data = load(path, kernels=True)
    assert data.kernel_names == ("A", "B")
    assert data.views is None
    np.testing.assert_array_equal(data.kernels, kernels[:2])


@pytest.mark.parametrize("labeled", [False, True])
def test_kernels_of_different_sizes_are_refused_unless_some_are_selected(
    tmp_path, kernels, y, labeled
):
    labels = {"y": y} if labeled else {}
    path = tmp_path / "data.npz"
    write(path, A=kernels[0], B=kernels[1], part=kernels[2][:9, :9], **labels)
    with pytest.raises(DatasetError, match=r"different sizes .*part float64\[9, 9\]"):
        load(path, kernels=True)
    assert load(f"{path}::A,B", kernels=True).kernel_names == ("A", "B")


def test_images_of_labeled_samples_are_not_taken_for_kernels(tmp_path, rng, y):
    path = write(tmp_path / "data.npz", images=rng.normal(size=(N, 8, 8)), y=y)
    with pytest.raises(DatasetError, match=r"images float64\[12, 8, 8\]"):
        load(path)


def complaint(target, **options):
    """Return the one line that loading the target raises."""
    with pytest.raises(DatasetError) as caught:
        load(target, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("suffix", [".npy", *SUFFIXES])
def test_a_truncated_file_is_refused(tmp_path, kernels, suffix):
    path = tmp_path / f"data{suffix}"
    np.save(path, kernels) if suffix == ".npy" else write(path, K=kernels)
    content = path.read_bytes()
    for length in (0, len(content) // 2):
        path.write_bytes(content[:length])
        assert str(path) in complaint(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickled_objects_are_never_loaded(tmp_path, suffix):
    path, objects = tmp_path / f"data{suffix}", np.array([{"a": 1}], dtype=object)
    with path.open("wb") as file:
        np.savez(file, X=objects) if suffix == ".npz" else np.save(file, objects)
    assert "objects" in complaint(path)
    path.write_bytes(pickle.dumps(objects))
    assert "cannot be read" in complaint(path)


def test_several_stacks_are_named_and_one_is_chosen_by_its_name(tmp_path, kernels):
    path = write(tmp_path / "data.npz", K_raw=kernels, K=2 * kernels)
    message = complaint(path)
    assert "K_raw float64[3, 12, 12] and K float64[3, 12, 12]" in message
    assert f"{path}::K_raw" in message
    np.testing.assert_array_equal(load(f"{path}:: K ").kernels, 2 * kernels)


def test_a_tie_between_numbers_of_rows_is_not_decided_by_chance(tmp_path, rng):
    path = write(
        tmp_path / "data.npz", A=rng.normal(size=(9, 3)), B=rng.normal(size=(8, 3))
    )
    assert "A float64[9, 3] and B float64[8, 3]" in complaint(path)
    assert load(f"{path}::B").n_samples == 8


@pytest.fixture
def X(tmp_path, monkeypatch):
    """A table in a file, to which other files in the current folder may lead."""
    X = np.random.default_rng(0).normal(size=(N, 3))
    monkeypatch.chdir(tmp_path)
    write_h5("target.h5", {"X": X})
    Path("raw.bin").write_bytes(X.tobytes())
    return X


def external_link(file):
    file["a"] = h5py.ExternalLink("target.h5", "/X")


def link_in_a_group(file):
    file.create_group("a")["b"] = h5py.ExternalLink("target.h5", "/X")


def external_storage(file):
    file.create_dataset(
        "a", shape=(N, 3), dtype="f8", external=[("raw.bin", 0, 24 * N)]
    )


def virtual_data_set(file):
    layout = h5py.VirtualLayout(shape=(N, 3), dtype="f8")
    layout[:] = h5py.VirtualSource("target.h5", "X", shape=(N, 3))
    file.create_virtual_dataset("a", layout)


ELSEWHERE = [external_link, link_in_a_group, external_storage, virtual_data_set]


@pytest.mark.parametrize("lead", ELSEWHERE)
@pytest.mark.parametrize("on_disk", [None, True])
def test_numbers_of_another_file_are_not_read(X, lead, on_disk):
    with h5py.File("own.h5", "w") as file:
        lead(file)
        file["X"] = X
    assert "own.h5: " in (message := complaint("own.h5", on_disk=on_disk))
    assert "link" in message
    np.testing.assert_array_equal(load("own.h5::X").views["X"], X)


def test_numbers_of_another_file_are_not_read_from_anndata_and_matlab_files(X):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(np.ones((3, 2))).write_h5ad("own.h5ad")
    with h5py.File("own.h5ad", "a") as file:
        del file["X"]
        external_link(file)
    assert "own.h5ad: a is a link" in complaint("own.h5ad")
    with h5py.File("own.mat", "w", userblock_size=512) as file:
        external_link(file)
    assert "own.mat: a is a link" in complaint("own.mat")


def test_links_within_a_file_are_read(X):
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
    parts = {
        "indices": [0, row],
        "indptr": [0, 1, 2],
        "format": b"csr",
        "shape": [2, 3],
    }
    np.savez(tmp_path / "d.npz", data=[1.0, 2.0], **parts)
    assert "d.npz: cannot be read" in complaint(tmp_path / "d.npz")


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_an_array_that_is_larger_than_memory_is_refused_by_its_name(
    tmp_path, monkeypatch, kind
):
    X, path = np.zeros((250_000, 10)), tmp_path / f"bomb.{kind}"
    if kind == "npz":
        np.savez_compressed(path, X=X)
    else:
        scipy.io.savemat(path, {"X": X}, do_compression=True)
    assert path.stat().st_size < 100_000
    (tmp_path / "meminfo").write_text("MemAvailable: 30000 kB\n")
    monkeypatch.setattr("mkclust.linalg.memory.MEMINFO", tmp_path / "meminfo")
    assert "of memory" in complaint(path)


def test_what_does_not_fit_into_memory_stays_on_disk_or_sparse(tmp_path):
    shape = (10**8, 10**6)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", shape=shape, dtype="f8", chunks=(1000, 1000))
    assert "of memory" in complaint(tmp_path / "d.h5", on_disk=False)
    assert load(tmp_path / "d.h5").views["X"].shape == shape
    matrix = scipy.sparse.csc_matrix(([1.0], ([3], [0])), shape=(10**6, 10**6))
    scipy.io.savemat(tmp_path / "d.mat", {"X": matrix})
    assert load(tmp_path / "d.mat").views["X"].nnz == 1


def test_the_tables_of_the_demo_are_of_the_same_samples_in_different_orders():
    tables, digits = digit_tables()
    assert len({tuple(table.index) for table in tables.values()}) == len(tables) == 4
    images = load("digits").views["pixels"].reshape(-1, 8, 8)
    np.testing.assert_array_equal(digits, load("digits").y)
    for axis, name in ((1, "columns"), (2, "rows")):
        np.testing.assert_allclose(
            tables[name].loc[digits.index], images.sum(axis=axis)
        )
