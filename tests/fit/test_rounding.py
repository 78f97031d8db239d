"""Labels of relaxed partitions: rows of unit length, components, and the better of
both."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score

from helpers.methods import Powered
from mkclust import (
    LFMVC,
    LMKKM,
    METHODS,
    AgreementKKM,
    AverageKKM,
    SimpleMKKM,
    load_model,
    sample_scores,
    save_model,
)
from mkclust.exceptions import WeightsWarning
from mkclust.fit import RelaxedClusterer
from mkclust.fit.rounding import explained, kernel_of, root_of, round_partition
from mkclust.kernels import Nystroem
from mkclust.kernels.maps import Linear
from mkclust.stack import as_stack
from mkclust.stack.discretize import compared_rows, discretize

RELAXED = [
    name for name, method in METHODS.items() if issubclass(method, RelaxedClusterer)
]
INDUCTIVE = [name for name in RELAXED if hasattr(METHODS[name], "predict")]

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def unequal(sizes=(180, 20), distance=12, seed=0, width=30):
    """Return two views of clusters at a distance from the first, and the clusters."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)[rng.permutation(sum(sizes))]
    centers = distance * np.eye(len(sizes), width)
    centers[0] = 0
    return [centers[y] + rng.normal(size=(len(y), width)) for _ in range(2)], y


def overlapping(n=80, seed=0):
    """Return two views without clear clusters."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 4)), rng.exponential(size=(n, 3))]


def grams(views):
    """Return linear kernels."""
    return np.stack([X @ X.T for X in views])


def share_between(K, labels):
    """Return the objective of kernel k-means over the trace, written out."""
    total = 0.0
    for cluster in np.unique(labels[labels >= 0]):
        own = np.flatnonzero(labels == cluster)
        total += K[np.ix_(own, own)].sum() / len(own)
    return total / np.trace(K)


def test_what_clusters_explain_is_the_sum_within_clusters_over_their_sizes():
    stack = as_stack(grams(overlapping()))
    rng = np.random.default_rng(1)
    partitions = [rng.integers(4, size=80), rng.integers(-1, 3, size=80)]
    K = stack.mix(np.array([0.3, 0.7])).dense()
    found = explained(stack, stack.mix(np.array([0.3, 0.7])), partitions)
    expected = [share_between(K, labels) for labels in partitions]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_clusters_explain_is_what_k_means_leaves_of_the_variance():
    X = np.random.default_rng(0).normal(size=(60, 5))
    means = KMeans(4, n_init=3, random_state=0).fit(X)
    stack = as_stack((X @ X.T)[None], normalize=False)
    found = explained(stack, stack.kernels[0], [means.labels_])
    variance = np.sum((X - X.mean(axis=0)) ** 2)
    np.testing.assert_allclose(found, [1 - means.inertia_ / variance], rtol=1e-10)


def test_what_clusters_explain_is_the_same_in_the_coordinates_of_features():
    views = overlapping()
    model = AverageKKM(3, approximation=Linear(), scale="none", random_state=0)
    seen = {}

    class Spy(AverageKKM):
        def _solve(self, stack):
            seen["stack"] = stack
            return super()._solve(stack)

    Spy(**model.get_params()).fit(views)
    stack = seen["stack"]
    exact = as_stack(grams(views))
    rng = np.random.default_rng(1)
    partitions = [rng.integers(4, size=80), rng.integers(-1, 3, size=80)]
    weights = np.array([0.3, 0.7])
    found = explained(stack, stack.mix(weights), partitions)
    expected = explained(exact, exact.mix(weights), partitions)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_components_are_those_of_kernel_principal_component_analysis():
    stack = as_stack(grams(overlapping()), normalize=False)
    solution = AverageKKM(3).solve(stack)
    rows = compared_rows(solution.partition, root_of(stack, solution))
    K = stack.mix(solution.coefficients).dense()
    components = KernelPCA(3, kernel="precomputed").fit_transform(K)
    components *= np.sqrt(80) / np.linalg.norm(components)
    np.testing.assert_allclose(rows @ rows.T, components @ components.T, atol=1e-8)


def test_components_are_the_part_of_a_kernel_that_any_partition_spans():
    # The consensus of partitions is no eigenvectors: it is placed in the average
    # kernel.
    stack = as_stack(grams(overlapping()))
    solution = LFMVC(3).solve(stack)
    rows = compared_rows(solution.partition, root_of(stack, solution))
    P = solution.partition @ solution.partition.T
    expected = P @ stack.mix(np.array([0.5, 0.5])).dense() @ P
    np.testing.assert_allclose(
        rows @ rows.T, 80 * expected / np.trace(expected), atol=1e-8
    )


def test_a_method_by_weights_of_samples_compares_by_its_own_kernel():
    stack = as_stack(grams(overlapping()))
    solution = LMKKM(3).solve(stack)
    theta = solution.learned["sample_weights_"]
    entries = stack.among().entries
    mixed = sum(np.outer(t, t) * K for t, K in zip(theta.T, entries, strict=True))
    np.testing.assert_allclose(kernel_of(stack, solution).dense(), mixed, atol=1e-12)


@pytest.mark.parametrize("name", RELAXED)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_is_the_form_that_explains_more(name, seed):
    K = grams(overlapping(seed=seed) if seed else unequal()[0])
    # The anchor is chosen by clusters.
    options = {"anchor": 0.5} if name == "anchored-mkkm" else {}
    unit, components, best = (
        METHODS[name](3, rounding=rounding, random_state=0, **options).fit(K)
        for rounding in ("unit", "components", "best")
    )
    assert (unit.rounding_, components.rounding_) == ("unit", "components")
    stack, model = as_stack(K), METHODS[name](3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = kernel_of(stack, model.solve(stack))
    shares = explained(stack, kernel, [unit.labels_, components.labels_])
    expected = components if shares[1] > 1.005 * shares[0] else unit
    np.testing.assert_array_equal(best.labels_, expected.labels_)
    if not np.array_equal(unit.labels_, components.labels_):
        assert best.rounding_ == expected.rounding_


def test_rows_of_unit_length_are_clustered_as_they_always_were():
    model = AverageKKM(3, rounding="unit", random_state=0).fit(grams(overlapping()))
    labels = discretize(model.embedding_, 3, random_state=0)[0]
    np.testing.assert_array_equal(model.labels_, labels)


def test_few_rows_decide_for_many_and_all_are_clustered(monkeypatch):
    X = grams(unequal()[0])
    expected = AverageKKM(2, rounding="components", random_state=0).fit(X)
    monkeypatch.setattr("mkclust.fit.rounding.MANY_ROWS", 100)
    model = AverageKKM(2, random_state=0).fit(X)
    assert model.rounding_ == "components"
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model._centers, expected._centers)


@pytest.mark.parametrize("rounding", ["best", "unit", "components"])
@pytest.mark.parametrize("name", INDUCTIVE)
def test_predictions_of_the_training_samples_are_their_labels(name, rounding):
    views = overlapping()
    model = METHODS[name](4, rounding=rounding, random_state=0).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    rows = model.transform(views)
    np.testing.assert_allclose(rows, model.embedding_, atol=1e-8)


@pytest.mark.parametrize("missing_views", ["learn", "zero", "rescale"])
def test_predictions_are_labels_with_missing_samples(missing_views):
    views, y = unequal(distance=20)
    rng = np.random.default_rng(0)
    gone = rng.choice(200, 40, replace=False)
    views[0][gone[:20]] = views[1][gone[20:]] = np.nan
    model = SimpleMKKM(2, missing_views=missing_views, random_state=0).fit(views)
    assert model.rounding_ == "components"
    # Of the 40 samples, learned ones are drawn towards rows of a common length.
    least = 0.7 if missing_views == "learn" else 0.9
    assert adjusted_rand_score(y, model.labels_) > least
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("name", INDUCTIVE)
def test_approximations_and_computed_kernels_find_unequal_clusters_too(name):
    views, y = unequal()
    for options in ({"approximation": Nystroem(60)}, {"kernels": "on-the-fly"}):
        model = METHODS[name](2, random_state=0, **options).fit(views)
        assert adjusted_rand_score(y, model.labels_) == 1
        np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_lazy_views_give_the_labels_of_views_in_memory():
    da = pytest.importorskip("dask.array")
    views, y = unequal()
    options = {"approximation": Nystroem(60, random_state=0), "random_state": 0}
    model = SimpleMKKM(2, **options).fit(views)
    lazy = [da.from_array(view, chunks=(70, -1)) for view in views]
    again = SimpleMKKM(2, **options).fit(lazy)
    assert again.rounding_ == model.rounding_ == "components"
    assert adjusted_rand_score(y, again.labels_) == 1
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(lazy), model.labels_)


@pytest.mark.parametrize("rounding", ["unit", "components"])
def test_a_saved_model_predicts_as_it_did(rounding, tmp_path):
    views, _ = unequal()
    new = unequal(seed=1)[0]
    model = SimpleMKKM(2, rounding=rounding, random_state=0).fit(views)
    loaded = load_model(save_model(model, tmp_path / "m.skops"))
    assert loaded.rounding_ == rounding
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    refitted = model.set_params(rounding="unit").fit(views)
    assert refitted.rounding_ == "unit"
    np.testing.assert_array_equal(refitted.predict(views), refitted.labels_)


def test_the_clusters_of_the_compromise_have_the_form_of_the_labels():
    views, y = unequal()
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightsWarning)
        model = SimpleMKKM(2, random_state=0).fit(views)
    assert adjusted_rand_score(y, model.baseline_labels_) == 1


def test_margins_of_components_are_zero_on_the_border_and_one_at_the_center():
    views, y = unequal()
    model = AverageKKM(2, random_state=0).fit(views)
    rows = compared_rows(model.embedding_, model._root)
    small, large = rows[y == 1].mean(axis=0), rows[y == 0].mean(axis=0)
    along = (
        (rows - (small + large) / 2) @ (small - large) / np.sum((small - large) ** 2)
    )
    expected = 2 * np.where(y == 1, along, -along)
    np.testing.assert_allclose(sample_scores(model).margin, expected, atol=1e-8)


def test_a_form_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(
        ValueError, match="rounding='rows': choose one of 'best', 'unit', 'comp"
    ):
        AverageKKM(2, rounding="rows").fit(overlapping())


def test_a_method_by_neighborhoods_has_no_rounding():
    assert "rounding" not in AgreementKKM().get_params()
    assert not hasattr(AgreementKKM(3, random_state=0).fit(overlapping()), "rounding_")


def test_a_method_of_a_user_has_the_choice_by_its_base_class():
    class Chosen(RelaxedClusterer, Powered):
        """With the parameter `rounding`."""

    views, y = unequal()
    assert not hasattr(Powered(2, random_state=0).fit(views), "rounding_")
    model = Chosen(2, random_state=0).fit(views)
    assert model.rounding_ == "components"
    assert adjusted_rand_score(y, model.labels_) == 1


def test_a_partition_without_a_kernel_is_refused_unless_rows_have_unit_length():
    stack = as_stack(grams(overlapping()))
    solution = LFMVC(3).solve(stack)
    without = type(solution)(
        solution.partition, solution.weights, solution.objective, solution.history, True
    )
    rounded = round_partition(
        stack, without, without.partition, rounding="unit", random_state=0
    )
    assert rounded.root is None
    with pytest.raises(TypeError, match="neither coefficients nor a kernel"):
        round_partition(stack, without, without.partition, random_state=0)
