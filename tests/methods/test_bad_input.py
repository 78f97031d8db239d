import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mkclust import KernelBank, SimpleMKKM
from mkclust.kernels import Nystroem

N = 30
pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")


def sound_kernels(n=N, m=3, seed=0):
    """Return Gram matrices of full rank with diagonals that vary."""
    X = np.random.default_rng(seed).normal(size=(m, n, n + 5))
    return [x @ x.T / n for x in X]


def gaussian_kernels(n=N, m=3, seed=0):
    """Return Gaussian kernels, whose diagonals are one."""
    rng = np.random.default_rng(seed)
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    return bank.fit_transform([rng.normal(size=(n, 4)) for _ in range(m)])


def spectral(values, seed=0):
    """Return a matrix with the given eigenvalues and nearly constant diagonal."""
    n = len(values)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


def fit_kernels(kernels, **options):
    return SimpleMKKM(3, kernels="precomputed", random_state=0, **options).fit(kernels)


def with_entries(K, *entries):
    """Return a copy with some entries, and those mirrored at the diagonal, replaced."""
    K = np.array(K)
    for i, j, value in entries:
        K[i, j] = K[j, i] = value
    return K


def hidden_negative(n=100):
    """Return a kernel with one eigenvalue of -0.05 among positive ones up to one."""
    K = spectral(np.append(np.linspace(0.05, 1, n - 1), -0.05))
    assert np.diag(K).min() > 0
    return K


K0 = sound_kernels()[1]
# One feature whose mean is zero, which is where the first and the last sample are.
MIRRORED = np.concatenate([[0.0], np.arange(1, 15), -np.arange(1, 15), [0.0]])
ASYMMETRIC = K0 + 0.25 * np.eye(N, k=3)
BAD_KERNELS = {
    "NaN": (with_entries(K0, (1, 2, np.nan), (4, 4, np.nan)), {}, "3 entries are NaN"),
    "infinity": (with_entries(K0, (0, 2, np.inf), (1, 3, -np.inf)), {}, "NaN and 4 infinite"),
    "sparse NaN": (sp.csr_array(with_entries(K0, (1, 2, np.nan))), {}, "2 entries are NaN"),
    "float32 NaN": (with_entries(K0, (1, 2, np.nan)).astype(np.float32), {}, "2 entries are NaN"),
    "not square": (K0[:, :-1], {}, r"not square.*\(30, 29\)"),
    "one-dimensional": (K0[0], {}, r"shape \(30,\)"),
    "three-dimensional": (K0[None], {}, r"shape \(1, 30, 30\)"),
    "other size": (K0[:-1, :-1], {}, "kernel 0.*30 samples.*has 29"),
    "not symmetric": (ASYMMETRIC, {}, r"not symmetric.*0\.25.*\(K \+ K\.T\) / 2"),
    "sparse not symmetric": (sp.csc_matrix(ASYMMETRIC), {}, r"not symmetric.*0\.25"),
    "negative diagonal": (with_entries(K0, (3, 3, -2.0)), {}, "psd='clip'.*psd='shift'"),
    "negative definite": (-K0, {}, "psd='clip'"),
    "constant": (np.full((N, N), 3.7), {}, "constant"),
    "constant to rounding": (np.full((N, N), 0.1) + 1e-17 * np.eye(N), {}, "constant"),
    "constant float32": (np.full((N, N), 0.1, dtype=np.float32), {}, "constant"),
    "sparse constant": (sp.csr_array(np.ones((N, N))), {}, "constant"),
    "zero": (np.zeros((N, N)), {}, "zero"),
    "zero uncentered": (np.zeros((N, N)), {"center": False, "normalize": False}, "zero"),
    "sparse zero": (sp.csr_matrix((N, N)), {}, "zero"),
    "samples without self-similarity": (
        with_entries(K0, *[(i, j, 0.0) for i in (4, 9) for j in range(N)]),
        {"center": False},
        "samples 4 and 9 have zero self-similarity.*normalize=False",
    ),
    "samples at the mean": (np.outer(MIRRORED, MIRRORED), {}, "samples 0 and 29 .*normalize=False"),
    "strings": (K0.astype(str), {}, "type <U"),
    "objects": (np.array([[object()] * N] * N), {}, "objects that are not numbers"),
    "complex": (K0.astype(complex), {}, "type complex128"),
    "masked": (np.ma.masked_array(K0, mask=np.eye(N, k=1) > 0), {}, "masked|missing|NaN"),
    "sparse complex": (sp.csr_array(K0.astype(complex)), {}, "type complex128"),
    "dates": (np.full((N, N), np.datetime64("2020-01-01")), {}, "type datetime64"),
}


@pytest.mark.parametrize("case", BAD_KERNELS)
def test_a_bad_kernel_is_refused_by_its_number_and_name_with_the_remedy(case):
    bad, options, message = BAD_KERNELS[case]
    good = sound_kernels()
    for kernels, who in (
        ({"pixels": good[0], "words": bad, "x": good[2]}, r"kernel 1 \('words'\)"),
        ([good[0], bad, good[2]], r"kernel 1\b(?! \()"),
    ):
        with pytest.raises(ValueError, match=message) as refusal:
            fit_kernels(kernels, **options)
        assert re.search(who, str(refusal.value))


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 600, 1200])
def test_a_hidden_negative_eigenvalue_is_found(n):
    kernels = [np.eye(n), hidden_negative(n)]
    with pytest.raises(ValueError, match=r"kernel 1 is indefinite.*psd='clip'"):
        fit_kernels(kernels)


@pytest.mark.slow
@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("n", [100, 250])
def test_an_indefinite_kernel_is_accepted_if_it_is_to_be_repaired(psd, n):
    good = gaussian_kernels(n)[0]
    for bad in (hidden_negative(n), with_entries(good, (3, 3, -2.0))):
        assert len(fit_kernels([good, bad], psd=psd).labels_) == n


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_asymmetry_within_rounding_is_accepted(dtype):
    kernels = [K.astype(dtype) for K in sound_kernels()]
    kernels[0] *= 1 + np.finfo(dtype).eps * np.triu(np.ones((N, N), dtype=dtype))
    assert not np.array_equal(kernels[0], kernels[0].T)
    assert len(fit_kernels(kernels).labels_) == N


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "empty"),
        ((), "empty"),
        ({}, "empty|no kernels"),
        (np.empty((0, 5, 5)), "empty|no kernels"),
        (np.empty((2, 0, 0)), "empty|no samples|at least"),
        (K0, r"K\[None\]"),
        (sp.csr_array(K0), r"K\[None\]|\[K\]"),
        (K0[0], r"\(m, n, n\)"),
        (np.zeros((1, 1, 3, 3)), r"\(m, n, n\)"),
        ("kernels", r"\(m, n, n\)"),
        (3, r"\(m, n, n\)"),
        (None, r"\(m, n, n\)"),
        ({1: K0, "1": K0}, "same name"),
    ],
    ids=range(13),
)
def test_what_holds_no_kernels_is_refused(kernels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_kernels(kernels)


# Parameters ------------------------------------------------------------------------------------


BAD_PARAMETERS = {
    "n_clusters": (0, -2, 2.5, 3.0, "3", True, None, [3], np.nan, N + 1),
    "psd": ("Clip", None, True, 0, "nearest"),
    "n_init": (0, -1, 1.5, "auto", None),
    "max_iter": (0, -1, 1.5, "1", True),
    "tol": (0, 1, -1e-3, np.nan, np.inf, "1e-6", None, True),
    "kernels": ("rbf", None, 3, [], (), KernelBank, np.eye(3)),
    "solver": ("newton", None, 1),
    "stopping": ("never", None, 1, "step"),
    "random_state": ("zero", -1, 1.5),
}


@pytest.mark.parametrize("parameter", BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_by_name(parameter):
    for value in BAD_PARAMETERS[parameter]:
        model = SimpleMKKM(3).set_params(**{parameter: value})
        before = dict(vars(model))
        with pytest.raises((ValueError, TypeError), match=f"^{parameter}="):
            model.fit(gaussian_kernels())
        assert vars(model) == before


# Ambiguous and useless data --------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [list, tuple, lambda K: dict(zip("abc", K, strict=True))])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, np.ndarray.tolist])
def test_square_matrices_that_may_be_kernels_or_views_are_refused(wrap, kind):
    X = wrap([kind(K) for K in sound_kernels()])
    with pytest.raises(
        ValueError, match=r"square.*30 x 30.*kernels='precomputed'.*kernels=KernelBank\(\)"
    ):
        SimpleMKKM(3).fit(X)


def test_square_matrices_are_what_kernels_says():
    X = sound_kernels()
    assert SimpleMKKM(3, kernels="precomputed").fit(X).n_features_in_ == N
    assert SimpleMKKM(3, kernels=KernelBank()).fit(X).n_features_in_ == 3 * N


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 77, 250])
@pytest.mark.parametrize("kind", ["kernels", "views", "table"])
def test_more_clusters_than_distinct_samples_are_refused(kind, n, dtype):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3, 4)).astype(dtype)[np.arange(n) % 3]
    X = {"table": table, "views": [table, table[:, :2]]}.get(kind)
    if X is None:
        X = KernelBank(widths=(1.0, 2.0), polynomials=(), linear=None).fit_transform(table)
    assert len(set(SimpleMKKM(3, random_state=0).fit(X).labels_)) == 3
    with pytest.raises(ValueError, match=f"n_clusters=4.*only 3 of the {n}.*distinct.*fewer"):
        SimpleMKKM(4, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.UncoveredSamplesWarning")
def test_samples_without_any_similarity_belong_to_no_cluster_and_disturb_nothing():
    K = np.zeros((2, 12, 12))
    K[0, :3, :3] = K[1, 3:6, 3:6] = 500 * np.eye(3) + 5
    for k in (2, 5):
        model = SimpleMKKM(k, center=False, normalize=False, random_state=0).fit(K)
        assert model.labels_[6:].tolist() == [-1] * 6
        np.testing.assert_array_equal(model.predict(K), model.labels_)
    with pytest.raises(ValueError, match="only 6 of 12 samples"):
        SimpleMKKM(7, center=False, normalize=False, random_state=0).fit(K)


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_distinct_samples_are_not_taken_for_equal_in_single_precision(seed):
    X = np.random.default_rng(seed).normal(size=(300, 4))[100:].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SimpleMKKM(199, n_init=1, max_iter=2, random_state=0).fit([X])
    assert len(set(model.labels_)) == 199


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan]] * N, "NaN"),
        ([np.full((N, 2), np.inf), np.ones((N, 3))], "'view 0'.*not finite"),
        ({"a": np.eye(N)[:, :2], "b": np.eye(N + 1)[:, :2]}, "'a' has 30 rows.*'b' has 31"),
        ({"a": np.array([["x", "y"]] * N)}, "'a'.*not a table of real numbers"),
        ([["x", "y"]] * N, "numeric|float|numbers"),
        ([np.ones((N, 2)) * 1j, np.ones((N, 3))], "'view 0'.*[Cc]omplex"),
        (np.ones((N, 2)) * 1j, "[Cc]omplex"),
        (np.ones((N, 2)), "identical"),
        ([], "empty"),
        ({}, "empty"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((1, 3)), "1 sample|at least"),
        (np.zeros((5, 0)), "0 feature"),
    ],
    ids=range(13),
)
def test_bad_views_and_tables_are_refused(X, message):
    model = SimpleMKKM(2)
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X)
    assert vars(model) == before


# Nothing half-fitted ---------------------------------------------------------------------------


def failing_fits():
    """Yield parameters and input that make a fit fail early or late."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(N, 3))
    yield "bad kernel", {}, np.stack([with_entries(K0, (1, 1, np.nan))])
    yield "indefinite kernel", {}, -gaussian_kernels()
    yield "too many clusters", {"n_clusters": N + 1}, table
    yield "bad parameter", {"n_init": 0}, table
    yield "NaN in a table", {}, np.where(table > 2, np.nan, np.where(table < 0, np.nan, table))
    yield "NaN in a view", {}, [table, table[:, :2] * np.nan]
    yield "ambiguous", {}, [np.eye(N)]
    yield "late, in k-means", {"random_state": "zero"}, table
    yield "a warning made an error", {"max_iter": 1, "tol": 1e-12}, gaussian_kernels()


@pytest.mark.parametrize(
    ("parameters", "X"), [pytest.param(p, X, id=name) for name, p, X in failing_fits()]
)
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_failed_fit_leaves_nothing_half_fitted_and_an_earlier_fit_whole(parameters, X):
    fresh = SimpleMKKM(3, random_state=0).set_params(**parameters)
    before = dict(vars(fresh))
    with pytest.raises((ValueError, ConvergenceWarning)):
        fresh.fit(X)
    assert vars(fresh) == before
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    table = np.random.default_rng(0).normal(size=(N, 5))
    model = SimpleMKKM(3, random_state=0).fit(table)
    labels = model.predict(table)
    before = dict(vars(model.set_params(**parameters)))
    with pytest.raises((ValueError, ConvergenceWarning)):
        model.fit(X)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(table), labels)


# New samples -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    """Return models that were fitted on kernels, a table and views."""
    rng = np.random.default_rng(0)
    table, views = rng.normal(size=(N, 4)), {"a": rng.normal(size=(N, 4)), "b": np.eye(N)[:, :2]}
    inputs = {"kernels": gaussian_kernels(), "table": table, "views": views}
    return {form: SimpleMKKM(3, random_state=0).fit(X) for form, X in inputs.items()}


NEW = gaussian_kernels()[:, :4]


def replaced(value):
    """Return new cross kernels with one entry of the second one replaced."""
    X = NEW.copy()
    X[1, 2, 3] = value
    return X


BAD_NEW = {
    "kernels": [
        (NEW[:2], "2 kernels.*fitted on 3"),
        (np.concatenate([NEW, NEW]), "6 kernels.*fitted on 3"),
        (NEW[:, :, :-1], r"kernel 0.*\(4, 29\).*30 training samples"),
        (NEW.transpose(0, 2, 1), r"kernel 0.*\(30, 4\).*30 training samples"),
        ([NEW[0], NEW[1][:2], NEW[2]], r"kernel 1.*\(2, 30\).*4 new samples"),
        ([NEW[0], NEW[1], NEW[2][0]], r"kernel 2.*\(30,\)"),
        (NEW[0], r"K\[None\]"),
        (NEW[0][0], r"\(m, n, n\)|dimension"),
        ([], "empty"),
        ({}, "empty|0 kernels"),
        (replaced(np.nan), "kernel 1.*NaN"),
        (replaced(np.inf), "kernel 1.*infinity"),
        (NEW.astype(complex) * 1j, "kernel 0.*(complex|real)"),
        (NEW.astype(str), "kernel 0.*(type|numbers)"),
        (np.full(NEW.shape, "a", dtype=object), "kernel 0.*numbers"),
    ],
    "table": [
        (np.ones((4, 3)), "3 features.*4 features"),
        (np.ones((4, 5)), "5 features.*4 features"),
        (np.full((4, 4), np.nan), "NaN"),
        (np.full((4, 4), np.inf), "infinity"),
        ([np.ones((4, 4))], "'view 0'.*'table'"),
        (np.ones(4), "2D|dim"),
        (np.ones((0, 4)), "0 sample"),
        (np.array([["a"] * 4]), "numeric|float"),
        (np.ones((4, 4)) * 1j, "[Cc]omplex"),
    ],
    "views": [
        ({"a": np.ones((3, 4))}, "'b': 2"),
        ({"a": np.ones((3, 4)), "c": np.ones((3, 2))}, "'c'"),
        ({"a": np.ones((3, 4)), "b": np.ones((3, 3))}, "'b': 3.*'b': 2"),
        ({"a": np.ones((3, 4)), "b": np.ones((2, 2))}, "'a' has 3 rows.*'b' has 2"),
        ({"a": np.ones((3, 4)), "b": np.array([[1, np.nan]] * 3)}, "'b'.*NaN"),
        ([np.ones((3, 4)), np.ones((3, 2))], "'view 0'"),
        (np.ones((3, 6)), "'table': 6"),
    ],
}


@pytest.mark.parametrize(
    ("form", "X", "message"), [(form, *case) for form, cases in BAD_NEW.items() for case in cases]
)
def test_bad_new_samples_are_refused(models, form, X, message):
    before = dict(vars(models[form]))
    for method in ("predict", "transform"):
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(models[form], method)(X)
    assert vars(models[form]) == before


def test_new_views_and_kernels_are_recognized_by_name_not_by_order(models):
    K, rng = gaussian_kernels(), np.random.default_rng(5)
    by_name = SimpleMKKM(3, kernels="precomputed", random_state=0).fit({"a": K[0], "b": K[1]})
    kernels = {"a": K[0][:9], "b": K[1][:9]}
    views = {"a": rng.normal(size=(6, 4)), "b": rng.normal(size=(6, 2))}
    for model, X in ((by_name, kernels), (models["views"], views)):
        found, expected = model.transform({"b": X["b"], "a": X["a"]}), model.transform(X)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        with pytest.raises(ValueError, match="'c'"):
            model.predict({"a": X["a"], "c": X["b"]})


def test_self_similarities_that_cannot_be_right_are_refused():
    K = np.stack(sound_kernels())
    model = SimpleMKKM(3, random_state=0).fit(K)
    with pytest.raises(ValueError, match="kernel 0.*self_similarity.*normalize=False"):
        model.predict(K[:, :4])
    for shape in ((4,), (4, 3), (3, 5), (2, 4), (1, 3, 4)):
        with pytest.raises(ValueError, match=r"self_similarity.*expected \(3, 4\)"):
            model.predict(K[:, :4], self_similarity=np.ones(shape))
    for value in (np.nan, np.inf, -1.0):
        own = np.ones((3, 4))
        own[1, 2] = value
        with pytest.raises(ValueError, match="self_similarity.*kernel 1 and new sample 2"):
            model.predict(K[:, :4], self_similarity=own)


# What only looks like input ---------------------------------------------------------------------


TABLE = np.random.default_rng(0).normal(size=(N, 4))
WAYS = {
    "exact": {},
    "on the fly": {"kernels": "on-the-fly"},
    "features": {"approximation": Nystroem(10)},
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (lambda: None, "X is a None"),
        (lambda: [TABLE, None], "View 'view 1'"),
        (lambda: {"a": TABLE, "b": None}, "View 'b'"),
        (lambda: (view for view in [TABLE, TABLE]), "X is a generator"),
        (lambda: {"a": TABLE}.values(), "X is a dict_values"),
        (lambda: [TABLE, map(list, TABLE)], "View 'view 1' is a map"),
        (lambda: [[1.0, 2.0], [3.0]], "X is a list of rows"),
        (lambda: {"a": TABLE[:2], "b": [[1.0], [2.0, 3.0]]}, "View 'b' is a list"),
        (lambda: [[[1.0, 2.0], [3.0]], TABLE[:2]], "View 'view 0' is a list"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(X, message, options):
    with pytest.raises((ValueError, TypeError), match=message):
        SimpleMKKM(3, **options).fit(X())


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_series_is_no_view(options):
    series = pytest.importorskip("pandas").Series(TABLE[:, 0])
    for X, who in [
        (series, "X is a Series"),
        ([TABLE, series], "View 'view 1' is a Series"),
        ({"a": series}, "View 'a' is a Series"),
        ([series, series], "X is a list"),
    ]:
        with pytest.raises(TypeError, match=rf"{who}.*to_frame\(\)"):
            SimpleMKKM(3, **options).fit(X)


def test_what_is_no_kernel_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match="kernel 1"):
        fit_kernels([K0, None])
    with pytest.raises(ValueError, match="kernel 1 is a list of rows"):
        fit_kernels([K0, [[1.0], [2.0, 3.0]]])
    with pytest.raises((ValueError, TypeError), match="generator.*(list)"):
        fit_kernels(K for K in [K0, K0])


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-310, np.float64), (1e-295, np.float64), (1e-40, np.float32)]
)
@pytest.mark.parametrize("normalize", [True, False])
def test_kernels_too_small_for_their_digits_are_refused(scale, dtype, normalize):
    kernels = [sound_kernels()[0].astype(dtype), (K0 * scale).astype(dtype)]
    with pytest.raises(ValueError, match="kernel 1 has entries so small.*multiply it"):
        fit_kernels(kernels, normalize=normalize)
