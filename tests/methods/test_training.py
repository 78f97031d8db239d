"""The similarities by which a model clusters, looked at again after the fit."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from conftest import blob_views
from mkclust import (
    LFMVC,
    LKAM,
    LMKKM,
    METHODS,
    ONKC,
    AnchoredMKKM,
    AverageKKM,
    KernelBank,
    SimpleMKKM,
)
from mkclust.kernels import Linear, Nystroem
from mkclust.methods.mixed_kernel import check_samples
from mkclust.methods.onkc import solve_onkc
from mkclust.stack import MatrixRows, as_stack
from problems import leading, projector

pytestmark = pytest.mark.slow

N, K = 60, 3
SOME = [41, 3, 17, 3, 59]
MASKED = ["lkam", "localized-simplemkkm"]
UNMIXED = ("lf-mvc", "lmkkm", "onkc", *MASKED)
MIXING = [name for name in METHODS if name not in UNMIXED]


@pytest.fixture(scope="module")
def views():
    found, _ = blob_views(np.random.default_rng(0), n=N, k=K)
    return dict(zip(("shape", "color", "text"), found, strict=True))


@pytest.fixture(scope="module")
def kernels(views):
    bank = KernelBank(widths=(1.0,), polynomials=((1, 2),), linear="linear")
    return bank.fit_transform(views)[:, :N]


def fitted(method, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(K, random_state=0, **options).fit(X)


def standardized(K, center=True, normalize=True):
    """Write out one kernel as the definitions have it."""
    if center:
        J = np.eye(len(K)) - 1 / len(K)
        K = J @ K @ J
    return K / np.sqrt(np.outer(K.diagonal(), K.diagonal())) if normalize else K


@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("options", [{}, {"center": False}, {"normalize": False}])
def test_it_is_the_sum_of_the_standardized_kernels_by_the_coefficients(name, options, kernels):
    model = fitted(METHODS[name], kernels, **options)
    parts = [standardized(K, **options) for K in kernels]
    found = model.mixed_kernel(kernels)
    np.testing.assert_allclose(found, np.tensordot(model.coefficients_, parts, 1), atol=1e-10)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("anchor", [0.5, 4.0])
def test_an_anchor_is_part_of_what_is_partitioned(anchor, views, kernels):
    model = fitted(AnchoredMKKM, views, anchor=anchor)
    found = model.mixed_kernel(views)
    H = leading(found, K)
    np.testing.assert_allclose(projector(H), projector(model.embedding_), atol=1e-4)
    # Its leading eigenvalues are the objective, the weights' share in it and the anchor's.
    assert np.linalg.eigvalsh(found)[-K:].sum() == pytest.approx(model.objective_, rel=1e-5)
    assert "with the anchor" in model.describe_mixed_kernel()
    np.testing.assert_allclose(model.mixed_kernel(views, SOME), found[np.ix_(SOME, SOME)])
    features = fitted(AnchoredMKKM, views, anchor=anchor, approximation=Nystroem(10))
    assert "without the anchor" in features.describe_mixed_kernel()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("form", ["views", "kernels"])
def test_some_samples_are_a_part_of_all_in_any_order(name, form, views, kernels):
    X = views if form == "views" else kernels
    model = fitted(METHODS[name], X)
    whole = model.mixed_kernel(X)
    assert whole.shape == (N, N)
    assert whole.dtype == np.float64
    np.testing.assert_allclose(model.mixed_kernel(X, SOME), whole[np.ix_(SOME, SOME)], atol=1e-10)
    assert model.mixed_kernel(X, []).shape == (0, 0)


def test_lmkkm_mixes_by_the_weights_of_both_samples(kernels):
    model = fitted(LMKKM, kernels)
    theta = model.sample_weights_
    parts = [np.outer(theta[:, p], theta[:, p]) * standardized(K) for p, K in enumerate(kernels)]
    np.testing.assert_allclose(model.mixed_kernel(kernels), sum(parts), atol=1e-10)


def test_onkc_finds_the_kernel_again_that_it_had_learned(kernels):
    model = fitted(ONKC, kernels, proximity=0.25)
    G = solve_onkc(as_stack(kernels), K, proximity=0.25).kernel
    np.testing.assert_allclose(model.mixed_kernel(kernels), G, atol=1e-8)
    mixed = np.tensordot(model.coefficients_, as_stack(kernels).among().entries, 1)
    assert np.abs(G - mixed).max() > 0.01


def test_lkam_counts_the_mix_by_the_share_of_neighborhoods_in_common(kernels):
    model = fitted(LKAM, kernels, neighbors=0.2)
    average = sum(map(standardized, kernels)) / len(kernels)
    np.fill_diagonal(average, -np.inf)
    nearest = np.argsort(-average, axis=1)[:, : round(0.2 * N)]
    inside = np.zeros((N, N))
    np.put_along_axis(inside, nearest, 1.0, axis=1)
    mixed = np.tensordot(model.coefficients_, [standardized(K) for K in kernels], 1)
    np.testing.assert_allclose(model.mixed_kernel(kernels), mixed * (inside.T @ inside) / N)


@pytest.mark.parametrize("name", ["simplemkkm", "agreement-kkm"])
def test_features_of_full_rank_give_what_kernels_give(name, views):
    # Features stand for the formula of a kernel, without shared neighborhoods.
    settings = {"kernels": "gaussian", "random_state": 0}
    exact = METHODS[name](K, **settings).fit(views)
    features = METHODS[name](K, approximation=Nystroem(N), **settings).fit(views)
    found, expected = (model.mixed_kernel(views) for model in (features, exact))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    some = features.mixed_kernel(views, SOME)
    np.testing.assert_allclose(some, found[np.ix_(SOME, SOME)], atol=1e-12)


def test_dask_arrays_give_what_arrays_give(views):
    da = pytest.importorskip("dask.array")
    lazy = {name: da.from_array(view, chunks=(17, 4)) for name, view in views.items()}
    for method in (SimpleMKKM, LFMVC):
        models = [
            method(K, approximation=Linear(), random_state=0).fit(form) for form in (views, lazy)
        ]
        expected = models[0].mixed_kernel(views, SOME)
        found = models[1].mixed_kernel(lazy, SOME)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("form", ["sparse", "streamed", "list", "dict", "float32"])
def test_kernels_come_in_all_forms_that_fit_takes(form, kernels):
    expected = fitted(SimpleMKKM, kernels).mixed_kernel(kernels, SOME)
    names = [f"kernel {p}" for p in range(len(kernels))]
    X = {
        "sparse": [scipy.sparse.csr_array(K) for K in kernels],
        "streamed": MatrixRows(list(kernels)),
        "list": list(kernels),
        "dict": dict(zip(names, kernels, strict=True)),
        "float32": kernels.astype(np.float32),
    }[form]
    model = fitted(SimpleMKKM, X, kernels="precomputed")
    if form == "dict":  # the order does not matter, names do
        X = dict(reversed(X.items()))
    found = model.mixed_kernel(X, SOME)
    np.testing.assert_allclose(found, expected, atol=1e-4 if form == "float32" else 1e-10)


@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("method", [AverageKKM, ONKC])
def test_what_was_repaired_is_repaired_again(psd, method, kernels):
    indefinite = kernels - 0.3 * np.eye(N) * np.trace(kernels[0]) / N
    model = fitted(method, indefinite, psd=psd)
    repaired = np.tensordot(model.coefficients_, as_stack(indefinite, psd=psd).among().entries, 1)
    assert np.linalg.eigvalsh(repaired).min() > -1e-8
    if method is AverageKKM:
        np.testing.assert_allclose(model.mixed_kernel(indefinite), repaired, atol=1e-8)
    found = model.mixed_kernel(indefinite)
    assert np.linalg.eigvalsh(found).min() > -1e-8
    np.testing.assert_allclose(
        model.mixed_kernel(indefinite, SOME), found[np.ix_(SOME, SOME)], atol=1e-8
    )


@pytest.mark.parametrize("name", ["avg-kkm", "lmkkm"])
def test_few_samples_of_views_take_no_memory_of_the_samples_squared(name):
    n = 1200
    views, _ = blob_views(np.random.default_rng(0), n=n, k=K, n_features=3)
    model = METHODS[name](K, max_iter=1) if name == "lmkkm" else METHODS[name](K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(views)
    tracemalloc.start()
    model.mixed_kernel(views, range(10))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Rows are computed some at a time; all kernels written out would take 8 * 3 * n * n.
    assert peak < 0.5 * 8 * 3 * n * n


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ([0, N], f"from 0 to {N - 1}"),
        ([-1], "samples"),
        ([0.5], "type float64"),
        (np.ones(N, dtype=bool), r"type bool.*np\.flatnonzero"),
        ([[0, 1]], r"shape \(1, 2\)"),
        (3, r"shape \(\)"),
    ],
)
def test_samples_that_are_not_there_are_refused(samples, told, views):
    with pytest.raises(ValueError, match=told):
        fitted(AverageKKM, views).mixed_kernel(views, samples)


@pytest.mark.parametrize("name", ["simplemkkm", "lmkkm", "lf-mvc", "lkam"])
def test_views_of_other_samples_are_refused(name, views):
    model = fitted(METHODS[name], views)
    with pytest.raises(ValueError, match="X has 59 samples, the model was fitted on 60"):
        model.mixed_kernel({name: view[1:] for name, view in views.items()})
    with pytest.raises(ValueError, match="other samples than the model was fitted on"):
        model.mixed_kernel({name: view[::-1] for name, view in views.items()}, [0])
    with pytest.raises(ValueError, match="fitted on"):
        model.mixed_kernel({"shape": views["shape"]})


@pytest.mark.parametrize("name", ["simplemkkm", "lmkkm", "lf-mvc", "lkam"])
def test_other_kernels_are_refused(name, kernels):
    model = fitted(METHODS[name], kernels)
    with pytest.raises(ValueError, match=r"X has 2 kernels, the model was fitted on 9"):
        model.mixed_kernel(kernels[:2])
    with pytest.raises(ValueError, match=r"kernel 0 has the shape \(59, 59\).*fitted on 60"):
        model.mixed_kernel(kernels[:, 1:, 1:])
    with pytest.raises(ValueError, match="X lacks the kernel 'kernel 8'"):
        model.mixed_kernel({f"kernel {p if p < 8 else 'x'}": K for p, K in enumerate(kernels)})


@pytest.mark.parametrize("name", ["simplemkkm", "kamm-a"])
def test_kernels_of_samples_in_another_order_are_refused(name, kernels):
    model = fitted(METHODS[name], kernels)
    with pytest.raises(ValueError, match="kernel 0 is not the kernel that the model was fitted on"):
        model.mixed_kernel(kernels[:, ::-1, ::-1])


def test_features_of_other_samples_are_refused(views):
    model = SimpleMKKM(K, approximation=Nystroem(20), random_state=0).fit(views)
    with pytest.raises(ValueError, match="other samples than the model was fitted on"):
        model.mixed_kernel({name: view[::-1] for name, view in views.items()})
    with pytest.raises(ValueError, match="X has 59 samples, the model was fitted on 60"):
        model.mixed_kernel({name: view[1:] for name, view in views.items()})
    with pytest.raises(ValueError, match=r"X has the views \{'shape': 10\}"):
        model.mixed_kernel({"shape": views["shape"]})
    turned = dict(reversed(views.items()))
    np.testing.assert_allclose(
        model.mixed_kernel(turned), model.mixed_kernel(views), rtol=1e-12, atol=1e-12
    )


def test_more_samples_than_fit_into_memory_are_refused_with_the_way_out():
    with pytest.raises(MemoryError, match="similarities of 60 samples.*pass samples"):
        check_samples(None, 60, available=1000)


def test_features_and_anchors_are_said(views):
    model = AnchoredMKKM(K, approximation=Nystroem(20), anchor=1.0, random_state=0).fit(views)
    said = model.describe_mixed_kernel()
    assert said.endswith("approximated by features; without the anchor)")
