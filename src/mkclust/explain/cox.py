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
        times_of_events = self.times[self.events]
        ends = np.searchsorted(-self.times, -times_of_events, side="right")
        self.at_risk = ends - 1
        # Efron: the j-th of d events at one time counts these with a weight of 1 - j/d.
        _, self.step, sizes = np.unique(
            self.times[self.events], return_inverse=True, return_counts=True
        )
        after = np.cumsum(sizes[::-1])[:-1]
        firsts = np.r_[0, after][::-1]
        numbers = np.arange(len(self.events))
        place = numbers - firsts[self.step]
        self.left_out = place / sizes[self.step]

    def at(self, coefficients: Float) -> tuple[float, Float, Float]:
        """Return the log-likelihood, its gradient, and minus its second derivative."""
        x = self.columns
        scores = x @ coefficients
        risks = np.exp(scores - scores.max())
        zeroth = self._sums(risks)
        first = self._sums(risks[:, None] * x)
        second = self._sums(risks[:, None, None] * x[:, :, None] * x[:, None, :])

        means = first / zeroth[:, None]
        largest = scores.max()
        value = (scores - largest)[self.events].sum() - np.log(zeroth).sum()
        gradient = (x[self.events] - means).sum(axis=0)
        expected = (second / zeroth[:, None, None]).sum(axis=0)
        information = expected - means.T @ means
        return float(value), gradient, information

    def _sums(self, values: Float) -> Float:
        """Return the sums at every event, of those at risk without ties so far."""
        at_risk = np.cumsum(values, axis=0)[self.at_risk]
        shape_of_tied = (self.step.max() + 1, *values.shape[1:])
        tied = np.zeros(shape_of_tied)
        np.add.at(tied, self.step, values[self.events])
        shape = (-1,) + (1,) * (values.ndim - 1)
        left = self.left_out.reshape(shape)
        return at_risk - left * tied[self.step]


def fit_cox(times: Float, events: Float, columns: Float, names: list[str]) -> CoxFit:
    """Return the hazard ratios of columns, or refuse what has no finite ones."""
    spread = columns.std(axis=0)
    if not events.any():
        raise ValueError("there are no events")
    pairs = zip(names, spread, strict=True)
    constant = [name for name, each in pairs if not each > 0]
    if constant:
        raise ValueError(f"{join_words(constant)}: constant among these samples")
    standard = (columns - columns.mean(axis=0)) / spread

    # Singular values of standardized columns below this share of the largest are zero.
    rank_tolerance = 1e-8
    if np.linalg.matrix_rank(standard, rtol=rank_tolerance) < len(names):
        raise ValueError(
            f"{join_words(names)}: one of them follows from the others; leave it out"
        )
    likelihood = _Likelihood(times, events == 1, standard)
    found = np.zeros(len(names))
    value, gradient, information = likelihood.at(found)

    # Newton's steps: the likelihood is concave, so that a few are enough.
    max_steps = 60
    for _ in range(max_steps):
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
        strongest = int(np.abs(directions[:, 0]).argmax())
        name = names[strongest]
        raise ValueError(
            f"{name}: its hazard ratio is not finite, because events happen on one "
            "side of it only; merge its levels, or leave it out"
        )
    covariance = np.linalg.inv(information)
    scales = np.outer(spread, spread)
    return CoxFit(found / spread, covariance / scales, value)
