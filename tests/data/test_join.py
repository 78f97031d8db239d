"""Frames are joined by their ids as pandas joins them, and samples are never doubled
silently."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views
from mkclust.exceptions import IdSpellingWarning

IDS = {
    "numbers": pd.Index(np.arange(50, 62)),
    "text": pd.Index([f"s{i}" for i in range(12)]),
    "dates": pd.date_range("2020-01-25", periods=12),
    "pairs": pd.MultiIndex.from_product(
        [list("abc"), range(4)], names=["plate", "well"]
    ),
}
INNER, OUTER = TableOptions(join="inner"), TableOptions(join="outer")


def frame(ids):
    """Return a table whose one column counts its rows."""
    return pd.DataFrame({"number": np.arange(1.0, len(ids) + 1)}, index=ids)


def join(frames, how):
    """Return the ids and the frames that pandas joins, None if they should be
    refused."""
    first, *others = (frame.index for frame in frames)
    ids = first
    for index in others:
        ids = (
            ids[ids.isin(index)]
            if how == "inner"
            else ids.append(index[~index.isin(ids)])
        )
    linked, rest = first, others
    while how == "outer" and rest:  # each has to have an id in common with another
        near = [index for index in rest if index.isin(linked).any()]
        if not near:
            return None
        linked = linked.append(near)
        rest = [index for index in rest if not any(index is each for each in near)]
    is_exact = all(
        len(index) == len(first) and index.isin(first).all() for index in others
    )
    if not len(ids) or (how == "exact" and not is_exact):
        return None
    ids = first if how == "exact" else ids
    return ids, [frame.reindex(ids) for frame in frames]


@given(
    kind=st.sampled_from(sorted(IDS)),
    how=st.sampled_from(["exact", "inner", "outer"]),
    seed=st.integers(0, 2**32 - 1),
    n_tables=st.integers(2, 4),
)
def test_a_join_is_that_of_pandas(kind, how, seed, n_tables):
    rng, ids = np.random.default_rng(seed), IDS[kind]
    size = None if how == "exact" and rng.random() < 0.7 else rng.integers(4, 10)
    frames = []
    for _ in range(n_tables):
        rows = rng.permutation(12)[:size]
        values = 1.0 + np.column_stack([rows, rows**2])
        frames.append(pd.DataFrame(values, ids[rows], ["a", "b"]))
    expected, options = join(frames, how), TableOptions(join=how)
    if expected is None:
        with pytest.raises(ValueError, match=r"in common|no id"):
            read_views(frames, options=options)
        return
    samples = read_views(frames, options=options)
    assert samples.index.equals(expected[0])
    for (name, rows), frame in zip(samples.observed.items(), expected[1], strict=True):
        np.testing.assert_array_equal(rows, np.flatnonzero(frame["a"].notna()))
        np.testing.assert_array_equal(samples.views[name], frame.dropna())


def test_samples_of_a_fit_are_found_again_among_more():
    ids, table = IDS["text"], frame(IDS["text"])
    fitted = read_views([table[:8], table[3:]], options=INNER)
    again = read_views([table[::-1], table], ids=fitted.ids, options=INNER)
    assert again.ids.tolist() == ids[3:8].tolist()
    np.testing.assert_array_equal(again.views["view 0"], fitted.views["view 0"])
    with pytest.raises(ValueError, match="model was fitted on"):
        read_views([table[:6], table], ids=fitted.ids, options=INNER)


def test_new_samples_need_have_no_id_in_common():
    samples = read_views([frame(["x"]), frame(["y"])], options=OUTER, encodings={})
    assert samples.missing.tolist() == [[False, True], [True, False]]
    samples = read_views(
        [frame(["x"]), pd.DataFrame({"x": []})], options=OUTER, encodings={}
    )
    assert samples.missing.tolist() == [[False, True]]


def test_ids_that_differ_in_spelling_only_are_warned_of():
    frames = {"a": frame(["p-1", "p-2", "p-3"]), "b": frame(["p-1", "p-2", "P_3"])}
    with pytest.warns(
        IdSpellingWarning, match=r"'a' and view 'b' .*'p-3' and 'P_3' differ"
    ):
        samples = read_views(frames, options=OUTER)
    assert samples.n_samples == 4
    with warnings.catch_warnings(action="error"):
        read_views(
            {"a": frame(["p1", "P1", "x"]), "b": frame(["p1", "P1"])}, options=OUTER
        )


@pytest.mark.parametrize("spelled", ["P3", " p3", "p3 ", "p 3", "P 03"])
def test_samples_that_an_inner_join_drops_for_their_spelling_are_named(spelled):
    frames = {"a": frame(["p1", "p2", "p3", "x"]), "b": frame(["p1", "p2", spelled])}
    named = "inner join of view 'a' and view 'b' leaves out "
    named += f".*'p3' and '{spelled}' differ in spell"
    if spelled == "P 03":
        frames["a"] = frames["a"].rename({"p3": "p_3"})
        named = "'p_3' and 'P 03'"
    with pytest.warns(IdSpellingWarning, match=named):
        samples = read_views(frames, options=INNER)
    assert samples.n_samples == 2


def test_how_many_ids_differ_in_spelling_is_said_and_others_are_just_dropped():
    ids = [f"p{i}" for i in range(20)]
    upper = frame(ids[:8] + [each.upper() for each in ids[8:]])
    with pytest.warns(IdSpellingWarning, match="'p8' and 'P8' .*11 further pairs"):
        read_views([frame(ids), upper], options=INNER)
    with warnings.catch_warnings(action="error"):
        read_views([frame(ids), frame([*ids[5:], "y1"])], options=INNER)


def test_tables_without_ids_are_not_joined():
    parts = {"a": np.ones((3, 2)), "b": pd.DataFrame(np.ones((4, 2)))}
    with pytest.raises(ValueError, match="'a' .* 'b' .*set_index"):
        read_views(parts, options=OUTER)
