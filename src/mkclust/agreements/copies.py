"""Which kernels are copies of one another, and which are linked through others."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mkclust.types import Float

# Two kernels with a larger alignment are copies.
COPY_ALIGNMENT = 0.99


def can_be_copies(pair_samples: np.ndarray) -> np.ndarray:
    """Return which pairs share all samples, or enough to be called copies, (m, m)."""
    own = np.diag(pair_samples)
    larger = np.maximum(own[:, None], own)
    # Copies have all samples in common, or at least this number: fewer can be alike by
    # chance.
    fewest_for_copies = 24
    needed = np.minimum(larger, fewest_for_copies)
    return np.asarray(pair_samples >= needed)


def independent_views(
    alignments: Float,
    views: Any,
    pair_samples: np.ndarray,
) -> np.ndarray:
    """Return the number of the independent view of each kernel, (m,).

    Views are copies, and one independent view, if every kernel of the one has a copy
    among the kernels of the other.
    """
    numbers = np.unique(views, return_inverse=True)[1]
    every = np.arange(numbers.max() + 1)
    of_view = numbers == every[:, None]
    alike = alignments > COPY_ALIGNMENT
    alike &= can_be_copies(pair_samples)
    # (view, kernel).
    has_copy = np.zeros(of_view.shape, bool)
    for view, members in enumerate(of_view):
        has_copy[view] = alike[:, members].any(axis=1)
    within = np.array([has_copy[:, members].all(axis=1) for members in of_view])
    return components(within & within.T)[numbers]


def components(links: np.ndarray) -> np.ndarray:
    """Return the number of each one's connected component, given the links, (m, m)."""
    # Sparse, because SciPy is slow on dense graphs.
    return connected_components(csr_array(links), directed=False)[1]
