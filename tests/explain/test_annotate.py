"""Variables that were not clustered on: true statistics, calibrated p-values, honest refusals."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from mkclust import AverageKKM, annotate

LABELS = np.repeat([0, 1, 2], [30, 20, 10])


def by_name(annotation):
    return {test.variable: test for test in annotation.tests}


def test_statistics_are_those_of_scipy():
    rng = np.random.default_rng(0)
    number, tied = rng.normal(size=60), rng.integers(4, size=60) * 1.5
    category = rng.choice(["a", "b", "c"], size=60)
    found = by_name(annotate(LABELS, {"x": number, "tied": tied, "c": category}, n_permutations=9))
    for name, values in (("x", number), ("tied", tied)):
        groups = [values[cluster == LABELS] for cluster in range(3)]
        assert found[name].test == "Kruskal-Wallis"
        assert found[name].statistic == pytest.approx(stats.kruskal(*groups).statistic)
    counts = stats.contingency.crosstab(LABELS, category).count
    expected = stats.chi2_contingency(counts, correction=False)
    assert found["c"].statistic == pytest.approx(expected.statistic)


def test_survival_is_tested_by_the_log_rank_statistic_of_statsmodels():
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    rng = np.random.default_rng(0)
    time, event = rng.exponential(1 + 3 * LABELS), rng.integers(2, size=60)
    expected = survfunc.survdiff(time, event, LABELS)[0]
    for names in (("time", "event"), ("os_time", "os_event"), ("PFS.time", "PFS.status")):
        table = dict(zip(names, (time, event), strict=True))
        (test,) = annotate(LABELS, table, n_permutations=99).tests
        assert (test.variable, test.test) == (", ".join(names), "log-rank")
        assert test.statistic == pytest.approx(expected)
        assert test.p_value < 0.05
    table = {"days": time, "dead": event.astype(bool), "other_time": time}
    named = annotate(LABELS, table, time="days", event="dead", n_permutations=9)
    assert [test.test for test in named.tests] == ["log-rank", "Kruskal-Wallis"]
    with pytest.raises(ValueError, match="time='days'"):
        annotate(LABELS, table, time="days")
    with pytest.raises(ValueError, match="no column 'day' among"):
        annotate(LABELS, table, time="day", event="dead")
    with pytest.raises(ValueError, match="event 'other_time': pass 0 for censored"):
        annotate(LABELS, table, time="days", event="other_time")


def test_without_statsmodels_survival_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.duration.survfunc", None)
    table = {"time": np.arange(60.0), "event": np.ones(60)}
    with pytest.raises(ImportError, match=r'pip install "mkclust\[survival\]"'):
        annotate(LABELS, table)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "category", "survival"])
def test_p_values_of_variables_that_share_nothing_are_uniform(kind):
    rng = np.random.default_rng(3)
    count, permutations = (60, 19) if kind == "survival" else (300, 39)
    values = []
    for seed in range(count):
        if kind == "number":
            table = {"x": rng.normal(size=60)}
        elif kind == "category":
            table = {"x": rng.choice(["a", "b"], size=60)}
        else:
            pytest.importorskip("statsmodels")
            table = {"time": rng.exponential(size=60), "event": rng.integers(2, size=60)}
        (test,) = annotate(LABELS, table, n_permutations=permutations, random_state=seed).tests
        values.append(test.p_value)
    values = np.array(values)
    # Never too small more often than chance allows; and not far from uniform.
    for level in (0.05, 0.1, 0.25, 0.5):
        assert np.mean(values <= level) <= level + 3 * np.sqrt(level * (1 - level) / count)
    if kind == "number":  # statistics without ties
        assert stats.kstest(values - rng.uniform(0, 1 / 40, count), "uniform").pvalue > 0.01


def test_planted_differences_are_found_among_many_that_are_none():
    rng = np.random.default_rng(0)
    table = {f"noise {i}": rng.normal(size=60) for i in range(30)}
    table["age"] = rng.normal(size=60) + 1.5 * LABELS
    table["sex"] = np.where(rng.uniform(size=60) < 0.1 + 0.4 * LABELS, "f", "m")
    annotation = annotate(LABELS, table)
    small = {test.variable for test in annotation.tests if test.p_adjusted < 0.05}
    assert {"age", "sex"} <= small
    assert len(small) <= 3
    values = [test.p_value for test in annotation.tests]
    adjusted = [test.p_adjusted for test in annotation.tests]
    np.testing.assert_allclose(adjusted, stats.false_discovery_control(values))
    assert min(values) == 1 / 1000


def test_p_values_of_a_variable_do_not_depend_on_others_or_on_the_numbers_of_clusters():
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=60), "b": rng.normal(size=60)}
    both = by_name(annotate(LABELS, table))
    assert by_name(annotate(LABELS, {"b": table["b"]}))["b"].p_value == both["b"].p_value
    renamed = by_name(annotate(np.array(["z", "y", "x"])[LABELS], table, random_state=0))
    assert renamed["a"].statistic == pytest.approx(both["a"].statistic)


def test_missing_values_are_dropped_and_counted_variable_by_variable():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(["a", "b"], size=60)})
    frame.loc[:4, "x"] = np.nan
    frame.loc[3, "c"] = None
    found = by_name(annotate(LABELS, frame, n_permutations=9))
    assert (found["x"].n_samples, found["x"].n_missing) == (55, 5)
    assert (found["c"].n_samples, found["c"].n_missing) == (59, 1)
    known = frame["x"].notna().to_numpy()
    groups = [frame["x"][known & (cluster == LABELS)] for cluster in range(3)]
    assert found["x"].statistic == pytest.approx(stats.kruskal(*groups).statistic)


def test_what_cannot_be_tested_is_reported_with_the_reason():
    few = np.full(60, np.nan)
    few[[0, 1, 31]] = [1.0, 2.0, 3.0]
    table = {
        "constant": np.ones(60),
        "empty": np.full(60, np.nan),
        "few": few,
        "time": np.arange(60.0),
        "event": np.zeros(60),
        "good": np.arange(60.0),
    }
    found = by_name(annotate(LABELS, table, n_permutations=9))
    assert found["constant"].reason == "it is constant"
    assert found["empty"].reason == "it has no values"
    assert found["few"].reason == "fewer than two clusters have 2 values"
    assert found["time, event"].reason == "there are no events"
    assert found["good"].p_adjusted == found["good"].p_value == 0.1
    single = annotate(np.zeros(60, int), {"x": np.arange(60)}, n_permutations=9)
    assert single.tests[0].reason == "fewer than two clusters have 2 values"


def test_ids_of_labels_may_be_passed_beside_them():
    frame = pd.DataFrame({"x": np.arange(60.0) % 7}, index=[f"p{i}" for i in range(60)])
    expected = annotate(LABELS, frame).tests
    assert annotate(LABELS, frame.iloc[::-1], ids=frame.index).tests == expected
    with pytest.raises(ValueError, match="there are 59 ids for 60 labels"):
        annotate(LABELS, frame, ids=list(frame.index[1:]))


def test_an_annotation_is_printed_and_handed_on():
    table = {"x": np.arange(60.0), "one": np.ones(60)}
    annotation = annotate(LABELS, table, n_permutations=99)
    lines = str(annotation).splitlines()
    columns = ["variable", "test", "samples", "missing", "statistic", "p", "adjusted"]
    assert lines[0].split() == columns
    assert lines[1].split()[-1] == "0.01"
    assert "99 permutations" in lines[2]
    assert lines[3] == "one is not tested: it is constant."
    assert isinstance(annotation.table, pd.DataFrame)
    record = json.loads(json.dumps(annotation.to_dict(), allow_nan=False))
    assert record["tests"][1]["p_value"] is None
    with pytest.raises(ValueError, match="n_permutations=0"):
        annotate(LABELS, table, n_permutations=0)
    with pytest.raises(ValueError, match="1 of 60"):
        annotate(np.where(np.arange(60) == 3, np.nan, LABELS), table)
    with pytest.raises(NotFittedError):
        annotate(AverageKKM(3), table)
    with pytest.raises(ValueError, match=r"labels have the shape \(60, 1\)"):
        annotate(LABELS[:, None], table)
