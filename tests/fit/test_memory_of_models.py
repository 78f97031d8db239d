"""What a fitted model holds takes the memory of its numbers, and no large array behind
them."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mkclust import METHODS, SimpleMKKM
from mkclust.kernels import Nystroem

N = 300


def tables(n=N):
    """Return two tables of three clusters."""
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    return {
        name: 3 * rng.normal(size=(3, 6))[y] + rng.normal(size=(n, 6))
        for name in ("left", "right")
    }


def arrays_in(value, where, seen):
    """Yield all arrays in an object of this library, with the attribute that holds
    each."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield where, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from arrays_in(each, f"{where}[{key!r}]", seen)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from arrays_in(each, f"{where}[{number}]", seen)
    elif sp.issparse(value) or type(value).__module__.startswith(
        ("mkclust.", "sklearn.")
    ):
        for name, each in getattr(value, "__dict__", {}).items():
            yield from arrays_in(each, f"{where}.{name}", seen)


def whole(array):
    """Return the array that an array is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


OPTIONS = {
    "exact": {},
    "on the fly": {"kernels": "on-the-fly"},
    "landmarks": {"approximation": Nystroem(n_components=30)},
}


@pytest.mark.slow
@pytest.mark.parametrize("are_missing", [False, True])
@pytest.mark.parametrize("way", OPTIONS)
@pytest.mark.parametrize("name", METHODS)
def test_a_model_keeps_no_large_array_alive_by_a_part_of_it(name, way, are_missing):
    views = tables()
    observed = np.random.default_rng(1).random((N, 2)) > 0.2
    observed[~observed.any(axis=1)] = True
    method = METHODS[name](3, random_state=0)
    if not OPTIONS[way].keys() <= method.get_params().keys():
        pytest.skip("has no such option")
    method.set_params(**OPTIONS[way])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            method.fit(views, observed=observed if are_missing else None)
        except ValueError:
            pytest.skip("needs kernels that are written out, or complete views")

    given = {id(view) for view in views.values()}
    held = [
        (where, each) for where, each in arrays_in(method, name, set()) if each.size
    ]
    assert len(held) > 3
    for where, each in held:
        behind = whole(each)
        assert id(behind) in given or behind.nbytes <= 2 * each.nbytes + 1000, where


@pytest.mark.slow
def test_a_fit_with_landmarks_has_no_matrix_of_all_pairs_of_samples():
    def peak(n):
        views = tables(n)
        tracemalloc.start()
        try:
            SimpleMKKM(3, approximation=Nystroem(n_components=40), random_state=0).fit(
                views
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = 6000, 24_000
    assert np.log(peak(many) / peak(few)) / np.log(many / few) < 1.3
