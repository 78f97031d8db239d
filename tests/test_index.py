"""Ids that are nearly the same are named in the message that says that they are not."""

import pandas as pd
import pytest

from mkclust.data.samples import read_views
from mkclust.index import id_advice, spelled_otherwise


def test_two_ids_that_are_nearly_the_same_are_named_and_no_others():
    pairs = {
        "TCGA-000": "TCGA.000",
        "TCGA-001": "tcga-001",
        "a": " a ",
        "001": 1,
        "P-01": "p.1",
    }
    for name, other in pairs.items():
        assert f"{name!r} and {str(other)!r}" in spelled_otherwise(
            ["x", name], [other, "y"]
        )
    for ids, others in (
        (["a", "A"], ["a", "A"]),
        ([1, 2], ["1", "2"]),
        (["10"], ["1"]),
    ):
        assert spelled_otherwise(ids, others) == ""


def test_ids_that_begin_alike_are_named_with_the_length_that_matches():
    patients = pd.Index([f"P{i:03}" for i in range(20)])
    for others in (patients, patients + "-11B"):
        assert "str[:4]" in id_advice(patients + "-01A", others)
        assert "str[:4]" in id_advice(others, patients + "-01A")
    assert id_advice(patients, "Q" + patients) == ""
    # No longer unique.
    assert id_advice(patients + "x", pd.Index(["P00y", "P01y"])) == ""
    for other, message in (
        (patients + "-01A", r"no ids in common.*str\[:4\]"),
        (patients.str.lower(), "'P000' and 'p000'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_views([pd.DataFrame({"a": 1.0}, each) for each in (patients, other)])
