"""The columns of data frames are told apart one by one, whatever library they are
of."""

import datetime
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse

from mkclust import AverageKKM, describe
from mkclust.data.samples import read_samples, read_views
from mkclust.data.tables import read_column

N = 12


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.Series([1, None] * 6, dtype="Int64"), "number"),
        (pd.Series([1.5, None] * 6, dtype=object), "number"),
        (pd.Series([True, None] * 6, dtype=object), "boolean"),
        (pd.Series([True, None] * 6, dtype="boolean"), "boolean"),
        (pd.Series(["x", "y"] * 6, dtype="string"), "category"),
        (pd.Series([f"{i}" for i in range(N)], dtype="category"), "category"),
        (pd.Series([1, 2] * 6, dtype="category"), "category"),
        (pd.Series(pd.period_range("2020", periods=N, freq="D")), "date"),
        (pd.Series(pd.timedelta_range("1D", periods=N)), "date"),
        (pd.Series([datetime.date(2020, 1, 1)] * N), "date"),
        (pd.Series([1, "a"] * 6), "other"),
        (pd.Series([[1]] * N), "other"),
        # Few values that are hardly repeated are no categories, and neither are many.
        (pd.Series(["a", "b", "c", "d", "e", "f", "g"] + ["a"] * 5), "text"),
        (pd.Series([f"{i % 21}" for i in range(210)]), "text"),
    ],
)
def test_types_of_pandas_are_told_by_what_they_mean(values, kind):
    assert read_column(pd.DataFrame({"x": values}), 0).kind == kind


def annotated(X, ids, columns):
    """Return AnnData with ids and names of columns."""
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(
        X, obs=pd.DataFrame(index=ids), var=pd.DataFrame(index=columns)
    )


def test_annotated_data_give_their_ids_and_the_names_of_their_columns():
    ids, X = [f"cell {i}" for i in range(N)], np.arange(3.0 * N).reshape(N, 3)
    data = annotated(X, ids, ["x", "y", "z"])
    samples = read_samples({"rna": data, "protein": data[::-1]})
    assert samples.columns == {"rna": ["x", "y", "z"], "protein": ["x", "y", "z"]}
    mudata = pytest.importorskip("mudata")
    several = read_samples(mudata.MuData({"rna": data, "protein": data[::-1].copy()}))
    for found in (samples, several):
        assert found.ids.tolist() == ids
        np.testing.assert_array_equal(found.views["protein"], X)
    assert read_samples(data).kind == "table"


def test_a_sparse_matrix_of_annotated_data_stays_sparse_when_its_rows_are_aligned():
    X = csr_array(np.eye(N, 3))
    data = annotated(X, [f"cell {i}" for i in range(N)], ["x", "y", "z"])
    frame = pd.DataFrame(np.eye(N, 2), index=data.obs_names[::-1])
    samples = read_samples({"frame": frame, "counts": data})
    assert issparse(samples.parts[1])
    np.testing.assert_array_equal(samples.parts[1].toarray(), X.toarray()[::-1])


def test_variables_of_one_name_are_told_apart_by_their_places():
    X = np.arange(8.0).reshape(4, 2)
    twice = annotated(X, list("wxyz"), ["gene", "gene"])
    fitted = read_views({"a": twice})
    np.testing.assert_array_equal(fitted.views["a"], X)
    again = read_views({"a": twice}, encodings=fitted.encodings)
    np.testing.assert_array_equal(again.views["a"], X)


def copy_on_write():
    """Let frames copy what is written to, as all do from pandas 3 on."""
    if int(pd.__version__.partition(".")[0]) < 3:
        return pd.option_context("mode.copy_on_write", True)
    return nullcontext()


def test_frames_that_copy_on_write_are_fitted_as_others():
    """From version 3 on, pandas hands out arrays that cannot be written to."""
    rng = np.random.default_rng(0)
    group = np.arange(60) % 3
    tables = {
        name: pd.DataFrame(
            4 * rng.normal(size=(3, 4))[group] + rng.normal(size=(60, 4)),
            index=[f"P{i}" for i in range(60)],
            columns=list("wxyz"),
        )
        for name in ("first", "second")
    }
    labels = AverageKKM(3, random_state=0).fit(tables).labels_

    with copy_on_write():
        assert not tables["first"].to_numpy().flags.writeable
        model = AverageKKM(3, random_state=0).fit(tables)
        assert (model.labels_ == labels).all()
        assert (model.predict(tables) == labels).all()
        summary = describe(model, tables).summary()
    assert all(name in summary for name in ("0  20", "1  20", "2  20"))
