"""Cox regression: published values, another library, and refusals in words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkclust.explain.survival import fit_cox

# Weeks of remission of leukemia, with 6-mercaptopurine and with placebo (Freireich et
# al. 1963; the data of Gehan and of Cox): negative if censored.
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23, -6, -9, -10, -11, -17, -19, -20, -25, -32]
TREATED += [-32, -34, -35]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def leukemia():
    marked = np.array(TREATED + PLACEBO, float)
    placebo = np.repeat([0.0, 1.0], 21)
    return np.abs(marked), (marked > 0) * 1.0, placebo[:, None]


def test_the_leukemia_data_have_the_published_hazard_ratio():
    found = fit_cox(*leukemia(), ["placebo"])
    # Kalbfleisch and Prentice, and survival::coxph of R, by Efron's way of ties.
    assert found.coefficients == pytest.approx([1.5721], abs=5e-5)
    assert found.errors == pytest.approx([0.4124], abs=5e-5)


def test_hazard_ratios_are_those_of_statsmodels():
    duration = pytest.importorskip("statsmodels.duration.hazard_regression")
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(150, 3)) * [1, 10, 0.1]
    times = np.ceil(rng.exponential(5 * np.exp(columns[:, 0] - columns[:, 1] / 9)))
    events = (rng.uniform(size=150) < 0.7) * 1.0
    found = fit_cox(times, events, columns, list("abc"))
    expected = duration.PHReg(times, columns, events, ties="efron").fit()
    assert found.coefficients == pytest.approx(expected.params, rel=1e-6)
    assert found.errors == pytest.approx(expected.bse, rel=1e-6)
    start = fit_cox(times, events, columns[:, :2], list("ab"))
    assert found.log_likelihood >= start.log_likelihood


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-5, 5))
def test_only_the_order_of_times_counts_and_units_only_scale(seed, unit, shift):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 12, size=40).astype(float)
    events = (rng.uniform(size=40) < 0.8) * 1.0
    columns = rng.normal(size=(40, 2))
    found = fit_cox(times, events, columns, ["a", "b"])
    other = fit_cox(times**2, events, unit * columns + shift, ["a", "b"])
    assert other.coefficients * unit == pytest.approx(found.coefficients, abs=1e-6)


def test_without_a_finite_answer_the_column_and_the_cure_are_named():
    times = np.arange(1.0, 21)
    events = np.ones(20)
    early = (times <= 10) * 1.0
    noise = np.random.default_rng(0).normal(size=20)
    both = np.column_stack([noise, early])
    with pytest.raises(ValueError, match="early: its hazard ratio is not finite"):
        fit_cox(times, events, both, ["noise", "early"])
    with pytest.raises(ValueError, match="early: its hazard ratio is not finite"):
        fit_cox(times, 1 - early, both, ["noise", "early"])
    with pytest.raises(ValueError, match="follows from the others"):
        fit_cox(times, events, np.column_stack([noise, 2 * noise]), ["a", "b"])
    with pytest.raises(ValueError, match="one: constant"):
        fit_cox(times, events, np.column_stack([noise, early * 0]), ["a", "one"])
    with pytest.raises(ValueError, match="no events"):
        fit_cox(times, 0 * times, both, ["noise", "early"])
