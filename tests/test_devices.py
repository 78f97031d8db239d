"""Arrays of other libraries than NumPy: the same answers, computed where the arrays
are."""

import functools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse

from helpers.arrays import FOREIGN, TORCH, as_library, kind_of
from helpers.cases import slow
from helpers.problems import projector, random_kernels
from mkclust import METHODS, SimpleMKKM, diagnose, to_device
from mkclust.explain.stability import stability
from mkclust.kernels import Nystroem
from mkclust.linalg import library_and_device, to_host
from mkclust.metrics import clustering_accuracy
from mkclust.plots import EmbeddingDisplay, SortedKernelDisplay
from mkclust.stack import as_stack

METHODS_TESTED = ("simplemkkm", "lmkkm", "lf-mvc")  # the others by slow tests
INDUCTIVE = ("simplemkkm", "lf-mvc")
SIZES = [90, 260]  # by whole decompositions, and by iterations
K_CLUSTERS, N_KERNELS = 3, 3

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
]
over_libraries = pytest.mark.parametrize("library", FOREIGN)
over_methods = pytest.mark.parametrize("name", METHODS_TESTED)
needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


@functools.cache
def kernels(n):
    """Return kernels of three views with the same clusters, clear enough for k-means to
    agree."""
    return random_kernels(n, N_KERNELS + 1, k=K_CLUSTERS)[1:]


@functools.cache
def fitted(name, library, n):
    method = METHODS[name]
    is_tight = name != "lmkkm" and "tol" in method().get_params()
    options = {"tol": 1e-12, "max_iter": 300} if is_tight else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method(K_CLUSTERS, random_state=0, n_init=3, **options)
        return model.fit(as_library(library, kernels(n)))


def assert_alike(model, expected, *, atol=1e-6, subspace=1e-5):
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=atol)
    apart = np.abs(
        projector(to_host(model.embedding_)) - projector(expected.embedding_)
    ).max()
    assert apart < subspace
    share = clustering_accuracy(expected.labels_, model.labels_)
    assert round((1 - share) * len(model.labels_)) <= 1


@over_libraries
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "name",
    [*METHODS_TESTED, *slow(*(name for name in METHODS if name not in METHODS_TESTED))],
)
def test_a_fit_is_that_of_numpy_and_its_embedding_stays_where_the_kernels_are(
    name, n, library
):
    model, expected = fitted(name, library, n), fitted(name, "numpy", n)
    assert_alike(model, expected)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(model.alignments_, expected.alignments_, atol=2e-3)
    if hasattr(model, "duality_gap_"):
        assert 0 <= model.duality_gap_ <= model.tol
    for attribute in (
        "weights_",
        "alignments_",
        "history_",
        "coefficients_",
        "sample_weights_",
    ):
        found = getattr(model, attribute, np.zeros(1))
        assert type(found) is np.ndarray, attribute
        assert found.dtype == np.float64, attribute
    assert type(model.labels_) is np.ndarray
    assert library_and_device(model.embedding_) == library_and_device(
        as_library(library, np.zeros(1))
    )
    assert to_host(model.embedding_, None).dtype == np.float64


@over_libraries
@pytest.mark.parametrize("name", INDUCTIVE)
def test_predict_takes_kernels_of_any_library_whatever_the_model_was_fitted_on(
    name, library
):
    n = 260
    K = as_library(library, list(kernels(n)))
    for model in (fitted(name, library, n), fitted(name, "numpy", n)):
        for X in (K, kernels(n)):
            np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert type(model.predict(K)) is np.ndarray
        assert library_and_device(model.transform(K)) == library_and_device(K[0])
        assert library_and_device(model.transform(kernels(n))) == "NumPy"


@over_libraries
def test_new_rows_may_have_another_number_type(library):
    rng, group = np.random.default_rng(0), np.arange(40)[:, None] % 2
    views = [rng.normal(size=(40, 5)) + 5 * group for _ in range(2)]
    for fitted_type, new_type in ((np.float32, np.float64), (np.float64, np.float32)):
        X = as_library(library, [view.astype(fitted_type) for view in views])
        model = METHODS["avg-kkm"](2, random_state=0).fit(X)
        new = [view.astype(new_type) for view in views]
        assert np.mean(model.predict(new) == model.labels_) > 0.9


@over_libraries
@over_methods
def test_a_stored_model_needs_no_device(name, library):
    model = fitted(name, library, 90)
    stored = pickle.dumps(model)
    assert kind_of(model.embedding_).encode() not in stored
    loaded = pickle.loads(stored)
    np.testing.assert_array_equal(loaded.embedding_, to_host(model.embedding_))
    if name in INDUCTIVE:
        np.testing.assert_array_equal(loaded.predict(kernels(90)), model.labels_)


@pytest.fixture
def copied_shapes(library, monkeypatch):
    """Return a list that fills with the shapes of all that is copied to the host."""
    shapes = []
    if library == "strict":
        owner, name = np, "from_dlpack"
    elif library in ("torch", "cuda"):
        import torch

        owner, name = torch.Tensor, "numpy"
    else:
        pytest.skip("copies of this library cannot be watched")
    original = getattr(owner, name)

    def counted(array, *args, **options):
        shapes.append(tuple(array.shape))
        return original(array, *args, **options)

    monkeypatch.setattr(owner, name, counted)
    return shapes


@over_libraries
@over_methods
def test_no_kernel_is_copied_to_the_host(name, library, copied_shapes):
    n = 260  # views are compared by up to 256 samples, on the host
    K = as_library(library, list(kernels(n)))
    model = METHODS[name](
        K_CLUSTERS, kernels="precomputed", random_state=0, n_init=1
    ).fit(K)
    if name in INDUCTIVE:
        model.predict(K)
    long = [shape for shape in copied_shapes if max(shape, default=1) >= n]
    assert long  # rows for k-means
    # A basis may have as many vectors as samples.
    assert max(map(np.prod, long)) < n * n / 20


@needs_torch
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_with_in_single(half):
    import torch

    theirs = torch.asarray(kernels(90)).to(getattr(torch, half))
    settings = {"n_clusters": K_CLUSTERS, "random_state": 0, "psd": "shift"}
    model = SimpleMKKM(**settings).fit(theirs)
    expected = SimpleMKKM(**settings).fit(theirs.to(torch.float64).numpy())
    assert_alike(model, expected, atol=1e-3, subspace=1e-2)


@needs_torch
def test_tensors_with_gradients_and_other_strides_are_read_like_others():
    import torch

    K = torch.asarray(kernels(90)).permute(1, 2, 0).contiguous().permute(2, 0, 1)
    model = SimpleMKKM(K_CLUSTERS, random_state=0, n_init=3).fit(K.requires_grad_(True))
    assert not model.embedding_.requires_grad
    assert_alike(
        model,
        SimpleMKKM(K_CLUSTERS, random_state=0, n_init=3).fit(kernels(90)),
        atol=1e-5,
    )


@over_libraries
def test_kernels_in_two_places_are_refused(library):
    K = list(kernels(90))
    K[1] = as_library(library, K[1])
    unfitted = SimpleMKKM(K_CLUSTERS, kernels="precomputed")
    for take in (unfitted.fit, fitted("simplemkkm", library, 90).predict):
        with pytest.raises(ValueError, match="kernel 0 .*NumPy and kernel 1"):
            take(K)


@over_libraries
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (kernels(90) * np.where(np.eye(90), np.nan, 1), "kernel 0"),
        (kernels(90) * np.where(np.tri(90), 2, 1), "kernel 0 is not symmetric"),
        (kernels(90) - np.eye(90) / 2, "kernel 0 is indefinite"),
        (kernels(90) + 0j, "kernel 0 .*complex128"),
    ],
)
def test_arrays_that_are_not_kernels_are_refused(K, message, library):
    with pytest.raises(ValueError, match=message):
        SimpleMKKM(K_CLUSTERS).fit(as_library(library, K))


@functools.cache
def views(n=90):
    """Return three views of the same clusters, and one of noise."""
    rng = np.random.default_rng(0)
    places = 4 * np.eye(K_CLUSTERS, 4)[np.arange(n) % K_CLUSTERS]
    shared = {name: places + rng.normal(size=(n, 4)) for name in "abc"}
    return shared | {"noise": rng.normal(size=(n, 5))}


@functools.cache
def explained(library, approximation):
    """Return what the library says about a model fitted on views of an array
    library."""
    X = as_library(library, views())
    features = Nystroem(20) if approximation else None
    model = SimpleMKKM(
        K_CLUSTERS, approximation=features, random_state=0, n_init=2
    ).fit(X)
    diagnosis = diagnose(model, X)
    numbers = [
        diagnosis.redundancy,
        diagnosis.table[["agreement", "leave_one_out"]].to_numpy(),
    ]
    drawn = SortedKernelDisplay.from_estimator(model, X, max_samples=40).kernel
    plane = projector(EmbeddingDisplay.from_estimator(model).embedding)
    resampled = stability(model, X, n_resamples=3)
    return diagnosis.noise, [*numbers, drawn, plane, resampled.samples]


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("approximation", [False, True])
def test_what_explains_a_model_says_the_same_wherever_it_was_fitted(
    approximation, library
):
    noise, numbers = explained(library, approximation)
    known, expected = explained("numpy", approximation)
    assert noise == known
    for found, number in zip(numbers, expected, strict=True):
        np.testing.assert_allclose(found, number, atol=1e-4)


@over_libraries
@pytest.mark.parametrize("form", [list, tuple, lambda K: dict(enumerate(K))])
def test_what_goes_to_a_device_keeps_its_form_and_is_a_copy(form, library):
    K, like = kernels(12).copy(), as_library(library, np.zeros(1))
    moved = to_device(form(K), like=like)
    assert type(moved) is type(form(K))
    K[:] = 0
    for p, expected in enumerate(kernels(12)):
        assert library_and_device(moved[p]) == library_and_device(like)
        np.testing.assert_array_equal(to_host(moved[p]), expected)
    assert to_device(moved[0], like=like) is moved[0]


@needs_torch
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_torch_names_devices_and_its_sparse_tensors_are_refused():
    import torch

    K = kernels(20)
    assert to_device(K, "cpu", dtype=torch.float32).dtype == torch.float32
    with pytest.raises(ValueError, match="device='cuda:77'"):
        to_device(K, "cuda:77")
    dense = torch.asarray(K[0])
    with pytest.raises(ValueError, match=r"kernel 1 .*to_dense\(\)"):
        as_stack([dense, dense.to_sparse()])
    with pytest.raises(TypeError, match="'view 1' is sparse"):
        to_device([dense, dense.to_sparse()], "cpu")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([scipy.sparse.eye(4).tocsr(), np.eye(4)], "'view 0' is sparse"),
        ({"a": np.array([["x", "y"]])}, "'a' is not a table"),
        ([], "X is an empty list"),
        (np.arange(4.0), r"has the shape \(4,\)"),
    ],
)
def test_what_cannot_go_to_a_device_is_refused(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        to_device(X, like=np.zeros(1))
