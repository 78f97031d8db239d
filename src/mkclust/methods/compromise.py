"""The kernels that agree, and how they are mixed."""

from dataclasses import dataclass, replace

import numpy as np

from mkclust.agreements import Agreement, measure_agreement
from mkclust.stack import Stack
from mkclust.stack.features import with_active_views
from mkclust.stack.observed import with_active
from mkclust.types import Float


@dataclass(frozen=True)
class Compromise:
    """The kernels that are included, and how they are mixed."""

    agreement: Agreement  # of all kernels
    stack: Stack  # the included ones
    active: Stack  # all, rescaled for the included ones
    indices: list[int]  # which they are
    weights: Float
    coefficients: Float  # what mixes them

    def scatter(self, values: Float) -> Float:
        """Return values of the included kernels, with zeros for the others, (m,)."""
        scattered = np.zeros(len(self.agreement.names))
        scattered[self.indices] = values
        return scattered

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Names of the kernels that are not included."""
        names = enumerate(self.agreement.names)
        return tuple(name for p, name in names if p not in self.indices)


def find_compromise(stack: Stack) -> Compromise:
    """Return the compromise of the kernels that agree, independent of the others."""
    agreement = measure_agreement(stack)
    indices = agreement.chosen
    if len(indices) == stack.n_kernels:
        weights = agreement.weights()
        coefficients = agreement.coefficients()
        return Compromise(agreement, stack, stack, indices, weights, coefficients)

    # Found once more among these alone.
    active = activate(stack, indices)
    compromise = find_compromise(active.subset(indices))
    included = [indices[p] for p in compromise.indices]
    if len(included) < len(indices):
        active = activate(stack, included)

    return replace(
        compromise,
        agreement=agreement,
        stack=active.subset(included),
        active=active,
        indices=included,
    )


def activate(stack: Stack, indices: list[int]) -> Stack:
    """Return kernels rescaled to compensate for included ones that lack samples."""
    if stack.features is not None:
        return with_active_views(stack, indices)
    return replace(stack, kernels=with_active(stack.kernels, indices))
