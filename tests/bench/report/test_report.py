import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.text import Text

from mkclust.bench.report import curves, dots, maps, rankings, sections, solving
from mkclust.bench.report import figure as page
from mkclust.bench.report import report as benchmark
from mkclust.bench.report.curves import Curve
from mkclust.bench.report.dots import Dot, Panel
from mkclust.bench.report.report import write_benchmark_report
from mkclust.bench.tables import PAPER_METHODS, Results
from mkclust.bench.tables.ranking import ranking

pytestmark = pytest.mark.slow

METHODS = [*PAPER_METHODS[:9], "best-single-kernel", "concatenated-kmeans", "spectral"]


def texts(figure):
    """All texts that a figure shows, line breaks read as spaces."""
    found = [t.get_text() for t in figure.findobj(Text) if t.get_visible()]
    return [" ".join(text.split()) for text in found if text.strip()]


def overlaps(artists):
    """Pairs of texts that cover each other, once the figure is drawn."""
    boxes = [a.get_window_extent() for a in artists if a.get_text() and a.get_visible()]
    x0, y0, x1, y1 = np.array([box.extents for box in boxes]).T
    meet = (x0[:, None] < x1) & (x0 < x1[:, None]) & (y0[:, None] < y1) & (y0 < y1[:, None])
    return np.argwhere(np.triu(meet, 1)).tolist()


def within(figure):
    """Whether all texts are inside the page, but for those of ticks that are not shown."""
    width, height = figure.get_size_inches() * figure.dpi
    ticks = {t for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)
             for t in axis.get_ticklabels(which="both")}  # fmt: skip
    artists = [a for a in figure.findobj(Text) if a not in ticks]
    boxes = [a.get_window_extent() for a in artists if a.get_text() and a.get_visible()]
    return all(b.x0 > -1 and b.x1 < width + 1 and b.y0 > -1 and b.y1 < height + 1 for b in boxes)


def panels(n_panels, labels, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n_panels):
        values = rng.uniform(40, 80, len(labels))
        lines = [
            Dot(label, value, 1.5, value - 1, j == 0, f"{value:.1f}±1.5")
            for j, (label, value) in enumerate(zip(labels, values, strict=True))
        ]
        made.append(Panel(f"set {i} (substitute)", tuple(lines)))
    return made


@pytest.mark.parametrize(("n_panels", "n_methods"), [(1, 1), (2, 3), (4, 12)])
def test_score_panels_have_room_for_every_name_and_number(n_panels, n_methods):
    figure = dots.draw_dots(
        panels(n_panels, METHODS[:n_methods]),
        title="Accuracy",
        scale="accuracy (%)",
        notes=["What a reader must know, in a sentence that is longer than the line. " * 3],
        legend={"leading": "like the best", "other": "below it", "reference": "the paper"},
    )
    figure.draw_without_rendering()
    shown = texts(figure)
    assert "accuracy (%)" in shown
    assert shown.count("like the best") == 1
    assert all(f"set {i} (substitute)" in shown for i in range(n_panels))
    # Names stand at the left of each line of panels, and only there.
    assert shown.count(METHODS[0]) == -(-n_panels // 3)
    written = [t for ax in figure.axes for t in [*ax.texts, *ax.get_yticklabels()]]
    assert not overlaps(written)
    assert within(figure)


def test_the_published_value_is_a_hollow_diamond_at_its_place():
    figure = dots.draw_dots(panels(1, ["mkkm"]), title="t", scale="s")
    diamonds = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    value = panels(1, ["mkkm"])[0].dots[0].value
    assert [line.get_xdata()[0] for line in diamonds] == [value - 1]
    assert diamonds[0].get_markerfacecolor() == "none"


def test_a_method_that_failed_is_a_line_of_words_without_a_dot():
    lines = (Dot("mkkm", 50.0, words="50.0"), Dot("lmkkm", None, words="memory: needs 40 GiB"))
    figure = dots.draw_dots([Panel("digit", lines)], title="t", scale="s")
    assert "memory: needs 40 GiB" in texts(figure)
    assert len(figure.axes[0].lines) == 1


def test_a_panel_of_nothing_but_failures_can_be_drawn():
    figure = dots.draw_dots([Panel("digit", (Dot("mkkm", None, words="time"),))], title="t",
                            scale="s", logarithmic=True)  # fmt: skip
    figure.draw_without_rendering()
    assert "time" in texts(figure)


def test_equal_scores_are_not_drawn_far_apart():
    lines = (Dot("a", 50.0), Dot("b", 50.001))
    figure = dots.draw_dots([Panel("digit", lines)], title="t", scale="s")
    low, high = figure.axes[0].get_xlim()
    assert high - low >= 2


def test_times_are_drawn_on_a_logarithmic_scale_of_a_decade_at_least():
    lines = (Dot("a", 0.5, words="0.5 s"), Dot("b", 0.6, words="0.6 s"))
    figure = dots.draw_dots([Panel("digit", lines)], title="t", scale="s", logarithmic=True)
    low, high = figure.axes[0].get_xlim()
    assert figure.axes[0].get_xscale() == "log"
    assert high / low >= 10 * (1 - 1e-9)


def test_ratios_show_the_median_over_data_sets():
    ratios = {"avg-kkm": {"a": 1.0, "b": 1.0, "c": 1.0}, "lkam": {"a": 2.0, "b": 50.0, "c": 8.0}}
    figure = dots.draw_ratios({**ratios, "lmkkm": {}}, title="t", scale="times avg-kkm")
    shown = texts(figure)
    assert "8\u00d7 2\u00d7 to 50\u00d7" in shown
    assert "lmkkm" in shown
    assert "times avg-kkm" in shown


@pytest.mark.parametrize("q", [3, 4, 12, 20])
def test_the_diagram_names_every_method_with_its_rank_and_draws_every_clique(q):
    ranks = np.linspace(1.3, q - 0.4, q)
    names = [*METHODS, *(f"another-method-{i}" for i in range(8))][:q]
    cliques = [names[:2], names[1:3], names[-2:]]
    figure = rankings.draw_ranks(names, ranks, cliques, 1.5, title="Ranks", notes=["Friedman"])
    figure.draw_without_rendering()
    ax = figure.axes[0]
    shown = texts(figure)
    for name, rank in zip(names, ranks, strict=True):
        assert any(name in text and f"{rank:.2f}" in text for text in shown)
    assert "critical difference 1.50" in shown
    bars = sorted(tuple(line.get_xdata()) for line in ax.lines if line.get_linewidth() > 4)
    spans = sorted((ranks[names.index(c[0])], ranks[names.index(c[-1])]) for c in cliques)
    np.testing.assert_allclose(bars, spans, atol=0.01 * q)
    assert not overlaps(ax.texts)
    assert within(figure)


def test_bars_that_share_a_method_are_on_different_heights():
    names, ranks = METHODS[:4], [1.0, 2.0, 3.0, 4.0]
    figure = rankings.draw_ranks(names, ranks, [names[:3], names[1:], names[:1]], 2.1, title="t")
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() > 4]
    assert len(bars) == 2
    assert bars[0].get_ydata()[0] != bars[1].get_ydata()[0]


def test_a_critical_difference_longer_than_the_axis_is_seen_whole():
    figure = rankings.draw_ranks(METHODS[:3], [1, 2, 3], [METHODS[:3]], 4.5, title="t")
    low, high = figure.axes[0].get_xlim()
    assert low < 1
    assert high > 5.5


@pytest.mark.parametrize(("m", "q"), [(1, 1), (3, 2), (48, 12)])
def test_weights_are_shown_beside_alignments_for_every_kernel_and_method(m, q):
    rng = np.random.default_rng(0)
    kernels = [f"a rather long name of kernel $number_{i}" for i in range(m)]
    weights, alignments = rng.dirichlet(np.ones(m), q).T, rng.uniform(size=(m, q))
    figure = maps.draw_weights(kernels, METHODS[:q], weights, alignments, title="Weights")
    figure.draw_without_rendering()
    shown = texts(figure)
    assert {"weight", "alignment"} <= set(shown)
    assert any("it is not importance" in text for text in shown)
    assert all(shown.count(name) == 2 for name in METHODS[:q])
    for ax in figure.axes:
        assert len(ax.texts) == m * q
        assert not overlaps(ax.texts)
    assert not overlaps(figure.axes[0].get_yticklabels())
    assert within(figure)


def test_a_method_without_weights_is_a_column_of_dashes():
    weights = [[0.25, np.nan], [0.75, np.nan]]
    figure = maps.draw_weights(["a", "b"], ["mkkm", "spectral"], weights, weights, title="t")
    assert [t.get_text() for t in figure.axes[0].texts] == [".250", "-", ".750", "-"]


def test_differences_are_signed_and_shaded_alike_on_both_sides_of_zero():
    figure = maps.draw_differences(["Flo17 (substitute)"], METHODS[:4],
                                   {"ACC": [[-3.0, 3.0, 0.01, np.nan]]}, title="t")  # fmt: skip
    ax = figure.axes[0]
    assert [t.get_text() for t in ax.texts] == ["\u22123.0", "+3.0", "0.0", "-"]
    low, high = ax.images[0].get_clim()
    assert low == -high
    assert "Flo17 (substitute)" in texts(figure)


@pytest.mark.parametrize("count", [1, 7])
def test_objectives_have_a_panel_each_with_their_certified_bound(count):
    history = 1 + np.exp(-np.arange(8.0))
    drawn = [Curve(f"set {i}", history, history - 0.1, "gap 1e-5") for i in range(count)]
    figure = curves.draw_objectives(drawn, title="Objective", notes=["A note."])
    figure.draw_without_rendering()
    shown = texts(figure)
    assert {"iteration", "objective", "certified lower bound", "A note."} <= set(shown)
    assert all(f"set {i}" in shown for i in range(count))
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), history - 0.1)
    assert within(figure)


@pytest.mark.parametrize("history", [[3.0], [3.0, 3.0], np.full(500, 1e9) - np.arange(500.0)])
def test_objectives_of_any_length_can_be_drawn(history):
    figure = curves.draw_objectives([Curve("digit", history)], title="t")
    figure.draw_without_rendering()
    assert "certified lower bound" not in texts(figure)
    assert all(tick == int(tick) for tick in figure.axes[0].get_xticks())


DATASETS = {
    "flo17-substitute": ("Flo17", "substitute"),
    "pfold-truncated": ("PFold", "truncated"),
    "digit": ("Digit", ""),
    "jaffe": ("", ""),
}
FAILURE = "needs 40 GiB, more than the | 16 GiB\nof this <machine>"


def row(dataset, method, repetition, **changes):
    """A row of a benchmark; scores grow with the length of the method's name."""
    paper, caveat = DATASETS[dataset]
    rng = np.random.default_rng([len(dataset), repetition])
    score = 0.4 + 0.02 * len(method) + 0.005 * rng.normal()
    made = {
        "dataset": dataset,
        "paper": paper,
        "caveat": caveat,
        "n_samples": 2000,
        "n_kernels": 3,
        "n_clusters": 10,
        "method": method,
        "oracle": False,
        "parameters": "{}",
        "resample": 1.0,
        "repetition": repetition,
        "n_repetitions": 1,
        "seed": repetition,
        **dict.fromkeys(("acc", "nmi", "purity", "ari"), score),
        "stability": 0.9,
        "solve_seconds": 0.01 * len(method),
        "n_iter": 3,
        "converged": True,
        "gap": None,
        "status": "ok",
        "message": "",
        "machine": "a machine",
        "versions": "mkclust 1",
        **changes,
    }
    if made["status"] != "ok":
        made |= dict.fromkeys(("acc", "nmi", "purity", "ari", "solve_seconds", "converged"))
    return made


def solve(dataset, method, **changes):
    paper, caveat = DATASETS[dataset]
    return {
        "dataset": dataset,
        "paper": paper,
        "caveat": caveat,
        "method": method,
        "parameters": "{}",
        "resample": 1.0,
        "repetition": None,
        "kernel_names": ["pix", "fou", "mor"],
        "weights": [0.2, 0.3, 0.5],
        "alignments": [0.9, 0.8, 0.7],
        "history": [3.0, 2.0, 1.5],
        "lower_bounds": [None, 1.0, 1.4] if method == "simplemkkm" else None,
        "gap": 1e-5 if method == "simplemkkm" else None,
        "converged": True,
        **changes,
    }


def benchmark_rows():
    """Three data sets, seven methods, one of which fails, and a refit on parts of the samples."""
    rows = [row("jaffe", "mkkm", 0, resample=0.8, converged=False)]
    for dataset in list(DATASETS)[:3]:
        for repetition in range(3):
            for method in ("avg-kkm", "mkkm", "simplemkkm"):
                rows.append(row(dataset, method, repetition))
            if dataset == "digit":
                rows.append(row(dataset, "kamm-a", repetition))
            rows.append(row(dataset, "lmkkm", repetition, status="memory", message=FAILURE))
            for kernel in range(2):
                chosen = {"oracle": True, "parameters": f'{{"kernel": {kernel}}}'}
                rows.append(row(dataset, "best-single-kernel", repetition, **chosen))
            for reg in (0.5, 2.0):
                grid = {"parameters": f'{{"reg": {reg}}}', "default": reg == 0.5}
                rows.append(row(dataset, "mkkm-mir", repetition, **grid))
    return rows


def benchmark_solves():
    methods = ("avg-kkm", "mkkm", "simplemkkm")
    solves = [solve(dataset, method) for dataset in ("digit", "jaffe") for method in methods]
    single = solve("digit", "best-single-kernel", oracle=True, parameters='{"kernel": 0}')
    return [*solves, single, solve("digit", "kamm-a", history=[5.0])]


def write(folder, rows, solves=()):
    folder.mkdir(exist_ok=True)
    for name, objects in (("rows", rows), ("solves", solves)):
        lines = "".join(json.dumps(each) + "\n" for each in objects)
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


def said(figure):
    """A figure's texts in place of its files, without the time that drawing takes."""
    return {suffix: "\n".join(texts(figure)).encode() for suffix in page.FORMATS}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(page, "render", said)


def drawn_small(figure):
    """A white dot in place of a figure's files: a picture for a browser, in no time."""
    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (1, 1), "white").save(content, format="PNG")
    return dict.fromkeys(page.FORMATS, content.getvalue())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The files of a report by their names; pictures are lines of text."""
    folder = tmp_path_factory.mktemp("benchmark")
    source = write(folder / "run", benchmark_rows(), benchmark_solves())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(page, "render", said)
        return {path.name: path for path in write_benchmark_report(source)}


def test_the_page_shows_every_picture_and_links_to_every_other_file(report):
    text = report["README.md"].read_text()
    linked = set(re.findall(r"\]\(([^)#]+)\)", text))
    assert linked == set(report) - {"README.md"}
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        headings = re.findall(r"^## (.*)$", text, re.M)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]
    pictures = set(re.findall(r"!\[[^]]+\]\(([^)]+)\)", text))
    assert pictures == {name for name in report if name.endswith(".png")}
    assert all(path.parent.name == "report" for path in report.values())


def test_every_table_comes_in_three_formats_and_every_picture_in_two(report):
    names = {name.rsplit(".", 1)[0] for name in report} - {"README"}
    for name in names:
        kinds = {suffix for suffix in ("md", "tex", "csv") if f"{name}.{suffix}" in report}
        assert kinds in (set(), {"md", "tex", "csv"})
        assert (f"{name}.png" in report) == (f"{name}.pdf" in report)
    expected = {f"scores-{kind}-{score}" for kind in ("oracle", "default", "stable")
                for score in ("acc", "nmi", "purity")}  # fmt: skip
    expected |= {
        "scores-default",
        "scores-default-acc-resample-80",
        "ablation",
        "times",
        "settings",
    }
    expected |= {"time-ratios", "paper", "paper-oracle", "paper-default", "reproduction"}
    expected |= {"ranks-oracle-acc", "weights-digit", "objective-simplemkkm", "objective-digit"}
    assert expected <= names


def test_the_page_says_first_what_reproduces_by_counts_and_the_paper_s_own_data_apart(report):
    text = report["README.md"].read_text()
    assert text.index("## What reproduces") < text.index("## Data sets")
    said = text[text.index("## What reproduces") : text.index("| data set | cells")]
    # avg-kkm, mkkm, mkkm-mir and simplemkkm on Digit, three scores each.
    assert "on the paper's samples and views, or its kernels (Digit): of 12 figures," in said
    assert re.search(r"(\d+) within 0.5, (\d+) within 1 and (\d+) within 2 points", said)
    assert "(Flo17 (substitute), PFold (truncated))" in said
    assert "not a reproduction" in said


def test_the_page_names_each_caveat_and_each_failure(report):
    text = report["README.md"].read_text()
    missing = text[text.index("## What is missing") : text.index("## Scores with settings")]
    for label in ("Flo17 (substitute)", "PFold (truncated)", "Digit"):
        reason = r"needs 40 GiB, more than the \| 16 GiB of this \<machine> (1 of 1 setting)"
        assert f"- {label}, lmkkm: out of memory: {reason}" in missing
    assert "jaffe, mkkm; refits on 80 % of the samples (1 of 1 setting)" in missing
    assert "No rows at all: Flo17 (substitute), kamm-a; PFold (truncated), kamm-a." in missing
    assert "Flo17 (substitute) is a substitute" in text
    assert "PFold (truncated) is truncated" in text


def test_no_file_names_a_data_set_without_its_caveat(report):
    named = 0
    for name, path in report.items():
        text = path.read_text()
        named += "Flo17 (substitute)" in text
        assert not re.search(r"Flo17(?! \(substitute\))|PFold(?! \(truncated\))", text), name
    assert named > 30
    # Pictures explain the caveat as well as naming it.
    for name in ("scores-oracle-acc.png", "ranks-default-nmi.png", "paper-oracle.png", "times.png"):
        assert "Flo17 (substitute) is a substitute" in report[name].read_text()


def test_an_entry_chosen_by_the_true_classes_is_in_the_oracle_s_files_only(report):
    assert "best-single-kernel" in report["scores-oracle.csv"].read_text()
    for name in ("scores-default.csv", "scores-stable.csv", "times.csv", "weights-digit.csv"):
        assert "best-single-kernel" not in report[name].read_text()


def test_the_diagram_has_the_bars_of_the_ranking():
    rows = [each for each in benchmark_rows() if each["resample"] == 1]
    results = Results.of(rows)
    section = sections.rank_section(results, ["oracle"], ["acc"])
    figure = next(p.figure for p in section.pictures if p.name == "ranks-oracle-acc")
    found = ranking(results.run(), "acc", "oracle")
    ranks = dict(zip(found.methods, found.ranks, strict=True))
    spans = sorted((ranks[c[0]], ranks[c[-1]]) for c in found.cliques)
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() > 4]
    bars = sorted(tuple(line.get_xdata()) for line in lines)
    assert spans
    np.testing.assert_allclose(bars, spans, atol=0.05)
    assert any("left out" in text and "kamm-a" in text for text in texts(figure))


def test_failures_are_written_where_the_score_would_be(report):
    lines = report["scores-oracle-acc.png"].read_text().splitlines()
    assert sum(line.startswith("out of memory") for line in lines) == 3


def test_the_objective_of_the_paper_s_method_comes_with_its_certified_bound():
    section = solving.objective_section(Results.of([], benchmark_solves()))
    first = section.pictures[0]
    assert first.name == "objective-simplemkkm"
    assert [ax.get_title(loc="left") for ax in first.figure.axes] == ["Digit", "jaffe"]
    np.testing.assert_array_equal(first.figure.axes[0].lines[1].get_ydata(), [np.nan, 1.0, 1.4])
    assert "relative gap 1.0e-05" in texts(first.figure)
    others = {p.name: [ax.get_title(loc="left") for ax in p.figure.axes] for p in section.pictures}
    # One value is no curve: that of kamm-a is left out.
    assert others["objective-digit"] == ["avg-kkm", "mkkm"]


def test_weights_that_are_not_numbers_are_dashes_and_stop_no_report():
    torn = solve("digit", "mkkm", weights=[0.5, None, 0.5])
    (picture,) = solving.weight_section(Results.of([], [torn])).pictures
    left, right = picture.figure.axes
    assert [text.get_text() for text in left.texts] == ["-", "-", "-"]
    # Neither is shown without the other.
    assert [text.get_text() for text in right.texts] == ["-", "-", "-"]


def test_data_sets_whose_names_make_the_same_file_name_get_files_of_their_own():
    assert sections.file_name("weights a/b", []) == "weights-a-b"
    assert sections.file_name("weights a b", ["weights-a-b"]) == "weights-a-b-2"
    assert "/" not in sections.file_name("../../x", [])
    assert sections.file_name("..", []) == "unnamed"


def test_rows_without_solves_make_a_report_that_says_so(quick, tmp_path):
    source = write(tmp_path / "run", [row("jaffe", "mkkm", 0)])
    (source / "solves.jsonl").unlink()
    written = write_benchmark_report(source, tmp_path / "elsewhere" / "deep")
    text = written[0].read_text()
    assert text.count("No solves were recorded") == 2
    assert "What reproduces" not in text
    assert "Ranks need 3 methods" in text
    assert {path.parent for path in written} == {tmp_path / "elsewhere" / "deep"}


def test_reports_are_imported_without_matplotlib():
    program = "import mkclust.bench.report, sys; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr


def test_compressed_rows_make_the_same_report(quick, tmp_path):
    rows = [row("digit", "mkkm", 0), row("digit", "avg-kkm", 0)]
    source = write(tmp_path / "run", rows)
    first = {path.name: path.read_bytes() for path in write_benchmark_report(source)}
    plain = (source / "rows.jsonl").read_bytes()
    (source / "rows.jsonl").unlink()
    (source / "rows.jsonl.gz").write_bytes(gzip.compress(plain))
    again = {path.name: path.read_bytes() for path in write_benchmark_report(source)}
    assert again == first


def test_the_order_of_the_rows_changes_nothing(quick):
    rows = [each for each in benchmark_rows() if each["dataset"] == "digit"]
    solves = benchmark_solves()
    first, again = Results.of(rows, solves), Results.of(rows[::-1], solves[::-1])
    files = [benchmark.report_files(results, selections=["oracle"]) for results in (again, first)]
    assert files[0] == files[1]


def test_the_same_rows_give_the_same_bytes():
    rows = [row("jaffe", "mkkm", repetition) for repetition in range(3)]
    results = Results.of(rows, [solve("jaffe", "simplemkkm")])
    first, again = (
        benchmark.report_files(results, selections=["default"], scores=["acc"]) for _ in range(2)
    )
    assert again == first
    pictures = [content for name, content in first.items() if name.endswith(".png")]
    assert len(pictures) == 4
    assert all(content.startswith(b"\x89PNG") for content in pictures)
    assert all(content[:4] == b"%PDF" for name, content in first.items() if name.endswith("pdf"))


@pytest.mark.parametrize("rows", [[], [row("digit", "mkkm", 0, status="time")]])
def test_a_run_without_scores_is_refused(tmp_path, rows):
    source = write(tmp_path / "run", rows)
    with pytest.raises(ValueError, match="no rows|none with scores"):
        write_benchmark_report(source)
    assert not (source / "report").exists()


def test_a_missing_or_empty_folder_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=r"rows\.jsonl"):
            write_benchmark_report(folder)
    assert list(tmp_path.iterdir()) == []


def test_when_drawing_fails_the_folder_stays_as_it_was(tmp_path, monkeypatch, quick):
    source = write(tmp_path / "run", [row("jaffe", "mkkm", 0)])
    (source / "report").mkdir()
    (source / "report" / "README.md").write_text("an earlier report")

    def fail(*args, **options):
        raise RuntimeError("no ink")

    monkeypatch.setattr(solving, "draw_dots", fail)
    with pytest.raises(RuntimeError, match="no ink"):
        write_benchmark_report(source)
    assert [path.name for path in (source / "report").iterdir()] == ["README.md"]
    assert (source / "report" / "README.md").read_text() == "an earlier report"


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_single_panel_has_room_for_its_notes():
    lines = tuple(Dot(name, 50.0, 1.0, words="50.0±1.0") for name in ("a", "b", "c"))
    notes = ["A note that takes several lines on a narrow page. " * 40] * 3
    figure = dots.draw_dots([Panel("one", lines)], title="title", scale="ACC (%)", notes=notes)
    page.render(figure)
    [ax] = figure.axes
    assert ax.get_position().height * figure.get_figheight() > 0.5


# --- damaged files ----------------------------------------------------------------------------


def run_report(folder):
    """Run the command, and return its exit code and what it says of an error."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from mkclust import cli

    result = CliRunner().invoke(cli.app, ["report", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert not (folder / "report").exists()
    return result.exit_code, result.stderr


def refused(folder, *parts):
    """Whether the report is refused in one sentence with these parts and a remedy."""
    code, said = run_report(folder)
    assert code == 2, said
    assert said.startswith("mkclust: error: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    assert re.search("; (restore|remove) ", said), said
    for part in parts:
        assert part in said
    return said


def compressed(folder, name="rows"):
    """Compress a file of lines, and return the path."""
    plain = folder / f"{name}.jsonl"
    packed = folder / f"{name}.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()
    return packed


def test_an_archive_cut_short_is_damaged_and_not_interrupted(tmp_path):
    path = compressed(write(tmp_path / "run", benchmark_rows()))
    path.write_bytes(path.read_bytes()[:-200])
    assert "interrupted" not in refused(tmp_path / "run", "rows.jsonl.gz: ends too early, behind")


def test_a_flipped_bit_anywhere_in_an_archive_is_told(tmp_path):
    path = compressed(write(tmp_path / "run", benchmark_rows()))
    whole = path.read_bytes()
    # The flags and the time of the header, bytes 3 to 9, are no part of what is checked.
    for place in (
        0,
        1,
        2,
        *range(10, len(whole), len(whole) // 12),
        len(whole) - 6,
        len(whole) - 1,
    ):
        damaged = bytearray(whole)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        refused(tmp_path / "run", "rows.jsonl.gz")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", "has no dataset"),
        ("[1, 2]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('{"dataset": "digit"', "is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
        (b"\xff\xfe\xfa", "is not a JSON object"),
        ({"acc": 5}, "acc is 5, not a number from 0 to 1"),
        ({"nmi": -0.5}, "nmi is -0.5"),
        ({"purity": "much"}, 'purity is "much"'),
        ({"acc": True}, "acc is true"),
        ({"acc": None}, "acc is null in a row with the status 'ok'"),
        ({"ari": 1.5}, "ari is 1.5"),
        ({"acc": float("nan")}, "acc is NaN"),
        ({"gap": float("inf")}, "gap is Infinity, not a finite number"),
        ({"solve_seconds": -1}, "solve_seconds is -1"),
        ({"solve_seconds": 10**400}, "solve_seconds is 1000"),
        ({"n_iter": 2.5}, "n_iter is 2.5"),
        ({"status": "fine"}, 'status is "fine", not one of ok, failed'),
        ({"status": []}, "status is []"),
        ({"parameters": {}}, "parameters is {}"),
        ({"parameters": "[]"}, "the text of a JSON object"),
        ({"repetition": "first"}, 'repetition is "first"'),
        ({"resample": 0}, "resample is 0"),
        ({"dataset": ["digit"]}, 'dataset is ["digit"], not a name'),
        ({"method": None}, "method is null"),
        ({"caveat": 3}, "caveat is 3, not a text"),
        ({"stability": 2}, "stability is 2"),
        ({"threads": None}, "threads is null"),
    ],
)
def test_a_line_that_is_no_row_is_told_with_its_number(line, reason, suffix, tmp_path):
    rows = benchmark_rows()
    folder = write(tmp_path / "run", rows)
    if isinstance(line, dict):
        line = json.dumps(rows[1] | line)
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    lines[2] = line if isinstance(line, bytes) else line.encode()
    (folder / "rows.jsonl").write_bytes(b"\n".join([*lines, b""]))
    if suffix:
        compressed(folder)
    refused(folder, f"rows.jsonl{suffix}, line 3: ", reason)


@pytest.mark.parametrize("key", ["dataset", "method", "parameters", "acc", "status", "resample"])
def test_a_row_without_a_key_is_told(key, tmp_path):
    rows = benchmark_rows()
    del rows[0][key]
    refused(write(tmp_path / "run", rows), f"rows.jsonl, line 1: has no {key}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"weights": "heavy"}, 'weights is "heavy"'),
        ({"weights": [0.5, "x", 0.5]}, "weights is ["),
        ({"history": [1.0, float("inf")]}, "history is [1.0, Infinity]"),
        ({"kernel_names": None}, "kernel_names is null"),
        ({"lower_bounds": 3}, "lower_bounds is 3"),
        ({"gap": "small"}, 'gap is "small"'),
    ],
)
def test_a_record_that_is_no_solve_is_told(change, reason, tmp_path):
    solves = benchmark_solves()
    solves[1] |= change
    folder = write(tmp_path / "run", benchmark_rows(), solves)
    refused(folder, "solves.jsonl, line 2: ", reason)


def test_rows_that_rounding_takes_above_one_and_records_with_gaps_are_sound(quick, tmp_path):
    rows, solves = benchmark_rows(), benchmark_solves()
    rows[1]["nmi"] = 1 + 2e-16
    solves[0] |= {"weights": [None, 0.5, 0.5], "history": None}
    assert write_benchmark_report(write(tmp_path / "run", rows, solves))


@pytest.mark.parametrize("content", ["[]", "3", "null", "{", "[" * 100_000])
def test_a_protocol_that_is_none_stops_a_benchmark_in_a_sentence(content, tmp_path):
    from mkclust.bench import read_plan, run_plan

    (tmp_path / "plan.toml").write_text('datasets = ["digits"]\nmethods = ["avg-kkm"]\n')
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "protocol.json").write_text(content)
    with pytest.raises(ValueError, match="protocol.json: is not a protocol; remove it"):
        run_plan(read_plan(tmp_path / "plan.toml"), tmp_path / "out", n_processes=1)


def test_a_benchmark_does_not_go_on_from_rows_that_are_none(tmp_path):
    from mkclust.bench import read_plan, run_plan

    (tmp_path / "plan.toml").write_text('datasets = ["digits"]\nmethods = ["avg-kkm"]\n')
    folder = write(tmp_path / "out", [row("digit", "mkkm", 0), row("digit", "mkkm", 1, acc=5)])
    with pytest.raises(
        ValueError, match=r"rows.jsonl, line 2: is not a row of a benchmark \(acc is 5"
    ):
        run_plan(read_plan(tmp_path / "plan.toml"), folder, n_processes=1)
