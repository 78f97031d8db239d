"""The command ``mkclust cluster``: check what was asked for, read, fit, write, print.

The labels are those that the estimator gives in Python for the same data with its own defaults;
where the command decides otherwise (one view alone is a table, a known data set brings its
kernels, landmarks stand for kernels of many samples), it prints so and records it.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import plots
from mkclust.cli.annotation import NOTHING_TESTED, compare_variables, read_variables
from mkclust.cli.approximation import (
    CHOICES,
    KernelChoice,
    LandmarkOptions,
    check_approximation,
    choose_kernels,
)
from mkclust.cli.choosing import choose_n_clusters
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
    AUTO,
    Address,
    Anchor,
    AnnotationFile,
    ApproximationChoice,
    Center,
    Drop,
    FollowLinks,
    Id,
    Impute,
    Inputs,
    Join,
    Json,
    Kernels,
    LabelsFile,
    Landmarks,
    MaxIter,
    Method,
    ModelFile,
    NClusters,
    NInit,
    Normalize,
    PlotFile,
    Psd,
    Quiet,
    ReportFile,
    RunFile,
    SamplesIn,
    Seed,
    Settings,
    Solver,
    Tol,
    Validate,
    Verbose,
)
from mkclust.cli.outputs import (
    FinishedRun,
    all_scores,
    check_apart,
    check_model_file,
    check_outputs,
    check_plot,
    check_report,
    labels_csv,
    noted_failure,
    run_record,
    strict_json,
    write_files,
)
from mkclust.cli.printing import (
    MAX_ROWS,
    Progress,
    count,
    fit_summary,
    phase_lines,
    score_table,
)
from mkclust.cli.table_request import TableRequest
from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.describe import describe, views_of_features
from mkclust.explain.description import Description
from mkclust.explain.page import fit_page
from mkclust.methods import RECOMMENDED
from mkclust.methods.persistence import save_model
from mkclust.samples import Samples, as_dask, connect
from mkclust.samples.checks import is_dask
from mkclust.text import join_words, printable

LABELS = "labels.csv"
# Features of each cluster and view in the record of a run.
DESCRIBED = 5
RECORD = "run.json"


@dataclass(frozen=True)
class Request:
    """What was asked for: the options of the command, by their names."""

    inputs: list[str]
    n_clusters: Any
    method: str
    kernels: list[str] | None
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
    annotate: str | None
    run: Path | None
    plot: Path | None
    report: Path | None
    save: Path | None
    seed: int
    n_init: int | None
    tol: float | None
    max_iter: int | None
    psd: str | None
    settings: list[str] | None
    center: bool | None
    normalize: bool | None
    validate: bool | None
    as_json: bool
    quiet: bool
    verbose: bool

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method that have options; None leaves the estimator's default."""
        return {
            "n_clusters": None if self.n_clusters == AUTO else self.n_clusters,
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
    def kernels_asked_for(self) -> str | dict[str, str]:
        """The kernels of all views by one name, or those of some by their names."""
        return parse_kernels(self.kernels or [])

    @property
    def tables(self) -> TableRequest:
        """The options about tables."""
        return TableRequest.of(self.id, self.samples_in, self.drop, self.join, self.impute)

    @property
    def landmark_options(self) -> LandmarkOptions:
        """The options about landmarks; kernels that are computed on the fly are exact."""
        exact = self.kernels_asked_for == "on-the-fly" and self.approximation == "auto"
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
        paths = (self.labels, self.record, self.plot, self.report, self.save)
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
    annotate: AnnotationFile = None,
    run: RunFile = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    save: ModelFile = None,
    seed: Seed = 0,
    n_init: NInit = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    psd: Psd = None,
    settings: Settings = None,
    center: Center = None,
    normalize: Normalize = None,
    validate: Validate = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Cluster samples from several views or kernels of them."""
    # At this point the local variables are the options, which a request has by the same names.
    _execute(Request(**locals()))


def _execute(request: Request) -> None:
    """Do what was asked for, one step after another."""
    start = time.perf_counter()
    model = new_model(request)
    _check_outputs(request)
    with (
        Progress(quiet=request.quiet) as progress,
        recorded_warnings() as log,
        expected_failures(),
        connection(request.address, progress),
    ):
        variables = None if request.annotate is None else read_variables(request.annotate)
        data = read_data(request, progress)
        kernel_choice, suggestion = fit_model(request, model, data, progress)
        finished_run = FinishedRun(
            model=model,
            method=request.method,
            data=data,
            kernel_choice=kernel_choice,
            scores=all_scores(model, data.y),
            description=_describe(model, kernel_choice.samples),
            annotation=None if variables is None else compare_variables(model, variables, progress),
            warnings=warning_lines(log),
            seconds=time.perf_counter() - start,
            suggestion=suggestion,
        )
        record = run_record(finished_run) | {"command": command_record(request)}
        failures = _write(request, finished_run, record, progress)
    files = [path for path in request.outputs if path not in failures]
    if not request.quiet:
        show_warnings(log)
    if request.as_json:
        say_last(strict_json(record).rstrip("\n"), files)
    elif not request.quiet:
        say_last(_summary(request, finished_run, progress.seconds, files), files)
    if failures:
        names = join_words(map(str, files))
        raise CommandError(f"{'; '.join(failures.values())}; these were written: {names}")


def new_model(request: Request) -> Any:
    """Return the estimator that was asked for, refusing what no data could make possible."""
    check_choice("--approximation", request.approximation, CHOICES)
    model = build_model(request.method, request.parameters, request.settings or [])
    # Methods of users need not have these: samples are joined and filled before they are fitted.
    tables = {"join": request.join, "impute": request.impute}
    model.set_params(**{name: tables[name] for name in tables.keys() & model.get_params().keys()})
    check_approximation(
        request.landmark_options, request.method, type(model), kernels=request.kernels_asked_for
    )
    if request.address is not None:
        check_readable_in_parts(request.inputs)
    return model


def _check_outputs(request: Request) -> None:
    """Refuse what cannot be written, before anything is read."""
    check_plot(request.plot)
    check_report(request.report)
    check_model_file(request.save)
    if request.save is not None and request.address is not None:
        raise CommandError(
            "--save with --cluster: the embedding of the samples stays on the cluster, and a model "
            "is saved whole; leave one of them out"
        )
    others = [] if request.annotate is None else [request.annotate]
    check_outputs(request.outputs, [*request.inputs, *others])


@contextmanager
def connection(address: str | None, progress: Progress) -> Iterator[None]:
    """Run what is inside on a cluster, or here where there is no address."""
    if address is None:
        yield
        return
    progress.phase(f"connecting to {address}")
    with connect(address):
        yield


def command_record(request: Request) -> dict[str, Any]:
    """Return the options of a command, so that it can be run again."""
    options = {field.name: getattr(request, field.name) for field in fields(request)}
    paths = {name: str(value) for name, value in options.items() if isinstance(value, Path)}
    return {"name": "cluster", "folder": os.getcwd(), "options": options | paths}


def read_data(request: Request, progress: Progress) -> Data:
    """Read the inputs."""
    remote = request.address is not None
    progress.phase("reading")
    data = read_inputs(
        request.inputs,
        precomputed=request.kernels_asked_for == "precomputed",
        on_disk=remote or None,
        follow_links=request.follow_links,
        tables=request.tables,
        kernels=request.kernels_asked_for,
    )
    check_apart(request.outputs, data.linked_files)
    if data.contributions and not (request.quiet or request.as_json):
        say("\n".join(data.contributions))
    return data


def set_kernels(request: Request, model: Any, data: Data) -> KernelChoice:
    """Set a model's kernels as they were asked for, or as the data want them."""
    kernels = kernels_by_view(request.kernels_asked_for, data.samples.names)
    if kernels == "gaussian" or isinstance(kernels, Mapping):
        model.set_params(kernels=kernels)
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


def _describe(model: Any, samples: Samples) -> Description | None:
    """Describe the clusters by columns that have names, where there are such."""
    names = [name for name in views_of_features(model, samples) if name in samples.columns]
    return describe(model, samples.only(names), n_features=DESCRIBED) if names else None


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


def _write(
    request: Request, finished_run: FinishedRun, record: dict[str, Any], progress: Progress
) -> dict[Path, str]:
    """Write labels and record together, then what was asked for beside them; return failures.

    What cannot be written costs nothing else, so that the model, which can fail most, is the last.
    """
    model, data = finished_run.model, finished_run.data
    write_files(
        {
            request.labels: lambda path: path.write_bytes(labels_csv(model)),
            request.record: lambda path: path.write_text(strict_json(record), encoding="utf-8"),
        }
    )
    failures: dict[Path, str] = {}
    if request.plot is not None:
        progress.phase("drawing")
        with noted_failure(request.plot, "drawn", failures):
            write_files(
                {request.plot: lambda path: plots.save(plots.plot_fit(model, data.y), path)}
            )
    if request.report is not None:
        progress.phase("looking closer, for the report")
        samples, y = finished_run.kernel_choice.samples, data.y if finished_run.scores else None
        with noted_failure(request.report, "written", failures):
            page = fit_page(
                model,
                samples,
                y=y,
                warned=finished_run.warnings,
                annotation=finished_run.annotation,
                progress=progress.step,
            )
            write_files({request.report: lambda path: path.write_text(page, encoding="utf-8")})
    if request.save is not None:
        progress.phase("saving the model")
        with noted_failure(request.save, "saved", failures):
            write_files({request.save: lambda path: save_model(model, path)})
    return failures


def _summary(
    request: Request,
    finished_run: FinishedRun,
    phases: dict[str, float],
    files: Sequence[Path],
) -> str:
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
    if finished_run.suggestion is not None:
        lines.append(f"-k auto: {finished_run.suggestion.verdict()}")
    if hasattr(model, "bank_") and (request.verbose or model.bank_.rules is not None):
        most = None if request.verbose else MAX_ROWS
        lines += map(printable, model.bank_.explain().splitlines()[:most])
    if request.landmarks is not None and kernel_choice.landmarks is None:
        lines.append("The kernels are exact, for they fit: no landmarks were needed.")
    lines += ["", fit_summary(model)]
    if finished_run.description is not None:
        lines += ["", finished_run.description.summary()]
    if finished_run.scores:
        lines += ["", score_table(finished_run.scores)]
    if request.annotate is not None:
        title = f"Clusters against the variables of {printable(request.annotate)}:"
        reasons = [line for line in finished_run.warnings if line.startswith(NOTHING_TESTED)]
        lines += [
            "",
            title,
            *(map(printable, reasons) if reasons else [str(finished_run.annotation)]),
        ]
    if request.verbose:
        lines += ["", *phase_lines(phases)]
    return "\n".join([*lines, "", *(f"Wrote {path}" for path in files)])
