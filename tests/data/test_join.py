"""Frames are joined by their ids as pandas joins them, on request only."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views

IDS = {
    "numbers": pd.Index(np.arange(50, 62)),
    "text": pd.Index([f"s{i}" for i in range(12)]),
    "dates": pd.date_range("2020-01-25", periods=12),
    "pairs": pd.MultiIndex.from_product([list("abc"), range(4)], names=["plate", "well"]),
}
INNER = TableOptions(join="inner")


def join(frames, how):
    """Return the ids and the frames that pandas joins, None if they should be refused."""
    first, *others = (frame.index for frame in frames)
    ids = first
    for index in others:
        ids = ids[ids.isin(index)] if how == "inner" else ids.append(index[~index.isin(ids)])
    linked, rest = first, others
    while how == "outer" and rest:  # each has to have an id in common with another
        near = [index for index in rest if index.isin(linked).any()]
        if not near:
            return None
        linked = linked.append(near)
        rest = [index for index in rest if not any(index is each for each in near)]
    is_exact = all(len(index) == len(first) and index.isin(first).all() for index in others)
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
    def frame(ids):
        return pd.DataFrame({"number": [float(each[1:]) for each in ids]}, index=ids)

    ids = IDS["text"]
    fitted = read_views([frame(ids[:8]), frame(ids[3:])], options=INNER)
    again = read_views([frame(ids[::-1]), frame(ids)], ids=fitted.ids, options=INNER)
    assert again.ids.tolist() == ids[3:8].tolist()
    np.testing.assert_array_equal(again.views["view 0"], fitted.views["view 0"])
    with pytest.raises(ValueError, match="model was fitted on"):
        read_views([frame(ids[:6]), frame(ids)], ids=fitted.ids, options=INNER)
