"""Ids that are nearly the same are named in the message that says that they are not."""

import numpy as np
import pytest

from mkclust.data.samples import read_views
from mkclust.index import id_advice, spelling_difference

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("TCGA-000", "TCGA.000"),
        ("TCGA-000", "tcga-000"),
        ("TCGA-000", " TCGA-000 "),
        ("001", 1),
        ("P-01", "p.1"),
        ("a_1", "a-1"),
    ],
)
def test_two_ids_that_are_nearly_the_same_are_named(name, other):
    assert f"{name!r} and {str(other)!r}" in spelling_difference(["x", name], [other, "y"])


def test_ids_that_are_others_or_the_same_are_not_named():
    assert spelling_difference(["a", "b"], ["c", "d"]) == ""
    assert spelling_difference(["a", "A"], ["a", "A"]) == ""
    assert spelling_difference([1, 2], ["1", "2"]) == ""
    assert spelling_difference(["10"], ["1"]) == ""
    assert spelling_difference([], ["", "-"]) == ""


def test_ids_that_begin_alike_are_named_with_the_length_that_matches():
    patients = pd.Index([f"P{i:03}" for i in range(20)])
    for others in (patients, patients + "-11B"):
        assert "str[:4]" in id_advice(patients + "-01A", others)
        assert "--trim-ids 4" in id_advice(others, patients + "-01A")
    assert id_advice(patients, "Q" + patients) == ""
    assert id_advice(patients + "x", pd.Index(["P00y", "P01y"])) == ""  # no longer unique
    with pytest.raises(ValueError, match=r"str\[:4\]"):
        read_views([pd.DataFrame({"a": 1.0}, each) for each in (patients, patients + "-01A")])


def test_messages_on_ids_that_are_not_in_common_name_the_difference():
    left = pd.DataFrame(np.ones((20, 2)), index=[f"T-{i:03d}" for i in range(20)])
    right = left.set_axis([f"T.{i:03d}" for i in range(20)])
    with pytest.raises(ValueError, match="no ids in common.*'T-000' and 'T.000'"):
        read_views({"a": left, "b": right})
    left = left.set_axis([f"{i:03d}" for i in range(95, 115)])
    right = right.set_axis([str(i) for i in range(95, 115)])
    with pytest.raises(ValueError, match="15 ids in common.*'095' and '95'"):
        read_views({"a": left, "b": right})
