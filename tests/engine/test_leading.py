"""The share of a kernel's own leading structure that a partition captures."""

import numpy as np
import pytest
from mkclust.engine.leading import leading_share
from mkclust.engine.leading_together import leading_shares_together
from mkclust.linalg.operators import MatrixOperator

pytestmark = pytest.mark.slow

N, K = 300, 5


def with_spectrum(values, seed=0):
    """Return a symmetric matrix with the given eigenvalues, and its eigenvectors."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (Q * values) @ Q.T, Q


def some_partition(seed=1):
    """Return an orthonormal matrix that knows nothing of any kernel."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(N, K)))[0]


def exact_share(M, H):
    """Return the share by all eigenvalues."""
    share = np.trace(H.T @ M @ H) / np.sort(np.linalg.eigvalsh(M))[-K:].sum()
    return np.clip(share, 0, 1)


class Counting(MatrixOperator):
    """A matrix that counts what it is multiplied with."""

    columns = 0

    def __matmul__(self, X):
        object.__setattr__(self, "columns", self.columns + X.shape[1])
        return super().__matmul__(X)


SPECTRA = {
    "fast": 0.8 ** np.arange(N),
    "slow": 1 / np.arange(1, N + 1),
    "flat": np.linspace(1, 0.5, N),
    "of low rank": (np.arange(N) < 3) * 1.0,
    "of clusters": np.where(np.arange(N) < K, 50.0, np.linspace(1, 0, N)),
    "indefinite": np.linspace(1, -1, N) ** 3,
    "identity": np.ones(N),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("knows", ["nothing", "half", "all"])
def test_a_share_is_that_of_all_eigenvalues(spectrum, knows):
    M, Q = with_spectrum(SPECTRA[spectrum])
    H = {
        "nothing": some_partition(),
        "half": np.linalg.qr(some_partition() + 0.1 * Q[:, :K] * np.sqrt(N))[0],
        "all": Q[:, :K],
    }[knows]
    # Where no eigenvalue stands apart, restarts stop a little earlier.
    accuracy = 2e-3 if spectrum == "flat" else 1e-3
    share = leading_share(MatrixOperator(M), H, tol=5e-4)
    assert share == pytest.approx(exact_share(M, H), abs=accuracy)


def test_leading_directions_are_found_that_the_partition_is_blind_to():
    M, Q = with_spectrum(np.where(np.arange(N) < 2, 10.0, np.where(np.arange(N) < 10, 1.0, 0.0)))
    H = Q[:, 2 : 2 + K]  # eigenvectors, so that products with them lead nowhere else
    assert leading_share(MatrixOperator(M), H, tol=5e-4) == pytest.approx(5 / 23, abs=1e-3)


def test_what_the_solver_knows_is_not_computed_again():
    M, _ = with_spectrum(SPECTRA["fast"])
    H = some_partition()
    alone, helped = Counting(M), Counting(M)
    share = leading_share(alone, H, tol=5e-4)
    captured = float(np.trace(H.T @ M @ H))
    assert leading_share(helped, H, tol=5e-4, products=M @ H, captured=captured) == pytest.approx(
        share, abs=1e-12
    )
    assert alone.columns - helped.columns == K


@pytest.mark.parametrize("spectra", [*([each] for each in SPECTRA), list(SPECTRA)])
@pytest.mark.parametrize("known", [False, True])
def test_shares_of_several_kernels_together_are_those_of_each_alone(spectra, known):
    H, tol = some_partition(), 5e-4
    kernels = [
        MatrixOperator(with_spectrum(SPECTRA[each], seed)[0]) for seed, each in enumerate(spectra)
    ]
    products = np.stack([kernel @ H for kernel in kernels])
    captured = np.tensordot(products, H, 2)
    shares = leading_shares_together(
        kernels,
        H,
        tol=tol,
        products=products if known else None,
        captured=captured if known else None,
    )
    alone = [leading_share(kernel, H, tol=tol) for kernel in kernels]
    np.testing.assert_allclose(shares, alone, rtol=0, atol=1e-9)


def test_shares_of_few_samples_together_are_those_of_all_eigenvalues():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 60, 70))
    kernels = [MatrixOperator(each @ each.T) for each in X]
    H = np.linalg.qr(rng.normal(size=(60, K)))[0]
    shares = leading_shares_together(kernels, H, tol=5e-4, products=None, captured=None)
    np.testing.assert_allclose(shares, [exact_share(M.entries, H) for M in kernels], rtol=1e-12)
