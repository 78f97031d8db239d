import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers.cases import REPRESENTATIVES, every_pair, first_quick, slow
from helpers.kernels import ONE_GAUSSIAN
from mkclust import METHODS, KernelBank
from mkclust.exceptions import ClusterNumberWarning
from mkclust.stack import as_stack

# Weights of these are on the unit sphere, those of the others on the simplex.
UNIT_NORM = {"mkkm-mm", "lf-mvc"}
STANDARDS = [(True, True), (True, False), (False, True), (False, False)]
INDUCTIVE = [name for name in METHODS if hasattr(METHODS[name](), "predict")]

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
]


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


@pytest.fixture
def method(name):
    return METHODS[name]


@pytest.fixture
def inductive(method):
    if not hasattr(method(), "predict"):
        pytest.skip(f"{method.__name__} is transductive")
    return method


def overlapping_views(n=60, seed=0, dtype=np.float64):
    """Return two views without clear clusters, so that some samples lie near the
    borders."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(n, 5)).astype(dtype),
        rng.exponential(size=(n, 3)).astype(dtype),
    ]


def blobs(n=90, k=3, seed=0):
    """Return two views of clear clusters of different sizes, and the clusters."""
    rng = np.random.default_rng(seed)
    y = np.minimum(np.arange(n) * 2 * k // n // 2 + (np.arange(n) % 7 == 0), k - 1)
    y = np.sort(y)[rng.permutation(n)]
    places = [8 * np.eye(k, 4), 8 * np.eye(k, 6)[:, ::-1]]
    return [place[y] + rng.normal(size=(n, place.shape[1])) for place in places], y


def gaussian(views):
    """Return one Gaussian kernel per view."""
    return KernelBank(**ONE_GAUSSIAN).fit_transform(views)


def gram(views):
    """Return linear kernels, whose diagonals vary."""
    return np.stack([X @ X.T for X in views])


def of_few_iterations(method):
    """Return a model that ends early: conventions do not depend on how far it came."""
    few = {"max_iter": 1, "n_init": 2}
    return method(
        **{name: few[name] for name in few.keys() & method().get_params().keys()}
    )


@parametrize_with_checks([of_few_iterations(METHODS[name]) for name in REPRESENTATIVES])
def test_methods_keep_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        of_few_iterations(METHODS[name])
        for name in METHODS
        if name not in REPRESENTATIVES
    ]
)
def test_all_other_methods_keep_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_common_parameters_have_common_names_and_defaults(method):
    parameters = method().get_params()
    expected = {"n_clusters": 8, "kernels": "auto", "center": True, "normalize": True}
    expected |= {"psd": "error", "n_init": 10, "random_state": None}
    assert {name: parameters.get(name) for name in expected} == expected


def test_a_fit_leaves_the_parameters_and_a_clone_has_nothing_learned(method):
    bank = KernelBank(**ONE_GAUSSIAN)
    model = method(3, kernels=bank, random_state=0)
    before = model.get_params(deep=False)
    model.fit(overlapping_views())
    assert model.get_params(deep=False) == before
    assert not hasattr(bank, "views_")
    copy = clone(model)
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert repr(copy) == repr(model)
    np.testing.assert_array_equal(copy.fit(overlapping_views()).labels_, model.labels_)


def test_a_bank_in_front_in_a_pipeline_equals_one_within(inductive):
    (train, y), (new, _) = blobs(seed=1), blobs(n=20, seed=2)
    bank = KernelBank(**ONE_GAUSSIAN)
    within = inductive(3, kernels=bank, random_state=0).fit(train)
    pipeline = make_pipeline(
        bank, inductive(3, kernels="precomputed", random_state=0)
    ).fit(train)
    np.testing.assert_array_equal(pipeline[-1].labels_, within.labels_)
    np.testing.assert_array_equal(pipeline.predict(train), within.labels_)
    np.testing.assert_array_equal(pipeline.predict(new), within.predict(new))
    np.testing.assert_allclose(
        pipeline.transform(new), within.transform(new), atol=1e-12
    )
    assert adjusted_rand_score(y, within.labels_) == 1


@pytest.mark.parametrize(
    ("standard", "n"), first_quick(2, every_pair(STANDARDS, [230, 60]))
)
def test_learned_attributes_are_what_they_are_said_to_be(name, method, standard, n):
    center, normalize = standard
    X = gram(overlapping_views(n))
    model = method(4, center=center, normalize=normalize, random_state=0).fit(X)
    assert model.labels_.shape == (n,)
    sizes = np.bincount(model.labels_)
    assert len(sizes) == 4
    assert np.all(np.diff(sizes) <= 0)
    np.testing.assert_allclose(
        model.embedding_.T @ model.embedding_, np.eye(4), atol=1e-10
    )
    assert model.embedding_.shape == (n, 4)
    assert model.weights_.shape == model.alignments_.shape == (2,)
    assert model.weights_.dtype == np.float64
    assert np.all(model.weights_ >= 0)
    size = np.linalg.norm(model.weights_) if name in UNIT_NORM else model.weights_.sum()
    assert size == pytest.approx(1, abs=1e-9)
    kernels = as_stack(X, center=center, normalize=normalize).among().entries
    captured = [np.trace(model.embedding_.T @ K @ model.embedding_) for K in kernels]
    best = [np.linalg.eigvalsh(K)[-4:].sum() for K in kernels]
    np.testing.assert_allclose(model.alignments_, np.divide(captured, best), atol=2e-3)
    assert model.n_iter_ >= 1
    assert isinstance(model.converged_, bool | np.bool_)
    assert len(model.history_) >= 1
    assert model.objective_ == pytest.approx(model.history_[-1])
    assert model.kernel_names_ == ("kernel 0", "kernel 1")
    assert model.n_features_in_ == n


def test_the_partition_spans_leading_eigenvectors_of_the_combined_kernel(inductive):
    X = gram(overlapping_views())
    # What draws to a compromise is no part of the mix.
    options = {"anchor": 0} if "anchor" in inductive().get_params() else {}
    model = inductive(3, random_state=0, **options).fit(X)
    if not hasattr(model, "coefficients_") or hasattr(model, "neighbors_"):
        pytest.skip(f"{inductive.__name__} has no combined kernel")
    K = np.tensordot(model.coefficients_, as_stack(X).among().entries, 1)
    captured = np.trace(model.embedding_.T @ K @ model.embedding_)
    assert captured == pytest.approx(np.linalg.eigvalsh(K)[-3:].sum(), rel=1e-5)


def test_clear_clusters_are_found(name, method):
    views, y = blobs()
    # LKAM's neighborhoods by the average of a table's twelve kernels misplace one
    # sample.
    least = 0.95 if name == "lkam" else 1
    model = method(3, random_state=0)
    assert adjusted_rand_score(y, model.fit(gaussian(views)).labels_) >= least
    model.set_params(scale="none")  # all columns have the same unit
    for X in (views, dict(zip("ab", views, strict=True)), np.hstack(views)):
        assert adjusted_rand_score(y, model.fit(X).labels_) >= least


@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_cluster_far_from_a_large_one_is_found(name, method, seed):
    rng, y = np.random.default_rng(seed), np.repeat([0, 1], [180, 20])
    apart = 12 * np.eye(1, 30)  # in units of the standard deviation
    views = [apart * y[:, None] + rng.normal(size=(200, 30)) for _ in range(2)]
    model = method(2, random_state=0)
    if name == "lkam":  # by default the neighborhoods have a hundred samples
        model.set_params(neighbors="auto")
    # Neighborhoods misplace at most one of 200 samples.
    least = 0.95 if name == "agreement-kkm" else 0.98
    for X in (views, gaussian(views)):
        assert adjusted_rand_score(y, model.fit(X).labels_) > least
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_seed_decides_on_the_labels_and_on_nothing_else(method):
    X = overlapping_views()
    first, second, other = (
        method(5, random_state=s, n_init=1).fit(X) for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.labels_, second.labels_)
    for each in (second, other):
        np.testing.assert_allclose(
            each.weights_, first.weights_, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            each.embedding_, first.embedding_, rtol=1e-12, atol=1e-12
        )


def test_a_solve_alone_gives_what_the_fit_gives_and_leaves_the_model_unfitted(method):
    kernels, model = gram(blobs()[0]), method(3, random_state=0)
    solution = model.solve(as_stack(kernels))
    assert not hasattr(model, "labels_")
    H, embedding = solution.partition, model.fit(kernels).embedding_
    np.testing.assert_allclose(solution.weights, model.weights_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(H @ H.T, embedding @ embedding.T, atol=1e-8)


@pytest.mark.slow
def test_fits_in_parallel_threads_do_not_disturb_each_other(method):
    problems = [
        gaussian(overlapping_views(n, seed))
        for seed, n in enumerate((60, 230, 240, 70))
    ]
    fit = lambda X: method(4, random_state=0).fit(X)  # noqa: E731
    alone = [fit(X) for X in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, problems))
        same = list(pool.map(fit, [problems[1]] * 2))
    for first, second in zip(alone + [alone[1]] * 2, together + same, strict=True):
        # The linear algebra may have had more threads or fewer, which round
        # differently.
        np.testing.assert_allclose(first.weights_, second.weights_, rtol=1e-9)
        np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.parametrize(
    ("n_clusters", "standard", "kind"),
    first_quick(3, every_pair([1, 10, 19], STANDARDS, ["views", "gaussian", "gram"])),
)
def test_from_one_cluster_to_almost_one_per_sample(method, n_clusters, standard, kind):
    views, (center, normalize) = overlapping_views(n=20), standard
    X = {"views": views, "gaussian": gaussian(views), "gram": gram(views) + np.eye(20)}[
        kind
    ]
    model = method(n_clusters, center=center, normalize=normalize, random_state=0).fit(
        X
    )
    assert set(model.labels_) == set(range(n_clusters))
    assert model.embedding_.shape == (20, n_clusters)
    np.testing.assert_allclose(
        model.embedding_.T @ model.embedding_, np.eye(n_clusters), atol=1e-10
    )
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    ("name", "scale", "n"),
    every_pair(INDUCTIVE, [1e150, 1e-150, 1e-200, 1e200], [60, 230]),
)
def test_the_unit_of_a_normalized_kernel_does_not_matter(inductive, n, scale):
    K = gram(blobs(n)[0])
    plain, scaled = (inductive(3, random_state=0).fit(X) for X in (K, K * scale))
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=1e-6)
    np.testing.assert_array_equal(scaled.predict(K * scale), plain.labels_)


def training_input(kind, n, dtype):
    views = overlapping_views(n, dtype=dtype)
    if kind == "low rank":  # two kernels of the same two features
        X = np.random.default_rng(0).normal(size=(n, 2))
        return np.stack([X @ X.T, (X * [1, 2]) @ X.T]).astype(dtype)
    if kind == "shift":  # indefinite
        return (gram(views) - 2 * np.eye(n)).astype(dtype)
    return {"gram": gram(views), "views": views, "table": views[0]}[kind]


INPUTS = ["gram", "views", "table", "low rank", "shift"]


@pytest.mark.parametrize(
    ("kind", "n", "dtype", "standard"),
    first_quick(6, every_pair(INPUTS, [60, 230], [np.float64, np.float32], STANDARDS)),
)
def test_training_samples_are_predicted_as_they_were_fitted(
    method, kind, n, dtype, standard
):
    options = dict(zip(("center", "normalize"), standard, strict=True))
    options["psd"] = "shift" if kind == "shift" else "error"
    X = training_input(kind, n, dtype)
    model = method(5, **options, n_init=2, random_state=0).fit(X)
    np.testing.assert_allclose(
        model.embedding_.T @ model.embedding_, np.eye(5), atol=1e-8
    )
    assert set(model.labels_) == set(range(5))
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_held_out_samples_join_their_cluster(inductive):
    views, y = blobs(n=150)
    train, new = np.arange(150) < 90, np.arange(150) >= 90
    kernels = gaussian(views)
    for X, X_new in (
        ([x[train] for x in views], [x[new] for x in views]),
        (np.hstack(views)[train], np.hstack(views)[new]),
        (kernels[:, train][:, :, train], kernels[:, new][:, :, train]),
    ):
        model = inductive(3, random_state=0).fit(X)
        assert adjusted_rand_score(y[train], model.labels_) == 1
        assert (
            adjusted_rand_score(y, np.append(model.labels_, model.predict(X_new))) == 1
        )


@pytest.mark.parametrize("kernels", ["precomputed", "auto"])
def test_samples_are_predicted_one_by_one_as_together(inductive, kernels):
    train, new = overlapping_views(), overlapping_views(n=8, seed=9)
    if kernels == "precomputed":
        bank = KernelBank(**ONE_GAUSSIAN).fit(train)
        train, new = list(bank.transform(train)), list(bank.transform(new))
    model = inductive(4, kernels=kernels, random_state=0).fit(train)
    single = [[x[i : i + 1] for x in new] for i in range(8)]
    np.testing.assert_array_equal(
        np.hstack([*map(model.predict, single)]), model.predict(new)
    )
    rows = np.vstack([*map(model.transform, single)])
    np.testing.assert_allclose(rows, model.transform(new), atol=1e-10)


@pytest.mark.parametrize(("n", "seed"), [(60, 0), *slow((60, 1), (230, 2))])
def test_the_order_of_samples_does_not_matter(name, method, n, seed):
    X = gaussian(blobs(n, seed=seed)[0])
    # SimpleMKKM stops at a gap of 1e-6, which leaves the weights open to its root.
    atol = 1e-3 if name == "simplemkkm" else 1e-5
    order = np.random.default_rng(seed).permutation(n)
    plain = method(3, random_state=0).fit(X)
    other = method(3, random_state=0).fit(X[:, order][:, :, order])
    np.testing.assert_allclose(other.weights_, plain.weights_, atol=atol)
    np.testing.assert_allclose(
        other.embedding_ @ other.embedding_.T,
        (plain.embedding_ @ plain.embedding_.T)[order][:, order],
        atol=1e-3,
    )
    assert adjusted_rand_score(plain.labels_[order], other.labels_) > 0.95


@pytest.mark.parametrize(("n", "seed"), [(60, 0), *slow((60, 1), (230, 2))])
def test_the_order_of_kernels_does_not_matter(method, n, seed):
    views = [*blobs(n, seed=seed)[0], *overlapping_views(n, seed)]
    X = gaussian(views)
    order = np.random.default_rng(seed).permutation(4)
    plain, other = (method(3, random_state=0).fit(K) for K in (X, X[order]))
    np.testing.assert_allclose(other.weights_, plain.weights_[order], atol=1e-5)
    np.testing.assert_allclose(other.alignments_, plain.alignments_[order], atol=2e-3)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-5)


@pytest.mark.parametrize("n", [60, *slow(230)])
@pytest.mark.parametrize("copies", [2, *slow(5)])
def test_equal_kernels_get_equal_weights(method, n, copies):
    X = np.repeat(gaussian(overlapping_views(n))[:1], copies, axis=0)
    weights = method(4, random_state=0).fit(X).weights_
    np.testing.assert_allclose(weights, weights[0], atol=1e-2)


# Falling, unless the objective is something to be maximized.
RISING = {"lf-mvc", "kamm-r"}
# Two sides with opposite interests, taken in turns: nothing has to fall or rise.
RESTLESS = {"mkkm-mm", "kamm-a"}


@pytest.mark.parametrize(("n", "seed"), [(60, 0), *slow((60, 1), (230, 2))])
def test_the_objective_falls_or_rises_as_the_method_says(name, method, n, seed):
    views = [*blobs(n, seed=seed)[0], *overlapping_views(n, seed)]
    model = method(3, n_init=2, random_state=0).fit(gaussian(views))
    change = np.diff(model.history_) * (-1 if name in RISING else 1)
    if name in RESTLESS:
        # The best after the start, unless it came to rest.
        best = model.history_[-1] if model.converged_ else model.history_[1:].min()
        assert model.objective_ == best
    else:
        assert np.all(change <= 1e-8 * np.abs(model.history_).max())


def test_what_did_not_converge_is_said_and_nothing_else_is(method):
    X = gaussian([*blobs()[0], *overlapping_views(90)])
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        model = method(3, random_state=0).fit(X)
    said = [entry for entry in log if issubclass(entry.category, ConvergenceWarning)]
    assert len(said) == (not model.converged_)
    if hasattr(model, "max_iter"):
        with pytest.warns(
            ConvergenceWarning, match=f"{method.__name__} did not converge"
        ):
            model = method(3, max_iter=1, random_state=0).fit(X)
        assert not model.converged_
        assert model.n_iter_ == 1


def test_as_many_clusters_as_samples_are_refused_and_one_or_many_are_warned_of(
    method,
):
    X = gaussian(overlapping_views(n=20))
    with pytest.raises(ValueError, match="n_clusters=20.*n_samples=20"):
        method(20).fit(X)
    for n_clusters in (1, 11):
        with pytest.warns(ClusterNumberWarning, match=f"n_clusters={n_clusters}"):
            method(n_clusters, n_init=1).fit(X)


def test_parameters_out_of_their_range_are_refused_by_name_before_anything_else(method):
    wrong = {
        "n_clusters": 0,
        "n_init": 0,
        "max_iter": 0,
        "tol": -1.0,
        "random_state": "zero",
    }
    wrong |= dict.fromkeys(method.ALLOWED, "nonsense")
    for name in sorted(wrong.keys() & method().get_params().keys()):
        model = method(3).set_params(**{name: wrong[name]})
        with pytest.raises(ValueError, match=f"^{name}={wrong[name]!r}: "):
            model.fit(None)


def test_the_grid_holds_settings_that_are_allowed(method):
    for parameters in ParameterGrid(method.GRID):
        method(3, **parameters).check_parameters()
    assert set(method.GRID) <= set(method.ALLOWED)
