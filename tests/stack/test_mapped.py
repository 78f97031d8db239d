"""Features of views on a device: the same answer as on the host, and nothing long leaves it."""

import pickle

import numpy as np
import pytest
from mkclust.stack.low_rank import compress
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import blob_views
from libraries import FOREIGN, LIBRARIES, as_library, kind_of
from mkclust import SimpleMKKM
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.linalg import is_foreign, place, to_host
from mkclust.samples.blocks import block_height, check_finite
from mkclust.samples.local import LocalBlocks
from mkclust.samples.samples import as_blocks

pytestmark = pytest.mark.slow

N = 300
MAPS = [Nystroem(40, random_state=0), RandomFourier(50, random_state=0), Linear()]
FEW_BYTES = 1 << 20


@pytest.fixture
def views():
    views, _ = blob_views(np.random.default_rng(0), n=N, k=3, strengths=(1.5, 1.0, 0.5))
    return dict(zip("abc", views, strict=True))


@pytest.fixture
def small_device(monkeypatch):
    """Take whatever is no NumPy array for one on a device of little memory."""

    def free_bytes(like):
        return FEW_BYTES if is_foreign(like) else None

    for room in ("samples.blocks", "stack.low_rank"):
        monkeypatch.setattr(f"mkclust.{room}.free_bytes", free_bytes)


def aside(array):
    """Return an array on a device of the strict library, which NumPy cannot read unasked."""
    strict = pytest.importorskip("array_api_strict")
    if isinstance(array, dict):
        return {name: aside(part) for name, part in array.items()}
    return strict.asarray(array, device=strict.Device("device1"))


def same_place(found, given):
    return place(found) == place(given)


# --- feature maps -----------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-4)])
def test_features_are_those_of_the_host_wherever_a_map_was_fitted(
    views, library, map_, dtype, tolerance
):
    X = views["a"].astype(dtype)
    there = as_library(library, X)
    on_host, on_device = type(map_)(**map_.get_params()), type(map_)(**map_.get_params())
    expected = on_host.fit(X).transform(X)
    found = on_device.fit(there).transform(there)
    assert same_place(found, there)
    assert to_host(found, None).dtype == dtype
    np.testing.assert_allclose(to_host(found), expected, atol=tolerance)
    np.testing.assert_allclose(on_device.transform(X), expected, atol=tolerance)
    np.testing.assert_allclose(to_host(on_host.transform(there)), expected, atol=tolerance)
    lengths = on_device.self_similarity(there)
    assert same_place(lengths, there)
    np.testing.assert_allclose(to_host(lengths), on_host.self_similarity(X), rtol=1e-6)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
def test_a_fitted_map_holds_nothing_of_a_device(views, library, map_):
    fitted = type(map_)(**map_.get_params()).fit(as_library(library, views["a"]))
    assert not any(map(is_foreign, vars(fitted).values()))
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_allclose(
        loaded.transform(views["a"]), fitted.transform(views["a"]), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_wrong_with_rows_is_told_in_the_same_words(views, library):
    X = views["a"]
    map_ = Nystroem(10, random_state=0).fit(as_library(library, X))
    with pytest.raises(ValueError, match="X has 3 features, but Nystroem is expecting 10"):
        map_.transform(as_library(library, X[:, :3].copy()))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        map_.transform(as_library(library, X[0]))
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1 is required by Nystroem"):
        map_.transform(as_library(library, X[:0]))
    with pytest.raises(ValueError, match="n_components=20 landmarks of 12 rows"):
        Nystroem(20).fit(as_library(library, X[:12]))
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = X.copy()
        bad[5, 2] = value
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            map_.transform(as_library(library, bad))


# --- blocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("height", [None, 1, 70, N])
def test_passes_over_blocks_stay_where_the_views_are(views, library, height):
    given = as_library(library, views)
    blocks = as_blocks(given, block_rows=height)
    everyone = blocks.map(lambda block, _: block["b"] * 2)
    assert same_place(everyone, given["b"])
    np.testing.assert_array_equal(to_host(everyone), views["b"] * 2)
    total, starts = blocks.total(lambda block, start: (block["a"].T @ block["b"], np.array(start)))
    assert same_place(total, given["a"])
    np.testing.assert_allclose(to_host(total), views["a"].T @ views["b"], atol=1e-10)
    assert starts == sum(range(0, N, height or N))
    for numbers in ([3, 5, 299], range(N)):
        taken = blocks.take(np.array(numbers))
        assert all(same_place(taken[name], given[name]) for name in views)
        np.testing.assert_array_equal(to_host(taken["c"]), views["c"][list(numbers)])


@pytest.mark.parametrize("library", FOREIGN)
def test_results_for_every_sample_may_be_one_number_each(views, library):
    blocks = as_blocks(as_library(library, views), block_rows=70)
    found = blocks.map(lambda block, _: block["a"][:, 0])
    np.testing.assert_array_equal(to_host(found), views["a"][:, 0])


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize(
    ("dtype", "computed_in"), [("int32", np.float64), ("bool", np.float64), ("float32", np.float32)]
)
def test_numbers_of_other_types_become_floats_block_by_block(library, dtype, computed_in):
    view = (np.random.default_rng(0).normal(size=(20, 3)) * 4).astype(dtype)
    blocks = as_blocks([as_library(library, view)], block_rows=6)
    found = to_host(blocks.map(lambda block, _: block["view 0"]), None)
    assert found.dtype == computed_in
    np.testing.assert_array_equal(found, view.astype(computed_in))
    with pytest.raises(ValueError, match="View 'view 0' has the type .*complex.*real numbers"):
        as_blocks([as_library(library, view.astype(np.complex128))])


def test_tensors_with_a_gradient_and_of_half_precision_are_computed_with(views):
    torch = pytest.importorskip("torch")
    view = torch.asarray(views["a"]).requires_grad_()
    found = as_blocks([view, view.detach().to(torch.bfloat16)]).take(np.arange(4))
    assert not found["view 0"].requires_grad
    assert found["view 1"].dtype == torch.float32


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named_by_view_and_sample(views, library, value):
    views["b"][[97, 150], 3] = value
    blocks = as_blocks(as_library(library, views), block_rows=80)

    def look(block, start):
        check_finite(block, start)
        return np.zeros(1)

    told = "View 'b' .* in 2 of the samples 80 to 159, first in sample 97; impute"
    with pytest.raises(ValueError, match=told):
        blocks.total(look)
    numbers = np.array([2, 97, 290])
    with pytest.raises(ValueError, match="1 of 3 samples drawn from all, first in sample 97"):
        check_finite(blocks.take(numbers), numbers)
    with pytest.raises(ValueError, match="View 'b' has entries that are not finite"):
        SimpleMKKM(3, approximation=Nystroem(20)).fit(as_library(library, views))


@pytest.mark.parametrize("library", FOREIGN)
def test_views_in_different_places_are_refused_by_name(views, library):
    given = views | {"b": as_library(library, views["b"])}
    with pytest.raises(ValueError, match="View 'a' is an array of NumPy and view 'b' one of .* on"):
        as_blocks(given)
    with pytest.raises(ValueError, match="bring all of them to one library and one device"):
        SimpleMKKM(3, approximation=Nystroem(20)).fit(given)
    da = pytest.importorskip("dask.array")
    lazy = as_library(library, views) | {"c": da.from_array(views["c"])}
    with pytest.raises(TypeError, match=r"views \['c'\] are dask arrays, but 'a' is an array of "):
        as_blocks(lazy)


def test_views_on_different_devices_are_refused_by_name(views):
    given = as_library("strict", views) | {"c": aside(views["c"])}
    with pytest.raises(ValueError, match="View 'a' .*CPU_DEVICE.* and view 'c' .*device1"):
        as_blocks(given)


def test_blocks_on_a_device_are_large_but_leave_it_its_memory(views, monkeypatch):
    like = as_library("strict", views["a"])
    assert block_height([105], like) == block_height([105])
    for free, expected in ((None, 4993), (100 << 30, 1 << 17), (1 << 30, 63913), (1, 256)):
        monkeypatch.setattr("mkclust.samples.blocks.free_bytes", lambda _, free=free: free)
        assert block_height([105], like) == expected


# --- compressed kernels -----------------------------------------------------------------------


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("standard", [True, False])
def test_compressed_kernels_are_those_of_the_host(views, library, map_, keep, standard):
    options = {"center": standard, "normalize": standard, "kept_bytes": None if keep else 0}
    given = as_library(library, views)
    expected = compress(LocalBlocks(views), map_, **options)
    found = compress(LocalBlocks(given, 70), map_, **options)
    for one, other in zip(found.raw_kernels, expected.raw_kernels, strict=True):
        assert isinstance(one, np.ndarray)
        np.testing.assert_allclose(one, other, atol=1e-10 * np.abs(other).max())
    np.testing.assert_allclose(found.approximation_error, expected.approximation_error, atol=1e-12)
    vectors = np.random.default_rng(1).normal(size=(expected.n_samples, 5))
    there, more = found.lift(vectors[:, :3], vectors[:, 3:])
    assert same_place(there, given["a"])
    assert same_place(found.lift_some(vectors), given["a"])
    lifted = np.hstack(expected.lift(vectors[:, :3], vectors[:, 3:]))
    scale = 1e-8 * np.abs(lifted).max()
    np.testing.assert_allclose(np.hstack([to_host(there), to_host(more)]), lifted, atol=scale)
    np.testing.assert_allclose(
        to_host(found.lift_some(vectors)), expected.lift_some(vectors), atol=scale
    )


@pytest.mark.parametrize("library", FOREIGN)
def test_a_small_device_cuts_features_into_rows_that_fit(views, library, small_device, monkeypatch):
    seen = []
    transform = Nystroem.transform
    monkeypatch.setattr(
        Nystroem, "transform", lambda map_, X: seen.append(X.shape[0]) or transform(map_, X)
    )
    monkeypatch.setattr("mkclust.stack.mapped.FEWEST_ROWS", 10)
    options = {"center": True, "normalize": True}
    map_ = Nystroem(40, random_state=0)
    # A quarter of the memory holds all features, a twentieth those of 54 samples.
    found = compress(as_blocks(as_library(library, views)), map_, **options)
    assert set(seen) == {1, 54, N % 54, N}  # one to try, the cuts, all for the error
    expected = compress(as_blocks(views), map_, **options)
    for one, other in zip(found.raw_kernels, expected.raw_kernels, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_only_the_samples_drawn_leave_a_device(views, monkeypatch):
    lengths = []

    def noted(array, dtype=np.float64):
        lengths.append(array.shape[0] if is_foreign(array) and len(array.shape) > 1 else 0)
        return to_host(array, dtype)

    for room in ("kernels.maps", "stack.low_rank"):
        monkeypatch.setattr(f"mkclust.{room}.to_host", noted)
    given = aside(views)  # all other ways to NumPy raise
    how = {"center": True, "normalize": True, "fit_samples": 60}
    stack = compress(as_blocks(given), Nystroem(40), **how)
    (Q,) = stack.lift(np.eye(stack.n_samples))
    assert Q.device == given["a"].device
    assert 60 in lengths
    # What is multiplied: features, the diagonals of three kernels, and ones.
    assert set(lengths) <= {0, 60, stack.coordinate_map.shape[0] + 4}


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("map_", [RBFSampler(), make_pipeline(StandardScaler(), Nystroem(20))])
def test_maps_that_know_numpy_only_are_refused(views, library, map_):
    given = as_library(library, views)
    with pytest.raises(ValueError, match="View 'a': .* computes with NumPy arrays only"):
        SimpleMKKM(3, approximation=map_).fit(given)
    model = SimpleMKKM(3, approximation=map_, random_state=0).fit(views)
    with pytest.raises(ValueError, match="computes with NumPy arrays only"):
        model.predict(given)


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
def test_a_model_of_features_finds_the_same_wherever_its_views_are(views, library, map_):
    given = as_library(library, views)
    on_host = SimpleMKKM(3, approximation=map_, random_state=0).fit(views)
    model = SimpleMKKM(3, approximation=map_, random_state=0).fit(given)
    np.testing.assert_allclose(model.weights_, on_host.weights_, atol=1e-9)
    np.testing.assert_array_equal(model.labels_, on_host.labels_)
    np.testing.assert_array_equal(model.baseline_labels_, on_host.baseline_labels_)
    assert kind_of(model.labels_) == "numpy"
    assert same_place(model.embedding_, given["a"])
    for one, other in ((model, views), (on_host, given), (model, given)):
        np.testing.assert_array_equal(one.predict(other), on_host.labels_)
        assert same_place(one.transform(other), other["a"])
    loaded = pickle.loads(pickle.dumps(model))
    assert kind_of(loaded.embedding_) == "numpy"
    np.testing.assert_array_equal(loaded.predict(views), on_host.labels_)


@pytest.mark.parametrize("library", FOREIGN)
def test_a_table_on_a_device_is_one_view(views, library):
    expected = SimpleMKKM(3, approximation=Nystroem(60), random_state=0).fit(views["a"])
    model = SimpleMKKM(3, approximation=Nystroem(60), random_state=0)
    model.fit(as_library(library, views["a"]))
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_a_fit_on_a_device_never_reads_it_unasked(views):
    given = aside({name: view.astype(np.float32) for name, view in views.items()})
    model = SimpleMKKM(3, approximation=Nystroem(60), random_state=0).fit(given)
    expected = SimpleMKKM(3, approximation=Nystroem(60), random_state=0).fit(views)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(given), expected.labels_)
    assert model.embedding_.device == given["a"].device
