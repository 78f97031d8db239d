"""Models of samples that are missing from views are explained as complete ones are."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from helpers.cli import succeed
from mkclust import (
    AgreementKKM,
    AverageKKM,
    SimpleMKKM,
    describe,
    diagnose,
    suggest_n_clusters,
)
from mkclust.data.samples import read_samples
from mkclust.exceptions import MissingnessWarning
from mkclust.explain.fitted import Parts
from mkclust.explain.null_draws import NullDraws, mix, open_stack
from mkclust.explain.stability import stability
from mkclust.kernels import default_bank
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow

N, NAMES = 120, ("mrna", "mirna", "clinic")


@pytest.fixture(scope="module")
def problem():
    """Return clusters, who is in which table, and tables of these samples, by their
    ids."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    observed = rng.random((N, 3)) >= 0.3
    observed[~observed.any(axis=1), 0] = True
    ids = np.array([f"P{i:03}" for i in range(N)])
    frames = {}
    for v, name in enumerate(NAMES):
        rows = 4 * rng.normal(size=(3, 4))[y] + rng.normal(size=(N, 4))
        columns = [f"{name}_{place}" for place in range(4)]
        frames[name] = pd.DataFrame(rows, ids, columns)[observed[:, v]]
    return y, observed, frames


def with_empty_rows(frames, observed):
    views = {}
    for v, (name, frame) in enumerate(frames.items()):
        views[name] = np.full((N, frame.shape[1]), np.nan)
        views[name][observed[:, v]] = frame.to_numpy()
    return views


@pytest.fixture(scope="module")
def joined(problem):
    return AgreementKKM(3, join="outer", scale="none", random_state=0).fit(
        problem[2]
    ), problem[2]


@pytest.fixture(scope="module")
def with_gaps(problem):
    views = with_empty_rows(problem[2], problem[1])
    return SimpleMKKM(3, random_state=0).fit(views), views


def test_a_fit_warns_of_clusters_that_follow_the_missingness():
    y, rng = np.arange(N) % 3, np.random.default_rng(0)
    complete = {name: 4 * np.eye(3)[y] + rng.normal(size=(N, 3)) for name in NAMES}
    views = complete | {"mirna": np.where((y == 0)[:, None], np.nan, complete["mirna"])}
    with pytest.warns(
        MissingnessWarning, match="'mirna' is missing from 33 % of the samples"
    ):
        model = AverageKKM(3, random_state=0).fit(views)
    assert model.missingness_.follows
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingnessWarning)
        assert not hasattr(AverageKKM(3, random_state=0).fit(complete), "missingness_")


def test_effects_are_those_of_the_samples_that_a_view_has(joined):
    model, frames = joined
    observed = model.observed_
    description = describe(model, frames)
    labels = model.labels_[observed[:, 1]]
    frame = frames["mirna"].loc[model.sample_ids_[observed[:, 1]]]
    row = next(row for row in description.effects if row.view == "mirna")
    inside = frame[row.feature][labels == row.cluster]
    assert row.mean_in == pytest.approx(inside.mean())
    assert (row.n_in, row.n_in + row.n_out) == (len(inside), observed[:, 1].sum())
    assert row.n_missing == N - observed[:, 1].sum()
    assert f"{observed[:, 1].sum()}" in description.notes[0]


def test_what_a_mask_says_is_missing_is_not_described(problem):
    _, observed, frames = problem
    views = with_empty_rows(frames, observed)
    rubbish = {
        name: np.where(np.isnan(view), 1e6, view) for name, view in views.items()
    }
    compact = {name: frame.to_numpy() for name, frame in frames.items()}
    model = AverageKKM(3, random_state=0).fit(rubbish, observed=observed)
    expected = describe(model, views).effects
    for tables in (rubbish, compact, read_samples(rubbish, observed=observed)):
        table = describe(model, tables).effects
        assert [row.feature for row in table] == [row.feature for row in expected]
        np.testing.assert_allclose(
            [row.effect for row in table], [row.effect for row in expected], rtol=1e-12
        )


@pytest.mark.parametrize("of_kernels", [False, True])
def test_resamples_lack_what_their_samples_lack(problem, with_gaps, of_kernels):
    model, X = with_gaps
    observed = problem[1]
    if of_kernels:
        X = {name: view @ view.T for name, view in X.items()}
        model = AverageKKM(3, kernels="precomputed", random_state=0).fit(X)
    part = np.arange(0, N, 2)
    taken = Parts(model, X).take(part)
    np.testing.assert_array_equal(~taken.missing, observed[part])
    assert [p.shape[0] for p in taken.parts] == observed[part].sum(axis=0).tolist()
    found = stability(model, X, n_resamples=3)
    assert found.mean > 0.9
    assert found.samples.shape == (N,)


def test_parts_of_distances_lose_rows_and_columns_together(problem):
    _, observed, frames = problem
    views = with_empty_rows(frames, observed)
    distances = np.linalg.norm(views["mirna"][:, None] - views["mirna"], axis=2)
    X = {"mrna": views["mrna"], "distances": distances, "clinic": views["clinic"]}
    model = AverageKKM(3, random_state=0).fit(X)
    assert model.bank_.rules_["distances"] == "distances"
    part = np.arange(0, N, 2)
    taken = Parts(model, X).take(part).by_name["distances"]
    seen = part[observed[part, 1]]
    np.testing.assert_array_equal(taken, distances[np.ix_(seen, seen)])
    assert stability(model, X, n_resamples=2).mean > 0.8


def test_the_number_of_clusters_is_found_where_samples_are_missing(with_gaps):
    options = {"kernels": "gaussian", "level": 0.05}
    views = {name: view[:75] for name, view in with_gaps[1].items()}
    assert suggest_n_clusters(views, [2, 3], **options).n_clusters == 3
    rng = np.random.default_rng(0)
    noise = {
        name: np.where(np.isnan(view), view, rng.normal(size=view.shape))
        for name, view in views.items()
    }
    assert (
        suggest_n_clusters(noise, [2, 3], evidence=True, **options).evidence == "none"
    )


@pytest.mark.parametrize("of_kernels", [False, True])
def test_draws_without_clusters_lack_the_same_samples(with_gaps, problem, of_kernels):
    X, kernels, shares = with_gaps[1], default_bank(True), np.full(3, 1 / 3)
    if of_kernels:
        kernels, X = "precomputed", {name: view @ view.T for name, view in X.items()}
    samples = read_samples(X, expected="precomputed" if of_kernels else "views")
    model = AverageKKM(kernels=kernels, missing_views="zero")
    model.set_params(kernels=Parts(model, samples).kernels)
    draws, rng = NullDraws(samples, model, shares), np.random.default_rng(0)
    # The trace is the number of the kernels that have a sample, but for the centering
    # of the mix.
    for K in (
        draws.cloud(rng),
        draws.shuffled(rng),
        mix(open_stack(model, samples), shares),
    ):
        assert K.shape == (N, N)
        assert np.trace(K) == pytest.approx(problem[1].sum() / 3, rel=0.05)


def test_commands_take_files_that_lack_samples(problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in problem[2].items():
        frame.to_csv(f"{name}.csv")
    problem[2]["clinic"].assign(y=problem[0][problem[1][:, 2]]).to_csv("clinic.csv")
    files = [*(f"{name}.csv" for name in NAMES), "-k", "3", "--join", "outer"]
    result = succeed("cluster", *files, "--impute", "median", "--missing-views", "zero")
    assert "no scores" in result.stderr  # the table with labels lacks samples
    record = json.loads((tmp_path / "run.json").read_text())
    patterns = record["missingness"]["patterns"]
    assert sum(sum(pattern["clusters"]) for pattern in patterns) == N
    assert record["parameters"]["missing_views"] == "zero"
    labels = pd.read_csv("labels.csv", index_col="id")["cluster"].sort_index()
    assert adjusted_rand_index(labels.to_numpy(), problem[0]) > 0.95


def test_refits_without_a_view_go_without_the_samples_that_only_it_has(with_gaps):
    model, views = with_gaps
    for name, found in diagnose(model, views).table["leave_one_out"].items():
        others = {other: view for other, view in views.items() if other != name}
        seen = np.any([~np.isnan(view).all(axis=1) for view in others.values()], axis=0)
        assert not seen.all()
        refitted = clone(model).fit(
            {other: view[seen] for other, view in others.items()}
        )
        expected = adjusted_rand_index(model.labels_[seen], refitted.labels_)
        assert found == pytest.approx(expected, abs=0.02)
