"""Fewer clusters than were asked for: said by name, in words."""

import warnings

import numpy as np
import pytest

from conftest import blob_views
from libraries import LIBRARIES, as_library
from mkclust import METHODS, AverageKKM, SimpleMKKM
from mkclust.exceptions import FewerClustersWarning
from mkclust.kernels import Linear

INDUCTIVE = [name for name, method in METHODS.items() if hasattr(method, "predict")]


def one_direction(n=40):
    """Return two kernels of one feature each, the same: uncentered samples point to two sides."""
    x = np.random.default_rng(0).normal(size=n)
    return np.stack([np.outer(x, x)] * 2), x


@pytest.mark.parametrize("name", INDUCTIVE)
def test_fewer_clusters_than_asked_for_are_warned_about_with_both_numbers(name):
    K, x = one_direction()
    model = METHODS[name](4, center=False, normalize=False, random_state=0)
    with pytest.warns(FewerClustersWarning, match="found 2 clusters where n_clusters=4") as log:
        model.fit(K)
    assert np.unique(model.labels_).size == 2
    assert np.unique(model.labels_[x > 0]).size == 1
    (said,) = (entry for entry in log if issubclass(entry.category, FewerClustersWarning))
    assert type(model).__name__ in str(said.message)
    assert "ask for fewer clusters" in str(said.message)
    assert said.filename == __file__
    # Once, and not in the words of k-means as well.
    assert not [entry for entry in log if "distinct clusters" in str(entry.message)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_fewer_clusters_are_warned_about_in_every_library(library):
    K, _ = one_direction()
    with pytest.warns(FewerClustersWarning, match="AverageKKM found 2 clusters"):
        AverageKKM(3, center=False, normalize=False).fit(as_library(library, K))


def test_one_cluster_is_singular():
    K = np.outer(np.arange(1.0, 9), np.arange(1.0, 9))[None]
    with pytest.warns(FewerClustersWarning, match="found 1 cluster where n_clusters=2"):
        SimpleMKKM(2, center=False, normalize=False).fit(K)


def test_fewer_clusters_are_warned_about_where_labels_are_on_a_cluster():
    da = pytest.importorskip("dask.array")
    x = np.random.default_rng(0).normal(size=(200, 1))
    views = [np.hstack([x, x]), np.hstack([x, 2 * x, 0 * x])]
    model = AverageKKM(2, approximation=Linear(), center=False, normalize=False, random_state=0)
    positive = [da.from_array(abs(view), chunks=(60, -1)) for view in views]
    with pytest.warns(FewerClustersWarning, match="found 1 cluster where n_clusters=2"):
        model.fit(positive)


@pytest.mark.parametrize("name", METHODS)
def test_as_many_clusters_as_asked_for_are_not_warned_about(name):
    views, _ = blob_views(np.random.default_rng(0), n=60, k=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewerClustersWarning)
        METHODS[name](3, random_state=0).fit(views)
