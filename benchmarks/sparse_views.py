"""A wide sparse view beside a dense one, of many samples: time, memory and accuracy by features.

Every fit runs in a process of its own. ``python benchmarks/sparse_views.py`` writes
``benchmarks/results/sparse_views.json``, after every fit what is known by then. ``--samples 10000``
tries it out on fewer, ``--methods SimpleMKKM`` replaces the figures of one method. The sparse view
would take 40 GB if it were written out.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from measured_fit import measured_fit

METHODS = ("SimpleMKKM", "AgreementKKM")
K, N_WORDS, WORDS_A_SAMPLE, N_COLUMNS, LANDMARKS = 10, 50_000, 50, 50, 200
# Of the words of a sample, so many are of its own topic's, and a topic has so many.
TOPIC_SHARE, TOPIC_WORDS = 0.6, 500
TARGET = Path(__file__).parent / "results" / "sparse_views.json"


def make_views(n: int, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Return counts of words and a view of blobs, in each of which two clusters lie in one place.

    In the words, clusters 0 and 1 have one topic, and so on; in the blobs, 1 and 2 have one place.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    topics = rng.integers(N_WORDS, size=(K // 2, TOPIC_WORDS))
    words = rng.integers(N_WORDS, size=(n, WORDS_A_SAMPLE))
    is_of_topic = rng.random(words.shape) < TOPIC_SHARE
    of_topic = topics[y // 2][np.arange(n)[:, None], rng.integers(TOPIC_WORDS, size=words.shape)]
    words[is_of_topic] = of_topic[is_of_topic]
    ends = np.arange(0, words.size + 1, WORDS_A_SAMPLE)
    counts = scipy.sparse.csr_array((np.ones(words.size), words.ravel(), ends), (n, N_WORDS))
    counts.sum_duplicates()
    centers = rng.normal(size=(K // 2, N_COLUMNS))[(y + 1) % K // 2]
    return {"words": counts, "blobs": centers + 0.7 * rng.normal(size=(n, N_COLUMNS))}, y


def fit(method: str, n: int) -> dict[str, float]:
    """Fit one model in this process, and return what it took."""
    import mkclust
    from mkclust.kernels import Nystroem

    views, y = make_views(n)
    approximation = Nystroem(n_components=LANDMARKS)
    model = getattr(mkclust, method)(K, approximation=approximation, random_state=0)
    return measured_fit(model, views, y)


def main() -> None:
    """Run every fit in a process of its own, and write what they took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--fit", metavar="METHOD")
    parser.add_argument("--to", type=Path, default=TARGET)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit, arguments.samples)))
        return
    setting = {
        "samples": arguments.samples,
        "columns of the sparse view": N_WORDS,
        "entries of a sparse row": WORDS_A_SAMPLE,
        "columns of the dense view": N_COLUMNS,
        "clusters": K,
        "landmarks": LANDMARKS,
    }
    known = json.loads(arguments.to.read_text()) if arguments.to.exists() else {}
    fits = known["fits"] if known.get("setting") == setting else {}
    for method in arguments.methods:
        command = [sys.executable, "-W", "ignore", __file__, "--fit", method]
        command += ["--samples", str(arguments.samples)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        fits[method] = json.loads(done.stdout)
        print(method, fits[method], flush=True)
        text = json.dumps({"setting": setting, "fits": fits}, indent=2)
        arguments.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
