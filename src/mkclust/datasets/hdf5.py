"""HDF5 files, by MATLAB or not; they may lead to other files, which are read only where asked."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.datasets.base import LABELS, DatasetError, Tree, bytes_as_floats, check_room

# Data sets of an HDF5 file that take more than this are left on disk, unless told otherwise.
LARGE_BYTES = 1 << 30
# So many links may lead from one to the next, as HDF5 itself allows.
MAX_LINKS = 16
SIGNATURE = b"\x89HDF\r\n\x1a\n"
_ADVICE = "repair the file, or select what else is in it by ::NAME"


def read_hdf5(
    path: Path, keep: Callable[[str], bool], on_disk: bool | None, follow_links: bool
) -> Tree:
    """Read an HDF5 file, by MATLAB or not; only what MATLAB did not write may stay there."""
    try:
        import h5py
    except ImportError as error:
        advice = 'reading it needs h5py: pip install "mkclust[hdf5]"'
        raise DatasetError(f"{path}: is an HDF5 file; {advice}") from error
    with h5py.File(path, "r") as file, ExitStack() as others:
        hard_links = [n for n in file if isinstance(file.get(n, getlink=True), h5py.HardLink)]
        by_matlab = any("MATLAB_class" in file[name].attrs for name in hard_links)
        matlab = file.userblock_size == 512 or by_matlab
        # MATLAB keeps the contents of its cells, and its own notes, in groups named #...#.
        names = [name for name in file if keep(name) and not name.startswith("#")]
        reader = _Reader(others, matlab, False if matlab else on_disk, follow_links)
        content = {name: reader.read(reader.open(file, name)) for name in names}
        return Tree(content, matlab, linked_files=tuple(reader.linked_files))


class _Reader:
    """Read one HDF5 file, and those that it leads to where links are followed.

    HDF5 goes from file to file by itself, and unseen: so every link is resolved here.
    """

    def __init__(
        self,
        others: ExitStack,
        matlab: bool,
        on_disk: bool | None,
        follow_links: bool,
    ):
        self.others = others
        self.matlab, self.on_disk = matlab, on_disk
        self.follow_links = follow_links
        self.linked_files: dict[str, Any] = {}  # by absolute path, None where it is not HDF5
        self._checked: set[Any] = set()

    def open(self, group: Any, path: str, n_links: int = 0) -> Any:
        """Return what a path within a file leads to, from link to link."""
        node = group.file["/"] if path.startswith("/") else group
        for name in path.split("/"):
            if name not in ("", "."):
                node = self._step(node, name, n_links)
        return node

    def _step(self, group: Any, name: str, n_links: int) -> Any:
        """Return what stands under a name in a group."""
        import h5py

        place = _place(group, name)
        link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
        if link is None:
            raise DatasetError(f"{place} is not there; {_ADVICE}")
        if isinstance(link, h5py.HardLink):
            return group[name]
        if n_links >= MAX_LINKS:
            raise DatasetError(f"{place} is the last of {MAX_LINKS} links in a row; {_ADVICE}")
        start, way = group, f"is a link to {link.path}"
        if isinstance(link, h5py.ExternalLink):
            start, way = self._other(place, group.file, link.filename), f"{way} elsewhere"
        return self._arrive(place, way, start, link.path, n_links + 1)

    def _arrive(self, place: str, way: str, start: Any, path: str, n_links: int) -> Any:
        """Return what a path leads to, naming also what led there where that is nothing."""
        try:
            return self.open(start, path, n_links)
        except DatasetError as error:
            # Of links in a row the first is what the user knows, the last what is wrong.
            if n_links > 1:
                raise
            raise DatasetError(f"{place} {way}: {error}") from error

    def _other(self, place: str, file: Any, name: str) -> Any:
        """Return another file that one leads to, opened; its name is relative to the first."""
        import h5py

        folder = os.path.dirname(os.path.abspath(file.filename))
        path = self._follow(place, os.path.join(folder, name))
        if self.linked_files[path] is None:
            try:
                self.linked_files[path] = self.others.enter_context(h5py.File(path, "r"))
            except OSError as error:
                reason = f"{path}, which cannot be read as HDF5 ({error})"
                raise DatasetError(f"{place} leads to {reason}; {_ADVICE}") from error
        return self.linked_files[path]

    def _follow(self, place: str, name: str) -> str:
        """Return the path of a further file, if such files are to be read and it is there."""
        path = os.path.abspath(name)
        if not self.follow_links:
            advice = "pass follow_links=True, or --follow-links, if you trust the file"
            raise DatasetError(f"{place} leads to another file, {path}; {advice}")
        if not os.path.isfile(path):
            raise DatasetError(f"{place} leads to {path}, which is not there; {_ADVICE}")
        self.linked_files.setdefault(path, None)
        return path

    def _check_storage(self, dataset: Any, above: tuple[Any, ...] = ()) -> None:
        """Refuse a data set whose numbers come from elsewhere, unless links are followed.

        HDF5 takes zeros for what is missing there, and crashes on what is made of itself: refused.
        """
        place = _place(dataset.file, dataset.name)
        if dataset in above:
            raise DatasetError(f"{place} is put together from itself; {_ADVICE}")
        if dataset in self._checked:
            return
        bytes_left = dataset.size * dataset.dtype.itemsize
        for name, offset, size in dataset.external or ():
            path = self._follow(place, name)
            if os.path.getsize(path) < offset + min(size, bytes_left):
                advice = "check that both files are complete"
                raise DatasetError(f"{place} leads to {path}, which is too short for it; {advice}")
            bytes_left -= min(size, bytes_left)
        for source in dataset.virtual_sources() if dataset.is_virtual else ():
            inside = source.file_name == "."
            file = dataset.file if inside else self._other(place, dataset.file, source.file_name)
            way = f"is put together from {source.dset_name}"
            part = self._arrive(place, way, file, f"/{source.dset_name}", 1)
            self._check_storage(part, (*above, dataset))
        self._checked.add(dataset)

    def read(self, node: Any, above: tuple[Any, ...] = ()) -> Any:
        """Turn groups into dicts, MATLAB's cells into lists and data sets into arrays, if read."""
        import h5py

        place = _place(node.file, node.name)
        if node in above:
            raise DatasetError(f"{place} holds itself; {_ADVICE}")
        above = (*above, node)
        if "MATLAB_sparse" in node.attrs:
            return self._sparse(node)
        if isinstance(node, h5py.Group):
            return {name: self.read(self.open(node, name), above) for name in node}
        if getattr(node, "shape", None) is None or "MATLAB_empty" in node.attrs:
            return np.empty(0)
        self._check_storage(node)
        if _stays(node, self.on_disk):
            # Opened anew: the file that is being read will be closed; what is open keeps its own.
            return h5py.File(node.file.filename, "r")[node.name]
        check_room(place, bytes_as_floats(node.shape, node.dtype))
        if h5py.check_ref_dtype(node.dtype):
            return as_cell([self.read(node.file[ref], above) for ref in node[()].flat if ref])
        if h5py.check_string_dtype(node.dtype):
            return np.asarray(node.asstr()[()], dtype=str)
        # MATLAB stores columns first, so that HDF5 shows its arrays with the axes reversed.
        array = np.asarray(node[()].T if self.matlab else node[()])
        if node.attrs.get("MATLAB_class") == b"char":
            return np.array(["".join(map(chr, row)) for row in array], dtype=str)
        return array

    def _sparse(self, group: Any) -> Any:
        """Return MATLAB's sparse matrix, whose parts are data sets of a group."""
        parts = []
        for name in ("data", "ir", "jc"):
            parts.append(
                self.read(self.open(group, name)).ravel() if name in group else np.empty(0)
            )
        shape = (int(group.attrs["MATLAB_sparse"]), len(parts[-1]) - 1)
        return checked_sparse(scipy.sparse.csc_array(tuple(parts), shape=shape))


def checked_sparse(matrix: Any) -> Any:
    """Return a sparse matrix whose indices are within its shape, or raise an error."""
    # Compiled code relies on them, and SciPy looks at them only where asked.
    matrix.check_format(full_check=True)
    return matrix


def as_cell(items: list[Any]) -> Any:
    """Return the items of a cell array; those of a cell array of strings as one array."""
    if all(isinstance(item, np.ndarray) and item.dtype.kind == "U" for item in items):
        return np.array(["".join(item.flat) for item in items], dtype=str)
    return items


def _place(group: Any, name: str | None) -> str:
    """Return the file and the name of something in it, to begin a sentence."""
    names = f"{group.name}/{name or '(unnamed)'}".split("/")
    return f"{group.file.filename}: {'/'.join(filter(None, names)) or '/'}"


def _stays(node: Any, on_disk: bool | None) -> bool:
    """Return whether a data set stays on disk: features or kernels, and large or told so."""
    label = (node.name or "").rpartition("/")[2] in LABELS
    if on_disk is False or label or node.ndim not in (2, 3) or node.dtype.kind not in "biuf":
        return False
    return on_disk is True or node.size * node.dtype.itemsize > LARGE_BYTES
