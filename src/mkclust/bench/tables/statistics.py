"""What repeated scores can tell apart: paired tests, corrected for their number."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

# Scores are shares of samples: what is closer than this is the same but for rounding.
SAME = 1e-10
# With fewer pairs than this a test has nothing to go by.
FEWEST_PAIRS = 3


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of values and their deviation, with n - 1 in the denominator.

    Parameters
    ----------
    values : sequence of float
        At least one.

    Returns
    -------
    mean : float
    deviation : float or None
        None for a single value.

    Examples
    --------
    >>> from mkclust.bench.tables import mean_and_deviation
    >>> mean_and_deviation([1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1))


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how likely a mean difference this large is between equals, by the paired t test.

    Where all differences are the same there is no noise to compare with: then the answer is 1
    for no difference, and 0 for any other.

    Parameters
    ----------
    first, second : sequence of float
        Scores of the same repetitions, in the same order.

    Returns
    -------
    float
        Two-sided; NaN for fewer than 3 pairs.

    Examples
    --------
    >>> from mkclust.bench.tables import paired_p_value
    >>> round(paired_p_value([0.5, 0.6, 0.7, 0.8], [0.4, 0.6, 0.6, 0.8]), 3)
    0.182
    >>> paired_p_value([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    0.0
    """
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    n = len(differences)
    if n < FEWEST_PAIRS:
        return math.nan
    if np.ptp(differences) <= SAME:
        return 1.0 if abs(differences.mean()) <= SAME else 0.0
    t = differences.mean() / (differences.std(ddof=1) / math.sqrt(n))
    return float(2 * special.stdtr(n - 1, -abs(t)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by the step-down method of Holm.

    Parameters
    ----------
    p_values : sequence of float

    Returns
    -------
    list of float
        In the order given. To reject where these are at most alpha rejects a true hypothesis, one
        or several, with a probability of at most alpha.

    Examples
    --------
    >>> from mkclust.bench.tables import holm
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for done, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[at]))
        corrected[at] = largest
    return corrected


def like_the_best(scores: Mapping[str, Mapping[Any, float]], alpha: float = 0.05) -> frozenset[str]:
    """Return the methods that do not differ significantly from the one with the best mean.

    The data say which method is the best one, so that its comparisons are not a fixed few but
    some of those of all pairs: Holm's correction is for all pairs.

    Parameters
    ----------
    scores : dict of str to dict
        For each method its scores by repetition, larger being better. Two methods are compared
        over the repetitions that both have.
    alpha : float, default=0.05
        Largest probability of calling any two equals different.

    Returns
    -------
    frozenset of str
        The best method and those like it. A method that shares fewer than 3 repetitions with the
        best cannot be compared, and is not among them; empty where no other method can.

    Examples
    --------
    >>> from mkclust.bench.tables import like_the_best
    >>> same = {0: 0.7, 1: 0.8, 2: 0.6}
    >>> worse = {0: 0.5, 1: 0.61, 2: 0.4}
    >>> sorted(like_the_best({"a": same, "b": same, "c": worse}))
    ['a', 'b']
    """
    methods = sorted(name for name in scores if scores[name])
    if len(methods) < 2:
        return frozenset()
    means = {name: mean_and_deviation(list(scores[name].values()))[0] for name in methods}
    best = max(methods, key=means.__getitem__)
    p_values = {}
    for a, b in itertools.combinations(methods, 2):
        # Sorted as texts: a sum's last digit must not depend on the order of the rows.
        shared = sorted(scores[a].keys() & scores[b].keys(), key=repr)
        p = paired_p_value([scores[a][r] for r in shared], [scores[b][r] for r in shared])
        if not math.isnan(p):
            p_values[a, b] = p
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    with_best = {pair: p for pair, p in corrected.items() if best in pair}
    alike = {name for pair, p in with_best.items() if p > alpha for name in pair}
    return frozenset(alike | {best} if with_best else ())
