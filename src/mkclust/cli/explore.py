"""The commands ``suggest``, ``diagnose``, ``compare`` and ``rerun``."""

import json
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from mkclust import metrics, plots
from mkclust.cli import models
from mkclust.cli.errors import CommandError, one_line
from mkclust.cli.inputs import Data, read_inputs
from mkclust.cli.models import Fit, check_method, new_model, prepare
from mkclust.cli.options import Request
from mkclust.cli.outputs import (
    agreement_record,
    all_scores,
    check_outputs,
    fitted_labels,
    labels_hash,
    save_figure,
    show,
    suggestion_record,
)
from mkclust.cli.progress import Progress, session
from mkclust.explain.diagnose import diagnose as diagnose_fit
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.files import errors_of, write_atomically
from mkclust.methods import METHODS
from mkclust.text import count, join_words, text_table
from mkclust.version import versions
from mkclust.watch import steps

# What every comparison ends with.
CAUTION = (
    "Agreement is not truth: methods that use the same kernels share their mistakes, "
    "and what is stable may be one cloud that is cut in the same place every time."
)


def suggest(
    request: Request,
    *,
    first: int | None = None,
    last: int | None = None,
    picture: Path | None = None,
) -> None:
    """Say which number of clusters fits best, and how strong the evidence is."""
    k_values = None
    if first or last:
        least = first or 2
        k_values = range(least, (last or max(25, least)) + 1)
        if not k_values:
            raise CommandError(
                f"--from {least} --to {last}: there is no number between them"
            )
    request = replace(request, n_clusters=2)
    with session(quiet=request.quiet) as progress:
        check_outputs({"picture": picture}, request.inputs)
        prepared = prepare(request, new_model(request), read_inputs(request, progress))
        suggestion = models.suggest(prepared, progress, k_values)
        if picture is not None:
            _draw_tree(suggestion, picture)
    lines = [suggestion.summary(), *progress.lines(request.verbose)]
    show(suggestion_record(suggestion), lines, request)


def _draw_tree(suggestion: NumberOfClusters, path: Path) -> None:
    """Draw the tree of the clusters of several numbers into a file."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    tree = plots.ClusterTreeDisplay.from_suggestion(suggestion, ax=figure.subplots())
    figure.set_size_inches(tree.figsize)
    save_figure(figure, path)


def diagnose(request: Request, *, leave_one_out: bool = True) -> None:
    """Say what each view contributes: structure, agreement, a copy, or noise."""
    with session(quiet=request.quiet) as progress:
        new_model(request)
        fitted = models.fit(request, read_inputs(request, progress), progress)
        progress.phase("diagnosing")
        diagnosis = diagnose_fit(fitted.model, fitted.X, leave_one_out=leave_one_out)

    # Recorded attributes of a diagnosis, in addition to its table, the agreement and
    # the missingness.
    recorded = (
        "method",
        "n_clusters",
        "names",
        "redundancy",
        "noise",
        "duplicates",
        "n_samples",
        "n_diagnosed",
        "refit_agreement",
    )
    record = {name: getattr(diagnosis, name) for name in recorded}
    record |= diagnosis.table.to_dict("list")
    record["view_agreement"] = agreement_record(fitted.model)
    record["missingness"] = getattr(fitted.model, "missingness_", None)
    lines = [diagnosis.summary(), *progress.lines(request.verbose)]
    show(record, lines, request)


def compare(
    request: Request, *, methods: str | None = None, n_resamples: int = 5
) -> None:
    """Cluster with several methods, and show how far they agree, and are stable."""
    names = [name.strip() for name in (methods or ",".join(METHODS)).split(",")]
    labels: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    with session(quiet=request.quiet) as progress:
        for name in names:
            check_method(name)
        data = read_inputs(request, progress)
        progress.phase(f"comparing {len(names)} methods")
        for name in steps(names):
            own = replace(request, method=name)
            try:
                if methods is None:
                    _refuse_slow(prepare(own, new_model(own), data), own)
                labels[name], found[name] = _try_method(own, data, n_resamples)
            except (CommandError, ValueError, ArithmeticError, MemoryError) as error:
                left_out[name] = one_line(error) or type(error).__name__
        if not found:
            raise CommandError(
                f"no method gave clusters; {names[0]}: {left_out[names[0]]}"
            )
    pairs = [
        [metrics.adjusted_rand_index(a, b) for b in labels.values()]
        for a in labels.values()
    ]
    record = {"methods": found, "adjusted_rand_index": pairs, "left_out": left_out}
    lines = [_comparison(found, pairs, left_out), *progress.lines(request.verbose)]
    show(record | {"caution": CAUTION}, lines, request)


def _try_method(
    request: Request, data: Data, n_resamples: int
) -> tuple[Any, dict[str, Any]]:
    """Return the clusters of a method, and what is recorded of it."""
    start = time.perf_counter()
    fitted = models.fit(request, data, Progress([], quiet=True))
    seconds = time.perf_counter() - start
    model = fitted.model
    labels = np.asarray(model.labels_)
    scores = all_scores(model, data.labels_for(model))
    stability = models.measure_stability(fitted, n_resamples)
    return labels, {
        "cluster_sizes": np.bincount(labels[labels >= 0]),
        "stability": None if stability is None else stability.mean,
        "gap": getattr(model, "duality_gap_", None),
        "seconds": seconds,
        "set_aside": list(getattr(model, "set_aside_", ())),
        "scores": next(iter(scores.values()), None),
    }


def _refuse_slow(prepared: Fit, request: Request) -> None:
    """Refuse a fit that would take minutes; one of too much memory refuses itself."""
    data = prepared.data
    n_kernels = len(data.views)
    if n_kernels == 1 and not data.precomputed and not request.kernels:
        n_kernels = 12  # one table becomes a bank
    is_quick = prepared.landmarks is not None or prepared.model.LEARNS_FROM_ANCHORS
    n_entries = n_kernels * data.n_samples**2
    # From this product on, a fit takes minutes.
    if not is_quick and METHODS[request.method].SLOWNESS * n_entries > 5e8:
        raise CommandError(
            f"takes long; --methods {request.method} runs it all the same"
        )


def _comparison(
    found: dict[str, dict[str, Any]],
    pairs: Sequence[Sequence[float]],
    left_out: dict[str, str],
) -> str:
    """Return a table of the methods, one of how far they agree, and what they mean."""
    rows = [["method", "stability", "gap", "seconds", "ARI (%)"]]
    matrix = [["adjusted Rand index"]]
    notes = []
    for number, (name, each) in enumerate(found.items(), start=1):
        title = f"{number:2} {name}"
        values = [each["stability"], each["gap"], each["seconds"], None]
        if each["scores"] is not None:
            values[-1] = 100 * each["scores"]["ari"]
        rows.append([title, *("-" if x is None else f"{x:.3g}" for x in values)])
        matrix[0].append(str(number))
        matrix.append([title, *(f"{x:.2f}" for x in pairs[number - 1])])
        if each["set_aside"]:
            notes.append(f"{name} sets aside: {join_words(each['set_aside'])}.")
    lines = [text_table(rows), "", text_table(matrix), "", *notes]
    lines += [f"Left out: {name}: {reason}." for name, reason in left_out.items()]
    lines.append(
        "Stability: the agreement of clusters of parts of the samples with those of "
        "all. Gap: how far the objective is above the global optimum at most, if a "
        "method certifies it."
    )
    return "\n".join([*lines, CAUTION])


def rerun(request: Request, record_file: Path, *, labels: Path | None = None) -> None:
    """Run a recorded command again, and say whether the labels are the same."""
    with session(quiet=request.quiet) as progress:
        recorded, record = _read_record(record_file)
        inputs = [str(record_file), *recorded.inputs]
        outputs = check_outputs({"labels": labels}, inputs)
        new_model(recorded)
        data = read_inputs(recorded, progress)
        model = models.fit(recorded, data, progress).model
        write_atomically({path: fitted_labels(model) for path in outputs})
    then = record["versions"]
    same = labels_hash(model.labels_) == record["labels_sha256"]
    hashes = {each["input"]: each["sha256"] for each in record["inputs"]}
    files = [
        n for n, _, now in data.inputs if hashes.get(now["input"]) != now["sha256"]
    ]
    numbers = {
        n: [str(then.get(n)), now]
        for n, now in versions().items()
        if then.get(n) != now
    }
    result = {"same_labels": same, "changed_inputs": files, "changed_versions": numbers}
    lines = [
        f"{'Same labels as' if same else 'Other labels than'} {record_file} records: "
        f"{count(len(model.labels_), 'sample')}, "
        f"{count(model.n_clusters_, 'cluster')}."
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
        return Request(**options), record
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{path}: is not a record of a run ({error!r}); give one that mkclust "
            "cluster of this version wrote"
        ) from None
