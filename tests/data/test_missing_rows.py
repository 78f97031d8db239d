"""Blocks of samples that are missing from some views hold the rows that each view has."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse

from libraries import LIBRARIES, as_library
from mkclust.data.blocks import Blocks
from mkclust.data.samples import as_blocks
from mkclust.linalg import to_host


def counted(block, start):
    """Return what a block has of each view, sample by sample."""
    sums = np.zeros((block.n_rows, len(block)))
    for number, (name, rows) in enumerate(block.items()):
        index = block.index(name)
        sums[slice(None) if index is None else index, number] = rows.sum(axis=1) + start
    return sums


@pytest.mark.parametrize("library", [*LIBRARIES, "sparse"])
def test_blocks_hold_the_rows_that_each_view_has(library):
    rng = np.random.default_rng(0)
    full, observed = rng.normal(size=(35, 3)), rng.random((35, 2)) < 0.6
    as_held = scipy.sparse.csr_array if library == "sparse" else partial(as_library, library)
    tables = {"all rows": as_held(full), "its own": as_held(full[observed[:, 1]])}
    blocks = Blocks(tables, observed, 8)
    some = np.sort(rng.choice(35, 9, replace=False))
    parts = [(blocks.take(some), some), (blocks.take(some[:0]), some[:0])]
    parts += [(block, np.arange(start, min(start + 8, 35))) for start, block in blocks]
    whole = blocks.take(np.arange(35))
    parts += [(whole, np.arange(35)), (whole.part(slice(5, 21)), np.arange(5, 21))]
    for block, numbers in parts:
        assert block.n_rows == len(numbers)
        for number, (name, rows) in enumerate(block.items()):
            has = observed[numbers, number]
            dense = to_host(rows.toarray() if library == "sparse" else rows)
            np.testing.assert_array_equal(dense, full[numbers[has]])
            index = np.arange(len(numbers)) if block.index(name) is None else block.index(name)
            np.testing.assert_array_equal(index, np.flatnonzero(has))


@pytest.mark.parametrize("form", ["map", 25, (40, 0, 37, 13)])
def test_rows_of_files_and_dask_arrays_that_are_all_nan_are_missing(form, tmp_path):
    rng = np.random.default_rng(0)
    views, observed = {name: rng.normal(size=(90, 3)) for name in "ab"}, rng.random((90, 2)) < 0.7
    observed[~observed.any(axis=1), 0] = True
    for view, has in zip(views.values(), observed.T, strict=True):
        view[~has] = np.nan
    expected = np.column_stack([np.nan_to_num(view.sum(axis=1)) for view in views.values()])
    given = {}
    for name, view in views.items():
        if form == "map":
            np.save(tmp_path / f"{name}.npy", view)
            given[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        else:
            da = pytest.importorskip("dask.array")
            given[name] = da.from_array(view, chunks=(form, 2))
    blocks = as_blocks(given, block_rows=90)
    found = blocks.map(lambda block, _: counted(block, 0))
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(blocks.observed, observed)
    np.testing.assert_allclose(counted(blocks.take(np.arange(5, 30)), 0), expected[5:30])
