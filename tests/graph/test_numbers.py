"""Cuts for all numbers: clusters are those of single cuts, criteria as defined."""

import numpy as np
import pytest
import scipy.sparse

from helpers.graph import lists_of
from mkclust.graph import cut, cut_alike, cut_for_all
from mkclust.graph.numbers import OF_MIX, SETTINGS, Way
from mkclust.graph.partition import Graph, list_scales, scaled_factor
from mkclust.metrics import adjusted_rand_index

SIZES = (5, 10)


def memberships_of(seed=0, n=150, k=4, n_views=2):
    """Return who is in whose lists, by the mix and by views, and classes."""
    rng, y = np.random.default_rng(seed), np.arange(n) % k
    centers = 3 * rng.normal(size=(k, 5))
    views = [centers[y] + rng.normal(size=(n, 5)) for _ in range(n_views)]
    kernels = [view @ view.T for view in views]
    every = [sum(kernels), *kernels]
    unit = [K / np.sqrt(np.outer(np.diag(K), np.diag(K))) for K in every]
    found = [
        [scipy.sparse.csr_array(lists_of(K, size), dtype=bool) for size in SIZES]
        for K in unit
    ]
    return found, y


def test_clear_clusters_are_those_of_a_cut_of_their_own():
    memberships, y = memberships_of()
    cuts = cut_for_all(memberships, [2, 3, 4, 5], [2, 2, 2, 1])
    own = cut(memberships, 4, n_init=10, random_state=0)
    assert adjusted_rand_index(own.labels, cuts.labels[2]) == 1
    assert adjusted_rand_index(y, cuts.labels[2]) > 0.95
    assert [len(np.unique(each)) for each in cuts.labels] == [2, 3, 4, 5]
    for labels in cuts.labels:
        assert (np.diff(np.bincount(labels)) <= 0).all()


def test_gaps_are_those_of_the_graph_of_the_mix_written_out():
    memberships, _ = memberships_of()
    graph = Graph(scaled_factor(memberships, list_scales(memberships, OF_MIX)))
    values = np.sort(np.linalg.eigvalsh(graph.links().toarray()))[::-1]
    found = cut_for_all(memberships, [2, 4, 7], [2, 2, 2]).eigengaps
    np.testing.assert_allclose(
        found, [values[k - 1] - values[k] for k in (2, 4, 7)], atol=1e-3
    )
    assert found.argmax() == 1


def test_tightness_is_the_share_that_centers_explain():
    memberships, _ = memberships_of()
    cuts = cut_for_all(memberships, [3, 4], [2, 2])
    for k, labels, way, tightness in zip(
        (3, 4), cuts.labels, cuts.ways, cuts.tightness, strict=True
    ):
        rows = way.embed(memberships, 4).rows[:, :k]
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        spread = sum(
            ((rows[labels == c] - rows[labels == c].mean(axis=0)) ** 2).sum()
            for c in range(k)
        )
        assert tightness == pytest.approx(1 - spread / len(rows), abs=1e-4)


def test_modularity_is_that_of_all_links_of_the_mix_written_out():
    memberships, _ = memberships_of()
    cuts = cut_for_all(memberships, [2, 4, 6], [2, 2, 2])
    lists = memberships[0][-1].toarray().astype(float)
    rows = lists / np.sqrt(lists.sum(axis=1, keepdims=True))
    links = rows @ rows.T
    np.fill_diagonal(links, 0)
    by_chance = np.outer(links.sum(axis=0), links.sum(axis=0)) / links.sum()
    for labels, within, chance in zip(
        cuts.labels, cuts.within, cuts.by_chance, strict=True
    ):
        same = labels[:, None] == labels
        assert within == pytest.approx(links[same].sum() / links.sum())
        assert chance == pytest.approx(by_chance[same].sum() / links.sum())


def test_clusters_by_the_same_ways_are_the_same():
    memberships, _ = memberships_of(k=5)
    ways = [Way(2, SETTINGS[1]), Way(2, SETTINGS[1]), Way(1, SETTINGS[0])]
    cuts = cut_for_all(memberships, [3, 5], [2, 2])
    alike = cut_alike(memberships, [3, 5, 6], ways)
    assert adjusted_rand_index(cuts.labels[1], alike[1]) == 1
    assert len(np.unique(alike[2])) == 6
