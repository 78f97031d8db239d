"""What is learned of the columns of tables is applied to new rows again."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse
from sklearn.metrics import adjusted_rand_score

from mkclust import AverageKKM, KernelBank, SimpleMKKM, agreement, annotate
from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views
from mkclust.kernels import Nystroem

MEDIAN = TableOptions(impute="median")
N = 10


def clinic():
    """Return a table of numbers, categories and truth values."""
    return pd.DataFrame(
        {
            "age": np.arange(N) + 30.0,
            "sex": ["f", "m"] * (N // 2),
            "dose": np.linspace(1, 2, N),
            "smoker": [True, False, False, False, True] * 2,
        },
        index=[f"patient {i}" for i in range(N)],
    )


def test_categories_become_a_view_of_their_own():
    polars, frame = pytest.importorskip("polars"), clinic()
    for table in (
        frame,
        polars.DataFrame({name: frame[name].tolist() for name in frame}),
    ):
        samples = read_views({"clinic": table})
        assert samples.names == ("clinic", "clinic (categories)")
        assert samples.columns == {
            "clinic": ["age", "dose"],
            "clinic (categories)": ["sex=f", "sex=m", "smoker=False", "smoker=True"],
        }
        marks = samples.views["clinic (categories)"]
        assert marks[:2].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
        np.testing.assert_array_equal(
            samples.views["clinic"], clinic()[["age", "dose"]]
        )
        assert "clinic: 10 samples, 2 columns" in samples.notes
    with pytest.raises(ValueError, match=r"one name.*'clinic \(categories\)'"):
        read_views({"clinic": clinic(), "clinic (categories)": np.ones((N, 1))})


def test_new_rows_have_the_levels_columns_and_order_of_the_fit():
    fitted = read_views({"clinic": clinic()})
    new = clinic().iloc[:3][["smoker", "dose", "sex", "age"]]
    new["sex"] = ["m", "m", "x"]
    with pytest.warns(UserWarning, match=r"'sex': 1 new sample .*not seen \('x'\)"):
        samples = read_views({"clinic": new}, encodings=fitted.encodings)
    assert samples.columns == fitted.columns
    marks = samples.views["clinic (categories)"]
    assert marks.tolist() == [[0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0]]
    np.testing.assert_array_equal(
        samples.views["clinic"], clinic()[["age", "dose"]].iloc[:3]
    )


def test_columns_that_new_rows_lack_or_add_are_named():
    encodings = read_views({"clinic": clinic()}).encodings
    with pytest.raises(ValueError, match="'clinic' lacks .*'dose'"):
        read_views({"clinic": clinic().drop(columns="dose")}, encodings=encodings)
    with pytest.warns(UserWarning, match="'clinic' .* 'weight', which the fit did not"):
        samples = read_views(
            {"clinic": clinic().assign(weight=1.0)}, encodings=encodings
        )
    np.testing.assert_array_equal(samples.views["clinic"], clinic()[["age", "dose"]])
    numbers = clinic()[["age", "dose"]].to_numpy()
    bank = KernelBank(rules="kind").fit({"a": numbers})
    with pytest.raises(ValueError, match="'a': 3"):
        bank.transform({"a": np.hstack([numbers, numbers[:, :1]])})
    with pytest.raises(TypeError, match="was a data frame with categories in the fit"):
        read_views({"clinic": np.ones((N, 4))}, encodings=encodings)
    with pytest.raises(ValueError, match="'clinic' lacks .*'sex'"):
        read_views({"clinic": pd.DataFrame(np.ones((N, 2)))}, encodings=encodings)
    for values in (list("ab") * 5, list("abcdefghij")):
        with pytest.raises(ValueError, match="'clinic' .*'dose'"):
            read_views({"clinic": clinic().assign(dose=values)}, encodings=encodings)
    frame = clinic().set_axis(["age", "sex", "age", "smoker"], axis=1).assign(dose=1.0)
    for known in (None, encodings):
        with pytest.raises(
            ValueError, match="'clinic' has several columns of the name 'age'"
        ):
            read_views({"clinic": frame}, encodings=known)


@pytest.mark.parametrize(
    "labels",
    [
        [7, 3, 5],
        [0, 1, 2],
        [("x", 1), ("x", 2), ("y", 1)],
        pd.date_range("2020-01-30", periods=3).tolist(),
    ],
)
def test_columns_are_matched_by_any_labels_that_tell_them_apart(labels):
    table = np.random.default_rng(0).normal(size=(N, 3))
    frame = pd.DataFrame(table)
    if labels != [0, 1, 2]:
        frame.columns = pd.Index(labels)
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    expected = bank.fit_transform({"a": frame})
    agree = partial(
        np.testing.assert_allclose, desired=expected, rtol=1e-12, atol=1e-12
    )
    agree(bank.transform({"a": frame.iloc[:, [2, 0, 1]]}))
    agree(bank.transform({"a": table}))
    if labels[0] == 7:  # other numbers
        with pytest.raises(ValueError, match="'a' .* such as 7"):
            bank.transform({"a": pd.DataFrame(table)})
    else:
        agree(bank.transform({"a": pd.DataFrame(table)}))
    if not isinstance(labels[0], tuple):  # as from a text file
        agree(bank.transform({"a": frame.rename(columns=str).iloc[:, [2, 0, 1]]}))


def test_cells_are_filled_with_the_median_and_the_most_frequent_category():
    frame = clinic()
    frame.iloc[0, 0] = np.nan
    frame.iloc[0, 1] = None
    frame["smoker"] = frame["smoker"].astype(object)
    frame.iloc[0, 3] = None
    fitted = read_views({"clinic": frame}, options=MEDIAN)
    assert fitted.views["clinic"][0, 0] == np.nanmedian(frame["age"])
    marks = dict(
        zip(fitted.columns["clinic (categories)"], fitted.parts[1][0], strict=True)
    )
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
    message = (
        "'view 0' has .* 1 NaN .*column 2: 1.*'view 1' has .* 1 NaN .*impute='median'"
    )
    with pytest.raises(ValueError, match=message):
        _ = read_views([table, table]).views


def test_infinity_is_never_imputed():
    frame = clinic()[["age", "dose"]]
    frame.iloc[0, 0], frame.iloc[1, 1] = np.inf, np.nan
    with pytest.raises(ValueError, match="1 infinity.*'age': 1"):
        _ = read_views({"clinic": frame}, options=MEDIAN).views


def wide(form):
    """Return a table of three clusters, 40 samples x 400 columns."""
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(3, 400))[np.arange(40) % 3] + rng.normal(size=(40, 400))
    if form == "frame":
        return pd.DataFrame(X).add_prefix("g")
    return csr_array(X) if form == "sparse" else X


def emptied(X, place):
    """Return a table with one column of NaN."""
    other = X.copy()
    if isinstance(X, pd.DataFrame):
        other.iloc[:, place] = np.nan
    else:
        other[:, [place]] = np.nan
    return other


@pytest.mark.parametrize("form", ["frame", "array", "sparse"])
def test_a_column_without_values_says_nothing_in_the_fit_and_after_it(form):
    X = wide(form)
    options = {"n_clusters": 3, "impute": "median", "random_state": 0}
    name = "'g7'" if form == "frame" else "column 7"
    with pytest.warns(
        UserWarning, match=rf"1 of 400 columns \({name}\) without any value"
    ):
        model = AverageKKM(**options).fit({"t": emptied(X, 7)})

    without = X.drop(columns="g7") if form == "frame" else X[:, np.arange(400) != 7]
    expected = AverageKKM(**options).fit({"t": without})
    assert adjusted_rand_score(model.labels_, expected.labels_) == 1
    np.testing.assert_allclose(model.weights_, expected.weights_)
    # What it holds in new samples plays no part.
    new = X.copy()
    if form == "frame":
        new["g7"] = "text"
    else:
        new[:, [7]] = 1e6
    np.testing.assert_allclose(
        model.transform({"t": new}), model.transform({"t": emptied(X, 7)})
    )
    single = X[["g7"]] if form == "frame" else X[:, [7]]
    with pytest.raises(ValueError, match=r"1 of 1 column .*leave the table out"):
        read_views({"t": emptied(single, 0)}, options=MEDIAN)


@pytest.mark.parametrize("is_absent", [False, True])
def test_a_column_that_new_samples_lack_is_filled_with_a_warning_as_empty_cells_are(
    is_absent,
):
    X = wide("frame").assign(sex=list("fm") * 20)
    model = AverageKKM(3, impute="median", random_state=0).fit({"t": X})

    def lacking(name):
        return X.drop(columns=name) if is_absent else X.assign(**{name: np.nan})

    filled = X.assign(g7=X["g7"].median())
    with pytest.warns(
        UserWarning, match=r"no value in 1 of 400 columns \('g7'\).*medians"
    ):
        found = model.transform({"t": lacking("g7")})
    np.testing.assert_allclose(found, model.transform({"t": filled}))
    with pytest.warns(
        UserWarning, match=r"'sex'.*no value, filled by the fit's '[fm]'"
    ):
        model.predict({"t": lacking("sex")})


def test_columns_that_new_samples_lack_are_refused_without_filling_or_if_many():
    X = wide("frame")
    strict = AverageKKM(3, random_state=0).fit({"t": X})
    with pytest.raises(ValueError, match=r"'g7'.*impute='median'"):
        strict.predict({"t": X.drop(columns="g7")})
    model = AverageKKM(3, impute="median", random_state=0).fit({"t": X})
    with pytest.raises(ValueError, match=r"lacks the columns 'g0'"):
        model.predict({"t": X.iloc[:, 300:]})


@pytest.mark.parametrize("fill", [0, np.nan])
def test_a_frame_of_sparse_columns_is_a_sparse_view(fill):
    table = np.diag(np.arange(1.0, 5))
    frame = pd.DataFrame(table).astype(pd.SparseDtype("float64", fill))
    for X in (frame, frame.assign(s=list("abab"))):
        view = read_views({"a": X.add_prefix("g")}).views["a"]
        assert issparse(view) == (fill == 0)
        np.testing.assert_array_equal(view.toarray() if fill == 0 else view, table)


NULLABLE = {
    "Float64": lambda: pd.array([1.5, 2, None, 4] * 10, dtype="Float64"),
    "boolean": lambda: pd.array([True, False, None, True] * 10, dtype="boolean"),
    "truth values beside NaN": lambda: (
        pd.Series([True, False, np.nan, True] * 10).array
    ),
    "string": lambda: pd.array(["x", "y", None, "x"] * 10, dtype="string"),
    "category": lambda: pd.Categorical(
        ["x", "y", None, "x"] * 10, categories=list("wxyz")
    ),
    "ordered": lambda: pd.Categorical(
        ["x", "y", None, "x"] * 10, ["z", "y", "x"], ordered=True
    ),
}


@pytest.mark.parametrize("name", NULLABLE)
def test_missing_cells_of_every_type_are_named_and_filled(name):
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(numbers, columns=["a", "b"]).assign(c=NULLABLE[name]())
    with pytest.raises(ValueError, match="'c(=\\w+)?': 10.*impute='median'"):
        AverageKKM(2).fit({"t": frame})
    model = AverageKKM(2, impute="median", random_state=0).fit({"t": frame})
    assert set(model.view_names_in_) <= {"t", "t (categories)"}
    few = frame.iloc[:7, ::-1]
    np.testing.assert_array_equal(model.predict({"t": few}), model.labels_[:7])
    if "t (categories)" in model.view_names_in_:
        assert model.bank_.views_["t (categories)"].shape == (40, 2)
    else:
        assert model.bank_.views_["t"][2, 2] == 2


CODES = ["1", "2", "3", "1"] * 10
GAPS = {"none": None, "empty": "", "blank": " "}


@pytest.mark.parametrize("gap", ["no", *GAPS])
@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_digits_as_text_are_categories_with_and_without_an_empty_cell(dtype, gap):
    codes = list(CODES)
    if gap != "no":
        codes[5] = GAPS[gap]
    frame = pd.DataFrame({"a": np.arange(40.0), "code": pd.Series(codes, dtype=dtype)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samples = read_views({"t": frame}, options=MEDIAN)
    assert samples.columns["t (categories)"] == ["code=1", "code=2", "code=3"]
    assert samples.views["t (categories)"][5].tolist() == (
        [0, 1, 0] if gap == "no" else [1, 0, 0]
    )
    told = [
        "'code': whole numbers stored as text, such as '1'" in str(w.message)
        for w in caught
    ]
    assert told == [True] * (dtype != "category")

    (test,) = annotate(np.arange(40) % 2, frame[["code"]], n_permutations=9).tests
    assert (test.variable, test.test, test.n_missing) == (
        "code",
        "chi-square",
        gap != "no",
    )


@pytest.mark.parametrize("values", [["1.5", "2.5"], ["1,5", "2,5"], ["1.0", None]])
def test_numbers_stored_as_text_are_refused_unless_they_are_declared_categories(values):
    frame = pd.DataFrame({"a": np.arange(20.0), "dose": values * 10})
    for dtype in (object, "string"):
        with pytest.raises(
            ValueError, match=r"'dose' .*to_numeric.*astype\('category'\)"
        ):
            read_views({"t": frame.astype({"dose": dtype})})
    samples = read_views({"t": frame.astype({"dose": "category"})})
    # One category says nothing.
    assert ("t (categories)" in samples.names) == (None not in values)


def test_a_few_cells_of_text_among_numbers_are_counted_and_shown():
    frame = pd.DataFrame(
        {"a": np.arange(40.0), "dose": [f"{i / 7:.3f}" for i in range(40)]}
    )
    frame.loc[[3, 5], "dose"] = "<0.5"
    for column in (frame["dose"], frame["dose"].where(frame["dose"] == "<0.5", 1.5)):
        with pytest.raises(
            ValueError, match="'dose' .*2 cells such as '<0.5'.*missing="
        ):
            read_views({"t": frame.assign(dose=column)})
    frame["dose"] = ["1", "2", "3", "n/a?"] * 10
    with pytest.warns(UserWarning, match="'dose': .*10 cells such as 'n/a"):
        assert "t (categories)" in read_views({"t": frame}).names


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(seed=st.integers(0, 999), library=st.sampled_from(["pandas", "polars"]))
def test_the_order_of_columns_of_a_wide_frame_changes_no_label(seed, library):
    rng, y = np.random.default_rng(seed), np.arange(36) % 3
    numbers = 6 * rng.normal(size=(3, 3))[y] + rng.normal(size=(36, 3))
    frame = pd.DataFrame(numbers, columns=["x_0", "x_1", "y_0"])
    frame = frame.assign(y_sex=list("fmx") * 12, y_old=y > 0)
    columns = rng.permutation(frame.columns).tolist()
    if library == "polars":
        frame = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    model = SimpleMKKM(
        3, views={"x": "x_", "y": ["y_0", "y_sex", "y_old"]}, random_state=0
    )
    labels = model.fit(frame).labels_
    np.testing.assert_array_equal(model.predict(frame[columns]), labels)
    np.testing.assert_array_equal(model.fit(frame[columns]).labels_, labels)


def sexes_and_heights(n):
    """Return one table whose numbers and categories are related, and nothing else
    is."""
    rng = np.random.default_rng(1)
    is_male = rng.random(n) < 0.5
    height = 165 + 12 * is_male + rng.normal(scale=4, size=n)
    weight = 65 + 15 * is_male + rng.normal(scale=5, size=n)
    sex = np.where(is_male, "m", "f")
    return pd.DataFrame({"height": height, "weight": weight, "sex": sex})


@pytest.mark.parametrize("approximation", [None, Nystroem(20)])
def test_the_numbers_and_categories_of_one_table_are_one_source_and_do_not_agree(
    approximation,
):
    other = np.random.default_rng(2).normal(size=(120, 6))
    tables = {"genes": other, "clinical": sexes_and_heights(120)}
    samples = read_views(tables)
    assert samples.names == ("genes", "clinical", "clinical (categories)")
    assert samples.sources == {
        "genes": "genes",
        "clinical": "clinical",
        "clinical (categories)": "clinical",
    }

    found = agreement(tables, approximation=approximation, random_state=0)
    assert "one source with clinical" in samples.notes[2]
    assert found.n_independent_views == 2
    assert found.p_values[1, 2] == 1
    assert not found.shares.any()

    # Two tables, one of the numbers and one of the categories, do agree.
    frame = tables["clinical"]
    apart = {"numbers": frame[["height", "weight"]], "sex": frame[["sex"]]}
    assert agreement(apart, approximation=approximation, random_state=0).shares.all()


def test_views_that_a_user_takes_from_one_table_are_sources_of_their_own():
    frame = sexes_and_heights(40)
    options = TableOptions(views={"size": ["height", "weight"], "sex": ["sex"]})
    assert read_views(frame, options=options).source_numbers == (0, 1)
