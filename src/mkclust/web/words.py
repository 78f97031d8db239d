"""Words of a page: numbers in sentences, and small pieces of text, which are escaped here."""

import base64
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

NO_BREAK = "\N{NO-BREAK SPACE}"


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_percent(share: float) -> str:
    """Return a share in whole percent; what is neither nothing nor all is not called so."""
    if 0 < share < 0.005:
        return f"less than 1{NO_BREAK}%"
    if 0.995 <= share < 1:
        return f"more than 99{NO_BREAK}%"
    return f"{share:.0%}".replace("%", f"{NO_BREAK}%")


def format_times(number: int) -> str:
    """Return how often something was done."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def format_range(low: float, high: float, form: str = ".2f") -> str:
    """Return from where to where numbers run, one number where that is the same."""
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"


def format_number(value: float, unknown: str = "not known") -> str:
    """Return a number in two decimals without a minus before a zero, or that it is not known."""
    return f"{round(value, 2) + 0:.2f}" if math.isfinite(value) else unknown


def format_short(value: float) -> str:
    """Return a number in three digits, a zero without sign."""
    return f"{float(f'{value:.3g}') + 0:g}"


def escape(value: Any) -> str:
    """Return a value as text that no browser takes for markup."""
    # Letters that XML forbids, such as the null of a damaged file, would spoil the page.
    plain = "".join(
        letter if letter.isprintable() or letter == NO_BREAK else " " for letter in str(value)
    )
    return html.escape(plain)


def paragraph(*sentences: str, kind: str = "") -> str:
    """Return sentences as one paragraph, empty ones left out; kind is a class of the style."""
    text = " ".join(sentence for sentence in sentences if sentence)
    return f"<p{_class(kind)}>{escape(text)}</p>" if text else ""


def bullets(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>" if items else ""


def subheading(title: str) -> str:
    """Return a heading below that of a section."""
    return f"<h3>{escape(title)}</h3>"


def cautions(items: Sequence[str]) -> str:
    """Return what the reader should know before all else, or nothing."""
    if not items:
        return ""
    title = '<p class="caution-title">Before you read on</p>'
    return f'<div class="caution" role="note">{title}{bullets(items)}</div>'


def beside(*parts: str) -> str:
    """Return pieces of markup beside each other, below each other where there is no room."""
    return f'<div class="beside">{"".join(parts)}</div>'


def download(text: str, name: str, title: str) -> str:
    """Return a link that saves a text as a file, which the page itself holds."""
    content = base64.b64encode(text.encode("utf-8", "backslashreplace")).decode("ascii")
    return (
        f'<p><a class="download" download="{escape(name)}" '
        f'href="data:text/csv;charset=utf-8;base64,{content}">{escape(title)}</a></p>'
    )


def definitions(pairs: Mapping[str, Any], kind: str = "") -> str:
    """Return names with their values, one a line; kind is a class of the style."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in pairs.items()
    )
    return f"<dl{_class(kind)}>{rows}</dl>"


def quotation(paragraphs: Sequence[str], name: str) -> str:
    """Return text to be copied, with a button that does so."""
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    button = '<button type="button" class="copy" hidden>Copy the text</button>'
    return f'<blockquote aria-label="{escape(name)}">{body}</blockquote>{button}'


def _class(kind: str) -> str:
    """Return the attribute that names a class of the style, where there is one."""
    return f' class="{kind}"' if kind else ""
