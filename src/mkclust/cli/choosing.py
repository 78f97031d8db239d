"""The number of clusters, where the data are to tell it."""

from collections.abc import Sequence
from typing import Any

from mkclust.cli.failures import CommandError
from mkclust.cli.printing import Progress
from mkclust.explain.choosing import NumberOfClusters, suggest_n_clusters

# Parameters of a model that decide on its kernels, and with them on what is looked at.
OF_KERNELS = ("kernels", "center", "normalize", "psd", "missing_views")


def suggest_for(
    model: Any,
    samples: Any,
    progress: Progress,
    k_values: Sequence[int] | None = None,
    coefficients: Any = None,
) -> NumberOfClusters:
    """Suggest a number of clusters for the kernels of a model that is not fitted yet."""
    progress.phase("choosing the number of clusters")
    parameters = model.get_params(deep=False)
    options = {name: parameters[name] for name in OF_KERNELS if name in parameters}
    return suggest_n_clusters(
        samples,
        k_values,
        coefficients=coefficients,
        random_state=model.random_state,
        progress=progress.step,
        **options,
    )


def choose_n_clusters(model: Any, samples: Any, progress: Progress) -> NumberOfClusters:
    """Set a model's number of clusters to what the data suggest, refusing where they do not."""
    suggestion = suggest_for(model, samples, progress)
    if suggestion.kind != "clusters":
        raise CommandError(
            f"-k auto: {suggestion.verdict()} See mkclust suggest for each number, or give "
            "-k N to cut the samples into N parts anyway"
        )
    model.set_params(n_clusters=suggestion.n_clusters)
    return suggestion
