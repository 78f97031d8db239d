"""Results print themselves in words, which cannot steer a terminal."""

import warnings

import numpy as np
import pandas as pd
import pytest

from mkclust import (
    AgreementKKM,
    agreement,
    annotate,
    describe,
    diagnose,
    stability,
    suggest_n_clusters,
)

EVIL = "\x1b[2J\x9b31m\u202eX\x07"


def is_shown_as_text(text):
    return all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.fixture(scope="module")
def views():
    """Return two tables with the same three clusters, and one without; evil names
    everywhere."""
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    index = [f"p{i}{EVIL}" for i in range(60)]

    def table(letter, spread):
        values = spread * rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4))
        return pd.DataFrame(values, index, [f"{letter}{i}{EVIL}" for i in range(4)])

    views = {
        f"{name}{EVIL}": table(name, spread)
        for name, spread in [("a", 4), ("b", 4), ("n", 0)]
    }
    views[f"b{EVIL}"][f"level{EVIL}"] = np.array([f"u{EVIL}", f"v{EVIL}", "w"])[y]
    return views


@pytest.fixture(scope="module")
def model(views):
    return AgreementKKM(3, random_state=0).fit(views)


@pytest.fixture(scope="module")
def variables(views):
    """Return a stage that mostly follows the clusters, groups of samples, and noise."""
    rng, index = np.random.default_rng(1), views[f"a{EVIL}"].index
    stage = np.arange(60) % 3
    stage[:12] = 0
    columns = {
        f"stage{EVIL}": np.array([f"i{EVIL}", "ii", "iii"])[stage],
        f"dose{EVIL}": rng.normal(size=60),
        f"constant{EVIL}": 1,
        f"family{EVIL}": np.repeat([f"f{i}{EVIL}" for i in range(20)], 3),
    }
    return pd.DataFrame(columns, index)


def results(model, views, variables):
    incomplete = dict(views)
    incomplete[f"a{EVIL}"] = views[f"a{EVIL}"].iloc[10:]
    refitted = AgreementKKM(3, join="outer", random_state=0).fit(incomplete)
    return [
        agreement(views),
        annotate(model, variables, groups=variables[f"family{EVIL}"]),
        describe(model, views),
        diagnose(model, views),
        refitted.missingness_,
        stability(model, views, n_resamples=2),
        suggest_n_clusters(views, k_values=[2, 3]),
    ]


def test_a_result_is_shown_by_its_summary_as_text(model, views, variables):
    for result in results(model, views, variables):
        assert repr(result) == str(result) == result.summary()
        assert is_shown_as_text(repr(result)), type(result).__name__
    assert is_shown_as_text(model.summary())


def test_the_least_p_value_of_permutations_is_a_bound(model, variables):
    found = annotate(model, variables, n_permutations=999)

    assert found.table["p_value"].min() == 0.001
    assert "<= 0.001" in repr(found)


def test_errors_and_warnings_show_names_as_text(views):
    left, right = views[f"a{EVIL}"], views[f"b{EVIL}"]
    options = {"n_clusters": 3, "random_state": 0}
    column = f"patient{EVIL}"
    refused = [
        {f"left{EVIL}": left.assign(**{column: range(60)}), "right": right},
        {f"left{EVIL}": left, "right": right.rename_axis(column).reset_index()},
        {f"left{EVIL}": left, "right": right.iloc[5:]},
        {f"left{EVIL}": left.mask(left > 5), "right": right},
        {
            f"left{EVIL}": left,
            "right": right.assign(**{column: [f"{i} {EVIL}" for i in range(60)]}),
        },
    ]
    for X in refused:
        with pytest.raises(ValueError, match=r"\\x1b") as caught:
            AgreementKKM(**options).fit(X)
        assert is_shown_as_text(str(caught.value))

    other_case = right.set_axis([right.index[0].upper(), *right.index[1:]])
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        AgreementKKM(**options, join="inner").fit(
            {f"left{EVIL}": left, "right": other_case}
        )
    assert any(r"\x1b" in str(each.message) for each in log)
    assert all(is_shown_as_text(str(each.message)) for each in log)
