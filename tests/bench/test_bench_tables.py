"""Tables from rows: what stands for a method, which differences count, and the paper's
numbers."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from helpers.rows import made_row
from mkclust.bench.rows import as_lines, best_settings, read_rows, read_solves
from mkclust.bench.tables import (
    dataset_labels,
    not_worse,
    outcomes,
    rank_methods,
    score_matrix,
    score_table,
    time_table,
    weight_table,
    write_tables,
)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def one(frame, method, score="acc"):
    """Return the outcome of one method in one score."""
    [row] = frame[(frame["method"] == method) & (frame["score"] == score)].to_dict(
        "records"
    )
    return row


def test_the_true_classes_choose_only_in_the_oracle_table():
    grid = [made_row("lkam", r, 0.4) for r in range(2)]
    grid += [
        made_row("lkam", r, 0.9, parameters='{"reg": 2.0}', default=False)
        for r in range(2)
    ]
    single = [made_row("single", r, 0.95, oracle=True, default=False) for r in range(2)]
    default, oracle = (outcomes(grid + single, by) for by in ("default", "oracle"))
    assert one(default, "lkam")["mean"] == pytest.approx(40)
    assert one(oracle, "lkam")["mean"] == pytest.approx(90)
    assert "single" not in set(default["method"])
    assert one(oracle, "single")["oracle"]
    assert "[o]" in str(score_table(oracle, "acc").loc["a", "single"])


def test_failures_are_named_and_have_no_mean():
    rows = [
        made_row(),
        made_row("onkc", acc=None, status="time", message="more than 9 s"),
    ]
    found = one(outcomes(rows), "onkc")
    assert found["n"] == 0
    assert found["problem"] == "time: more than 9 s"
    assert str(score_table(outcomes(rows), "acc").loc["a", "onkc"]) == "-"


def test_equal_methods_are_both_best_and_clear_differences_count():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20)
    scores = {
        "best": dict(enumerate(0.9 + 0.01 * noise)),
        "same": dict(enumerate(0.9 + 0.01 * noise)),
        "close": dict(enumerate(0.9 + 0.01 * rng.normal(size=20))),
        "worse": dict(enumerate(0.5 + 0.01 * noise)),
    }
    assert {"best", "same"} <= not_worse(scores) <= {"best", "same", "close"}
    assert not_worse({"alone": {0: 1.0}}) == set()
    assert not_worse({"a": {0: 1.0, 1: 0.5}, "b": {0: 1.0, 1: 0.5}}) == set()


def test_the_correction_for_many_pairs_is_the_closure_of_bonferronis():
    """Holm rejects what Bonferroni rejects in all sets of pairs that contain it."""
    pairs = [*itertools.combinations("abcd", 2)]
    differs_from_bonferroni = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = rng.normal(size=(4, 12)) + np.array([[1.2], [0.8], [0.4], [0]])
        p = {
            pair: stats.ttest_rel(*(draws["abcd".index(n)] for n in pair)).pvalue
            for pair in pairs
        }
        subsets = [
            some for size in range(1, 7) for some in itertools.combinations(pairs, size)
        ]
        accepted = [s for s in subsets if min(p[pair] for pair in s) > 0.05 / len(s)]
        equal = {pair for some in accepted for pair in some}
        best = "abcd"[draws.mean(axis=1).argmax()]
        expected = {best} | {n for pair in equal if best in pair for n in pair}
        scores = {n: dict(enumerate(draws["abcd".index(n)])) for n in "abcd"}
        assert not_worse(scores) == expected
        plain = {
            n for pair in pairs if best in pair and p[pair] > 0.05 / 6 for n in pair
        }
        differs_from_bonferroni += plain | {best} != expected
    assert differs_from_bonferroni


def test_ranks_agree_with_scipys_test_and_leave_gaps_out():
    rng = np.random.default_rng(2)
    scores = pd.DataFrame(rng.random((9, 4)), columns=list("abcd"))
    scores.index = [f"d{i}" for i in range(9)]
    ranking = rank_methods(scores)
    expected = stats.friedmanchisquare(*(scores[name] for name in "abcd"))
    assert ranking.p_value == pytest.approx(expected.pvalue)
    # Demsar (2006): 4 classifiers on 14 data sets.
    enough = pd.DataFrame(rng.random((14, 4)), columns=list("abcd"))
    assert rank_methods(enough).critical_difference == pytest.approx(1.25, abs=0.01)
    scores.loc["d0", "a"] = np.nan
    assert "missing: d0" in rank_methods(scores).summary
    with pytest.raises(ValueError, match="three methods"):
        rank_methods(scores[["a"]])


def test_settings_are_compared_by_their_first_repetitions_and_ties_by_name():
    few, many = '{"reg": 1.0}', '{"reg": 2.0}'
    rows = [made_row("lkam", r, a, parameters=few) for r, a in enumerate((0.6, 0.6))]
    rows += [
        made_row("lkam", r, a, parameters=many)
        for r, a in enumerate((0.5, 0.6, 0.9, 0.9))
    ]
    assert best_settings(rows)["acc"] == few
    assert (
        best_settings([made_row(parameters=many), made_row(parameters=few)])["nmi"]
        == few
    )


def test_a_caveat_travels_with_the_name_of_a_data_set():
    rows = [made_row(paper="Flo17", caveat="substitute"), made_row(dataset="b")]
    assert dataset_labels(rows) == {"a": "Flo17 (substitute)", "b": "b"}
    failed = made_row(paper="", caveat="", status="failed")
    assert dataset_labels([rows[0], failed]) == dataset_labels([failed, rows[0]])


def test_means_are_those_of_repetitions_and_refits_on_parts_are_not_mixed_in():
    values = [0.5, 0.6, 0.75]
    rows = [made_row(repetition=r, acc=v) for r, v in enumerate(values)]
    found = one(outcomes(rows), "mkkm")
    expected = 100 * np.mean(values), 100 * np.std(values, ddof=1)
    assert (found["mean"], found["std"]) == pytest.approx(expected)
    with pytest.raises(ValueError, match="resample"):
        outcomes([*rows, made_row(acc=0.2, resample=0.8)])


def test_names_are_text_in_the_pages_and_spreadsheets_of_a_benchmark(tmp_path):
    evil = "=<img src=x onerror=alert(1)>|[a](http://b) & \x1b[2J"
    rows = [
        made_row(method, r, 0.5 + 0.1 * r, dataset=evil + data)
        for method in ("mkkm", "lkam", evil)
        for data in "ab"
        for r in range(3)
    ]
    failed = {"acc": None, "status": "error", "message": evil, "repetition": None}
    rows += [made_row("onkc", dataset=f"{evil}{data}", **failed) for data in "ab"]
    solve = {"weights": [1.0], "alignments": [1.0], "kernel_names": [evil]}
    (tmp_path / "rows.jsonl").write_bytes(as_lines(rows))
    (tmp_path / "solves.jsonl").write_bytes(as_lines([rows[0] | solve]))
    page, *tables = write_tables(tmp_path)

    text = page.read_text()
    assert "=&lt;img src=x onerror=alert(1)&gt;\\|\\[a\\](http://b) &amp; " in text
    assert "<" not in text.replace("p < ", "")
    assert all(character.isprintable() or character == "\n" for character in text)
    widths = {line.count(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert widths == {3, 4, 2}  # no name makes a cell of its own

    assert [table.name for table in tables if evil in table.read_text()]
    for table in tables:
        cells = pd.read_csv(table, header=None, dtype=str).to_numpy().ravel()
        assert not [cell for cell in cells if str(cell).startswith(("=", "+", "@"))]


def test_seconds_are_medians_and_weights_stand_beside_alignments():
    rows = [
        made_row(repetition=r, solve_seconds=s) for r, s in enumerate((1.0, 9.0, 2.0))
    ]
    assert time_table(rows).loc["a", "mkkm"] == 2.0
    solve = made_row() | {"kernel_names": ["x", "y"], "weights": [0.75, 0.25]}
    table = weight_table([solve | {"alignments": [0.5, 0.125]}])
    assert table[["kernel", "weight", "alignment"]].to_numpy().tolist() == [
        ["x", 0.75, 0.5],
        ["y", 0.25, 0.125],
    ]


@pytest.fixture(scope="module")
def compare():
    """Return the script that compares rows with the paper."""
    sys.path.insert(0, str(BENCHMARKS / "paper"))
    import compare

    return compare


def test_uci_digit_reproduces_the_papers_numbers(compare):
    rows = [
        row
        for row in read_rows(BENCHMARKS / "results/paper")
        if row["dataset"] == "digit"
    ]
    frame = compare.comparison(rows)
    ours = frame[(frame["selection"] == "default") & (frame["method"] == "simplemkkm")]
    assert len(ours) == 3
    assert ours["difference"].abs().max() <= 0.5
    counts = compare.reproduction(frame).set_index(["settings", "data set"])
    assert counts.loc[("default", "Digit"), ["numbers", "within 0.5"]].tolist() == [
        27,
        24,
    ]


@pytest.mark.slow
def test_one_command_makes_the_papers_tables_and_figures(compare, tmp_path):
    results = BENCHMARKS / "results"
    rows, solves = read_rows(results / "paper"), read_solves(results / "paper")
    files = compare.write(rows, solves, read_rows(results / "times"), tmp_path)
    assert {path.suffix for path in files} == {".md", ".csv", ".png"}
    assert all(path.stat().st_size > 1000 for path in files)
    matrix = score_matrix(outcomes(rows), "acc")
    assert f"{matrix.loc['Digit', 'simplemkkm']:.1f}" in files[0].read_text()
