"""What a result, and the time it takes, may depend on."""

import os
import platform
from pathlib import Path

import numpy
import scipy
import sklearn

from mkclust.version import __version__


def versions() -> str:
    """Return what a result may depend on, in a line."""
    told = [f"{module.__name__} {module.__version__}" for module in (numpy, scipy, sklearn)]
    return ", ".join([f"mkclust {__version__}", *told, f"python {platform.python_version()}"])


def machine() -> str:
    """Return what times depend on, in a line."""
    return f"{platform.system()} {platform.machine()}, {_model()}{n_cores()} cores"


def _model() -> str:
    """Return the name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, " if names else ""


def n_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
