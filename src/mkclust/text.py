"""Text for messages and tables, made safe to print and to open in a spreadsheet."""

import html
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# Blanks that do not break, and joiners, which are parts of words and emoji.
_ORDINARY = "\xa0\u200c\u200d"
# Text that a spreadsheet would run as a formula, or that has the mark of such a text.
# Blanks before it are skipped, signs may be of full width, and negative numbers are
# numbers.
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\x1b\uff1d\uff0b\uff0d\uff20].*", re.DOTALL)
_NEGATIVE = re.compile(r"-\d+(\.\d+)?")
# What has a meaning in a table of Markdown.
_MARKDOWN = re.compile(r"[\\`|\[\]]")
# What has a meaning in LaTeX, or another shape there, and how it is written.
_LATEX = str.maketrans(
    {
        **{each: f"\\{each}" for each in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\symbol{34}",
    }
)


def printable(text: object) -> str:
    """Return a text on one line, with control characters as escapes."""
    return "".join(
        c if c.isprintable() or c in _ORDINARY else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def spreadsheet_text(text: object) -> str:
    """Return a text that a spreadsheet shows: a formula gets an apostrophe.

    >>> spreadsheet_text("=1+1"), spreadsheet_text("-3"), spreadsheet_text("P-3")
    ("'=1+1", '-3', 'P-3')
    """
    written = str(text)
    if _FORMULA.fullmatch(written) and not _NEGATIVE.fullmatch(written):
        return f"'{written}"
    return written


def from_spreadsheet(text: str) -> str:
    """Return the text that `spreadsheet_text` has written.

    >>> from_spreadsheet("'=1+1"), from_spreadsheet("'s-Gravenhage")
    ('=1+1', "'s-Gravenhage")
    """
    if text.startswith("'") and _FORMULA.fullmatch(text):
        return text[1:]
    return text


def markdown_text(text: object) -> str:
    r"""Return a text that Markdown shows as it is, on one line: no HTML, link or cell.

    >>> markdown_text("<b>a|b</b>")
    '&lt;b&gt;a\\|b&lt;/b&gt;'
    """
    return html.escape(_MARKDOWN.sub(r"\\\g<0>", printable(text)), quote=False)


def latex_text(text: object) -> str:
    r"""Return a text that LaTeX prints as it is.

    >>> print(latex_text("50% of a_b & {c}"))
    50\% of a\_b \& \{c\}
    """
    return printable(text).translate(_LATEX)


def join_words(items: Iterable[object], most: int = 6) -> str:
    """Return words as a list in a sentence: "a", "a and b", or "a, b, c and 4 more"."""
    words = [printable(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def count(number: int, what: str) -> str:
    """Return a number of things in words: "1 column", "2,000 columns"."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what}s"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, the first column to the left and the others to the right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    first, *others = (max(map(len, column)) for column in zip(*cells, strict=True))
    lines = [
        "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)])
        for row in cells
    ]
    return "\n".join(lines)


def p_of_draws(value: float, least: float, sign: str = "") -> str:
    """Return a p-value of random draws after a sign; the least one as a bound.

    >>> p_of_draws(0.25, 0.001, "= "), p_of_draws(0.001, 0.001, "= ")
    ('= 0.25', '<= 0.001')
    """
    if value <= least * (1 + 1e-9):
        sign = "<= "
    return f"{sign}{value:.2g}"


def did_you_mean(word: object, words: Iterable[object]) -> str:
    """Return the words with a similar spelling, in parentheses; "" for none."""
    by_spelling = {str(each).casefold(): str(each) for each in words}
    close = get_close_matches(str(word).casefold(), by_spelling, 3, cutoff=0.5)
    near = " or ".join(repr(by_spelling[each]) for each in close)
    if near:
        return f" (did you mean {near}?)"
    return ""


def is_number(text: object, decimals: str = ".") -> bool:
    """Return whether a text spells a number, by any of some decimal marks."""
    spelled = str(text)
    try:
        float(spelled.translate(str.maketrans(decimals, "." * len(decimals))))
    except ValueError:
        return False
    return "_" not in spelled and ("." in decimals or "." not in spelled)
