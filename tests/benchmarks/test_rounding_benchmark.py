"""What is said of roundings is what the rows of their benchmark say."""

import re
from pathlib import Path

import pytest

import rounding
from mkclust import METHODS
from records import read_rows

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "benchmarks" / "results" / "rounding" / "rows.jsonl.gz"
CELLS = ("unit", "components", "best", "taken")


@pytest.fixture(scope="module")
def means():
    return rounding.table(read_rows(ROWS))


def test_every_problem_has_one_row_and_none_was_refused():
    rows = read_rows(ROWS)
    assert (rows.status == "ok").all()
    found = list(zip(rows.dataset, rows.method, rows.seed, strict=True))
    assert len(found) == len(set(found))
    assert set(found) == set(rounding.problems())


@pytest.mark.parametrize("key", rounding.COMPARED)
def test_the_page_of_the_methods_has_the_figures_of_the_rows(means, key):
    text = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    (line,) = re.findall(
        rf"^\| `{METHODS[key].__name__}` \| (0\..*) \|$", text, re.MULTILINE
    )
    shown = line.split(" | ")
    expected = []
    for kind in ("real sets", "families"):
        *indices, taken = means.loc[(key, kind)][list(CELLS)]
        expected += [f"{index:.3f}" for index in indices] + [f"{100 * taken:.0f} %"]
    assert shown == expected


@pytest.mark.parametrize("key", rounding.COMPARED)
def test_the_best_is_as_good_as_the_better_one_on_the_whole(means, key):
    families, real = means.loc[(key, "families")], means.loc[(key, "real sets")]
    assert families["best"] > families["unit"] + 0.15
    assert families["best"] > families["components"] - 0.005
    assert real["best"] > real["unit"] - 0.02


def test_a_row_has_the_index_of_every_rounding():
    (row,) = rounding.compare("two unequal", "avg-kkm", 0)
    assert row["status"] == "ok"
    assert row["chosen"] == "components"
    assert row["best"] == row["components"] == 1
    assert row["unit"] < 0.2
