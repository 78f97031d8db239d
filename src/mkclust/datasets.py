"""Read views or kernels, and labels, from files; and one small bundled data set."""

import difflib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse
from sklearn.datasets import load_digits

AVAILABLE: tuple[str, ...] = ("digits",)

_LABELS = ("y", "Y", "gnd", "labels")
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class DatasetError(ValueError):
    """Say in one line what was found in a data set, where, and what to do about it."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold several views, or several kernels, of the same samples.

    Attributes
    ----------
    name : str
        Name of the data set; for a file its name without the suffix.
    views : dict of str to ndarray of shape (n, d), or None
        Samples x features, in file order. None where the data are kernels.
    kernels : ndarray of shape (m, n, n), list of m matrices of shape (n, n), or None
        Precomputed kernels, dense or sparse. None where the data are views.
    y : ndarray of shape (n,) or None
        Ground truth where the file has it. It is never used to fit.
    kernel_names : tuple of str
        Names of the views or of the kernels, in order.
    description : str
        What the data are, and what was left aside when reading them.
    """

    name: str
    views: dict[str, Any] | None
    kernels: Any | None
    y: np.ndarray | None
    kernel_names: tuple[str, ...]
    description: str = ""

    def __post_init__(self) -> None:
        if (self.views is None) == (self.kernels is None) or len(self.X) == 0:
            raise DatasetError(f"{self.name}: give either views or kernels, and at least one")
        if len(self.kernel_names) != len(self.X):
            found = f"{len(self.kernel_names)} names for {len(self.X)} views or kernels"
            raise DatasetError(f"{self.name}: {found}; give each a name of its own")
        if self.y is not None and self.y.shape != (self.n_samples,):
            found = f"labels of shape {self.y.shape} for {self.n_samples} samples"
            raise DatasetError(f"{self.name}: {found}; give one label for each, or None")

    @property
    def X(self) -> Any:
        """The views or the kernels: what ``fit`` takes."""
        return self.kernels if self.views is None else self.views

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        first = next(iter(self.X if self.views is None else self.views.values()))
        return int(first.shape[0])

    @property
    def n_classes(self) -> int | None:
        """Number of different labels, or None without labels."""
        return None if self.y is None else len(np.unique(self.y))

    def __repr__(self) -> str:
        kind = "kernels" if self.views is None else "views"
        truth = "no labels" if self.y is None else f"{self.n_classes} classes"
        return f"Dataset({self.name!r}: {len(self.X)} {kind}, {self.n_samples} samples, {truth})"


def load(name_or_path: str | os.PathLike[str], *, kernels: bool = False) -> Dataset:
    """Load a data set by name, or read one from a file.

    In a file every numeric 2-D array, or cell of a cell array, with the common number of rows
    is a view, in file order. The labels ``y``, ``Y``, ``gnd`` or ``labels`` decide that number;
    without them it is the most frequent one. A view stored features x samples is turned around.
    A lone row or column is a view only where it is selected: it may well be further labels.
    A 3-D array is a stack of kernels, ``(m, n, n)`` or MATLAB's ``(n, n, m)``.

    Parameters
    ----------
    name_or_path : str or path-like
        A name of ``AVAILABLE``, or a path to a ``.npz``, ``.npy``, ``.mat`` (any version),
        ``.h5`` or ``.hdf5`` file. ``"file.npz::K"`` or ``"file.mat::X1,X2"`` reads only these
        variables, and the labels.
    kernels : bool, default=False
        Take square 2-D arrays as precomputed kernels rather than as views.

    Returns
    -------
    Dataset
        Views are dense, sparse kernels stay sparse, and a ``.npy`` file stays on disk as a
        memory map. Single precision is kept; integers become float64.

    Raises
    ------
    DatasetError
        If there is no such data set or file, or its content cannot be read or understood.

    Examples
    --------
    >>> from mkclust.datasets import load
    >>> data = load("digits")
    >>> data
    Dataset('digits': 4 views, 1797 samples, 10 classes)
    >>> data.views["fourier"].shape
    (1797, 40)
    """
    text = os.fsdecode(name_or_path)
    if text in AVAILABLE:
        if kernels:
            raise DatasetError(f"{text}: holds views, not kernels; load it without kernels=True")
        return _digits()
    path, selection = _split(text)
    return _interpret(path, _read(path, selection), selected=bool(selection), square=kernels)


def _split(text: str) -> tuple[Path, frozenset[str]]:
    """Split ``path::A,B`` into the path of a file and the selected names (none: everything)."""
    name, separator, names = text.rpartition("::")
    if not separator or os.path.exists(text):
        name, names = text, ""
    selection = frozenset(part.strip() for part in names.split(",")) - {""}
    path, known = Path(os.path.expanduser(name)), ", ".join(_READERS)
    if os.path.isdir(path):
        raise DatasetError(f"{path}: is a directory; give a file in it ({known})")
    if not os.path.exists(path):
        near = difflib.get_close_matches(name.lower(), AVAILABLE, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "check the path"
        listed = ", ".join(AVAILABLE)
        raise DatasetError(f"{path}: no such file or data set; {advice} (data sets: {listed})")
    if path.suffix.lower() not in _READERS:
        raise DatasetError(f"{path}: unknown suffix {path.suffix!r}; give a file of {known}")
    if separator and name != text and not selection:
        raise DatasetError(f"{text}: no variable after '::'; write for example {path}::X")
    return path, selection


# --- from a file to named arrays ---------------------------------------------------------------


class _Content(NamedTuple):
    """What a file holds, in order, and whether MATLAB's order of axes is to be expected."""

    arrays: dict[str, Any]
    labels: dict[str, Any]
    names: list[str]
    matlab: bool


def _read(path: Path, selection: frozenset[str]) -> _Content:
    """Read the selected variables (none: everything), the labels and the names of the views."""

    def keep(name: str) -> bool:
        inside = (f"{name}/", f"{name}_")
        wanted = not selection or any(s == name or s.startswith(inside) for s in selection)
        return wanted or name in (*_LABELS, "names")

    try:
        tree, matlab = _READERS[path.suffix.lower()](path, keep)
    except DatasetError:
        raise
    except Exception as error:
        # Damaged files raise nearly anything: zlib.error, BadZipFile, MemoryError, TypeError.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "check that it is complete, of the format of its suffix, and without objects"
        raise DatasetError(f"{path}: cannot be read ({reason}); {advice}") from error
    content = _Content({}, {}, [], matlab)
    missing = set(selection)
    for lineage, array in _leaves(tree):
        missing -= set(lineage)
        if any(name.rpartition("/")[2] in _LABELS for name in lineage):
            content.labels[lineage[-1]] = array
        elif lineage == ("names",) and array.dtype.kind == "U":
            content.names.extend(str(name).strip() for name in array.flat)
        elif lineage[-1] in content.arrays:
            raise DatasetError(f"{path}: two arrays would be called {lineage[-1]}; rename one")
        elif not selection or selection.intersection(lineage):
            content.arrays[lineage[-1]] = array
    if missing:
        whole = _read(path, frozenset())
        held = _inventory(whole.arrays | whole.labels)
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


def _read_numpy(path: Path, keep: Callable[[str], bool]) -> tuple[dict[str, Any], bool]:
    """Read an archive, or map a single array, so that large kernels stay on disk."""
    content = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(content, np.ndarray):
        return {path.stem: content}, False
    with content:
        return {name: content[name] for name in content.files if keep(name)}, False


def _read_mat(path: Path, keep: Callable[[str], bool]) -> tuple[dict[str, Any], bool]:
    """Read a MATLAB file of any version; since 7.3 they are HDF5 files behind 512 bytes."""
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5_SIGNATURE))
    if head.startswith(_HDF5_SIGNATURE) or head.endswith(_HDF5_SIGNATURE):
        return _read_hdf5(path, keep)
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


def _read_hdf5(path: Path, keep: Callable[[str], bool]) -> tuple[dict[str, Any], bool]:
    """Read an HDF5 file, by MATLAB or not."""
    try:
        import h5py
    except ImportError as error:
        advice = 'reading it needs h5py: pip install "mkclust[hdf5]"'
        raise DatasetError(f"{path}: is an HDF5 file; {advice}") from error
    with h5py.File(path, "r") as file:
        matlab = file.userblock_size == 512 or any("MATLAB_class" in v.attrs for v in file.values())
        # MATLAB keeps the contents of its cells, and its own notes, in groups named #...#.
        names = [name for name in file if keep(name) and not name.startswith("#")]
        return {name: _from_hdf5(file[name], matlab) for name in names}, matlab


def _from_hdf5(node: Any, matlab: bool) -> Any:
    """Turn groups into dicts, MATLAB's cells into lists and data sets into arrays."""
    import h5py

    if "MATLAB_sparse" in node.attrs:
        parts = [node[part][()] if part in node else np.empty(0) for part in ("data", "ir", "jc")]
        shape = (int(node.attrs["MATLAB_sparse"]), len(parts[-1]) - 1)
        return scipy.sparse.csc_array(tuple(parts), shape=shape)
    if isinstance(node, h5py.Group):
        return {name: _from_hdf5(child, matlab) for name, child in node.items()}
    if getattr(node, "shape", None) is None or "MATLAB_empty" in node.attrs:
        return np.empty(0)
    if h5py.check_ref_dtype(node.dtype):
        return _cell([_from_hdf5(node.file[ref], matlab) for ref in node[()].flat if ref])
    if h5py.check_string_dtype(node.dtype):
        return np.asarray(node.asstr()[()], dtype=str)
    # MATLAB stores columns first, so that HDF5 shows its arrays with the axes reversed.
    array = np.asarray(node[()].T if matlab else node[()])
    if node.attrs.get("MATLAB_class") == b"char":
        return np.array(["".join(map(chr, row)) for row in array], dtype=str)
    return array


_READERS: dict[str, Callable[..., tuple[dict[str, Any], bool]]] = {
    ".npz": _read_numpy,
    ".npy": _read_numpy,
    ".mat": _read_mat,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}


# --- from named arrays to views or kernels, and labels -----------------------------------------


def _interpret(path: Path, content: _Content, *, selected: bool, square: bool) -> Dataset:
    """Decide which arrays are views or kernels, and which vector labels them."""
    labels = {name: _as_labels(array) for name, array in content.labels.items()}
    sizes = [len(vector) for vector in labels.values() if len(vector)]
    stack = _find_stack(path, content, sizes)
    used = stack or _find_tables(path, content, sizes, selected=selected, square=square)
    n = next(iter(used.values())).shape[-2]
    truth = next((name for name, vector in labels.items() if len(vector) == n), "")
    held = content.arrays | content.labels
    aside = {name: held[name] for name in held if name not in used and name != truth}
    note = f" Left aside: {_inventory(aside)}." if aside else ""
    description, y = f"Read from {path.name}.{note}", labels.get(truth)
    if stack:
        [(name, kernels)] = stack.items()
        names = _rename([f"{name}_{i + 1}" for i in range(len(kernels))], content.names)
        return Dataset(path.stem, None, kernels, y, names, description)
    names = _rename(list(used), content.names)
    if square:
        return Dataset(path.stem, None, list(used.values()), y, names, description)
    views = dict(zip(names, map(_as_dense, used.values()), strict=True))
    return Dataset(path.stem, views, None, y, names, description)


def _as_labels(value: Any) -> np.ndarray:
    """Return a vector of labels, whole numbers as integers; empty if it is not a vector."""
    vector = np.squeeze(_as_dense(value))
    if vector.ndim != 1 or vector.dtype.kind not in "biufUS":
        return np.empty(0)
    text = vector.dtype.kind in "US"
    whole = not text and np.isfinite(vector).all() and (vector == np.rint(vector)).all()
    return vector.astype(np.int64) if whole else vector


def _find_stack(path: Path, content: _Content, sizes: list[int]) -> dict[str, Any]:
    """Return the one stack of kernels, kernels first; empty if there is none."""
    stacks = {}
    for name, array in _numeric(content, 3).items():
        if (axis := _kernel_axis(array.shape, sizes, content.matlab)) is not None:
            stacks[name] = np.moveaxis(array, axis, 0)
    # Labels tell the kernels between samples from those between anything else.
    stacks = {name: K for name, K in stacks.items() if K.shape[1] in sizes} or stacks
    if len(stacks) > 1:
        advice = f"choose one, for example {path}::{next(iter(stacks))}"
        raise DatasetError(f"{path}: several 3-D arrays ({_inventory(stacks)}); {advice}")
    # MATLAB lays out columns, products want rows. A memory map must not be copied.
    order = np.ascontiguousarray if content.matlab else np.asanyarray
    return {name: order(_as_float(K)) for name, K in stacks.items()}


def _kernel_axis(shape: tuple[int, ...], sizes: list[int], matlab: bool) -> int | None:
    """Return the axis that counts the kernels: the other two are equal."""
    for axis in (2, 0, 1) if matlab else (0, 2, 1):
        rows, columns = shape[:axis] + shape[axis + 1 :]
        # As many square arrays as labels are images, not kernels.
        images = shape[axis] in sizes and rows not in sizes
        if rows == columns > 1 and not images:
            return axis
    return None


def _find_tables(
    path: Path, content: _Content, sizes: list[int], *, selected: bool, square: bool
) -> dict[str, Any]:
    """Return the 2-D arrays that share the common number of rows, samples first."""
    tables = _numeric(content, 2)
    if square:
        tables = {name: a for name, a in tables.items() if a.shape[0] == a.shape[1]}
    elif not selected:
        tables = {name: a for name, a in tables.items() if min(a.shape) > 1}
    rows = Counter(a.shape[0] for a in tables.values() if a.shape[0] > 1)
    if not rows:
        wanted = "square 2-D arrays" if square else "2-D arrays (samples x features)"
        advice = f"it should hold {wanted} or a 3-D array of kernels; ::NAME selects a lone column"
        held = _inventory(content.arrays | content.labels)
        raise DatasetError(f"{path}: no usable array, only {held}; {advice}")
    told = [size for size in sizes if any(size in a.shape for a in tables.values())]
    (n, count), *others = rows.most_common(2)
    if not told and others and others[0][1] == count:
        advice = "select those of the same samples by ::NAME,NAME or store labels y beside them"
        raise DatasetError(f"{path}: numbers of rows differ ({_inventory(tables)}); {advice}")
    n = told[0] if told else n
    fitting = {name: a for name, a in tables.items() if n in a.shape}
    return {name: _as_float(a if a.shape[0] == n else a.T) for name, a in fitting.items()}


def _numeric(content: _Content, ndim: int) -> dict[str, Any]:
    """Return the nonempty real arrays with so many axes."""
    real = {name: a for name, a in content.arrays.items() if a.dtype.kind in "biuf"}
    return {name: a for name, a in real.items() if a.ndim == ndim and all(a.shape)}


def _as_float(array: Any) -> Any:
    """Return float16 and float32 in single, all else in double precision; copy only if needed."""
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if single else np.float64, copy=False)


def _as_dense(array: Any) -> np.ndarray:
    """Return the array of a sparse matrix, and an array as it is."""
    return array.toarray() if scipy.sparse.issparse(array) else array


def _rename(names: list[str], given: list[str]) -> tuple[str, ...]:
    """Return the names that the file gives, where they are those of its views."""
    short = [name.removeprefix("X_") for name in names]
    if set(short) <= set(given):
        return tuple(short)
    return tuple(given if len(given) == len(set(given)) == len(names) else names)


def _inventory(arrays: dict[str, Any], limit: int = 8) -> str:
    """List arrays with their types and shapes, the first few of them."""
    kinds = {name: "text" if a.dtype.kind == "U" else a.dtype.name for name, a in arrays.items()}
    items = [f"{name} {kinds[name]}{list(a.shape)}" for name, a in arrays.items()]
    more = [f"{len(items) - limit} more"] if len(items) > limit else []
    return ", ".join(items[:limit] + more) or "nothing"


# --- the bundled data set ----------------------------------------------------------------------


def _digits() -> Dataset:
    """Return four views of scikit-learn's handwritten digits."""
    pixels, y = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8) / 16
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "gradients": _gradient_histograms(images),
        "projections": _projections(images),
    }
    description = "Four views of the 8 x 8 images of handwritten digits in scikit-learn."
    return Dataset("digits", views, None, y, tuple(views), description)


def _gradient_histograms(images: np.ndarray, bins: int = 8) -> np.ndarray:
    """Return the histograms of gradient directions of 2 x 2 cells, weighted by magnitude."""
    down, right = np.gradient(images, axis=(1, 2))
    # Multiples of 45 degrees are frequent between pixels: they lie in the middle of a bin,
    # for on a border rounding errors would decide.
    bin_of = np.rint(np.arctan2(down, right) * bins / (2 * np.pi)) % bins
    votes = np.hypot(down, right)[..., None] * (bin_of[..., None] == np.arange(bins))
    return votes.reshape(-1, 2, 4, 2, 4, bins).sum(axis=(2, 4)).reshape(len(images), -1)


def _projections(images: np.ndarray) -> np.ndarray:
    """Return the sums along rows, columns and both diagonals."""
    diagonals = [
        turned.trace(offset, axis1=1, axis2=2)
        for turned in (images, images[:, ::-1])
        for offset in range(-7, 8)
    ]
    return np.column_stack([images.sum(axis=2), images.sum(axis=1), *diagonals])
