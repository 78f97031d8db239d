"""Where the time of a fit goes: every second is counted once."""

import time
from typing import Literal

Part = Literal["kernel", "check", "solve", "agreement", "label", "alignment"]
# The parts of a fit, in the order in which they come.
PARTS: tuple[Part, ...] = ("kernel", "check", "solve", "agreement", "label", "alignment")


class Stopwatch:
    """The seconds of each part of a fit, which follow one another without a gap."""

    def __init__(self) -> None:
        self.seconds: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        self._part: Part = PARTS[0]
        self._since = time.perf_counter()

    def switch(self, part: Part) -> None:
        """Begin a part, where the last one ends."""
        now = time.perf_counter()
        self.seconds[self._part] += now - self._since
        self._part, self._since = part, now

    def attributes(self) -> dict[str, float]:
        """Return the seconds up to now as attributes of a model, with their sum."""
        self.switch(self._part)
        shown = {f"{part}_seconds_": seconds for part, seconds in self.seconds.items()}
        return shown | {"fit_seconds_": sum(self.seconds.values())}
