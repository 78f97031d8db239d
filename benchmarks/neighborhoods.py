"""Shared neighborhoods of many samples: time, memory and accuracy, beside features of as many.

Every fit runs in a process of its own. ``python benchmarks/neighborhoods.py`` writes
``benchmarks/results/neighborhoods.json``, after every fit what is known by then.
``--samples 10000`` tries it out on fewer, ``--methods SimpleMKKM`` replaces the figures of one
method. Where others use the machine, too, seconds of the processor tell more than those of the
clock.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from measured_fit import measured_fit

METHODS = ("AverageKKM", "AgreementKKM", "SimpleMKKM")
ROADS = ("neighbors", "Nystroem")
K, N_COLUMNS, N_VIEWS, NEIGHBORS, LANDMARKS = 20, 50, 3, 30, 200
TARGET = Path(__file__).parent / "results" / "neighborhoods.json"


def make_views(n: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return three views of blobs, in each of which every two clusters lie in one place."""
    rng = np.random.default_rng(seed)
    y, views = rng.integers(K, size=n), {}
    for number in range(N_VIEWS):
        places = rng.permutation(K) // 2
        centers = rng.normal(size=(K // 2, N_COLUMNS))[places]
        views[f"view {number}"] = centers[y] + 0.7 * rng.normal(size=(n, N_COLUMNS))
    return views, y


def fit(method: str, road: str, n: int) -> dict[str, float]:
    """Fit one model in this process, and return what it took."""
    import mkclust
    from mkclust.kernels import Nystroem

    views, y = make_views(n)
    options = {"neighbors": NEIGHBORS} if road == "neighbors" else {}
    if road == "Nystroem":
        options = {"approximation": Nystroem(n_components=LANDMARKS)}
    model = getattr(mkclust, method)(n_clusters=K, random_state=0, **options)
    return measured_fit(model, views, y)


def main() -> None:
    """Run every fit in a process of its own, and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--fit", nargs=2, metavar=("METHOD", "ROAD"))
    parser.add_argument("--to", type=Path, default=TARGET)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--roads", nargs="+", default=ROADS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(*arguments.fit, arguments.samples)))
        return
    setting = {
        "samples": arguments.samples,
        "views": N_VIEWS,
        "columns": N_COLUMNS,
        "clusters": K,
        "neighbors": NEIGHBORS,
        "landmarks": LANDMARKS,
    }
    known = json.loads(arguments.to.read_text()) if arguments.to.exists() else {}
    fits = known["fits"] if known.get("setting") == setting else {}
    for road in arguments.roads:
        for method in arguments.methods:
            command = [sys.executable, "-W", "ignore", __file__, "--fit", method, road]
            command += ["--samples", str(arguments.samples)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            figures = fits.setdefault(method, {})
            figures[road] = json.loads(done.stdout)
            print(method, road, figures[road], flush=True)
            if set(ROADS) <= set(figures):
                near, features = (figures[each]["seconds of the processor"] for each in ROADS)
                figures["times as long as with features"] = round(near / features, 1)
                print(method, figures["times as long as with features"], "times", flush=True)
            text = json.dumps({"setting": setting, "fits": fits}, indent=2)
            arguments.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
