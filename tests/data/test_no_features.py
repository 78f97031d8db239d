"""Columns that are no features do not enter a fit by accident."""

import warnings

import numpy as np
import pandas as pd
import pytest

from mkclust import AverageKKM, agreement
from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views
from mkclust.exceptions import OutcomeColumnsWarning

N = 40


def measured(seed=0, n=N, columns=("glucose", "insulin", "bmi")):
    """Return a table of numbers."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, len(columns))), columns=list(columns))


def shuffled(numbers):
    return np.random.default_rng(5).permutation(numbers)


COUNTING = {
    "in order": ("sample_no", np.arange(1000, 1000 + N)),
    "without a telling name": ("record", np.arange(N)),
    "shuffled": ("record", shuffled(np.arange(1000, 1000 + N))),
    "in steps of ten": ("record", shuffled(np.arange(10, 10 * N + 10, 10))),
    "falling": ("record", np.arange(N)[::-1]),
    "of no step, but named": ("patientId", shuffled(np.arange(N) ** 2 + 17)),
    "as floats, but named": ("patient_id", np.arange(N) + 1000.0),
}


@pytest.mark.parametrize("name", COUNTING)
def test_a_column_that_numbers_the_samples_is_named_and_refused(name):
    column, values = COUNTING[name]
    frame = measured().assign(**{column: values})
    for fit in (agreement, AverageKKM(2).fit):
        with pytest.raises(ValueError, match=f"'blood' .*'{column}'.*set_index"):
            fit({"blood": frame, "other": measured(1)})
    with pytest.raises(ValueError, match=f"X has the column '{column}'.*drop"):
        AverageKKM(2).fit(frame)


MEASURED = {
    "year": np.arange(1980, 1980 + N),
    "time_s": np.arange(N),
    "age": shuffled(np.arange(20, 20 + N)),
    "counts": np.random.default_rng(0).integers(0, 10_000, N),
    "rank": np.arange(N).astype(float),
    "one value twice": np.append(np.arange(N - 1), 7),
    "one step missing": np.append(np.arange(N - 1), N + 3),
    "family_id": np.arange(N) // 4,
}


@pytest.mark.parametrize("name", MEASURED)
def test_other_whole_numbers_are_features(name):
    frame = measured().assign(**{name: MEASURED[name]})
    assert name in read_views({"blood": frame}).columns["blood"]


def test_few_rows_and_tables_of_ranks_are_features():
    few = measured(n=5).assign(children=np.arange(5))
    assert read_views(few).n_features == (4,)

    ranks = measured().rank().astype(int)
    assert read_views(ranks).n_features == (3,)


def test_the_columns_of_distances_are_no_numbers_of_samples():
    names = [f"s{i}" for i in range(N)]
    steps = np.abs(np.arange(N)[:, None] - np.arange(N))
    distances = pd.DataFrame(steps, index=names, columns=names)
    assert read_views({"path": distances}).n_features == (N,)


def test_columns_of_an_earlier_clustering_are_refused():
    frame = measured().assign(mkclust=["0", "1"] * (N // 2), mkclust_silhouette=0.5)
    with pytest.raises(
        ValueError, match="'mkclust' and 'mkclust_silhouette'.*earlier.*drop"
    ):
        read_views({"cells": frame})


def with_survival():
    rng = np.random.default_rng(3)
    return measured().assign(
        OS_MONTHS=rng.exponential(30, N),
        OS_STATUS=rng.choice(["0:LIVING", "1:DECEASED"], N),
        days_to_death=rng.exponential(900, N),
        time=rng.exponential(10, N),
        event=rng.integers(0, 2, N),
        HER2_STATUS=rng.choice(["positive", "negative"], N),
    )


def test_outcomes_are_left_out_of_a_fit_with_a_warning_and_not_needed_for_new_samples():
    frame = with_survival()
    named = "'OS_MONTHS', 'OS_STATUS', 'days_to_death', 'time' and 'event' of survival"
    with pytest.warns(
        OutcomeColumnsWarning, match=f"'clinic' .*{named}.*annotate.*rename"
    ):
        model = AverageKKM(2, random_state=0).fit({"clinic": frame})

    samples = read_views(
        {"clinic": measured().assign(HER2_STATUS=frame["HER2_STATUS"])}
    )
    assert model.view_names_in_ == samples.names == ("clinic", "clinic (categories)")
    assert model.n_features_in_ == sum(samples.n_features)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model.predict({"clinic": frame.iloc[:9]})
        without = model.predict({"clinic": frame.iloc[:9, [0, 1, 2, 8]]})
    np.testing.assert_array_equal(labels, model.labels_[:9])
    np.testing.assert_array_equal(without, labels)


def test_outcomes_are_features_if_their_names_are_chosen_and_are_refused_alone():
    options = TableOptions(
        views={"outcome": ["OS_MONTHS"], "blood": ["glucose", "bmi"]}
    )
    assert read_views(with_survival(), options=options).names == ("outcome", "blood")

    alone = with_survival()[["OS_MONTHS", "OS_STATUS"]]
    with pytest.raises(
        ValueError, match="'clinic' has only columns of survival.*annotate"
    ):
        read_views({"clinic": alone, "blood": measured()})


def test_single_words_of_survival_are_features():
    words = measured(columns=("time", "status", "survival", "months", "progression"))
    assert read_views({"text": words}).n_features == (5,)
