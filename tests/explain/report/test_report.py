"""The report of a fit: every number is the library's, it is sound HTML, and it loads
nothing."""

import base64
import csv
import hashlib
import io
import re
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from helpers.views import blob_views
from mkclust import (
    METHODS,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    SimpleMKKM,
    annotate,
    describe,
    diagnose,
    name_clusters,
    sample_scores,
    suggest_n_clusters,
    view_separation,
    write_report,
)
from mkclust.explain.report import report_html
from mkclust.explain.report.collect import collect
from mkclust.explain.report.figures import _of_views
from mkclust.explain.report.lead import cautions, headline, lead
from mkclust.explain.report.sections import _about_views
from mkclust.explain.stability import stability
from mkclust.fit.same_input import read_again
from mkclust.kernels import Nystroem
from mkclust.metrics import scores
from mkclust.stack.discretize import compared_rows
from mkclust.text import spreadsheet_text

EMPTY = {"meta", "link", "br"}
EVIL = "</script><script>alert('1')</script>\x00&amp;\"'"
FETCHING = {"src", "href", "srcset", "poster", "data", "action", "xlink:href"}


class Page(HTMLParser):
    """A page: its tags, text by section, tables by caption, and key figures; tags must
    match."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.tables, self.figures = [], [], {}, {}
        self.text, self.sections = "", {"": ""}
        self.section, self.rows, self.term = "", [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "section":
            self.section = attributes["id"]
            self.sections[self.section] = ""
        if tag == "table":
            self.rows = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag in ("dt", "caption"):
            self.term = ""

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "caption":
            self.tables[self.term] = self.rows

    def handle_data(self, data):
        if "script" in self.open or "style" in self.open:
            return
        self.text += data
        self.sections[self.section] += data
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data
        elif self.open[-1:] in (["dt"], ["caption"]):
            self.term += data
        elif self.open[-1:] == ["dd"]:
            self.figures[self.term] = data

    def column(self, caption, name):
        head, *rows = self.tables[caption]
        return [row[head.index(name)] for row in rows]

    def numbers(self, caption, name):
        return [float(cell.replace(",", "")) for cell in self.column(caption, name)]

    def all(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]


def page_of(model, X, y=None, **options):
    return Page(report_html(model, X, y, **{"n_resamples": 0} | options))


def words(text):
    return re.sub(r"\s+", " ", text)


def quiet_fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


@pytest.fixture(scope="module")
def problem():
    views, y = blob_views(
        np.random.default_rng(0), n=60, k=3, strengths=(1.0, 0.7, 0.5)
    )
    index = [f"patient {i}" for i in range(60)]
    names = ("left", "right", "top")
    return {n: pd.DataFrame(v, index) for n, v in zip(names, views, strict=True)}, y


@pytest.fixture(scope="module")
def fitted(problem):
    return SimpleMKKM(3, scale="none", random_state=0).fit(problem[0])


@pytest.fixture(scope="module")
def found(problem, fitted):
    rng, y = np.random.default_rng(0), problem[1]
    columns = {
        "age": rng.normal(size=60) + 3 * y,
        "one": np.ones(60),
        "copy": problem[0]["left"][0],
    }
    columns |= {
        "OS_MONTHS": rng.exponential(1 + 9 * y),
        "OS_STATUS": rng.integers(2, size=60),
    }
    other = pd.DataFrame(columns, problem[0]["left"].index)
    k_values = suggest_n_clusters(problem[0], [2, 3, 4], evidence=True)
    return k_values, annotate(fitted, other)


@pytest.fixture(scope="module")
def text(problem, fitted, found):
    options = {"n_resamples": 2, "alternatives": found[0], "annotation": found[1]}
    return report_html(fitted, problem[0], problem[1], **options)


@pytest.fixture(scope="module")
def odd(problem):
    """Return a page of odd names, its model, and the ids of its samples."""
    ids = [f'{EVIL} "{i}", the {i}th\r' for i in range(58)] + ["=1+1", "@SUM(A1)"]
    views = {f"{EVIL}{name}": view.set_axis(ids) for name, view in problem[0].items()}
    model = AgreementKKM(3, random_state=0).fit(views)
    classes = np.array([f"{EVIL}{c}" for c in problem[1]])
    return page_of(model, views, classes, n_resamples=2), model, ids


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_number_about_the_clusters_is_the_librarys(page, problem, fitted):
    views, _ = problem
    sizes, fit_scores = np.bincount(fitted.labels_), sample_scores(fitted)
    found = stability(fitted, views, n_resamples=2)
    means = [fit_scores.silhouette[fitted.labels_ == c].mean() for c in range(3)]
    table = "The clusters"
    assert page.numbers(table, "Samples") == sizes.tolist()
    assert page.numbers(table, "Percent") == pytest.approx(100 * sizes / 60, abs=0.06)
    assert page.numbers(table, "Silhouette") == pytest.approx(means, abs=0.006)
    assert page.numbers(table, "Stability") == pytest.approx(found.clusters, abs=0.006)
    effects = describe(fitted, read_again(fitted, views))
    shown = [effects.by_view(cluster, 2) for cluster in range(3)]
    assert page.column(table, "Set apart by") == shown
    rows = compared_rows(fitted.embedding_, fitted._root)
    said = words(page.sections[""])
    silhouette = silhouette_score(rows, fitted.labels_)
    assert f"(mean silhouette {silhouette:.2f}; 1 is best)" in said
    assert f"{found.mean:.2f} (mean adjusted Rand index of 2 refits" in said
    shown = ", ".join(map(str, sizes[:-1]))
    assert f"3 groups of {shown} and {sizes[-1]} samples; survival" in said
    table = "The least stable samples"
    worst = [views["left"].index.get_loc(name) for name in page.column(table, "Sample")]
    assert page.numbers(table, "Cluster") == fitted.labels_[worst].tolist()
    assert page.numbers(table, "Stability") == pytest.approx(
        found.samples[worst], abs=0.006
    )
    assert page.numbers(table, "Margin") == pytest.approx(
        fit_scores.margin[worst], abs=0.006
    )
    strongest = [
        row for c in range(3) for view in views for row in effects.strongest(c, 3, view)
    ]
    table = "Features of the clusters"
    assert page.column(table, "Feature") == [row.feature for row in strongest]
    for name, values in {
        "Effect": "effect",
        "Inside": "mean_in",
        "Outside": "mean_out",
    }.items():
        expected = [getattr(row, values) for row in strongest]
        assert page.numbers(table, name) == pytest.approx(expected, rel=1e-3, abs=0.006)


def test_every_number_about_the_kernels_is_the_librarys(page, problem, fitted):
    diagnosis, shared = diagnose(fitted, problem[0]), fitted.agreement_
    table = "What each view contributes"
    assert page.column(table, "View") == list(fitted.kernel_names_)
    for name, expected in {
        "Weight": fitted.weights_,
        "Alignment": fitted.alignments_,
        "Alone": diagnosis.table["agreement"],
        "Without it": diagnosis.table["leave_one_out"],
        "Cluster gap": diagnosis.table["cluster_gap"],
        "Top share": diagnosis.table["top_share"],
    }.items():
        assert page.numbers(table, name) == pytest.approx(expected, abs=0.006)
    assert all(
        sentence in page.sections["kernels"] for sentence in diagnosis.about_clusters()
    )
    table, closest = "The closest view of each", [shared.closest(p) for p in range(3)]
    assert page.column(table, "Closest to") == [shared.names[q] for q in closest]
    for name, matrix in {
        "Shared": shared.alignments,
        "Deviations": shared.scores,
    }.items():
        assert page.numbers(table, name) == pytest.approx(
            matrix[range(3), closest], abs=0.06
        )
    assert fitted.WEIGHT_MEANING in words(page.sections["kernels"])
    separated = view_separation(fitted, problem[0])
    shown = words(page.sections["features"])
    assert all(sentence in shown for sentence in separated.sentences())


def test_every_other_number_is_the_librarys(page, problem, fitted, found):
    suggestion, annotation = found
    expected = scores(problem[1], fitted.labels_)
    table = "Scores against the given classes"
    for name in ("ACC", "NMI", "Purity", "ARI"):
        assert page.numbers(table, name)[0] == pytest.approx(
            100 * expected[name.lower()], abs=0.06
        )
    table = "Numbers of clusters"
    for name, values in {
        "Clusters": suggestion.k_values,
        "Score": suggestion.scores,
        "Tightness": suggestion.tightness,
        "Eigengap": suggestion.eigengaps,
        "Agreement": suggestion.agreements,
        "Stability": suggestion.stabilities,
    }.items():
        assert page.numbers(table, name) == pytest.approx(values, abs=0.006)
    table, tests = (
        "Variables against the clusters",
        annotation.table.query("reason == ''"),
    )
    assert page.column(table, "Variable") == tests["variable"].tolist()
    assert page.numbers(table, "Statistic") == pytest.approx(
        tests["statistic"], rel=0.05
    )
    assert page.column(table, "p-value") == [
        annotation.p_text(p) for p in tests["p_value"]
    ]
    assert "<= 0.001" in page.column(table, "p-value")
    assert page.column(table, "Adjusted p") == [
        annotation.adjusted_text(p) for p in tests["p_adjusted"]
    ]
    table = "Variables that differ (adjusted p-value below 0.05), by cluster"
    for cluster in "012":
        values = annotation.differences[cluster].dropna()
        shown = [float(cell) for cell in page.column(table, cluster) if cell != "-"]
        assert shown == pytest.approx(values, rel=0.01)
    assert all(
        sentence in page.sections["annotation"] for sentence in annotation.untested
    )
    assert re.search(r"events: \d+ of 60, OS_STATUS = 1\.", page.sections["annotation"])
    details = words(page.sections["details"])
    [ari] = re.findall(r"clusters that the views agree on: ([\d.]+\d)", details)
    assert float(ari) == pytest.approx(fitted.baseline_agreement_, abs=0.006)
    [gap] = re.findall(r"within a relative (\S+) of the global optimum", details)
    assert float(gap) == pytest.approx(fitted.duality_gap_, rel=0.5)
    comparison = annotation.comparisons["OS_MONTHS, OS_STATUS"]
    table = "Survival of two clusters (OS_MONTHS, OS_STATUS)"
    assert page.numbers(table, "Statistic") == pytest.approx(
        comparison.pairs["statistic"], rel=0.01
    )
    events = int(annotation.survival["OS_MONTHS, OS_STATUS"].n_events)
    table = (
        f"Hazard ratios (OS_MONTHS, OS_STATUS), unadjusted: 60 samples, {events} events"
    )
    assert page.numbers(table, "Ratio") == pytest.approx(
        comparison.hazards["hazard_ratio"], abs=0.006
    )
    assert (
        f"certified relative gap {fitted.duality_gap_:.1e}" in page.sections["details"]
    )


def test_a_table_of_variables_is_tested_for_the_page(problem, fitted):
    rng, y = np.random.default_rng(0), problem[1]
    ids = problem[0]["left"].index
    other = pd.DataFrame({"age": rng.normal(size=60) + 3 * y, "one": 1.0}, ids)
    data = collect(fitted, problem[0], annotation=other.iloc[::-1], n_resamples=0)
    found = data.annotation
    expected = annotate(fitted, other).table
    assert found.table["variable"].tolist() == expected["variable"].tolist()
    statistic = found.table["statistic"].to_numpy()
    assert statistic == pytest.approx(expected["statistic"], rel=0.001, nan_ok=True)
    assert any("constant: one" in sentence for sentence in found.untested)


def test_every_dot_of_the_map_names_its_sample_cluster_and_margin(text, fitted):
    margins = sample_scores(fitted).margin
    assert sorted(re.findall("<title>(patient.*?)</title>", text)) == sorted(
        f"patient {i}, cluster {label}, margin {margins[i]:.2f}"
        for i, label in enumerate(fitted.labels_)
    )


def test_the_labels_of_all_samples_can_be_saved_from_the_page(odd):
    page, model, ids = odd
    [link] = [found for found in page.all("a") if "download" in found]
    content = base64.b64decode(link["href"].partition("base64,")[2]).decode()
    rows = list(csv.reader(io.StringIO(content, newline="")))
    assert rows[0] == ["id", "cluster"]
    assert rows[1:] == [
        [spreadsheet_text(name), str(label)]
        for name, label in zip(ids, model.labels_, strict=True)
    ]
    assert [name for name, _ in rows[-2:]] == ["'=1+1", "'@SUM(A1)"]


def test_a_page_is_sound_with_headings_in_order_unique_ids_and_captions(page):
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert max(np.diff(headings)) <= 1
    assert page.all("html") == [{"lang": "en"}]
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    used = [found["href"] for tag in ("a", "use") for found in page.all(tag)]
    used = [link for link in used if not link.startswith("data:")]
    assert used
    assert {link[1:] for link in used} <= set(names)
    pictures = [found for found in page.all("svg") if "role" in found]
    assert len(pictures) == len(page.all("figure")) == 12
    assert {found["aria-labelledby"] for found in pictures} <= set(names)
    assert all(found.get("scope") for found in page.all("th"))


def test_nothing_on_a_page_points_outside_it_and_scripts_are_allowed_by_hash(
    text, page
):
    for tag, attributes in page.tags:
        for name in FETCHING & attributes.keys():
            assert attributes[name].startswith(("#", "data:")), (tag, attributes)
    [policy] = [found["content"] for found in page.all("meta") if "http-equiv" in found]
    assert policy.startswith("default-src 'none'")
    assert "script-src 'unsafe" not in policy
    for tag in ("script", "style"):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"@import|url\((?!#)", text)


def test_names_cannot_become_markup(odd):
    page, *_ = odd
    assert len(page.all("script")) == 1
    assert "\x00" not in page.text
    shown = page.column("What each view contributes", "View")[0]
    assert shown == EVIL.replace("\x00", "\\x00") + "left"


@pytest.mark.slow
def test_the_same_fit_gives_the_same_page_but_for_the_time(problem):
    model = AverageKKM(3, random_state=np.random.RandomState(0)).fit(problem[0])
    pages = [report_html(model, problem[0], n_resamples=2) for _ in range(2)]
    timeless = [re.sub(r"<time>.*?</time>", "", text) for text in pages]
    assert timeless[0] == timeless[1]
    assert " at 0x" not in timeless[0]


def test_a_report_is_written_completely_or_not_at_all(problem, fitted, tmp_path):
    path = write_report(
        fitted, problem[0], tmp_path / "new" / "fit.html", n_resamples=0
    )
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert [file.name for file in path.parent.iterdir()] == ["fit.html"]
    with pytest.raises(ValueError, match="y has 59 rows"):
        write_report(fitted, problem[0], tmp_path / "bad.html", problem[1][:-1])
    assert not (tmp_path / "bad.html").exists()
    with pytest.raises(ValueError, match="is a folder"):
        write_report(fitted, problem[0], tmp_path)


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_without_its_libraries_the_remedy_is_named(
    problem, fitted, monkeypatch, module
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*mkclust\[report\]"):
        report_html(fitted, problem[0])


def test_views_that_share_nothing_are_said_at_the_top(problem):
    views = {name: view.to_numpy() for name, view in problem[0].items()}
    views["coin"] = np.eye(3)[np.random.default_rng(1).integers(3, size=60)]
    model = quiet_fit(SimpleMKKM(3, random_state=0), views)
    said = words(page_of(model, views).sections[""])
    share = model.weights_[3] / model.weights_.sum()
    assert model.agreement_.verdict(sets_aside=False) in said
    assert said.index("Before you read on") < said.index(
        f"{share:.0%} of the weight is on views"
    )
    model = AgreementKKM(3, random_state=0).fit(views)
    data = collect(model, views, n_resamples=0)
    assert cautions(data, data.verdict) == []


def test_equal_weights_are_a_sentence_and_no_picture(problem):
    model = AgreementKKM(3, random_state=0).fit(problem[0])
    for weights in ([0.5, 0.5, 0.0], [0.4, 0.5, 0.1]):
        model.weights_ = np.array(weights)
        data = collect(model, problem[0], n_resamples=0)
        drawn = [name for name, _ in _of_views(data)]
        said = " ".join(_about_views(data))
        is_equal = "2 views that are used have equal weights" in said
        assert is_equal == (weights[2] == 0)
        assert ("weights" in drawn) == (not is_equal)


def test_other_clusters_than_the_views_agree_on_are_a_caution_for_every_method(problem):
    views = {name: view.to_numpy() for name, view in problem[0].items()}
    views["coin"] = np.eye(3)[np.random.default_rng(1).integers(3, size=60)]
    model = AverageKKM(3, random_state=0).fit(views)
    agreed = AgreementKKM(3, random_state=0).fit(views).labels_
    for labels in (model.labels_, agreed):
        model.labels_ = labels
        data = collect(model, views, n_resamples=0)
        expected = adjusted_rand_score(agreed, labels)
        assert data.agreed_ari == pytest.approx(expected)
        told = " ".join(cautions(data, data.verdict))
        assert ("finds other clusters" in told) == (expected < 0.8)


def test_a_fit_that_stopped_early_says_so_at_the_top(problem):
    model = quiet_fit(SimpleMKKM(3, max_iter=1, tol=1e-12, random_state=0), problem[0])
    data = collect(model, problem[0], n_resamples=0)
    assert "did not converge" in " ".join(cautions(data, data.verdict))
    said = cautions(data, data.verdict, ["beware of this", "a.csv: has no rows"])
    assert said == ["Beware of this.", "a.csv: has no rows."]


def test_the_methods_paragraph_names_every_step_that_changed_the_data(problem):
    frames = {name: view.copy() for name, view in problem[0].items()}
    frames["left"].iloc[3, 0] = np.nan
    frames["coin"] = pd.DataFrame(
        np.eye(3)[np.random.default_rng(1).integers(3, size=60)], frames["left"].index
    )
    frames["top"] = frames["top"].iloc[:55]
    model = AgreementKKM(3, random_state=0, join="outer", impute="median")
    page = page_of(quiet_fit(model, frames), frames, n_resamples=2)
    said = words(page.sections["run"])
    for step in (
        "60 samples into 3 clusters",
        "1 empty cell was filled with the median",
        "5 samples were missing from top",
        "not used: coin",
        "2 refits on 48 samples",
    ):
        assert step in said
    assert page.tables["Views with missing samples"][3][:3] == ["top", "55", "5"]
    rows = page.tables["Samples by missing views (rows) and cluster (columns)"][1:]
    assert rows == [
        [name, *map(str, counts)] for name, counts in model.missingness_.rows()
    ]


@pytest.mark.slow
def test_given_kernels_are_called_kernels(problem):
    kernels = np.stack([np.eye(20) + 1] * 2)
    page = page_of(AverageKKM(3, random_state=0).fit(kernels), kernels)
    assert "2 kernels were given" in words(page.sections["run"])
    assert "What each kernel contributes" in page.tables


def test_who_passed_views_reads_of_views(page):
    said = [text for name, text in page.sections.items() if name != "run"]
    found = re.findall(r"(?i).*kernel.*", "\n".join(said))
    assert found == ["kernels'auto'"]  # a parameter


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_report_with_its_paper_and_what_is_certified(name, problem):
    model = quiet_fit(METHODS[name](n_clusters=3, random_state=0), problem[0])
    page = page_of(model, problem[0], problem[1])
    assert all(paper in page.text for paper in model.REFERENCES)
    assert model.SUMMARY in words(page.text)
    assert "nothing to certify" not in page.text
    assert ("Certified: the objective" in page.text) == hasattr(model, "duality_gap_")
    assert ("did not converge" in page.text) == (not model.converged_)


@pytest.mark.slow
def test_one_kernel_and_one_cluster_have_a_report(problem):
    views = {"left": problem[0]["left"]}
    for method in (AverageKKM, AnchoredMKKM):
        page = page_of(method(3, random_state=0).fit(views), views)
        assert "One view alone" in page.text
    page = page_of(AverageKKM(1, random_state=0).fit(problem[0]), *problem)
    assert len(page.tables["The clusters"]) == 2
    assert "1 group of 60 samples" in page.text


@pytest.mark.parametrize(
    "method", [pytest.param(AverageKKM, marks=pytest.mark.slow), AgreementKKM]
)
def test_several_kernels_of_one_table_have_a_report(problem, method):
    table = problem[0]["left"]
    page = page_of(method(3, random_state=0).fit(table), table)

    assert len(page.tables["What each kernel contributes"]) > 3
    assert "One view alone: there is nothing to compare it with." in page.text
    assert "Kernels of one view prove nothing about each other" in page.text


@pytest.mark.slow
def test_compressed_models_say_what_their_features_miss(problem):
    model = SimpleMKKM(3, approximation=Nystroem(n_components=20), random_state=0).fit(
        problem[0]
    )
    missed = page_of(model, problem[0]).numbers("What each view contributes", "Missed")
    assert missed == pytest.approx(model.approximation_error_, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [(AverageKKM, {}), (AgreementKKM, {"neighbors": 8, "resolution": 20.0})],
)
def test_other_numbers_of_clusters_are_compared_if_asked_for(problem, method, settings):
    model = method(4, **settings, random_state=0).fit(problem[0])
    data = collect(model, problem[0], n_resamples=0, alternatives=True)
    expected = suggest_n_clusters(problem[0], evidence=True, **settings)
    assert data.suggestion.summary() == expected.summary()


def check_that_nothing_is_said_twice(page):
    text = words(page.text)
    said = [part.strip() for part in re.split(r"(?<=[.!?]) ", text)]
    long = [sentence for sentence in said if len(sentence.split()) > 6]
    assert len(long) == len(set(long)), [s for s in long if long.count(s) > 1]
    for name, content in page.sections.items():
        assert len(content.split()) > 8, name
    assert "Not compared" not in text
    assert "nothing to certify" not in text


def test_nothing_is_said_twice_and_every_section_says_something(page):
    check_that_nothing_is_said_twice(page)


@pytest.mark.slow
def test_nothing_is_said_twice_without_options(problem):
    single = page_of(AverageKKM(3, random_state=0).fit(problem[0]), problem[0])
    check_that_nothing_is_said_twice(single)


@pytest.fixture(scope="module")
def measured(problem, fitted, found):
    options = {"alternatives": found[0], "annotation": found[1]}
    return collect(fitted, problem[0], n_resamples=2, **options)


@pytest.mark.parametrize("mean", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("evidence", ["none", "weak", "strong"])
def test_the_first_lines_do_not_contradict_each_other(measured, found, mean, evidence):
    data = measured
    refits = np.full(2, mean)
    data = replace(
        data,
        stability=replace(data.stability, agreements=refits),
        suggestion=replace(found[0], tests=replace(found[0].tests, verdict=evidence)),
    )
    said = " ".join(lead(data)).replace("not well separated", "")
    is_doubted = "there may be no clusters" in said
    assert is_doubted == (evidence == "none")
    assert not (is_doubted and "well separated" in said)
    assert not ("well separated" in said and "Stability is low" in said)
    assert "another number of clusters may fit better" not in said
    level = {0.3: "low", 0.9: "middling", 0.99: "high"}[mean]
    assert f"Stability is {level}, {mean:.2f}" in said


def test_the_headline_says_how_many_groups_there_are_and_whether_survival_differs(
    problem, fitted, found, measured
):
    data = measured
    first, *others, last = np.bincount(fitted.labels_).tolist()
    sizes = ", ".join(map(str, [first, *others])) + f" and {last}"
    assert headline(data).startswith(f"3 groups of {sizes} samples; survival ")
    [test] = [each for each in found[1].tests if each.test == "log-rank"]
    assert f"(p {found[1].p_text(test.p_value, '= ')})" in headline(data)
    assert ("differs" in headline(data)) == (test.p_value < 0.05)

    named = name_clusters(
        AverageKKM(3, random_state=0).fit(problem[0]), ["a", "b", "c"]
    )
    data = collect(named, problem[0], n_resamples=0)
    size = np.bincount(named.labels_)[0]
    assert headline(data).startswith(f"3 groups of samples: a ({size}), b (")
    assert data.titles == ("a", "b", "c")


def test_the_methods_name_how_variables_were_tested(page, fitted):
    said = words(page.sections["run"])
    for step in (
        "The views were left (10 features), right (10 features) and top (10 features)",
        "Gaussian kernel (bandwidth: the median distance of samples)",
        "Of 2 to 4 clusters, 3 have the highest sum",
        "log-rank test, for pairs of clusters with Holm's correction",
        "numbers by Kruskal-Wallis tests",
        "Benjamini and Hochberg",
        f"[{len(fitted.REFERENCES) + 1}] The mkclust developers",
    ):
        assert step in said


def test_a_number_of_clusters_that_the_fit_found_has_a_report(problem):
    model = AgreementKKM("auto", random_state=0).fit(problem[0])
    data = collect(model, problem[0], n_resamples=0)
    assert headline(data).startswith(f"{model.n_clusters_} groups of")
    assert diagnose(model, problem[0]).n_clusters == model.n_clusters_
