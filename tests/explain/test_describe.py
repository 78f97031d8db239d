"""Which features set the clusters apart: true effect sizes, whatever the form of the
tables."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from helpers.views import blob_views
from mkclust import AgreementKKM, AverageKKM, describe
from mkclust.data import read_samples


@pytest.fixture(scope="module")
def problem():
    views, _ = blob_views(np.random.default_rng(0), n=60, k=3)
    views = dict(zip(("left", "right", "top"), views, strict=True))
    return AverageKKM(3, random_state=0).fit(views), views


def cohens_d(inside, outside):
    n, m = len(inside), len(outside)
    pooled = ((n - 1) * np.var(inside, ddof=1) + (m - 1) * np.var(outside, ddof=1)) / (
        n + m - 2
    )
    return (inside.mean() - outside.mean()) / np.sqrt(pooled)


def test_effects_of_numbers_are_cohens_d_and_the_strongest_come_first(problem):
    model, views = problem
    description = describe(model, views, n_features=4)
    for cluster in range(3):
        inside = model.labels_ == cluster
        for name, view in views.items():
            table = description.table
            table = table[(table["cluster"] == cluster) & (table["view"] == name)]
            expected = np.array(
                [cohens_d(column[inside], column[~inside]) for column in view.T]
            )
            order = np.argsort(-np.abs(expected))[:4]
            assert table["feature"].tolist() == [f"column {place}" for place in order]
            np.testing.assert_allclose(table["effect"], expected[order])
            np.testing.assert_allclose(
                table["mean_in"], view[inside].mean(axis=0)[order]
            )
            np.testing.assert_allclose(
                table["mean_out"], view[~inside].mean(axis=0)[order]
            )
            counts = table[["n_in", "n_out", "n_missing"]]
            assert (counts == [inside.sum(), (~inside).sum(), 0]).all(axis=None)


def test_numbers_far_from_zero_have_the_effects_of_those_near_it(problem):
    model, views = problem
    plain = describe(model, {"a": views["left"]})
    far = describe(model, {"a": 1e9 + 1e3 * views["left"]})
    huge = describe(model, {"a": 1e200 * views["left"]})
    for other in (far, huge):
        columns = ["cluster", "feature", "effect"]
        pd.testing.assert_frame_equal(
            other.table[columns], plain.table[columns], rtol=1e-5
        )


def test_features_that_are_constant_in_clusters_have_finite_effects_or_none(problem):
    model, _ = problem
    constant = np.full(60, 0.1)
    table = np.column_stack(
        [constant, 5.0 + 2.0 * (model.labels_ == 0), 1e9 + 0 * constant]
    )
    description = describe(model, table)
    assert {row.feature for row in description.effects} == {"column 1"}
    effects = {row.cluster: row.effect for row in description.effects}
    assert np.isfinite(list(effects.values())).all()
    assert effects[0] > 50
    assert effects[1] < 0


def test_a_sparse_table_gives_what_the_dense_one_does_and_is_not_made_dense(
    problem, monkeypatch
):
    model, _ = problem
    rng = np.random.default_rng(1)
    dense = rng.poisson(0.3, size=(60, 30)) * rng.normal(2, 1, size=(60, 30))
    dense[:, 3] = rng.integers(2, size=60)
    dense[4, 5] = np.nan
    dense[:, 7] = 0.1
    expected = describe(model, {"counts": dense})
    assert "column 7" not in {row.feature for row in expected.effects}
    table = sparse.csr_matrix(dense)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_matrix, name, None)
    for form in (table, sparse.csc_array(table), sparse.coo_matrix(table)):
        found = describe(model, {"counts": form})
        pd.testing.assert_frame_equal(found.table, expected.table, atol=1e-9)
    assert np.isnan(table.data).sum() == 1  # what was passed is left alone


def test_missing_cells_are_left_out_feature_by_feature_and_counted(problem):
    model, views = problem
    table = views["left"].copy()
    table[:7, 0] = np.nan
    rows = [r for r in describe(model, table).effects if r.feature == "column 0"]
    known = ~np.isnan(table[:, 0])
    for row in rows:
        inside = model.labels_ == row.cluster
        effect = cohens_d(table[known & inside, 0], table[known & ~inside, 0])
        assert row.effect == pytest.approx(effect)
        assert (row.n_in + row.n_out, row.n_missing) == (53, 7)
    table[5] = np.nan  # known of nobody's features
    assert {row.n_missing for row in describe(model, table).effects} == {1, 7}
    masked = np.ma.masked_invalid(table)
    assert describe(model, masked).effects == describe(model, table).effects


def test_categories_and_truth_values_are_compared_by_shares(problem):
    model, _ = problem
    first = model.labels_ == 0
    frame = pd.DataFrame(
        {
            "sex": np.where(first, "male", "female"),
            "grade": pd.Categorical(np.array(["I", "II", "III"])[model.labels_]),
            "smoker": first,
            "one": "same",
            "letter": [f"text {i}" for i in range(60)],
            "day": pd.date_range("2020-01-01", periods=60),
        }
    )
    frame["smoker"] = frame["smoker"].astype("boolean")
    frame.loc[3, "smoker"] = pd.NA
    description = describe(model, {"clinic": frame})
    rows = {(row.cluster, row.feature): row for row in description.effects}
    assert rows[0, "sex=male"].effect == 1
    assert (0, "sex=female") not in rows  # which would say the same again
    assert rows[1, "sex=female"].effect == pytest.approx(
        first.sum() / (model.labels_ != 1).sum()
    )
    assert rows[0, "smoker"].n_missing == 1
    assert {row.kind for row in description.effects} == {"share"}
    assert {row.view for row in description.effects} == {"clinic"}
    assert not any("one" in row.feature for row in description.effects)
    assert all(
        word in description.notes[0]
        for word in ("'letter' holds text", "'day' holds dates")
    )
    frame["age"] = np.arange(60.0)
    views = {row.view for row in describe(model, {"clinic": frame}).effects}
    assert views == {"clinic", "clinic (categories)"}


def test_names_are_of_the_strongest_features_and_differ_between_clusters(problem):
    model, views = problem
    description = describe(model, views)
    assert len(set(description.names)) == 3
    for cluster, name in enumerate(description.names):
        first = description.strongest(cluster, 1)[0]
        assert name.startswith(("high " if first.effect > 0 else "low ") + first.view)
    numbered = pd.DataFrame(views["left"][:, :2], columns=[1, "2"])
    assert all(
        "clinic column" in name for name in describe(model, {"clinic": numbered}).names
    )
    noise = np.zeros((60, 1))
    assert describe(model, noise).names == tuple(
        f"nothing stands out ({c})" for c in range(3)
    )
    single = describe(AverageKKM(1).fit(views), views)
    assert (single.effects, single.names) == ([], ("nothing stands out",))


def test_every_view_says_what_sets_a_cluster_apart(problem):
    description = describe(*problem)
    for cluster in range(3):
        parts = description.by_view(cluster, 1).split("; ")
        for view, part in zip(problem[1], parts, strict=True):
            [first] = description.strongest(cluster, 1, view)
            assert part.startswith(f"{view}: ")
            assert part.endswith(f"{view} {first.feature}")


def test_a_description_is_handed_on(problem):
    model, views = problem
    description = describe(model, views, n_features=2)
    record = json.loads(json.dumps(description.to_dict(), allow_nan=False))
    assert (
        sum(len(c["features"]) for c in record["clusters"])
        == len(description.effects)
        == 18
    )
    pytest.importorskip("matplotlib")
    display, first = description.plot(n_features=2), description.strongest(1, 1)[0]
    at = display.features.index(f"{first.view} {first.feature}")
    assert display.differences[at, 1] == first.standardized


def test_of_two_levels_that_a_fit_made_columns_of_the_more_frequent_is_named(problem):
    model, _ = problem
    frame = pd.DataFrame({"sex": np.where(model.labels_ == 0, "male", "female")})
    frame["grade"] = np.array(["I", "II", "III"])[model.labels_]
    read, given = (
        describe(model, each) for each in (read_samples({"a": frame}), {"a": frame})
    )
    assert read.names == given.names
    named = {
        (row.cluster, row.feature)
        for row in read.effects
        if row.feature.startswith("sex")
    }
    assert named == {(0, "sex=male"), (1, "sex=female"), (2, "sex=female")}


def test_features_of_one_name_are_told_apart_by_their_views():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [40, 20])
    tables = {}
    for name in ("blood", "urine"):
        values = rng.normal(size=(60, 2)) + 6 * y[:, None]
        tables[name] = pd.DataFrame(values, columns=["iron", f"{name} only"])
    text = str(describe(AgreementKKM(2, random_state=0).fit(tables), tables))
    assert "iron in blood (" in text
    assert "iron in urine (" in text
    assert "blood only (" in text
