"""Kernel k-means on the compromise: a view that shares nothing changes no label and no weight."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from agreeing import (
    inserted,
    named_blobs,
    one_hot,
    strangers,
    two_camps,
    written_out_compromise,
)
from libraries import FOREIGN, as_library
from mkclust import (
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    GroupsWarning,
    KernelBank,
    SimpleMKKM,
    WeightsWarning,
)
from mkclust.kernels import Nystroem, RandomFourier
from mkclust.linalg import to_host
from mkclust.methods import solve_agreement_kkm
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from mkclust.stack.discretize import discretize
from problems import projector

ONE_GAUSSIAN = KernelBank(widths=(1.0,), polynomials=(), linear=None)
METHODS_THAT_SET_ASIDE = [AgreementKKM, AnchoredMKKM]


def kernels_of(views):
    """Return one Gaussian kernel a view, by name."""
    return dict(zip(views, ONE_GAUSSIAN.fit_transform(list(views.values())), strict=True))


def check_that_nothing_changed(model, without, others):
    """Check that a model of more views is one without the others: labels, and numbers to 1e-12."""
    names = list(model.kernel_names_)
    assert set(model.set_aside_) == set(others)
    aside = [names.index(name) for name in others]
    np.testing.assert_array_equal(model.labels_, without.labels_)
    for attribute in ("weights_", "coefficients_", "alignments_"):
        values = getattr(model, attribute)
        np.testing.assert_allclose(
            np.delete(values, aside), getattr(without, attribute), atol=1e-12
        )
    assert not model.weights_[aside].any()
    assert not model.coefficients_[aside].any()
    for attribute in ("embedding_", "objective_", "history_"):
        found, expected = (to_host(getattr(each, attribute)) for each in (model, without))
        np.testing.assert_allclose(found, expected, atol=1e-9, rtol=1e-12)


# Second roads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (True, False), (False, True)])
def test_clusters_are_those_of_a_dense_eigensolver_on_the_compromise_written_out(
    n, center, normalize
):
    views, _ = named_blobs(np.random.default_rng(n), n=n, k=4, strengths=(1, 0.8, 0.6))
    K = np.array(list(kernels_of(views).values()))
    model = AgreementKKM(4, center=center, normalize=normalize, random_state=0).fit(K)
    entries = as_stack(K, center=center, normalize=normalize).among().entries
    compromise, weights, coefficients = written_out_compromise(entries)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(model.coefficients_, coefficients, rtol=1e-9)
    values, vectors = scipy.linalg.eigh(compromise)
    assert model.objective_ == pytest.approx(values[-4:].sum(), rel=1e-6)
    H = vectors[:, :-5:-1]
    np.testing.assert_allclose(projector(model.embedding_), projector(H), atol=2e-3)
    labels = discretize(H, 4, n_init=10, random_state=0)[0]
    assert adjusted_rand_index(labels, model.labels_) > 0.98


def test_a_solution_has_one_entry_a_kernel_and_says_who_is_heard():
    rng = np.random.default_rng(0)
    views = kernels_of({"dice": one_hot(rng, 60, 3)} | named_blobs(rng)[0])
    solution = solve_agreement_kkm(as_stack(views), 3)
    assert solution.heard == [1, 2, 3]
    assert solution.weights.shape == solution.coefficients.shape == (4,)
    assert solution.weights[0] == solution.coefficients[0] == 0
    assert solution.weights.sum() == pytest.approx(1)
    assert solution.coefficients.sum() == pytest.approx(1)
    assert solution.converged


@pytest.mark.parametrize("kind", ["nothing agrees", "one table"])
def test_where_nothing_can_be_compared_it_is_the_average_kernel(kind):
    views = strangers(np.random.default_rng(0), 60)
    X = views if kind == "nothing agrees" else views["noise"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, average = (m(3, random_state=0).fit(X) for m in (AgreementKKM, AverageKKM))
    np.testing.assert_array_equal(model.labels_, average.labels_)
    np.testing.assert_allclose(model.weights_, average.weights_, atol=1e-12)
    np.testing.assert_allclose(model.coefficients_, average.coefficients_, atol=1e-12)
    assert model.set_aside_ == ()


# A view that shares nothing changes nothing ----------------------------------------------------


@pytest.mark.parametrize("method", METHODS_THAT_SET_ASIDE)
@given(st.integers(0, 10_000), st.sampled_from([50, 61, 130]), st.integers(1, 4))
def test_views_that_share_nothing_change_nothing(method, seed, n, n_others):
    rng = np.random.default_rng(seed)
    views, _ = named_blobs(rng, n=n)
    everyone = list(strangers(rng, n).items())
    others = dict(everyone[i] for i in rng.permutation(5)[:n_others])
    without = method(3, random_state=0).fit(views)
    model = method(3, random_state=0).fit(inserted(rng, views, others))
    check_that_nothing_changed(model, without, others)


FORMS = {
    "array": lambda K: np.array(list(K.values())),
    "list": lambda K: list(K.values()),
    "dict": lambda K: K,
    "float32": lambda K: {name: each.astype(np.float32) for name, each in K.items()},
    "sparse": lambda K: [scipy.sparse.csr_array(np.where(k > 0.2, k, 0)) for k in K.values()],
}


@pytest.mark.parametrize("method", METHODS_THAT_SET_ASIDE)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [70, 210])
def test_kernels_that_share_nothing_change_nothing_in_any_form(method, form, n):
    rng = np.random.default_rng(n)
    views, _ = named_blobs(rng, n=n)
    others = {name: strangers(rng, n)[name] for name in ("noise", "3 levels")}
    everyone = inserted(rng, views, others)
    bare, full = (FORMS[form](kernels_of(v)) for v in (views, everyone))
    options = {"psd": "shift"} if form == "sparse" else {}
    without, model = (
        method(3, kernels="precomputed", random_state=0, **options).fit(K) for K in (bare, full)
    )
    if form in ("dict", "float32"):
        check_that_nothing_changed(model, without, others)
        return
    names = list(everyone)
    check_that_nothing_changed(model, without, [f"kernel {names.index(name)}" for name in others])


@pytest.mark.parametrize("method", METHODS_THAT_SET_ASIDE)
@pytest.mark.parametrize("library", FOREIGN)
def test_views_of_other_libraries_that_share_nothing_change_nothing(method, library):
    rng = np.random.default_rng(3)
    views, _ = named_blobs(rng, n=70)
    others = {"dice": one_hot(rng, 70, 3)}
    without = method(3, random_state=0).fit(as_library(library, views))
    model = method(3, random_state=0).fit(as_library(library, inserted(rng, views, others)))
    check_that_nothing_changed(model, without, others)


@pytest.mark.parametrize("method", METHODS_THAT_SET_ASIDE)
def test_several_kernels_per_view_that_share_nothing_change_nothing(method):
    rng = np.random.default_rng(4)
    views, _ = named_blobs(rng, n=70)
    bank = KernelBank(widths=(0.5, 2.0), polynomials=(), linear="cosine")
    without = method(3, kernels=bank, random_state=0).fit(views)
    views["dice"] = one_hot(rng, 70, 4)
    model = method(3, kernels=bank, random_state=0).fit(views)
    others = [name for name in model.kernel_names_ if name.startswith("dice")]
    assert len(others) == 3
    check_that_nothing_changed(model, without, others)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS_THAT_SET_ASIDE)
@pytest.mark.parametrize("feature_map", [Nystroem(40), RandomFourier(60)])
@pytest.mark.parametrize("seed", [0, np.random.RandomState])
def test_features_of_a_view_do_not_depend_on_the_views_beside_it(method, feature_map, seed):
    rng = np.random.default_rng(6)
    views, y = named_blobs(rng, n=200)
    dice = {"dice": one_hot(rng, 200, 3)}

    def fit(views):
        state = seed if seed == 0 else seed(0)
        return method(3, approximation=feature_map, random_state=state).fit(views)

    without = fit(views)
    assert adjusted_rand_index(y, without.labels_) > 0.9
    # The anchored method iterates until its tolerance.
    tolerance = {"atol": 1e-12 if method is AgreementKKM else 1e-7, "rtol": 0}
    for everyone in (dice | views, views | dice):
        model = fit(everyone)
        assert model.set_aside_ == ("dice",)
        np.testing.assert_array_equal(model.labels_, without.labels_)
        real = [name != "dice" for name in model.kernel_names_]
        for attribute in ("weights_", "alignments_", "approximation_error_"):
            found, expected = getattr(model, attribute)[real], getattr(without, attribute)
            np.testing.assert_allclose(found, expected, **tolerance)
        np.testing.assert_array_equal(model.predict(everyone), model.labels_)


# New samples -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [90, 260])
def test_new_samples_are_told_apart_whatever_their_strangers_say(n, dtype):
    rng = np.random.default_rng(n)
    views, y = named_blobs(rng, n=2 * n)
    everyone = inserted(rng, views, strangers(rng, 2 * n))
    train, new = (
        {name: view[part].astype(dtype) for name, view in everyone.items()}
        for part in (slice(n), slice(n, None))
    )
    model = AgreementKKM(3, random_state=0).fit(train)
    without = AgreementKKM(3, random_state=0).fit({name: train[name] for name in views})
    np.testing.assert_array_equal(model.predict(train), model.labels_)
    np.testing.assert_array_equal(model.predict(new), without.predict({p: new[p] for p in views}))
    assert adjusted_rand_index(y[n:], model.predict(new)) > 0.9
    changed = new | {name: -3 * new[name] for name in model.set_aside_}
    np.testing.assert_array_equal(model.predict(changed), model.predict(new))
    np.testing.assert_allclose(model.transform(changed), model.transform(new), atol=1e-12)


# What is said of weights -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_find_other_clusters_than_the_views_agree_on_are_warned_of(seed):
    rng = np.random.default_rng(seed)
    views, y = named_blobs(rng, n=120, strengths=(2, 2))
    views |= {"dice": one_hot(rng, 120, 3), "fog": rng.normal(size=(120, 10))}
    with pytest.warns(WeightsWarning) as caught:
        paper = SimpleMKKM(3, random_state=0).fit(views)
    assert paper.baseline_agreement_ < 0.8
    text = str(caught[0].message)
    weight = paper.weights_[2:].sum()
    assert f"is {paper.baseline_agreement_:.2f}. dice and fog share nothing" in text
    assert f"have {weight:.0%} of the weight; use AgreementKKM, which sets them aside" in text
    assert caught[0].filename == __file__
    model = AgreementKKM(3, random_state=0).fit(views)
    assert adjusted_rand_index(paper.baseline_labels_, model.labels_) > 0.95
    assert adjusted_rand_index(y, model.labels_) > 0.95


def test_the_answer_belongs_to_one_of_two_camps_and_the_model_says_to_which():
    views, camps = two_camps(np.random.default_rng(2))
    with pytest.warns(GroupsWarning, match="2 groups") as caught:
        model = AgreementKKM(3, random_state=0).fit(views)
    assert caught[0].filename == __file__
    truths = [adjusted_rand_index(y, model.labels_) for y in camps]
    assert max(truths) > 0.95
    assert min(truths) < 0.1
    other = "ab"[int(np.argmin(truths))]
    assert model.set_aside_ == (f"{other}0", f"{other}1")


@pytest.fixture(scope="module")
def tables():
    """Return breast cancer data in three standardized tables, their clusters, and the classes."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    views = {"mean": X[:, :10], "error": X[:, 10:20], "worst": X[:, 20:]}
    return views, AgreementKKM(2, random_state=0).fit(views), y


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2, 3, 4])
def test_three_tables_of_breast_cancer_stand_a_random_column(levels, tables):
    views, bare, y = tables
    everyone = views | {"dice": one_hot(np.random.default_rng(0), len(y), levels)}
    model = AgreementKKM(2, random_state=0).fit(everyone)
    check_that_nothing_changed(model, bare, ["dice"])
    assert adjusted_rand_index(y, model.labels_) == pytest.approx(0.70, abs=0.03)
    if levels < 4:  # two clusters or three of its own, which outweigh what the tables share
        average = AverageKKM(2, random_state=0).fit(everyone)
        assert adjusted_rand_index(y, average.labels_) < 0.1
