"""A compressed copy of the rows of a benchmark that gives the same tables.

    python benchmarks/archive.py DIR benchmarks/results/paper

The settings that are repeated in full keep all their rows and solves; every grid point has one more
row, with the means of the repetitions that compared it.
"""

import argparse
import gzip
import itertools
import math
from pathlib import Path

from mkclust.bench.rows import SCORES, as_lines, best_settings, read_rows, read_solves

NAMES = ("dataset", "method", "parameters", "repetition")


def summary_of(scored):
    """Return a row with the means of the repetitions that compare settings."""
    first = [row for row in scored if row["repetition"] < row["grid_repetitions"]]
    means = {n: math.fsum(row[n] for row in first) / len(first) for n in (*SCORES, "ari")}
    return scored[0] | {"repetition": None, "n_repetitions": len(first), "seed": None} | means


def condense(rows):
    """Return the rows to keep, and the data set, method and parameters that keep all of theirs."""
    groups = {}
    for row in sorted(rows, key=lambda row: [row[name] for name in NAMES]):
        settings = groups.setdefault((row["dataset"], row["method"]), {})
        settings.setdefault(row["parameters"], []).append(row)
    kept, repeated = [], set()
    for key, settings in groups.items():
        chosen = set(best_settings(itertools.chain(*settings.values())).values())
        repeated |= {(*key, name) for name in chosen}
        for name, own in settings.items():
            scored = [row for row in own if row["status"] == "ok"]
            kept += own if name in chosen else [row for row in own if row["status"] != "ok"]
            if len(settings) > 1 and scored:
                kept.append(summary_of(scored))
    return kept, repeated


def archive(folder, target):
    """Write ``rows.jsonl.gz`` and ``solves.jsonl.gz`` of a run into a folder."""
    rows, repeated = condense(read_rows(folder))
    solves = [s for s in read_solves(folder) if tuple(s[name] for name in NAMES[:3]) in repeated]
    solves.sort(key=lambda solve: [solve[name] for name in NAMES[:3]])
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in (("rows", rows), ("solves", solves)):
        (target / f"{name}.jsonl.gz").write_bytes(gzip.compress(as_lines(lines), mtime=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of mkclust bench")
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    archive(options.folder, options.target)
