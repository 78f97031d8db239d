"""Leading and extreme eigenvectors by products alone, against dense eigensolvers."""

import numpy as np
import pytest

from helpers.arrays import LIBRARIES, as_library
from helpers.kernels import gaussian_kernels
from helpers.problems import FAMILIES
from mkclust.engine.certificate import relax_from
from mkclust.engine.eigen import extreme_eigenvalues, relax
from mkclust.linalg import to_host
from mkclust.stack import DenseKernel, as_stack


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize(
    ("n", "k"), [(150, 4), (400, 1), (400, 6), (300, 200), (260, 259)]
)
def test_relaxing_finds_the_leading_eigenvalues(family, n, k):
    kernel = family(np.random.default_rng(k), n, 1, k)[0]
    found = relax(DenseKernel(kernel), k, tol=1e-10)
    exact = np.linalg.eigvalsh(kernel)[::-1]
    assert found.value == pytest.approx(exact[:k].sum(), rel=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_ritz_vectors_know_their_products_and_their_error(library, dtype):
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=500, k=5)
    A = np.asarray(as_stack(kernels).kernels[2].dense())
    found = relax(DenseKernel(as_library(library, A)), 5, tol=1e-5, dtype=dtype)
    V, tolerance = to_host(found.vectors), 1e-10 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=tolerance)
    size = np.linalg.norm(A, 2)
    np.testing.assert_allclose(to_host(found.products), A @ V, atol=tolerance * size)
    exact = np.linalg.eigvalsh(A)[-5:].sum()
    assert exact - found.value <= 2 * found.error + tolerance * exact


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_searching_for_missed_eigenvectors_ends_and_leaves_an_orthonormal_basis(dtype):
    # Two features only: all that can be found beyond them is rounding.
    X = np.random.default_rng(0).normal(size=(230, 2))
    kernels = np.stack([X @ X.T, (X * [1, 2]) @ X.T]).astype(dtype)
    stack = as_stack(kernels, center=False)
    start = relax(stack.mix(np.array([0.5, 0.5])), 5, tol=1e-12).vectors
    mix = stack.mix(np.array([0.1, 0.9]))
    found = relax_from(mix, 5, tol=1e-12, start=start)
    vectors = found.vectors
    np.testing.assert_allclose(
        vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-10
    )
    assert found.value == pytest.approx(
        np.linalg.eigvalsh(mix.dense())[-5:].sum(), rel=1e-5
    )


@pytest.mark.parametrize("n", [120, 650])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("library", LIBRARIES)
def test_extreme_eigenvalues_are_those_of_a_dense_eigensolver(n, size, library):
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    K = (Q * np.append(np.linspace(1, 0, n - 1), -0.3)) @ Q.T * size
    kernel = DenseKernel(as_library(library, (K + K.T) / 2))
    smallest, largest, _ = extreme_eigenvalues(kernel)
    assert -0.3 * (1 + 1e-9) <= smallest / size < -0.2
    assert 0.9 <= largest / size <= 1 + 1e-9
    smallest, _, error = extreme_eigenvalues(kernel, converged=True)
    assert smallest / size == pytest.approx(-0.3, rel=1e-5)
    assert (smallest - error) / size <= -0.3 * (1 - 1e-9)
