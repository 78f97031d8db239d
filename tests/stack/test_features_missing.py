"""Compressed kernels of samples that are missing from some views: rows that are all NaN."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from conftest import blob_views
from given_kernels import standardized, written_out
from libraries import LIBRARIES, as_library
from mkclust.data.blocks import check_finite
from mkclust.data.samples import as_blocks
from mkclust.kernels import Linear, Nystroem
from mkclust.linalg import place, to_host
from mkclust.stack.compare import compare
from mkclust.stack.features import compress

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
        full = np.zeros((len(view), len(view)))
        full[np.ix_(seen, seen)] = standardized((F @ F.T)[None], center, normalize)[0]
        if fill == "rescale":
            s = np.sqrt(observed.shape[1] / observed.sum(axis=1))
            full = full * s * s[:, None]
        kernels.append(full)
    return np.array(kernels)


@pytest.mark.parametrize("fill", ["zero", "rescale"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (True, False), (False, False)])
def test_kernels_are_those_of_the_observed_samples_with_zeros_for_the_others(
    fill, keep, center, normalize
):
    how = {"center": center, "normalize": normalize, "fill": fill}
    for seed, map_ in enumerate((Linear(), Nystroem(15), RBFSampler(n_components=12), Linear())):
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
        features, matrix = stack.features.learned, stack.features.coordinate_map @ rows
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_cells_that_are_not_finite_are_refused(library):
    views, observed = incomplete()
    check_finite(as_blocks(as_library(library, views)).take(np.arange(N)), 0)
    first, second = np.flatnonzero(observed[:, 1])[:2]
    views["view 1"][[first, second], -1] = np.inf
    with pytest.raises(ValueError, match=rf"'view 1' .* 2 of .* sample {first};"):
        check_finite(as_blocks(as_library(library, views)).take(np.arange(N)), 0)
