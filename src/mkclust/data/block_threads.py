"""Blocks computed by several threads, with numbers that do not depend on how many."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from sklearn import config_context, get_config

from mkclust.linalg.threads import n_threads, one_thread

# More threads would take more memory than they save time.
MOST_THREADS = 16
# What the results of blocks may take that wait for their turn; larger ones are made one by one.
WAITING_BYTES = 256 << 20


def n_block_threads() -> int:
    """Return how many blocks are computed at the same time."""
    return min(n_threads(), MOST_THREADS)


def map_blocks(
    blocks: Iterator[tuple[int, Any]], function: Callable[[Any, int], Any]
) -> Iterator[tuple[int, Any]]:
    """Yield a function of blocks, in their order, with the number of the first sample.

    As many blocks are computed together as the user lets the linear algebra have threads, each on
    one of them. The first is computed alone: it shows how much memory a result takes.
    """
    threads = n_block_threads()
    if threads > 1:
        with one_thread():
            for start, block in blocks:
                part = function(block, start)
                yield start, part
                parts = part if isinstance(part, tuple) else (part,)
                if threads * sum(int(each.nbytes) for each in parts) <= WAITING_BYTES:
                    yield from _map_together(blocks, function, threads)
                break
    for start, block in blocks:
        yield start, function(block, start)


def _map_together(
    blocks: Iterator[tuple[int, Any]], function: Callable[[Any, int], Any], threads: int
) -> Iterator[tuple[int, Any]]:
    """Yield a function of blocks, of which several are computed together."""
    config, waiting = get_config(), deque[tuple[int, Future]]()

    def call(context: Any, block: Any, start: int) -> Any:
        with config_context(**config):  # a new thread has not the settings of the caller
            return context.run(function, block, start)

    pool = ThreadPoolExecutor(threads, "mkclust-block")
    try:
        for start, block in blocks:
            waiting.append((start, pool.submit(call, copy_context(), block, start)))
            del block
            if len(waiting) > threads:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
