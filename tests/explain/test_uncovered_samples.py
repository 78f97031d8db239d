"""Samples with no entry in any view: the others are clustered, and these have the label
-1."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from helpers.cli import succeed
from mkclust import (
    METHODS,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    SimpleMKKM,
    annotate,
    describe,
    diagnose,
    sample_scores,
    to_anndata,
)
from mkclust.exceptions import NeighborhoodsWarning, UncoveredSamplesWarning
from mkclust.explain.report import report_html
from mkclust.explain.stability import stability
from mkclust.kernels import Nystroem
from mkclust.metrics import adjusted_rand_index
from mkclust.plots import EmbeddingDisplay, SortedKernelDisplay

N, EMPTY = 90, [4, 17, 60]
OTHERS = np.delete(np.arange(N), EMPTY)
IDS = np.array([f"doc {i:02}" for i in range(N)])
Y = np.arange(N) % 3


def counts(seed, empty=EMPTY):
    rates = np.where(np.arange(300) // 40 == Y[:, None], 0.25, 0.01)
    words = np.random.default_rng(seed).poisson(rates).astype(float)
    words[empty] = 0
    return words


def frames(*seeds):
    return {
        f"text {seed}": pd.DataFrame(counts(seed), IDS).rename(
            columns=lambda j: f"w{j}"
        )
        for seed in seeds
    }


def some(views, rows):
    return {name: view[rows] for name, view in views.items()}


def fit(model, X, **options):
    with pytest.warns(UncoveredSamplesWarning):
        return model.fit(X, **options)


@pytest.fixture(scope="module")
def fitted():
    X = frames(1, 2)
    return fit(SimpleMKKM(3, random_state=0), X), X


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_leaves_out_samples_without_an_entry(name):
    views = {"a": counts(1), "b": counts(2)}
    model = METHODS[name](3, kernels="cosine", random_state=0)
    assert fit(model, views).uncovered_samples_.tolist() == EMPTY
    labels = model.labels_.copy()
    assert not model.embedding_[EMPTY].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncoveredSamplesWarning)
        model.fit(some(views, OTHERS))
    assert labels[OTHERS].tolist() == model.labels_.tolist()
    assert not hasattr(model, "uncovered_samples_")


def lone(seed, samples=EMPTY):
    """Return counts in which some samples have words of their own only, 300 and
    following."""
    own = np.zeros((N, len(EMPTY)))
    own[EMPTY, np.arange(len(EMPTY))] = 5
    own[np.setdiff1d(EMPTY, samples)] = 0
    return np.hstack([counts(seed, samples), own])


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_leaves_out_samples_without_a_neighbor_in_any_view(name):
    views = {"a": lone(1), "b": lone(2)}
    model = fit(METHODS[name](3, random_state=0), views)
    assert model.uncovered_samples_.tolist() == EMPTY
    assert not model.embedding_[EMPTY].any()
    labels = model.labels_.copy()
    if hasattr(model, "predict"):
        with pytest.warns(UncoveredSamplesWarning, match="no neighbor"):
            assert model.predict(views).tolist() == labels.tolist()
    model.fit(some(views, OTHERS))
    assert labels[OTHERS].tolist() == model.labels_.tolist()


def test_a_sample_with_neighbors_in_one_view_is_fitted_by_that():
    views = {"a": lone(1), "b": lone(2, EMPTY[:1])}
    with pytest.warns(NeighborhoodsWarning, match=r"in a, 2 samples \(17 and 60\)"):
        model = fit(AverageKKM(3, random_state=0), views)
    assert np.flatnonzero(model.labels_ == -1).tolist() == EMPTY[:1]
    assert adjusted_rand_index(Y[EMPTY[1:]], model.labels_[EMPTY[1:]]) == 1


@pytest.mark.parametrize("missing_views", ["learn", "rescale", "zero"])
def test_a_sample_without_neighbors_that_other_views_lack_is_left_out(missing_views):
    views = {"a": lone(1), "b": counts(2, [])}
    observed = np.ones((N, 2), bool)
    observed[EMPTY[:2], 1] = False
    model = AverageKKM(3, missing_views=missing_views, random_state=0)
    labels = fit(model, views, observed=observed).labels_
    assert np.flatnonzero(labels == -1).tolist() == EMPTY[:2]
    with pytest.warns(UncoveredSamplesWarning):
        assert model.predict(views, observed=observed).tolist() == labels.tolist()


def test_new_samples_without_a_neighbor_are_named_and_the_others_are_as_without_them():
    views = {"a": lone(1, []), "b": lone(2, [])}
    model = AverageKKM(3, random_state=0).fit(views)
    new = {name: view[:8].copy() for name, view in views.items()}
    for view in new.values():
        view[2], view[5] = 0, 0
        view[2, 300] = 9  # a word of no sample of the fit
    new["b"][5] = views["b"][5]
    with pytest.warns(
        UncoveredSamplesWarning, match="1 of 8 samples has no entry, or no n.*: 2"
    ):
        labels = model.predict(new)
    assert np.flatnonzero(labels == -1).tolist() == [2]
    kept = np.delete(np.arange(8), 2)
    assert labels[kept].tolist() == model.predict(some(new, kept)).tolist()
    with pytest.warns(UncoveredSamplesWarning):
        assert not model.transform(new)[2].any()


def test_samples_without_links_are_left_out_of_a_graph():
    links = (
        np.random.default_rng(0).random((N, N)) < np.where(Y[:, None] == Y, 0.2, 0.005)
    ) * 1.0
    links = np.triu(links, 1) + np.triu(links, 1).T
    links[EMPTY], links[:, EMPTY] = 0, 0
    model = fit(AverageKKM(3, kernels="graph", random_state=0), [links])
    assert np.flatnonzero(model.labels_ == -1).tolist() == EMPTY
    with pytest.warns(UncoveredSamplesWarning):
        assert model.predict([links]).tolist() == model.labels_.tolist()


def test_too_few_samples_with_a_neighbor_are_refused_with_their_number():
    with pytest.raises(ValueError, match="only 0 of 20 samples .* neighbor"):
        AverageKKM(3, kernels="sparse").fit([np.eye(20)])


@pytest.mark.parametrize("kernels", ["auto", "cosine", "hellinger", "jaccard"])
def test_rows_of_zeros_say_nothing_to_kernels_of_directions(kernels):
    for form in (np.asarray, csr_array):
        model = fit(
            AverageKKM(3, kernels=kernels, random_state=0), {"a": form(counts(1))}
        )
        assert np.flatnonzero(model.labels_ == -1).tolist() == EMPTY


@pytest.mark.parametrize("kernels", ["gaussian", "linear"])
def test_rows_of_zeros_are_points_like_others_to_kernels_of_distances(kernels):
    model = AverageKKM(3, kernels=kernels, random_state=0).fit({"a": counts(1)})
    assert model.labels_.min() == 0


def test_one_table_and_an_approximation_follow_the_same_rule():
    model = fit(
        SimpleMKKM(3, approximation=Nystroem(40), random_state=0), csr_array(counts(1))
    )
    assert np.flatnonzero(model.labels_ == -1).tolist() == EMPTY


def test_a_sample_with_an_entry_in_some_view_has_a_cluster():
    numbers = 4 * np.eye(3)[Y] + np.random.default_rng(3).normal(size=(N, 3))
    views = {"text": counts(1), "title": counts(2, EMPTY[:2]), "numbers": numbers}
    assert AverageKKM(3, random_state=0).fit(views).labels_.min() == 0
    del views["numbers"]
    assert (
        fit(AverageKKM(3, random_state=0), views).uncovered_samples_.tolist()
        == EMPTY[:2]
    )


@pytest.mark.parametrize("method", [AgreementKKM, AnchoredMKKM])
def test_samples_that_only_views_without_common_samples_have_get_no_cluster(
    method,
):
    views, rng = {}, np.random.default_rng(0)
    for name in "abcd":
        views[name] = 8 * np.eye(3, 4)[Y] + rng.normal(size=(N, 4))
        views[name][slice(60, N) if name in "ab" else slice(60)] = np.nan
    model = method(3, scale="none", random_state=0)
    with pytest.warns(UncoveredSamplesWarning, match="only in c and d") as caught:
        model.fit(views)
    assert [each.category for each in caught].count(UncoveredSamplesWarning) == 1
    assert model.uncovered_samples_.tolist() == list(range(60, N))
    assert adjusted_rand_index(Y[:60], model.labels_[:60]) == 1
    assert set(model.labels_[60:].tolist()) == {-1}
    np.testing.assert_allclose(model.weights_, [0.5, 0.5, 0, 0], atol=0.02)
    # A graph that is not centered has a direction less for what sets the clusters
    # apart.
    atol = 0.15 if method is AgreementKKM else 0.02
    np.testing.assert_allclose(model.alignments_, [1, 1, 0, 0], atol=atol)
    assert describe(model, views).sizes == (20, 20, 20)
    assert np.flatnonzero(np.isnan(sample_scores(model).margin)).tolist() == list(
        range(60, N)
    )
    np.testing.assert_allclose(
        diagnose(model, views).table["agreement"], [1, 1, np.nan, np.nan]
    )


def test_kernels_with_nothing_of_a_sample_follow_the_same_rule():
    K = np.stack([X @ X.T for X in (counts(1), counts(2))])
    model = fit(SimpleMKKM(3, kernels="precomputed", random_state=0), K)
    assert model.uncovered_samples_.tolist() == EMPTY
    with pytest.warns(UncoveredSamplesWarning):
        assert model.predict(K).tolist() == model.labels_.tolist()
    own = np.stack([each.diagonal() for each in K])
    # Similarities to all samples, or to those clustered.
    for columns in (np.arange(N), OTHERS):
        with pytest.warns(UncoveredSamplesWarning, match="1 of 4 samples has"):
            new = model.predict(K[:, 3:7][:, :, columns], own[:, 3:7])
        assert new.tolist() == model.labels_[3:7].tolist()
    alone = SimpleMKKM(3, kernels="precomputed", random_state=0).fit(
        K[:, OTHERS][:, :, OTHERS]
    )
    assert model.labels_[OTHERS].tolist() == alone.labels_.tolist()
    mixed = model.mixed_kernel(K)
    assert not mixed[EMPTY].any()
    np.testing.assert_allclose(
        mixed[np.ix_(OTHERS, OTHERS)],
        alone.mixed_kernel(K[:, OTHERS][:, :, OTHERS]),
        atol=1e-12,
    )


@pytest.mark.parametrize("approximation", [None, Nystroem(40)])
def test_new_samples_without_an_entry_have_no_cluster(approximation):
    views = some({"a": counts(1), "b": counts(2)}, OTHERS)
    model = SimpleMKKM(3, approximation=approximation, random_state=0).fit(views)
    new = {"a": counts(1)[2:6], "b": csr_array(counts(2)[2:6])}
    with pytest.warns(UncoveredSamplesWarning, match="1 of 4 samples has .*: 2"):
        labels = model.predict(new)
    assert labels.tolist() == [*model.labels_[2:4], -1, model.labels_[4]]
    with pytest.warns(UncoveredSamplesWarning):
        rows = model.transform(new)
    assert (~rows.any(axis=1)).tolist() == [False, False, True, False]


def test_too_few_samples_with_an_entry_are_refused():
    words = counts(1, np.arange(2, N))
    with pytest.raises(ValueError, match="n_clusters=3, but only 2 of 90 samples"):
        AverageKKM(3, kernels="cosine").fit({"a": words, "b": words})
    with pytest.raises(ValueError, match="'a'"):
        AverageKKM(3, kernels="cosine").fit({"a": 0 * words, "b": 0 * words})


def test_explanations_leave_out_samples_without_an_entry(fitted):
    model, X = fitted
    assert model.uncovered_samples_.tolist() == IDS[EMPTY].tolist()
    alone = SimpleMKKM(3, random_state=0).fit(
        {n: each.iloc[OTHERS] for n, each in X.items()}
    )
    described = describe(model, X)
    assert sum(described.sizes) == len(OTHERS)
    assert described.effects == describe(alone, X).effects
    scores, of_others = sample_scores(model), sample_scores(alone)
    assert np.isnan(scores.silhouette[EMPTY]).all()
    np.testing.assert_allclose(scores.margin[OTHERS], of_others.margin, atol=1e-12)
    age = pd.DataFrame({"age": np.arange(N) + 50.0 * Y}, IDS)
    age.loc[IDS[EMPTY]] = 1e6
    tested = annotate(model, age).tests[0]
    assert tested.statistic == pytest.approx(annotate(alone, age).tests[0].statistic)
    assert all(np.isnan(test.p_value) for test in annotate(model, X["text 1"]).tests)
    diagnosis = diagnose(model, X)
    np.testing.assert_allclose(diagnosis.table["alignment"], model.alignments_)
    stable = stability(model, X, n_resamples=2)
    assert np.isnan(stable.samples[EMPTY]).all()
    assert stable.mean > 0.8


def test_pictures_data_and_reports_leave_out_or_name_samples_without_an_entry(fitted):
    anndata = pytest.importorskip("anndata")
    model, X = fitted
    assert len(EmbeddingDisplay.from_estimator(model).labels) == len(OTHERS)
    assert len(SortedKernelDisplay.from_estimator(model, X).labels) == len(OTHERS)
    data = anndata.AnnData(X["text 1"].to_numpy(), obs=pd.DataFrame(index=IDS))
    to_anndata(model, data)
    assert np.flatnonzero(data.obs["mkclust"].isna()).tolist() == EMPTY
    page = report_html(model, X, Y, n_resamples=2)
    assert "3 further samples without any entry" in page
    assert "doc 04, doc 17 and doc 60" in page
    assert "87 samples" in page


def test_the_command_line_writes_minus_one_for_samples_without_an_entry(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, table in frames(1, 2).items():
        table.to_csv(f"{name[-1]}.csv", index_label="id")
    succeed("cluster", "1.csv", "2.csv", "-k", "3", "--save", "model.skops")
    labels = pd.read_csv("labels.csv", index_col="id")
    assert labels.index[labels["cluster"] == -1].tolist() == IDS[EMPTY].tolist()
    assert labels.loc[IDS[EMPTY], "silhouette"].isna().all()
    succeed("predict", "model.skops", "1.csv", "2.csv")
    predicted = pd.read_csv("predicted.csv", index_col="id")
    assert predicted["cluster"].tolist() == labels["cluster"].tolist()
