"""The array libraries that tests run over, and how an array gets there."""

import importlib
import importlib.util

import numpy as np
import pytest


def has(library):
    return importlib.util.find_spec(library) is not None


def has_gpu(library):
    return has(library) and importlib.import_module(library).cuda.is_available()


TORCH = has("torch")
ON_CUDA = [
    pytest.mark.gpu,
    pytest.mark.skipif(not has_gpu("torch"), reason="no CUDA device"),
]
# Every installed library that is not NumPy, those of a GPU marked so.
FOREIGN = [
    *["strict"] * has("array_api_strict"),
    *["torch"] * TORCH,
    *[pytest.param("cuda", marks=pytest.mark.gpu)] * has_gpu("torch"),
    *[pytest.param("cupy", marks=pytest.mark.gpu)] * has_gpu("cupy"),
]
LIBRARIES = ["numpy", *FOREIGN]


def as_library(library, array):
    """Return a NumPy array, or those of a list or dict, in a library and on its
    device."""
    if isinstance(array, dict):
        return {name: as_library(library, part) for name, part in array.items()}
    if isinstance(array, list | tuple):
        return [as_library(library, part) for part in array]
    if library == "strict":
        import array_api_strict

        return array_api_strict.asarray(array)
    if library in ("torch", "cuda"):
        import torch

        return torch.asarray(
            np.array(array), device={"torch": "cpu"}.get(library, library)
        )
    if library == "cupy":
        import cupy

        return cupy.asarray(array)
    return np.asarray(array)


def kind_of(array):
    """Return the package that an array's type comes from, such as "torch"."""
    return type(array).__module__.split(".")[0]
