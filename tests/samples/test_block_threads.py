"""Blocks are looked at by several threads, and nothing depends on how many there are."""

import threading
import warnings

import numpy as np
import pytest
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

from mkclust.linalg.threads import n_threads, one_thread
from mkclust.samples.block_threads import look_at_all
from mkclust.samples.local import LocalBlocks

N = 900


@pytest.fixture
def blocks():
    rng = np.random.default_rng(0)
    return LocalBlocks({"a": rng.normal(size=(N, 40)), "b": rng.normal(size=(N, 30))}, 64)


def products(block, start):
    rows = np.hstack(list(block.values()))
    return rows.T @ rows, np.array([float(start)])


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_sums_and_rows_are_the_same_for_any_number_of_threads(blocks, threads):
    with threadpool_limits(1):
        expected = *blocks.total(products), blocks.map(lambda block, _: block["a"] @ block["a"][0])
    with threadpool_limits(threads):
        found = *blocks.total(products), blocks.map(lambda block, _: block["a"] @ block["a"][0])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_several_blocks_are_looked_at_together(blocks):
    meeting = threading.Barrier(3, timeout=60)

    def meet(block, start):
        if 0 < start <= 3 * 64:  # the first is looked at alone
            meeting.wait()
        return block["a"]

    with threadpool_limits(3):
        assert np.array_equal(blocks.map(meet), blocks.take(np.arange(N))["a"])


def test_results_that_are_too_large_to_wait_are_made_one_by_one():
    rows = np.random.default_rng(0).normal(size=(10, 5, 4))
    names = set()

    def look(block, start):
        names.add(threading.current_thread().name)
        return block["a"].T @ block["a"]

    with threadpool_limits(2):
        numbered = ((5 * i, {"a": part}) for i, part in enumerate(rows))
        parts = list(look_at_all(numbered, look, waiting_bytes=2 * 4 * 4 * 8 - 1))
    assert names == {threading.current_thread().name}
    assert [start for start, _ in parts] == list(range(0, 50, 5))
    np.testing.assert_allclose([part for _, part in parts], rows.transpose(0, 2, 1) @ rows)


def test_threads_have_the_settings_of_the_caller(blocks):
    def overflow(block, start):
        assert get_config()["assume_finite"]
        return np.exp(np.full(len(block["a"]), 1e4 if start else 0.0))

    with threadpool_limits(2), config_context(assume_finite=True):
        with np.errstate(over="raise"), pytest.raises(FloatingPointError):
            blocks.map(overflow)
        with np.errstate(over="ignore"), warnings.catch_warnings(action="error"):
            assert np.isinf(blocks.map(overflow)[64:]).all()


def test_the_limit_of_the_user_is_back_when_the_last_pass_ends():
    with threadpool_limits(2):
        with one_thread():
            assert n_threads() == 1
            with one_thread():
                assert n_threads() == 1
            assert n_threads() == 1
        assert n_threads() == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_passes_that_overlap_leave_the_limit_as_it_was(blocks, threads):
    with threadpool_limits(threads):
        callers = [threading.Thread(target=blocks.total, args=(products,)) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert n_threads() == threads
