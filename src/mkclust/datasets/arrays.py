"""Named arrays in NumPy, MATLAB and HDF5 files."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.datasets.dataset import LABELS, DatasetError, are_labels, check_memory
from mkclust.text import join_words

# Data sets of an HDF5 file, and parquet files, above this size stay on disk by default.
LARGE_BYTES = 1 << 30
# The first bytes of an HDF5 file; in a MATLAB file of version 7.3 they follow 512
# others.
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# The arrays by which scipy.sparse.save_npz stores any matrix.
SPARSE_PARTS = {"format", "shape", "data"}


@dataclass(frozen=True)
class Content:
    """Arrays and labels of a file by name, and whether axes are in MATLAB's order."""

    matlab: bool = False
    arrays: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Any] = field(default_factory=dict)


def read_arrays(
    path: Path,
    selection: frozenset[str],
    on_disk: bool | None,
    labels: str | None = None,
) -> Content:
    """Read the selected variables, or all, and the labels."""
    label_names = {*LABELS, labels or "y"}

    def keep(name: str) -> bool:
        """Return whether a variable is to be read."""
        inside = (f"{name}/", f"{name}_")
        is_selected = any(s == name or s.startswith(inside) for s in selection)
        return is_selected or not selection or name in label_names

    tree, matlab = READERS[path.suffix.lower()](path, keep, on_disk)
    content = Content(matlab)
    unknown = set(selection)
    for lineage, array in _leaves(tree):
        unknown -= set(lineage)
        is_label = any(
            name in label_names or name.rpartition("/")[2] in LABELS for name in lineage
        )
        is_selected = bool(selection.intersection(lineage))
        if is_label and not (
            is_selected and labels is None and _has_many_values(array)
        ):
            content.labels[lineage[-1]] = array
        elif lineage[-1] in content.arrays:
            raise DatasetError(
                f"{path}: two arrays would be called {lineage[-1]}; rename one"
            )
        elif not selection or is_selected:
            content.arrays[lineage[-1]] = array
    if unknown:
        held = read_arrays(path, frozenset(), on_disk=True)
        known = inventory(held.arrays | held.labels)
        raise DatasetError(
            f"{path}: no {', '.join(sorted(unknown))}; select among {known}"
        )
    return content


def _has_many_values(array: Any) -> bool:
    """Return whether an array is a column of numbers, too many to be labels."""
    if scipy.sparse.issparse(array) or array.dtype.kind not in "iuf":
        return False
    return max(array.shape, default=0) == array.size and not are_labels(np.ravel(array))


def inventory(arrays: dict[str, Any]) -> str:
    """Return the first arrays with their types and shapes."""
    return join_words(
        [f"{n} {a.dtype.name}{list(a.shape)}" for n, a in arrays.items()], 8
    )


def is_hdf5(array: Any) -> bool:
    """Return whether something is a data set of HDF5, without importing h5py."""
    return type(array).__module__.split(".")[0] == "h5py"


def _leaves(
    tree: Any, lineage: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the arrays in groups and cells, each with the names that lead to it."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            name = "/".join([*lineage[-1:], key])
            yield from _leaves(value, (*lineage, name))
    elif isinstance(tree, list):
        for i, value in enumerate(tree, start=1):
            yield from _leaves(value, (*lineage, f"{lineage[-1]}_{i}"))
    else:
        yield lineage, tree


def _read_numpy(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[Any, bool]:
    """Read a ``.npy`` or ``.npz`` file, which must not hold objects."""
    content = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(content, np.ndarray):
        return {path.stem: content}, False
    with content:
        members = {
            each.filename.removesuffix(".npy"): each for each in content.zip.infolist()
        }
        names = [
            name for name in members if keep(name) or members.keys() >= SPARSE_PARTS
        ]
        check_memory(path, sum(members[name].file_size for name in names))
        if members.keys() >= SPARSE_PARTS:
            matrix = scipy.sparse.csr_array(scipy.sparse.load_npz(path))
            return {path.stem: _checked(matrix)}, False
        arrays = {name: content[name] for name in names}
        return {n: a for n, a in arrays.items() if isinstance(a, np.ndarray)}, False


def _read_mat(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[Any, bool]:
    """Read a MATLAB file of version 5, or of version 7.3, which is HDF5."""
    with path.open("rb") as file:
        head = file.read(512 + len(HDF5_SIGNATURE))
    if head.startswith(HDF5_SIGNATURE) or head.endswith(HDF5_SIGNATURE):
        return _read_hdf5(path, keep, on_disk)
    import scipy.io  # takes longer to import than the rest of this package

    found = [variable for variable in scipy.io.whosmat(path) if keep(variable[0])]
    n_dense = sum(math.prod(shape) for _, shape, kind in found if kind != "sparse")
    check_memory(path, max(8 * n_dense, path.stat().st_size))
    variables = [name for name, *_ in found]
    content = scipy.io.loadmat(path, variable_names=variables)
    return {
        name: _from_mat(content[name]) for name in variables if name in content
    }, True


def _from_mat(value: Any) -> Any:
    """Return a MATLAB value as an array, a dict of a struct or a list of a cell."""
    if scipy.sparse.issparse(value):
        return _checked(value)
    fields = value.dtype.names
    if fields:
        records = [
            {name: _from_mat(r[name]) for name in fields} for r in value.ravel("F")
        ]
        if len(records) == 1:
            return records[0]
        return records
    if value.dtype == object:
        return _as_cell([_from_mat(v) for v in value.ravel("F")])
    return value


def _as_cell(items: list[Any]) -> Any:
    if all(isinstance(item, np.ndarray) and item.dtype.kind == "U" for item in items):
        return np.array(["".join(item.flat) for item in items], dtype=str)
    return items


def _checked(matrix: Any) -> Any:
    """Return a sparse matrix whose indices are within its shape, or refuse it."""
    matrix.check_format(full_check=True)
    return matrix


def _read_hdf5(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[Any, bool]:
    """Read an HDF5 file; what MATLAB wrote is loaded, since its axes are reversed."""
    import h5py

    with h5py.File(path, "r") as file:
        # MATLAB keeps the contents of its cells in groups named #...#.
        names = [name for name in file if keep(name) and not name.startswith("#")]
        nodes = {name: open_node(path, file, name) for name in names}
        by_matlab = any("MATLAB_class" in node.attrs for node in nodes.values())
        matlab = file.userblock_size == 512 or by_matlab
        if matlab:
            on_disk = False
        tree = {
            name: _from_hdf5(path, node, matlab, on_disk)
            for name, node in nodes.items()
        }
        return tree, matlab


def open_node(path: Path, group: Any, name: str) -> Any:
    """Return a group or data set, refusing numbers of another file of the user."""
    node = group[name]
    is_elsewhere = node.file.filename != group.file.filename
    if (
        is_elsewhere
        or getattr(node, "external", None)
        or getattr(node, "is_virtual", False)
    ):
        raise DatasetError(
            f"{path}: {name} is a link to another file or data set; store the numbers "
            "in the file itself, or give the file that holds them"
        )
    return node


def _from_hdf5(path: Path, node: Any, matlab: bool, on_disk: bool | None) -> Any:
    """Return a node of HDF5 as an array, a dict of a group or a list of a cell."""
    import h5py

    if "MATLAB_sparse" in node.attrs:
        parts: Any = [
            np.ravel(node[part]) if part in node else []
            for part in ("data", "ir", "jc")
        ]
        shape = (int(node.attrs["MATLAB_sparse"]), len(parts[-1]) - 1)
        return _checked(scipy.sparse.csc_array(tuple(parts), shape=shape))
    if isinstance(node, h5py.Group):
        items = {name: open_node(path, node, name) for name in node}
        return {n: _from_hdf5(path, each, matlab, on_disk) for n, each in items.items()}
    if getattr(node, "shape", None) is None or "MATLAB_empty" in node.attrs:
        return np.empty(0)
    is_label = (node.name or "").rpartition("/")[2] in LABELS
    may_stay = not is_label and node.ndim == 2 and node.dtype.kind in "biuf"
    if may_stay and (on_disk or (on_disk is None and node.nbytes > LARGE_BYTES)):
        # From a file of its own, which stays open.
        return h5py.File(path, "r")[node.name]
    check_memory(f"{path}: {node.name}", node.nbytes)
    if h5py.check_ref_dtype(node.dtype):
        cells = [open_node(path, node.file, ref) for ref in node[()].flat if ref]
        return _as_cell([_from_hdf5(path, cell, matlab, on_disk) for cell in cells])
    if h5py.check_string_dtype(node.dtype):
        return np.asarray(node.asstr()[()], dtype=str)
    # MATLAB stores columns first, so that HDF5 shows its arrays with the axes reversed.
    array = np.asarray(node[()])
    if matlab:
        array = array.T
    if node.attrs.get("MATLAB_class") == b"char":
        return np.array(["".join(map(chr, row)) for row in array], dtype=str)
    return array


# The reader of each suffix.
READERS: dict[str, Callable[..., Any]] = {
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".mat": _read_mat,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
