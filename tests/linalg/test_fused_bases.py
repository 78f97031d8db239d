"""Orthonormal bases that are looked at later: on CUDA devices only."""

import numpy as np
import pytest

from libraries import ON_CUDA, as_library
from mkclust.linalg import MOST_DOUBT, orthonormalize_ahead, runs_ahead, to_host
from mkclust.linalg.in_triton import written_in_triton

pytestmark = [pytest.mark.slow, *ON_CUDA]


def on_device(array, dtype="float64"):
    like = as_library("cuda", np.zeros(1))
    if written_in_triton("fused_bases", like) is None:
        pytest.skip("Triton does not work here")
    return as_library("cuda", np.asarray(array, dtype))


def orthogonal_to(known, width, decay, seed=0):
    """Return columns of falling length that are orthogonal to an orthonormal basis."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(known), width)) * np.logspace(0, -decay, width)
    return X - known @ (known.T @ X)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("n", "r", "b"), [(300, 7, 1), (3000, 40, 28), (3000, 100, 33), (2000, 0, 64)]
)
def test_a_basis_made_ahead_is_orthonormal_and_spans_the_columns(n, r, b, dtype):
    rng = np.random.default_rng(1)
    known = np.linalg.qr(rng.normal(size=(n, r)))[0] if r else np.zeros((n, 0))
    X = orthogonal_to(known, b, decay=8)
    basis, doubts = orthonormalize_ahead(on_device(X, dtype), on_device(known, dtype))
    assert to_host(doubts).max() <= MOST_DOUBT
    Q, tolerance = to_host(basis), 1e-13 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(Q.T @ Q, np.eye(b), atol=tolerance)
    np.testing.assert_allclose(known.T @ Q, 0, atol=tolerance)
    unit = X / np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(Q @ (Q.T @ unit), unit, atol=100 * tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["repeated", "zero", "known"])
def test_columns_that_have_no_basis_are_in_doubt(kind, dtype):
    rng = np.random.default_rng(2)
    known = np.linalg.qr(rng.normal(size=(500, 5)))[0]
    X = orthogonal_to(known, 6, decay=1)
    X[:, 3] = {"repeated": 2 * X[:, 1], "zero": 0 * X[:, 1], "known": known[:, 2]}[kind]
    _, doubts = orthonormalize_ahead(on_device(X, dtype), on_device(known, dtype))
    assert not np.all(to_host(doubts) <= MOST_DOUBT)


def test_wide_blocks_are_left_to_the_host():
    fused = written_in_triton("fused_bases", on_device(np.zeros(1)))
    assert runs_ahead(on_device(np.zeros((9, fused.MOST_COLUMNS))))
    assert not runs_ahead(on_device(np.zeros((9, fused.MOST_COLUMNS + 1))))
    assert not runs_ahead(on_device(np.zeros((9, 0))))
    assert not runs_ahead(np.zeros((9, 3)))
