"""What benchmarks share: options, processes, rows of problems, and stamps.

Every committed result has a stamp: the command that made it, the versions, the machine
and the day. A record has it in its file. Rows have it in ``run.json`` of their folder,
or in the record of the same name.
"""

import argparse
import gzip
import json
import os
import platform
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from mkclust.version import versions

ROOT = Path(__file__).resolve().parents[1]
# The fields of a stamp.
STAMP = ("command", "versions", "machine", "date")
# Options of a script that say where it writes and which parts it measures: the command
# of a record measures all of it.
NOT_OF_THE_WHOLE = ("--out", "--only", "--contestants")
# The packages whose versions pages name.
NAMED = ("mkclust", "python")
# The file with the stamp of the rows in a folder.
RUN = "run.json"
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


def write_rows(path, run, problems, jobs):
    """Call ``run(*problem)`` in processes, and write the rows it returns into a file.

    They are written as they come, and compressed as one at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    for rows in in_processes(run, problems, jobs):
        with gzip.open(path, "at") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)
    compress(path, gzip.decompress(path.read_bytes()))


def compress(path, content):
    """Write bytes into a compressed file, the same for the same bytes."""
    path.write_bytes(gzip.compress(content, mtime=0))


def read_rows(*paths):
    """Return the rows of files as a frame, without a last line that was cut short."""
    rows = []
    for path in paths:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows += [json.loads(line) for line in lines if line.endswith("}\n")]
    return pd.DataFrame(rows)


def command_line():
    """Return the command that runs, as it is repeated in the root of the
    repository."""
    script = Path(sys.argv[0]).resolve()
    if script.is_relative_to(ROOT):
        script = script.relative_to(ROOT)

    words, is_left_out = [], False
    for word in sys.argv[1:]:
        if word.startswith("--"):
            is_left_out = word.partition("=")[0] in NOT_OF_THE_WHOLE
        if not is_left_out:
            words.append(word)

    # Where the data are is a matter of the machine.
    given = {"MKCLUST_DATA": "DATA", "OMP_NUM_THREADS": os.getenv("OMP_NUM_THREADS")}
    setting = [f"{name}={value}" for name, value in given.items() if name in os.environ]
    return " ".join([*setting, "python", script.as_posix(), shlex.join(words)]).strip()


def stamp(**others):
    """Return what every result carries; `others` are versions of other packages."""
    return {
        "command": command_line(),
        "versions": versions() | others,
        "machine": f"{platform.machine()}, {joblib.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
    }


def minor_version(record):
    """Return the minor version of the library that made a record, None if unknown."""
    version = (record.get("versions") or {}).get("mkclust")
    return version and version.rpartition(".")[0]


def stamp_file(path):
    """Return the file with the stamp of a committed result."""
    if path.suffix == ".json":
        return path
    of_folder = path.parent / RUN
    if of_folder.exists():
        return of_folder
    return path.with_name(path.name.partition(".")[0] + ".json")


def read_stamp(path):
    """Return the stamp of a committed result, of rows too; None for what it lacks."""
    file = stamp_file(path)
    record = json.loads(file.read_text()) if file.exists() else {}
    if not isinstance(record, dict):
        record = {}
    return {field: record.get(field) for field in STAMP}


def in_words(stamp):
    """Return the version, the machine and the day of a stamp, in words."""
    versions = stamp["versions"] or {}
    words = [f"{name} {versions[name]}" for name in NAMED if name in versions]
    return ", ".join([*words, stamp["machine"] or "", stamp["date"] or ""]).strip(", ")


def read_record(path):
    """Return the record of a JSON file, to add to it.

    It is empty if there is none, or one of another minor version or another machine,
    since what they measured is not mixed.
    """
    record = json.loads(path.read_text()) if path.exists() else {}
    now = stamp()
    is_same = record.get("machine") == now["machine"]
    if is_same and minor_version(record) == minor_version(now):
        return record
    return {}


def write_record(path, record, **others):
    """Write a record with its stamp."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_json(record | stamp(**others)) + "\n")


def write_run(rows, **others):
    """Write the stamp of a file of rows into its folder."""
    write_record(rows.parent / RUN, {}, **others)


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


def measure_parts(description, out, parts, measure, **others):
    """Measure the parts that ``--only`` names, maybe on a ``--share`` of the
    samples."""
    parts = {part.__name__: part for part in parts}
    only = {"nargs": "*", "choices": parts, "default": list(parts)}
    options = parse(description, out, only=only, share={"type": float, "default": 1.0})
    record = {"parts": {}} | read_record(options.out)
    for name in options.only:
        try:
            record["parts"][name] = measure(parts[name], options.share)
        except ImportError as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        print(name, json.dumps(record["parts"][name], indent=2), flush=True)
        write_record(options.out, record, **others)


def rounded(values, digits=4):
    """Return numbers by name, rounded."""
    return {name: round(float(value), digits) for name, value in values.items()}
