"""Steps that are taken before it is known that their vectors are orthonormal, as a GPU takes them.

A device is played by NumPy here.
"""

from dataclasses import replace

import numpy as np
import pytest

from mkclust.engine import missed, relaxation
from mkclust.engine.missed import find_missed_eigenvectors
from mkclust.engine.relaxation import KrylovSpace, improve, rayleigh_ritz
from mkclust.linalg import noise, orthonormalize
from mkclust.linalg.operators import MatrixOperator

pytestmark = pytest.mark.slow

N, K = 400, 5


def orthonormalize_ahead(X, against, gram=None):
    """Do what a device does: nothing depends on what the numbers are."""
    with np.errstate(all="ignore"):
        for _ in range(2):
            gram = X.T @ X if gram is None else gram
            doubts = np.abs(gram - np.eye(len(gram))).max(axis=0)
            try:
                X = X @ np.linalg.inv(np.linalg.cholesky(gram)).T
            except np.linalg.LinAlgError:
                X = np.full_like(X, np.nan)
            X, gram = X - against @ (against.T @ X), None
    return X, np.where(np.isfinite(doubts), doubts, 1e30)


@pytest.fixture
def ahead(monkeypatch):
    for module in (relaxation, missed):
        monkeypatch.setattr(module, "orthonormalize_ahead", orthonormalize_ahead)
    monkeypatch.setattr(relaxation, "runs_ahead", lambda X: True)


def matrix(values, seed=0):
    """Return a symmetric matrix of some eigenvalues, and its eigenvectors."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))[0]
    return (Q * values) @ Q.T, Q


def counted(space_class, name, monkeypatch):
    """Return a list that grows with each call of a method."""
    calls, method = [], getattr(space_class, name)
    monkeypatch.setattr(
        space_class, name, lambda self, *rest: (calls.append(1), method(self, *rest))[1]
    )
    return calls


def started(A, width=13):
    """Return what random vectors know of a matrix."""
    return rayleigh_ritz(MatrixOperator(A), orthonormalize(noise((N, width), 0, A)), K)


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
def test_eigenvectors_found_ahead_of_looks_are_the_leading_ones(ahead, tol):
    values = 1.0 / np.arange(1, N + 1)
    A, _ = matrix(values)
    found = improve(MatrixOperator(A), started(A), tol)
    exact = values[:K].sum()
    assert -1e-12 <= exact - found.value <= 2 * tol * exact
    V = found.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)
    np.testing.assert_allclose(found.products, A @ V, atol=1e-12)
    np.testing.assert_allclose(found.residuals, A @ V - V * found.eigenvalues, atol=1e-12)


def test_several_products_are_taken_between_two_looks_but_no_more_than_there_may_be(
    ahead, monkeypatch
):
    A, _ = matrix(1.0 / np.arange(1, N + 1))
    products = counted(KrylovSpace, "expand", monkeypatch)
    looks = counted(relaxation.Progress, "note", monkeypatch)
    improve(MatrixOperator(A), started(A), 1e-10, max_products=5)
    assert len(products) == 5
    assert len(looks) - 1 < 5  # the first is taken before


def test_blocks_that_lose_directions_are_taken_in_once_more(ahead, monkeypatch):
    # Of rank 30, so that a third block of 13 vectors has nowhere to go.
    values = np.where(np.arange(N) < 30, 0.5 ** np.arange(N), 0.0)
    A, _ = matrix(values)
    repeats = counted(KrylovSpace, "_repeat", monkeypatch)
    found = improve(MatrixOperator(A), started(A), 1e-15)
    assert repeats
    np.testing.assert_allclose(found.value, values[:K].sum(), rtol=1e-12)
    V = found.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    np.testing.assert_allclose(found.products, A @ V, atol=1e-12)


def known_vectors(A, Q, columns):
    """Return what is known where some eigenvectors are."""
    return rayleigh_ritz(MatrixOperator(A), np.ascontiguousarray(Q[:, columns]), K)


def test_a_search_ahead_of_looks_finds_what_was_missed(ahead):
    A, Q = matrix(1.0 / np.arange(1, N + 1))
    everyone = np.arange(14)
    known = known_vectors(A, Q, everyone[everyone != 2])
    found = find_missed_eigenvectors(MatrixOperator(A), known, 1e-6, seed=1)
    assert found.vectors is not None
    assert np.linalg.norm(found.vectors.T @ Q[:, 2]) > 0.9


def test_a_search_ahead_of_looks_says_as_much_as_one_that_looks_at_each_step(ahead, monkeypatch):
    A, Q = matrix(1.0 / np.arange(1, N + 1))
    known = known_vectors(A, Q, np.arange(14))
    looks = counted(missed._Outside, "look", monkeypatch)
    late = find_missed_eigenvectors(MatrixOperator(A), known, 1e-3, seed=1)
    monkeypatch.setattr(missed, "orthonormalize_ahead", lambda *arguments: None)
    careful = find_missed_eigenvectors(MatrixOperator(A), known, 1e-3, seed=1)
    assert late.vectors is None
    assert careful.vectors is None
    assert late.probability == careful.probability
    assert careful.n_products <= late.n_products
    assert len(looks) < careful.n_products + late.n_products


def test_a_search_that_reaches_all_there_is_begins_again_with_a_look_at_each_step(
    ahead, monkeypatch
):
    values = np.where(np.arange(N) < 40, 1.0 / (1 + np.arange(N)), 0.0)
    A, Q = matrix(values)
    known = known_vectors(A, Q, np.arange(14))
    repeats = counted(missed._Outside, "_repeat", monkeypatch)
    found = find_missed_eigenvectors(MatrixOperator(A), known, 1e-12, seed=1, probability=1e-99)
    assert repeats
    assert found.vectors is None
    assert found.probability <= missed.PROBABILITY


def test_an_error_that_fell_fast_before_is_expected_to_do_so_again(ahead):
    A, _ = matrix(0.9 ** np.arange(N))
    start = started(A)
    ahead_by = {
        fall: KrylovSpace(MatrixOperator(A), replace(start, fall=fall), 8).n_ahead(1e-6)
        for fall in (5.0, 100.0)
    }
    assert 1 <= ahead_by[100.0] < ahead_by[5.0]


def test_the_fall_of_an_error_is_that_of_each_step_on_the_way(ahead):
    A, _ = matrix(0.9 ** np.arange(N))
    start = started(A)
    found = improve(MatrixOperator(A), start, 1e-8)
    assert relaxation.LEAST_FALL <= found.fall <= relaxation.LARGEST_FALL
    again = improve(MatrixOperator(A), start, 1e-8, max_products=1)
    np.testing.assert_allclose(
        again.fall, max(start.error / again.error, relaxation.LEAST_FALL), rtol=1e-12
    )
