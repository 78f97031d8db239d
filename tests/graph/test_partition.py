"""Clusters are those of the graph written out, and of any size and shape."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from helpers.graph import graph_of, leading, links_of, lists_of, modularity
from helpers.views import named_blobs, strangers
from mkclust import AgreementKKM
from mkclust.graph import Graph, list_sizes
from mkclust.graph.partition import rows_of_unit_length
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack


def far_apart(sizes, distance, seed=0, n_views=2):
    """Return views in which clusters of some sizes are that many standard deviations
    apart."""
    rng, y = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    centers = distance * np.eye(len(sizes), 6)
    views = {
        f"view {v}": centers[y] + rng.normal(size=(len(y), 6)) for v in range(n_views)
    }
    return views, y


def fitted(views, k, **options):
    return AgreementKKM(k, random_state=0, **options).fit(views)


@pytest.mark.parametrize("n_views", [1, 3])
def test_the_embedding_is_that_of_the_graph_written_out(n_views):
    views, _ = named_blobs(np.random.default_rng(0), n=90, k=3)
    kernels = [view @ view.T for view in list(views.values())[:n_views]]
    model = fitted(np.stack(kernels), 3)
    K = as_stack(np.stack(kernels)).among().entries
    mix = np.tensordot(model.coefficients_, K, axes=1)

    in_mix = {size: links_of(lists_of(mix, size)) for size in (5, 10, 20)}
    few = [(1, in_mix[5]), (1, in_mix[10])]
    all_lists = [(1, links) for links in in_mix.values()]
    for view in K if n_views > 1 else []:
        all_lists += [
            (1 / n_views, links_of(lists_of(view, size))) for size in (5, 10, 20)
        ]

    sums = [leading(graph_of(each), 3)[0].sum() for each in (few, all_lists)]
    assert min(abs(model.objective_ - each) for each in sums) < 1e-6


def test_the_better_setting_has_the_higher_modularity_in_the_longest_lists():
    views, y = far_apart((40, 30, 20), 3.0)
    K = as_stack(np.stack([view @ view.T for view in views.values()]))
    members = lists_of(K.mix(np.array([0.5, 0.5])).dense(), 20)
    graph = Graph(rows_of_unit_length(scipy.sparse.csr_array(members)))
    for labels in (y, np.arange(90) % 3):
        assert graph.modularity(labels) == pytest.approx(
            modularity(links_of(members), labels)
        )


def test_a_product_with_the_graph_is_that_of_its_rows():
    rng = np.random.default_rng(0)
    graph = Graph(scipy.sparse.random_array((40, 60), density=0.1, rng=rng))
    V = rng.normal(size=(40, 3))
    np.testing.assert_allclose(graph @ V, graph.rows(slice(None)) @ V, atol=1e-12)
    np.testing.assert_allclose(
        graph.rows(np.array([3, 1]))[0], graph.rows(slice(3, 4))[0]
    )
    np.testing.assert_allclose(np.diagonal(graph.rows(slice(None))), 0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(180, 20), (100, 40, 20)])
@pytest.mark.parametrize("n_views", [1, 2])
def test_clusters_of_any_size_are_found(sizes, n_views):
    views, y = far_apart(sizes, 12.0, n_views=n_views)
    if n_views == 1:
        views = {"view": views["view 0"], "copy": views["view 0"]}
    assert adjusted_rand_index(y, fitted(views, len(sizes)).labels_) > 0.99


def test_a_circle_around_a_circle_is_found():
    rng = np.random.default_rng(0)
    y, angles = np.repeat([0, 1], 150), rng.uniform(0, 2 * np.pi, 300)
    circle = (1 + 2 * y)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    views = {name: circle + 0.1 * rng.normal(size=(300, 2)) for name in "ab"}
    assert adjusted_rand_index(y, fitted(views, 2).labels_) == 1


def test_lists_are_not_longer_than_clusters_but_for_the_shortest():
    assert list_sizes("auto", 1000, 5) == (5, 10, 20)
    assert list_sizes("auto", 60, 4) == (5, 10)
    assert list_sizes("auto", 60, 30) == (5,)
    assert list_sizes("auto", 6, 2) == (3,)
    assert list_sizes(40, 1000, 5) == (10, 20, 40)
    assert list_sizes(40, 20, 5) == (10, 17)


CASES = st.sampled_from(["blobs", "unequal", "copies", "rounded", "constant rows"])


def drawn(case, seed, n):
    """Return views and their number of clusters, of one of several kinds."""
    rng = np.random.default_rng(seed)
    if case == "unequal":
        views, _ = far_apart((n - n // 5 - 5, n // 5, 5), 6.0, seed)
        return views, 3
    views, _ = named_blobs(rng, n=n)
    if case == "copies":
        return {name: np.vstack([view, view]) for name, view in views.items()}, 3
    if case == "rounded":
        return {name: view.round() for name, view in views.items()}, 3
    if case == "constant rows":
        for view in views.values():
            view[: n // 4] = view[0]
    return views, 3


@pytest.mark.slow
@given(CASES, st.integers(0, 10_000), st.sampled_from([40, 75, 150]))
def test_samples_of_the_fit_have_their_labels_as_new_samples(case, seed, n):
    views, k = drawn(case, seed, n)
    model = fitted(views, k)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    some = np.random.default_rng(seed).permutation(len(model.labels_))[: n // 3]
    part = {name: view[some] for name, view in views.items()}
    np.testing.assert_array_equal(model.predict(part), model.labels_[some])
    np.testing.assert_allclose(model.transform(views), model.embedding_, atol=1e-9)


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from([40, 75, 150]))
def test_the_order_of_rows_and_of_views_changes_nothing(seed, n):
    rng = np.random.default_rng(seed)
    views, k = drawn("blobs", seed, n)
    views |= {"noise": strangers(rng, n)["noise"]}
    labels, order = fitted(views, k).labels_, rng.permutation(n)
    names = list(rng.permutation(list(views)))
    shuffled = fitted({name: views[name][order] for name in names}, k)
    assert adjusted_rand_index(shuffled.labels_, labels[order]) > 0.999


def test_one_kernel_and_as_many_clusters_as_there_can_be():
    X = np.random.default_rng(0).normal(size=(12, 5))
    model = AgreementKKM(11, random_state=0).fit((X @ X.T)[None])
    np.testing.assert_array_equal(model.predict((X @ X.T)[None]), model.labels_)
    assert np.isfinite(model.embedding_).all()


def test_samples_without_a_neighbor_are_named_and_the_others_clustered():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    text = ((rng.random((90, 60)) < 0.25) & (np.arange(60) % 3 == y[:, None])).astype(
        float
    )
    text[[4, 17]] = 0.0
    views = {
        "text": scipy.sparse.csr_array(text),
        "title": scipy.sparse.csr_array(text * 2),
    }
    with pytest.warns(UserWarning, match="4 and 17"):
        model = fitted(views, 3)
    known = np.setdiff1d(np.arange(90), [4, 17])
    assert set(model.labels_[[4, 17]]) == {-1}
    assert adjusted_rand_index(y[known], model.labels_[known]) > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_views_in_single_precision_have_the_same_clusters(dtype):
    views, y = far_apart((60, 30, 10), 8.0)
    model = fitted({name: view.astype(dtype) for name, view in views.items()}, 3)
    assert adjusted_rand_index(y, model.labels_) > 0.95


def test_samples_are_compared_by_the_views_that_both_have():
    views, y = far_apart((80, 40, 30), 8.0, n_views=3)
    rng = np.random.default_rng(0)
    lacks = rng.random((150, 3)) < 0.4
    lacks[lacks.all(axis=1)] = False
    for view, missing in zip(views.values(), lacks.T, strict=True):
        view[missing] = np.nan
    model = fitted(views, 3)
    assert adjusted_rand_index(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_one_size_have_the_same_numbers_in_any_order_of_samples(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(120) % 4
    views = {
        name: 5 * rng.normal(size=(4, 6))[y] + rng.normal(size=(120, 6))
        for name in "ab"
    }
    expected = AgreementKKM("auto", random_state=0).fit(views)
    assert expected.n_clusters_ == 4
    for _ in range(3):
        order = rng.permutation(120)
        shuffled = {name: view[order] for name, view in views.items()}
        found = AgreementKKM("auto", random_state=0).fit(shuffled)
        np.testing.assert_array_equal(found.labels_, expected.labels_[order])
        of_four = [each.suggestion_.labels_by_k[4] for each in (found, expected)]
        np.testing.assert_array_equal(of_four[0], of_four[1][order])
