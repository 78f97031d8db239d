"""Passes over features that are made anew each time, beside features that are written out."""

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from conftest import blob_views
from mkclust import SimpleMKKM
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.methods import solve_simple_mkkm
from mkclust.samples.local import LocalBlocks
from mkclust.stack import as_stack
from mkclust.stack.low_rank import compress
from mkclust.stack.mapped import Features, PreparedMap, factors_of

pytestmark = pytest.mark.slow

ANEW = {"center": True, "normalize": True, "kept_bytes": 0}


class Twice(Nystroem):
    """A map that makes something else of the features of another."""

    def transform(self, X):
        return super().transform(X) ** 2


class Scaled:
    """A preparation that multiplies rows."""

    def apply(self, rows):
        return rows * 0.5


def make_views(n=260, dtype=np.float64, offset=0.0):
    views, _ = blob_views(np.random.default_rng(0), n=n, k=3, strengths=(1.5, 1.0, 0.5))
    return {f"view {p}": (view + offset).astype(dtype) for p, view in enumerate(views)}


def standardized(F):
    """Center features and scale their rows, in double precision."""
    F = np.asarray(F, np.float64) - np.mean(F, axis=0, dtype=np.float64)
    return F / np.linalg.norm(F, axis=1, keepdims=True)


def features_by_hand(stack, views):
    parts = zip(stack.features.maps, views.values(), strict=True)
    return [standardized(map_.transform(view)) for map_, view in parts]


@pytest.mark.parametrize("map_", [Nystroem(30), RandomFourier(40), Linear(), Twice(30)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("height", [31, 260])
def test_passes_give_the_kernels_of_features_written_out(map_, dtype, height):
    views = make_views(dtype=dtype)
    stack = compress(LocalBlocks(views, height), map_, **ANEW)
    (Q,) = stack.lift(np.eye(stack.n_samples))
    small = 1e-9 if dtype == np.float64 else 2e-3
    assert np.allclose(Q.T @ Q, np.eye(stack.n_samples), atol=small)
    for F, K in zip(features_by_hand(stack, views), stack.raw_kernels, strict=True):
        assert np.allclose(Q @ K @ Q.T, F @ F.T, atol=small)


def test_passes_give_the_objective_and_weights_of_the_double_road():
    views = make_views()
    stack = compress(LocalBlocks(views, 31), Nystroem(30), **ANEW)
    kernels = [F @ F.T for F in features_by_hand(stack, views)]
    dense = as_stack(kernels, center=False, normalize=False)
    one, other = (solve_simple_mkkm(each, 3, tol=1e-12) for each in (stack, dense))
    assert abs(one.objective / other.objective - 1) < 1e-9
    assert np.allclose(one.weights, other.weights, atol=1e-6)


@pytest.mark.parametrize("map_", [Nystroem(30), RandomFourier(40)])
def test_compressed_kernels_do_not_depend_on_the_number_of_threads(map_):
    stacks = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            stack = compress(LocalBlocks(make_views(), 31), map_, **ANEW)
            stacks.append((*stack.raw_kernels, *stack.lift(np.eye(stack.n_samples, 5))))
    for stack in stacks[1:]:
        for one, other in zip(stack, stacks[0], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(other).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fill", ["zero", "rescale"])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
def test_old_samples_are_embedded_as_new_ones(dtype, fill, share, sparse):
    views, height = make_views(dtype=dtype), 40
    rng = np.random.default_rng(1)
    lost = rng.random((260, 3)) < share
    lost[:, 0] &= ~lost[:, 1:].all(axis=1)
    lost[:height, 1], lost[:height, [0, 2]] = True, False  # a block that a view has nothing of
    for gone, view in zip(lost.T, views.values(), strict=True):
        view[gone] = np.nan
    if sparse:
        views = {name: scipy.sparse.csr_array(view) for name, view in views.items()}
    blocks = LocalBlocks(views, height)
    stack = compress(blocks, Nystroem(30), fill=fill, **ANEW)
    assert stack.scales is not None
    rows = rng.normal(size=(stack.n_samples, 4))
    features, matrix = stack.embedding_map(rows)
    (lifted,) = stack.lift(rows)
    assert lifted.dtype == dtype
    np.testing.assert_allclose(
        lifted, blocks.map(lambda block, _: features.project(block, matrix)), rtol=1e-5, atol=1e-5
    )
    direct = np.hstack(features.of(views)) @ matrix
    np.testing.assert_allclose(
        lifted, direct, atol=1e4 * np.finfo(dtype).eps * np.abs(direct).max()
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_that_are_kept_and_those_of_new_samples_are_projected_alike(dtype):
    views = make_views(dtype=dtype)
    stack = compress(LocalBlocks(views), Nystroem(100), center=True, normalize=True)
    rows = np.random.default_rng(1).normal(size=(stack.n_samples, 4))
    features, matrix = stack.embedding_map(rows)
    (lifted,), small = stack.lift(rows), 10 * np.finfo(dtype).eps
    # Relative to what is summed up, not to the sums: small directions are amplified.
    sizes = np.abs(np.hstack(features.of(views))) @ np.abs(matrix)
    assert np.all(np.abs(features.project(views, matrix) - lifted) <= small * sizes)


def test_views_far_from_the_origin_keep_their_digits():
    for map_ in (Nystroem(30, random_state=0), Linear()):
        near, far = (
            compress(LocalBlocks(make_views(offset=offset), 31), map_, **ANEW)
            for offset in (0.0, 1e5)
        )
        for one, other in zip(near.raw_kernels, far.raw_kernels, strict=True):
            assert np.allclose(np.linalg.eigvalsh(one), np.linalg.eigvalsh(other), atol=1e-4)


def test_a_view_that_seems_constant_in_a_preview_is_not_refused():
    views = make_views()
    rare = np.zeros((260, 3))
    rare[[7, 131]] = np.random.default_rng(2).normal(size=(2, 3))
    views["rare"] = rare
    map_ = Nystroem(30, random_state=0)
    anew, kept = (
        compress(
            LocalBlocks(views, 31), map_, error_samples=5, center=True, normalize=True, **kwargs
        )
        for kwargs in ({"kept_bytes": 0}, {})
    )
    for one, other in zip(anew.raw_kernels, kept.raw_kernels, strict=True):
        assert np.allclose(np.trace(one), np.trace(other))
        assert np.allclose(np.linalg.norm(one), np.linalg.norm(other))


def test_a_map_that_inherits_landmarks_and_changes_the_features_is_no_product():
    rows = make_views()["view 0"]
    plain, changed = Nystroem(10, random_state=0).fit(rows), Twice(10, random_state=0).fit(rows)
    factor, mixing = factors_of(plain)
    np.testing.assert_allclose(factor.transform(rows) @ mixing, plain.transform(rows))
    assert factors_of(changed) == (changed, None)
    prepared = PreparedMap(Scaled(), plain)
    factor, mixing = factors_of(prepared)
    np.testing.assert_allclose(factor.transform(rows) @ mixing, prepared.transform(rows))
    assert factors_of(PreparedMap(Scaled(), changed))[1] is None


def test_features_without_means_and_floors_are_projected_as_they_are():
    rows = make_views()["view 0"]
    map_ = Nystroem(10, random_state=0).fit(rows)
    matrix = np.random.default_rng(0).normal(size=(map_.mixing.shape[1], 2))
    for by_factors in (False, True):
        features = Features([map_], by_factors=by_factors)
        projections = features.project({"view 0": rows}, matrix)
        np.testing.assert_allclose(projections, map_.transform(rows) @ matrix)


def test_labels_of_features_that_are_not_kept_are_those_of_predict():
    views = make_views(n=30_000, dtype=np.float32)
    model = SimpleMKKM(3, approximation=Nystroem(200), random_state=0, n_init=2).fit(views)
    assert np.array_equal(model.predict(views), model.labels_)
