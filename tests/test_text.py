"""Text that comes from files and plans neither steers a terminal nor runs in a spreadsheet."""

import csv
import io

import pytest

from mkclust.text import csv_cell, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("one\ntwo\rthree\tfour", r"one\x0atwo\x0dthree\x09four"),
        ("null\x00 delete\x7f", r"null\x00 delete\x7f"),
        ("one byte \x9b2J", r"one byte \x9b2J"),
        ("left \u202egpj.exe", r"left \u202egpj.exe"),
        ("isolate \u2066x\u2069", r"isolate \u2066x\u2069"),
        ("lines \u2028 paragraphs \u2029", r"lines \u2028 paragraphs \u2029"),
        ("zero width \u200b\ufeff", r"zero width \u200b\ufeff"),
        ("half a pair \udc80", r"half a pair \udc80"),
        ("tag \U000e0041", r"tag \U000e0041"),
    ],
)
def test_what_steers_a_terminal_is_shown_by_its_code(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).isprintable()
    printable(text).encode()


@pytest.mark.parametrize(
    "text",
    ["", "RNA seq (batch 2)", "Größe", "数据集", "م\u200cخ", "👩\u200d🔬", r"C:\data", "'"],
)
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("character", list("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
def test_a_cell_never_begins_as_a_formula(character: str) -> None:
    text = f'{character}cmd|" /C calc"!A0'
    assert csv_cell(text) == f"'{text}"
    assert csv_cell(csv_cell(text)) == csv_cell(text)
    file = io.StringIO()
    csv.writer(file).writerow([csv_cell(text), 1])
    assert next(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [f"'{text}", "1"]


@pytest.mark.parametrize("text", ["", "avg-kkm", "a=b", "3 + 4", "user@host", "'"])
def test_ordinary_cells_stay_as_they_are(text: str) -> None:
    assert csv_cell(text) == text
