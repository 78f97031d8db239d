"""An outer join keeps the samples of all frames, and never pairs or doubles samples silently."""

import warnings

import numpy as np
import pandas as pd
import pytest

from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views
from mkclust.exceptions import IdSpellingWarning

OUTER = TableOptions(join="outer")
IDS = [f"s{i}" for i in range(12)]


def frame(ids):
    """Return a table whose one column counts its rows."""
    return pd.DataFrame({"number": np.arange(1.0, len(ids) + 1)}, index=ids)


def test_frames_without_a_common_id_are_not_joined():
    with pytest.raises(ValueError, match=r"no ids in common.*such as 's0' and 's5'"):
        read_views([frame(IDS[:5]), frame(IDS[5:])], options=OUTER)
    islands = [frame(IDS[:3]), frame(IDS[6:9]), frame(IDS[1:5]), frame(IDS[8:])]
    with pytest.raises(ValueError, match="no ids in common"):
        read_views(islands, options=OUTER)
    chain = [frame(IDS[:3]), frame(IDS[5:9]), frame(IDS[2:6])]
    assert read_views(chain, options=OUTER).n_samples == 9
    with pytest.raises(ValueError, match="types int64 and|types .* and int64"):
        read_views([frame(IDS[:3]), frame([3, 4, 7])], options=OUTER)


def test_new_samples_need_have_no_id_in_common():
    samples = read_views([frame(["x"]), frame(["y"])], options=OUTER, encodings={})
    assert samples.missing.tolist() == [[False, True], [True, False]]
    nobody = pd.DataFrame({"number": []})
    samples = read_views([frame(["x"]), nobody], options=OUTER, encodings={})
    assert samples.missing.tolist() == [[False, True]]


def test_ids_that_differ_in_spelling_only_are_warned_of():
    frames = {"a": frame(["p-1", "p-2", "p-3"]), "b": frame(["p-1", "p-2", "P_3"])}
    with pytest.warns(IdSpellingWarning, match=r"'a' and View 'b' .*'p-3' and 'P_3' differ"):
        samples = read_views(frames, options=OUTER)
    assert samples.n_samples == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_views({"a": frame(["p1", "P1", "x"]), "b": frame(["p1", "P1"])}, options=OUTER)


def test_tables_without_ids_are_not_joined_with_the_reason():
    for kind in (np.array, pd.DataFrame):
        parts = {"a": kind(np.ones((3, 2))), "b": kind(np.ones((4, 2)))}
        with pytest.raises(ValueError, match="'a' .* 'b' .*set_index"):
            read_views(parts, options=OUTER).views  # noqa: B018
    parts = {"a": frame(IDS[:4]), "b": frame(IDS[2:6]), "c": np.ones((6, 1))}
    with pytest.raises(ValueError, match="'c' has no ids"):
        read_views(parts, options=OUTER)
    assert read_views([np.ones((3, 2)), np.ones((3, 1))], options=OUTER).missing is None


def test_frames_of_distances_are_joined_in_rows_and_columns():
    values = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    distances = pd.DataFrame(values, index=IDS[:4], columns=IDS[:4])
    turned = distances.iloc[::-1]
    samples = read_views({"b": frame(IDS[1:6]), "d": turned}, options=OUTER)
    assert samples.ids.tolist() == [*IDS[1:6], "s0"]
    order = ["s1", "s2", "s3", "s0"]
    np.testing.assert_array_equal(samples.parts[1], distances.loc[order, order])
