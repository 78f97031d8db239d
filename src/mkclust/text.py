"""Text from files, plans and users, made safe to print and to open in a spreadsheet."""

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# Joiners belong to the spelling of words and of emoji; they can neither hide nor reorder anything.
_JOINERS = "\u200c\u200d"
# Control, format (bidi overrides among them), surrogates, and separators of lines and paragraphs.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# What spreadsheets take for the beginning of a formula, in both widths.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def printable(text: object) -> str:
    r"""Return the text on one line, characters that steer a terminal shown rather than sent.

    Parameters
    ----------
    text : object
        A string, or anything with one.

    Returns
    -------
    text : str
        The same text; control and escape characters, line breaks, bidirectional overrides and other
        invisible ones are written as ``\xNN``, ``\uNNNN`` or ``\UNNNNNNNN``.

    Examples
    --------
    >>> from mkclust.text import printable
    >>> print(printable("view\x1b[2J"))
    view\x1b[2J
    """
    return "".join(map(_shown, str(text)))


def join_words(items: Iterable[object], most: int = 6) -> str:
    """Return words as a list in a sentence.

    Parameters
    ----------
    items : iterable of object
        Strings, or anything with one.
    most : int, default=6
        How many to name; the others are counted.

    Returns
    -------
    text : str
        "a", "a and b", or "a, b, c and 4 more".
    """
    words = [str(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def count(number: int, what: str) -> str:
    """Return a number of things in words: "1 column", "2,000 columns"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, the first column to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)


def list_first(items: Iterable[object], most: int = 10) -> str:
    """List the first of many things, with dots for the rest."""
    names = [str(item) for item in items]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def did_you_mean(word: object, words: Iterable[object]) -> str:
    """Suggest the words that are near to one that is not there, in parentheses; "" for none."""
    by_spelling = {str(each).casefold(): str(each) for each in words}
    close = get_close_matches(str(word).casefold(), by_spelling, 3, cutoff=0.5)
    near = [by_spelling[each] for each in close]
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def csv_cell(text: object) -> str:
    """Return the text of a cell of a CSV file, an apostrophe before what would be a formula.

    Parameters
    ----------
    text : object
        A string, or anything with one. Pass names and words, not numbers: -1 would become text.

    Returns
    -------
    text : str
        The same text, led by an apostrophe where it begins with ``=``, ``+``, ``-``, ``@``, a tab
        or a line break.

    Examples
    --------
    >>> from mkclust.text import csv_cell
    >>> csv_cell("=SUM(A1)"), csv_cell("lf-mvc")
    ("'=SUM(A1)", 'lf-mvc')
    """
    text = str(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _shown(character: str) -> str:
    """Return the character, or its code where it cannot be seen or steers what can."""
    if character in _JOINERS or unicodedata.category(character) not in _UNPRINTABLE:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
