"""Rows of a parquet file that stays on disk are those of the table that was written."""

import pickle

import numpy as np
import pytest

from mkclust.datasets import load

pq = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")

N, ROW_GROUP = 53, 10


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[[0, ROW_GROUP, N - 1], 1] = np.nan
    return X


@pytest.fixture
def on_disk(table, tmp_path):
    columns = {f"c{place}": column for place, column in enumerate(table.T)}
    path = tmp_path / "table.parquet"
    pq.write_table(pyarrow.table(columns), path, row_group_size=ROW_GROUP)
    return load(path, on_disk=True).views["table"]


def test_every_row_is_found_alone(on_disk, table):
    for row in [*range(N), *range(N - 1, -1, -1)]:
        np.testing.assert_array_equal(on_disk[row], table[row])


def test_rows_and_columns_are_taken_as_of_an_array(on_disk, table):
    order = np.random.default_rng(1).integers(N, size=40)
    for rows in (order, np.sort(order), slice(3, 41, 4), slice(None), -1, [7]):
        np.testing.assert_array_equal(on_disk[rows], table[rows])
        np.testing.assert_array_equal(on_disk[rows, 1:], table[rows][..., 1:])


def test_a_pickled_table_reads_the_same_file(on_disk, table):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(on_disk))[:], table)
