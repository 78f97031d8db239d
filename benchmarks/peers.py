"""Other packages' ways to cluster several views of the same samples, at their defaults.

`peers_on_sets.py` says what has to be installed.

`PEERS` holds functions ``peer(views, n_clusters, seed) -> labels`` of views by name.
None of them sees labels, and nothing is tuned. ``--no-deps`` leaves out what these
methods do not use. What is done to the columns first is part of a peer, since its
answers depend on it:

raw            the views as they are
standardized   columns of mean 0 and variance 1; a constant column becomes zeros
balanced       standardized, and every view divided by the square root of its number of
               columns
"""

import contextlib
import importlib
import io
from functools import partial

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering, spectral_clustering
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array

# Factors that MOFA learns by default.
FACTORS = 10


def prepared(views, how):
    """Return the views with their columns or rows scaled."""
    found = [np.asarray(view, dtype=float) for view in views.values()]
    if how != "raw":
        found = [StandardScaler().fit_transform(view) for view in found]
    return (
        [view / np.sqrt(view.shape[1]) for view in found]
        if how == "balanced"
        else found
    )


def kmeans(views, n_clusters, seed):
    """Cluster all columns side by side; scikit-learn's single start would be a weaker
    rival."""
    model = KMeans(n_clusters, n_init=10, random_state=seed)
    return model.fit_predict(np.hstack(prepared(views, "balanced")))


def spectral_neighbors(views, n_clusters, seed):
    """Cluster the graph of the ten nearest neighbors, scikit-learn's default."""
    options = {"affinity": "nearest_neighbors", "n_neighbors": 10, "random_state": seed}
    return SpectralClustering(n_clusters, **options).fit_predict(
        np.hstack(prepared(views, "balanced"))
    )


def snf(views, n_clusters, seed):
    """Cluster the fused network of SNF (Wang et al., Nature Methods 2014), snfpy 0.2.2.

    Its README takes Euclidean distances, as the paper does, and scikit-learn's
    spectral_clustering of the result. It divides by the number of views less one.
    """
    if len(views) < 2:
        raise ValueError(f"SNF fuses two views or more, and got {len(views)}.")
    compute = importlib.import_module("snf.compute")

    def check_array_as_before(array, *, force_all_finite=True, **options):
        return check_array(array, ensure_all_finite=force_all_finite, **options)

    # Scikit-learn 1.8 has renamed the option.
    compute.check_array = check_array_as_before
    affinities = [compute.make_affinity(view) for view in prepared(views, "raw")]
    return spectral_clustering(
        compute.snf(*affinities), n_clusters=n_clusters, random_state=seed
    )


def mofa(views, n_clusters, seed):
    """Cluster the factors of MOFA+ (Argelaguet et al., Genome Biology 2020) by k-means.

    mofapy2 0.7.5 with its defaults: ten factors, fewer of fewer columns, and at most a
    thousand rounds; views are scaled to the same variance. Constant columns are left
    out, which it refuses.
    """
    package = importlib.import_module("mofapy2.run.entry_point")
    columns = [view[:, view.std(axis=0) > 0] for view in prepared(views, "raw")]
    n_factors = min(FACTORS, len(columns[0]), sum(view.shape[1] for view in columns))
    with contextlib.redirect_stdout(io.StringIO()):
        model = package.entry_point()
        model.set_data_options(scale_views=True)
        model.set_data_matrix([[view] for view in columns], likelihoods=None)
        model.set_model_options(factors=n_factors)
        model.set_train_options(seed=seed, quiet=True)
        model.build()
        model.run()
    factors = model.model.getExpectations()["Z"]["E"]
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(factors)


def of_imml(views, n_clusters, seed, name):
    """Cluster by a class of imml 0.6.0, at its defaults, as its examples do.

    NEMO is by Rappoport and Shamir, Bioinformatics 2019; EE-IMVC by Liu et al., TPAMI
    2021.
    """
    kind = getattr(importlib.import_module("imml.cluster"), name)
    model = kind(n_clusters=int(n_clusters), random_state=seed)
    return model.fit_predict(prepared(views, "standardized"))


PEERS = {
    "k-means, standardized": kmeans,
    "spectral clustering, neighbors": spectral_neighbors,
    "SNF": snf,
    "NEMO": partial(of_imml, name="NEMO"),
    "EE-IMVC": partial(of_imml, name="EEIMVC"),
    "MOFA, then k-means": mofa,
}
