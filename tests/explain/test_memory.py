"""Asking for memory before taking it."""

import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from helpers.kernels import ONE_GAUSSIAN
from mkclust import METHODS, KernelBank, SimpleMKKM
from mkclust.explain.memory import estimate_memory
from mkclust.kernels import Linear, Nystroem
from mkclust.linalg import memory
from mkclust.linalg.memory import available_bytes, require_memory
from mkclust.stack import as_stack


@pytest.fixture
def free_memory(monkeypatch):
    monkeypatch.setattr(memory, "LITTLE", 0)
    return lambda n_bytes: monkeypatch.setattr(
        memory, "available_bytes", lambda: n_bytes
    )


@pytest.fixture
def nothing_starts(monkeypatch):
    def reached(*_, **__):
        raise AssertionError("a fit that does not fit was started")

    for method in METHODS.values():
        monkeypatch.setattr(method, "_solve", reached)
    monkeypatch.setattr(KernelBank, "fit_transform", reached)
    monkeypatch.setattr("mkclust.fit.from_features.compress", reached)


def views_of(n, n_views=2, width=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    centers, clusters = 3 * rng.normal(size=(4, width)), np.arange(n) % 4
    return [
        (centers[clusters] + rng.normal(size=(n, width))).astype(dtype)
        for _ in range(n_views)
    ]


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("", {}, 4_096_000),
        ("0::/a\n", {"a/memory.max": "9", "a/memory.current": "70"}, 0),
        (
            "0::/a/b\n",
            {
                "a/b/memory.max": "max",
                "a/memory.max": "900",
                "a/memory.current": "700",
                "a/memory.stat": "anon 600\ninactive_file 100\n",
            },
            300,
        ),
    ],
    ids=["system", "over its limit", "group around it"],
)
def test_control_groups_limit_free_memory(
    group, files, expected, tmp_path, monkeypatch
):
    for name in ("MEMINFO", "OWN_GROUPS", "GROUPS"):
        monkeypatch.setattr(memory, name, tmp_path / name)
    (tmp_path / "MEMINFO").write_text("MemTotal: 9000 kB\nMemAvailable:    4000 kB\n")
    (tmp_path / "OWN_GROUPS").write_text(group)
    for name, text in files.items():
        path = tmp_path / "GROUPS" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_bytes() == expected


def test_if_free_memory_is_unknown_all_memory_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "none")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_bytes() == 409_600
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_bytes() is None
    require_memory(2**60, "the impossible", "stop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "strategy", "options"),
    [
        ("simplemkkm", "dense", {}),
        ("lf-mvc", "dense", {}),
        ("lkam", "dense", {}),
        ("simplemkkm", "on-the-fly", {}),
        ("simplemkkm", "features", {"approximation": Nystroem(150)}),
    ],
)
def test_an_estimate_is_within_a_factor_of_two_of_the_peak(method, strategy, options):
    n, m = 1500, 4
    views = views_of(n, m)
    if not options:
        bank = KernelBank(**ONE_GAUSSIAN, on_the_fly=strategy == "on-the-fly")
        options = {"kernels": bank}
    model = METHODS[method](4, n_init=1, random_state=0, **options)
    tracemalloc.start()
    model.fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    sizes = {"n_clusters": 4, "n_features": 5 * m, "n_components": 150}
    expected = estimate_memory(n, m, method=method, **sizes).n_bytes[strategy]
    assert peak / 2 <= expected <= 2 * peak


def test_the_first_strategy_that_fits_is_named():
    estimate = estimate_memory(50_000, 12, n_views=1)
    with pytest.raises(ValueError, match="n_clusters"):
        estimate_memory(100, 2, n_clusters=0)
    for name, n_bytes in list(estimate.n_bytes.items())[:4]:
        assert estimate.strategy(n_bytes) == name
    assert estimate.strategy(10**6) is None
    assert replace(estimate, available=None).strategy() == "dense"
    assert estimate_memory(50_001, 12).strategy(available=16 * 2**30) == "features"
    assert (
        list(estimate_memory(900, 2, method="onkc").n_bytes)
        == list(estimate.n_bytes)[:3]
    )


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_that_does_not_fit_is_refused_with_its_size(
    name, free_memory, nothing_starts
):
    model, views = METHODS[name](30), views_of(260)
    needed = estimate_memory(260, 2, n_clusters=30, n_features=10, method=name).n_bytes[
        "dense"
    ]
    free_memory(needed)
    with pytest.raises(AssertionError, match="was started"):
        model.set_params(kernels=KernelBank(**ONE_GAUSSIAN)).fit(views)
    free_memory(needed - 1)
    advice = "SimpleMKKM" if model.NEEDS_ENTRIES else "on-the-fly"
    with pytest.raises(MemoryError, match=rf"{needed / 2**20:.1f} MiB.*{advice}"):
        model.fit(views)
    free_memory(2**20)
    with pytest.raises(MemoryError, match="in addition to the kernels"):
        model.set_params(kernels="precomputed").fit(
            np.stack([view @ view.T for view in views])
        )


def test_features_are_named_first_for_samples_that_are_too_many_for_exact_kernels(
    free_memory,
):
    free_memory(2**36)
    view = np.random.default_rng(0).normal(size=(300_000, 1))
    for method, others in (
        (SimpleMKKM, "on-the-fly"),
        (METHODS["lkam"], "fewer samples"),
    ):
        with pytest.raises(
            MemoryError, match=rf"approximation=Nystroem.*, or .*{others}"
        ):
            method(4).fit({"a": view, "b": view[::-1]})


@pytest.mark.slow
def test_kernels_on_the_fly_fit_if_held_ones_are_refused(free_memory, nothing_starts):
    view, sizes = views_of(3000)[0], {"n_clusters": 4, "n_features": 5, "n_views": 1}
    free_memory(estimate_memory(3000, 12, **sizes).n_bytes["dense"] // 5)
    with pytest.raises(MemoryError, match="kernels='on-the-fly'"):
        SimpleMKKM(4).fit(view)
    with pytest.raises(AssertionError, match="was started"):
        SimpleMKKM(4, kernels="on-the-fly").fit(view)


def test_sparse_kernels_need_no_memory_for_a_dense_mix(free_memory, nothing_starts):
    n = 20_000
    free_memory(8 * n**2 // 4)
    with pytest.raises(AssertionError, match="was started"):
        SimpleMKKM(3, center=False, kernels="precomputed").fit(
            [scipy.sparse.eye_array(n, format="csr")] * 2
        )


@pytest.mark.slow
@pytest.mark.parametrize("approximation", [Nystroem(20_000), Linear()])
def test_products_of_too_many_features_are_refused(
    approximation, free_memory, nothing_starts
):
    free_memory(8 * 2**30)
    views = [np.broadcast_to(np.ones(1), (30_000, 20_000))] * 2
    # Two matrices per view and three more, each of the products of 40,000 columns.
    with pytest.raises(MemoryError, match=r"40000 features of 2 views.*83\.4 GiB"):
        SimpleMKKM(3, approximation=approximation).fit(views)


def test_kernels_in_files_are_loaded_to_be_repaired_if_they_fit(
    tmp_path, monkeypatch, free_memory
):
    h5py = pytest.importorskip("h5py")
    X = views_of(40)[0]
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        # The second kernel is indefinite.
        dataset = file.create_dataset(
            "K", data=np.stack([X @ X.T, X @ X.T - 30 * np.eye(40)])
        )
        # Without repair they would be streamed: they take more than a quarter of what
        # is there.
        monkeypatch.setattr(
            "mkclust.stack.build.available_bytes", lambda: 4 * 40**2 * 8
        )
        repaired = as_stack(dataset, psd="shift").kernels
        assert repaired[0].storage == "dense"
        assert repaired[1].standardization.is_repaired
        free_memory(3 * 40**2 * 8 - 1)
        for options in ({"psd": "shift"}, {"streamed": False}):
            with pytest.raises(
                MemoryError, match="2 kernels of 40 samples.*streamed=None"
            ):
                as_stack(dataset, **options)
