"""Features compressed to small matrices: exactly the kernels that they make."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.kernel_approximation import Nystroem as KernelApproximation
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from helpers.arrays import FOREIGN, LIBRARIES, as_library
from helpers.kernels import standardized, written_out
from helpers.views import blob_views
from mkclust.data.blocks import Block
from mkclust.data.samples import as_blocks
from mkclust.kernels import Linear, Nystroem
from mkclust.linalg import is_foreign, library_and_device, to_host
from mkclust.stack.compare import compare
from mkclust.stack.features import compress

N = 90
MAPS = [Nystroem(20, random_state=0), Linear()]
STANDARD = {"center": True, "normalize": True}


def whole(views):
    """Return one block of all samples."""
    return Block(views, next(iter(views.values())).shape[0])


def make_views(n=N, dtype=np.float64, offset=0.0):
    views, _ = blob_views(np.random.default_rng(0), n=n, k=3, strengths=(1.5, 1.0, 0.5))
    return {
        name: (view + offset).astype(dtype)
        for name, view in zip("abc", views, strict=True)
    }


def incomplete(share=0.3, seed=0):
    """Return views some of whose rows are NaN, and which samples each has."""
    rng = np.random.default_rng(seed)
    observed = rng.random((N, 3)) >= share
    observed[np.arange(N), rng.integers(3, size=N)] = True
    return with_nan(make_views(), observed), observed


def with_nan(views, observed):
    return {
        name: np.where(seen[:, None], view, np.nan)
        for (name, view), seen in zip(views.items(), observed.T, strict=True)
    }


def kernels_by_hand(views, observed, maps, *, center=True, normalize=True, fill="zero"):
    """Write the kernels out by the features of the rows that each view has, and nothing
    else."""
    scale = (
        np.sqrt(observed.shape[1] / observed.sum(axis=1))
        if fill == "rescale"
        else np.ones(N)
    )
    kernels = np.zeros((len(views), N, N))
    for K, view, seen, map_ in zip(
        kernels, views.values(), observed.T, maps, strict=True
    ):
        F = np.asarray(map_.transform(view[seen]), np.float64)
        K[np.ix_(seen, seen)] = standardized((F @ F.T)[None], center, normalize)[0]
    return kernels * scale * scale[:, None]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
@pytest.mark.parametrize(
    ("keep", "center", "normalize", "fill", "share"),
    [
        (True, True, True, "rescale", 0.0),
        (False, True, True, "rescale", 0.5),
        (True, True, False, "zero", 0.3),
        (False, False, False, "rescale", 0.2),
    ],
)
def test_the_small_matrices_stand_in_for_the_kernels_exactly(
    library, map_, keep, center, normalize, fill, share
):
    how = {"center": center, "normalize": normalize, "fill": fill}
    views, observed = incomplete(share)
    if share:  # a view that lacks a whole block
        views["a"][:20], observed[:20, 0] = np.nan, False
        observed[:20, 1], views["b"][:20] = True, make_views()["b"][:20]
    blocks = as_blocks(as_library(library, views), block_rows=20)
    stack = compress(blocks, map_, keep=keep, random_state=0, **how)
    features, everyone = stack.features, blocks.take(np.arange(N))
    (Q,) = features.lift(np.eye(stack.n_samples))
    assert library_and_device(Q) == library_and_device(everyone["a"])
    np.testing.assert_allclose(to_host(Q.T @ Q), np.eye(stack.n_samples), atol=1e-8)
    expected = kernels_by_hand(views, observed, features.learned.maps, **how)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(written_out(stack), expected, atol=1e-8 * largest)
    for F, K in zip(features.learned.of(everyone), expected, strict=True):
        np.testing.assert_allclose(to_host(F @ F.T), K, atol=1e-8 * largest)
    np.testing.assert_allclose(
        stack.gram(), np.einsum("pij,qij->pq", expected, expected)
    )
    np.testing.assert_allclose(stack.traces(), np.einsum("pii->p", expected))
    rows = np.random.default_rng(0).normal(size=(stack.n_samples, 4))
    lifted = np.hstack(
        [to_host(part) for part in features.lift(rows[:, :1], rows[:, 1:])]
    )
    projected = features.learned.project(everyone, features.coordinate_map @ rows)
    atol = 1e-8 * np.abs(lifted).max()
    np.testing.assert_allclose(to_host(projected), lifted, atol=atol)
    np.testing.assert_allclose(to_host(features.lift_some(rows)), lifted, atol=atol)
    assert (
        features.observed is None
        if not share
        else np.array_equal(features.observed, observed)
    )


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("indices", [[0, 1, 2], [2, 0]])
def test_kernels_are_compared_on_the_samples_that_both_have_and_not_scaled_up(
    share, indices
):
    views, observed = incomplete(share)
    stack = compress(as_blocks(views), Linear(), fill="rescale", **STANDARD)
    kernels = kernels_by_hand(views, observed, stack.features.learned.maps)[indices]
    some = stack.subset(indices)
    errors = stack.features.trace_errors
    np.testing.assert_array_equal(some.features.trace_errors, errors[indices])
    for each in compare(some):
        first, second = indices[each.first[0]], indices[each.second[0]]
        common = np.flatnonzero(observed[:, first] & observed[:, second])
        assert each.n_samples == len(common)
        expected = kernels[list(each.kernels)][:, common][:, :, common]
        np.testing.assert_allclose(
            each.entries(np.arange(5)), expected[:, :5, :5], atol=1e-9
        )
        hollow = expected * (1 - np.eye(len(common)))
        products = np.einsum("pij,qij->pq", hollow, hollow)
        np.testing.assert_allclose(each.products.products, products, atol=1e-8)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("copies", [False, True], ids=["full rank", "copies of views"])
def test_neither_blocks_nor_threads_choose_among_coordinates(keep, copies):
    views, map_, found = make_views(), Nystroem(20, random_state=0), []
    views |= {"copy": views["a"], "half": views["b"] / 2} if copies else {}
    for height, threads in ((N, 1), (31, 2), (40, 3)):
        with threadpool_limits(threads):
            stack = compress(
                as_blocks(views, block_rows=height), map_, keep=keep, **STANDARD
            )
        found.append(np.array([K.dense() for K in stack.kernels]))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)
    assert stack.n_samples <= 20 * len(views)


@pytest.mark.parametrize("map_", [Nystroem(30, random_state=0), Linear()])
def test_views_far_from_the_origin_keep_their_digits(map_):
    near, far = (
        written_out(
            compress(
                as_blocks(make_views(offset=offset), block_rows=31), map_, **STANDARD
            )
        )
        for offset in (0.0, 1e5)
    )
    np.testing.assert_allclose(far, near, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-3, 1e-7, 1e-12])
def test_a_view_in_small_units_keeps_its_directions(unit):
    views = make_views() | {"b": unit * make_views()["b"]}
    found = written_out(
        compress(as_blocks(views), Linear(), center=True, normalize=False)
    )
    maps = [Linear().fit(view) for view in views.values()]
    expected = kernels_by_hand(views, np.ones((N, 3), bool), maps)
    scale = np.sqrt(np.einsum("pii->pi", found))
    np.testing.assert_allclose(
        found / scale[:, None] / scale[:, :, None], expected, atol=1e-6
    )


def test_a_sample_at_the_very_mean_has_no_direction_whatever_its_block():
    view = np.random.default_rng(0).normal(size=(40, 3))
    view[:20] *= 1e-6  # a block of short rows must not raise what counts as short
    view -= view.mean(axis=0)
    view[0] = 0
    for height in (1, 7, 20, 40):
        blocks = as_blocks([view], block_rows=height)
        stack = compress(blocks, Linear(), center=False, normalize=True)
        (rows,) = stack.features.learned.of(whole({"view 0": view}))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.arange(40) > 0)


def test_the_trace_error_falls_with_landmarks_and_flatters_no_map_of_few_samples():
    blocks = as_blocks(make_views())
    errors = [
        compress(blocks, Nystroem(m), **STANDARD).features.trace_errors
        for m in (5, 20, 90)
    ]
    assert np.all(np.diff(errors, axis=0) < 0)
    np.testing.assert_allclose(errors[-1], 0, atol=1e-10)
    few = compress(blocks, Nystroem(20), fit_samples=20, **STANDARD)
    assert np.all(few.features.trace_errors > 0.5 * errors[1])
    unknown = compress(blocks, KernelApproximation("poly", n_components=9), **STANDARD)
    assert np.isnan(unknown.features.trace_errors).all()


@pytest.mark.parametrize("map_", [Linear(), KernelApproximation(), Nystroem(30)])
def test_a_constant_view_is_refused_by_name(map_):
    views = make_views() | {"flat": np.full((N, 4), 3.0)}
    with pytest.raises(ValueError, match="'flat'.*leave it out"):
        compress(as_blocks(views), map_, **STANDARD)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("library", LIBRARIES)
def test_entries_that_are_not_finite_are_named_by_view_and_sample(library, keep):
    for sample in (0, 77):  # drawn to learn from, or not
        views = make_views()
        views["b"][sample, 1] = np.nan
        blocks = as_blocks(as_library(library, views), block_rows=40)
        with pytest.raises(ValueError, match=f"View 'b'.*first in sample {sample};"):
            compress(blocks, Nystroem(5), fit_samples=20, keep=keep, **STANDARD)


@pytest.mark.parametrize("keep", [True, False])
def test_features_that_are_not_finite_are_told(keep):
    views = {name: np.abs(view) for name, view in make_views().items()}
    views["b"][5] = 0
    log = FunctionTransformer(np.log)
    with (
        np.errstate(divide="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="'b'.*not finite"),
    ):
        compress(as_blocks(views), log, keep=keep, **STANDARD)
    learned = compress(as_blocks(make_views()), Linear(), **STANDARD).features.learned
    large = {name: 1e200 * view for name, view in views.items()}
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        learned.project(whole(large), np.zeros((sum(learned.widths), 2)))


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-4)]
)
def test_a_map_is_the_same_wherever_it_was_fitted(library, map_, dtype, tolerance):
    X = make_views(dtype=dtype)["a"]
    there, other = as_library(library, X), type(map_)(**map_.get_params())
    expected, found = map_.fit(X).transform(X), other.fit(there).transform(there)
    assert library_and_device(found) == library_and_device(there)
    assert to_host(found, None).dtype == dtype
    np.testing.assert_allclose(to_host(found), expected, atol=tolerance)
    np.testing.assert_allclose(to_host(map_.transform(there)), expected, atol=tolerance)
    assert not any(map(is_foreign, vars(other).values()))
    loaded = pickle.loads(pickle.dumps(other))
    np.testing.assert_allclose(loaded.transform(X), expected, atol=tolerance)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize(
    "map_", [RBFSampler(), make_pipeline(StandardScaler(), Nystroem(20))]
)
def test_maps_of_numpy_arrays_are_refused_elsewhere(library, map_):
    views = make_views()
    with pytest.raises(ValueError, match="View 'a': .* NumPy arrays only"):
        compress(as_blocks(as_library(library, views)), map_, **STANDARD)
    learned = compress(as_blocks(views), map_, **STANDARD).features.learned
    with pytest.raises(ValueError, match="NumPy arrays only"):
        learned.of(whole(as_library(library, views)))
    sparse = as_blocks(
        {name: scipy.sparse.csr_array(view) for name, view in views.items()}
    )
    with pytest.raises(ValueError, match="View 'a'.*sparse"):
        compress(sparse, FunctionTransformer(validate=True), **STANDARD)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("map_", [Linear(), Nystroem(5)])
def test_views_may_be_complete_or_have_five_samples(keep, map_):
    _, observed = incomplete()
    observed[:, 0], observed[:, 2] = True, False
    observed[[3, 30, 31, 70, 89], 2] = True
    views = with_nan(make_views(), observed)
    # Fewer are drawn than there are: of five, one must still be among those drawn.
    blocks, how = as_blocks(views, block_rows=10), STANDARD | {"fill": "rescale"}
    stack = compress(blocks, map_, keep=keep, fit_samples=20, random_state=0, **how)
    expected = kernels_by_hand(views, observed, stack.features.learned.maps, **how)
    np.testing.assert_allclose(written_out(stack), expected, atol=1e-8)
    assert np.isfinite(stack.features.trace_errors).all()
    with pytest.raises(ValueError, match="'c', observed in 5 of 90 .*n_components=6"):
        compress(as_blocks(views), Nystroem(6), **how)
