import re
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from helpers.arrays import LIBRARIES, as_library
from mkclust import AverageKKM, KernelBank, view
from mkclust.datasets import load
from mkclust.exceptions import KernelWarning

ONE = {"widths": (1.0,), "polynomials": (), "linear": None}
N = 60


def blobs(n=N, d=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 3 * rng.integers(2, size=(n, 1))


def warned(X, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KernelBank(**(ONE | parameters)).fit(X)
    return [str(each.message) for each in caught if each.category is KernelWarning]


def test_sound_kernels_are_not_warned_of():
    digits = {name: rows[:600] for name, rows in load("digits").views.items()}
    assert warned(digits) == warned(digits, rules="kind") == []
    for name in (
        "self-tuning",
        "linear",
        "cosine",
        "laplacian",
        "chi2",
        "hellinger",
        "jaccard",
    ):
        assert warned(digits["pixels"], rules=name) == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_that_drowns_the_others_is_named(library):
    loud = blobs() * [1, 1, 6, 1, 1, 1]
    (message,) = warned({"lab": as_library(library, loud)})
    assert message.startswith("View 'lab': column 2 ")
    for remedy in (
        "kind",
        {"lab": view(StandardScaler(), "gaussian")},
        {"lab": "cosine"},
    ):
        assert warned({"lab": loud}, rules=remedy) == []
    assert warned({"lab": loud[:, 1:3]}) == []  # of two columns one always does


def noise(d):
    return np.random.default_rng(0).normal(size=(N, d))


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        (
            blobs(),
            {"widths": (100.0,)},
            "'gaussian x100', is nearly flat.*smaller widths",
        ),
        (noise(20_000), {}, "nearly flat: .* equally similar .*'cosine'"),
        (noise(30), {"widths": (0.05,)}, "nearly the identity.*larger widths"),
    ],
)
def test_a_kernel_that_hardly_distinguishes_samples_is_warned_of(
    X, parameters, message
):
    (found,) = warned({"a": X}, **parameters)
    assert re.search(f"View 'a': .*{message}", found)


@pytest.mark.parametrize(
    ("dtype", "noise"), [("float32", 1e-3), ("float32", 9.0), ("float64", 1e-8)]
)
def test_a_column_that_lost_its_digits_beside_an_offset_is_named(dtype, noise):
    X = blobs()
    X[:, 2] = 1e8 + noise * np.random.default_rng(0).normal(size=N)
    message = warned({"a": X.astype(dtype)})[0]
    assert re.search(f"'a'.*column 2 .*{dtype}", message)


def test_a_kernel_that_is_only_rounding_is_told_from_a_constant_one():
    X = 1e8 + 1e-5 * np.random.default_rng(0).normal(size=(N, 2))
    with pytest.raises(ValueError, match=r"'x'.*rounding.*offset"):
        AverageKKM(2, kernels="linear").fit({"a": blobs(), "x": X})
