"""Variables that were not clustered on: true statistics, calibrated p-values, honest
refusals."""

import json

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
    found = by_name(
        annotate(LABELS, {"x": number, "tied": tied, "c": category}, n_permutations=9)
    )
    for name, values in (("x", number), ("tied", tied)):
        groups = [values[cluster == LABELS] for cluster in range(3)]
        assert found[name].test == "Kruskal-Wallis"
        assert found[name].statistic == pytest.approx(stats.kruskal(*groups).statistic)
    counts = stats.contingency.crosstab(LABELS, category).count
    expected = stats.chi2_contingency(counts, correction=False)
    assert found["c"].statistic == pytest.approx(expected.statistic)


SURVIVAL = {
    ("time", "event"): (0, 1),
    ("time", "dead"): (False, True),
    ("OS.time", "OS"): (0, 1),
    ("OS", "OS_event"): (0, 1),
    ("OS_MONTHS", "OS_STATUS"): ("0:LIVING", "1:DECEASED"),
    ("overall_survival_months", "vital_status"): ("Alive", "Dead"),
    ("days_to_death", "dead"): (0, 1),
    ("PFS_MONTHS", "PFS_STATUS"): ("0:CENSORED", "1:PROGRESSION"),
    ("dfs_time", "DFS"): (0, 1),
}


@pytest.mark.parametrize("names", SURVIVAL, ids=str)
def test_usual_pairs_of_survival_are_tested_by_the_log_rank_statistic_of_statsmodels(
    names,
):
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    rng = np.random.default_rng(0)
    time, event = rng.exponential(1 + 3 * LABELS), rng.integers(2, size=60)
    table = dict(zip(names, (time, np.array(SURVIVAL[names])[event]), strict=True))
    annotation = annotate(LABELS, table, n_permutations=99)
    (test,) = annotation.tests
    assert (test.variable, test.test) == (", ".join(names), "log-rank")
    assert test.statistic == pytest.approx(survfunc.survdiff(time, event, LABELS)[0])
    for cluster, (steps, shares) in annotation.survival[test.variable].curves.items():
        own = cluster == LABELS
        expected = survfunc.SurvfuncRight(time[own], event[own])
        np.testing.assert_allclose(steps, expected.surv_times)
        np.testing.assert_allclose(shares, expected.surv_prob)
        assert annotation.by_cluster[str(cluster)][0] == pytest.approx(
            expected.quantile(0.5)
        )


def test_survival_is_tested_by_the_columns_that_are_named_or_refused():
    rng = np.random.default_rng(0)
    table = {"days": rng.exponential(size=60), "sign": rng.integers(2, size=60)}
    table |= {"start_time": rng.normal(size=60), "sex": ["f", "m"] * 30}
    named = annotate(LABELS, table, time="days", event="sign", n_permutations=9)
    assert [test.test for test in named.tests] == [
        "log-rank",
        "Kruskal-Wallis",
        "chi-square",
    ]
    for time, event, word in (
        ("days", None, "time='days'"),
        ("day", "sign", "'day'"),
        ("sex", "sign", "'sex'"),
        ("days", "start_time", "'start_time'"),
    ):
        with pytest.raises(ValueError, match=word):
            annotate(LABELS, table, time=time, event=event)


def test_times_without_events_are_not_tested_as_numbers():
    times = np.random.default_rng(0).exponential(size=60)
    events = np.arange(60) % 2
    dead_only = np.where(events == 1, times, np.nan)
    table = {"pfs_months": times, "days_to_death": dead_only, "vital_status": events}
    found = by_name(annotate(LABELS, table, n_permutations=9))
    assert "events" in found["pfs_months"].reason
    assert "censored" in found["days_to_death, vital_status"].reason
    coded = by_name(
        annotate(LABELS, {"time": times, "status": events + 1}, n_permutations=9)
    )
    assert "events" in coded["time"].reason


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_log_rank_statistic_of_tied_times_is_that_of_statsmodels(k):
    survfunc = pytest.importorskip("statsmodels.duration.survfunc")
    rng = np.random.default_rng(k)
    labels = np.arange(90) % k
    time = np.ceil(4 * rng.exponential(1 + labels))
    event = rng.integers(2, size=90)
    table = {"time": time, "event": event}
    (test,) = annotate(labels, table, n_permutations=9).tests
    assert test.statistic == pytest.approx(survfunc.survdiff(time, event, labels)[0])


def test_the_log_rank_statistic_of_two_groups_is_that_of_scipy():
    rng = np.random.default_rng(0)
    time, event = rng.exponential(1 + LABELS), rng.integers(2, size=60) == 1
    x, y = (
        stats.CensoredData.right_censored(time[c == LABELS], ~event[c == LABELS])
        for c in np.unique(LABELS)[:2]
    )
    both = LABELS < 2
    table = {"time": time[both], "event": event[both]}
    (test,) = annotate(LABELS[both], table, n_permutations=9).tests
    assert test.statistic == pytest.approx(stats.logrank(x, y).statistic ** 2)


def test_directions_are_medians_of_numbers_and_shares_of_categories():
    rng = np.random.default_rng(0)
    age, stage = rng.normal(size=60) + LABELS, rng.choice(["I", "II", "III"], size=60)
    table = pd.DataFrame({"age": age, "stage": stage, "treated": LABELS == 2})
    names = np.array(["x", "y", "z"])[LABELS]
    annotation = annotate(names, table, n_permutations=99)
    found = annotation.by_cluster.set_index(["variable", "value"])
    for cluster in "xyz":
        own = names == cluster
        assert found.loc[("age", "median"), cluster] == pytest.approx(
            np.median(age[own])
        )
        for level in ("I", "II", "III"):
            expected = np.mean(stage[own] == level)
            assert found.loc[("stage", f"share of {level}"), cluster] == pytest.approx(
                expected
            )
    assert found.loc[("treated", "share of True")].tolist() == [0, 0, 1]
    assert set(annotation.differences["variable"]) == {"age", "treated"}


def test_of_annotated_data_the_observations_are_tested():
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"batch": list("ab") * 30}, index=[f"c{i}" for i in range(60)])
    data = anndata.AnnData(np.ones((60, 4)), obs=obs)
    for table in (data, {"rna": data}):
        (test,) = annotate(pd.Series(LABELS, obs.index), table, n_permutations=9).tests
        assert test.variable == "batch"


UNRELATED = {
    "number": lambda rng: {"x": rng.normal(size=60)},
    "category": lambda rng: {"x": rng.choice(["a", "b"], size=60)},
    "survival": lambda rng: {
        "time": rng.exponential(size=60),
        "event": rng.integers(2, size=60),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNRELATED)
def test_p_values_of_variables_that_share_nothing_are_uniform(kind):
    rng = np.random.default_rng(3)
    count, n_permutations = (60, 19) if kind == "survival" else (300, 39)
    values = np.empty(count)
    for seed in range(count):
        options = {"n_permutations": n_permutations, "random_state": seed}
        values[seed] = (
            annotate(LABELS, UNRELATED[kind](rng), **options).tests[0].p_value
        )
    # Never too small more often than chance allows; and not far from uniform.
    for level in (0.05, 0.1, 0.25, 0.5):
        assert np.mean(values <= level) <= level + 3 * np.sqrt(
            level * (1 - level) / count
        )
    if kind == "number":  # statistics without ties
        assert (
            stats.kstest(values - rng.uniform(0, 1 / 40, count), "uniform").pvalue
            > 0.01
        )


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
    assert (
        by_name(annotate(LABELS, {"b": table["b"]}))["b"].p_value == both["b"].p_value
    )
    renamed = by_name(
        annotate(np.array(["z", "y", "x"])[LABELS], table, random_state=0)
    )
    assert renamed["a"].statistic == pytest.approx(both["a"].statistic)


def test_missing_values_are_dropped_and_counted_variable_by_variable():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=60), "c": rng.choice(["a", "b"], size=60)}
    )
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
    assert found["constant"].reason == "constant"
    assert found["empty"].reason == "no values"
    assert found["few"].reason == "fewer than two clusters have 2 values"
    assert found["time, event"].reason == "no events"
    assert found["good"].p_adjusted == found["good"].p_value == 0.1


def test_an_annotation_is_printed_and_handed_on():
    table = {"x": np.arange(60.0)} | {f"one {i}": np.ones(60) for i in range(500)}
    annotation = annotate(LABELS, table, n_permutations=99)
    assert sum("constant" in line for line in str(annotation).splitlines()) == 1
    record = json.loads(json.dumps(annotation.to_dict(), allow_nan=False))
    assert record["tests"][1]["p_value"] is None
    assert record["by_cluster"][0]["variable"] == "x"


def test_wrong_labels_are_refused():
    table = {"x": np.arange(60.0)}
    with pytest.raises(ValueError, match="n_permutations"):
        annotate(LABELS, table, n_permutations=0)
    for labels in (np.where(np.arange(60) == 3, np.nan, LABELS), LABELS[:, None]):
        with pytest.raises(ValueError, match="labels"):
            annotate(labels, table)
    with pytest.raises(NotFittedError):
        annotate(AverageKKM(3), table)


PATIENTS = pd.Index([f"P{i:03d}" for i in range(60)])


def clinic(ids):
    """Return variables of the samples by default index, in another order, with ids in a
    column."""
    rng = np.random.default_rng(0)
    values = {"time": rng.exponential(1 + 3 * LABELS), "event": np.ones(60, int)}
    values |= {"age": rng.normal(size=60) + LABELS}
    shuffled = pd.DataFrame(values, index=ids).sample(frac=1, random_state=1)
    return shuffled.rename_axis("patient_id").reset_index()


@pytest.mark.parametrize(
    "ids",
    [
        PATIENTS,
        pd.RangeIndex(1000, 1060),
        pd.Index(np.random.default_rng(2).permutation(60)),
    ],
    ids=["text", "numbers", "shuffled rows"],
)
def test_rows_are_matched_by_a_column_that_holds_the_ids_of_the_model(ids):
    table = clinic(ids)
    labels = pd.Series(LABELS, index=ids)
    expected = by_name(
        annotate(labels, table.set_index("patient_id"), n_permutations=9)
    )
    for given in (table, {"clinic": table}, table.astype({"patient_id": str})):
        annotation = annotate(labels, given, n_permutations=9)
        found = by_name(annotation)
        assert "patient_id" not in found
        assert found["age"].statistic == pytest.approx(expected["age"].statistic)
        assert found["time, event"].statistic == pytest.approx(
            expected["time, event"].statistic
        )
        assert "matched by its column 'patient_id'" in str(annotation)
    columns = {name: table[name].to_list() for name in table}
    found = by_name(annotate(labels, columns, n_permutations=9))
    assert found["age"].statistic == pytest.approx(expected["age"].statistic)


def test_columns_of_ids_that_cannot_be_used_are_refused_with_the_cure():
    labels, table = pd.Series(LABELS, index=PATIENTS), clinic(PATIENTS)
    repeated = table.assign(patient_id=table["patient_id"].replace("P003", "P004"))
    more = table.assign(patient_id=table["patient_id"].replace("P003", "P999"))
    empty = table.assign(patient_id=table["patient_id"].replace("P003", None))
    for wrong, word in ((repeated, "'P004'"), (more, "'P999'"), (empty, "empty")):
        with pytest.raises(ValueError, match=rf"{word}.*set_index\('patient_id'\)"):
            annotate(labels, wrong)
    two = table.assign(other=table["patient_id"].to_numpy()[::-1])
    with pytest.raises(ValueError, match=r"'patient_id' and 'other'.*set_index"):
        annotate(labels, two)
    by_rank = table.rename(columns={"patient_id": "rank"}).assign(
        rank=np.arange(60) + 5
    )
    with pytest.raises(ValueError, match=r"set_index\('rank'\)"):
        annotate(pd.Series(LABELS, index=range(5, 65)), by_rank)


def test_rows_without_the_ids_of_the_model_are_refused_with_the_cure():
    labels, table = pd.Series(LABELS, index=PATIENTS), clinic(PATIENTS)
    lower = table.assign(patient_id=table["patient_id"].str.lower())
    longer = table.assign(patient_id=table["patient_id"] + "-01")
    columns = {name: lower[name].to_list() for name in lower}
    for wrong, word in (
        (table.drop(columns="patient_id"), "set_axis"),
        (lower, r"'patient_id'.*spelling"),
        (columns, r"'patient_id'.*spelling"),
        (longer, r"'patient_id'.*4 characters"),
    ):
        with pytest.raises(ValueError, match=word):
            annotate(labels, wrong)
    values = {"age": table["age"].to_numpy()}
    assert annotate(labels, values, n_permutations=9).tests[0].n_samples == 60


def test_columns_with_the_names_of_the_levels_of_ids_are_used():
    ids = pd.MultiIndex.from_arrays(
        [["h"] * 60, PATIENTS], names=["hospital", "patient"]
    )
    table = (
        clinic(PATIENTS).rename(columns={"patient_id": "patient"}).assign(hospital="h")
    )
    labels = pd.Series(LABELS, index=ids)
    expected = annotate(
        labels, table.set_index(["hospital", "patient"]), n_permutations=9
    )
    found = annotate(labels, table, n_permutations=9)
    assert by_name(found)["age"].statistic == by_name(expected)["age"].statistic
    assert "'hospital and patient'" in str(found)


def test_numbers_that_are_ids_by_chance_are_variables():
    labels = pd.Series(LABELS, index=PATIENTS.str[1:].astype(int))
    table = pd.DataFrame({"age": [*range(20, 50)] * 2})
    (test,) = annotate(labels, table, n_permutations=9).tests
    assert (test.variable, test.reason) == ("age", "")


def test_ids_and_columns_of_the_library_are_left_out_and_named():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"patient_id": rng.permutation(60), "plate_no": rng.integers(5, size=60)}
    )
    table["hospital"] = rng.permutation(60) + 70_000
    table["age"] = rng.permutation(60) + 0.5
    table["mkclust"] = pd.Categorical(LABELS.astype(str))
    table["mkclust_silhouette"] = rng.normal(size=60)
    annotation = annotate(LABELS, table, n_permutations=9)
    assert [test.variable for test in annotation.tests if not test.reason] == ["age"]
    text = str(annotation)
    assert "looks like an id" in text
    assert "patient_id, plate_no and hospital" in text
    assert "mkclust itself: mkclust_silhouette and mkclust" in text
    as_floats = annotate(LABELS, table.astype({"hospital": float}), n_permutations=9)
    assert by_name(as_floats)["hospital"].reason == ""


def test_times_in_whole_days_that_all_differ_are_no_ids():
    days = np.random.default_rng(0).permutation(60) + 100
    table = pd.DataFrame({"time": days, "event": np.arange(60) % 2})
    assert [test.test for test in annotate(LABELS, table, n_permutations=9).tests] == [
        "log-rank"
    ]


def log_rank(annotation):
    return [test for test in annotation.tests if test.test == "log-rank"]


# Marks of the samples without an event, and the name of their column.
FREE = {
    "alive": (0, 1),
    "survived": ("no", "yes"),
    "disease_free": (0, 1),
    "progression_free": (False, True),
    "OS_STATUS": ("0:DECEASED", "1:LIVING"),
    "overall_survival": ("dead", "alive"),
    "DFS_STATUS": ("1:Recurred/Progressed", "0:DiseaseFree"),
}


@pytest.mark.parametrize("name", FREE)
def test_words_that_mean_free_of_the_event_are_read_as_such_and_events_are_counted(
    name,
):
    rng = np.random.default_rng(0)
    time, event = (
        rng.exponential(1 + 3 * LABELS),
        (rng.uniform(size=60) < 0.3).astype(int),
    )
    end = {"disease_free": "dfs", "progression_free": "pfs", "DFS_STATUS": "dfs"}.get(
        name, "os"
    )
    marks = np.array(FREE[name])[1 - event]
    annotation = annotate(
        LABELS, {f"{end}_months": time, name: marks}, n_permutations=9
    )
    expected = annotate(LABELS, {"time": time, "event": event}, n_permutations=9)
    (test,), (other,) = log_rank(annotation), log_rank(expected)
    assert test.statistic == pytest.approx(other.statistic)
    meaning = np.array(FREE[name])[0]
    assert f"events: {event.sum()} of 60, {name} = {meaning}" in str(annotation)
    assert f"events: {event.sum()} of 60, event = 1" in str(expected)


@pytest.mark.parametrize(
    "name", ["survival", "overall survival", "relapse_free_survival"]
)
@pytest.mark.parametrize("marks", [(0, 1), ("no", "yes"), (False, True)], ids=str)
def test_marks_that_could_mean_survived_or_died_are_taken_for_neither(name, marks):
    time, event = np.random.default_rng(0).exponential(size=60), np.arange(60) % 3 == 0
    endpoint = "rfs" if "relapse" in name else "os"
    table = {f"{endpoint}_months": time, name: np.array(marks)[event.astype(int)]}
    annotation = annotate(LABELS, table, n_permutations=9)
    found = by_name(annotation)
    assert not log_rank(annotation)
    assert found[name].test == "chi-square"
    assert "events" in found[f"{endpoint}_months"].reason
    assert f"may mean alive or free of the event: {name}" in str(annotation)
    with pytest.raises(ValueError, match=f"'{name}'.*died"):
        annotate(LABELS, table, time=f"{endpoint}_months", event=name)


def families(n_families=12, size=5):
    """Return the family of every sample, and clusters that families share."""
    family = np.repeat(np.arange(n_families), size)
    return family, np.arange(n_families)[family] % 3


def test_permutations_respect_groups_so_that_related_samples_are_no_evidence():
    family, labels = families()
    rng = np.random.default_rng(0)
    table = [
        {
            "height": rng.normal(size=12)[family],
            "blood": rng.choice(["a", "b"], size=12)[family],
        }
        for _ in range(30)
    ]
    options = {"n_permutations": 39}
    alone = [by_name(annotate(labels, each, **options)) for each in table]
    grouped = [
        by_name(annotate(labels, each, groups=family, **options)) for each in table
    ]
    for name in ("height", "blood"):
        assert np.mean([each[name].p_value <= 0.05 for each in alone]) > 0.4
        assert np.mean([each[name].p_value <= 0.05 for each in grouped]) < 0.2
        statistics = [each[name].statistic for each in alone]
        assert [each[name].statistic for each in grouped] == pytest.approx(statistics)


def test_differences_within_groups_are_found():
    plate = np.repeat(np.arange(6), 10)
    labels = np.tile([0, 1], 30)
    shift = np.random.default_rng(0).normal(size=60) + labels + 5 * plate
    (test,) = annotate(labels, {"x": shift}, groups=plate, n_permutations=99).tests
    (alone,) = annotate(labels, {"x": shift}, n_permutations=99).tests
    assert test.p_value <= 0.02
    assert alone.p_value > 0.1


def test_groups_are_given_by_id_or_by_a_column_of_the_table_which_is_not_tested():
    family, labels = families()
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "family": family}, index=PATIENTS)
    by_id = pd.Series(family, index=PATIENTS).sample(frac=1, random_state=0)
    labels = pd.Series(labels, index=PATIENTS)
    for names in (by_id, by_id.to_frame(), "family"):
        annotation = annotate(labels, table, groups=names, n_permutations=99)
        assert "respect 12 groups" in str(annotation)
        assert (
            by_name(annotation)["x"].p_value
            == by_name(annotate(labels, table, groups=family, n_permutations=99))[
                "x"
            ].p_value
        )
    assert "groups" in by_name(annotation)["family"].reason
    with pytest.raises(ValueError, match="'plate'"):
        annotate(labels, table, groups="plate")


def test_groups_that_allow_few_orders_are_named():
    labels = np.repeat([0, 1, 2], 20)
    few = annotate(labels, {"x": np.arange(60.0)}, groups=labels, n_permutations=99)
    assert "only 6 differ, so that no p-value can be below 0.17" in str(few)
    assert by_name(few)["x"].p_value > 0.1
    sizes = np.repeat([0, 1, 2], [10, 20, 30])
    none = annotate(sizes, {"x": np.arange(60.0)}, groups=sizes, n_permutations=99)
    assert "nothing can be tested" in str(none)
    assert by_name(none)["x"].p_value == 1


def test_with_groups_and_missing_values_clusters_without_known_samples_do_no_harm():
    family, labels = families()
    x = np.random.default_rng(0).normal(size=60)
    x[labels == 2] = np.nan
    time = np.where(labels == 2, np.nan, np.arange(60.0) + 1)
    table = {"x": x, "c": np.where(np.isnan(x), None, np.where(x > 0, "a", "b"))}
    table |= {"time": time, "event": np.ones(60)} | {"y": np.where(labels == 2, 1.0, x)}
    table["event"][0] = 0
    found = by_name(annotate(labels, table, groups=family, n_permutations=49))
    assert all(0 < test.p_value <= 1 for test in found.values())
    assert found["x"].n_missing == 20


def test_p_values_at_the_floor_of_the_permutations_are_shown_as_bounds():
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=60) + 9 * LABELS, "noise": rng.normal(size=60)}
    annotation = annotate(LABELS, table)
    age, noise = annotation.tests
    line = str(annotation).splitlines()[1]
    assert age.p_value == 0.001
    assert line.split()[-4:] == ["<=", "0.001", "<=", "0.002"]
    assert annotation.p_text(noise.p_value) == f"{noise.p_value:.2g}"
    assert annotation.adjusted_text(noise.p_adjusted) == f"{noise.p_adjusted:.2g}"
