"""The command ``mkclust rerun``: run a recorded command again, and compare the labels."""

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import input_path, read_inputs
from mkclust.cli.models import fit, new_model
from mkclust.cli.options import Printing, Request, takes
from mkclust.cli.outputs import check_outputs, fitted_labels, labels_hash, show
from mkclust.cli.progress import session
from mkclust.explain.sample_scores import sample_scores
from mkclust.files import write_atomically
from mkclust.text import count, join_words
from mkclust.version import versions


@takes()
def run(printing: Printing, record_file: Path, *, labels: Path | None = None) -> None:
    """Run a recorded command again, and say whether the labels are the same or what changed."""
    with session(quiet=printing.quiet) as progress:
        record = _read_record(record_file)
        request = _request(record, record_file)
        outputs = [] if labels is None else [labels]
        check_outputs(outputs, [str(record_file), *request.inputs])
        new_model(request)
        data = read_inputs(request, progress)
        model = fit(request, data, progress).model
        if labels is not None:
            write_atomically({labels: fitted_labels(model, sample_scores(model))})
    then = record.get("versions") or {}
    hashes = {entry.get("input"): entry.get("sha256") for entry in record["inputs"]}
    same = labels_hash(model.labels_) == record["labels_sha256"]
    files = [each["input"] for each in data.files if hashes.get(each["input"]) != each["sha256"]]
    numbers = {n: [str(then.get(n)), now] for n, now in versions().items() if then.get(n) != now}
    result = {"same_labels": same, "changed_inputs": files, "changed_versions": numbers}
    size = f"{count(len(model.labels_), 'sample')}, {count(model.n_clusters, 'cluster')}"
    lines = [f"{'Same labels as' if same else 'Other labels than'} {record_file} records: {size}."]
    lines += [f"Input {text} has changed: its SHA-256 differs." for text in files]
    lines += [f"{name} was {then}, and is {now}." for name, (then, now) in numbers.items()]
    if not same and not files and not numbers:
        lines.append("No input and no version has changed: another machine may round differently.")
    lines += [*progress.lines(printing.verbose), *(f"Wrote {path}" for path in outputs)]
    show(result, lines, printing)
    if not same:
        raise typer.Exit(1)


def _read_record(path: Path) -> dict[str, Any]:
    """Return the record of a run, refusing another file."""
    try:
        record = json.loads(path.read_bytes())
        sound = isinstance(record["command"]["options"]["inputs"], list)
        sound = sound and all(isinstance(entry, dict) for entry in record["inputs"])
    except (ValueError, KeyError, TypeError) as error:
        sound, record = False, {"labels_sha256": str(error)}
    if not sound or "labels_sha256" not in record:
        raise CommandError(f"{path}: is not a run.json of mkclust cluster of this version")
    return record


def _request(record: Mapping[str, Any], path: Path) -> Request:
    """Return what was asked for, with the landmarks that it came to."""
    known = {each.name for each in fields(Request)}
    # An option that was removed since does not matter if it was not given.
    options = {n: value for n, value in record["command"]["options"].items() if n in known or value}
    if unknown := sorted(options.keys() - known):
        has = f"has options that this version does not have, {join_words(unknown)}"
        raise CommandError(f"{path}: {has}; run it with the version that wrote it")
    for text in options["inputs"]:
        if (file := input_path(str(text))) is not None and not file.exists():
            folder = record["command"].get("folder")
            advice = f"; the command was run in {folder}" if folder != os.getcwd() else ""
            raise CommandError(f"{text}: there is no such file here{advice}")
    # The memory that is free decides on landmarks, and differs from run to run.
    return Request(**(options | {"landmarks": record.get("landmarks") or "none"}))
