"""Steps of what takes long, told to whoever wants to know."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

# Called with the number of steps done, their total, and what they are; None hears nothing.
StepCallback = Callable[[int, int, str], None] | None
Item = TypeVar("Item")


def counted(items: Sequence[Item], progress: StepCallback, text: str) -> Iterator[Item]:
    """Yield items, telling a callback before each how many are done."""
    for done, item in enumerate(items):
        if progress is not None:
            progress(done, len(items), text)
        yield item
