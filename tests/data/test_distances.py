"""The median distance of rows, and the memory that it takes."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from mkclust.data.distances import median_distance


@pytest.mark.parametrize("n", [2, 255, 257, 700])
def test_the_median_is_that_of_all_pairs_of_rows(n):
    rows = np.random.default_rng(n).normal(size=(n, 4))

    assert median_distance("", rows) == pytest.approx(np.median(pdist(rows)), rel=1e-12)


def test_if_most_rows_are_alike_it_is_the_mean_of_the_positive_distances():
    rows = np.zeros((300, 2))
    rows[:5] = np.arange(10).reshape(5, 2)
    distances = pdist(rows)

    expected = distances[distances > 0].mean()
    assert median_distance("", rows) == pytest.approx(expected, rel=1e-12)


def test_every_distance_is_in_memory_once():
    rows = np.random.default_rng(0).normal(size=(2500, 4))
    tracemalloc.start()
    try:
        median_distance("", rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    n_pairs = 2500 * 2499 // 2
    assert peak < 2 * 8 * n_pairs  # three times with a list of blocks beside them
