"""Average ranks over data sets, and which of them differ: Friedman's and Nemenyi's tests."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mkclust.bench.tables.statistics import SAME
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class Ranking:
    """Average ranks of methods over data sets, and what they can tell apart.

    Attributes
    ----------
    methods : tuple of str
        From the best average rank to the worst.
    ranks : ndarray of shape (n_methods,)
        Average ranks, 1 being the best; ties share.
    times_best : tuple of int
        On how many data sets no other method is better.
    datasets : tuple of str
        The data sets ranked on.
    chi2, chi2_p_value : float
        Friedman's test that all methods are alike, corrected for ties.
    f, f_p_value : float
        The same test in the less conservative form of Iman and Davenport.
    critical_difference : float
        Average ranks further apart differ significantly (Nemenyi's test).
    alpha : float
        The level of that test.
    cliques : tuple of tuple of str
        The largest groups of methods within the critical difference; of two methods or more.
    methods_left_out, datasets_left_out : tuple of str
        What was left out because scores were missing.
    """

    methods: tuple[str, ...]
    ranks: Float
    times_best: tuple[int, ...]
    datasets: tuple[str, ...]
    chi2: float
    chi2_p_value: float
    f: float
    f_p_value: float
    critical_difference: float
    alpha: float
    cliques: tuple[tuple[str, ...], ...]
    methods_left_out: tuple[str, ...] = ()
    datasets_left_out: tuple[str, ...] = ()


def rank_methods(scores: Mapping[str, Mapping[str, float]], alpha: float = 0.05) -> Ranking:
    """Rank methods on every data set, and test the average ranks for differences [1]_.

    Ranks need a score of every method on every data set. Where scores are missing, the method or
    the data set that misses the largest share of them is left out (of equals a method before a
    data set), until none is missing.

    Parameters
    ----------
    scores : dict of str to dict of str to float
        For each data set the scores of the methods, larger being better.
    alpha : float, default=0.05
        Level of Nemenyi's test.

    Returns
    -------
    Ranking

    Raises
    ------
    ValueError
        If fewer than two methods share two data sets.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from mkclust.bench.tables import rank_methods
    >>> scores = {name: {"a": 0.9, "b": 0.8, "c": 0.7} for name in ("x", "y", "z")}
    >>> ranking = rank_methods(scores)
    >>> ranking.ranks
    array([1., 2., 3.])
    >>> ranking.cliques
    (('a', 'b'), ('b', 'c'))
    """
    datasets, methods = _complete(scores)
    if len(datasets) < 2 or len(methods) < 2:
        raise ValueError(
            f"Ranks need two methods with scores on the same two data sets, found {len(methods)} "
            f"method(s) with scores on {len(datasets)} data set(s): run more of them."
        )
    table = np.array([[scores[d][m] for m in methods] for d in datasets], dtype=float)
    ranked = np.array([stats.rankdata(-np.round(row, 10)) for row in table])
    average = ranked.mean(axis=0)
    times_best = (ranked == ranked.min(axis=1, keepdims=True)).sum(axis=0)
    order = sorted(range(len(methods)), key=lambda j: (average[j], methods[j]))
    sorted_methods, ranks = tuple(methods[j] for j in order), average[order]
    distance = critical_difference(len(methods), len(datasets), alpha)
    everything = {name for own in scores.values() for name in own}
    return Ranking(
        sorted_methods,
        ranks,
        tuple(int(times_best[j]) for j in order),
        tuple(datasets),
        *_friedman(ranked),
        distance,
        alpha,
        tuple(tuple(sorted_methods[i:j]) for i, j in _runs_within(ranks, distance)),
        tuple(sorted(everything - set(methods))),
        tuple(sorted(set(scores) - set(datasets))),
    )


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return the difference of average ranks beyond which two methods differ significantly.

    Parameters
    ----------
    n_methods, n_datasets : int
    alpha : float, default=0.05

    Returns
    -------
    float
        Nemenyi's critical difference.

    Examples
    --------
    >>> from mkclust.bench.tables import critical_difference
    >>> round(critical_difference(4, 14, alpha=0.05), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def _complete(scores: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """Return data sets and methods such that no score is missing."""
    datasets = sorted(scores)
    methods = sorted({name for own in scores.values() for name in own})
    while datasets and methods:
        lacking = [(sum(m not in scores[d] for d in datasets) / len(datasets), m) for m in methods]
        worst_method = max(lacking)
        worst_dataset = max(
            (sum(m not in scores[d] for m in methods) / len(methods), d) for d in datasets
        )
        if worst_method[0] == worst_dataset[0] == 0:
            break
        if worst_method[0] >= worst_dataset[0]:
            methods.remove(worst_method[1])
        else:
            datasets.remove(worst_dataset[1])
    return datasets, methods


def _friedman(ranked: Float) -> tuple[float, float, float, float]:
    """Return Friedman's chi2, Iman and Davenport's F and the p-value of each, in turn."""
    n, k = ranked.shape
    spread = np.sum((ranked.mean(axis=0) - (k + 1) / 2) ** 2)
    ties = np.sum((ranked - (k + 1) / 2) ** 2) / (n * (k - 1))
    if ties == 0:  # every method is tied with every other everywhere
        return 0.0, 1.0, 0.0, 1.0
    chi2 = float(n * spread / ties)
    p = float(stats.chi2.sf(chi2, k - 1))
    remainder = n * (k - 1) - chi2
    if remainder <= SAME:  # the same order everywhere
        return chi2, p, math.inf, 0.0
    f = float((n - 1) * chi2 / remainder)
    return chi2, p, f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def _runs_within(ranks: Float, distance: float) -> list[tuple[int, int]]:
    """Return the largest runs of sorted ranks that span no more than a distance."""
    runs: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        end = int(np.searchsorted(ranks, ranks[start] + distance, side="right"))
        if end - start > 1 and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return runs
