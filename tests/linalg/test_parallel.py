"""Threads: who has them, and loops on all of them."""

import os
import threading

import numpy as np
import pytest
from mkclust.linalg.parallel import for_each, thin_product

from mkclust.linalg import parallel, threads
from mkclust.linalg.threads import (
    are_ours,
    n_threads,
    single_threaded_products,
    threads_for,
    threads_for_decomposition,
    threads_of_scipy,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(parallel, "n_threads", lambda: 3)


def limits():
    """Return how many threads each library may have."""
    return [pool.num_threads for pool in threads._thread_pools()]


def test_every_item_is_handled_once_on_several_threads(three_threads):
    handled, seen, barrier = [], set(), threading.Barrier(3, timeout=30)

    def handle(item):
        if item < 3:
            barrier.wait()  # passed only if three threads are at it
        seen.add(threading.get_ident())
        handled.append(item)

    for_each(range(50), handle)
    assert sorted(handled) == list(range(50))
    assert len(seen) == 3


def test_loops_inside_of_loops_stay_on_one_thread(three_threads):
    rows = {}

    def outer(item):
        inside = set()
        for_each(range(10), lambda _: inside.add(threading.get_ident()))
        rows[item] = inside == {threading.get_ident()}

    for_each(range(6), outer)
    assert rows == dict.fromkeys(range(6), True)


def test_an_error_on_any_thread_is_raised_and_the_next_loop_runs(three_threads):
    def handle(item):
        if item == 7:
            raise ZeroDivisionError("of item 7")

    for _ in range(20):
        with pytest.raises(ZeroDivisionError, match="of item 7"):
            for_each(range(30), handle)
    done = []
    for_each(range(5), done.append)
    assert sorted(done) == list(range(5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own(three_threads):
    for_each(range(9), lambda item: None)
    child = os.fork()
    if child == 0:  # pragma: no cover
        done = []
        for_each(range(9), done.append)
        os._exit(0 if sorted(done) == list(range(9)) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("b", "n"), [(1, 3000), (7, 1001), (30, 640)])
def test_a_product_in_parts_is_the_product(b, n, dtype, three_threads):
    rng = np.random.default_rng(0)
    thin, matrix = rng.normal(size=(b, n)).astype(dtype), rng.normal(size=(n, n)).astype(dtype)
    with threads_for(n):
        assert are_ours()
        found = thin_product(thin, matrix)
    assert found.dtype == dtype
    tolerance = 1e-3 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, thin.astype(float) @ matrix, atol=tolerance)


@pytest.mark.parametrize("n", [100, 2000, 20_000])
def test_limits_are_those_of_the_user_again_in_the_end(n):
    before = limits(), n_threads()
    with threads_for(n):
        assert are_ours() == (n == 2000)
        with threads_for_decomposition(), single_threaded_products():
            assert set(limits()) == {1}
            assert n_threads() == 1
        with threads_of_scipy():
            pass
        with pytest.raises(KeyError), threads_for(700):
            raise KeyError
    assert (limits(), n_threads()) == before


def test_limits_asked_for_by_many_threads_are_taken_back():
    before = limits()

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            with threads_for(int(rng.choice([100, 2000, 20_000]))):
                if rng.random() < 0.5:
                    with threads_for_decomposition():
                        pass

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert limits() == before
    assert threads._limits.holder is None
