"""What a kernel lacks is put in and taken out by one map, a matrix that is never
written out."""

import pickle

import numpy as np
import pytest

from helpers.arrays import LIBRARIES, as_library, kind_of
from mkclust.linalg import to_host
from mkclust.stack.observed import Fill, SampleMap, rescaling


def dense(sample_map):
    """Return the map as a matrix, by its definition."""
    E = np.eye(sample_map.n_samples)[sample_map.samples]
    if sample_map.fill is not None:
        E = E + to_host(sample_map.fill.left) @ to_host(sample_map.fill.right).T
    return E if sample_map.scale is None else E * to_host(sample_map.scale)


def random_map(rng, n, n_observed, rank=None, scaled=False, library="numpy"):
    """Return a map with some samples observed, filled by thin matrices of a rank."""
    samples = np.sort(rng.choice(n, n_observed, replace=False))
    scale = as_library(library, rng.uniform(0.5, 2, n)) if scaled else None
    fill = None
    if rank is not None:
        right = rng.normal(size=(n, rank))
        right[samples] = 0
        left = as_library(library, rng.normal(size=(n_observed, rank)))
        fill = Fill(left, as_library(library, right))
    return SampleMap(samples, n, scale, fill)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("rank", [None, 0, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_gathering_and_scattering_are_products_with_one_matrix(library, rank, scaled):
    rng = np.random.default_rng(0)
    sample_map = random_map(rng, 12, 7, rank, scaled, library)
    E, V, Y = dense(sample_map), rng.normal(size=(12, 4)), rng.normal(size=(7, 4))
    gathered = sample_map.gather(as_library(library, V))
    scattered = sample_map.scatter(as_library(library, Y))
    assert kind_of(gathered) == kind_of(scattered) == kind_of(as_library(library, V))
    assert np.allclose(to_host(gathered), E @ V, atol=1e-13)
    assert np.allclose(to_host(scattered), E.T @ Y, atol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_map_is_stored_with_arrays_of_the_host(library):
    rng = np.random.default_rng(4)
    sample_map = random_map(rng, 10, 6, rank=2, scaled=True, library=library)
    V = rng.normal(size=(10, 3))
    expected = to_host(sample_map.gather(as_library(library, V)))
    loaded = pickle.loads(pickle.dumps(sample_map))
    assert type(loaded.scale) is type(loaded.fill.left) is np.ndarray
    assert np.allclose(loaded.gather(V), expected, atol=1e-14)


def test_samples_that_kernels_lack_keep_the_self_similarity_of_the_others():
    observed = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]], bool)
    scale = rescaling(observed)
    # Of kernels with a unit diagonal, scaled on both sides.
    np.testing.assert_allclose(scale**2 * observed.sum(axis=1), [4, 4, 4, 0])
    first_two = np.array([True, True, False, False])
    counted = rescaling(observed, first_two)
    np.testing.assert_allclose(counted**2 * observed[:, :2].sum(axis=1), [2, 2, 0, 0])
