"""LF-MVC: exact block updates, independence of bases, awkward kernels, new samples."""

import numpy as np
import pytest

from helpers.problems import FAMILIES, leading, wishart
from helpers.views import blob_views
from mkclust import KernelBank
from mkclust.linalg import polar_factor
from mkclust.methods.lf_mvc import LFMVC, fuse, solve_lf_mvc
from mkclust.stack import as_stack

RAW = {"center": False, "normalize": False}


def partitions(kernels, k):
    """Return the partitions of the single kernels, and that of their average."""
    return [leading(K, k) for K in kernels], leading(kernels.mean(axis=0), k)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("seed", range(6))
def test_the_objective_rises_to_no_more_than_its_bound(family, seed):
    rng = np.random.default_rng(seed)
    n, m, k = (
        int(rng.integers(12, 60)),
        int(rng.integers(1, 12)),
        int(rng.integers(1, 7)),
    )
    reg = float(rng.choice([0, 0.1, 1, 10]))
    stack = as_stack(family(rng, n, m, k), **RAW)
    solution = solve_lf_mvc(stack, k, reg=reg, tol=1e-9, max_iter=60)
    bound = k * (np.sqrt(m) + reg)
    assert np.all(np.diff(solution.history) >= -1e-9 * bound)
    assert solution.objective <= bound * (1 + 1e-12)
    assert np.linalg.norm(solution.weights) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(
        solution.partition.T @ solution.partition, np.eye(k), atol=1e-12
    )


@pytest.mark.parametrize("reg", [0.0, 0.5, 4.0])
def test_each_update_is_the_best_for_the_others_fixed(reg):
    H, H_0 = partitions(wishart(np.random.default_rng(2), 12, 3, 2), 2)
    before, after = (
        fuse(H, H_0, reg=reg, tol=1e-300, max_iter=count) for count in (4, 5)
    )
    # The maximum of Tr(F^T X) over orthonormal F is the nuclear norm of X ...
    parts = zip(before.weights, H, before.rotations, strict=True)
    X = sum(b * H_p @ W for b, H_p, W in parts) + reg * H_0
    # From which the rotations and weights of the fifth iteration are made.
    F = before.partition
    assert np.trace(F.T @ X) == pytest.approx(before.history[-1])
    assert before.history[-1] == pytest.approx(np.linalg.norm(X, "nuc"))
    # ... and so is that over rotations; the best weights are these norms, scaled to
    # unit length.
    norms = np.array([np.linalg.norm(H_p.T @ F, "nuc") for H_p in H])
    np.testing.assert_allclose(after.weights, norms / np.linalg.norm(norms), atol=1e-12)
    assert after.history[4] == pytest.approx(
        np.linalg.norm(norms) + reg * np.trace(F.T @ H_0)
    )
    turned = [
        np.trace(F.T @ H_p @ W) for H_p, W in zip(H, after.rotations, strict=True)
    ]
    np.testing.assert_allclose(turned, norms)


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.0, 0.3, 2.0, 1e15])
def test_the_basis_in_which_eigenvectors_come_changes_nothing(reg):
    rng = np.random.default_rng(5)
    H, H_0 = partitions(wishart(rng, 30, 4, 3), 3)
    plain = fuse(H, H_0, reg=reg, max_iter=25)
    for _ in range(4):
        R_0, *R = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(5))
        turned = [H_p @ R_p for H_p, R_p in zip(H, R, strict=True)]
        found = fuse(turned, H_0 @ R_0, reg=reg, max_iter=25)
        np.testing.assert_allclose(found.history, plain.history, rtol=1e-8)
        np.testing.assert_allclose(found.weights, plain.weights, atol=1e-7)
        np.testing.assert_allclose(found.partition, plain.partition @ R_0, atol=1e-6)


def test_new_samples_are_embedded_by_their_similarities_to_the_training_samples():
    """The same by extending every partition by itself, then fusing the extensions."""
    rng = np.random.default_rng(17)
    views, _ = blob_views(rng, n=100, k=3, strengths=(2, 1))
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit(
        [X[:70] for X in views]
    )
    train, cross = (
        bank.transform([X[:70] for X in views]),
        bank.transform([X[70:] for X in views]),
    )
    model = LFMVC(3, reg=0.5, **RAW, random_state=0).fit(train)
    H, H_0 = partitions(train, 3)
    found = fuse(H, H_0, reg=0.5)

    def extended(k_x, K, vectors):
        return k_x @ vectors @ np.linalg.inv(vectors.T @ K @ vectors)

    rows = 0.5 * extended(cross.mean(axis=0), train.mean(axis=0), H_0)
    for b, k_x, K, H_p, W in zip(
        found.weights, cross, train, H, found.rotations, strict=True
    ):
        rows += b * extended(k_x, K, H_p) @ W
    rows = rows @ np.linalg.inv(found.partition.T @ found.total)
    # The two differ by the basis of the average kernel's eigenvectors.
    turn = polar_factor(found.partition.T @ model.embedding_)
    np.testing.assert_allclose(rows @ turn, model.transform(cross), atol=1e-8)
