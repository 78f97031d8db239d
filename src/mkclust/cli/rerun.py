"""The command ``mkclust rerun``: run a recorded command again, and compare the labels."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mkclust.cli import fitting
from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    recorded_warnings,
    say_last,
    show_warnings,
)
from mkclust.cli.inputs import input_path
from mkclust.cli.like_cluster import WRITING, request_for
from mkclust.cli.options import OUTPUT, Json, Quiet, Verbose
from mkclust.cli.outputs import check_outputs, labels_csv, labels_hash, strict_json
from mkclust.cli.printing import Progress, count, phase_lines
from mkclust.cli.request import Request
from mkclust.files import write_atomically
from mkclust.text import join_words
from mkclust.version import versions

RecordFile = Annotated[
    Path,
    typer.Argument(
        metavar="RUN.json",
        help="The record of a run that mkclust cluster has written. If it names a method "
        "of your own (package.module:Class), that module is imported, which runs its "
        "code: use only records that you trust.",
    ),
]
NewLabels = Annotated[
    Path | None,
    typer.Option(
        "--labels", **OUTPUT, help="Where to write the labels; by default they are not written."
    ),
]


def run(
    record_file: RecordFile,
    labels: NewLabels = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a recorded command again, and say whether the labels are the same or what changed."""
    record = _read_record(record_file)
    # How much is said is up to this command, not to the recorded one.
    request = replace(_request(record, record_file), quiet=quiet, as_json=as_json)
    outputs = [] if labels is None else [labels]
    check_outputs(outputs, [str(record_file), *request.inputs])
    _check_inputs(request.inputs, record)
    with Progress(quiet=quiet) as progress, recorded_warnings() as log, expected_failures():
        model = fitting.new_model(request)
        with fitting.connection(request.address, progress):
            data = fitting.read_data(request, progress)
            fitting.fit_model(request, model, data, progress)
        if labels is not None:
            write_atomically({labels: labels_csv(model)})
    same = labels_hash(model.labels_) == record["labels_sha256"]
    inputs = _changed_inputs(record["inputs"], data.files)
    packages = _changed_versions(record.get("versions"))
    if not quiet:
        show_warnings(log)
    if as_json:
        result = {"same_labels": same, "changed_inputs": inputs, "changed_versions": packages}
        say_last(strict_json(result).rstrip("\n"), files=outputs)
    elif not quiet:
        size = f"{len(model.labels_)} samples, {count(model.n_clusters, 'cluster')}"
        words = "Same labels as" if same else "Other labels than"
        lines = [f"{words} {record_file} records: {size}."]
        lines += _explain(inputs, packages, same=same)
        lines += ["", *phase_lines(progress.seconds)] if verbose else []
        say_last("\n".join([*lines, *(f"Wrote {path}" for path in outputs)]), files=outputs)
    if not same:
        raise typer.Exit(1)


def _read_record(path: Path) -> dict[str, Any]:
    """Return the record of a run, refusing what is none."""
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(f"{path}: is not JSON ({error}); give the record of a run") from error
    command = record.get("command") if isinstance(record, dict) else None
    options = command.get("options") if isinstance(command, dict) else None
    inputs = record.get("inputs") if isinstance(record, dict) else None
    sound = isinstance(inputs, list) and all(isinstance(entry, dict) for entry in inputs)
    if not isinstance(options, dict) or not sound or "labels_sha256" not in record:
        raise CommandError(
            f"{path}: does not record a command that can be run again; give a run.json "
            "that mkclust cluster of this version has written beside its labels"
        )
    return record


def _request(record: Mapping[str, Any], path: Path) -> Request:
    """Return the recorded request, without its outputs, with the approximation it came to."""
    options = dict(record["command"]["options"])
    known = {field.name for field in fields(Request)}
    if unknown := sorted(options.keys() - known):
        raise CommandError(
            f"{path}: records options that this version does not have, {join_words(unknown)}; run "
            "it with the version that wrote it"
        )
    inputs = options.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
        raise CommandError(f"{path}: records no inputs; give the record of a run")
    # What is free of memory decides on landmarks, and may be another amount by now.
    if record.get("landmarks") is not None:
        options |= {"approximation": "nystroem", "landmarks": record["landmarks"]}
    elif options.get("approximation") == "auto":
        options |= {"approximation": "none", "landmarks": None}
    return request_for(**{name: options[name] for name in options if name not in WRITING})


def _check_inputs(inputs: Sequence[str], record: Mapping[str, Any]) -> None:
    """Refuse to begin where an input is missing, and say where the command was run."""
    for text in inputs:
        path = input_path(text)
        if path is not None and not path.exists():
            folder = record["command"].get("folder")
            advice = f"; the command was run in {folder}" if folder != os.getcwd() else ""
            raise CommandError(f"{text}: there is no such file here{advice}")


def _changed_inputs(
    recorded: Sequence[Mapping[str, Any]], inputs: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the inputs whose contents are not the recorded ones."""
    hashes = {entry.get("input"): entry.get("sha256") for entry in recorded}
    return [each["input"] for each in inputs if hashes.get(each["input"]) != each["sha256"]]


def _changed_versions(recorded: Any) -> dict[str, list[str]]:
    """Return the packages of another version: the recorded one, and that of now."""
    here, recorded = versions(), recorded if isinstance(recorded, dict) else {}
    pairs = {name: [str(recorded.get(name, "unknown")), now] for name, now in here.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _explain(inputs: list[str], packages: dict[str, list[str]], *, same: bool) -> list[str]:
    """Say what has changed since the record."""
    lines = [f"Input {text} has changed: its SHA-256 differs." for text in inputs]
    lines += [f"{name} was {then}, and is {now}." for name, (then, now) in packages.items()]
    if not lines and not same:
        lines.append(
            "No input and no version has changed: another machine, or number of threads, may round "
            "otherwise."
        )
    return lines
