"""Read views or kernels, and labels, from files; and one small bundled data set."""

import difflib
import os
from pathlib import Path

from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.digits import read_digits
from mkclust.datasets.files import READERS, read_file
from mkclust.datasets.interpret import as_dataset

__all__ = ["AVAILABLE", "Dataset", "DatasetError", "load"]

AVAILABLE: tuple[str, ...] = ("digits",)


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
        return read_digits()
    path, selection = _split(text)
    return as_dataset(path, read_file(path, selection), selected=bool(selection), square=kernels)


def _split(text: str) -> tuple[Path, frozenset[str]]:
    """Split ``path::A,B`` into the path of a file and the selected names (none: everything)."""
    name, separator, names = text.rpartition("::")
    if not separator or os.path.exists(text):
        name, names = text, ""
    selection = frozenset(part.strip() for part in names.split(",")) - {""}
    path, known = Path(os.path.expanduser(name)), ", ".join(READERS)
    if os.path.isdir(path):
        raise DatasetError(f"{path}: is a directory; give a file in it ({known})")
    if not os.path.exists(path):
        near = difflib.get_close_matches(name.lower(), AVAILABLE, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "check the path"
        listed = ", ".join(AVAILABLE)
        raise DatasetError(f"{path}: no such file or data set; {advice} (data sets: {listed})")
    if path.suffix.lower() not in READERS:
        raise DatasetError(f"{path}: unknown suffix {path.suffix!r}; give a file of {known}")
    if separator and name != text and not selection:
        raise DatasetError(f"{text}: no variable after '::'; write for example {path}::X")
    return path, selection
