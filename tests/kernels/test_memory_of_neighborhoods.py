"""Neighborhoods take memory for the neighbors that they hold, not for all pairs of
samples."""

import tracemalloc

import numpy as np

from mkclust.kernels.neighbors import find_neighborhoods
from mkclust.linalg import ranges
from mkclust.linalg.nearest import kth_smallest

SIZE = 10


def distance_blocks(n_samples, block_rows=50):
    """Return distances of points on a line, some rows at a time."""
    places = np.random.default_rng(0).random(n_samples)
    parts = list(ranges(n_samples, block_rows))
    return lambda part: np.abs(places[part, None] - places), parts, places


def peak_bytes(n_samples):
    """Return the most memory that a search for neighborhoods takes at a time."""
    tracemalloc.start()
    try:
        find_neighborhoods(SIZE, *distance_blocks(n_samples))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_of_neighborhoods_grows_with_the_samples_not_with_their_pairs():
    few, many = 1000, 4000
    growth = np.log(peak_bytes(many) / peak_bytes(few)) / np.log(many / few)
    assert growth < 1.3  # 1.9 if every block of distances stays


def test_the_last_neighbors_keep_no_block_of_distances_alive():
    rows = np.random.default_rng(0).random((20, 500))
    last = kth_smallest(rows, SIZE)
    np.testing.assert_array_equal(last[:, 0], np.sort(rows, axis=1)[:, SIZE - 1])
    assert last.base is None or last.base.size <= last.size
