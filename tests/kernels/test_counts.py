"""Counts are recognized, prepared as the field does, and nothing else is."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from helpers.kinds import counted
from mkclust import AgreementKKM, load_model, save_model
from mkclust.kernels import KernelBank
from mkclust.kernels.counts import (
    COMPONENTS,
    CountComponents,
    LogRatios,
    are_few_counts,
    are_many_counts,
)

ONE = {"widths": (1.0,), "polynomials": (), "linear": None, "rules": "kind"}


def genes(seed=0, n=200, d=300):
    rng = np.random.default_rng(seed)
    return counted(rng, rng.lognormal(-0.5, 1.5, d), n)


def proteins(seed=0, n=200, d=20):
    rng = np.random.default_rng(seed)
    return counted(rng, rng.lognormal(3.5, 1, d), n)


def cells(seed=0, n=240):
    """Return counts of three types of cells, the last two alike in genes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    folds = np.ones((3, 300))
    folds[0, :60] = 6
    levels = np.ones((3, 20))
    levels[2, :6] = 10
    rna = counted(rng, rng.lognormal(-0.5, 1.5, 300), n, folds[y])
    adt = counted(rng, rng.lognormal(3, 0.7, 20), n, levels[y])
    return {"rna": scipy.sparse.csr_array(rna), "adt": adt}, y


@pytest.mark.parametrize("depth", [0.3, 1, 100])
@given(seed=st.integers(0, 100))
def test_genes_of_any_depth_are_counts(depth, seed):
    rng = np.random.default_rng(seed)
    found = counted(rng, depth * rng.lognormal(0, 1.5, 300), 150)
    assert are_many_counts(found)
    assert not are_few_counts(found)


@given(seed=st.integers(0, 100), n_columns=st.integers(10, 60))
def test_proteins_are_few_counts(seed, n_columns):
    found = proteins(seed, d=n_columns)
    assert are_few_counts(found)
    assert not are_many_counts(found)


@pytest.mark.parametrize("n_columns", [12, 300])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, size: rng.integers(1, 6, size),  # a questionnaire
        lambda rng, size: rng.integers(0, 11, size),  # scores
        lambda rng, size: rng.integers(18, 90, size),  # ages
        lambda rng, size: rng.binomial(2, 0.2, size),  # genotypes
        lambda rng, size: rng.integers(0, 2, size),  # answers
        lambda rng, size: np.clip(rng.gamma(1, 60, size), 0, 255).round(),  # pixels
        lambda rng, size: 1900 + rng.integers(0, 120, size),  # years
        lambda rng, size: rng.poisson(0.03, size),  # words
        lambda rng, size: rng.gamma(1, 5, size),  # no whole numbers
    ],
)
def test_other_whole_numbers_are_no_counts(draw, n_columns):
    rows = np.asarray(draw(np.random.default_rng(0), (200, n_columns)), float)
    assert not are_many_counts(rows)
    assert not are_few_counts(rows)


def test_amounts_of_money_are_no_counts():
    money = np.random.default_rng(0).lognormal(10, 0.7, (300, 12)).round()
    assert not are_few_counts(money)


def test_pixels_of_digits_are_no_counts():
    pixels = load_digits().data
    assert not are_few_counts(pixels)
    assert not are_many_counts(np.hstack([pixels, pixels]))


def test_components_are_those_of_normalized_logarithms():
    rows = genes()
    totals = rows.sum(axis=1)
    logarithms = np.log1p(rows / totals[:, None] * np.median(totals))
    expected = PCA(COMPONENTS, svd_solver="full").fit_transform(logarithms)

    found = CountComponents.learn(rows).apply(rows)

    np.testing.assert_allclose(pdist(found), pdist(expected), rtol=1e-3)


def test_sparse_counts_are_prepared_as_dense_ones():
    rows = genes()
    sparse = scipy.sparse.csr_array(rows)

    found = CountComponents.learn(sparse).apply(sparse)

    expected = CountComponents.learn(rows).apply(rows)
    np.testing.assert_allclose(pdist(found), pdist(expected), rtol=1e-6)


def test_a_cell_read_twice_as_deeply_has_the_same_components():
    rows = genes()
    prepared = CountComponents.learn(rows)

    np.testing.assert_allclose(prepared.apply(2 * rows), prepared.apply(rows))


def test_columns_are_used_that_vary_more_than_others_of_their_mean():
    rng = np.random.default_rng(0)
    rows = counted(rng, np.full(3000, 2.0), 150)
    differing = rng.choice(3000, 50, replace=False)
    rows[:70, differing] *= 8

    columns = CountComponents.learn(rows).columns

    assert len(columns) == 2000
    assert np.isin(differing, columns).all()


def test_log_ratios_sum_to_zero_and_have_no_size():
    rows = proteins() + 100
    ratios = LogRatios().apply(rows)

    np.testing.assert_allclose(ratios.sum(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(ratios, LogRatios().apply(3 * rows), atol=0.02)


def test_rows_without_counts_carry_no_information():
    rows = genes()
    rows[3] = 0
    for learned in (CountComponents.learn(rows), LogRatios.learn(rows)):
        assert np.flatnonzero(learned.zero_rows(rows)).tolist() == [3]


def test_a_bank_says_what_is_done_with_counts_and_leaves_them_if_asked():
    views = {"rna": genes(), "adt": proteins()}
    bank = KernelBank(**ONE).fit(views)
    assert bank.rules_ == {"rna": "counts", "adt": "log-ratios"}
    assert "50 principal components of the 2" in bank.explain()
    assert "centered log-ratios" in bank.explain()

    for scale in ("none", {"rna": "none", "adt": "none"}):
        left = KernelBank(**ONE, scale=scale).fit(views)
        assert left.rules_ == {"rna": "dense", "adt": "table"}


def test_cells_are_clustered_and_new_ones_predicted_from_raw_counts(tmp_path):
    views, y = cells()
    model = AgreementKKM(3, random_state=0).fit(views)
    assert pd.crosstab(model.labels_, y).max(axis=1).sum() >= 0.97 * len(y)
    assert "principal components" in model.summary()

    new, types = cells(n=60)
    types_by_cluster = pd.crosstab(model.labels_, y).idxmax(axis=1).to_numpy()
    assert np.mean(types_by_cluster[model.predict(new)] == types) >= 0.95

    loaded = load_model(save_model(model, tmp_path / "cells.skops"))
    assert (loaded.predict(new) == model.predict(new)).all()
