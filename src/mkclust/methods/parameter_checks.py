"""Checks of parameters, alone and with the data."""

from typing import Any

from sklearn.utils import check_random_state

from mkclust.data.options import TABLE_RULES
from mkclust.exceptions import ClusterNumberWarning, warn
from mkclust.kernels import KernelBank
from mkclust.kernels.kinds import check_scale
from mkclust.parameters import Allowed, Count, Flag, Number, check_parameter
from mkclust.stack import Stack
from mkclust.stack.compare import count_distinct

# What the parameters that many methods share may be.
COMMON: dict[str, Allowed] = {
    "n_clusters": Count("; mkclust.suggest_n_clusters(X) finds one that the data support"),
    "center": Flag(),
    "normalize": Flag(),
    "n_init": Count(),
    "max_iter": Count(),
    "tol": Number(0, 1, open_low=True, open_high=True),
} | TABLE_RULES


def check_parameters(model: Any) -> None:
    """Refuse parameters of a model that are invalid for all data."""
    parameters = model.get_params(deep=False)
    for name, allowed in (COMMON | model.ALLOWED).items():
        if name in parameters:
            check_parameter(name, parameters[name], allowed)
    try:
        check_random_state(model.random_state)
    except ValueError as error:
        raise ValueError(f"random_state={model.random_state!r}: {error}") from None
    check_scale(model.scale)
    if model.approximation is not None:
        _check_approximation(model)
    can_learn = model.LEARNS_MISSING and model.approximation is None
    if model.missing_views == "learn" and not can_learn:
        raise ValueError(
            "missing_views='learn': only SimpleMKKM, MKKM, AverageKKM and AgreementKKM with exact "
            "kernels learn to fill in samples that are missing from views; use one of these with "
            "approximation=None, or pass missing_views='rescale' or missing_views='zero'"
        )


def _check_approximation(model: Any) -> None:
    """Refuse an invalid feature map, and any if a method needs entries of the kernels."""
    approximation = model.approximation
    is_map = hasattr(approximation, "transform")
    if not is_map or isinstance(approximation, type | KernelBank):
        raise ValueError(
            f"approximation={approximation!r}: pass None, or a feature map such as "
            "mkclust.kernels.Nystroem(n_components=200)"
        )
    if model.NEEDS_ENTRIES:
        raise ValueError(
            f"{type(model).__name__} needs the entries of the kernels, which features do not give: "
            "pass approximation=None, or use a method that mixes whole kernels, such as SimpleMKKM"
        )


def check_n_clusters(model: Any, stack: Stack) -> None:
    """Refuse as many clusters as samples, or distinct samples; warn of one and of nearly as many.

    Features stand for samples by a number of directions, which clusters must not exceed.
    """
    k, n, has_features = model.n_clusters, stack.n_samples, stack.features is not None
    reason = None
    if k > n and has_features:
        reason = f"but the features span only {n} directions: pass more features"
    elif k >= n and not has_features:
        reason = f"with n_samples={n}: there must be fewer clusters than samples"
    elif not has_features and k > 1 and (n_distinct := count_distinct(stack, k)) < k:
        reason = f"but only {n_distinct} of the {n} samples are distinct"
    if reason is not None:
        raise ValueError(f"n_clusters={k}, {reason}; ask for fewer clusters")
    if k == 1:
        warn(
            "n_clusters=1 puts all samples into one cluster: ask for 2 or more, or let "
            "suggest_n_clusters choose the number",
            ClusterNumberWarning,
        )
    elif 2 * k > n and not has_features:
        warn(
            f"n_clusters={k} with n_samples={n}: most clusters have one or two samples; ask for "
            "fewer clusters",
            ClusterNumberWarning,
        )
