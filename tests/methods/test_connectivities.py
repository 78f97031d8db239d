"""The graph of neighborhoods of a fit: against the graph written out, and what it must
be."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg

from helpers.graph import graph_of, links_of, lists_of
from helpers.views import blob_views
from mkclust import AgreementKKM
from mkclust.data import read_samples
from mkclust.exceptions import UncoveredSamplesWarning
from mkclust.stack import as_stack
from mkclust.stack.discretize import normalize_rows

N = 90
IDS = [f"cell {i:02}" for i in range(N)]


def views_of(n=N):
    views, _ = blob_views(np.random.default_rng(0), n=n, k=3, strengths=(1, 1.5))
    return {f"v{i}": view for i, view in enumerate(views)}


def normalized(W):
    scale = 1 / np.sqrt(W.sum(axis=1))
    return scale[:, None] * W * scale


def check_graph(links):
    assert abs(links - links.T).max() == 0
    assert links.data.min() > 0
    assert not links.diagonal().any()


def written_out(kernels, coefficients):
    """Return the graphs of both settings, by the mix and by the views."""
    mix = np.tensordot(coefficients, kernels, 1) / np.sum(coefficients)
    links = [
        [links_of(lists_of(K, size)) for size in (5, 10, 20)] for K in (mix, *kernels)
    ]
    short = [(1.0, each) for each in links[0][:2]]
    every = [(1.0, each) for each in links[0]]
    every += [(1 / len(kernels), each) for of_view in links[1:] for each in of_view]
    return normalized(graph_of(short)), normalized(graph_of(every))


def test_it_is_the_graph_written_out():
    given = np.array(
        [np.exp(-((X[:, None] - X) ** 2).sum(2) / 9) for X in views_of().values()]
    )
    model = AgreementKKM(3, kernels="precomputed", random_state=0).fit(given)
    links = model.connectivities(given)
    check_graph(links)
    kernels = [kernel.rows(np.arange(N)) for kernel in as_stack(given).kernels]
    found = written_out(np.array(kernels), model.coefficients_)
    errors = [abs(links.toarray() - each).max() for each in found]
    assert min(errors) < 1e-9
    values = scipy.linalg.eigvalsh(links.toarray())
    assert values[-3:].sum() == pytest.approx(model.objective_)


@pytest.mark.parametrize("anchors", [{}, {"anchors": 60, "learn_from": N}])
def test_its_leading_eigenvectors_have_the_directions_that_are_clustered(anchors):
    views = views_of()
    model = AgreementKKM(3, random_state=0, **anchors).fit(views)
    links = model.connectivities(views)
    check_graph(links)
    values, vectors = scipy.linalg.eigh(links.toarray())
    assert values[-3:].sum() == pytest.approx(model.objective_, rel=1e-6)
    rows = model._rows_of(model.embedding_)
    np.testing.assert_array_equal(model._assign(rows), model.labels_)
    # Eigenvectors are directions apart from the links of samples to themselves.
    found, expected = (normalize_rows(each) for each in (rows, vectors[:, -3:]))
    turn = scipy.linalg.orthogonal_procrustes(expected, found)[0]
    assert np.sum(expected @ turn * found, axis=1).min() > 0.9


def test_the_views_that_a_model_has_kept_need_not_be_passed():
    frames = {name: pd.DataFrame(view, IDS) for name, view in views_of().items()}
    model = AgreementKKM(3, random_state=0).fit(frames)
    kept = model.connectivities()
    turned = {name: frame.iloc[::-1] for name, frame in frames.items()}
    for X in (frames, turned):
        assert abs(kept - model.connectivities(X)).max() == 0
    few = AgreementKKM(3, anchors=50, random_state=0).fit(frames)
    with pytest.raises(ValueError, match="not all samples are anchors.*pass X"):
        few.connectivities()
    K = np.array([view @ view.T for view in views_of().values()])
    with pytest.raises(ValueError, match="kernels.*pass X"):
        AgreementKKM(3, kernels="precomputed", random_state=0).fit(K).connectivities()


@pytest.mark.parametrize("options", [{}, {"anchors": 60, "learn_from": 70}])
def test_samples_of_which_nothing_is_known_have_no_links(options):
    rng = np.random.default_rng(0)
    views = views_of() | {"noise": rng.normal(size=(N, 4))}
    observed = np.ones((N, 3), bool)
    observed[:, 1] = rng.random(N) > 0.2
    observed[[3, 50], :2] = False
    with pytest.warns(UncoveredSamplesWarning):
        model = AgreementKKM(3, random_state=0, **options).fit(views, observed=observed)
    assert model.set_aside_ == ("noise",)
    links = model.connectivities(read_samples(views, observed=observed))
    check_graph(links)
    has_links = np.diff(links.indptr) > 0
    np.testing.assert_array_equal(has_links, model.labels_ >= 0)


def test_the_graph_of_many_samples_is_that_of_their_blocks(monkeypatch):
    views = views_of()
    model = AgreementKKM(3, anchors=40, learn_from=50, random_state=0).fit(views)
    whole = model.connectivities(views)
    monkeypatch.setattr("mkclust.methods.anchors.BLOCK_SAMPLES", 32)
    assert abs(whole - model.connectivities(views)).max() < 1e-12


def test_a_graph_that_does_not_fit_into_memory_is_refused(monkeypatch):
    views = views_of()
    model = AgreementKKM(3, random_state=0).fit(views)
    monkeypatch.setattr("mkclust.graph.partition.BYTES_PER_LINK", 1 << 50)
    with pytest.raises(MemoryError, match="writing out the graph of 90 samples"):
        model.connectivities()
