"""What can be asked of a fitted model, whatever its method."""

import numbers
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.from_features import FromFeatures
from mkclust.fit.same_input import is_approximated
from mkclust.fit.training_input import training_index


def check_fitted(model: MultipleKernelClusterer) -> None:
    """Refuse what is not a fitted estimator of this library."""
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(
            f"model is a {type(model).__name__}: pass a fitted estimator of mkclust"
        )
    check_is_fitted(model)


def fitted_index(model: MultipleKernelClusterer) -> Any:
    """Return the index of the samples of a fit, for arrays their number."""
    index = training_index(model)
    return len(model.labels_) if index is None else index


def kernel_source(
    model: MultipleKernelClusterer,
) -> Literal["given", "bank", "features"]:
    """Return where kernels are from: given, of a bank, or of features."""
    if is_approximated(model):
        return "features"
    if hasattr(model, "bank_"):
        return "bank"
    return "given"


def features_of(model: MultipleKernelClusterer) -> FromFeatures:
    """Return what a model was fitted on whose kernels are those of features."""
    source = model._source
    assert isinstance(source, FromFeatures)
    return source


def samples_of_views(model: MultipleKernelClusterer) -> dict[str, np.ndarray]:
    """Return the samples that each view has; nothing if no view lacks any."""
    observed = getattr(model, "observed_", None)
    if observed is None:
        return {}
    names = getattr(model, "view_names_in_", model.kernel_names_)
    return {name: np.flatnonzero(observed[:, v]) for v, name in enumerate(names)}


def unfitted_copy(model: MultipleKernelClusterer) -> MultipleKernelClusterer:
    """Return a copy to fit on views as they were understood, with an integer seed."""
    # Seeds that change from call to call would also change the clusters.
    copy = clone(model).set_params(views=None, random_state=integer_seed(model))
    if hasattr(model, "labels_"):
        copy.set_params(n_clusters=model.n_clusters_)
    return copy


def integer_seed(model: MultipleKernelClusterer) -> int:
    """Return the model's seed, or zero if it is not an integer."""
    seed = model.random_state
    return int(seed) if isinstance(seed, numbers.Integral) else 0
