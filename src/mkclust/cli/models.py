"""From the options of a command to a fitted model."""

import ast
import warnings
from dataclasses import dataclass
from typing import Any

from mkclust.bench.plan import import_class
from mkclust.cli.earlier import read_earlier
from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import Data
from mkclust.cli.options import AUTO, OPTIONS, Request
from mkclust.cli.progress import Progress
from mkclust.data import as_dask
from mkclust.explain.cluster_names import align_clusters
from mkclust.explain.number_of_clusters import (
    NumberOfClusters,
    options_of,
    suggest_n_clusters,
)
from mkclust.explain.stability import Stability, stability
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.steps import read_training
from mkclust.kernels import Nystroem, default_bank
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.text import did_you_mean, join_words


@dataclass(frozen=True)
class Fit:
    """A fitted model, what it was fitted on, and what the command decided by itself."""

    model: MultipleKernelClusterer
    data: Data
    X: Any
    decision: str
    landmarks: int | None
    suggestion: NumberOfClusters | None = None


def new_model(request: Request) -> MultipleKernelClusterer:
    """Return the estimator that was asked for, its parameters checked."""
    model = _estimator(request.method)
    parameters: dict[str, Any] = {"random_state": request.seed}
    for name in ("join", "impute", "missing_views"):
        value = getattr(request, name)
        if value is not None:
            parameters[name] = value
    if request.scale:
        parameters["scale"] = request.asked_scale
    if request.n_clusters != AUTO:
        parameters["n_clusters"] = request.n_clusters
    for setting in request.settings:
        name, value = _read_setting(setting, model, request.method)
        parameters[name] = value

    model.set_params(**parameters)
    model.check_parameters()
    return model


def _read_setting(
    setting: str, model: MultipleKernelClusterer, method: str
) -> tuple[str, Any]:
    """Return the name and the value of a parameter that ``--set`` gives."""
    parts = setting.partition("=")
    name, equals, text = (part.strip() for part in parts)
    if not name or not equals or not text:
        raise CommandError(f"--set {setting}: write NAME=VALUE, such as --set tol=1e-4")
    if name in OPTIONS or name in ("random_state", "approximation"):
        raise CommandError(f"--set {setting}: there is an option for it, see --help")

    known = model.get_params(deep=False)
    if name not in known:
        near = did_you_mean(name, known)
        others = [key for key, each in METHODS.items() if name in each().get_params()]
        if others:
            near = f"; only {join_words(others)} has it"
        raise CommandError(f"--set {name}: {method} has no such parameter{near}")

    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        words = {"true": True, "false": False, "none": None}
        return name, words.get(text.lower(), text)


def _estimator(name: str) -> Any:
    """Return a new estimator of a method, or say which there are."""
    if ":" not in name:
        check_method(name)
        return METHODS[name]()
    estimator = import_class(name)
    if not issubclass(estimator, MultipleKernelClusterer):
        raise CommandError(
            f"--method {name}: is not a subclass of MultipleKernelClusterer"
        )
    return estimator()


def check_method(name: str) -> None:
    """Refuse a name that is not that of a method."""
    if name not in METHODS:
        near = did_you_mean(name, METHODS)
        raise CommandError(
            f"--method {name}: unknown{near}; one of {', '.join(METHODS)}"
        )


def prepare(request: Request, model: MultipleKernelClusterer, data: Data) -> Fit:
    """Set the kernels of a model, or landmarks, and say what was not asked for."""
    asked: Any = request.asked_kernels
    landmarks: int | None = None
    X = data.X
    decision = ""
    if data.precomputed:
        if asked not in (AUTO, "precomputed") or isinstance(request.landmarks, int):
            raise CommandError(
                "the inputs hold kernels; leave out --kernels and --landmarks"
            )
        return Fit(model.set_params(kernels="precomputed"), data, X, "", None)
    if asked != AUTO:
        model.set_params(kernels=asked)
        if not isinstance(asked, str):
            X = data.views
    elif len(data.views) == 1:
        decision = "One view is one table: a bank of kernels is computed from it."
    reason = _reason_for_landmarks(request, model, data)
    if reason:
        if request.landmarks == AUTO:
            landmarks = min(200, data.n_samples)
        else:
            landmarks = request.landmarks

        model.set_params(approximation=Nystroem(n_components=landmarks))
        decision = f"{landmarks} landmarks per view approximate the kernels ({reason})."
        X = data.views
    if request.address is not None:
        is_table = X is not data.views
        X = as_dask(data.views)  # whose chunks the workers read
        if is_table:
            X = next(iter(X.values()))
    return Fit(model, data, X, decision, landmarks)


def _reason_for_landmarks(
    request: Request, model: MultipleKernelClusterer, data: Data
) -> str:
    """Return why landmarks replace exact kernels; empty if they do not."""
    number = None
    if isinstance(request.landmarks, int):
        number = request.landmarks

    if model.LEARNS_FROM_ANCHORS:
        if number is not None:
            raise CommandError(
                f"--landmarks {number}: {request.method} needs none, it takes any "
                "number of samples with exact kernels; leave the option out, or take "
                "another method, such as --method anchored-mkkm"
            )
        return ""

    exact = request.landmarks == "none" or request.asked_kernels == "on-the-fly"
    able = "approximation" in model.get_params(deep=False)
    n = data.n_samples
    why_exact = ""
    if exact:
        why_exact = "exact ones are asked for"
    if not able:
        why_exact = f"{request.method} needs all entries"

    if request.address is not None or number is not None:
        if why_exact:
            raise CommandError(
                f"--landmarks and --cluster approximate kernels, and {why_exact}; drop "
                "one, or take --method agreement-kkm with --cluster"
            )
        return "asked for"
    if why_exact:
        return ""
    bank = default_bank(len(data.views) > 1)
    n_fixed = len(bank.widths) + len(bank.polynomials)
    per_view = n_fixed + (bank.linear is not None)
    n_kernels = per_view * len(data.views) + 1
    n_bytes = 8 * n_kernels * n**2
    free = available_bytes()
    # Exact kernels are computed up to this number of samples, and this share of the
    # memory, by the methods that do not learn from anchors.
    most_exact_samples = 10_000
    largest_share = 0.5
    if n > most_exact_samples or (free is not None and n_bytes > largest_share * free):
        return f"exact kernels of {n:,} samples would take {in_units(n_bytes)}"
    return ""


def measure_stability(fitted: Fit, n_resamples: int) -> Stability | None:
    """Return how stable the clusters of a model are, None if unknown."""
    if n_resamples == 0 or fitted.model.n_clusters_ == 1:
        return None
    try:
        return stability(
            fitted.model, fitted.X, n_resamples=n_resamples, max_samples=1000
        )
    except ValueError:
        return None  # a part of the samples may be too small for the number of clusters


def fit(request: Request, data: Data, progress: Progress) -> Fit:
    """Fit the model that was asked for, with the suggested number for -k auto."""
    model = new_model(request)
    earlier = read_earlier(request.align_with)
    prepared = prepare(request, model, data)
    suggestion = None
    if request.n_clusters == AUTO:
        suggestion = suggest(prepared, progress)
        found = suggestion.tests.title() if suggestion.tests else ""
        if suggestion.evidence == "none":
            raise CommandError(
                f"-k auto: {found}; mkclust suggest says why, and "
                f"-k {suggestion.n_clusters} clusters all the same"
            )
        if suggestion.evidence == "weak":
            warnings.warn(
                f"-k auto: {found}; they may be parts of a continuum", stacklevel=2
            )
        model.set_params(n_clusters=suggestion.n_clusters)
    progress.phase(f"clustering {data.describe()}")
    model.fit(prepared.X, groups=data.groups, adjust=data.covariates)
    if earlier is not None:
        try:
            align_clusters(model, earlier)
        except ValueError as error:
            warnings.warn(
                f"the clusters are not numbered as in {request.align_with}: {error}",
                stacklevel=2,
            )
    return Fit(
        model, data, prepared.X, prepared.decision, prepared.landmarks, suggestion
    )


def suggest(
    prepared: Fit, progress: Progress, k_values: Any = None
) -> NumberOfClusters:
    """Suggest a number of clusters for the kernels and the graph of a model."""
    progress.phase("choosing the number of clusters")
    model = prepared.model
    X = prepared.X
    if prepared.data.covariates is not None:
        X = read_training(model, X, adjust=prepared.data.covariates)
    return suggest_n_clusters(
        X,
        k_values,
        evidence=True,
        random_state=model.random_state,
        **options_of(model),
    )
