"""Columns that number samples are told from variables."""

import numpy as np
import pandas as pd
import pytest

from mkclust import AverageKKM, to_anndata
from mkclust.data.no_features import is_own_column, looks_like_an_id


@pytest.mark.parametrize(
    "name", ["id", "ID", "patient_id", "PatientID", "Sample No", "case.no"]
)
def test_names_of_ids_are_recognized_whatever_the_values(name):
    assert looks_like_an_id(name, ["a", "b", "c", "a"])
    assert looks_like_an_id(name, [1.5, 2.5, 3.5, 1.5])


@pytest.mark.parametrize(
    "name", ["covid", "thyroid", "casino", "idle", "no_of_children"]
)
def test_words_that_only_end_alike_are_no_names_of_ids(name):
    assert not looks_like_an_id(name, [1, 1, 2, 3])


def test_whole_numbers_that_all_differ_look_like_ids_and_measurements_do_not():
    numbers = np.random.default_rng(0).permutation(1000)[:200] + 10_000
    assert looks_like_an_id("hospital", numbers)
    assert looks_like_an_id("hospital", pd.Series(numbers, dtype="Int64"))
    assert not looks_like_an_id("platelets", numbers.astype(float))
    assert not looks_like_an_id("age", numbers // 10)
    assert not looks_like_an_id("count", pd.Series([*numbers, None], dtype="Int64"))


def test_marks_of_two_values_are_no_ids():
    assert not looks_like_an_id("smoker_no", [0, 1, 0, 0])
    assert not looks_like_an_id("x", [0, 1])


def test_all_columns_that_are_written_to_annotated_data_are_own_columns():
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.random.default_rng(0).normal(size=(30, 4)))
    to_anndata(AverageKKM(2, random_state=0).fit(data.X), data)
    assert all(map(is_own_column, data.obs.columns))
    assert not is_own_column("silhouette")


def test_ages_and_times_in_whole_numbers_that_all_differ_are_no_ids():
    values = np.array([61, 54, 70, 33, 48])
    for name in ("age", "AgeAtVisit", "days_in_hospital", "Age (years)"):
        assert not looks_like_an_id(name, values)
    assert looks_like_an_id("hospital", values)
    assert looks_like_an_id("days_id", values)
