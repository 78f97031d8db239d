"""What one fit takes, in the process that it runs in."""

import resource
import time
from typing import Any


def measured_fit(model: Any, views: Any, y: Any) -> dict[str, float]:
    """Fit a model, and return what it took and how near its clusters are to the classes."""
    from sklearn.metrics import adjusted_rand_score

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, started_processor = time.perf_counter(), time.process_time()
    model.fit(views)
    seconds = time.perf_counter() - started
    of_processor = time.process_time() - started_processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": round(seconds, 1),
        "seconds of the processor": round(of_processor, 1),
        "seconds of kernels": round(model.kernel_seconds_, 1),
        "seconds of solve": round(model.solve_seconds_, 1),
        "peak GB of the process": round(peak / 2**20, 2),
        "GB before the fit": round(before / 2**20, 2),
        "adjusted Rand index": round(float(adjusted_rand_score(y, model.labels_)), 3),
    }
