"""Relaxed partitions that wait on the disk for further repetitions."""

import contextlib
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Solved:
    """A relaxed partition, and what is to be known of its solve."""

    rows: np.ndarray
    stability: float | None
    record: dict[str, Any]


def remembered(path: str) -> Solved | None:
    """Return the partition that an earlier task has left, if there is one."""
    if not path or not os.path.exists(path):
        return None
    with np.load(path, allow_pickle=False) as kept:
        record = json.loads(str(kept["record"]))
        return Solved(kept["rows"], float(kept["stability"]), record)


def remember(path: str, solved: Solved) -> None:
    """Leave a partition for tasks to come, completely or not at all."""
    if not path or os.path.exists(path):
        return
    own = f"{path}.{os.getpid()}.tmp"
    # Without it the next task solves again; a full disk is told where rows are written.
    with contextlib.suppress(OSError):
        with open(own, "wb") as file:
            record = np.array(json.dumps(solved.record))
            np.savez(file, rows=solved.rows, stability=np.array(solved.stability), record=record)
        os.replace(own, path)
