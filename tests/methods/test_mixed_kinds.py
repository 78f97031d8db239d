"""Views of several kinds beside each other: kernels of which some are sparse and some are not."""

import pickle
import warnings

import numpy as np
import pytest

from libraries import FOREIGN, as_library
from mkclust import (
    LFMVC,
    LKAM,
    AgreementKKM,
    AverageKKM,
    SimpleMKKM,
    diagnose,
    suggest_n_clusters,
    write_report,
)
from mkclust.exceptions import NeighborhoodsWarning
from mkclust.explain.stability import resample
from mkclust.kernels import KernelBank
from mkclust.linalg import FactoredMatrix, to_host
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.slow

ONE_KERNEL = {"widths": (1.0,), "polynomials": (), "linear": None, "rules": "kind"}
ALL = (AverageKKM, AgreementKKM, SimpleMKKM, LKAM, LFMVC)
INDUCTIVE = (AverageKKM, AgreementKKM, SimpleMKKM, LFMVC)
N, SOME = 90, [3, 1, 7]


def mixed_views(n=N, lonely=()):
    """Return one view of each kind that has kernels of its own, and the clusters."""
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    chosen = [np.where(rng.random(n) < 0.8, y, rng.integers(3, size=n)) for _ in range(4)]
    rates = np.where(np.arange(60) // 20 == y[:, None], 0.16, 0.02)
    words = rng.poisson(rates).astype(float)
    words[np.arange(n), 20 * y] += 1  # nobody says nothing
    links = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.25, 0.02), 1)
    links = (links | links.T).astype(float)
    links[list(lonely)] = links[:, list(lonely)] = 0
    points = rng.normal(size=(n, 3)) + 3 * np.eye(3)[y]
    views = {
        "pixels": rng.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y],
        "words": words,
        "choices": np.hstack([np.eye(3)[each] for each in chosen]),
        "links": links,
        "travel": np.linalg.norm(points[:, None] - points, axis=2),
    }
    return views, y


@pytest.fixture(scope="module")
def views():
    return mixed_views()[0]


def fit(method, X, **settings):
    """Return a fitted model; whether its weights deserve a warning is not the question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(3, random_state=0, **settings).fit(X)


def test_each_view_has_a_kernel_held_in_its_own_way(views):
    bank = KernelBank(**ONE_KERNEL)
    kernels = bank.fit_transform(views)
    assert list(bank.rules_.values()) == ["dense", "sparse", "categories", "graph", "distances"]
    held = [isinstance(kernel, FactoredMatrix) for kernel in kernels]
    assert held == [False, True, False, False, True]
    assert kernels.shape == (5, N, N)
    assert "shared neighborhoods of 20 neighbors by these distances" in bank.explain()
    rows = bank.set_params(on_the_fly=True).transform(views).all_rows()
    for kernel, expected in zip(kernels, rows, strict=True):
        found = kernel.toarray() if isinstance(kernel, FactoredMatrix) else kernel
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(np.diag(found), 1)
        assert np.linalg.eigvalsh(found).min() > -1e-9


@pytest.mark.parametrize("method", ALL)
def test_every_road_leads_to_the_same_clusters(method, views):
    _, y = mixed_views()
    held, computed = (fit(method, views, kernels=kernels) for kernels in ("auto", "on-the-fly"))
    assert adjusted_rand_index(y, held.labels_) > 0.9
    np.testing.assert_array_equal(held.labels_, computed.labels_)
    np.testing.assert_allclose(held.weights_, computed.weights_, atol=1e-5)
    mixes = [model.mixed_kernel(views) for model in (held, computed)]
    np.testing.assert_allclose(*mixes, atol=1e-5)
    some = held.mixed_kernel(views, SOME)
    np.testing.assert_allclose(some, mixes[0][np.ix_(SOME, SOME)], atol=1e-12)


@pytest.mark.parametrize("method", ALL)
def test_kernels_written_out_give_the_same_model(method, views):
    model = fit(method, views)
    entries = KernelBank(**ONE_KERNEL, on_the_fly=True).fit_transform(views).all_rows()
    given = fit(method, entries, kernels="precomputed")
    np.testing.assert_array_equal(given.labels_, model.labels_)
    np.testing.assert_allclose(given.weights_, model.weights_, atol=1e-6)


@pytest.mark.parametrize("method", INDUCTIVE)
def test_training_samples_and_samples_like_them_keep_their_clusters(method, views):
    model = fit(method, views)
    stored = pickle.loads(pickle.dumps(model))
    new = {name: view[:12] for name, view in views.items()} | {
        "pixels": views["pixels"][:12] + 0.01
    }
    for each in (model, stored, fit(method, views, kernels="on-the-fly")):
        np.testing.assert_array_equal(each.predict(views), model.labels_)
        np.testing.assert_array_equal(each.predict(new), model.labels_[:12])


@pytest.mark.parametrize("method", [AverageKKM, LKAM])
@pytest.mark.parametrize("names", [("words", "travel"), ("pixels", "words", "links")])
@pytest.mark.parametrize("kernels", ["auto", "on-the-fly"])
def test_models_are_diagnosed(method, names, kernels, views):
    views = {name: views[name] for name in names}
    model = fit(method, views, kernels=kernels)
    found = diagnose(model, views)
    for name, value in zip(names, found.leave_one_out, strict=True):
        others = {key: view for key, view in views.items() if key != name}
        rules = {key: model.bank_.rules_[key] for key in others}
        bank = KernelBank(**ONE_KERNEL | {"rules": rules})
        labels = fit(method, others, kernels=bank).labels_
        assert value == pytest.approx(adjusted_rand_index(model.labels_, labels))


def test_a_page_says_what_was_found(views, tmp_path):
    page = write_report(fit(LKAM, views), views, tmp_path / "page.html")
    assert "travel" in page.read_text()


def test_the_clusters_of_parts_are_those_of_all(views):
    for method in (AverageKKM, LKAM):
        found = resample(fit(method, views), views, n_resamples=3)
        assert found.agreements.mean() > 0.9


def test_the_number_of_clusters_is_suggested(views):
    found = suggest_n_clusters(views, [2, 3, 4], n_resamples=3, random_state=0)
    assert found.n_clusters == 3


@pytest.mark.parametrize(("name", "kind"), [("words", "sparse"), ("links", "graph")])
def test_the_clusters_of_one_view_of_any_kind_are_no_cloud(name, kind, views):
    settings = {"kernels": {name: kind}, "n_resamples": 3, "random_state": 0}
    found = suggest_n_clusters({name: views[name]}, [2, 3, 4], **settings)
    assert found.p_cloud <= found.level


def test_counts_without_clusters_have_none():
    rng = np.random.default_rng(1)
    views = {"words": rng.poisson(0.05, size=(90, 60)).astype(float)}
    views["pixels"] = rng.normal(size=(90, 5))
    assert suggest_n_clusters(views, [2, 3], n_resamples=3, random_state=0).n_clusters == 1


def test_samples_without_links_have_clusters_by_the_other_views():
    views, y = mixed_views(lonely=(4, 11))
    with pytest.warns(
        NeighborhoodsWarning, match=r"in links, 2 samples \(4, 11\) have no neighbor"
    ):
        model = AverageKKM(3, random_state=0).fit(views)
    assert adjusted_rand_index(y, model.labels_) > 0.95
    assert not hasattr(model, "n_components_")  # pixels connect all samples
    np.testing.assert_array_equal(model.predict(views), model.labels_)


def test_samples_without_any_link_or_neighbor_are_refused():
    views, _ = mixed_views(lonely=(4, 11))
    views["words"][4] = 0
    with pytest.raises(ValueError, match="sample 4 has no neighbor in any kernel"):
        AverageKKM(3).fit({name: views[name] for name in ("words", "links")})
    with pytest.raises(ValueError, match=r"2 samples \(4, 11\) have no neighbor in any kernel"):
        AverageKKM(3, kernels={"links": "graph"}).fit({"links": views["links"]})


def test_graphs_and_counts_that_fall_apart_are_counted():
    block = np.ones((20, 20))
    links = np.kron(np.eye(4), block) - np.eye(80)
    with pytest.warns(NeighborhoodsWarning, match="form 4 groups that are not connected"):
        model = AverageKKM(3, kernels={"links": "graph"}, random_state=0).fit({"links": links})
    assert model.n_components_ == 4


# Views of other libraries ----------------------------------------------------------------------


@pytest.mark.parametrize("library", FOREIGN)
def test_views_of_every_library_give_the_same_clusters(library, views):
    views = {name: views[name] for name in ("pixels", "words", "links")}
    expected, given = fit(AgreementKKM, views), as_library(library, views)
    for kernels in ("auto", "on-the-fly"):
        model = fit(AgreementKKM, given, kernels=kernels)
        np.testing.assert_array_equal(to_host(model.labels_), expected.labels_)
        np.testing.assert_allclose(to_host(model.weights_), expected.weights_, atol=1e-6)
        np.testing.assert_array_equal(to_host(model.predict(given)), expected.labels_)
        some = {name: view[:12, :] for name, view in given.items()}
        np.testing.assert_array_equal(to_host(model.predict(some)), expected.labels_[:12])
        assert len(diagnose(model, given).leave_one_out) == 3


@pytest.mark.parametrize("library", ["numpy", *FOREIGN])
def test_a_view_that_shares_nothing_changes_nothing_beside_sparse_and_dense_views(library, views):
    rng = np.random.default_rng(3)
    views = {name: views[name] for name in ("pixels", "words", "choices")}
    without = fit(AgreementKKM, as_library(library, views))
    strangers = {"noise": rng.normal(size=(N, 4)), "rare": rng.poisson(0.04, (N, 80)).astype(float)}
    model = fit(AgreementKKM, as_library(library, views | strangers))
    assert model.set_aside_ == ("noise", "rare")
    np.testing.assert_allclose(
        to_host(model.weights_)[:3], to_host(without.weights_), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(to_host(model.labels_), to_host(without.labels_))
    np.testing.assert_allclose(
        to_host(model.embedding_), to_host(without.embedding_), rtol=1e-12, atol=1e-12
    )
