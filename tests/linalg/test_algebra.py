"""Linear algebra on thin matrices."""

import numpy as np
import pytest

from helpers.arrays import LIBRARIES, as_library
from mkclust.linalg import has_cholesky, orthonormalize


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("entry", "expected"), [(2.0, True), (0.1, False), (np.nan, False)]
)
def test_only_positive_definite_matrices_have_a_cholesky_factorization(
    library, entry, expected
):
    M = np.full((60, 60), 0.5) + np.eye(60)
    M[30, 30] = entry
    assert has_cholesky(as_library(library, M)) is expected


def test_orthonormalizing_keeps_the_span_without_dependent_columns():
    X = np.random.default_rng(0).normal(size=(50, 6)) * 10.0 ** np.arange(6)
    Q = orthonormalize(np.hstack([X, X @ np.ones((6, 2)), np.zeros((50, 1))]))
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(Q @ (Q.T @ X), X, rtol=1e-8)


def test_the_result_is_orthogonal_to_a_given_basis():
    rng = np.random.default_rng(1)
    V = orthonormalize(rng.normal(size=(80, 10)))
    nearly_inside = V @ rng.normal(size=(10, 4)) + 1e-9 * rng.normal(size=(80, 4))
    Q = orthonormalize(nearly_inside, V)
    assert np.abs(V.T @ Q).max() < 1e-12
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)


def test_a_block_whose_factor_hides_its_conditioning_is_orthonormalized_all_the_same():
    # Kahan's: no diagonal entry of the triangular factor is small, and yet it is near
    # singular.
    b, rng = 60, np.random.default_rng(0)
    s = 0.11 ** (1 / (b - 1))
    c = np.sqrt(1 - s**2)
    R = np.diag(s ** np.arange(b)) @ (np.eye(b) - c * np.triu(np.ones((b, b)), 1))
    Z = orthonormalize(np.linalg.qr(rng.normal(size=(400, b)))[0] @ R)
    assert np.abs(Z.T @ Z - np.eye(Z.shape[1])).max() < 1e-12
