"""What comes out: checked before the work begins, written whole or not at all."""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkclust import metrics
from mkclust.cli.errors import CommandError, echo
from mkclust.cli.inputs import input_path
from mkclust.cli.models import Fit, forgiving
from mkclust.cli.options import Request
from mkclust.explain.annotate import Annotation
from mkclust.explain.clarity import Clarity
from mkclust.explain.describe import Description
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.sample_scores import SampleScores, sample_scores
from mkclust.explain.stability import Stability
from mkclust.files import write_atomically
from mkclust.fit import MultipleKernelClusterer
from mkclust.plots.style import names_of
from mkclust.text import spreadsheet_text
from mkclust.version import versions

# Modules, the extra that installs them, and suffixes of files, by option.
PICTURE = (("matplotlib",), "plot", (".png", ".pdf", ".svg", ".jpg", ".eps"))
NEEDED = {
    "plot": PICTURE,
    "picture": PICTURE,
    "report": (("jinja2", "matplotlib"), "report", (".html", ".htm")),
    "save": (("skops",), "save", (".skops",)),
}


@dataclass(frozen=True)
class Outcome:
    """All that is printed and recorded of a fit."""

    fit: Fit
    method: str
    sample_scores: SampleScores
    stability: Stability | None
    scores: dict[str, dict[str, float]]
    warnings: list[str]
    seconds: float
    description: Description | None
    annotation: Annotation | None

    @property
    def silhouette(self) -> float:
        """Mean silhouette of the samples, NaN if there is none."""
        return float(pd.Series(self.sample_scores.silhouette).mean())

    @property
    def clarity(self) -> Clarity:
        """How clear the clusters are, by all that was measured."""
        k = self.fit.model.n_clusters_
        return Clarity.of_fit(k, self.silhouette, self.stability, self.fit.suggestion)


def check_outputs(
    asked: Mapping[str, Path | None], inputs: Sequence[str] = ()
) -> list[Path]:
    """Return the outputs that options ask for; refuse those that cannot be written.

    None may replace an input.
    """
    taken = {os.path.realpath(input_path(text)) for text in inputs}
    paths = {kind: path for kind, path in asked.items() if path is not None}
    for kind, path in paths.items():
        if kind in NEEDED:
            _check_kind(kind, path)
        target = Path(os.path.realpath(path))
        if str(target) in taken:
            raise CommandError(
                f"{path}: is an input, or another output; give it another name"
            )
        taken.add(str(target))
        if target.exists() and not target.is_file():
            raise CommandError(f"{path}: is not a regular file; give the name of one")
        folder = next(each for each in target.parents if each.exists())
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass  # permissions do not tell everything, so try
        except OSError as error:
            raise CommandError(f"{path}: cannot be written ({error})") from error
    return list(paths.values())


def _check_kind(kind: str, path: Path) -> None:
    """Refuse an output with another suffix, or whose package is not installed."""
    modules, extra, suffixes = NEEDED[kind]
    if path.suffix.lower() not in suffixes:
        raise CommandError(
            f"--{kind} {path}: give it a suffix of {', '.join(suffixes)}"
        )
    try:
        for module in modules:
            import_module(module)
    except ImportError as error:
        raise CommandError(
            f'--{kind} {path}: {error}; install it: pip install "mkclust[{extra}]"'
        ) from None


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture whole or not at all."""
    write_atomically({path: lambda draft: figure.savefig(draft, dpi=150)})


def labels_csv(
    ids: Any, labels: Any, titles: Sequence[str] | None = None, **scores: Any
) -> bytes:
    """Return ids, clusters and scores as a table; unknown values are empty cells.

    If clusters have titles, a column has these.
    """
    table = pd.DataFrame({"id": list(map(spreadsheet_text, ids)), "cluster": labels})
    if titles is not None:
        names = dict(enumerate(map(spreadsheet_text, titles)))
        table["name"] = table["cluster"].map(names).fillna("")
    for name, values in scores.items():
        table[name] = np.round(np.asarray(values, float), 4) + 0.0
    text = table.to_csv(index=False, float_format="%.4f", lineterminator="\n")
    return text.encode("utf-8", "backslashreplace")


def fitted_labels(
    model: MultipleKernelClusterer, scores: SampleScores | None = None
) -> bytes:
    """Return the table of the clusters of a fit, by ids or else by numbers from 0."""
    scores = scores or sample_scores(model)
    labels = np.asarray(model.labels_)
    return labels_csv(
        getattr(model, "sample_ids_", range(len(labels))),
        labels,
        names_of(model),
        silhouette=scores.silhouette,
        margin=scores.margin,
    )


def labels_hash(labels: Any) -> str:
    """Return a fingerprint of clusters, whatever file they are written to."""
    return hashlib.sha256(np.asarray(labels, "<i8").tobytes()).hexdigest()


def run_record(outcome: Outcome) -> dict[str, Any]:
    """Return all that is worth keeping of a run."""
    fit = outcome.fit
    model = outcome.fit.model
    labels = np.asarray(model.labels_)
    scores = [*outcome.scores.values(), None, None]
    # Attributes of a fitted model in the record of a run, there without the underscore.
    recorded = (
        "certificate_",
        "objective_",
        "cluster_gap_",
        "eigengap_",
        "anchor_",
        "baseline_agreement_",
        "converged_",
        "n_iter_",
        "n_passes_",
        "approximation_error_",
        "uncovered_samples_",
    )
    return {
        "method": outcome.method,
        "n_samples": len(labels),
        "n_clusters": model.n_clusters_,
        "cluster_sizes": np.bincount(labels[labels >= 0]),
        "cluster_names": names_of(model),
        "labels_sha256": labels_hash(labels),
        "silhouette": outcome.silhouette,
        "stability": None if outcome.stability is None else outcome.stability.mean,
        "suggestion": suggestion_record(fit.suggestion),
        "kernel_names": list(model.kernel_names_),
        "weights": model.weights_,
        "alignments": model.alignments_,
        "agreement": agreement_record(model),
        "missingness": getattr(model, "missingness_", None),
        "kernel_choice": fit.decision or None,
        "rules": model.bank_.rules_ if hasattr(model, "bank_") else None,
        "landmarks": fit.landmarks,
        "gap": getattr(model, "duality_gap_", None),
        **{name.removesuffix("_"): getattr(model, name, None) for name in recorded},
        "scores": scores[0],
        "baseline_scores": scores[1],
        "description": outcome.description,
        "annotation": outcome.annotation,
        "warnings": outcome.warnings,
        "parameters": model.get_params(deep=False),
        "seed": model.random_state,
        "seconds": {
            "solve": getattr(model, "solve_seconds_", None),
            "fit": getattr(model, "fit_seconds_", None),
            "total": outcome.seconds,
        },
        "versions": versions(),
        "inputs": [each.record for each in fit.data.inputs],
    }


def agreement_record(model: MultipleKernelClusterer) -> dict[str, Any] | None:
    """Return what the kernels share, None for a single one."""
    agreement = getattr(model, "agreement_", None)
    if agreement is None:
        return None
    record = {
        "verdict": agreement.verdict(),
        "alignments": agreement.alignments,
        "p_values": agreement.p_values,
        "groups": [[agreement.names[p] for p in group] for group in agreement.groups],
        "set_aside": list(getattr(model, "set_aside_", ())),
    }
    if agreement.is_incomplete:
        record["common_samples"] = agreement.pair_samples
    return record


def suggestion_record(suggestion: NumberOfClusters | None) -> dict[str, Any] | None:
    """Return how the number of clusters was chosen, None if it was given."""
    if suggestion is None:
        return None

    # Attributes of a suggested number of clusters that are recorded.
    recorded = (
        "n_clusters",
        "candidates",
        "evidence",
        "k_values",
        "scores",
        "eigengaps",
        "tightness",
        "agreements",
        "stabilities",
        "n_samples",
    )
    record = {name: getattr(suggestion, name) for name in recorded}
    return record | {"tests": suggestion.tests and asdict(suggestion.tests)}


def strict_json(record: Any) -> str:
    """Return a record as JSON; numbers that are not finite are null."""
    text = json.dumps(_as_json(record), indent=2, allow_nan=False, ensure_ascii=False)
    # Only strings hold such characters, and an escape reads as the same text.
    return "".join(
        c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text
    )


def show(record: Any, lines: Sequence[str], request: Request) -> None:
    """Print a record as JSON, or else lines unless nothing is to be printed."""
    if request.as_json:
        echo(strict_json(record))
    elif not request.quiet:
        echo("\n".join(lines))


def _as_json(value: Any) -> Any:
    """Return a value in the types of JSON; what has none, as its repr."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)


def all_scores(model: MultipleKernelClusterer, y: Any) -> dict[str, dict[str, float]]:
    """Return the scores of a fit and of its baseline, or nothing without labels."""
    if y is None:
        return {}
    labels = {type(model).__name__: np.asarray(model.labels_)}
    if hasattr(model, "baseline_labels_"):
        labels["what the views agree on"] = np.asarray(model.baseline_labels_)
    known = np.asarray(model.labels_) >= 0
    found = forgiving(
        "no scores",
        lambda: {
            name: metrics.scores(y[known], each[known]) for name, each in labels.items()
        },
    )
    return found or {}
