"""Columns with units of their own are scaled; views of one kind of measurement are
not."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_wine

from mkclust import AgreementKKM, AverageKKM, KernelBank
from mkclust.kernels.preparations import Logarithm, ScaleColumns, are_strongly_skewed
from mkclust.metrics import adjusted_rand_index

ONE = {"widths": (1.0,), "polynomials": (), "linear": None, "rules": "kind"}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return {"first": X[:, :6], "second": X[:, 6:]}, y


@pytest.mark.parametrize("seed", range(3))
def test_the_unit_of_a_column_does_not_matter(wine, seed):
    views, y = wine
    rng = np.random.default_rng(seed)
    expected = AgreementKKM(3, random_state=0).fit(views)
    units = {
        name: 10 ** rng.uniform(-4, 4, view.shape[1]) for name, view in views.items()
    }
    other = {name: view * units[name] for name, view in views.items()}
    model = AgreementKKM(3, random_state=0).fit(other)
    assert adjusted_rand_index(expected.labels_, model.labels_) > 0.99
    assert adjusted_rand_index(y, model.labels_) > 0.85
    new = {name: view[:20] for name, view in other.items()}
    np.testing.assert_array_equal(model.predict(new), model.labels_[:20])
    assert "columns divided by their spread" in model.summary()


@pytest.mark.parametrize(
    ("n_columns", "factor", "kind"),
    [
        (1, 1, "table"),
        (20, 1, "table"),
        (21, 1, "dense"),
        (60, 1e5, "table"),
        (150, 1e5, "dense"),
    ],
)
def test_few_columns_or_spreads_far_apart_make_a_table(n_columns, factor, kind):
    X = np.random.default_rng(0).normal(size=(50, n_columns))
    X[:, 0] *= factor
    assert KernelBank(**ONE).fit({"a": X}).rules_ == {"a": kind}


def test_a_few_wrong_entries_do_not_change_a_spread():
    X = np.random.default_rng(0).normal(size=(500, 4))
    spoiled = X.copy()
    spoiled[:3, 1] = -9999
    before, after = ScaleColumns.learn(X).factors, ScaleColumns.learn(spoiled).factors
    np.testing.assert_allclose(after, before, rtol=0.05)
    # A column that is constant apart from these still has a spread.
    X[:, 2], X[0, 2] = 1.0, 3.0
    assert ScaleColumns.learn(X).factors[2] == pytest.approx(1 / X[:, 2].std())
    assert ScaleColumns.learn(np.ones((20, 2))).factors.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("scale", "spread"),
    [
        ("standard", lambda X: X.std(axis=0)),
        (
            "robust",
            lambda X: np.subtract(*np.quantile(X, (0.75, 0.25), axis=0)) / 1.349,
        ),
        ("none", lambda X: np.ones(X.shape[1])),
    ],
)
def test_a_scale_that_is_asked_for_is_that_of_scaled_columns(wine, scale, spread):
    views = wine[0]
    asked = KernelBank(**ONE, scale=scale).fit_transform(views)
    by_hand = {name: view / spread(view) for name, view in views.items()}
    expected = KernelBank(**ONE, scale="none").fit_transform(by_hand)
    for K, other in zip(asked, expected, strict=True):
        np.testing.assert_allclose(K, other, atol=1e-10)
    one = KernelBank(**ONE, scale={"first": scale}).fit_transform(views)
    np.testing.assert_allclose(one[0], asked[0], atol=1e-12)
    np.testing.assert_allclose(
        one[1], KernelBank(**ONE).fit_transform(views)[1], atol=1e-12
    )


def test_counts_and_categories_are_not_scaled():
    counts = np.random.default_rng(0).poisson(0.05, size=(40, 60)).astype(float)
    views = {"words": counts, "group": np.eye(3)[np.arange(40) % 3]}
    plain, asked = (KernelBank(**ONE, scale=s).fit(views) for s in ("auto", "standard"))
    assert plain.explain() == asked.explain()


@pytest.mark.parametrize("scale", ["zscore", {"first": "zscore"}, {"frist": "robust"}])
def test_a_scale_that_cannot_be_is_refused(wine, scale):
    with pytest.raises(ValueError, match="scale"):
        AverageKKM(3, scale=scale).fit(wine[0])


def test_kernels_and_banks_take_no_scale(wine):
    with pytest.raises(ValueError, match="scale='robust'"):
        AverageKKM(3, scale="robust").fit(np.eye(6)[None])
    with pytest.raises(ValueError, match="scale to the bank"):
        AverageKKM(3, scale="robust", kernels=KernelBank()).fit(wine[0])


def raw_expression():
    rng = np.random.default_rng(0)
    return 2 ** (rng.uniform(1, 10, size=30) + rng.normal(size=(60, 30)))


def test_the_scale_log_is_that_of_logarithms_and_keeps_sparse_rows_sparse():
    raw = raw_expression()
    logarithms = np.log2(raw + 1)
    bank = KernelBank(**ONE, scale={"rna": "log"})
    found = bank.fit_transform({"rna": raw})
    expected = KernelBank(**ONE, scale={"rna": "standard"})
    np.testing.assert_allclose(found, expected.fit_transform({"rna": logarithms}))
    new = raw_expression()[:5] * 1.1
    np.testing.assert_allclose(
        bank.transform({"rna": new}), expected.transform({"rna": np.log2(new + 1)})
    )
    of_sparse = Logarithm.learn(scipy.sparse.csr_array(raw)).apply(
        scipy.sparse.csr_array(raw)
    )
    np.testing.assert_allclose(
        of_sparse.toarray(), logarithms / logarithms.std(axis=0), rtol=1e-10
    )


def test_logarithms_of_negative_entries_are_refused_by_the_name_of_the_view():
    raw = raw_expression()
    raw[3, 4] = -1
    with pytest.raises(ValueError, match="'rna' .*scale='log'.*negative"):
        KernelBank(scale="log").fit({"rna": raw})


def test_strongly_skewed_views_are_named_in_the_summary_until_they_are_logarithms():
    raw = raw_expression()
    views = {"rna": raw, "normal": np.random.default_rng(1).normal(size=(60, 30))}
    proposal = "strongly skewed: log2(x + 1)?"
    said = AverageKKM(2).fit(views).summary().splitlines()
    assert [proposal in line for line in said if ": dense" in line] == [True, False]
    model = AverageKKM(2, scale={"rna": "log"}).fit(views)
    assert proposal not in model.summary()
    assert "log2(x + 1), columns divided" in model.summary()
    assert not are_strongly_skewed(np.log2(raw + 1))
    assert not are_strongly_skewed(raw / raw.max())  # which log2(x + 1) leaves skewed
