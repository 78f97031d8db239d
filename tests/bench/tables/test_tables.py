import csv
import io
import itertools
import math
import random
import re
import unicodedata
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mkclust.bench.tables import (
    PAPER_DATASETS,
    PAPER_METHODS,
    SCORES,
    SELECTIONS,
    Cell,
    Results,
    Table,
    ablation_table,
    choose,
    comparison_table,
    critical_difference,
    holm,
    like_the_best,
    mean_and_deviation,
    paired_p_value,
    paper_comparison,
    paper_score,
    rank_methods,
    rank_table,
    reproduction_table,
    score_tables,
    settings_table,
    solve_seconds,
    time_table,
    to_csv,
    to_latex,
    to_markdown,
    weight_table,
)
from mkclust.bench.tables.ranking import ranking
from mkclust.methods import METHODS

pytestmark = pytest.mark.slow

DATASETS = [
    ("digit", "Digit", ""),
    ("flo17-substitute", "Flo17", "substitute"),
    ("pfold-truncated", "PFold", "truncated"),
    ("jaffe", "", ""),
]
FIXED = ["avg-kkm", "mkkm", "simplemkkm", "kamm-r", "kamm-a", "spectral"]
GRID = ["{}", '{"reg": 0.5}', '{"reg": 2.0}']


def make_row(dataset, method, **changes):
    name, paper, caveat = dataset
    row = {"dataset": name, "paper": paper, "caveat": caveat, "method": method}
    row |= {"n_samples": 100, "n_kernels": 3, "n_clusters": 4, "oracle": False}
    row |= {"parameters": "{}", "resample": 1.0, "repetition": 0, "n_repetitions": 1, "seed": 0}
    row |= {"acc": 0.5, "nmi": 0.4, "purity": 0.6, "ari": 0.3, "stability": None}
    row |= {"solve_seconds": 0.5, "n_iter": 3, "converged": True, "gap": None, "n_init": 10}
    row |= {"threads": 1, "status": "ok", "message": "", "versions": "", "machine": "one of them"}
    return row | changes


def runs(dataset, method, level, n=6, *, spread=0.01, seed=0, **changes):
    """Return the repetitions of a setting, of scores around a level."""
    noise = np.random.default_rng(seed).normal(scale=spread, size=(n, 3))
    return [
        make_row(
            dataset,
            method,
            repetition=r,
            seed=100 + r,
            acc=level + noise[r, 0],
            nmi=level - 0.1 + noise[r, 1],
            purity=level + 0.02 + noise[r, 2],
            **changes,
        )
        for r in range(n)
    ]


def benchmark(resample=1.0):
    """Return the rows of a small benchmark with every kind of trouble in it."""
    rows = []
    for d, dataset in enumerate(DATASETS):
        for m, method in enumerate(FIXED):
            rows += runs(dataset, method, 0.5 + 0.05 * m, seed=10 * d + m, resample=resample)
        for level, stability, parameters in zip(
            [0.6, 0.9, 0.7], [0.2, 0.3, 0.8], GRID, strict=True
        ):
            its = {"parameters": parameters, "stability": stability, "resample": resample}
            rows += runs(dataset, "lkam", level, seed=d, **its)
        for kernel in range(3):
            its = {"parameters": f'{{"kernel": {kernel}}}', "oracle": True, "resample": resample}
            rows += runs(dataset, "best-single-kernel", 0.3 + 0.1 * kernel, seed=d, **its)
    failed = dict.fromkeys((*SCORES, "ari", "solve_seconds"))
    failed |= {"status": "memory", "message": "needs 12 GiB, has 8", "resample": resample}
    rows.append(make_row(DATASETS[1], "lmkkm", **failed))
    rows += runs(DATASETS[0], "lmkkm", 0.55, seed=99, resample=resample)
    return rows


def cell_of(table, row, column, block=""):
    found = [
        cell
        for its_block, its_row, its_column, cell in table.cells()
        if (its_row, its_column) == (row, column) and block in its_block
    ]
    assert len(found) == 1, (row, column, block, len(found))
    return found[0]


# --- statistics ---


def test_deviation_has_one_less_than_the_number_of_values_in_its_denominator():
    values = np.random.default_rng(0).normal(size=7)
    expected = (values.mean(), values.std(ddof=1))
    assert mean_and_deviation(list(values)) == pytest.approx(expected, rel=1e-12)
    assert mean_and_deviation([3.0]) == (3.0, None)


@given(st.integers(3, 30), st.integers(0, 10**6))
def test_paired_test_equals_that_of_scipy(n, seed):
    a, b = np.random.default_rng(seed).normal(size=(2, n))
    assert paired_p_value(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-8)


def test_paired_test_agrees_with_the_signed_ranks_on_clear_cases():
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    for shift in (0.0, 3.0):
        b = a + shift + rng.normal(size=40)
        assert (paired_p_value(a, b) < 0.05) == (stats.wilcoxon(a, b).pvalue < 0.05)


def test_differences_without_noise_are_no_difference_or_a_sure_one():
    a = [0.1, 0.2, 0.7]
    assert paired_p_value(a, a) == 1
    assert paired_p_value(a, [x + 1e-15 for x in a]) == 1
    assert paired_p_value(a, [x + 0.01 for x in a]) == 0
    assert math.isnan(paired_p_value(a[:2], a[:2]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_rejects_just_where_its_step_down_procedure_does(p_values):
    alpha, rejected = 0.05, set()
    for done, at in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[at] * (len(p_values) - done) > alpha:
            break
        rejected.add(int(at))
    assert {i for i, p in enumerate(holm(p_values)) if p <= alpha} == rejected


def test_identical_methods_are_like_the_best_and_a_constant_loss_is_not():
    scores = dict(enumerate([0.5, 0.6, 0.7, 0.65]))
    worse = {r: score - 0.001 for r, score in scores.items()}
    assert like_the_best({"a": scores, "b": dict(scores), "c": worse}) == {"a", "b"}


def test_methods_are_paired_by_repetition_whatever_the_order_and_over_what_both_have():
    rng = np.random.default_rng(0)
    base = dict(enumerate(rng.normal(scale=10, size=30)))
    slightly_worse = {r: base[r] - 1 + rng.normal(scale=0.1) for r in reversed(range(20))}
    slightly_worse |= {100: 500.0 - 10_000.0}
    assert like_the_best({"a": base, "b": slightly_worse}) == {"a"}


def test_nothing_is_said_of_a_method_alone_or_of_too_few_repetitions():
    assert like_the_best({"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {}}) == frozenset()
    few, many = {0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.1, 2: 1.5}
    assert like_the_best({"a": few, "b": dict(few)}) == frozenset()
    assert like_the_best({"a": few, "b": many, "c": dict(many)}) == {"b", "c"}


def test_equals_are_seldom_told_apart_and_clear_losers_always():
    rng = np.random.default_rng(0)
    names, told_apart, trials = "abcdefg", 0, 300
    for _ in range(trials):
        # Repetitions have noise in common, as with shared seeds.
        drawn = rng.normal(size=(7, 15)) + rng.normal(size=15)
        scores = {name: dict(enumerate(x)) for name, x in zip(names, drawn, strict=True)}
        told_apart += len(like_the_best(scores)) < 7
    # 5 % are allowed. Corrected for the comparisons with the best alone there would be 23: it is
    # the data that choose the best.
    assert 0 < told_apart <= 0.05 * trials
    scores["loser"] = {r: x - 5 for r, x in scores["a"].items()}
    assert "loser" not in like_the_best(scores)


@given(st.integers(2, 6), st.integers(3, 12), st.integers(0, 10**6), st.booleans())
def test_friedman_equals_that_of_scipy_with_and_without_ties(k, n, seed, ties):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, size=(n, k)).astype(float) if ties else rng.normal(size=(n, k))
    if k == 2 or np.all(table == table[:, :1]):
        return
    scores = {f"set{i}": {f"m{j}": table[i, j] for j in range(k)} for i in range(n)}
    ranked = rank_methods(scores)
    expected = stats.friedmanchisquare(*table.T)
    assert ranked.chi2 == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    assert ranked.chi2_p_value == pytest.approx(expected.pvalue, rel=1e-9)
    if math.isfinite(ranked.f):
        f = (n - 1) * expected.statistic / (n * (k - 1) - expected.statistic)
        assert ranked.f == pytest.approx(f, rel=1e-8, abs=1e-12)
        assert ranked.f_p_value == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-8)
    assert sum(ranked.ranks) == pytest.approx(k * (k + 1) / 2)
    assert list(ranked.ranks) == sorted(ranked.ranks)


@pytest.mark.parametrize(
    ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (9, 3.102), (10, 3.164)]
)
def test_critical_difference_has_the_quantiles_of_the_printed_tables(k, q):
    expected = q * math.sqrt(k * (k + 1) / (6 * 14))
    assert critical_difference(k, 14) == pytest.approx(expected, rel=5e-4)


def test_cliques_are_the_largest_runs_within_the_critical_difference():
    rng = np.random.default_rng(3)
    for _ in range(20):
        shifts = rng.uniform(0, 3, size=6)
        scores = {
            f"set{i}": {f"m{j}": shifts[j] + rng.normal() for j in range(6)} for i in range(8)
        }
        ranked = rank_methods(scores)
        rank = dict(zip(ranked.methods, ranked.ranks, strict=True))
        groups = [
            set(group)
            for size in range(2, 7)
            for group in itertools.combinations(rank, size)
            if np.ptp([rank[name] for name in group]) <= ranked.critical_difference
        ]
        largest = [group for group in groups if not any(group < other for other in groups)]
        assert sorted(map(sorted, ranked.cliques)) == sorted(map(sorted, largest))


def test_all_alike_and_all_in_one_order_are_the_two_ends_of_the_tests():
    alike = rank_methods({name: {"a": 1.0, "b": 1.0, "c": 1.0} for name in "xyz"})
    assert (alike.chi2_p_value, alike.f_p_value) == (1, 1)
    assert list(alike.ranks) == [2, 2, 2]
    assert alike.times_best == (3, 3, 3)
    ordered = rank_methods({name: {"a": 1.0, "b": 2.0, "c": 3.0} for name in "xyz"})
    assert ordered.f_p_value == 0
    assert ordered.methods == ("c", "b", "a")
    assert ordered.times_best == (3, 0, 0)


def test_ranks_leave_out_what_misses_most_and_say_so():
    full = {f"set{i}": {"a": 0.5, "b": 0.4 + i, "c": 0.3} for i in range(5)}
    for i in range(3):
        del full[f"set{i}"]["c"]
    ranked = rank_methods(full)
    assert (ranked.methods_left_out, ranked.datasets_left_out) == (("c",), ())
    assert len(ranked.datasets) == 5
    full["begun"] = {"a": 0.1}
    ranked = rank_methods(full)
    assert (ranked.methods_left_out, ranked.datasets_left_out) == (("c",), ("begun",))
    with pytest.raises(ValueError, match=r"found 1 method\(s\).*run more"):
        rank_methods({"x": {"a": 1.0}, "y": {"a": 2.0}})


# --- the paper's figures ---


def test_the_paper_has_a_figure_for_every_method_on_digit():
    found = [paper_score("Digit", m, s) for m in PAPER_METHODS[:9] for s in SCORES]
    assert len(found) == 27
    assert None not in found
    assert set(PAPER_METHODS) <= set(METHODS)


@pytest.mark.parametrize(
    ("dataset", "method", "score", "expected"),
    [
        ("Digit", "lkam", "nmi", (89.4, 0.1)),
        ("Digit", "mkkm-mm", "purity", (50.0, 0.8)),
        ("Flo17", "simplemkkm", "acc", (58.9, 1.3)),
        ("Flo17", "kamm-r", "purity", (36.6, 0.5)),
        ("Flo17", "kamm-a", "nmi", (54.1, 1.4)),
        ("Flo102", "lmkkm", "acc", None),
        ("Cal-5", "mkkm-mm", "acc", (33.9, 1.3)),
        ("Cal-15", "lf-mvc", "nmi", (58.7, 0.5)),
        ("Cal-30", "lf-mvc", "purity", (33.0, 0.9)),
        ("Cal-30", "kamm-r", "acc", None),
        ("", "mkkm", "acc", None),
    ],
)
def test_figures_are_those_of_the_paper(dataset, method, score, expected):
    assert paper_score(dataset, method, score) == expected


def test_the_file_of_the_paper_has_a_line_for_every_cell_and_believable_figures():
    text = files("mkclust.bench.tables").joinpath("paper.csv").read_text()
    lines = list(csv.DictReader(io.StringIO(text)))
    keys = {(line["dataset"], line["method"], line["score"]) for line in lines}
    asked = set(itertools.product(PAPER_DATASETS, PAPER_METHODS[:9], SCORES))
    assert keys == asked | set(itertools.product(["Flo17"], ["kamm-r", "kamm-a"], SCORES))
    assert len(lines) == len(keys)
    for dataset, method in itertools.product(PAPER_DATASETS, PAPER_METHODS):
        acc, purity = (paper_score(dataset, method, score) for score in ("acc", "purity"))
        assert (acc is None) == (purity is None)
        assert acc is None or 10 < acc[0] <= purity[0] < 100


# --- formats ---


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Cell(90.52, 0.14, paper=90.3), "90.5±0.1 (90.3, +0.2)"),
        (Cell(90.27, 0.14, paper=90.3), "90.3±0.1 (90.3, +0.0)"),
        (Cell(80.0, paper=90.3), "80.0 (90.3, -10.3)"),
        (Cell(12.0), "12.0"),
        (Cell(None), "-"),
        (Cell(None, paper=42.7), "- (42.7)"),
        (Cell(3.0, text="in words"), "in words"),
    ],
)
def test_a_cell_shows_its_own_figure_then_the_papers_and_the_difference(cell, shown):
    assert cell.shown() == shown


HARD = Table(
    "hard",
    "50 % of A_b & {c} | d",
    ("data set", "one_two", "50%"),
    (
        ("ACC",),
        ("x|y_z", Cell(1.25, 0.5, bold=True), Cell(None, mark="1")),
        ("#$~^\\", *[Cell(2.0)] * 2),
    ),
    ("A note.", "[1] x, 50%: out of memory: needs 3 GiB, has <2"),
)


def test_markdown_has_as_many_cells_in_every_line():
    for table in [HARD, *score_tables(Results.of(benchmark()), "oracle")]:
        lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 1}


def test_latex_is_balanced_and_has_as_many_cells_in_every_line():
    tables = [
        HARD,
        *score_tables(Results.of(benchmark()), "oracle"),
        settings_table(Results.of(benchmark()).run()),
    ]
    for table in [
        *tables,
        time_table(Results.of(benchmark()).run()),
        rank_table(Results.of(benchmark()).run(), "acc", "oracle"),
    ]:
        text = to_latex(table)
        begun = re.findall(r"\\begin\{([\w*]+)\}", text)
        assert sorted(begun) == sorted(re.findall(r"\\end\{([\w*]+)\}", text))
        plain = re.sub(r"\\\\|\\[{}&%$#_]", "", text)
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        assert not re.search(r"^[^%\\]*[#_~±|]", re.sub(r"\$[^$]*\$", "", plain), re.M)
        lines = [line for line in text.splitlines() if line.endswith(r"\\")]
        cells = [line for line in lines if "multicolumn" not in line]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in cells} == {len(table.columns) - 1}
        assert len(lines) == len(table.rows) + 1


def test_csv_gives_back_every_number_in_full():
    for table in [HARD, *score_tables(Results.of(benchmark()), "default")]:
        lines = list(csv.DictReader(io.StringIO(to_csv(table))))
        read = [line for line in lines if line["column"]]
        assert [line["text"] for line in lines if not line["column"]] == list(table.notes)
        for line, (block, row, column, cell) in zip(read, table.cells(), strict=True):
            assert (line["block"], line["row"], line["column"]) == (block, row, column)
            for name in ("mean", "std", "paper", "difference"):
                assert (float(line[name]) if line[name] else None) == getattr(cell, name)
            assert (line["bold"] == "1") == cell.bold
    remarks = [line["remark"] for line in csv.DictReader(io.StringIO(to_csv(HARD)))]
    assert remarks[:2] == ["", "x, 50%: out of memory: needs 3 GiB, has <2"]


def test_the_reason_of_a_failure_is_in_every_format():
    (table,) = score_tables(Results.of(benchmark()), "default")
    assert cell_of(table, "Flo17 (substitute)", "lmkkm", "ACC").shown().startswith("- (")
    for render in (to_markdown, to_latex, to_csv):
        assert "out of memory: needs 12 GiB, has 8" in render(table)


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="Row 'x' of table 't' has 1 cells for 2 columns"):
        Table("t", "T", ("a", "b", "c"), (("x", Cell(1.0)),))


# --- tables of scores ---


def test_scores_are_means_and_deviations_of_the_repetitions():
    rows = benchmark()
    (table,) = score_tables(Results.of(rows), "default")
    own = [r["nmi"] for r in rows if (r["dataset"], r["method"]) == ("digit", "mkkm")]
    cell = cell_of(table, "Digit", "mkkm", "NMI")
    assert cell.mean == pytest.approx(100 * np.mean(own))
    assert cell.std == pytest.approx(100 * np.std(own, ddof=1))
    assert cell.paper == 48.7


@pytest.mark.parametrize(
    ("selection", "parameters"), [("oracle", GRID[1]), ("default", GRID[0]), ("stable", GRID[2])]
)
def test_a_selection_shows_the_setting_that_it_chose(selection, parameters):
    rows = benchmark()
    (table,) = score_tables(Results.of(rows), selection)
    its = [
        r["acc"]
        for r in rows
        if (r["dataset"], r["method"], r["parameters"]) == ("digit", "lkam", parameters)
    ]
    assert cell_of(table, "Digit", "lkam", "ACC").mean == pytest.approx(100 * np.mean(its))


def test_a_method_without_parameters_is_the_same_in_every_selection():
    tables = [score_tables(Results.of(benchmark()), selection)[0] for selection in SELECTIONS]
    cells = [
        [cell_of(table, label, method, block).mean for table in tables]
        for label in Results.of(benchmark()).names.labels.values()
        for method in FIXED
        for block in ("ACC", "NMI", "Purity")
    ]
    assert all(a is not None and a == b == c for a, b, c in cells)


def test_an_entry_chosen_by_the_classes_is_marked_and_only_in_the_oracles_table():
    (oracle,) = score_tables(Results.of(benchmark()), "oracle")
    assert cell_of(oracle, "Digit", "best-single-kernel", "ACC").mark == "o"
    assert any(note.startswith("[o] best-single-kernel") for note in oracle.notes)
    for selection in ("default", "stable"):
        (table,) = score_tables(Results.of(benchmark()), selection)
        assert "best-single-kernel" not in table.columns
        assert "oracle" not in to_markdown(table)
    assert "best-single-kernel" not in time_table(Results.of(benchmark()).run()).columns


def test_a_choice_among_settings_says_among_how_many():
    (table,) = score_tables(Results.of(benchmark()), "oracle")
    tried = "Settings tried on a data set: lkam 3, best-single-kernel 3; others one."
    assert tried in table.notes
    assert not any(
        "tried" in note for note in score_tables(Results.of(benchmark()), "default")[0].notes
    )


def test_the_oracles_table_says_that_it_used_the_classes_and_the_others_that_they_did_not():
    for selection in SELECTIONS:
        (table,) = score_tables(Results.of(benchmark()), selection)
        assert ("no classes were used" in " ".join(table.notes)) == (selection != "oracle")
        assert ("an oracle" in " ".join(table.notes)) == (selection == "oracle")


def test_methods_and_data_sets_come_in_the_papers_order_and_then_by_name():
    (table,) = score_tables(Results.of(benchmark()), "oracle")
    known = ("avg-kkm", "mkkm", "lmkkm", "lkam", "simplemkkm", "kamm-r", "kamm-a")
    assert table.columns[1:] == (*known, "best-single-kernel", "spectral")
    labels = [row[0] for row in table.rows]
    assert labels[:5] == ["ACC", "Flo17 (substitute)", "PFold (truncated)", "Digit", "jaffe"]


def every_table(rows):
    results = Results.of(rows, [solve_of(dataset, "simplemkkm") for dataset in DATASETS])
    run, solves = results.run(), results.solves[1.0]
    tables = [table for selection in SELECTIONS for table in score_tables(results, selection)]
    tables += [ablation_table(run), settings_table(run), time_table(run), weight_table(solves)]
    tables += [rank_table(run, *both) for both in itertools.product(SCORES, SELECTIONS)]
    return [*tables, comparison_table(results), reproduction_table(results)]


def solve_of(dataset, method, n_kernels=3, **changes):
    name, paper, caveat = dataset
    solve = {"dataset": name, "paper": paper, "caveat": caveat, "method": method}
    solve |= {"parameters": "{}", "resample": 1.0, "repetition": None}
    solve |= {"kernel_names": [f"kernel {p}" for p in range(n_kernels)]}
    solve |= {"weights": [0.2, 0.3, 0.5][:n_kernels], "alignments": [0.9, 0.8, 0.1][:n_kernels]}
    return solve | changes


@pytest.mark.parametrize("render", [to_markdown, to_latex, to_csv])
def test_a_caveat_is_said_in_every_rendering_of_every_table(render):
    for table in every_table(benchmark()):
        text = render(table)
        for label, explained in (
            ("Flo17 (substitute)", "is a substitute: other samples"),
            ("PFold (truncated)", "is truncated: kernels of reduced rank"),
        ):
            assert f"{label} {explained}" in text, table.name


def test_tables_do_not_depend_on_the_order_of_the_rows():
    rows = benchmark()
    shuffled = rows[:]
    random.Random(0).shuffle(shuffled)
    for before, after in zip(every_table(rows), every_table(shuffled), strict=True):
        assert to_csv(before) == to_csv(after)
        assert to_markdown(before) == to_markdown(after)


def test_ways_of_resampling_are_never_mixed():
    rows = benchmark() + [row | {"acc": 0.01} for row in benchmark(0.8) if row["status"] == "ok"]
    assert list(Results.of(rows).runs) == [1.0, 0.8]
    whole, parts = score_tables(Results.of(rows), "default")
    (alone,) = score_tables(Results.of(benchmark()), "default")
    assert whole == alone
    assert "restart noise only" in " ".join(whole.notes)
    assert "truly paired" in " ".join(parts.notes)
    assert "refits on 80 % of the samples" in parts.title
    assert whole.name != parts.name
    assert cell_of(parts, "Digit", "mkkm", "ACC").mean == pytest.approx(1.0)
    assert (
        ranking(Results.of(rows).run(), "acc", "default").ranks.tolist()
        == ranking(Results.of(benchmark()).run(), "acc", "default").ranks.tolist()
    )
    assert paper_comparison(Results.of(rows)) == paper_comparison(Results.of(benchmark()))
    assert paper_comparison(Results.of(benchmark(0.8))) == []
    with pytest.raises(ValueError, match=r"no rows of resample=0.5; .* have resample: 1.0, 0.8"):
        Results.of(rows).run(0.5)


def test_summaries_choose_settings_but_give_no_scores():
    rows = [r for r in benchmark() if not (r["method"] == "lkam" and r["parameters"] != "{}")]
    summary = {"repetition": None, "n_repetitions": 5, "acc": 0.99, "nmi": 0.99, "purity": 0.99}
    chosen = {"parameters": GRID[1], "stability": 0.9}
    rows.append(make_row(DATASETS[0], "lkam", **summary, **chosen))
    (table,) = score_tables(Results.of(rows), "oracle")
    assert cell_of(table, "Digit", "lkam", "ACC").mean is None
    rows += runs(DATASETS[0], "lkam", 0.7, **chosen)
    (table,) = score_tables(Results.of(rows), "oracle")
    assert cell_of(table, "Digit", "lkam", "ACC").mean == pytest.approx(70, abs=2)


def test_the_oracle_shows_the_best_of_what_was_repeated_in_full():
    lucky = runs(DATASETS[0], "lkam", 0.6, n=20, parameters=GRID[1], grid_repetitions=5)
    for row in lucky[:5]:
        row["acc"] = 0.95
    steady = runs(DATASETS[0], "lkam", 0.8, n=20, parameters=GRID[0], grid_repetitions=5)
    poor = runs(DATASETS[0], "lkam", 0.9, n=5, parameters=GRID[2], grid_repetitions=5)
    rows = lucky + steady + [row | {"acc": 0.1} for row in poor]
    assert choose(rows).oracle["acc"] == GRID[1]
    oracle, default = (
        score_tables(Results.of(rows), selection)[0] for selection in ("oracle", "default")
    )
    shown = [cell_of(table, "Digit", "lkam", "ACC").mean for table in (oracle, default)]
    assert shown[0] == shown[1] == pytest.approx(80, abs=1)


def test_entries_that_the_classes_choose_are_marked_and_not_ranked():
    rows = benchmark()
    (table,) = score_tables(Results.of(rows), "oracle")
    assert cell_of(table, "Digit", "best-single-kernel", "ACC").mark == "o"
    ranked = rank_table(Results.of(rows).run(), "acc", "oracle")
    assert "best-single-kernel" not in [row[0] for row in ranked.rows]
    assert "best-single-kernel" not in " ".join(ranked.notes)


def test_solves_that_did_not_converge_are_marked():
    rows = benchmark()
    for row in rows:
        if (row["dataset"], row["method"]) == ("digit", "mkkm"):
            row["converged"] = False
    (table,) = score_tables(Results.of(rows), "default")
    assert cell_of(table, "Digit", "mkkm", "ACC").mark == "n"
    assert cell_of(table, "Digit", "avg-kkm", "ACC").mark == ""
    assert "[n] The solve stopped before it converged, and was scored so." in table.notes


def test_refits_on_parts_of_the_samples_have_no_figure_of_the_paper_beside_them():
    (table,) = score_tables(Results.of(benchmark(resample=0.8)), "default")
    assert all(cell.paper is None for *_, cell in table.cells())
    assert not any("In parentheses" in note for note in table.notes)


def test_few_data_sets_are_told_where_ranks_are_tested():
    notes = " ".join(rank_table(Results.of(benchmark()).run(), "acc", "default").notes)
    assert "data sets only these tests are rough" in notes


def test_labels_that_latex_would_take_for_options_are_in_braces():
    table = Table("t", "t", ("a", "b"), (("[x] name", Cell(1.0)), ("* star", Cell(2.0))))
    assert "\n{[x] name} & " in to_latex(table)
    assert "\n{* star} & " in to_latex(table)
    assert r"\[x\] name" in to_markdown(table)


def test_missing_repetitions_are_told_and_what_was_not_run_is_no_failure():
    rows = [r for r in benchmark() if (r["dataset"], r["method"]) != ("jaffe", "mkkm")]
    lost = next(r for r in rows if (r["dataset"], r["method"]) == ("digit", "mkkm"))
    lost |= dict.fromkeys(SCORES) | {"status": "failed", "message": "did not\nconverge"}
    (table,) = score_tables(Results.of(rows), "default")
    notes = " ".join(table.notes)
    assert "Digit, mkkm: 1 of 6 repetitions: failed: did not converge" in notes
    mark = cell_of(table, "jaffe", "mkkm", "ACC").mark
    assert f"[{mark}] not run" in table.notes


def test_bold_face_goes_to_what_is_like_the_best_of_its_row():
    rows = [*runs(DATASETS[0], "mkkm", 0.5), *runs(DATASETS[0], "lkam", 0.5)]
    rows += runs(DATASETS[0], "onkc", 0.3, seed=5)
    (table,) = score_tables(Results.of(rows), "default")
    bold = {column: cell.bold for block, _, column, cell in table.cells() if block == "ACC"}
    assert bold == {"mkkm": True, "lkam": True, "onkc": False}


def test_two_data_sets_that_claim_one_name_of_the_paper_keep_their_own():
    rows = [make_row(("flo17", "Flo17", ""), "mkkm"), make_row(DATASETS[1], "mkkm")]
    labels = Results.of(rows).names.labels
    assert labels["flo17"] == "Flo17: flo17"
    assert labels["flo17-substitute"] == "Flo17: flo17-substitute (substitute)"


def test_unknown_scores_and_selections_are_refused():
    with pytest.raises(ValueError, match="selection='best' is not known: give one of oracle"):
        score_tables(Results.of(benchmark()), "best")
    with pytest.raises(ValueError, match="score='f1' is not known: give one of acc"):
        rank_table(Results.of(benchmark()).run(), "f1", "oracle")
    assert score_tables(Results.of([]), "oracle") == []


# --- the other tables ---


def test_what_a_method_reached_is_found_out_once_however_many_tables_ask():
    results = Results.of(benchmark())
    entry = results.run().entry("digit", "lkam")
    every = [entry.outcome(*both) for both in itertools.product(SCORES, SELECTIONS)]
    for table in (score_tables(results, "oracle"), rank_table(results.run(), "acc", "oracle")):
        assert table
    again = [entry.outcome(*both) for both in itertools.product(SCORES, SELECTIONS)]
    assert all(one is other for one, other in zip(every, again, strict=True))
    assert entry.choice is entry.choice


def test_a_method_that_was_not_run_has_an_entry_that_says_so():
    entry = Results.of(benchmark()).run().entry("jaffe", "lmkkm")
    assert entry.rows == ()
    assert entry.outcome("acc", "default").problem == "not run"


def test_the_ablation_has_its_three_methods_on_all_data_sets():
    table = ablation_table(Results.of(benchmark()).run())
    assert table.columns == ("data set", "kamm-r", "kamm-a", "simplemkkm")
    assert cell_of(table, "Flo17 (substitute)", "kamm-a", "ACC").paper == 54.1
    assert cell_of(table, "jaffe", "kamm-a", "ACC").paper is None


def test_settings_are_counted_and_named():
    rows = benchmark()
    rows.append(make_row(DATASETS[0], "lkam", parameters='{"reg": 9.0}', status="time"))
    table = settings_table(Results.of(rows).run())
    assert cell_of(table, "lkam", "tried", "Digit").mean == 4
    assert cell_of(table, "lkam", "failed", "Digit").mean == 1
    assert cell_of(table, "lkam", "oracle, ACC", "Digit").text == "reg: 0.5"
    assert cell_of(table, "lkam", "default", "Digit").text == "defaults"
    assert cell_of(table, "lkam", "stable", "Digit").text == "reg: 2.0"
    assert cell_of(table, "best-single-kernel", "default", "Digit").text == "-"
    assert not any(row[0] == "mkkm" for row in table.rows)


def test_ranks_in_the_table_are_those_of_the_scores_shown():
    rows = benchmark()
    (scores,) = score_tables(Results.of(rows), "default")
    table = rank_table(Results.of(rows).run(), "nmi", "default")
    methods = [row[0] for row in table.rows]
    assert "lmkkm" not in methods
    assert any("Methods left out" in note and "lmkkm" in note for note in table.notes)
    labels = list(Results.of(rows).names.labels.values())
    means = [[cell_of(scores, d, m, "NMI").mean for m in methods] for d in labels]
    expected = np.mean([stats.rankdata(-np.array(own)) for own in means], axis=0)
    assert [row[1].mean for row in table.rows] == pytest.approx(expected)


def test_times_are_medians_of_the_default_setting_and_ratios_to_the_average_kernel():
    rows = runs(DATASETS[0], "avg-kkm", 0.5, n=3, solve_seconds=0.5)
    for seconds, row in zip([1.0, 2.0, 90.0], runs(DATASETS[0], "lkam", 0.5, n=3), strict=True):
        rows.append(row | {"solve_seconds": seconds})
    rows += runs(DATASETS[0], "lkam", 0.9, n=3, solve_seconds=77.0, parameters=GRID[1])
    rows.append(make_row(DATASETS[0], "lmkkm", status="time", solve_seconds=None, message="600 s"))
    table = time_table(Results.of(rows).run())
    assert cell_of(table, "Digit", "lkam", "Seconds").mean == 2
    assert cell_of(table, "Digit", "lkam", "Times avg-kkm").mean == 4
    assert cell_of(table, "Digit", "lmkkm", "Seconds").text == "out of time"
    assert "[1] Digit, lmkkm: out of time: 600 s" in table.notes
    assert solve_seconds(Results.of(rows).run()) == {"digit": {"avg-kkm": 0.5, "lkam": 2.0}}


def test_weights_never_come_without_alignments():
    solves = [solve_of(DATASETS[0], "simplemkkm"), solve_of(DATASETS[0], "lf-mvc", weights=None)]
    solves.append(solve_of(DATASETS[3], "simplemkkm", n_kernels=2))
    solves.append(solve_of(DATASETS[0], "lkam", parameters=GRID[1]))
    table = weight_table(Results.of([], solves).solves[1.0])
    methods = ["lf-mvc", "simplemkkm"]
    assert table.columns[1:] == tuple(f"{m}{what}" for m in methods for what in ("", ": alignment"))
    assert cell_of(table, "kernel 2", "simplemkkm", "Digit").mean == 0.5
    assert cell_of(table, "kernel 2", "simplemkkm: alignment", "Digit").mean == 0.1
    assert cell_of(table, "kernel 0", "lf-mvc", "Digit").mean is None
    assert cell_of(table, "kernel 1", "lf-mvc", "jaffe").mean is None
    assert "not how important they are" in table.notes[0]


def test_the_comparison_has_every_cell_of_the_paper_that_was_run():
    rows = benchmark()
    compared = paper_comparison(Results.of(rows))
    keys = [(c.dataset, c.method, c.score, c.selection) for c in compared]
    ran = {(r["dataset"], r["paper"], r["method"]) for r in rows if r["status"] == "ok"}
    known = [
        (dataset, method, score, selection)
        for dataset, paper, method in ran
        for score, selection in itertools.product(SCORES, ("oracle", "default"))
        if paper_score(paper, method, score)
    ]
    assert sorted(keys) == sorted(known)
    assert {c.caveat for c in compared if c.dataset == "digit"} == {""}
    assert {c.caveat for c in compared if c.dataset == "flo17-substitute"} == {"substitute"}


@pytest.mark.parametrize(
    ("away", "expected"),
    [(0.5, [1, 1, 1, 1, 0, 0]), (-0.9, [1, 0, 1, 1, 0, 0]), (2.1, [1, 0, 0, 0, 1, 0])],
)
def test_reproduction_counts_cells_by_their_distance_and_sets_with_caveats_apart(away, expected):
    for dataset, in_total in ((DATASETS[0], True), (DATASETS[1], False)):
        mean = paper_score(dataset[1], "mkkm", "acc")[0] + away
        scores = {"acc": mean / 100, "nmi": None, "purity": None}
        rows = [make_row(dataset, "mkkm", repetition=r, **scores) for r in range(3)]
        table = reproduction_table(Results.of(rows))
        label = Results.of(rows).names.labels[dataset[0]]
        counts = [cell_of(table, label, column, "Oracle").mean for column in table.columns[1:]]
        assert counts == expected
        total = "all data sets without caveat"
        assert cell_of(table, total, "cells", "Oracle").mean == in_total


# --- names that are not what they seem ---

HOSTILE = [
    '=HYPERLINK("http://x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\x1b[2J\u202eevil",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_a_formula_or_steers_a_terminal_in_any_format(name):
    table = Table(
        "t",
        name,
        ("data set", name),
        ((name,), (name, Cell(-0.5, text=name, mark="1"))),
        (f"[1] {name}", name),
    )
    for render in (to_markdown, to_latex, to_csv):
        text = render(table).replace("\n", "")
        assert all(unicodedata.category(letter) not in ("Cc", "Cf") for letter in text)
    head, cell, *notes = csv.reader(io.StringIO(to_csv(table), newline=""))
    assert not any(each[:1] in tuple("=+-@\t\r") for each in (*notes[0], *notes[1]) if each)
    texts = {key: each for key, each in zip(head, cell, strict=True) if key not in ("mean",)}
    assert not any(each[:1] in tuple("=+-@\t\r") for each in texts.values() if each)
    assert float(dict(zip(head, cell, strict=True))["mean"]) == -0.5
