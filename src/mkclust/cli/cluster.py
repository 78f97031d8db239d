"""The command ``mkclust cluster``: check what was asked for, read, fit, write, print.

The labels are those that the estimator gives in Python for the same data with its own defaults;
where the command decides otherwise (one view alone is a table, a known data set brings its
kernels, landmarks stand for kernels of many samples), it prints so and records it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import plots
from mkclust.cli.approximation import (
    CHOICES,
    KernelChoice,
    LandmarkOptions,
    check_approximation,
    choose_kernels,
)
from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    recorded_warnings,
    say,
    say_last,
    show_warnings,
    warning_lines,
)
from mkclust.cli.inputs import Data, check_readable_in_parts, read_inputs
from mkclust.cli.method import build_model, check_choice, kernels_by_view, parse_kernels
from mkclust.cli.options import (
    Address,
    Anchor,
    ApproximationChoice,
    Center,
    Drop,
    FollowLinks,
    Id,
    Impute,
    Inputs,
    Join,
    Kernels,
    LabelsFile,
    Landmarks,
    MaxIter,
    Method,
    NClusters,
    NInit,
    Normalize,
    PlotFile,
    Psd,
    ReportFile,
    RunFile,
    SamplesIn,
    Seed,
    Settings,
    Solver,
    Tol,
    Validate,
)
from mkclust.cli.outputs import (
    FinishedRun,
    after_labels,
    all_scores,
    check_apart,
    check_outputs,
    check_plot,
    check_report,
    labels_csv,
    run_record,
    strict_json,
    write_files,
)
from mkclust.cli.printing import MAX_ROWS, Progress, count, fit_summary, score_table
from mkclust.cli.tables import TableRequest
from mkclust.explain.page import fit_page
from mkclust.methods import RECOMMENDED
from mkclust.samples import as_dask, connect
from mkclust.samples.checks import is_dask
from mkclust.text import printable

LABELS = "labels.csv"
RECORD = "run.json"


@dataclass(frozen=True)
class Request:
    """What was asked for: the options of the command, by their names."""

    inputs: list[str]
    n_clusters: int
    method: str
    kernels: Any
    id: list[str] | None
    samples_in: list[str] | None
    join: str
    impute: str | None
    drop: list[str] | None
    approximation: str
    landmarks: int | None
    address: str | None
    follow_links: bool
    solver: str | None
    anchor: Any
    labels: Path
    run: Path | None
    plot: Path | None
    report: Path | None
    seed: int
    n_init: int | None
    tol: float | None
    max_iter: int | None
    psd: str | None
    settings: list[str] | None
    center: bool | None
    normalize: bool | None
    validate: bool | None

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method that have options; None leaves the estimator's default."""
        return {
            "n_clusters": self.n_clusters,
            "random_state": self.seed,
            "n_init": self.n_init,
            "solver": self.solver,
            "anchor": self.anchor,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "psd": self.psd,
            "center": self.center,
            "normalize": self.normalize,
            "validate": self.validate,
        }

    @property
    def tables(self) -> TableRequest:
        """The options about tables."""
        return TableRequest.of(self.id, self.samples_in, self.drop, self.join, self.impute)

    @property
    def landmark_options(self) -> LandmarkOptions:
        """The options about landmarks; kernels that are computed on the fly are exact."""
        exact = self.kernels == "on-the-fly" and self.approximation == "auto"
        choice = "none" if exact else self.approximation
        return LandmarkOptions(choice, self.landmarks, on_workers=self.address is not None)

    @property
    def record(self) -> Path:
        """Where the record of the run goes: beside the labels, unless ``--run`` names a file."""
        if self.run is not None:
            return self.run
        name = RECORD if self.labels.name == LABELS else f"{self.labels.stem}.{RECORD}"
        return self.labels.parent / name

    @property
    def outputs(self) -> list[Path]:
        """All files that are to be written."""
        paths = (self.labels, self.record, self.plot, self.report)
        return [path for path in paths if path is not None]


def run(
    inputs: Inputs,
    n_clusters: NClusters,
    method: Method = RECOMMENDED,
    kernels: Kernels = None,
    id: Id = None,
    samples_in: SamplesIn = None,
    join: Join = "exact",
    impute: Impute = None,
    drop: Drop = None,
    approximation: ApproximationChoice = "auto",
    landmarks: Landmarks = None,
    address: Address = None,
    follow_links: FollowLinks = False,
    solver: Solver = None,
    anchor: Anchor = None,
    labels: LabelsFile = Path(LABELS),
    run: RunFile = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    seed: Seed = 0,
    n_init: NInit = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    psd: Psd = None,
    settings: Settings = None,
    center: Center = None,
    normalize: Normalize = None,
    validate: Validate = None,
) -> None:
    """Cluster samples from several views or kernels of them."""
    # At this point the local variables are the options, which a request has by the same names.
    options = dict(locals())
    _execute(Request(**(options | {"kernels": parse_kernels(kernels or [])})))


def _execute(request: Request) -> None:
    """Do what was asked for, one step after another."""
    start = time.perf_counter()
    check_choice("--approximation", request.approximation, CHOICES)
    model = build_model(request.method, request.parameters, request.settings or [])
    _check(request, type(model))
    with (
        Progress() as progress,
        recorded_warnings() as log,
        expected_failures(),
        _connection(request.address, progress),
    ):
        data, kernel_choice = _fit(request, model, progress)
        finished_run = FinishedRun(
            model=model,
            method=request.method,
            data=data,
            kernel_choice=kernel_choice,
            scores=all_scores(model, data.y),
            warnings=warning_lines(log),
            seconds=time.perf_counter() - start,
        )
        _write(request, finished_run, progress)
    show_warnings(log)
    say_last(_summary(request, finished_run), files=request.outputs)


def _check(request: Request, method_class: type) -> None:
    """Refuse what cannot be done or written, before anything is read."""
    check_approximation(
        request.landmark_options, request.method, method_class, kernels=request.kernels
    )
    if request.address is not None:
        check_readable_in_parts(request.inputs)
    check_plot(request.plot)
    check_report(request.report)
    check_outputs(request.outputs, request.inputs)


@contextmanager
def _connection(address: str | None, progress: Progress) -> Iterator[None]:
    """Run what is inside on a cluster, or here where there is no address."""
    if address is None:
        yield
        return
    progress.phase(f"connecting to {address}")
    with connect(address):
        yield


def _fit(request: Request, model: Any, progress: Progress) -> tuple[Data, KernelChoice]:
    """Read the inputs and fit a model; return the data, and what was decided on the kernels."""
    remote = request.address is not None
    progress.phase("reading")
    data = read_inputs(
        request.inputs,
        precomputed=request.kernels == "precomputed",
        on_disk=remote or None,
        follow_links=request.follow_links,
        tables=request.tables,
        kernels=request.kernels,
    )
    check_apart(request.outputs, data.linked_files)
    _prepare(model, request, data)
    kernel_choice = choose_kernels(
        model, data, request.landmark_options, on_the_fly=request.kernels == "on-the-fly"
    )
    progress.phase(f"clustering {data.samples.n_samples} samples, {data.describe()}")
    if remote:
        _fit_on_workers(model, data.samples.by_name)
    else:
        model.fit(kernel_choice.samples)
    if data.samples.whole is not None:
        _rename_kernels(model, data.names)
    return data, kernel_choice


def _prepare(model: Any, request: Request, data: Data) -> None:
    """Set what a model has to know of views, and say what these are."""
    kernels = kernels_by_view(request.kernels, data.samples.names)
    if kernels == "gaussian" or isinstance(kernels, Mapping):
        model.set_params(kernels=kernels)
    known = model.get_params()
    asked = {"join": request.join, "impute": request.impute}
    model.set_params(**{name: value for name, value in asked.items() if name in known})
    if data.contributions:
        say("\n".join(data.contributions))


def _rename_kernels(model: Any, names: tuple[str, ...]) -> None:
    """Give kernels of a stack that stays on disk, and has no names, those of the inputs."""
    given = dict(zip(model.kernel_names_, names, strict=True))
    model.kernel_names_ = names
    if hasattr(model, "agreement_"):
        model.agreement_ = replace(model.agreement_, names=names)
    if hasattr(model, "set_aside_"):
        model.set_aside_ = tuple(given[name] for name in model.set_aside_)


def _fit_on_workers(model: Any, views: Mapping[str, Any]) -> None:
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


def _write(request: Request, finished_run: FinishedRun, progress: Progress) -> None:
    """Write the labels and the record together, then what was asked for beside them."""
    model, data = finished_run.model, finished_run.data
    record = run_record(finished_run)
    write_files(
        {
            request.labels: lambda path: path.write_bytes(labels_csv(model.labels_)),
            request.record: lambda path: path.write_text(strict_json(record), encoding="utf-8"),
        }
    )
    files = f"{request.labels} and {request.record}"
    if request.plot is not None:
        progress.phase("drawing")
        with after_labels(request.plot, "drawn", files):
            write_files(
                {request.plot: lambda path: plots.save(plots.plot_fit(model, data.y), path)}
            )
    if request.report is not None:
        progress.phase("looking closer, for the report")
        samples, y = finished_run.kernel_choice.samples, data.y if finished_run.scores else None
        with after_labels(request.report, "written", files):
            page = fit_page(model, samples, y=y, warned=finished_run.warnings)
            write_files({request.report: lambda path: path.write_text(page, encoding="utf-8")})


def _summary(request: Request, finished_run: FinishedRun) -> str:
    """Return what the command prints in the end."""
    model, data = finished_run.model, finished_run.data
    kernels, clusters = count(len(model.weights_), "kernel"), count(model.n_clusters, "cluster")
    lines = [
        *map(printable, data.notes),
        f"{type(model).__name__}: {data.samples.n_samples} samples, {kernels}, {clusters}, "
        f"{finished_run.seconds:.2f} s",
    ]
    kernel_choice = finished_run.kernel_choice
    if kernel_choice.sentence:
        lines.append(kernel_choice.sentence)
    if hasattr(model, "bank_") and model.bank_.rules is not None:
        lines += map(printable, model.bank_.explain().splitlines()[:MAX_ROWS])
    if request.landmarks is not None and kernel_choice.landmarks is None:
        lines.append("The kernels are exact, for they fit: no landmarks were needed.")
    lines += ["", fit_summary(model)]
    if finished_run.scores:
        lines += ["", score_table(finished_run.scores)]
    return "\n".join([*lines, "", *(f"Wrote {path}" for path in request.outputs)])
