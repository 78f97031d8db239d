"""The sets on which first answers are judged: they stay the same ones, and say what is
missing."""

import numpy as np
import pytest

import sets
from helpers.reference import reference_folder
from mkclust.datasets import DatasetError

# Sizes of the clusters and the mean square of the columns, for seed 1. Rows of earlier
# runs are of these draws: a change of them makes the rows incomparable.
DRAWS = {
    "blobs": ([85, 80, 97, 86, 77, 75], 2.631158),
    "unequal": ([375, 149, 51, 18, 7], 3.811158),
    "two unequal": ([461, 39], 2.213847),
    "far unequal": ([190, 10], 2.198312),
    "dense and diffuse": ([150, 30], 1.527640),
    "cells": ([202, 184, 98, 69, 78, 39, 21, 9], 5.999271),
    "densities": ([120] * 4, 7.622580),
    "rings": ([110, 110], 3.125534),
    "moons": ([200, 200], 0.552835),
    "circles": ([200, 200], 0.316335),
    "overlap": ([150, 150], 1.090065),
    "partial": ([90] * 6, 5.025992),
    "many": ([10] * 40, 2.451427),
    "omics": ([71, 40, 26, 13], 2.298152),
    "small": ([20, 20, 20], 3.327327),
}


@pytest.fixture
def views():
    return sets.load("partial")[0]


def test_there_are_43_real_sets_and_15_families_beside_the_touchstone():
    assert len(set(sets.REAL)) == 43
    assert set(sets.FAMILIES) == set(DRAWS)
    assert set(sets.SIMULATED) == {*sets.FAMILIES, *sets.TOUCHSTONE}


@pytest.mark.parametrize("family", sets.FAMILIES)
def test_a_seed_always_makes_the_same_member_of_a_family(family):
    views, classes = sets.load(family, seed=1)
    sizes, square = DRAWS[family]
    assert list(np.bincount(classes)) == sizes
    columns = np.hstack(list(views.values()))
    assert np.mean(columns**2) == pytest.approx(square, rel=1e-5)
    other = np.hstack(list(sets.load(family, seed=2)[0].values()))
    assert columns.shape != other.shape or not np.allclose(columns, other)


@pytest.mark.slow
def test_the_touchstone_is_always_the_same():
    views, classes = sets.load("cite", seed=1)
    assert list(np.bincount(classes)) == [
        751,
        523,
        352,
        233,
        189,
        153,
        104,
        83,
        60,
        24,
        19,
        9,
    ]
    assert [view.shape for view in views.values()] == [(2500, 20), (2500, 25)]
    columns = np.hstack(list(views.values())).astype(float)
    assert np.mean(columns**2) == pytest.approx(6.146548, rel=1e-4)


def test_noise_and_categories_stand_beside_the_views(views):
    noisy = sets.with_noise(views, seed=3)
    assert list(noisy) == [*views, "noise"]
    assert noisy["noise"].shape == (540, 20)
    beside = sets.with_category(views, seed=3)
    assert list(beside) == [*views, "category"]
    assert (beside["category"].sum(axis=1) == 1).all()
    assert (beside["category"].sum(axis=0) > 540 / 4).all()
    for name, view in views.items():
        assert noisy[name] is view
        assert beside[name] is view
    assert not np.allclose(noisy["noise"], sets.with_noise(views, seed=4)["noise"])


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_missing_samples_have_no_row_in_a_view_and_one_in_another(views, share):
    gone = sets.with_missing(views, share, seed=1)
    observed = np.array([~np.isnan(view).any(axis=1) for view in gone.values()])
    assert observed.any(axis=0).all()
    # Samples that lost all of their views, share ** 3 of them, have one again.
    assert 1 - observed.mean() == pytest.approx(share - share**3 / 3, abs=0.05)
    for (name, view), rows in zip(views.items(), observed, strict=True):
        assert np.isnan(gone[name][~rows]).all()
        np.testing.assert_array_equal(gone[name][rows], view[rows])


@pytest.mark.parametrize("name", ["BBCSport", "ACM", "liver"])
def test_real_sets_without_a_folder_ask_for_it(monkeypatch, tmp_path, name):
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    with pytest.raises(DatasetError, match="MKCLUST_DATA"):
        sets.load(name)
    monkeypatch.setenv("MKCLUST_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="not found"):
        sets.load(name)


def test_a_name_that_is_no_set_is_answered_with_those_that_are():
    with pytest.raises(DatasetError, match=r"blob: no such set.*BBCSport.*blobs"):
        sets.load("blob")


def test_sets_that_come_with_scikit_learn_need_no_folder(monkeypatch):
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    views, classes = sets.load("wine")
    assert [view.shape for view in views.values()] == [(178, 5), (178, 4), (178, 4)]
    assert list(np.bincount(classes)) == [59, 71, 48]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_classes", "shapes"),
    [
        ("3Sources", 6, [(169, 3560), (169, 3631), (169, 3068)]),
        ("Prokaryotic", 4, [(551, 393), (551, 3), (551, 438)]),
        ("liver", 4, [(64, 2000), (64, 10)]),
        ("Penguins", 3, [(342, 7), (342, 2), (342, 4)]),
        ("UCI", 10, [(800, 240), (800, 76), (800, 6)]),
    ],
)
def test_real_sets_have_their_views_and_no_empty_cells(name, n_classes, shapes):
    reference_folder("MKCLUST_DATA")
    views, classes = sets.load(name)
    assert [view.shape for view in views.values()] == shapes
    assert len(np.unique(classes)) == n_classes == classes.max() + 1
    assert all(np.isfinite(view).all() for view in views.values())
