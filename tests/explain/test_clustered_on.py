"""Variables that were clustered on, or are computed from these, are told by their
values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from mkclust import (
    AgreementKKM,
    AverageKKM,
    SimpleMKKM,
    annotate,
    load_model,
    save_model,
)
from mkclust.data import as_blocks
from mkclust.explain.clustered_on import NOT_ALL
from mkclust.fit.from_features import some_rows
from mkclust.kernels import Nystroem

N = 300
APPROXIMATIONS = [None, Nystroem(40)]
BY_APPROXIMATION = pytest.mark.parametrize("approximation", APPROXIMATIONS, ids=repr)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def table(rng):
    return pd.DataFrame(
        {
            "age": np.round(rng.gamma(9, 6, size=N)),
            "iron": rng.normal(size=N),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], size=N)),
            "smoker": rng.choice(["yes", "no"], size=N),
            "treated": rng.uniform(size=N) < 0.4,
        },
        index=[f"p{i}" for i in range(N)],
    )


def fitted(X, approximation=None, **options):
    method = AverageKKM if approximation is None else SimpleMKKM
    options |= {} if approximation is None else {"approximation": approximation}
    return method(3, random_state=0, **options).fit(X)


def names_tested(model, table):
    annotation = annotate(model, table, n_permutations=9)
    return [
        test.variable for test in annotation.tests if not test.reason
    ], annotation.notes


@BY_APPROXIMATION
def test_columns_of_all_kinds_are_recognized(table, rng, approximation, tmp_path):
    model = fitted(table, approximation)
    others = table.assign(noise=rng.normal(size=N), side=rng.choice(["l", "r"], size=N))
    assert names_tested(model, others.iloc[::-1]) == (["noise", "side"], (NOT_ALL,))
    pytest.importorskip("skops")
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    assert names_tested(loaded, others) == (["noise", "side"], (NOT_ALL,))


@pytest.mark.parametrize("n", [8, 12, 20])
def test_copies_under_other_names_are_recognized_with_few_samples(rng, n):
    table = pd.DataFrame(rng.normal(size=(n, 500))).add_prefix("gene ")
    table["age"], table["sex"] = rng.permutation(n) + 30, rng.permutation(n) % 2
    model = fitted({"table": table, "other": rng.normal(size=(n, 3))})
    copies = {
        "Alter": table["age"],
        "x": table["gene 1"],
        "y": -3 * table["gene 7"] + 2,
    }
    copies["gender"] = table["sex"].map({0: "f", 1: "m"})
    assert names_tested(model, copies | {"new": rng.normal(size=n)}) == (
        ["new"],
        (NOT_ALL,),
    )


@BY_APPROXIMATION
def test_columns_are_recognized_under_other_names_and_in_other_codes(
    table, rng, approximation
):
    table["dose"] = rng.integers(5, size=N)
    model = fitted(table, approximation)
    others = pd.DataFrame(
        {
            "log age": np.log(table["age"]),
            "minus iron": np.round(-3 * table["iron"] + 2, 3),
            "Stadium": table["stage"].map(
                {"I": "early", "II": "middle", "III": "late"}
            ),
            "stage number": table["stage"].cat.codes,
            "smokes": (table["smoker"] == "yes").astype(int),
            "therapy": np.where(table["treated"], "drug", "none"),
            "Dosis": table["dose"].map(dict(enumerate("xazyb"))),
            "new": rng.normal(size=N),
        }
    )
    assert names_tested(model, others) == (["new"], (NOT_ALL,))


@BY_APPROXIMATION
def test_what_is_computed_from_clustered_columns_is_not_tested(
    table, rng, approximation
):
    blood = pd.DataFrame({"sodium": rng.normal(140, 3, size=N)}, index=table.index)
    model = fitted({"clinic": table, "blood": blood}, approximation)
    age, iron, stage = table["age"], table["iron"], table["stage"].astype(str)
    computed = {
        "decade": age // 10,
        "quartile": pd.qcut(iron, 4).astype(str),
        "older": age > age.median(),
        "usual iron": iron.abs() < 1,
        "advanced": stage != "I",
        "age known": age.where(np.arange(N) % 6 > 0, age.mean().round()),
        "months": 12 * age.where(np.arange(N) % 6 > 0, rng.permutation(age)),
        "score": iron - 0.1 * age,
        "of two tables": 2 * iron + blood["sodium"],
    }
    new = {
        "ill": rng.uniform(size=N) < 0.3,
        "group": rng.choice(list("abcdef"), size=N),
    }
    assert names_tested(model, computed | new) == (["ill", "group"], (NOT_ALL,))


def test_columns_with_empty_cells_are_recognized_however_others_fill_them(table, rng):
    is_empty = rng.uniform(size=(N, 2)) < 0.2
    clustered = table[["age", "stage"]].copy()
    clustered[is_empty] = None
    model = fitted(clustered, impute="median")
    filled = {
        "by the mean": clustered["age"].fillna(clustered["age"].mean()),
        "in months": 12 * table["age"],
        "late": (clustered["stage"] == "III") & ~is_empty[:, 1],
        "with unknown": clustered["stage"]
        .astype(str)
        .where(~is_empty[:, 1], "unknown"),
        "new": rng.normal(size=N),
    }
    assert names_tested(model, filled) == (["new"], (NOT_ALL,))


@pytest.mark.parametrize("n", [20, 200])
def test_variables_that_only_depend_on_clustered_columns_are_tested(rng, n):
    table = rng.normal(size=(n, 5))
    others = {
        "close": table[:, 0] + 0.3 * rng.normal(size=n),
        "class": table[:, 1] + rng.normal(size=n) > 0,
        "grade": np.round(table[:, 2] + rng.normal(size=n)),
        "product": table[:, 3] * table[:, 4],
    }
    assert sorted(names_tested(fitted(table), others)[0]) == sorted(others)


def test_classes_that_a_clustered_column_separates_widely_are_tested(rng):
    classes = rng.integers(3, size=N)
    table = np.column_stack(
        [10 * classes + rng.normal(size=N), rng.normal(size=(N, 2))]
    )
    assert names_tested(fitted(table), {"species": classes, "third": classes == 2})[
        0
    ] == [
        "species",
        "third",
    ]


@BY_APPROXIMATION
def test_columns_of_the_same_names_are_not_tested_whatever_they_hold(
    table, approximation
):
    model = fitted(table, approximation)
    others = table.sample(frac=1, random_state=0).set_axis(table.index)
    annotation = annotate(
        model, others.assign(renamed=others["iron"]), n_permutations=9
    )
    assert [test.variable for test in annotation.tests if not test.reason] == [
        "renamed"
    ]
    assert "rename" in annotation.untested[0]


@BY_APPROXIMATION
def test_columns_are_compared_on_the_samples_with_values(table, rng, approximation):
    other = pd.DataFrame(rng.normal(size=(N, 3)), index=table.index).add_prefix("x")
    views = {"clinic": table[["age", "iron", "smoker"]].iloc[: N // 2], "other": other}
    model = fitted(views, approximation, join="outer", missing_views="rescale")
    table.loc[table.index[::7], ["age", "smoker"]] = None
    table["rare"] = np.arange(N) == 4
    assert sorted(names_tested(model, table)[0]) == ["rare", "stage", "treated"]


def test_survival_is_not_tested_if_its_times_were_clustered_on(rng):
    survival = {"os_time": rng.exponential(size=N), "os_event": rng.integers(2, size=N)}
    model = fitted(np.column_stack([survival["os_time"], rng.normal(size=(N, 2))]))
    assert names_tested(model, survival) == ([], (NOT_ALL,))


@BY_APPROXIMATION
def test_columns_of_sparse_views_are_recognized_and_rare_variables_not_mistaken(
    rng, approximation
):
    n = 600
    words = (rng.uniform(size=(n, 300)) < 0.005).astype(float)
    words[:, 0] = rng.poisson(1.0, size=n)
    model = fitted([csr_array(words), rng.normal(size=(n, 2))], approximation)
    rare = {f"rare {i}": np.isin(np.arange(n), rng.choice(n, 2)) for i in range(20)}
    assert names_tested(model, {"word": words[:, 0]} | rare) == (list(rare), (NOT_ALL,))


def test_rare_columns_of_large_tables_are_recognized_by_their_names(rng):
    n = 2000
    table = pd.DataFrame({"iron": rng.normal(size=n), "rare": rng.permutation(n) < 3})
    model = fitted(table, Nystroem(40))
    others = table.assign(other=rng.permutation(n) < 3)
    assert names_tested(model, others) == (["other"], (NOT_ALL,))
    model._source = replace(model._source, rows={})  # as of views with too many columns
    names, (note,) = names_tested(model, others)
    assert names == ["other"]
    assert "'table'" in note


def test_rows_of_views_with_too_many_columns_are_not_kept():
    wide, narrow = np.zeros((40, 100_000)), np.arange(20.0).repeat(2)[:, None]
    (view,) = some_rows(as_blocks({"wide": wide, "narrow": narrow})).items()
    assert view[0] == "narrow"
    np.testing.assert_array_equal(view[1][1], narrow)


def test_what_cannot_be_known_is_said(table, rng):
    X = rng.normal(size=(2, N, 4))
    kernels = fitted(list(X @ X.transpose(0, 2, 1)), kernels="precomputed")
    points = rng.normal(size=(N, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    paired = fitted(
        {"far": distances, "near": points[:, :1]},
        kernels={"far": "from_distances"},
        psd="shift",
    )
    for labels, word in (
        (kernels.labels_, "Labels"),
        (kernels, "kernels"),
        (paired, "'far'"),
    ):
        names, (note,) = names_tested(
            labels, {"iron": table["iron"], "x": points[:, 0]}
        )
        assert names == (["iron"] if labels is paired else ["iron", "x"])
        assert word in note


def test_columns_are_compared_on_the_anchors_of_many_samples(table, rng):
    views = {"clinic": table[["age", "iron"]], "other": rng.normal(size=(N, 3))}
    views["other"] = pd.DataFrame(views["other"], index=table.index).add_prefix("x")
    model = AgreementKKM(3, random_state=0, anchors=80, learn_from=120).fit(views)
    computed = {
        "decade": table["age"] // 10,
        "sum": table["iron"] + 2 * views["other"]["x1"],
    }
    assert names_tested(model, computed | {"new": rng.normal(size=N)}) == (
        ["new"],
        (NOT_ALL,),
    )


def test_columns_of_a_view_that_was_set_aside_are_tested_but_for_those_of_others(
    rng, table
):
    y = rng.integers(3, size=N)
    views = {
        name: pd.DataFrame(
            3 * rng.normal(size=(3, 6))[y] + rng.normal(size=(N, 6)), table.index
        ).add_prefix(name)
        for name in "ab"
    }
    model = AgreementKKM(3, random_state=0).fit(views | {"clinic": table})
    assert set(model.set_aside_) == {"clinic", "clinic (categories)"}
    tested, _ = names_tested(model, table.assign(copy=2 * views["a"]["a0"]))
    assert set(tested) == set(table)
    tested, _ = names_tested(AverageKKM(3, random_state=0).fit(views), table)
    assert set(tested) == set(table)
    used = AverageKKM(3, random_state=0).fit(views | {"clinic": table})
    assert names_tested(used, table)[0] == []
