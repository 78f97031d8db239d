"""The problem as seen from a basis: small matrices in place of kernels."""

from dataclasses import dataclass

from mkclust.engine.cutting import Evaluation
from mkclust.linalg import sum_of_squares, top_eigenpairs
from mkclust.types import Array, Float


@dataclass(frozen=True)
class SmallProblem:
    """Every kernel as seen from an orthonormal basis V, and the anchor where there is one.

    Attributes
    ----------
    G : ndarray of shape (m, r, r)
        ``V^T K_p V`` of every kernel.
    n_clusters : int
        Number of clusters, k.
    width : int
        How many eigenvectors of a combination are wanted, k at least.
    like : array
        Says where the kernels live.
    strength : float
        How strongly every combination is drawn to the anchor.
    overlap : ndarray of shape (q, r) or None
        ``H_0^T V``, of the anchor's vectors; None where there is no anchor.
    """

    G: Float
    n_clusters: int
    width: int
    like: Array
    strength: float = 0.0
    overlap: Float | None = None

    def combined(self, weights: Float) -> Float:
        """Return the combination of some weights, anchor included, (r, r)."""
        m, r, _ = self.G.shape
        combined = (weights**2 @ self.G.reshape(m, r * r)).reshape(r, r)
        if self.overlap is None:
            return combined
        return combined + self.strength * (self.overlap.T @ self.overlap)

    def evaluate(self, weights: Float) -> Evaluation:
        """Return the value and the alignments at some weights; the state are the eigenpairs."""
        offset, k = 0.0, self.n_clusters
        values, S = top_eigenpairs(
            self.combined(weights), min(self.width, self.G.shape[1]), self.like
        )
        if self.overlap is not None:
            offset = self.strength * sum_of_squares(self.overlap @ S[:, :k])
        projector = S[:, :k] @ S[:, :k].T
        alignments = self.G.reshape(len(self.G), -1) @ projector.reshape(-1)
        return Evaluation(float(values[:k].sum()), alignments, (values, S), offset)
