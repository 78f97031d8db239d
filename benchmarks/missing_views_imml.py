"""Methods of imml 0.6.0 for samples missing from views, in a Python that has imml.

`ImmlProcess` starts this file with that Python and asks it for one clustering after another: a line
of JSON with the path of an .npz file there, a line of JSON with labels, or an error, back. What is
run there needs NumPy and imml only.

Parameters are the defaults: of NEMO (Rappoport and Shamir, Bioinformatics 2019) n / 6 neighbors by
squared Euclidean distances; of EE-IMVC (Liu et al., TPAMI 2021) lambda_reg=1, qnorm=2 and k-means
from a single start. Columns are standardized by the samples that a view has, as in the comparison
of imml's authors; kernels come centered and with a unit diagonal, as EE-IMVC's authors have them.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np


class ImmlProcess:
    """A process of another Python that clusters by imml."""

    def __init__(self, python):
        if python is None:
            raise ValueError("pass --imml-python, the Python of an environment that has imml")
        command = [python, __file__]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def labels(self, method, parts, n_clusters, seed, are_kernels):
        """Return the clusters of views, or of kernels, with NaN for what is missing."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "parts.npz"
            np.savez(path, **{f"part {p}": part for p, part in enumerate(parts)})
            request = {"path": str(path), "method": method, "n_clusters": n_clusters}
            request |= {"seed": seed, "are_kernels": are_kernels}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["labels"]


def standardize(view):
    """Return columns of mean 0 and variance 1, without those that are constant."""
    deviations = np.nanstd(view, axis=0)
    varying = deviations > 0
    view = view[:, varying]
    return (view - np.nanmean(view, axis=0)) / deviations[varying]


def unchanged(K):
    """Return a kernel for a kernel: imml calls a function of the part."""
    return K


def cluster(request):
    """Return the labels that a method of imml finds."""
    from imml import cluster as methods

    with np.load(request["path"]) as file:
        parts = [file[name] for name in file.files]
    options = {"n_clusters": request["n_clusters"], "random_state": request["seed"]}
    if request["are_kernels"]:
        options["kernel"] = unchanged
    else:
        parts = [standardize(part) for part in parts]
    return getattr(methods, request["method"])(**options).fit_predict(parts)


def main():
    """Answer every line of the standard input by one of the standard output."""
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr  # what imml prints is no answer
    for line in sys.stdin:
        try:
            answer = {"labels": np.asarray(cluster(json.loads(line))).astype(int).tolist()}
        except Exception as error:  # whatever a method raises is its outcome
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
