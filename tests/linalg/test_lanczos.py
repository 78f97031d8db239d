"""Extreme eigenvalues of several matrices at once."""

import numpy as np

from mkclust.linalg import lanczos


def symmetric(values, seed):
    """Return a matrix with the given eigenvalues."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (Q * values) @ Q.T


def ritz_values(matrices, steps, **options):
    """Return what Lanczos steps tell of matrices that are held."""
    shape = len(matrices), len(matrices[0])
    return lanczos.ritz_values(lanczos.products_with(matrices), shape, steps, **options)


def test_extremes_that_stand_apart_are_found_within_their_residuals():
    spectra = [np.r_[-5.0, np.linspace(0, 1, 58), 9.0], np.r_[1e-200, np.zeros(58), 3e-200]]
    matrices = np.stack([symmetric(values, seed) for seed, values in enumerate(spectra)])
    values, residuals = ritz_values(matrices, 20)
    assert values.shape == residuals.shape == (2, 20)
    np.testing.assert_allclose(values[0, [0, -1]], [-5, 9], rtol=1e-10)
    np.testing.assert_allclose(values[1, -1], 3e-200, rtol=1e-10)
    assert residuals[0, [0, -1]].max() < 1e-4


def test_no_value_lies_outside_the_spectrum():
    matrices = np.stack([symmetric(np.linspace(-1, 2, 40), seed) for seed in range(3)])
    values, _ = ritz_values(matrices, 6)
    assert values.min() >= -1 - 1e-12
    assert values.max() <= 2 + 1e-12


def test_past_an_invariant_subspace_nothing_is_seen():
    values, residuals = ritz_values(np.stack([np.eye(30), np.zeros((30, 30))]), 10)
    np.testing.assert_allclose(values.max(axis=1), [1, 0], atol=1e-12)
    assert values.min() > -1e-12
    assert residuals.max() < 1e-12


def test_no_more_steps_are_taken_than_there_are_rows():
    values, _ = ritz_values(np.diag([1.0, 2.0, 3.0])[None], 10)
    np.testing.assert_allclose(values, [[1, 2, 3]])


def test_products_are_those_of_the_matrices_however_they_are_stored():
    whole = np.stack([symmetric(np.linspace(-1, 2, 20), seed) for seed in range(4)])
    matrices = [whole[0], whole[1].T, whole[2].astype(np.float32), np.asfortranarray(whole[3])]
    vectors = np.random.default_rng(0).normal(size=(4, 20))
    products = lanczos.products_with(matrices)(vectors)
    expected = np.stack([matrix @ vector for matrix, vector in zip(whole, vectors, strict=True)])
    np.testing.assert_allclose(products, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(products[[0, 1, 3]], expected[[0, 1, 3]], rtol=1e-12, atol=1e-13)


def test_few_steps_are_taken_where_they_tell_the_largest_of_all_matrices():
    known = symmetric(np.r_[-9.0, np.linspace(0, 1, 58), 5.0], 0)
    unknown = symmetric(np.linspace(-1, 1, 60), 1)
    few = {"few_steps": 12, "enough": 1e-5}
    values, _ = ritz_values(known[None], 20, **few)
    assert values.shape == (1, 12)
    np.testing.assert_allclose(values[0, 0], -9, rtol=1e-9)
    assert ritz_values(np.stack([known, unknown]), 20, **few)[0].shape == (2, 20)
