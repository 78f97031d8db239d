"""Evidence of clusters: tests, their draws, and what they say of noise."""

import numpy as np
import pytest

from helpers.kernels import ONE_GAUSSIAN
from helpers.views import blob_views
from mkclust import AverageKKM, KernelBank
from mkclust.data import read_samples
from mkclust.explain.evidence import (
    cluster_kernel,
    count_at_borders,
    numbers_to_test,
    rank_p_value,
    silhouette,
)
from mkclust.explain.null_draws import (
    NullDraws,
    centered,
    gaussian_inner_products,
    mix,
    open_stack,
)
from mkclust.explain.number_of_clusters import suggest_n_clusters
from mkclust.graph.numbers import Tight, k_means_for_all
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

FEW = [2, 3, 4, 5, 6]
TESTED = {"evidence": True}


def blobs(seed=0, n=120, k=4, strengths=(1.5, 1.5)):
    return blob_views(np.random.default_rng(seed), n=n, k=k, strengths=strengths)


def continuum(shape, n=120):
    rng = np.random.default_rng([7, 0])
    t, u = rng.random((2, n))
    angle, turn = 2 * np.pi * t, 1.5 * np.pi * (1 + 2 * t)
    coordinates = {
        "line": np.linspace(0, 1, n)[:, None],
        "circle": np.c_[np.cos(angle), np.sin(angle)],
        "swiss roll": np.c_[turn * np.cos(turn), 10 * u, turn * np.sin(turn)],
        "square": np.c_[t, u],
    }[shape]
    Z = (coordinates - coordinates.mean(axis=0)) / coordinates.std(axis=0)
    return [
        np.tanh(Z @ rng.normal(size=(Z.shape[1], 8)) + rng.normal(size=8)) for _ in "ab"
    ]


def noise(seed=0, n=120, columns=(6, 6)):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in columns]


def test_tight_clusters_are_found_from_the_seeds_alone():
    y = np.random.default_rng(0).permutation(
        np.repeat(np.arange(5), [40, 20, 10, 5, 5])
    )
    K = centered((y[:, None] == y).astype(float))
    path = cluster_kernel(K, [4, 5])
    assert adjusted_rand_index(y, path.labels[1]) == 1
    assert path.silhouettes[1] == pytest.approx(1)


def test_a_silhouette_is_the_mean_over_samples_of_one_minus_own_over_next_distance():
    points = np.random.default_rng(0).normal(size=(40, 2))
    found = k_means_for_all([points], [3])[0]
    expected = []
    for x, c in zip(points, found.labels, strict=True):
        to_centers = np.linalg.norm(found.centers - x, axis=1)
        expected.append(1 - to_centers[c] / np.delete(to_centers, c).min())
    assert silhouette(points, found) == pytest.approx(np.mean(expected))


def test_a_sample_alone_is_no_proof_of_a_cluster():
    points = np.array([[0.0], [9.0], [11.0]])
    found = Tight(np.array([0, 1, 1]), np.array([[0.0], [10.0]]), 0.0)
    expected = [0, 1 - 1 / 9, 1 - 1 / 11]
    assert silhouette(points, found) == pytest.approx(np.mean(expected))


def test_numbers_near_each_other_are_tested_once():
    assert numbers_to_test(list(range(2, 13))) == [2, 3, 4, 6, 8, 11]
    assert numbers_to_test([7]) == [7]


def test_directions_that_a_kernel_lacks_play_no_part():
    X = np.random.default_rng(0).normal(size=(60, 2))
    path = cluster_kernel(centered(X @ X.T), [3, 4, 6])
    assert np.isfinite(path.silhouettes).all()


def drawn_from(X, kernels, normalize=True):
    samples = read_samples(
        X, expected="precomputed" if kernels == "precomputed" else "views"
    )
    model = AverageKKM(kernels=kernels, normalize=normalize, missing_views="rescale")
    shares = np.full(2, 0.5)
    return mix(open_stack(model, samples), shares), NullDraws(samples, model, shares)


def test_a_cloud_has_exactly_the_covariance_of_the_samples():
    views = dict(zip("ab", blobs()[0], strict=True))
    bank = KernelBank(widths=(), polynomials=(), linear="linear")
    kernels = {name: view @ view.T for name, view in views.items()}
    for of, X in ((bank, views), ("precomputed", kernels)):
        whole, draws = drawn_from(X, of, normalize=False)
        own, found = map(
            np.linalg.eigvalsh, (whole, draws.cloud(np.random.default_rng(0)))
        )
        # A bank divides each view by its mean squared norm, which rotations keep.
        np.testing.assert_allclose(found, own, atol=1e-8 * own[-1])


def test_a_gaussian_kernel_tells_the_points_it_is_of():
    X = np.random.default_rng(0).normal(size=(50, 3))
    squares = np.square(X[:, None] - X).sum(axis=-1)
    K = np.exp(-squares / 8)
    inner = gaussian_inner_products(K)
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(inner, Z @ Z.T / 4, atol=1e-10)
    assert gaussian_inner_products(X @ X.T) is None
    assert gaussian_inner_products(np.corrcoef(X)) is None


def test_shuffling_keeps_each_view_and_nothing_that_views_share():
    views, bank = blobs(strengths=(3.0, 3.0))[0], KernelBank(**ONE_GAUSSIAN)
    whole, draws = drawn_from(views, bank)
    drawn = draws.shuffled(np.random.default_rng(0))
    assert np.trace(drawn) == pytest.approx(np.trace(whole))
    kernels = [mix(as_stack([K]), np.ones(1)) / 2 for K in bank.fit_transform(views)]
    np.testing.assert_allclose(sum(kernels), whole, atol=1e-12)
    own = sum(np.vdot(K, K) for K in kernels)
    assert (np.vdot(drawn, drawn) - own) / 2 < 0.3 * np.vdot(*kernels)


def test_chance_is_the_rank_of_the_data_among_all_draws():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(49, 5))
    assert rank_p_value(np.array([0, 0, 9.0, 0, 0]), drawn) == 1 / 50
    assert rank_p_value(drawn.min(axis=0), drawn) == 1
    # Draws among draws: every rank is equally likely.
    ranks = [rank_p_value(x[0], x[1:]) for x in rng.normal(size=(400, 20, 5))]
    assert np.mean(np.array(ranks) <= 0.25) == pytest.approx(0.25, abs=0.07)


def test_a_draw_whose_sample_is_at_the_mean_is_drawn_again():
    column = np.random.default_rng(0).normal(size=(120, 1))
    assert suggest_n_clusters(column, [2, 3], **TESTED).evidence == "none"


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_borders_that_cut_evenly_spread_samples_are_not_sparse(k, n_columns):
    points = np.random.default_rng(0).random((1000, n_columns))
    borders = count_at_borders(points, k_means_for_all([points], [k])[0].labels)
    assert borders.density > 0.8
    assert borders.p_value > 0.9


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_border_where_density_only_falls_is_not_sparse(k):
    points = np.random.default_rng(0).exponential(size=(1000, 1))
    assert (
        count_at_borders(points, k_means_for_all([points], [k])[0].labels).p_value > 0.9
    )


def test_borders_between_blobs_are_sparse():
    y = np.arange(120) % 3
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    points = centers[y] + np.random.default_rng(0).normal(size=(120, 2))
    borders = count_at_borders(points, y)
    assert borders.density < 0.1
    assert borders.p_value < 0.001


def test_copies_are_at_their_center_and_one_cluster_has_no_border():
    y = np.repeat([4, 7], 20)
    borders = count_at_borders(y[:, None] / 3, y)
    assert (borders.n_between, borders.n_within) == (0, 40)
    assert count_at_borders(y[:, None] / 3, np.zeros(40, dtype=int)).p_value == 1


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_evidence_of_clusters(seed):
    found = suggest_n_clusters(noise(seed), FEW, **TESTED)
    assert found.evidence == "none"
    assert found.tests.p_value > 0.02


def test_one_view_is_compared_with_a_cloud_alone():
    found = suggest_n_clusters(blobs(strengths=(2.0,))[0][0], FEW, **TESTED)
    assert (found.n_clusters, found.evidence) == (4, "strong")
    assert np.isnan(found.tests.p_shuffled)
    assert suggest_n_clusters(noise(5)[0], FEW, **TESTED).evidence == "none"


@pytest.mark.parametrize("shape", ["line", "circle", "swiss roll", "square"])
def test_a_continuum_that_views_share_is_not_strong_evidence(shape):
    found = suggest_n_clusters(continuum(shape), FEW, scale="none", **TESTED)
    assert found.tests.p_continuum > 0.02
    assert found.evidence != "strong"


def test_copies_of_two_points_are_two_clusters():
    rng = np.random.default_rng(0)
    places = [np.repeat(rng.normal(size=(2, 4)), 45, axis=0) for _ in range(2)]
    found = suggest_n_clusters(places, **TESTED)
    assert (found.n_clusters, found.evidence) == (2, "strong")


def test_clusters_that_views_do_not_share_are_no_evidence():
    good = blobs(strengths=(3.0,), k=3)[0]
    found = suggest_n_clusters([*good, *noise(2)], FEW, **TESTED)
    assert found.tests.p_cloud == 1 / 50
    assert found.tests.p_shuffled > 0.02
    assert found.evidence == "none"


def test_the_smallest_possible_p_value_of_draws_is_shown_as_a_bound():
    found = suggest_n_clusters(blobs(strengths=(3, 3))[0], FEW, **TESTED)
    assert found.tests.p_value == 0.02
    assert "evidence of clusters (p <= 0.02)" in found.verdict()
    assert found.tests.p_text(0.1) == "= 0.1"


def test_many_numbers_are_tested_on_more_samples():
    views, _ = blobs(n=420, k=4)
    found = suggest_n_clusters(views, [2, 200], evidence=True, level=0.5)
    assert found.tests.n_tested == 400
    assert suggest_n_clusters(views, [4], evidence=True).tests.n_tested == 300
