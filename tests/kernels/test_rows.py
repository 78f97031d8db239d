"""Kernels computed on the fly are those of the dense bank, in memory as long as the views."""

import numpy as np
import pytest

from conftest import blob_views
from mkclust import KernelBank, SimpleMKKM
from mkclust.stack import RowSource

pytestmark = pytest.mark.slow

N, N_NEW = 230, 90
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
BANKS = {
    "twelve": {},
    "cosine alone": {"widths": (), "polynomials": (), "linear": "cosine"},
    "narrow and wide": {"widths": (1 / 20, 100.0), "polynomials": ((2.5, 3),), "linear": None},
}


def views_of(dtype=np.float64, n=N):
    """Return two views, one of them with a row of zeros, duplicates and an outlier."""
    views, _ = blob_views(np.random.default_rng(0), n=n, k=4, strengths=(2, 2))
    views[1] = views[1][:, :3] + 0.5
    views[1][[5, 77]] = views[1][40]
    views[1][9], views[0][3] = 0, 12
    return [view.astype(dtype) for view in views]


def new_views(dtype=np.float64):
    """Return other samples of the same views, a known one among them."""
    rng = np.random.default_rng(1)
    views = [view[:N_NEW] + 0.3 * rng.normal(size=view[:N_NEW].shape) for view in views_of()]
    views[1][0] = views_of()[1][40]
    return [view.astype(dtype) for view in views]


def both(settings, views):
    """Return the fitted dense bank, the one on the fly, and what they make of the views."""
    dense, lazy = KernelBank(**settings), KernelBank(**settings, on_the_fly=True)
    return dense, lazy, dense.fit_transform(views), lazy.fit_transform(views)


def agree(actual, expected):
    """Compare kernels with each one's largest entry as the measure."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    largest = np.abs(expected).max(axis=(1, 2), keepdims=True)
    tolerance = 1e-12 if expected.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(actual / largest, expected / largest, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
@pytest.mark.parametrize("table", [False, True])
def test_rows_are_those_of_the_dense_bank(settings, dtype, table):
    views = views_of(dtype)[1] if table else views_of(dtype)
    dense, lazy, K, rows = both(settings, views)
    assert isinstance(rows, RowSource)
    assert lazy.kernel_names_ == dense.kernel_names_
    assert (rows.n_kernels, rows.n_samples, rows.dtype) == (*K.shape[:2], K.dtype)
    agree(rows.rows(0, N), K)
    agree(rows.rows(33, 134), K[:, 33:134])
    np.testing.assert_array_equal(rows.diagonal(), np.einsum("pii->pi", K))
    np.testing.assert_array_equal(np.einsum("pii->pi", rows.rows(0, N)), rows.diagonal())
    agree(rows.rows(0, N).transpose(0, 2, 1), K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
def test_new_rows_are_those_of_the_dense_bank(settings, dtype):
    dense, lazy, _, _ = both(settings, views_of(dtype))
    expected, actual = dense.transform(new_views(dtype)), lazy.transform(new_views(dtype))
    assert actual.shape == expected.shape
    agree(actual.rows(0, N_NEW), expected)
    agree(actual.rows(50, 10**6), expected[:, 50:])
    agree(np.concatenate([block.copy() for _, block in actual.blocks()], axis=1), expected)


def test_some_kernels_are_computed_without_the_others():
    _, _, K, rows = both({}, views_of())
    for indices in ([3], [20, 0, 11, 12], [7, 7], range(24)):
        agree(rows.only(indices).rows(2, 99), K[list(indices), 2:99])
        agree(rows.only(indices).diagonal()[:, None], rows.diagonal()[list(indices), None])
    agree(rows.only([20, 0, 11]).only([2, 0]).rows(2, 9), K[[11, 20], 2:9])


def test_the_default_kernels_can_be_had_on_the_fly_by_name():
    views, _ = blob_views(np.random.default_rng(0), n=90, k=3, strengths=(2.0, 2.0))
    for X in (views, views[0]):
        dense = SimpleMKKM(3, random_state=0).fit(X)
        lazy = SimpleMKKM(3, kernels="on-the-fly", random_state=0).fit(X)
        assert lazy.kernel_names_ == dense.kernel_names_
        assert lazy.bank_.on_the_fly
        assert np.array_equal(lazy.labels_, dense.labels_)
        assert np.array_equal(lazy.predict(X), lazy.labels_)
    with pytest.raises(ValueError, match="KernelBank makes kernels from views"):
        SimpleMKKM(3, kernels="on-the-fly").fit(np.array([np.eye(9)] * 2))
