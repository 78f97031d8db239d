"""Text that comes from files and plans neither steers a terminal nor runs in a spreadsheet."""

import pytest

from mkclust.text import printable


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
    "text", ["", "RNA seq (batch 2)", "Größe", "数据集", "م\u200cخ", "👩\u200d🔬", r"C:\data", "'"]
)
def test_ordinary_text_is_printed_as_it_is(text):
    assert printable(text) == text
