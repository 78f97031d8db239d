"""Views as dask arrays: the same answers as arrays, here and on a cluster."""

import numpy as np
import pandas as pd
import pytest

from helpers.docs import blocks
from helpers.views import blob_views
from mkclust import SimpleMKKM
from mkclust.data import as_blocks, as_dask
from mkclust.datasets import load
from mkclust.kernels import Nystroem

da = pytest.importorskip("dask.array")

N = 200


@pytest.fixture
def views():
    found, _ = blob_views(np.random.default_rng(0), n=N, k=3, strengths=(3.0, 2.0, 1.5))
    return {f"view {p}": view for p, view in enumerate(found)}


def lazy(views, rows=70):
    """The same views as dask arrays, each cut in its own way."""
    return {
        name: da.from_array(view, chunks=(rows + 10 * p, 2))
        for p, (name, view) in enumerate(views.items())
    }


def model(**options):
    return SimpleMKKM(3, approximation=Nystroem(20), random_state=0, **options)


def test_sums_results_for_samples_and_rows_are_those_of_arrays(views):
    def squares(block, start):
        return block["view 0"].T @ block["view 1"], np.array([block.n_rows, start >= 0])

    def numbered(block, start):
        return block["view 1"] + start + np.arange(block.n_rows)[:, None]

    here, there = as_blocks(views, block_rows=33), as_blocks(lazy(views), block_rows=20)
    np.testing.assert_allclose(there.total(squares)[0], here.total(squares)[0])
    np.testing.assert_allclose(there.map(numbered), here.map(numbered))
    some = np.array([0, 5, 77, 199])
    for name, rows in there.take(some).items():
        np.testing.assert_array_equal(rows, views[name][some])


def test_exact_kernels_of_dask_arrays_are_refused(views):
    for use in (SimpleMKKM(3).fit, SimpleMKKM(3).fit(views).predict):
        with pytest.raises(ValueError, match="approximation"):
            use(lazy(views))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda X: X | {"view 1": X["view 1"].compute()}, "view 1"),
        (
            lambda X: X | {"view 0": X["view 0"][X["view 0"][:, 0] > 0]},
            "compute_chunk_sizes",
        ),
        (lambda X: X | {"view 0": X["view 0"][:-1]}, "view 0"),
        (lambda X: X | {"view 0": X["view 0"].astype(complex)}, "view 0"),
    ],
)
def test_dask_arrays_that_do_not_fit_together_are_refused(views, change, named):
    with pytest.raises((TypeError, ValueError), match=named):
        model().fit(change(lazy(views)))


def test_files_become_dask_arrays_that_read_them(views, tmp_path):
    mapped = {}
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", np.asfortranarray(view))
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    for name, array in as_dask(mapped).items():
        np.testing.assert_array_equal(array.compute(scheduler="sync"), views[name])


def test_tables_in_memory_become_dask_arrays_in_the_order_of_the_first(views):
    ids = [f"s{i}" for i in range(N)]
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    frames["view 1"] = frames["view 1"].sample(frac=1, random_state=0)
    for given in (frames, views, {**views, "view 0": pd.DataFrame(views["view 0"])}):
        for name, array in as_dask(given).items():
            np.testing.assert_array_equal(array.compute(scheduler="sync"), views[name])
    for wrong in (
        {**views, "view 0": frames["view 1"]},
        {**frames, "view 0": views["view 0"]},
    ):
        with pytest.raises(ValueError, match="has no ids|have no ids"):
            as_dask({**wrong, "view 2": frames["view 2"]})
    with pytest.raises(ValueError, match="'view 0' has the columns 'sex'"):
        as_dask({"view 0": frames["view 0"].assign(sex=["m", "f"] * (N // 2))})


@pytest.mark.slow
def test_the_example_of_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    views = {name: view[:300] for name, view in load("digits").views.items()}
    names = {
        "np": np,
        "load": load,
        "Nystroem": Nystroem,
        "SimpleMKKM": SimpleMKKM,
        "views": views,
    }
    examples = [
        code for code in blocks("docs/guides/scale.md", "python") if "stored" in code
    ]
    assert len(examples) == 2
    for code in examples:
        exec(code, names)
        labels = names["model"].labels_
        np.testing.assert_array_equal(labels, names["labels"])


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_finds_the_clusters_of_arrays(views, cluster):
    here, there = model().fit(views), model().fit(lazy(views))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-6)
    observed = np.random.default_rng(0).random((N, 3)) > 0.2
    observed[:, 0] |= ~observed.any(axis=1)
    here, there = (model().fit(X, observed=observed) for X in (views, lazy(views)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.predict(lazy(views)), here.predict(views))
