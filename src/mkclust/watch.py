"""How far long work is, told to whoever watches, such as a terminal, and nobody else.

>>> found = []
>>> with watched_by(lambda done, total: found.append((done, total))):
...     for _ in steps("ab"):
...         pass
>>> found
[(0, 2), (1, 2), (2, 2)]
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
# Takes how many steps are done, and how many there are.
Watcher = Callable[[int, int], None]

_watcher: ContextVar[Watcher | None] = ContextVar("mkclust_watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher | None) -> Iterator[None]:
    """Tell a watcher of the steps that are taken within a block."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(done: int, total: int) -> None:
    """Tell the watcher, if there is one, how many steps are done."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(done, total)


def steps(items: Sequence[Item]) -> Iterator[Item]:
    """Yield items, and tell how many of them are done; steps within them are silent."""
    for done, item in enumerate(items):
        tell(done, len(items))
        token = _watcher.set(None)
        try:
            yield item
        finally:
            _watcher.reset(token)
    tell(len(items), len(items))
