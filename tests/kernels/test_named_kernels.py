import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import (
    chi2_kernel,
    cosine_similarity,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from libraries import LIBRARIES, as_library
from mkclust import (
    AverageKKM,
    SimpleMKKM,
    agreement,
    diagnose,
    suggest_n_clusters,
    view,
)
from mkclust.exceptions import NoAgreementWarning
from mkclust.explain.stability import resample
from mkclust.kernels import KernelBank, Linear, Nystroem
from mkclust.kernels.kinds import RULES
from mkclust.linalg import to_host

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
]
ONE = {"widths": (1.0,), "polynomials": (), "linear": None}
N = 40


def numbers(seed=0, n=N):
    """Return a view without negative entries, of counts that are not whole."""
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=(n, 6)) * (rng.random((n, 6)) < 0.8)


def codes(seed=0, n=N):
    return np.random.default_rng(seed).integers(4, size=(n, 3)).astype(float)


def distances(seed=0, n=N):
    X = numbers(seed, n)
    return cdist(X, X)


def example(name, seed=0):
    return {"overlap": codes, "from_distances": distances}.get(name, numbers)(seed)


def self_tuning(X):
    D = cdist(X, X)
    scales = np.sort(D, axis=1)[:, 7]
    return np.exp(-(D**2) / np.outer(scales, scales))


def shares(X):
    return X / np.where(X.any(axis=1), X.sum(axis=1), 1)[:, None]


def smaller_by_larger(X):
    smaller = np.minimum(X[:, None], X).sum(axis=2)
    larger = np.maximum(X[:, None], X).sum(axis=2)
    return np.where(larger > 0, smaller / np.where(larger > 0, larger, 1), 1)


# The same kernels by other roads.
EXPECTED = {
    "gaussian": lambda X: rbf_kernel(X, gamma=0.5 / np.median(pdist(X)) ** 2),
    "self-tuning": self_tuning,
    "linear": lambda X: X @ X.T / np.mean(np.sum(X**2, axis=1)),
    "cosine": cosine_similarity,
    "polynomial": lambda X: polynomial_kernel(
        X, degree=2, gamma=1 / np.mean(np.sum(X**2, axis=1)), coef0=1
    ),
    "laplacian": lambda X: laplacian_kernel(X, gamma=1 / np.median(pdist(X, "cityblock"))),
    "chi2": lambda X: chi2_kernel(
        X, gamma=1 / np.median(-np.log(chi2_kernel(X, gamma=1))[np.triu_indices(len(X), 1)])
    ),
    "hellinger": lambda X: np.sqrt(shares(X)) @ np.sqrt(shares(X)).T,
    "jaccard": smaller_by_larger,
    "overlap": lambda X: np.mean(X[:, None] == X, axis=2),
    "from_distances": lambda D: np.exp(
        -(D**2) / (2 * np.median(D[np.triu_indices(len(D), 1)]) ** 2)
    ),
}
NAMES = list(EXPECTED)
DEFINITE = [name for name in NAMES if RULES[name].is_definite]


def bank_of(name, **parameters):
    return KernelBank(**ONE, rules={"a": name}, **parameters)


def kernel(name, view, **parameters):
    return to_host(bank_of(name, **parameters).fit_transform({"a": view})[0])


def test_every_kernel_by_name_is_compared_with_another_road():
    assert {name for name, rule in RULES.items() if rule.by_name} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_by_name_is_what_its_name_says(name):
    view = example(name)
    np.testing.assert_allclose(kernel(name, view), EXPECTED[name](view), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_kernels_by_name_are_the_same_in_every_library(name, library):
    view = example(name)
    bank = bank_of(name)
    there = bank.fit_transform({"a": as_library(library, view)})
    np.testing.assert_allclose(to_host(there[0, ...]), kernel(name, view), rtol=1e-9, atol=1e-11)
    new = bank.transform({"a": as_library(library, view[5:9])})
    np.testing.assert_allclose(to_host(new[0, ...]), kernel(name, view)[5:9], atol=1e-11)
    single = bank_of(name).fit_transform({"a": as_library(library, view.astype(np.float32))})
    np.testing.assert_allclose(to_host(single[0, ...]), kernel(name, view), atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name_are_the_same_on_the_fly(name):
    view = example(name)
    held, rows = kernel(name, view), bank_of(name, on_the_fly=True).fit_transform({"a": view})
    np.testing.assert_allclose(rows.all_rows()[0], held, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.rows(3, 8)[0], held[3:8], rtol=1e-12, atol=1e-14)
    some = np.array([1, 4, 20, 31])
    np.testing.assert_allclose(rows.among(some).whole()[0], held[np.ix_(some, some)], atol=1e-14)
    stored = pickle.loads(pickle.dumps(rows))
    np.testing.assert_allclose(stored.rows(0, 4), rows.rows(0, 4), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DEFINITE)
@given(seed=st.integers(0, 2**16))
def test_kernels_that_claim_to_be_are_positive_semidefinite(name, seed):
    values = np.linalg.eigvalsh(kernel(name, example(name, seed)))
    assert values[0] > -1e-10 * values[-1]


@pytest.mark.parametrize("name", NAMES)
def test_training_rows_passed_as_new_ones_have_the_training_kernel(name):
    view = example(name)
    bank, held = bank_of(name), kernel(name, view)
    bank.fit({"a": view})
    np.testing.assert_allclose(bank.transform({"a": view})[0], held, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bank.transform({"a": view[10:13]})[0], held[10:13], atol=1e-13)
    own = bank.self_similarity({"a": view[10:13]})[0]
    np.testing.assert_allclose(own, np.diag(held)[10:13], atol=1e-13)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("overlap",)])
@pytest.mark.parametrize("factor", [1e-6, 3.7, 1e9])
def test_the_unit_of_a_view_changes_no_kernel_by_name(name, factor):
    view = example(name)
    np.testing.assert_allclose(kernel(name, factor * view), kernel(name, view), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_samples_changes_no_kernel_by_name(name):
    view, order = example(name), np.random.default_rng(1).permutation(N)
    permuted = view[np.ix_(order, order)] if RULES[name].of_pairs else view[order]
    expected = kernel(name, view)[np.ix_(order, order)]
    np.testing.assert_allclose(kernel(name, permuted), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_predicts_by_every_kernel_by_name(name):
    views = {"a": example(name), "b": numbers(0)}
    model = AverageKKM(3, kernels={"a": name}, psd="clip", random_state=0).fit(views)
    few = {view: rows[:9] for view, rows in views.items()}
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        assert (fitted.predict(views) == model.labels_).all()
        assert (fitted.predict(few) == model.labels_[:9]).all()
    assert f"a: {name} (asked for)" in model.bank_.explain()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "overlap"])
def test_the_name_of_a_kernel_serves_all_views(name):
    views = [example(name, seed) for seed in (0, 1)]
    model = AverageKKM(3, kernels=name, psd="clip", random_state=0).fit(views)
    assert set(model.bank_.rules_.values()) == {name}
    again = AverageKKM(3, kernels={"view 0": name, "view 1": name}, psd="clip", random_state=0)
    np.testing.assert_array_equal(clone(model).fit(views).labels_, again.fit(views).labels_)


def test_categorical_is_another_word_for_overlap():
    np.testing.assert_allclose(
        kernel("categorical", codes()), kernel("overlap", codes()), rtol=1e-12, atol=1e-12
    )
    bank = bank_of("categorical").fit({"a": codes()})
    assert bank.rules_ == {"a": "overlap"}
    assert "marks of the 12 categories in 3 columns" in bank.explain()
    alone = bank_of("categorical").fit({"a": codes()[:, :1]})
    assert re.search(r"marks of the 4 categories in 1 column\b", alone.explain())


def test_overlap_of_marks_and_of_the_codes_they_stand_for_is_the_same():
    marks = np.hstack([np.eye(4)[column] for column in codes().astype(int).T])
    np.testing.assert_allclose(kernel("overlap", marks), kernel("overlap", codes()), atol=1e-12)


def test_a_new_category_equals_no_known_one():
    bank = bank_of("overlap").fit({"a": codes()})
    new = codes()[:1].copy()
    new[0, 1] = 9
    matches = (new == codes()).sum(axis=1)
    np.testing.assert_allclose(bank.transform({"a": new})[0, 0], matches / np.sqrt(6), atol=1e-12)
    assert bank.self_similarity({"a": new})[0, 0] == pytest.approx(1)


def test_rows_of_zeros_are_like_each_other_and_like_nothing_else_by_jaccard():
    view = np.vstack([np.zeros((2, 6)), numbers()])
    K = kernel("jaccard", view)
    assert K[0, 1] == 1
    assert not K[0, 2:][view[2:].any(axis=1)].any()


def test_new_rows_may_have_negative_entries_that_count_as_none():
    view = numbers()
    new = view[:3].copy()
    new[:, 0] = 0
    for name in ("chi2", "jaccard", "hellinger"):
        bank = bank_of(name).fit({"a": view})
        lower = new - np.array([1.0, 0, 0, 0, 0, 0])
        np.testing.assert_allclose(
            bank.transform({"a": lower}), bank.transform({"a": new}), rtol=1e-12, atol=1e-12
        )


def test_identical_rows_have_a_scale_of_their_own():
    view = np.vstack([np.tile(numbers(1)[:1], (9, 1)), numbers(2)])
    K = kernel("self-tuning", view)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(K[:9, :9], 1)
    few = kernel("self-tuning", numbers(1)[:3])
    assert few.shape == (3, 3)
    assert np.isfinite(few).all()


def test_kernels_by_name_are_mixed_with_no_neighborhoods():
    for name in NAMES:
        assert not bank_of(name).fit({"a": example(name)}).neighborhoods_


@pytest.mark.parametrize("name", NAMES)
def test_kernels_by_name_have_shared_neighborhoods_where_they_are_asked_for(name):
    views = {"a": example(name), "b": numbers()}
    model = AverageKKM(3, kernels={"a": name}, neighbors=5, random_state=0).fit(views)
    assert (model.predict(views) == model.labels_).all()


@pytest.mark.parametrize(
    ("name", "view", "message"),
    [
        ("chi2", -numbers(), "View 'a' is to have the kernel 'chi2', which takes no negative"),
        ("jaccard", -numbers(), "'jaccard', which takes no negative entries: found some"),
        ("hellinger", -numbers(), "'hellinger', which takes no negative entries: found some"),
        ("overlap", numbers(), "few values a column: found .* in column 0, of 40 rows"),
        ("from_distances", -distances(), "takes no negative entries: found some"),
        ("from_distances", numbers(), "one column a sample: found 6 columns, 40 samples"),
        ("from_distances", distances() + np.eye(N), "zero diagonal: .*kernels='precomputed'"),
        ("from_distances", np.triu(distances()), "symmetric: found .*D\\[D.index\\]"),
        ("from_distances", np.zeros((N, N)), "zero, or too small to square"),
        ("self-tuning", np.ones((N, 3)), "All rows in view 'a' are identical"),
        ("laplacian", np.ones((N, 3)), "have distance zero from each other"),
    ],
)
def test_kernels_by_name_that_make_no_sense_of_a_view_are_refused(name, view, message):
    with pytest.raises(ValueError, match=message):
        bank_of(name).fit({"a": view})


@pytest.mark.parametrize("kernels", ["Cosine", "knn", 3, ("cosine",)])
def test_what_is_no_kernel_is_refused_with_some_that_are(kernels):
    with pytest.raises(ValueError, match="the name of another kernel, such as 'cosine'"):
        AverageKKM(2, kernels=kernels).fit([numbers(), numbers(1)])
    with pytest.raises(ValueError, match="kernels asks for .* for the view 'a'; choose among"):
        AverageKKM(2, kernels={"a": kernels}).fit({"a": numbers(), "b": numbers(1)})


# Distances -------------------------------------------------------------------------------------


def indefinite_distances():
    """Return distances by which no points of any space lie: four in a ring, and one in between."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, N)
    apart = np.abs(angles[:, None] - angles)
    return np.minimum(apart, 2 * np.pi - apart)


def test_distances_of_no_space_are_refused_or_repaired_as_kernels_are():
    D = indefinite_distances()
    with pytest.raises(ValueError, match=r"kernel 0 \('a'\) is indefinite.*psd='clip'"):
        AverageKKM(3, kernels="from_distances").fit({"a": D})
    for psd in ("clip", "shift"):
        model = SimpleMKKM(3, kernels="from_distances", psd=psd, random_state=0).fit({"a": D})
        assert (model.predict({"a": D}) == model.labels_).all()
        precomputed = SimpleMKKM(3, kernels="precomputed", psd=psd, random_state=0)
        precomputed.fit({"a": EXPECTED["from_distances"](D)})
        np.testing.assert_array_equal(model.labels_, precomputed.labels_)
        new = model.transform({"a": D[:7]})
        expected = precomputed.transform({"a": EXPECTED["from_distances"](D)[:7]})
        if psd == "clip":
            np.testing.assert_allclose(np.abs(new), np.abs(expected), atol=1e-8)


def test_distances_may_be_rounded():
    X = np.random.default_rng(0).normal(size=(N, 9))
    D = 1 - np.corrcoef(X)
    D[3, 3] = -2e-16
    assert (np.diag(D) != 0).any()
    K = kernel("from_distances", D)
    np.testing.assert_allclose(K, EXPECTED["from_distances"](D), atol=1e-12)
    np.testing.assert_array_equal(np.diag(K), 1)


def test_kernels_of_views_beside_distances_stay_what_they_are():
    views = {"far": distances(), "words": np.random.default_rng(0).poisson(0.05, (N, 90)) * 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoAgreementWarning)
        model = AverageKKM(3, kernels={"far": "from_distances"}, random_state=0).fit(views)
    assert model.bank_.rules_ == {"far": "from_distances", "words": "sparse"}


def test_distances_taken_for_kernels_are_told_how_to_become_some():
    message = "looks like distances.*kernels='from_distances'.*{NAME: 'from_distances'}"
    with pytest.raises(ValueError, match=message):
        AverageKKM(3, kernels="precomputed").fit({"a": distances()})
    with pytest.raises(ValueError, match=r"squared distances.*np.sqrt\(D\)"):
        AverageKKM(3, kernels="precomputed").fit({"a": distances() ** 2})


@pytest.mark.parametrize("ids", [[f"sample {i}" for i in range(N)], [7 * i for i in range(N)]])
@pytest.mark.parametrize("rule", ["from_distances", "distances", "graph"])
@given(seeds=st.lists(st.integers(0, 99), min_size=3, max_size=3), is_first=st.booleans())
def test_the_columns_of_a_frame_of_pairs_follow_the_order_of_samples(ids, rule, seeds, is_first):
    entries = distances()
    if rule == "graph":  # links of the nearest
        entries = np.where(entries < np.quantile(entries, 0.3), 1.0, 0.0)
    table, D = pd.DataFrame(numbers(), ids), pd.DataFrame(entries, ids, ids)
    orders = [np.random.default_rng(seed).permutation(N) for seed in seeds]
    model = AverageKKM(3, kernels={"far": rule}, random_state=0).fit({"table": table, "far": D})
    mixed = {"table": table.iloc[orders[0]], "far": D.iloc[orders[1], orders[2]]}
    if is_first:
        mixed = dict(reversed(mixed.items()))
    other = clone(model).fit(mixed)
    # Labels do not depend on the order of samples but for their numbers.
    where = pd.Index(other.sample_ids_).get_indexer(ids)
    same = model.labels_[:, None] == model.labels_
    np.testing.assert_array_equal(other.labels_[where][:, None] == other.labels_[where], same)
    new = {"table": table.iloc[:7], "far": D.iloc[orders[1]].loc[ids[:7]].iloc[:, orders[2]]}
    np.testing.assert_array_equal(model.predict(new), model.labels_[:7])
    np.testing.assert_array_equal(model.predict(mixed), model.labels_[orders[1 if is_first else 0]])


def test_a_join_drops_the_columns_of_a_frame_of_pairs():
    ids = [f"sample {i}" for i in range(N)]
    table, D = pd.DataFrame(numbers(), ids), pd.DataFrame(distances(), ids, ids)
    model = AverageKKM(3, kernels={"far": "from_distances"}, join="inner", random_state=0)
    joined = {"table": table.iloc[5:], "far": D}
    labels = model.fit(joined).labels_
    plain = {"table": table.iloc[5:], "far": D.iloc[5:, 5:]}
    np.testing.assert_array_equal(clone(model).fit(plain).labels_, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert diagnose(model, joined, leave_one_out=False).summary()
    with pytest.warns(UserWarning, match="'far' has the columns 'sample 0', .* left out"):
        np.testing.assert_array_equal(
            model.predict({"table": table.iloc[5:9], "far": D.iloc[5:9]}), labels[:4]
        )


# Sparse views ----------------------------------------------------------------------------------


def marks():
    return np.hstack([np.eye(4)[column] for column in codes().astype(int).T])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "from_distances"])
@pytest.mark.parametrize("container", [csr_array, csc_array, csr_matrix])
def test_kernels_by_name_of_a_sparse_view_are_those_of_its_entries(name, container):
    view = marks() if name == "overlap" else numbers()
    bank, held = bank_of(name), kernel(name, view)
    np.testing.assert_allclose(bank.fit_transform({"a": container(view)})[0], held, atol=1e-12)
    assert issparse(bank.views_["a"])
    for new in (container(view[3:8]), view[3:8]):
        np.testing.assert_allclose(bank.transform({"a": new})[0], held[3:8], atol=1e-12)
    rows = bank_of(name, on_the_fly=True).fit_transform({"a": container(view)})
    np.testing.assert_allclose(rows.rows(3, 8)[0], held[3:8], atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "from_distances"])
def test_a_model_of_a_sparse_view_predicts_by_every_kernel_by_name(name):
    view = marks() if name == "overlap" else numbers()
    model = AverageKKM(3, kernels={"a": name}, psd="clip", random_state=0)
    model.fit({"a": csr_array(view)})
    np.testing.assert_array_equal(clone(model).fit({"a": view}).labels_, model.labels_)
    for few in (csr_array(view[:9]), view[:9]):
        np.testing.assert_array_equal(model.predict({"a": few}), model.labels_[:9])


@pytest.mark.parametrize(
    ("name", "view", "message"),
    [
        ("overlap", codes(), r"View 'a' .*zeros and ones for each category.*toarray\(\)"),
        ("from_distances", distances(), r"View 'a' .*takes all distances.*toarray\(\)"),
    ],
)
def test_kernels_that_take_no_sparse_view_say_what_to_pass(name, view, message):
    with pytest.raises(ValueError, match=message):
        bank_of(name).fit({"a": csr_array(view)})


def test_transformers_of_sparse_views_get_sparse_rows():
    view_of_words = csr_array(np.random.default_rng(0).poisson(0.1, (N, 60)) * 1.0)
    weighted = view(preprocess=TfidfTransformer(), kernel="cosine")
    model = AverageKKM(3, kernels={"a": weighted}, random_state=0).fit({"a": view_of_words})
    assert issparse(model.bank_._prepared("a", view_of_words[:4]))
    short = view(preprocess=TruncatedSVD(5, random_state=0))
    reduced = AverageKKM(3, kernels={"a": short}, random_state=0).fit({"a": view_of_words})
    assert reduced.bank_._prepared("a", view_of_words[:4]).shape == (4, 5)
    for each in (model, reduced):
        assert issparse(each.bank_.views_["a"])
        few = {"a": view_of_words[:9]}
        np.testing.assert_array_equal(each.predict(few), each.labels_[:9])
        np.testing.assert_array_equal(each.predict({"a": few["a"].toarray()}), each.labels_[:9])


# Views of frames --------------------------------------------------------------------------------


def clinic():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"age": rng.normal(size=N), "bmi": rng.normal(size=N), "sex": list("fm") * (N // 2)}
    )


def test_kernels_are_asked_for_by_the_names_of_both_parts_of_a_frame():
    for part, other in (("clinic", "clinic (categories)"), ("clinic (categories)", "clinic")):
        model = AverageKKM(2, kernels={part: "cosine"}, random_state=0).fit({"clinic": clinic()})
        assert model.bank_.rules_[part] == "cosine"
        assert model.bank_.rules_[other] in ("dense", "categories")
        assert (model.predict({"clinic": clinic()}) == model.labels_).all()
    asked = {"clinic (categories)": "categorical"}
    assert AverageKKM(2, kernels=asked).fit({"clinic": clinic()}).bank_.rules_ == {
        "clinic": "dense",
        "clinic (categories)": "overlap",
    }


def test_a_name_of_no_view_is_refused_with_the_near_ones():
    message = r"'clinc' \(did you mean 'clinic'.*the views are 'clinic', 'clinic \(categories\)'"
    with pytest.raises(ValueError, match=message):
        AverageKKM(2, kernels={"clinc": "cosine"}).fit({"clinic": clinic()})


# Beside the rest of the library ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["cosine", "linear", "hellinger", "overlap"])
def test_features_stand_for_kernels_that_are_inner_products(name):
    view = example(name)
    model = AverageKKM(3, kernels={"a": name}, approximation=Linear(), random_state=0)
    exact = AverageKKM(3, kernels={"a": name}, random_state=0).fit({"a": view})
    model.fit({"a": view})
    np.testing.assert_array_equal(model.labels_, exact.labels_)
    assert (model.predict({"a": view}) == model.labels_).all()


@pytest.mark.parametrize("name", ["laplacian", "chi2", "jaccard", "self-tuning", "polynomial"])
def test_no_features_stand_for_kernels_of_pairs(name):
    model = AverageKKM(3, kernels={"a": name}, approximation=Nystroem(10))
    with pytest.raises(ValueError, match="is computed of pairs .* or approximation=None"):
        model.fit({"a": example(name)})


@pytest.mark.parametrize("name", ["chi2", "overlap", "from_distances", "self-tuning"])
def test_what_looks_closer_takes_kernels_by_name(name):
    views = {"a": example(name), "b": numbers()}
    model = AverageKKM(3, kernels={"a": name}, psd="clip", random_state=0).fit(views)
    stability = resample(model, views, n_resamples=2)
    assert stability.agreements.shape == (2,)
    assert diagnose(model, views).summary()
    options = {"kernels": {"a": name}, "psd": "clip"}
    found = suggest_n_clusters(views, [2, 3], n_draws=9, level=0.1, n_resamples=2, **options)
    assert found.n_clusters in (1, 2, 3)
    assert agreement(views, **options).names == ("a", "b")
