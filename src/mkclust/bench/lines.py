"""Where in the text of a plan something stands: what its parser does not tell."""

import re
from collections.abc import Iterator


class Lines:
    """The lines of a TOML text.

    Parameters
    ----------
    text : str
        A text that can be parsed, with strings of one line.
    """

    def __init__(self, text: str):
        self._text = text
        self._plain = [_without_comment(line) for line in text.splitlines()]

    def entry(self, name: str, index: int) -> range:
        """Return the lines, from 1, of one entry of a list: inline, or under its own heading."""
        headings = [i for i, line in enumerate(self._plain, 1) if line.strip() == f"[[{name}]]"]
        if headings:
            others = [i for i, line in enumerate(self._plain, 1) if line.lstrip().startswith("[[")]
            ends = [i for i in others if i > headings[index]] or [len(self._plain) + 1]
            return range(headings[index], ends[0])
        found = list(self._elements(name))
        return found[index] if index < len(found) else range(1, len(self._plain) + 1)

    def find(self, key: str, within: range | None = None) -> int | None:
        """Return the line, from 1, on which a key is assigned, among some lines or all."""
        assigned = re.compile(rf"(^|[^\w-]){re.escape(key)}[\"']?\s*=")
        within = range(1, len(self._plain) + 1) if within is None else within
        return next((i for i in within if assigned.search(self._plain[i - 1])), None)

    def _elements(self, name: str) -> Iterator[range]:
        """Yield the lines of every element of an inline list."""
        begin = re.search(rf"^[ \t]*{name}[ \t]*=[ \t]*\[", self._text, re.MULTILINE)
        if begin is None:
            return
        line = self._text.count("\n", 0, begin.end()) + 1
        first, depth, quote, comment = 0, 0, "", False
        for letter, before in zip(
            self._text[begin.end() :], self._text[begin.end() - 1 :], strict=False
        ):
            if letter == "\n":
                line, comment = line + 1, False
            elif comment:
                continue
            elif quote:
                quote = "" if letter == quote and before != "\\" else quote
            elif letter == "#":
                comment = True
            elif depth == 0 and letter in ",]":
                if first:
                    yield range(first, line + 1)
                if letter == "]":
                    return
                first = 0
            elif not letter.isspace():
                first = first or line
                quote = letter if letter in "\"'" else ""
                depth += (letter in "[{") - (letter in "]}")


def _without_comment(line: str) -> str:
    """Return a line without its comment; a "#" within a string is none."""
    quote = ""
    for i, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#":
            return line[:i]
    return line
