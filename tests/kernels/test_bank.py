import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import (
    cosine_similarity,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)
from sklearn.pipeline import make_pipeline

from mkclust.kernels import KernelBank
from mkclust.kernels.formulas import LINEAR
from mkclust.samples import distances

pytestmark = pytest.mark.slow


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def views(rng):
    # More rows than one block, so that the seams between blocks are tested too.
    return {"pixels": rng.normal(size=(300, 4)) + 2, "words": rng.exponential(size=(300, 9))}


def bank_by_scikit_learn(X, Y, widths, polynomials, linear):
    """Compute the kernels of rows X against training rows Y by another road."""
    median, scale = np.median(pdist(Y)), np.mean(np.sum(Y**2, axis=1))
    yield from (rbf_kernel(X, Y, gamma=0.5 / (width * median) ** 2) for width in widths)
    for offset, degree in polynomials:
        yield polynomial_kernel(X, Y, gamma=1 / scale, coef0=offset, degree=degree)
    if linear is not None:
        yield linear_kernel(X, Y) / scale if linear == "linear" else cosine_similarity(X, Y)


@pytest.mark.parametrize("linear", ["linear", "cosine", None])
def test_kernels_equal_those_of_scikit_learn(views, rng, linear):
    bank = KernelBank(linear=linear).fit(views)
    new = {name: rng.normal(size=(270, view.shape[1])) for name, view in views.items()}
    for X in (views, new):
        expected = [
            kernel
            for name in views
            for kernel in bank_by_scikit_learn(
                X[name], views[name], bank.widths, bank.polynomials, linear
            )
        ]
        np.testing.assert_allclose(bank.transform(X), expected, rtol=1e-10, atol=1e-12)


def test_the_bank_learns_median_distances_and_mean_squared_norms(views):
    bank = KernelBank().fit(views)
    for name, view in views.items():
        assert bank.medians_[name] == pytest.approx(np.median(pdist(view)), rel=1e-12)
        assert bank.scales_[name] == pytest.approx(np.mean(np.sum(view**2, axis=1)), rel=1e-12)
        np.testing.assert_array_equal(bank.views_[name], view)
        assert not np.shares_memory(bank.views_[name], view)
    assert bank.n_features_in_ == 13
    assert KernelBank(widths=()).fit(views).medians_ == {}


@pytest.mark.parametrize("n_samples", [2, 3, 4, 255, 256, 257, 513])
def test_any_number_of_rows_fits_the_blocks(rng, n_samples):
    X = rng.normal(size=(n_samples, 3))
    bank = KernelBank()
    expected = list(bank_by_scikit_learn(X, X, bank.widths, bank.polynomials, bank.linear))
    np.testing.assert_allclose(bank.fit_transform(X), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("linear", LINEAR)
def test_kernels_of_the_training_views_are_symmetric_to_the_last_bit(views, dtype, linear):
    views = {name: view.astype(dtype) for name, view in views.items()}
    bank = KernelBank(linear=linear)
    kernels = bank.fit_transform(views)
    copies = {name: view.copy() for name, view in reversed(views.items())}
    for again in (bank.transform(views), bank.transform(copies)):
        np.testing.assert_allclose(again, kernels, rtol=100 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(kernels, kernels.transpose(0, 2, 1))
    diagonals = np.diagonal(kernels, axis1=1, axis2=2)
    np.testing.assert_allclose(
        diagonals, bank.self_similarity(views), rtol=100 * np.finfo(dtype).eps
    )
    unit = [p for p, name in enumerate(bank.kernel_names_) if "gauss" in name or "cos" in name]
    assert np.all(diagonals[unit] == 1)


def test_kernels_are_positive_semi_definite(views):
    for kernel in KernelBank(linear="cosine").fit_transform(views):
        eigenvalues = np.linalg.eigvalsh(kernel)
        assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


def test_rows_of_a_subset_are_rows_of_the_whole(views):
    bank = KernelBank().fit(views)
    rows = np.array([5, 280, 17])
    part = {name: view[rows] for name, view in views.items()}
    np.testing.assert_allclose(
        bank.transform(part), bank.transform(views)[:, rows], rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(
        bank.self_similarity(part), bank.self_similarity(views)[:, rows], rtol=1e-12, atol=1e-12
    )


def test_self_similarity_is_the_kernel_of_a_row_with_itself(views, rng):
    new = {name: rng.normal(size=(6, view.shape[1])) for name, view in views.items()}
    new["words"][2] = 0
    bank = KernelBank(linear="cosine").fit(views)
    # A bank that has the new rows among its training rows, with the learned scales put back.
    joint = KernelBank(linear="cosine").fit(
        {name: np.vstack([new[name], view]) for name, view in views.items()}
    )
    joint.medians_, joint.scales_ = bank.medians_, bank.scales_
    expected = np.diagonal(joint.transform(new)[:, :, :6], axis1=1, axis2=2)
    np.testing.assert_allclose(bank.self_similarity(new), expected, rtol=1e-12)
    assert bank.self_similarity(new)[-1, 2] == 0


def test_memory_is_that_of_the_result_and_little_more(rng):
    X = rng.normal(size=(1200, 3))
    bank = KernelBank().fit(X)
    for new in (X, X[:1100] + 1):
        tracemalloc.start()
        kernels = bank.transform(new)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < kernels.nbytes + kernels[0].nbytes


def test_single_precision_views_give_accurate_single_precision_kernels(views):
    single = {name: view.astype(np.float32) for name, view in views.items()}
    double = {name: view.astype(np.float64) for name, view in single.items()}
    for linear in ("linear", "cosine"):
        bank = KernelBank(linear=linear)
        kernels = bank.fit_transform(single)
        assert kernels.dtype == np.float32
        assert bank.self_similarity(single).dtype == np.float32
        assert bank.transform({name: view[:2] for name, view in single.items()}).dtype == np.float32
        expected = KernelBank(linear=linear).fit_transform(double)
        np.testing.assert_allclose(kernels, expected, rtol=3e-6, atol=1e-6)
    mixed = {"pixels": single["pixels"], "words": double["words"]}
    assert KernelBank().fit_transform(mixed).dtype == np.float64


@given(st.integers(0, 1000), st.floats(-1e4, 1e4))
def test_shifting_a_view_leaves_gaussian_kernels_as_they_were(seed, shift):
    X = np.random.default_rng(seed).normal(size=(20, 3))
    bank = KernelBank(polynomials=(), linear=None)
    shifted = bank.fit_transform(X + shift)
    np.testing.assert_allclose(shifted, bank.fit_transform(X), rtol=1e-6, atol=1e-9)


@given(st.integers(0, 1000), st.floats(1e-6, 1e6) | st.just(10.0))
def test_scaling_a_view_leaves_the_whole_bank_as_it_was(seed, factor):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(4, 3))
    bank, scaled = KernelBank().fit(X), KernelBank().fit(factor * X)
    for Z in (X, new):
        np.testing.assert_allclose(
            scaled.transform(factor * Z), bank.transform(Z), rtol=1e-10, atol=1e-10
        )


def test_the_median_of_many_rows_is_taken_over_a_seeded_subset(rng, monkeypatch):
    X = rng.normal(size=(900, 2))
    exact = KernelBank().fit(X).medians_["table"]
    monkeypatch.setattr(distances, "MEDIAN_ROWS", 600)
    first, second = (KernelBank().fit(X).medians_["table"] for _ in range(2))
    assert first == second != exact
    assert first == pytest.approx(exact, rel=0.05)


def test_a_majority_of_identical_rows_falls_back_to_the_mean_of_the_other_distances(rng):
    X = np.full((20, 3), 0.1) + 1e5
    X[:3] += rng.normal(size=(3, 3))
    distances = pdist(X)
    assert np.median(distances) == 0
    bank = KernelBank().fit(X)
    assert bank.medians_["table"] == pytest.approx(distances[distances > 0].mean(), rel=1e-9)
    assert np.all(bank.transform(X)[:7, 5:, 5:] == 1)


def test_a_far_outlier_costs_the_other_rows_no_accuracy(rng):
    X = rng.normal(size=(50, 3))
    X[0] = 1e8
    bank = KernelBank(polynomials=(), linear=None)
    median = np.median(pdist(X))
    expected = [np.exp(-(pdist(X[1:]) ** 2) / (2 * (w * median) ** 2)) for w in bank.widths]
    above = np.triu_indices(49, k=1)
    actual = bank.fit_transform(X)[:, 1:, 1:][:, above[0], above[1]]
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_kernels_are_named_after_their_view_and_kind(views):
    X = views["pixels"]
    kinds = [f"gaussian x{width}" for width in ("0.125", "0.25", "0.5", "1", "2", "4", "8")]
    kinds += [f"polynomial {base} ^{degree}" for base in ("xy", "1+xy") for degree in (2, 4)]
    kinds += ["linear"]
    assert KernelBank().fit(X).kernel_names_ == tuple(kinds)
    assert KernelBank().fit(views).kernel_names_ == tuple(
        f"{view} {kind}" for view in views for kind in kinds
    )
    one = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    assert one.fit(views).kernel_names_ == ("pixels", "words")
    assert one.fit([X, X]).kernel_names_ == ("view 0", "view 1")
    assert one.fit(X).kernel_names_ == ("table",)
    names = KernelBank(widths=[], polynomials=[(0.5, 3)], linear="cosine").fit([X]).kernel_names_
    assert names == ("view 0 polynomial 0.5+xy ^3", "view 0 cosine")


def test_parameters_may_be_arrays(views):
    listed = KernelBank(widths=[0.5, 2], polynomials=[[1, 3]])
    arrays = KernelBank(widths=np.array([0.5, 2]), polynomials=np.array([[1, 3]]))
    np.testing.assert_allclose(
        listed.fit_transform(views), arrays.fit_transform(views), rtol=1e-12, atol=1e-12
    )


def test_transform_matches_new_views_by_name(views):
    bank = KernelBank().fit(views)
    shuffled = {name: views[name][:4] for name in reversed(views)}
    ordered = {name: views[name][:4] for name in views}
    np.testing.assert_allclose(
        bank.transform(shuffled), bank.transform(ordered), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("method", ["transform", "self_similarity"])
def test_new_views_unlike_the_training_views_are_refused(views, method):
    def use(X_train, X_new):
        getattr(KernelBank().fit(X_train), method)(X_new)

    pixels, words = views.values()
    with pytest.raises(ValueError, match=r"2 views \('pixels', 'words'\), but found 1 view \('p"):
        use(views, {"pixels": pixels})
    with pytest.raises(ValueError, match=r"found 2 views \('view 0', 'view 1'\)"):
        use(views, [pixels, words])
    with pytest.raises(ValueError, match=r"fitted on one table, but found 2 views"):
        use(pixels, [pixels, words])
    with pytest.raises(ValueError, match="View 'words' has 4 columns, but 9 when"):
        use(views, {"pixels": pixels, "words": pixels})
    # The very words that scikit-learn's checks of estimators look for.
    message = "X has 9 features, but KernelBank is expecting 4 features as input"
    with pytest.raises(ValueError, match=message):
        use(pixels, words)
    with pytest.raises(NotFittedError):
        getattr(KernelBank(), method)(views)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"widths": (1.0, 0.0)}, "widths must be positive numbers.*found 0.0"),
        ({"widths": (-1,)}, "widths must be positive numbers.*found -1"),
        ({"widths": (np.inf,)}, "widths must be positive numbers.*found inf"),
        ({"widths": (np.nan,)}, "widths must be positive numbers.*found nan"),
        ({"widths": ("1",)}, "widths must be positive numbers.*found '1'"),
        ({"widths": (True,)}, "widths must be positive numbers.*found True"),
        ({"widths": 1.0}, "widths must be a sequence.*found 1.0"),
        ({"polynomials": 2}, "polynomials must be a sequence.*found 2"),
        ({"polynomials": (0, 2)}, "polynomials must be pairs.*found 0"),
        ({"polynomials": ((0, 2), (1,))}, r"polynomials must be pairs.*found \(1,\)"),
        ({"polynomials": ((-1, 2),)}, r"the offset -1 in \(-1, 2\)"),
        ({"polynomials": ((1, 0),)}, r"the degree 0 in \(1, 0\)"),
        ({"polynomials": ((1, 2.5),)}, r"the degree 2.5 in \(1, 2.5\)"),
        ({"polynomials": ((1, True),)}, r"the degree True in \(1, True\)"),
        ({"linear": "quadratic"}, "linear must be 'linear', 'cosine'.* or None; found 'quadratic'"),
        ({"linear": True}, "linear must be 'linear', 'cosine'.* or None; found True"),
        ({"widths": (), "polynomials": (), "linear": None}, "leaves no kernel"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(views, parameters, message):
    bank = KernelBank(**parameters)
    with pytest.raises(ValueError, match=message):
        bank.fit(views)
    with pytest.raises(NotFittedError):
        bank.transform(views)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": np.full((5, 2), 0.1), "b": np.eye(5)}, "rows looked at in view 'a' are identical"),
        ({"b": np.eye(5), "a": np.zeros((5, 2))}, "view 'a' are zero"),
        ({"b": np.eye(5), "a": 1e200 * np.eye(5)}, "view 'a' are too large"),
        (np.ones((1, 4)), "n_samples=1"),
        ([np.ones((1, 4)), np.ones((1, 2))], "n_samples=1"),
    ],
)
def test_views_without_a_typical_distance_are_refused(X, message):
    bank = KernelBank()
    with pytest.raises(ValueError, match=message):
        bank.fit(X)
    with pytest.raises(NotFittedError):
        bank.transform(X)


def test_identical_rows_are_no_obstacle_without_gaussian_kernels():
    np.testing.assert_allclose(KernelBank(widths=()).fit_transform(np.ones((3, 2)))[-1], 1)


def test_the_bank_survives_cloning_pickling_and_display(views):
    bank = KernelBank(widths=[1.0], linear="cosine").fit(views)
    assert clone(bank).get_params() == bank.get_params()
    assert not hasattr(clone(bank), "views_")
    restored = pickle.loads(pickle.dumps(bank))
    np.testing.assert_allclose(
        restored.transform(views), bank.transform(views), rtol=1e-12, atol=1e-12
    )
    for either in (bank, KernelBank()):
        assert "KernelBank" in either._repr_html_()
        assert "KernelBank" in repr(either)


def test_fitting_and_transforming_leave_the_views_alone(views):
    copies = {name: view.copy() for name, view in views.items()}
    bank = KernelBank(linear="cosine").fit(views)
    bank.transform(views)
    bank.transform({name: view[:3] for name, view in views.items()})
    for name, view in views.items():
        np.testing.assert_array_equal(view, copies[name])


class SignClusterer(ClusterMixin, BaseEstimator):
    """Split samples by the sign of the second eigenvector of the mean kernel."""

    def fit(self, K, y=None):
        _, vectors = np.linalg.eigh(np.mean(K, axis=0))
        self.labels_ = (vectors[:, -2] > 0).astype(int)
        self.shape_ = K.shape
        return self

    def predict(self, K):
        return self.labels_[np.argmax(np.mean(K, axis=0), axis=1)]


def test_the_bank_feeds_a_clusterer_in_a_pipeline(rng):
    X = np.vstack([rng.normal(size=(10, 2)), rng.normal(size=(15, 2)) + 20])
    pipeline = make_pipeline(
        KernelBank(widths=(1.0,), polynomials=(), linear=None), SignClusterer()
    )
    labels = pipeline.fit_predict([X, -X])
    assert pipeline[-1].shape_ == (2, 25, 25)
    assert set(labels[:10]) != set(labels[10:])
    assert len(set(labels[:10])) == len(set(labels[10:])) == 1
    np.testing.assert_array_equal(pipeline.predict([X[8:12] + 0.01, -X[8:12]]), labels[8:12])
