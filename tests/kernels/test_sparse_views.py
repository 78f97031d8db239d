import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from mkclust.kernels import KernelBank, Linear, Nystroem

pytestmark = pytest.mark.slow

ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}


@pytest.mark.parametrize(
    "feature_map", [Nystroem(20, random_state=0), Linear()], ids=["landmarks", "linear"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_sparse_rows_have_the_similarities_of_dense_ones(feature_map, dtype):
    table = scipy.sparse.random_array((60, 40), density=0.08, rng=0).toarray().astype(dtype)
    table[3], table[5] = 0, table[4]
    expected = feature_map.fit(table).transform(table)
    found = feature_map.fit(scipy.sparse.csr_matrix(table)).transform(scipy.sparse.coo_array(table))
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=tolerance)
    np.testing.assert_allclose(feature_map.transform(table), found, atol=tolerance)


@pytest.mark.parametrize("parameters", [{}, {"neighbors": 10}, {"rules": "kind"}])
def test_a_wide_sparse_view_is_never_written_out(parameters):
    columns = np.random.default_rng(0).geometric(0.005, size=(2_000, 20)) * 100
    places = (np.arange(2_000).repeat(20), np.minimum(columns, 199_999).ravel())
    entries = np.random.default_rng(1).random(40_000)
    view = scipy.sparse.coo_array((entries, places), (2_000, 200_000))
    bank = KernelBank(**{**ONE_GAUSSIAN, **parameters})
    tracemalloc.start()
    try:
        kernels = bank.fit_transform({"a": view})
        bank.transform({"a": view.tocsr()[:50]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(kernels), *kernels[0].shape) == (1, 2_000, 2_000)
    assert peak < 0.15 * 8 * view.shape[0] * view.shape[1]
