import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from mkclust.kernels.preparations import LimitColumnScale, LogTfIdf


def counts(seed=0):
    return np.random.default_rng(seed).poisson(0.4, size=(40, 12)).astype(float)


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


def test_columns_that_vary_much_are_scaled_down_and_no_column_is_amplified():
    loud = np.random.default_rng(0).normal(size=(40, 5)) * [1, 2, 1, 100, 1] + 3
    X = np.hstack([loud, np.full((40, 1), 0.1), 1e-6 * loud[:, :1]])
    calm = LimitColumnScale.learn(X).apply(X)
    deviations = X.std(axis=0)
    most = 2 * np.median(deviations[[0, 1, 2, 3, 4, 6]])
    assert deviations[3] > most
    np.testing.assert_allclose(calm[:, 3].std(), most, rtol=1e-12)
    others = [0, 1, 2, 4, 5, 6]
    np.testing.assert_array_equal(calm[:, others], X[:, others])
