"""Fitted models in files, whose loading runs nothing but this library.

A file is what skops makes of a model: arrays, and the names of types. Only types that fitted models
of this library consist of are made again; a file that names any other is refused as a whole.
"""

import importlib
import inspect
import io
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import BadZipFile, ZipFile

import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mkclust.methods import METHODS, MultipleKernelClusterer
from mkclust.methods.saved_versions import (
    ModelVersionError,
    ModelVersionWarning,
    check_format,
    version_note,
    warn_of_versions,
)
from mkclust.samples.checks import is_dask
from mkclust.samples.encoding import CATEGORIES
from mkclust.text import join_words
from mkclust.web.files import write_whole

SUFFIX = ".skops"
# Modules whose own classes hold what a model has learned, and do nothing when they are made.
MODULES_OF_PARTS = (
    "mkclust.kernels.bank",
    "mkclust.kernels.formulas",
    "mkclust.kernels.learned_view",
    "mkclust.kernels.links",
    "mkclust.kernels.maps",
    "mkclust.kernels.neighborhoods",
    "mkclust.kernels.pairs",
    "mkclust.kernels.preparations",
    "mkclust.kernels.view",
    "mkclust.kernels.view_neighborhoods",
    "mkclust.methods.agreement",
    "mkclust.methods.learned_rows",
    "mkclust.methods.missingness",
    "mkclust.methods.neighborhoods",
    "mkclust.methods.out_of_sample",
    "mkclust.methods.seen_regression",
    "mkclust.methods.source",
    "mkclust.samples.encoding",
    "mkclust.stack.base",
    "mkclust.stack.mapped",
    "mkclust.stack.repair",
    "mkclust.stack.sample_map",
)
# Sparse arrays, which skops leaves to its users; their indices are checked after loading.
SPARSE = (scipy.sparse.csr_array, scipy.sparse.csc_array)
# The note of versions inside a file, which is read before anything else of it.
NOTE_FILE, NOTE_BYTES = "mkclust.json", 1 << 16
# How skops' files begin, and how pickles do, be they packed by joblib: zlib, gzip, bzip2, xz, lz4.
ZIP_START = b"PK"
PICKLE_STARTS = (
    b"\x80",
    *(b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"),
    *(b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"]\x00\x00", b"\x04\x22M\x18"),
)


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file, from which `load_model` reads it without running code.

    The file holds the model with all that it needs for new samples: the training views where
    kernels were made of views. It notes the versions of mkclust and of what it computes with.
    Labels and an embedding that are dask arrays are computed and stored as arrays of NumPy.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    path : path
        The file, whose name ends in ``.skops``; replaced where it exists. It is written
        completely or not at all.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mkclust import AverageKKM, load_model, save_model
    >>> from mkclust.datasets import load
    >>> views = {name: view[:100] for name, view in load("digits").views.items()}
    >>> model = AverageKKM(n_clusters=5, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, pathlib.Path(folder, "digits.skops"))
    ...     bool((load_model(path).predict(views) == model.labels_).all())
    True
    """
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise ValueError(f"{path}: a model is stored by skops; name the file {path.stem}{SUFFIX}")
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(f"model is a {type(model).__name__}: pass a fitted estimator of mkclust")
    check_is_fitted(model)
    skops = import_skops()
    note = version_note()
    note["versions"]["skops"] = importlib.import_module("skops").__version__
    data = skops.dumps(note | {"model": _in_memory(model)})
    _check_loadable(skops.get_untrusted_types(data=data))
    return write_whole(path.parent, {path.name: _with_note(data, note)})[0]


def load_model(
    path: str | os.PathLike[str], *, trusted: Sequence[str] = (), unsafe_pickle: bool = False
) -> MultipleKernelClusterer:
    """Read a fitted model that `save_model` has written.

    Loading runs no code of the file: it names types, and those that are no part of a fitted model
    of this library (or of what skops takes for safe in NumPy, SciPy and scikit-learn) are refused.

    A model that a newer release of mkclust has written, or that has another format, is refused. One
    of this or an older release is loaded, with a `ModelVersionWarning` where mkclust, NumPy, SciPy
    or scikit-learn have other versions than they had. The same holds for pickles of models.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Further types that may be made, such as ``"my_package.MyMethod"``: only those of which
        you know what their making does, whatever the file gives them.
    unsafe_pickle : bool, default=False
        Also open files of pickle and joblib, **which can run any code**: only for files of people
        and places that you trust. Otherwise such files are refused unopened.

    Returns
    -------
    MultipleKernelClusterer
        The same predictions as the model that was saved.
    """
    path = Path(path)
    data = path.read_bytes()
    if data.startswith(ZIP_START):
        return _load_skops(path, data, trusted)
    if unsafe_pickle:
        return _load_pickle(path)
    if data.startswith(PICKLE_STARTS):
        raise ValueError(
            f"{path}: {_foreign()} It looks like a pickle, which can run any code when it is "
            "opened, and was not opened. If you trust whoever wrote it, load it in Python, with "
            "mkclust.load_model(path, unsafe_pickle=True)"
        )
    raise ValueError(f"{path}: {_foreign()}")


def _load_skops(path: Path, data: bytes, trusted: Sequence[str]) -> Any:
    """Return the model of a file of skops."""
    skops = import_skops()
    safe = {*_own_types(), *trusted}
    try:
        note = _read_note(data)
        # Before the types, for a newer release may have others.
        check_format(note, str(path))
        strange = sorted(set(skops.get_untrusted_types(data=data)) - safe)
        if strange:
            raise _StrangeTypesError(
                f"{path}: names {join_words(strange)}, which is no part of a model of mkclust and "
                "could run other code; nothing was loaded. If it is a type of your own, load the "
                "model in Python, with mkclust.load_model(path, trusted=[...])"
            )
        with warnings.catch_warnings():
            # The model has the same note as the file, whose warning below names the file.
            warnings.simplefilter("ignore", ModelVersionWarning)
            content = skops.loads(data, trusted=sorted(safe))
        model = content.get("model") if isinstance(content, dict) else None
        _check_model(path, model)
        check_format(content, str(path))
        for matrix in _sparse_parts(model):
            matrix.check_format(full_check=True)
    except (ModelVersionError, _StrangeTypesError, _ForeignError):
        raise
    except Exception as error:
        # What somebody has crafted or damaged may raise nearly anything.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{path}: {_foreign()} ({reason})") from error
    warn_of_versions(content if note is None else note, str(path), 3)
    return model


def _load_pickle(path: Path) -> Any:
    """Return the model of a file of pickle or joblib, which its user trusts."""
    import joblib

    try:
        model = joblib.load(path)
    except ModelVersionError as error:
        raise ModelVersionError(f"{path}: {error}") from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{path}: {_foreign()} ({reason})") from error
    _check_model(path, model)
    return model


class _StrangeTypesError(ValueError):
    """A file names types that nobody has said to be trusted."""


class _ForeignError(ValueError):
    """A file holds something else than a model."""


def _check_model(path: Path, model: Any) -> None:
    """Refuse what is no fitted model."""
    if not isinstance(model, MultipleKernelClusterer) or not hasattr(model, "labels_"):
        raise _ForeignError(f"{path}: {_foreign()}")


def _with_note(data: bytes, note: Mapping[str, Any]) -> bytes:
    """Return a file of skops with the note of versions beside the model."""
    file = io.BytesIO(data)
    with ZipFile(file, "a") as archive:
        archive.writestr(NOTE_FILE, json.dumps(note))
    return file.getvalue()


def _read_note(data: bytes) -> Any:
    """Return the note of versions in a file; None where there is none."""
    with ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        # Models are stored as they are: what is larger unpacked would only fill the memory.
        if sum(member.file_size for member in members) > len(data):
            raise BadZipFile("it is packed, which models never are")
        if NOTE_FILE not in archive.namelist():
            return None
        with archive.open(NOTE_FILE) as file:
            return json.loads(file.read(NOTE_BYTES))


def view_names(model: Any) -> tuple[str, ...]:
    """Return the names of what a fitted model takes: kernels, or tables in their order."""
    source = model._source
    views = source.bank.views_ if hasattr(source, "bank") else getattr(source, "widths", None)
    if views is None:
        return tuple(model.kernel_names_)
    # Tables of numbers and categories have become two views.
    of_categories = {
        CATEGORIES.format(name) for name, each in source.encodings.items() if each.numbers
    }
    return tuple(name for name in views if name not in of_categories)


def takes_kernels(model: Any) -> bool:
    """Return whether a fitted model takes similarities to its training samples."""
    return not hasattr(model._source, "bank") and not hasattr(model._source, "widths")


def import_skops() -> ModuleType:
    """Return skops.io, or say how to install it."""
    try:
        return importlib.import_module("skops.io")
    except ImportError:
        raise ImportError(
            'models are saved and loaded by skops; install it with: pip install "mkclust[save]"'
        ) from None


def _in_memory(model: Any) -> Any:
    """Return a model whose arrays of dask, which no file can hold, are arrays of NumPy."""
    lazy = {name: value for name, value in vars(model).items() if is_dask(value)}
    if not lazy:
        return model
    import dask

    other = copy(model)
    vars(other).update(zip(lazy, dask.compute(*lazy.values()), strict=True))
    return other


def _check_loadable(types: Sequence[str]) -> None:
    """Refuse to save what could not be loaded; classes of users can be, where they are trusted."""
    own = _own_types()
    if nameless := sorted(name for name in types if "<" in name):
        raise ValueError(
            f"the model holds {join_words(nameless)}, a function or class that no file can bring "
            "back; write it in a module, and pass it by its name"
        )
    if lost := sorted(name for name in types if name.startswith("mkclust.") and name not in own):
        raise ValueError(
            f"the model holds {join_words(lost)}, which reads the samples from elsewhere "
            "and cannot be stored; fit it on arrays in memory, or by landmarks "
            "(approximation=Nystroem(...))"
        )
    if others := sorted(set(types) - own):
        warnings.warn(
            f"the model holds types that have to be trusted when it is loaded: "
            f"load_model(path, trusted={others})",
            stacklevel=3,
        )


def _own_types() -> set[str]:
    """Return the names of all types that a fitted model of this library may hold."""
    parts = (
        part
        for name in MODULES_OF_PARTS
        for part in vars(importlib.import_module(name)).values()
        # Only what is defined there: a module also has the names that it imports.
        if inspect.isclass(part) and part.__module__ == name
    )
    return {
        f"{each.__module__}.{each.__qualname__}" for each in (*parts, *METHODS.values(), *SPARSE)
    }


def _foreign() -> str:
    """Say that a file is no model."""
    return "is no model that mkclust has saved; make one with mkclust cluster --save."


def _sparse_parts(value: Any) -> Iterator[Any]:
    """Yield the sparse matrices in a model, whose indices a file could have out of range."""
    if hasattr(value, "check_format"):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _sparse_parts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _sparse_parts(item)
    elif isinstance(value, BaseEstimator) or type(value).__module__.startswith("mkclust."):
        yield from _sparse_parts(getattr(value, "__dict__", {}))
