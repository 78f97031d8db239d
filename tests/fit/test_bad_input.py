"""What a model refuses: kernels, parameters and new samples, without being left
half-fitted.

Other kernels and views that are refused are in tests/stack/test_build.py and
tests/data.
"""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mkclust import AverageKKM, KernelBank, SimpleMKKM
from mkclust.exceptions import FewerClustersWarning

N = 30
pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")


def sound_kernels():
    """Return Gram matrices of full rank with diagonals that vary."""
    return [x @ x.T / N for x in np.random.default_rng(0).normal(size=(3, N, N + 5))]


def gaussian_kernels():
    """Return Gaussian kernels, whose diagonals are one."""
    X = np.random.default_rng(0).normal(size=(3, N, 4))
    return np.exp(-np.square(X[:, :, None] - X[:, None]).sum(axis=-1) / 8)


K0 = sound_kernels()[1]
# One feature whose mean is zero, which is where the first and the last sample are.
MIRRORED = np.concatenate([[0.0], np.arange(1, 15), -np.arange(1, 15), [0.0]])
BAD_KERNELS = {
    "sparse not symmetric": (
        sp.csc_matrix(K0 + 0.25 * np.eye(N, k=3)),
        r"not symmetric.*0\.25",
    ),
    "constant to rounding": (np.full((N, N), 0.1) + 1e-17 * np.eye(N), "constant"),
    "samples at the mean": (
        np.outer(MIRRORED, MIRRORED),
        "samples 0 and 29 .*normalize=False",
    ),
    "masked": (np.ma.masked_array(K0, mask=np.eye(N, k=1) > 0), "masked|missing|NaN"),
}


@pytest.mark.parametrize("case", BAD_KERNELS)
def test_a_bad_kernel_is_refused_by_its_number_and_name_with_the_remedy(case):
    bad, message = BAD_KERNELS[case]
    good = sound_kernels()
    for kernels, who in (
        ({"pixels": good[0], "words": bad, "x": good[2]}, r"kernel 1 \('words'\)"),
        ([good[0], bad, good[2]], r"kernel 1\b(?! \()"),
    ):
        with pytest.raises(ValueError, match=message) as refusal:
            SimpleMKKM(3, kernels="precomputed").fit(kernels)
        assert re.search(who, str(refusal.value))


BAD_PARAMETERS = {
    "n_clusters": (0, 2.5, 3.0, "3", True, None, np.nan, N + 1),
    "psd": ("clip", None, True),
    "n_init": (0, 1.5, "auto", None),
    "max_iter": (0, 1.5, "1", True),
    "tol": (0, 1, np.nan, np.inf, "1e-6", None, True),
    "kernels": ("rbf", None, 3, [], KernelBank, np.eye(3)),
    "solver": ("newton", None, 1),
    "stopping": ("never", None, "step"),
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


@pytest.mark.parametrize(
    "wrap", [list, lambda K: dict(enumerate(map(sp.csr_array, K)))]
)
def test_square_matrices_are_kernels_or_views_only_if_kernels_says_so(wrap):
    X = wrap(sound_kernels())
    with pytest.raises(
        ValueError, match=r"kernels='precomputed'.*kernels=KernelBank\(\)"
    ):
        SimpleMKKM(3).fit(X)
    assert SimpleMKKM(3, kernels="precomputed").fit(X).n_features_in_ == N
    assert SimpleMKKM(3, kernels=KernelBank()).fit(X).n_features_in_ == 3 * N


@pytest.mark.parametrize(("n", "dtype"), [(30, np.float64), (250, np.float32)])
def test_more_clusters_than_distinct_samples_are_warned_of(n, dtype):
    X = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)[np.arange(n) % 3]
    assert len(set(SimpleMKKM(3, random_state=0).fit([X, X[:, :2]]).labels_)) == 3
    with pytest.warns(FewerClustersWarning, match="n_clusters=4"):
        model = SimpleMKKM(4, random_state=0).fit([X, X[:, :2]])
    assert len(set(model.labels_)) == 3


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_distinct_samples_are_not_taken_for_equal_in_single_precision(seed):
    X = np.random.default_rng(seed).normal(size=(300, 4))[100:].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SimpleMKKM(199, n_init=1, max_iter=2, random_state=0).fit([X])
    assert len(set(model.labels_)) == 199


def failing_fits():
    """Yield parameters and input that make a fit fail early or late."""
    table = np.random.default_rng(1).normal(size=(N, 3))
    yield "bad kernel", {}, np.stack([K0 + np.diag(np.r_[np.nan, np.zeros(N - 1)])])
    yield "indefinite kernel", {}, -gaussian_kernels()
    yield "too many clusters", {"n_clusters": N + 1}, table
    yield "NaN in a view", {}, [table, table[:, :2] * np.nan]
    yield "identical rows", {}, np.ones((N, 2))
    yield "late, in k-means", {"random_state": "zero"}, table
    yield "a warning made an error", {"max_iter": 1, "tol": 1e-12}, gaussian_kernels()


@pytest.mark.parametrize(
    ("parameters", "X"), [pytest.param(p, X, id=name) for name, p, X in failing_fits()]
)
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_failed_fit_leaves_nothing_half_fitted_and_an_earlier_fit_whole(
    parameters, X
):
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


@pytest.fixture(scope="module")
def models():
    """Return models that were fitted on kernels, a table and views."""
    rng = np.random.default_rng(0)
    table, views = (
        rng.normal(size=(N, 4)),
        {"a": rng.normal(size=(N, 4)), "b": np.eye(N)[:, :2]},
    )
    inputs = {"kernels": gaussian_kernels(), "table": table, "views": views}
    return {form: SimpleMKKM(3, random_state=0).fit(X) for form, X in inputs.items()}


NEW = gaussian_kernels()[:, :4]
BAD_NEW = {
    "kernels": [
        (NEW[:2], "2 kernels.*fitted on 3"),
        (NEW[:, :, :-1], r"kernel 0.*\(4, 29\).*30 training samples"),
        (NEW.transpose(0, 2, 1), r"kernel 0.*\(30, 4\).*30 training samples"),
        ([NEW[0], NEW[1][:2], NEW[2]], r"kernel 1.*\(2, 30\).*4 new samples"),
        (NEW[0], r"K\[None\]"),
        ({}, "empty|0 kernels"),
        (np.where(np.eye(4, N) > 0, np.nan, NEW), "kernel 0.*NaN"),
    ],
    "table": [
        (np.ones((4, 3)), "3 features.*4 features"),
        (np.full((4, 4), np.nan), "NaN"),
        ([np.ones((4, 4))], "'view 0'.*'table'"),
        (np.ones((0, 4)), "0 sample"),
    ],
    "views": [
        ({"a": np.ones((3, 4))}, "'b': 2"),
        ({"a": np.ones((3, 4)), "b": np.ones((2, 2))}, "'a' has 3 rows.*'b' has 2"),
        ({"a": np.ones((3, 4)), "b": np.array([[1, np.nan]] * 3)}, "'b'.*NaN"),
        (np.ones((3, 6)), "'table': 6"),
    ],
}


@pytest.mark.parametrize(
    ("form", "X", "message"),
    [(form, *case) for form, cases in BAD_NEW.items() for case in cases],
)
def test_bad_new_samples_are_refused(models, form, X, message):
    before = dict(vars(models[form]))
    for method in ("predict", "transform"):
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(models[form], method)(X)
    assert vars(models[form]) == before


def test_new_views_and_kernels_are_recognized_by_name_not_by_order(models):
    K, rng = gaussian_kernels(), np.random.default_rng(5)
    by_name = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(
        {"a": K[0], "b": K[1]}
    )
    kernels = {"a": K[0][:9], "b": K[1][:9]}
    views = {"a": rng.normal(size=(6, 4)), "b": rng.normal(size=(6, 2))}
    for model, X in ((by_name, kernels), (models["views"], views)):
        found, expected = (
            model.transform({"b": X["b"], "a": X["a"]}),
            model.transform(X),
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        with pytest.raises(ValueError, match="'c'"):
            model.predict({"a": X["a"], "c": X["b"]})


def test_self_similarities_that_cannot_be_right_are_refused():
    K = np.stack(sound_kernels())
    model = SimpleMKKM(3, random_state=0).fit(K)
    with pytest.raises(ValueError, match="kernel 0.*self_similarity.*normalize=False"):
        model.predict(K[:, :4])
    for shape in ((4,), (4, 3), (1, 3, 4)):
        with pytest.raises(ValueError, match=r"self_similarity.*expected \(3, 4\)"):
            model.predict(K[:, :4], self_similarity=np.ones(shape))
    for value in (np.nan, np.inf, -1.0):
        own = np.ones((3, 4))
        own[1, 2] = value
        with pytest.raises(
            ValueError, match="self_similarity.*kernel 1 and new sample 2"
        ):
            model.predict(K[:, :4], self_similarity=own)


def test_indefinite_kernels_are_not_repaired_on_the_fly():
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(40, 3)), "b": rng.normal(size=(40, 3))}
    bank = KernelBank(rules="self-tuning", on_the_fly=True)
    with pytest.raises(ValueError, match="psd='shift' needs kernel 0"):
        AverageKKM(2, kernels=bank, psd="shift").fit(views)
    model = AverageKKM(2, kernels="on-the-fly", psd="shift", random_state=0)
    assert (model.fit(views).predict(views) == model.labels_).all()
