"""More samples than anchors: the same clusters, wherever the views are."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.decomposition import PCA

from mkclust import AgreementKKM, load_model, save_model
from mkclust.data.draw import draw_samples
from mkclust.data.samples import as_blocks
from mkclust.metrics import adjusted_rand_index

N, K = 1200, 4


def views_of(n=N, seed=0):
    """Return three views, the last of them noise, of unequal clusters."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, p=[0.6, 0.25, 0.1, 0.05], size=n)
    views = {name: 6 * np.eye(K, 5)[y] + rng.normal(size=(n, 5)) for name in "ab"}
    return views | {"noise": rng.normal(size=(n, 6))}, y


def fitted(views, **options):
    given = {"anchors": 300, "learn_from": 600, "random_state": 0} | options
    return AgreementKKM(K, **given).fit(views)


@pytest.fixture(scope="module")
def known():
    views, y = views_of()
    return views, y, fitted(views)


def test_clusters_of_any_size_are_found_by_anchors(known):
    views, y, model = known
    assert adjusted_rand_index(y, model.labels_) > 0.98
    assert model.set_aside_ == ("noise",)
    assert model.anchors_.shape == (300,)
    assert model.embedding_.shape == (N, K)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_allclose(model.transform(views), model.embedding_, atol=1e-9)


def test_neither_the_order_of_rows_nor_a_view_set_aside_changes_the_anchors(known):
    views, _, model = known
    order = np.random.default_rng(1).permutation(N)
    shuffled = fitted({name: view[order] for name, view in views.items()})
    assert set(order[shuffled.anchors_]) == set(model.anchors_)
    np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])

    fewer = fitted({name: views[name] for name in "ba"})
    np.testing.assert_array_equal(fewer.anchors_, model.anchors_)
    np.testing.assert_array_equal(fewer.labels_, model.labels_)


def test_memory_maps_files_sparse_rows_and_frames_have_the_same_clusters(
    known, tmp_path
):
    views, _, model = known
    mapped = {}
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", view)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    forms = {
        "memory maps": mapped,
        "sparse": {name: scipy.sparse.csr_array(view) for name, view in views.items()},
        "frames": {name: pd.DataFrame(view) for name, view in views.items()},
    }
    for form, given in forms.items():
        found = fitted(given)
        assert adjusted_rand_index(found.labels_, model.labels_) > 0.99, form


def test_dask_arrays_have_the_same_clusters(known):
    da = pytest.importorskip("dask.array")
    views, _, model = known
    lazy = {name: da.from_array(view, chunks=(500, -1)) for name, view in views.items()}
    found = fitted(lazy)
    np.testing.assert_array_equal(found.labels_, model.labels_)
    labels = found.predict(lazy)
    assert isinstance(labels, da.Array)
    assert (labels.shape, labels.dtype) == (model.labels_.shape, model.labels_.dtype)
    np.testing.assert_array_equal(labels.compute(), model.labels_)
    np.testing.assert_array_equal(
        fitted(lazy, anchors=2000).labels_[:5], model.labels_[:5]
    )


def test_ids_draw_the_anchors_and_samples_may_lack_views():
    views, y = views_of()
    frames = {
        name: pd.DataFrame(view) for name, view in views.items() if name != "noise"
    }
    frames = {
        name: frame.set_index("s" + frame.index.astype(str))
        for name, frame in frames.items()
    }
    rng = np.random.default_rng(0)
    some = {
        name: frame.sample(frac=0.8, random_state=p)
        for p, (name, frame) in enumerate(frames.items())
    }
    model = fitted(some, join="outer")
    of_ids = pd.Series(y, frames["a"].index)[model.sample_ids_].to_numpy()
    covered = model.labels_ >= 0
    assert covered.mean() > 0.9
    assert adjusted_rand_index(of_ids[covered], model.labels_[covered]) > 0.95
    shuffled = {
        name: frame.sample(frac=1, random_state=9) for name, frame in some.items()
    }
    other = fitted(shuffled, join="outer")
    labels = pd.Series(model.labels_, model.sample_ids_)[other.sample_ids_]
    np.testing.assert_array_equal(labels, other.labels_)
    assert rng is not None


def test_a_saved_model_of_anchors_predicts_the_same(known, tmp_path):
    pytest.importorskip("skops")
    views, _, model = known
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(views), model.labels_)


def test_samples_are_drawn_by_what_they_are_and_equal_ones_apart():
    rng = np.random.default_rng(0)
    table = np.vstack([np.zeros((500, 3)), rng.normal(size=(500, 3))])
    drawn = draw_samples(as_blocks({"a": table}), 100)
    assert 20 < np.sum(drawn < 500) < 80
    order = rng.permutation(1000)
    again = order[draw_samples(as_blocks({"a": table[order]}), 100)]
    np.testing.assert_array_equal(
        np.sort(table[again], axis=0), np.sort(table[drawn], axis=0)
    )
    few = draw_samples(as_blocks({"a": table}), 40)
    np.testing.assert_array_equal(few, drawn[:40])
    sparse = draw_samples(as_blocks({"a": scipy.sparse.csr_array(table)}), 100)
    np.testing.assert_array_equal(sparse, drawn)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_loses_nothing(known):
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    views, _, model = known
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        chunks = {
            name: da.from_array(view, chunks=(40, -1)) for name, view in views.items()
        }
        nanny = cluster.workers[0]
        victim = nanny.pid
        threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
        found = fitted(chunks)
        np.testing.assert_array_equal(found.predict(chunks), model.labels_)
        assert nanny.pid != victim
    np.testing.assert_array_equal(found.labels_, model.labels_)


def test_components_of_all_samples_are_components_to_the_anchors():
    rng = np.random.default_rng(0)
    y = np.arange(800) % 4
    genes = 4 * rng.normal(size=(4, 40))[y] + rng.normal(size=(800, 40))
    scores = PCA(30).fit_transform(genes)
    model = AgreementKKM(4, anchors=300, learn_from=600, random_state=0)
    model.fit({"genes": scores, "again": genes[:, :25]})
    assert model.bank_.rules_ == {"genes": "components", "again": "dense"}
    assert adjusted_rand_index(y, model.labels_) > 0.95
