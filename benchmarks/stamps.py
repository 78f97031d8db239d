"""The list of all committed results, with what made them, in ``results/README.md``.

    python benchmarks/stamps.py

writes the part of that page between its two marks anew. A test compares it with the
stamps of the results.
"""

from records import ROOT, RUN, in_words, read_stamp, stamp_file

BENCHMARKS = ROOT / "benchmarks"
FOLDERS = (BENCHMARKS / "results", BENCHMARKS / "speed" / "results")
PAGE = BENCHMARKS / "results" / "README.md"
MARKS = ("<!-- stamps -->", "<!-- end of stamps -->")


def result_files():
    """Return the paths of all committed results."""
    found = [
        path
        for folder in FOLDERS
        for pattern in ("**/*.json", "**/*.jsonl.gz")
        for path in folder.glob(pattern)
    ]
    return sorted(path for path in found if path.name != RUN)


def table():
    """Return a row for every stamp: results, command, and what they were measured
    by."""
    rows = {}
    for path in result_files():
        rows.setdefault(stamp_file(path), []).append(path)
    lines = ["| result | command | measured by |", "| --- | --- | --- |"]
    for file, paths in rows.items():
        names = [path.relative_to(BENCHMARKS).as_posix() for path in paths]
        stamp = read_stamp(file)
        words = in_words(stamp)
        lines.append(f"| {', '.join(names)} | `{stamp['command']}` | {words} |")
    return "\n".join(lines)


def page(text):
    """Return the page with a list of what there is now."""
    before, _, rest = text.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}\n{table()}\n{MARKS[1]}{after}"


def main():
    """Write the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(text), encoding="utf-8")


if __name__ == "__main__":
    main()
