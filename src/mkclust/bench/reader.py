"""From a TOML file to a plan, every mistake in it told with its line and key."""

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from mkclust.bench.entries import MethodEntry, find_entry, import_entry
from mkclust.bench.plan import DatasetEntry, Plan, PlanError, import_loaders
from mkclust.datasets import CATALOG
from mkclust.datasets.arrays import READERS
from mkclust.datasets.catalog import find_entry as find_dataset

# The largest seed that k-means takes.
MAX_SEED = 2**32 - 1

# What each number or word of a plan may be, and how to say so.
_Rule = tuple[Callable[[Any], bool], str]


def _whole(least: int) -> _Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        f"a whole number of at least {least}",
    )


def _positive(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf


def _one_of(*words: str) -> _Rule:
    return (lambda value: value in words, " or ".join(map(repr, words)))


_TEXT: _Rule = (lambda value: isinstance(value, str) and value != "", "a text")
_FLAG: _Rule = (lambda value: isinstance(value, bool), "true or false")
_POSITIVE: _Rule = (_positive, "a positive number")
_SHARE: _Rule = (lambda value: _positive(value) and value <= 1, "a number above 0, at most 1")
_TABLE: _Rule = (lambda value: isinstance(value, dict), "a table, such as {reg = 0.5}")
_LISTS: _Rule = (
    lambda value: (
        value == "authors"
        or (isinstance(value, dict) and all(isinstance(v, list) and v for v in value.values()))
    ),
    'a table of lists, such as {reg = [0.5, 1.0]}, or "authors"',
)

_PLAN: dict[str, _Rule] = {
    "repetitions": _whole(1),
    "grid_repetitions": _whole(1),
    "seed": _whole(0),
    "n_init": _whole(1),
    "init": _one_of("random", "k-means++"),
    "resample": _SHARE,
    "time_limit": _POSITIVE,
    "memory_limit": _POSITIVE,
    "threads": _whole(1),
    "missing": _one_of("error", "skip"),
    "loaders": _TEXT,
}
_DATASET: dict[str, _Rule] = {
    "name": _TEXT,
    "path": _TEXT,
    "precomputed": _FLAG,
    "n_clusters": _whole(1),
    "max_settings": _whole(1),
}
_METHOD: dict[str, _Rule] = {
    "method": _TEXT,
    "name": _TEXT,
    "parameters": _TABLE,
    "grid": _LISTS,
    "input": _one_of("concatenated", "views", "kernels", "average-kernel"),
    "max_samples": _whole(1),
    "max_settings": _whole(1),
}


def read_plan(path: str | Path) -> Plan:
    """Read a plan from a TOML file, and check all of it.

    Parameters
    ----------
    path : str or path-like
        The plan. ``datasets`` and ``methods`` are lists; an entry is a name or a table, so that
        one more of either is one more line.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        With the line and the key of a mistake, and the nearest name where one is unknown.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: is not text ({error.reason}); a plan is a TOML file") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = f"at line {len(text.splitlines())}, the end"
        raise PlanError(f"{path}: {str(error).replace('at end of document', last)}") from None
    return _Reader(path, text).plan(content)


class _Reader:
    """Check a plan's content; remember its text, to tell the line of a mistake."""

    def __init__(self, path: Path, text: str):
        self.path = path
        self.lines = Lines(text)
        self.within: range | None = None  # the lines of the entry that is being read

    def plan(self, content: dict[str, Any]) -> Plan:
        """Return the plan, or refuse it."""
        lists = {key: content.get(key) for key in ("datasets", "methods")}
        protocol = {key: value for key, value in content.items() if key not in lists}
        self._check_keys(content, (*_PLAN, *lists))
        for key, entries in lists.items():
            if not isinstance(entries, list) or not entries:
                self._refuse(key, "must be a list of names or tables, with at least one entry")
        self._check_values(protocol, _PLAN)
        if "loaders" in protocol:
            self._import_loaders(self.path.parent / protocol["loaders"])
        datasets = list(self._entries("datasets", content["datasets"], self._dataset))
        methods = list(self._entries("methods", content["methods"], self._method))
        repetitions = protocol.get("repetitions", Plan.repetitions)
        if protocol.get("seed", 0) + repetitions > MAX_SEED:
            self._refuse("seed", f"and the repetitions exceed {MAX_SEED}; give a smaller one")
        if protocol.get("grid_repetitions", 0) > repetitions:
            self._refuse("grid_repetitions", f"is more than the {repetitions} repetitions")
        protocol.setdefault("grid_repetitions", min(Plan.grid_repetitions, repetitions))
        # Last, for it runs the code of the modules: a plan that is refused has run none.
        pairs = zip(content["methods"], methods, strict=True)
        methods = [self._import(index, *pair) for index, pair in enumerate(pairs)]
        return Plan(tuple(datasets), tuple(methods), **protocol, folder=self.path.parent)

    def _import_loaders(self, file: Path) -> None:
        """Run the file that adds data sets by name, or refuse it."""
        if not file.is_file() or file.suffix != ".py":
            self._refuse("loaders", f"{file}: no such Python file")
        try:
            import_loaders(file)
        except Exception as error:
            self._refuse("loaders", f"{file}: cannot be run ({type(error).__name__}: {error})")

    def _entries(self, key: str, items: list, read: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield the entries of a list, each name once."""
        names = set()
        for index, item in enumerate(items):
            self.within = self.lines.entry(key, index)
            entry = read(item)
            if entry.name in names:
                self._refuse(key, f"has {entry.name!r} twice; give one of them another name")
            names.add(entry.name)
            yield entry
        self.within = None

    def _dataset(self, item: Any) -> DatasetEntry:
        """Return one data set, or refuse it."""
        table = self._table(item, "datasets", "name", _DATASET)
        if "path" in table:
            file = self.path.parent / table["path"]
            if not file.exists():  # a part of a file, perhaps
                file = self.path.parent / table["path"].rpartition("::")[0]
            if not file.is_file():
                self._refuse("path", f"{table['path']}: no such file")
            if file.suffix.lower() not in (*READERS, ".parquet"):
                known = ", ".join((*READERS, ".parquet"))
                self._refuse("path", f"{table['path']}: give a file of {known}")
            return DatasetEntry(**{"name": file.stem} | table)
        if "name" not in table:
            self._refuse("datasets", f"has an entry without name or path: {table}")
        known_set = find_dataset(table["name"])
        if known_set is None:
            advice = _nearest(table["name"], list(CATALOG))
            self._refuse("name", f"{table['name']!r}: unknown data set; {advice}")
        if table.get("precomputed"):
            self._refuse("precomputed", "belongs to a path; a named set knows it")
        return DatasetEntry(**table | {"name": known_set.name})

    def _method(self, item: Any) -> MethodEntry:
        """Return one method, or refuse it."""
        table = self._table(item, "methods", "method", _METHOD)
        if "method" not in table:
            self._refuse("methods", f"has an entry without method: {table}")
        with self._refusal(table, "method"):
            return find_entry(table)

    def _import(self, index: int, item: Any, entry: MethodEntry) -> MethodEntry:
        """Return one method with its class imported, where the plan names one."""
        if entry.kind != "estimator":
            return entry
        self.within = self.lines.entry("methods", index)
        table = {"method": item} if isinstance(item, str) else item
        with self._refusal(table, "method"):
            return import_entry(table, entry.name)

    @contextmanager
    def _refusal(self, table: Mapping, key: str) -> Iterator[None]:
        """Refuse the plan for a mistake of an entry; the message begins with the key."""
        try:
            yield
        except ValueError as error:
            wrong, _, message = str(error).partition(": ")
            raise self._mistake(wrong if wrong in table else key, message) from None

    def _table(self, item: Any, where: str, key_of_text: str, rules: dict[str, _Rule]) -> dict:
        """Return an entry as a table; a text is the short form of one."""
        table = {key_of_text: item} if isinstance(item, str) else item
        if not isinstance(table, dict):
            self._refuse(where, f"has the entry {table!r}; give a name or a table")
        self._check_keys(table, tuple(rules), where)
        self._check_values(table, rules)
        return table

    def _check_keys(self, table: Mapping, keys: Sequence[str], where: str = "") -> None:
        """Refuse a key that nobody knows."""
        for key in table:
            if key not in keys:
                of = f" of {where}" if where else ""
                self._refuse(key, f"unknown key{of}; {_nearest(key, keys)}")

    def _check_values(self, table: Mapping, rules: Mapping[str, _Rule]) -> None:
        """Refuse a value that its key may not have."""
        for key, value in table.items():
            holds, advice = rules[key]
            if not holds(value):
                self._refuse(key, f"is {value!r}; give {advice}")

    def _mistake(self, key: str, message: str) -> PlanError:
        """Return what is wrong with the plan, with the line of the key, or of its entry."""
        number = self.lines.find(key, self.within)
        if number is None and self.within is not None:
            number = self.within[0]
        where = f"{self.path}, line {number}" if number else str(self.path)
        return PlanError(f"{where}: {key}: {message}")

    def _refuse(self, key: str, message: str) -> NoReturn:
        """Refuse the plan."""
        raise self._mistake(key, message)


def _nearest(name: str, known: Sequence[str]) -> str:
    """Return the advice that names what may have been meant."""
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"choose among {', '.join(known)}"


class Lines:
    """The lines of a TOML text.

    Parameters
    ----------
    text : str
        A text that can be parsed, with strings of one line.
    """

    def __init__(self, text: str):
        self._text = text
        self._code = [_without_comment(line) for line in text.splitlines()]

    def entry(self, name: str, index: int) -> range:
        """Return the lines, from 1, of one entry of a list: inline, or under its own heading."""
        headings = [i for i, line in enumerate(self._code, 1) if line.strip() == f"[[{name}]]"]
        if headings:
            others = [i for i, line in enumerate(self._code, 1) if line.lstrip().startswith("[[")]
            ends = [i for i in others if i > headings[index]] or [len(self._code) + 1]
            return range(headings[index], ends[0])
        elements = list(self._elements(name))
        return elements[index] if index < len(elements) else range(1, len(self._code) + 1)

    def find(self, key: str, within: range | None = None) -> int | None:
        """Return the line, from 1, on which a key is assigned, among some lines or all."""
        assigned = re.compile(rf"(^|[^\w-]){re.escape(key)}[\"']?\s*=")
        within = range(1, len(self._code) + 1) if within is None else within
        return next((i for i in within if assigned.search(self._code[i - 1])), None)

    def _elements(self, name: str) -> Iterator[range]:
        """Yield the lines of every element of an inline list."""
        begin = re.search(rf"^[ \t]*{name}[ \t]*=[ \t]*\[", self._text, re.MULTILINE)
        if begin is None:
            return
        line = self._text.count("\n", 0, begin.end()) + 1
        first, depth, quote, comment = 0, 0, "", False
        for before, letter in pairwise(self._text[begin.end() - 1 :]):
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
