"""The comparison on cells: its tasks, Leiden's leftovers, and rows of several jobs."""

import numpy as np
import pytest

import cells

NAMES = ("ours, components", "k-means, both side by side")


@pytest.mark.slow
def test_rows_of_several_jobs_are_those_of_one():
    tasks = [(("cite", 400, 1), NAMES), (("multiome", 400, 1), NAMES[1:])]
    rows = {}
    for jobs in (1, 2):
        found = [
            tuple(row[name] for name in ("cells", "contestant", "ari", "clusters"))
            for row in cells.compare(tasks, jobs)
        ]
        rows[jobs] = sorted(found)
    assert rows[1] == rows[2]
    assert len(rows[1]) == 3


def test_rows_that_are_there_are_not_run_again():
    row = {"cells": "cite", "n": 3000, "seed": 1, "contestant": NAMES[0]}
    tasks = cells.todo({"rows": [row]}, ["cite_3000", "cite_12000"], NAMES)
    assert tasks == [
        (("cite", 12_000, 1), list(NAMES)),
        (("cite", 3_000, 1), [NAMES[1]]),
    ]


def test_real_sets_that_are_not_there_are_skipped(monkeypatch, capsys):
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    assert cells.todo({"rows": []}, ["real"], NAMES) == []
    assert "SNARE is skipped" in capsys.readouterr().out


def test_cells_that_are_almost_alone_join_their_nearest_cells():
    labels = np.repeat([0, 1, 2], [6, 6, 1])
    near = np.zeros((13, 3), int)
    near[12] = [7, 8, 0]
    found = cells.without_leftovers(labels, near)
    np.testing.assert_array_equal(found, np.repeat([0, 1, 1], [6, 6, 1]))


def test_leiden_finds_clusters_that_are_far_apart():
    pytest.importorskip("igraph")
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    points = 20 * np.eye(3)[y] + rng.normal(size=(300, 3))
    near = cells.nearest(points, cells.NEIGHBORS)[1]
    labels, _ = cells.leiden(near, 3)
    assert cells.adjusted_rand_index(y, labels) == 1
    assert cells.types_found(y, labels) == 3
