import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from mkclust.kernels.preparations import (
    LimitColumnScale,
    LinkedToItself,
    LogTfIdf,
    SquareRootsOfShares,
)


def counts(seed=0, shape=(40, 12)):
    return np.random.default_rng(seed).poisson(0.4, size=shape).astype(float)


def loud(seed=0):
    return np.random.default_rng(seed).normal(size=(40, 5)) * [1, 2, 1, 100, 1] + 3


def test_log_tf_idf_is_that_of_scikit_learn():
    X = counts() * 3
    X[5] = 0
    preparation = LogTfIdf.learn(X)
    assert preparation.unit == np.median(X[X > 0])
    tf_idf = TfidfTransformer(norm="l2", smooth_idf=True)
    expected = tf_idf.fit_transform(np.log1p(X / preparation.unit)).toarray()
    np.testing.assert_allclose(preparation.apply(X), expected, rtol=1e-12)
    new = counts(1)
    expected = tf_idf.transform(np.log1p(new / preparation.unit)).toarray()
    np.testing.assert_allclose(preparation.apply(new), expected, rtol=1e-12)


def test_distances_of_square_roots_of_shares_are_those_of_hellinger():
    X = np.random.default_rng(0).gamma(1.0, size=(20, 6))
    roots = SquareRootsOfShares.learn(X).apply(X)
    p, q = X[3] / X[3].sum(), X[7] / X[7].sum()
    affinity = sum((a * b) ** 0.5 for a, b in zip(p, q, strict=True))
    assert np.sum((roots[3] - roots[7]) ** 2) == pytest.approx(2 - 2 * affinity, rel=1e-12)


def test_loud_columns_are_brought_down_and_no_column_is_amplified():
    X = np.hstack([loud(), np.full((40, 1), 0.1), 1e-6 * loud()[:, :1]])
    calm = LimitColumnScale.learn(X).apply(X)
    deviations = X.std(axis=0)
    most = 2 * np.median(deviations[[0, 1, 2, 3, 4, 6]])
    assert deviations[3] > most
    np.testing.assert_allclose(calm[:, 3].std(), most, rtol=1e-12)
    others = [0, 1, 2, 4, 5, 6]
    np.testing.assert_array_equal(calm[:, others], X[:, others])


def test_every_sample_is_linked_to_itself_by_its_largest_link():
    A = np.array([[0.0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    before = A.copy()
    preparation = LinkedToItself.learn(A)
    expected = A + np.diag([2.0, 2, 1, 1])
    np.testing.assert_array_equal(preparation.apply_to_training(A), expected)
    np.testing.assert_array_equal(preparation.apply(A[:2]), A[:2])
    np.testing.assert_array_equal(A, before)
