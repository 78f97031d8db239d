"""MKKM: mix the kernels by how well a partition explains each."""

from mkclust.engine.simplex import best_response
from mkclust.fit.base import RelaxedClusterer
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.mixture import Mixture, descend
from mkclust.fit.solution import Solution
from mkclust.methods.learned_fill import learn_fills, regressed_fills
from mkclust.stack import Stack
from mkclust.types import Float


def solve_mkkm(
    stack: Stack,
    n_clusters: int,
    *,
    tol: float = 1e-4,
    max_iter: int = 50,
    weights: Float | None = None,
) -> Solution:
    """Minimize the objective of `MKKM` over partition and weights in turns.

    ``weights``, of shape (n_kernels,), are those to start from; None starts from equal
    ones.
    """
    mixture = Mixture(stack, n_clusters)
    return descend(
        mixture,
        mixture.uniform if weights is None else weights,
        lambda unexplained: best_response(unexplained)[0],
        lambda gamma, unexplained: float(gamma**2 @ unexplained),
        tol=tol,
        max_iter=max_iter,
        recorded="after",
    )


class MKKM(RelaxedClusterer, InductiveClusterer):
    r"""Multiple kernel k-means [1]_, in its relaxed form.

    .. math:: \min_{\gamma \in \Delta,\, H^\top H = I_k}
              \mathrm{Tr}(K_\gamma (I - H H^\top)),
              \qquad K_\gamma = \sum_p \gamma_p^2 K_p

    In turns, H is the leading eigenvectors of the mix, and :math:`\gamma_p \propto 1 /
    a_p` with :math:`a_p = \mathrm{Tr}(K_p (I - H H^\top))`: the objective falls to a
    stationary point. The kernel that k directions explain best gets most of the weight,
    which need not be the one with the best clusters; kernels of rank k or less share
    all of it.

    With ``missing_views="learn"``, the default, features of samples that are missing
    from views are regressions of those observed on the partition (X. Liu et al., IEEE
    TPAMI 42(5), 2020).

    Parameters
    ----------
    {inductive}
    {stopping}
    {rounding}
    {common}
    weights_ : ndarray of shape (n_kernels,)
        They sum to one. Not importance: large if k directions explain the kernel well.
    {coefficients}
    {descent}
    {rounded}
    {notes}

    Examples
    --------
    >>> from mkclust import MKKM
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = MKKM(n_clusters=10, random_state=0).fit(views)
    >>> model.converged_, bool((model.history_[1:] <= model.history_[:-1]).all())
    (True, True)
    """

    tol: float = 1e-4
    max_iter: int = 50

    SUMMARY = (
        "which mixes the kernels by squared weights, found in turn with a relaxed "
        "partition"
    )
    REFERENCES = (
        "H.-C. Huang, Y.-Y. Chuang, C.-S. Chen. Multiple Kernel Fuzzy Clustering. IEEE "
        "Transactions on Fuzzy Systems 20(1), 2012.",
    )
    LEARNS_MISSING = True

    def _solve(self, stack: Stack) -> Solution:
        if not self._learns_missing(stack):
            return self._descend(stack)
        return learn_fills(stack, self._descend, regressed_fills, goal="falling")

    def _descend(self, stack: Stack, previous: Solution | None = None) -> Solution:
        options = self._options("tol", "max_iter") | {
            "weights": previous and previous.weights
        }
        return solve_mkkm(stack, self.n_clusters, **options)
