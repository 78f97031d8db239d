"""The command ``mkclust compare``: the clusterings of several methods, beside each other."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer

from mkclust import metrics
from mkclust.cli import fitting
from mkclust.cli.approximation import KernelChoice
from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    one_line,
    recorded_warnings,
    say,
    show_warnings,
)
from mkclust.cli.inputs import Data
from mkclust.cli.like_cluster import request_for, require_number, takes_options_of_cluster
from mkclust.cli.method import check_choice
from mkclust.cli.options import Inputs, NClusters
from mkclust.cli.outputs import strict_json
from mkclust.cli.printing import Progress, count, phase_lines
from mkclust.cli.request import Request
from mkclust.explain.fitted import certified_gap
from mkclust.explain.memory import estimate_memory
from mkclust.explain.report.collect import refit_size
from mkclust.explain.stability import resample
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.methods.training import make_bank
from mkclust.text import join_words, printable, text_table

# Entries of kernels, by the slowness of a method, beyond which a fit takes minutes.
MOST_ENTRIES = 5e8
CAUTION = (
    "Agreement is not truth: methods that look at the same kernels share their mistakes, and what "
    "is stable may be one cloud that is cut in the same place every time."
)
MethodNames = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="NAME,NAME",
        help="Methods to compare, with commas between them; by default all that are fast enough.",
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        "--resamples",
        min=0,
        help="How often each method is fitted on a part of the samples, to measure stability.",
    ),
]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one method makes of the samples."""

    method: str
    labels: np.ndarray
    stability: float | None
    gap: float | None
    seconds: float
    set_aside: tuple[str, ...]
    scores: dict[str, float] | None

    def record(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        names = ("stability", "gap", "seconds", "set_aside", "scores")
        return {"cluster_sizes": np.bincount(self.labels)} | {n: getattr(self, n) for n in names}


@takes_options_of_cluster("method", "solver", "anchor", "settings", "tol", "max_iter")
def run(
    inputs: Inputs,
    n_clusters: NClusters,
    methods: MethodNames = None,
    n_resamples: Resamples = 5,
    **options: Any,
) -> None:
    """Cluster with several methods, and show how far they agree and how stable each is."""
    request = request_for(inputs=inputs, n_clusters=n_clusters, **options)
    require_number(request, "compare")
    names, quiet = _method_names(methods), request.quiet
    outcomes: list[Outcome] = []
    left_out: dict[str, str] = {}
    with Progress(quiet=quiet) as progress, recorded_warnings() as log, expected_failures():
        data = fitting.read_data(request, progress)
        progress.phase(f"comparing {count(len(names), 'method')}")
        for done, name in enumerate(names):
            progress.step(done, len(names), name)
            outcome = _outcome(
                replace(request, method=name), data, n_resamples, may_be_slow=methods is not None
            )
            if isinstance(outcome, Outcome):
                outcomes.append(outcome)
            else:
                left_out[name] = outcome
        if not outcomes:
            first, reason = next(iter(left_out.items()))
            raise CommandError(f"no method gave clusters; {first}: {reason}")
    if not quiet:
        show_warnings(log)
    agreement = _agreement([outcome.labels for outcome in outcomes])
    if request.as_json:
        say(strict_json(_record(outcomes, agreement, left_out)).rstrip("\n"))
        return
    timings = ["", *phase_lines(progress.seconds)] if request.verbose else []
    say("\n".join([_summary(outcomes, agreement, left_out), *timings]))


def _method_names(text: str | None) -> list[str]:
    """Return the names of the methods to compare, each once."""
    if text is None:
        return list(METHODS)
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        check_choice("--methods", name, list(METHODS))
    if not names:
        raise CommandError("--methods: names no method; give some with commas between them")
    return names


def _outcome(request: Request, data: Data, n_resamples: int, *, may_be_slow: bool) -> Outcome | str:
    """Return what a method makes of the samples, or why it makes nothing of them."""
    try:
        reason = "" if may_be_slow else _slowness(request, data)
        if reason:
            return reason
        model, start = fitting.new_model(request), time.perf_counter()
        kernel_choice, _ = fitting.fit_model(request, model, data, Progress(quiet=True))
        seconds = time.perf_counter() - start
    except (CommandError, ValueError, ArithmeticError, MemoryError) as error:
        return one_line(error) or type(error).__name__
    return Outcome(
        method=request.method,
        labels=np.asarray(model.labels_),
        stability=_stability(model, kernel_choice, n_resamples),
        gap=certified_gap(model),
        seconds=seconds,
        set_aside=tuple(getattr(model, "set_aside_", ())),
        scores=_scores(data.y, model.labels_),
    )


def _slowness(request: Request, data: Data) -> str:
    """Say why a method would take too long, or too much memory; empty where it would not."""
    model = fitting.new_model(request)
    choice = fitting.set_kernels(request, model, data)
    if choice.landmarks is not None:
        return ""
    n, m, method = data.samples.n_samples, len(data.names), METHODS[request.method]
    if data.samples.kind != "kernels":
        bank = make_bank(model, several_views=choice.samples.kind == "views")
        m = bank.announce(choice.samples)[0]
    needed = estimate_memory(n, m, n_clusters=request.n_clusters, method=request.method)
    n_bytes, free = needed.n_bytes["dense"], available_bytes()
    if free is not None and n_bytes > free:
        return f"would take {in_units(n_bytes)} of memory, and there are {in_units(free)}"
    if m * n**2 * method.SLOWNESS > MOST_ENTRIES:
        return f"would take long on {n} samples; --methods {request.method} runs it all the same"
    return ""


def _stability(model: Any, choice: KernelChoice, n_resamples: int) -> float | None:
    """Return how far clusters of parts of the samples agree with a model's, None if unknown."""
    if n_resamples == 0 or model.n_clusters == 1:
        return None
    most = refit_size(model)
    try:
        return resample(model, choice.samples, n_resamples=n_resamples, most_samples=most).mean
    except ValueError:
        # A part of the samples may be too small for so many clusters, or lack what tells them.
        return None


def _scores(y: Any, labels: Any) -> dict[str, float] | None:
    """Return scores against given labels, None where there are none that can be compared."""
    if y is None:
        return None
    try:
        labels = np.asarray(labels)
        return metrics.scores(np.asarray(y)[labels >= 0], labels[labels >= 0])
    except (ValueError, TypeError) as error:
        warnings.warn(f"no scores: {error}", stacklevel=2)
        return None


def _agreement(labels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the adjusted Rand index of every two clusterings."""
    return np.array(
        [[metrics.adjusted_rand_index(one, other) for other in labels] for one in labels]
    )


def _record(
    outcomes: Sequence[Outcome], agreement: np.ndarray, left_out: dict[str, str]
) -> dict[str, Any]:
    """Return the comparison as what JSON can hold."""
    return {
        "methods": {outcome.method: outcome.record() for outcome in outcomes},
        "adjusted_rand_index": agreement,
        "left_out": left_out,
        "caution": CAUTION,
    }


def _summary(outcomes: Sequence[Outcome], agreement: np.ndarray, left_out: dict[str, str]) -> str:
    """Return the comparison in tables and sentences."""
    numbers = [str(number) for number in range(1, len(outcomes) + 1)]
    titles = [
        f"{n.rjust(len(numbers[-1]))} {each.method}"
        for n, each in zip(numbers, outcomes, strict=True)
    ]
    scored = all(outcome.scores is not None for outcome in outcomes)
    rows = [["method", "stability", "gap", "seconds", *(["ARI (%)"] if scored else [])]]
    for title, each in zip(titles, outcomes, strict=True):
        cells = [_cell(each.stability, ".2f"), _cell(each.gap, ".1e"), f"{each.seconds:.2f}"]
        if each.scores is not None and scored:
            cells.append(f"{100 * each.scores['ari']:.1f}")
        rows.append([title, *cells])
    lines = [text_table(rows), ""]
    pairs = [
        [title, *(f"{x:.2f}" for x in row)] for title, row in zip(titles, agreement, strict=True)
    ]
    lines += [text_table([["adjusted Rand index", *numbers], *pairs]), ""]
    for each in outcomes:
        if each.set_aside:
            lines.append(f"{each.method} sets aside: {printable(join_words(each.set_aside))}.")
    lines += [f"Left out: {name}: {printable(reason)}." for name, reason in left_out.items()]
    lines.append(
        "Stability: the agreement of clusters of parts of the samples with those of all. Gap: how "
        "far the objective is above the global optimum at most, where a method certifies it."
    )
    return "\n".join([*lines, CAUTION])


def _cell(value: float | None, form: str) -> str:
    """Return a number in a table, a dash where there is none."""
    return "-" if value is None else format(value, form)
