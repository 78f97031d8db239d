"""Frames with partly the same samples are joined on request, and never otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views

pandas = pytest.importorskip("pandas")
INNER = TableOptions(join="inner")
IDS = [f"s{i}" for i in range(12)]


def frame(ids):
    """Return a table whose one column is the number in each id."""
    return pandas.DataFrame({"number": [float(each[1:]) for each in ids]}, index=list(ids))


def test_partly_common_ids_are_refused_with_the_way_to_join_them():
    with pytest.raises(ValueError, match=r"5 ids in common.*join='inner'"):
        read_views({"a": frame(IDS[:8]), "b": frame(IDS[3:])})


@given(
    st.lists(
        st.lists(st.sampled_from(IDS[2:]), unique=True).map(lambda ids: [*ids, *IDS[:2]]),
        min_size=2,
        max_size=4,
    ),
    st.randoms(),
)
def test_a_join_keeps_the_samples_of_all_frames_in_the_order_of_the_first(several, random):
    for ids in several:
        random.shuffle(ids)
    samples = read_views([frame(ids) for ids in several], options=INNER)
    common = [each for each in several[0] if all(each in ids for ids in several)]
    assert samples.ids.tolist() == common
    for view in samples.views.values():
        np.testing.assert_array_equal(view, frame(common))
    lengths = {len(ids) for ids in several}
    assert (samples.notes[0].startswith(f"join keeps {len(common)} of ")) == (
        lengths != {len(common)}
    )


def test_what_a_join_keeps_is_noted():
    notes = read_views({"a": frame(IDS[:8]), "b": frame(IDS[3:])}, options=INNER).notes
    assert notes == (
        "join keeps 5 of 8 and 9 samples",
        "a: 5 samples, 1 column",
        "b: 5 samples, 1 column",
    )


def test_an_array_beside_frames_that_lose_rows_is_refused():
    parts = {"a": frame(IDS[:8]), "b": frame(IDS[3:]), "c": np.ones((8, 2))}
    with pytest.raises(ValueError, match="view 'c' has no ids"):
        read_views(parts, options=INNER)
    parts["b"] = frame(IDS[:8])
    assert read_views(parts, options=INNER).n_samples == 8


def test_samples_of_a_fit_are_found_again_among_more():
    fitted = read_views([frame(IDS[:8]), frame(IDS[3:])], options=INNER)
    again = read_views([frame(IDS[::-1]), frame(IDS)], ids=fitted.ids, options=INNER)
    assert again.ids.tolist() == IDS[3:8]
    np.testing.assert_array_equal(again.views["view 0"], fitted.views["view 0"])
    with pytest.raises(ValueError, match="fitted on and view 'view 0'"):
        read_views([frame(IDS[:6]), frame(IDS)], ids=fitted.ids, options=INNER)
