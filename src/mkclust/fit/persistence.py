"""Fitted models in files of skops, loaded without running code from the file."""

import importlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mkclust.exceptions import ModelVersionWarning, warn
from mkclust.files import errors_of, write_atomically
from mkclust.fit.base import MultipleKernelClusterer
from mkclust.text import join_words
from mkclust.version import __version__, versions

# Increase it by one when models that older releases have written can no longer be read.
FORMAT = 6
# The ending of the names of such files.
SUFFIX = ".skops"
# Packages whose classes fitted models consist of; creating one runs nothing but this
# library.
TRUSTED_PACKAGES = (
    "mkclust.kernels.",
    "mkclust.methods.",
    "mkclust.fit.",
    "mkclust.agreements.",
    "mkclust.data.",
    "mkclust.stack.",
    "mkclust.graph.",
)
# What a fit may not know, and no prediction uses.
MAY_BE_UNKNOWN = {
    "agreement_", "approximation_error_", "cluster_gap_", "eigengap_", "missingness_",
    "suggestion_",
}  # fmt: skip
# Types of other libraries in fitted models that skops does not trust by itself.
TRUSTED_TYPES = ("scipy.sparse._csr.csr_array", "scipy.sparse._csc.csc_array")


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file that `load_model` reads without running code.

    The file holds all that predictions need, such as training views, and the versions
    of mkclust, NumPy, SciPy and scikit-learn. Arrays on devices become NumPy arrays.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    path : path
        The file, named ``*.skops``; an existing one is replaced, completely or not at
        all.

    Returns
    -------
    Path

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
        raise ValueError(
            f"{path}: a model is stored by skops; name the file {path.stem}{SUFFIX}"
        )
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(
            f"model is a {type(model).__name__}: pass a fitted estimator of mkclust"
        )
    check_is_fitted(model)
    _check_numbers(model)
    skops = _import_skops()
    data = skops.dumps({"format": FORMAT, "versions": versions(), "model": model})
    nameless = [name for name in skops.get_untrusted_types(data=data) if "<" in name]
    if nameless:
        raise ValueError(
            f"the model holds {join_words(nameless)}, a function or class that cannot "
            "be loaded from a file; define it in a module, under a name"
        )
    return write_atomically({path: data})[0]


def load_model(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = ()
) -> MultipleKernelClusterer:
    """Read a fitted model that `save_model` has written.

    Loading runs no code from the file. A file of another format is refused, one with a
    type that is not trusted, and one with NaN in what predicts. A `ModelVersionWarning`
    names packages that had other versions.

    Parameters
    ----------
    path : path
        The file. Pickle and joblib files, which can run any code, are not opened.
    trusted : iterable of str, default=()
        Further types that may be created, such as ``"my_package.MyMethod"``: only types
        of which you know what creating them does, whatever arguments the file contains.

    Returns
    -------
    MultipleKernelClusterer
        The model, with the same predictions as the one that was saved.
    """
    path = Path(path)
    skops = _import_skops()
    try:
        with errors_of(path):
            names = skops.get_untrusted_types(file=path)
            own = {name for name in names if _is_own_class(name)}
            foreign = sorted({*names} - {*own, *TRUSTED_TYPES, *trusted})
        if not foreign:
            with errors_of(path):
                content = skops.load(path, trusted=names)
            stored = content["format"]
            saved = dict(content["versions"])
            model = content["model"]
            _check_numbers(model)
    except OSError:
        raise  # missing, a folder, not readable
    except Exception as error:  # whatever a damaged or crafted file raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            f"{path}: is not a model that mkclust.save_model has written, or is "
            f"damaged ({reason}). Pickle and joblib files can run any code and are not "
            "opened"
        ) from error
    if foreign:
        raise ValueError(
            f"{path}: names {join_words(foreign)}, which is not part of a model of "
            f"mkclust {__version__} and could run other code; nothing was loaded. If "
            "another version of mkclust wrote the file, load it with that version. If "
            "the type is your own, load the model with mkclust.load_model(path, "
            "trusted=[...])"
        )
    if stored != FORMAT:
        raise ValueError(
            f"{path}: was written by mkclust {saved.get('mkclust')} in format "
            f"{stored!r}; mkclust {__version__} reads format {FORMAT} only. Load it "
            "with the version that wrote it, or fit and save the model again"
        )
    if not isinstance(model, MultipleKernelClusterer) or not hasattr(model, "labels_"):
        raise ValueError(
            f"{path}: holds a {type(model).__name__}, not a fitted model of mkclust"
        )
    here = versions()
    others = [
        f"{name} {saved.get(name)} (here {here[name]})"
        for name in ("mkclust", "numpy", "scipy", "scikit-learn")
        if saved.get(name) != here[name]
    ]
    if others:
        warn(
            f"{path} was saved with {join_words(others)}: predictions may differ; fit "
            "the model again if that matters",
            ModelVersionWarning,
        )
    return model


def _import_skops() -> ModuleType:
    try:
        return importlib.import_module("skops.io")
    except ImportError:
        raise ImportError(
            "models are saved and loaded by skops; install it with: "
            'pip install "mkclust[save]"'
        ) from None


def _is_own_class(name: str) -> bool:
    """Return whether a module of models defines a class of this name."""
    module, _, class_name = name.rpartition(".")
    if module.startswith(TRUSTED_PACKAGES):
        with suppress(ImportError):
            # Not what the module has imported itself, such as os.
            found = getattr(importlib.import_module(module), class_name, None)
            return isinstance(found, type) and found.__module__ == module
    return False


def _check_numbers(value: Any, where: str = "the model") -> None:
    """Refuse NaN, and sparse arrays with indices out of range.

    Predictions from NaN are none, and compiled code would follow such indices.
    """
    if hasattr(value, "check_format"):
        value.check_format(full_check=True)
        value = value.data
    is_own = type(value).__module__.startswith("mkclust.")
    if isinstance(value, np.ndarray | float):
        array = np.asarray(value)
        if array.dtype.kind in "fc" and np.isnan(array).any():
            raise ValueError(f"{where} holds NaN, from which nothing can be predicted")
    elif isinstance(value, Mapping):
        _check_numbers(list(value.values()), where)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_numbers(each, where)
    elif is_own or isinstance(value, BaseEstimator):
        for name, part in getattr(value, "__dict__", {}).items():
            # A number of another library may say that something is missing.
            is_mark = isinstance(part, float) and not is_own
            if name not in MAY_BE_UNKNOWN and not is_mark:
                _check_numbers(part, name)
