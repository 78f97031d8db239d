"""The array libraries that tests run over, and how an array gets there."""

import importlib.util

import numpy as np
import pytest


def _cuda():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _cupy():
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return cupy.cuda.is_available()


def _skip_without(condition, reason):
    return pytest.mark.skipif(not condition, reason=reason)


TORCH = importlib.util.find_spec("torch") is not None
STRICT = importlib.util.find_spec("array_api_strict") is not None
ON_CUDA = [pytest.mark.gpu, _skip_without(_cuda(), "no CUDA device")]
# Every library that is no NumPy, those of a GPU marked so.
FOREIGN = [
    pytest.param("strict", marks=_skip_without(STRICT, "array-api-strict is not installed")),
    pytest.param("torch", marks=_skip_without(TORCH, "torch is not installed")),
    pytest.param("cuda", marks=ON_CUDA),
    pytest.param("cupy", marks=[pytest.mark.gpu, _skip_without(_cupy(), "CuPy sees no device")]),
]
LIBRARIES = ["numpy", *FOREIGN]


def as_library(library, array):
    """Return a NumPy array, or those of a list or dict, in a library and on its device."""
    if isinstance(array, dict):
        return {name: as_library(library, part) for name, part in array.items()}
    if isinstance(array, list | tuple):
        return [as_library(library, part) for part in array]
    if library == "strict":
        import array_api_strict

        return array_api_strict.asarray(array)
    if library in ("torch", "cuda"):
        import torch

        return torch.asarray(np.array(array), device={"torch": "cpu"}.get(library, library))
    if library == "cupy":
        import cupy

        return cupy.asarray(array)
    return np.asarray(array)


def kind_of(array):
    """Return the package that an array's type comes from, such as "torch"."""
    return type(array).__module__.split(".")[0]
