"""Proportional hazards: Cox regression with Efron's way of ties, by Newton's method."""

from dataclasses import dataclass

import numpy as np

from mkclust.text import join_words
from mkclust.types import Float

# Relative change of the log-likelihood at which the steps end.
TOLERANCE = 1e-11
# Standard errors per standard deviation of a column from which on its coefficient has
# run off to infinity; those of data with any information are below one.
INFINITE_ERROR = 1e3


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
        ends = np.searchsorted(-self.times, -self.times[self.events], side="right")
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
