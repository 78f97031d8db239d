"""Which number of clusters fits best, and which others may."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mkclust.exceptions import silence
from mkclust.explain.evidence import EvidenceOfClusters, find_evidence
from mkclust.explain.fitted import Parts
from mkclust.explain.stability import draw, seeded
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.steps import MOST_WRITTEN
from mkclust.methods import AgreementKKM, AverageKKM
from mkclust.methods.number_of_clusters import (
    NumberOfClusters,
    Pass,
    check_k_values,
    cut_samples,
    result_of,
)
from mkclust.parameters import Count, Number, check_parameter

# Parameters of estimators that say how X is read, and which kernels are made of it.
OF_KERNELS = {
    *("kernels", "center", "normalize", "psd", "views", "join", "impute", "scale"),
}
# Those of `AgreementKKM` that decide on its graph, and on the number that is taken.
OF_GRAPH = {"neighbors", "resolution"}


def suggest_n_clusters(
    X: Any,
    k_values: Iterable[int] | None = None,
    *,
    evidence: bool = False,
    max_samples: int = 5000,
    level: float = 0.02,
    random_state: Any = 0,
    **options: Any,
) -> NumberOfClusters:
    r"""Say which number of clusters fits best, which others may, and their clusters.

    The graph of neighborhoods of the recommended method, `AgreementKKM`, does not
    depend on the number of clusters: its eigenvectors are found once, and clustered for
    every number. Views that the method does not use play no part.

    **Which number fits best.** The number with the highest sum of three criteria, each
    from 0 for the worst number to 1 for the best:

    - *Eigengap*: the gap between eigenvalues k and k + 1 of the graph. Of k separate
      clusters of any size, k eigenvalues are near one.
    - *Tightness*: how near samples are to the centers of their clusters, in the
      directions of k eigenvectors.
    - *Agreement* of the clusters in the two graphs that the method cuts, one by shorter
      lists of neighbors in the mix, one by all lists of the mix and of the views.

    The next two numbers by this score are candidates, too: more than one number may be
    right, and `ClusterTreeDisplay` shows how the clusters of one become those of the
    next.

    **How strong the evidence is** that there are clusters at all, is tested if asked
    for, on at most 300 samples. The test statistic is the largest standardized
    silhouette over all numbers, :math:`\max_k (s_k - \bar s_k) / \sigma_k`, with mean
    and deviation over the data and all draws together. There is no evidence if it is
    not larger than for (almost) all draws of

    - *one cloud*: the samples rotated at random around their mean, with exactly their
      covariance.
    - *shuffled views*, if there are several: the samples of each view shuffled
      independently.

    The evidence is strong if samples are also sparser at the borders between clusters
    than in a continuum: significantly less than half as dense as near the centers for
    four clusters or more, 0.35 times as dense for two or three, and that times d - 1 if
    clusters extend in d > 2 directions. Else it is weak, as for a continuum cut into
    parts, or clusters that overlap.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of kernels or views, or table
        All that ``fit`` takes.
    k_values : iterable of int, default=None
        Numbers of clusters to try, from 2 to n - 1; None tries 2 to 25, at most n / 5.
    evidence : bool, default=False
        Whether to test how strong the evidence of clusters is, which takes longer.
    max_samples : int, default=5000
        Of more samples, this number is drawn at random.
    level : float, default=0.02
        Limit of the p-values; 1 / level - 1 draws without clusters are made.
    random_state : int, RandomState instance or None, default=0
        Seed of samples, resamples and draws.
    **options
        ``kernels``, ``center``, ``normalize``, ``psd``, ``views``, ``join``,
        ``impute`` and ``scale``, as in every estimator; ``neighbors`` and
        ``resolution``, as in `AgreementKKM`.

    Returns
    -------
    NumberOfClusters
        With `n_clusters`, `candidates`, a `table`, and the clusters `labels_by_k`.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import suggest_n_clusters
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(4, 6))[np.arange(120) % 4]
    >>> views = [3 * places + rng.normal(size=(120, 6)) for _ in range(2)]
    >>> found = suggest_n_clusters(views)
    >>> found.n_clusters, np.bincount(found.labels_by_k[4])
    (4, array([30, 30, 30, 30]))
    >>> noise = [rng.normal(size=(120, 6)), rng.normal(size=(120, 6))]
    >>> suggest_n_clusters(noise, [2, 3, 4], evidence=True).evidence
    'none'
    """
    check_parameter("max_samples", max_samples, Count())
    check_parameter("level", level, Number(0, 1, open_low=True, open_high=True))
    unknown = sorted(options.keys() - OF_KERNELS - OF_GRAPH)
    if unknown:
        raise TypeError(f"suggest_n_clusters has no parameter {unknown[0]!r}")
    model = AgreementKKM(n_clusters=2, random_state=0, **options)
    model.check_parameters()
    source = Parts(model, X)
    n_used = min(source.n_samples, max_samples)
    numbers = check_k_values(k_values, n_used)
    rng = seeded(random_state)
    with silence():
        drawn = None
        samples = source.samples
        if n_used < source.n_samples:
            drawn = draw(rng, source.n_samples, n_used)
            samples = source.take(drawn)
        # Of many samples, rows of kernels are read.
        cut = source.unfitted(model)
        if source.kernels != "precomputed" and n_used > MOST_WRITTEN:
            cut.set_params(kernels__on_the_fly=True)
        pass_ = cut_samples(cut, samples, numbers, rng)
        tests = None
        if evidence:
            tests = _test(model, source, drawn, pass_, numbers, level, rng)

    found = result_of(pass_, numbers, drawn, source.n_samples, tests)
    return replace(found, resolution=model.resolution)


def options_of(model: MultipleKernelClusterer) -> dict[str, Any]:
    """Return the parameters of a model that decide on its number of clusters."""
    names = OF_KERNELS
    # Neighbors of another method are another thing.
    if isinstance(model, AgreementKKM):
        names = OF_KERNELS | OF_GRAPH
    parameters = model.get_params(deep=False)
    return {name: parameters[name] for name in names & parameters.keys()}


def _test(
    model: AgreementKKM,
    source: Parts,
    drawn: np.ndarray | None,
    found: Pass,
    k_values: list[int],
    level: float,
    rng: np.random.Generator,
) -> EvidenceOfClusters:
    """Test how strong the evidence of clusters is, on some of the samples."""
    everyone = np.arange(source.n_samples) if drawn is None else drawn
    # Tests use this number of samples, or two for each cluster if that is more.
    n_tested = min(len(everyone), max(300, 2 * k_values[-1]))
    part = source.take(everyone[draw(rng, len(everyone), n_tested)])
    mixing = AverageKKM(
        kernels=source.kernels,
        missing_views="rescale",
        center=model.center,
        normalize=model.normalize,
        psd=model.psd,
    )
    p_agreement = 0.0
    if found.agreement.n_independent_views > 1:
        p_agreement = float(found.agreement.p_values.min())
    return find_evidence(
        mixing,
        part,
        found.shares,
        k_values,
        found.candidates[0],
        p_agreement=p_agreement,
        n_draws=int(np.ceil(1 / level - 1e-9)) - 1,
        level=level,
        rng=rng,
    )
