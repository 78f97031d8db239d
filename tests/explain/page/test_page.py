"""The page of a fit: what it says is true, it is whole, and it asks nobody for anything."""

import base64
import csv
import html
import io
import json
import re
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

from conftest import blob_views

pytest.importorskip("plotly")

from plotly.offline import get_plotlyjs

from mkclust import (
    METHODS,
    MKKM,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    KernelBank,
    SimpleMKKM,
    describe,
    diagnose,
    suggest_n_clusters,
)
from mkclust.explain import examined
from mkclust.explain.page import findings, fit_page, fit_report, page
from mkclust.explain.page.budget import Budget, sample_by_cluster
from mkclust.explain.page.clusters import matched_counts
from mkclust.kernels import Nystroem
from mkclust.metrics import adjusted_rand_index, clustering_accuracy, scores
from mkclust.web.words import format_percent

pytestmark = pytest.mark.slow

QUICK = {"n_resamples": 2, "leave_one_out": False, "alternatives": False}
NOTHING_REFITTED = QUICK | {"n_resamples": 0}
EMPTY = {"meta", "link", "br"}
# What a browser would fetch, were it not for the policy that forbids it.
FETCHING = {"src", "href", "srcset", "poster", "data", "action"}


class Outline(HTMLParser):
    """The tags of a page, and whether each that is opened is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.scripts, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def all(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]


@pytest.fixture(scope="module")
def problem():
    views, y = blob_views(np.random.default_rng(0), n=60, k=3)
    return dict(zip(("left", "right", "top"), views, strict=True)), y


@pytest.fixture(scope="module")
def fitted(problem):
    return SimpleMKKM(3, random_state=0).fit(problem[0])


@pytest.fixture(scope="module")
def whole(problem, fitted):
    return fit_page(fitted, problem[0], y=problem[1], **QUICK)


def quiet_fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def bytes_beyond_script(text):
    """Return how much a page takes beyond the plotting script."""
    return len(text.encode()) - len(get_plotlyjs().encode())


def plot_of(text, name):
    """Return what a plot of a page is drawn from."""
    figure = text.partition(f'<figure id="{name}-plot">')[2].partition("</figure>")[0]
    return json.loads(re.search(r'application/json">(.*?)</script>', figure, re.S)[1])


def caption_of(text, name):
    """Return the words below a plot of a page."""
    figure = text.partition(f'<figure id="{name}-plot">')[2].partition("</figure>")[0]
    return html.unescape(re.search(r"<figcaption>(.*?) <button", figure, re.S)[1])


def sections_of(text):
    """Return the names of the sections of a page, in their order."""
    return re.findall(r'<section id="([a-z]+)"', text)


def rows_of(text, caption):
    """Return the cells of the table with a caption, row by row."""
    body = text.partition(f"<caption>{caption}</caption>")[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body.partition("<tbody>")[2], re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    assert cells
    return [[html.unescape(cell) for cell in row] for row in cells]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_with_its_paper_and_what_is_certified(name, problem):
    views, y = problem
    model = quiet_fit(METHODS[name](n_clusters=3, random_state=0), views)
    text = fit_page(model, views, y=y, **QUICK)
    outline = Outline(text)
    assert all(paper in outline.text for paper in model.REFERENCES)
    assert model.REFERENCES
    assert model.SUMMARY in outline.text
    assert ("Certified: the objective" in outline.text) == hasattr(model, "duality_gap_")
    table = rows_of(text, "The kernels")
    assert [row[0] for row in table] == list(views)
    assert [float(row[2]) for row in table] == pytest.approx(model.weights_, abs=5e-4)
    assert [float(row[3]) for row in table] == pytest.approx(model.alignments_, abs=5e-3)
    assert ("did not converge" in outline.text) == (not model.converged_)


def test_a_page_is_sound_markup_with_its_headings_in_order(whole):
    outline = Outline(whole)
    headings = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert max(np.diff(headings)) <= 1
    assert outline.all("html") == [{"lang": "en"}]
    assert len(outline.all("title")) == 1
    names = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(names) == len(set(names))
    links = [found["href"] for found in outline.all("a") if "download" not in found]
    assert links
    assert {link[1:] for link in links} <= set(names)


def test_every_plot_has_a_label_and_a_summary(whole):
    figures = re.findall(r"<figure.*?</figure>", whole, re.S)
    assert len(figures) == 9
    for figure in figures:
        assert len(re.search(r'role="img" aria-label="([^"]+)"', figure)[1]) > 10
        assert len(re.search(r"<figcaption>(.*?)<button", figure, re.S)[1]) > 30
        spec = json.loads(re.search(r'application/json">(.*?)</script>', figure, re.S)[1])
        assert spec["data"]


def test_nothing_on_a_page_points_outside_it(whole):
    for tag, attributes in Outline(whole).tags:
        for name in FETCHING & attributes.keys():
            assert attributes[name].startswith(("#", "data:")), (tag, attributes)
    own = whole.replace(get_plotlyjs(), "")
    assert len(own) == len(whole) - len(get_plotlyjs())
    assert not re.search(r"https?://|@import|url\(", own)
    assert "default-src 'none'" in own


def test_names_of_kernels_samples_and_classes_cannot_become_markup(problem):
    views, y = problem
    evil = "</script><script>alert('1')</script>\x00&amp;\"'"
    renamed = {f"{evil}{name}": view for name, view in views.items()}
    model = SimpleMKKM(3, random_state=0).fit(renamed)
    ids, classes = [f"{evil}{i}" for i in range(60)], np.array([f"{evil}{c}" for c in y])
    text = fit_page(model, renamed, y=classes, ids=ids, **QUICK)
    outline = Outline(text)
    harmless = fit_page(model, renamed, y=y, **QUICK)
    assert len(outline.all("script")) == len(Outline(harmless).all("script"))
    assert "alert('1')</script>" not in text
    assert "</script><script>alert('1')</script> &amp;\"'left" in outline.text
    embedding = plot_of(text, "embedding")
    # Plotly reads markup of its own; escaped once, it shows what was given.
    shown = html.unescape(embedding["data"][0]["customdata"][0][0])
    assert shown.startswith("</script><script>alert('1')")


def test_the_same_fit_gives_the_same_page_but_for_the_time(problem, fitted, whole):
    again = fit_page(fitted, problem[0], y=problem[1], **QUICK)
    timeless = [re.sub(r"<time>.*?</time>", "", text) for text in (whole, again)]
    assert timeless[0] == timeless[1]
    assert timeless[0] != whole


def test_a_generator_as_seed_leaves_no_address_on_the_page(problem):
    model = AverageKKM(3, random_state=np.random.RandomState(0)).fit(problem[0])
    assert " at 0x" not in fit_page(model, problem[0], **QUICK)


def test_scores_and_matched_counts_are_those_of_the_metrics(problem, fitted, whole):
    y, labels = problem[1], fitted.labels_
    found = [float(cell) for cell in rows_of(whole, "Scores against the given classes")[0][1:]]
    expected = scores(y, labels)
    keys = ("acc", "nmi", "purity", "ari")
    assert found == pytest.approx([100 * expected[key] for key in keys], abs=0.06)


@pytest.mark.parametrize(("n_clusters", "n_classes"), [(4, 4), (3, 6), (6, 2)])
def test_matched_counts_hold_the_accuracy_on_their_diagonal(n_clusters, n_classes):
    rng = np.random.default_rng(0)
    labels, y = rng.integers(0, n_clusters, 200), rng.integers(0, n_classes, 200)
    counts, clusters, names = matched_counts(labels, y, n_clusters)
    assert np.trace(counts) / 200 == pytest.approx(clustering_accuracy(y, labels))
    assert sorted(clusters) == list(range(n_clusters))
    for row, cluster in zip(counts, clusters, strict=True):
        expected = [np.sum((labels == cluster) & (y == int(name))) for name in names]
        assert row.tolist() == expected


def test_silhouettes_are_those_of_the_rows_that_k_means_sees(problem, fitted):
    found = findings.find(fitted, problem[0], **NOTHING_REFITTED)
    rows = fitted.embedding_ / np.linalg.norm(fitted.embedding_, axis=1, keepdims=True)
    assert found.silhouettes.mean() == pytest.approx(silhouette_score(rows, fitted.labels_))


def test_what_single_kernels_find_is_found_by_two_roads(problem):
    views, _ = problem
    model = METHODS["mkkm"](3, random_state=0).fit(views)
    found = findings.find(model, views, **NOTHING_REFITTED).kernels
    assert found.with_consensus == pytest.approx(diagnose(model, views).agreement)
    compromise = AgreementKKM(3, random_state=0).fit(views).labels_
    for p, view in enumerate(views.values()):
        alone = AverageKKM(3, random_state=0).fit([view]).labels_
        assert found.with_compromise[p] == pytest.approx(adjusted_rand_score(compromise, alone))
    assert found.compromise_with_consensus == pytest.approx(
        adjusted_rand_score(compromise, model.labels_)
    )


def opening_of(model, X, **options):
    """Return the words of a page before its sections."""
    text = fit_page(model, X, **(QUICK | options)).partition("<nav")[0]
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", text.partition("<h1")[2])))


def test_a_page_leads_with_which_views_agree_and_comes_to_warnings_last(problem):
    views = problem[0] | {"coin": np.eye(3)[np.random.default_rng(1).integers(3, size=60)]}
    model = quiet_fit(SimpleMKKM(3, random_state=0), views)
    said = opening_of(model, views)
    order = ["3 of 4 views agree", "Mixed in, though sharing nothing with any other view: coin"]
    order += ["The 3 clusters are", "(mean silhouette", "One thing to know", "Before you read on"]
    places = [said.index(words) for words in order]
    assert places == sorted(places)
    share = 100 * model.weights_[3] / model.weights_.sum()
    assert f"SimpleMKKM itself sets no view aside: 'coin' has {share:.0f} % of the weight" in said
    # Nothing to warn of where it was set aside.
    model = AgreementKKM(3, random_state=0).fit(views)
    said = opening_of(model, views)
    assert "Set aside, sharing nothing with any other view: coin" in said
    assert "The fit gives no cause for a warning." in said
    assert "Before you read on" not in said


def test_a_page_that_doubts_clusters_does_not_say_that_all_is_well(problem):
    views = problem[0]
    model = AgreementKKM(3, random_state=0).fit(views)
    tried = suggest_n_clusters(views, (2, 3, 4), n_resamples=2, n_draws=49)
    said = opening_of(model, views, alternatives=replace(tried, kind="continuum", n_clusters=1))
    assert "they may be parts of a continuum. The fit itself gives no cause for a warning." in said


def test_clusters_come_first_and_the_solver_last(problem, whole):
    order = ["clusters", "features", "stability", "classes", "number", "embedding"]
    order += ["kernels", "agreement", "similarities", "convergence", "run"]
    assert sections_of(whole) == order
    opening = whole.partition("<nav")[0]
    assert opening.index('class="verdict"') < opening.index('class="facts"')


def test_the_labels_of_all_samples_can_be_saved_from_the_page(problem, fitted):
    ids = [f'sample "{i}", the {i}th\r' for i in range(60)]
    text = fit_page(fitted, problem[0], ids=ids, **QUICK)
    [link] = [found for found in Outline(text).all("a") if "download" in found]
    kind, _, content = link["href"].partition(",")
    assert (kind, link["download"]) == ("data:text/csv;charset=utf-8;base64", "clusters.csv")
    rows = list(csv.reader(io.StringIO(base64.b64decode(content).decode(), newline="")))
    assert rows[0] == ["id", "cluster"]
    assert [name for name, _ in rows[1:]] == ids
    assert [int(cluster) for _, cluster in rows[1:]] == fitted.labels_.tolist()


def test_clusters_are_counted_against_classes_once(problem, fitted, whole):
    table = rows_of(whole, "Samples by cluster (rows) and given class (columns), matched")
    counts = np.array(table, dtype=int)[:, 1:]
    assert np.trace(counts) / 60 == pytest.approx(clustering_accuracy(problem[1], fitted.labels_))
    assert whole.count("matched</caption>") == 1
    assert "classes-plot" not in whole


def test_the_samples_are_drawn_as_neighbors_and_in_a_plane_beside_them(problem, fitted, whole):
    pair = whole.partition('<div class="beside">')[2].partition("</div></section>")[0]
    assert pair.index('id="embedding-plot"') < pair.index('id="plane-plot"')
    for name in ("embedding", "plane"):
        sizes = [len(trace["x"]) for trace in plot_of(whole, name)["data"]]
        assert sizes == np.bincount(fitted.labels_).tolist()
    few = {name: view[:9] for name, view in problem[0].items()}
    text = fit_page(quiet_fit(AverageKKM(2, random_state=0), few), few, **NOTHING_REFITTED)
    assert "plane-plot" in text
    assert "embedding-plot" not in text


def test_a_plane_that_holds_everything_hides_nothing(problem):
    two = fit_page(AverageKKM(2, random_state=0).fit(problem[0]), problem[0], **QUICK)
    assert "hardly any is left over" in caption_of(two, "plane")
    assert "may be apart" not in caption_of(two, "plane")
    five = fit_page(AverageKKM(5, random_state=0).fit(problem[0]), problem[0], **QUICK)
    assert re.search(r"show \d\d\s% of the variance.*may be apart", caption_of(five, "plane"))


def test_one_of_a_thing_is_written_as_one(problem):
    views = problem[0]
    model = quiet_fit(SimpleMKKM(3, max_iter=2, tol=1e-12, random_state=0), views)
    model.history_, model.lower_bounds_ = model.history_[:2], model.lower_bounds_[:2]
    text = Outline(fit_page(model, views, **(QUICK | {"n_resamples": 1}))).text
    assert "Within 1 step the objective" in text
    assert "fitted once on 48 of the 60 samples" in text
    assert "assessed by 1 refit on" in text
    assert not re.search(r"\b1 (step|time|refit|sample|cluster|kernel|view)s\b", text)
    alone = {"left": views["left"]}
    text = fit_page(AverageKKM(1).fit(alone), alone, **QUICK)
    assert caption_of(text, "weights") == "The only kernel, left, has all of the weight."
    assert "There is one cluster, as you asked." in text
    pair = {name: views[name] for name in ("left", "right")}
    text = fit_page(AverageKKM(3, random_state=0).fit(pair), pair, **QUICK)
    assert caption_of(text, "agreement").startswith("The alignment of the two views is")
    assert caption_of(text, "weights").startswith("All weights are 0.500.")


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (0.001, "less than 1 %"), (0.5, "50 %"), (0.999, "more than 99 %"), (1, "100 %")],
)
def test_what_is_not_all_is_not_called_all(share, words):
    assert format_percent(share).replace("\xa0", " ") == words


def test_the_kernels_of_a_fit_are_made_and_looked_at_once(problem, fitted, monkeypatch):
    counts = Counter()

    def count(owner, name):
        original = getattr(owner, name)

        def counted(*args, **options):
            counts[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    count(KernelBank, "transform")
    count(examined, "relax")
    count(findings, "in_order_of_fit")
    fit_page(fitted, problem[0], y=problem[1], **NOTHING_REFITTED)
    # A relaxation for each kernel alone; the fit itself has found the compromise's.
    assert counts == {"transform": 1, "relax": 3, "in_order_of_fit": 1}


def test_the_number_of_clusters_stands_beside_its_neighbors(problem):
    views = problem[0]
    model = AverageKKM(4, random_state=0).fit(views)
    text = fit_page(model, views, **(QUICK | {"alternatives": True}))
    rows = rows_of(text, "Numbers of clusters")
    assert [int(row[0]) for row in rows] == [2, 3, 4, 5, 6, 7]
    expected = suggest_n_clusters(
        views,
        range(2, 8),
        coefficients=model.agreement_.coefficients(),
        n_draws=19,
        level=0.05,
        n_resamples=10,
    )
    assert expected.n_clusters == 3
    assert [float(row[2]) for row in rows] == pytest.approx(expected.excess, abs=6e-3)
    assert ["this fit" in row[1] for row in rows] == [False, False, True, False, False, False]
    assert "fits best" in rows[1][1]
    said = "Of 2 to 7 clusters, 3 fit best; this fit has 4."
    assert said in text.partition("<nav")[0]
    few = {name: view[:15] for name, view in views.items()}
    model = quiet_fit(AverageKKM(2, random_state=0), few)
    text = fit_page(model, few, **(QUICK | {"alternatives": True}))
    assert "15 samples are too few to compare 2 clusters with other numbers." in text


def test_a_suggestion_that_is_known_is_shown_and_not_sought_again(problem, fitted, monkeypatch):
    known = suggest_n_clusters(problem[0], [2, 3, 4], n_draws=19, level=0.05, n_resamples=2)
    monkeypatch.setattr(findings, "compare_numbers", None)
    text = fit_page(fitted, problem[0], **(QUICK | {"alternatives": known}))
    rows = rows_of(text, "Numbers of clusters")
    assert [int(row[0]) for row in rows] == [2, 3, 4]
    assert [float(row[2]) for row in rows] == pytest.approx(known.excess, abs=6e-3)
    assert "found before the fit" in text


def test_progress_counts_all_steps_of_a_page_together(problem, fitted):
    steps = []
    fit_page(
        fitted, problem[0], n_resamples=2, leave_one_out=True, progress=lambda *s: steps.append(s)
    )
    done, totals, texts = zip(*steps, strict=True)
    assert list(done) == sorted(set(done))
    assert len(set(totals)) == 1
    assert done[-1] < totals[0]
    order = ["making the kernels", "describing the clusters", "drawing the samples"]
    order += ["kernels left out in turn", "resamples", "draws of one cloud", "shuffled views"]
    assert list(dict.fromkeys(texts)) == order


def test_what_one_eigenproblem_solves_needs_no_certificate(problem):
    for method in (AverageKKM, AgreementKKM):
        text = Outline(
            fit_page(method(3, random_state=0).fit(problem[0]), problem[0], **QUICK)
        ).text
        assert "are the global optimum of its relaxed problem" in text
        assert "stationary point" not in text
        assert "no certificate" not in text


def test_a_page_says_what_every_two_views_share(problem, fitted, whole):
    shared = fitted.agreement_
    spec = plot_of(whole, "agreement")
    np.testing.assert_allclose(spec["data"][0]["z"], shared.alignments, atol=0.006)
    table = rows_of(whole, "The views")
    assert [row[0] for row in table] == list(problem[0])
    assert [float(row[5]) for row in table] == pytest.approx(shared.weights(), abs=6e-3)


def test_two_camps_of_views_are_named(problem):
    rng = np.random.default_rng(1)
    order, (first, second) = rng.permutation(60), blob_views(rng, n=60, k=3)[0][:2]
    views = problem[0] | {"up": first[order], "down": second[order]}
    model = quiet_fit(AgreementKKM(3, random_state=0), views)
    assert model.set_aside_ == ("up", "down")
    for warned in (None, [model.agreement_.verdict()]):
        said = opening_of(model, views, warned=warned)
        assert "left, right and top; up and down" in said
        assert "these clusters are those of left, right and top" in said
        assert said.count("The views fall into 2 groups") == 1
    text = Outline(fit_page(model, views, **QUICK)).text
    assert "Group 1 (used): left, right and top." in text
    assert "Group 2: up and down." in text
    average = quiet_fit(AverageKKM(3, random_state=0), views)
    assert "belong to at most one of them" in opening_of(average, views)


def test_a_page_says_what_it_means_that_no_two_views_agree():
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(60, 5)) for name in ("left", "right")}
    model = quiet_fit(AverageKKM(3, random_state=0), views)
    said = opening_of(model, views)
    assert "No two of the 2 views share anything beyond chance" in said
    assert "No two views agree: nothing can tell which view is right" in said
    text = Outline(fit_page(model, views, **QUICK)).text
    assert "What it means that no two views agree" in text
    assert "what the views agree on, at most 1" not in text


def test_other_clusters_than_the_views_agree_on_are_a_caution_for_every_method(problem):
    views = problem[0] | {"coin": np.eye(3)[np.random.default_rng(1).integers(3, size=60)]}
    model = AverageKKM(3, random_state=0).fit(views)
    agreed = AgreementKKM(3, random_state=0).fit(views).labels_
    assert adjusted_rand_score(agreed, model.labels_) > 0.8
    assert "other clusters than those that the views agree on" not in opening_of(model, views)
    model.labels_ = np.sort(model.labels_)
    assert "other clusters than those that the views agree on" in opening_of(
        model, views, n_resamples=0
    )


def test_a_fit_that_stopped_early_says_so_at_the_top(problem):
    model = quiet_fit(SimpleMKKM(3, max_iter=1, tol=1e-12, random_state=0), problem[0])
    assert not model.converged_
    opening = fit_page(model, problem[0], **QUICK).partition("<nav")[0]
    assert "did not converge" in opening
    opening = fit_page(model, problem[0], warned=["beware of <this>"], **QUICK).partition("<nav")[0]
    assert "Beware of &lt;this&gt;." in opening
    assert "did not converge" not in opening


def test_numbers_that_are_missing_are_dashes(problem):
    model = SimpleMKKM(3, random_state=0).fit(problem[0])
    model.alignments_ = np.array([np.nan, *model.alignments_[1:]])
    text = fit_page(model, problem[0], **QUICK)
    assert rows_of(text, "The kernels")[0][3] == "-"
    assert "NaN" not in "".join(Outline(text).scripts[:-2])


@pytest.mark.parametrize("k", [1, 2])
def test_few_clusters_and_few_samples_have_a_page(k):
    views, y = blob_views(np.random.default_rng(0), n=30, k=2)
    text = fit_page(AverageKKM(k, random_state=0).fit(views), views, y=y, **QUICK)
    assert len(rows_of(text, "The clusters")) == k
    assert ("A single cluster is always found again" in text) == (k == 1)


def test_a_hundred_clusters_have_a_page():
    views, y = blob_views(np.random.default_rng(0), n=240, k=100, strengths=(6.0, 6.0))
    text = fit_page(AverageKKM(100, n_init=1, random_state=0).fit(views), views, y=y, **QUICK)
    assert len(rows_of(text, "The clusters")) == 100
    assert plot_of(text, "classes")["data"][0]["type"] == "heatmap"
    assert "Samples by cluster (rows) and given class" not in text


def test_one_kernel_has_a_page_without_diagnosis(problem):
    views = {"left": problem[0]["left"]}
    for method in (AverageKKM, AgreementKKM, AnchoredMKKM):
        outline = Outline(fit_page(method(3, random_state=0).fit(views), views, **QUICK))
        assert "There is only one kernel, so there is no diagnosis." in outline.text
        assert "One kernel alone" in outline.text


def test_kernels_of_one_table_have_a_page_that_compares_no_views(problem):
    table = problem[0]["left"]
    text = Outline(fit_page(AgreementKKM(3, random_state=0).fit(table), table, **QUICK)).text
    assert "One view alone: there is nothing to compare it with." in text
    assert "what the views agree on, at most 1" not in text


def test_many_kernels_have_a_page():
    views, _ = blob_views(np.random.default_rng(0), n=40, k=2, strengths=(2.0,) * 48)
    model = AverageKKM(2, random_state=0).fit(views)
    assert len(rows_of(fit_page(model, views, **QUICK), "The kernels")) == 48


def test_compressed_models_say_what_their_features_miss(problem):
    views, y = problem
    map_ = Nystroem(n_components=20)
    model = SimpleMKKM(3, approximation=map_, random_state=0).fit(views)
    text = fit_page(model, views, y=y, **QUICK)
    assert [float(row[4]) for row in rows_of(text, "The kernels")] == pytest.approx(
        model.approximation_error_, abs=5e-4
    )
    assert "20 landmarks a view" in Outline(text).text


@pytest.mark.parametrize("form", ["views", "kernels", "compressed"])
def test_the_compromise_is_that_of_the_very_kernels_of_the_fit(form):
    views, _ = blob_views(np.random.default_rng(0), n=90, strengths=(0.8, 0.8))
    options = {"approximation": Nystroem(8)} if form == "compressed" else {}
    X = KernelBank().fit_transform(views) if form == "kernels" else views
    # Landmarks that a seed of zero would not draw again.
    model = MKKM(3, random_state=np.random.RandomState(1), **options).fit(X)
    if form == "compressed":
        features = model._source.features.of(dict(zip("ab", views, strict=True)))
        kernels, standard = [F @ F.T for F in features], {"center": False, "normalize": False}
    else:
        kernels, standard = X if form == "kernels" else model.bank_.transform(views), {}
    compromise = AgreementKKM(3, kernels="precomputed", random_state=0, **standard).fit(kernels)
    expected = adjusted_rand_index(compromise.labels_, model.labels_)
    kernels_found = findings.find(model, X, **NOTHING_REFITTED).kernels
    assert model.agreement_.any_share
    assert kernels_found.compromise_with_consensus == pytest.approx(expected, abs=1e-12)
    assert expected < 1


def test_precomputed_kernels_have_a_page(problem, fitted):
    kernels = fitted.bank_.fit_transform(problem[0])
    model = SimpleMKKM(3, random_state=0).fit(kernels)
    assert "3 kernels were given" in Outline(fit_page(model, kernels, **QUICK)).text


@pytest.mark.parametrize("form", ["views", "kernels", "table", "compressed"])
def test_what_is_thinned_is_said(form, problem, fitted):
    entries = {"entries_examined": 1, "entries_refitted": 40**2 * 3}
    small = Budget(dots=30, similarities=20, samples_compressed=40, **entries)
    X, options = problem[0], {}
    if form == "kernels":
        X = fitted.bank_.fit_transform(X)
    elif form == "table":
        X = X["left"]
    elif form == "compressed":
        options["approximation"] = Nystroem(n_components=10)
    model = AverageKKM(3, random_state=0, **options).fit(X)
    said = Outline(fit_page(model, X, budget=small, **QUICK)).text
    assert re.search(r"a fit of the same method on \d\d of the 60 samples", said)
    maps = map(int, re.findall(r"Drawn are (\d+) of the 60 samples", said))
    dots, in_plane, similarities = maps
    assert in_plane == dots
    assert 20 < dots <= 30
    assert 12 < similarities <= 20
    assert f"computed among {dots} of the 60 samples" in said


def test_thinned_samples_stand_for_every_cluster():
    labels = np.repeat([0, 1, 2, 3], [6000, 3000, 990, 10])
    some = sample_by_cluster(labels, 1000)
    assert np.all(np.diff(some) > 0)
    assert np.bincount(labels[some]).tolist() == [600, 300, 99, 2]
    assert sample_by_cluster(labels[:10], 10).tolist() == list(range(10))


def test_ten_thousand_samples_take_little_room():
    views, y = blob_views(np.random.default_rng(0), n=10_000, k=10, strengths=(3.0, 3.0))
    ids = [f"a rather long name of sample {i}" for i in range(10_000)]
    model = AverageKKM(10, n_init=1, approximation=Nystroem(n_components=20), random_state=0)
    text = fit_page(model.fit(views), views, y=y, ids=ids, **(QUICK | {"n_resamples": 1}))
    assert bytes_beyond_script(text) < 2_000_000
    assert "of the 10,000 samples" in text


def test_samples_are_named_by_the_index_of_a_data_frame(problem):
    pandas = pytest.importorskip("pandas")
    index = [f"patient {i}" for i in range(60)]
    frames = {name: pandas.DataFrame(view, index=index) for name, view in problem[0].items()}
    model = AverageKKM(3, random_state=0).fit(frames)
    assert findings.find(model, frames, **NOTHING_REFITTED).ids == index


def test_a_model_writes_its_page_or_returns_it(problem, tmp_path):
    model = AverageKKM(3, random_state=0).fit(problem[0])
    text = fit_page(model, problem[0], y=problem[1], ids=range(60), **QUICK)
    assert text.startswith("<!DOCTYPE html>")
    path = fit_report(model, problem[0], tmp_path / "new" / "fit.html", **QUICK)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [file.name for file in path.parent.iterdir()] == ["fit.html"]


def test_a_page_that_fails_leaves_nothing_behind(problem, fitted, tmp_path):
    class Unprintable:
        def __str__(self):
            raise OSError("no title")

    with pytest.raises(OSError, match="no title"):
        fit_report(fitted, problem[0], tmp_path / "fit.html", title=Unprintable(), **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_right_is_refused_in_a_sentence(problem, fitted, tmp_path):
    views, y = problem
    with pytest.raises(ValueError, match="y has the shape .59.*60 samples"):
        fit_page(fitted, views, y=y[:-1])
    with pytest.raises(ValueError, match="ids has the shape"):
        fit_page(fitted, views, ids=["a"])
    with pytest.raises(ValueError, match="other samples"):
        fit_page(fitted, {name: view[::-1] for name, view in views.items()})
    with pytest.raises(TypeError, match="pass a fitted estimator"):
        fit_page("model", views)
    with pytest.raises(ValueError, match="is a folder"):
        fit_report(fitted, views, tmp_path)


def test_without_plotly_the_remedy_is_named(problem, fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"pip install .mkclust\[report\]"):
        fit_page(fitted, problem[0])


def test_importing_reports_does_not_load_plotly():
    program = "import mkclust.explain.page, sys; print('plotly' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr


@pytest.fixture
def cluster(problem, tmp_path, monkeypatch):
    """Return a function that runs the command on views in a folder of its own."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from mkclust import cli

    monkeypatch.chdir(tmp_path)
    np.savez("d.npz", **problem[0], y=problem[1])
    return lambda *args: CliRunner().invoke(cli.app, ["cluster", "d.npz", "-k", "3", *args])


def test_the_command_writes_a_page(cluster, tmp_path):
    result = cluster("--report", "fit.html")
    assert result.exit_code == 0, result.stderr
    assert "Wrote fit.html" in result.stdout
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "Scores against the given classes" in text
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "d.npz", "fit.html", "labels.csv", "run.json",
    ]  # fmt: skip


def test_the_command_refuses_what_is_no_page_before_it_begins(cluster, tmp_path):
    result = cluster("--report", "fit.pdf")
    assert result.exit_code == 2
    assert "fit.pdf: unknown suffix '.pdf' for a report" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["d.npz"]


def test_a_page_that_fails_does_not_take_back_the_labels(cluster, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no luck")

    monkeypatch.setattr(page, "document", broken)
    result = cluster("--report", "fit.html")
    assert result.exit_code == 2
    assert "no luck" in result.stderr
    assert "labels.csv and run.json" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.npz", "labels.csv", "run.json"]


def test_the_page_says_what_sets_the_clusters_apart_where_there_are_views(problem, fitted, whole):
    views, _ = problem
    description = describe(fitted, views)
    rows = rows_of(whole, "Features of the clusters")
    strongest = [row for c in range(3) for row in description.strongest(c, 5)]
    assert [(int(row[0]), row[1], row[2]) for row in rows] == [
        (row.cluster, row.view, row.feature) for row in strongest
    ]
    assert [float(row[3]) for row in rows] == pytest.approx(
        [row.effect for row in strongest], abs=6e-3
    )
    assert "no p-values" in Outline(whole).text
    assert "To save time, effect sizes are computed on" not in Outline(whole).text


def test_features_are_absent_without_views_and_told_on_some_samples_where_there_are_many(
    problem, fitted
):
    views, _ = problem
    kernels = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(views)
    approximation = Nystroem(n_components=20, random_state=0)
    for model, X in (
        (AverageKKM(3, random_state=0), kernels),
        (AverageKKM(3, approximation=approximation, random_state=0), views),
        (AverageKKM(1), views),
    ):
        text = fit_page(model.fit(X), X, **QUICK)
        assert "What sets the clusters apart" not in text
    little = Budget(entries_described=40 * sum(view.shape[1] for view in views.values()))
    text = fit_page(fitted, views, budget=little, **QUICK)
    assert re.search(r"computed on \d\d of the 60 samples", Outline(text).text)
    assert len(rows_of(text, "Features of the clusters")) == 15


def test_names_of_features_are_text_to_the_page(problem):
    pd = pytest.importorskip("pandas")
    views, _ = problem
    evil = "<script>alert('x')</script>"
    frames = {
        name: pd.DataFrame(view).rename(columns=lambda j: f"{evil}{j}")
        for name, view in views.items()
    }
    text = fit_page(AverageKKM(3, random_state=0).fit(frames), frames, **QUICK)
    assert evil not in text
    assert "alert(" in Outline(text).text


def test_views_of_one_weight_are_named_together():
    views, _ = blob_views(np.random.default_rng(0), n=120, strengths=(2.0, 2.0, 0.0))
    model = AgreementKKM(4, random_state=0).fit(dict(zip("abc", views, strict=True)))
    assert model.set_aside_ == ("c",)
    text = fit_page(model, dict(zip("abc", views, strict=True)), alternatives=False, n_resamples=0)
    assert "a and b have the largest weight, 0.500 each." in text
