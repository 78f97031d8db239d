"""Steps of what takes long, told to whoever wants to know."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

# Called with the number of steps done, their total, and what they are; None hears nothing.
StepCallback = Callable[[int, int, str], None] | None
Item = TypeVar("Item")


def counted(
    items: Sequence[Item], progress: StepCallback, text: str, begin: int = 0
) -> Iterator[Item]:
    """Yield items, the first of which may be done, telling a callback before each how many are."""
    for done, item in enumerate(items[begin:], start=begin):
        if progress is not None:
            progress(done, len(items), text)
        yield item


class Steps:
    """Count steps of several kinds together, for one callback that hears of all of them.

    Parameters
    ----------
    progress : callable or None
        Who is told.
    total : int
        How many steps there are in all, at most.
    """

    def __init__(self, progress: StepCallback, total: int):
        self._progress, self._total, self._done = progress, total, 0

    def tell(self, text: str) -> None:
        """Say what the next step is, and count it."""
        if self._progress is not None:
            self._progress(self._done, self._total, text)
        self._done += 1

    def part(self, n_steps: int) -> StepCallback:
        """Return a callback for so many of the steps, which are counted whether taken or not."""
        before, progress = self._done, self._progress
        self._done += n_steps
        if progress is None:
            return None
        return lambda done, _, text: progress(before + done, self._total, text)
