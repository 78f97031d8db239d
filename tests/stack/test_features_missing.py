"""Compressed kernels of samples that are missing from some views: rows that are all NaN."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse

from conftest import blob_views
from libraries import LIBRARIES, as_library
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.linalg import place, to_host
from mkclust.linalg.sparse_rows import missing_rows, spread_rows
from mkclust.samples.blocks import Blocks, check_finite
from mkclust.samples.samples import Samples, as_blocks
from mkclust.stack.compare import compare
from mkclust.stack.features import compress
from mkclust.stack.kernel import dense_of

N = 90
STANDARD = {"center": True, "normalize": True}


def incomplete(seed=0, n=N, share=0.3, ties=False):
    """Return views some of whose rows are NaN, and which samples each has."""
    rng = np.random.default_rng(seed)
    views, _ = blob_views(rng, n=n, k=3, strengths=(3.0, 2.5, 2.0))
    if ties:  # samples that are the same in all views
        views = [np.round(view[np.arange(n) // 3]) for view in views]
    observed = rng.random((n, len(views))) > share
    observed[np.arange(n), rng.integers(len(views), size=n)] = True
    return with_nan({f"view {p}": view for p, view in enumerate(views)}, observed), observed


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
    (Q,) = stack.features.lift(np.eye(stack.n_samples))
    return np.array([to_host(Q) @ dense_of(K) @ to_host(Q).T for K in stack.kernels])


# --- kernels ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["zero", "rescale"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (True, False), (False, False)])
def test_kernels_are_those_of_the_observed_samples_with_zeros_for_the_others(
    fill, keep, center, normalize
):
    how = {"center": center, "normalize": normalize, "fill": fill}
    for seed, map_ in enumerate((Linear(), Nystroem(15), RandomFourier(12), Linear())):
        views, observed = incomplete(seed, share=(0.2, 0.5)[seed % 2], ties=seed > 2)
        blocks = as_blocks(views, block_rows=(7, 40, 200, 40)[seed])
        stack = compress(blocks, map_, keep=keep, random_state=0, **how)
        expected = kernels_by_hand(views, observed, stack.features.learned.maps, **how)
        largest = np.abs(expected).max()
        np.testing.assert_allclose(written_out(stack), expected, atol=1e-8 * largest)
        np.testing.assert_allclose(stack.gram(), np.einsum("pij,qij->pq", expected, expected))
        np.testing.assert_array_equal(stack.features.observed, observed)
        np.testing.assert_array_equal(stack.subset([2]).features.observed, observed[:, [2]])
        for F, K in zip(
            stack.features.learned.of(blocks.take(np.arange(N))), expected, strict=True
        ):
            np.testing.assert_allclose(F @ F.T, K, atol=1e-8 * largest)
        rows = np.random.default_rng(0).normal(size=(stack.n_samples, 2))
        features, matrix = stack.features.embedding_map(rows)
        (lifted,) = stack.features.lift(rows)
        atol = 1e-8 * np.abs(lifted).max()
        np.testing.assert_allclose(
            features.project(blocks.take(np.arange(N)), matrix), lifted, atol=atol
        )


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("map_", [Linear(), Nystroem(5)])
def test_views_may_be_complete_or_have_five_samples(keep, map_):
    _, observed = incomplete(1)
    observed[:, 0], observed[:, 2] = True, False
    observed[[3, 30, 31, 70, 89], 2] = True
    views = with_nan(incomplete(1, share=0.0)[0], observed)
    # Fewer are drawn than there are: of five, one must still be among those drawn.
    blocks, how = as_blocks(views, block_rows=10), STANDARD | {"fill": "rescale"}
    stack = compress(blocks, map_, keep=keep, fit_samples=20, random_state=0, **how)
    expected = kernels_by_hand(views, observed, stack.features.learned.maps, **how)
    np.testing.assert_allclose(written_out(stack), expected, atol=1e-8)
    assert np.isfinite(stack.features.trace_errors).all()
    with pytest.raises(ValueError, match="'view 2', observed in 5 of 90 .*n_components=6"):
        compress(as_blocks(views), Nystroem(6), **how)


def test_the_order_of_samples_and_views_changes_nothing():
    views, observed = incomplete(2)
    order = np.random.default_rng(0).permutation(N)
    expected = written_out(compress(as_blocks(views), Linear(), **STANDARD))
    shuffled = {name: view[order] for name, view in views.items()}
    found = compress(as_blocks(shuffled), Linear(), **STANDARD)
    np.testing.assert_allclose(written_out(found), expected[:, order][:, :, order], atol=1e-10)
    np.testing.assert_array_equal(found.features.observed, observed[order])
    turned = {name: views[name] for name in reversed(views)}
    found = written_out(compress(as_blocks(turned), Linear(), **STANDARD))
    np.testing.assert_allclose(found, expected[::-1], atol=1e-10)


@pytest.mark.parametrize("fill", ["zero", "rescale"])
def test_kernels_are_compared_on_the_samples_that_both_have_and_not_scaled_up(fill):
    views, observed = incomplete(6)
    stack = compress(as_blocks(views), Linear(), fill=fill, **STANDARD)
    how = STANDARD | {"fill": "zero"}
    kernels = kernels_by_hand(views, observed, stack.features.learned.maps, **how)
    for each in compare(stack):
        common = np.flatnonzero(observed[:, each.first[0]] & observed[:, each.second[0]])
        assert each.n_samples == len(common)
        expected = kernels[list(each.kernels)][:, common][:, :, common]
        some = np.arange(5)
        np.testing.assert_allclose(each.entries(some), expected[:, :5, :5], atol=1e-9)
        hollow = expected * (1 - np.eye(len(common)))
        products = np.einsum("pij,qij->pq", hollow, hollow)
        np.testing.assert_allclose(each.products.products, products, atol=1e-8)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_incomplete_views_on_a_device_give_the_kernels_of_the_host(library, keep, dtype, tolerance):
    views, observed = incomplete(3)
    views["view 0"][:20], observed[:20, 0] = np.nan, False  # a whole block
    observed[:20, 1], views["view 1"][:20] = True, 1.0 + np.arange(20)[:, None]
    given = {name: as_library(library, view.astype(dtype)) for name, view in views.items()}
    map_, blocks = Nystroem(12, random_state=0), as_blocks(given, block_rows=20)
    stack = compress(blocks, map_, keep=keep, **STANDARD)
    how = STANDARD | {"fill": "rescale"}
    expected = kernels_by_hand(views, observed, stack.features.learned.maps, **how)
    np.testing.assert_allclose(written_out(stack), expected, atol=tolerance)
    np.testing.assert_array_equal(stack.features.observed, observed)
    (rows,) = stack.features.lift(np.eye(stack.n_samples))
    assert place(rows) == place(given["view 0"])
    assert to_host(rows, None).dtype == dtype


@pytest.mark.parametrize("keep", [True, False])
def test_sparse_views_that_lack_samples_are_computed_as_dense_ones(keep):
    rng = np.random.default_rng(0)
    dense, observed = incomplete(4)
    counts = {name: view * (rng.random(view.shape) < 0.4) for name, view in dense.items()}
    counts = with_nan({n: np.nan_to_num(v) for n, v in counts.items()}, observed)
    sparse = {name: scipy.sparse.csr_array(view) for name, view in counts.items()}
    for map_ in (Linear(), RandomFourier(10, random_state=0)):
        found = compress(as_blocks(sparse, block_rows=25), map_, keep=keep, **STANDARD)
        expected = compress(as_blocks(counts), map_, **STANDARD)
        np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-9)
        np.testing.assert_array_equal(found.features.observed, observed)


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
    assert to_host(found, None).tolist() == [False, True, False, True, False]
    spread = spread_rows(there[:2, :], np.array([1, 2]), 4, np.nan)
    assert place(spread) == place(there)
    assert to_host(spread, None).dtype == dtype
    np.testing.assert_array_equal(to_host(spread), [[np.nan] * 3, [1] * 3, [1] * 3, [np.nan] * 3])


@pytest.mark.parametrize("library", LIBRARIES)
def test_cells_are_refused_and_samples_in_no_view_are_named(library):
    views, observed = incomplete()
    blocks = as_blocks(as_library(library, views))
    check_finite(blocks.take(np.arange(N)), 0)
    first, second = np.flatnonzero(observed[:, 1])[:2]
    views["view 1"][[first, second], -1] = np.inf
    with pytest.raises(ValueError, match=rf"'view 1' .* 2 of .* sample {first};"):
        check_finite(as_blocks(as_library(library, views)).take(np.arange(N)), 0)
    views = {name: as_library(library, np.ones((9, 2))) for name in "ab"}
    observed = np.ones((9, 2), bool)
    observed[[4, 6]] = False
    for held in (views, {name: view[:7, :] for name, view in views.items()}):
        blocks = Blocks(held, observed)
        with pytest.raises(ValueError, match="every view: 11 and 13; drop"):
            check_finite(blocks.take(np.arange(9)), 7)
        with pytest.raises(ValueError, match="every view: 4 and 6; drop"):
            compress(blocks, Linear(), **STANDARD)


# --- views that hold only what they have ------------------------------------------------------


@pytest.mark.parametrize("library", [*LIBRARIES, "sparse"])
def test_blocks_hold_the_rows_that_each_view_has(library):
    rng = np.random.default_rng(0)
    full, observed = rng.normal(size=(35, 3)), rng.random((35, 2)) < 0.6
    as_held = scipy.sparse.csr_array if library == "sparse" else partial(as_library, library)
    tables = {"all rows": as_held(full), "its own": as_held(full[observed[:, 1]])}
    blocks = Blocks(tables, observed, 8)
    some = np.sort(rng.choice(35, 9, replace=False))
    parts = [(blocks.take(some), some), (blocks.take(some[:0]), some[:0])]
    parts += [(block, np.arange(start, min(start + 8, 35))) for start, block in blocks]
    whole = blocks.take(np.arange(35))
    parts += [(whole, np.arange(35)), (whole.part(slice(5, 21)), np.arange(5, 21))]
    for block, numbers in parts:
        assert block.n_rows == len(numbers)
        for number, (name, rows) in enumerate(block.items()):
            has = observed[numbers, number]
            dense = to_host(rows.toarray() if library == "sparse" else rows)
            np.testing.assert_array_equal(dense, full[numbers[has]])
            index = np.arange(len(numbers)) if block.index(name) is None else block.index(name)
            np.testing.assert_array_equal(index, np.flatnonzero(has))
    np.testing.assert_array_equal(blocks.observed(), observed)


def test_rows_of_files_that_are_all_nan_are_missing(tmp_path):
    views, observed = incomplete(5)
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", view)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in views}
    for keep in (True, False):
        found = compress(as_blocks(mapped, block_rows=20), Linear(), keep=keep, **STANDARD)
        expected = compress(as_blocks(views), Linear(), **STANDARD)
        np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-10)
        np.testing.assert_array_equal(found.features.observed, observed)


@pytest.mark.parametrize("height", [None, 13])
@pytest.mark.parametrize("keep", [True, False])
def test_samples_that_say_what_is_missing_have_the_kernels_of_views_with_nan(height, keep):
    views, observed = incomplete(8, share=0.0)
    for p in range(3):  # as many per view
        observed[p : p + 60 : 3, p] = False
    parts = tuple(view[seen] for view, seen in zip(views.values(), observed.T, strict=True))
    samples = Samples("views", tuple(views), parts, names_given=True, missing=~observed)
    how = {"random_state": 0, "keep": keep, **STANDARD}
    found = compress(as_blocks(samples, block_rows=height), Nystroem(9), **how)
    expected = compress(as_blocks(with_nan(views, observed)), Nystroem(9), **how)
    np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-10)
    np.testing.assert_array_equal(found.features.observed, observed)


@pytest.mark.parametrize("chunks", [25, (40, 0, 37, 13), 90])
def test_dask_arrays_that_lack_samples_give_the_kernels_of_arrays(chunks):
    da = pytest.importorskip("dask.array")
    views, observed = incomplete(7)
    lazy = {name: da.from_array(view, chunks=(chunks, 3)) for name, view in views.items()}
    expected = compress(as_blocks(views), Linear(), **STANDARD)
    found = compress(as_blocks(lazy), Linear(), **STANDARD)
    np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-10)
    np.testing.assert_array_equal(found.features.observed, observed)
    held = {n: v[seen] for (n, v), seen in zip(lazy.items(), observed.T, strict=True)}
    samples = Samples("views", tuple(held), tuple(held.values()), missing=~observed)
    found = compress(as_blocks(samples), Linear(), **STANDARD)
    np.testing.assert_allclose(written_out(found), written_out(expected), atol=1e-10)
