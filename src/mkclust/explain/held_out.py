"""How well clusters fit samples, seen and unseen: the paper's error and its bound (section 4)."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mkclust.explain.fitted import has_centroids
from mkclust.linalg import namespace, to_host
from mkclust.types import Array, Float


def alignment_errors(model: Any, X: Any, self_similarity: Array | None = None) -> Float:
    r"""Return how far each sample is from being aligned with a cluster of a fitted model.

    .. math:: f(x) = 1 - \max_v \langle \phi_\gamma(x), C_v \rangle, \qquad
              C_v = \frac{1}{n_v} \sum_{i \in v} \phi_\gamma(x_i)

    The centroids are the means of the training samples of each cluster, in the feature space of
    the mixed kernel ``sum_p coefficients_p K_p``; every kernel is centered and scaled as in
    training.

    With kernels scaled to a unit diagonal and coefficients that sum to s, f lies between 1 - s and
    1 + s. Squared weights sum to as little as 1 / m, which keeps the error above 1 - 1 / m then,
    however clear the clusters are: compare errors of one mix on several samples, not those of
    several mixes.

    Parameters
    ----------
    model : fitted estimator
        One that mixes the kernels and can predict: it has ``coefficients_`` and ``predict``.
    X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
        As in ``predict``; the training kernels or views too.
    self_similarity : array of shape (m, n_new), default=None
        As in ``predict``.

    Returns
    -------
    ndarray of shape (n_new,)
        NaN for samples that have no entry in any view that is used.

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Section 4.
    """
    _check_mixes(model)
    samples = model._source.read(model, X, is_new=True)
    cosines, uncovered = model._embed(samples, self_similarity, model._centroids)
    errors = to_host(1 - namespace(cosines).max(cosines, axis=1))
    errors[uncovered] = np.nan
    return errors


def alignment_error(model: Any, X: Any, self_similarity: Array | None = None) -> float:
    """Return the mean of ``alignment_errors``: the paper's error of a clustering on some samples.

    On the training samples it is ``model.alignment_error_``, the empirical error. That is at most
    ``1 - Tr(K Y Y^T) / n``, with Y the normalized indicators of the clusters. With the relaxed H in
    place of Y, as in the paper, it need not hold: ``1 - Tr(K H H^T) / n`` is usually the smaller.

    Parameters
    ----------
    model : fitted estimator
        As in ``alignment_errors``.
    X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
        As in ``predict``.
    self_similarity : array of shape (m, n_new), default=None
        As in ``predict``.

    Returns
    -------
    float

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.explain.held_out import alignment_error
    >>> views = load("digits").views
    >>> seen = {name: view[:300] for name, view in views.items()}
    >>> unseen = {name: view[300:600] for name, view in views.items()}
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(seen)
    >>> bool(abs(alignment_error(model, seen) - model.alignment_error_) < 1e-10)
    True
    >>> bool(alignment_error(model, unseen) > model.alignment_error_)
    True
    """
    errors = alignment_errors(model, X, self_similarity)
    if np.isnan(errors).all():
        raise ValueError("X has no samples: the mean error needs at least one")
    return float(np.nanmean(errors))


def generalization_bound(model: Any, delta: float = 0.05) -> float:
    r"""Return the paper's bound on the expected alignment error of new samples.

    .. math:: \mathbb{E} f(x) \le \frac{1}{n} \sum_i f(x_i) + \sqrt{\frac{\pi}{2}}
              \frac{b k}{\sqrt{n}} + (1 + b) \sqrt{\frac{\log(1 / \delta)}{2 n}}

    with b = 1: entries of kernels with a unit diagonal do not exceed one.

    **What it says.** That with probability ``1 - delta`` over the draw of the training samples,
    new samples are on average not much less aligned with the centroids than these were. It says
    nothing about true classes. Centroids at zero have an error of exactly one, so only a bound
    below one tells of clusters, and that takes more than ``k^2 pi / 2`` samples at the very least
    (see ``informative_sample_size``); below two is all that the scaling alone ensures.

    **What it does not say.** The samples must be independent draws. The theorem is stated for all
    weights and centroids at once, learned ones included, and for fixed kernels: centering, and
    kernel widths taken from the data, depend on the sample, and that is not accounted for. It
    needs centroids of bounded length, which it does not say; means of samples are. Nor does its
    right side grow with the number of kernels m, as a statement for all weights at once must: for
    k = 1, n = 100 and kernels of random signs it fails more often than ``delta = 0.05`` from some
    three hundred kernels on (for larger k such an example takes very many more). The textbook road
    (symmetrization, contraction of the maximum) leads to :math:`2 b k (1 + \sqrt{2 \log m}) /
    \sqrt{n}` for the middle term.

    Parameters
    ----------
    model : fitted estimator
        As in ``alignment_errors``, fitted with ``center=True`` and ``normalize=True``, with
        coefficients that sum to one at most.
    delta : float, default=0.05
        The probability with which the bound may fail, between zero and one.

    Returns
    -------
    float

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple
       Kernel K-means. ICML 2020. Theorem 2.

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.explain.held_out import generalization_bound, informative_sample_size
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> bool(generalization_bound(model) > 1)
    True
    >>> informative_sample_size(10, model.alignment_error_) > 300
    True
    """
    _check_mixes(model)
    if hasattr(model, "observed_"):
        raise ValueError(
            "the bound is for samples that all views have, and some that the model was fitted on "
            "are missing from views; fit with join='inner'"
        )
    _check_unit_kernels(model)
    n = np.sum(np.asarray(model.labels_) >= 0)
    return model.alignment_error_ + _slack(model.n_clusters, delta) / np.sqrt(n)


def informative_sample_size(n_clusters: int, error: float, delta: float = 0.05) -> int:
    """Return the least number of samples at which ``generalization_bound`` is below one.

    One is the error of centroids at zero: what is not below it tells of no clusters.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, k.
    error : float
        Empirical error, at least zero and below one, taken to stay as it is: ``alignment_error_``
        of a fitted model, which rises a little with the number of samples.
    delta : float, default=0.05
        The probability with which the bound may fail, between zero and one.

    Returns
    -------
    int

    Examples
    --------
    >>> from mkclust.explain.held_out import informative_sample_size
    >>> informative_sample_size(10, 0.0), informative_sample_size(10, 0.9)
    (225, 22443)
    """
    if n_clusters < 1:
        raise ValueError(f"n_clusters={n_clusters}: pass at least 1")
    if not 0 <= error < 1:
        raise ValueError(
            f"error={error}: with an empirical error outside [0, 1) no number of samples brings "
            "the bound below one; pass the alignment_error_ of a model fitted on scaled kernels"
        )
    return int((_slack(n_clusters, delta) / (1 - error)) ** 2) + 1


def _slack(n_clusters: int, delta: float) -> float:
    """Return sqrt(n) times what Theorem 2 adds to the empirical error, for b = 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta}: pass a probability between 0 and 1, both excluded")
    b = 1
    return float(np.sqrt(np.pi / 2) * b * n_clusters + (1 + b) * np.sqrt(np.log(1 / delta) / 2))


def _check_mixes(model: Any) -> None:
    """Refuse a model whose clusters have no centroids that new samples could be compared with."""
    check_is_fitted(model)
    if not has_centroids(model):
        raise ValueError(
            f"{type(model).__name__} has no mix of the kernels that new samples can be compared "
            "by, so its clusters have no alignment error; use a method with coefficients_ and "
            "predict, such as SimpleMKKM"
        )


def _check_unit_kernels(model: Any) -> None:
    """Refuse a model whose mixed kernel is not known to stay within one."""
    for standardization, name in zip(
        model._source.extension.standardizations, model.kernel_names_, strict=True
    ):
        if standardization.row_means is None or standardization.scale is None:
            raise ValueError(
                "the bound is for kernels centered and scaled to a unit diagonal; fit with "
                "center=True and normalize=True"
            )
        if standardization.is_repaired:
            raise ValueError(
                f"{name} was indefinite and has been repaired, so its entries for new samples are "
                "not known to stay within one, as the bound needs; pass positive semidefinite "
                "kernels"
            )
    total = float(np.sum(model.coefficients_))
    if total > 1 + 1e-9:
        raise ValueError(
            f"the coefficients of {type(model).__name__} sum to {total:.3g}, and the bound is for "
            "sums of one at most; use a method whose coefficients are squares of weights that sum "
            "to one, such as SimpleMKKM"
        )
