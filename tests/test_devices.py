"""The contract of all methods on arrays of other libraries than NumPy: the same, where they live.

Beyond 200 samples eigenvectors are found by iteration, up to there by whole decompositions: what
depends on that is tested on either side.
"""

import dataclasses
import functools
import gc
import pickle
import re
import sys
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse

import mkclust
import mkclust.linalg
import mkclust.samples.devices
from libraries import FOREIGN, LIBRARIES, TORCH, as_library
from mkclust import (
    LFMVC,
    LMKKM,
    METHODS,
    MKKM,
    ONKC,
    AnchoredMKKM,
    AverageKKM,
    SimpleMKKM,
    diagnose,
    landmark_stability,
    suggest_n_clusters,
)
from mkclust.engine.row_simplex import minimize_over_rows
from mkclust.explain.held_out import alignment_errors, generalization_bound
from mkclust.explain.report import report_html
from mkclust.explain.report.collect import collect
from mkclust.explain.stability import resample
from mkclust.kernels import Nystroem
from mkclust.linalg import is_foreign, place, polar_factor, psd_part, set_diagonal, to_host
from mkclust.methods import solve_lmkkm
from mkclust.methods.mixture import Mixture
from mkclust.metrics import clustering_accuracy
from mkclust.plots import (
    ConvergenceDisplay,
    EmbeddingDisplay,
    KernelWeightsDisplay,
    SortedKernelDisplay,
    plot_fit,
)
from mkclust.samples.devices import to_device
from mkclust.stack import as_stack
from pairs import slow
from problems import low_rank, projector, random_kernels, symmetrized

QUICK = ("simplemkkm", "lmkkm", "lf-mvc")  # the others only by `make test-all`
NAMES = sorted(METHODS)
INDUCTIVE = [name for name in NAMES if hasattr(METHODS[name], "predict")]
SIZES = [90, 260]
K_CLUSTERS, N_KERNELS = 3, 3
# What is searched for another way than by the default settings.
VARIANTS = [
    ("simplemkkm", {"solver": "reduced-gradient", "tol": 1e-10}),
    ("mkkm-mm", {"solver": "saddle"}),
    ("lkam", {"neighbors": 0.1}),
    ("lkam", {"neighbors": 1.0}),
    ("localized-simplemkkm", {"neighbors": 0.1, "mask": "published"}),
    ("localized-simplemkkm", {"neighbors": 9, "mask": "cosine"}),
    ("onkc", {"proximity": 0.05}),
    ("lmkkm", {"tol": 1e-6}),
]

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
]


def quick_first(names):
    """Return names of methods, those that are not among the quick ones marked slow."""
    return [name if name in QUICK else slow(name)[0] for name in names]


over_libraries = pytest.mark.parametrize("library", FOREIGN)
over_methods = pytest.mark.parametrize("name", quick_first(NAMES))
over_inductive_methods = pytest.mark.parametrize("name", quick_first(INDUCTIVE))


@functools.cache
def kernels(n):
    """Return kernels of three views with the same clusters, clear enough for k-means to agree."""
    return random_kernels(n, N_KERNELS + 1, k=K_CLUSTERS)[1:]


def unscaled(n, seed=0):
    """Return linear kernels of whole numbers, whose diagonals vary, with loose clusters."""
    rng = np.random.default_rng(seed)
    places = rng.integers(-3, 4, size=(N_KERNELS, K_CLUSTERS, 4))[:, np.arange(n) % K_CLUSTERS]
    X = places + rng.integers(-2, 3, size=(N_KERNELS, n, 4))
    return (X @ X.transpose(0, 2, 1)).astype(np.float64)


def indefinite(n):
    """Return kernels, the first of which has clearly negative eigenvalues."""
    K = kernels(n).copy()
    directions = np.random.default_rng(1).normal(size=(n, 3)) / np.sqrt(n)
    K[0] -= 0.1 * np.linalg.norm(K[0], 2) * (directions * [1, 2, 3]) @ directions.T
    return symmetrized(K)


@functools.cache
def fitted(name, library, n, precision="float64", tight=True):
    """Return a model fitted on kernels of a library; every test looks at the same ones."""
    method = METHODS[name]
    options = {"tol": 1e-12, "max_iter": 300} if tight and "tol" in vars(method()) else {}
    if name == "lmkkm":
        options = {}  # its objective falls for long after the weights have settled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method(K_CLUSTERS, random_state=0, n_init=3, **options)
        return model.fit(as_library(library, kernels(n).astype(precision)))


def assert_alike(model, expected, *, atol=1e-6, subspace=1e-5, moved=1):
    """Hold a model against one that NumPy has fitted."""
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=atol)
    apart = np.abs(projector(to_host(model.embedding_)) - projector(expected.embedding_)).max()
    assert apart < subspace
    # A sample that moves may change the order of sizes, and so the numbers of all.
    share = clustering_accuracy(expected.labels_, model.labels_)
    assert round((1 - share) * len(model.labels_)) <= moved


def fit_both(method, library, K, **options):
    """Fit by NumPy and by another library."""
    settings = {"n_clusters": K_CLUSTERS, "random_state": 0, "n_init": 3} | options
    theirs = as_library(library, K)
    return method(**settings).fit(theirs), method(**settings).fit(K)


# The same as by NumPy --------------------------------------------------------------------------


@over_libraries
@pytest.mark.parametrize("n", SIZES)
@over_methods
def test_weights_labels_and_embedding_are_those_of_numpy(name, n, library):
    model, expected = fitted(name, library, n), fitted(name, "numpy", n)
    assert_alike(model, expected)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(model.alignments_, expected.alignments_, atol=2e-3)


@over_libraries
@pytest.mark.parametrize("n", SIZES)
@over_methods
def test_what_is_as_long_as_the_kernels_is_numpys_and_the_embedding_stays(name, n, library):
    model = fitted(name, library, n)
    for attribute in ("weights_", "alignments_", "history_", "coefficients_", "sample_weights_"):
        found = getattr(model, attribute, np.zeros(1))
        assert type(found) is np.ndarray, attribute
        assert found.dtype == np.float64, attribute
    assert type(model.labels_) is np.ndarray
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert place(model.embedding_) == place(as_library(library, np.zeros(1)))
    assert to_host(model.embedding_, None).dtype == np.float64
    H = to_host(model.embedding_)
    np.testing.assert_allclose(H.T @ H, np.eye(K_CLUSTERS), atol=1e-10)


@pytest.mark.slow
@over_libraries
@over_methods
def test_single_precision_is_close(name, library):
    model = fitted(name, library, 260, "float32", tight=False)
    assert_alike(model, fitted(name, "numpy", 260, tight=False), atol=1e-3, subspace=1e-2)
    assert to_host(model.embedding_, None).dtype == np.float64


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_other_settings_agree_with_numpy_too(name, options, library):
    n, atol = (260, 1e-4) if name == "simplemkkm" else (90, 1e-6)
    model, expected = fit_both(METHODS[name], library, kernels(n), **options)
    assert_alike(model, expected, atol=atol, subspace=10 * atol)


@over_libraries
def test_onkc_completes_a_partition_that_kernels_of_low_rank_leave_open(library):
    K = low_rank(np.random.default_rng(2), 60, 2, 5)  # of rank one and two
    model, expected = fit_both(ONKC, library, K, n_clusters=5, center=False, normalize=False)
    assert model.kernel_rank_ == expected.kernel_rank_ < 5
    assert_alike(model, expected)


@over_libraries
@over_methods
def test_the_mixed_kernel_comes_to_the_host(name, library):
    n, some = 90, np.array([5, 80, 0, 33])
    model = fitted(name, library, n)
    theirs = as_library(library, list(kernels(n)))
    whole = model.mixed_kernel(theirs)
    assert type(whole) is np.ndarray
    assert whole.dtype == np.float64
    expected = fitted(name, "numpy", n).mixed_kernel(kernels(n))
    np.testing.assert_allclose(whole, expected, atol=1e-6)
    np.testing.assert_allclose(model.mixed_kernel(theirs, some), whole[np.ix_(some, some)])
    np.testing.assert_allclose(model.mixed_kernel(kernels(n), some), whole[np.ix_(some, some)])
    assert model.mixed_kernel(theirs, []).shape == (0, 0)


# The certificate -------------------------------------------------------------------------------


@over_libraries
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("tol", [1e-5, 1e-9])
def test_the_gap_is_certified_wherever_the_kernels_are(n, tol, library):
    model, expected = fit_both(SimpleMKKM, library, kernels(n), tol=tol)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= tol
    apart = abs(model.objective_ - expected.objective_)
    assert apart <= (model.duality_gap_ + expected.duality_gap_) * expected.objective_
    assert np.max(model.lower_bounds_) <= expected.objective_ * (1 + expected.duality_gap_)


@functools.cache
def anchored(anchor, n, library):
    """Return a model with an anchor, and its kernels, the first of them noise."""
    K = kernels(n).copy()
    X = np.random.default_rng(5).normal(size=(n, 40))
    K[0] = X @ X.T  # which is set aside
    model = AnchoredMKKM(K_CLUSTERS, anchor=anchor, tol=1e-11, n_init=3, random_state=0)
    return model.fit(as_library(library, K)), K


@over_libraries
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("anchor", [0.5, "auto"])
def test_anchors_hold_as_they_do_with_numpy(anchor, n, library):
    (model, K), (expected, _) = (anchored(anchor, n, each) for each in (library, "numpy"))
    assert model.anchor_ == expected.anchor_
    assert model.set_aside_ == expected.set_aside_ == ("kernel 0",)
    assert_alike(model, expected)
    assert model.baseline_agreement_ == pytest.approx(expected.baseline_agreement_, abs=0.05)
    np.testing.assert_array_equal(model.predict(as_library(library, K)), model.labels_)
    np.testing.assert_array_equal(model.predict(K), model.labels_)


# New samples and storage -----------------------------------------------------------------------


@over_libraries
@over_inductive_methods
def test_predict_takes_kernels_of_any_place_whatever_the_model_was_fitted_on(name, library):
    n = 260
    theirs, ours = fitted(name, library, n), fitted(name, "numpy", n)
    K = as_library(library, list(kernels(n)))
    for model in (theirs, ours):
        np.testing.assert_array_equal(model.predict(K), model.labels_)
        np.testing.assert_array_equal(model.predict(kernels(n)), model.labels_)
        assert type(model.predict(K)) is np.ndarray
        assert place(model.transform(K)) == place(K[0])
        assert place(model.transform(kernels(n))) == "NumPy"
    np.testing.assert_allclose(
        projector(to_host(ours.transform(K))), projector(ours.embedding_), atol=1e-4
    )


@over_libraries
def test_new_samples_may_bring_their_own_similarity_in_the_same_library(library):
    K = unscaled(70)
    train, new = np.arange(60), np.arange(60, 70)
    known, cross = K[:, train][:, :, train], K[:, new][:, :, train]
    own = np.einsum("pii->pi", K)[:, new]
    model, expected = fit_both(SimpleMKKM, library, known, tol=1e-11)
    found = model.transform(as_library(library, list(cross)), as_library(library, own))
    np.testing.assert_allclose(
        projector(to_host(found)), projector(expected.transform(cross, own)), atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(cross, own), expected.predict(cross, own))


def foreign_parts(thing, path="model"):
    """Return the paths at which something holds arrays of other libraries than NumPy."""
    if is_foreign(thing):
        return [path]
    if isinstance(thing, dict):
        parts = thing.items()
    elif isinstance(thing, list | tuple | set):
        parts = enumerate(thing)
    elif type(thing).__module__.startswith("mkclust"):
        parts = vars(thing).items()
    else:
        return []
    return [found for key, part in parts for found in foreign_parts(part, f"{path}.{key}")]


@over_libraries
@over_methods
def test_a_stored_model_asks_for_no_device(name, library):
    n = 90
    model = fitted(name, library, n)
    assert foreign_parts(model)  # what this looks for is there before
    loaded = pickle.loads(pickle.dumps(model))
    assert foreign_parts(loaded) == []
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.embedding_, to_host(model.embedding_))
    np.testing.assert_allclose(
        loaded.mixed_kernel(kernels(n)), model.mixed_kernel(kernels(n)), atol=1e-10
    )
    if name in INDUCTIVE:
        np.testing.assert_array_equal(loaded.predict(kernels(n)), model.labels_)


# Nothing large comes to the host ---------------------------------------------------------------


@pytest.fixture
def arrivals(library, monkeypatch):
    """Return a list that fills with the shapes of all that comes to the host."""
    shapes = []
    if library == "strict":
        owner, door = np, "from_dlpack"
    elif library in ("torch", "cuda"):
        import torch

        owner, door = torch.Tensor, "numpy"
    else:
        pytest.skip("nothing can stand in the door of this library")
    original = getattr(owner, door)

    def counted(array, *args, **options):
        shapes.append(tuple(array.shape))
        return original(array, *args, **options)

    monkeypatch.setattr(owner, door, counted)
    return shapes


@over_libraries
@over_methods
def test_no_kernel_comes_to_the_host(name, library, arrivals):
    n = 260  # views are compared by up to 256 samples, on the host
    K = as_library(library, list(kernels(n)))
    model = METHODS[name](K_CLUSTERS, kernels="precomputed", random_state=0, n_init=1).fit(K)
    if name in INDUCTIVE:
        model.predict(K)
    # Rows for k-means, and small matrices that have nothing to do with samples.
    long = [shape for shape in arrivals if max(shape, default=1) >= n]
    assert long
    assert max(map(np.prod, long)) <= 2 * K_CLUSTERS * n


@over_libraries
def test_the_door_to_the_host_is_watched(library, arrivals):
    to_host(as_library(library, np.zeros((7, 11))))
    assert arrivals == [(7, 11)]


# What kernels may look like --------------------------------------------------------------------


@over_libraries
@pytest.mark.parametrize("form", ["array", "list", "dict"])
def test_kernels_come_in_one_array_a_list_or_a_dict(form, library):
    K, names = kernels(90), ["a", "b", "c"]
    given = {"array": K, "list": list(K), "dict": dict(zip(names, K, strict=True))}[form]
    given = as_library(library, given)
    model = SimpleMKKM(K_CLUSTERS, kernels="precomputed", random_state=0, tol=1e-12).fit(given)
    assert_alike(model, fitted("simplemkkm", "numpy", 90))
    assert list(model.kernel_names_) == (
        names if form == "dict" else [f"kernel {p}" for p in "012"]
    )
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    model.mixed_kernel(given, [0, 1])


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("settings", [{"center": False}, {"normalize": False}])
@over_methods
def test_kernels_need_be_neither_centered_nor_scaled(name, settings, library):
    assert_alike(*fit_both(METHODS[name], library, kernels(60), **settings), atol=1e-5)


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_indefinite_kernels_are_repaired_where_they_are(psd, n, library):
    model, expected = fit_both(AverageKKM, library, indefinite(n), psd=psd)
    assert_alike(model, expected)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    model, expected = fit_both(SimpleMKKM, library, indefinite(n), psd=psd, tol=1e-10)
    assert_alike(model, expected, atol=1e-4, subspace=1e-3)


@over_libraries
@over_methods
def test_one_kernel_and_one_cluster_are_enough(name, library):
    model, expected = fit_both(METHODS[name], library, kernels(60)[1:2])
    np.testing.assert_allclose(model.weights_, [1.0])
    assert_alike(model, expected)
    model, expected = fit_both(METHODS[name], library, kernels(60), n_clusters=1)
    assert_alike(model, expected, atol=1e-5)
    assert np.all(model.labels_ == 0)


@over_libraries
@over_methods
def test_almost_as_many_clusters_as_samples_are_possible(name, library):
    n = 12
    K = random_kernels(n, N_KERNELS, seed=3)
    model, expected = fit_both(METHODS[name], library, K, n_clusters=n - 1, n_init=1)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-4)
    assert tuple(model.embedding_.shape) == (n, n - 1)
    assert len(np.unique(model.labels_)) == n - 1


@over_libraries
def test_whole_numbers_become_double_precision(library):
    K = unscaled(60)
    expected = SimpleMKKM(K_CLUSTERS, random_state=0, tol=1e-11).fit(K)
    model = SimpleMKKM(K_CLUSTERS, random_state=0, tol=1e-11)
    assert_alike(model.fit(as_library(library, K.astype(np.int32))), expected)


# Torch's own ways ------------------------------------------------------------------------------

needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


@needs_torch
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_with_in_single(half):
    import torch

    K = np.clip(unscaled(60), -128, 128)  # what either kind can hold
    K = symmetrized(K + 200 * np.eye(60))
    theirs = torch.asarray(K).to(getattr(torch, half))
    exact = theirs.to(torch.float64).numpy()
    settings = {"n_clusters": K_CLUSTERS, "random_state": 0, "psd": "shift"}
    model = SimpleMKKM(**settings).fit(theirs)
    assert_alike(model, SimpleMKKM(**settings).fit(exact), atol=1e-3, subspace=1e-2)
    assert model.embedding_.dtype == torch.float64


@needs_torch
@pytest.mark.parametrize("name", ["simplemkkm", "lmkkm", "onkc", "lkam", "lf-mvc"])
def test_kernels_that_want_gradients_are_read_without(name):
    import torch

    K = torch.asarray(kernels(90)).clone().requires_grad_(True)
    model = METHODS[name](K_CLUSTERS, random_state=0, n_init=3).fit(K)
    assert not model.embedding_.requires_grad
    assert K.grad is None
    expected = METHODS[name](K_CLUSTERS, random_state=0, n_init=3).fit(kernels(90))
    assert_alike(model, expected, atol=1e-5)
    np.testing.assert_allclose(
        model.mixed_kernel(K, [0, 1]), expected.mixed_kernel(kernels(90), [0, 1]), atol=1e-5
    )


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize("name", ["simplemkkm", "lmkkm", "onkc", "lkam", "lf-mvc"])
@pytest.mark.parametrize("order", ["strided", "transposed", "kernels last"])
def test_the_order_of_memory_does_not_matter(order, name):
    import torch

    n = 90
    K = torch.asarray(kernels(n))
    if order == "strided":
        store = torch.full((N_KERNELS, 2 * n, 2 * n), torch.nan, dtype=torch.float64)
        given = store[:, ::2, 1::2]
        given[:] = K
    elif order == "transposed":
        given = K.transpose(1, 2)
    else:
        given = K.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert not given.is_contiguous()
    model = METHODS[name](K_CLUSTERS, random_state=0, n_init=3).fit(given)
    expected = METHODS[name](K_CLUSTERS, random_state=0, n_init=3).fit(kernels(n))
    assert_alike(model, expected)


# What is refused -------------------------------------------------------------------------------


@over_libraries
def test_kernels_of_two_places_are_refused_and_both_are_named(library):
    K = list(kernels(90))
    K[1] = as_library(library, K[1])
    both = re.escape(f"kernel 0 is an array of NumPy and kernel 1 one of {place(K[1])}")
    with pytest.raises(ValueError, match=both):
        SimpleMKKM(K_CLUSTERS, kernels="precomputed").fit(K)
    with pytest.raises(ValueError, match=both):
        fitted("simplemkkm", library, 90).predict(K)


@over_libraries
def test_what_is_no_number_is_found_with_the_usual_message(library):
    K = kernels(90).copy()
    K[1, 3, 4] = K[1, 4, 3] = np.nan
    K[1, 7, 7] = np.inf
    with pytest.raises(ValueError, match="kernel 1 .*2 entries are NaN and 1 infinite"):
        SimpleMKKM(K_CLUSTERS).fit(as_library(library, K))
    with pytest.raises(ValueError, match="kernel 1 .*2 entries are NaN and 1 infinite"):
        fitted("simplemkkm", library, 90).predict(as_library(library, list(K)))


@over_libraries
def test_what_is_no_kernel_is_refused(library):
    K = kernels(90).copy()
    K[2, 5, 6] += 0.1
    with pytest.raises(ValueError, match=r"kernel 2 is not symmetric.* 0\.1 "):
        SimpleMKKM(K_CLUSTERS).fit(as_library(library, K))
    with pytest.raises(ValueError, match="kernel 0 is indefinite.*psd='clip'"):
        SimpleMKKM(K_CLUSTERS).fit(as_library(library, indefinite(90)))
    with pytest.raises(ValueError, match=r"kernel 0 has the type .*complex128"):
        SimpleMKKM(K_CLUSTERS).fit(as_library(library, kernels(90) + 0j))
    wide = as_library(library, [kernels(90)[0], kernels(90)[1][:, :50]])
    with pytest.raises(ValueError, match="kernel 1 is not square"):
        SimpleMKKM(K_CLUSTERS, kernels="precomputed").fit(wide)


@over_libraries
def test_lmkkm_asks_the_device_for_room(library, monkeypatch):
    monkeypatch.setattr("mkclust.methods.lmkkm.free_bytes", lambda like: 100_000)
    stack = as_stack(as_library(library, kernels(90)))
    with pytest.raises(MemoryError, match="3 kernels of 90 samples, takes .* the device's memory"):
        solve_lmkkm(stack, K_CLUSTERS)


# The pieces ------------------------------------------------------------------------------------


@over_libraries
@pytest.mark.parametrize("count", [0, 4, 30])
def test_the_positive_part_of_a_matrix_is_that_of_numpy(count, library):
    M = np.random.default_rng(0).normal(size=(30, 30))
    M = M + M.T
    part, values, vectors = psd_part(as_library(library, M), count=count, likely_rank=2)
    expected, known, _ = psd_part(M.copy(), count=count)
    assert type(values) is np.ndarray
    assert place(part) == place(vectors) == place(as_library(library, M))
    np.testing.assert_allclose(values, known, atol=1e-12)
    np.testing.assert_allclose(to_host(part), expected, atol=1e-12)
    np.testing.assert_array_equal(to_host(part), to_host(part).T)
    V = to_host(vectors)
    np.testing.assert_allclose(M @ V, V * values, atol=1e-11)


@over_libraries
def test_the_polar_factor_of_a_thin_matrix_is_that_of_numpy(library):
    X = np.random.default_rng(1).normal(size=(50, 4))
    found = polar_factor(as_library(library, X))
    assert place(found) == place(as_library(library, X))
    np.testing.assert_allclose(to_host(found), polar_factor(X), atol=1e-13)


@over_libraries
@pytest.mark.parametrize("n", [1, 9, 10, 25])
def test_a_diagonal_is_written_square_by_square(n, library, monkeypatch):
    monkeypatch.setattr("mkclust.linalg.arrays.DIAGONAL_ROWS", 10)
    M = np.random.default_rng(0).normal(size=(n, n))
    for values in (-np.inf, np.arange(float(n))):
        found, expected = as_library(library, M.copy()), M.copy()
        set_diagonal(found, values if isinstance(values, float) else as_library(library, values))
        np.fill_diagonal(expected, values)
        np.testing.assert_array_equal(to_host(found), expected)


@over_libraries
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_samples_are_minimized_as_by_numpy(seed, library):
    rng = np.random.default_rng(seed)
    n, m = 25, 4
    X = rng.normal(size=(m, n, n)) / np.sqrt(n)
    Q = X @ X.transpose(0, 2, 1)
    bound = 1.01 * np.linalg.eigvalsh(Q)[:, -1] * np.ones((n, 1))
    start = rng.dirichlet(np.ones(m), size=n)
    theirs = as_library(library, Q)

    def product(x):
        xp = mkclust.linalg.namespace(x)
        return xp.stack([theirs[p, :, :] @ x[:, p] for p in range(m)], axis=1)

    found = minimize_over_rows(product, as_library(library, bound), as_library(library, start))
    expected = minimize_over_rows(lambda x: np.einsum("pij,jp->ip", Q, x), bound, start)
    assert found.converged
    assert place(found.point) == place(theirs)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(to_host(found.point), expected.point, atol=1e-4)


@over_libraries
def test_a_solver_leaves_its_solution_where_the_kernels_are(library):
    K = as_library(library, kernels(90))
    stack = as_stack(K)
    for method in (MKKM, LMKKM, ONKC, LFMVC):
        solution = method(K_CLUSTERS)._solve(stack)
        assert place(solution.partition) == place(K)
        for field in dataclasses.fields(solution):
            part = getattr(solution, field.name)
            if field.name in ("weights", "history", "coefficients", "sample_weights"):
                assert not is_foreign(part), field.name
            if field.name == "kernel" and part is not None:
                assert place(part) == place(K)
        assert all(place(P) == place(K) for P in solution.projections or [])


# Around a model ------------------------------------------------------------------------------


@pytest.fixture
def no_silent_copies(library, monkeypatch):
    """Let tensors of the host refuse to become NumPy's unasked, as those of a device do."""
    if library == "torch":
        import torch

        def refuse(*args, **options):
            raise TypeError("a tensor of a device does not become a NumPy array by itself")

        monkeypatch.setattr(torch.Tensor, "__array__", refuse)


@functools.cache
def views(n=90):
    """Return three views of the same clusters, and one of noise."""
    rng = np.random.default_rng(0)
    places = 4 * np.eye(K_CLUSTERS, 4)[np.arange(n) % K_CLUSTERS]
    shared = {name: places + rng.normal(size=(n, 4)) for name in "abc"}
    return shared | {"noise": rng.normal(size=(n, 5))}


FORMS = {
    "kernels": {},
    "views": {},
    "on the fly": {"kernels": "on-the-fly"},
    "features": {"approximation": Nystroem(20)},
    "uncentered features": {"approximation": Nystroem(20), "center": False},
}
over_forms = pytest.mark.parametrize("form", FORMS)


def samples(form):
    """Return what a model of a form is fitted on, by NumPy."""
    if form != "kernels":
        return views()
    X = np.random.default_rng(3).normal(size=(90, 30))
    return np.concatenate([kernels(90), [X @ X.T]])


@functools.cache
def model_of(form, library):
    """Return a model fitted on one of the forms."""
    model = SimpleMKKM(K_CLUSTERS, random_state=0, n_init=2, **FORMS[form])
    return model.fit(as_library(library, samples(form)))


@functools.cache
def diagnosis_by_numpy(form):
    """Return what NumPy says of its own model, for all libraries."""
    return diagnose(model_of(form, "numpy"), samples(form))


@pytest.mark.slow
@over_libraries
@over_forms
def test_a_diagnosis_says_the_same_of_a_model_fitted_elsewhere(form, library, no_silent_copies):
    expected = diagnosis_by_numpy(form)
    assert len(expected.noise) == 1
    model, theirs = model_of(form, library), as_library(library, samples(form))
    for X in (theirs, samples(form)):
        found = diagnose(model, X)
        assert found.noise == expected.noise
        for name in ("top_share", "cluster_gap", "redundancy", "agreement", "leave_one_out"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), atol=1e-5, err_msg=name
            )


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("max_diagnosed", [1e8, 3 * 60**2])
@pytest.mark.parametrize("form", ["kernels", "views", "features"])
def test_a_report_says_the_same_wherever_the_model_was_fitted(
    form, max_diagnosed, library, no_silent_copies
):
    y, options = np.arange(90) % K_CLUSTERS, {"n_resamples": 2, "max_diagnosed": max_diagnosed}
    expected = collect(model_of(form, "numpy"), samples(form), y, **options)
    X, theirs = as_library(library, samples(form)), as_library(library, y)
    found = collect(model_of(form, library), X, theirs, **options)
    np.testing.assert_array_equal(found.y, y)
    np.testing.assert_allclose(found.scores.silhouette, expected.scores.silhouette, atol=1e-3)
    np.testing.assert_allclose(found.diagnosis.agreement, expected.diagnosis.agreement)
    np.testing.assert_allclose(found.stability.samples, expected.stability.samples)
    assert found.n_diagnosed == expected.n_diagnosed
    assert found.diagnosed_ari == pytest.approx(expected.diagnosed_ari)


@pytest.mark.slow
@over_libraries
def test_a_report_is_written_of_a_model_fitted_elsewhere(library, no_silent_copies):
    pytest.importorskip("jinja2")
    page = report_html(model_of("views", library), as_library(library, views()), n_resamples=2)
    assert page.startswith("<!DOCTYPE html>")
    assert "looks like noise" in page


@pytest.mark.slow
@over_libraries
@over_forms
def test_every_picture_can_be_drawn(form, library, no_silent_copies):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    expected, ours = model_of(form, "numpy"), model_of(form, library)
    X = as_library(library, samples(form))
    shown = EmbeddingDisplay.from_estimator(ours, max_samples=50)
    known = EmbeddingDisplay.from_estimator(expected, max_samples=50)
    np.testing.assert_allclose(projector(shown.embedding), projector(known.embedding), atol=1e-4)
    assert 45 <= len(shown.embedding) <= 50
    mixed = SortedKernelDisplay.from_estimator(ours, X, max_samples=40)
    known = SortedKernelDisplay.from_estimator(expected, samples(form), max_samples=40)
    np.testing.assert_allclose(mixed.kernel, known.kernel, atol=1e-4)
    weights = KernelWeightsDisplay.from_estimator(ours)
    np.testing.assert_allclose(weights.weights, expected.weights_, atol=1e-4)
    history = ConvergenceDisplay.from_estimator(ours).history
    assert history[-1] == pytest.approx(expected.objective_, rel=1e-4)
    page = plot_fit(ours, as_library(library, np.arange(90) % K_CLUSTERS))
    assert {ax.get_title(loc="left").split()[0] for ax in page.axes} >= {"Embedding", "Share"}
    again = EmbeddingDisplay(embedding=ours.embedding_, labels=as_library(library, ours.labels_))
    assert again.plot().ax_ is not None
    matplotlib.pyplot.close("all")


@functools.cache
def suggested(form, library):
    """Return how many clusters the samples of a form are said to have."""
    X = samples(form)["a"] if form == "table" else samples(form)
    options = {"n_draws": 49, "n_resamples": 3, "most_samples": 80}
    return suggest_n_clusters(as_library(library, X), [2, 3, 4], **options)


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("form", ["kernels", "views", "table"])
def test_a_number_of_clusters_is_suggested_from_arrays_of_any_place(
    form, library, no_silent_copies
):
    found, expected = suggested(form, library), suggested(form, "numpy")
    assert found.n_clusters == expected.n_clusters == K_CLUSTERS
    np.testing.assert_allclose(found.silhouettes, expected.silhouettes, atol=1e-6)
    np.testing.assert_allclose(found.p_cloud, expected.p_cloud)


@pytest.mark.slow
@over_libraries
@over_forms
def test_resamples_are_taken_where_the_samples_live(form, library, no_silent_copies):
    expected = resample(model_of(form, "numpy"), samples(form), n_resamples=3)
    X = as_library(library, samples(form))
    found = resample(model_of(form, library), X, n_resamples=3)
    np.testing.assert_allclose(found.samples, expected.samples)
    np.testing.assert_allclose(found.agreements, expected.agreements)


@pytest.mark.slow
@over_libraries
@pytest.mark.parametrize("form", ["kernels", "views", "on the fly"])
def test_errors_of_samples_and_their_bound_are_numpys(form, library, no_silent_copies):
    ours, expected = model_of(form, library), model_of(form, "numpy")
    found = alignment_errors(ours, as_library(library, samples(form)))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, alignment_errors(expected, samples(form)), atol=1e-4)
    assert generalization_bound(ours) == pytest.approx(generalization_bound(expected), abs=1e-4)


@over_libraries
def test_landmarks_are_drawn_anew_where_the_views_live(library, no_silent_copies):
    model = AverageKKM(K_CLUSTERS, approximation=Nystroem(15), random_state=0, n_init=2)
    found = landmark_stability(model, as_library(library, views()), n_draws=3)
    expected = landmark_stability(model, views(), n_draws=3)
    np.testing.assert_allclose(found.agreements, expected.agreements)
    np.testing.assert_allclose(found.approximation_errors, expected.approximation_errors, atol=1e-6)


# The way there ---------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("form", ["array", "list", "tuple", "dict", "table", "rows"])
def test_what_goes_to_a_device_keeps_its_form(form, library):
    K, table = kernels(12), np.arange(12.0).reshape(4, 3)
    given = {
        "array": K,
        "list": list(K),
        "tuple": tuple(K),
        "dict": dict(zip([1, "b", "c"], K, strict=True)),
        "table": table,
        "rows": table.tolist(),
    }[form]
    like = as_library(library, np.zeros(1))
    moved = to_device(given, like=like)
    if form in ("array", "table", "rows"):
        parts, expected = [moved], [np.asarray(given)]
    else:
        assert type(moved) is type(given)
        parts, expected = (list(getattr(x, "values", lambda x=x: x)()) for x in (moved, given))
    if form == "dict":
        assert list(moved) == [1, "b", "c"]
    for part, known in zip(parts, expected, strict=True):
        assert place(part) == place(like)
        np.testing.assert_array_equal(to_host(part, None), known)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool", ">f8"])
def test_the_type_of_numbers_is_kept_unless_another_is_asked_for(dtype, library):
    X = {"a": np.ones((5, 2), dtype), "b": np.ones((5, 3))}
    like = as_library(library, np.zeros(1))
    kept, single = to_device(X, like=like), to_device(X, like=like, dtype=np.float32)
    assert to_host(kept["a"], None).dtype.name == np.dtype(dtype).name
    assert to_host(kept["b"], None).dtype == np.float64
    assert {to_host(part, None).dtype.name for part in single.values()} == {"float32"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_files_go_there_some_rows_at_a_time(library, tmp_path, monkeypatch):
    monkeypatch.setattr("mkclust.samples.devices.COPIED_BYTES", 3 * 20 * 4)
    K = kernels(20).astype(np.float32)
    np.save(tmp_path / "kernels.npy", K)
    stored = np.load(tmp_path / "kernels.npy", mmap_mode="r")
    like = as_library(library, np.zeros(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of memory that cannot be written to
        moved = to_device(stored, like=like)
        several = to_device(list(stored), like=like, dtype="float64")
    np.testing.assert_array_equal(to_host(moved, None), K)
    assert moved.dtype == as_library(library, K[:0]).dtype
    np.testing.assert_array_equal(to_host(several[2]), K[2])


@over_libraries
def test_it_is_a_copy_and_the_way_back_is_the_same(library):
    K = kernels(20).copy()
    there = to_device(K, like=as_library(library, np.zeros(1)))
    K[:] = 0
    back = to_device(there, like=np.zeros(1))
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, kernels(20))
    assert to_device(there, like=there) is there
    assert place(to_device([there], like=there, dtype="float32")[0]) == place(there)


@over_libraries
def test_what_does_not_fit_is_refused_before_anything_is_copied(library, monkeypatch):
    like, K = as_library(library, np.zeros(1)), kernels(90)
    needed = int(K.nbytes * (1 + 1 / 3 + 0.1))  # a mix of three kernels beside them, and a tenth

    def there_are(free):
        monkeypatch.setattr("mkclust.samples.devices.free_bytes", lambda like: free)

    def nothing(*args):
        raise AssertionError("something was copied")

    there_are(needed - 1)
    with monkeypatch.context() as context:
        context.setattr("mkclust.samples.devices._copy", nothing)
        message = "3 kernels of 90 samples to .* takes .* MiB of the device's memory, and .*"
        for given in (K, dict(enumerate(K))):
            with pytest.raises(MemoryError, match=message + "dtype='float32'.*on-the-fly"):
                to_device(given, like=like)
    assert place(to_device(K, like=like, dtype="float32")) == place(like)
    there_are(needed)
    assert place(to_device(list(K), like=like)[0]) == place(like)
    # Of whole numbers a fit makes another copy, in double precision.
    with pytest.raises(MemoryError, match="3 kernels"):
        to_device(K.astype(np.int32), like=like)
    # What is there already takes nothing, and views need no room for a mix.
    there_are(0)
    assert to_device(like[None, :], like=like) is not None
    tall = {"a": np.zeros((300, 4)), "b": np.zeros((300, 5))}
    there_are(300 * 9 * 8)
    assert set(to_device(tall, like=like)) == {"a", "b"}
    there_are(300 * 9 * 8 - 1)
    with pytest.raises(MemoryError, match="copying 2 views to .* fewer columns"):
        to_device(tall, like=like)


def test_the_host_is_asked_for_room_too(monkeypatch):
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match="3 kernels of 90 samples to NumPy .* of memory, and"):
        to_device(kernels(90), like=np.zeros(1), dtype="float32")


@over_libraries
def test_a_copy_that_fails_halfway_leaves_nothing_there(library, monkeypatch):
    made, original = [], mkclust.samples.devices.empty

    class Broken:
        shape, dtype = (20, 20), np.dtype(np.float64)

        def __getitem__(self, rows):
            raise OSError("the file is gone")

    def watched(*args):
        array = original(*args)
        made.append(weakref.ref(array))
        return array

    monkeypatch.setattr("mkclust.samples.devices.empty", watched)
    with pytest.raises(OSError, match="the file is gone") as caught:
        to_device([kernels(20)[0], Broken()], like=as_library(library, np.zeros(1)))
    gc.collect()
    assert caught.tb is not None  # the error is still there to be read
    assert [reference() for reference in made] == [None, None]


@needs_torch
def test_a_device_is_named_as_torch_names_it():
    import torch

    K = kernels(20)
    for device in ("cpu", torch.device("cpu")):
        moved = to_device(K, device, dtype=torch.float32)
        assert moved.dtype == torch.float32
        assert moved.device.type == "cpu"
    for device in ("gpu", "cuda:77"):
        with pytest.raises(ValueError, match=f"device='{device}' cannot be used by torch"):
            to_device(K, device)
    half = torch.asarray(K).to(torch.bfloat16)
    assert to_device(half, "cpu") is half
    with pytest.raises(ValueError, match="bfloat16, which cannot be brought to NumPy"):
        to_device(half, like=K)
    assert to_device(half, like=K, dtype="float32").dtype == np.float32


def test_without_torch_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        to_device(kernels(20), "cuda")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([scipy.sparse.eye(4).tocsr(), np.eye(4)], r"'view 0' is a sparse matrix.*toarray"),
        ({"a": np.array([["x", "y"], ["z", "w"]])}, "'a' has the type <U1"),
        ([], "X is an empty list"),
        (np.arange(4.0), r"X has the shape \(4,\)"),
        (np.ma.masked_less(np.eye(3), 0.5), "X has 6 masked entries"),
    ],
)
def test_what_cannot_go_to_a_device_is_refused(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        to_device(X, like=np.zeros(1))


def test_a_place_is_told_once_and_types_are_those_that_are_computed_with():
    with pytest.raises(ValueError, match="pass one of the two"):
        to_device(kernels(20))
    with pytest.raises(ValueError, match="pass one of the two"):
        to_device(kernels(20), "cpu", like=np.zeros(1))
    with pytest.raises(ValueError, match="dtype='float16': pass 'float32', 'float64'"):
        to_device(kernels(20), like=np.zeros(1), dtype="float16")


@needs_torch
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_are_told_apart():
    import torch

    dense = torch.asarray(kernels(20)[0])
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        with pytest.raises(ValueError, match=r"kernel 1 is a sparse tensor.*to_dense\(\)"):
            as_stack([dense, sparse])
        with pytest.raises(TypeError, match=r"'view 1' is a sparse matrix.*to_dense\(\)"):
            to_device([dense, sparse], "cpu")


# Smallest eigenvalues that many others are close to ---------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("n", [150, 260])
def test_a_shift_is_enough_where_many_eigenvalues_are_the_smallest(n, library):
    K = kernels(n)[0] - 0.3 * np.linalg.norm(kernels(n)[0], 2) * np.eye(n)[::-1]
    shifted = as_stack(as_library(library, K[None]), psd="shift", normalize=False).kernels[0]
    values = np.linalg.eigvalsh(to_host(shifted.rows(slice(None))))
    assert values[0] >= -1e-10 * values[-1]
    assert values[0] <= 5e-3 * values[-1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_traces_are_asked_for_once(library):
    stack, asked = as_stack(as_library(library, kernels(90))), []

    class Counted:
        def __getattr__(self, name):
            asked.append(name)
            return getattr(stack, name)

    mixture = Mixture(Counted(), K_CLUSTERS)
    for _ in range(3):
        mixture.unexplained(mixture.relax(mixture.uniform))
    assert asked.count("traces") == 1


@over_libraries
def test_features_ask_the_device_for_room(library, monkeypatch):
    monkeypatch.setattr("mkclust.methods.memory_checks.free_bytes", lambda like: 1000)
    model = SimpleMKKM(K_CLUSTERS, approximation=Nystroem(20))
    with pytest.raises(MemoryError, match="embedding of 90 samples .* the device's memory"):
        model.fit(as_library(library, views()))
