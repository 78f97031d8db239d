"""Compare clusters with classes: accuracy, mutual information, purity, Rand index.

Labels may be of any hashable type, and classes and clusters need not share names: only
which samples are grouped together counts. Two pandas Series are matched by their index,
as `mkclust.index` says; all else is matched by position.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from mkclust.index import index_of, match_rows


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    r"""Return the share of samples matched by the best pairing with classes.

    .. math:: \max_\pi \frac{1}{n} \sum_{i=1}^{n} [y_i = \pi(\hat y_i)]

    where :math:`\pi` sends each cluster to a class of its own. Clusters or classes
    without a partner count as mistaken.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Classes and clusters.

    Returns
    -------
    float
        Between 0 and 1; 1 means the same grouping.

    Examples
    --------
    >>> from mkclust.metrics import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    table = contingency_matrix(*_encode_pair(y_true, y_pred))
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def normalized_mutual_info(y_true: Any, y_pred: Any) -> float:
    r"""Return the mutual information divided by the larger of the two entropies.

    .. math:: \frac{I(y; \hat y)}{\max(H(y), H(\hat y))}

    This is scikit-learn's ``normalized_mutual_info_score`` with
    ``average_method="max"``, as in the multiple kernel clustering literature; its
    default, the mean entropy, is never smaller.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Classes and clusters.

    Returns
    -------
    float
        Between 0 and 1; 1 means the same grouping.

    Examples
    --------
    >>> from mkclust.metrics import normalized_mutual_info
    >>> round(normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.6667
    """
    labels = _encode_pair(y_true, y_pred)
    return float(normalized_mutual_info_score(*labels, average_method="max"))


def purity(y_true: Any, y_pred: Any) -> float:
    r"""Return the share of samples that belong to the commonest class of their cluster.

    .. math:: \frac{1}{n} \sum_{c} \max_{t} |\{i : \hat y_i = c,\; y_i = t\}|

    It is never below the accuracy, and 1 if every sample is a cluster of its own:
    compare it only between clusterings with as many clusters.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Classes and clusters.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from mkclust.metrics import purity
    >>> purity([0, 0, 0, 1], [0, 0, 1, 1])
    0.75
    """
    table = contingency_matrix(*_encode_pair(y_true, y_pred))
    return float(table.max(axis=0).sum() / table.sum())


def adjusted_rand_index(y_true: Any, y_pred: Any) -> float:
    """Return the agreement over pairs of samples, corrected for chance.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Classes and clusters.

    Returns
    -------
    float
        At most 1, for the same grouping; 0 on average for random labels, and may be
        negative.

    Examples
    --------
    >>> from mkclust.metrics import adjusted_rand_index
    >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return float(adjusted_rand_score(*_encode_pair(y_true, y_pred)))


def agreement_of_labels(labels: Any, others: Any) -> float:
    """Return the adjusted Rand index on samples with a cluster in both, or NaN."""
    labels = np.asarray(labels)
    others = np.asarray(others)
    both = (labels >= 0) & (others >= 0)
    if both.any():
        return float(adjusted_rand_score(labels[both], others[both]))
    return np.nan


def scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return all four scores of a clustering by their short names.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Classes and clusters.

    Returns
    -------
    dict
        ``acc`` (:func:`clustering_accuracy`), ``nmi`` (:func:`normalized_mutual_info`),
        ``purity`` (:func:`purity`) and ``ari`` (:func:`adjusted_rand_index`).

    Examples
    --------
    >>> from mkclust.metrics import scores
    >>> scores([0, 0, 1, 1], ["b", "b", "a", "a"])
    {'acc': 1.0, 'nmi': 1.0, 'purity': 1.0, 'ari': 1.0}
    """
    return {
        "acc": clustering_accuracy(y_true, y_pred),
        "nmi": normalized_mutual_info(y_true, y_pred),
        "purity": purity(y_true, y_pred),
        "ari": adjusted_rand_index(y_true, y_pred),
    }


def align_labels(new: Any, old: Any) -> Any:
    """Renumber the clusters of a refit to match an older labeling.

    Clusters are paired so that they have the most samples in common, and take the
    number of their partner. Those without a partner take the next free numbers, larger
    ones first.

    Parameters
    ----------
    new : array-like of int or pandas.Series of shape (n_samples,)
        Clusters of the refit.
    old : array-like of int or pandas.Series of shape (n_samples_before,)
        Older clusters, numbered from 0. Two Series are matched by their index, and may
        have different samples; all else is matched by position.

    Returns
    -------
    ndarray of int, or pandas.Series with the index of `new`
        The same clusters as in `new`, in their order of samples, renumbered.

    Examples
    --------
    >>> from mkclust import align_labels
    >>> align_labels([0, 0, 0, 1, 1, 2], [1, 1, 1, 0, 0, 0]).tolist()
    [1, 1, 1, 0, 0, 2]
    """
    values = _cluster_numbers(new, "new")
    before = _cluster_numbers(old, "old")
    positions = _matched(new, old, ("new", "old"), every=False)
    # Larger clusters first, then by first appearance: an order that does not depend on
    # numbers.
    clusters, first, sizes = np.unique(values, return_index=True, return_counts=True)
    clusters = clusters[np.lexsort((first, -sizes))]
    known = np.unique(before)
    is_common = positions >= 0
    pairs = pd.crosstab(before[is_common], values[positions[is_common]])
    table = pairs.reindex(index=known, columns=clusters, fill_value=0).to_numpy()

    numbers = {}
    for p, q in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        if table[p, q]:
            numbers[clusters[q]] = known[p]
    without = [cluster for cluster in clusters if cluster not in numbers]
    numbers |= {cluster: known.max() + 1 + i for i, cluster in enumerate(without)}

    aligned = np.array([numbers[cluster] for cluster in values])
    if index_of(new) is not None:
        return pd.Series(aligned, index=new.index, name=new.name)
    return aligned


def _matched(
    labels: Any, others: Any, names: tuple[str, str], every: bool
) -> np.ndarray:
    """Return where each of the other labels is, -1 for none; of Series by index."""
    index = index_of(labels)
    other = index_of(others)
    by_index = index is not None and other is not None
    if len(labels) != len(others) and (every or not by_index):
        raise ValueError(
            f"{names[0]} has {len(labels)} labels but {names[1]} has {len(others)}: "
            "pass the same samples, or two pandas Series with their ids"
        )
    if not by_index:
        return np.arange(len(labels))
    return match_rows(index, other, names[0], f"the labels of {names[1]}", every=every)


def _cluster_numbers(labels: Any, name: str) -> np.ndarray:
    """Return labels as whole numbers, or refuse them."""
    _encode(labels, name)  # refuses labels that are empty, missing or not a column
    for label in np.asarray(labels).tolist():
        if not isinstance(label, int | float) or label != int(label) or label < 0:
            raise ValueError(
                f"{name} holds the label {label!r}: pass numbers of clusters, from 0"
            )
    return np.asarray(labels).astype(int)


def _encode_pair(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    """Encode the labels of both sequences from zero, in one order of samples."""
    true = _encode(y_true, "y_true")
    pred = _encode(y_pred, "y_pred")
    return true[_matched(y_true, y_pred, ("y_true", "y_pred"), every=True)], pred


def _encode(labels: Any, name: str) -> np.ndarray:
    """Return labels as numbers from zero, or refuse missing ones."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"{name} has shape {labels.shape}: pass one label per sample")
    codes = pd.factorize(labels)[0]
    if (codes < 0).any():
        position = int(np.argmin(codes))
        raise ValueError(
            f"{name} has a missing label ({labels[position]}) at position {position}: "
            "drop it"
        )
    return codes
