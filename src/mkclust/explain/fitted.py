"""What can be asked of a fitted model, whatever its method."""

import numbers
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.same_input import is_approximated
from mkclust.methods.source import training_index


def check_fitted(model: Any) -> None:
    """Refuse what is not a fitted estimator of this library."""
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(
            f"model is a {type(model).__name__}: pass a fitted estimator of mkclust"
        )
    check_is_fitted(model)


def fitted_index(model: Any) -> Any:
    """Return the index of the samples of a fit, for arrays their number."""
    index = training_index(model)
    return len(model.labels_) if index is None else index


def kernel_source(model: Any) -> Literal["given", "bank", "features"]:
    """Return where the kernels came from: given as they are, a bank, or approximating features."""
    if is_approximated(model):
        return "features"
    return "bank" if hasattr(model, "bank_") else "given"


def observed_samples(model: Any) -> dict[str, np.ndarray]:
    """Return the numbers of the samples of every view, or given kernel; nothing if all have all."""
    if (observed := getattr(model, "observed_", None)) is None:
        return {}
    names = getattr(model, "view_names_in_", model.kernel_names_)
    return {name: np.flatnonzero(observed[:, v]) for v, name in enumerate(names)}


def unfitted_copy(model: Any) -> Any:
    """Return a copy to be fitted on views as they were understood, with an integer seed."""
    # Seeds that change from call to call would also change the clusters.
    return clone(model).set_params(views=None, random_state=integer_seed(model))


def integer_seed(model: Any) -> int:
    """Return the model's seed, or zero if it is not an integer."""
    seed = model.random_state
    return int(seed) if isinstance(seed, numbers.Integral) else 0
