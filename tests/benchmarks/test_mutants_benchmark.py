"""The faults that are planted to try the tests: all of them can still be planted."""

import ast
import json
from pathlib import Path

import pytest

from mutants import MUTANTS, SOURCE, planted, summed_up

TESTS = Path(__file__).parents[1]
BY_NAME = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@BY_NAME
def test_a_fault_occurs_once_and_leaves_a_program(mutant):
    text = (SOURCE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    changed = ast.dump(ast.parse(planted(text, mutant)))
    assert changed != ast.dump(ast.parse(text))


@BY_NAME
def test_the_tests_of_a_fault_exist(mutant):
    assert mutant.tests
    for test in mutant.tests:
        assert (TESTS / test).is_file()


def test_names_of_faults_are_unique():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


def test_a_fault_that_does_not_apply_is_an_error():
    with pytest.raises(ValueError, match="0 times instead of once: adapt"):
        planted("nothing of it", MUTANTS[0])


def test_a_record_has_the_faults_in_their_order_and_counts_those_noticed():
    first, second = (mutant.name for mutant in MUTANTS[:2])
    record = summed_up(
        {second: {"noticed_by": None}, first: {"noticed_by": "a test"}, "gone": {}}
    )
    assert list(record["mutants"]) == [first, second]
    assert (record["n_planted"], record["n_noticed"]) == (2, 1)


def test_the_committed_record_has_every_fault_and_all_were_noticed():
    path = TESTS.parent / "benchmarks" / "results" / "mutants.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert list(record["mutants"]) == [mutant.name for mutant in MUTANTS]
    assert record["n_noticed"] == record["n_planted"] == len(MUTANTS)
    assert all(each["noticed_by"] for each in record["mutants"].values())
