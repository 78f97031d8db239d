"""Views that the workers of a cluster read by themselves, and results that come back."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mkclust.cli.failures import CommandError
from mkclust.cli.inputs import input_path
from mkclust.cli.progress import Progress
from mkclust.samples import as_dask, connect
from mkclust.samples.checks import is_dask

# Formats of which workers can read some rows.
SUFFIXES = (".npy", ".h5", ".hdf5", ".parquet")


def check_readable(inputs: Sequence[str]) -> None:
    """Refuse inputs of which workers could not read some rows, before any is read."""
    for text in inputs:
        path = input_path(text)
        if path is None or path.suffix.lower() not in SUFFIXES:
            raise CommandError(
                f"{text}: with --cluster workers read the samples some rows at a time, from files "
                f"of {', '.join(SUFFIXES)}; store it in one of these"
            )


@contextmanager
def connected(address: str | None, progress: Progress) -> Iterator[None]:
    """Run what is inside on a cluster, or here where there is no address."""
    if address is None:
        yield
        return
    progress.phase(f"connecting to {address}")
    with connect(address):
        yield


def fit_on_workers(model: Any, views: Mapping[str, Any]) -> None:
    """Fit a model where the workers are; its labels come here, its embedding stays there."""
    try:
        model.fit(as_dask(views))
    except FileNotFoundError as error:
        raise CommandError(
            f"a worker cannot open a file that was read here ({error}); workers need the inputs "
            "under the same paths, such as on a shared disk"
        ) from error
    for name, value in list(vars(model).items()):
        if is_dask(value) and name != "embedding_":
            setattr(model, name, np.asarray(value))
