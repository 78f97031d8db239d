"""What benchmarks share: options, processes, rows of problems, and records of a
machine."""

import argparse
import gzip
import json
import os
import platform
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd

from mkclust.version import versions

# Parameters of KernelBank: one Gaussian kernel per view, as wide as the median
# distance.
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
# Options of scripts: the number of processes, and data sets to run.
JOBS = {"type": int, "default": os.cpu_count()}


def blobs(n, k, dimensions, strengths, places=None):
    """Return views of Gaussian clusters and their classes; `places` merges classes in a
    view."""
    rng = np.random.default_rng(0)
    y, views = rng.integers(k, size=n), {}
    for number, (d, strength) in enumerate(zip(dimensions, strengths, strict=True)):
        place = np.arange(k) if places is None else rng.permutation(k) // places
        views[f"view {number}"] = strength * rng.normal(size=(k, d))[place][y]
        for start in range(0, n, 1 << 16):
            rows = views[f"view {number}"][start : start + (1 << 16)]
            rows += rng.normal(size=rows.shape)
    return views, y


def parse(description, out, **more):
    """Return the options of a script: ``--out``, a file in ``results`` by default, and
    others."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / out
    )
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    return parser.parse_args()


def in_processes(run, tasks, jobs):
    """Yield ``run(*task)`` of every task as it comes, from several processes."""
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, *task) for task in tasks]
        for number, future in enumerate(as_completed(futures), 1):
            yield future.result()
            print(f"{number} of {len(futures)} problems", flush=True)


def add_rows(path, run, problems, jobs):
    """Call ``run(*problem)`` in processes, and add the rows it returns to a file as
    they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for rows in in_processes(run, problems, jobs):
        with gzip.open(path, "at") if path.suffix == ".gz" else path.open("a") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)


def read_rows(*paths):
    """Return the rows of files as a frame, without a last line that was cut short."""
    rows = []
    for path in paths:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows += [json.loads(line) for line in lines if line.endswith("}\n")]
    return pd.DataFrame(rows)


def read_record(path):
    """Return the record of a JSON file; empty if there is none."""
    return json.loads(path.read_text()) if path.exists() else {}


def write_record(path, record, command, **others):
    """Write a record with the command, the machine and the versions that made it."""
    record["command"], record["versions"] = command, versions() | others
    record["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(record) + "\n")


def as_json(record):
    """Return a record as JSON, with one line for every row of a list of rows."""
    rows, marked = [], {}
    for name, value in record.items():
        is_list = isinstance(value, list) and len(value) > 0
        if is_list and all(isinstance(row, dict) for row in value):
            rows.append((name, ",\n  ".join(map(json.dumps, value))))
            value = f"rows of {name}"
        marked[name] = value

    text = json.dumps(marked, indent=1)
    for name, lines in rows:
        text = text.replace(f'"rows of {name}"', f"[\n  {lines}\n ]")
    return text


def measure_parts(description, out, parts, measure, command, **others):
    """Measure the parts that ``--only`` names, maybe on a ``--share`` of the
    samples."""
    parts = {part.__name__: part for part in parts}
    only = {"nargs": "*", "choices": parts, "default": list(parts)}
    options = parse(description, out, only=only, share={"type": float, "default": 1.0})
    record = {"parts": {}} | read_record(options.out)
    for name in options.only:
        record["parts"][name] = measure(parts[name], options.share)
        print(name, json.dumps(record["parts"][name], indent=2), flush=True)
        write_record(options.out, record, f"{command} [--only PART ...]", **others)


def rounded(values, digits=4):
    """Return numbers by name, rounded."""
    return {name: round(float(value), digits) for name, value in values.items()}
