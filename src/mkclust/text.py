"""Text for messages and tables, made safe to print and to open in a spreadsheet."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# Blanks that do not break, and joiners, which are parts of words and emoji.
_ORDINARY = "\xa0\u200c\u200d"


def printable(text: object) -> str:
    """Return a text on one line, with control characters of terminals shown as escapes."""
    return "".join(
        c if c.isprintable() or c in _ORDINARY else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def join_words(items: Iterable[object], most: int = 6) -> str:
    """Return words as a list in a sentence: "a", "a and b", or "a, b, c and 4 more"."""
    words = [str(item) for item in items]
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def count(number: int, what: str) -> str:
    """Return a number of things in words: "1 column", "2,000 columns"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def p_of_draws(value: float, least: float, sign: str = "") -> str:
    """Return a p-value that random draws gave, after a sign; the least possible as a bound.

    >>> p_of_draws(0.25, 0.001, "= "), p_of_draws(0.001, 0.001, "= ")
    ('= 0.25', '<= 0.001')
    """
    is_bound = value <= least * (1 + 1e-9)

    return f"{'<= ' if is_bound else sign}{value:.2g}"


def did_you_mean(word: object, words: Iterable[object]) -> str:
    """Return the words that are spelled alike, in parentheses; "" for none."""
    by_spelling = {str(each).casefold(): str(each) for each in words}
    close = get_close_matches(str(word).casefold(), by_spelling, 3, cutoff=0.5)
    near = " or ".join(repr(by_spelling[each]) for each in close)
    return f" (did you mean {near}?)" if near else ""


def is_number(text: object, decimals: str = ".") -> bool:
    """Return whether a text spells a number, by any of some decimal marks."""
    spelled = str(text)
    try:
        float(spelled.translate(str.maketrans(decimals, "." * len(decimals))))
    except ValueError:
        return False
    return "_" not in spelled and ("." in decimals or "." not in spelled)
