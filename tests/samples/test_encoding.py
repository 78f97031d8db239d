"""What is learned of the columns of tables is applied to new rows again."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mkclust import KernelBank, to_device
from mkclust.samples.options import TableOptions
from mkclust.samples.samples import read_views

pandas = pytest.importorskip("pandas")
MEDIAN = TableOptions(impute="median")
N = 10


def clinic():
    """Return a table of numbers, categories and truth values."""
    return pandas.DataFrame(
        {
            "age": np.arange(N) + 30.0,
            "sex": ["f", "m"] * (N // 2),
            "dose": np.linspace(1, 2, N),
            "smoker": [True, False, False, False, True] * 2,
        },
        index=[f"patient {i}" for i in range(N)],
    )


def libraries():
    """Return the same table of both libraries."""
    frame = clinic()
    polars = pytest.importorskip("polars")
    return [frame, polars.DataFrame({name: frame[name].tolist() for name in frame})]


def test_categories_become_a_view_of_their_own():
    for frame in libraries():
        samples = read_views({"clinic": frame})
        assert samples.names == ("clinic", "clinic (categories)")
        assert samples.columns == {
            "clinic": ["age", "dose"],
            "clinic (categories)": ["sex=f", "sex=m", "smoker=False", "smoker=True"],
        }
        marks = samples.views["clinic (categories)"]
        assert marks[:2].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
        np.testing.assert_array_equal(samples.views["clinic"], clinic()[["age", "dose"]])
        assert "clinic: 10 samples, 2 columns" in samples.notes
        kinds = KernelBank(rules="kind").fit(samples).rules_
        assert kinds["clinic (categories)"] == "categories"


def test_categories_alone_keep_the_name_of_their_table():
    samples = read_views({"clinic": clinic()[["sex", "smoker"]], "b": np.ones((N, 2))})
    assert samples.names == ("clinic", "b")
    assert samples.views["clinic"].shape == (N, 4)
    assert read_views(clinic()[["sex"]]).kind == "table"


def test_one_table_of_several_kinds_becomes_views():
    samples = read_views(clinic())
    assert samples.kind == "views"
    assert samples.names == ("table", "table (categories)")


def test_a_category_of_one_value_is_left_out():
    frame = clinic().assign(site="here")
    samples = read_views({"clinic": frame})
    assert (
        samples.columns["clinic (categories)"]
        == read_views({"clinic": clinic()}).columns["clinic (categories)"]
    )
    with pytest.raises(ValueError, match="View 'site' has only columns of one value"):
        read_views({"site": frame[["site"]]})


def test_a_view_with_the_name_of_the_categories_of_another_is_refused():
    with pytest.raises(ValueError, match=r"'clinic \(categories\)'.*rename"):
        read_views({"clinic": clinic(), "clinic (categories)": np.ones((N, 1))})


def test_new_rows_have_the_levels_columns_and_order_of_the_fit():
    fitted = read_views({"clinic": clinic()})
    new = clinic().iloc[:3][["smoker", "dose", "sex", "age"]]
    new["sex"] = ["m", "m", "x"]
    with pytest.warns(UserWarning, match=r"'sex': 1 new sample .*not seen \('x'\)"):
        samples = read_views({"clinic": new}, encodings=fitted.encodings)
    assert samples.columns == fitted.columns
    assert samples.views["clinic (categories)"].tolist() == [
        [0, 1, 0, 1],
        [0, 1, 1, 0],
        [0, 0, 1, 0],
    ]
    assert (
        samples.views["clinic"].tolist() == clinic()[["age", "dose"]].iloc[:3].to_numpy().tolist()
    )


def test_columns_that_new_rows_lack_or_add_are_named():
    encodings = read_views({"clinic": clinic()}).encodings
    with pytest.raises(ValueError, match="View 'clinic' lacks the column 'dose'"):
        read_views({"clinic": clinic().drop(columns="dose")}, encodings=encodings)
    with pytest.raises(ValueError, match="adds the column 'weight'"):
        read_views({"clinic": clinic().assign(weight=1.0)}, encodings=encodings)
    with pytest.raises(TypeError, match="was a data frame with categories in the fit"):
        read_views({"clinic": np.ones((N, 4))}, encodings=encodings)


def test_missing_cells_of_all_views_are_named_in_one_error():
    frame, numbers = clinic(), np.ones((N, 3))
    frame.iloc[1, 0] = frame.iloc[2, 0] = np.nan
    frame.iloc[3, 1] = None
    numbers[4, 2] = np.nan
    with pytest.raises(ValueError, match="impute='median'") as refusal:
        _ = read_views({"clinic": frame, "rest": numbers}).views
    for part in ("View 'clinic' ", "'age': 2", "'sex': 1", "View 'rest'", "column 2: 1", "NaN"):
        assert part in str(refusal.value)


def test_cells_are_filled_with_the_median_and_the_most_frequent_category():
    frame = clinic()
    frame.iloc[0, 0] = np.nan
    frame.iloc[0, 1] = None
    frame["smoker"] = frame["smoker"].astype(object)
    frame.iloc[0, 3] = None
    fitted = read_views({"clinic": frame}, options=MEDIAN)
    assert fitted.views["clinic"][0, 0] == np.nanmedian(frame["age"])
    marks = dict(zip(fitted.columns["clinic (categories)"], fitted.parts[1][0], strict=True))
    assert marks == {"sex=f": 0, "sex=m": 1, "smoker=False": 1, "smoker=True": 0}
    # New rows are filled with what the fit has learned, not with their own median.
    new = frame.iloc[:2].assign(age=[np.nan, 1000.0])
    samples = read_views({"clinic": new}, options=MEDIAN, encodings=fitted.encodings)
    assert samples.views["clinic"][0, 0] == np.nanmedian(frame["age"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_masked_entries_are_missing(dtype):
    table = np.ma.masked_array(np.arange(12).reshape(4, 3).astype(dtype), mask=False)
    table[1, 2] = np.ma.masked
    filled = read_views([table, np.ones((4, 2))], options=MEDIAN).views["view 0"]
    assert filled[1, 2] == np.median([2, 8, 11])
    assert str(filled.dtype) == ("float32" if dtype == "float32" else "float64")
    with pytest.raises(ValueError, match="'view 0' has 1 masked entries, .*impute='median'"):
        read_views([table, np.ones((4, 2))])


def test_a_sparse_matrix_is_filled_where_its_entries_are_missing():
    matrix = csr_array(np.diag([1.0, 2.0, 3.0]))
    assert read_views({"a": matrix}, options=MEDIAN).parts[0] is matrix
    matrix = csr_array([[1.0, 0], [np.nan, 2], [3, 0], [5, 0]])
    filled = read_views({"a": matrix}, options=MEDIAN).parts[0]
    assert filled.toarray().tolist() == [[1, 0], [3, 2], [3, 0], [5, 0]]
    assert np.isnan(matrix.data).sum() == 1


def test_infinity_is_never_imputed_and_a_column_without_values_is_named():
    frame = clinic()[["age", "dose"]]
    frame.iloc[0, 0], frame.iloc[1, 1] = np.inf, np.nan
    with pytest.raises(ValueError, match="0 NaN and 1 infinity.*'age': 1"):
        _ = read_views({"clinic": frame}, options=MEDIAN).views
    with pytest.raises(ValueError, match=r"1 column without any value.*drop\(columns=\['dose'\]\)"):
        read_views({"clinic": frame.assign(dose=np.nan)}, options=MEDIAN)


def test_a_bank_remembers_the_columns_of_its_tables():
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, rules="kind").fit(clinic())
    turned = clinic()[["smoker", "dose", "sex", "age"]].iloc[:4]
    np.testing.assert_allclose(bank.transform(turned), bank.transform(clinic().iloc[:4]))


@pytest.mark.parametrize("X", [{"table": clinic()}, clinic()], ids=["view", "table"])
def test_categories_go_to_a_device_as_a_view_of_their_own(X):
    copies = to_device(X, like=np.empty(0))
    assert {name: copy.shape for name, copy in copies.items()} == {
        "table": (N, 2),
        "table (categories)": (N, 4),
    }


def test_text_that_differs_in_every_row_is_advised_as_ids():
    frame = pandas.DataFrame({"age": range(40), "patient": [f"p{i}" for i in range(40)]})
    with pytest.raises(ValueError, match=r"frame\.set_index\('patient'\)"):
        read_views({"a": frame})
    with pytest.raises(ValueError, match="neither numbers nor") as refusal:
        read_views({"a": frame.set_index(frame["age"].map(str))})
    assert "set_index" not in str(refusal.value)


def test_text_that_differs_in_every_row_of_polars_is_advised_as_an_index_of_pandas():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"age": range(40), "patient": [f"p{i}" for i in range(40)]})
    with pytest.raises(ValueError, match="if 'patient' holds the ids.*pandas"):
        read_views({"a": frame})
