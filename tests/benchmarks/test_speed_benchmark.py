"""The benchmark of speed: a tiny run."""

import json

import pytest

from speed import measure
from speed.timing import take_turns

pytestmark = pytest.mark.slow

TINY = ["--shrink", "40", "--repetitions", "2", "--pause", "0"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("speed") / "x86_64.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MKCLUST_DATA", raising=False)
        measure.main(["--only", "jaffe", "b4000", "m", *TINY, "--out", str(path)])
    return json.loads(path.read_text())


def test_a_tiny_run_writes_times_memory_and_how_right_the_answers_are(tiny):
    row = tiny["parts"]["b4000"]
    assert (row["n"], row["m"], row["k"], row["repetitions"]) == (100, 8, 20, 2)
    for values in [*row["seconds"].values(), *row["ratios"].values()]:
        (low, high), (first, third) = values["range"], values["quartiles"]
        assert 0 < low <= first <= values["median"] <= third <= high
    assert all(value > 0 for value in row["memory"].values())
    for answer in row["answers"].values():
        assert answer["converged"]
        assert answer["relative_gap"] <= 1e-6
        assert answer["weights_differ_by"] <= 1e-2


def test_every_work_has_its_turn_in_every_repetition_and_each_begins_once():
    order = []
    works = {name: lambda name=name: lambda: order.append(name) for name in "abc"}
    take_turns(works, 3, 0)
    assert "".join(order) == "abcbcacab"
