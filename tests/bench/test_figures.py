"""Figures of a benchmark: what they show, and sentences on what cannot be drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cli import fail, succeed
from helpers.rows import made_row
from mkclust.bench.figures import (
    NoFigureError,
    draw_objectives,
    draw_ranks,
    draw_times,
    draw_weights,
    write_figures,
)
from mkclust.bench.rows import as_lines
from mkclust.plots import CriticalDifferenceDisplay

METHODS = {"mkkm": 0.5, "lkam": 0.6, "a$b$ %": 0.7}


def benchmark(methods=METHODS, datasets=("one", "two_$x$")):
    """Return rows and solves of a benchmark."""
    rows = [
        made_row(method, r, acc + 0.01 * r, dataset=name)
        for name in datasets
        for method, acc in methods.items()
        for r in range(3)
    ]
    solve = {"kernel_names": ["left$", "right"], "weights": [0.2, 0.8]}
    solve |= {"alignments": [0.5, 0.25], "history": [3.0, 2.0, 1.5, 1.4]}
    solves = [row | solve for row in rows if row["repetition"] == 0]
    return rows, solves


def write(folder, rows, solves):
    (folder / "rows.jsonl").write_bytes(as_lines(rows))
    (folder / "solves.jsonl").write_bytes(as_lines(solves))


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_weights_stand_next_to_alignments_for_every_data_set():
    figure = draw_weights(benchmark()[1])
    figure.draw_without_rendering()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [
        "one: weights",
        "one: alignments",
        "two_$x$: weights",
        "two_$x$: alignments",
    ]
    weights, alignments = (ax.images[0].get_array() for ax in figure.axes[:2])
    np.testing.assert_allclose(weights, [[0.25, 1]] * 3)
    np.testing.assert_allclose(alignments, [[0.5, 0.25]] * 3)
    assert ticks(figure.axes[0].yaxis) == ["MKKM", "LKAM", "a$b$ %"]


def test_seconds_are_medians_and_objectives_those_of_the_solver():
    rows, solves = benchmark()
    rows[0] |= {"solve_seconds": 100.0}
    times = draw_times(rows)
    times.draw_without_rendering()
    np.testing.assert_allclose(times.axes[0].lines[0].get_xdata(), 1.0)
    solves[0] |= {"lower_bounds": [1.0, 1.2, 1.3, None]}
    curves = draw_objectives(solves, "mkkm")
    curves.draw_without_rendering()
    assert [ax.get_title(loc="left") for ax in curves.axes] == ["one", "two_$x$"]
    objective, bound = curves.axes[0].lines
    np.testing.assert_allclose(objective.get_ydata(), [3.0, 2.0, 1.5, 1.4])
    np.testing.assert_allclose(bound.get_ydata(), [1.0, 1.2, 1.3, np.nan])
    assert len(curves.axes[1].lines) == 1


@given(
    st.lists(st.integers(2, 20).map(lambda half: half / 2), min_size=1, max_size=12),
    st.sampled_from([0.25, 0.75, 2.25, 9.75]),
)
def test_two_methods_are_connected_if_and_only_if_they_do_not_differ(ranks, difference):
    display = CriticalDifferenceDisplay(
        names=[str(rank) for rank in ranks], ranks=ranks, critical_difference=difference
    )
    groups = display.groups()
    for a in ranks:
        for b in ranks:
            connected = any(
                low <= min(a, b) <= max(a, b) <= high for low, high in groups
            )
            assert connected == (0 < abs(a - b) < difference) or a == b


@pytest.mark.parametrize("difference", [0.1, 1.5, 30.0])
def test_every_method_is_named_with_its_rank(difference, ax):
    ranks = [3.5, 1.0, 2.25, 3.25]
    display = CriticalDifferenceDisplay(
        names=["a", "b", "c", "d$"], ranks=ranks, critical_difference=difference
    )
    display.plot(ax)
    ax.figure.draw_without_rendering()
    texts = [text.get_text() for text in ax.texts]
    assert {"a (3.50)", "b (1.00)", "c (2.25)", "d$ (3.25)"} < set(texts)
    assert "that of b" in display.caption


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def test_figures_that_cannot_be_drawn_are_refused_with_a_sentence():
    rows, solves = benchmark({"mkkm": 0.5}, ["one"])
    with pytest.raises(NoFigureError, match="three methods .* found 1 on 1"):
        draw_ranks(rows)
    with pytest.raises(NoFigureError, match="lkam"):
        draw_objectives(solves, "lkam")
    with pytest.raises(NoFigureError, match="weights"):
        draw_weights([])
    failed = [row | {"status": "failed", "solve_seconds": None} for row in rows]
    with pytest.raises(NoFigureError, match="succeeded"):
        draw_times(failed)


def test_the_command_draws_what_it_can_and_says_what_it_cannot(tmp_path):
    rows, solves = benchmark({"simplemkkm": 0.5}, ["one"])
    entry = {"entry": "simplemkkm"}
    write(tmp_path, [row | entry for row in rows], [solve | entry for solve in solves])
    said = succeed("report", tmp_path, "--figures").stdout
    assert "Drew 3 figures" in said
    assert "No figure of ranks: ranks need three methods" in said
    assert 'solver = "reduced-gradient"' in said
    found = sorted(path.name for path in (tmp_path / "report/figures").iterdir())
    assert found == [
        f"{name}.{form}"
        for name in ("convergence-simplemkkm", "times", "weights")
        for form in ("pdf", "png")
    ]
    for path in (tmp_path / "report/figures").iterdir():
        start = {".pdf": b"%PDF", ".png": b"\x89PNG"}[path.suffix]
        assert path.read_bytes().startswith(start)


def test_a_folder_without_solves_has_other_figures(tmp_path):
    rows, _ = benchmark()
    write(tmp_path, rows, [])
    files, notes = write_figures(tmp_path, tmp_path / "out")
    assert {path.stem for path in files} == {"times", "ranks"}
    assert [note.split(":")[0] for note in notes] == [
        "No figure of convergence",
        "No figure of weights",
    ]


def test_data_sets_without_a_curve_are_named(tmp_path):
    rows, solves = benchmark({"mkkm": 0.5}, ["one", "two"])
    solves[1]["history"] = [3.0, 2.0]
    write(tmp_path, rows, solves)
    _, notes = write_figures(tmp_path, tmp_path / "out")
    assert "No curve of MKKM on two: fewer than 2 steps." in notes


def test_a_folder_that_is_no_benchmark_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "mkclust bench PLAN --out" in fail("report", ".", "--figures")
    (tmp_path / "plan.toml").write_text("methods = []")
    assert "is a plan" in fail("report", "plan.toml")
    (tmp_path / "rows.jsonl").write_text("")
    assert "no rows yet" in fail("report", ".", "--latex")
    write(tmp_path, *benchmark())
    assert "add --latex" in fail("report", ".", "--rows", "methods")
    assert "datasets or methods" in fail("report", ".", "--latex", "--rows", "columns")


def test_the_command_writes_tables_of_latex_with_the_rows_asked_for(tmp_path):
    write(tmp_path, *benchmark())
    out = tmp_path / "out"
    said = succeed("report", tmp_path, "--latex", "--rows", "datasets", "--out", out)
    assert f"{out / 'latex' / 'tables.tex'} prints all" in said.stdout
    text = (out / "latex" / "acc-default.tex").read_text()
    assert r"MKKM & LKAM & a\$b\$ \% \\" in " ".join(text.split())
