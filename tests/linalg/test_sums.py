"""Sums of scaled matrices on a device, against the plain formula."""

import numpy as np
import pytest

from libraries import FOREIGN, as_library
from mkclust.linalg import empty, to_host, weighted_sum
from mkclust.linalg import sums as plain


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("m", "n"), [(1, 5), (3, 300), (11, 1100)])
@pytest.mark.parametrize("fused", [True, False])
def test_a_sum_is_that_of_the_formula(library, dtype, m, n, fused, monkeypatch):
    if not fused:
        monkeypatch.setattr(plain, "_fused", lambda: None)
    monkeypatch.setattr(plain, "SUM_ENTRIES", 70 * n)  # several blocks, the last one lower
    rng = np.random.default_rng(0)
    K, c = rng.normal(size=(m, n, n)).astype(dtype), rng.uniform(0.5, 1.5, m)
    scales = [None if p == 1 else rng.uniform(0.5, 1.5, n) for p in range(m)]
    matrices = as_library(library, list(K))
    out = empty((n, n), matrices[0], dtype)
    there = [None if s is None else as_library(library, s) for s in scales]
    assert weighted_sum(c, matrices, there, out=out) is out
    expected = np.zeros((n, n))
    for p, scale in enumerate(scales):
        s = np.ones(n) if scale is None else scale
        expected += c[p] * s[:, None] * K[p] * s
    np.testing.assert_allclose(to_host(out), expected, atol=1e-12 if dtype == "float64" else 2e-5)
