"""Somebody runs the first benchmark of the guide, and reads its report."""

import multiprocessing

import pytest

from helpers.cli import succeed
from helpers.docs import ROOT, commands
from helpers.processes import get_forks
from mkclust.bench.rows import read_rows

pytestmark = pytest.mark.slow

BENCH, REPORT, PAPER = commands("docs/guides/benchmark.md")


def test_the_quick_plan_of_the_guide_ends_in_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(multiprocessing, "get_context", get_forks)
    assert BENCH == ["bench", "benchmarks/quick.toml"]
    folder = tmp_path / "quick"
    said = succeed(*BENCH, "--out", folder, "--jobs", 1).stdout
    # What is printed last is the next command; the guide has the same.
    assert said.endswith(f"mkclust report {folder}\n")
    assert REPORT == ["report", "DIR"]
    rows = read_rows(folder)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["method"] for row in rows} == {"avg-kkm", "simplemkkm", "lf-mvc"}
    page = folder / "report" / "README.md"
    assert f"begin with {page}" in succeed("report", folder).stdout
    text = page.read_text()
    assert "| digits" in text
    assert (page.parent / "scores-default.csv").stat().st_size > 0
    options = ["--latex", "--figures"]
    assert [*REPORT, *options] == PAPER
    succeed("report", folder, *options)
    assert "SimpleMKKM & " in (page.parent / "latex/acc-default.tex").read_text()
    assert (page.parent / "figures/weights.pdf").stat().st_size > 1000
