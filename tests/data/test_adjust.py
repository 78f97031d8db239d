"""Covariates are removed from views, and what is left agrees no more than chance."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score

from helpers.cli import fail, succeed
from mkclust import (
    AgreementKKM,
    AverageKKM,
    agreement,
    load_model,
    save_model,
    write_report,
)
from mkclust.data.adjust import adjust_samples
from mkclust.data.samples import read_views
from mkclust.kernels import Nystroem
from mkclust.stack import as_stack

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N = 120
Y = np.arange(N) % 3
IDS = [f"p{i:03}" for i in range(N)]


def cohort(effect=6.0, seed=0):
    """Return views of three clusters that a batch and the age hide."""
    rng = np.random.default_rng(seed)
    batch = rng.integers(4, size=N)
    age = rng.normal(50, 10, size=N)
    covariates = pd.DataFrame({"age": age, "batch": [f"b{b}" for b in batch]}, IDS)
    views = {}
    for name, d in {"rna": 30, "protein": 12}.items():
        X = 2 * rng.normal(size=(3, d))[Y] + rng.normal(size=(N, d))
        X += effect * rng.normal(size=(4, d))[batch]
        X += effect * np.outer((age - 50) / 10, rng.normal(size=d))
        views[name] = pd.DataFrame(X, IDS).add_prefix(name)
    return views, covariates


def test_what_is_left_is_the_residuals_of_least_squares_with_the_means():
    views, covariates = cohort()
    views["rna"] = views["rna"].iloc[:90]
    samples = read_views(views, options=AgreementKKM(join="outer").table_options)
    adjusted = adjust_samples(samples, covariates.sample(frac=1, random_state=0))
    for name, view in views.items():
        own = pd.get_dummies(covariates.loc[view.index], dtype=float)
        fitted = LinearRegression().fit(own, view)
        expected = view - fitted.predict(own)
        found = adjusted.by_name[name]
        np.testing.assert_allclose(found - found.mean(axis=0), expected, atol=1e-9)
        share = np.mean(1 - expected.var() / view.var())
        assert adjusted.adjustment.shares[name] == pytest.approx(share)


def test_clusters_that_covariates_hide_are_found_and_new_samples_are_too(tmp_path):
    views, covariates = cohort()
    old, new = slice(0, 90), slice(90, N)
    hidden = AgreementKKM(3, random_state=0).fit({n: v[old] for n, v in views.items()})
    assert adjusted_rand_score(Y[old], hidden.labels_) < 0.5

    known = {name: view[old] for name, view in views.items()}
    model = AgreementKKM(3, random_state=0).fit(known, adjust=covariates[old])
    assert adjusted_rand_score(Y[old], model.labels_) > 0.9
    assert "rna: adjusted for age and batch, which took" in model.summary()
    np.testing.assert_array_equal(
        model.predict(known, adjust=covariates[::-1]), model.labels_
    )
    others = {name: view[new] for name, view in views.items()}
    predicted = model.predict(others, adjust=covariates)
    assert adjusted_rand_score(Y[new], predicted) > 0.9
    assert model.mixed_kernel(known).shape == (90, 90)
    page = write_report(model, known, tmp_path / "page.html", n_resamples=0)
    assert "What is linear in age and batch was removed" in page.read_text()

    with pytest.raises(ValueError, match="fitted with adjust= .*age and batch"):
        model.predict(others)
    with pytest.raises(ValueError, match="fitted without"):
        hidden.predict(others, adjust=covariates)
    unknown = covariates.replace({"batch": {"b2": "b9"}})
    with pytest.raises(ValueError, match="category that the fit has not seen"):
        model.predict(others, adjust=unknown[new])


def test_empty_cells_of_covariates_are_filled_as_those_of_views_are():
    views, covariates = cohort()
    holes = covariates.copy()
    holes.iloc[:5, 0] = np.nan
    holes.iloc[3:9, 1] = np.nan
    filled = holes.fillna(
        {"age": holes["age"].median(), "batch": holes["batch"].mode()[0]}
    )
    with pytest.raises(ValueError, match="impute='median'"):
        AverageKKM(3).fit(views, adjust=holes)
    model = AverageKKM(3, impute="median", random_state=0).fit(views, adjust=holes)
    expected = AverageKKM(3, random_state=0).fit(views, adjust=filled)
    np.testing.assert_allclose(model.objective_, expected.objective_)
    assert "(age: 5 and batch: 6)" in model.summary()
    new = {name: view[:9] for name, view in views.items()}
    np.testing.assert_array_equal(
        model.predict(new, adjust=holes[:9]), expected.predict(new, adjust=filled[:9])
    )


def test_features_that_stand_for_kernels_are_adjusted_alike(tmp_path):
    views, covariates = cohort()
    model = AverageKKM(3, approximation=Nystroem(60), random_state=0)
    model.fit(views, adjust=covariates)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    again = load_model(save_model(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(
        again.predict(views, adjust=covariates), model.labels_
    )


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_arrays_and_series_are_covariates_in_the_order_of_the_samples(kind):
    views, covariates = cohort()
    column = covariates["age"] if kind == "numbers" else covariates["batch"]
    arrays = {name: view.to_numpy() for name, view in views.items()}
    found = AverageKKM(3, random_state=0).fit(arrays, adjust=column.to_numpy())
    expected = AverageKKM(3, random_state=0).fit(views, adjust=column)
    np.testing.assert_allclose(found.objective_, expected.objective_)


def independent(n, q, d, seed):
    """Return two views that share nothing but a batch, and the batches."""
    rng = np.random.default_rng(seed)
    batch = rng.integers(q, size=n)
    views = {
        name: 2 * rng.normal(size=(q, d))[batch] + rng.normal(size=(n, d))
        for name in "ab"
    }
    return views, batch.astype(str)


def p_values(n, q, d, n_seeds):
    found = []
    for seed in range(n_seeds):
        views, batch = independent(n, q, d, seed)
        found.append(agreement(views, adjust=batch).p_values[0, 1])
    return np.array(found)


def test_independent_views_agree_for_their_batches_and_not_once_these_are_removed():
    views, _ = independent(100, 10, 30, 0)
    assert agreement(views).p_values[0, 1] < 1e-10
    # At a level of 5 %, 8 or more of 40 have a probability of .0005.
    assert (p_values(100, 10, 30, 40) < 0.05).sum() < 8


@pytest.mark.slow
@pytest.mark.parametrize(("n", "q", "d"), [(60, 10, 5), (100, 20, 5), (300, 20, 10)])
def test_independent_views_agree_in_five_percent_of_cases_if_adjusted(n, q, d):
    # 20 or more of 200 have a probability of .002 at a level of 5 %.
    assert (p_values(n, q, d, 200) < 0.05).sum() < 20


@pytest.mark.slow
def test_samples_of_extreme_covariates_do_not_make_independent_views_agree():
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        covariates = rng.lognormal(size=(100, 20))
        views = {
            name: covariates @ rng.normal(size=(20, 30)) + rng.normal(size=(100, 30))
            for name in "ab"
        }
        found.append(agreement(views, adjust=covariates).p_values[0, 1])
    # 20 or more of 200 have a probability of .002 at a level of 5 %.
    assert (np.array(found) < 0.05).sum() < 20


def test_views_that_agree_beyond_their_covariates_still_do():
    views, covariates = cohort()
    assert agreement(views, adjust=covariates).p_values[0, 1] < 1e-5


def test_what_cannot_be_adjusted_is_refused_by_its_name():
    views, covariates = cohort()
    kernel = as_stack([np.eye(N) + 0.1]).among().entries
    with pytest.raises(ValueError, match="adjust= .*kernels"):
        AverageKKM(3, kernels="precomputed").fit(kernel, adjust=covariates)
    sparse = {"rna": scipy.sparse.csr_array(views["rna"])}
    with pytest.raises(ValueError, match="'rna' is sparse"):
        AverageKKM(3).fit(sparse, adjust=covariates.to_numpy()[:, :1].astype(float))
    with pytest.raises(ValueError, match="scale='log' with adjust="):
        AverageKKM(3, scale="log").fit(views, adjust=covariates)
    with pytest.raises(ValueError, match="adjust lacks 20"):
        AverageKKM(3).fit(views, adjust=covariates[20:])
    with pytest.raises(ValueError, match="explains everything"):
        AverageKKM(3).fit(views, adjust=np.random.default_rng(0).normal(size=(N, N)))


def test_the_command_line_adjusts_and_predicts_with_covariates_of_new_samples(folder):
    views, covariates = cohort()
    for name, view in views.items():
        view[:90].to_csv(f"{name}.csv", index_label="id")
    covariates.assign(other=1.5).to_csv("clinic.csv", index_label="id")
    adjust = ("--adjust-for", "clinic.csv::age,batch")
    files = ("rna.csv", "protein.csv")
    said = succeed("cluster", *files, "-k", 3, *adjust, "--save", "m.skops")
    assert "adjusted for age and batch" in said.stdout
    labels = pd.read_csv("labels.csv", index_col="id")["cluster"]
    assert adjusted_rand_score(Y[:90], labels.loc[IDS[:90]]) > 0.9
    assert json.loads((folder / "run.json").read_text())
    for name, view in views.items():
        view[90:].to_csv(f"{name}.csv", index_label="id")
    assert "adjust=" in fail("predict", "m.skops", *files)
    succeed("predict", "m.skops", *files, *adjust)
    found = pd.read_csv("predicted.csv", index_col="id")["cluster"]
    assert adjusted_rand_score(Y[90:], found.loc[IDS[90:]]) > 0.9
    with warnings.catch_warnings():
        for name, view in views.items():
            view.to_csv(f"{name}.csv", index_label="id")
        assert "3" in succeed("suggest", *files, *adjust, "--to", 5).stdout
