"""Survival by cluster: log-rank tests, pair by pair, and adjusted hazard ratios.

These are of a Cox regression with Efron's way of ties, by Newton's method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from mkclust.explain.permuted_clusters import PermutedClusters
from mkclust.text import join_words
from mkclust.types import Float

# Relative change of the log-likelihood at which the steps end.
TOLERANCE = 1e-11
# Standard errors per standard deviation of a column from which on its coefficient has
# run off to infinity; those of data with any information are below one.
INFINITE_ERROR = 1e3


class LogRank:
    """The log-rank test of groups of samples with times, some of them censored.

    At each time of an event, the number of events in a group is compared with its share
    of all samples at risk; under the hypothesis it is hypergeometric.
    """

    def __init__(self, times: Float, is_event: np.ndarray):
        self.is_event = is_event
        self.order = np.argsort(times, kind="stable")
        steps, self.step_of, self.n_events = np.unique(
            times[is_event], return_inverse=True, return_counts=True
        )
        self.firsts = np.searchsorted(times[self.order], steps)
        self.n_at_risk = len(times) - self.firsts
        n_others = np.maximum(self.n_at_risk - 1, 1)
        left = (self.n_at_risk - self.n_events) / n_others
        self.variances = self.n_events * left

    def statistic(self, groups: np.ndarray) -> float:
        """Return chi-square without differences, NaN if no groups meet at risk."""
        shares, members = self._shares(groups)
        events = np.zeros(shares.shape)
        np.add.at(events, self.step_of, members[self.is_event])
        excess = (events - self.n_events[:, None] * shares).sum(axis=0)

        # Written so that it is exactly zero if no two groups are at risk together.
        covariance = -(shares * self.variances[:, None]).T @ shares
        np.fill_diagonal(covariance, self.variances @ (shares * (1 - shares)))
        if not covariance.any():
            return np.nan
        # Excesses sum to zero, and so does every row of their covariance. Eigenvalues
        # of a covariance below this share of the largest are zero but for rounding.
        inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
        return float(excess @ inverse @ excess)

    def p_value(self, groups: np.ndarray) -> float:
        """Return the p-value by the chi-square distribution, NaN for few events."""
        expected = self.n_events @ self._shares(groups)[0]
        # Cochran's rule for the chi-square distribution.
        if len(expected) < 2 or expected.min() < 5:
            return np.nan
        return float(chi2.sf(self.statistic(groups), len(expected) - 1))

    def _shares(self, groups: np.ndarray) -> tuple[Float, Float]:
        """Return the share of each group in those at risk, and its members."""
        _, numbers = np.unique(groups, return_inverse=True)
        members = np.eye(numbers.max() + 1)[numbers]
        at_risk = members[self.order][::-1].cumsum(axis=0)[::-1][self.firsts]
        return at_risk / self.n_at_risk[:, None], members


@dataclass(frozen=True, eq=False)
class SurvivalComparison:
    """How clusters differ in survival, two at a time and adjusted for other variables.

    Attributes
    ----------
    pairs : pandas.DataFrame
        The log-rank tests of every two clusters: ``one``, ``other``, ``statistic``,
        ``p_value`` and ``p_adjusted`` (for the number of pairs, by Holm).
    hazards : pandas.DataFrame
        The hazard ratios of a Cox regression (Efron's way of ties): ``term``,
        ``hazard_ratio``, ``low`` and ``high`` (its 95% confidence interval),
        ``p_value`` (Wald). Empty if there are none.
    adjusted_for : tuple of str
        The variables in the regression in addition to the clusters.
    p_value : float
        Of the clusters in addition to these variables (likelihood ratio); NaN without
        variables.
    n_samples, n_events : int
        The samples of the regression, with all of its values, and those with an event.
    reason : str
        Why there are no hazard ratios; empty if there are some.
    """

    pairs: pd.DataFrame
    hazards: pd.DataFrame = field(default_factory=pd.DataFrame)
    adjusted_for: tuple[str, ...] = ()
    p_value: float = np.nan
    n_samples: int = 0
    n_events: int = 0
    reason: str = ""


def compare_survival(
    name: str,
    times: Float,
    events: Float,
    permuted: PermutedClusters,
    names: Sequence[str],
    adjust: Mapping[str, Mapping[str, Float]],
) -> SurvivalComparison:
    """Compare the survival of clusters in pairs, and adjusted for other variables.

    `adjust` has the columns of each variable that is adjusted for, by their titles.
    """
    clusters = permuted.clusters
    known = np.isfinite(times) & np.isfinite(events) & (clusters >= 0)
    pairs = _compare_pairs(name, times, events, known, permuted, names)
    columns: dict[str, Float] = {}
    for each in adjust.values():
        columns |= each
    for values in columns.values():
        known &= np.isfinite(values)
    others = {
        title: values[known]
        for title, values in columns.items()
        if np.ptp(values[known]) > 0
    }
    first, *rest = np.unique(clusters[known])
    own = {
        f"{names[each]} vs {names[first]}": (clusters[known] == each) * 1.0
        for each in rest
    }
    try:
        hazards, p_value = _hazards(
            times[known],
            events[known],
            own,
            others,
        )
    except ValueError as error:
        return SurvivalComparison(pairs, reason=str(error))
    return SurvivalComparison(
        pairs=pairs,
        hazards=hazards,
        adjusted_for=tuple(adjust),
        p_value=p_value,
        n_samples=int(known.sum()),
        n_events=int(events[known].sum()),
    )


def _hazards(
    times: Float, events: Float, own: dict[str, Float], others: dict[str, Float]
) -> tuple[pd.DataFrame, float]:
    """Return hazard ratios of clusters and other columns, and the test of clusters."""
    terms = [*own, *others]
    matrix = np.column_stack([*own.values(), *others.values()])
    fit = fit_cox(times, events, matrix, terms)
    reach = norm.ppf(0.975) * fit.errors
    hazards = {
        "term": terms,
        "hazard_ratio": np.exp(fit.coefficients),
        "low": np.exp(fit.coefficients - reach),
        "high": np.exp(fit.coefficients + reach),
        "p_value": 2 * norm.sf(np.abs(fit.coefficients) / fit.errors),
    }
    p_value = np.nan
    if others:
        without = fit_cox(
            times,
            events,
            matrix[:, len(own) :],
            list(others),
        )
        gain = 2 * (fit.log_likelihood - without.log_likelihood)
        p_value = float(chi2.sf(gain, len(own)))
    return pd.DataFrame(hazards), p_value


def _compare_pairs(
    name: str,
    times: Float,
    events: Float,
    known: np.ndarray,
    permuted: PermutedClusters,
    names: Sequence[str],
) -> pd.DataFrame:
    """Return the log-rank tests of every two clusters, corrected by Holm."""
    clusters = permuted.clusters
    pairs = list(combinations(np.unique(clusters[known]).tolist(), 2))
    # Of more pairs of clusters, none are compared.
    if len(pairs) > 66:
        pairs = []
    rows = []
    for one, other in pairs:
        pair = permuted.only((one, other))
        both = known & (pair.clusters >= 0)
        if not events[both].any():
            continue
        statistic, p_value = survival_test(
            f"{name} {one} {other}", times, events, both, pair
        )
        if np.isfinite(statistic):
            rows.append((names[one], names[other], statistic, p_value))
    columns = ["one", "other", "statistic", "p_value"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(p_adjusted=holm(found["p_value"].to_numpy(float)))


def survival_test(
    name: str,
    times: Float,
    events: Float,
    known: np.ndarray,
    permuted: PermutedClusters,
) -> tuple[float, float]:
    """Return the log-rank statistic of clusters of known samples, and its p-value.

    It is by the chi-square distribution if enough events are expected in every cluster
    and the samples are exchangeable, by permutations else.
    """
    test = LogRank(times[known], events[known] == 1)
    clusters = permuted.clusters[known]
    statistic = test.statistic(clusters)
    p_value = np.nan
    if permuted.groups is None:
        p_value = test.p_value(clusters)
    if np.isfinite(statistic) and np.isnan(p_value):
        p_value = permuted.p_value(name, known, test.statistic)
    return statistic, p_value


def holm(p_values: Float) -> Float:
    """Return p-values corrected for their number by Holm's method.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.maximum.accumulate(factors * p_values[order])
    return np.minimum(corrected, 1)[np.argsort(order)]


@dataclass(frozen=True, eq=False)
class CoxFit:
    """Coefficients of proportional hazards, in the order of the columns."""

    coefficients: Float  # logarithms of hazard ratios, (p,)
    covariance: Float  # (p, p)
    log_likelihood: float

    @property
    def errors(self) -> Float:
        """The standard errors of the coefficients."""
        return np.sqrt(np.diag(self.covariance))


class _Likelihood:
    """The partial likelihood, with sums over the samples at risk at every event."""

    def __init__(self, times: Float, is_event: np.ndarray, columns: Float):
        order = np.argsort(-times, kind="stable")  # at risk: all that come before
        self.columns = columns[order]
        self.times = times[order]
        self.events = np.flatnonzero(is_event[order])
        ends = np.searchsorted(
            -self.times,
            -self.times[self.events],
            side="right",
        )
        self.at_risk = ends - 1
        # Efron: the j-th of d events at one time counts these with a weight of 1 - j/d.
        _, self.step, sizes = np.unique(
            self.times[self.events], return_inverse=True, return_counts=True
        )
        firsts = np.r_[0, np.cumsum(sizes[::-1])[:-1]][::-1]
        place = np.arange(len(self.events)) - firsts[self.step]
        self.left_out = place / sizes[self.step]

    def at(self, coefficients: Float) -> tuple[float, Float, Float]:
        """Return the log-likelihood, its gradient, and minus its second derivative."""
        x = self.columns
        scores = x @ coefficients
        scores -= scores.max()
        risks = np.exp(scores)
        zeroth = self._sums(risks)
        first = self._sums(risks[:, None] * x)
        second = self._sums(risks[:, None, None] * x[:, :, None] * x[:, None, :])

        means = first / zeroth[:, None]
        value = scores[self.events].sum() - np.log(zeroth).sum()
        gradient = (x[self.events] - means).sum(axis=0)
        expected = (second / zeroth[:, None, None]).sum(axis=0)
        information = expected - means.T @ means
        return float(value), gradient, information

    def _sums(self, values: Float) -> Float:
        """Return the sums at every event, of those at risk without ties so far."""
        at_risk = np.cumsum(values, axis=0)[self.at_risk]
        tied = np.zeros((self.step.max() + 1, *values.shape[1:]))
        np.add.at(tied, self.step, values[self.events])
        return at_risk - (self.left_out * tied[self.step].T).T


def fit_cox(times: Float, events: Float, columns: Float, names: list[str]) -> CoxFit:
    """Return the hazard ratios of columns, or refuse what has no finite ones."""
    spread = columns.std(axis=0)
    if not events.any():
        raise ValueError("there are no events")
    constant = np.array(names)[spread == 0]
    if len(constant):
        raise ValueError(f"{join_words(constant)}: constant among these samples")
    standard = (columns - columns.mean(axis=0)) / spread

    # Singular values of standardized columns below this share of the largest are zero.
    if np.linalg.matrix_rank(standard, rtol=1e-8) < len(names):
        raise ValueError(
            f"{join_words(names)}: one of them follows from the others; leave it out"
        )
    likelihood = _Likelihood(times, events == 1, standard)
    found = np.zeros(len(names))
    value, gradient, information = likelihood.at(found)

    # Newton's steps: the likelihood is concave, so that a few are enough.
    for _ in range(60):
        step = np.linalg.pinv(information, hermitian=True) @ gradient
        new = likelihood.at(found + step)
        while not new[0] >= value - TOLERANCE * abs(value):
            step = step / 2
            new = likelihood.at(found + step)
        found = found + step
        change = new[0] - value
        value, gradient, information = new
        if change <= TOLERANCE * abs(value):
            break
    eigenvalues, directions = np.linalg.eigh(information)
    if eigenvalues[0] < INFINITE_ERROR**-2:
        name = names[np.abs(directions[:, 0]).argmax()]
        raise ValueError(
            f"{name}: its hazard ratio is not finite, because events happen on one "
            "side of it only; merge its levels, or leave it out"
        )
    covariance = np.linalg.inv(information) / np.outer(spread, spread)
    return CoxFit(found / spread, covariance, value)
