import numpy as np
import pytest

from conftest import blob_views
from mkclust import KernelBank
from mkclust.explain.choosing import NumberOfClusters, Strength, suggest_n_clusters
from mkclust.explain.choosing.borders import count_at_borders
from mkclust.explain.choosing.clusterings import cluster, cluster_for_all_k, silhouette
from mkclust.explain.choosing.mix import (
    MixSettings,
    NullSamples,
    _gaussian_inner_products,
    centered,
)
from mkclust.explain.choosing.suggest import chance
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


def noise(seed=0, n=120, columns=(6, 6)):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in columns]


def views_of(Z, rng, n_views=2):
    """Return views of coordinates: each a smooth map of its own into six features, and noise."""
    Z = (Z - Z.mean(axis=0)) / Z.std()
    maps = [(rng.normal(size=(Z.shape[1], 6)), rng.normal(size=6)) for _ in range(n_views)]
    return [np.tanh(0.7 * Z @ A + 0.5 * b) + 0.05 * rng.normal(size=(len(Z), 6)) for A, b in maps]


def continuum(shape, seed=0, n=120):
    """Return two views of one shape that has no clusters."""
    rng = np.random.default_rng([7, seed])
    t, u = rng.random((2, n))
    angle, turn = 2 * np.pi * t, 1.5 * np.pi * (1 + 2 * t)
    if shape == "counts":
        rate = np.exp(3 + np.outer(3 * t - 1.5, rng.normal(size=16)))
        return np.hsplit(rng.poisson(rate).astype(float), 2)
    coordinates = {
        "evenly spaced line": np.linspace(0, 1, n)[:, None],
        "uniform line": t[:, None],
        "circle": np.c_[np.cos(angle), np.sin(angle)],
        "swiss roll": np.c_[turn * np.cos(turn), 10 * u, turn * np.sin(turn)],
        "square": np.c_[t, u],
    }
    return views_of(coordinates[shape], rng)


# The path ---------------------------------------------------------------------------------------


def test_the_gaps_of_all_numbers_are_those_of_single_solves():
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(blobs(n=250)[0])
    stack = as_stack(kernels, normalize=False)
    path = cluster_for_all_k(centered(stack.mix(np.full(2, 0.5)).dense()), FEW)
    for k, gap in zip(FEW, path.eigengaps, strict=True):
        assert gap == pytest.approx(solve_average_kkm(stack, k).relaxation.cluster_gap, abs=1e-4)


def test_tight_clusters_are_found_from_the_seeds_alone():
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(5), [40, 20, 10, 5, 5]))
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


def test_a_sample_alone_is_no_proof_of_a_cluster():
    distances = np.array([[0.0, 9.0], [9.0, 1.0], [9.0, 1.0]])
    assert silhouette(np.array([0, 1, 1]), distances) == pytest.approx(2 / 3 * (1 - 1 / 9))


def test_an_indefinite_kernel_is_refused_or_repaired():
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform(blobs(n=60, k=3)[0]) - 0.1 * np.eye(60)
    with pytest.raises(ValueError, match="kernel 0 is indefinite"):
        suggest_n_clusters(kernels, [2, 3, 4], **QUICK)
    for settings in ({"psd": "clip"}, {"psd": "shift"}):
        assert suggest_n_clusters(kernels, [2, 3, 4], **settings, **QUICK).n_clusters == 3


def test_directions_that_a_kernel_lacks_play_no_part():
    X = np.random.default_rng(0).normal(size=(60, 2))
    path = cluster_for_all_k(centered(X @ X.T), [3, 4, 6])
    assert path.eigengaps[0] == pytest.approx(1)
    assert path.eigengaps[1] == path.eigengaps[2] == 0
    assert np.isfinite(path.silhouettes).all()


# Draws without clusters -------------------------------------------------------------------------


def test_a_cloud_has_exactly_the_covariance_of_the_samples():
    views = dict(zip("ab", blobs()[0], strict=True))
    bank = KernelBank(widths=(), polynomials=(), linear="linear")
    for settings, X in (
        (MixSettings(bank, True, False, "error"), views),
        (
            MixSettings("precomputed", True, False, "error"),
            {name: view @ view.T for name, view in views.items()},
        ),
    ):
        drawn = NullSamples(X, settings).draw(np.random.default_rng(0))
        own = np.linalg.eigvalsh(settings.mix(X))
        found = np.linalg.eigvalsh(drawn)
        # A bank divides each view by its mean squared norm, which rotations keep.
        np.testing.assert_allclose(found, own, atol=1e-8 * own[-1])


def test_a_cloud_has_no_clusters():
    views, _ = blobs(strengths=(3.0, 3.0))
    settings = MixSettings(KernelBank(**ONE_GAUSSIAN), True, True, "error")
    own = cluster_for_all_k(settings.mix(views), [4]).silhouettes
    drawn = cluster_for_all_k(
        NullSamples(dict(enumerate(views)), settings).draw(np.random.default_rng(0)), [4]
    )
    assert own > 0.8
    assert drawn.silhouettes < 0.5


def test_a_gaussian_kernel_tells_the_points_it_is_of():
    X = np.random.default_rng(0).normal(size=(50, 3))
    squares = np.square(X[:, None] - X).sum(axis=-1)
    K = np.exp(-squares / 8)
    inner = _gaussian_inner_products(K)
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(inner, Z @ Z.T / 4, atol=1e-10)
    assert _gaussian_inner_products(X @ X.T) is None
    assert _gaussian_inner_products(np.corrcoef(X)) is None


def test_shuffling_keeps_each_view_and_nothing_that_views_share():
    settings = MixSettings(KernelBank(**ONE_GAUSSIAN), True, True, "error")
    X = dict(zip("ab", blobs(strengths=(3.0, 3.0))[0], strict=True))
    mixes = settings.mixes(X)
    np.testing.assert_allclose(sum(mixes.kernels), settings.mix(X), atol=1e-12)
    drawn = mixes.shuffled(np.random.default_rng(0))
    assert np.trace(drawn) == pytest.approx(np.trace(sum(mixes.kernels)))
    rest = drawn - mixes.kernels[0]
    np.testing.assert_allclose(
        np.linalg.eigvalsh(rest), np.linalg.eigvalsh(mixes.kernels[1]), atol=1e-8
    )
    assert np.vdot(rest, mixes.kernels[0]) < 0.3 * np.vdot(mixes.kernels[1], mixes.kernels[0])


def test_chance_is_the_rank_of_the_data_among_all_draws():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(49, 5))
    assert chance(np.array([0, 0, 9.0, 0, 0]), drawn) == 1 / 50
    assert chance(drawn.min(axis=0), drawn) == 1
    # Draws among draws: every rank is equally likely.
    ranks = [chance(x[0], x[1:]) for x in rng.normal(size=(400, 20, 5))]
    assert np.mean(np.array(ranks) <= 0.25) == pytest.approx(0.25, abs=0.07)


def test_a_draw_whose_sample_is_at_the_mean_is_drawn_again():
    column = np.random.default_rng(0).normal(size=(120, 1))
    found = suggest_n_clusters(column, [2, 3], **QUICK)
    assert found.n_clusters == 1


# Borders between clusters -----------------------------------------------------------------------


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


# The suggestion ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 5])
def test_planted_clusters_are_counted(k):
    found = suggest_n_clusters(blobs(seed=k, n=150, k=k)[0], np.arange(2, 9))
    assert found.n_clusters == k
    assert found.strength.word == "strong"
    assert found.p_cloud == found.p_shuffled == 1 / 50
    assert found.kind == "clusters"
    assert found.p_continuum < 0.02
    assert "sparser between them" in found.summary()
    assert found.stabilities[k - 2] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_evidence_of_clusters(seed):
    found = suggest_n_clusters(noise(seed), FEW, **QUICK)
    assert found.n_clusters == 1
    assert found.strength == ("none", 0)
    assert found.kind == "no evidence"
    assert "No evidence of clusters" in str(found)


def test_one_view_is_compared_with_a_cloud_alone():
    found = suggest_n_clusters(blobs(strengths=(2.0,))[0][0], FEW, **QUICK)
    assert found.n_clusters == 4
    assert np.isnan(found.p_shuffled)
    assert suggest_n_clusters(noise(5)[0], FEW, **QUICK).n_clusters == 1


def test_a_gradual_change_that_views_share_is_no_cluster():
    rng = np.random.default_rng(0)
    t = rng.normal(size=150)
    views = [np.outer(t, rng.normal(size=8)) + 0.5 * rng.normal(size=(150, 8)) for _ in range(2)]
    found = suggest_n_clusters(views, FEW, **QUICK)
    assert found.n_clusters == 1
    assert "gradual" in found.summary()


@pytest.mark.parametrize(
    "shape", ["evenly spaced line", "uniform line", "circle", "counts", "swiss roll", "square"]
)
def test_a_continuum_that_views_share_is_not_called_clusters(shape):
    found = suggest_n_clusters(continuum(shape), FEW, **QUICK)
    # No cloud, and shared, yet not separate.
    assert found.p_cloud == found.p_shuffled == 1 / 20
    assert (found.n_clusters, found.kind) == (1, "continuum")
    assert found.strength == ("none", 0)
    assert "No evidence of separate clusters: a continuum" in str(found)
    assert "cut a continuum into parts" in str(found)


def test_one_table_of_noise_that_looks_clearer_than_clouds_by_chance_has_no_clusters():
    # The one of sixty draws that does.
    table = np.random.default_rng(30).normal(size=(60, 4))
    found = suggest_n_clusters(table, [2, 3, 4], **QUICK)
    assert found.p_cloud == 1 / 20
    assert found.n_clusters == 1


def test_copies_of_two_points_are_two_clusters():
    rng = np.random.default_rng(0)
    places = [np.repeat(rng.normal(size=(2, 4)), 45, axis=0) for _ in range(2)]
    found = suggest_n_clusters(places, **QUICK)
    assert (found.n_clusters, found.kind) == (2, "clusters")


def test_clusters_that_views_do_not_share_are_told_apart_from_none():
    good = blobs(strengths=(3.0,), k=3)[0]
    found = suggest_n_clusters([*good, *noise(1)], FEW, **QUICK)
    assert found.n_clusters == 1
    assert found.p_cloud == 1 / 20
    assert "views do not share them" in found.summary()


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


def test_a_kernel_without_a_share_in_the_mix_does_not_matter():
    kernels = KernelBank(**ONE_GAUSSIAN).fit_transform([*blobs(n=80)[0], *noise(0, 80)[:1]])
    with_it = suggest_n_clusters(kernels, [3, 4], coefficients=[1, 3, 0], **QUICK)
    without = suggest_n_clusters(kernels[:2], [3, 4], coefficients=[0.25, 0.75], **QUICK)
    np.testing.assert_allclose(with_it.eigengaps, without.eigengaps)
    np.testing.assert_allclose(with_it.silhouettes, without.silhouettes)


def test_the_unit_of_a_view_does_not_matter():
    views, _ = blobs(n=80)
    one, other = (suggest_n_clusters([s * views[0], views[1]], [3, 4], **QUICK) for s in (1, 1e9))
    np.testing.assert_allclose(one.silhouettes, other.silhouettes)
    np.testing.assert_allclose(one.expected_silhouettes, other.expected_silhouettes, atol=1e-6)


def test_of_many_samples_some_are_used():
    views, _ = blobs(n=600, k=3)
    found = suggest_n_clusters(views, [2, 3, 4], max_samples=200, **QUICK)
    assert (found.n_samples, found.n_used, found.n_tested) == (600, 200, 200)
    assert found.n_clusters == 3
    assert "200 of 600 samples" in found.summary()


def test_the_seed_decides():
    one, same, other = (
        suggest_n_clusters(noise(), [2, 3], random_state=s, **QUICK) for s in (1, 1, 2)
    )
    assert one.summary() == same.summary()
    np.testing.assert_allclose(one.null_silhouettes, same.null_silhouettes, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(one.null_silhouettes, other.null_silhouettes)


def suggestion_of(excess, support, kind="clusters"):
    """Return a suggestion of 2, 3, ... clusters with a given excess and support."""
    excess, support = np.array(excess), np.array(support)
    s, best = len(excess), int(np.argmax(excess))
    found = kind == "clusters"
    return NumberOfClusters(
        n_clusters=best + 2 if found else 1,
        strength=Strength.of(support[best]) if found else Strength("none", 0.0),
        kind=kind,
        k_values=np.arange(2, s + 2),
        silhouettes=excess,
        support=support,
        expected_silhouettes=np.zeros(s),
        **dict.fromkeys(("eigengaps", "stabilities"), np.zeros(s)),
        **dict.fromkeys(("null_silhouettes", "null_eigengaps"), np.zeros((2, s))),
        **dict.fromkeys(("p_cloud", "p_shuffled", "p_continuum", "level"), 0.02),
        **dict.fromkeys(("border_density", "continuum_density"), 0.5),
        **dict.fromkeys(("n_samples", "n_used", "n_tested"), 100),
    )


@pytest.mark.parametrize(
    ("excess", "support", "candidates", "is_unclear"),
    [
        ([0.1, 0.4, 0.2, 0.1], [0, 1.0, 0, 0], (3,), False),
        # Strong, and what one of ten resamples says stays in question.
        ([0.1, 0.4, 0.39, 0.1], [0, 0.9, 0.1, 0], (3, 4), False),
        ([0.1, 0.4, 0.2, 0.3], [0.05, 0.8, 0.0, 0.15], (3, 5), False),
        # Weak: the best of all samples leads, the others follow by what resamples say.
        ([0.1, 0.4, 0.3, 0.35], [0.2, 0.35, 0.05, 0.4], (3, 5, 2), True),
        # Moderate, but nearly tied: in the excess, or by the resamples.
        ([0.1, 0.4, 0.395, 0.1], [0, 0.95 - 0.1, 0.05, 0.1], (3, 5, 4), True),
        ([0.1, 0.4, 0.3, 0.1], [0, 0.65, 0.35, 0], (3, 4), True),
    ],
)
def test_a_number_is_unclear_where_it_is_weak_or_another_is_nearly_tied(
    excess, support, candidates, is_unclear
):
    found = suggestion_of(excess, support)
    assert found.candidates == candidates
    assert found.candidates[0] == found.n_clusters
    assert found.is_unclear == is_unclear
    for text in (str(found), found.verdict()):
        assert text.startswith("Unclear how many clusters: 3 (") == is_unclear
    assert ("The samples do not tell" in str(found)) == is_unclear
    assert [line[-2:] for line in str(found).splitlines() if line.endswith(" ?")] == [" ?"] * (
        len(candidates) - 1
    )


@pytest.mark.parametrize("kind", ["no evidence", "continuum"])
def test_without_evidence_there_are_no_candidates_and_nothing_is_unclear(kind):
    found = suggestion_of([0.1, 0.4, 0.4], [0, 0.5, 0.5], kind)
    assert (found.n_clusters, found.candidates, found.is_unclear) == (1, (), False)
    assert str(found).startswith("No evidence of")


def test_support_is_the_share_of_the_resamples_that_name_a_number():
    found = suggest_n_clusters(blobs(seed=3, n=150, k=3)[0], FEW, **QUICK)
    assert found.support.sum() == pytest.approx(1)
    assert found.support[found.k_values == found.n_clusters] == found.strength.share
    assert found.candidates == (3,)


def test_a_suggestion_can_be_drawn():
    pytest.importorskip("matplotlib")
    from mkclust.plots import NumberOfClustersDisplay

    found = suggest_n_clusters(blobs(n=60, k=3)[0], [2, 3, 4], **QUICK)
    assert found.null_silhouettes.shape == found.null_eigengaps.shape == (2, 3)
    assert len(NumberOfClustersDisplay.from_suggestion(found).axes_) == 3


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "k_values is empty"),
        ([1, 2], "k_values holds 1: pass numbers of at least 2"),
        ([2, 40], "k_values holds 40, with 40 samples to look at: pass numbers up to 39"),
        ([2.5], "k_values holds 2.5, which is not an integer"),
        ([True], "k_values holds True, which is not an integer"),
        (5, "k_values=5: pass numbers of clusters"),
    ],
)
def test_numbers_that_cannot_be_are_refused(candidates, message):
    with pytest.raises(ValueError, match=message):
        suggest_n_clusters(noise(n=40), candidates)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_draws": 19}, "n_draws=19 cannot show .* pass n_draws=49 at least"),
        ({"level": 0}, "level=0: pass a number between 0 and 1"),
        ({"n_resamples": 0}, "n_resamples=0"),
        ({"coefficients": [1, -1]}, "pass one number a kernel"),
        ({"coefficients": [1, 1, 1]}, "3 coefficients for 2 kernels"),
        ({"max_samples": 30, "k_values": [30]}, "with 30 samples .* or raise max_samples"),
        ({"max_samples": 5}, "max_samples=5: too few"),
        ({"kernels": "straight"}, "kernels='straight'"),
    ],
)
def test_senseless_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        suggest_n_clusters(noise(n=40), **settings)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="19 samples: too few"):
        suggest_n_clusters(noise(n=19))


def test_tables_are_joined_filled_and_taken_apart_as_in_a_fit():
    pd = pytest.importorskip("pandas")
    left, right = (
        pd.DataFrame(view).add_prefix(c) for c, view in zip("lr", blobs()[0], strict=True)
    )
    expected = suggest_n_clusters([left.to_numpy(), right.to_numpy()], FEW, **QUICK)
    wide = pd.concat([left, right], axis=1)
    views = {"left": "l", "right": "r"}
    assert suggest_n_clusters(wide, FEW, views=views, **QUICK).n_clusters == expected.n_clusters
    left.iloc[3, 1] = np.nan
    right = right.iloc[::-1].iloc[:-2]
    frames = {"left": left.set_axis(left.index + 5), "right": right.set_axis(right.index + 5)}
    with pytest.raises(ValueError, match="join='inner'"):
        suggest_n_clusters(frames, FEW, impute="median", **QUICK)
    with pytest.raises(ValueError, match="impute='median'"):
        suggest_n_clusters(frames, FEW, join="inner", **QUICK)
    found = suggest_n_clusters(frames, FEW, join="inner", impute="median", **QUICK)
    assert found.n_clusters == expected.n_clusters
    with pytest.raises(ValueError, match="join='left'"):
        suggest_n_clusters(frames, FEW, join="left", **QUICK)
