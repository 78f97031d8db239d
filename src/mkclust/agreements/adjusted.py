"""Kernels of views that were adjusted for the same covariates.

Residuals of least squares lie in a space of fewer dimensions than there are samples,
the same one for all views, so permuted residuals of independent views are less alike
than the given ones. Kernels are therefore projected on that space, and written in an
orthonormal basis of it: in such coordinates residuals are uncorrelated and have equal
variances again, and can be permuted [1]_. That is exact for linear kernels. Others see
that residuals are small where covariates are extreme, in all views: what is linear in
the leverages is removed, too, and samples of high leverage are left out.

References
----------
.. [1] M.-H. Huh, M. Jhun. Random permutation testing in multiple linear regression.
   Communications in Statistics - Theory and Methods 30, 2001.
"""

from dataclasses import dataclass

import numpy as np

from mkclust.agreements.alignments import u_centered
from mkclust.linalg import to_host
from mkclust.stack.compare import Comparison, draw
from mkclust.types import Float

# Residuals of samples of a larger leverage have less than half the variance of others.
MOST_LEVERAGE = 0.5


@dataclass(frozen=True, eq=False)
class Rotated:
    """Kernels in coordinates of the residuals, in place of samples."""

    kernels: Float  # (c, s, s)

    @property
    def n_samples(self) -> int:
        """The number of coordinates."""
        return self.kernels.shape[1]

    def entries(self, indices: np.ndarray) -> Float:
        """Return the kernels among some of the coordinates."""
        return self.kernels[:, indices[:, None], indices]

    def alignments(self) -> Float:
        """Return the debiased alignments of the kernels, (c, c)."""
        centered = np.stack([u_centered(K.copy()) for K in self.kernels])
        flat = centered.reshape(len(centered), -1)
        products = flat @ flat.T
        norms = np.sqrt(np.diag(products))
        norms = np.where(norms > 0, norms, 1)
        return products / norms / norms[:, None]


def rotate(
    comparison: Comparison,
    covariates: Float,
    most_samples: int = 1024,
) -> Rotated:
    """Return the kernels of some samples in coordinates of the residuals."""
    drawn = draw(comparison.n_samples, most_samples)
    own = covariates[drawn]
    leverages = np.square(_bases(own)[0]).sum(axis=1)
    limit = max(MOST_LEVERAGE, 1.5 * leverages.mean())
    few = leverages <= limit
    explained = np.column_stack([own, leverages])[few]

    kernels = to_host(comparison.entries(drawn[few]))
    basis = _bases(explained)[1]
    rotated = basis.T @ kernels.astype(float) @ basis
    return Rotated(rotated)


def _bases(covariates: Float) -> tuple[Float, Float]:
    """Return orthonormal bases of what covariates explain, and of all else."""
    centered = covariates - covariates.mean(axis=0)
    constant = np.ones(len(covariates))
    design = np.column_stack([constant, centered])
    # Columns of one unit, so that rank is not a matter of units.
    lengths = np.linalg.norm(design, axis=0)
    varies = lengths > 0
    design = design[:, varies]
    design = design / lengths[varies]

    left, sizes, _ = np.linalg.svd(design, full_matrices=True)
    # Smaller directions, as a share of the largest, are rounding.
    is_real = sizes > 1e-10 * sizes[0]
    rank = int(is_real.sum())
    return left[:, :rank], left[:, rank:]
