"""From a file to named arrays."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from mkclust.datasets.base import LABELS, Content, DatasetError, inventory
from mkclust.datasets.parquet import read_parquet

# Data sets of an HDF5 file that take more than this are left on disk, unless told otherwise.
LARGE_BYTES = 1 << 30
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_file(path: Path, selection: frozenset[str], on_disk: bool | None = False) -> Content:
    """Read the selected variables (none: everything), the labels and the names of the views.

    Data sets of an HDF5 file stay on disk where `on_disk` is True, or None and they are large.
    """

    def keep(name: str) -> bool:
        inside = (f"{name}/", f"{name}_")
        wanted = not selection or any(s == name or s.startswith(inside) for s in selection)
        return wanted or name in (*LABELS, "names")

    reader = READERS[path.suffix.lower()]
    try:
        if reader is read_parquet:
            return read_parquet(path, selection)
        tree, matlab = reader(path, keep, on_disk)
    except DatasetError:
        raise
    except Exception as error:
        # Damaged files raise nearly anything: zlib.error, BadZipFile, MemoryError, TypeError.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "check that it is complete, of the format of its suffix, and without objects"
        raise DatasetError(f"{path}: cannot be read ({reason}); {advice}") from error
    content = Content({}, {}, [], matlab)
    missing = set(selection)
    for lineage, array in _leaves(tree):
        missing -= set(lineage)
        if any(name.rpartition("/")[2] in LABELS for name in lineage):
            content.labels[lineage[-1]] = array
        elif lineage == ("names",) and array.dtype.kind == "U":
            content.names.extend(str(name).strip() for name in array.flat)
        elif lineage[-1] in content.arrays:
            raise DatasetError(f"{path}: two arrays would be called {lineage[-1]}; rename one")
        elif not selection or selection.intersection(lineage):
            content.arrays[lineage[-1]] = array
    if missing:
        whole = read_file(path, frozenset(), on_disk=True)
        held = inventory(whole.arrays | whole.labels)
        raise DatasetError(f"{path}: no {', '.join(sorted(missing))} in it; select among {held}")
    return content


def _leaves(tree: Any, lineage: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk groups (dict) and cells (list) to the arrays, each with the names down to its own."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, (*lineage, f"{lineage[-1]}/{key}" if lineage else key))
    elif isinstance(tree, list):
        for i, value in enumerate(tree, start=1):
            yield from _leaves(value, (*lineage, f"{lineage[-1]}_{i}"))
    else:
        yield lineage, tree


def _read_numpy(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[dict[str, Any], bool]:
    """Read an archive, or map a single array, so that large kernels stay on disk."""
    content = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(content, np.ndarray):
        return {path.stem: content}, False
    with content:
        return {name: content[name] for name in content.files if keep(name)}, False


def _read_mat(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[dict[str, Any], bool]:
    """Read a MATLAB file of any version; since 7.3 they are HDF5 files behind 512 bytes."""
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5_SIGNATURE))
    if head.startswith(_HDF5_SIGNATURE) or head.endswith(_HDF5_SIGNATURE):
        return _read_hdf5(path, keep, on_disk)
    wanted = [name for name, *_ in scipy.io.whosmat(path) if keep(name)]
    content = scipy.io.loadmat(path, variable_names=wanted)
    return {name: _from_mat(content[name]) for name in wanted if name in content}, True


def _from_mat(value: Any) -> Any:
    """Turn MATLAB's structs into dicts and its cells into lists."""
    if scipy.sparse.issparse(value):
        return value
    if fields := value.dtype.names:
        records = [{name: _from_mat(r[name]) for name in fields} for r in value.ravel("F")]
        return records[0] if len(records) == 1 else records
    return _cell([_from_mat(v) for v in value.ravel("F")]) if value.dtype == object else value


def _cell(items: list[Any]) -> Any:
    """Return the items of a cell array; those of a cell array of strings as one array."""
    if all(isinstance(item, np.ndarray) and item.dtype.kind == "U" for item in items):
        return np.array(["".join(item.flat) for item in items], dtype=str)
    return items


def _read_hdf5(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None
) -> tuple[dict[str, Any], bool]:
    """Read an HDF5 file, by MATLAB or not; only what MATLAB did not write may stay there."""
    try:
        import h5py
    except ImportError as error:
        advice = 'reading it needs h5py: pip install "mkclust[hdf5]"'
        raise DatasetError(f"{path}: is an HDF5 file; {advice}") from error
    with h5py.File(path, "r") as file:
        matlab = file.userblock_size == 512 or any("MATLAB_class" in v.attrs for v in file.values())
        # MATLAB keeps the contents of its cells, and its own notes, in groups named #...#.
        names = [name for name in file if keep(name) and not name.startswith("#")]
        leave = False if matlab else on_disk
        return {name: _from_hdf5(file[name], matlab, leave) for name in names}, matlab


def _from_hdf5(node: Any, matlab: bool, on_disk: bool | None) -> Any:
    """Turn groups into dicts, MATLAB's cells into lists and data sets into arrays, if read."""
    import h5py

    if "MATLAB_sparse" in node.attrs:
        parts = [node[part][()] if part in node else np.empty(0) for part in ("data", "ir", "jc")]
        shape = (int(node.attrs["MATLAB_sparse"]), len(parts[-1]) - 1)
        return scipy.sparse.csc_array(tuple(parts), shape=shape)
    if isinstance(node, h5py.Group):
        return {name: _from_hdf5(child, matlab, on_disk) for name, child in node.items()}
    if getattr(node, "shape", None) is None or "MATLAB_empty" in node.attrs:
        return np.empty(0)
    if h5py.check_ref_dtype(node.dtype):
        return _cell([_from_hdf5(node.file[ref], matlab, on_disk) for ref in node[()].flat if ref])
    if h5py.check_string_dtype(node.dtype):
        return np.asarray(node.asstr()[()], dtype=str)
    if _stays(node, on_disk):
        # Opened anew, for the file that is being walked will be closed; what is open keeps its own.
        return h5py.File(node.file.filename, "r")[node.name]
    # MATLAB stores columns first, so that HDF5 shows its arrays with the axes reversed.
    array = np.asarray(node[()].T if matlab else node[()])
    if node.attrs.get("MATLAB_class") == b"char":
        return np.array(["".join(map(chr, row)) for row in array], dtype=str)
    return array


def _stays(node: Any, on_disk: bool | None) -> bool:
    """Return whether a data set stays on disk: features or kernels, and large or told so."""
    label = node.name.rpartition("/")[2] in LABELS
    if on_disk is False or label or node.ndim not in (2, 3) or node.dtype.kind not in "biuf":
        return False
    return on_disk is True or node.size * node.dtype.itemsize > LARGE_BYTES


READERS: dict[str, Callable[..., Any]] = {
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".mat": _read_mat,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    ".parquet": read_parquet,
}
