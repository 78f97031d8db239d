"""Kernels of views that were adjusted for the same covariates.

Residuals of least squares lie in a space of fewer dimensions than there are samples,
the same one for all views, so permuted residuals of independent views are less alike
than the given ones. Kernels are therefore projected on that space, and written in an
orthonormal basis of it: in such coordinates residuals are uncorrelated and have equal
variances again, and can be permuted [1]_.

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

# Samples whose kernels are written out in the new coordinates.
ROTATED_SAMPLES = 1024
# Directions of covariates with smaller singular values, as a share of the largest, are
# rounding.
ROUNDING = 1e-10


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
        flat = np.stack([u_centered(K.copy()).reshape(-1) for K in self.kernels])
        products = flat @ flat.T
        norms = np.sqrt(np.diag(products))
        norms = np.where(norms > 0, norms, 1)
        return products / norms / norms[:, None]


def rotate(comparison: Comparison, covariates: Float) -> Rotated:
    """Return the kernels of some samples in coordinates of the residuals."""
    drawn = draw(comparison.n_samples, ROTATED_SAMPLES)
    kernels = to_host(comparison.entries(drawn))
    own = covariates[drawn]
    design = np.column_stack([np.ones(len(own)), own - own.mean(axis=0)])
    # Columns of one unit, so that rank is not a matter of units.
    lengths = np.linalg.norm(design, axis=0)
    design = design[:, lengths > 0] / lengths[lengths > 0]

    left, sizes, _ = np.linalg.svd(design, full_matrices=True)
    rank = int((sizes > ROUNDING * sizes[0]).sum())
    basis = left[:, rank:]
    return Rotated(basis.T @ kernels.astype(float) @ basis)
