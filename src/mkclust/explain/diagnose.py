"""Examine the kernels of a fitted model."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkclust.explain.diagnosis import Diagnosis
from mkclust.explain.examined import Examined, ExaminedKernels
from mkclust.explain.examined_features import ExaminedFeatures
from mkclust.explain.fitted import check_fitted, integer_seed, is_approximated
from mkclust.explain.noise import BEYOND_CHANCE, SAME, chances, judged_together, redundancies
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.samples import Samples
from mkclust.samples.dask import agreement

# Alignments, of which eigenvalue sums are known to a thousandth, differ by less than this.
SAME_ALIGNMENT = 0.01
# With fewer samples than this even kernels of the same clusters may not get beyond chance.
FEWEST_SAMPLES = 30


def diagnose(model: Any, X: Any, *, leave_one_out: bool = True) -> Diagnosis:
    r"""Say what each kernel of a fitted model brings: structure, agreement, a copy, or noise.

    **When a kernel looks like noise.** If it shares nothing with any other kernel beyond chance,
    and has no clear clusters of its own. Labels and weights play no part in that, nor does the
    consensus, which noise may have ruined.

    - *Shares.* :math:`\langle K_p, K_q \rangle` of the centered kernels is compared with what it
      would be if the samples of one of them were shuffled. The mean and the variance over all
      permutations are known exactly [1]_, and a gamma distribution with these says how likely
      that is. So it is done with every other kernel and with the average of the others; the
      least likely of these, times their number, is ``chance``. Less than 1e-4 is beyond chance.
      Kernels of a redundancy above 0.99 are judged together, by their average, and so are the
      kernels that a bank made of one of several views: what they share with each other proves
      nothing.
    - *Clusters of its own.* For some number c of clusters, from two to k + 2, the spectrum of the
      centered kernel drops by a quarter or more after c - 1 eigenvalues, and few samples
      (8 percent) lie in the middle third of the way between the clusters that k-means finds in
      these eigenvectors. Such a kernel stands alone: it is no noise.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on, with two kernels or more: files and dask arrays, too.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Everything is deterministic: where ``random_state`` is no integer, k-means starts from the
    seed zero.

    Of kernels that are read from files or made on the fly nothing is written down; but each takes
    many passes of its own, and a refit takes as many as a fit. With an approximation the kernels
    are those of the features that the model learned, in refits too; whether other landmarks would
    give other clusters, `landmark_stability` tells. Every question is then answered by sums over
    the samples, so that dask arrays stay where they are, except that clusters of its own are
    looked for in a kernel on 10,000 samples at most.

    Limits of the rule. Clusters that overlap and that no other kernel shares cannot be told from
    noise: they are called noise. Whatever two kernels share counts, be it a batch effect, and the
    more samples the less of it is needed. Two unlike kernels that were precomputed from one noise
    view share that view's features, so that neither is called noise; the same holds for the
    kernels of a single table. With fewer than thirty samples, or where all kernels are copies of
    one, no kernel is called noise. If all kernels are noise, all are named.

    References
    ----------
    .. [1] F. Kazi-Aoual, S. Hitier, R. Sabatier, J.-D. Lebreton. Refined approximations to
       permutation tests for multivariate inference. Computational Statistics & Data Analysis 20,
       1995.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, diagnose
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> diagnosis = diagnose(model, views)
    >>> diagnosis.noise
    ('dice',)
    >>> print(diagnosis)  # doctest: +ELLIPSIS
    AverageKKM, 10 clusters, 5 kernels
    ...
    Kernel 'dice' looks like noise: it shares nothing with the other kernels beyond chance ...
    """
    check_fitted(model)
    if len(model.kernel_names_) < 2:
        raise ValueError(
            "the model was fitted on one kernel: there is nothing to compare it with; a diagnosis "
            "takes two kernels or more"
        )
    with warnings.catch_warnings():
        # The model itself has warned when it was fitted.
        warnings.simplefilter("ignore")
        examined = examine(model, in_order_of_fit(model, X))
        return diagnose_examined(model, examined, leave_one_out=leave_one_out)


def examine(model: MultipleKernelClusterer, samples: Samples) -> Examined:
    """Return the kernels of a fitted model, by samples in the order of its labels."""
    kind = ExaminedFeatures if is_approximated(model) else ExaminedKernels
    return kind(model, samples, integer_seed(model))


def diagnose_examined(
    model: MultipleKernelClusterer, examined: Examined, *, leave_one_out: bool
) -> Diagnosis:
    """Say what each of two kernels or more brings, as `diagnose` does, once they are examined."""
    _check_same(model, examined)
    names, redundancy = model.kernel_names_, redundancies(examined.gram)
    structure, traces = examined.structure()
    together = judged_together(model, redundancy)
    chance = chances(examined.gram, examined.diagonals, together)
    alone, noise = _unshared(examined, chance, together)
    values, has_trace = np.array([relaxation.value for relaxation in structure]), traces > 0
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=model.n_clusters,
        names=names,
        weights=model.weights_.copy(),
        alignments=model.alignments_.copy(),
        top_share=np.where(has_trace, values / np.where(has_trace, traces, 1), np.nan),
        cluster_gap=np.array([relaxation.cluster_gap for relaxation in structure]),
        agreement=np.array([_agreement(model, labels) for labels in examined.labels]),
        leave_one_out=_agreements_without_each(model, examined, leave_one_out),
        redundancy=redundancy,
        chance=chance,
        noise=_chosen(names, noise),
        alone=_chosen(names, alone),
        duplicates=tuple(
            (names[p], names[q]) for p, q in np.argwhere(np.triu(redundancy > SAME, 1))
        ),
    )


def _unshared(
    examined: Examined, chance: np.ndarray, together: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which kernels share nothing: those with clusters of their own, and noise, (m,)."""
    alone, noise = np.zeros((2, len(chance)), bool)
    if examined.n_samples < FEWEST_SAMPLES or together.all():
        return alone, noise
    unshared = chance >= BEYOND_CHANCE
    for p in np.flatnonzero(unshared).tolist():
        alone[p] = examined.has_clusters(p)
    alone = together @ alone
    return alone, unshared & ~alone


def _agreements_without_each(
    model: MultipleKernelClusterer, examined: Examined, leave_one_out: bool
) -> np.ndarray:
    """Return how far the clusters stay the same without each kernel, NaN where not known, (m,)."""
    m = len(examined.labels)
    without = [examined.labels_without(p) if leave_one_out else None for p in range(m)]
    return np.array([np.nan if one is None else _agreement(model, one) for one in without])


def _agreement(model: MultipleKernelClusterer, labels: Any) -> float:
    """Return the adjusted Rand index between the model's clusters and others."""
    return agreement(model.labels_, labels, model.n_clusters)


def _check_same(model: MultipleKernelClusterer, examined: Examined) -> None:
    """Refuse kernels that the model's partition does not fit as it fitted those of the fit."""
    alignments = examined.captured() / np.array(
        [relaxation.value for relaxation in examined.relaxations]
    )
    for name, now, then in zip(model.kernel_names_, alignments, model.alignments_, strict=True):
        if abs(now - then) > SAME_ALIGNMENT:
            raise ValueError(
                f"X is not what the model was fitted on: kernel {name!r} is aligned with the "
                f"consensus to {now:.2f}, and was to {then:.2f}; pass the same kernels and samples "
                "in the same order"
            )


def _chosen(names: Sequence[str], mask: np.ndarray) -> tuple[str, ...]:
    """Return the names that a mask chooses."""
    return tuple(name for name, is_chosen in zip(names, mask, strict=True) if is_chosen)
