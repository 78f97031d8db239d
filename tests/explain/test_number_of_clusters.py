import numpy as np
import pytest

from conftest import blob_views
from mkclust import AverageKKM, KernelBank
from mkclust.data import read_samples
from mkclust.explain.null_draws import (
    NullDraws,
    gaussian_inner_products,
    mix,
    open_stack,
    rank_p_value,
)
from mkclust.explain.number_of_clusters import scores_of, suggest_n_clusters
from mkclust.explain.spectral_path import (
    centered,
    cluster,
    cluster_for_all_k,
    count_at_borders,
    silhouette,
)
from mkclust.methods import solve_average_kkm
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
FEW = [2, 3, 4, 5, 6]
# As many draws and resamples as a test needs.
QUICK = {"n_draws": 19, "level": 0.05, "n_resamples": 4}


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


def test_the_gaps_of_all_numbers_are_those_of_single_solves():
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(blobs(n=250)[0])
    stack = as_stack(kernels, normalize=False)
    path = cluster_for_all_k(centered(stack.mix(np.full(2, 0.5)).dense()), FEW)
    for k, gap in zip(FEW, path.eigengaps, strict=True):
        assert gap == pytest.approx(
            solve_average_kkm(stack, k).relaxation.cluster_gap, abs=1e-4
        )


def test_tight_clusters_are_found_from_the_seeds_alone():
    y = np.random.default_rng(0).permutation(
        np.repeat(np.arange(5), [40, 20, 10, 5, 5])
    )
    K = centered((y[:, None] == y).astype(float))
    path = cluster_for_all_k(K, [4, 5])
    assert adjusted_rand_index(y, path.labels[1]) == 1
    assert path.silhouettes[1] == pytest.approx(1)
    assert path.eigengaps[1] == pytest.approx(1)


def test_a_silhouette_is_the_mean_over_samples_of_one_minus_own_over_next_distance():
    points = np.random.default_rng(0).normal(size=(40, 2))
    labels, distances = cluster(points, 3)
    centers = np.array([points[labels == c].mean(axis=0) for c in range(3)])
    expected = []
    for x, c in zip(points, labels, strict=True):
        to_centers = np.linalg.norm(centers - x, axis=1)
        expected.append(1 - to_centers[c] / np.delete(to_centers, c).min())
    assert silhouette(labels, distances) == pytest.approx(np.mean(expected))
    alone = np.array([[0.0, 9.0], [9.0, 1.0], [9.0, 1.0]])  # no proof of a cluster
    assert silhouette(np.array([0, 1, 1]), alone) == pytest.approx(2 / 3 * (1 - 1 / 9))


def test_directions_that_a_kernel_lacks_play_no_part():
    X = np.random.default_rng(0).normal(size=(60, 2))
    path = cluster_for_all_k(centered(X @ X.T), [3, 4, 6])
    assert path.eigengaps[0] == pytest.approx(1)
    assert path.eigengaps[1] == path.eigengaps[2] == 0
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
    assert suggest_n_clusters(column, [2, 3], **QUICK).evidence == "none"


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_borders_that_cut_evenly_spread_samples_are_not_sparse(k, n_columns):
    points = np.random.default_rng(0).random((1000, n_columns))
    borders = count_at_borders(points, cluster(points, k)[0])
    assert borders.density > 0.8
    assert borders.p_value > 0.9


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_border_where_density_only_falls_is_not_sparse(k):
    points = np.random.default_rng(0).exponential(size=(1000, 1))
    assert count_at_borders(points, cluster(points, k)[0]).p_value > 0.9


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


@pytest.mark.parametrize("k", [3, 5])
def test_planted_clusters_are_counted(k):
    found = suggest_n_clusters(blobs(seed=k, n=150, k=k)[0], np.arange(2, 9))
    assert (found.n_clusters, found.evidence) == (k, "strong")
    assert found.p_cloud == found.p_shuffled == found.p_value == 1 / 50
    assert found.p_continuum < 0.02
    assert found.table.loc[k, "stability"] > 0.9
    assert found.support.sum() == pytest.approx(1)
    assert found.candidates[0] == k
    assert len(set(found.candidates)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_evidence_of_clusters(seed):
    found = suggest_n_clusters(noise(seed), FEW, **QUICK)
    assert found.evidence == "none"
    assert found.p_value > 0.05


def test_one_view_is_compared_with_a_cloud_alone():
    found = suggest_n_clusters(blobs(strengths=(2.0,))[0][0], FEW, **QUICK)
    assert (found.n_clusters, found.evidence) == (4, "strong")
    assert np.isnan(found.p_shuffled)
    assert suggest_n_clusters(noise(5)[0], FEW, **QUICK).evidence == "none"


@pytest.mark.parametrize("shape", ["line", "circle", "swiss roll", "square"])
def test_a_continuum_that_views_share_is_not_strong_evidence(shape):
    found = suggest_n_clusters(continuum(shape), FEW, scale="none", **QUICK)
    assert found.p_continuum > 0.05
    assert found.evidence != "strong"


def test_copies_of_two_points_are_two_clusters():
    rng = np.random.default_rng(0)
    places = [np.repeat(rng.normal(size=(2, 4)), 45, axis=0) for _ in range(2)]
    found = suggest_n_clusters(places, **QUICK)
    assert (found.n_clusters, found.evidence) == (2, "strong")


def test_clusters_that_views_do_not_share_are_no_evidence():
    good = blobs(strengths=(3.0,), k=3)[0]
    found = suggest_n_clusters([*good, *noise(2)], FEW, **QUICK)
    assert found.p_cloud == 1 / 20
    assert found.p_shuffled > 0.05
    assert found.evidence == "none"


def test_a_noise_view_beside_clusters_changes_nothing():
    views = dict(zip("ab", blobs(n=150)[0], strict=True))
    expected = suggest_n_clusters(views, FEW, **QUICK)
    found = suggest_n_clusters(views | {"noise": noise(4, 150)[0]}, FEW, **QUICK)
    assert (found.n_clusters, found.evidence) == (4, "strong")
    np.testing.assert_allclose(found.eigengaps, expected.eigengaps, atol=1e-6)


def test_the_best_number_has_the_highest_sum_of_shares():
    scores = scores_of(np.array([0.1, 0.5, 0.2]), np.array([-0.1, 0.1, 0.2]))
    np.testing.assert_allclose(scores, [0.2, 1.5, 1.4])
    np.testing.assert_allclose(scores_of(np.zeros(2), -np.ones(2)), 0)


def test_kernels_say_the_same_as_the_views_they_are_of():
    views, _ = blobs(n=100, k=3)
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(views)
    by_views = suggest_n_clusters(views, FEW, kernels="gaussian", **QUICK)
    by_kernels = suggest_n_clusters(kernels, FEW, **QUICK)
    np.testing.assert_allclose(by_views.eigengaps, by_kernels.eigengaps)
    np.testing.assert_allclose(by_views.silhouettes, by_kernels.silhouettes)
    # The same clouds, too, but for chance: a Gaussian kernel tells the points it is of.
    expected = by_views.expected_silhouettes
    np.testing.assert_allclose(by_kernels.expected_silhouettes, expected, atol=0.03)
    assert by_kernels.n_clusters == 3


def test_of_many_samples_some_are_used():
    views, _ = blobs(n=600, k=3)
    found = suggest_n_clusters(views, [2, 3, 4], max_samples=200, **QUICK)
    assert (found.n_samples, found.n_used, found.n_tested) == (600, 200, 200)
    assert found.n_clusters == 3


@pytest.mark.parametrize(
    "settings",
    [
        *({"k_values": each} for each in ([], [1, 2], [2, 40], [2.5], [True], 5)),
        {"n_draws": 19},
        {"level": 0},
        {"n_resamples": 0},
        {"coefficients": [1, -1]},
        {"coefficients": [1, 1, 1]},
        {"max_samples": 5},
        {"n_clusters": 3},
    ],
    ids=str,
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        suggest_n_clusters(noise(n=40), **settings)


def test_the_smallest_possible_p_value_of_draws_is_shown_as_a_bound():
    found = suggest_n_clusters(blobs(strengths=(3, 3))[0], FEW, random_state=0, **QUICK)
    assert found.p_value == 0.05
    assert "evidence of clusters (p <= 0.05)" in found.verdict()
    assert found.p_text(0.1) == "= 0.1"
