"""SimpleMKKM over the views that agree, drawn to their compromise."""

import numpy as np
import pytest

from helpers.kernels import gaussian_kernels
from helpers.problems import FAMILIES, leading, projector, random_weights, raw
from helpers.views import blob_views
from mkclust import AgreementKKM, AnchoredMKKM, AverageKKM, SimpleMKKM
from mkclust.methods import solve_anchored_mkkm
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack


def blobs_in_the_subspace(rng, n, m, k):
    """Return kernels of too many samples for the whole space, in which no view is set
    aside."""
    kernels, _ = gaussian_kernels(rng, n=240, strengths=(2, 2, 0.7, 0.7))
    return as_stack(kernels).among().entries


@pytest.mark.parametrize("anchor", [0, 0.5, 2, 16])
@pytest.mark.parametrize("family", [*FAMILIES, blobs_in_the_subspace])
@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_of_an_anchored_problem_is_true(family, seed, anchor):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 40)), int(rng.integers(2, 6))
    k = int(rng.integers(1, min(6, n)))
    kernels = family(rng, n, m, k)
    solution = solve_anchored_mkkm(raw(kernels), k, anchor=anchor)
    assert solution.converged
    assert solution.gap <= 1e-6
    included = kernels[solution.included]
    # If the compromise has a tie, its partition is one of many: take the one that
    # anchors.
    H_0 = solution.baseline.vectors[:, :k]
    coefficients = solution.agreement.coefficients()[solution.included] / len(included)
    compromise = np.tensordot(coefficients, included, 1)
    top = np.linalg.eigvalsh(compromise)[-k:]
    assert np.trace(H_0.T @ compromise @ H_0) == pytest.approx(top.sum(), rel=1e-9)

    def anchored(gamma):
        return np.tensordot(gamma**2, included, 1) + anchor * top.mean() * projector(
            H_0
        )

    def J(gamma):
        return np.linalg.eigvalsh(anchored(gamma))[-k:].sum()

    gamma = solution.weights[solution.included]
    assert J(gamma) == pytest.approx(solution.objective, rel=1e-6)
    assert -1e-7 * J(gamma) <= J(gamma) - solution.lower_bound <= 2e-6 * J(gamma)
    others = [
        random_weights(rng, len(included))
        for _ in range(4 if len(kernels[0]) > 60 else 15)
    ]
    assert min(map(J, others)) >= solution.lower_bound * (1 - 1e-9)
    if family is blobs_in_the_subspace:
        H = leading(anchored(gamma), k)
        np.testing.assert_allclose(
            projector(solution.partition), projector(H), atol=2e-3
        )


@pytest.mark.parametrize("n", [60, 300])
def test_no_anchor_over_views_that_all_agree_is_simplemkkm(n):
    kernels, _ = gaussian_kernels(np.random.default_rng(1), n=n, strengths=(2, 1, 1))
    plain = SimpleMKKM(4, random_state=0).fit(kernels)
    zero = AnchoredMKKM(4, anchor=0, random_state=0).fit(kernels)
    assert zero.set_aside_ == ()
    np.testing.assert_allclose(
        zero.weights_, plain.weights_, atol=2e-3 if n > 200 else 1e-6
    )
    assert zero.objective_ == pytest.approx(plain.objective_, rel=2e-6)
    assert adjusted_rand_index(zero.labels_, plain.labels_) == pytest.approx(1)


def of_compromise(X):
    """Return relaxed kernel k-means on the mix of the views that agree."""
    K = AgreementKKM(4, random_state=0).fit(X).mixed_kernel(X)
    options = {"kernels": "precomputed", "center": False, "normalize": False}
    return AverageKKM(4, random_state=0, **options).fit([K])


@pytest.mark.parametrize("n", [60, 300])
def test_a_large_anchor_gives_the_partition_of_the_compromise(n):
    kernels, _ = gaussian_kernels(
        np.random.default_rng(1), n=n, strengths=(2, 1, 0.5, 0)
    )
    agreement = of_compromise(kernels)
    model = AnchoredMKKM(4, anchor=1e3, random_state=0).fit(kernels)
    np.testing.assert_allclose(
        projector(model.embedding_), projector(agreement.embedding_), atol=2e-3
    )
    np.testing.assert_array_equal(model.labels_, agreement.labels_)
    assert model.baseline_agreement_ == pytest.approx(1)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("strengths", [(2, 2, 0, 0, 0), (2, 0.7, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_the_anchor_chosen_keeps_what_the_views_agree_on(strengths, seed):
    views, y = blob_views(np.random.default_rng(seed), strengths=strengths)
    model = AnchoredMKKM(4, random_state=0).fit(views)
    assert model.set_aside_ == AgreementKKM(4, random_state=0).fit(views).set_aside_
    assert len(model.set_aside_) == strengths.count(0)
    agreement = of_compromise(views)
    np.testing.assert_array_equal(model.baseline_labels_, agreement.labels_)
    truth = adjusted_rand_index(y, agreement.labels_)
    assert adjusted_rand_index(y, model.labels_) >= truth - 0.05
    assert model.baseline_agreement_ >= 0.9
    assert model.duality_gap_ <= 1e-6
