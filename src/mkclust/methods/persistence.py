"""Fitted models in files, whose loading runs nothing but this library.

A file is what skops makes of a model: arrays, and the names of types. Only types that fitted models
of this library consist of are made again; a file that names any other is refused as a whole.
"""

import importlib
import inspect
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import BadZipFile

import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mkclust.methods import METHODS, MultipleKernelClusterer
from mkclust.samples.encoding import CATEGORIES
from mkclust.text import join_words
from mkclust.version import versions
from mkclust.web.files import write_whole

FORMAT = 1
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
# Packages whose other versions may compute otherwise.
COMPARED = ("mkclust", "numpy", "scipy", "scikit-learn")


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file, from which `load_model` reads it without running code.

    The file holds the model with all that it needs for new samples: the training views where
    kernels were made of views.

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
    data = skops.dumps({"format": FORMAT, "versions": versions(), "model": model})
    _check_loadable(skops.get_untrusted_types(data=data))
    return write_whole(path.parent, {path.name: data})[0]


def load_model(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a fitted model that `save_model` has written.

    Loading runs no code of the file: it names types, and those that are no part of a fitted model
    of this library (or of what skops takes for safe in NumPy, SciPy and scikit-learn) are refused.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Further types that may be made, such as ``"my_package.MyMethod"``: only those of which
        you know what their making does, whatever the file gives them.

    Returns
    -------
    MultipleKernelClusterer
        The same predictions as the model that was saved. A warning says where it was saved with
        other versions of what it computes with.
    """
    path, skops = Path(path), import_skops()
    data = path.read_bytes()
    safe = {*_own_types(), *trusted}
    try:
        strange = sorted(set(skops.get_untrusted_types(data=data)) - safe)
    except (BadZipFile, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(_explain_foreign(path)) from error
    if strange:
        raise ValueError(
            f"{path}: names {join_words(strange)}, which is no part of a model of mkclust and "
            "could run other code; nothing was loaded. If it is a type of your own, load the "
            "model in Python, with mkclust.load_model(path, trusted=[...])"
        )
    content = skops.loads(data, trusted=sorted(safe))
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, MultipleKernelClusterer) or not hasattr(model, "labels_"):
        raise ValueError(_explain_foreign(path))
    if content.get("format") != FORMAT:
        raise ValueError(
            f"{path}: has the format {content.get('format')!r}, this version reads {FORMAT}; "
            "load it with the version of mkclust that saved it, or fit the model again"
        )
    for matrix in _sparse_parts(model):
        matrix.check_format(full_check=True)
    _warn_of_versions(path, content.get("versions"))
    return model


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


def _explain_foreign(path: Path) -> str:
    """Say that a file is no model."""
    return f"{path}: is no model that mkclust has saved; make one with mkclust cluster --save"


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


def _warn_of_versions(path: Path, saved: Any) -> None:
    """Warn where a model was saved with other versions of what it computes with."""
    here, saved = versions(), saved if isinstance(saved, dict) else {}
    others = [
        f"{name} {saved.get(name, 'unknown')} (here {here[name]})"
        for name in COMPARED
        if saved.get(name) != here[name]
    ]
    if others:
        warnings.warn(
            f"{path} was saved with {join_words(others)}: predictions may differ; fit the model "
            "again where that matters",
            stacklevel=3,
        )
