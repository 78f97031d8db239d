"""The benchmark of speed: a tiny run, the tables of several machines, and those of the README."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from speed import measure, table
from speed.problems import blobs, growing_problems, standardized_copy, table_problems
from speed.timing import exponent, spread, take_turns

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TINY = ["--shrink", "40", "--repetitions", "2", "--pause", "0"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return what a tiny run writes, without any data set."""
    path = tmp_path_factory.mktemp("speed") / "tiny.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MKCLUST_DATA", raising=False)
        measure.main(["jaffe", "b4000", "m", *TINY, "--out", str(path)])
    return json.loads(path.read_text())


def made_up(tiny, factor):
    """Return the results of a machine on which all ratios are so many times as large."""
    record = copy.deepcopy(tiny)
    for values in record["parts"]["b4000"]["ratios"].values():
        values["median"] *= factor
    return record


def test_a_tiny_run_writes_every_figure_of_a_row(tiny):
    row = tiny["parts"]["b4000"]
    assert (row["n"], row["m"], row["k"], row["repetitions"]) == (100, 8, 20, 2)
    timed = {"base", "alternative", "solve_prepared", "solve_on_the_fly", "fit", "agreement"}
    assert set(row["seconds"]) == timed
    assert {"solve_prepared / base", "fit / alternative"} <= set(row["ratios"])
    for values in [*row["seconds"].values(), *row["ratios"].values()]:
        (low, high), (first, third) = values["range"], values["quartiles"]
        assert 0 < low <= first <= values["median"] <= third <= high
    assert {"kernel", "check", "solve"} <= set(row["fit_parts"])
    assert all(value > 0 for value in row["memory"].values())


def test_every_row_says_how_right_its_answers_are(tiny):
    for row in (tiny["parts"]["b4000"], *tiny["parts"]["m"]["rows"]):
        assert row["reference_gap"] <= 1e-9
        assert set(row["answers"]) == {"solve_prepared", "solve_on_the_fly", "fit"}
        for answer in row["answers"].values():
            assert answer["certificate"].split()[0] in ("proved", "searched")
            assert answer["converged"]
            assert answer["relative_gap"] <= 1e-6
            assert answer["weights_differ_by"] <= 1e-2


def test_growth_has_an_exponent_of_every_time_and_of_memory(tiny):
    growth = tiny["parts"]["m"]
    assert growth["sizes"] == [row["m"] for row in growth["rows"]] == [2, 4, 8, 16]
    assert set(growth["exponents"]) == set(growth["rows"][0]["seconds"])
    assert np.isfinite([*growth["exponents"].values(), *growth["memory_exponents"].values()]).all()


def test_results_describe_the_machine_without_naming_it(tiny):
    assert tiny["machine"]["cores"] >= 1
    blas = [pool for pool in tiny["machine"]["threads"] if pool["user_api"] == "blas"]
    assert all({"of", "internal_api", "num_threads"} <= set(pool) for pool in blas)
    assert {"mkclust", "numpy", "scipy", "scikit-learn", "python"} == set(tiny["versions"])
    assert str(Path.home()) not in json.dumps(tiny)
    assert str(ROOT) not in json.dumps(tiny)


def test_absent_data_sets_are_skipped_and_named(tiny):
    assert tiny["skipped"] == ["jaffe"]
    assert "jaffe" not in tiny["parts"]


def test_a_part_that_is_measured_again_leaves_the_others_as_they_are(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(tiny))
    measure.main(["digit", *TINY, "--out", str(path)])
    later = json.loads(path.read_text())
    assert later["parts"] == tiny["parts"]
    assert later["skipped"] == ["digit", "jaffe"]


def test_what_another_version_measured_is_not_mixed_with_new_figures(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(tiny | {"versions": tiny["versions"] | {"numpy": "1.0"}}))
    measure.main(["jaffe", *TINY, "--out", str(path)])
    assert json.loads(path.read_text())["parts"] == {}


def test_blobs_of_fewer_samples_stay_out_of_the_table(capsys):
    with pytest.raises(SystemExit):
        measure.main(["b4000", "--shrink", "40"])
    assert "name a file by --out" in capsys.readouterr().err


def test_a_part_that_is_unknown_is_answered_by_those_that_are_known(capsys):
    with pytest.raises(SystemExit):
        measure.main(["b5000"])
    assert "unknown: b5000; there are all, digit, flo17" in capsys.readouterr().err


def test_all_parts_are_the_table_and_what_is_optional():
    table_alone, everything = measure.parse([]).parts, measure.parse(["all"]).parts
    assert table_alone == [*table_problems(), *growing_problems()]
    assert everything == [*table_alone, "released", "million"]


def test_the_million_is_what_a_process_of_its_own_writes(tmp_path):
    script = tmp_path / "million.py"
    script.write_text("import sys; open(sys.argv[2], 'w').write('{\"million\": {}}')")
    assert measure.measure_million(script) == {"million": {}}
    with pytest.raises(FileNotFoundError, match="absent.py is not there"):
        measure.measure_million(tmp_path / "absent.py")


def test_the_released_routine_is_timed_beside_the_solve():
    options = measure.parse(["released", *TINY, "--out", "unused.json"])
    row = measure.measure_released(blobs(60, 3, 3, 1), options)
    assert row["repetitions"] == 2
    assert set(row["times_slower"]) == {"released", "reduced_gradient"}
    assert all(values["median"] > 0 for values in row["times_slower"].values())


def test_every_work_has_its_turn_in_every_repetition_and_each_begins_once():
    order = []
    works = {name: lambda name=name: lambda: order.append(name) or name for name in "abc"}
    seconds, results = take_turns(works, 3, 0, lambda name, result: name + result)
    assert "".join(order) == "abcbcacab"
    assert [len(values) for values in seconds.values()] == [3, 3, 3]
    assert results == {"a": ["aa"] * 3, "b": ["bb"] * 3, "c": ["cc"] * 3}


def test_exponents_and_spreads_are_those_of_known_figures():
    sizes = np.array([1.0, 2, 4, 8])
    assert exponent(sizes, 3 * sizes**1.5) == 1.5
    assert spread([5, 1, 3, 2, 4]) == {"median": 3, "quartiles": [2, 4], "range": [1, 5]}


def test_kernels_that_are_prepared_are_centered_with_a_unit_diagonal():
    kernels = blobs(40, 3, 2, 1).make()
    before = kernels.copy()
    prepared = standardized_copy(kernels)
    np.testing.assert_array_equal(kernels, before)
    np.testing.assert_allclose(np.diagonal(prepared, axis1=1, axis2=2), 1)
    centered = kernels - kernels.mean(1, keepdims=True) - kernels.mean(2, keepdims=True)
    centered += kernels.mean((1, 2), keepdims=True)
    lengths = np.sqrt(np.diagonal(centered, axis1=1, axis2=2))
    np.testing.assert_allclose(prepared * lengths[:, None] * lengths[:, :, None], centered)


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"aarch64": 0.91, "x86-64": 1.31}, "0.9-1.3 (aarch64 0.9, x86-64 1.3)"),
        ({"aarch64": 1.31, "x86-64": 0.91}, "0.9-1.3 (aarch64 1.3, x86-64 0.9)"),
        ({"aarch64": 0.91, "x86-64": 0.94}, "0.9 (aarch64, x86-64)"),
        ({"x86-64": 326.4}, "326 (x86-64)"),
        ({}, "-"),
    ],
)
def test_figures_of_several_machines_are_a_range_that_says_which_is_whose(figures, text):
    assert table.as_range(figures) == text


def test_the_table_of_two_machines_has_a_range_in_each_row(tiny, tmp_path, capsys):
    for name, factor in (("aarch64", 1), ("x86_64", 4)):
        (tmp_path / f"{name}.json").write_text(json.dumps(made_up(tiny, factor)))
    table.main(["--results", str(tmp_path)])
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if line.startswith("| blobs, n = 100"))
    median = tiny["parts"]["b4000"]["ratios"]["fit / alternative"]["median"]
    low, high = (table.in_digits(median * factor, 1) for factor in (1, 4))
    assert f"{low}-{high} (aarch64 {low}, x86-64 {high})" in row
    assert "| m from 2 to 16 (n = 50, k = 10) |" in text
    assert "- x86-64: " in text


def test_a_problem_that_one_machine_lacks_keeps_its_place_in_the_table(tiny):
    lacking = copy.deepcopy(tiny)
    later = lacking["parts"].pop("b4000")
    full = copy.deepcopy(tiny)
    full["parts"] = {"b4000": later, "b8189": later | {"problem": "b8189"}, **lacking["parts"]}
    lacking["parts"]["b8189"] = later | {"problem": "b8189"}
    lines = table.problem_table({"aarch64": lacking, "x86-64": full}).splitlines()
    assert [line.split(" |")[0] for line in lines[2:]] == [f"| {later['problem']}", "| b8189"]
    assert "aarch64" not in lines[2]
    assert "aarch64" in lines[3]


def test_times_of_the_released_routine_are_told_where_they_were_measured(tiny):
    assert table.released_line({"aarch64": tiny}) == ""
    released = {"times_slower": {"released": spread([326]), "reduced_gradient": spread([7])}}
    record = tiny | {"parts": {"released": released}}
    assert "takes 326 (x86-64) times as long" in table.released_line({"x86-64": record})


def test_the_million_is_told_where_it_was_measured(tiny):
    assert table.million_line({"aarch64": tiny}) == ""
    figures = {"ratio_to_plain": 0.5, "ratio_to_sampled": 1.2, "peak_gb": 2.0}
    million = {"million": figures | {"n_samples": 1_000_000}}
    record = tiny | {"parts": {"million": million}}
    text = table.million_line({"x86-64": record})
    assert text.startswith("1,000,000 samples")
    assert "0.5 (x86-64) times as long" in text


def test_the_readme_has_the_ranges_of_the_results_that_are_there():
    results = table.read_results(table.RESULTS)
    assert results
    text = " ".join((ROOT / "README.md").read_text().split())
    assert table.summary(results) in text, "run python benchmarks/speed/table.py"


def test_results_are_named_after_the_machines_that_they_are_of():
    for name, record in table.read_results(table.RESULTS).items():
        assert record["machine"]["architecture"].replace("_", "-") == name
        assert record["shrink"] == 1
