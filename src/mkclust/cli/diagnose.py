"""The command ``mkclust diagnose``: what each kernel brings to a clustering."""

from typing import Annotated, Any

import typer

from mkclust.cli import fitting
from mkclust.cli.failures import expected_failures, recorded_warnings, say, show_warnings
from mkclust.cli.like_cluster import request_for, require_number, takes_options_of_cluster
from mkclust.cli.options import Inputs, NClusters
from mkclust.cli.outputs import agreement_record, missingness_record, strict_json
from mkclust.cli.printing import Progress, phase_lines
from mkclust.explain import Diagnosis, diagnose

# What is recorded of a diagnosis beside the agreement of the views.
RECORDED = (
    "method", "n_clusters", "names", "weights", "alignments", "top_share", "cluster_gap",
    "agreement", "leave_one_out", "p_values", "redundancy", "noise", "duplicates", "n_samples",
    "n_diagnosed", "refit_agreement",
)  # fmt: skip
LeaveOneOut = Annotated[
    bool,
    typer.Option(
        "--leave-one-out/--no-leave-one-out",
        help="Cluster again without each kernel in turn. This takes most of the time.",
    ),
]


@takes_options_of_cluster()
def run(
    inputs: Inputs, n_clusters: NClusters, leave_one_out: LeaveOneOut = True, **options: Any
) -> None:
    """Say what each view or kernel contributes: structure, agreement, a copy, or noise."""
    request = request_for(inputs=inputs, n_clusters=n_clusters, **options)
    require_number(request, "diagnose")
    model = fitting.new_model(request)
    quiet = request.quiet
    with Progress(quiet=quiet) as progress, recorded_warnings() as log, expected_failures():
        data = fitting.read_data(request, progress)
        kernel_choice, _ = fitting.fit_model(request, model, data, progress)
        progress.phase("diagnosing")
        diagnosis = diagnose(model, kernel_choice.samples, leave_one_out=leave_one_out)
    if not quiet:
        show_warnings(log)
    if request.as_json:
        say(strict_json(_record(diagnosis, model)).rstrip("\n"))
        return
    timings = ["", *phase_lines(progress.seconds)] if request.verbose else []
    say("\n".join([diagnosis.summary(), *timings]))


def _record(diagnosis: Diagnosis, model: Any) -> dict[str, Any]:
    """Return a diagnosis as what JSON can hold."""
    return {name: getattr(diagnosis, name) for name in RECORDED} | {
        "view_agreement": agreement_record(model),
        "missingness": missingness_record(model),
    }
