"""Clusters, scores and embedding of a fit in AnnData or MuData."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.explain.sample_scores import sample_scores
from mkclust.fit import MultipleKernelClusterer
from mkclust.index import match_rows
from mkclust.linalg import to_host
from mkclust.linalg.sparse_rows import spread_links, spread_rows
from mkclust.plots.style import names_of


def to_anndata(
    model: MultipleKernelClusterer, data: Any, key: str = "mkclust", X: Any = None
) -> None:
    """Write clusters, silhouettes and embedding into AnnData, or MuData's top level.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    data : anndata.AnnData or mudata.MuData
        Changed in place. Its ``obs_names`` are matched with ``sample_ids_``;
        observations that the model was not fitted on have missing values, and samples
        that it lacks are left out. If the model has no ids, rows are matched by
        position.
    key : str, default="mkclust"
        ``obs[key]`` are the clusters, a categorical column; ``obs[key +
        "_silhouette"]`` how well each sample fits into its own; ``obsm["X_" + key]``
        the embedding; ``uns[key]`` the method, the weights and alignments of the
        kernels by their names, how these agree, and the parameters as text. Of
        `AgreementKKM`, ``obsp[key + "_connectivities"]`` is the graph that the clusters
        were cut from, as scanpy takes it: ``scanpy.tl.umap(data, neighbors_key=key)``,
        and ``leiden``.
    X : array, list or dict of kernels or views, or table, default=None
        What an `AgreementKKM` was fitted on, for its graph. It need not be passed for
        views of which all samples are anchors; else there is no graph without it.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from mkclust import AverageKKM, to_anndata
    >>> data = AnnData(np.random.default_rng(0).normal(size=(40, 5)))
    >>> to_anndata(AverageKKM(n_clusters=3, random_state=0).fit(data.X), data)
    >>> data.obs["mkclust"].nunique(), data.obsm["X_mkclust"].shape
    (3, (40, 3))
    """
    check_fitted(model)
    links = _links(model, X)
    if not all(
        hasattr(data, name) for name in ("obs", "obsm", "obsp", "uns", "obs_names")
    ):
        raise TypeError(f"data is a {type(data).__name__}: pass AnnData or MuData")
    rows = match_rows(data.obs_names, fitted_index(model), "data")
    there = rows >= 0
    rows = rows[there]
    n = len(data.obs_names)

    def spread(values: Any, missing: float) -> Any:
        """Return values of the samples in the order of the observations."""
        return spread_rows(values[there], rows, n, missing)

    names = names_of(model) or tuple(map(str, range(int(model.n_clusters_))))
    labels = spread(np.asarray(model.labels_), -1)
    data.obs[key] = pd.Categorical.from_codes(labels, categories=names)
    data.obs[f"{key}_silhouette"] = spread(sample_scores(model).silhouette, np.nan)
    data.obsm[f"X_{key}"] = spread(to_host(model.embedding_), np.nan)
    # In types that files of annotated data hold.
    data.uns[key] = {
        "method": type(model).__name__,
        "kernel_names": np.array(
            [str(name) for name in model.kernel_names_], dtype=object
        ),
        "weights": np.asarray(model.weights_, dtype=float),
        "alignments": np.asarray(model.alignments_, dtype=float),
        "parameters": {
            name: repr(each) for name, each in model.get_params(deep=False).items()
        },
    }
    if hasattr(model, "agreement_"):
        agreement = model.agreement_
        data.uns[key]["agreement"] = {
            "verdict": agreement.verdict(),
            "alignments": np.asarray(agreement.alignments, dtype=float),
            "p_values": np.asarray(agreement.p_values, dtype=float),
        }
    if links is not None:
        among = spread_links(links[there][:, there], rows, n)
        # Not an array: scanpy and umap multiply matrices by *.
        data.obsp[f"{key}_connectivities"] = csr_matrix(among)
        data.uns[key] |= {
            "connectivities_key": f"{key}_connectivities",
            # There are none, but scanpy asks for the name.
            "distances_key": f"{key}_distances",
            "params": {
                "method": "umap",  # any other makes scanpy warn
                "n_neighbors": max(model.neighbors_),
                "metric": "euclidean",
                "random_state": 0,
                "use_rep": f"X_{key}",
            },
        }


def _links(model: MultipleKernelClusterer, X: Any) -> Any:
    """Return the graph that clusters were cut from; None without one."""
    is_kept = hasattr(model, "bank_") and not hasattr(model, "anchors_")
    if hasattr(model, "connectivities") and (is_kept or X is not None):
        return model.connectivities(X)
    return None
