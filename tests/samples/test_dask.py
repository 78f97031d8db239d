"""Views as dask arrays: the same answers, without the samples ever coming to the client."""

import math
import os
import pickle
import signal
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

import mkclust.stack.discretize
import mkclust.stack.feature_maps
import mkclust.stack.features
from mkclust import AverageKKM, SimpleMKKM
from mkclust.kernels import Nystroem
from mkclust.metrics import adjusted_rand_of_table
from mkclust.samples.cluster import connect
from mkclust.samples.dask import DaskBlocks, contingency
from mkclust.samples.local import LocalBlocks
from mkclust.samples.samples import as_blocks
from mkclust.stack.discretize import assign, discretize

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N = 600
# Rows of the chunks, uneven and empty ones among them.
CHUNKS = [N, 100, (1, 250, 0, 349), (400, 7, 193)]


def draw_views(n=N, seed=0):
    """Three views of three clusters, of different widths and one in float32."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    views = {
        name: rng.normal(size=(3, width))[y] * 2 + rng.normal(size=(n, width))
        for name, width in (("shape", 3), ("color", 4), ("text", 5))
    }
    return views | {"text": views["text"].astype(np.float32)}


def cut(views, rows, columns=2):
    """Return the views as dask arrays, cut by rows and by columns."""
    return {name: da.from_array(view, chunks=(rows, columns)) for name, view in views.items()}


def make_model(method=SimpleMKKM):
    return method(3, approximation=Nystroem(30), random_state=0)


@pytest.fixture(scope="module")
def views():
    return draw_views()


@pytest.fixture(scope="module")
def local(views):
    return make_model().fit(views)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def assert_same_model(found, local):
    np.testing.assert_allclose(found.weights_, local.weights_, atol=1e-6)
    assert adjusted_rand_score(found.labels_.compute(), local.labels_) == 1
    assert adjusted_rand_score(found.baseline_labels_.compute(), local.baseline_labels_) == 1
    assert found.baseline_agreement_ == pytest.approx(local.baseline_agreement_)
    assert found.embedding_.shape == local.embedding_.shape


@pytest.mark.parametrize("rows", CHUNKS, ids=str)
def test_chunks_do_not_change_the_model_in_threads(views, local, rows):
    with dask.config.set(scheduler="threads"):
        found = make_model().fit(cut(views, rows))
        assert_same_model(found, local)
        np.testing.assert_array_equal(found.labels_.compute(), local.labels_)


@pytest.mark.parametrize("rows", [200, (400, 7, 193)], ids=str)
def test_chunks_do_not_change_the_model_on_a_cluster(client, views, local, rows):
    found = make_model().fit(cut(views, rows, -1))
    assert_same_model(found, local)
    # They are kept on the workers.
    assert len(distributed.futures_of(found.labels_)) == 3
    assert len(distributed.futures_of(found.embedding_)) == 3


def test_other_methods_take_dask_arrays_too(views):
    local = make_model(AverageKKM).fit(views)
    found = make_model(AverageKKM).fit(cut(views, 150))
    np.testing.assert_array_equal(found.labels_.compute(), local.labels_)


def test_views_may_be_cut_differently(views, local):
    lazy = {
        name: da.from_array(view, chunks=(rows, -1))
        for (name, view), rows in zip(views.items(), (100, 170, (599, 1)), strict=True)
    }
    assert_same_model(make_model().fit(lazy), local)


def test_one_table_may_be_a_dask_array(views):
    table = views["color"]
    local = make_model().fit(table)
    found = make_model().fit(da.from_array(table, chunks=(200, 3)))
    np.testing.assert_array_equal(found.labels_.compute(), local.labels_)


@pytest.mark.parametrize("rows", CHUNKS, ids=str)
def test_passes_agree_with_those_over_views_in_memory(views, rows):
    lazy, local = DaskBlocks(cut(views, rows)), LocalBlocks(views, 64)
    assert (lazy.names, lazy.n_samples) == (local.names, local.n_samples)
    assert lazy.n_features == local.n_features

    def moments(block, start):
        numbers = start + np.arange(len(block["text"]))
        return block["text"].T @ block["color"], numbers @ block["shape"]

    for found, expected in zip(lazy.total(moments), local.total(moments), strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def number(block, start):
        return start + np.arange(len(block["text"]))[:, None] + 0 * block["shape"]

    np.testing.assert_array_equal(lazy.map(number).compute(), local.map(number))
    np.testing.assert_array_equal(
        lazy.map(lambda block, _: block["shape"][:, 0]).compute(), views["shape"][:, 0]
    )
    samples = np.array([0, 3, 250, 251, 599])
    for name, rows_taken in lazy.take(samples).items():
        np.testing.assert_array_equal(rows_taken, views[name][samples])


def test_sums_of_narrow_types_are_made_in_double_precision():
    blocks = DaskBlocks({"ones": da.ones((40, 1), chunks=(10, 1), dtype=np.float32)})
    # From 2^24 on float32 no longer counts by one.
    found = blocks.total(lambda block, start: block["ones"][0] * (1 if start else 2**24))
    assert found.tolist() == [2**24 + 3]


def test_what_a_look_brings_is_in_one_task_only():
    landmarks = np.random.default_rng(0).normal(size=(300, 300))
    blocks = DaskBlocks({"a": da.zeros((400, 3), chunks=(10, 3))}, keep=False)
    (result,) = dask.optimize(blocks.map(lambda block, _: block["a"] @ landmarks[:3]))
    sizes = [len(distributed.protocol.pickle.dumps(t)) for t in dict(result.dask).values()]
    assert len(sizes) >= 40
    assert sum(size > landmarks.nbytes / 2 for size in sizes) == 1


def test_pickled_blocks_leave_their_samples_behind(views):
    blocks = DaskBlocks(cut(views, 100))
    blocks.take(np.arange(N))
    copied = pickle.loads(pickle.dumps(blocks))
    assert len(pickle.dumps(blocks)) < 1000
    assert (copied.names, copied.n_samples) == (blocks.names, N)
    with pytest.raises(RuntimeError, match="as_blocks"):
        copied.take(np.arange(2))


@pytest.mark.parametrize("place", ["threads", "cluster"])
def test_entries_that_are_not_finite_are_named_by_view_and_sample(
    request, monkeypatch, views, local, place
):
    if place == "cluster":
        request.getfixturevalue("client")
    bad = views["color"].copy()
    bad[430:432, 1] = np.nan
    lazy = cut(views | {"color": bad}, 200, -1)
    told = r"View 'color' has entries .* in 2 of the samples 400 to 599, first in sample 430"
    with pytest.raises(ValueError, match=told):
        local.predict(lazy).compute()
    # Not among the samples that feature maps learn from, so that a task is what finds it.
    monkeypatch.setattr(mkclust.stack.feature_maps, "FIT_SAMPLES", 60)
    monkeypatch.setattr(mkclust.stack.feature_maps, "SAMPLES_PER_LANDMARK", 1)
    monkeypatch.setattr(mkclust.stack.features, "ERROR_SAMPLES", 60)
    drawn = [mkclust.stack.feature_maps.draw(N, 60, seed) for seed in (0, 1)]
    assert not {430, 431} & {*drawn[0], *drawn[1]}
    with pytest.raises(ValueError, match=told):
        make_model().fit(lazy)


def test_chunks_of_unknown_size_are_refused_before_any_work(views):
    def fail(block):
        raise AssertionError("computed")

    lazy = cut(views, 100)
    color = lazy["color"].map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    unknown = color[da.from_array(np.arange(N) % 2 == 0, chunks=100)]
    with pytest.raises(ValueError, match=r"'color' has chunks of unknown size.*compute_chunk_siz"):
        make_model().fit(lazy | {"color": unknown})


def test_known_chunk_sizes_after_a_filter_are_accepted(views):
    kept = views["shape"][:, 0] > 0
    # None of the samples of the second chunk is kept.
    kept[100:200] = False
    lazy = {}
    for name, view in cut(views, 100).items():
        lazy[name] = view[da.from_array(kept, chunks=100)]
        lazy[name].compute_chunk_sizes()
    local = make_model().fit({name: view[kept] for name, view in views.items()})
    np.testing.assert_array_equal(make_model().fit(lazy).labels_.compute(), local.labels_)


def test_a_mix_of_dask_arrays_and_others_is_refused(views):
    lazy = cut(views, 100)
    with pytest.raises(TypeError, match=r"\['shape', 'text'\] are dask arrays, but \['color'\]"):
        as_blocks(lazy | {"color": views["color"]})


def test_new_dask_views_of_a_bank_may_have_any_name_and_no_self_similarity(views):
    renamed = {"table": views["shape"], "b": views["color"]}
    model = AverageKKM(3, random_state=0).fit(renamed)
    lazy = cut(renamed, 100)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.labels_)
    with pytest.raises(ValueError, match="self_similarity belongs to precomputed kernels"):
        model.predict(lazy, self_similarity=np.ones((2, N)))


def test_different_numbers_of_samples_are_refused(views):
    lazy = cut(views, 100)
    with pytest.raises(ValueError, match=r"'shape' has 600 rows but view 'color' has 500"):
        as_blocks(lazy | {"color": lazy["color"][:500]})


def test_dask_data_frames_are_told_how_to_become_arrays(views):
    # A stand-in of the same module: real ones need further packages.
    frame = type("DataFrame", (), {"__module__": "dask.dataframe.dask_expr._collection"})()
    with pytest.raises(TypeError, match=r"'color' is a dask data frame.*to_dask_array"):
        as_blocks(views | {"color": frame})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda a: a.astype(str), r"'color' has entries of type .*U.*, which are not real numbers"),
        (lambda a: a.astype(object), r"'color' has entries of type object"),
        (lambda a: a.astype(complex), r"'color' has entries of type complex128"),
        (lambda a: a[:, :0], r"'color' is empty, of shape \(600, 0\)"),
        (lambda a: a[:, 0], r"'color' has 1 dimensions"),
        (lambda a: da.ma.masked_array(a, a > 9), r"'color' has chunks that are masked.*filled"),
        (lambda a: a.map_blocks(scipy.sparse.csr_array), r"type scipy\.sparse.*toarray"),
    ],
)
def test_dask_arrays_that_are_no_tables_of_numbers_are_refused_at_the_door(views, make, told):
    lazy = cut(views, 100, -1)
    with pytest.raises((TypeError, ValueError), match=told):
        as_blocks(lazy | {"color": make(lazy["color"])})


def test_chunks_that_are_not_what_they_were_said_to_be_are_named(views):
    lazy = cut(views, 100, -1)
    # What makes these chunks gives more rows, or strings, and nobody told dask.
    longer = lazy["color"].map_blocks(lambda rows: np.vstack([rows, rows]), meta=np.empty((0, 0)))
    words = lazy["color"].map_blocks(lambda rows: rows.astype(str), meta=np.empty((0, 0)))
    for wrong, told in (
        (longer, r"should hold the samples .00 to .99 has 200 rows"),
        (words, r"'color' has entries of type <U32"),
    ):
        blocks = as_blocks(lazy | {"color": wrong})
        with dask.config.set(scheduler="sync"), pytest.raises(ValueError, match=told):
            blocks.total(lambda block, _: block["shape"].sum(axis=0))


def test_the_view_cut_most_finely_decides_so_that_no_chunk_grows(views):
    lazy = {
        name: da.from_array(view, chunks=(rows, -1))
        for (name, view), rows in zip(views.items(), (N, 150, 400), strict=True)
    }
    found = as_blocks(lazy, keep=False).map(lambda block, _: block["shape"])
    assert found.chunks[0] == (150,) * 4
    # Columns of all samples, put together, would be all of a view in one place.
    lazy = cut(views, N, 1)
    assert as_blocks(lazy, keep=False).map(lambda b, _: b["text"]).chunks[0] == (N,)
    with dask.config.set({"array.chunk-size": "10kB"}):
        found = as_blocks(lazy, keep=False).map(lambda block, _: block["text"])
    assert found.chunks[0] == (200,) * 3
    np.testing.assert_array_equal(found.compute(), views["text"])


def test_large_chunks_are_looked_at_in_parts(views):
    seen = []

    def look(block, start):
        seen.append((start, len(block["shape"])))
        return block["shape"]

    lazy = cut(views, (350, 250), -1)
    with dask.config.set(scheduler="sync"):
        blocks = DaskBlocks(lazy, keep=False, most_rows=64)
        rows = blocks.map(look).compute()
        total = blocks.total(lambda b, start: start * b["shape"].sum(axis=0))
    np.testing.assert_array_equal(rows, views["shape"])
    assert {(0, 64), (64, 64), (320, 30), (350, 64)} < set(seen)
    assert max(rows for _, rows in seen) == 64
    starts = [*range(0, 350, 64), *range(350, 600, 64)]
    parts = np.split(views["shape"], starts[1:])
    expected = sum(s * part.sum(axis=0) for s, part in zip(starts, parts, strict=True))
    np.testing.assert_allclose(total, expected)


def test_new_samples_come_back_as_the_kind_of_array_they_are(views, local):
    new = draw_views(250, seed=0)
    lazy = cut(new, (50, 200))
    fitted_lazily = make_model().fit(cut(views, 100))
    expected_rows, expected = local.transform(new), local.predict(new)
    for model in (local, fitted_lazily):
        assert isinstance(model.predict(new), np.ndarray)
        np.testing.assert_array_equal(model.predict(new), expected)
        np.testing.assert_allclose(model.transform(new), expected_rows, atol=1e-5)
        labels, rows = model.predict(lazy), model.transform(lazy)
        assert labels.chunks == ((50, 200),)
        assert labels.dtype == expected.dtype
        assert rows.dtype == expected_rows.dtype
        np.testing.assert_array_equal(labels.compute(), expected)
        np.testing.assert_allclose(rows.compute(), expected_rows, atol=1e-5)


def test_predictions_of_dask_arrays_are_lazy(views, local):
    seen = []

    def note(block):
        seen.append(len(block))
        return block

    lazy = {
        name: view.map_blocks(note, dtype=view.dtype, meta=view._meta)
        for name, view in cut(views, 100, -1).items()
    }
    with dask.config.set(scheduler="sync"):
        labels = local.predict(lazy)
        # The first chunk of each view, to know the width and the type of the result.
        assert len(seen) == 3
        seen.clear()
        assert labels[500:].compute().tolist() == local.labels_[500:].tolist()
        assert len(seen) == 3


def test_the_sample_of_rows_is_the_same_however_they_are_cut(monkeypatch):
    rng = np.random.default_rng(0)
    rows = np.repeat(np.eye(3), [300, 200, 100], axis=0)[rng.permutation(600)]
    rows = rows + 0.2 * rng.normal(size=rows.shape)
    monkeypatch.setattr(mkclust.stack.discretize, "ALL_ROWS", 240)
    monkeypatch.setattr(mkclust.stack.discretize, "BLOCK_ROWS", 90)
    labels, centers = discretize(rows, 3, random_state=5)
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(assign(rows, centers), labels)
    assert np.all(np.diff(np.bincount(labels)) < 0)
    for chunks in ((600, 3), (100, 2), ((5, 400, 195), 3)):
        lazy, found = discretize(da.from_array(rows, chunks=chunks), 3, random_state=5)
        np.testing.assert_array_equal(found, centers)
        np.testing.assert_array_equal(lazy.compute(), labels)
    # From a sample, not from all rows.
    monkeypatch.setattr(mkclust.stack.discretize, "ALL_ROWS", 600)
    assert np.abs(discretize(rows, 3, random_state=5)[1] - centers).max() > 1e-6


def test_equal_clusters_are_numbered_by_their_first_sample_across_chunks():
    rows = np.eye(3)[[2, 1, 0, 0, 1, 2, 1, 0, 2]]
    # Seeds that find the centers in different orders.
    for seed in range(4):
        for chunks in (2, (1, 8)):
            lazy = da.from_array(rows, chunks=(chunks, -1))
            labels, _ = discretize(lazy, 3, n_init=1, random_state=seed)
            assert labels.compute().tolist() == [0, 1, 2, 2, 1, 0, 1, 2, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_rand_index_of_counts_is_that_of_the_labels(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 300)
    second = np.where(rng.random(300) < 0.6, first, rng.integers(0, 3, 300))
    table = contingency(da.from_array(first, chunks=70), da.from_array(second, chunks=70), 4)
    assert table.sum() == 300
    assert table[1, 2] == np.sum((first == 1) & (second == 2))
    found = adjusted_rand_of_table(table)
    assert found == pytest.approx(adjusted_rand_score(first, second), abs=1e-14)


def test_the_rand_index_of_counts_knows_its_limits():
    assert adjusted_rand_of_table(np.diag([3, 5, 0])) == 1
    assert adjusted_rand_of_table(np.array([[7]])) == 1
    even = adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1])
    assert adjusted_rand_of_table(np.ones((2, 2), int)) == pytest.approx(even)
    # Pairs of pairs beyond what 64 bits can count.
    table = np.array([[4, 1], [2, 3]]) * 10**9
    together, in_class, in_cluster = (
        sum(math.comb(int(count), 2) for count in counts)
        for counts in (table.ravel(), table.sum(axis=1), table.sum(axis=0))
    )
    expected = Fraction(in_class * in_cluster, math.comb(int(table.sum()), 2))
    exact = (together - expected) / (Fraction(in_class + in_cluster, 2) - expected)
    assert adjusted_rand_of_table(table) == pytest.approx(float(exact), rel=1e-14)


def test_nothing_as_long_as_the_samples_comes_to_the_client(client, monkeypatch):
    n = 8000
    lazy = cut(draw_views(n), 1000, -1)
    monkeypatch.setattr(mkclust.stack.discretize, "ALL_ROWS", 100)
    monkeypatch.setattr(mkclust.stack.feature_maps, "FIT_SAMPLES", 100)
    monkeypatch.setattr(mkclust.stack.features, "COMPARED_SAMPLES", 100)
    monkeypatch.setattr(mkclust.stack.features, "ERROR_SAMPLES", 100)
    monkeypatch.setattr(mkclust.methods.agreement, "JUDGED_SAMPLES", 100)
    sizes, gather = [], distributed.Client.gather

    def note(self, *args, **options):
        found = gather(self, *args, **options)
        sizes.append(dask.sizeof.sizeof(found))
        return found

    monkeypatch.setattr(distributed.Client, "gather", note)
    model = SimpleMKKM(3, approximation=Nystroem(10), random_state=0).fit(lazy)
    assert len(sizes) >= 6
    # The rows of some hundred samples; labels alone would be twice as much.
    assert max(sizes) < 8 * n / 2
    model.labels_.compute()
    assert max(sizes) >= 8 * n


def test_no_task_holds_more_than_a_chunk(cluster, client, monkeypatch):
    n, rows = 4000, 200
    lazy = cut(draw_views(n), rows, 2)
    for module, name in (
        (mkclust.stack.discretize, "ALL_ROWS"),
        (mkclust.stack.feature_maps, "FIT_SAMPLES"),
        (mkclust.stack.features, "COMPARED_SAMPLES"),
        (mkclust.stack.features, "ERROR_SAMPLES"),
    ):
        monkeypatch.setattr(module, name, 100)
    sizes = {}

    class Measure(distributed.SchedulerPlugin):
        def transition(self, key, start, finish, *args, nbytes=None, **options):
            if finish == "memory" and nbytes is not None:
                sizes[key] = nbytes

    cluster.scheduler.add_plugin(Measure(), name="measure")
    try:
        model = SimpleMKKM(3, approximation=Nystroem(10), random_state=0).fit(lazy)
        distributed.wait([model.labels_, model.embedding_])
        assert len(sizes) > 5 * n / rows
        # Labels of all samples alone would be twice as much.
        assert max(sizes.values()) < 8 * n / 2
        (model.labels_ + 0).rechunk(n).persist().compute()
        assert max(sizes.values()) >= 8 * n
    finally:
        cluster.scheduler.remove_plugin("measure")


def random_chunks(rng, n):
    """Cut n rows at random places: uneven, some of a single row, some empty."""
    cuts = np.sort(rng.integers(0, n + 1, rng.integers(1, 12)))
    ends = np.concatenate([[0], np.repeat(cuts, 1 + (rng.random(len(cuts)) < 0.2)), [n - 1, n]])
    return tuple(np.diff(np.sort(ends)).tolist())


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_random_chunks_do_not_change_the_model(views, local, scheduler):
    rng = np.random.default_rng(8)
    for _ in range(4):
        lazy = {
            name: da.from_array(view, chunks=(random_chunks(rng, N), int(rng.integers(1, 4))))
            for name, view in views.items()
        }
        with dask.config.set(scheduler=scheduler):
            assert_same_model(make_model().fit(lazy), local)


def test_a_slow_worker_does_not_change_the_model(client, views, local):
    slow, *_ = client.run(os.getpid).values()

    class Slow(Nystroem):
        """Features that take their time on one of the workers."""

        def transform(self, X):
            if os.getpid() == slow:
                time.sleep(0.1)
            return super().transform(X)

    rng = np.random.default_rng(9)
    lazy = cut(views, random_chunks(rng, N), 2)
    found = SimpleMKKM(3, approximation=Slow(30), random_state=0).fit(lazy)
    assert_same_model(found, local)


def test_a_worker_that_dies_in_the_middle_of_a_pass_is_survived(client, views, local, tmp_path):
    class DyingOnce(Nystroem):
        """Features whose worker dies at one of the blocks, the first time that it comes by."""

        def __init__(self, n_components=30, *, flag=None, client=None, random_state=None):
            super().__init__(n_components, random_state=random_state)
            self.flag, self.client = flag, client

        def transform(self, X):
            if len(X) == 77 and os.getpid() != self.client and not os.path.exists(self.flag):
                open(self.flag, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().transform(X)

    flag = tmp_path / "died"
    dying = DyingOnce(flag=str(flag), client=os.getpid())
    lazy = cut(views, (200, 77, 323), -1)
    found = SimpleMKKM(3, approximation=dying, random_state=0).fit(lazy)
    assert flag.exists()
    assert_same_model(found, local)


def test_a_client_that_nobody_has_is_told(monkeypatch):
    blocks = {"a": da.arange(20, chunks=10)[:, None]}
    with dask.config.set(scheduler="dask.distributed"):
        with pytest.raises(ConnectionError, match="no client is connected.*connect"):
            as_blocks(blocks)
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(ImportError, match=r'pip install "mkclust\[dask\]"'):
            as_blocks(blocks)


def test_within_connect_dask_computes_on_the_cluster_and_afterwards_not(cluster, views, local):
    with connect(cluster.scheduler_address) as client:
        assert client.status == "running"
        found = make_model().fit(cut(views, 200))
        assert_same_model(found, local)
        assert len(distributed.futures_of(found.labels_)) == 3
    assert client.status == "closed"
    assert dask.config.get("scheduler", None) is None
    assert_same_model(make_model().fit(cut(views, 200)), local)


def test_a_scheduler_without_workers_and_a_worker_are_refused(cluster, client):
    worker = next(iter(client.scheduler_info()["workers"]))
    told = f"At {worker} there is a dask worker.*scheduler, {cluster.scheduler_address}"
    with pytest.raises(ConnectionError, match=told), connect(worker, timeout=2):
        pass
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(ConnectionError, match="has no workers, and got none within 0.5 s"),
        connect(empty.scheduler_address, timeout=0.5),
    ):
        pass


def test_exact_kernels_are_not_computed_from_dask_arrays_but_predict_for_them():
    views = draw_views(300)
    lazy = cut(views, 100, -1)
    with pytest.raises(ValueError, match="dask arrays.*approximation"):
        SimpleMKKM(3).fit(lazy)
    model = SimpleMKKM(3, random_state=0).fit(views)
    labels = model.predict(lazy)
    assert isinstance(labels, da.Array)
    assert labels.compute().tolist() == model.labels_.tolist()
    table = SimpleMKKM(3, random_state=0).fit(views["shape"])
    found = table.transform(da.from_array(views["shape"], chunks=(90, -1)))
    np.testing.assert_allclose(found.compute(), table.transform(views["shape"]), atol=1e-10)


def test_files_become_dask_arrays_that_whoever_needs_them_reads(tmp_path):
    views = draw_views(300)
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", view)
    opened = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in views}
    lazy = mkclust.samples.as_dask(opened)
    for name, view in views.items():
        np.testing.assert_array_equal(lazy[name].compute(), view)
        # The graph holds the way to the file and not its rows.
        assert len(pickle.dumps(lazy[name])) < view.nbytes / 2
