"""From a request to a fitted model: the steps that several commands take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mkclust.cli.approximation import CHOICES, KernelChoice, check_approximation, choose_kernels
from mkclust.cli.choosing import choose_n_clusters
from mkclust.cli.failures import CommandError, say
from mkclust.cli.inputs import Data, check_readable_in_parts, read_inputs
from mkclust.cli.method import build_model, check_choice, kernels_by_view
from mkclust.cli.options import AUTO
from mkclust.cli.printing import Progress
from mkclust.cli.request import Request
from mkclust.data import as_dask
from mkclust.data.options import FILLS
from mkclust.explain.choosing import NumberOfClusters


def new_model(request: Request) -> Any:
    """Return the estimator that was asked for, refusing what no data could make possible."""
    check_choice("--approximation", request.approximation, CHOICES)
    if request.missing_views is not None:
        check_choice("--missing-views", request.missing_views, FILLS)
    model = build_model(request.method, request.parameters, request.settings or [])
    # Methods of users need not have these: samples are joined and filled before they are fitted.
    tables = {name: getattr(request, name) for name in ("join", "impute", "missing_views")}
    model.set_params(**{name: tables[name] for name in tables.keys() & model.get_params().keys()})
    check_approximation(
        request.landmark_options, request.method, type(model), kernels=request.kernels_asked_for
    )
    if request.address is not None:
        check_readable_in_parts(request.inputs)
    return model


@contextmanager
def connection(address: str | None, progress: Progress) -> Iterator[None]:
    """Run what is inside on a cluster, or here where there is no address."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise CommandError('--cluster needs dask: pip install "mkclust[dask]"') from error
    progress.phase(f"connecting to {address}")
    try:
        client = Client(address)
    except (OSError, ValueError) as error:
        raise CommandError(f"--cluster {address}: {error}; check host and port") from error
    with client:
        yield


def read_data(request: Request, progress: Progress) -> Data:
    """Read the inputs."""
    remote = request.address is not None
    progress.phase("reading")
    data = read_inputs(
        request.inputs,
        precomputed=request.kernels_asked_for == "precomputed",
        on_disk=remote or None,
        tables=request.tables,
        kernels=request.kernels_asked_for,
    )
    if data.contributions and not (request.quiet or request.as_json):
        say("\n".join(data.contributions))
    return data


def set_kernels(request: Request, model: Any, data: Data) -> KernelChoice:
    """Set a model's kernels as they were asked for, or as the data want them."""
    asked = kernels_by_view(request.kernels_asked_for, data.samples.names)
    if asked == "gaussian" or isinstance(asked, Mapping):
        model.set_params(kernels=asked)
    return choose_kernels(
        model, data, request.landmark_options, on_the_fly=request.kernels_asked_for == "on-the-fly"
    )


def fit_model(
    request: Request, model: Any, data: Data, progress: Progress
) -> tuple[KernelChoice, NumberOfClusters | None]:
    """Fit a model; return what was decided on the kernels, and on the number of clusters if so."""
    kernel_choice = set_kernels(request, model, data)
    suggestion = None
    if request.n_clusters == AUTO:
        suggestion = choose_n_clusters(model, kernel_choice.samples, progress)
    progress.phase(f"clustering {data.samples.n_samples} samples, {data.describe()}")
    if request.address is not None:
        _fit_on_workers(model, data.samples.by_name)
    else:
        model.fit(kernel_choice.samples)
    if data.samples.whole is not None:
        _rename_kernels(model, data.names)
    return kernel_choice, suggestion


def _rename_kernels(model: Any, names: tuple[str, ...]) -> None:
    """Give kernels of a stack that stays on disk, and has no names, those of the inputs."""
    given = dict(zip(model.kernel_names_, names, strict=True))
    model.kernel_names_ = names
    if hasattr(model, "agreement_"):
        model.agreement_ = replace(model.agreement_, names=names)
    if hasattr(model, "set_aside_"):
        model.set_aside_ = tuple(given[name] for name in model.set_aside_)


def _fit_on_workers(model: Any, views: Mapping[str, Any]) -> None:
    """Fit a model where the workers are."""
    try:
        model.fit(as_dask(views))
    except FileNotFoundError as error:
        raise CommandError(
            f"a worker cannot open a file that was read here ({error}); workers need the inputs "
            "under the same paths, such as on a shared disk"
        ) from error
