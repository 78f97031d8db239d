"""From a file to named arrays."""

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
import scipy.sparse

from mkclust.datasets import hdf5
from mkclust.datasets.base import (
    LABELS,
    Content,
    DatasetError,
    Tree,
    bytes_as_floats,
    check_room,
    inventory,
)
from mkclust.datasets.parquet import read_parquet
from mkclust.linalg.memory import available_bytes

# The numbers of MATLAB that need not be double or single.
MAT_NUMBERS = {"double", "logical"} | {f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)}
# How MATLAB marks packed parts, and how many times as large they are at most: a limit of deflate.
PACKED, MOST_PACKED = 15, 1032
# What scipy.sparse.save_npz writes for every format, in an archive that holds nothing else.
SPARSE_PARTS = {"format", "shape", "data"}


def read_file(
    path: Path,
    selection: frozenset[str],
    on_disk: bool | None = False,
    follow_links: bool = False,
) -> Content:
    """Read the selected variables (none: everything), the labels and the names of the views.

    Data sets of an HDF5 file stay on disk where `on_disk` is True, or None and they are large;
    other files that it leads to are read only where `follow_links` is True.
    """

    def keep(name: str) -> bool:
        inside = (f"{name}/", f"{name}_")
        is_selected = not selection or any(s == name or s.startswith(inside) for s in selection)
        return is_selected or name in (*LABELS, "names")

    reader = READERS[path.suffix.lower()]
    try:
        if reader is read_parquet:
            return read_parquet(path, selection)
        tree = reader(path, keep, on_disk, follow_links)
    except DatasetError:
        raise
    except Exception as error:
        # Damaged files raise nearly anything: zlib.error, BadZipFile, MemoryError, TypeError.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "check that it is complete, of the format of its suffix, and without objects"
        raise DatasetError(f"{path}: cannot be read ({reason}); {advice}") from error
    content = Content({}, {}, [], tree.matlab, tree.aside, tree.linked_files)
    missing = set(selection)
    for lineage, array in _leaves(tree.content):
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
        names = ", ".join(sorted(missing))
        try:
            content = read_file(path, frozenset(), on_disk=True, follow_links=follow_links)
        except DatasetError as error:
            # The rest of the file need not be sound.
            raise DatasetError(f"{path}: no {names} in it; select what is") from error
        arrays_held = inventory(content.arrays | content.labels)
        raise DatasetError(f"{path}: no {names} in it; select among {arrays_held}")
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
    path: Path, keep: Callable[[str], bool], on_disk: bool | None, follow_links: bool
) -> Tree:
    """Read an archive, or map a single array, so that large kernels stay on disk."""
    content = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(content, np.ndarray):
        return Tree({path.stem: content}, False)
    names, aside, total = [], [], 0
    with content:
        if SPARSE_PARTS.issubset(content.files):
            return Tree({path.stem: _read_sparse(path, content)}, False)
        for member in content.zip.infolist():
            name = member.filename.removesuffix(".npy")
            if not keep(name):
                continue
            n_bytes = _array_bytes(path, content.zip, member)
            if n_bytes is None:
                aside.append(f"{name} no array")
            else:
                names.append(name)
                total += n_bytes
        check_room(f"{path}: what it holds", total)
        if set(names) >= SPARSE_PARTS:
            matrix = scipy.sparse.load_npz(path).tocsr()
            return Tree({path.stem: hdf5.checked_sparse(matrix)}, False, tuple(aside))
        return Tree({name: content[name] for name in names}, False, tuple(aside))


def _read_sparse(path: Path, content: Any) -> Any:
    """Return the matrix that scipy.sparse.save_npz has stored, by rows."""
    total = sum(_array_bytes(path, content.zip, each) or 0 for each in content.zip.infolist())
    check_room(f"{path}: the sparse matrix in it", total)
    return hdf5.checked_sparse(scipy.sparse.csr_array(scipy.sparse.load_npz(path)))


def _array_bytes(path: Path, archive: ZipFile, member: ZipInfo) -> int | None:
    """Return what an array in an archive takes, by its header; None if it is not an array."""
    headers: dict[tuple[int, ...], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with archive.open(member) as file:
        start = file.read(len(np.lib.format.MAGIC_PREFIX) + 2)
        # Version 3 is that of records whose fields have names beyond Latin: no views.
        read_header = headers.get(tuple(start[-2:]))
        if not start.startswith(np.lib.format.MAGIC_PREFIX) or read_header is None:
            return None
        shape, _, dtype = read_header(file)
        size = member.file_size - file.tell()
    if dtype.hasobject:
        advice = "store numbers, or select other arrays by ::NAME"
        problem = f"{member.filename} in it holds Python objects, which are never loaded"
        raise DatasetError(f"{path}: {problem}; {advice}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > size:
        problem = f"{member.filename} in it should take {n_bytes} bytes and has {size}"
        raise DatasetError(f"{path}: {problem}; check that it is complete")
    return bytes_as_floats(shape, dtype)


def _read_mat(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None, follow_links: bool
) -> Tree:
    """Read a MATLAB file of any version; since 7.3 they are HDF5 files behind 512 bytes."""
    with path.open("rb") as file:
        head = file.read(512 + len(hdf5.SIGNATURE))
    if head.startswith(hdf5.SIGNATURE) or head.endswith(hdf5.SIGNATURE):
        return hdf5.read_hdf5(path, keep, on_disk, follow_links)
    import scipy.io  # here, since importing the library need not wait for it

    variables = [variable for variable in scipy.io.whosmat(path) if keep(variable[0])]
    # Whatever they are stored as, numbers become floats.
    dense = (math.prod(shape) for _, shape, kind in variables if kind in MAT_NUMBERS)
    check_room(f"{path}: what it holds", max(8 * sum(dense), _unpacked_bytes(path)))
    names = [name for name, *_ in variables]
    content = scipy.io.loadmat(path, variable_names=names)
    return Tree({name: _from_mat(content[name]) for name in names if name in content}, True)


def _unpacked_bytes(path: Path) -> int:
    """Return what the packed parts of a MATLAB file take, as far as it matters: they may be cells.

    Up to what memory holds, this is counted, a piece at a time.
    """
    free, n_bytes = available_bytes(), path.stat().st_size
    if free is None or 2 * n_bytes * MOST_PACKED <= free:
        return n_bytes
    with path.open("rb") as file:
        order = "<" if file.read(128).endswith(b"IM") else ">"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            end, unpack = file.tell() + size, zlib.decompressobj()
            while kind == PACKED and n_bytes <= free:
                if not (piece := file.read(min(end - file.tell(), 1 << 20))):
                    break
                while piece and n_bytes <= free:
                    n_bytes += len(unpack.decompress(piece, 1 << 24))
                    piece = unpack.unconsumed_tail
            file.seek(end)
    return n_bytes


def _from_mat(value: Any) -> Any:
    """Turn MATLAB's structs into dicts and its cells into lists."""
    if scipy.sparse.issparse(value):
        return hdf5.checked_sparse(value)
    if fields := value.dtype.names:
        records = [{name: _from_mat(r[name]) for name in fields} for r in value.ravel("F")]
        return records[0] if len(records) == 1 else records
    return (
        hdf5.as_cell([_from_mat(v) for v in value.ravel("F")]) if value.dtype == object else value
    )


READERS: dict[str, Callable[..., Any]] = {
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".mat": _read_mat,
    ".h5": hdf5.read_hdf5,
    ".hdf5": hdf5.read_hdf5,
    ".parquet": read_parquet,
}
