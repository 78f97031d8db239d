"""Samples that are missing from views: rows of NaN, and views that hold only what they have."""

import numpy as np
import pytest
import scipy.sparse

from libraries import LIBRARIES, as_library
from mkclust.linalg import place, to_host
from mkclust.linalg.sparse_rows import missing_rows, spread_rows
from mkclust.samples.blocks import observed_samples
from mkclust.samples.dask import spread_lazily
from mkclust.samples.local import LocalBlocks, SpreadRows


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_of_nan_is_a_sample_that_a_view_lacks(library, dtype):
    rows = np.ones((5, 3), dtype)
    there = as_library(library, rows.copy())
    assert not to_host(missing_rows(there), None).any()
    rows[[1, 3]] = np.nan
    rows[4, 0] = rows[0, 2] = np.nan  # cells
    found = missing_rows(as_library(library, rows))
    assert to_host(found, None).tolist() == [False, True, False, True, False]
    spread = spread_rows(there[:2, :], np.array([1, 2]), 4, np.nan)
    assert place(spread) == place(there)
    assert to_host(spread, None).dtype == dtype
    np.testing.assert_array_equal(to_host(spread), [[np.nan] * 3, [1] * 3, [1] * 3, [np.nan] * 3])


@pytest.mark.parametrize("library", [*LIBRARIES, "sparse"])
def test_rows_are_spread_slice_by_slice_where_they_live(library):
    rng = np.random.default_rng(0)
    view, samples = rng.normal(size=(20, 3)), np.sort(rng.choice(35, 20, replace=False))
    held = scipy.sparse.csr_array(view) if library == "sparse" else as_library(library, view)
    spread, full = SpreadRows(held, samples, 35), np.full((35, 3), np.nan)
    full[samples] = view

    def written(rows):
        dense = to_host(rows.toarray() if library == "sparse" else rows)
        dense[to_host(missing_rows(rows), None)] = np.nan
        return dense

    numbers = np.sort(rng.choice(35, 9, replace=False))
    for rows in (slice(0, 35), slice(3, 4), slice(30, 35), numbers, numbers[:0]):
        assert place(spread[rows]) == place(held)
        np.testing.assert_array_equal(written(spread[rows]), full[rows])
    blocks = LocalBlocks({"a": spread, "b": SpreadRows(held, samples, 35)}, 8)
    np.testing.assert_array_equal(observed_samples(blocks)[:, 1], ~np.isnan(full[:, 0]))
    for some in (numbers, np.arange(35)):
        np.testing.assert_array_equal(written(blocks.take(some)["b"]), full[some])
        rows, found = blocks.take_seen(some)["a"]
        np.testing.assert_array_equal(found, np.intersect1d(some, samples))
        np.testing.assert_array_equal(written(rows), full[found])
    with pytest.raises(ValueError, match="20 rows of 19 samples"):
        SpreadRows(held, samples[1:], 35)


@pytest.mark.parametrize("rows", [25, (40, 0, 7, 13), 60])
def test_dask_arrays_that_hold_only_what_they_have_are_spread_chunk_by_chunk(rows):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    for samples in (np.sort(rng.choice(85, 60, replace=False)), np.arange(60), np.arange(25, 85)):
        view, full = rng.normal(size=(60, 4)).astype(np.float32), np.full((85, 4), np.nan)
        full[samples] = view
        spread = spread_lazily(da.from_array(view, chunks=(rows, 3)), samples, 85)
        assert (spread.shape, spread.dtype) == ((85, 4), np.float32)
        np.testing.assert_array_equal(spread.compute(), full)
    assert np.isnan(spread_lazily(da.ones((0, 4)), np.arange(0), 3).compute()).all()
