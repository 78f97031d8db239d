"""Methods of imml 0.6.0 for samples missing from views, in a Python that has NumPy and imml.

    python missing_views_imml.py METHOD N_CLUSTERS SEED views|kernels < PARTS.npz

prints the labels of the views, or kernels, in an .npz file, as JSON.

Parameters are the defaults: of NEMO (Rappoport and Shamir, Bioinformatics 2019) n / 6 neighbors by
squared Euclidean distances; of EE-IMVC (Liu et al., TPAMI 2021) lambda_reg=1, qnorm=2 and k-means
from a single start. Columns are standardized by the samples that a view has, as in the comparison
of imml's authors; kernels come centered and with a unit diagonal, as EE-IMVC's authors have them.
"""

import io
import json
import sys
import warnings

import numpy as np


def standardize(view):
    """Return columns of mean 0 and variance 1, without those that are constant."""
    deviations = np.nanstd(view, axis=0)
    view = view[:, deviations > 0]
    return (view - np.nanmean(view, axis=0)) / deviations[deviations > 0]


def main(method, n_clusters, seed, kind):
    """Print the labels that a method of imml finds."""
    from imml import cluster

    warnings.simplefilter("ignore")
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as file:
        parts = [file[name] for name in file.files]
    options = {"n_clusters": int(n_clusters), "random_state": int(seed)}
    if kind == "kernels":
        options["kernel"] = lambda K: K  # imml calls a function of the part
    else:
        parts = [standardize(part) for part in parts]
    answers, sys.stdout = sys.stdout, sys.stderr  # what imml prints is not an answer
    labels = getattr(cluster, method)(**options).fit_predict(parts)
    print(json.dumps(np.asarray(labels).astype(int).tolist()), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
