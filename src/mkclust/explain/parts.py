"""Some of the samples of an input, in a form that can be fitted again."""

from dataclasses import replace
from typing import Any

import numpy as np

from mkclust.data.check import check_view
from mkclust.data.samples import Samples, read_samples
from mkclust.explain.fitted import unfitted_copy
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import is_approximated
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.bank import expected_input, with_rules_by_name
from mkclust.kernels.kinds import RULES
from mkclust.linalg import select


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
