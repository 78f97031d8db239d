"""Compressed kernels of samples that are missing from some views: rows that are all NaN."""

import numpy as np
import pytest
import scipy.sparse
from mkclust.stack.low_rank import compress
from sklearn.preprocessing import FunctionTransformer

from conftest import blob_views
from libraries import LIBRARIES, as_library
from mkclust import AverageKKM, SimpleMKKM
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.linalg import place, to_host
from mkclust.linalg.sparse_rows import missing_rows, spread_rows
from mkclust.methods import solve_simple_mkkm
from mkclust.metrics import adjusted_rand_index
from mkclust.samples.blocks import check_finite, observed_samples
from mkclust.samples.dask import spread_lazily
from mkclust.samples.local import LocalBlocks, SpreadRows
from mkclust.samples.samples import Samples, as_blocks

pytestmark = pytest.mark.slow

N = 90
STANDARD = {"center": True, "normalize": True}


def incomplete(seed=0, n=N, share=0.3, ties=False):
    """Return views some of whose rows are NaN, and which samples each has."""
    rng = np.random.default_rng(seed)
    views, labels = blob_views(rng, n=n, k=3, strengths=(3.0, 2.5, 2.0))
    if ties:  # samples that are the same in all views
        views = [np.round(view[np.arange(n) // 3]) for view in views]
    views = {f"view {p}": view for p, view in enumerate(views)}
    observed = rng.random((n, len(views))) > share
    observed[np.arange(n), rng.integers(len(views), size=n)] = True
    return with_nan(views, observed), observed, labels


def with_nan(views, observed):
    return {
        name: np.where(seen[:, None], view, np.nan).astype(view.dtype)
        for (name, view), seen in zip(views.items(), observed.T, strict=True)
    }


def kernels_by_hand(views, observed, maps, *, center, normalize, fill):
    """Write the kernels out by the features of the rows that each view has, and nothing else."""
    kernels = []
    for view, seen, map_ in zip(views.values(), observed.T, maps, strict=True):
        F = np.asarray(map_.transform(view[seen]), np.float64)
        K = F @ F.T
        if center:
            C = np.eye(len(K)) - 1 / len(K)
            K = C @ K @ C
        if normalize:
            d = np.sqrt(np.where(np.diag(K) > 1e-9, np.diag(K), np.inf))
            K = K / d / d[:, None]
        full = np.zeros((len(view), len(view)))
        full[np.ix_(seen, seen)] = K
        if fill == "rescale":
            s = np.sqrt(observed.shape[1] / observed.sum(axis=1))
            full = full * s * s[:, None]
        kernels.append(full)
    return np.array(kernels)


def written_out(stack):
    """Return the kernels over all samples that the small matrices stand for."""
    (Q,) = stack.lift(np.eye(stack.n_samples))
    return np.array([to_host(Q) @ K @ to_host(Q).T for K in stack.raw_kernels])


# --- what is missing --------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_of_nan_is_a_sample_that_a_view_lacks(library, dtype):
    rows = np.ones((5, 3), dtype)
    there = as_library(library, rows.copy())
    assert not to_host(missing_rows(there), None).any()
    rows[[1, 3]] = np.nan
    rows[4, 0] = rows[0, 2] = np.nan  # cells
    found = missing_rows(as_library(library, rows))
    assert place(found) == place(there)
    assert to_host(found, None).tolist() == [False, True, False, True, False]
    spread = spread_rows(there[:2, :], np.array([1, 2]), 4, np.nan)
    assert place(spread) == place(there)
    assert to_host(spread, None).dtype == dtype
    np.testing.assert_array_equal(to_host(spread), [[np.nan] * 3, [1] * 3, [1] * 3, [np.nan] * 3])
    nothing = spread_rows(there[:0, :], np.arange(0), 2, 0.0)
    np.testing.assert_array_equal(to_host(nothing), np.zeros((2, 3)))


def test_a_sparse_row_that_holds_nan_and_nothing_else_is_missing():
    dense = np.array([[0, 2.0, 0], [0, 0, 0], [np.nan, 0, 3], [1, 0, 0]])
    rows = scipy.sparse.csr_array(dense)
    assert not missing_rows(rows).any()
    spread = spread_rows(rows, np.array([1, 2, 4, 5]), 7, np.nan)
    assert spread.has_canonical_format
    assert np.flatnonzero(missing_rows(spread)).tolist() == [0, 3, 6]
    np.testing.assert_array_equal(spread[[1, 2, 4, 5]].toarray(), dense)
    assert np.flatnonzero(missing_rows(scipy.sparse.csr_array(np.full((2, 3), np.nan)))).size == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_cells_are_refused_and_samples_in_no_view_are_named(library):
    views, observed, _ = incomplete()
    check_finite(as_library(library, views), 0)
    a, b = np.flatnonzero(observed[:, 1])[:2]
    for value in (np.nan, np.inf):
        wrong = {name: view.copy() for name, view in views.items()}
        wrong["view 1"][[a, b], -1] = value
        told = rf"View 'view 1' .* in 2 of the samples 0 to 89, first in sample {a}; impute"
        with pytest.raises(ValueError, match=told):
            check_finite(as_library(library, wrong), 0)
    for view in views.values():
        view[[40, 60]] = np.nan
    told = "2 of the samples 7 to 96 are missing from every view: 47 and 67; drop"
    with pytest.raises(ValueError, match=told):
        check_finite(as_library(library, views), 7)
    some = np.array([0, 1, 60])
    drawn = {name: as_library(library, view[some]) for name, view in views.items()}
    with pytest.raises(ValueError, match="1 of 3 samples drawn from all is missing .*: 60; drop"):
        check_finite(drawn, some)
    with pytest.raises(ValueError, match="missing from every view: 40 and 60"):
        compress(as_blocks(as_library(library, views)), Linear(), **STANDARD)


def test_one_table_lacks_no_sample():
    view = np.random.default_rng(0).normal(size=(30, 4))
    view[[5, 7]] = np.nan
    told = "has entries that are not finite in 2 of the samples 0 to 29, first in sample 5; impute"
    with pytest.raises(ValueError, match=told):
        AverageKKM(3, approximation=Linear()).fit(view)
    with pytest.raises(ValueError, match="not finite in 30 of the samples"):
        AverageKKM(3, approximation=Linear()).fit({"a": np.full((30, 2), np.nan)})


def test_a_view_without_any_sample_is_refused_by_name():
    views, _, _ = incomplete()
    with pytest.raises(ValueError, match="View 'empty' has no sample.*leave it out"):
        compress(as_blocks(views | {"empty": np.full((N, 2), np.nan)}), Linear(), **STANDARD)


# --- kernels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["zero", "rescale"])
@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "anew"])
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (True, False), (False, False)])
def test_kernels_are_those_of_the_observed_samples_with_zeros_for_the_others(
    fill, keep, center, normalize
):
    how = {"center": center, "normalize": normalize, "fill": fill}
    for seed in range(8):
        map_ = (Linear(), Nystroem(15), RandomFourier(12))[seed % 3]
        views, observed, _ = incomplete(seed, share=(0.2, 0.5)[seed % 2], ties=seed > 3)
        blocks = as_blocks(views, block_rows=(7, 40, 200)[seed % 3])
        stack = compress(blocks, map_, kept_bytes=keep, random_state=0, **how)
        expected = kernels_by_hand(views, observed, stack.features.maps, **how)
        largest = np.abs(expected).max()
        np.testing.assert_allclose(written_out(stack), expected, atol=1e-8 * largest)
        np.testing.assert_allclose(stack.gram(), np.einsum("pij,qij->pq", expected, expected))
        np.testing.assert_array_equal(stack.observed, observed)
        mean = expected.mean(axis=0)
        values = np.linalg.eigvalsh(stack.combine(np.ones(3) / 3).dense())[-4:]
        np.testing.assert_allclose(values, np.linalg.eigvalsh(mean)[-4:], rtol=1e-8)
        F = stack.features.of(views)
        for p in range(3):
            np.testing.assert_allclose(F[p] @ F[p].T, expected[p], atol=1e-8 * largest)


def test_rescaled_samples_have_the_self_similarity_of_complete_ones():
    views, observed, _ = incomplete(share=0.6)
    stack = compress(as_blocks(views), Nystroem(10), random_state=0, **STANDARD)
    similarity = sum((F**2).sum(axis=1) for F in stack.features.of(views))
    assert observed.sum(axis=1).min() == 1
    np.testing.assert_allclose(similarity, 3)


@pytest.mark.parametrize("map_", [Linear(), Nystroem(20), RandomFourier(15)])
@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "anew"])
def test_where_nothing_is_missing_fills_change_nothing(map_, keep):
    views, _, _ = incomplete(share=0.0)
    stacks = [
        compress(as_blocks(views), map_, kept_bytes=keep, fill=fill, random_state=0, **STANDARD)
        for fill in ("zero", "rescale")
    ]
    for one, other in zip(*(stack.raw_kernels for stack in stacks), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert stacks[0].observed is stacks[1].observed is None
    model = SimpleMKKM(3, approximation=map_, random_state=0).fit(views)
    assert not hasattr(model, "observed_")


@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "anew"])
def test_views_may_be_complete_or_have_five_samples(keep):
    views, observed, _ = incomplete(1)
    observed[:, 0], observed[:, 2] = True, False
    observed[[3, 30, 31, 70, 89], 2] = True
    views = with_nan(incomplete(1, share=0.0)[0], observed)
    how = STANDARD | {"fill": "rescale"}
    for map_ in (Linear(), Nystroem(5)):
        # Fewer are drawn than there are: of five, one must still be among those drawn.
        stack = compress(
            as_blocks(views, block_rows=10),
            map_,
            kept_bytes=keep,
            fit_samples=20,
            error_samples=20,
            random_state=0,
            **how,
        )
        expected = kernels_by_hand(views, observed, stack.features.maps, **how)
        np.testing.assert_allclose(written_out(stack), expected, atol=1e-8)
        assert np.isfinite(stack.approximation_error).all()
    told = r"View 'view 2', observed in 5 of 90 samples: n_components=6 landmarks of 5 rows"
    with pytest.raises(ValueError, match=told):
        compress(as_blocks(views), Nystroem(6), **how)


def test_the_order_of_samples_and_views_changes_nothing():
    views, observed, _ = incomplete(2)
    order, reverse = np.random.default_rng(0).permutation(N), list(reversed(views))
    how = {"random_state": 0, **STANDARD}
    expected = written_out(compress(as_blocks(views), Linear(), **how))
    shuffled = {name: view[order] for name, view in views.items()}
    found = compress(as_blocks(shuffled), Linear(), **how)
    np.testing.assert_allclose(written_out(found), expected[:, order][:, :, order], atol=1e-10)
    np.testing.assert_array_equal(found.observed, observed[order])
    reversed_views = {name: views[name] for name in reverse}
    found = written_out(compress(as_blocks(reversed_views), Linear(), **how))
    np.testing.assert_allclose(found, expected[::-1], atol=1e-10)
    first = SimpleMKKM(3, approximation=Linear(), random_state=0).fit(views)
    second = SimpleMKKM(3, approximation=Linear(), random_state=0).fit(shuffled)
    np.testing.assert_allclose(first.weights_, second.weights_, atol=1e-6)
    assert adjusted_rand_index(first.labels_[order], second.labels_) == 1


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "anew"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_incomplete_views_on_a_device_give_the_kernels_of_the_host(library, keep, dtype, tolerance):
    views, observed, _ = incomplete(3)
    views["view 0"][:20], observed[:20, 0] = np.nan, False  # a whole block
    observed[:20, 1], views["view 1"][:20] = True, 1.0 + np.arange(20)[:, None]
    given = {name: as_library(library, view.astype(dtype)) for name, view in views.items()}
    map_ = Nystroem(12, random_state=0)
    stack = compress(as_blocks(given, block_rows=20), map_, kept_bytes=keep, **STANDARD)
    how = STANDARD | {"fill": "rescale"}
    expected = kernels_by_hand(views, observed, stack.features.maps, **how)
    np.testing.assert_allclose(written_out(stack), expected, atol=tolerance)
    np.testing.assert_array_equal(stack.observed, observed)
    (rows,) = stack.lift(np.eye(stack.n_samples))
    assert place(rows) == place(given["view 0"])
    assert to_host(rows, None).dtype == dtype


@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "anew"])
def test_sparse_views_that_lack_samples_are_computed_as_dense_ones(keep):
    rng = np.random.default_rng(0)
    dense, observed, _ = incomplete(4)
    counts = {name: view * (rng.random(view.shape) < 0.4) for name, view in dense.items()}
    counts = with_nan({n: np.nan_to_num(v) for n, v in counts.items()}, observed)
    sparse = {
        name: spread_rows(scipy.sparse.csr_array(view[seen]), np.flatnonzero(seen), N, np.nan)
        for (name, view), seen in zip(counts.items(), observed.T, strict=True)
    }
    for map_ in (Linear(), RandomFourier(10, random_state=0)):
        how = {"kept_bytes": keep, **STANDARD}
        found = compress(as_blocks(sparse, block_rows=25), map_, **how)
        expected = compress(as_blocks(counts), map_, **how)
        np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-9)
        np.testing.assert_array_equal(found.observed, observed)


def test_nan_that_a_map_makes_is_no_missing_sample():
    views, _, _ = incomplete(5, share=0.0)
    views = {name: np.abs(view) + 1 for name, view in views.items()}
    views["view 1"][4] = -1
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="'view 1'.*not finite"):
        compress(as_blocks(views), FunctionTransformer(np.log), **STANDARD)


def test_a_certified_optimum_is_that_of_the_kernels_written_out():
    from mkclust.stack import as_stack

    for seed in range(3):
        views, _, _ = incomplete(seed, share=0.4, ties=seed == 2)
        stack = compress(as_blocks(views), Linear(), **STANDARD)
        dense = as_stack(written_out(stack), center=False, normalize=False)
        found, expected = (solve_simple_mkkm(each, 3) for each in (stack, dense))
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-3)


# --- what two views have in common ------------------------------------------------------------


# --- views that hold only what they have ------------------------------------------------------


@pytest.mark.parametrize("library", [*LIBRARIES, "sparse"])
def test_rows_are_spread_slice_by_slice_where_they_live(library):
    rng = np.random.default_rng(0)
    view, samples = rng.normal(size=(20, 3)), np.sort(rng.choice(35, 20, replace=False))
    held = scipy.sparse.csr_array(view) if library == "sparse" else as_library(library, view)
    spread, full = SpreadRows(held, samples, 35), np.full((35, 3), np.nan)
    full[samples] = view
    assert spread.shape == (35, 3)

    def written(rows):
        dense = to_host(rows.toarray() if library == "sparse" else rows)
        dense[to_host(missing_rows(rows), None)] = np.nan
        return dense

    numbers = np.sort(rng.choice(35, 9, replace=False))
    for rows in (slice(0, 35), slice(3, 4), slice(30, 35), numbers, numbers[:0]):
        assert place(spread[rows]) == place(held)
        np.testing.assert_array_equal(written(spread[rows]), full[rows])
    blocks = LocalBlocks({"a": spread, "b": SpreadRows(held, samples, 35)}, 8)
    assert (blocks.n_samples, blocks.n_features) == (35, (3, 3))
    np.testing.assert_array_equal(observed_samples(blocks)[:, 1], ~np.isnan(full[:, 0]))
    np.testing.assert_array_equal(written(blocks.take(numbers)["b"]), full[numbers])
    np.testing.assert_array_equal(written(blocks.take(np.arange(35))["b"]), full)
    for numbers_ in (numbers, np.arange(35)):
        rows, found = blocks.take_seen(numbers_)["a"]
        np.testing.assert_array_equal(found, np.intersect1d(numbers_, samples))
        np.testing.assert_array_equal(written(rows), full[found])
    with pytest.raises(ValueError, match="20 rows of 19 samples"):
        SpreadRows(held, samples[1:], 35)


def test_whole_numbers_and_empty_parts_are_spread_too():
    counts = SpreadRows(np.arange(6).reshape(3, 2), np.array([1, 2, 4]), 5)
    np.testing.assert_array_equal(counts[1:3], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(counts[0:2], [[np.nan] * 2, [0, 1]])
    nothing = SpreadRows(np.ones((0, 2)), np.arange(0), 3)
    assert np.isnan(nothing[0:3]).all()
    assert nothing[0:3].shape == (3, 2)


@pytest.mark.parametrize("height", [None, 13])
def test_samples_that_say_what_is_missing_have_the_kernels_of_views_with_nan(height):
    views, observed, _ = incomplete(8, share=0.0)
    for p in range(3):  # as many a view
        observed[p : p + 60 : 3, p] = False
    given = with_nan(views, observed)
    parts = tuple(view[seen] for view, seen in zip(views.values(), observed.T, strict=True))
    samples = Samples("views", tuple(views), parts, names_given=True, missing=~observed)
    how = {"random_state": 0, **STANDARD}
    for keep in (None, 0):
        found = compress(as_blocks(samples, block_rows=height), Nystroem(9), kept_bytes=keep, **how)
        expected = compress(as_blocks(given), Nystroem(9), kept_bytes=keep, **how)
        np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-10)
        np.testing.assert_array_equal(found.observed, observed)


def test_dask_arrays_with_rows_of_nan_give_the_model_of_arrays():
    da = pytest.importorskip("dask.array")
    views, observed, _ = incomplete(9)
    lazy = {name: da.from_array(view, chunks=(25, -1)) for name, view in views.items()}
    how = {"approximation": Nystroem(12), "random_state": 0}
    local, found = (SimpleMKKM(3, **how).fit(X) for X in (views, lazy))
    np.testing.assert_allclose(found.weights_, local.weights_, atol=1e-6)
    np.testing.assert_array_equal(found.labels_.compute(), local.labels_)
    np.testing.assert_array_equal(found.observed_, observed)
    np.testing.assert_array_equal(found.predict(lazy).compute(), local.labels_)


@pytest.mark.parametrize("rows", [25, (40, 0, 7, 13), 1, 60])
def test_dask_arrays_that_hold_only_what_they_have_are_spread_chunk_by_chunk(rows):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    for samples in (np.sort(rng.choice(85, 60, replace=False)), np.arange(60), np.arange(25, 85)):
        view, full = rng.normal(size=(60, 4)).astype(np.float32), np.full((85, 4), np.nan)
        full[samples] = view
        spread = spread_lazily(da.from_array(view, chunks=(rows, 3)), samples, 85)
        assert (spread.shape, spread.dtype) == ((85, 4), np.float32)
        np.testing.assert_array_equal(spread.compute(), full)
    assert np.isnan(spread_lazily(da.ones((0, 4)), np.arange(0), 3).compute()).all()
    views, observed, _ = incomplete(12)
    lazy = {
        name: da.from_array(np.nan_to_num(view), chunks=(30, -1)) for name, view in views.items()
    }
    how = {"approximation": Nystroem(12), "random_state": 0}
    local, found = (
        SimpleMKKM(3, **how).fit(views),
        SimpleMKKM(3, **how).fit(lazy, observed=observed),
    )
    np.testing.assert_array_equal(found.labels_.compute(), local.labels_)
    np.testing.assert_array_equal(found.observed_, observed)


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_order", [True, False])
def test_new_samples_may_lack_views(keep_order):
    views, observed, labels = incomplete(10, share=0.3)
    model = SimpleMKKM(3, approximation=Nystroem(20), random_state=0).fit(views)
    np.testing.assert_array_equal(model.observed_, observed)
    assert adjusted_rand_index(labels, model.labels_) > 0.8
    names = list(views) if keep_order else list(reversed(views))
    again = {name: views[name] for name in names}
    np.testing.assert_array_equal(model.predict(again), model.labels_)
    np.testing.assert_allclose(model.transform(again), model.embedding_, atol=1e-10)
    one = {name: view[:1] for name, view in again.items()}
    np.testing.assert_array_equal(model.predict(one), model.labels_[:1])
    complete, _, _ = incomplete(10, share=0.0)
    assert np.mean(model.predict(complete) == model.labels_) > 0.9
    for view in again.values():
        view[5] = np.nan
    with pytest.raises(ValueError, match=r"missing from every view: 5\b.*drop"):
        model.predict(again)


def test_a_stored_model_still_embeds_samples_that_lack_views(tmp_path):
    from mkclust import load_model, save_model

    views, _, _ = incomplete(11)
    model = AverageKKM(3, approximation=Nystroem(20), random_state=0).fit(views)
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(views), model.labels_)
    np.testing.assert_array_equal(loaded.observed_, model.observed_)
