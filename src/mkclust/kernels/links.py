r"""The graph of nearest neighbors as a kernel: who is a neighbor of whom, and nothing else.

With links :math:`W_{ab}`, one where both are neighbors of each other, one half where one is, and
degrees :math:`d_a = \sum_b W_{ab}`, the kernel is

.. math:: K = \tfrac12 \bigl( I + D^{-1/2} W D^{-1/2} \bigr), \qquad D = \mathrm{diag}(d)

The eigenvalues of the normalized graph lie between -1 and 1, so the shift by the identity makes it
positive semidefinite whatever the graph is, and changes no eigenvector. Its leading eigenvectors
are those of spectral clustering.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.kernels.neighborhoods import Neighborhoods
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class Links(Neighborhoods):
    """The neighborhoods of all samples by one kernel, whose graph of links is to be the kernel."""

    @classmethod
    def of(cls, neighborhoods: Neighborhoods) -> "Links":
        """Return the links of neighborhoods."""
        return cls(neighborhoods.members, neighborhoods.least)

    @property
    def links(self) -> Any:
        """The links of all samples, a sparse array of shape (n_samples, n_samples)."""
        members = self.members.astype(np.float64)
        links = (members + members.T) / 2
        links.setdiag(0)
        links.eliminate_zeros()
        return links.tocsr()

    def self_similarity(self) -> float:
        """Return the similarity of every sample with itself, new or not."""
        return 0.5

    def kernel(self) -> Any:
        """Return the similarities of all samples, sparse, (n_samples, n_samples)."""
        links = self.links
        roots = scipy.sparse.diags_array(_inverse_roots(links))
        identity = scipy.sparse.eye_array(self.n_samples, format="csr")
        return scipy.sparse.csr_array((identity + roots @ links @ roots) / 2)

    def cross(self, joined: Any, own: Any, samples: np.ndarray) -> Any:
        """Return the similarities of new samples to the training samples, as `Neighborhoods` does.

        A new sample is linked with those whose neighborhoods it joins and with those in its own.
        """
        links = scipy.sparse.csr_array((joined.astype(np.float64) + own.astype(np.float64)) / 2)
        rows, columns = _inverse_roots(links), _inverse_roots(self.links)
        similarities = scipy.sparse.diags_array(rows) @ links @ scipy.sparse.diags_array(columns)
        similarities = scipy.sparse.csr_array(similarities / 2)
        is_known = samples >= 0
        if not is_known.any():
            return similarities
        keep = scipy.sparse.diags_array((~is_known).astype(np.float64)) @ similarities
        known = np.flatnonzero(is_known)
        places = (np.ones(len(known)), (known, samples[known]))
        choice = scipy.sparse.csr_array(places, (len(samples), self.n_samples))
        return scipy.sparse.csr_array(keep + choice @ self.kernel())


def _inverse_roots(links: Any) -> Float:
    """Return 1 / sqrt(degree) of every row, zero for rows without links."""
    degrees = np.asarray(links.sum(axis=1)).reshape(-1)
    return np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
