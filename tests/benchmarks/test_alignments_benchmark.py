"""Random tables of the same samples: no row ever counts as another sample."""

import gzip
import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "alignments.py"
if not SCRIPT.exists():
    pytest.skip("the benchmarks are in the repository only", allow_module_level=True)
spec = importlib.util.spec_from_file_location("alignments", SCRIPT)
alignments = sys.modules["alignments"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alignments)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_new_random_tables_are_matched_by_id_or_refused():
    rows = [alignments.run(seed)[0] for seed in range(50_000, 50_040)]
    outcomes = Counter(row["outcome"] for row in rows)
    assert outcomes["by position"] == 0
    assert outcomes["by id"] >= 10


# Ids that are numbers of rows, in a column of floats of a table with all of them.
@pytest.mark.parametrize("seed", [102_583, 103_429, 103_730, 107_317, 107_950])
def test_tables_that_were_paired_by_position_are_refused(seed):
    (row,) = alignments.run(seed)
    assert row["outcome"] == "refused"
    assert f"frame.set_index({row['column']!r})" in row["message"]


@pytest.mark.parametrize("use", alignments.USES)
def test_rows_that_are_paired_by_position_would_be_noticed(use):
    seeds = range(1000)
    problems = (alignments.Problem(seed) for seed in seeds)
    wanted = [(use, "index", "none", kind) for kind in ("numbers", "text")]
    problem = next(
        each
        for each in problems
        if (each.use, each.place, each.change, each.kind) in wanted
    )
    assert alignments.CHECKS[use](problem)
    # The same tables with the ids of their rows exchanged.
    problem.second = problem.second.set_axis(np.roll(problem.second.index, 1), axis=0)
    assert not alignments.CHECKS[use](problem)


def test_no_committed_alignment_is_by_position():
    results = SCRIPT.parent / "results"
    record = json.loads((results / "alignments.json").read_text())
    with gzip.open(results / "alignments.jsonl.gz", "rt") as lines:
        rows = pd.DataFrame([json.loads(line) for line in lines])
    assert len(rows) == rows["seed"].nunique() == record["problems"] >= 1000
    assert set(rows["use"]) == set(alignments.USES)
    assert set(rows["outcome"]) == {"by id", "refused"}
    assert all(counts["by id"] >= 30 for counts in record["outcomes"].values())
    assert record["command"].startswith("python benchmarks/alignments.py")
    assert {"machine", "versions"} <= set(record)
