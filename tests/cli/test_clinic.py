"""Files of a clinic: numbers of patients, outcomes, coordinates, and rows in any
order."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

from helpers.cli import fail, stop, succeed, three_clusters

N = 60
PATIENTS = [f"P{place:03d}" for place in range(N)]


@pytest.fixture(autouse=True)
def files(folder):
    """Write two tables of the same patients."""
    for name, frame in tables().items():
        frame.to_csv(f"{name}.csv")


def tables():
    views, _ = three_clusters(N)
    index = pd.Index(PATIENTS, name="patient")
    return {
        name: pd.DataFrame(v, index=index).add_prefix(name) for name, v in views.items()
    }


def outcomes():
    """Return months, which the clusters differ in, and who has died, which they do
    not."""
    _, y = three_clusters(N)
    months = 1 + 10 * y + np.random.default_rng(0).uniform(size=N)
    return pd.DataFrame({"months": months}), np.random.default_rng(1).uniform(
        size=N
    ) < 0.4


def annotated(frame, *options):
    """Return what is recorded of the variables of a file, tests by the name of the
    variable."""
    frame.to_csv("clinic.csv", index=False)
    files = ("left.csv", "right.csv", "--id", "patient")
    result = succeed("cluster", *files, "-k", 3, "--annotate", "clinic.csv", *options)
    annotation = json.loads(Path("run.json").read_text())["annotation"]
    tests = (
        {}
        if annotation is None
        else {each["variable"]: each for each in annotation["tests"]}
    )
    return result, tests


@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
def test_variables_in_another_order_are_matched_by_their_column_of_ids(place):
    frame = outcomes()[0].rename(columns={"months": "weight"})
    frame.insert(place, "patient", PATIENTS)
    _, tests = annotated(frame)
    _, shuffled = annotated(frame.sample(frac=1, random_state=0))
    assert tests["weight"]["p_value"] == 0.001
    assert shuffled["weight"]["statistic"] == pytest.approx(
        tests["weight"]["statistic"]
    )


def test_variables_without_ids_are_refused_before_the_fit():
    outcomes()[0].to_csv("clinic.csv", index=False)
    files = ("left.csv", "right.csv", "--id", "patient")
    message = fail("cluster", *files, "-k", 3, "--annotate", "clinic.csv")
    assert "clinic.csv: has no ids" in message
    assert "add a column with the ids" in message
    assert "set_index" not in message


@pytest.mark.parametrize("first", ["patient", "months"])
def test_ids_of_variables_that_no_table_has_are_refused_with_what_cures_them(first):
    frame = outcomes()[0].assign(patient=[f"{each}-01" for each in PATIENTS])
    frame[sorted(frame, key=first.__ne__)].to_csv("clinic.csv", index=False)
    command = ("cluster", "left.csv", "right.csv", "-k", 3, "--annotate", "clinic.csv")
    message = stop(*command)
    assert "--trim-ids clinic.csv=4" in message
    cures = ["--trim-ids", "clinic.csv=4"]
    if first == "months":
        cures += ["--id", "clinic.csv=patient"]
    assert "'P000-01', longer than" in message
    succeed(*command, *cures)
    tests = json.loads(Path("run.json").read_text())["annotation"]["tests"]
    assert [each["n_missing"] for each in tests] == [0]

    others = frame.assign(patient=[f"X{each}" for each in range(N)])
    others.to_csv("clinic.csv", index=False)
    assert "none of which" in fail(*command, "--id", "clinic.csv=patient")


def test_tables_are_cut_to_the_ids_of_the_variables_if_those_are_shorter():
    for name in ("left", "right"):
        frame = tables()[name]
        frame.set_axis([f"{each}-01A" for each in PATIENTS]).to_csv(
            f"{name}.csv", index_label="patient"
        )
    outcomes()[0].assign(patient=PATIENTS).to_csv("clinic.csv", index=False)
    command = ("cluster", "left.csv", "right.csv", "-k", 3, "--annotate", "clinic.csv")
    command = stop(*command).splitlines()[-1]
    assert "--trim-ids left.csv=4 --trim-ids right.csv=4" in command
    result = succeed(*shlex.split(command)[1:])
    assert "months" in result.stdout


def test_variables_that_fail_after_the_fit_are_named_on_the_page_with_the_reason():
    months, died = outcomes()
    frame = months.assign(patient=PATIENTS, survival=died * 1)
    options = ("--time", "months", "--event", "survival", "--report", "page.html")
    annotated(frame, *options)
    assert (
        "The variables of clinic.csv were not tested" in Path("page.html").read_text()
    )


def test_covariates_are_looked_at_before_the_fit_too():
    months, _ = outcomes()
    frame = months.assign(patient=[f"{each}-01" for each in PATIENTS])
    frame.loc[3, "months"] = np.nan
    frame.to_csv("clinic.csv", index=False)
    adjust = ("--adjust-for", "clinic.csv::months")
    message = stop("cluster", "left.csv", "right.csv", "-k", 3, *adjust)
    assert "clinic.csv: has empty cells in 1 column ('months': 1)" in message
    command = message.splitlines()[-1]
    assert "--trim-ids clinic.csv=4" in command
    said = succeed(*shlex.split(command)[1:]).stdout
    assert "adjusted for months" in said
    assert "(months: 1)" in said


def test_numbers_of_samples_in_a_file_of_variables_are_not_tested():
    frame = pd.DataFrame({"patient": PATIENTS, "sample_no": range(7, 7 + N)})
    _, tests = annotated(frame.assign(weight=outcomes()[0]["months"]))
    assert "looks like an id" in tests["sample_no"]["reason"]
    assert not tests["weight"]["reason"]


def test_tables_with_and_without_ids_are_refused_with_the_option():
    tables()["right"].to_csv("bare.csv", index=False)
    message = fail("cluster", "left.csv", "bare.csv", "-k", 3)
    assert "bare.csv: has no ids" in message
    assert "set_index" not in message


def test_numbers_of_samples_and_columns_of_mkclust_are_not_clustered_on():
    rng = np.random.default_rng(0)
    for name in ("u", "v"):
        frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
        frame.assign(number=range(1000, 1000 + N)).to_csv(f"{name}.csv", index=False)
        frame.assign(mkclust=0).to_csv(f"{name}_own.csv", index=False)
    message = stop("cluster", "u.csv", "v.csv", "-k", 2)
    assert "'number'" in message
    assert "--id u.csv=number --id v.csv=number" in message
    own = stop("cluster", "u_own.csv", "v_own.csv", "-k", 2)
    assert "--drop u_own.csv=mkclust" in own
    result = succeed("cluster", "u.csv", "v.csv", "-k", 2, "--id", "number")
    assert "do not agree clearly" in result.stderr


def test_columns_of_survival_are_left_out_of_what_is_clustered_with_a_warning():
    months, died = outcomes()
    left = tables()["left"].assign(
        OS_MONTHS=months["months"].to_numpy(), OS_STATUS=died * 1
    )
    left.to_csv("left.csv")
    result = succeed("cluster", "left.csv", "right.csv", "-k", 3, "--id", "patient")
    assert "OS_MONTHS" in result.stderr
    assert "left (left.csv): 60 samples x 5 columns" in result.stdout


def test_a_coordinate_y_is_clustered_on_and_classes_are_not():
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(N, 3)), columns=list("xyz")
    )
    frame["y"] += 10 * (np.arange(N) % 3)
    frame.to_csv("points.csv", index=False)
    result = succeed("cluster", "points.csv", "-k", 3)
    assert "taken for a feature" in result.stderr
    assert "high y (" in result.stdout
    frame.assign(y=np.arange(N) % 3).to_csv("points.csv", index=False)
    assert " y (" not in succeed("cluster", "points.csv", "-k", 3).stdout


MARKS = {
    "OS_STATUS": ("1:DECEASED", "0:LIVING"),
    "vital_status": ("Dead", "Alive"),
    "alive": ("no", "yes"),
    "disease_free": ("no", "yes"),
    "progression_free": (0, 1),
    "died": (1, 0),
}


@pytest.mark.slow
def test_events_are_read_alike_from_all_words_and_counted():
    months, died = outcomes()
    found = set()
    for name, (event, censored) in MARKS.items():
        marks = [event if each else censored for each in died]
        frame = months.assign(patient=PATIENTS, **{name: marks})
        result, tests = annotated(frame, "--time", "months", "--event", name)
        assert f"events: {died.sum()} of {N}, {name} = {event}" in result.stdout
        found.add(round(tests[f"months, {name}"]["statistic"], 6))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("name", "word"), [("survival", 1), ("overall_survival", "yes")]
)
def test_events_that_may_mean_their_opposite_are_not_read(name, word):
    months, died = outcomes()
    marks = [0 if word == 1 and each else "no" if each else word for each in died]
    frame = months.assign(patient=PATIENTS, **{name: marks})
    result, tests = annotated(frame, "--time", "months", "--event", name)
    assert "may mean alive" in result.stderr
    assert not tests
    result, tests = annotated(frame)
    assert tests[name]["test"] == "chi-square"
    assert "Not taken for events of survival" in result.stdout


def test_hazard_ratios_are_adjusted_for_columns_of_the_file_of_variables():
    months, died = outcomes()
    age = np.random.default_rng(2).normal(60, 9, size=N)
    frame = months.assign(patient=PATIENTS, died=died * 1, age=age)
    survival = ("--time", "months", "--event", "died")
    result, _ = annotated(frame, *survival, "--adjust", "age")
    assert "Adjusted for age" in result.stdout or "No hazard ratios" in result.stdout
    files = ("left.csv", "right.csv", "--id", "patient", "-k", 3)
    options = ("--annotate", "clinic.csv", *survival, "--adjust", "agee")
    assert "did you mean 'age'" in fail("cluster", *files, *options)
    assert "--annotate FILE" in fail("cluster", *files, "--adjust", "age")
