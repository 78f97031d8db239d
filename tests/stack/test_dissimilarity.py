"""Distances where similarities belong are refused; graphs are not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import kneighbors_graph

from conftest import blob_views
from libraries import LIBRARIES, as_library
from mkclust import SimpleMKKM
from mkclust.stack import MatrixRows, as_stack

pytestmark = pytest.mark.slow

N = 60
(POINTS,), _ = blob_views(np.random.default_rng(0), n=N, k=3, strengths=(2,))
METRICS = ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation"]
COUNTS = np.random.default_rng(1).poisson(np.exp(POINTS / 2))


def distances(metric="euclidean", X=POINTS):
    """Return distances of all points to all."""
    return squareform(pdist(X, metric))


def without_diagonal(K):
    """Return a kernel with zeros for self-similarities."""
    return K - np.diag(K.diagonal())


def gaussian(width):
    """Return a Gaussian kernel, its width a multiple of the median distance."""
    D = distances()
    return np.exp(-(D**2) / (2 * (width * np.median(D)) ** 2))


@pytest.mark.parametrize("psd", ["error", "clip", "shift"])
@pytest.mark.parametrize(("center", "normalize"), [(True, True), (False, False)])
def test_distances_are_refused_with_what_makes_a_kernel_of_them(psd, center, normalize):
    settings = {"psd": psd, "center": center, "normalize": normalize}
    for D, remedy in [
        (distances(), r"like distances.*np\.exp\(-D\*\*2 / \(2 \* np\.median\(D\)\*\*2\)\)"),
        (distances() ** 2, r"like squared distances.*np\.exp\(-D / \(2 \* np\.median\(D\)\)\)"),
    ]:
        with pytest.raises(ValueError, match=f"kernel 1 looks {remedy}"):
            as_stack([gaussian(1), D], **settings)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_features", [2, 10])
def test_distances_of_many_kinds_are_known(metric, n_features):
    with pytest.raises(ValueError, match="distances, not similarities"):
        as_stack([distances(metric, POINTS[:, :n_features])], psd="clip")


@pytest.mark.parametrize("metric", ["jaccard", "hamming", "braycurtis", "canberra"])
def test_distances_of_counts_are_known(metric):
    X = COUNTS > 1 if metric == "jaccard" else COUNTS
    with pytest.raises(ValueError, match="distances, not similarities"):
        as_stack([distances(metric, X)], psd="shift")


@pytest.mark.parametrize("n", [10, 400])
@pytest.mark.parametrize("seed", range(5))
def test_distances_of_any_number_of_samples_are_known(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    with pytest.raises(ValueError, match="distances, not similarities"):
        as_stack([distances(X=X)], psd="clip")


def test_samples_that_are_alike_do_not_hide_distances():
    with pytest.raises(ValueError, match="like distances"):
        as_stack([distances(X=np.repeat(POINTS[:20], 3, axis=0))], psd="clip")


@pytest.mark.parametrize("library", LIBRARIES)
def test_distances_are_known_in_every_library(library):
    with pytest.raises(ValueError, match="kernel 0 looks like distances"):
        SimpleMKKM(3, psd="clip").fit(as_library(library, distances()[None]))


@pytest.mark.parametrize(
    "form",
    [
        lambda D: [D.astype(np.float32)],
        lambda D: [sp.csr_array(D)],
        lambda D: [D.round().astype(int)],
        # The diagonal of a difference of products that round.
        lambda D: [D + 1e-4 * np.diag(np.random.default_rng(0).normal(size=N))],
    ],
    ids=["float32", "sparse", "integers", "rounded"],
)
def test_distances_are_known_in_every_form(form):
    with pytest.raises(ValueError, match="kernel 0 looks like distances"):
        as_stack(form(distances()), psd="clip")


@pytest.mark.parametrize("center", [True, False])
def test_distances_are_known_by_their_rows(center):
    source = MatrixRows([gaussian(1), distances()])
    with pytest.raises(ValueError, match="kernel 1 looks like distances"):
        as_stack(source, center=center)
    with pytest.raises(ValueError, match="kernel 1 looks like distances"):
        as_stack([gaussian(1), distances()], center=center, streamed=True)


def test_distances_pass_where_nothing_is_checked():
    as_stack([distances()], validate=False, normalize=False)
    as_stack([distances()], validate=False, normalize=False, streamed=True)


@pytest.mark.parametrize("psd", ["error", "clip", "shift"])
def test_the_remedies_are_accepted(psd):
    D = distances()
    as_stack([np.exp(-(D**2) / (2 * np.median(D) ** 2)), -(D**2) / 2], psd=psd)
    D = D**2
    as_stack([np.exp(-D / (2 * np.median(D))), -D / 2], psd=psd)


@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("n_neighbors", [1, 5, 25, 45])
@pytest.mark.parametrize("join", [np.maximum, np.add])
def test_graphs_are_similarities(psd, n_neighbors, join):
    A = kneighbors_graph(POINTS, n_neighbors).toarray()
    as_stack([join(A, A.T)], psd=psd, normalize=False)


@pytest.mark.parametrize("psd", ["clip", "shift"])
@pytest.mark.parametrize("width", [0.1, 0.3, 1, 3, 10])
def test_similarities_without_a_diagonal_are_similarities(psd, width):
    as_stack([without_diagonal(gaussian(width))], psd=psd, normalize=False)
    as_stack([without_diagonal(1 / (1 + distances() * width))], psd=psd, normalize=False)


@pytest.mark.parametrize("seed", range(10))
def test_noise_without_a_diagonal_is_not_called_distances(seed):
    rng = np.random.default_rng(seed)
    A = without_diagonal(rng.uniform(0.5, 1, size=(N, N)))
    B = without_diagonal((rng.uniform(size=(N, N)) < 0.7).astype(float))
    as_stack([A + A.T, np.maximum(B, B.T)], psd="clip")
