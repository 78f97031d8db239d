"""Other people's ways to cluster several views of the same samples, at their published defaults.

    pip install --no-deps snfpy==0.2.2 imml==0.6.0 mvlearn==0.5.0 control==0.10.2 seaborn==0.13.2
    pip install pandas networkx h5py matplotlib
    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/peers.py 3sources digits --seeds 2

`PEERS` holds functions ``peer(views, n_clusters, seed) -> labels`` of views by name. None of them
sees labels, and nothing is tuned: every number that is not a default of the package has its source
beside it. A package is imported by the function that needs it, so that this module needs none of
them; a missing package raises ``ImportError``, and whatever a package raises comes through.

``--no-deps`` leaves out what imml asks for and these methods do not use (cvxpy), and an upper bound
of mvlearn (matplotlib 3.3.4) that is older than the Python mkclust needs. control is imported by
imml.cluster, seaborn by mvlearn, h5py and networkx by imml.

What is done to the columns first is part of a peer, as its answers hang on it:

raw            the views as they are
standardized   columns of mean 0 and variance 1; a constant column becomes zeros
balanced       standardized, and every view divided by the square root of its number of columns, so
               that a view of many columns does not outweigh one of few when they stand side by side
unit rows      every sample of every view scaled to length 1
"""

import argparse
import importlib
import time
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering, spectral_clustering
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.validation import check_array

from mkclust.metrics import adjusted_rand_index
from paper.datasets import load

Views = dict[str, np.ndarray]


def import_peer(module: str):
    """Import a module of another package, or say how it is installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} cannot be imported: {error}. The first lines of benchmarks/peers.py say how "
            "to install it and what it needs."
        ) from error


def raw(views: Views) -> list[np.ndarray]:
    return [np.asarray(view, dtype=float) for view in views.values()]


def standardized(views: Views) -> list[np.ndarray]:
    return [StandardScaler().fit_transform(view) for view in raw(views)]


def balanced(views: Views) -> list[np.ndarray]:
    return [view / np.sqrt(view.shape[1]) for view in standardized(views)]


def unit_rows(views: Views) -> list[np.ndarray]:
    return [normalize(view) for view in raw(views)]


# scikit-learn. n_init=10 was the default of KMeans up to version 1.3 and is still that of
# SpectralClustering; the present one, a single start for k-means++, would be a weaker rival.


def kmeans_raw(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """K-means of all columns as they are."""
    model = KMeans(n_clusters, n_init=10, random_state=seed)
    return model.fit_predict(np.hstack(raw(views)))


def kmeans_balanced(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """K-means of all columns, standardized, with views of equal weight."""
    model = KMeans(n_clusters, n_init=10, random_state=seed)
    return model.fit_predict(np.hstack(balanced(views)))


def spectral_neighbors(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """Spectral clustering of the graph of nearest neighbors; ten is scikit-learn's default."""
    model = SpectralClustering(
        n_clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    )
    return model.fit_predict(np.hstack(balanced(views)))


def spectral_gaussian(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """Spectral clustering of one Gaussian kernel, as wide as the median distance.

    scikit-learn's own gamma=1 takes no notice of the scale of the data; the median is the default
    of mvlearn, and of mkclust.
    """
    columns = np.hstack(balanced(views))
    distances = euclidean_distances(columns)
    median = np.median(distances[np.triu_indices_from(distances, 1)])
    gamma = 1 / (2 * median**2)
    model = SpectralClustering(n_clusters, affinity="rbf", gamma=gamma, random_state=seed)
    return model.fit_predict(columns)


# SNF (Wang et al., Nature Methods 2014), snfpy 0.2.2. Defaults of make_affinity: sqeuclidean, K=20,
# mu=0.5, columns standardized; of snf: K=20, t=20, alpha=1. Its README takes Euclidean distances,
# as the paper does, and scikit-learn's spectral_clustering of the result. It needs two views:
# it divides by their number less one. Dense products of n x n matrices, 2 t of them for every view,
# are what it costs.


def import_snf():
    """Import snfpy's computations, with `check_array` as scikit-learn 1.8 and newer have it."""
    compute = import_peer("snf.compute")

    def check_array_as_before(array, *, force_all_finite=True, **options):
        return check_array(array, ensure_all_finite=force_all_finite, **options)

    compute.check_array = check_array_as_before
    return compute


def fuse(views: list[np.ndarray], n_clusters: int, seed: int, **options) -> np.ndarray:
    """Cluster the fused network of several views."""
    compute = import_snf()
    if len(views) < 2:
        raise ValueError(f"SNF fuses two views or more, and got {len(views)}.")
    affinities = [compute.make_affinity(view, **options) for view in views]
    fused = compute.snf(*affinities)
    return spectral_clustering(fused, n_clusters=n_clusters, random_state=seed)


def snf(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """SNF at its defaults, which standardize the columns."""
    return fuse(raw(views), n_clusters, seed)


def snf_euclidean(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """SNF as its README has it, of distances that are not squared."""
    return fuse(raw(views), n_clusters, seed, metric="euclidean")


def snf_raw(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """SNF of the columns as they are, an option of snfpy."""
    return fuse(raw(views), n_clusters, seed, normalize=False)


# imml 0.6.0. Its authors' comparison of clusterers standardizes the columns for NEMO and EE-IMVC
# (VarianceThreshold, then StandardScaler), its introduction calls NEMO on the views as they are,
# and its tutorial on clusters scales samples to unit length for EE-IMVC. Defaults of NEMO
# (Rappoport and Shamir, Bioinformatics 2019): n / 6 neighbors, sqeuclidean; it has no random part,
# so the seed changes nothing. Defaults of EE-IMVC (Liu et al., TPAMI 2021): the linear kernel plus
# a constant and the identity, lambda_reg=1, qnorm=2, and k-means from a single start.


def nemo(views: list[np.ndarray], n_clusters: int, seed: int) -> np.ndarray:
    """Cluster by NEMO's mean of the networks of nearest neighbors."""
    model = import_peer("imml.cluster").NEMO(n_clusters=int(n_clusters), random_state=seed)
    return model.fit_predict(views)


def ee_imvc(views: list[np.ndarray], n_clusters: int, seed: int) -> np.ndarray:
    """Cluster by EE-IMVC's late fusion of the spectral embeddings."""
    model = import_peer("imml.cluster").EEIMVC(n_clusters=int(n_clusters), random_state=seed)
    return model.fit_predict(views)


def nemo_raw(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """NEMO of the columns as they are."""
    return nemo(raw(views), n_clusters, seed)


def nemo_standardized(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """NEMO of standardized columns."""
    return nemo(standardized(views), n_clusters, seed)


def ee_imvc_unit_rows(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """EE-IMVC of samples of unit length."""
    return ee_imvc(unit_rows(views), n_clusters, seed)


def ee_imvc_standardized(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """EE-IMVC of standardized columns."""
    return ee_imvc(standardized(views), n_clusters, seed)


# mvlearn 0.5.0. Its examples pass the views as they are. Defaults: one Gaussian kernel of every
# view, as wide as the median distance; ten iterations; k-means of all embeddings from ten starts;
# v_lambda=2. Both ask for two views or more.


def co_regularized(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """Co-regularized spectral clustering (Kumar, Rai and Daume, NIPS 2011)."""
    kind = import_peer("mvlearn.cluster").MultiviewCoRegSpectralClustering
    model = kind(n_clusters=int(n_clusters), random_state=seed)
    return model.fit_predict(raw(views))


def co_trained(views: Views, n_clusters: int, seed: int) -> np.ndarray:
    """Spectral clustering by co-training (Kumar and Daume, ICML 2011)."""
    kind = import_peer("mvlearn.cluster").MultiviewSpectralClustering
    model = kind(n_clusters=int(n_clusters), random_state=seed)
    return model.fit_predict(raw(views))


PEERS: dict[str, Callable[[Views, int, int], np.ndarray]] = {
    "k-means, views side by side": kmeans_raw,
    "k-means, standardized": kmeans_balanced,
    "spectral clustering, neighbors": spectral_neighbors,
    "spectral clustering, Gaussian": spectral_gaussian,
    "SNF": snf,
    "SNF, Euclidean": snf_euclidean,
    "SNF, raw columns": snf_raw,
    "NEMO": nemo_standardized,
    "NEMO, raw columns": nemo_raw,
    "EE-IMVC": ee_imvc_standardized,
    "EE-IMVC, unit rows": ee_imvc_unit_rows,
    "co-regularized spectral": co_regularized,
    "co-training spectral": co_trained,
}


def main():
    """Print how well, and how fast, every peer finds the classes of some data sets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="+", help="data sets of the catalog that have views")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=tuple(PEERS))
    arguments = parser.parse_args()
    for name in arguments.names:
        data = load(name)
        for peer in arguments.peers:
            for seed in range(arguments.seeds):
                start = time.perf_counter()
                try:
                    labels = PEERS[peer](data.views, len(np.unique(data.y)), seed)
                    outcome = f"{adjusted_rand_index(data.y, labels):.3f}"
                except Exception as error:  # whatever a peer raises is its outcome
                    outcome = f"failed: {type(error).__name__}: {error}"
                seconds = time.perf_counter() - start
                print(f"{name:12} {peer:32} seed {seed} {seconds:7.2f} s  {outcome}", flush=True)


if __name__ == "__main__":
    main()
