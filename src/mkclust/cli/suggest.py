"""The command ``mkclust suggest``: how many clusters there are, if any."""

from typing import Annotated, Any

import typer

from mkclust.cli import fitting
from mkclust.cli.choosing import suggest_for
from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    recorded_warnings,
    say,
    show_warnings,
)
from mkclust.cli.like_cluster import request_for, takes_options_of_cluster
from mkclust.cli.options import Inputs
from mkclust.cli.outputs import strict_json, suggestion_record
from mkclust.cli.printing import Progress, phase_lines
from mkclust.explain.choosing import NumberOfClusters
from mkclust.methods import RECOMMENDED

First = Annotated[int | None, typer.Option("--from", min=2, help="Smallest number to try.")]
Last = Annotated[
    int | None,
    typer.Option(
        "--to", min=2, help="Largest number to try; by default 12, or less for few samples."
    ),
]
OwnMethod = Annotated[
    str | None,
    typer.Option(
        help="Mix the kernels as this method does, for the number of clusters that their "
        "average suggests. By default the average of the kernels is used."
    ),
]


@takes_options_of_cluster("n_clusters")
def run(
    inputs: Inputs,
    first: First = None,
    last: Last = None,
    method: OwnMethod = None,
    **options: Any,
) -> None:
    """Suggest how many clusters there are, if any, by three criteria."""
    first = 2 if first is None and last is not None else first
    if first is not None and last is not None and last < first:
        raise CommandError(f"--from {first} --to {last}: there is no number between them")
    request = request_for(inputs=inputs, n_clusters=2, method=method or RECOMMENDED, **options)
    model = fitting.new_model(request)
    quiet = request.quiet
    with Progress(quiet=quiet) as progress, recorded_warnings() as log, expected_failures():
        data = fitting.read_data(request, progress)
        samples = fitting.set_kernels(request, model, data).samples
        k_values = None if first is None else range(first, (last or max(12, first)) + 1)
        suggestion = suggest_for(model, samples, progress, k_values)
        if method is not None:
            coefficients = _coefficients(model, method, samples, suggestion, progress)
            suggestion = suggest_for(model, samples, progress, k_values, coefficients)
    if not quiet:
        show_warnings(log)
        if samples.missing is not None and model.table_options.missing_views == "learn":
            say("Samples that files lack are scaled up here (--missing-views rescale): what is")
            say("learned of them depends on the number of clusters.")
    if request.as_json:
        say(strict_json(suggestion_record(suggestion)).rstrip("\n"))
        return
    text = suggestion.summary().replace("pass more k_values", "give another --from or --to")
    timings = ["", *phase_lines(progress.seconds)] if request.verbose else []
    say("\n".join([text, *timings]))


def _coefficients(
    model: Any, method: str, samples: Any, suggestion: NumberOfClusters, progress: Progress
) -> Any:
    """Return the coefficients by which a method mixes the kernels for a suggested number."""
    # Where nothing is suggested, the fewest clusters show what the method makes of the kernels.
    model.set_params(n_clusters=max(suggestion.n_clusters, 2))
    progress.phase(f"mixing the kernels by {method}")
    coefficients = getattr(model.fit(samples), "coefficients_", None)
    if coefficients is None:
        raise CommandError(
            f"--method {method} does not mix the kernels by one coefficient each; leave the option "
            "out, or choose another method"
        )
    return coefficients
