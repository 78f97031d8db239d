"""Samples may be missing from views: they are told once, and every view holds just its
own."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from mkclust import AverageKKM
from mkclust.data.options import TableOptions
from mkclust.data.samples import read_samples, read_views

IDS = [f"s{i}" for i in range(12)]
NAN = np.nan


def views(n=6):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    a[1], b[4] = NAN, NAN
    return {"a": a, "b": b}


def as_arrays(samples):
    """Return the views of samples over all of them, with NaN for what is missing."""
    full = {}
    for name, numbers in samples.observed.items():
        view = np.asarray(samples.views[name])
        full[name] = np.full((samples.n_samples, view.shape[1]), NAN)
        full[name][numbers] = view
    return full


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(2, 4))
def test_permuting_samples_permutes_what_is_missing(seed, n, m):
    rng = np.random.default_rng(seed)
    missing = rng.random((n, m)) < 0.4
    missing[:, 0] &= ~missing.all(axis=1)
    missing[0], missing[1] = False, np.arange(m) == m - 1
    given_views = [rng.normal(size=(n, 3)) for _ in range(m)]
    for view, lacks in zip(given_views, missing.T, strict=True):
        view[lacks] = NAN
    order = rng.permutation(n)
    samples, moved = (
        read_views(given_views),
        read_views([view[order] for view in given_views]),
    )
    np.testing.assert_array_equal(samples.missing, missing)
    np.testing.assert_array_equal(moved.missing, missing[order])
    for view, other in zip(
        as_arrays(samples).values(), as_arrays(moved).values(), strict=True
    ):
        np.testing.assert_array_equal(view[order], other)


@given(st.lists(st.integers(0, 5), unique=True, min_size=1).map(sorted))
def test_some_samples_carry_along_what_is_missing(numbers):
    samples = read_views(views())
    some = samples.take(np.array(numbers))
    full, part = as_arrays(samples), as_arrays(some)
    for name in full:
        np.testing.assert_array_equal(part[name], full[name][numbers])
    assert (some.missing is None) == (not {1, 4} & set(numbers))


def test_a_sample_in_no_view_is_named():
    arrays = views()
    arrays["b"][1] = NAN
    with pytest.raises(ValueError, match=r"missing from every view: 1\."):
        read_views(arrays)
    frames = {name: pd.DataFrame(view, index=IDS[:6]) for name, view in arrays.items()}
    with pytest.raises(ValueError, match="missing from every view: 's1'"):
        read_views(frames)


def test_numbers_and_categories_of_a_frame_lack_the_same_samples():
    table = pd.DataFrame(
        {
            "x": [1.0, 2.0, NAN, 4.0, NAN, 2.0],
            "kind": ["u", "v", None, "u", "v", "u"],
            "flag": [True, False, None, True, None, True],
        }
    )
    samples = read_views(
        {"t": table, "b": np.ones((6, 1))}, options=TableOptions(impute="median")
    )
    assert samples.names == ("t", "t (categories)", "b")
    assert samples.missing.tolist() == [[i == 2, i == 2, False] for i in range(6)]
    assert samples.views["t"].tolist() == [[1.0], [2.0], [4.0], [2.0], [2.0]]
    new = pd.DataFrame({"x": [NAN] * 2, "kind": [None] * 2, "flag": [None] * 2})
    again = read_views({"t": new, "b": np.ones((2, 1))}, encodings=samples.encodings)
    assert [view.shape for view in again.views.values()] == [(0, 1), (0, 4), (2, 1)]


FORMS = {
    "objects": np.array([[1, 2], [None, None], [3, 4]], dtype=object),
    "lists": [[1, 2], [None, NAN], [3, 4]],
    "Int64": pd.DataFrame({"a": [1, None, 3], "b": [2, None, 4]}).astype("Int64"),
    "object frame": pd.DataFrame({"a": [1, None, 3], "b": [2, None, 4]}, dtype=object),
    "masked": np.ma.masked_array(
        [[1, 2], [9, 9], [3, 4]], mask=[[0, 0], [1, 1], [0, 0]]
    ),
    "csr": scipy.sparse.csr_array(np.array([[1, 2], [NAN, NAN], [3, 4]])),
    "coo": scipy.sparse.coo_matrix(np.array([[1, 2], [NAN, NAN], [3, 4]])),
}


@pytest.mark.parametrize("table", FORMS.values(), ids=FORMS)
def test_empty_rows_are_told_in_tables_of_every_form(table):
    samples = read_views({"t": table, "b": np.ones((3, 1))})
    assert samples.missing.tolist() == [[False, False], [True, False], [False, False]]
    view = samples.views["t"]
    dense = view.toarray() if scipy.sparse.issparse(view) else view
    assert dense.tolist() == [[1, 2], [3, 4]]


def test_squares_of_pairs_lose_the_columns_of_what_they_lack():
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    mask = np.arange(5)[:, None] != [2, 9]
    assert (
        read_views({"d": distances, "b": np.ones((5, 2))}, observed=mask).n_features[0]
        == 4
    )
    distances[2], distances[:, 2] = NAN, NAN
    samples = read_views({"d": distances, "b": np.ones((5, 2))})
    assert samples.views["d"].shape == (4, 4)
    distances[:2, 2] = 1.0  # features, then, of which some are missing
    assert read_views({"d": distances, "b": np.ones((5, 2))}).parts[0].shape == (4, 5)


def test_a_mask_says_who_is_missing_whatever_is_there():
    rng = np.random.default_rng(1)
    arrays = {
        "a": rng.normal(size=(5, 2)),
        "b": scipy.sparse.csr_array(rng.normal(size=(5, 3))),
    }
    mask = np.ones((5, 2), dtype=bool)
    mask[0, 0] = mask[3, 1] = False
    by_name = {"a": mask[:, 0], "b": mask[:, 1].tolist()}
    for observed in (
        mask,
        by_name,
        pd.DataFrame(mask, columns=["a", "b"]),
        mask.astype(int),
    ):
        for given_views in (
            arrays,
            arrays | {"a": arrays["a"][1:]},
            read_views(arrays),
        ):
            samples = read_samples(given_views, observed=observed)
            np.testing.assert_array_equal(samples.missing, ~mask)
            np.testing.assert_array_equal(samples.views["a"], arrays["a"][1:])
            b = arrays["b"].toarray()[[0, 1, 2, 4]]
            np.testing.assert_array_equal(samples.views["b"].toarray(), b)
    arrays["a"][0] = np.inf  # is not used
    assert read_views(arrays, observed=mask).views["a"].shape == (4, 2)


def test_a_mask_of_another_form_is_refused():
    arrays = {"a": np.ones((5, 2)), "b": np.ones((5, 3))}
    for observed, message in (
        (np.ones((5, 3), bool), r"shape \(5, 3\)"),
        (np.ones(5, bool), r"shape \(5,\)"),
        (np.ones((4, 2), bool), "5 rows, and observed"),
        (np.full((5, 2), 0.5), "True if a view has a sample"),
        ({"c": np.ones(5, bool)}, "'c'.*'a' and 'b'"),
        ({"a": np.ones(5, bool), "b": np.ones(4, bool)}, "shapes"),
    ):
        with pytest.raises(ValueError, match=message):
            read_views(arrays, observed=observed)


def test_further_columns_of_new_samples_do_not_make_them_seen():
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["s", "t"])
    fitted, lacking = read_views({"a": table, "b": table}), table.copy()
    lacking.iloc[0] = NAN
    new = {"a": table, "b": lacking.assign(batch=1.0)}
    with pytest.warns(UserWarning, match="'batch', which the fit did not have"):
        samples = read_views(new, encodings=fitted.encodings)
    assert samples.missing.tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_arrays_of_other_libraries_are_masked_and_taken_from(library):
    xp = pytest.importorskip(library)
    arrays = {name: xp.asarray(view) for name, view in views().items()}
    samples = read_views(arrays)
    assert samples.missing.sum() == 2
    assert tuple(samples.take(np.array([0, 4, 5])).parts[1].shape) == (2, 2)
    mask = np.ones((6, 2), bool)
    mask[0, 1] = False
    assert tuple(read_views(arrays, observed=xp.asarray(mask)).parts[1].shape) == (4, 2)
    kernels = xp.asarray(np.stack([np.eye(4)] * 2))
    kernels[0, 1, :] = NAN
    kernels[0, :, 1] = NAN
    assert [tuple(K.shape) for K in read_samples(kernels).parts] == [(3, 3), (4, 4)]


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("n_observed", [1, 5])
def test_a_view_that_is_observed_for_very_few_samples_is_named(n_observed, kernels):
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(40, 3)) for name in "abc"}
    if kernels:
        arrays = {name: X @ X.T for name, X in arrays.items()}
        arrays["c"][:, n_observed:] = NAN
    arrays["c"][n_observed:] = NAN
    model = AverageKKM(3, kernels="precomputed" if kernels else "auto", random_state=0)
    said = rf"'c' is observed for {n_observed} of 40 samples"
    refused = n_observed == 1
    with pytest.raises(ValueError, match=said) if refused else pytest.warns(match=said):
        model.fit(arrays)


def test_a_mask_of_frames_that_lost_their_first_rows_is_matched_by_id():
    a = pd.DataFrame(np.arange(12.0).reshape(6, 2)).iloc[2:]
    b = a.iloc[::-1]
    observed = pd.DataFrame({"a": [True] * 3 + [False], "b": [True] * 4}, index=b.index)
    # Sample 2 is missing from a.
    samples = read_views({"a": a, "b": b}, observed=observed)
    assert samples.ids.tolist() == [2, 3, 4, 5]
    assert samples.missing.tolist() == [[True, False]] + [[False, False]] * 3
