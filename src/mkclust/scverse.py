"""Clusters of AnnData and MuData in the habit of ``scanpy.tl``."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.decomposition import PCA

from mkclust.explain.anndata import to_anndata
from mkclust.kernels import view
from mkclust.kernels.counts import COMPONENTS, MANY_COLUMNS, are_whole
from mkclust.linalg.sparse_rows import stored_entries
from mkclust.methods import AgreementKKM
from mkclust.text import did_you_mean, join_words

# Kinds of counts by the types of features that 10x writes, and by the usual names of
# modalities.
KIND_OF_COUNTS = {
    "Gene Expression": "counts",
    "Antibody Capture": "log-ratios",
    "Peaks": "sparse",
    "rna": "counts",
    "gex": "counts",
    "prot": "log-ratios",
    "protein": "log-ratios",
    "adt": "log-ratios",
    "atac": "sparse",
    "peaks": "sparse",
}
# The column of var that holds these types.
FEATURE_TYPES = "feature_types"
# Representations that take the place of a matrix that holds no counts.
PRINCIPAL = "X_pca"
# What the matrix of annotated data is called among its representations.
MATRIX = "X"


def cluster(
    data: Any,
    n_clusters: Any = "auto",
    *,
    resolution: float | None = None,
    use_rep: Any = None,
    layer: str | Mapping[str, str] | None = None,
    key_added: str = "mkclust",
    **parameters: Any,
) -> AgreementKKM:
    """Cluster the cells of AnnData or MuData, and write the result into it.

    Counts are prepared as is usual for their kind: those of genes, proteins and peaks
    are known by ``var["feature_types"]``, by the name of the modality (rna, gex, prot,
    adt, atac, peaks), or else by their numbers. Several types of features in one
    AnnData are several views. Cells that a modality lacks are clustered by the others.

    Parameters
    ----------
    data : anndata.AnnData or mudata.MuData
        Changed in place.
    n_clusters : int or "auto", default="auto"
        "auto" takes the number that `suggest_n_clusters` finds.
    resolution : float, default=None
        With "auto": of 2 to 25 clusters take those with the highest modularity at this
        resolution, which means what that of ``scanpy.tl.leiden`` does: 1 is usual, and
        a higher one gives more clusters.
    use_rep : str, list or dict, default=None
        What to cluster by: a key of ``obsm``, or "X". Of AnnData, a list of keys, or
        keys by names, are several views. Of MuData, one key is that of all modalities,
        and a dict has keys by modality. None takes the counts of ``X``, and if these
        are none, ``obsm["X_pca"]``, or else 50 principal components of ``X`` (``X``
        itself if it has less than 100 columns).
    layer : str or dict, default=None
        Layer that stands for ``X``, of all modalities or by modality.
    key_added : str, default="mkclust"
        The key of what is written. ``obs[key]`` are the clusters (of MuData, in every
        modality, too), ``obs[key + "_silhouette"]`` how well each cell fits into its
        own, ``obsm["X_" + key]`` the embedding, ``obsp[key + "_connectivities"]`` the
        graph, and ``uns[key]`` the parameters, the weights of the views, and their
        agreement. ``scanpy.tl.umap(data, neighbors_key=key)`` and ``scanpy.tl.leiden``
        take the graph.
    **parameters
        Others of `AgreementKKM`, such as ``kernels``, ``scale`` and ``random_state``, 0
        by default.

    Returns
    -------
    AgreementKKM
        The fitted model, for ``predict`` of `views_of` new cells, and for `describe`.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from mkclust import scverse
    >>> rng = np.random.default_rng(0)
    >>> place = 4 * rng.normal(size=(3, 10))[np.arange(150) % 3]
    >>> data = AnnData(np.zeros((150, 1)))
    >>> data.obsm["X_pca"] = place + rng.normal(size=(150, 10))
    >>> data.obsm["protein"] = place[:, :5] + rng.normal(size=(150, 5))
    >>> model = scverse.cluster(data, 3, use_rep=["X_pca", "protein"])
    >>> data.obs["mkclust"].value_counts().tolist()
    [50, 50, 50]
    >>> data.obsp["mkclust_connectivities"].shape
    (150, 150)
    """
    if resolution is not None and n_clusters != "auto":
        raise ValueError(
            f"resolution={resolution!r} finds the number of clusters, and n_clusters "
            f"is {n_clusters!r}: pass n_clusters='auto', or no resolution"
        )
    known = [*AgreementKKM().get_params(), "use_rep", "layer", "key_added"]
    for name in parameters:
        if name not in known:
            raise TypeError(
                f"cluster has no parameter {name!r}{did_you_mean(name, known)}; it "
                "changes data in place, and takes the parameters of AgreementKKM"
            )
    read = _read(data, use_rep, layer)
    views = {name: values for name, values, _ in read}
    options: dict[str, Any] = {"random_state": 0, "resolution": resolution}
    if hasattr(data, "mod"):
        options["join"] = "outer"
    if parameters.get("scale", "auto") == "auto":
        options["kernels"] = {name: kernel for name, _, kernel in read}
    model = AgreementKKM(n_clusters, **options | parameters).fit(views)
    to_anndata(model, data, key_added, X=views)
    for part in getattr(data, "mod", {}).values():
        part.obs[key_added] = data.obs[key_added].reindex(part.obs_names)
    return model


# A view of annotated data: its name, AnnData of one matrix or a frame, and the kernel
# that suits it.
_View = tuple[str, Any, Any]


def views_of(data: Any, *, use_rep: Any = None, layer: Any = None) -> dict[str, Any]:
    """Return what `cluster` clusters by, for ``predict`` of new cells.

    Parameters
    ----------
    data : anndata.AnnData or mudata.MuData
        New cells, with the same columns.
    use_rep, layer
        As they were passed to `cluster`.

    Returns
    -------
    dict of str to AnnData or data frame
        The views by name.
    """
    return {name: values for name, values, _ in _read(data, use_rep, layer)}


def _read(data: Any, use_rep: Any, layer: Any) -> list[_View]:
    """Return the views of annotated data."""
    if not all(hasattr(data, name) for name in ("obs_names", "obsm", "uns")):
        hint = ""
        if isinstance(data, Mapping):
            hint = "; mudata.MuData(data) makes one of a dict of AnnData"
        found = type(data).__name__
        raise TypeError(f"data is a {found}: pass AnnData or MuData{hint}")
    if hasattr(data, "mod"):
        return list(_views_of_modalities(data, use_rep, layer))
    if use_rep is None:
        return list(_views_of_matrix(data, MATRIX, layer))
    if not isinstance(use_rep, Mapping):
        keys = [use_rep] if isinstance(use_rep, str) else use_rep
        use_rep = {key: key for key in keys}
    return [
        _representation(data, name, key, layer, "data") for name, key in use_rep.items()
    ]


def _views_of_modalities(data: Any, use_rep: Any, layer: Any) -> Iterator[_View]:
    """Yield one view of every modality."""
    by_modality = {}
    for what, choice in {"use_rep": use_rep, "layer": layer}.items():
        if not isinstance(choice, Mapping):
            choice = dict.fromkeys(data.mod, choice)
        for name in choice:
            if name not in data.mod:
                raise ValueError(
                    f"{what} has the modality {name!r}{did_you_mean(name, data.mod)}, "
                    f"and data has {join_words(map(repr, data.mod))}: name one of these"
                )
        by_modality[what] = choice
    for name, part in data.mod.items():
        key = by_modality["use_rep"].get(name)
        its_layer = by_modality["layer"].get(name)
        if key is None:
            yield from _views_of_matrix(part, name, its_layer)
        else:
            yield _representation(part, name, key, its_layer, f"modality {name!r}")


def _views_of_matrix(part: Any, name: str, layer: str | None) -> Iterator[_View]:
    """Yield the counts of a matrix, by types of features, or what stands for it."""
    matrix = _matrix(part, layer, name)
    if not are_whole(stored_entries(matrix)):
        n, d = matrix.shape
        if layer is None and PRINCIPAL in part.obsm:
            yield _representation(part, name, PRINCIPAL, None, name)
        elif d < MANY_COLUMNS or n <= COMPONENTS:
            yield name, _annotated(part, matrix), "auto"
        else:
            components = PCA(COMPONENTS, random_state=0)
            yield name, _annotated(part, matrix), view(components, "components")
        return

    by_modality = KIND_OF_COUNTS.get(name.lower(), "auto")
    types = np.array([name] * matrix.shape[1], dtype=object)
    if FEATURE_TYPES in part.var:
        types = part.var[FEATURE_TYPES].astype(str).to_numpy()
    kinds = list(dict.fromkeys(types.tolist()))
    if len(kinds) == 1:
        kernel = KIND_OF_COUNTS.get(kinds[0], by_modality)
        yield name, _annotated(part, matrix), kernel
        return
    for kind in kinds:
        columns = np.flatnonzero(types == kind)
        values = _annotated(part[:, columns], matrix[:, columns])
        yield kind, values, KIND_OF_COUNTS.get(kind, by_modality)


def _representation(
    part: Any, name: str, key: str, layer: str | None, where: str
) -> _View:
    """Return one representation as a view; embeddings are taken as they are."""
    if key == MATRIX:
        return name, _annotated(part, _matrix(part, layer, where)), "auto"
    if key not in part.obsm:
        known = join_words(map(repr, [MATRIX, *part.obsm]))
        raise ValueError(
            f"use_rep={key!r}: {where} has no such obsm{did_you_mean(key, part.obsm)}; "
            f"choose among {known}"
        )
    values = part.obsm[key]
    are_counts = are_whole(stored_entries(np.asarray(values)))
    kernel = "components" if key.startswith("X_") and not are_counts else "auto"
    if not isinstance(values, pd.DataFrame):
        columns = [f"{key} {place + 1}" for place in range(values.shape[1])]
        values = pd.DataFrame(np.asarray(values), part.obs_names, columns)
    return name, values, kernel


def _matrix(part: Any, layer: str | None, where: str) -> Any:
    """Return X, or the layer that stands for it, as sparse rows or an array."""
    if layer is not None and layer not in part.layers:
        known = join_words(map(repr, part.layers)) or "no layers"
        raise ValueError(f"layer={layer!r}: {where} has {known}")
    matrix = part.X if layer is None else part.layers[layer]
    if matrix is None:
        raise ValueError(f"{where} has no matrix X: pass use_rep, a key of obsm")
    return matrix.tocsr() if issparse(matrix) else np.asarray(matrix)


def _annotated(part: Any, matrix: Any) -> Any:
    """Return a matrix with the names of its rows and columns."""
    from anndata import AnnData

    obs = pd.DataFrame(index=part.obs_names)
    return AnnData(matrix, obs=obs, var=pd.DataFrame(index=part.var_names))
