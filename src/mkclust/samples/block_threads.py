"""Blocks that are looked at by several threads, with numbers that do not depend on how many."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any

from sklearn import config_context, get_config

from mkclust.linalg.threads import n_threads, one_thread
from mkclust.samples.blocks import BlockFunction
from mkclust.types import Array

# More threads would take more memory than time is left to win.
MOST_THREADS = 16
# What the results of blocks may take that wait for their turn; larger ones are made one by one.
WAITING_BYTES = 256 << 20

NumberedBlock = tuple[int, dict[str, Array]]


def n_block_threads() -> int:
    """Return how many blocks are looked at together."""
    return min(n_threads(), MOST_THREADS)


def look_at_all(
    blocks: Iterator[NumberedBlock], look: BlockFunction, waiting_bytes: int = WAITING_BYTES
) -> Iterator[tuple[int, Any]]:
    """Yield what `look` makes of blocks, in their order, with the number of the first sample.

    As many blocks are looked at together as the user lets the linear algebra have threads, each on
    one of them. The first is looked at alone: it shows how much memory a result takes.

    Parameters
    ----------
    blocks : iterator of (int, dict of str to array)
        The number of the first sample of each block, and its views by name.
    look : callable
        What is done to a block.
    waiting_bytes : int, default=256 MiB
        What results may take that wait for their turn; larger ones are made one by one, each with
        all threads.

    Yields
    ------
    start : int
        The number of the first sample of a block.
    part : array or tuple of arrays
        What `look` makes of it.
    """
    threads = n_block_threads()
    if threads > 1:
        with one_thread():
            for start, block in blocks:
                part = look(block, start)
                yield start, part
                if threads * _n_bytes(part) <= waiting_bytes:
                    yield from _look_together(blocks, look, threads)
                break
    for start, block in blocks:
        yield start, look(block, start)


def _look_together(
    blocks: Iterator[NumberedBlock], look: BlockFunction, threads: int
) -> Iterator[tuple[int, Any]]:
    """Yield what `look` makes of blocks, several being looked at together."""
    config, waiting = get_config(), deque[tuple[int, Future]]()
    pool = ThreadPoolExecutor(threads, "mkclust-block")
    try:
        for start, block in blocks:
            waiting.append((start, pool.submit(_look, config, copy_context(), look, block, start)))
            del block
            if len(waiting) > threads:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _look(
    config: dict[str, Any],
    context: Context,
    look: BlockFunction,
    block: dict[str, Array],
    start: int,
) -> Any:
    """Look at a block with the settings of the caller, which a new thread does not have."""
    with config_context(**config):
        return context.run(look, block, start)


def _n_bytes(part: Any) -> int:
    """Return how much memory what was made of a block takes."""
    parts = part if isinstance(part, tuple) else (part,)
    return sum(int(each.nbytes) for each in parts)
