"""The commands ``suggest``, ``diagnose`` and ``compare``, which write no files."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import metrics, plots
from mkclust.cli import models
from mkclust.cli.errors import CommandError, one_line
from mkclust.cli.inputs import Data, read_inputs
from mkclust.cli.models import Fit, check_method, new_model, prepare
from mkclust.cli.options import Request
from mkclust.cli.outputs import (
    agreement_record,
    all_scores,
    as_record,
    check_output,
    check_outputs,
    show,
    suggestion_record,
)
from mkclust.cli.progress import Progress, session
from mkclust.explain.diagnose import diagnose as diagnose_fit
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.files import write_atomically
from mkclust.methods import METHODS
from mkclust.text import join_words, text_table

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
    if first is None and last is not None:
        first = 2
    k_values = None
    if first is not None:
        k_values = range(first, (last or max(25, first)) + 1)
    if k_values is not None and not k_values:
        raise CommandError(
            f"--from {first} --to {last}: there is no number between them"
        )
    request = replace(request, n_clusters=2)
    with session(quiet=request.quiet) as progress:
        check_output("picture", picture)
        if picture is not None:
            check_outputs([picture], request.inputs)
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
    write_atomically({path: lambda draft: figure.savefig(draft, dpi=150)})


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
    columns = diagnosis.table.items()
    record |= {name: column.to_numpy() for name, column in columns}
    record["view_agreement"] = agreement_record(fitted.model)
    record["missingness"] = as_record(getattr(fitted.model, "missingness_", None))
    lines = [diagnosis.summary(), *progress.lines(request.verbose)]
    show(record, lines, request)


def compare(
    request: Request, *, methods: str | None = None, n_resamples: int = 5
) -> None:
    """Cluster with several methods, and show how far they agree, and are stable."""
    names = list(METHODS)
    if methods is not None:
        names = [name.strip() for name in methods.split(",")]
    labels: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    with session(quiet=request.quiet) as progress:
        for name in names:
            check_method(name)
        data = read_inputs(request, progress)
        progress.phase(f"comparing {len(names)} methods")
        for done, name in enumerate(names):
            progress.step(done, len(names) - done, name)
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
    mean_stability = None
    if stability is not None:
        mean_stability = stability.mean
    return labels, {
        "cluster_sizes": np.bincount(labels[labels >= 0]),
        "stability": mean_stability,
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
    slowness = METHODS[request.method].SLOWNESS
    is_quick = prepared.landmarks is not None or prepared.model.LEARNS_FROM_ANCHORS

    # Entries of all kernels, times the slowness of a method, beyond which a fit takes
    # minutes.
    most_entries = 5e8
    if not is_quick and slowness * n_kernels * data.n_samples**2 > most_entries:
        raise CommandError(
            f"takes long; --methods {request.method} runs it all the same"
        )


def _comparison(
    found: dict[str, dict[str, Any]],
    pairs: Sequence[Sequence[float]],
    left_out: dict[str, str],
) -> str:
    """Return a table of the methods, one of how far they agree, and what they mean."""
    numbered = enumerate(found, start=1)
    titles = [f"{number:2} {name}" for number, name in numbered]
    rows = [["method", "stability", "gap", "seconds", "ARI (%)"]]
    for title, each in zip(titles, found.values(), strict=True):
        values = [each["stability"], each["gap"], each["seconds"], None]
        if each["scores"] is not None:
            values[-1] = 100 * each["scores"]["ari"]
        cells = ("-" if x is None else f"{x:.3g}" for x in values)
        rows.append([title, *cells])
    numbers = map(str, range(1, len(titles) + 1))
    matrix = [["adjusted Rand index", *numbers]]
    matrix += [
        [t, *(f"{x:.2f}" for x in row)] for t, row in zip(titles, pairs, strict=True)
    ]
    lines = [text_table(rows), "", text_table(matrix), ""]
    for name, each in found.items():
        if each["set_aside"]:
            lines.append(f"{name} sets aside: {join_words(each['set_aside'])}.")
    reasons = left_out.items()
    lines += [f"Left out: {name}: {reason}." for name, reason in reasons]
    lines.append(
        "Stability: the agreement of clusters of parts of the samples with those of "
        "all. Gap: how far the objective is above the global optimum at most, if a "
        "method certifies it."
    )
    return "\n".join([*lines, CAUTION])
