"""The command ``mkclust rerun``: runs a recorded command, and compares labels."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import read_inputs
from mkclust.cli.models import fit, new_model
from mkclust.cli.options import Request
from mkclust.cli.outputs import check_outputs, fitted_labels, labels_hash, show
from mkclust.cli.progress import session
from mkclust.files import errors_of, write_atomically
from mkclust.text import count
from mkclust.version import versions


def run(request: Request, record_file: Path, *, labels: Path | None = None) -> None:
    """Run a recorded command again, and say whether the labels are the same."""
    with session(quiet=request.quiet) as progress:
        recorded, record = _read_record(record_file)
        outputs = []
        if labels is not None:
            outputs = [labels]

        check_outputs(outputs, [str(record_file), *recorded.inputs])
        new_model(recorded)
        data = read_inputs(recorded, progress)
        model = fit(recorded, data, progress).model
        if labels is not None:
            write_atomically({labels: fitted_labels(model)})
    then = record["versions"]
    inputs = record["inputs"]
    same = labels_hash(model.labels_) == record["labels_sha256"]
    files = [
        n for n, _, now in data.inputs if inputs.get(now["input"]) != now["sha256"]
    ]
    numbers = {
        n: [str(then.get(n)), now]
        for n, now in versions().items()
        if then.get(n) != now
    }
    result = {"same_labels": same, "changed_inputs": files, "changed_versions": numbers}
    size = (
        f"{count(len(model.labels_), 'sample')}, {count(model.n_clusters_, 'cluster')}"
    )
    lines = [
        f"{'Same labels as' if same else 'Other labels than'} {record_file} records: "
        f"{size}."
    ]
    lines += [f"Input {text} has changed: its SHA-256 differs." for text in files]
    lines += [
        f"{name} was {then}, and is {now}." for name, (then, now) in numbers.items()
    ]
    if not same and not files and not numbers:
        lines.append(
            "No input and no version has changed: another machine may round "
            "differently."
        )
    lines += [*progress.lines(request.verbose), *(f"Wrote {path}" for path in outputs)]
    show(result, lines, request)
    if not same:
        raise typer.Exit(1)


def _read_record(path: Path) -> tuple[Request, dict[str, Any]]:
    """Return the request of a record, and the record itself."""
    known = {each.name for each in fields(Request)}
    with errors_of(path):
        text = path.read_bytes()
    try:
        record = json.loads(text)
        # An option that was removed since does not matter if it was not given.
        options = {
            n: v for n, v in record["command"]["options"].items() if n in known or v
        }
        # The memory that is free decides on landmarks, and differs from run to run.
        options["landmarks"] = record["landmarks"] or "none"
        files = record["inputs"]
        inputs = {each["input"]: each["sha256"] for each in files}
        facts = {name: record[name] for name in ("versions", "labels_sha256")}
        return Request(**options), facts | {"inputs": inputs}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        advice = "give one that mkclust cluster of this version wrote"
        raise CommandError(
            f"{path}: is not a record of a run ({found}); {advice}"
        ) from None
