"""Survival by cluster: SciPy's log-rank test, Holm, adjusted hazard ratios, words."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mkclust import annotate
from mkclust.explain.survival import fit_cox, holm
from mkclust.plots import SurvivalDisplay


def patients(n=150, hazards=(1.0, 1.0, 0.2), seed=0):
    """Return clusters, and a table with survival that also depends on age."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], n // 3)
    age = rng.normal(60, 10, size=n)
    hazard = np.array(hazards)[labels] * np.exp((age - 60) / 20)
    times = rng.exponential(10 / hazard)
    ends = rng.uniform(5, 40, size=n)
    table = {
        "months": np.minimum(times, ends),
        "died": (times <= ends) * 1,
        "age": age,
        "stage": rng.choice(["I", "II", "III"], n),
    }
    return labels, pd.DataFrame(table)


def test_two_clusters_have_the_statistic_and_the_p_value_of_scipy():
    labels, table = patients()
    found = annotate(labels, table, time="months", event="died")
    comparison = found.comparisons["months, died"]
    assert len(comparison.pairs) == 3
    for each in comparison.pairs.itertuples():
        samples = [
            stats.CensoredData.right_censored(
                table["months"][labels == int(name)],
                table["died"][labels == int(name)] == 0,
            )
            for name in (each.one, each.other)
        ]
        expected = stats.logrank(*samples)
        assert each.statistic == pytest.approx(expected.statistic**2)
        assert each.p_value == pytest.approx(expected.pvalue)
    p_values = comparison.pairs["p_value"].to_numpy()
    assert comparison.pairs["p_adjusted"].to_numpy() == pytest.approx(holm(p_values))
    assert found.tests[0].p_value < 1e-6  # smaller than permutations can give
    assert "<= 0.001" not in found.p_text(found.tests[0].p_value)


def test_holm_is_the_step_down_of_bonferroni():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        p_values = rng.uniform(size=n) ** 3
        order = np.argsort(p_values)
        expected = np.empty(n)
        for place, at in enumerate(order):
            above = [(n - q) * p_values[order[q]] for q in range(place + 1)]
            expected[at] = min(1, max(above))
        assert holm(p_values) == pytest.approx(expected)


def test_few_events_and_groups_are_tested_by_permutations():
    labels, table = patients(30)
    table["died"] = (np.arange(30) % 5 == 0) * 1
    [found, *_] = annotate(labels, table, time="months", event="died").tests
    assert (1000 * found.p_value) % 1 == pytest.approx(0, abs=1e-6)

    labels, table = patients()
    groups = np.arange(150) % 50
    options = {"time": "months", "event": "died", "n_permutations": 99}
    found = annotate(labels, table, groups=groups, **options)
    assert (100 * found.tests[0].p_value) % 1 == pytest.approx(0, abs=1e-6)


def test_hazard_ratios_are_adjusted_for_what_is_asked_for():
    labels, table = patients()
    table.loc[3, "age"] = np.nan
    options = {"time": "months", "event": "died"}
    found = annotate(labels, table, adjust=["age", "stage"], **options)
    comparison = found.comparisons["months, died"]
    known = np.arange(150) != 3
    columns = {
        "1 vs 0": labels == 1,
        "2 vs 0": labels == 2,
        "age": table["age"],
        "stage II vs I": table["stage"] == "II",
        "stage III vs I": table["stage"] == "III",
    }
    matrix = np.column_stack(list(columns.values())).astype(float)[known]
    given = table["months"].to_numpy()[known], table["died"].to_numpy()[known]
    expected = fit_cox(*given, matrix, list(columns))
    assert comparison.hazards["term"].tolist() == list(columns)
    ratios = comparison.hazards["hazard_ratio"]
    assert ratios.to_numpy() == pytest.approx(np.exp(expected.coefficients))
    assert (comparison.hazards["low"] < ratios).all()
    assert comparison.n_samples == 149
    fewer = fit_cox(*given, matrix[:, 2:], list(columns)[2:])
    gain = 2 * (expected.log_likelihood - fewer.log_likelihood)
    assert comparison.p_value == pytest.approx(stats.chi2.sf(gain, 2))
    assert "Adjusted for age and stage (149 samples)" in found.summary()
    assert found.to_dict()["survival"]["months, died"]["adjusted_for"] == [
        "age",
        "stage",
    ]


def test_what_cannot_be_adjusted_is_said():
    labels, table = patients()
    options = {"time": "months", "event": "died"}
    with pytest.raises(ValueError, match="adjust: .*'agee'.*'age'"):
        annotate(labels, table, adjust="agee", **options)
    with pytest.raises(ValueError, match="adjust: .*time"):
        annotate(labels, table[["age"]], adjust="age")
    table.loc[labels == 2, "died"] = 0
    found = annotate(labels, table, **options)
    assert "No hazard ratios: 2 vs 0: its hazard ratio is not finite" in str(found)
    assert "not reached in 2" in str(found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_bands_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 25, 40).astype(float)  # with ties
    happened = rng.random(40) < 0.6
    display = SurvivalDisplay(times=times, events=happened, labels=np.zeros(40, int))
    steps, shares = display.curves[0]
    observed = stats.CensoredData.right_censored(times, ~happened)
    expected = stats.ecdf(observed).sf.confidence_interval(method="log-log")
    is_left = shares > 0
    for found, end in zip(display.bands[0], (expected.low, expected.high), strict=True):
        np.testing.assert_allclose(
            found[is_left], end.evaluate(steps)[is_left], atol=1e-7
        )


def test_bands_hold_the_curves_and_narrow_with_samples():
    widths = []
    for n in (60, 600):
        labels, table = patients(n)
        display = SurvivalDisplay(
            times=table["months"],
            events=table["died"],
            labels=labels,
            names=["a", "b", "c"],
            note="p = 0.1",
        )
        for cluster, (_, shares) in display.curves.items():
            low, high = display.bands[cluster]
            assert ((low <= shares) & (shares <= high)).all()
        middle = len(display.bands[0][0]) // 2
        widths.append(display.bands[0][1][middle] - display.bands[0][0][middle])
    assert widths[1] < 0.5 * widths[0]
    texts = [text.get_text() for text in display.plot().ax_.texts]
    assert {"a", "b", "c", "p = 0.1"} <= set(texts)


def test_levels_are_compared_with_a_known_one_and_repeat_no_name():
    labels, table = patients()
    shown = {"I": "stage I", "II": "[Not Available]", "III": "stage III"}
    table["stage"] = table["stage"].map(shown)
    options = {"time": "months", "event": "died", "adjust": "stage"}
    comparison = annotate(labels, table, **options).comparisons["months, died"]
    assert comparison.hazards["term"].tolist()[2:] == [
        "stage III vs stage I",
        "stage [Not Available] vs stage I",
    ]
    assert comparison.n_events == table["died"].sum()
