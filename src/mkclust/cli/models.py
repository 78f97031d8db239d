"""From the options of a command to a fitted model."""

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkclust.bench.plan import import_class
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
from mkclust.files import errors_of
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.persistence import load_model
from mkclust.fit.steps import read_training
from mkclust.fit.training_input import training_index
from mkclust.kernels import Nystroem, default_bank
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.text import did_you_mean, from_spreadsheet, join_words


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
        parameters |= _read_setting(setting, model, request.method)

    model.set_params(**parameters)
    model.check_parameters()
    return model


def _read_setting(
    setting: str, model: MultipleKernelClusterer, method: str
) -> dict[str, Any]:
    """Return the parameter that ``--set`` gives, with its value."""
    name, _, text = (part.strip() for part in setting.partition("="))
    if not name or not text:
        raise CommandError(f"--set {setting}: write NAME=VALUE, such as --set tol=1e-4")
    if name in OPTIONS or name in ("random_state", "approximation"):
        raise CommandError(f"--set {setting}: there is an option for it, see --help")

    known = model.get_params(deep=False)
    if name not in known:
        others = [key for key, each in METHODS.items() if name in each().get_params()]
        advice = did_you_mean(name, known)
        if others:
            advice = f"; only {join_words(others)} has it"
        raise CommandError(f"--set {name}: {method} has no such parameter{advice}")

    try:
        return {name: ast.literal_eval(text)}
    except (ValueError, SyntaxError):
        words = {"true": True, "false": False, "none": None}
        return {name: words.get(text.lower(), text)}


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
        raise CommandError(
            f"--method {name}: unknown{did_you_mean(name, METHODS)}; one of "
            f"{', '.join(METHODS)}"
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
        landmarks = request.landmarks
        if landmarks == AUTO:
            landmarks = min(200, data.n_samples)
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
    number = request.landmarks if isinstance(request.landmarks, int) else None
    if model.LEARNS_FROM_ANCHORS and number is not None:
        raise CommandError(
            f"--landmarks {number}: {request.method} needs none, it takes any number "
            "of samples with exact kernels; leave the option out, or take another "
            "method, such as --method anchored-mkkm"
        )
    if model.LEARNS_FROM_ANCHORS:
        return ""

    why_exact = ""
    if request.landmarks == "none" or request.asked_kernels == "on-the-fly":
        why_exact = "exact ones are asked for"
    if "approximation" not in model.get_params(deep=False):
        why_exact = f"{request.method} needs all entries"
    is_asked = request.address is not None or number is not None
    if is_asked and why_exact:
        raise CommandError(
            f"--landmarks and --cluster approximate kernels, and {why_exact}; drop "
            "one, or take --method agreement-kkm with --cluster"
        )
    if is_asked:
        return "asked for"
    if why_exact:
        return ""
    bank = default_bank(len(data.views) > 1)
    per_view = len(bank.widths) + len(bank.polynomials) + (bank.linear is not None)
    n = data.n_samples
    n_bytes = 8 * (per_view * len(data.views) + 1) * n**2
    free = available_bytes()
    # Up to this number of samples, and half of the memory, exact kernels are computed.
    if n > 10_000 or (free is not None and 2 * n_bytes > free):
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
    earlier = None
    if request.align_with is not None:
        earlier = _read_earlier(request.align_with)
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
        forgiving(
            f"the clusters are not numbered as in {request.align_with}",
            lambda: align_clusters(model, earlier),
        )
    return replace(prepared, suggestion=suggestion)


def forgiving(consequence: str, compute: Callable[[], Any]) -> Any:
    """Compute what must not cost a finished fit: a failure is a warning, and None."""
    try:
        return compute()
    except (ValueError, TypeError, ImportError) as error:
        warnings.warn(f"{consequence}: {error}", stacklevel=2)
        return None


def _read_earlier(text: str) -> pd.Series:
    """Return the clusters of an earlier run by the ids of its samples."""
    if text.lower().endswith(".skops"):
        model = load_model(text)
        return pd.Series(np.asarray(model.labels_), training_index(model))

    path = Path(text)
    try:
        with errors_of(path):
            table = pd.read_csv(path, dtype={"id": str})
        ids = [from_spreadsheet(each) for each in table["id"]]
        clusters = pd.Series(table["cluster"].to_numpy(int), ids)
    except (KeyError, ValueError, TypeError) as error:
        raise CommandError(
            f"--align-with {text}: is no table with the columns id and cluster "
            f"({error!r}); give the labels or the model that mkclust cluster wrote"
        ) from None
    if clusters.index.tolist() == list(map(str, range(len(clusters)))):
        return clusters.reset_index(drop=True)  # of samples without ids
    return clusters


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
