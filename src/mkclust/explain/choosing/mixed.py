"""One kernel from many: the mix in which clusters are looked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from mkclust.stack import as_stack
from mkclust.types import Float


@dataclass(frozen=True)
class Recipe:
    """How samples become one kernel: as in ``fit``, then mixed by fixed coefficients.

    Attributes
    ----------
    kernels : "precomputed" or KernelBank
        What the samples are, or what makes kernels of them.
    center, normalize, psd, validate
        As in every estimator.
    coefficients : ndarray of shape (n_kernels,) or None
        Coefficients of the mix; None takes the average.
    """

    kernels: Any
    center: bool
    normalize: bool
    psd: Literal["error", "clip", "shift"]
    validate: bool = True
    coefficients: Float | None = None

    def stack(self, X: Any, *, validate: bool = True) -> Any:
        """Return the kernels of some samples, centered and scaled as in ``fit``."""
        settings: dict[str, Any] = {"center": self.center, "normalize": self.normalize}
        if isinstance(self.kernels, str):
            validate = validate and self.validate
            return as_stack(X, psd=self.psd, validate=validate, **settings)
        bank = clone(self.kernels).set_params(on_the_fly=False)
        # The bank's own kernels are positive semidefinite by construction.
        return as_stack(bank.fit_transform(X), validate=False, names=bank.kernel_names_, **settings)

    def shares(self, n_kernels: int) -> Float:
        """Return the coefficients of so many kernels, summing to one."""
        if self.coefficients is None:
            return np.full(n_kernels, 1 / n_kernels)
        if len(self.coefficients) != n_kernels:
            raise ValueError(
                f"{len(self.coefficients)} coefficients for {n_kernels} kernels: pass one for each"
            )
        return self.coefficients / self.coefficients.sum()

    def mix(self, X: Any, *, validate: bool = True) -> Float:
        """Return the mixed kernel of some samples, centered, (n, n)."""
        stack = self.stack(X, validate=validate)
        return centered(stack.combine(self.shares(stack.n_kernels)).dense())

    def mixes(self, X: Any, n_views: int) -> list[Float]:
        """Return what each view, or single kernel, contributes to the mix, (n, n) each."""
        stack = self.stack(X)
        shares = self.shares(stack.n_kernels)
        view = np.arange(stack.n_kernels) * n_views // stack.n_kernels
        parts = (np.where(view == v, shares, 0) for v in range(n_views))
        return [centered(stack.combine(part).dense()) for part in parts]


def centered(K: Float) -> Float:
    """Return a kernel centered, whatever was done to it before."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def shuffled(mixes: Sequence[Float], rng: np.random.Generator) -> Float:
    """Return the mix with the samples of every view shuffled for themselves.

    What each view has of its own stays; what views share is gone.
    """
    total = mixes[0].copy()
    for K in mixes[1:]:
        order = rng.permutation(len(K))
        total += K[np.ix_(order, order)]
    return total
