"""Asking for memory before taking it."""

import json
import os
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from threadpoolctl import threadpool_limits

from mkclust import METHODS, KernelBank, SimpleMKKM
from mkclust.engine.basis import Basis
from mkclust.engine.missed import MAX_STEPS, N_PROBES
from mkclust.engine.relaxation import (
    KRYLOV_BLOCKS,
    MANY_KRYLOV_BLOCKS,
    block_width,
    block_width_on_accelerator,
)
from mkclust.explain.memory import estimate_memory
from mkclust.kernels import Linear, Nystroem
from mkclust.kernels import maps as features
from mkclust.linalg import memory, sums
from mkclust.linalg import memory_terms as terms
from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.methods import agreement, localize, room
from mkclust.samples import distances
from mkclust.stack import DenseStack, as_stack, dense, rows

INDUCTIVE = {name: m for name, m in METHODS.items() if hasattr(m, "predict")}
TRANSDUCTIVE = {name: m for name, m in METHODS.items() if name not in INDUCTIVE}
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes what an operating system would tell about itself."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")

    def tell(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return tell


@pytest.fixture
def free_memory(monkeypatch):
    """Return a function that says how much memory fits from now on, in bytes."""
    return lambda n_bytes: monkeypatch.setattr(memory, "available_bytes", lambda: n_bytes)


def test_this_machine_has_some_memory():
    there = available_bytes()
    assert there is None or there > 2**20


def test_free_memory_is_what_the_system_says(machine):
    machine(meminfo="MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n")
    assert available_bytes() == 4000 * 1024


def test_the_limit_of_a_control_group_counts(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="0::/mine\n",
        groups__mine__memory_dot_max="1000000\n",
        groups__mine__memory_dot_current="700000\n",
        groups__mine__memory_dot_stat="anon 600000\ninactive_file 100000\n",
    )
    assert available_bytes() == 400_000


def test_limits_around_a_control_group_count_too(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="0::/outer/inner\n",
        groups__outer__inner__memory_dot_max="max\n",
        groups__outer__inner__memory_dot_current="700000\n",
        groups__outer__memory_dot_max="2000000\n",
        groups__outer__memory_dot_current="700000\n",
    )
    assert available_bytes() == 1_300_000


def test_control_groups_of_the_first_version_are_read(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="5:cpu,cpuacct:/else\n4:memory:/on/the/host\n",
        groups__memory__memory_dot_limit_in_bytes="1000000\n",
        groups__memory__memory_dot_usage_in_bytes="300000\n",
        groups__memory__memory_dot_stat="inactive_file 1\ntotal_inactive_file 50000\n",
    )
    assert available_bytes() == 750_000


def test_a_group_over_its_limit_has_nothing_left(machine):
    machine(own="0::/\n", groups__memory_dot_max="10\n", groups__memory_dot_current="20\n")
    assert available_bytes() == 0


def test_without_word_of_free_memory_all_of_it_counts(machine, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_bytes() == 409_600


def test_where_nothing_is_known_nothing_is_refused(machine, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_bytes() is None
    require_memory(2**60, "the impossible", "stop")


def test_a_refusal_says_what_for_how_much_and_what_to_do(free_memory):
    free_memory(3 * 2**30)
    require_memory(3 * 2**30, "a fitting plan", "go on")
    message = r"a large plan takes 4\.5 GiB of memory, and 3\.0 GiB are there: use a smaller one"
    with pytest.raises(MemoryError, match=message):
        require_memory(int(4.5 * 2**30), "a large plan", "use a smaller one")


def test_small_amounts_are_told_in_smaller_units(free_memory):
    free_memory(2**20)
    with pytest.raises(MemoryError, match=r"takes 3\.0 MiB of memory, and 1\.0 MiB are there"):
        require_memory(3 * 2**20, "a small plan", "use a smaller one")


# Estimates -------------------------------------------------------------------------------------


def test_the_formulas_use_the_numbers_of_the_rooms_that_do_the_work():
    assert (terms.MEDIAN_ROWS, terms.MEDIAN_BLOCK) == (distances.MEDIAN_ROWS, distances.BLOCK_ROWS)
    assert (terms.STREAM_BYTES, terms.STREAM_ROWS) == (rows.BLOCK_BYTES, rows.FEWEST_ROWS)
    assert (terms.STREAM_SHARE, terms.STREAM_LEAST) == (rows.LARGEST_SHARE, rows.SMALL_BYTES)
    assert terms.FEATURE_MEDIAN_ROWS == features.MEDIAN_ROWS
    assert (terms.SEARCH_STEPS, terms.N_PROBES) == (MAX_STEPS, N_PROBES)
    krylov = (terms.KRYLOV_BLOCKS, terms.MANY_KRYLOV_BLOCKS)
    assert krylov == (KRYLOV_BLOCKS, MANY_KRYLOV_BLOCKS)
    assert terms.LOCAL_ROWS == localize.BLOCK_ROWS
    assert terms.STRIP_ROWS == sums.STRIP_ROWS
    compared = (terms.COMPARED_ROWS, terms.COMPARED_ROWS_ON_DEVICE)
    assert compared == (dense.OFF_DIAGONAL_ROWS, dense.GRAM_ROWS_ON_DEVICE)
    assert terms.JUDGED_SAMPLES == agreement.JUDGED_SAMPLES
    assert list(terms.PARTITIONS_HELD) == list(METHODS)
    assert {name: method.FOOTPRINT for name, method in METHODS.items()} == {
        name: name for name in METHODS
    }
    assert set(terms.OF_ENTRIES) == set(TRANSDUCTIVE)


@pytest.mark.parametrize("n", [50, 200, 201, 700, 5000])
def test_the_formulas_know_where_the_whole_space_is_used(n):
    for k in (1, 3, n // 10, n // 7, n // 6, n // 4, n - 1):
        fit = terms.Fit(n, 2, k)
        assert (block_width(n, k) == n) == fit.whole
        assert fit.whole or block_width(n, k) == fit.width
        there, wide = terms.Fit(n, 3, k, on_device=True), block_width_on_accelerator(n, k)
        assert (wide == n) == there.whole
        assert there.whole or wide == there.width


def test_the_formulas_know_the_size_of_a_basis():
    stack = as_stack(np.stack([np.eye(260), np.eye(260)]), center=False)
    for k in (2, 10, 30):
        fit = terms.Fit(260, 2, k)
        assert Basis(stack, k).capacity == fit.capacity


def views_of(n, n_views=2, width=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    centers, clusters = 3 * rng.normal(size=(4, width)), np.arange(n) % 4
    return [(centers[clusters] + rng.normal(size=(n, width))).astype(dtype) for _ in range(n_views)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("road", "n", "options"),
    [
        ("dense", 1500, {"kernels": KernelBank(**ONE_GAUSSIAN)}),
        ("on-the-fly", 1500, {"kernels": KernelBank(**ONE_GAUSSIAN, on_the_fly=True)}),
        ("features", 1500, {"approximation": Nystroem(300)}),
        ("features", 8000, {"approximation": Nystroem(100)}),
    ],
)
def test_a_fit_takes_about_as_much_as_was_estimated_and_not_more(road, n, options):
    views = views_of(n)
    model = SimpleMKKM(4, n_init=1, random_state=0, **options)
    tracemalloc.start()
    model.fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    count = getattr(options.get("approximation"), "n_components", 1)
    with threadpool_limits(1):  # several would each hold a part, if there were as many parts
        estimate = estimate_memory(n, 2, n_clusters=4, n_features=10, n_components=count)
    expected = estimate.n_bytes[road]
    assert peak <= expected
    assert expected - terms.OVERHEAD <= 1.7 * peak


# Every road, and both methods: they tell it by the same passes, under estimates of their own.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "road", "n", "n_views", "options"),
    [
        ("agreement-kkm", "dense", 1500, 2, {"kernels": KernelBank(**ONE_GAUSSIAN)}),
        ("anchored-mkkm", "dense", 1500, 2, {"kernels": KernelBank(**ONE_GAUSSIAN)}),
        ("anchored-mkkm", "dense", 300, 30, {"kernels": KernelBank(**ONE_GAUSSIAN)}),
        (
            "agreement-kkm",
            "on-the-fly",
            300,
            30,
            {"kernels": KernelBank(**ONE_GAUSSIAN, on_the_fly=True)},
        ),
        ("anchored-mkkm", "features", 1500, 20, {"approximation": Nystroem(10)}),
    ],
)
def test_telling_which_views_agree_takes_no_more_than_was_estimated(
    method, road, n, n_views, options
):
    views = views_of(n, n_views)
    model = METHODS[method](4, n_init=1, random_state=0, **options)
    tracemalloc.start()
    model.fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    count = getattr(options.get("approximation"), "n_components", 1)
    sizes = {"n_clusters": 4, "n_features": 5 * n_views, "n_components": count}
    expected = estimate_memory(n, n_views, method=method, **sizes).n_bytes[road]
    assert peak <= expected
    assert expected - terms.OVERHEAD <= 1.7 * peak


def test_larger_parts_of_kernels_on_a_device_are_compared_at_a_time():
    host, device = (
        terms.exact_terms("precomputed", 2000, 40, 3, itemsize=4, on_device=on_device)
        for on_device in (False, True)
    )
    assert "rows compared at a time" not in host
    assert device["rows compared at a time"] == 40 * 2000 * 8 * (2 * 1024 + 2)


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of a process"
)
def test_fits_in_processes_of_their_own_stay_below_the_estimate_and_near_it():
    script = Path(__file__).parents[2] / "benchmarks" / "memory.py"
    found = subprocess.run(
        [sys.executable, script, "--quick"], capture_output=True, text=True, check=True
    )
    rows = json.loads(found.stdout)
    assert {row["source"] for row in rows} == {"precomputed", "views", "on-the-fly", "features"}
    for row in rows:
        assert row["peak"] <= row["estimate"], row
        assert row["ratio"] <= 1.5, row


@pytest.mark.parametrize("method", METHODS)
def test_an_estimate_is_the_sum_of_terms_with_names(method):
    estimate = estimate_memory(2000, 3, n_clusters=500, method=method)
    for road, parts in estimate.terms.items():
        assert estimate.n_bytes[road] == sum(parts.values())
        assert parts["overhead"] == terms.OVERHEAD
        assert all(size >= 0 for size in parts.values())
    assert ("features" in estimate.terms) == (method in INDUCTIVE)
    beside = estimate.n_bytes["dense"] - estimate.n_bytes["precomputed"]
    made = estimate.terms["dense"]
    assert made["kernels"] == 3 * 2000**2 * 8
    assert beside == made["kernels"] + made["copy of the views"]


def test_many_clusters_take_eigendecompositions_at_full_size():
    few, many = (estimate_memory(3000, 2, n_clusters=k).terms["dense"] for k in (300, 600))
    assert "eigendecomposition" not in few
    assert many["eigendecomposition"] == 4 * 3000**2 * 8


def test_a_method_that_does_not_exist_has_no_estimate():
    with pytest.raises(ValueError, match="method='kmeans': choose one of simplemkkm, avg-kkm"):
        estimate_memory(100, 2, method="kmeans")


def test_the_first_road_that_fits_is_taken_from_exact_to_approximate():
    estimate = estimate_memory(50_000, 12, n_views=1)
    sizes = estimate.n_bytes
    assert list(sizes)[:4] == ["dense", "on-the-fly", "streamed", "features"]
    for road in ("dense", "on-the-fly", "streamed", "features"):
        assert estimate.road(sizes[road]) == road
    assert estimate.road(sizes["dense"] - 1) == "on-the-fly"
    assert estimate.road(10**6) is None


def test_features_take_memory_in_proportion_to_the_samples_and_kernels_to_their_square():
    small, large = (estimate_memory(n, 3).n_bytes for n in (10**6, 2 * 10**6))
    assert large["dense"] / small["dense"] == pytest.approx(4, rel=0.01)
    assert large["on-the-fly"] / small["on-the-fly"] == pytest.approx(2, rel=0.1)
    assert large["features"] < 2 * small["features"]


def test_a_larger_problem_never_takes_less():
    smaller = estimate_memory(30_000, 3)
    larger = [
        estimate_memory(40_000, 3),
        estimate_memory(30_000, 4),
        estimate_memory(30_000, 3, n_clusters=20),
        estimate_memory(30_000, 3, n_features=1000),
        estimate_memory(30_000, 3, n_components=500),
    ]
    for other in larger:
        assert all(size <= other.n_bytes[road] for road, size in smaller.n_bytes.items())
    single = estimate_memory(30_000, 3, dtype=np.float32).n_bytes
    assert all(single[road] <= size for road, size in smaller.n_bytes.items())


def test_an_estimate_prints_every_road_and_the_one_to_take():
    estimate = estimate_memory(50_000, 12, n_views=1)
    text = str(replace(estimate, available=16 * 2**30))
    for road in ("dense", "on-the-fly", "streamed", "features", "dask client", "dask worker"):
        assert road in text
    assert "There are 16.0 GiB; take on-the-fly: kernels='on-the-fly'." in text
    assert "none of these fits" in str(replace(estimate, available=2**20))


def test_where_memory_is_unknown_every_road_fits():
    estimate = replace(estimate_memory(10**7, 12), available=None)
    assert estimate.road() == "dense"
    assert "nobody knows" in str(estimate)


@pytest.mark.parametrize("wrong", [{"n_clusters": 0}, {"n_components": 1.5}, {"n_workers": True}])
def test_counts_that_are_none_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.*whole number"):
        estimate_memory(100, 2, **wrong)
    with pytest.raises(ValueError, match="float32 or float64"):
        estimate_memory(100, 2, dtype="int8")


# Refusals --------------------------------------------------------------------------------------


@pytest.fixture
def nothing_starts(monkeypatch):
    """Make everything that a refused fit must not reach fail."""

    def reached(*_, **__):
        raise AssertionError("a fit that cannot fit was started")

    monkeypatch.setattr(KernelBank, "fit_transform", reached)
    monkeypatch.setattr("mkclust.methods.training.compress", reached)


def test_a_bank_of_many_samples_is_refused_with_the_figure_and_the_road(
    free_memory, nothing_starts
):
    free_memory(64 * 2**30)
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    # Twelve kernels of 50,000 samples and their mix, 13 * 50000^2 * 8 bytes, and thin matrices.
    message = r"holding 12 kernels of 50000 samples and finding 5 clusters takes 242\.9 GiB.*64\.0"
    with pytest.raises(MemoryError, match=message + ".*on_the_fly=True.*approximation=Nystroem"):
        SimpleMKKM(5).fit(X)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize("on_the_fly", [True, False])
def test_views_are_refused_by_the_very_figures_of_the_estimate(name, dtype, k, on_the_fly):
    model, views = METHODS[name](k), views_of(260, dtype=dtype)
    bank = KernelBank(**ONE_GAUSSIAN, on_the_fly=on_the_fly)
    estimate = estimate_memory(260, 2, n_clusters=k, n_features=10, dtype=dtype, method=name)
    needed = estimate.n_bytes["on-the-fly" if on_the_fly else "dense"]
    room.require_room_for_views(model, bank, views, available=needed)
    advice = "needs the entries.*fewer samples" if name in TRANSDUCTIVE else "on_the_fly=True"
    if name in INDUCTIVE and on_the_fly:
        advice = "computed on the fly,.*approximation=Nystroem"
    with pytest.raises(MemoryError, match=f"2 kernels of 260 samples|{advice}") as refused:
        room.require_room_for_views(model, bank, views, available=needed - 1)
    assert f"{k} clusters" in str(refused.value)
    assert re.search(advice, str(refused.value))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("streamed", [True, False])
def test_kernels_are_refused_by_the_very_figures_of_the_estimate(name, dtype, streamed):
    kernels = np.stack([view @ view.T for view in views_of(60, dtype=dtype)])
    stack = as_stack(kernels, streamed=streamed)
    estimate = estimate_memory(60, 2, n_clusters=30, dtype=dtype, method=name)
    needed = estimate.n_bytes["streamed" if streamed else "precomputed"]
    model = METHODS[name](30)
    room.require_room_beside_kernels(model, stack, available=needed)
    with pytest.raises(MemoryError, match="30 clusters by 2 kernels of 60 samples, beside"):
        room.require_room_beside_kernels(model, stack, available=needed - 1)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_kernels_that_leave_no_room_are_refused_before_they_are_solved(
    method, monkeypatch, free_memory
):
    free_memory(terms.OVERHEAD)
    monkeypatch.setattr(method, "_solve", lambda *_: 1 / 0)
    with pytest.raises(MemoryError, match="beside the kernels themselves"):
        method(3, kernels="precomputed").fit(np.stack([view @ view.T for view in views_of(60)]))


def test_sparse_kernels_need_no_room_for_a_dense_mix():
    n = 20_000
    stack = as_stack([scipy.sparse.eye_array(n, format="csr")] * 2, center=False, validate=False)
    room.require_room_beside_kernels(SimpleMKKM(3), stack, available=8 * n**2 // 4)


def test_more_clusters_than_samples_are_no_question_of_memory():
    with pytest.raises(ValueError, match="more clusters than samples"):
        SimpleMKKM(10**6).fit(views_of(60))


def test_kernels_on_the_fly_are_taken_where_the_same_kernels_held_are_refused():
    view, model = views_of(3000)[0], SimpleMKKM(4)
    estimate = estimate_memory(3000, 12, n_clusters=4, n_features=5, n_views=1)
    there = estimate.n_bytes["dense"] - 1
    assert there > 5 * estimate.n_bytes["on-the-fly"]
    room.require_room_for_views(model, KernelBank(on_the_fly=True), view, available=there)
    with pytest.raises(MemoryError):
        room.require_room_for_views(model, KernelBank(), view, available=there)


def test_a_refused_fit_leaves_an_earlier_one_as_it_was(free_memory):
    model = SimpleMKKM(4, random_state=0).fit(views_of(80))
    labels = model.labels_
    free_memory(10)
    with pytest.raises(MemoryError):
        model.fit(views_of(90))
    assert model.labels_ is labels


def test_a_bank_by_itself_refuses_what_it_cannot_hold(monkeypatch, free_memory):
    views = views_of(50)
    bank = KernelBank(**ONE_GAUSSIAN).fit(views)
    free_memory(2 * 50 * 50 * 8 - 1)
    monkeypatch.setattr("mkclust.kernels.learned_view.median_distance", lambda *_: 1 / 0)
    with pytest.raises(MemoryError, match="2 kernels of 50 x 50 entries.*on_the_fly=True"):
        KernelBank(**ONE_GAUSSIAN).fit_transform(views)
    with pytest.raises(MemoryError, match="fewer new samples at a time"):
        bank.transform(views)
    assert bank.transform([view[:20] for view in views]).shape == (2, 20, 50)


def test_a_bank_announces_the_kernels_it_then_makes():
    pd = pytest.importorskip("pandas")
    views = views_of(30, dtype=np.float32)
    for given in (views, views[0], [views[0], views[1].astype(float)], views[0].tolist()):
        bank = KernelBank()
        kernels = bank.fit_transform(given)
        assert bank.announce(given) == (len(kernels), kernels.shape[1], kernels.dtype)
    assert KernelBank().announce([pd.DataFrame(views[0])])[2] == np.float32
    assert KernelBank().announce([pd.DataFrame(views[0]).astype(float)])[2] == np.float64


@pytest.mark.parametrize(
    ("approximation", "advice"),
    [(Nystroem(20_000), "smaller n_components"), (Linear(), "approximation=Nystroem")],
)
def test_products_of_too_many_features_are_refused(
    approximation, advice, free_memory, nothing_starts
):
    free_memory(8 * 2**30)
    views = [np.broadcast_to(np.ones(1), (30_000, 20_000))] * 2
    # Two matrices a view and three more, each of the products of 40,000 columns.
    with pytest.raises(MemoryError, match=rf"40000 features of 2 views.*83\.4 GiB.*{advice}"):
        SimpleMKKM(3, approximation=approximation).fit(views)


def test_an_embedding_that_does_not_fit_is_sent_to_dask(free_memory, nothing_starts):
    da = pytest.importorskip("dask.array")
    free_memory(8 * 2**30)
    model = SimpleMKKM(10, approximation=Nystroem(10))
    with pytest.raises(MemoryError, match="embedding of 1000000000 samples.*dask arrays"):
        model.fit([np.broadcast_to(np.ones(1), (10**9, 2))])
    with pytest.raises(AssertionError, match="was started"):
        model.fit([da.ones((10**9, 2), chunks=(10**8, 2))])


@pytest.fixture
def dataset(tmp_path):
    """Return a dataset of two kernels of forty samples in a file, the second indefinite."""
    h5py = pytest.importorskip("h5py")
    X = views_of(40)[0]
    kernels = np.stack([X @ X.T, X @ X.T - 30 * np.eye(40)])
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        yield file.create_dataset("K", data=kernels)


@pytest.mark.parametrize("options", [{"psd": "clip"}, {"psd": "shift"}, {"streamed": False}])
def test_kernels_in_files_that_must_be_loaded_are_refused_before_they_are(
    options, dataset, monkeypatch, free_memory
):
    free_memory(3 * 40**2 * 8 - 1)
    monkeypatch.setattr("mkclust.stack.door._collect", lambda *_: 1 / 0)
    message = "needs the kernels in memory, and loading 2 kernels of 40 samples.*streamed=None"
    with pytest.raises(MemoryError, match=message):
        as_stack(dataset, **options)


def test_kernels_in_files_are_loaded_to_be_repaired_where_they_fit(dataset, monkeypatch):
    # Without repair they would be streamed: they take more than a quarter of what is there.
    monkeypatch.setattr("mkclust.stack.door.available_bytes", lambda: 4 * 40**2 * 8)
    stack = as_stack(dataset, psd="clip")
    assert isinstance(stack, DenseStack)
    np.testing.assert_array_equal(stack.kernels[0].matrix, dataset[0])
    assert np.linalg.eigvalsh(stack.kernel(1).dense()).min() > -1e-9


def test_a_repair_that_does_not_fit_is_refused_and_a_cheaper_one_named(dataset, free_memory):
    free_memory(5 * 40**2 * 8 - 1)
    with pytest.raises(MemoryError, match="indefinite.*psd='shift'"):
        as_stack(dataset[:], psd="clip")
    assert as_stack(dataset[:], psd="shift").repaired
