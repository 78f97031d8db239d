"""Parameters that no data, or not these data, could make sense of."""

from typing import Any

from sklearn.utils import check_random_state

from mkclust.data.options import TABLE_RULES
from mkclust.kernels import KernelBank
from mkclust.kernels.neighbors import NeighborCount
from mkclust.parameters import (
    Allowed,
    ClusterCount,
    Count,
    Flag,
    Number,
    check_parameter,
)
from mkclust.stack import Stack
from mkclust.stack.distinct import count_distinct

# What the parameters that many methods share may be.
COMMON: dict[str, Allowed] = {
    "n_clusters": ClusterCount(),
    "center": Flag(),
    "normalize": Flag(),
    "neighbors": NeighborCount(),
    "n_init": Count(),
    "max_iter": Count(),
    "tol": Number(0, 1, open_low=True, open_high=True),
} | TABLE_RULES


def check_parameters(model: Any) -> None:
    """Refuse parameters of a model that no data could make sense of."""
    parameters = model.get_params(deep=False)
    for name, allowed in (COMMON | model.ALLOWED).items():
        if name in parameters:
            check_parameter(name, parameters[name], allowed)
    try:
        check_random_state(model.random_state)
    except ValueError as error:
        raise ValueError(f"random_state={model.random_state!r}: {error}") from None
    if model.approximation is not None:
        _check_approximation(model)
    if model.missing_views == "learn":
        _check_learns_missing(model)


def _check_approximation(model: Any) -> None:
    """Refuse what is not a feature map, and any if a method needs entries of the kernels."""
    approximation = model.approximation
    is_map = hasattr(approximation, "transform")
    if not is_map or isinstance(approximation, type | KernelBank):
        raise ValueError(
            f"approximation={approximation!r}: pass None, or a feature map such as "
            "mkclust.kernels.Nystroem(n_components=200)"
        )
    if model.kernel_neighbors is not None:
        raise ValueError(
            f"neighbors={model.neighbors!r} with an approximation: features have no neighbors; "
            "pass neighbors=None or approximation=None"
        )
    if model.NEEDS_ENTRIES:
        raise ValueError(
            f"{type(model).__name__} needs the entries of the kernels, which features do not give: "
            "pass approximation=None, or use a method that mixes whole kernels, such as SimpleMKKM"
        )


def _check_learns_missing(model: Any) -> None:
    """Refuse to learn what is missing if a method, or a feature map, cannot."""
    if not model.LEARNS_MISSING:
        raise ValueError(
            f"missing_views='learn': {type(model).__name__} cannot learn to fill in samples that "
            "are missing from views; pass missing_views='rescale' or missing_views='zero', or use "
            "SimpleMKKM, MKKM, AverageKKM or AgreementKKM"
        )
    if model.approximation is not None:
        raise ValueError(
            "missing_views='learn' with an approximation: samples that are missing from views are "
            "learned with exact kernels only; pass approximation=None, or missing_views='rescale' "
            "or missing_views='zero'"
        )


def check_n_clusters(model: Any, stack: Stack) -> None:
    """Refuse more clusters than there are samples, or distinct samples."""
    k, n = model.n_clusters, stack.n_samples
    if stack.features is not None:
        if k > n:
            raise ValueError(
                f"n_clusters={k}, but the features span only {n} directions: ask for fewer "
                "clusters, or for more features"
            )
    elif k > n:
        raise ValueError(
            f"n_clusters={k} with n_samples={n}: there cannot be more clusters than samples"
        )
    elif k > 1 and (n_distinct := count_distinct(stack, k)) < k:
        raise ValueError(
            f"n_clusters={k}, but only {n_distinct} of the {n} samples are distinct: ask for fewer "
            "clusters"
        )
