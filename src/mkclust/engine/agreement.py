r"""What kernels share beyond chance: unbiased alignments, and how likely chance does as well.

The diagonal of a kernel says nothing about which samples are alike, but for kernels of many
dimensions it is most of ``Tr(K_p K_q)``, and makes noise look alike. Without the diagonals, and
with what their absence leaves of the row means taken away (U-centered), the inner products are

.. math:: u_{pq} = \frac{1}{n (n - 3)} \left[ \mathrm{Tr}(\tilde K_p \tilde K_q)
    + \frac{1^\top \tilde K_p 1 \; 1^\top \tilde K_q 1}{(n - 1)(n - 2)}
    - \frac{2}{n - 2} 1^\top \tilde K_p \tilde K_q 1 \right]

whose mean over all permutations of one kernel's samples is exactly zero, and whose variance is
exactly :math:`2 u_{pp} u_{qq} / (n (n - 3))`.

References
----------
.. [1] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt. Feature Selection via Dependence
   Maximization. JMLR 13, 2012. Eq. 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from mkclust.linalg import eigvalsh, is_foreign, namespace, set_diagonal, sum_of_squares
from mkclust.linalg.lanczos import products_with, ritz_values
from mkclust.linalg.threads import threads_for
from mkclust.types import Array, Float

# Samples that u_pq takes at least: with three of them nothing is left to compare.
FEWEST_SAMPLES = 4
# A kernel whose squared U-centered norm is below this share of its entries' is a multiple of the
# identity, up to rounding.
ROUNDING = 1e-12
# Lanczos steps by which the largest eigenvalue is sought, fewer where these are enough, and the
# share of it within which it has to be found; where it is not, all eigenvalues are computed.
LANCZOS_STEPS, FEW_STEPS, WELL_KNOWN = 24, 16, 1e-7


@dataclass(frozen=True)
class OffDiagonalProducts:
    """What pairs of kernels have in common off their diagonals, summed over the samples.

    Attributes
    ----------
    n_samples : int
        Number of samples, n.
    products : ndarray of shape (m, m)
        ``Tr(K_p K_q)`` of the kernels with zero diagonals.
    row_products : ndarray of shape (m, m)
        Inner products of their row sums, ``1^T K_p K_q 1``.
    totals : ndarray of shape (m,)
        Sums of their entries.
    """

    n_samples: int
    products: Float
    row_products: Float
    totals: Float

    def unbiased(self) -> Float:
        """Return the inner products u_pq of the U-centered kernels, (m, m)."""
        n = self.n_samples
        if n < FEWEST_SAMPLES:
            return np.zeros_like(self.products)
        totals = np.outer(self.totals, self.totals) / ((n - 1) * (n - 2))
        u = self.products + totals - 2 / (n - 2) * self.row_products
        norms = np.diag(u)
        # What is smaller than the rounding of what it is the difference of, is nothing.
        lost = norms <= ROUNDING * np.diag(self.products)
        u[lost, :] = u[:, lost] = 0.0
        return u / (n * (n - 3))


def debiased_alignments(products: OffDiagonalProducts) -> tuple[Float, Float]:
    """Return how alike kernels are, without their diagonals, and how much there is of each.

    Parameters
    ----------
    products : OffDiagonalProducts
        Of m kernels.

    Returns
    -------
    alignments : ndarray of shape (m, m)
        ``C_pq = u_pq / sqrt(u_pp u_qq)``, from -1 to 1; zero for kernels of which nothing is left.
    norms : ndarray of shape (m,)
        ``d_p = sqrt(u_pp)``: small for noise, large where few directions hold all there is.
    """
    u = products.unbiased()
    norms = np.sqrt(np.maximum(np.diag(u), 0))
    divisors = np.where(norms > 0, norms, 1)
    alignments = np.clip(u / divisors / divisors[:, None], -1, 1)
    np.fill_diagonal(alignments, np.where(norms > 0, 1.0, 0.0))
    return alignments, norms


def permutation_scores(alignments: Float, n_samples: int) -> Float:
    """Return by how many standard deviations of chance kernels are alike, (m, m).

    Over all permutations of one kernel's samples the mean of an alignment is zero, and its variance
    ``2 / (n (n - 3))``, whatever the kernels are.
    """
    if n_samples < FEWEST_SAMPLES:
        return np.zeros_like(alignments)
    return alignments * np.sqrt(n_samples * (n_samples - 3) / 2)


def leading_shares(entries: Array) -> Float:
    """Return the largest eigenvalue of U-centered kernels as a share of their norms, (m,).

    Parameters
    ----------
    entries : array of shape (m, s, s)
        The kernels, among some of the samples; their memory is made use of.

    Returns
    -------
    ndarray of shape (m,)
        One where a kernel has a single direction, close to zero where it has very many. Of fewer
        samples it is larger rather than smaller.
    """
    centered = [_u_centered(entries[p, :, :]) for p in range(entries.shape[0])]
    norms = np.array([sum_of_squares(each) ** 0.5 for each in centered])
    largest = np.full(len(norms), np.nan)
    if len(norms) and not is_foreign(entries):
        largest = _largest_seen(centered)
    for p in np.flatnonzero(np.isnan(largest)).tolist():
        largest[p] = np.abs(eigvalsh(centered[p])).max()
    return np.minimum(np.divide(largest, norms, out=np.ones_like(norms), where=norms > 0), 1.0)


def _largest_seen(matrices: Sequence[Float]) -> Float:
    """Return the largest sizes of eigenvalues that Lanczos steps find, NaN where not for sure."""
    shape = len(matrices), len(matrices[0])
    with threads_for(shape[1]):
        values, residuals = ritz_values(
            products_with(matrices), shape, LANCZOS_STEPS, few_steps=FEW_STEPS, enough=WELL_KNOWN
        )
    place = np.arange(len(values)), np.argmax(np.abs(values), axis=1)
    sizes = np.abs(values[place])
    return np.where(residuals[place] <= WELL_KNOWN * sizes, sizes, np.nan)


def _u_centered(K: Array) -> Array:
    """Return a kernel with zeros on its diagonal and row sums of zero, (s, s), in its memory."""
    xp, n = namespace(K), K.shape[0]
    if n < FEWEST_SAMPLES:
        return xp.zeros_like(K)
    centered = K
    set_diagonal(centered, 0.0)
    sums = xp.sum(centered, axis=1) / (n - 2)
    centered -= sums - xp.sum(sums) / (n - 1)
    centered -= sums[:, None]
    set_diagonal(centered, 0.0)
    return centered


def chances(scores: Float, shares: Float) -> Float:
    r"""Return how likely chance makes kernels as alike as they are, or likelier, (m, m).

    Of many samples, an alignment of permuted kernels is a sum :math:`\sum_{ij} \lambda_i \mu_j
    (\xi_{ij}^2 - 1)` of the eigenvalues of both with standard normal :math:`\xi`. No such sum of
    unit variance has a larger moment generating function than that of equal terms, each as large as
    the largest of them. Its distribution is a gamma distribution: of shape 1/2 for two kernels of
    one direction each, close to normal for kernels of many.

    Parameters
    ----------
    scores : ndarray of shape (m, m)
        From `permutation_scores`.
    shares : ndarray of shape (m,)
        From `leading_shares`.
    """
    shape = 1 / (2 * np.outer(shares, shares) ** 2)
    quantile = shape + scores * np.sqrt(shape)
    return gammaincc(shape, np.maximum(quantile, 0))
