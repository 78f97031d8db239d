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


def test_samples_of_a_fit_are_found_again_among_more():
    fitted = read_views([frame(IDS[:8]), frame(IDS[3:])], options=INNER)
    again = read_views([frame(IDS[::-1]), frame(IDS)], ids=fitted.ids, options=INNER)
    assert again.ids.tolist() == IDS[3:8]
    np.testing.assert_array_equal(again.views["view 0"], fitted.views["view 0"])
    with pytest.raises(ValueError, match="model was fitted on"):
        read_views([frame(IDS[:6]), frame(IDS)], ids=fitted.ids, options=INNER)
