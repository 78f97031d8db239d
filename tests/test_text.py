"""Text that comes from files and plans neither steers a terminal nor runs in a
spreadsheet."""

import pytest

from mkclust.text import (
    from_spreadsheet,
    join_words,
    markdown_text,
    printable,
    spreadsheet_text,
    text_table,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("one\ntwo\rthree\tfour", r"one\ntwo\rthree\tfour"),
        ("left \u202egpj.exe", r"left \u202egpj.exe"),
        ("zero width \u200b\ufeff", r"zero width \u200b\ufeff"),
    ],
)
def test_what_steers_a_terminal_is_shown_by_its_code(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RNA seq (batch 2)",
        "Größe",
        "数据集",
        "م\u200cخ",
        "👩\u200d🔬",
        r"C:\data",
        "'",
    ],
)
def test_ordinary_text_is_printed_as_it_is(text):
    assert printable(text) == text


FORMULAS = [
    "=1+1",
    "+49 30",
    "-A1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\x1b[2J",
    " =1",
    "'=1",
    "''-A1",
    "\uff1d1+1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_run_is_marked_and_read_again(text):
    written = spreadsheet_text(text)
    assert written.startswith("'")
    assert from_spreadsheet(written) == text


@pytest.mark.parametrize(
    "text", ["", "-3", "-3.5", "a=b", "P-3", "'s-Gravenhage", "'", "1+1", "7"]
)
def test_other_text_is_written_and_read_as_it_is(text):
    assert spreadsheet_text(text) == text
    assert from_spreadsheet(text) == text


def test_markdown_shows_markup_as_text():
    shown = markdown_text("<b>R&D</b> | [a](b) `c` \\ \x1b")
    assert shown == r"&lt;b&gt;R&amp;D&lt;/b&gt; \| \[a\](b) \`c\` \\ \\x1b"
    assert markdown_text("uci-digit (m=3)") == "uci-digit (m=3)"


def test_words_and_tables_do_not_steer_a_terminal():
    assert join_words(["a\x1b[2J", "b\n"]) == r"a\x1b[2J and b\n"
    assert text_table([["a\x1b", "1"], ["b", "10"]]) == "a\\x1b   1\nb      10"
