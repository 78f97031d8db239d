import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

from mkclust import AverageKKM
from mkclust.data.samples import read_samples, read_views


@pytest.mark.parametrize("container", [list, tuple])
def test_a_sequence_of_2d_items_is_a_sequence_of_views(container):
    found = read_views(container([np.ones((2, 2)), [[1, 2, 3], [4, 5, 6]]])).views
    assert {n: view.shape for n, view in found.items()} == {
        "view 0": (2, 2),
        "view 1": (2, 3),
    }


@pytest.mark.parametrize(
    "table",
    [
        np.arange(6).reshape(3, 2),
        [[0, 1], [2, 3], [4, 5]],
        [np.array([0, 1]), np.array([2, 3]), np.array([4, 5])],
        np.arange(6).reshape(3, 2).astype(object),
    ],
)
def test_an_array_or_a_list_of_rows_is_one_table(table):
    (item,) = read_views(table).views.items()
    assert item[0] == "table"
    assert item[1].dtype == np.float64
    np.testing.assert_array_equal(item[1], [[0, 1], [2, 3], [4, 5]])


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "uint64", "bool", "object"]
)
def test_single_and_double_precision_are_kept_and_the_rest_becomes_double(dtype):
    table, kept = (
        np.eye(3).astype(dtype),
        "float32" if dtype == "float32" else "float64",
    )
    assert read_views(table).views["table"].dtype == kept
    assert read_views({"a": table}).views["a"].dtype == kept


def test_views_of_floats_are_not_copied():
    table = np.ones((3, 2))
    assert np.shares_memory(read_views([table, table]).views["view 0"], table)
    assert np.shares_memory(read_views(table).views["table"], table)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "X is an empty list"),
        ({}, ValueError, "X is an empty dict"),
        ({"a": np.ones(3)}, ValueError, "View 'a' has 1 dimensions"),
        (np.ones((2, 3, 3)), ValueError, "X has 3 dimensions"),
        ([1, 2, 3], ValueError, "Expected 2D array, got 1D array"),
        (
            {"a": np.ones((3, 2)), "b": np.ones((4, 2))},
            ValueError,
            "'a' has 3 rows .* 'b' has 4",
        ),
        (
            [np.array([[np.nan, 1], [np.inf, np.nan]])],
            ValueError,
            "'view 0' .* 2 NaN and 1 inf",
        ),
        (
            {"a": np.array([["x"], [1]], dtype=object)},
            ValueError,
            "View 'a' is not a table",
        ),
        (
            {"a": np.array([[{}], [1]], dtype=object)},
            TypeError,
            "View 'a' is not a table",
        ),
        (np.ones((2, 2), "datetime64[s]"), ValueError, "X has entries of type date"),
        (
            {"a": np.ones((2, 2), complex)},
            ValueError,
            "View 'a'.* Complex data not supported",
        ),
        (np.ones((2, 2), complex), ValueError, "Complex data not supported"),
        ({"a": np.ones((3, 0))}, ValueError, r"View 'a' is empty, of shape \(3, 0\)"),
        (
            np.ones((3, 0)),
            ValueError,
            r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1",
        ),
        (np.full((2, 2), np.nan), ValueError, "Input X contains NaN"),
        (np.full((2, 2), np.inf), ValueError, "Input X contains infinity"),
        ({1: np.ones((3, 2)), "1": np.ones((3, 2))}, ValueError, "same name"),
        (
            [1j * scipy.sparse.eye(3).tocsr()],
            ValueError,
            "View 'view 0' has entries of type comp",
        ),
        (scipy.sparse.csr_array((3, 0)), ValueError, "X is empty, of shape \\(3, 0\\)"),
        (scipy.sparse.coo_array(np.ones(3)), ValueError, "X has 1 dimensions"),
    ],
)
def test_views_that_cannot_be_used_are_refused_by_name(X, error, message):
    with pytest.raises(error, match=message):
        _ = read_views(X).views


@pytest.mark.parametrize("kernels", ["auto", "on-the-fly"])
@pytest.mark.parametrize("kind", ["views", "table"])
def test_samples_are_read_once_and_give_the_answers_of_what_they_were_read_from(
    kernels, kind
):
    rng, places = np.random.default_rng(0), 6 * np.eye(3, 4)[np.arange(40) % 3]
    X = {name: places + rng.normal(size=(40, 4)) for name in "ab"}
    X = X if kind == "views" else X["a"]
    samples = read_samples(X)
    assert samples.kind == kind
    assert read_samples(samples) is samples
    expected, model = (
        AverageKKM(3, kernels=kernels, random_state=0).fit(each)
        for each in (X, samples)
    )
    assert np.array_equal(model.predict(samples), expected.labels_)
    np.testing.assert_allclose(
        model.transform(samples), expected.transform(X), atol=1e-12
    )


SIDE = 30
IDS, COLUMNS = [f"s{i}" for i in range(SIDE)], [f"g{i}" for i in range(SIDE)]


def square(seed=0):
    return np.random.default_rng(seed).normal(size=(SIDE, SIDE))


def similarities(rounding=0.0):
    F = square()
    return (F @ F.T) * (1 + rounding * square(1))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(square(), IDS, COLUMNS),
        pd.DataFrame(square(), columns=COLUMNS),
        pd.DataFrame(square()),
        pd.DataFrame(square(), IDS),
    ],
)
def test_a_square_table_whose_columns_are_not_its_samples_is_a_table(frame):
    assert read_samples(frame).kind == "table"
    for X in ({"a": frame}, [frame, frame], {"a": frame, "b": square(2)}):
        samples = read_samples(X)
        assert samples.kind == "views"
        assert set(samples.n_features) == {SIDE}
    y = np.arange(SIDE) % 3
    shifted = {"a": frame + 5 * y[:, None], "b": frame.to_numpy() - 5 * y[:, None]}
    labels = AverageKKM(3, random_state=0).fit(shifted).labels_
    assert adjusted_rand_score(y, labels) == 1


@pytest.mark.parametrize(
    "kernel",
    [
        similarities(),
        similarities(rounding=1e-15),
        similarities().astype(np.float32),
        similarities().tolist(),
        scipy.sparse.csr_array(similarities()),
        pd.DataFrame(similarities(), IDS, COLUMNS),
        pd.DataFrame(square(), IDS, IDS),
        pd.DataFrame(square(), IDS, IDS[::-1]),
    ],
)
def test_what_may_be_kernels_is_refused_with_what_to_pass(kernel):
    for X in ([kernel, kernel], {"a": kernel}):
        with pytest.raises(ValueError, match="square.*'precomputed'.*'from_distances'"):
            read_samples(X)
    if not isinstance(kernel, list):
        with pytest.raises(ValueError, match="kernels='precomputed'"):
            read_samples(kernel)
