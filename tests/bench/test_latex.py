"""Tables as a journal prints them: names as text, marks explained, and they compile."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from helpers.rows import made_row
from mkclust.bench.latex import write_latex
from mkclust.bench.rows import as_lines
from mkclust.bench.tables import outcomes, score_table

EVIL = r"50%_of & {a} \input{/etc/passwd} #1 $x^2$ ~<b>|\"ä"


@pytest.fixture
def rows():
    """Return ten repetitions of three methods on two data sets; one is clearly best."""
    rng = np.random.default_rng(0)
    means = {"mkkm": 0.5, "mkkm-mir": 0.8, "ours": 0.8}
    return [
        made_row(method, r, mean + 0.01 * rng.normal(), dataset=name)
        for name in (EVIL, "plain")
        for method, mean in means.items()
        for r in range(10)
    ]


def read_back(text):
    """Return the cells of a table of LaTeX, with escapes taken back."""
    body = text.split(r"\midrule")[0].split(r"\toprule")[1]
    body += text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", line)]
        for line in body.strip().split("\\\\\n")
        if line.strip()
    ]


def test_names_are_text_and_braces_are_balanced(rows):
    rows += [made_row(f"a_{EVIL}", r, 0.7, dataset="plain") for r in range(3)]
    text = score_table(outcomes(rows), "acc").to_latex(caption=r"100\,\%.")
    without = re.sub(r"\\[\\{}%&_#$]", "", text)
    assert without.count("{") == without.count("}")
    assert "/etc/passwd" in text
    assert r"\input" not in text
    assert "%" not in without
    assert "_" not in without
    assert "#" not in without
    assert without.count("$") % 2 == 0
    # No name makes a cell of its own, and what is missing is a cell, too.
    assert {len(line) for line in read_back(text)} == {5}
    assert "--" in text


def test_the_caption_explains_the_marks_that_are_there_and_no_others(rows):
    table = score_table(outcomes(rows), "acc")
    text = table.to_latex()
    assert "over 10 repetitions" in text
    assert "Bold: the best mean" in text
    assert r"\dagger" not in text
    alone = table[["mkkm"]].map(lambda cell: cell).to_latex()
    assert "Bold" not in alone
    rows.append(made_row("lkam", 0, 0.4, converged=False))
    unfinished = score_table(outcomes(rows), "acc").to_latex()
    assert unfinished.count(r"\ddagger") == 2  # in the cell and in the caption
    assert "over the repetitions" in unfinished


def test_the_best_and_what_does_not_differ_from_it_are_bold(rows):
    frame = outcomes(rows)
    body = score_table(frame, "acc").to_latex().split(r"\midrule")[1]
    bold = [float(each) for each in re.findall(r"\\textbf\{([\d.]+)\}", body)]
    best = frame[(frame["score"] == "acc") & frame["not_worse"]]
    assert sorted(bold) == sorted(best["mean"].round(1))
    assert min(bold) > 75
    assert body.count(r"$\,\pm\,$") == 6


def test_methods_have_their_names_in_print_in_rows_and_in_columns(rows):
    rows += [made_row("powered", r, 0.7, entry="a.b:Powered") for r in range(2)]
    rows += [made_row("Mine_2", r, 0.7, entry="lkam") for r in range(2)]
    rows.append(made_row("mkkm", 0, 0.7, dataset="mkkm"))  # a data set of that name
    table = score_table(outcomes(rows), "acc")
    for text in (table.to_latex(rows="methods"), table.T.to_latex()):
        names = [line[0] for line in read_back(text)[1:]]
        assert names == ["MKKM", "MKKM-MiR", r"Mine\_2", "ours", "Powered"]
        assert "mkkm" in read_back(text)[0]
    columns = read_back(table.to_latex())[0]
    assert columns == read_back(table.T.to_latex(rows="datasets"))[0]
    assert columns[1:] == names
    with pytest.raises(ValueError, match="rows"):
        table.to_latex(rows="columns")


def test_a_part_of_a_table_is_a_table(rows, tmp_path):
    table = score_table(outcomes(rows), "nmi")
    part = table.loc[["plain"], ["mkkm-mir"]]
    text = part.to_latex(tmp_path / "part.tex", label="tab:part")
    assert read_back(text)[0] == ["", "MKKM-MiR"]
    assert "NMI in percent" in text
    assert (tmp_path / "part.tex").read_text() == text
    assert isinstance(table, pd.DataFrame)
    assert "**80." in table.to_markdown()


def test_all_tables_of_a_benchmark_are_files_that_compile(rows, tmp_path):
    rows += [
        made_row("lkam", r, 0.9, parameters='{"reg": 2.0}', default=False)
        for r in range(3)
    ]
    (tmp_path / "rows.jsonl").write_bytes(as_lines(rows))
    document, *tables = write_latex(tmp_path, tmp_path / "latex")
    assert len(tables) == 6
    for file in tables:
        assert rf"\input{{{file.stem}}}" in document.read_text()
        # More methods than data sets, which are therefore rows.
        assert "MKKM-MiR & " in file.read_text()
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
    done = subprocess.run(
        command, cwd=document.parent, capture_output=True, text=True, errors="replace"
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert document.with_suffix(".pdf").stat().st_size > 1000
