"""Features compressed to small matrices give the answer of the kernels they make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.kernel_approximation import Nystroem as KernelApproximation
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from conftest import blob_views
from mkclust import METHODS, AnchoredMKKM, AverageKKM, KernelBank, SimpleMKKM
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.methods import solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index
from mkclust.samples.local import LocalBlocks
from mkclust.samples.samples import as_blocks
from mkclust.stack import as_stack
from mkclust.stack.low_rank import compress
from mkclust.stack.mapped import Features, cut, n_fit_samples

pytestmark = pytest.mark.slow

MIXING = ("simplemkkm", "avg-kkm", "mkkm", "mkkm-mir", "lf-mvc", "mkkm-mm", "kamm-r", "kamm-a")
MIXING += ("agreement-kkm", "anchored-mkkm")
OTHERS = tuple(name for name in METHODS if name not in MIXING)


@pytest.fixture
def views():
    views, _ = blob_views(np.random.default_rng(0), n=150, k=3, strengths=(1.5, 1.0, 0.5))
    return {f"view {i}": view for i, view in enumerate(views)}


def features_of(stack, views):
    return stack.features.of(views)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", [True, False])
def test_features_have_the_centered_and_scaled_kernels_as_inner_products(views, center, normalize):
    stack = compress(LocalBlocks(views), Linear(), center=center, normalize=normalize)
    kernels = as_stack(
        [view @ view.T for view in views.values()], center=center, normalize=normalize
    )
    for p, F in enumerate(features_of(stack, views)):
        assert np.allclose(F @ F.T, kernels.kernel(p).dense(), atol=1e-10)


def test_the_small_matrices_stand_in_for_the_kernels_exactly(views):
    stack = compress(LocalBlocks(views), Nystroem(40, random_state=0), center=True, normalize=True)
    (Q,) = stack.lift(np.eye(stack.n_samples))
    assert np.allclose(Q.T @ Q, np.eye(stack.n_samples), atol=1e-9)
    for p, F in enumerate(features_of(stack, views)):
        assert np.allclose(Q @ stack.raw_kernels[p] @ Q.T, F @ F.T, atol=1e-9)
    assert np.allclose(stack.traces(), 150)
    dense = as_stack([F @ F.T for F in features_of(stack, views)], center=False, normalize=False)
    assert np.allclose(stack.gram(), dense.gram())


@pytest.mark.parametrize("name", MIXING)
def test_features_of_full_rank_give_the_answer_of_the_kernels(views, name):
    # Features stand for the formula of a kernel, without shared neighborhoods.
    settings = {"kernels": "gaussian", "random_state": 0}
    dense = METHODS[name](3, **settings).fit(views)
    model = METHODS[name](3, **settings, approximation=Nystroem(150)).fit(views)
    assert np.allclose(model.objective_, dense.objective_, rtol=2e-6)
    # The weights of SimpleMKKM are known to the root of its tolerance.
    assert np.allclose(model.weights_, dense.weights_, atol=1e-3)
    assert np.array_equal(model.labels_, dense.labels_)
    assert np.allclose(model.alignments_, dense.alignments_, atol=2e-3)
    H = model.embedding_
    assert np.allclose(H.T @ H, np.eye(3), atol=1e-10)
    assert np.array_equal(model.predict(views), model.labels_)
    assert np.allclose(model.approximation_error_, 0, atol=1e-10)


def test_at_a_tight_tolerance_objectives_agree_to_1e_10_and_solutions_to_1e_6(views):
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    dense = solve_simple_mkkm(as_stack(bank.fit_transform(views)), 3, tol=1e-13)
    stack = compress(LocalBlocks(views), Nystroem(150), center=True, normalize=True)
    small = solve_simple_mkkm(stack, 3, tol=1e-13)
    assert small.objective == pytest.approx(dense.objective, rel=1e-10)
    assert np.allclose(small.weights, dense.weights, atol=1e-6)
    (H,) = stack.lift(small.partition)
    assert np.allclose(H @ H.T, dense.partition @ dense.partition.T, atol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_methods_that_need_entries_have_no_approximation(views, name):
    assert "approximation" not in METHODS[name]().get_params()
    assert METHODS[name](3).approximation is None
    with pytest.raises(TypeError, match="approximation"):
        METHODS[name](3, approximation=Nystroem(20))


def test_a_class_without_predict_cannot_be_given_features(views):
    model = METHODS[OTHERS[0]](3)
    model.approximation = Nystroem(20)
    with pytest.raises(ValueError, match="needs the entries of the kernels"):
        model.fit(views)


def test_an_approximation_is_for_views_only(views):
    kernels = np.stack([view @ view.T for view in views.values()])
    with pytest.raises(ValueError, match="features stand for kernels of views"):
        SimpleMKKM(3, kernels="precomputed", approximation=Nystroem(20)).fit(kernels)


@given(st.integers(1, 200))
def test_the_answer_does_not_depend_on_the_blocks(height):
    views, _ = blob_views(np.random.default_rng(0), n=150, k=3, strengths=(1.5, 0.5))
    named = {f"view {i}": view for i, view in enumerate(views)}
    whole = compress(LocalBlocks(named, 150), Nystroem(30), center=True, normalize=True)
    parts = compress(LocalBlocks(named, height), Nystroem(30), center=True, normalize=True)
    one, other = (solve_simple_mkkm(stack, 3, tol=1e-10) for stack in (whole, parts))
    assert np.allclose(one.weights, other.weights, atol=1e-6)


@pytest.mark.parametrize(
    "approximation",
    [
        Nystroem(60),
        Nystroem(60, landmarks="kmeans"),
        RandomFourier(300),
        RBFSampler(gamma=0.05, n_components=300),
        Linear(),
    ],
    ids=lambda a: repr(a),
)
def test_any_transformer_can_approximate(approximation):
    views, y = blob_views(np.random.default_rng(1), n=300, k=3, strengths=(2.0, 2.0))
    model = SimpleMKKM(3, approximation=approximation, random_state=0).fit(views)
    assert adjusted_rand_index(y, model.labels_) > 0.95
    assert model.transform(views).shape == (300, 3)
    assert model.duality_gap_ <= 1e-6
    assert model.converged_


def test_the_error_of_an_approximation_falls_with_its_landmarks(views):
    errors = [
        SimpleMKKM(3, approximation=Nystroem(m), random_state=0).fit(views).approximation_error_
        for m in (5, 20, 80, 150)
    ]
    assert np.all(np.diff(errors, axis=0) < 0)
    assert np.all(errors[0] > 0.05)


@pytest.mark.parametrize(
    "approximation", [RandomFourier(50), RBFSampler(n_components=50), KernelApproximation()]
)
def test_the_error_is_one_minus_the_ratio_of_traces(views, approximation):
    model = SimpleMKKM(3, approximation=approximation, random_state=0).fit(views)
    for map_, view, error in zip(
        model._source.features.maps, views.values(), model.approximation_error_, strict=True
    ):
        K = map_.transform(view) @ map_.transform(view).T
        assert error == pytest.approx(1 - np.trace(K) / len(view), abs=1e-12)


def test_the_error_is_unknown_where_the_map_does_not_tell_its_kernel(views):
    model = SimpleMKKM(3, approximation=PCA(2), random_state=0).fit(views)
    assert np.isnan(model.approximation_error_).all()


def test_maps_choose_among_ten_times_as_many_samples_as_they_have_landmarks():
    assert n_fit_samples(Nystroem(80)) == n_fit_samples(Linear()) == 20_000
    assert n_fit_samples(make_pipeline(StandardScaler(), Nystroem(2_001))) == 20_010


def test_a_sample_at_the_very_mean_has_no_direction_whatever_its_block():
    rng = np.random.default_rng(0)
    view = rng.normal(size=(40, 3))
    view[:20] *= 1e-6  # a block of short rows must not raise what counts as short
    view -= view.mean(axis=0)
    view[0] = 0
    fits = [
        compress(as_blocks([view], block_rows=height), Linear(), center=False, normalize=True)
        for height in (1, 7, 20, 40)
    ]
    rows = fits[0].features.of({"view 0": view})[0]
    assert np.allclose(np.linalg.norm(rows, axis=1), np.arange(40) > 0)
    for fit in fits[1:]:
        assert np.allclose(fit.kernels[0].matrix, fits[0].kernels[0].matrix, atol=1e-10)


@pytest.mark.parametrize("wrong", ["nystroem", 200, Nystroem])
def test_an_approximation_that_is_no_feature_map_is_refused(views, wrong):
    with pytest.raises(ValueError, match="Nystroem.n_components=200"):
        SimpleMKKM(3, approximation=wrong).fit(views)


def test_landmarks_follow_the_seed_of_the_model(views):
    fits = [
        SimpleMKKM(3, approximation=Nystroem(10), random_state=seed).fit(views)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(fits[0].weights_, fits[2].weights_)
    own = [
        SimpleMKKM(3, approximation=Nystroem(10, random_state=3), random_state=seed).fit(views)
        for seed in (0, 1)
    ]
    np.testing.assert_allclose(own[0].weights_, own[1].weights_, rtol=1e-12, atol=1e-12)


def test_single_precision_stays_single_in_features_and_agrees(views):
    single = {name: view.astype(np.float32) for name, view in views.items()}
    stack = compress(LocalBlocks(single), Nystroem(40), center=True, normalize=True)
    assert {F.dtype for F in features_of(stack, single)} == {np.dtype(np.float32)}
    models = [
        SimpleMKKM(3, approximation=Nystroem(40), random_state=0).fit(data)
        for data in (single, views)
    ]
    assert np.allclose(models[0].weights_, models[1].weights_, atol=1e-3)
    assert np.array_equal(models[0].labels_, models[1].labels_)


def test_an_automatic_anchor_works_on_features():
    views, y = blob_views(np.random.default_rng(0), n=300, k=4, strengths=(2.0, 2.0, 0.0, 0.0, 0.0))
    model = AnchoredMKKM(4, approximation=Nystroem(100), random_state=0).fit(views)
    assert model.set_aside_ == ("view 2", "view 3", "view 4")
    assert model.duality_gap_ <= 1e-6
    assert adjusted_rand_index(y, model.labels_) > 0.95


# --- bad input --------------------------------------------------------------------------------


def test_more_landmarks_than_samples_are_refused(views):
    with pytest.raises(ValueError, match=r"View 'view 0': n_components=151 landmarks of 150 rows"):
        SimpleMKKM(3, approximation=Nystroem(151)).fit(views)


def test_more_clusters_than_directions_are_refused(views):
    with pytest.raises(ValueError, match="the features span"):
        SimpleMKKM(20, approximation=Nystroem(2)).fit(views)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named_by_view_and_sample(views, bad):
    views["view 1"][97, 3] = bad
    with pytest.raises(ValueError, match=r"View 'view 1' .* first in sample 97"):
        SimpleMKKM(3, approximation=Nystroem(20)).fit(views)


def test_new_samples_must_have_the_same_views(views):
    model = SimpleMKKM(3, approximation=Nystroem(20), random_state=0).fit(views)
    with pytest.raises(ValueError, match="the model was fitted on"):
        model.predict({name: view[:, :3] for name, view in views.items()})
    views["view 2"] = views["view 2"].copy()
    views["view 2"][4, 0] = np.nan
    with pytest.raises(ValueError, match=r"View 'view 2' .* first in sample 4"):
        model.predict(views)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": np.ones((4, 2)), "b": np.ones((5, 2))}, "'a' has 4 rows but view 'b' has 5"),
        ({"a": np.ones(4)}, "View 'a' has 1 dimensions"),
        ({"a": np.ones((4, 0))}, "View 'a' is empty, of shape"),
        ([], "no views"),
    ],
)
def test_views_that_do_not_fit_together_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_blocks(X)


def test_new_views_may_come_in_another_order(views):
    model = SimpleMKKM(3, approximation=Nystroem(60), random_state=0).fit(views)
    turned = dict(reversed(views.items()))
    assert np.array_equal(model.predict(turned), model.labels_)


def test_a_refit_forgets_all_that_the_fit_before_it_has_learned(views):
    model = SimpleMKKM(3, approximation=Nystroem(10), random_state=0).fit(views)
    model.set_params(approximation=None).fit(views)
    assert np.array_equal(model.predict(views), model.labels_)
    assert not hasattr(model, "approximation_error_")
    assert vars(model).keys() == vars(SimpleMKKM(3, random_state=0).fit(views)).keys()


class NarrowMap(Linear):
    """A map that refuses to transform many rows."""

    def transform(self, X):
        assert len(X) <= 300
        return super().transform(X)


def test_wide_features_are_computed_some_rows_at_a_time():
    # Of 20,000 features 32 MiB hold 209 rows, and 256 are computed at least.
    view = np.random.default_rng(0).normal(size=(600, 3))
    features = Features([NarrowMap().fit(view)])
    matrix = np.zeros((20_000, 2))
    matrix[:3] = [[1, 0], [2, 1], [0, 3]]
    parts = list(cut({"a": view}, 5, len(matrix)))
    assert [start for _, start in parts] == [5, 261, 517]
    np.testing.assert_array_equal(np.vstack([part["a"] for part, _ in parts]), view)
    np.testing.assert_allclose(features.project({"a": view}, matrix), view @ matrix[:3])


def test_features_that_are_not_kept_give_the_same_kernels(views):
    how = {"center": True, "normalize": True, "random_state": 0}
    kept = compress(as_blocks(views), Nystroem(20), **how)
    again = compress(as_blocks(views, block_rows=40), Nystroem(20), kept_bytes=0, **how)
    for one, other in zip(again.raw_kernels, kept.raw_kernels, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("approximation", [Linear(), KernelApproximation(), RandomFourier(30)])
def test_a_constant_view_is_refused_by_name(views, approximation):
    with pytest.raises(ValueError, match="'flat'.*(constant|identical).*leave it out"):
        SimpleMKKM(3, approximation=approximation).fit(views | {"flat": np.full((150, 4), 3.0)})


def test_views_far_from_the_origin_are_not_constant(views):
    far = {name: view + 1e8 for name, view in views.items()}
    near = SimpleMKKM(3, approximation=Linear(), random_state=0).fit(views)
    model = SimpleMKKM(3, approximation=Linear(), random_state=0).fit(far)
    assert np.allclose(model.weights_, near.weights_, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-3, 1e-7, 1e-12])
def test_a_view_in_small_units_keeps_its_directions(views, unit):
    scaled = [views["view 0"], unit * views["view 1"]]
    moved = [view - view.mean(axis=0) for view in scaled]
    exact = SimpleMKKM(3, kernels="precomputed", normalize=False, random_state=0).fit(
        [view @ view.T for view in moved]
    )
    model = SimpleMKKM(3, approximation=Linear(), normalize=False, random_state=0).fit(scaled)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert np.allclose(model.alignments_, exact.alignments_, atol=2e-3)


def test_the_error_does_not_flatter_maps_that_saw_few_samples(views):
    how = {"center": True, "normalize": True, "random_state": 0}
    honest = compress(as_blocks(views), Nystroem(10), **how)
    stack = compress(as_blocks(views), Nystroem(10), fit_samples=10, **how)
    assert np.all(stack.approximation_error > 0.5 * honest.approximation_error)


def test_the_seed_of_the_model_reaches_the_steps_of_a_pipeline(views):
    steps = make_pipeline(StandardScaler(), Nystroem(10))
    fits = [SimpleMKKM(3, approximation=steps, random_state=s).fit(views) for s in (0, 0, 1)]
    np.testing.assert_allclose(fits[0].weights_, fits[1].weights_, rtol=1e-12, atol=1e-12)
    assert not np.array_equal(fits[0].weights_, fits[2].weights_)


def test_columns_of_data_frames_are_brought_to_the_order_of_the_fit():
    pd = pytest.importorskip("pandas")
    views, _ = blob_views(np.random.default_rng(0), n=90, k=3, strengths=(2.0, 2.0))
    frames = {f"v{i}": pd.DataFrame(view).add_prefix("c") for i, view in enumerate(views)}
    model = SimpleMKKM(3, approximation=Nystroem(30), random_state=0).fit(frames)
    assert np.array_equal(model.predict(frames), model.labels_)
    turned = frames | {"v1": frames["v1"].iloc[:, ::-1]}
    assert np.array_equal(model.predict(turned), model.labels_)
    with pytest.raises(ValueError, match="'v1' lacks the column"):
        model.predict(frames | {"v1": frames["v1"].iloc[:, 1:]})
    table = SimpleMKKM(3, approximation=Nystroem(30), random_state=0).fit(frames["v0"])
    assert list(table.feature_names_in_) == list(frames["v0"].columns)
    assert np.array_equal(table.predict(frames["v0"].iloc[:, ::-1]), table.labels_)


@pytest.mark.parametrize(
    ("approximation", "message"),
    [
        (RandomTreesEmbedding(5, random_state=0), "'view 0'.*sparse features"),
        (Nystroem(200), "'view 0'.*200 landmarks of 150 rows"),
    ],
)
def test_maps_that_cannot_serve_are_refused_with_the_view(views, approximation, message):
    with pytest.raises(ValueError, match=message):
        SimpleMKKM(3, approximation=approximation).fit(views)


def test_kernels_are_no_views_to_make_features_of():
    with pytest.raises(ValueError, match="kernels"):
        SimpleMKKM(3, approximation=Nystroem(5)).fit(np.array([np.eye(10)] * 2))


def test_a_map_of_unknown_kernel_has_an_unknown_error(views):
    model = SimpleMKKM(3, approximation=KernelPCA(5, kernel="rbf"), random_state=0).fit(views)
    assert np.isnan(model.approximation_error_).all()
    PCA("mle").fit(views["view 0"])  # a number of components that is no number
    SimpleMKKM(3, approximation=PCA("mle"), random_state=0).fit(views)


def test_landmarks_in_single_precision_approximate_from_below():
    X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    F = Nystroem(200, width=4.0, random_state=0).fit(X).transform(X)
    assert F.dtype == np.float32
    K = KernelBank(widths=(4.0,), polynomials=(), linear=None).fit_transform(X.astype(float))[0]
    assert np.abs(F.astype(float) @ F.T.astype(float) - K).max() < 3e-4


def test_square_symmetric_matrices_are_no_views_to_make_features_of(views):
    K = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(views)
    for X in (K, list(K), K[0]):
        with pytest.raises(ValueError, match="X holds kernels.*approximation=None"):
            SimpleMKKM(3, approximation=Nystroem(5)).fit(X)


def test_as_many_directions_as_centered_clusters_span_are_enough():
    y = np.arange(90) % 3
    model = SimpleMKKM(3, approximation=Linear(), random_state=0).fit([np.eye(3)[y]] * 2)
    assert adjusted_rand_index(y, model.labels_) == 1
    line = AverageKKM(2, approximation=Linear(), random_state=0).fit(
        10.0 * (y > 0)[:, None] + y[:, None]
    )
    assert adjusted_rand_index(y > 0, line.labels_) == 1


def test_features_that_are_not_finite_are_told(views):
    positive = {name: np.abs(view) for name, view in views.items()}
    model = AverageKKM(3, approximation=FunctionTransformer(np.log), random_state=0).fit(positive)
    positive["view 1"][5, 0] = 0
    with np.errstate(divide="ignore"):
        with pytest.raises(ValueError, match="not finite"):
            model.predict(positive)
        with pytest.raises(ValueError, match="'view 1'.*not finite"):
            AverageKKM(3, approximation=FunctionTransformer(np.log)).fit(positive)
    linear = AverageKKM(3, approximation=Linear(), random_state=0).fit(views)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        linear.predict({name: 1e200 * view for name, view in views.items()})


def test_what_is_not_finite_is_named_wherever_it_is_seen_first():
    how = {"center": True, "normalize": True, "fit_samples": 60, "error_samples": 60}
    view = np.random.default_rng(0).normal(size=(300, 2))
    for sample in range(0, 300, 7):
        wrong = view.copy()
        wrong[sample, 1] = np.nan
        with pytest.raises(ValueError, match=f"View 'b'.*first in sample {sample};"):
            compress(as_blocks({"a": view, "b": wrong}), Nystroem(5), **how)


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_distances_that_cannot_be_squared_are_told(views, scale):
    with pytest.raises(ValueError, match="too (small|large) to square"):
        AverageKKM(3, approximation=Nystroem(5)).fit(scale * views["view 0"])


def test_the_embedding_does_not_keep_what_was_lifted_beside_it(views):
    model = SimpleMKKM(3, approximation=Nystroem(20), random_state=0).fit(views)
    assert model.embedding_.base is None


@pytest.mark.parametrize("copies", [False, True], ids=["full rank", "copies of views"])
def test_rounding_does_not_choose_among_coordinates(views, copies):
    several = views | ({"copy": views["view 0"], "half": views["view 1"] / 2} if copies else {})
    weights = []
    for height in (150, 60, 7):
        blocks = as_blocks(several, block_rows=height)
        stack = compress(blocks, Nystroem(20), center=True, normalize=True, random_state=0)
        assert stack.n_samples <= 20 * len(several)
        weights.append(solve_simple_mkkm(stack, 3).weights)
    assert np.ptp(weights, axis=0).max() < 1e-6


def test_entries_of_some_samples_are_those_of_samples_from_everywhere(views):
    stack = compress(LocalBlocks(views), Linear(), center=True, normalize=True)
    kernels = as_stack([view @ view.T for view in views.values()])
    few = np.arange(0, 100, 5)
    found, expected = (each.compared_entries(few) for each in (stack, kernels))
    np.testing.assert_allclose(found, expected, atol=1e-10)
