"""Sums of scaled matrices, against the formula."""

from contextlib import nullcontext

import numpy as np
import pytest

from libraries import LIBRARIES, as_library
from mkclust.linalg import empty, is_foreign, sums, to_host, weighted_sum
from mkclust.linalg.threads import threads_for

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("m", "n"), [(1, 5), (3, 300), (11, 1100)])
@pytest.mark.parametrize("fused", [True, False])
def test_a_sum_is_that_of_the_formula(library, dtype, m, n, fused, monkeypatch):
    if not fused:
        monkeypatch.setattr(sums, "written_in_triton", lambda module, like: None)
    rng = np.random.default_rng(0)
    K, c = rng.normal(size=(m, n, n)).astype(dtype), rng.uniform(0.5, 1.5, m)
    scales = [None if p == 1 else rng.uniform(0.5, 1.5, n) for p in range(m)]
    matrices = as_library(library, list(K))
    out = empty((n, n), matrices[0], dtype)
    on_device = [None if s is None else as_library(library, s) for s in scales]
    blocks = {"block_entries": 70 * n}  # several blocks, the last one lower
    assert weighted_sum(c, matrices, on_device, out=out, **blocks) is out
    expected = np.zeros((n, n))
    for p, scale in enumerate(scales):
        s = np.ones(n) if scale is None else scale
        expected += c[p] * s[:, None] * K[p] * s
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(to_host(out), expected, atol=tolerance)
    # A sum may be written in another precision than that of the matrices.
    single = empty((n, n), matrices[0], "float32")
    weighted_sum(c, matrices, on_device, out=single, **blocks)
    np.testing.assert_allclose(to_host(single), expected, atol=2e-5)
    if not is_foreign(out):
        rounded = weighted_sum(c, matrices, on_device, precision="float32", **blocks)
        assert rounded.dtype == np.float32
        np.testing.assert_allclose(rounded, expected, atol=2e-5)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("m", "n"), [(1, 5), (3, 300), (11, 1101)])
def test_a_sum_of_symmetric_matrices_is_told_by_half_of_their_entries(library, dtype, m, n):
    rng = np.random.default_rng(1)
    K, c = rng.normal(size=(m, n, n)).astype(dtype), rng.uniform(0.5, 1.5, m)
    K = K + K.transpose(0, 2, 1)
    scales = rng.uniform(0.5, 1.5, (m, n))
    matrices, on_device = as_library(library, list(K)), as_library(library, list(scales))
    expected = np.einsum("p,pi,pij,pj->ij", c, scales, K, scales)
    for precision in {dtype, "float32"}:
        out = weighted_sum(c, matrices, on_device, precision=precision, symmetric=True)
        tolerance = 1e-12 if precision == "float64" else 3e-5
        np.testing.assert_allclose(to_host(out), expected, atol=tolerance)


@pytest.mark.parametrize(("m", "n"), [(1, 5), (3, 300), (4, 1101)])
@pytest.mark.parametrize("holder", [None, "us"])
def test_sums_of_halves_that_are_kept_are_those_of_the_formula(m, n, holder):
    rng = np.random.default_rng(2)
    K = rng.normal(size=(m, n, n))
    K = K + K.transpose(0, 2, 1)
    scales = [None if p == 1 else rng.uniform(0.5, 1.5, n) for p in range(m)]
    threads = nullcontext() if holder is None else threads_for(1000)
    with threads:
        halves, out = sums.RoundedHalves(list(K), scales), None
        for c in rng.uniform(0.5, 1.5, (2, m)):
            expected = np.zeros((n, n))
            for p, scale in enumerate(scales):
                s = np.ones(n) if scale is None else scale
                expected += c[p] * s[:, None] * K[p] * s
            total = halves.sum(c, out)
            assert out is None or total is out
            out = total
            assert total.dtype == np.float32
            np.testing.assert_allclose(total, total.T, atol=2e-6)
            np.testing.assert_allclose(total, expected, atol=3e-5)
