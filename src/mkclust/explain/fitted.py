"""What can be asked of a fitted model, whatever its method, and parts of its input."""

import numbers
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.data.check import check_view
from mkclust.data.samples import Samples, read_samples
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.from_features import FromFeatures
from mkclust.fit.same_input import is_approximated
from mkclust.fit.training_input import training_index
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.bank import expected_input, with_rules_by_name
from mkclust.kernels.kinds import RULES
from mkclust.linalg import select


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


class Parts:
    """Input in any form that a model takes, some of whose samples can be taken."""

    def __init__(self, model: MultipleKernelClusterer, X: Any):
        # Features are made from views, whatever these might be taken for otherwise.
        kernels = model.kernels
        if is_approximated(model):
            kernels = default_bank(True, "gaussian")

        self.samples = read_samples(
            X, expected=expected_input(kernels), options=model.table_options
        )
        self.n_samples = self.samples.n_samples
        self.kernels: Any = "precomputed"  # for parts: the kinds of views are fixed
        self._pairs: list[str] = []  # the views whose columns are samples
        if self.samples.kind == "kernels":
            return

        bank = kernels
        if not isinstance(bank, KernelBank):
            several = self.samples.kind == "views"
            bank = default_bank(several, kernels, model.scale)
        if bank.rules is not None and not self.samples.is_lazy:
            # By the samples that the fit made kernels of, if there was one.
            fitted = self.samples
            seen = getattr(model, "_covered", None)
            if seen is not None:
                fitted = fitted.take(seen)
            bank = with_rules_by_name(bank, fitted)
            self._pairs = [
                name for name, rule in bank.rules.items() if RULES[rule.kernel].of_pairs
            ]
        self.kernels = bank

    def take(self, rows: np.ndarray) -> Samples:
        """Return some samples, by their rising indices."""
        taken = self.samples.take(rows).computed()
        if not self._pairs:
            return taken
        parts = taken.by_name
        missing = self.samples.missing
        for name in self._pairs:
            observed = np.arange(self.n_samples)
            if missing is not None:
                place = self.samples.names.index(name)
                observed = np.flatnonzero(~missing[:, place])
            columns = np.flatnonzero(np.isin(observed, rows))
            view = check_view(parts[name], f"View {name!r}")
            parts[name] = select(view, columns, axis=1)
        return replace(taken, parts=tuple(parts.values()))

    def unfitted(self, model: MultipleKernelClusterer) -> MultipleKernelClusterer:
        """Return a copy of a model to fit on parts, with an integer seed."""
        copy = unfitted_copy(model)
        if not is_approximated(model):
            copy.set_params(kernels=self.kernels, scale="auto")  # a bank has its own
        return copy
