"""An outer join keeps the samples of all frames, and never pairs or doubles samples silently."""

import warnings

import numpy as np
import pytest

from mkclust.data.options import TableOptions
from mkclust.data.samples import read_views
from mkclust.exceptions import IdSpellingWarning

pd = pytest.importorskip("pandas")
OUTER = TableOptions(join="outer")
IDS = [f"s{i}" for i in range(12)]


def frame(ids):
    """Return a table whose one column counts its rows."""
    return pd.DataFrame({"number": np.arange(1.0, len(ids) + 1)}, index=ids)


def test_all_samples_are_kept_and_counted_in_a_note():
    samples = read_views({"a": frame(IDS[:8]), "b": frame(IDS[3:])}, options=OUTER)
    assert samples.ids.tolist() == IDS
    assert samples.missing.sum(axis=0).tolist() == [4, 3]
    assert samples.notes == (
        "12 samples; a lacks 4 and b lacks 3",
        "a: 8 samples, 1 column",
        "b: 9 samples, 1 column",
    )


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
    with pytest.warns(IdSpellingWarning, match=r"view 'a' and view 'b' .*'p-3' and 'P_3' differ"):
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
    with pytest.raises(ValueError, match="view 'c' has no ids"):
        read_views(parts, options=OUTER)
    assert read_views([np.ones((3, 2)), np.ones((3, 1))], options=OUTER).missing is None


def test_a_frame_that_lost_rows_is_joined_with_the_numbers_of_all_rows():
    whole = pd.DataFrame({"x": np.arange(5.0)})
    part = pd.DataFrame({"y": [1.0, np.nan, 3.0, np.nan, 5.0]}).dropna()
    samples = read_views({"a": whole, "b": part}, options=OUTER)
    assert samples.ids.tolist() == [0, 1, 2, 3, 4]
    for name, numbers in samples.observed.items():
        expected = whole if name == "a" else part
        np.testing.assert_array_equal(samples.views[name], expected.loc[samples.ids[numbers]])
    with pytest.raises(ValueError, match="default index"):
        read_views({"a": whole, "b": part.rename(index={4: 7})}, options=OUTER)


def test_ids_of_several_levels_are_joined():
    keys = [("u", 1), ("u", 2), ("v", 1)]
    a = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=pd.MultiIndex.from_tuples(keys))
    b = pd.DataFrame({"y": [5.0, 6.0]}, index=pd.MultiIndex.from_tuples([("v", 2), ("u", 2)]))
    samples = read_views([a, b], options=OUTER)
    assert samples.ids.tolist() == [*keys, ("v", 2)]
    assert samples.observed["view 1"].tolist() == [1, 3]
    assert samples.views["view 1"].ravel().tolist() == [6.0, 5.0]


def test_the_samples_of_a_fit_are_found_again_and_others_refused():
    frames = {"a": frame(IDS[:5]), "b": frame(IDS[2:7])}
    fitted = read_views(frames, options=OUTER)
    turned = {name: each.iloc[::-1] for name, each in frames.items()}
    again = read_views(turned, ids=fitted.ids, options=OUTER)
    np.testing.assert_array_equal(again.missing, fitted.missing)
    for name in frames:
        np.testing.assert_array_equal(again.views[name], fitted.views[name])
    with pytest.raises(ValueError, match="model was fitted on"):
        read_views({**frames, "b": frame([*IDS[2:7], "s11"])}, ids=fitted.ids, options=OUTER)
    with pytest.raises(ValueError, match="model was fitted on"):
        read_views({**frames, "b": frame(IDS[2:6])}, ids=fitted.ids, options=OUTER)


def test_frames_of_distances_are_joined_in_rows_and_columns():
    values = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    distances = pd.DataFrame(values, index=IDS[:4], columns=IDS[:4])
    turned = distances.iloc[::-1]
    samples = read_views({"b": frame(IDS[1:6]), "d": turned}, options=OUTER)
    assert samples.ids.tolist() == [*IDS[1:6], "s0"]
    order = ["s1", "s2", "s3", "s0"]
    np.testing.assert_array_equal(samples.parts[1], distances.loc[order, order])


def test_a_join_and_a_mask_go_together():
    frames = {"a": frame(IDS[:4]), "b": frame(IDS[2:6])}
    mask = np.ones((6, 2), bool)
    mask[2, 0] = False
    samples = read_views(frames, options=OUTER, observed=mask)
    assert samples.observed["a"].tolist() == [0, 1, 3]
    assert samples.views["a"].ravel().tolist() == [1.0, 2.0, 4.0]
    assert samples.observed["b"].tolist() == [2, 3, 4, 5]
