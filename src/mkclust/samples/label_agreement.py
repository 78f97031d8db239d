"""How far two clusterings of the same samples agree, wherever their labels are."""

from mkclust.metrics import adjusted_rand_index, adjusted_rand_of_table
from mkclust.samples.checks import is_dask
from mkclust.samples.dask import contingency
from mkclust.types import Array


def agreement(first: Array, second: Array, n_clusters: int) -> float:
    """Return the adjusted Rand index of two clusterings; of dask arrays only counts travel.

    Parameters
    ----------
    first, second : ndarray or dask array of int, of shape (n_samples,)
        Clusters below `n_clusters`, both as arrays of one kind.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    float
    """
    if not is_dask(first):
        return adjusted_rand_index(first, second)
    return adjusted_rand_of_table(contingency(first, second.rechunk(first.chunks), n_clusters))
