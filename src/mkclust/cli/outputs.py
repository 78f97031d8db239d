"""What comes out: outputs checked before the work begins, then written whole or not at all."""

import csv
import hashlib
import io
import json
import math
import os
import secrets
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import metrics
from mkclust.cli.approximation import KernelChoice
from mkclust.cli.failures import CommandError
from mkclust.cli.inputs import Data, input_path
from mkclust.explain.annotation import Annotation
from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.description import Description
from mkclust.explain.report.page import load_environment
from mkclust.explain.sample_scores import sample_scores
from mkclust.methods.persistence import SUFFIX, import_skops
from mkclust.methods.uncovered import UNCOVERED
from mkclust.version import versions

# What the baseline of a model is, in a table of scores: its clusters are those of AgreementKKM.
COMPROMISE = "what the views agree on"
# Attributes of a fitted model in the record of a run, by their names there.
ATTRIBUTES = {
    "gap": "duality_gap_",
    "certificate": "certificate_",
    "objective": "objective_",
    "cluster_gap": "cluster_gap_",
    "eigengap": "eigengap_",
    "anchor": "anchor_",
    "baseline_agreement": "baseline_agreement_",
    "converged": "converged_",
    "n_iter": "n_iter_",
    "n_passes": "n_passes_",
    "approximation_error": "approximation_error_",
}


@dataclass(frozen=True)
class FinishedRun:
    """A fitted model with all that is printed and recorded of it."""

    model: Any
    method: str
    data: Data
    kernel_choice: KernelChoice
    scores: dict[str, dict[str, float]]
    warnings: list[str]
    seconds: float
    description: Description | None = None
    annotation: Annotation | None = None
    suggestion: NumberOfClusters | None = None


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before the work begins."""
    if path is None:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        advice = 'pip install "mkclust[plot]"'
        raise CommandError(f"drawing {path} needs matplotlib; install it with: {advice}") from None
    formats = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        choices = ", ".join(formats)
        raise CommandError(f"{path}: {_suffix(path)} for a picture; choose from: {choices}")


def check_report(path: Path | None) -> None:
    """Refuse a page that could not be written, before the work begins."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"{path}: {_suffix(path)} for a report, which is a page: name it .html")
    try:
        load_environment()
    except ImportError as error:
        raise CommandError(f"writing {path}: {error}") from None


def check_model_file(path: Path | None) -> None:
    """Refuse a model that could not be saved, before the work begins."""
    if path is None:
        return
    if path.suffix.lower() != SUFFIX:
        raise CommandError(f"{path}: {_suffix(path)} for a model: name it {path.stem}{SUFFIX}")
    try:
        import_skops()
    except ImportError as error:
        raise CommandError(f"{path}: {error}") from None


def _suffix(path: Path) -> str:
    """Return in words what is wrong with the suffix of a path."""
    return f"unknown suffix {path.suffix!r}" if path.suffix else "no suffix"


def check_outputs(
    paths: Sequence[Path], inputs: Sequence[str] = (), new_folder: bool = False
) -> None:
    """Refuse outputs that could not be written or would destroy something."""
    other_files = [path for text in inputs if (path := input_path(text))]
    for path in paths:
        check_apart([path], other_files)
        other_files.append(path)
        _check_target(path)
        folder = Path(os.path.realpath(path)).parent
        while new_folder and not folder.exists():
            folder = folder.parent
        if not folder.exists():
            raise CommandError(f"{path}: there is no folder {path.parent}; create it first")
        # Permission bits do not tell all (root, read-only disks), so try.
        draft = folder / f".{secrets.token_hex(8)}"
        try:
            draft.touch(exist_ok=False)
            draft.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(f"{path}: cannot write to this folder ({reason})") from error


def check_apart(paths: Sequence[Path], other_files: Sequence[Path]) -> None:
    """Refuse outputs that are one of some other files, whatever its name."""
    for path in paths:
        if any(_is_same_file(path, other) for other in other_files):
            raise CommandError(
                f"{path}: is an input, or another output; give each output its own name"
            )


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, be it there or not."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return path.exists() and other.exists() and os.path.samefile(path, other)


def _check_target(path: Path) -> None:
    """Refuse to replace what is not a plain file of its own."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}; give another name") from error
    if stat.S_ISDIR(status.st_mode):
        raise CommandError(f"{path}: is a folder; give the name of a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(
            f"{path}: is not a regular file, and only regular files can be written "
            "completely or not at all; give another name"
        )
    for stream, name in ((1, "standard output"), (2, "standard error")):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), status):
                raise CommandError(f"{path}: is where {name} goes; give another name")


@contextmanager
def noted_failure(path: Path, action: str, failures: dict[Path, str]) -> Iterator[None]:
    """Note a failure to write a path, which takes back nothing that is written already."""
    try:
        yield
    except Exception as error:
        # Drawing may raise nearly anything, and none of it takes back a finished fit.
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        failures[path] = f"{path}: cannot be {action} ({reason})"


def labels_csv(model: Any) -> bytes:
    """Return the clusters as a table: one row a sample, by its id or else its number from 0.

    Ids are written as they are, so that the table can be joined with others by them; what is not
    known (silhouettes of a single cluster) is an empty cell.
    """
    labels, scores = np.asarray(model.labels_), sample_scores(model)
    ids = getattr(model, "sample_ids_", range(len(labels)))
    file = io.StringIO(newline="")
    # Some versions of Python leave a carriage return without quotes, which cuts the row in two.
    if any("\r" in str(name) for name in ids):
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    else:
        writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "cluster", "silhouette", "margin"])
    columns = (labels.tolist(), map(_score, scores.silhouette), map(_score, scores.margin))
    writer.writerows(zip(map(str, ids), *columns, strict=True))
    return file.getvalue().encode("utf-8", "backslashreplace")


def _score(value: float) -> str:
    """Return a score in four decimals without a minus before a zero; nothing for NaN."""
    return f"{round(value, 4) + 0.0:.4f}" if math.isfinite(value) else ""


def run_record(finished_run: FinishedRun) -> dict[str, Any]:
    """Return all that is worth keeping of a run."""
    model, data = finished_run.model, finished_run.data
    labels = np.asarray(model.labels_)
    annotation, description = finished_run.annotation, finished_run.description
    scores, choice = list(finished_run.scores.values()), finished_run.kernel_choice
    return {
        "method": finished_run.method,
        "n_samples": data.samples.n_samples,
        "n_clusters": model.n_clusters,
        "cluster_sizes": np.bincount(labels[labels != UNCOVERED]),
        "uncovered_samples": getattr(model, "uncovered_samples_", None),
        "labels_sha256": labels_hash(model.labels_),
        "suggestion": suggestion_record(finished_run.suggestion),
        "kernel_names": list(model.kernel_names_),
        "weights": model.weights_,
        "alignments": model.alignments_,
        "agreement": agreement_record(model),
        "missingness": missingness_record(model),
        "kernel_choice": choice.sentence or None,
        "rules": model.bank_.rules_ if hasattr(model, "bank_") else None,
        "approximation": None if choice.landmarks is None else "nystroem",
        "landmarks": choice.landmarks,
        **{key: getattr(model, attribute, None) for key, attribute in ATTRIBUTES.items()},
        "scores": scores[0] if scores else None,
        "baseline_scores": scores[1] if len(scores) > 1 else None,
        "description": description.to_dict() if description is not None else None,
        "annotation": annotation.to_dict() if annotation is not None else None,
        "warnings": finished_run.warnings,
        "parameters": model.get_params(deep=False),
        "seed": model.random_state,
        "seconds": {
            "kernels": getattr(model, "kernel_seconds_", None),
            "check": getattr(model, "check_seconds_", None),
            "solve": getattr(model, "solve_seconds_", None),
            "agreement": getattr(model, "agreement_seconds_", None),
            "labels": getattr(model, "label_seconds_", None),
            "alignments": getattr(model, "alignment_seconds_", None),
            "fit": getattr(model, "fit_seconds_", None),
            "total": finished_run.seconds,
        },
        "versions": versions(),
        "inputs": data.files,
    }


def labels_hash(labels: Any) -> str:
    """Return a fingerprint of clusters, whatever file they are written to."""
    return hashlib.sha256(np.asarray(labels).astype("<i8").tobytes()).hexdigest()


def agreement_record(model: Any) -> dict[str, Any] | None:
    """Return what the kernels share, None where there is one only."""
    agreement = getattr(model, "agreement_", None)
    if agreement is None:
        return None
    common = {"common_samples": agreement.pair_samples} if agreement.is_incomplete else {}
    return common | {
        "verdict": agreement.verdict(),
        "alignments": agreement.alignments,
        "chances": agreement.chances,
        "groups": [[agreement.names[p] for p in group] for group in agreement.groups],
        # Of the method: one that hears every kernel has set none aside, whatever they share.
        "set_aside": list(getattr(model, "set_aside_", ())),
    }


def missingness_record(model: Any) -> dict[str, Any] | None:
    """Return how clusters and missing views go together, None where no sample is missing."""
    missingness = getattr(model, "missingness_", None)
    return None if missingness is None else missingness.to_dict()


def suggestion_record(suggestion: NumberOfClusters | None) -> dict[str, Any] | None:
    """Return how the number of clusters was chosen, None where it was given."""
    if suggestion is None:
        return None
    record = {field.name: getattr(suggestion, field.name) for field in fields(suggestion)}
    return record | {
        "strength": suggestion.strength._asdict(),
        "excess": suggestion.excess,
        "candidates": suggestion.candidates,
        "is_unclear": suggestion.is_unclear,
    }


def strict_json(record: Any) -> str:
    """Return a record as JSON that every reader takes: no NaN, no infinity, nothing invisible."""
    text = json.dumps(_as_json(record), indent=2, allow_nan=False, ensure_ascii=False)
    # Only within strings can there be such characters, so that an escape reads as the same text.
    characters = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    return "".join(characters) + "\n"


def _as_json(value: Any) -> Any:
    """Return a value as JSON knows them, numbers that are not finite as None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


def all_scores(model: Any, y: Any) -> dict[str, dict[str, float]]:
    """Return the scores of a fit and of its baseline, or nothing without labels."""
    if y is None:
        return {}
    known = np.asarray(model.labels_) != UNCOVERED
    try:
        y = np.asarray(y)[known]
        scores = {type(model).__name__: metrics.scores(y, model.labels_[known])}
        if hasattr(model, "baseline_labels_"):
            scores[COMPROMISE] = metrics.scores(y, model.baseline_labels_[known])
    except (ValueError, TypeError) as error:
        # Labels never decide whether a fit succeeds.
        warnings.warn(f"no scores: {error}", stacklevel=2)
        return {}
    return scores
